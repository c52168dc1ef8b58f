//! `agon crosstable`: each player's results against each opponent, the strongest player first.

use std::io::Write;

use agon_stats::pool::Meeting;
use agon_stats::tournament::{BoutCounts, Options};
use agon_storage::location::Location;
use clap::Args;
use serde::Serialize;

use super::ratings::document::{RatedPool, Request, Scale, Skipped};
use super::ratings::report;
use super::runs::{self, RunSummary};
use crate::fail::Outcome;
use crate::number::cores;
use crate::table::print;

#[derive(Args)]
pub struct Crosstable {
    /// Run id, name or unique prefix, or `latest`
    #[arg(value_name = "RUN", default_value = "latest")]
    run: String,
    /// Data folder, or an object store as s3://bucket/prefix
    #[arg(long, value_name = "LOCATION", default_value = "agon-data")]
    data: Location,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// The JSON answer. Rows and columns are in the order of the players.
#[derive(Serialize)]
struct CrosstableJson<'a> {
    #[serde(flatten)]
    run: &'a RunSummary,
    players: Vec<&'a str>,
    crosstable: &'a [Vec<Option<Meeting>>],
    /// Bouts of two games by the score of the row: 0, 1/2, 1, 3/2 and 2 points.
    pairs: Vec<Vec<Option<[u64; 5]>>>,
}

impl Crosstable {
    pub fn run(self) -> Outcome {
        let runs = runs::load(&self.data, &[self.run], cores())?;
        let run = &runs[0];
        run.check_played()?;
        let tally = &run.results.tally;
        let answer = tally.rate(&Options::default(), &|| ())?;
        let request =
            Request { scale: Scale::Difference, replicas: 0, los: false, crosstable: true, residuals: false };
        let document = RatedPool::new(&answer, &request, &Skipped::default());
        let summary = run.summary();
        let players: Vec<&str> = document.players.iter().map(|player| player.name.as_str()).collect();
        let pairs = pairs(tally, &players);
        let crosstable = document.crosstable.as_deref().unwrap_or_default();
        print(self.json, &CrosstableJson { run: &summary, players, crosstable, pairs }, |out| {
            writeln!(out, "{}: {}", summary.run, summary.progress)?;
            report::write_crosstable(&document, out)?;
            report::write_scores(&document, out)
        })
    }
}

fn pairs(tally: &BoutCounts, players: &[&str]) -> Vec<Vec<Option<[u64; 5]>>> {
    let number = |name: &&str| tally.names().iter().position(|known| known == name);
    let numbers: Vec<Option<usize>> = players.iter().map(number).collect();
    let cell = |one: Option<usize>, other: Option<usize>| {
        let counts = tally.pairs(one?, other?).0;
        counts.iter().any(|&count| count > 0).then_some(counts)
    };
    numbers.iter().map(|&one| numbers.iter().map(|&other| cell(one, other)).collect()).collect()
}
