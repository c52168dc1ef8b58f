//! How a failure reaches the person: one sentence on standard error and an exit code that means something.

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use agon_analysis::DatasetError;
use agon_arena::{ConfigError, PlayError, RosterError};
use agon_coordinator::maintenance::MaintenanceError;
use agon_games::SetupError;
use agon_games::line::MoveError;
use agon_stats::sprt::BoundsError;
use agon_stats::tournament::AnswerError;
use agon_storage::location::LocationError;

use crate::table::folded;
use crate::terminal::size_of_stderr;

/// What every command returns.
pub type Outcome = anyhow::Result<ExitCode>;

/// A call that is wrong, with the remedy.
#[derive(Debug)]
pub struct WrongCall(pub String);

impl std::fmt::Display for WrongCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WrongCall {}

/// Prints the error and chooses the exit code: 2 where the call is wrong, 1 where the work failed. A reader that has
/// closed its end of the pipe has seen enough: that is no failure.
pub fn report(error: &anyhow::Error) -> ExitCode {
    if is_closed_pipe(error) {
        return ExitCode::SUCCESS;
    }
    tell(&format!("error: {}", sentence(error)));
    let wrong_call = error.is::<WrongCall>()
        || error.is::<SetupError>()
        || error.is::<MoveError>()
        || error.is::<ConfigError>()
        || error.is::<RosterError>()
        || error.is::<BoundsError>()
        || error.is::<AnswerError>()
        || error.is::<LocationError>()
        || matches!(
            error.downcast_ref::<MaintenanceError>(),
            Some(
                MaintenanceError::NoState(_)
                    | MaintenanceError::Occupied(_)
                    | MaintenanceError::NoBackup { .. }
            )
        )
        || error.downcast_ref::<DatasetError>().is_some_and(DatasetError::is_wrong_call)
        || error.downcast_ref::<PlayError>().is_some_and(|error| !matches!(error, PlayError::Interrupted));
    ExitCode::from(if wrong_call { 2 } else { 1 })
}

/// A sentence on standard error: as it is where programs read it, between words where it would pass a terminal's width.
pub fn tell(sentence: &str) {
    // Where standard error cannot be written, there is nobody left to tell; the exit code says the rest.
    let _ = match size_of_stderr() {
        None => writeln!(io::stderr(), "{sentence}"),
        Some((columns, _)) => writeln!(io::stderr(), "{}", wrapped(sentence, columns)),
    };
}

/// A text whose lines are broken between words so that they fit; those that are indented stay as they are.
fn wrapped(text: &str, columns: usize) -> String {
    let line =
        |line: &str| if line.starts_with(' ') { line.to_string() } else { folded(line, columns).join("\n") };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// The error with its causes. A library's error may say its cause itself: then that is not said again.
fn sentence(error: &anyhow::Error) -> String {
    let mut sentence = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if sentence.is_empty() {
            sentence = cause;
        } else if !sentence.contains(&cause) {
            sentence.push_str(": ");
            sentence.push_str(&cause);
        }
    }
    sentence
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
    fn sentences_are_broken_between_words() {
        assert_eq!(
            wrapped("error: one two three\n   | a line of a file", 12),
            "error: one\ntwo three\n   | a line of a file"
        );
    }

    #[test]
    fn causes_are_said_once() {
        let disk = || io::Error::other("no room");
        let error = anyhow::Error::from(disk()).context("the page cannot be written");
        assert_eq!(sentence(&error), "the page cannot be written: no room");
        let error = anyhow::Error::from(disk()).context("the page cannot be written (no room); make some");
        assert_eq!(sentence(&error), "the page cannot be written (no room); make some");
    }
}
