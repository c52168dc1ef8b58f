//! The binary `agon-bench`: measures the cluster and the analysis, and checks the statistics by simulation.

mod analysis;
mod cluster;
mod stats;

use std::process::ExitCode;

use clap::Parser;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measure the cluster and the analysis, and check the statistics
#[derive(Parser)]
#[command(name = "agon-bench", version, propagate_version = true)]
enum Bench {
    /// Measure cluster overhead, ingest, a large fleet and a restart
    Cluster(cluster::Cluster),
    /// Measure time and memory of queries on a large dataset
    Analysis(analysis::Analysis),
    /// Check the statistics by simulation, and measure their speed
    Stats(stats::Stats),
}

fn main() -> ExitCode {
    let outcome = match Bench::parse() {
        Bench::Cluster(command) => command.run(),
        Bench::Analysis(command) => command.run(),
        Bench::Stats(command) => command.run(),
    };
    outcome.unwrap_or_else(|error| agon::fail::report(&error))
}
