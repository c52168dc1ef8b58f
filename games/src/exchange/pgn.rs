//! Reader and writer for chess as PGN (Edwards 1994, "Portable Game Notation Specification").
//!
//! The writer uses the export format, with comments in the style of cutechess and fastchess: `{+0.35/12 0.250s n=12345}` is
//! the value in pawns from the mover's view, the depth, the time, and the nodes; a mate is `+M5` or `-M4`, in plies. Opening
//! moves are `{book}`, and the last comment has the reason for the end. The reader returns the tag FEN and the moves up to a
//! ply; it skips comments, variations and annotations. Deliberately not here: results, which `agon ratings` reads without
//! the moves, by the same lexer.

use std::collections::VecDeque;

use super::movetext::{MoveText, Numbering, Sides, comment};
use super::pgn_lexer::{Flaw, Lexer, Visitor};
use super::{ReadError, ScoreSheet, Start, WriteError, epd, first, legal, tags};
use crate::chess::Chess;
use crate::game::{Game, Notation};
use crate::line::MoveError;
use crate::setup::{Parameters, Setup};

const SIDES: Sides = Sides { white: 0, black: 1 };

pub(super) fn write(
    parameters: &Parameters,
    sheet: &ScoreSheet<'_>,
    out: &mut String,
) -> Result<(), WriteError> {
    let mut position = first::<Chess>(parameters, sheet)?;
    SIDES.roster(sheet, out);
    if let Some(fen) = sheet.position {
        tags::write("SetUp", "1", out);
        tags::write("FEN", fen, out);
    }
    SIDES.details(sheet, out);
    let mut text = MoveText::new(position.plies() as usize, Numbering::AfterComments, out);
    for (index, ply) in sheet.plies.iter().enumerate() {
        let mv = legal(&position, index, ply)?;
        let mut comment = comment(ply.search);
        if index + 1 == sheet.plies.len() {
            comment.push_str(", ");
            comment.push_str(sheet.ending);
        }
        text.play(&position.san(mv), &comment);
        position.play(mv);
    }
    text.end(SIDES.result(sheet));
    Ok(())
}

/// Reads the games of a text as openings: all moves of each game, or only the first `plies`.
pub fn starts<'a>(
    parameters: &'a Parameters,
    text: &'a str,
    plies: Option<usize>,
) -> impl Iterator<Item = Result<Start, ReadError>> + 'a {
    let games = Games {
        parameters,
        plies: plies.unwrap_or(usize::MAX),
        current: PartialGame::default(),
        finished: VecDeque::new(),
    };
    Reader { lines: Some(text.split('\n')), lexer: Lexer::default(), games }
}

/// An iterator over the games of a text. Ends after an error.
struct Reader<'a> {
    /// The unread lines; `None` after the last.
    lines: Option<std::str::Split<'a, char>>,
    lexer: Lexer,
    games: Games<'a>,
}

impl Iterator for Reader<'_> {
    type Item = Result<Start, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.games.finished.is_empty() {
            let line = self.lines.as_mut()?.next();
            let read = match line {
                Some(line) => self.lexer.piece(line.as_bytes(), &mut self.games),
                None => self.lexer.finish(&mut self.games),
            };
            self.lexer.end_line();
            if line.is_none() || read.is_err() {
                self.lines = None;
                self.games.finish();
            }
            if let Err(error) = read {
                self.games.finished.clear();
                return Some(Err(error));
            }
        }
        self.games.finished.pop_front().map(Ok)
    }
}

/// The games of a text, collected from its tags and words.
struct Games<'a> {
    parameters: &'a Parameters,
    /// The number of plies to read of each game.
    plies: usize,
    current: PartialGame,
    finished: VecDeque<Start>,
}

/// A partly read game.
#[derive(Default)]
struct PartialGame {
    start: Start,
    /// The position after the moves so far; `None` before the first move of the game's first position.
    position: Option<Chess>,
    plies: usize,
    /// The names of the tags.
    tags: Vec<Vec<u8>>,
    /// Whether a move or a result was read: then a tag begins the next game.
    has_words: bool,
}

