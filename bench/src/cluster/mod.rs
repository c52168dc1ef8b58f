//! `agon-bench cluster`: the cost of a cluster, with real gRPC, replay and durable state.
//!
//! The coordinator runs in its own process, whose processor time and memory are measured. Where only the coordinator is
//! measured, simulated workers submit recorded bouts.

pub(crate) mod coordinator;
mod fleet;
mod ingest;
mod overhead;
mod restart;
mod simulated_worker;

use std::io::{self, Write as _};
use std::process::ExitCode;

use agon_arena::SpecSource;
use agon_testing::specs::{PVS_VS_UCT, vary};
use clap::{Args, ValueEnum};
use serde_json::{Map, Value};

use agon::block_on;
use agon::fail::Outcome;
use agon::number::whole;

/// The arguments of `agon-bench cluster`.
#[derive(Args)]
pub struct Cluster {
    /// Parts to measure [default: all]
    #[arg(value_enum)]
    parts: Vec<Part>,
    /// Simulated workers of the fleet
    #[arg(long, default_value = "10000", value_parser = whole::<u32>("the number of sessions", 1, 100_000))]
    sessions: u32,
    /// Seconds to observe the fleet
    #[arg(long, default_value = "30", value_parser = whole::<u32>("the seconds", 1, 3600))]
    seconds: u32,
    /// Recorded bouts to stream
    #[arg(long, default_value = "8000", value_parser = whole::<u32>("the number of bouts", 100, 100_000))]
    bouts: u32,
    /// Committed bouts at the coordinator's start
    #[arg(long, default_value = "10000000", value_parser = whole::<u64>("the number of bouts", 1000, 1_000_000_000))]
    committed: u64,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Compare a tournament on the cluster with the same games in a plain loop
    Overhead,
    /// Commit and export recorded bouts at full speed
    Ingest,
    /// Serve many sessions, and reconnect all of them at once
    Fleet,
    /// Start with many committed bouts
    Restart,
}

/// One line of the report.
struct Figure {
    name: &'static str,
    value: f64,
    /// The printed value with its unit.
    text: String,
}

/// The measurements of a part.
#[derive(Default)]
struct Report(Vec<Figure>);

impl Report {
    fn add(&mut self, name: &'static str, value: f64, unit: &str) {
        let digits = if value.abs() >= 1000.0 {
            0
        } else if value.abs() >= 10.0 {
            1
        } else {
            3
        };
        self.0.push(Figure { name, value, text: format!("{value:.digits$} {unit}") });
    }
}

impl Cluster {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let all = [Part::Overhead, Part::Ingest, Part::Fleet, Part::Restart];
        let parts = if self.parts.is_empty() { all.to_vec() } else { self.parts.clone() };
        block_on(async move {
            let mut document = Map::new();
            for part in parts {
                let (title, report) = match part {
                    Part::Overhead => ("overhead", overhead::measure().await?),
                    Part::Ingest => ("ingest", ingest::measure(self.bouts.into()).await?),
                    Part::Fleet => ("fleet", fleet::measure(self.sessions, self.seconds).await?),
                    Part::Restart => ("restart", restart::measure(self.committed).await?),
                };
                if self.json {
                    let figures =
                        report.0.into_iter().map(|figure| (figure.name.to_string(), figure.value.into()));
                    document.insert(title.to_string(), Value::Object(figures.collect()));
                    continue;
                }
                let mut out = io::stdout().lock();
                writeln!(out, "{title}")?;
                for figure in report.0 {
                    writeln!(out, "  {:<52} {:>22}", figure.name, figure.text)?;
                }
            }
            if self.json {
                writeln!(io::stdout().lock(), "{}", Value::Object(document))?;
            }
            Ok(ExitCode::SUCCESS)
        })
    }
}

/// Returns a spec without files.
fn source(text: &str) -> SpecSource {
    SpecSource { text: text.to_string(), ..SpecSource::default() }
}

/// Returns the spec of the recorded bouts: connect-four at depth 3.
fn recorded(bouts: u64) -> SpecSource {
    let spec = vary(PVS_VS_UCT).name("recorded").seed(1).limit("depth = 3").bouts(bouts);
    source(&spec.set("openings", "{ random_plies = 8 }").replace("uct", "alpha-beta"))
}
