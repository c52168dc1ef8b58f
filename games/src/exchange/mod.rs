//! Games and positions as other programs write them: PGN and EPD for chess, PDN for checkers, SGF for go, and lines of
//! text for every game.
//!
//! A [`Sheet`] is a finished game in the words of its rules; a [`Writer`] makes text of it and plays every move on the way,
//! so that nothing illegal is written. [`pgn`] and [`epd`] read places to start from. Deliberately not here: files, where
//! games come from, and readers of PDN and SGF.

pub mod epd;
mod moment;
mod movetext;
mod pdn;
pub mod pgn;
mod sgf;
pub mod tags;

use std::fmt::Write as _;
use std::time::Duration;

use crate::checkers::Checkers;
use crate::chess::Chess;
use crate::go::Go;
use crate::line::MoveError;
use crate::registry::{Complete, GameSpec};
use crate::setup::{Parameters, Setup, SetupError};

pub use moment::Moment;

/// A format that games are written in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Portable Game Notation: chess.
    Pgn,
    /// Portable Draughts Notation: checkers.
    Pdn,
    /// Smart Game Format: go.
    Sgf,
    /// A line a game, in Agon's own words: every game.
    Text,
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 4] = [Format::Pgn, Format::Pdn, Format::Sgf, Format::Text];

    /// The name in calls.
    pub fn name(self) -> &'static str {
        match self {
            Format::Pgn => "pgn",
            Format::Pdn => "pdn",
            Format::Sgf => "sgf",
            Format::Text => "text",
        }
    }

    /// The only game that is written so; none where every game is.
    fn game(self) -> Option<&'static str> {
        match self {
            Format::Pgn => Some(Chess::NAME),
            Format::Pdn => Some(Checkers::NAME),
            Format::Sgf => Some(Go::NAME),
            Format::Text => None,
        }
    }

    /// The formats of a game, by its name.
    pub fn of(game: &str) -> impl Iterator<Item = Format> {
        Format::ALL.into_iter().filter(move |format| format.game().is_none_or(|only| only == game))
    }
}

/// A finished game.
#[derive(Clone, Debug)]
pub struct Sheet<'a> {
    /// What it is part of.
    pub event: &'a str,
    /// Which game of the event it is.
    pub round: &'a str,
    /// When it was started.
    pub started: Moment,
    /// Who played, by seat.
    pub seats: Vec<SeatSheet<'a>>,
    /// Where it started; none for the game's first position.
    pub position: Option<&'a str>,
    /// The plies that were played.
    pub plies: Vec<Ply<'a>>,
    /// How it ended, in words.
    pub ending: &'a str,
    /// Whether it ended because a clock ran out.
    pub forfeit: bool,
}

/// A player of a [`Sheet`].
#[derive(Clone, Debug)]
pub struct SeatSheet<'a> {
    /// The name.
    pub player: &'a str,
    /// What limited a move, in the words of a call: `nodes=2000`.
    pub limit: &'a str,
    /// The same as PGN's tag TimeControl has it; `-` where time was not limited.
    pub time_control: &'a str,
    /// What the seat got.
    pub payoff: i32,
}

/// A ply of a [`Sheet`].
#[derive(Clone, Copy, Debug)]
pub struct Ply<'a> {
    /// The move in the words of the game.
    pub mv: &'a str,
    /// What was thought; none in the opening and where chance moved.
    pub thought: Option<Thought>,
}

/// What a search says of the move that it chose.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Thought {
    /// The value, from the mover's view.
    pub value: Worth,
    /// The last completed depth.
    pub depth: u16,
    /// Positions entered.
    pub nodes: u64,
    /// Simulations, of a search that samples.
    pub simulations: u64,
    /// The time taken.
    pub time: Duration,
}

/// A value as it is written.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Worth {
    /// In the units of the game's evaluation; of a search that samples, the mean payoff.
    Number(f64),
    /// A proven win in so many plies.
    Win(u32),
    /// A proven loss in so many plies.
    Loss(u32),
}

