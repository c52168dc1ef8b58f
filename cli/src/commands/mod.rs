//! One file a command.

pub mod bench;
pub mod list_games;
pub mod manual;
pub mod perft;
pub mod position;
pub mod show;
