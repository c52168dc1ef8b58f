//! `agon crosstable`: who did what against whom in a run, the strongest first.

use std::io::{self, Write};
use std::process::ExitCode;

use agon_stats::pool;
use agon_stats::tournament::{Errors, Options, Tally};
use agon_storage::location::Location;
use clap::Args;
use serde::Serialize;

use super::ratings::document::{Asked, Document, Meeting, Skipped};
use super::ratings::report;
use super::runs::{self, Told};
use crate::fail::Outcome;
use crate::table::write_json;

/// The arguments of `agon crosstable`.
#[derive(Args)]
pub struct Crosstable {
    /// Run id, name or unique prefix, or `latest`
    #[arg(value_name = "RUN", default_value = "latest")]
    run: String,
    /// Data folder, or an object store as s3://bucket/prefix
    #[arg(long, value_name = "PLACE", default_value = "agon-data")]
    data: Location,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// The crosstable for programs. Rows and columns are in the order of the players.
#[derive(Serialize)]
struct Table<'a> {
    #[serde(flatten)]
    run: &'a Told,
    players: Vec<&'a str>,
    crosstable: &'a [Vec<Option<Meeting>>],
    /// Bouts of two games by the score of the row: 0, 1/2, 1, 3/2 and 2 points.
    pairs: Vec<Vec<Option<[u64; 5]>>>,
}

impl Crosstable {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let runs = runs::read(&self.data, &[self.run], runs::cores())?;
        let counted = &runs[0];
        counted.check_played()?;
        let tally = &counted.results.tally;
        let options = Options { model: pool::Options::default(), errors: Errors::Sandwich };
        let answer = tally.answer(&options, &|| ())?;
        let asked =
            Asked { shift: 0.0, anchor: None, replicas: 0, los: false, crosstable: true, residuals: false };
        let skipped = Skipped { unfinished: 0, malformed: 0, left_out: 0 };
        let document = Document::new(&answer, &asked, &skipped);
        let told = counted.told();
        let mut out = io::stdout().lock();
        if self.json {
            let players: Vec<&str> = document.players.iter().map(|player| player.name.as_str()).collect();
            let pairs = pairs(tally, &players);
            let crosstable = document.crosstable.as_deref().unwrap_or_default();
            write_json(&Table { run: &told, players, crosstable, pairs }, &mut out)?;
        } else {
            writeln!(out, "{}: {}", told.run, told.standing)?;
            report::write_crosstable(&document, &mut out)?;
            report::write_scores(&document, &mut out)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn pairs(tally: &Tally, players: &[&str]) -> Vec<Vec<Option<[u64; 5]>>> {
    let number = |name: &&str| tally.names().iter().position(|known| known == name);
    let numbers: Vec<Option<usize>> = players.iter().map(number).collect();
    let cell = |one: Option<usize>, other: Option<usize>| {
        let counts = tally.pairs(one?, other?).0;
        counts.iter().any(|&count| count > 0).then_some(counts)
    };
    numbers.iter().map(|&one| numbers.iter().map(|&other| cell(one, other)).collect()).collect()
}
