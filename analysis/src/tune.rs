//! What a tune came to: its path, its answer and the match that proves it, made anew from the dataset.
//!
//! What each bout plays follows from the results before it, so that reading the games in their order gives the path again.
//! Only what a Gaussian process proposed is taken from the record: that may round otherwise on another processor.

use agon_arena::spec::Values;
use agon_arena::spec::tune::Tune;
use agon_records::{BoutRows, GameRow, Table};
use agon_schedule::schedule::{Schedule, ScheduleError};
use agon_schedule::tuning::{Step, Tuning};
use agon_stats::acquisition::Recommendation;
use agon_stats::pairs::{PairScore, Pairs, Scores};
use agon_storage::summarise;

use crate::dataset::{Dataset, DatasetError, Run};

/// Why a tune cannot be told.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TuneError {
    /// The dataset.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// Its schedule.
    #[error("the spec of the run cannot be scheduled: {0}")]
    Schedule(#[from] ScheduleError),
    /// It is something else.
    #[error("{run} is no tune; its spec has no [tune]")]
    NoTune {
        /// The run.
        run: String,
    },
}

/// A tune, as far as its dataset goes.
#[derive(Debug)]
pub struct Tuned {
    /// What is tuned, and how.
    pub tune: Tune,
    /// How many steps there will be.
    pub steps: u64,
    /// The steps that are whole.
    pub path: Vec<Step>,
    /// Where it is: at the end, the answer.
    pub values: Vec<f64>,
    /// The answer, when all steps are there.
    pub answer: Option<Values>,
    /// What a Gaussian process expects of its answer against the opponents.
    pub expected: Option<Recommendation>,
    /// The pairs of the validation, from the tuned player's view.
    pub validation: Pairs,
    /// The tuned player as a table of a spec.
    pub player: Option<String>,
    /// The name of the player that is tuned.
    pub name: String,
    /// The tuning itself, for whoever draws it.
    pub tuning: Tuning,
}

impl Tuned {
    /// Reads the tune of a run.
    pub fn read(dataset: &Dataset, run: &Run) -> Result<Tuned, TuneError> {
        let spec = run.spec().map_err(DatasetError::from)?;
        let Some(tune) = spec.tune().cloned() else {
            return Err(TuneError::NoTune { run: run.id.clone() });
        };
        let mut schedule = Schedule::resume(spec)?;
        let validation = follow(dataset, run, &mut schedule)?;
        let spec = schedule.spec();
        let tuning = schedule.tuning().expect("the schedule of a tune has a tuning").clone();
        let answer = tuning.answer();
        let player = answer.as_ref().map(|values| {
            let name = &spec.players[tune.roles.tuned].name;
            let config = tune.configure(&spec.players[tune.roles.tuned].config, values);
            format!("[[player]]\nname = \"{name}\"\n{}", config.to_toml(&spec.game))
        });
        Ok(Tuned {
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

    /// What the validation says of the tuned player against the one that it started from.
    pub fn proof(&self) -> Scores {
        Scores::from(self.validation)
    }
}

/// Tells a schedule what the bouts of its run came to, in their order, and returns the pairs of the validation. Of a run
/// that is no tune nothing is read.
pub fn follow(dataset: &Dataset, run: &Run, schedule: &mut Schedule) -> Result<Pairs, DatasetError> {
    let mut validation = Pairs::default();
    let mut next = 0;
    let tuning = schedule.spec().first_rated_bout();
    if tuning == 0 {
        return Ok(validation);
    }
    for part in dataset.parts(run, Table::Games)? {
        for (bout, rows) in BoutRows::by_bout(part.games()?, [], []) {
            // What is not there has failed; of a run that goes on nothing behind it is there either.
            for hole in next..bout.min(tuning) {
                propose(schedule, hole, None);
                schedule.learn(hole, None);
            }
            propose(schedule, bout, rows.games.first());
            let score = summarise(schedule.spec(), &(&rows).into()).half_points();
            schedule.learn(bout, score);
            if let Some(score) = score.and_then(PairScore::from_half_points).filter(|_| bout >= tuning) {
                validation.add(score);
            }
            next = bout + 1;
        }
    }
    Ok(validation)
}

/// Hands in what a Gaussian process proposed for a bout, by what was played there.
fn propose(schedule: &mut Schedule, bout: u64, row: Option<&GameRow>) {
    let Some(tuning) = schedule.tuning_mut().filter(|tuning| tuning.due().is_some()) else { return };
    if tuning.bout(bout).is_some() {
        return;
    }
    let tune = tuning.tune();
    let played = row.and_then(|row| row.settings.iter().find_map(|text| tune.read(text)));
    let values = played.unwrap_or_else(|| tune.start());
    tuning.settle(vec![values]);
}
