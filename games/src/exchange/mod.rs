//! Formats of other programs: PGN, EPD and Polyglot books for chess, PDN for checkers, SGF for go, and lines of text for every
//! game.
//!
//! A [`Writer`] writes a [`ScoreSheet`], a finished game, and plays every move so that no illegal game is written. [`pgn`], [`epd`]
//! and [`polyglot`] read first positions and openings. Deliberately not here: files, and readers for PDN and SGF.

mod datetime;
pub mod epd;
mod movetext;
mod pdn;
pub mod pgn;
pub mod pgn_lexer;
pub mod polyglot;
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

pub use datetime::UtcDateTime;

/// A format for finished games.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Portable Game Notation: chess.
    Pgn,
    /// Portable Draughts Notation: checkers.
    Pdn,
    /// Smart Game Format: go.
    Sgf,
    /// Agon's own format with a line per game: every game.
    Text,
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 4] = [Format::Pgn, Format::Pdn, Format::Sgf, Format::Text];

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::Pgn => "pgn",
            Format::Pdn => "pdn",
            Format::Sgf => "sgf",
            Format::Text => "text",
        }
    }

    /// Returns the only game with this format, or `None` if every game has it.
    fn game(self) -> Option<&'static str> {
        match self {
            Format::Pgn => Some(Chess::NAME),
            Format::Pdn => Some(Checkers::NAME),
            Format::Sgf => Some(Go::NAME),
            Format::Text => None,
        }
    }

    /// Returns the formats of a game, by its name.
    pub fn of(game: &str) -> impl Iterator<Item = Format> {
        Format::ALL.into_iter().filter(move |format| format.game().is_none_or(|only| only == game))
    }
}

/// A finished game.
#[derive(Clone, Debug)]
pub struct ScoreSheet<'a> {
    /// The event that the game belongs to.
    pub event: &'a str,
    /// The number of the game in the event.
    pub round: &'a str,
    /// The time of the start.
    pub started: UtcDateTime,
    /// The players, by seat.
    pub seats: Vec<GamePlayer<'a>>,
    /// The start position, if it is not the game's first position.
    pub position: Option<&'a str>,
    /// The plies.
    pub plies: Vec<Ply<'a>>,
    /// The reason for the end.
    pub ending: &'a str,
    /// Whether a player lost on time.
    pub forfeit: bool,
}

/// A player of a [`ScoreSheet`].
#[derive(Clone, Debug)]
pub struct GamePlayer<'a> {
    /// The name.
    pub player: &'a str,
    /// The limit of a move, as on the command line: `nodes=2000`.
    pub limit: &'a str,
    /// The value of PGN's tag TimeControl; `-` without a time limit.
    pub time_control: &'a str,
    /// The payoff of the seat.
    pub payoff: i32,
}

/// A ply of a [`ScoreSheet`].
#[derive(Clone, Copy, Debug)]
pub struct Ply<'a> {
    /// The text of the move.
    pub mv: &'a str,
    /// The summary of the search; `None` in the opening and for outcomes of chance.
    pub search: Option<SearchSummary>,
}

/// The summary of the search for a move.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SearchSummary {
    /// The value, from the mover's view.
    pub value: MoveValue,
    /// The last completed depth.
    pub depth: u16,
    /// The number of visited positions.
    pub nodes: u64,
    /// The number of simulations; 0 unless the search samples.
    pub simulations: u64,
    /// The time taken.
    pub time: Duration,
}

/// The value of a move.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum MoveValue {
    /// A value in units of the evaluation, or the mean payoff of simulations.
    Number(f64),
    /// A proven win, with its distance in plies.
    Win(u32),
    /// A proven loss, with its distance in plies.
    Loss(u32),
}

impl std::fmt::Display for MoveValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            // A value that rounds to zero has no sign.
            MoveValue::Number(number) if number.abs() < 0.005 => f.write_str("0.00"),
            MoveValue::Number(number) => write!(f, "{number:+.2}"),
            MoveValue::Win(plies) => write!(f, "+M{plies}"),
            MoveValue::Loss(plies) => write!(f, "-M{plies}"),
        }
    }
}

/// The reason why a game cannot be written.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The game does not have the format.
    #[error("{game} is not written as {}; it has: {}", .format.name(), names(Format::of(.game)))]
    WrongFormat {
        /// The game.
        game: &'static str,
        /// The requested format.
        format: Format,
    },
    /// The first position is not valid.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A move is not legal.
    #[error(transparent)]
    Move(#[from] MoveError),
}

/// Returns the names of formats, separated by commas.
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
    /// Creates a writer, if the game has the format.
    pub fn new(format: Format, game: &GameSpec) -> Result<Writer, WriteError> {
        if format.game().is_some_and(|only| only != game.name()) {
            return Err(WriteError::WrongFormat { game: game.name(), format });
        }
        Ok(Writer { format, game: game.clone() })
    }

    /// Appends a game to `out`. After an error the content of `out` is unspecified.
    pub fn write(&self, sheet: &ScoreSheet<'_>, out: &mut String) -> Result<(), WriteError> {
        let parameters = self.game.parameters();
        match self.format {
            Format::Pgn => pgn::write(parameters, sheet, out),
            Format::Pdn => pdn::write(parameters, sheet, out),
            Format::Sgf => sgf::write(parameters, sheet, out),
            Format::Text => write_line(&self.game, sheet, out),
        }
    }
}

/// Returns the first position of a game.
fn first<G: Setup>(parameters: &Parameters, sheet: &ScoreSheet<'_>) -> Result<G, SetupError> {
    match sheet.position {
        Some(text) => G::from_position(parameters, text),
        None => G::initial(parameters),
    }
}

/// Returns the legal move of a ply; `index` counts plies from 0.
fn legal<G: Complete>(position: &G, index: usize, ply: &Ply<'_>) -> Result<G::Move, MoveError> {
    position.parse_move(ply.mv).ok_or_else(|| MoveError::new(position, index + 1, ply.mv))
}

/// Writes a game in one line with its parts separated by tabs: round, players, payoffs, ending, number of plies, and the
/// moves after the position in brackets, as in an openings file.
fn write_line(game: &GameSpec, sheet: &ScoreSheet<'_>, out: &mut String) -> Result<(), WriteError> {
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

/// An opening: a position and moves from it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Start {
    /// The line of the text where it begins, counted from 1.
    pub line: usize,
    /// The position, if it is not the game's first position.
    pub position: Option<String>,
    /// The moves from the position, separated by spaces.
    pub moves: String,
}

/// The error for a text that cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct ReadError {
    /// The line, counted from 1.
    pub line: usize,
    /// A sentence with the remedy.
    pub reason: String,
}
