//! `agon bench`: measures games and searches on this machine.

mod efficiency;
mod games;
mod search;

use clap::Subcommand;

use crate::fail::Outcome;

/// What to measure.
#[derive(Subcommand)]
pub enum Bench {
    /// Measure random games and perft leaves per second and game
    Games(games::Games),
    /// Measure nodes per second of each algorithm, and print the search signature
    Search(search::Search),
    /// Measure nodes saved by move ordering and algorithms at equal depth
    Efficiency(efficiency::Efficiency),
}

impl Bench {
    pub fn run(self) -> Outcome {
        match self {
            Bench::Games(command) => command.run(),
            Bench::Search(command) => command.run(),
            Bench::Efficiency(command) => command.run(),
        }
    }
}
