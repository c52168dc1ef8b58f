//! The schedule of a tuning run, whose bouts depend on earlier results.
//!
//! A step is an iteration of SPSA or a trial of a Gaussian process and plays a fixed number of bouts. The values of a step
//! depend on the spec and on the results of a prefix of the schedule, so the path is the same for any number of workers and
//! any order of results. After the last step a validation plays the tuned player against its start, over openings that no
//! step uses.
//!
//! A Gaussian process is slow, and its rounding may differ between processors. The caller therefore runs each
//! [`ProposalRequest`] once and stores the answer; everything else is recomputed where it is needed.

use std::collections::BTreeMap;

use agon_arena::Bout;
use agon_arena::spec::tune::{Method, Parameter, number};
use agon_arena::spec::{Tune, Values};
use agon_stats::acquisition::{Dimension, Recommendation, Space, SpaceError, Trial};
use agon_stats::scale::Scale;
use agon_stats::spsa;

use crate::remarks;
use crate::run::TuneManifest;

/// The number of bouts in the recent mean score.
const RECENT_BOUTS: u64 = 64;

/// The half points of a bout's first player over its two games; none if the bout failed.
pub type Score = Option<u8>;

/// Why a tuning run cannot be scheduled.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TuningError {
    /// The settings of SPSA are invalid.
    #[error(transparent)]
    Spsa(#[from] spsa::SettingsError),
    /// The space of a Gaussian process is invalid.
    #[error(transparent)]
    Space(#[from] SpaceError),
}

/// A completed step.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// The values of the candidates: plus and minus, or the trial alone.
    pub candidates: Vec<Values>,
    /// The mean score of plus or of the trial; none if all bouts failed.
    pub score: Option<f64>,
    /// The values after the step; a trial has none.
    pub after: Option<Vec<f64>>,
}

/// The state of a tuning run.
#[derive(Clone, Debug)]
pub struct Tuning {
    tune: Tune,
    seed: u64,
    method: MethodState,
    /// The results of the first bouts, without gaps.
    results: Vec<Score>,
    /// Results after the first gap.
    waiting: BTreeMap<u64, Score>,
}

