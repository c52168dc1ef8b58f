//! What a dataset says: reads the runs and parts that a coordinator wrote, and checks them.
//!
//! [`dataset`] finds and reads, [`games`] picks games out of it, [`results`] counts who won what, [`mod@verify`] checks by the
//! rules whether everything is there and nothing twice, [`mod@replay`] plays recorded games again, [`boards`] only looks at
//! their boards, and [`report`] makes one page of a run. Nothing is ever written here, and one part at a time is held in
//! memory by each thread.

pub mod boards;
mod columns;
pub mod dataset;
pub mod figures;
pub mod games;
mod guard;
pub mod pruning;
pub mod replay;
pub mod report;
pub mod results;
mod spans;
pub mod verify;
mod whole;

pub use dataset::{Dataset, DatasetError, Part, Run};
pub use games::{GameResult, Query, Recording};
pub use guard::PartError;
pub use report::Report;
pub use replay::{Difference, Replay, ReplayError, Selection, replay};
pub use verify::{Problem, Verified, verify, verify_all};
