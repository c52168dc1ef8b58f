//! Lines of moves as text, played from a position.

use crate::game::{Notation, Turn};
use crate::schema::hint;

/// The error for a word that does not name a legal move.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("ply {ply}: {}", self.reason())]
pub struct MoveError {
    /// The ply, counted from 1.
    pub ply: usize,
    /// The word.
    pub word: String,
    /// The legal moves of the position; empty if the game is over.
    pub legal: Vec<String>,
    /// The reason for the end, if the game is over.
    pub ending: Option<&'static str>,
}

impl MoveError {
    /// The most legal moves that a message names; it counts the others.
    const NAMED: usize = 400;

    /// Creates the error for a word at a ply, counted from 1.
    pub fn new<G: Notation>(position: &G, ply: usize, word: &str) -> MoveError {
        let ending = (position.turn() == Turn::Over).then(|| position.ending());
        MoveError { ply, word: word.to_string(), legal: legal_texts(position), ending }
    }

    fn reason(&self) -> String {
        let word = &self.word;
        if let Some(ending) = self.ending {
            return format!("`{word}` cannot be played, the game is over ({ending}); end the line before it");
        }
        let named = self.legal.iter().take(Self::NAMED).map(String::as_str).collect::<Vec<_>>().join(" ");
        let meant = hint(word, self.legal.iter().map(String::as_str));
        let rest = match self.legal.len().saturating_sub(Self::NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("`{word}` is not a legal move{meant} legal here: {named}{rest}")
    }
}

/// Plays the moves of a line, separated by white space, and returns their number. Stops at the first illegal move and
/// leaves the position before it.
pub fn follow<G: Notation>(position: &mut G, line: &str) -> Result<usize, MoveError> {
    let mut plies = 0;
    for word in line.split_ascii_whitespace() {
        plies += 1;
        let Some(mv) = position.parse_move(word) else {
            return Err(MoveError::new(position, plies, word));
        };
        position.play(mv);
    }
    Ok(plies)
}

/// Returns the texts of the legal moves.
pub fn legal_texts<G: Notation>(position: &G) -> Vec<String> {
    let mut moves = Vec::new();
    position.moves(&mut moves);
    moves.into_iter().map(|mv| position.move_text(mv)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::{Parameters, Setup};
    use crate::tic_tac_toe::TicTacToe;

    fn after(line: &str) -> Result<usize, String> {
        let mut position = TicTacToe::initial(&Parameters::defaults(&[])).unwrap();
        follow(&mut position, line).map_err(|error| error.to_string())
    }

    #[test]
    fn error_names_word_ply_and_legal_moves() {
        assert_eq!(after("a1 b2 \t c3"), Ok(3));
        assert_eq!(
            after("a1 b2 a1"),
            Err("ply 3: `a1` is not a legal move; legal here: b1 c1 a2 c2 a3 b3 c3".to_string())
        );
        assert_eq!(
            after("a1 B2"),
            Err("ply 2: `B2` is not a legal move: did you mean `b2`? legal here: b1 c1 a2 b2 c2 a3 b3 c3"
                .to_string())
        );
        assert_eq!(
            after("a1 b2 a2 b3 a3 c3"),
            Err("ply 6: `c3` cannot be played, the game is over (three in a row); end the line before it"
                .to_string())
        );
    }
}
