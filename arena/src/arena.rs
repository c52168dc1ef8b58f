//! Plays games and bouts and runs single searches.
//!
//! The interface is independent of the game's type. With a node or depth limit, results depend only on the request: tables,
//! trees and lists start empty in each game, and seeds are derived from the position in the run.

use std::sync::Arc;

use agon_games::line::MoveError;
use agon_games::schema::ConfigError;
use agon_games::{GameSpec, SetupError};
use agon_search::clock::{Clock, ThreadClock, WallClock};
use agon_search::{Budget, Limit, SearchControl};

use crate::board::{Board, BoardBuilder};
use crate::bout::{GameRequest, Opening};
use crate::config::PlayerConfig;
use crate::external::{EngineFactory, NoEngines};
use crate::record::{GameRecord, IterationRecord, MoveRecord, SearchRecord};
use crate::referee::{Claim, Fault, SearchClaim};
use crate::seeds::SeedPath;

/// Why a game cannot be played or a position not searched.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlayError {
    /// The start position is invalid.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A line contains an illegal move.
    #[error(transparent)]
    Move(#[from] MoveError),
    /// No player decides in the position.
    #[error("there is nothing to search: {turn}; {remedy}")]
    NothingToSearch {
        /// The turn, for the message.
        turn: &'static str,
        /// The remedy, for the message.
        remedy: &'static str,
    },
    /// A player does not support the limit.
    #[error(transparent)]
    Limit(#[from] ConfigError),
    /// No random opening has the requested length.
    #[error("no random opening of {plies} plies was found in a thousand games; ask for fewer")]
    NoOpening {
        /// The requested length.
        plies: u32,
    },
    /// No random game has the requested number of turns.
    #[error("no random game in a thousand has {} turns of the first seat; ask for fewer", .turn + 1)]
    NoTurn {
        /// The requested turn, from 0.
        turn: u32,
    },
    /// This machine cannot run an engine, or the engine cannot answer.
    #[error("{reason}")]
    Engine {
        /// The reason.
        reason: String,
    },
    /// The caller interrupted the game.
    #[error("interrupted")]
    Interrupted,
}

/// The clocks and the interrupt of searches, and the engines.
#[derive(Clone)]
pub struct Environment {
    /// The wall clock.
    pub wall: Arc<dyn Clock>,
    /// The processor time of the thread that plays.
    pub cpu: Arc<dyn Clock>,
    /// Interrupts searches and games, and shows that one is running.
    pub control: Arc<SearchControl>,
    /// Starts engines.
    pub engines: Arc<dyn EngineFactory>,
}

impl Environment {
    /// Creates an environment with the clocks of this machine and without engines.
    pub fn system() -> Environment {
        Environment {
            wall: Arc::new(WallClock::start()),
            cpu: Arc::new(ThreadClock),
            control: Arc::default(),
            engines: Arc::new(NoEngines),
        }
    }

    pub(crate) fn budget(&self, limit: Limit) -> Budget {
        let clock = if matches!(limit, Limit::Cpu(_)) { &self.cpu } else { &self.wall };
        Budget::start(limit, Arc::clone(clock)).controlled_by(Arc::clone(&self.control))
    }

    pub(crate) fn interrupted(&self) -> bool {
        self.control.is_interrupted()
    }
}

/// Where a random line ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LineEnd {
    /// After exactly `plies` plies.
    Position {
        /// The number of plies.
        plies: u32,
    },
    /// At the first decision of a player after at least `plies` plies.
    Decision {
        /// The least number of plies.
        plies: u32,
    },
    /// At a turn of the first seat.
    Turn {
        /// The number of the turn, from 0.
        turn: u32,
    },
}

impl LineEnd {
    fn not_found(self) -> PlayError {
        match self {
            LineEnd::Position { plies } | LineEnd::Decision { plies } => PlayError::NoOpening { plies },
            LineEnd::Turn { turn } => PlayError::NoTurn { turn },
        }
    }
}

/// The key of a position at the end of a random line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RandomKey {
    /// The key; transpositions have the same key.
    pub key: u64,
    /// The plies drawn to find it, including those of games that ended before.
    pub plies: u64,
}

/// The decision in a position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decision {
    /// The seat that decides.
    pub seat: usize,
    /// The number of legal moves.
    pub legal: u64,
}

/// A game with its players.
pub struct Arena {
    board: Box<dyn Board>,
    players: Vec<PlayerConfig>,
    /// The player and the line of the last call of [`Arena::search_next`].
    searched: Option<(usize, Opening)>,
}

impl Arena {
    /// Creates an arena for a game and its players.
    pub fn new(
        game: &GameSpec,
        players: &[PlayerConfig],
        environment: Environment,
    ) -> Result<Arena, SetupError> {
        let board = game.visit(BoardBuilder { game, players, environment })?;
        Ok(Arena { board, players: players.to_vec(), searched: None })
    }

