//! Runs of a dataset as the commands that ask for results take them: found, counted, and told in a line.

use std::num::NonZeroUsize;

use agon_analysis::results::{Results, results};
use agon_analysis::{Dataset, DatasetError, Run};
use agon_arena::Spec;
use agon_schedule::RunState;
use agon_storage::location::Location;
use serde::Serialize;

use crate::fail::{self, WrongCall};

/// A run with its results.
pub struct Counted {
    /// The run.
    pub run: Run,
    /// Its spec.
    pub spec: Spec,
    /// Its results.
    pub results: Results,
}

/// A run as the output tells it.
#[derive(Serialize, Clone)]
pub struct Told {
    /// Its id.
    pub run: String,
    /// Whether everything was played that was asked for.
    pub complete: bool,
    /// Bouts that count.
    pub bouts: u64,
    /// How many its schedule has.
    pub scheduled: u64,
    /// How far it is, in words.
    #[serde(skip)]
    pub standing: String,
}

/// Finds a run by id, name or unique prefix, or the latest one.
pub fn find(dataset: &Dataset, asked: &str) -> Result<Run, DatasetError> {
    let run = dataset.find(asked)?;
    announce(asked, &run.id);
    Ok(run)
}

/// Names the run on standard error if the latest one was taken.
pub fn announce(asked: &str, id: &str) {
    if asked == "latest" {
        fail::tell(&format!("run: {id} (latest)"));
    }
}

/// Reads the results of runs, each once, in the order in which they are asked for.
pub fn read(data: &Location, asked: &[String], threads: NonZeroUsize) -> anyhow::Result<Vec<Counted>> {
    let dataset = Dataset::open(data)?;
    let mut runs: Vec<Counted> = Vec::new();
    for asked in asked {
        let run = find(&dataset, asked)?;
        if runs.iter().any(|known| known.run.id == run.id) {
            return Err(WrongCall(format!("{} is given twice; its bouts would count twice", run.id)).into());
        }
        let spec = run.spec()?;
        let copy = |known: &&Counted| {
            known.run.digest == run.digest && known.run.signature == run.signature && spec.is_repeatable()
        };
        if let Some(known) = runs.iter().find(copy) {
            return Err(WrongCall(format!(
                "{} and {} have the same games: their spec is the same, and its limits of nodes or depth make every search \
                 come out alike; leave one out, or run the spec with another `seed`",
                known.run.id, run.id
            ))
            .into());
        }
        let results = results(&dataset, &run, &spec, threads)?;
        runs.push(Counted { run, spec, results });
    }
    Ok(runs)
}

impl Counted {
    /// Refuses to rate where there are no games yet.
    pub fn check_played(&self) -> Result<(), WrongCall> {
        match self.results.tally.bouts() {
            0 => {
                Err(WrongCall(format!("there is nothing to rate: {}", empty(&self.run, self.results.found))))
            }
            _ => Ok(()),
        }
    }

    /// How the output tells it.
    pub fn told(&self) -> Told {
        let Counted { run, results, .. } = self;
        Told {
            run: run.id.clone(),
            complete: run.is_complete(),
            bouts: results.tally.bouts(),
            scheduled: run.bouts,
            standing: standing(run, results.found),
        }
    }
}

/// How far a run is, in words, where so many of its bouts were found.
pub fn standing(run: &Run, found: u64) -> String {
    let total = run.bouts;
    let mut text = match run.state {
        RunState::Done => format!("all {total} bouts"),
        RunState::Decided => format!("decided with {found} of at most {total} bouts"),
        RunState::Cancelled => format!("cancelled, unfinished: {found} of {total} bouts are in the dataset"),
        RunState::Running | RunState::Paused => {
            format!("unfinished: {found} of {total} bouts are in the dataset")
        }
    };
    for (count, what) in [(run.failed, "failed"), (run.voided.len() as u64, "void")] {
        if count > 0 {
            text.push_str(&format!(", {count} {what}"));
        }
    }
    text
}

/// That a run has nothing in its dataset that counts, and what to do.
pub fn empty(run: &Run, found: u64) -> String {
    let (id, standing) = (&run.id, standing(run, found));
    match run.state {
        RunState::Running | RunState::Paused => format!(
            "{id} has nothing in its dataset yet ({standing}); bouts reach it in parts, the last of them when the run ends: \
             let it go on"
        ),
        _ => format!("{id} has nothing in its dataset ({standing}); --again runs its spec once more"),
    }
}

/// How many threads a command uses where nobody says.
pub fn cores() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}
