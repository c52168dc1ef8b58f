//! The coordinator: schedules bouts, leases them to workers, commits their results and serves operators.
//!
//! `durable` is the durable state, judged and changed by pure functions; `owner` is its only writer, in [`store`]; `state`
//! has it in memory, with sessions and [`leases`]; [`service`] has the gRPC services; [`export`] writes the [`dataset`].
//! `serve` wires them together, `recovery` restores the state of an earlier process and `tasks` runs what goes on beside the
//! services.
//! The coordinator never searches: it only replays received games by the rules.

mod audit;
pub mod data;
pub mod dataset;
mod durable;
pub mod export;
#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod fixtures;
pub mod leases;
pub mod maintenance;
pub mod metrics;
mod owner;
mod receipt;
mod recovery;
mod serve;
pub mod service;
pub mod standings;
mod state;
pub mod store;
mod tasks;
mod verification;

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;

use agon_storage::Location;
use agon_transport::tls::TlsFiles;
use agon_transport::{CredentialError, Limits};
use tokio::net::TcpListener;

use crate::data::DataError;
use crate::export::ExportError;
pub use crate::export::ExportSchedule;
use crate::state::{Fatal, Timing};
use crate::store::StoreError;

/// The default state folder of a dataset in an object store.
pub const STATE_FOLDER: &str = "agon-state";

/// The configuration of a coordinator.
#[derive(Debug)]
pub struct Config {
    /// The location of the dataset; a folder holds the state too.
    pub data: Location,
    /// The state folder, if the dataset is in an object store.
    pub state: PathBuf,
    /// Takes ownership of state and dataset even if another coordinator appears to own them.
    pub take_over: bool,
    /// Heartbeats and leases.
    pub timing: Timing,
    /// When the parts of the dataset are written.
    pub export: ExportSchedule,
    /// The listener of the metrics endpoint.
    pub metrics: Option<TcpListener>,
    /// The server certificate and the client authentication.
    pub tls: Option<TlsFiles>,
    /// The file of accepted tokens.
    pub tokens: Option<PathBuf>,
    /// Connection and rate limits.
    pub limits: Limits,
    /// Grants only runs that were submitted to this process.
    pub only_requested: bool,
}

impl Config {
    /// Returns the default configuration for a location.
    pub fn new(data: impl Into<Location>) -> Config {
        Config {
            data: data.into(),
            state: PathBuf::from(STATE_FOLDER),
            take_over: false,
            timing: Timing::default(),
            export: ExportSchedule::default(),
            metrics: None,
            tls: None,
            tokens: None,
            limits: Limits::default(),
            only_requested: false,
        }
    }
}

/// An error that ends the coordinator.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CoordinatorError {
    /// The data folder.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The state file.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The disk is full at the start, which needs a few kilobytes.
    #[error("no space to open the state in {}; free some and start again", .0.display())]
    NoSpace(PathBuf),
    /// The dataset.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// Certificates or tokens.
    #[error(transparent)]
    Credentials(#[from] CredentialError),
    /// The network.
    #[error("cannot serve: {0}")]
    Serve(#[from] tonic::transport::Error),
    /// A task ended because of a bug. A restart recovers.
    #[error("{task} failed: {reason}; restart the coordinator, and report this")]
    Task {
        /// What the task does.
        task: &'static str,
        /// The reason.
        reason: String,
    },
}

impl From<Fatal> for CoordinatorError {
    fn from(failure: Fatal) -> CoordinatorError {
        match failure {
            Fatal::Store(error) => CoordinatorError::Store(error),
            Fatal::Task { task, reason } => CoordinatorError::Task { task, reason },
        }
    }
}

/// A boxed future, so that it is monomorphised once, in this crate.
type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Runs a coordinator on a listener until `shutdown` is ready, then drains.
pub fn run(
    config: Config,
    listener: TcpListener,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> BoxFuture<Result<(), CoordinatorError>> {
    serve::start(config, listener, Box::pin(shutdown))
}
