//! The command line of Agon: parses arguments, runs a command, and prints text or JSON.
//!
//! Results go to standard output, everything else to standard error. Exit codes: 0 success; 1 the work or a check failed, or
//! there is nothing to answer from yet; 2 the call is wrong.

mod call;
mod commands;
pub mod engines;
pub mod fail;
mod help;
pub mod number;
mod open_files;
pub mod output;
pub mod progress;
mod settings;
pub mod table;
mod terminal;

use std::process::ExitCode;

pub use call::command;
pub use commands::cluster::block_on;
pub use commands::cluster::client::{Operator, client};
pub use commands::ratings::sources::Reading;

/// Runs the command that the process was called with, and returns its exit code.
pub fn run() -> ExitCode {
    fail::report_panics();
    let ended = std::panic::catch_unwind(call::run);
    commands::cluster::flush_log();
    // A panic is reported already.
    ended.map_or(ExitCode::FAILURE, |ended| ended.unwrap_or_else(|error| fail::report(&error)))
}
