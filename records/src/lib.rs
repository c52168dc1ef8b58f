//! The dataset: rows of games, moves and probes, their Parquet files, and their digests.
//!
//! [`rows`] and [`columns`] hold the records of the arena, [`schema`] names the columns, [`mod@write`] and [`read`] convert
//! to and from Parquet, and [`groups`] reads a few columns of many rows. [`seal`] and [`guard`] detect damaged files.
//! [`digest`] identifies the content of a bout, and [`check`] compares it with its request. Locations and names of files
//! are in `agon-storage`.

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
pub use groups::{Batch, DictionaryColumn, Groups, ListSlices};
pub use guard::{PartError, catch_panics};
pub use read::{
    ReadError, ResultBatch, Results, RowRange, Rows, read_batches, read_games, read_moves, read_probes,
    stream_games, stream_moves, stream_results,
};
pub use rows::{BoutRows, GameHead, GameRow, LimitKind, MoveRow, ProbeRow, RowError, SearchRow};
pub use schema::{SCHEMA_VERSION, Table};
pub use seal::sealed;
pub use source::Source;
pub use write::{WriteError, write_games, write_moves, write_moves_in_groups, write_plies, write_probes};
