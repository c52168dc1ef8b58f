//! Read-only analysis of the datasets that a coordinator writes: queries, statistics, verification and reports.
//!
//! [`dataset`] finds runs and reads their parts; everything else builds on it. [`mod@scan`] folds columns of a whole run
//! over several threads. Each thread holds at most one part in memory. Nothing here writes to a dataset.

pub mod board_view;
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
pub use tune::{TrialsError, TuneError, TuneResult, trials_of_tournament};
pub use verify::{Problem, Verified, verify, verify_all};
