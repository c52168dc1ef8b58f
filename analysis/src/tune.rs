//! The result of a tune, reconstructed from the dataset: its path, its answer and the validation match.
//!
//! Each bout depends on the results before it, so feeding the games to the schedule in order reproduces the path. Only
//! proposals of the Gaussian process are read from the records, because they may round differently on another processor.

use agon_arena::spec::Values;
use agon_arena::spec::tune::Tune;
use agon_records::{BoutRows, GameRow, Table};
use agon_schedule::schedule::{Schedule, ScheduleError};
use agon_schedule::tuning::{Step, Tuning};
use agon_stats::acquisition::Recommendation;
use agon_stats::pairs::{PairScore, Pairs, Scores};
use agon_storage::summarise;

use crate::dataset::{Dataset, DatasetError, Run};

/// An error while reading a tune.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TuneError {
    /// From the dataset.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// The spec cannot be scheduled.
    #[error("cannot schedule the spec of the run: {0}")]
    Schedule(#[from] ScheduleError),
    /// The run is not a tune.
    #[error("{run} is not a tune: its spec has no [tune]")]
    NoTune {
        /// The run.
        run: String,
    },
}

/// A tune at its current step.
#[derive(Debug)]
pub struct TuneResult {
    /// The tuned parameters and the method.
    pub tune: Tune,
    /// Scheduled steps.
    pub steps: u64,
    /// Completed steps.
    pub path: Vec<Step>,
    /// Current parameter values; the answer once all steps are complete.
    pub values: Vec<f64>,
    /// The answer, once all steps are complete.
    pub answer: Option<Values>,
    /// The score of the answer against the opponents that the Gaussian process predicts.
    pub expected: Option<Recommendation>,
    /// Pairs of the validation from the tuned player's view.
    pub validation: Pairs,
    /// The tuned player as a `[[player]]` table.
    pub player: Option<String>,
    /// Name of the tuned player.
    pub name: String,
    /// The tuning schedule.
    pub tuning: Tuning,
}

impl TuneResult {
    /// Reconstructs the tune of a run.
    pub fn read(dataset: &Dataset, run: &Run) -> Result<TuneResult, TuneError> {
        let spec = run.spec().map_err(DatasetError::from)?;
        let Some(tune) = spec.tune().cloned() else {
            return Err(TuneError::NoTune { run: run.id.clone() });
        };
        let mut schedule = Schedule::resume(spec)?;
        let validation = feed_results(dataset, run, &mut schedule)?;
        let spec = schedule.spec();
        let tuning = schedule.tuning().expect("the schedule of a tune has a tuning").clone();
        let answer = tuning.answer();
        let player = answer.as_ref().map(|values| {
            let name = &spec.players[tune.roles.tuned].name;
            let config = tune.configure(&spec.players[tune.roles.tuned].config, values);
            format!("[[player]]\nname = \"{name}\"\n{}", config.to_toml(&spec.game))
        });
        Ok(TuneResult {
            steps: tuning.steps(),
            path: tuning.path().collect(),
            values: tuning.values(),
            expected: tuning.recommendation(),
            name: spec.players[tune.player].name.clone(),
            answer,
            validation,
            player,
            tune,
            tuning,
        })
    }

    /// Returns the statistics of the validation match.
    pub fn validation_scores(&self) -> Scores {
        Scores::from(self.validation)
    }
}

/// Feeds the bouts of a tune to its schedule in order and returns the pairs of the validation; other runs are not read.
pub fn feed_results(dataset: &Dataset, run: &Run, schedule: &mut Schedule) -> Result<Pairs, DatasetError> {
    let mut validation = Pairs::default();
    let mut next = 0;
    let first_rated = schedule.spec().first_rated_bout();
    if first_rated == 0 {
        return Ok(validation);
    }
    for part in dataset.parts(run, Table::Games)? {
        for (bout, rows) in BoutRows::by_bout(part.games()?, [], []) {
            // A hole is a failed bout: an unfinished run has no bouts after one that is still open.
            for failed in next..bout.min(first_rated) {
                propose_recorded(schedule, failed, None);
                schedule.record(failed, None);
            }
            propose_recorded(schedule, bout, rows.games.first());
            let score = summarise(schedule.spec(), &(&rows).into()).half_points();
            schedule.record(bout, score);
            if let Some(score) = score.and_then(PairScore::from_half_points).filter(|_| bout >= first_rated) {
                validation.add(score);
            }
            next = bout + 1;
        }
    }
    Ok(validation)
}

/// Supplies a proposal that the schedule is waiting for, read from the recorded settings of a bout.
fn propose_recorded(schedule: &mut Schedule, bout: u64, row: Option<&GameRow>) {
    let Some(tuning) = schedule.tuning_mut().filter(|tuning| tuning.pending_proposal().is_some()) else {
        return;
    };
    if tuning.bout(bout).is_some() {
        return;
    }
    let tune = tuning.tune();
    let recorded = row.and_then(|row| row.settings.iter().find_map(|text| tune.read(text)));
    let values = recorded.unwrap_or_else(|| tune.start());
    tuning.add_proposals(vec![values]);
}
