//! The interface to players outside of this process.
//!
//! The arena asks for moves as text and is the referee; who starts processes and speaks protocols implements the traits. A
//! fault belongs to the player and ends the game; that an engine cannot be started at all belongs to the machine.

use std::sync::Arc;
use std::time::Duration;

use agon_games::GameSpec;
use agon_search::{Counters, Limit, SearchControl, Value};

use crate::board::TIME_FORFEIT;
use crate::engine::{EngineConfig, EngineOptions};

/// The ending of a game in which an engine ended, closed its output or did not follow its protocol.
pub const CRASH: &str = "crash";

/// The ending of a game in which an engine chose a move that is not legal.
pub const ILLEGAL_MOVE: &str = "illegal move";

/// The ending of a game in which an engine gave up.
pub const RESIGNED: &str = "resigned";

/// The endings by which an engine loses a game without a ply.
pub const ENGINE_ENDINGS: [&str; 4] = [TIME_FORFEIT, CRASH, ILLEGAL_MOVE, RESIGNED];

/// The kind of an engine's fault, or of its giving up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// No answer in time.
    NoAnswer,
    /// An answer after the time was up. The engine can play on.
    Late,
    /// The engine ended, closed its output or did not follow its protocol.
    Crash,
    /// The move is not legal.
    IllegalMove,
    /// The engine gave up. It can play on.
    Resigned,
}

impl FaultKind {
    /// Returns the ending of the game.
    pub fn ending(self) -> &'static str {
        match self {
            FaultKind::NoAnswer | FaultKind::Late => TIME_FORFEIT,
            FaultKind::Crash => CRASH,
            FaultKind::IllegalMove => ILLEGAL_MOVE,
            FaultKind::Resigned => RESIGNED,
        }
    }
}

/// A fault of an engine, with which it loses the game.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{detail}")]
pub struct EngineFault {
    /// The kind.
    pub kind: FaultKind,
    /// What happened, with the last lines of the engine.
    pub detail: String,
}

/// Why an engine gave no move.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EngineError {
    /// The engine's fault.
    #[error(transparent)]
    Fault(#[from] EngineFault),
    /// This machine cannot run the engine.
    #[error("{0}")]
    Unavailable(String),
    /// The caller interrupted the game.
    #[error("interrupted")]
    Interrupted,
}

/// Starts engines.
pub trait EngineFactory: Send + Sync {
    /// Starts an engine for a game and waits until it is ready. `control` interrupts it, now and later.
    fn start(
        &self,
        config: &EngineConfig,
        game: &GameSpec,
        control: &Arc<SearchControl>,
    ) -> Result<Box<dyn ExternalPlayer>, EngineError>;
}

/// The factory of programs that run no engines.
pub struct NoEngines;

impl EngineFactory for NoEngines {
    fn start(
        &self,
        config: &EngineConfig,
        _game: &GameSpec,
        _control: &Arc<SearchControl>,
    ) -> Result<Box<dyn ExternalPlayer>, EngineError> {
        Err(EngineError::Unavailable(format!("the engine `{}` cannot be started here", config.name())))
    }
}

/// A position, formatted on demand.
pub trait PositionText {
    /// Returns the legal moves.
    fn legal(&self) -> Vec<String>;

    /// Returns the board, in several lines.
    fn board(&self) -> String;

    /// Returns the position in one line.
    fn position(&self) -> String;
}

/// A move of the game so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlayedMove<'a> {
    /// The seat that moved; none for chance.
    pub seat: Option<usize>,
    /// The text of the move.
    pub mv: &'a str,
}

/// A question for a move.
pub struct Request<'a> {
    /// The start position; none for the game's first.
    pub start: Option<&'a str>,
    /// The moves since then.
    pub moves: &'a [PlayedMove<'a>],
    /// The seat to move.
    pub seat: usize,
    /// The limit of each seat; of a clock, the time that is left.
    pub limits: &'a [Limit],
    /// The position after the moves.
    pub position: &'a dyn PositionText,
}

impl Request<'_> {
    /// Returns the limit of the move.
    pub fn limit(&self) -> Limit {
        self.limits[self.seat]
    }
}

/// The answer of an engine. Everything but the move and the time is what the engine says.
#[derive(Clone, PartialEq, Debug)]
pub struct ExternalMove {
    /// The text of the move.
    pub mv: String,
    /// The counters.
    pub counters: Counters,
    /// The depth.
    pub depth: u32,
    /// The greatest depth.
    pub selective_depth: u32,
    /// The value for the seat that moves.
    pub value: Value,
    /// The principal variation.
    pub line: Vec<String>,
    /// The time that is limited: wall time, or the engine's processor time for a limit of that.
    pub time: Duration,
}

/// An engine that is running.
pub trait ExternalPlayer: Send {
    /// Replaces the options, between games.
    fn set_options(&mut self, options: &EngineOptions) -> Result<(), EngineError>;

    /// Prepares a game in which the engine first moves in this seat. Precondition: the game has ended that was prepared before.
    fn new_game(&mut self, start: Option<&str>, seat: usize) -> Result<(), EngineError>;

    /// Asks for a move. After an error of another kind than [`FaultKind::Late`] and [`FaultKind::Resigned`], the caller drops
    /// the player.
    fn choose(&mut self, request: &Request<'_>) -> Result<ExternalMove, EngineError>;

    /// Tells the end of a game.
    fn end_game(&mut self, payoffs: &[i32], ending: &str);

    /// Returns the processor time of its process since the start.
    fn cpu_time(&self) -> Duration;
}
