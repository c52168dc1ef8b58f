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
pub mod run;
mod spec_file;
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
use std::io::{self, IsTerminal as _};

use agon_games::printable::printable;
use anyhow::Context as _;
use clap::{Args, ValueEnum};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::settings::Layers;

/// Runs a future to its end on its own runtime.
pub fn block_on<T>(future: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
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

/// The log options of a service.
#[derive(Args)]
struct Log {
    /// Log format on standard error [default: text]; AGON_LOG sets levels, as in info,agon_worker=debug
    #[arg(long, value_name = "FORM")]
    log: Option<LogForm>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LogForm {
    /// Human-readable lines
    Text,
    /// One JSON object per line
    Json,
}

impl std::fmt::Display for LogForm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if *self == LogForm::Text { "text" } else { "json" })
    }
}

impl Log {
    /// Merges the layers into the log options.
    fn choose(self, layers: &Layers, key: &'static str) -> anyhow::Result<Log> {
        let parse = |text: &str| LogForm::from_str(text, false).map_err(|_| "it is text or json".to_string());
        Ok(Log { log: Some(layers.value_or(key, self.log, parse, LogForm::Text)?) })
    }

    fn start(&self, default: &str) {
        start_log(default, self.log.unwrap_or(LogForm::Text));
    }
}

/// A writer of log lines. An event is one line, and no text in it changes the terminal: of all control sequences, only
/// colours pass, and those only if the log is coloured.
struct LogWriter<W> {
    output: W,
    is_coloured: bool,
}

impl<W: io::Write> io::Write for LogWriter<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let mut cleaned = String::with_capacity(text.len() + 1);
        for (index, piece) in text.split('\x1b').enumerate() {
            if index > 0 && self.is_coloured && begins_with_colour(piece) {
                cleaned.push('\x1b');
            }
            cleaned.push_str(&printable(piece));
        }
        cleaned.push('\n');
        self.output.write_all(cleaned.as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

/// Returns whether a text, which follows an escape character, completes a sequence that sets a colour or a weight.
fn begins_with_colour(text: &str) -> bool {
    let Some(parameters) = text.strip_prefix('[') else { return false };
    let end = parameters.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
    end.starts_with('m')
}

/// Starts the log on standard error with the levels of `AGON_LOG`.
fn start_log(default: &str, form: LogForm) {
    let parse = |text: &str| text.parse::<Targets>().ok();
    let chosen = std::env::var("AGON_LOG").ok().as_deref().and_then(parse);
    let wanted = tracing_subscriber::registry().with(chosen.or_else(|| parse(default)));
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(move || LogWriter { output: std::io::stderr(), is_coloured: colour })
        .with_ansi(colour);
    // A second start in one process keeps the first log.
    let _ = match form {
        LogForm::Text => wanted.with(lines.with_target(false)).try_init(),
        LogForm::Json => wanted.with(lines.json().flatten_event(true)).try_init(),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_of_the_log() {
        let lines = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        struct Shared(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);
        impl io::Write for Shared {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.lock().expect("no thread panics").extend_from_slice(bytes);
                Ok(bytes.len())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let shared = std::sync::Arc::clone(&lines);
        let layer = tracing_subscriber::fmt::layer()
            .with_writer(move || LogWriter {
                output: Shared(std::sync::Arc::clone(&shared)),
                is_coloured: false,
            })
            .without_time()
            .with_target(false)
            .with_ansi(false);
        let reason = "no\x1b[2J\nINFO quarantined honest\u{202e}\u{9b}31m";
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            tracing::warn!(reason, "bout failed");
            tracing::warn!(%reason, "bout failed");
            tracing::warn!("bout failed: {reason}");
        });
        let text = String::from_utf8(lines.lock().expect("no thread panics").clone()).expect("UTF-8");
        assert_eq!(text.lines().count(), 3, "{text:?}");
        assert!(
            begins_with_colour("[1;31mred") && !begins_with_colour("[2J") && !begins_with_colour("]0;title")
        );
        let unsafe_character = |c: char| c != '\n' && agon_games::printable::is_unprintable(c);
        assert!(!text.contains(unsafe_character), "{text:?}");
    }
}
