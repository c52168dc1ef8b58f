//! One repeat of a tuning run: its steps in order, from the start to the tuned values.

use agon_arena::spec::tune::{ImportedTrial, Method, Parameter, number};
use agon_arena::spec::{Tune, Values};
use agon_stats::acquisition::{Dimension, Space, Trial};
use agon_stats::elo::difference;
use agon_stats::scale::Scale;
use agon_stats::spsa;

use super::{Proposal, Score, TuningError};
use crate::remarks;

/// A completed step.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// The repeat, counted from 0.
    pub repeat: u64,
    /// The values of the candidates: plus and minus, or the trial alone.
    pub candidates: Vec<Values>,
    /// The number of bouts that did not fail.
    pub bouts: u64,
    /// The mean score of plus or of the trial; none if all bouts failed.
    pub score: Option<f64>,
    /// The variance of the score of a bout; none for fewer than two bouts.
    pub variance: Option<f64>,
    /// The values after the step; a trial has none.
    pub after: Option<Vec<f64>>,
}

/// One repeat of a tuning run.
#[derive(Clone, Debug)]
pub(super) struct Stage {
    tune: Tune,
    repeat: u64,
    seed: u64,
    /// The number of its first bout.
    first: u64,
    /// The number of its first opening, without those of the validation.
    first_opening: u64,
    method: MethodState,
    /// The results of the first bouts, without gaps.
    results: Vec<Score>,
}

#[derive(Clone, Debug)]
enum MethodState {
    Spsa(Box<spsa::Tune>),
    /// The values of the trials so far, and the answer after the last one.
    Bayes {
        space: Space,
        trials: Vec<Values>,
        answer: Option<Values>,
    },
}

/// A computation that a tuning run with a Gaussian process waits for.
#[derive(Clone, Debug)]
pub struct ProposalRequest {
    tune: Tune,
    space: Space,
    trials: Vec<Trial>,
    /// The number of trials to suggest; none asks for the answer.
    count: Option<usize>,
    seed: u64,
}

impl ProposalRequest {
    /// Returns whether all trials are complete, so that only the answer is missing.
    pub fn asks_for_answer(&self) -> bool {
        self.count.is_none()
    }

    /// Computes the proposals. If every trial failed, they are the start values.
    pub fn run(self) -> Vec<Proposal> {
        let answer = |found: Option<Vec<f64>>| {
            let values = found.map_or_else(|| self.tune.start(), |values| self.tune.playable(&values));
            vec![Proposal::answer(values)]
        };
        let Some(count) = self.count else {
            return answer(self.space.recommend(&self.trials, self.seed).ok().map(|found| found.values));
        };
        // Before the regression takes over, there is no interval.
        if let Some(precision) = self.tune.precision
            && self.trials.len() >= self.space.initial_trials()
            && let Ok(found) = self.space.recommend(&self.trials, self.seed)
            && difference(found.score.high) - difference(found.score.low) <= 2.0 * precision
        {
            return answer(Some(found.values));
        }
        match self.space.suggest(&self.trials, count, self.seed) {
            Ok(found) => found.iter().map(|values| Proposal::Trial(self.tune.playable(values).0)).collect(),
            Err(_) => vec![Proposal::Trial(self.tune.start().0); count],
        }
    }
}

fn scale(parameter: &Parameter) -> Scale {
    if parameter.log { Scale::Log } else { Scale::Linear }
}

fn spsa_state(tune: &Tune, window: u64, rate: Option<f64>, seed: u64) -> Result<MethodState, TuningError> {
    let parameter = |parameter: &Parameter| {
        let [minimum, maximum] = parameter.bounds.map(number);
        spsa::Parameter {
            name: parameter.path.clone(),
            start: number(parameter.start),
            minimum,
            maximum,
            scale: scale(parameter),
            final_perturbation: parameter.step.map(|step| scale(parameter).coordinate(step)),
            whole: parameter.whole,
        }
    };
    let settings = spsa::Settings {
        parameters: tune.parameters.iter().map(parameter).collect(),
        iterations: tune.bouts / tune.step_bouts(),
        in_flight: window,
        pairs: tune.pairs,
        final_rate: rate,
        seed,
    };
    Ok(MethodState::Spsa(Box::new(spsa::Tune::new(settings)?)))
}

fn bayes_state(tune: &Tune) -> Result<MethodState, TuningError> {
    let dimension = |parameter: &Parameter| {
        let [minimum, maximum] = parameter.bounds.map(number);
        let (name, scale) = (parameter.path.clone(), scale(parameter));
        Dimension { name, minimum, maximum, whole: parameter.whole, scale }
    };
    let space = Space::new(tune.parameters.iter().map(dimension).collect())?;
    Ok(MethodState::Bayes { space, trials: Vec::new(), answer: None })
}

