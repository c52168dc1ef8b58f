//! One file a command.

pub mod bench;
pub mod cluster;
pub mod list_algorithms;
pub mod list_games;
pub mod local_match;
pub mod manual;
pub mod perft;
pub mod play;
pub mod player;
pub mod position;
pub mod replay;
pub mod search;
pub mod show;
pub mod verify;