#[derive(Clone, Debug)]
enum MethodState {
    Spsa(Box<spsa::Tune>),
    /// The values of the trials so far; after the last trial, the answer.
    Bayes {
        space: Space,
        proposals: Vec<Values>,
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
    /// Computes the proposals. If every trial failed, they are the start values.
    pub fn run(self) -> Vec<Values> {
        let found = match self.count {
            Some(count) => self.space.suggest(&self.trials, count, self.seed),
            None => self.space.recommend(&self.trials, self.seed).map(|answer| vec![answer.values]),
        };
        match found {
            Ok(found) => found.iter().map(|values| self.tune.playable(values)).collect(),
            Err(_) => vec![self.tune.start(); self.count.unwrap_or(1)],
        }
    }
}

fn scale(parameter: &Parameter) -> Scale {
    if parameter.log { Scale::Log } else { Scale::Linear }
}

impl Tuning {
    /// Creates a tuning run at its start.
    pub fn new(tune: &Tune, seed: u64) -> Result<Tuning, TuningError> {
        let bounds = |parameter: &Parameter| parameter.bounds.map(number);
        let method = match tune.method {
            Method::Spsa { window, rate } => {
                let parameter = |parameter: &Parameter| {
                    let [minimum, maximum] = bounds(parameter);
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
                MethodState::Spsa(Box::new(spsa::Tune::new(settings)?))
            }
            Method::Bayes { .. } => {
                let dimension = |parameter: &Parameter| {
                    let [minimum, maximum] = bounds(parameter);
                    let (name, scale) = (parameter.path.clone(), scale(parameter));
                    Dimension { name, minimum, maximum, whole: parameter.whole, scale }
                };
                let space = Space::new(tune.parameters.iter().map(dimension).collect())?;
                MethodState::Bayes { space, proposals: Vec::new() }
            }
        };
        Ok(Tuning { tune: tune.clone(), seed, method, results: Vec::new(), waiting: BTreeMap::new() })
    }

    /// Returns the settings.
    pub fn tune(&self) -> &Tune {
        &self.tune
    }

    /// Returns the number of bouts, validation included.
    pub fn bouts(&self) -> u64 {
        self.tune.bouts + self.tune.validation
    }

    /// Returns the number of steps.
    pub fn steps(&self) -> u64 {
        self.tune.bouts / self.tune.step_bouts()
    }

    /// Returns the number of completed steps before the first missing result.
    pub fn completed_steps(&self) -> u64 {
        self.results.len() as u64 / self.tune.step_bouts()
    }

    /// Returns the number of bouts that are determined by the results so far.
    pub fn known_bouts(&self) -> u64 {
        let (steps, answered) = match &self.method {
            MethodState::Spsa(tune) => (tune.prefix() + tune.settings().in_flight, tune.finished()),
            MethodState::Bayes { proposals, .. } => {
                (proposals.len() as u64, proposals.len() as u64 > self.steps())
            }
        };
        if answered { self.bouts() } else { steps.min(self.steps()) * self.tune.step_bouts() }
    }

    /// Returns a bout, if the results so far determine it. The openings of the validation are the first.
    pub fn bout(&self, index: u64) -> Option<Bout<u64>> {
        let Tune { roles, opponents, validation, .. } = &self.tune;
        let opening = self.opening(index);
        if index >= self.tune.bouts {
            let players = vec![roles.tuned, self.tune.player];
            let values = vec![(roles.tuned, self.answer()?)];
            return (opening < *validation).then_some(Bout { index, players, opening, values });
        }
        let (step, place) = (index / self.tune.step_bouts(), index % self.tune.step_bouts());
        let candidates = self.candidates(step)?;
        let number = opening - validation;
        let role = |side: usize| if side == 0 { Some(roles.plus) } else { roles.minus };
        let side = (place % self.sides()) as usize;
        let (players, values) = match opponents.get((number % opponents.len().max(1) as u64) as usize) {
            Some(&opponent) => (vec![role(side)?, opponent], vec![(role(side)?, candidates[side].clone())]),
            None => {
                let values = candidates.into_iter().enumerate();
                let values: Vec<(usize, Values)> =
                    values.filter_map(|(side, values)| Some((role(side)?, values))).collect();
                (values.iter().map(|(player, _)| *player).collect(), values)
            }
        };
        Some(Bout { index, players, opening, values })
    }

    /// Returns the number of the opening of a bout. The first openings are those of the validation.
    pub(crate) fn opening(&self, index: u64) -> u64 {
        let Tune { bouts, validation, pairs, .. } = self.tune;
        let (step, place) = (index / self.tune.step_bouts(), index % self.tune.step_bouts());
        index.checked_sub(bouts).unwrap_or_else(|| validation + step * pairs + place / self.sides())
    }

    /// Returns the greatest number of an opening of the bouts up to this one.
    pub(crate) fn last_opening(&self, index: u64) -> u64 {
        if index < self.tune.bouts { self.opening(index) } else { self.openings().saturating_sub(1) }
    }

    /// Returns the number of bouts with the same opening: in an iteration against opponents, plus and minus meet the same
    /// opponent over it.
    fn sides(&self) -> u64 {
        self.tune.step_bouts() / self.tune.pairs
    }

    /// Returns the number of openings.
    pub(crate) fn openings(&self) -> u64 {
        self.tune.validation + self.steps() * self.tune.pairs
    }

    /// Returns the values of a step's candidates: plus and minus, or the trial.
    fn candidates(&self, step: u64) -> Option<Vec<Values>> {
        match &self.method {
            MethodState::Spsa(tune) => {
                let proposal = tune.propose(step)?;
                Some([proposal.plus, proposal.minus].map(|side| self.tune.playable(&side)).to_vec())
            }
            MethodState::Bayes { proposals, .. } => {
                let trial = proposals.get(usize::try_from(step).ok()?)?;
                (step < self.steps()).then(|| vec![trial.clone()])
            }
        }
    }

    /// Returns the tuned values once all steps are complete.
    pub fn answer(&self) -> Option<Values> {
        match &self.method {
            MethodState::Spsa(tune) => tune.finished().then(|| self.tune.playable(&tune.answer())),
            MethodState::Bayes { proposals, .. } => {
                proposals.get(usize::try_from(self.steps()).ok()?).cloned()
            }
        }
    }

    /// Returns what the user should know about the answer, a sentence or two each; nothing before there is one.
    pub fn remarks(&self) -> Vec<String> {
        let Some(answer) = self.answer() else { return Vec::new() };
        let of_path = match &self.method {
            MethodState::Spsa(tune) => remarks::of_path(tune),
            MethodState::Bayes { .. } => Vec::new(),
        };
        let of_bounds = remarks::of_bounds(&self.tune.parameters, &answer.numbers());
        self.tune.advice().into_iter().chain(of_path).chain(of_bounds).collect()
    }

    /// Records the score of a bout. Ignores bouts of the validation and repeated results.
    pub fn record(&mut self, bout: u64, score: Score) {
        if bout >= self.tune.bouts || bout < self.results.len() as u64 {
            return;
        }
        self.waiting.entry(bout).or_insert(score);
        while let Some(score) = self.waiting.remove(&(self.results.len() as u64)) {
            self.results.push(score);
            if (self.results.len() as u64).is_multiple_of(self.tune.step_bouts()) {
                self.complete_step();
            }
        }
    }

    /// Applies the step whose last result has just arrived.
    fn complete_step(&mut self) {
        let iteration = self.completed_steps() - 1;
        let result: i64 = self.scores(iteration).map(|(sign, half)| sign * (i64::from(half) - 2)).sum();
        if let MethodState::Spsa(tune) = &mut self.method {
            // Iterations complete in order, each once.
            let recorded = tune.record(iteration, result as f64);
            debug_assert_eq!(recorded, Ok(()));
        }
    }

    /// Returns the half points of a step's bouts that did not fail, each with the sign of its candidate.
    fn scores(&self, step: u64) -> impl Iterator<Item = (i64, u8)> + '_ {
        let count = self.tune.step_bouts() as usize;
        let both = count as u64 > self.tune.pairs;
        let first = step as usize * count;
        let bouts = self.results[first.min(self.results.len())..].iter().take(count).enumerate();
        bouts.filter_map(move |(place, half)| Some((if both && place % 2 == 1 { -1 } else { 1 }, (*half)?)))
    }

