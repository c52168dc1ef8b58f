//! `agon engine`: Agon's players as engines of other programs.

mod bot;
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
}

impl Engine {
    pub fn run(self) -> Outcome {
        match self {
            Engine::Serve(command) => command.run(),
        }
    }
}
