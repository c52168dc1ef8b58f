//! `agon verify`: checks that a dataset, or a coordinator's state, is complete and legal.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use agon_analysis::{Dataset, Verified, verify, verify_all};
use agon_coordinator::maintenance::{self, RunReport, StateReport};
use agon_storage::location::Location;
use clap::Args;
use serde::Serialize;

use super::runs;
use crate::commands::cluster::block_on;
use crate::fail::Outcome;
use crate::table::{Align, Table, print};

#[derive(Args)]
pub struct Verify {
    /// Run id, name or unique prefix, or `latest`
    #[arg(value_name = "RUN", default_value = "latest", conflicts_with = "all")]
    run: String,
    /// Check all runs of the dataset
    #[arg(long)]
    all: bool,
    /// Data folder, or an object store as s3://bucket/prefix
    #[arg(long, value_name = "LOCATION", default_value = "agon-data")]
    data: Location,
    /// Check the coordinator's state instead, even while it runs [default: in the data folder, or agon-state]
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true)]
    state: Option<Option<PathBuf>>,
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
    pub fn run(self) -> Outcome {
        if let Some(folder) = self.state {
            let folder = match (&self.data, folder) {
                (_, Some(folder)) => folder,
                (Location::Folder(folder), None) => folder.clone(),
                (Location::Store(_), None) => PathBuf::from(agon_coordinator::STATE_FOLDER),
            };
            return verify_state(&folder, &self.data, self.json);
        }
        let dataset = Dataset::open(&self.data)?;
        let runs = if self.all {
            verify_all(&dataset)
        } else {
            let id = dataset.find_id(&self.run)?;
            runs::announce(&self.run, &id);
            vec![verify(&dataset, &id)]
        };
        let ok = runs.iter().all(Verified::is_ok);
        let document = Document { runs, ok };
        print(self.json, &document, |out| write_document(&document, out))?;
        Ok(if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

#[derive(Serialize)]
struct StateDocument {
    #[serde(flatten)]
    report: StateReport,
    ok: bool,
}

/// Checks a coordinator's state.
fn verify_state(folder: &Path, data: &Location, json: bool) -> Outcome {
    block_on(async {
        let report = maintenance::check(folder, data).await?;
        let ok = report.runs.iter().all(|run| run.problems.is_empty());
        let document = StateDocument { report, ok };
        print(json, &document, |out| write_state(&document.report, out))?;
        Ok(if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

fn write_state(report: &StateReport, out: &mut impl Write) -> io::Result<()> {
    let numbers = ["bouts", "exported", "problems"].map(|name| (name, Align::Right));
    let header: Vec<(&str, Align)> =
        [("run", Align::Left), ("state", Align::Left)].into_iter().chain(numbers).collect();
    let mut table = Table::new(&header);
    for RunReport { run, state, bouts, exported, problems } in &report.runs {
        let numbers = [*bouts, *exported, problems.len() as u64].map(|number| number.to_string());
        table.row([run.clone(), state.to_string()].into_iter().chain(numbers));
    }
    if report.runs.is_empty() {
        writeln!(out, "no runs")?;
    } else {
        table.write(out)?;
    }
    writeln!(out, "\nversion {}, epoch {}", report.version, report.epoch)?;
    for RunReport { run, problems, .. } in &report.runs {
        for problem in problems {
            writeln!(out, "{run}: {problem}")?;
        }
    }
    Ok(())
}

fn write_document(document: &Document, out: &mut impl Write) -> io::Result<()> {
    let mut table = Table::of_numbers("run", &["bouts", "games", "moves", "probes", "problems"]);
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
