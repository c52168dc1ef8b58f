//! The tuning of a tune: what each of its bouts plays, by what came out before. Pure.
//!
//! A step, which is an iteration of SPSA or a trial of a Gaussian process, plays a fixed number of bouts. What step `k`
//! plays follows from the spec and from the results of a prefix of the schedule, so that the path is the same for any
//! number of workers and any order of arrival; a bout whose values do not follow yet cannot be made. Behind the last step
//! the tuned player meets the one that it started from, over openings that no step plays.
//!
//! Gaussian processes take a while and may round otherwise on another processor. So they are asked outside, as [`ProposalRequest`],
//! and what they say is handed in and kept; everything else is computed anew wherever it is needed.

use std::collections::BTreeMap;

use agon_arena::spec::tune::{Method, Parameter, number};
use agon_arena::spec::{Tune, Values};
use agon_stats::acquisition::{Dimension, Recommendation, Space, SpaceError, Trial};
use agon_stats::scale::Scale;
use agon_stats::spsa;

use crate::run::TuneManifest;

/// The bouts whose mean score is shown while a tune goes on.
const RECENT: u64 = 64;

/// What a bout of a tune came to for its first player: half points of its two games, or nothing where it failed.
pub type Score = Option<u8>;

/// Why a tune cannot be scheduled.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TuningError {
    /// Of SPSA.
    #[error(transparent)]
    Spsa(#[from] spsa::SettingsError),
    /// Of a Gaussian process.
    #[error(transparent)]
    Space(#[from] SpaceError),
}

/// Who plays a bout of a tune, with which values, over which opening.
#[derive(Clone, PartialEq, Debug)]
pub struct TuningBout {
    /// The players of the first game by seat.
    pub players: Vec<usize>,
    /// The values of those that have others than the spec says.
    pub values: Vec<(usize, Values)>,
    /// The opening: those of the validation come first.
    pub opening: u64,
}

/// One step that has been played.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// What its candidates had: plus and minus, or the trial alone.
    pub candidates: Vec<Values>,
    /// The mean score of its bouts for plus or for the trial; none where all failed.
    pub score: Option<f64>,
    /// Where the tune is after it; of a trial nothing is known before the end.
    pub after: Option<Vec<f64>>,
}

/// A tune under way.
#[derive(Clone, Debug)]
pub struct Tuning {
    tune: Tune,
    seed: u64,
    method: Search,
    /// The results of the first bouts, without a hole.
    results: Vec<Score>,
    /// Results beyond.
    waiting: BTreeMap<u64, Score>,
}

#[derive(Clone, Debug)]
enum Search {
    Spsa(Box<spsa::Tune>),
    /// The values of the trials so far, and behind the last the answer.
    Bayes {
        space: Space,
        proposals: Vec<Values>,
    },
}

/// A question to a Gaussian process.
#[derive(Clone, Debug)]
pub struct ProposalRequest {
    tune: Tune,
    space: Space,
    trials: Vec<Trial>,
    /// How many trials to suggest; none where the answer is wanted.
    count: Option<usize>,
    seed: u64,
}

