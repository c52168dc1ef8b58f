//! `agon bench`: speed on this machine, and what the statistics promise, as tables and JSON.

mod analysis;
mod cluster;
mod efficiency;
mod games;
mod search;
mod stats;

use clap::Subcommand;

use crate::fail::Outcome;

/// What to measure.
#[derive(Subcommand)]
pub enum Bench {
    /// Random games and perft leaves a second for each game, one thread
    Games(games::Games),
    /// Nodes a second of each algorithm on each fitting game, and one signature over all counts
    Search(search::Search),
    /// What move ordering and each algorithm save, in nodes at equal depth
    Efficiency(efficiency::Efficiency),
    /// What the cluster costs beside the games it plays: overhead, ingest, a large fleet, a restart
    Cluster(cluster::Cluster),
    /// How fast questions to a large dataset are answered, and in how much memory
    Analysis(analysis::Analysis),
    /// Whether the statistics keep what they promise, by simulation, and how fast they are
    Stats(stats::Stats),
}

impl Bench {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        match self {
            Bench::Games(command) => command.run(),
            Bench::Search(command) => command.run(),
            Bench::Efficiency(command) => command.run(),
            Bench::Cluster(command) => command.run(),
            Bench::Analysis(command) => command.run(),
            Bench::Stats(command) => command.run(),
        }
    }
}
