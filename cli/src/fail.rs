//! Failures: one message on standard error, and an exit code.

use std::any::Any;
use std::cell::Cell;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use agon_analysis::DatasetError;
use agon_arena::{ConfigError, PlayError, RosterError};
use agon_coordinator::maintenance::MaintenanceError;
use agon_games::SetupError;
use agon_games::line::MoveError;
use agon_stats::sprt::BoundsError;
use agon_stats::tournament::TournamentError;
use agon_storage::location::LocationError;

use crate::table::folded;
use crate::terminal::size_of_stderr;

/// The result of a command.
pub type Outcome = anyhow::Result<ExitCode>;

/// An error in the call: what is wrong, and how to mend it.
#[derive(Debug)]
pub struct UsageError(pub String);

impl std::fmt::Display for UsageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

/// Returns early with a [`UsageError`].
macro_rules! bail_usage {
    ($($text:tt)*) => {
        return Err($crate::fail::UsageError(format!($($text)*)).into())
    };
}
pub(crate) use bail_usage;

/// Prints the error and returns the exit code: 2 for a wrong call, otherwise 1. A closed pipe is no failure: the
/// reader has seen enough.
pub fn report(error: &anyhow::Error) -> ExitCode {
    if is_closed_pipe(error) {
        return ExitCode::SUCCESS;
    }
    note(&format!("error: {}", message(error)));
    ExitCode::from(if is_usage_error(error) { 2 } else { 1 })
}

thread_local! {
    /// Whether a panic of this thread ends the process at once.
    static PANICS_ARE_FATAL: Cell<bool> = const { Cell::new(false) };
}

/// Runs a closure whose panics end the process at once, because unwinding it could wait for ever.
pub fn with_fatal_panics<T>(run: impl FnOnce() -> T) -> T {
    PANICS_ARE_FATAL.set(true);
    let result = run();
    PANICS_ARE_FATAL.set(false);
    result
}

/// Reports panics in one line, and with a backtrace only for `RUST_BACKTRACE=full`: without memory for a backtrace, the
/// standard library waits for ever for its own lock.
pub fn report_panics() {
    if std::env::var_os("RUST_BACKTRACE").is_some_and(|style| style == "full") {
        return;
    }
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        let (name, place) = (thread.name().unwrap_or("unnamed"), panic.location());
        let place = place.map(|place| format!(" at {}:{}", place.file(), place.line())).unwrap_or_default();
        let _ = writeln!(io::stderr(), "thread `{name}` panicked{place}: {}", panic_text(panic.payload()));
        if PANICS_ARE_FATAL.get() {
            std::process::exit(1);
        }
    }));
}

/// Returns the message of a panic.
pub fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("unknown reason")
}

fn is_usage_error(error: &anyhow::Error) -> bool {
    use MaintenanceError::{NoBackup, NoState, Occupied};

    error.is::<UsageError>()
        || error.is::<SetupError>()
        || error.is::<MoveError>()
        || error.is::<ConfigError>()
        || error.is::<RosterError>()
        || error.is::<BoundsError>()
        || error.is::<TournamentError>()
        || error.is::<LocationError>()
        || matches!(error.downcast_ref(), Some(NoState(_) | Occupied(_) | NoBackup { .. }))
        || error.downcast_ref().is_some_and(DatasetError::is_usage_error)
        || error.downcast_ref().is_some_and(|error| !matches!(error, PlayError::Interrupted))
}

/// Writes a note to standard error, wrapped to the width of a terminal. Ignores a closed standard error.
pub fn note(text: &str) {
    let _ = match size_of_stderr() {
        None => writeln!(io::stderr(), "{text}"),
        Some((columns, _)) => writeln!(io::stderr(), "{}", wrapped(text, columns)),
    };
}

/// Wraps lines between words; leaves indented lines as they are.
fn wrapped(text: &str, columns: usize) -> String {
    let line =
        |line: &str| if line.starts_with(' ') { line.to_string() } else { folded(line, columns).join("\n") };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Returns the error with its causes. Skips a cause that the text before it contains.
fn message(error: &anyhow::Error) -> String {
    let mut message = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if message.is_empty() {
            message = cause;
        } else if !message.contains(&cause) {
            message.push_str(": ");
            message.push_str(&cause);
        }
    }
    message
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let io = cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        let json = cause.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind);
        io.or(json) == Some(ErrorKind::BrokenPipe)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wraps_between_words() {
        assert_eq!(
            wrapped("error: one two three\n   | a line of a file", 12),
            "error: one\ntwo three\n   | a line of a file"
        );
    }

    #[test]
    fn prints_each_cause_once() {
        let disk = || io::Error::other("no room");
        let error = anyhow::Error::from(disk()).context("the page cannot be written");
        assert_eq!(message(&error), "the page cannot be written: no room");
        let error = anyhow::Error::from(disk()).context("the page cannot be written (no room); make some");
        assert_eq!(message(&error), "the page cannot be written (no room); make some");
    }
}