impl std::fmt::Display for Worth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            // What is rounded to zero has no sign.
            Worth::Number(number) if number.abs() < 0.005 => f.write_str("0.00"),
            Worth::Number(number) => write!(f, "{number:+.2}"),
            Worth::Win(plies) => write!(f, "+M{plies}"),
            Worth::Loss(plies) => write!(f, "-M{plies}"),
        }
    }
}

/// Why a game cannot be written.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The format is another game's.
    #[error("{game} is not written as {}; it has: {}", .format.name(), names(Format::of(.game)))]
    WrongFormat {
        /// The game.
        game: &'static str,
        /// What was asked for.
        format: Format,
    },
    /// The first position does not exist.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A move is not legal.
    #[error(transparent)]
    Move(#[from] MoveError),
}

/// The names of formats, with commas between.
pub fn names(formats: impl Iterator<Item = Format>) -> String {
    formats.map(Format::name).collect::<Vec<_>>().join(", ")
}

/// Writes games of one kind in one format.
#[derive(Clone, Debug)]
pub struct Writer {
    format: Format,
    game: GameSpec,
}

impl Writer {
    /// A writer for a game, if it has the format.
    pub fn new(format: Format, game: &GameSpec) -> Result<Writer, WriteError> {
        if format.game().is_some_and(|only| only != game.name()) {
            return Err(WriteError::WrongFormat { game: game.name(), format });
        }
        Ok(Writer { format, game: game.clone() })
    }

    /// Appends a game. Where there is an error, nothing that was appended is of use.
    pub fn write(&self, sheet: &Sheet<'_>, out: &mut String) -> Result<(), WriteError> {
        let parameters = self.game.parameters();
        match self.format {
            Format::Pgn => pgn::write(parameters, sheet, out),
            Format::Pdn => pdn::write(parameters, sheet, out),
            Format::Sgf => sgf::write(parameters, sheet, out),
            Format::Text => write_line(&self.game, sheet, out),
        }
    }
}

/// The first position of a sheet.
fn first<G: Setup>(parameters: &Parameters, sheet: &Sheet<'_>) -> Result<G, SetupError> {
    match sheet.position {
        Some(text) => G::from_position(parameters, text),
        None => G::initial(parameters),
    }
}

/// The legal move that a ply of a sheet names; `index` counts plies from 0.
fn legal<G: Complete>(position: &G, index: usize, ply: &Ply<'_>) -> Result<G::Move, MoveError> {
    position.parse_move(ply.mv).ok_or_else(|| MoveError::new(position, index + 1, ply.mv))
}

/// A game in one line, its parts with tabs between: round, players, payoffs, ending, the number of plies, and the moves
/// after the position in brackets, as a file of openings has them.
fn write_line(game: &GameSpec, sheet: &Sheet<'_>, out: &mut String) -> Result<(), WriteError> {
    let mut position = game.start(sheet.position)?;
    let players: Vec<&str> = sheet.seats.iter().map(|seat| seat.player).collect();
    let payoffs: Vec<String> = sheet.seats.iter().map(|seat| seat.payoff.to_string()).collect();
    write!(
        out,
        "{}\t{}\t{}\t{}\t{}\t",
        sheet.round,
        players.join(" "),
        payoffs.join(" "),
        sheet.ending,
        sheet.plies.len()
    )
    .expect("a String takes all text");
    let mut space = "";
    if let Some(text) = sheet.position {
        write!(out, "[{text}]").expect("a String takes all text");
        space = " ";
    }
    for (index, ply) in sheet.plies.iter().enumerate() {
        let text = position.play(index + 1, ply.mv)?;
        out.push_str(std::mem::replace(&mut space, " "));
        out.push_str(&text);
    }
    out.push('\n');
    Ok(())
}

/// A place to start from.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Start {
    /// The line of the text that it begins in, counted from 1.
    pub line: usize,
    /// The position; none for the game's first.
    pub position: Option<String>,
    /// Moves from there, separated by spaces.
    pub moves: String,
}

/// What is wrong with a text, and where.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct ReadError {
    /// The line, counted from 1.
    pub line: usize,
    /// A sentence with the remedy.
    pub reason: String,
}