    /// Returns the computation that the run waits for.
    pub fn pending_proposal(&self) -> Option<ProposalRequest> {
        let MethodState::Bayes { space, proposals } = &self.method else { return None };
        let (known, steps) = (proposals.len() as u64, self.steps());
        if known > steps || self.completed_steps() < known {
            return None;
        }
        let Method::Bayes { batch } = self.tune.method else { return None };
        let count = (known < steps).then(|| batch.min(steps - known) as usize);
        let (tune, space, seed) = (self.tune.clone(), space.clone(), self.seed);
        Some(ProposalRequest { tune, space, trials: self.trials(), count, seed })
    }

    /// Adds the result of a [`ProposalRequest`]: the next trials, or the tuned values.
    pub fn add_proposals(&mut self, found: Vec<Values>) {
        if let MethodState::Bayes { proposals, .. } = &mut self.method {
            proposals.extend(found);
        }
    }

    /// Returns the completed trials as input of a Gaussian process.
    fn trials(&self) -> Vec<Trial> {
        let MethodState::Bayes { proposals, .. } = &self.method else { return Vec::new() };
        let trial = |(step, values): (u64, &Values)| {
            let scores: Vec<f64> = self.scores(step).map(|(_, half)| f64::from(half) / 4.0).collect();
            Trial::new(values.numbers(), &scores)
        };
        (0..self.completed_steps()).zip(proposals).filter_map(trial).collect()
    }

