//! The dataset: one row a game, a move, a probe; how they become Parquet, and how two datasets are compared.
//!
//! [`rows`] are plain values made from what the arena recorded, [`columns`] the same on their way into the dataset,
//! [`schema`] names their columns, [`mod@write`] and [`read`] are the ways to bytes and back, [`seal`] shows whether bytes
//! are those that were written, [`source`] says where they come from, [`guard`] reads what may be damaged, [`groups`] is the
//! way of few columns and many rows, [`digest`] says whether two bouts are the same and [`check`] whether one is what was
//! asked for. Everything is a function from values to values. Deliberately not here: where files lie and what they are called, when a part is written, and what the numbers
//! mean for a player's strength.

mod arrays;
pub mod cells;
pub mod check;
pub mod columns;
pub mod digest;
pub mod groups;
pub mod guard;
pub mod read;
pub mod rows;
pub mod schema;
pub mod seal;
pub mod source;
pub mod write;

#[cfg(test)]
mod laws;
#[cfg(test)]
mod samples;

pub use cells::{Cell, Cells};
pub use check::{RowFault, check_bout, check_game, check_probe};
pub use columns::{BoutColumns, Plies, Searches};
pub use digest::content_digest;
pub use groups::{Batch, Groups, Lists, Names};
pub use guard::{PartError, attempt};
pub use read::{
    ReadError, ResultBatch, Results, Rows, Wanted, read_batches, read_games, read_moves, read_probes,
    stream_games, stream_moves, stream_results,
};
pub use rows::{BoutRows, GameHead, GameRow, LimitKind, MoveRow, ProbeRow, RowError, SearchRow};
pub use schema::{SCHEMA_VERSION, Table};
pub use seal::sealed;
pub use source::Source;
pub use write::{WriteError, write_games, write_moves, write_moves_in_groups, write_plies, write_probes};