impl Stage {
    /// Creates a repeat that begins with a bout and an opening.
    pub(super) fn new(
        tune: &Tune,
        seed: u64,
        repeat: u64,
        first: u64,
        first_opening: u64,
    ) -> Result<Stage, TuningError> {
        // The first repeat is the tune without repeats.
        let seed = if repeat == 0 { seed } else { agon_games::random::mix(seed, repeat) };
        let method = match tune.method {
            Method::Spsa { window, rate } => spsa_state(tune, window, rate, seed)?,
            Method::Bayes { .. } => bayes_state(tune)?,
        };
        Ok(Stage { tune: tune.clone(), repeat, seed, first, first_opening, method, results: Vec::new() })
    }

    /// Returns the number of steps: the most that there can be, until the answer is known.
    fn steps(&self) -> u64 {
        match &self.method {
            MethodState::Bayes { trials, answer: Some(_), .. } => trials.len() as u64,
            _ => self.tune.bouts / self.tune.step_bouts(),
        }
    }

    /// Returns the number of the first bout after this stage, as far as it is known.
    pub(super) fn end(&self) -> u64 {
        self.first + self.steps() * self.tune.step_bouts()
    }

    /// Returns the number of the first opening after this stage, as far as it is known.
    pub(super) fn openings_end(&self) -> u64 {
        self.first_opening + self.steps() * self.tune.pairs
    }

    /// Returns the number of the first bout without a result.
    pub(super) fn played(&self) -> u64 {
        self.first + self.results.len() as u64
    }

    /// Returns the scores of the first bouts.
    pub(super) fn results(&self) -> &[Score] {
        &self.results
    }

    /// Returns the number of completed steps.
    pub(super) fn completed_steps(&self) -> u64 {
        self.results.len() as u64 / self.tune.step_bouts()
    }

    /// Returns the number of the first bout that the results so far do not determine.
    pub(super) fn known_bouts(&self) -> u64 {
        let known = match &self.method {
            MethodState::Spsa(tune) => tune.prefix() + tune.settings().in_flight,
            MethodState::Bayes { trials, .. } => trials.len() as u64,
        };
        self.first + known.min(self.steps()) * self.tune.step_bouts()
    }

    /// Returns the step of a bout.
    pub(super) fn step(&self, bout: u64) -> u64 {
        (bout - self.first) / self.tune.step_bouts()
    }

    /// Returns the side that plays a bout.
    pub(super) fn side(&self, bout: u64) -> usize {
        self.tune.opening_and_side((bout - self.first) % self.tune.step_bouts()).1
    }

    /// Returns the number of the opening of a bout, without those of the validation.
    pub(super) fn opening(&self, bout: u64) -> u64 {
        let place = (bout - self.first) % self.tune.step_bouts();
        self.first_opening + self.step(bout) * self.tune.pairs + self.tune.opening_and_side(place).0
    }

    /// Returns the values of a step's candidates: plus and minus, or the trial.
    pub(super) fn candidates(&self, step: u64) -> Option<Vec<Values>> {
        match &self.method {
            MethodState::Spsa(tune) => {
                let proposal = tune.propose(step)?;
                Some([proposal.plus, proposal.minus].map(|side| self.tune.playable(&side)).to_vec())
            }
            MethodState::Bayes { trials, .. } => {
                trials.get(usize::try_from(step).ok()?).map(|trial| vec![trial.clone()])
            }
        }
    }

    /// Returns the tuned values once all steps are complete.
    pub(super) fn answer(&self) -> Option<Values> {
        match &self.method {
            MethodState::Spsa(tune) => tune.finished().then(|| self.tune.playable(&tune.answer())),
            MethodState::Bayes { answer, .. } => answer.clone(),
        }
    }

    /// Returns what the user should know about the answer; nothing before there is one.
    pub(super) fn remarks(&self) -> Vec<String> {
        let Some(answer) = self.answer() else { return Vec::new() };
        let of_path = match &self.method {
            MethodState::Spsa(tune) => remarks::of_path(tune),
            MethodState::Bayes { .. } => Vec::new(),
        };
        let of_bounds = remarks::of_bounds(&self.tune.parameters, &answer.numbers());
        self.tune.advice().into_iter().chain(of_path).chain(of_bounds).collect()
    }

    /// Returns whether the answer is known and all results up to it.
    pub(super) fn is_over(&self) -> bool {
        self.answer().is_some() && self.played() == self.end()
    }

    /// Records the score of the next bout.
    pub(super) fn record(&mut self, score: Score) {
        self.results.push(score);
        if !(self.results.len() as u64).is_multiple_of(self.tune.step_bouts()) {
            return;
        }
        let iteration = self.completed_steps() - 1;
        // Wins less losses of plus, where a bout counts as two games.
        let result: i64 =
            self.scores(iteration).map(|(sign, score)| sign * (4 * i64::from(score) - 2000)).sum();
        if let MethodState::Spsa(tune) = &mut self.method {
            // Iterations complete in order, each once.
            let recorded = tune.record(iteration, result as f64 / 1000.0);
            debug_assert_eq!(recorded, Ok(()));
        }
    }