impl ProposalRequest {
    /// Asks. Where there is nothing to learn from, because everything failed, the tune stays where it starts.
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
    /// A tune at its start.
    pub fn new(tune: &Tune, seed: u64) -> Result<Tuning, TuningError> {
        let bounds = |parameter: &Parameter| parameter.bounds.map(number);
        let method = match tune.method {
            Method::Spsa { window, rate } => {
                let parameter = |parameter: &Parameter| {
                    let [minimum, maximum] = bounds(parameter);
                    let step = parameter.step.unwrap_or_default();
                    spsa::Parameter {
                        name: parameter.path.clone(),
                        start: number(parameter.start),
                        minimum,
                        maximum,
                        scale: scale(parameter),
                        final_perturbation: scale(parameter).coordinate(step),
                        final_rate: rate,
                        whole: parameter.whole,
                    }
                };
                let settings = spsa::Settings {
                    parameters: tune.parameters.iter().map(parameter).collect(),
                    iterations: tune.bouts / tune.step_bouts(),
                    in_flight: window,
                    seed,
                };
                Search::Spsa(Box::new(spsa::Tune::new(settings)?))
            }
            Method::Bayes { .. } => {
                let dimension = |parameter: &Parameter| {
                    let [minimum, maximum] = bounds(parameter);
                    let (name, scale) = (parameter.path.clone(), scale(parameter));
                    Dimension { name, minimum, maximum, whole: parameter.whole, scale }
                };
                let space = Space::new(tune.parameters.iter().map(dimension).collect())?;
                Search::Bayes { space, proposals: Vec::new() }
            }
        };
        Ok(Tuning { tune: tune.clone(), seed, method, results: Vec::new(), waiting: BTreeMap::new() })
    }

    /// What is tuned, and how.
    pub fn tune(&self) -> &Tune {
        &self.tune
    }

    /// All bouts, the validation's included.
    pub fn bouts(&self) -> u64 {
        self.tune.bouts + self.tune.validation
    }

    /// How many steps there are.
    pub fn steps(&self) -> u64 {
        self.tune.bouts / self.tune.step_bouts()
    }

    /// How many steps are whole, without a hole before them.
    pub fn folded(&self) -> u64 {
        self.results.len() as u64 / self.tune.step_bouts()
    }

    /// Every bout below can be made.
    pub fn known(&self) -> u64 {
        let (steps, answered) = match &self.method {
            Search::Spsa(tune) => (tune.prefix() + tune.settings().in_flight, tune.finished()),
            Search::Bayes { proposals, .. } => {
                (proposals.len() as u64, proposals.len() as u64 > self.steps())
            }
        };
        if answered { self.bouts() } else { steps.min(self.steps()) * self.tune.step_bouts() }
    }

    /// What a bout plays, if that follows from what is known.
    pub fn bout(&self, bout: u64) -> Option<TuningBout> {
        let Tune { roles, opponents, validation, .. } = &self.tune;
        if bout >= self.tune.bouts {
            let opening = bout - self.tune.bouts;
            let values = vec![(roles.tuned, self.answer()?)];
            return (opening < *validation).then(|| TuningBout {
                players: vec![roles.tuned, self.tune.player],
                values,
                opening,
            });
        }
        let (step, place) = (bout / self.tune.step_bouts(), bout % self.tune.step_bouts());
        let candidates = self.candidates(step)?;
        // Of an iteration against others, plus and minus meet the same opponent over the same opening.
        let sides = if opponents.is_empty() { 1 } else { candidates.len() as u64 };
        let number = step * self.tune.pairs + place / sides;
        let opening = validation + number;
        let role = |side: usize| if side == 0 { Some(roles.plus) } else { roles.minus };
        let side = (place % sides) as usize;
        let (players, values) = match opponents.get((number % opponents.len().max(1) as u64) as usize) {
            Some(&opponent) => (vec![role(side)?, opponent], vec![(role(side)?, candidates[side].clone())]),
            None => {
                let values = candidates.into_iter().enumerate();
                let values: Vec<(usize, Values)> =
                    values.filter_map(|(side, values)| Some((role(side)?, values))).collect();
                (values.iter().map(|(player, _)| *player).collect(), values)
            }
        };
        Some(TuningBout { players, values, opening })
    }

    /// The values of a step's candidates: plus and minus, or the trial.
    fn candidates(&self, step: u64) -> Option<Vec<Values>> {
        match &self.method {
            Search::Spsa(tune) => {
                let proposal = tune.propose(step)?;
                Some([proposal.plus, proposal.minus].map(|side| self.tune.playable(&side)).to_vec())
            }
            Search::Bayes { proposals, .. } => {
                let trial = proposals.get(usize::try_from(step).ok()?)?;
                (step < self.steps()).then(|| vec![trial.clone()])
            }
        }
    }

