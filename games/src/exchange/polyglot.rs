//! Reader for Polyglot opening books (Van den Bergh, "Polyglot book format").
//!
//! A book lists moves with weights for positions, not games. The openings of a book are the lines from the initial position
//! that follow its moves. Where several lines lead to one position after as many plies, only the first is an opening. A move
//! of weight 0, or one that is not legal, is not followed.

use std::collections::{HashMap, HashSet};

use super::{ReadError, Start};
use crate::chess::Chess;
use crate::game::{Game, Keyed, Notation, Turn};
use crate::setup::{Parameters, Setup};

/// The bytes of an entry: the key, the move, its weight, and four bytes for programs that learn.
const ENTRY: usize = 16;
/// The most positions that are visited.
const MAX_POSITIONS: usize = 4_000_000;

/// The moves of each position by weight, the greatest first.
type Book = HashMap<u64, Vec<(u16, u16)>>;

/// Returns the lines of at most `plies` plies, by the weights of their moves: those with the heaviest first move are first.
/// A line is shorter where the book ends. `text` has a character for each byte of the book.
pub fn starts(parameters: &Parameters, text: &str, plies: usize) -> Result<Vec<Start>, ReadError> {
    let book = read(text)?;
    let initial = Chess::initial(parameters).map_err(|problem| error(problem.to_string()))?;
    let mut lines = Lines { book, plies, seen: HashSet::new(), moves: Vec::new(), starts: Vec::new() };
    lines.follow(&initial)?;
    match &lines.starts[..] {
        [only] if only.moves.is_empty() => {
            Err(error("the book has no move for the initial position; give another book"))
        }
        _ => Ok(lines.starts),
    }
}

fn read(text: &str) -> Result<Book, ReadError> {
    let bytes: Option<Vec<u8>> = text.chars().map(|character| u8::try_from(character).ok()).collect();
    let (entries, rest) = bytes.as_deref().unwrap_or_default().as_chunks::<ENTRY>();
    if entries.is_empty() || !rest.is_empty() {
        return Err(error("this is not a Polyglot book, which consists of entries of 16 bytes"));
    }
    let mut book = Book::new();
    for entry in entries {
        let number = |from: usize| u16::from_be_bytes([entry[from], entry[from + 1]]);
        let key = (0..8).step_by(2).fold(0, |key, from| key << 16 | u64::from(number(from)));
        let (mv, weight) = (number(8), number(10));
        if weight > 0 {
            book.entry(key).or_default().push((weight, mv));
        }
    }
    // Equal weights are ordered by the move, so that the order of entries does not matter.
    book.values_mut().for_each(|moves| moves.sort_by_key(|&(weight, mv)| (u16::MAX - weight, mv)));
    Ok(book)
}

/// The lines that were found.
struct Lines {
    book: Book,
    plies: usize,
    /// The positions that were visited, with the plies before them.
    seen: HashSet<(usize, u64)>,
    /// The moves of the current line.
    moves: Vec<String>,
    starts: Vec<Start>,
}

impl Lines {
    /// Adds the lines from a position on.
    fn follow(&mut self, position: &Chess) -> Result<(), ReadError> {
        let moves = match self.book.get(&position.polyglot_key()) {
            Some(moves) if self.moves.len() < self.plies => moves.clone(),
            _ => Vec::new(),
        };
        let mut is_last = true;
        for mv in moves.iter().filter_map(|(_, mv)| position.polyglot_move(*mv)) {
            let mut next = position.clone();
            next.play(mv);
            if next.turn() == Turn::Over {
                continue;
            }
            is_last = false;
            if !self.seen.insert((self.moves.len(), next.key())) {
                continue;
            }
            if self.seen.len() > MAX_POSITIONS {
                return Err(error(format!(
                    "the book has more than {MAX_POSITIONS} positions within {} plies; ask for fewer",
                    self.plies
                )));
            }
            self.moves.push(position.move_text(mv));
            self.follow(&next)?;
            self.moves.pop();
        }
        if is_last {
            self.starts.push(Start { line: 1, position: None, moves: self.moves.join(" ") });
        }
        Ok(())
    }
}

/// Returns an error for the whole book, which has no lines.
fn error(reason: impl Into<String>) -> ReadError {
    ReadError { line: 1, reason: reason.into() }
}