impl Visitor for Games<'_> {
    type Error = ReadError;

    fn tag(&mut self, line: u64, name: &[u8], value: &[u8]) -> Result<(), ReadError> {
        if self.current.has_words || self.current.tags.iter().any(|known| known == name) {
            self.finish();
        }
        self.begin(line);
        self.current.tags.push(name.to_vec());
        let mut text = Vec::new();
        tags::unescape(value, &mut text);
        let text = String::from_utf8_lossy(&text);
        match name {
            b"FEN" => {
                let position = epd::position(self.parameters, &text).map_err(|reason| error(line, reason))?;
                self.current.start.position = Some(position.position());
                self.current.position = Some(position);
            }
            b"Variant" if !is_standard(&text) => {
                let reason = format!("the variant `{text}` has other rules; remove its games from the file");
                return Err(error(line, reason));
            }
            _ => {}
        }
        Ok(())
    }

    fn word(&mut self, line: u64, word: &[u8], in_variation: bool) -> Result<(), ReadError> {
        self.begin(line);
        if in_variation {
            return Ok(());
        }
        self.current.has_words = true;
        match word {
            b"1-0" | b"0-1" | b"1/2-1/2" | b"1/2" | b"*" => {
                self.finish();
                Ok(())
            }
            _ => self.play(line, &String::from_utf8_lossy(word)),
        }
    }

    fn flaw(&mut self, line: u64, flaw: Flaw<'_>) -> Result<(), ReadError> {
        Err(error(
            line,
            match flaw {
                Flaw::UnclosedTag { .. } => "the tag is not closed; write it as [Name \"value\"] in one line",
                Flaw::UnclosedComment => "the comment is not closed; add a `}`",
                Flaw::UnopenedBracket => "a bracket is closed that was not opened; remove it",
            },
        ))
    }
}

impl Games<'_> {
    /// Notes the first line of a game.
    fn begin(&mut self, line: u64) {
        if self.current.start.line == 0 {
            self.current.start.line = line as usize;
        }
    }

    /// Ends the current game, if there is one.
    fn finish(&mut self) {
        let game = std::mem::take(&mut self.current);
        if game.start.line > 0 {
            self.finished.push_back(game.start);
        }
    }

    /// Plays the move of a word, if it has one within the wanted plies.
    fn play(&mut self, line: u64, word: &str) -> Result<(), ReadError> {
        let game = &mut self.current;
        let Some(mv) = move_of(word).filter(|_| game.plies < self.plies) else { return Ok(()) };
        let position = match &mut game.position {
            Some(position) => position,
            None => {
                let initial = Chess::initial(self.parameters);
                game.position.insert(initial.map_err(|reason| error(line, reason.to_string()))?)
            }
        };
        let Some(mv) = position.parse_move(mv) else {
            return Err(error(line, MoveError::new(position, game.plies + 1, mv).to_string()));
        };
        if game.plies > 0 {
            game.start.moves.push(' ');
        }
        position.write_move(mv, &mut game.start.moves);
        position.play(mv);
        game.plies += 1;
        Ok(())
    }
}

fn error(line: u64, reason: impl Into<String>) -> ReadError {
    ReadError { line: line as usize, reason: reason.into() }
}

fn is_standard(variant: &str) -> bool {
    ["standard", "chess", "normal", "from position"].iter().any(|known| variant.eq_ignore_ascii_case(known))
}

/// Returns the move in a word, without its number and annotation marks; `None` for numbers and annotations.
fn move_of(word: &str) -> Option<&str> {
    let unnumbered = word.trim_start_matches(|c: char| c.is_ascii_digit());
    let unnumbered = if unnumbered.is_empty() || unnumbered.starts_with('.') {
        unnumbered.trim_start_matches('.')
    } else {
        word
    };
    let mv = unnumbered.trim_end_matches(['+', '#', '!', '?']);
    (!mv.is_empty() && !mv.starts_with('$') && mv != "e.p.").then_some(mv)
}
