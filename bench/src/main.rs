//! The binary `agon-bench`: measures the cluster and the analysis, and checks the statistics by simulation.

mod analysis;
mod cluster;
mod engines;
mod stats;
mod tuning;

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
    Engines(engines::Engines),
    /// Measure time and memory of queries on a large dataset
    Analysis(analysis::Analysis),
    /// Check the statistics by simulation, and measure their speed
    Stats(stats::Stats),
    /// Tune UCT's constant in real games by each method
    Tuning(tuning::Tuning),
}

fn main() -> ExitCode {
    let outcome = match Bench::parse() {
        Bench::Cluster(command) => command.run(),
        Bench::Engines(command) => command.run(),
        Bench::Analysis(command) => command.run(),
        Bench::Stats(command) => command.run(),
        Bench::Tuning(command) => command.run(),
    };
    outcome.unwrap_or_else(|error| agon::fail::report(&error))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test panics")]
mod tests {
    use std::fs;
    use std::path::Path;

    use clap::Parser as _;

    use super::Bench;

    const PAGES: [&str; 7] = [
        "README.md",
        "ARCHITECTURE.md",
        "docs/guide/analysis.md",
        "docs/guide/tuning.md",
        "docs/ops/operations.md",
        "docs/reference/measurements.md",
        "docs/reference/statistics.md",
    ];

    #[test]
    fn documented_calls_parse() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for page in PAGES {
            let text = fs::read_to_string(root.join(page)).unwrap();
            assert!(text.contains("agon-bench"), "{page} has no call");
            for call in text.split("agon-bench").skip(1) {
                let words = call.split(['`', '#']).next().unwrap().split_whitespace();
                let parsed = Bench::try_parse_from(std::iter::once("agon-bench").chain(words));
                if let Err(error) = parsed {
                    panic!("{page}: {error}");
                }
            }
        }
    }
}