    /// The tuned values, when all steps are folded.
    pub fn answer(&self) -> Option<Values> {
        match &self.method {
            Search::Spsa(tune) => tune.finished().then(|| self.tune.playable(tune.values())),
            Search::Bayes { proposals, .. } => proposals.get(usize::try_from(self.steps()).ok()?).cloned(),
        }
    }

    /// Notes what a bout came to. Those of the validation decide nothing here, and the first result of a bout stays.
    pub fn record(&mut self, bout: u64, score: Score) {
        if bout >= self.tune.bouts || bout < self.results.len() as u64 {
            return;
        }
        self.waiting.entry(bout).or_insert(score);
        while let Some(score) = self.waiting.remove(&(self.results.len() as u64)) {
            self.results.push(score);
            if (self.results.len() as u64).is_multiple_of(self.tune.step_bouts()) {
                self.fold();
            }
        }
    }

    /// Folds the step that has just become whole.
    fn fold(&mut self) {
        let iteration = self.folded() - 1;
        let result: i64 = self.scores(iteration).map(|(sign, half)| sign * (i64::from(half) - 2)).sum();
        if let Search::Spsa(tune) = &mut self.method {
            // The iterations come in their order, and each once.
            let recorded = tune.record(iteration, result as f64);
            debug_assert_eq!(recorded, Ok(()));
        }
    }

