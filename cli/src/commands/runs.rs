//! Runs of a dataset, as the commands that analyse results select, load and describe them.

use std::num::NonZeroUsize;

use agon_analysis::results::{Results, results};
use agon_analysis::{Dataset, DatasetError, Run};
use agon_arena::Spec;
use agon_arena::spec::Plan;
use agon_records::Table;
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

/// Opens a dataset and finds a run like [`open`]. Rejects a run without bouts in the dataset.
pub fn open_started(data: &Location, asked: &str) -> anyhow::Result<(Dataset, Run)> {
    let (dataset, run) = open(data, asked)?;
    let table = match run.spec()?.plan {
        Plan::Probe(_) => Table::Probes,
        Plan::Tournament(_) | Plan::Tune(_) => Table::Games,
    };
    // A part that should be there is missing, which is another error.
    let is_damaged = run.exported > run.failed && run.state != RunState::Cancelled;
    ensure!(is_damaged || !dataset.parts(&run, table)?.is_empty(), nothing_yet(&run));
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
        let LoadedRun { run, spec, results } = self;
        ensure!(results.tally.bouts() > 0, nothing_rated(run, spec, results.found));
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

/// States how much of an open run is in its dataset, in a sentence; `unit`s are bouts or positions.
pub fn not_over(found: u64, scheduled: u64, unit: &str) -> String {
    format!("The run is not over: {found} of its {scheduled} {unit} are in the dataset.")
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

/// Explains that a run has nothing in its dataset yet, and what to do.
fn nothing_yet(run: &Run) -> String {
    let (id, progress) = (&run.id, progress(run, 0));
    match run.state {
        RunState::Running | RunState::Paused => format!(
            "{id} has nothing in its dataset yet ({progress}); bouts are exported every few seconds, in the order of the \
             schedule: continue the run"
        ),
        _ => format!("{id} has nothing in its dataset ({progress}); --again runs its spec once more"),
    }
}

/// Explains that none of the bouts in the dataset of a run counts for ratings.
pub fn nothing_rated(run: &Run, spec: &Spec, found: u64) -> String {
    let (id, progress) = (&run.id, progress(run, found));
    match spec.tune() {
        _ if found == 0 => nothing_yet(run),
        Some(_) => format!(
            "{id} has no rated bouts yet ({progress}): only the validation of a tuning run is rated; `agon tune {id}` shows \
             its values so far"
        ),
        None => format!("{id} has no bouts that count ({progress})"),
    }
}
