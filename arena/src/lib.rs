//! From configuration text to games played: only here games meet algorithms.
//!
//! [`algorithms`] lists the algorithms and their options, [`config`] reads a player, [`engine`] one that is a program of its
//! own, [`defaults`] chooses one, [`spec`] reads an experiment, [`roster`] decides who plays whom, [`arena`] plays games, and
//! [`referee`] checks games that others played. Files, networks and threads are elsewhere, and so is the end of a run.

pub mod adjudication;
pub mod algorithms;
pub mod arena;
mod board;
pub mod bout;
mod competitor;
pub mod config;
pub mod defaults;
pub mod engine;
pub mod external;
pub mod limit;
mod player;
pub mod record;
pub mod referee;
pub mod roster;
mod section;
pub mod seeds;
pub mod signature;
pub mod spec;

pub use adjudication::Adjudication;
pub use agon_games::schema::ConfigError;
pub use algorithms::{ALGORITHMS, Algorithm, AlgorithmInfo, Family, LimitUnit};
pub use arena::{Arena, Decision, Environment, LineEnd, PlayError, RandomKey};
pub use board::TIME_FORFEIT;
pub use bout::{Bout, GameRequest, Opening};
pub use config::{PlayerConfig, SearchConfig};
pub use engine::EngineConfig;
pub use external::{
    ENGINE_ENDINGS, EngineError, EngineFactory, EngineFault, ExternalMove, ExternalPlayer, FaultKind, Request,
};
pub use limit::parse_limit;
pub use record::{GameRecord, IterationRecord, MoveRecord, SearchRecord};
pub use referee::{Claim, Fault, PlyClaim, SearchClaim};
pub use roster::{Roster, RosterError};
pub use seeds::SeedPath;
pub use signature::{KnownAnswers, known_answers};
pub use spec::{Spec, SpecError, SpecProblem, SpecSource};
