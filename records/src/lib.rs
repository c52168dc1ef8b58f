//! The dataset: one row a game, a move, a probe; how they become Parquet, and how two datasets are compared.
//!
//! [`rows`] are plain values made from what the arena recorded, [`digest`] says whether two bouts are the same.
//! Everything is a function from values to values. Deliberately not here: where files lie and what they are called, when
//! a part is written, and what the numbers mean for a player's strength.

pub mod digest;
pub mod rows;

pub use digest::content_digest;
pub use rows::{BoutRows, GameHead, GameRow, LimitKind, MoveRow, ProbeRow, RowError, SearchColumns};
