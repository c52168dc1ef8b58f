//! How a failure reaches the person: one sentence on standard error and an exit code that means something.

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use agon_analysis::DatasetError;
use agon_arena::{ConfigError, PlayError, RosterError};
use agon_coordinator::place::PlaceError;
use agon_coordinator::upkeep::UpkeepError;
use agon_games::SetupError;
use agon_games::line::MoveError;
use agon_stats::sprt::BoundsError;
use agon_stats::tournament::AnswerError;

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
    // Where standard error cannot be written either, there is nobody left to tell; the exit code says the rest.
    let _ = writeln!(io::stderr(), "error: {error:#}");
    let wrong_call = error.is::<WrongCall>()
        || error.is::<SetupError>()
        || error.is::<MoveError>()
        || error.is::<ConfigError>()
        || error.is::<RosterError>()
        || error.is::<BoundsError>()
        || error.is::<AnswerError>()
        || error.is::<PlaceError>()
        || matches!(
            error.downcast_ref::<UpkeepError>(),
            Some(UpkeepError::NoState(_) | UpkeepError::Occupied(_) | UpkeepError::NoBackup { .. })
        )
        || error.downcast_ref::<DatasetError>().is_some_and(DatasetError::is_wrong_call)
        || error.downcast_ref::<PlayError>().is_some_and(|error| !matches!(error, PlayError::Interrupted));
    ExitCode::from(if wrong_call { 2 } else { 1 })
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let io = cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        let json = cause.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind);
        io.or(json) == Some(ErrorKind::BrokenPipe)
    })
}
