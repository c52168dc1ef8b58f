//! What a dataset says: reads the runs and parts that a coordinator wrote, and checks them.
//!
//! [`dataset`] finds and reads, [`games`] picks games out of it, [`results`] counts who won what, [`mod@verify`] checks by the
//! rules whether everything is there and nothing twice, [`mod@replay`] plays recorded games again. [`mod@scan`] folds columns
//! of a whole run by several threads, and [`pruning`] answers from it how searches prune. [`boards`] looks at the boards of a
//! game, and [`report`] makes one page of a run. Nothing is ever written here, and one part at a time is held in memory by
//! each thread.

pub mod boards;
mod columns;
pub mod dataset;
pub mod figures;
pub mod games;
pub mod pruning;
pub mod replay;
pub mod report;
pub mod results;
pub mod scan;
mod shelf;
mod spans;
pub mod verify;
mod whole;

pub use dataset::{Dataset, DatasetError, Part, Run};
pub use games::{GameResult, Query, Recording};
pub use pruning::{Pruning, PruningError};
pub use replay::{Difference, Replay, ReplayError, Selection, replay};
pub use report::{Report, ReportError};
pub use verify::{Problem, Verified, verify, verify_all};
