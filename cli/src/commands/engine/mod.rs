//! `agon engine`: Agon's players as engines of other programs, and tests of engines.

mod bot;
mod check;
mod conversation;
mod gtp;
mod options;
mod serve;
mod uci;

use clap::Subcommand;

use crate::fail::Outcome;

#[derive(Subcommand)]
pub enum Engine {
    /// Serve a player on standard input and output
    Serve(serve::Serve),
    /// Test an engine against its protocol; exit 1 if it fails
    Check(check::Check),
}

impl Engine {
    pub fn run(self) -> Outcome {
        match self {
            Engine::Serve(command) => command.run(),
            Engine::Check(command) => command.run(),
        }
    }
}
