//! The rules of the games: one trait, and one file per game (with a folder of the same name for large games).
//!
//! [`game`] has the central trait and its capabilities, [`setup`] creates positions from text, [`registry`] lists all
//! games, [`any`] has positions behind a trait object, and [`exchange`] reads and writes the formats of other programs.
//! Each game's module header states its rules, notation and representation.
//!
//! Deliberately not here: search, configuration files, input and output, clocks, unseeded randomness.

pub mod any;
pub mod exchange;
pub mod game;
pub mod line;
pub mod perft;
pub mod printable;
pub mod random;
pub mod registry;
pub mod schema;
pub mod setup;
pub mod text;

pub mod backgammon;
pub mod checkers;
pub mod chess;
pub mod chinese_checkers;
pub mod connect_four;
pub mod focus;
pub mod go;
pub mod grundy;
mod heaps;
pub mod kalah;
pub mod nim;
pub mod othello;
mod outflank;
pub mod pig;
pub mod rolit;
pub mod tic_tac_toe;
pub mod virus;

pub use any::AnyGame;
pub use game::{
    Chance, Deterministic, Duel, Feature, FeatureSet, Features, Game, Keyed, Noisy, Notation, Ordered,
    Payoffs, Reseat, Seat, Turn,
};
pub use registry::{
    ChanceGame, Complete, DuelGame, GAMES, GameInfo, GameSpec, ManyGame, UniformVisitor, Visitor,
};
pub use setup::{Domain, Parameter, Parameters, Setup, SetupError, Turns};
