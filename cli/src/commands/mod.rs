//! The commands, one per file.

pub mod bench;
pub mod cluster;
pub mod compare;
pub mod counts;
pub mod crosstable;
pub mod duel;
pub mod elo;
pub mod games;
pub mod list_algorithms;
pub mod list_games;
pub mod manual;
pub mod perft;
pub mod play;
pub mod player;
pub mod position;
pub mod pruning;
pub mod ratings;
pub mod replay;
pub mod report;
pub mod runs;
pub mod search;
pub mod show;
pub mod sprt;
pub mod sql;
pub mod tune;
pub mod verify;
