//! The commands of the cluster: the services, and what operators ask of them.

pub mod audit;
pub mod backup;
pub mod check;
pub mod client;
pub mod coordinator;
pub mod list;
mod live;
pub mod run;
mod spec_file;
mod status;
pub mod steer;
pub mod storage;
pub mod submit;
pub mod watch;
pub mod worker;
pub mod workers;

use std::future::Future;
use std::io::IsTerminal as _;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::fail::Outcome;

/// Runs something asynchronous to its end on a runtime of its own.
pub fn block_on(future: impl Future<Output = Outcome>) -> Outcome {
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

/// How a service tells what happens.
#[derive(Args)]
struct Log {
    /// How events are written to standard error; `AGON_LOG=debug` or `AGON_LOG=info,agon_worker=debug` chooses which
    #[arg(long, value_name = "FORM", default_value = "text")]
    log: LogForm,
}

#[derive(Clone, Copy, ValueEnum)]
enum LogForm {
    /// A line for people
    Text,
    /// A JSON object a line, for programs that collect logs
    Json,
}

impl Log {
    fn start(&self, default: &str) {
        start_log(default, self.log);
    }
}

/// Logs on standard error, as much as `AGON_LOG` wants.
fn start_log(default: &str, form: LogForm) {
    let parse = |text: &str| text.parse::<Targets>().ok();
    let chosen = std::env::var("AGON_LOG").ok().as_deref().and_then(parse);
    let wanted = tracing_subscriber::registry().with(chosen.or_else(|| parse(default)));
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(colour);
    // A second log in one process is the first one.
    let _ = match form {
        LogForm::Text => wanted.with(lines.with_target(false)).try_init(),
        LogForm::Json => wanted.with(lines.json().flatten_event(true)).try_init(),
    };
}