    /// Returns the expected score of a Gaussian process's answer against the opponents, with its interval.
    pub fn recommendation(&self) -> Option<Recommendation> {
        let MethodState::Bayes { space, .. } = &self.method else { return None };
        space.recommend(&self.trials(), self.seed).ok()
    }

    /// Returns the space, the trials and the seed of a Gaussian process.
    pub fn gaussian_process(&self) -> Option<(&Space, Vec<Trial>, u64)> {
        match &self.method {
            MethodState::Spsa(_) => None,
            MethodState::Bayes { space, .. } => Some((space, self.trials(), self.seed)),
        }
    }

    /// Returns the completed steps in order.
    pub fn path(&self) -> impl Iterator<Item = Step> + '_ {
        (0..self.completed_steps()).map(|step| {
            let (mut points, mut bouts) = (0.0, 0);
            for (sign, half) in self.scores(step) {
                points += if sign > 0 { f64::from(half) / 4.0 } else { 1.0 - f64::from(half) / 4.0 };
                bouts += 1;
            }
            let after = match &self.method {
                MethodState::Spsa(tune) => tune.path().get(step as usize + 1).cloned(),
                MethodState::Bayes { .. } => None,
            };
            let candidates = self.candidates(step).unwrap_or_default();
            Step { candidates, score: (bouts > 0).then(|| points / f64::from(bouts)), after }
        })
    }

    /// Returns the answer if it is known, else the values after the last completed step or the last suggested trial.
    pub fn values(&self) -> Vec<f64> {
        match (&self.method, self.answer()) {
            (_, Some(answer)) => answer.numbers(),
            (MethodState::Spsa(tune), None) => tune.values().to_vec(),
            (MethodState::Bayes { proposals, .. }, None) => {
                proposals.last().map_or_else(|| self.tune.start().numbers(), Values::numbers)
            }
        }
    }

    /// Returns the mean score of the first player over the most recent bouts, and the number of these bouts.
    pub fn recent_score(&self) -> Option<(f64, u64)> {
        let from = self.results.len().saturating_sub(RECENT_BOUTS as usize);
        let scores: Vec<f64> =
            self.results[from..].iter().flatten().map(|half| f64::from(*half) / 4.0).collect();
        let bouts = scores.len() as u64;
        (bouts > 0).then(|| (scores.iter().sum::<f64>() / bouts as f64, bouts))
    }

    /// Returns the part of the run's manifest.
    pub fn manifest(&self) -> TuneManifest {
        TuneManifest {
            method: self.tune.method.name().to_string(),
            tuning_bouts: self.tune.bouts,
            start: self.tune.text(&self.tune.start()),
            tuned: self.answer().map(|values| self.tune.text(&values)),
        }
    }

    /// Returns the proposals of a Gaussian process, which must be stored.
    pub fn proposals(&self) -> &[Values] {
        match &self.method {
            MethodState::Spsa(_) => &[],
            MethodState::Bayes { proposals, .. } => proposals,
        }
    }
}

#[cfg(test)]
mod tests {
    use agon_arena::{Spec, SpecSource};
    use agon_games::random::{below, mix, seeded};

    use super::*;

    fn spec(method: &str, opponents: &str) -> Tune {
        let text = format!(
            "name = \"t\"\ngame = \"connect-four\"\nlimit = {{ nodes = 50 }}\nopenings = {{ random_plies = 4 }}\n\
             [tune]\nplayer = \"uct\"\n{method}\nvalidation = {{ bouts = 3 }}\n{opponents}\n\
             [[player]]\nname = \"uct\"\nsearch = {{ algorithm = \"uct\" }}\n"
        );
        let spec = Spec::parse(&SpecSource { text: text.clone(), ..SpecSource::default() });
        let spec = spec.unwrap_or_else(|error| panic!("{error}: {text}"));
        spec.tune().unwrap().clone()
    }

