//! What a dataset says: reads the runs and parts that a coordinator wrote, and checks them.
//!
//! [`dataset`] finds and reads, [`games`] picks games out of it, [`results`] counts who won what, [`mod@verify`] checks by the
//! rules whether everything is there and nothing twice, [`mod@replay`] plays recorded games again. [`mod@scan`] folds columns
//! of a whole run by several threads, and [`pruning`] answers from it how searches prune. [`boards`] looks at the boards of a
//! game, [`tune`] follows a tune, [`mod@regression`] fits weights to games, and [`report`] makes one page of a run. `sql`,
//! behind the feature of that name, answers questions in SQL. Nothing is ever written here, and one part at a time is held
//! in memory by each thread.

pub mod boards;
pub mod dataset;
pub mod format;
pub mod games;
pub mod pruning;
pub mod regression;
pub mod replay;
pub mod report;
pub mod results;
pub mod scan;
#[cfg(feature = "sql")]
pub mod sql;
pub mod tune;
pub mod verify;

pub use dataset::{Dataset, DatasetError, Part, Run};
pub use games::{GameResult, Query, Recording};
pub use pruning::{Pruning, PruningError};
pub use replay::{Difference, Replay, ReplayError, Selection, replay};
pub use report::{Report, ReportError};
pub use tune::{TuneError, Tuned};
pub use verify::{Problem, Verified, verify, verify_all};
