//! `agon verify`: whether a dataset is whole and legal.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use agon_analysis::{Dataset, Verified, verify, verify_all};
use clap::Args;
use serde::Serialize;

use crate::fail::Outcome;
use crate::table::{Align, Table, write_json};

/// The arguments of `agon verify`.
#[derive(Args)]
pub struct Verify {
    /// The run: its id, the beginning of it, or latest
    #[arg(value_name = "RUN", default_value = "latest", conflicts_with = "all")]
    run: String,
    /// Check every run of the dataset
    #[arg(long)]
    all: bool,
    /// The data folder
    #[arg(long, value_name = "DIR", default_value = "agon-data")]
    data: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Document {
    runs: Vec<Verified>,
    ok: bool,
}

impl Verify {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let dataset = Dataset::open(&self.data)?;
        let runs = if self.all {
            verify_all(&dataset)
        } else {
            let id = dataset.find_id(&self.run)?;
            vec![verify(&dataset, &id)]
        };
        let ok = runs.iter().all(Verified::is_ok);
        let document = Document { runs, ok };
        let mut out = io::stdout().lock();
        if self.json {
            write_json(&document, &mut out)?;
        } else {
            write_document(&document, &mut out)?;
        }
        Ok(if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn write_document(document: &Document, out: &mut impl Write) -> io::Result<()> {
    let numbers = ["bouts", "games", "moves", "probes", "problems"].map(|name| (name, Align::Right));
    let header: Vec<(&str, Align)> = [("run", Align::Left)].into_iter().chain(numbers).collect();
    let mut table = Table::new(&header);
    for Verified { run, bouts, games, moves, probes, problems, .. } in &document.runs {
        let numbers =
            [*bouts, *games, *moves, *probes, problems.len() as u64].map(|number| number.to_string());
        table.row([run.clone()].into_iter().chain(numbers));
    }
    table.write(out)?;
    for Verified { run, content, problems, .. } in &document.runs {
        if problems.is_empty() {
            writeln!(out, "{run}: content {content}")?;
        }
        for problem in problems {
            writeln!(out, "{run}: {problem}")?;
        }
    }
    Ok(())
}