    const SPSA: &str = "method = \"spsa\"\nbouts = 120\npairs = 3\nwindow = 4\n\
        [[tune.parameter]]\npath = \"search.c\"\nstart = 2\nmin = 0.1\nmax = 5\nscale = \"log\"\nstep = 1.3\n\
        [[tune.parameter]]\npath = \"search.memory_mb\"\nstart = 8\nmin = 1\nmax = 64\nstep = 4\n[tune.x]";
    const BAYES: &str = "method = \"bayes\"\nbouts = 60\npairs = 3\nbatch = 5\n\
        [[tune.parameter]]\npath = \"search.c\"\nstart = 2\nmin = 0.1\nmax = 5\nscale = \"log\"\n[tune.x]";

    /// Parses a tune whose further keys stand before its parameters, as TOML needs.
    fn tune(method: &str, opponents: &str) -> Tune {
        let (keys, parameters) = method.split_once("[[tune.parameter]]").unwrap();
        let parameters = parameters.trim_end_matches("[tune.x]");
        spec(&format!("{keys}{opponents}"), &format!("[[tune.parameter]]{parameters}"))
    }

    /// Returns a score that depends only on the bout's values and its number.
    fn score(bout: &Bout<u64>) -> Score {
        let value = bout.values.first().map_or(0, |(_, values)| values.0[0]);
        let draw = mix(value as u64, bout.index);
        if draw.is_multiple_of(17) { None } else { Some((draw % 5) as u8) }
    }

    fn run_proposals(tuning: &mut Tuning) {
        while let Some(request) = tuning.pending_proposal() {
            tuning.add_proposals(request.run());
        }
    }

    /// Plays all bouts in order.
    fn play_in_order(tune: &Tune) -> (Tuning, Vec<Bout<u64>>) {
        let mut tuning = Tuning::new(tune, 7).unwrap();
        let mut bouts = Vec::new();
        for bout in 0..tuning.bouts() {
            run_proposals(&mut tuning);
            assert!(tuning.known_bouts() > bout);
            let played = tuning.bout(bout).unwrap();
            tuning.record(bout, score(&played));
            bouts.push(played);
        }
        (tuning, bouts)
    }

