//! Openings: none, random plies, or the lines of a file.
//!
//! The extension of a file determines its format: `.epd`, `.pgn` and `.bin` are the formats of chess programs, everything
//! else is lines of moves.

use agon_games::exchange::{ReadError, Start, epd, pgn, polyglot};
use agon_games::random::{below, mix, seeded};
use agon_games::{GameSpec, Setup, chess::Chess, choices};

use crate::bout::Opening;

/// Separates the order of openings from other uses of the seed.
const ORDER: u64 = 0x006f_7264_6572;

/// The most openings of a file.
pub const LARGEST_BOOK: usize = 1_000_000;

/// The openings of a run.
#[derive(Clone, PartialEq, Debug)]
pub enum Openings {
    /// Every game begins in the game's first position.
    None,
    /// Random plies, drawn for each opening.
    Random {
        /// The number of plies.
        plies: u32,
    },
    /// The openings of a file, in order.
    Lines(Vec<Opening>),
}

/// The order of the openings of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    /// As in the file.
    Sequential,
    /// As drawn by the seed of the run.
    Random,
}

choices!(Order { Sequential = "sequential", Random = "random" });

impl Order {
    /// Orders openings.
    pub(super) fn apply(self, lines: &mut [Opening], seed: u64) {
        if self == Order::Random {
            let mut random = seeded(mix(seed, ORDER));
            // Fisher and Yates.
            for last in (1..lines.len()).rev() {
                lines.swap(last, below(&mut random, last + 1));
            }
        }
    }
}

/// The format of a file of openings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// One opening per line: moves, after the start position in brackets if there is one.
    Lines,
    /// One position of chess per line.
    Epd,
    /// Games of chess.
    Pgn,
    /// A Polyglot book, which has moves of positions.
    Polyglot,
}

impl Form {
    /// Returns the format of a file with this name.
    pub(super) fn of(name: &str) -> Form {
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
        match ending.to_ascii_lowercase().as_str() {
            "epd" => Form::Epd,
            "pgn" => Form::Pgn,
            "bin" => Form::Polyglot,
            _ => Form::Lines,
        }
    }

    /// Returns the name of a format that is only for chess.
    pub(super) fn of_chess(self) -> Option<&'static str> {
        match self {
            Form::Lines => None,
            Form::Epd => Some("EPD"),
            Form::Pgn => Some("PGN"),
            Form::Polyglot => Some("Polyglot books"),
        }
    }
}

/// Returns whether the formats of chess programs are for this game.
pub(super) fn is_chess(game: &GameSpec) -> bool {
    game.name() == Chess::NAME
}

/// Reads a file of openings, with only the first `plies` of games in PGN and of lines in a Polyglot book. Precondition: the
/// format is for this game.
pub(super) fn read(
    form: Form,
    game: &GameSpec,
    text: &str,
    plies: Option<usize>,
) -> Result<Vec<Start>, ReadError> {
    let parameters = game.parameters();
    match form {
        Form::Lines => gather(lines(text), "there is no line in it; write one opening a line, as moves"),
        Form::Epd => gather(
            epd::starts(parameters, text),
            "there is no position in it; write one a line, as in `rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -`",
        ),
        Form::Pgn => {
            gather(pgn::starts(parameters, text, plies), "there is no game in it; give a file with games")
        }
        Form::Polyglot => {
            let starts = polyglot::starts(parameters, text, plies.unwrap_or(usize::MAX))?;
            gather(starts.into_iter().map(Ok), "there is no line in it; give another book")
        }
    }
}

/// Collects the openings, if there is at least one and at most [`LARGEST_BOOK`].
fn gather(
    found: impl Iterator<Item = Result<Start, ReadError>>,
    nothing: &str,
) -> Result<Vec<Start>, ReadError> {
    let mut starts = Vec::new();
    for start in found {
        let start = start?;
        if starts.len() == LARGEST_BOOK {
            let reason = format!("more than {LARGEST_BOOK} openings are too many; leave some out");
            return Err(ReadError { line: start.line, reason });
        }
        starts.push(start);
    }
    if starts.is_empty() {
        return Err(ReadError { line: 1, reason: nothing.to_string() });
    }
    Ok(starts)
}

/// Reads lines of moves. Skips empty lines and those that start with `#`.
fn lines(text: &str) -> impl Iterator<Item = Result<Start, ReadError>> {
    numbered(text).map(|(line, content)| start(line, content))
}

/// Returns the lines with their numbers, without empty ones and comments.
fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

/// Reads moves, after the start position in brackets if there is one.
fn start(line: usize, content: &str) -> Result<Start, ReadError> {
    let (position, moves) = match content.strip_prefix('[') {
        None => (None, content),
        Some(rest) => {
            let (position, moves) = rest.split_once(']').ok_or_else(|| ReadError {
                line,
                reason: "a position in `[` needs a `]` after it".to_string(),
            })?;
            (Some(position.trim().to_string()), moves.trim())
        }
    };
    Ok(Start { line, position, moves: moves.to_string() })
}

/// A recorded game.
pub(super) struct RecordedGame<'t> {
    /// The names of the players, by seat.
    pub players: Vec<&'t str>,
    /// The first position and the moves.
    pub start: Start,
}

/// Reads games as `agon games --export text` writes them: a game per line, its parts separated by tabs.
pub(super) fn games(text: &str) -> impl Iterator<Item = Result<RecordedGame<'_>, ReadError>> {
    numbered(text).map(|(line, content)| {
        let parts: Vec<&str> = content.split('\t').collect();
        let &[_, players, _, _, _, moves] = &parts[..] else {
            let reason = "a game has six parts separated by tabs, as `agon games --export text` writes them";
            return Err(ReadError { line, reason: reason.to_string() });
        };
        Ok(RecordedGame { players: players.split(' ').collect(), start: start(line, moves)? })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_lines_with_and_without_positions() {
        let read = |text: &str| gather(lines(text), "nothing");
        let starts = read("# two\n\nd3 c5\n [4k3/8/8/8/8/8/8/4K2R w K - 0 1] e1g1 \n[x]\n").unwrap();
        let start = |line: usize, position: Option<&str>, moves: &str| Start {
            line,
            position: position.map(str::to_string),
            moves: moves.to_string(),
        };
        let expected = [
            start(3, None, "d3 c5"),
            start(4, Some("4k3/8/8/8/8/8/8/4K2R w K - 0 1"), "e1g1"),
            start(5, Some("x"), ""),
        ];
        assert_eq!(starts, expected);
        assert_eq!(read("d3\n[x d4").unwrap_err().line, 2);
        assert_eq!(read("# nothing\n").unwrap_err().line, 1);
    }

    #[test]
    fn extension_determines_the_format() {
        assert_eq!(
            ["a.epd", "a.EPD", "b.c.pgn", "x.txt", "pgn", ".pgn", "x.bin"].map(Form::of),
            [Form::Epd, Form::Epd, Form::Pgn, Form::Lines, Form::Lines, Form::Pgn, Form::Polyglot]
        );
    }
}
