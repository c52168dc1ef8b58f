//! A stateless worker: it leases bouts, plays them on its own threads and streams every move to the coordinator.
//!
//! [`run`] runs a worker with a [`Config`] and reports [`WorkerEvent`]s. Bouts exist only in memory until they are
//! acknowledged: a worker that dies loses only time. Not here: printing, signals and files, which are the caller's, and
//! the decision whether a result counts, which is the coordinator's.

mod backoff;
mod config;
mod engine;
mod error;
mod event;
mod held_bouts;
mod outbox;
mod pin;
mod play;
mod session;
mod slot;
mod speed;
mod submit;
mod worker;

pub use config::Config;
pub use engine::Engines;
pub use error::WorkerError;
pub use event::{Ended, EventHandler, Summary, WorkerEvent};
pub use worker::run;
