//! What a dataset says: reads the runs and parts that a coordinator wrote, and checks them.
//!
//! [`dataset`] finds and reads, [`games`] picks games out of it, [`mod@verify`] checks by the rules whether everything is
//! there and nothing twice, [`mod@replay`] plays recorded games again. Nothing is ever written here, and one part at a time
//! is held in memory.

pub mod boards;
mod columns;
pub mod dataset;
pub mod figures;
pub mod games;
mod guard;
pub mod replay;
pub mod report;
mod spans;
pub mod verify;

pub use dataset::{Dataset, DatasetError, Part, Run};
pub use games::{GameResult, Query, Recording};
pub use guard::PartError;
pub use report::Report;
pub use replay::{Difference, Replay, ReplayError, Selection, replay};
pub use verify::{Problem, Verified, verify, verify_all};
