//! What a dataset says: reads the runs and parts that a coordinator wrote, and checks them.
//!
//! [`dataset`] finds and reads, [`games`] picks games out of it, [`mod@verify`] checks by the rules whether everything is
//! there and nothing twice, [`mod@replay`] plays recorded games again. [`mod@scan`] folds columns of a whole run by several
//! threads, and [`pruning`] answers from it how searches prune. Nothing is ever written here, and one part at a time is
//! held in memory at most.

mod columns;
pub mod dataset;
pub mod games;
mod guard;
pub mod pruning;
pub mod replay;
pub mod scan;
mod spans;
pub mod verify;

pub use dataset::{Dataset, DatasetError, Part, Run};
pub use games::{GameResult, Query, Recording};
pub use guard::PartError;
pub use pruning::{Pruning, PruningError};
pub use replay::{Difference, Replay, ReplayError, Selection, replay};
pub use verify::{Problem, Verified, verify, verify_all};
