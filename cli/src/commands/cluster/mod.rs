//! The commands of the cluster: the services, and what operators ask of them.

pub mod audit;
pub mod check;
mod client;
pub mod coordinator;
pub mod list;
mod live;
pub mod run;
mod spec_file;
mod status;
pub mod steer;
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

/// Logs of a service on standard error: `AGON_LOG` chooses more or less, as in `AGON_LOG=debug` or
/// `AGON_LOG=info,agon_worker=debug`.
fn start_log(default: &str) {
    use std::io::IsTerminal as _;
    use tracing_subscriber::filter::Targets;
    use tracing_subscriber::layer::SubscriberExt as _;
    use tracing_subscriber::util::SubscriberInitExt as _;
    let parse = |text: &str| text.parse::<Targets>().ok();
    let chosen = std::env::var("AGON_LOG").ok().as_deref().and_then(parse);
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let lines =
        tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(colour).with_target(false);
    let log = tracing_subscriber::registry().with(chosen.or_else(|| parse(default))).with(lines);
    // A second log in one process is the first one.
    let _ = log.try_init();
}
