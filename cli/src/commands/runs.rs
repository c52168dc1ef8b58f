//! Runs of a dataset, as the commands that analyse results select, load and describe them.

use std::num::NonZeroUsize;

use agon_analysis::results::{Results, results};
use agon_analysis::{Dataset, DatasetError, Run};
use agon_arena::Spec;
use agon_schedule::RunState;
use agon_storage::location::Location;
use anyhow::ensure;
use serde::Serialize;

use crate::fail::{self, bail_usage};

/// A run with its spec and results.
pub struct LoadedRun {
    /// The run.
    pub run: Run,
    /// Its spec.
    pub spec: Spec,
    /// Its results.
    pub results: Results,
}

/// The summary of a run in an answer.
#[derive(Serialize, Clone)]
pub struct RunSummary {
    /// The id.
    pub run: String,
    /// Whether the run is over.
    pub complete: bool,
    /// The bouts that count.
    pub bouts: u64,
    /// The bouts of the schedule.
    pub scheduled: u64,
    /// The progress in words.
    #[serde(skip)]
    pub progress: String,
}

/// Opens a dataset and finds a run by id, name or unique prefix, or the latest one.
pub fn open(data: &Location, asked: &str) -> Result<(Dataset, Run), DatasetError> {
    let dataset = Dataset::open(data)?;
    let run = dataset.find(asked)?;
    announce(asked, &run.id);
    Ok((dataset, run))
}

/// Names the run on standard error if the latest one was taken.
pub fn announce(asked: &str, id: &str) {
    if asked == "latest" {
        fail::note(&format!("run: {id} (latest)"));
    }
}

/// Loads runs in the given order. Rejects a run that would count twice.
pub fn load(data: &Location, asked: &[String], threads: NonZeroUsize) -> anyhow::Result<Vec<LoadedRun>> {
    let dataset = Dataset::open(data)?;
    let mut runs: Vec<LoadedRun> = Vec::new();
    for asked in asked {
        let run = dataset.find(asked)?;
        announce(asked, &run.id);
        if runs.iter().any(|known| known.run.id == run.id) {
            bail_usage!("{} is given twice; its bouts would count twice", run.id);
        }
        let spec = run.spec()?;
        let is_copy = |known: &&LoadedRun| {
            known.run.digest == run.digest && known.run.signature == run.signature && spec.is_repeatable()
        };
        if let Some(known) = runs.iter().find(is_copy) {
            bail_usage!(
                "{} and {} have the same games: they share a spec whose limits of nodes or depth make it repeatable; leave \
                 one out, or run the spec with another `seed`",
                known.run.id,
                run.id
            );
        }
        let results = results(&dataset, &run, &spec, threads)?;
        runs.push(LoadedRun { run, spec, results });
    }
    Ok(runs)
}

impl LoadedRun {
    /// Rejects a run without games.
    pub fn check_played(&self) -> anyhow::Result<()> {
        ensure!(self.results.tally.bouts() > 0, no_results(&self.run, self.results.found));
        Ok(())
    }

    /// Returns the summary.
    pub fn summary(&self) -> RunSummary {
        let LoadedRun { run, results, .. } = self;
        RunSummary {
            run: run.id.clone(),
            complete: run.is_complete(),
            bouts: results.tally.bouts(),
            scheduled: run.bouts,
            progress: progress(run, results.found),
        }
    }
}

/// Describes the progress of a run with `found` bouts in its dataset.
pub fn progress(run: &Run, found: u64) -> String {
    let total = run.bouts;
    let mut text = match run.state {
        RunState::Done => format!("all {total} bouts"),
        RunState::Decided => format!("decided with {found} of at most {total} bouts"),
        RunState::Cancelled => format!("cancelled, unfinished: {found} of {total} bouts are in the dataset"),
        RunState::Running | RunState::Paused => {
            let committed = run.committed.saturating_sub(run.failed) + run.voided.len() as u64;
            let more = match committed.saturating_sub(found) {
                0 => String::new(),
                // Committed behind one that is not.
                more => format!(", {more} to follow"),
            };
            format!("unfinished: {found} of {total} bouts are in the dataset{more}")
        }
    };
    for (count, what) in [(run.failed, "failed"), (run.voided.len() as u64, "void")] {
        if count > 0 {
            text.push_str(&format!(", {count} {what}"));
        }
    }
    text
}

/// Explains that a run has no results yet, and what to do.
pub fn no_results(run: &Run, found: u64) -> String {
    let (id, progress) = (&run.id, progress(run, found));
    match run.state {
        RunState::Running | RunState::Paused => format!(
            "{id} has nothing in its dataset yet ({progress}); bouts are exported every few seconds, in the order of the \
             schedule: continue the run"
        ),
        _ => format!("{id} has nothing in its dataset ({progress}); --again runs its spec once more"),
    }
}
