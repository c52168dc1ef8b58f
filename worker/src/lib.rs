//! A stateless worker: it takes bouts on loan, plays them on threads of its own and streams every move back.
//!
//! [`run`] is all of it; [`Config`] says where the coordinator is, and [`WorkerEvent`]s say what happens. A bout is kept
//! in memory until it is acknowledged and nowhere else: a worker that dies loses nothing but time. Deliberately not here:
//! printing, signals and files, which are the caller's, and whether a result counts, which is the coordinator's.

mod backoff;
mod config;
mod error;
mod event;
mod holdings;
mod outbox;
mod pin;
mod play;
mod session;
mod slot;
mod speed;
mod submit;
mod work;

pub use config::Config;
pub use error::WorkerError;
pub use event::{Ended, Summary, Watch, WorkerEvent};
pub use work::run;
