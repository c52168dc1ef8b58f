//! What a run plays and how it is described. Pure: no I/O, no clock.
//!
//! [`schedule`] maps a spec and a number to a bout, [`tuning`] does so for tuning runs, whose bouts depend on earlier
//! results. [`openings`] draws the openings. [`run_id`] names runs, [`run`] describes them, and [`summary`] holds the results of a bout.

pub mod openings;
mod remarks;
pub mod run;
pub mod run_id;
pub mod schedule;
pub mod summary;
pub mod tuning;

pub use openings::{Preparation, Prepared};
pub use run::{RunManifest, RunState, TuneEnd, TuneManifest};
pub use schedule::{Schedule, ScheduleError};
pub use summary::Summary;
pub use tuning::Tuning;