    /// The half points of a step's bouts that did not fail, each with the sign of its candidate.
    fn scores(&self, step: u64) -> impl Iterator<Item = (i64, u8)> + '_ {
        let count = self.tune.step_bouts() as usize;
        let both = count as u64 > self.tune.pairs;
        let first = step as usize * count;
        let bouts = self.results[first.min(self.results.len())..].iter().take(count).enumerate();
        bouts.filter_map(move |(place, half)| Some((if both && place % 2 == 1 { -1 } else { 1 }, (*half)?)))
    }

    /// The question that must be answered before the tune goes on.
    pub fn due(&self) -> Option<ProposalRequest> {
        let Search::Bayes { space, proposals } = &self.method else { return None };
        let (known, steps) = (proposals.len() as u64, self.steps());
        if known > steps || self.folded() < known {
            return None;
        }
        let Method::Bayes { batch } = self.tune.method else { return None };
        let count = (known < steps).then(|| batch.min(steps - known) as usize);
        let (tune, space, seed) = (self.tune.clone(), space.clone(), self.seed);
        Some(ProposalRequest { tune, space, trials: self.trials(), count, seed })
    }

    /// Takes the answer of such a question: the next trials, or the tuned values.
    pub fn settle(&mut self, found: Vec<Values>) {
        if let Search::Bayes { proposals, .. } = &mut self.method {
            proposals.extend(found);
        }
    }

    /// The trials that are played, as a Gaussian process sees them.
    fn trials(&self) -> Vec<Trial> {
        let Search::Bayes { proposals, .. } = &self.method else { return Vec::new() };
        let trial = |(step, values): (u64, &Values)| {
            let scores: Vec<f64> = self.scores(step).map(|(_, half)| f64::from(half) / 4.0).collect();
            let bouts = scores.len() as f64;
            if scores.is_empty() {
                return None;
            }
            let score = scores.iter().sum::<f64>() / bouts;
            // Two bouts of games without draws are believed beside those that were played, so that a clean score is not
            // certain.
            let smoothed = (score * bouts + 1.0) / (bouts + 2.0);
            let squares: f64 = scores.iter().map(|one| (one - score) * (one - score)).sum();
            let variance = (squares + smoothed * (1.0 - smoothed)) / (bouts + 1.0) / bouts;
            Some(Trial { values: values.numbers(), score, variance })
        };
        (0..self.folded()).zip(proposals).filter_map(trial).collect()
    }

    /// The expected score of the answer against the opponents with its interval, of a tune by a Gaussian process.
    pub fn recommendation(&self) -> Option<Recommendation> {
        let Search::Bayes { space, .. } = &self.method else { return None };
        space.recommend(&self.trials(), self.seed).ok()
    }

    /// The trials of a Gaussian process and the space that it searches.
    pub fn process(&self) -> Option<(&Space, Vec<Trial>, u64)> {
        match &self.method {
            Search::Spsa(_) => None,
            Search::Bayes { space, .. } => Some((space, self.trials(), self.seed)),
        }
    }

    /// Every step that is folded, in order.
    pub fn path(&self) -> impl Iterator<Item = Step> + '_ {
        (0..self.folded()).map(|step| {
            let (mut points, mut bouts) = (0.0, 0);
            for (sign, half) in self.scores(step) {
                points += if sign > 0 { f64::from(half) / 4.0 } else { 1.0 - f64::from(half) / 4.0 };
                bouts += 1;
            }
            let after = match &self.method {
                Search::Spsa(tune) => tune.path().get(step as usize + 1).cloned(),
                Search::Bayes { .. } => None,
            };
            let candidates = self.candidates(step).unwrap_or_default();
            Step { candidates, score: (bouts > 0).then(|| points / f64::from(bouts)), after }
        })
    }

    /// Where the tune is now: the values after the last folded step, of a Gaussian process the last
    /// that it suggested; at the end, the answer.
    pub fn values(&self) -> Vec<f64> {
        match (&self.method, self.answer()) {
            (_, Some(answer)) => answer.numbers(),
            (Search::Spsa(tune), None) => tune.values().to_vec(),
            // Where it looks now: nothing else is known before the end.
            (Search::Bayes { proposals, .. }, None) => {
                proposals.last().map_or_else(|| self.tune.start().numbers(), Values::numbers)
            }
        }
    }

    /// The mean score of the first players of the last bouts, and how many those are.
    pub fn recent(&self) -> Option<(f64, u64)> {
        let from = self.results.len().saturating_sub(RECENT as usize);
        let scores: Vec<f64> =
            self.results[from..].iter().flatten().map(|half| f64::from(*half) / 4.0).collect();
        let bouts = scores.len() as u64;
        (bouts > 0).then(|| (scores.iter().sum::<f64>() / bouts as f64, bouts))
    }

    /// Returns what the run's manifest says.
    pub fn manifest(&self) -> TuneManifest {
        TuneManifest {
            method: self.tune.method.name().to_string(),
            tuning_bouts: self.tune.bouts,
            start: self.tune.text(&self.tune.start()),
            tuned: self.answer().map(|values| self.tune.text(&values)),
        }
    }

    /// What must be kept of a Gaussian process.
    pub fn proposals(&self) -> &[Values] {
        match &self.method {
            Search::Spsa(_) => &[],
            Search::Bayes { proposals, .. } => proposals,
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

    /// The keys of `[tune]` behind its parameters would be the parameters', so that they are put before.
    fn tune(method: &str, opponents: &str) -> Tune {
        let (keys, parameters) = method.split_once("[[tune.parameter]]").unwrap();
        let parameters = parameters.trim_end_matches("[tune.x]");
        spec(&format!("{keys}{opponents}"), &format!("[[tune.parameter]]{parameters}"))
    }

    /// What a bout comes to depends on what it plays and on its number alone.
    fn score(cast: &TuningBout, bout: u64) -> Score {
        let value = cast.values.first().map_or(0, |(_, values)| values.0[0]);
        let draw = mix(value as u64, bout);
        if draw.is_multiple_of(17) { None } else { Some((draw % 5) as u8) }
    }

    fn settle(tuning: &mut Tuning) {
        while let Some(work) = tuning.due() {
            tuning.settle(work.run());
        }
    }

    /// Plays in order, one bout after another.
    fn in_order(tune: &Tune) -> (Tuning, Vec<TuningBout>) {
        let mut tuning = Tuning::new(tune, 7).unwrap();
        let mut bouts = Vec::new();
        for bout in 0..tuning.bouts() {
            settle(&mut tuning);
            assert!(tuning.known() > bout);
            let cast = tuning.bout(bout).unwrap();
            tuning.record(bout, score(&cast, bout));
            bouts.push(cast);
        }
        (tuning, bouts)
    }

    #[test]
    fn the_path_does_not_depend_on_the_order_of_arrival() {
        for (method, opponents) in [(SPSA, ""), (SPSA, "opponents = [\"uct\"]\n"), (BAYES, "")] {
            let tune = tune(method, opponents);
            let (calm, bouts) = in_order(&tune);
            assert_eq!(calm.folded(), calm.steps());
            for seed in 0..20 {
                let mut random = seeded(seed);
                let mut tuning = Tuning::new(&tune, 7).unwrap();
                let mut open: Vec<u64> = Vec::new();
                let mut next = 0;
                while tuning.folded() < tuning.steps() {
                    settle(&mut tuning);
                    // Everything that can be lent is, and comes back in any order; some of it twice.
                    open.extend(next..tuning.known());
                    next = tuning.known().max(next);
                    let bout = open.swap_remove(below(&mut random, open.len()));
                    let cast = tuning.bout(bout).unwrap();
                    assert_eq!(cast, bouts[bout as usize]);
                    tuning.record(bout, score(&cast, bout));
                    tuning.record(bout, Some(0));
                }
                settle(&mut tuning);
                assert_eq!(tuning.answer(), calm.answer());
                assert_eq!(tuning.path().collect::<Vec<_>>(), calm.path().collect::<Vec<_>>());
            }
        }
    }

    /// The laws of who plays what.
    #[test]
    fn casts_are_as_the_spec_says() {
        for (method, opponents, sides) in
            [(SPSA, "", 1), (SPSA, "opponents = [\"uct\"]\n", 2), (BAYES, "", 1)]
        {
            let tune = tune(method, opponents);
            let (tuning, bouts) = in_order(&tune);
            let roles = tune.roles;
            for (bout, cast) in bouts.iter().enumerate() {
                assert!(cast.values.iter().all(|(_, values)| tune.allows(values)), "{cast:?}");
                if bout < tune.bouts as usize {
                    // No opening of the validation, and both sides of an iteration over the same.
                    assert_eq!(cast.opening, 3 + bout as u64 / sides);
                } else {
                    assert_eq!(cast.opening, (bout as u64) - tune.bouts);
                    assert_eq!(cast.players, [roles.tuned, tune.player]);
                    assert_eq!(cast.values, [(roles.tuned, tuning.answer().unwrap())]);
                }
            }
            let first = &bouts[0];
            match (tune.method, sides) {
                (Method::Spsa { .. }, 1) => assert_eq!(first.players, [roles.plus, roles.minus.unwrap()]),
                _ => assert_eq!(first.players, [roles.plus, tune.player]),
            }
        }
    }

    /// Nothing is known before what it follows from, and exactly then.
    #[test]
    fn the_window_opens_with_the_prefix() {
        let mut tuning = Tuning::new(&tune(SPSA, ""), 7).unwrap();
        assert_eq!(tuning.known(), 12);
        assert_eq!(tuning.bout(12), None);
        for bout in [1, 2, 3, 4, 5] {
            tuning.record(bout, Some(4));
        }
        assert_eq!(tuning.known(), 12);
        tuning.record(0, Some(4));
        assert_eq!(tuning.known(), 18);
        assert!(tuning.bout(17).is_some() && tuning.bout(18).is_none() && tuning.bout(120).is_none());
        let mut tuning = Tuning::new(&tune(BAYES, ""), 7).unwrap();
        assert_eq!((tuning.known(), tuning.bout(0)), (0, None));
        settle(&mut tuning);
        assert_eq!(tuning.known(), 15);
    }

    /// An iteration against others adds what plus gains over minus.
    #[test]
    fn sides_count_with_their_signs() {
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
