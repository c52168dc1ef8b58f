//! The commands of the cluster: the services, and what operators ask of them.

pub mod cancel;
pub mod check;
mod client;
pub mod coordinator;
pub mod list;
mod live;
pub mod run;
mod spec_file;
mod status;
pub mod submit;
pub mod watch;
pub mod worker;
pub mod workers;

use std::future::Future;

use anyhow::Context as _;

use crate::fail::Outcome;

/// Runs something asynchronous to its end on a runtime of its own.
fn block_on(future: impl Future<Output = Outcome>) -> Outcome {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("no threads can be had")?;
    let outcome = runtime.block_on(future);
    // Whatever still sleeps somewhere has nothing more to say.
    runtime.shutdown_timeout(std::time::Duration::from_millis(200));
    outcome
}

/// Ready when the process is asked to stop.
async fn stop_signal() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let Ok(mut terminate) = signal(SignalKind::terminate()) else { return };
        tokio::select! {
            _ = terminate.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
    }
    #[cfg(not(unix))]
    {
        let _ = tokio::signal::ctrl_c().await;
    }
}

/// Logs of a service on standard error: `AGON_LOG` chooses more or less, as in `AGON_LOG=debug`.
fn start_log(default: &str) {
    use std::io::IsTerminal as _;
    let filter = tracing_subscriber::EnvFilter::try_from_env("AGON_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(default));
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(colour);
    // A second log in one process is the first one.
    let _ = log.with_target(false).try_init();
}