    /// Returns the scores of a step's bouts that did not fail, each with the sign of its candidate.
    fn scores(&self, step: u64) -> impl Iterator<Item = (i64, u16)> + '_ {
        let count = self.tune.step_bouts();
        let first = ((step * count) as usize).min(self.results.len());
        let bouts = (0..count).zip(&self.results[first..]);
        bouts.filter_map(|(place, score)| {
            Some((if self.tune.opening_and_side(place).1 == 1 { -1 } else { 1 }, (*score)?))
        })
    }

    /// Returns the computation that the stage waits for.
    pub(super) fn pending_proposal(&self) -> Option<ProposalRequest> {
        let (MethodState::Bayes { space, trials, answer: None }, Method::Bayes { batch }) =
            (&self.method, self.tune.method)
        else {
            return None;
        };
        let (known, steps) = (trials.len() as u64, self.steps());
        if self.completed_steps() < known {
            return None;
        }
        let count = (known < steps).then(|| batch.min(steps - known) as usize);
        let (tune, space, seed) = (self.tune.clone(), space.clone(), self.seed);
        Some(ProposalRequest { tune, space, trials: self.trials(), count, seed })
    }

    /// Adds a decision of a Gaussian process. Returns the end of the stage and the scores recorded beyond it, which belong to
    /// the next one.
    pub(super) fn add_proposal(&mut self, proposal: Proposal) -> (u64, Vec<Score>) {
        if let MethodState::Bayes { trials, answer, .. } = &mut self.method {
            match proposal {
                Proposal::Trial(values) => trials.push(Values(values)),
                Proposal::Answer { answer: values } => *answer = Some(Values(values)),
            }
        }
        let end = self.end();
        (end, self.results.split_off(self.results.len().min((end - self.first) as usize)))
    }

    /// Returns the number of decisions of a Gaussian process.
    pub(super) fn proposals(&self) -> usize {
        match &self.method {
            MethodState::Spsa(_) => 0,
            MethodState::Bayes { trials, answer, .. } => trials.len() + usize::from(answer.is_some()),
        }
    }

    /// Returns the imported and the completed trials as input of a Gaussian process.
    fn trials(&self) -> Vec<Trial> {
        let MethodState::Bayes { trials, .. } = &self.method else { return Vec::new() };
        let imported = self.tune.imported.iter().map(|trial| {
            let ImportedTrial { values, bouts, score, variance } = trial;
            let squares = *variance * *bouts as f64;
            Trial { values: values.numbers(), bouts: *bouts, score: *score, squares }
        });
        let trial = |(step, values): (u64, &Values)| {
            let scores: Vec<f64> = self.scores(step).map(|(_, score)| f64::from(score) / 1000.0).collect();
            Trial::new(values.numbers(), &scores)
        };
        imported.chain((0..self.completed_steps()).zip(trials).filter_map(trial)).collect()
    }

    /// Returns the space, the trials and the seed of a Gaussian process.
    pub(super) fn gaussian_process(&self) -> Option<(&Space, Vec<Trial>, u64)> {
        match &self.method {
            MethodState::Spsa(_) => None,
            MethodState::Bayes { space, .. } => Some((space, self.trials(), self.seed)),
        }
    }

    /// Returns the completed steps in order.
    pub(super) fn path(&self) -> impl Iterator<Item = Step> + '_ {
        (0..self.completed_steps()).map(|step| {
            let points = |(sign, score): (i64, u16)| {
                let score = f64::from(score) / 1000.0;
                if sign > 0 { score } else { 1.0 - score }
            };
            let trial = Trial::new(Vec::new(), &self.scores(step).map(points).collect::<Vec<f64>>());
            let after = match &self.method {
                MethodState::Spsa(tune) => tune.path().get(step as usize + 1).cloned(),
                MethodState::Bayes { .. } => None,
            };
            let several = trial.as_ref().filter(|trial| trial.bouts > 1);
            Step {
                repeat: self.repeat,
                candidates: self.candidates(step).unwrap_or_default(),
                bouts: trial.as_ref().map_or(0, |trial| trial.bouts),
                score: trial.as_ref().map(|trial| trial.score),
                variance: several.map(|trial| trial.squares / (trial.bouts - 1) as f64),
                after,
            }
        })
    }

    /// Returns the answer if it is known, else the values after the last completed step or the last suggested trial.
    pub(super) fn values(&self) -> Vec<f64> {
        match (&self.method, self.answer()) {
            (_, Some(answer)) => answer.numbers(),
            (MethodState::Spsa(tune), None) => tune.values().to_vec(),
            (MethodState::Bayes { trials, .. }, None) => {
                trials.last().map_or_else(|| self.tune.start().numbers(), Values::numbers)
            }
        }
    }
}