    /// Replaces the configuration of a player.
    pub fn configure(&mut self, player: usize, config: PlayerConfig) {
        self.searched = None;
        self.board.configure(player, &config);
        self.players[player] = config;
    }

    /// Searches one position as a player. Calls `report` after each completed iteration.
    pub fn search(
        &mut self,
        player: usize,
        opening: &Opening,
        limit: Limit,
        seed: u64,
        report: &mut dyn FnMut(&IterationRecord),
    ) -> Result<SearchRecord, PlayError> {
        self.searched = None;
        self.search_next(player, opening, limit, seed, report)
    }

    /// Searches the next position of a game as a player, which keeps what it has learnt if `line` continues the line of the
    /// call before and [`Arena::new_game`] was not called since.
    pub fn search_next(
        &mut self,
        player: usize,
        line: &Opening,
        limit: Limit,
        seed: u64,
        report: &mut dyn FnMut(&IterationRecord),
    ) -> Result<SearchRecord, PlayError> {
        self.players[player].check_limit(limit)?;
        let before = self.searched.take().filter(|(searcher, _)| *searcher == player);
        self.board.follow_game(player, before.as_ref().map(|(_, before)| before), line)?;
        let record = self.board.search(player, line, limit, seed, report)?;
        self.searched = Some((player, line.clone()));
        Ok(record)
    }

    /// Ends the game of [`Arena::search_next`].
    pub fn new_game(&mut self) {
        self.searched = None;
    }

    /// Plays one game. Calls `watch` after each ply.
    pub fn play(
        &mut self,
        request: &GameRequest,
        watch: &mut dyn FnMut(&MoveRecord),
    ) -> Result<GameRecord, PlayError> {
        self.searched = None;
        for &player in &request.seats {
            self.players[player].check_limit(request.limits[player])?;
        }
        self.board.play(request, watch)
    }

    /// Draws an opening of `plies` random plies. Draws again, at most a thousand times, if the game ends within them.
    pub fn random_opening(&self, seed_path: SeedPath, plies: u32) -> Result<String, PlayError> {
        self.random_line(seed_path, LineEnd::Position { plies })
    }

    /// Draws an opening of at least `plies` random plies that ends where a player decides.
    pub fn random_decision(&self, seed_path: SeedPath, plies: u32) -> Result<String, PlayError> {
        self.random_line(seed_path, LineEnd::Decision { plies })
    }

    /// Draws a random line. Draws again, at most a thousand times, if the game ends before.
    pub fn random_line(&self, seed_path: SeedPath, end: LineEnd) -> Result<String, PlayError> {
        self.board.random_line(seed_path.opening_seed(), end).ok_or(end.not_found())
    }

    /// Returns the key of the position after [`Arena::random_line`], and the plies that were drawn to find it. Much faster
    /// than the line itself.
    pub fn random_key(&self, seed_path: SeedPath, end: LineEnd) -> Result<RandomKey, PlayError> {
        self.board.random_key(seed_path.opening_seed(), end).ok_or(end.not_found())
    }

    /// Returns the opening in the game's own notation, which records use. Rejects one after which the game is over.
    pub fn canonical(&self, opening: &Opening) -> Result<Opening, PlayError> {
        self.board.canonical(opening)
    }

    /// Returns the lines to the turns of some seats in a game, in the game's own notation; at most the first `most`. Does
    /// not read the moves after them.
    pub fn turns(&self, game: &Opening, seats: &[usize], most: usize) -> Result<Vec<Opening>, PlayError> {
        self.board.turns(game, seats, most)
    }

    /// Returns the key of the position after an opening; transpositions have the same key. Rejects one after which the game
    /// is over.
    pub fn decision_key(&self, opening: &Opening) -> Result<u64, PlayError> {
        self.board.decision_key(opening)
    }

    /// Returns the decision after an opening. Rejects a position where no player decides.
    pub fn decision(&self, opening: &Opening) -> Result<Decision, PlayError> {
        self.board.decision(opening)
    }

    /// Counts the lines of exactly `plies` plies after an opening.
    pub fn perft(&self, opening: &Opening, plies: u32) -> Result<u64, PlayError> {
        self.board.perft(opening, plies)
    }

    /// Checks that the move of a single search is legal after an opening, and its numbers within the limit.
    pub fn verify_answer(
        &self,
        opening: &Opening,
        mv: &str,
        limit: Limit,
        claim: &SearchClaim<'_>,
    ) -> Result<(), Fault> {
        self.board.verify_answer(opening, mv, limit, claim)
    }

    /// Checks a claimed game against its request and by the rules. Needs no players.
    pub fn verify(&self, request: &GameRequest, claim: &Claim<'_>) -> Result<(), Fault> {
        self.board.verify(request, claim)
    }

    /// Returns the number of seats.
    pub fn seats(&self) -> usize {
        self.board.seats()
    }

    /// Returns an upper bound on the plies of a game.
    pub fn ply_bound(&self) -> u32 {
        self.board.ply_bound()
    }
}
