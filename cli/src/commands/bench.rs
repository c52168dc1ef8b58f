//! `agon bench`: speed on this machine, as tables and JSON.

mod games;

use clap::Subcommand;

use crate::fail::Outcome;

/// What to measure.
#[derive(Subcommand)]
pub enum Bench {
    /// Random games and perft leaves a second for each game, one thread
    Games(games::Games),
}

impl Bench {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        match self {
            Bench::Games(command) => command.run(),
        }
    }
}