    #[test]
    fn path_does_not_depend_on_the_order_of_results() {
        for (method, opponents) in [(SPSA, ""), (SPSA, "opponents = [\"uct\"]\n"), (BAYES, "")] {
            let tune = tune(method, opponents);
            let (expected, bouts) = play_in_order(&tune);
            assert_eq!(expected.completed_steps(), expected.steps());
            for seed in 0..20 {
                let mut random = seeded(seed);
                let mut tuning = Tuning::new(&tune, 7).unwrap();
                let mut open: Vec<u64> = Vec::new();
                let mut next = 0;
                while tuning.completed_steps() < tuning.steps() {
                    run_proposals(&mut tuning);
                    // All determined bouts are leased; results arrive in random order, each bout's twice.
                    open.extend(next..tuning.known_bouts());
                    next = tuning.known_bouts().max(next);
                    let bout = open.swap_remove(below(&mut random, open.len()));
                    let played = tuning.bout(bout).unwrap();
                    assert_eq!(played, bouts[bout as usize]);
                    tuning.record(bout, score(&played));
                    tuning.record(bout, Some(0));
                }
                run_proposals(&mut tuning);
                assert_eq!(tuning.answer(), expected.answer());
                assert_eq!(tuning.path().collect::<Vec<_>>(), expected.path().collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn bouts_have_the_players_values_and_openings_of_the_spec() {
        for (method, opponents, sides) in
            [(SPSA, "", 1), (SPSA, "opponents = [\"uct\"]\n", 2), (BAYES, "", 1)]
        {
            let tune = tune(method, opponents);
            let (tuning, bouts) = play_in_order(&tune);
            let roles = tune.roles;
            for (bout, tuning_bout) in bouts.iter().enumerate() {
                assert!(tuning_bout.values.iter().all(|(_, values)| tune.allows(values)), "{tuning_bout:?}");
                if bout < tune.bouts as usize {
                    // Not an opening of the validation; both sides of an iteration share one.
                    assert_eq!(tuning_bout.opening, 3 + bout as u64 / sides);
                } else {
                    assert_eq!(tuning_bout.opening, (bout as u64) - tune.bouts);
                    assert_eq!(tuning_bout.players, [roles.tuned, tune.player]);
                    assert_eq!(tuning_bout.values, [(roles.tuned, tuning.answer().unwrap())]);
                }
            }
            let first = &bouts[0];
            match (tune.method, sides) {
                (Method::Spsa { .. }, 1) => assert_eq!(first.players, [roles.plus, roles.minus.unwrap()]),
                _ => assert_eq!(first.players, [roles.plus, tune.player]),
            }
        }
    }

    #[test]
    fn bouts_are_determined_as_soon_as_the_prefix_is_complete() {
        let mut tuning = Tuning::new(&tune(SPSA, ""), 7).unwrap();
        assert_eq!(tuning.known_bouts(), 12);
        assert_eq!(tuning.bout(12), None);
        for bout in [1, 2, 3, 4, 5] {
            tuning.record(bout, Some(4));
        }
        assert_eq!(tuning.known_bouts(), 12);
        tuning.record(0, Some(4));
        assert_eq!(tuning.known_bouts(), 18);
        assert!(tuning.bout(17).is_some() && tuning.bout(18).is_none() && tuning.bout(120).is_none());
        let mut tuning = Tuning::new(&tune(BAYES, ""), 7).unwrap();
        assert_eq!((tuning.known_bouts(), tuning.bout(0)), (0, None));
        run_proposals(&mut tuning);
        assert_eq!(tuning.known_bouts(), 15);
    }

    #[test]
    fn answers_without_effect_and_at_bounds_are_remarked() {
        let tune = tune(SPSA, "");
        let remarks = |score: fn(&Bout<u64>) -> Score| {
            let mut tuning = Tuning::new(&tune, 7).unwrap();
            for bout in 0..tuning.tune.bouts {
                assert_eq!(tuning.remarks(), Vec::<String>::new());
                let played = tuning.bout(bout).unwrap();
                tuning.record(bout, score(&played));
            }
            tuning.remarks().join("\n")
        };
        let same = remarks(|_| Some(2));
        assert!(same.contains("scored the same in 40 of 40 iterations"), "{same}");
        // Greater constants always win.
        let greater = remarks(|bout| Some(if bout.values[0].1.0[0] > bout.values[1].1.0[0] { 4 } else { 0 }));
        assert!(greater.contains("`search.c` ended at its `max` of 5"), "{greater}");
        assert!(!greater.contains("chance"), "{greater}");
    }

    /// An iteration against opponents moves by the gain of plus over minus.
    #[test]
    fn scores_of_minus_count_negatively() {
        let tune = tune(SPSA, "opponents = [\"uct\"]\n");
        let path = |halves: [u8; 6]| {
            let mut tuning = Tuning::new(&tune, 7).unwrap();
            for (bout, half) in (0..).zip(halves) {
                tuning.record(bout, Some(half));
            }
            tuning.path().next().unwrap().after.unwrap()
        };
        let start = tune.start().numbers();
        assert_eq!(path([2; 6]), start);
        assert_eq!(path([4, 4, 1, 1, 3, 3]), start);
        let (up, down) = (path([4, 0, 4, 0, 4, 0]), path([0, 4, 0, 4, 0, 4]));
        assert!((up[0] - start[0]) * (down[0] - start[0]) < 0.0, "{up:?} {down:?}");
    }
}
