//! The commands of the cluster: coordinator, worker, and the commands of operators.

pub mod audit;
mod backup;
pub mod certs;
pub mod check;
pub mod client;
pub mod config;
pub mod coordinator;
pub mod data;
pub mod health;
pub mod list;
mod live;
mod log;
pub mod run;
pub mod spec_file;
mod status;
pub mod steer;
pub mod storage;
pub mod submit;
pub mod token;
mod void;
pub mod watch;
pub mod worker;
pub mod workers;

use std::future::Future;

use anyhow::Context as _;

pub use self::log::flush_log;
use self::log::{Log, LogForm, start_log};
use crate::fail::with_fatal_panics;

/// Runs a future to its end on its own runtime.
pub fn block_on<T>(future: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all();
    // If one thread of the runtime cannot start, unwinding waits for the others.
    let runtime = with_fatal_panics(|| builder.build()).context("cannot start the runtime")?;
    let outcome = runtime.block_on(future);
    // Do not wait for detached tasks that sleep.
    runtime.shutdown_timeout(std::time::Duration::from_millis(200));
    outcome
}

/// Returns a future that resolves at a stop signal. Listens from this call on, not from the first poll: the first process
/// of a container ignores signals without a handler, and a service starts up before it polls.
fn stop_signal() -> impl Future<Output = ()> + Send + 'static {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let signals = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()));
        async move {
            let (Ok(mut terminate), Ok(mut interrupt)) = signals else { return };
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        }
    }
    #[cfg(not(unix))]
    async {
        let _ = tokio::signal::ctrl_c().await;
    }
}
