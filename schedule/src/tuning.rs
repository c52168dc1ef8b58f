//! The schedule of a tuning run, whose bouts depend on earlier results.
//!
//! A step is an iteration of SPSA or a trial of a Gaussian process and plays a fixed number of bouts. The values of a step
//! depend on the spec and on the results of a prefix of the schedule, so the path is the same for any number of workers and
//! any order of results. The repeats of a tune follow each other (`stage.rs`). After the last one a validation plays each
//! tuned player against its start and other players, over openings that no step uses.
//!
//! A Gaussian process is slow, and its rounding may differ between processors. The caller therefore runs each
//! [`ProposalRequest`] once and stores the answer; everything else is recomputed where it is needed.

mod stage;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use agon_arena::Bout;
use agon_arena::spec::{Tune, Values};
use agon_stats::acquisition::{Recommendation, Space, SpaceError, Trial};
use agon_stats::spsa;
use serde::{Deserialize, Serialize};

pub use stage::{ProposalRequest, Step};

use crate::run::{TuneEnd, TuneManifest};
use stage::Stage;

/// The number of bouts in the recent mean score.
const RECENT_BOUTS: usize = 64;

/// The score of a bout's candidate in thousandths; none if the bout failed.
pub type Score = Option<u16>;

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

/// A decision of a Gaussian process, which is stored.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Proposal {
    /// The values of the next trial, in millionths.
    Trial(Vec<i64>),
    /// The tuned values, which end the repeat.
    Answer {
        /// The values, in millionths.
        answer: Vec<i64>,
    },
}

impl Proposal {
    /// Creates the proposal that ends a repeat.
    pub fn answer(values: Values) -> Proposal {
        Proposal::Answer { answer: values.0 }
    }

    /// Returns whether the proposal ends its repeat.
    pub fn is_answer(&self) -> bool {
        matches!(self, Proposal::Answer { .. })
    }
}

/// The state of a tuning run.
#[derive(Clone, Debug)]
pub struct Tuning {
    tune: Tune,
    seed: u64,
    /// The repeats that have begun, at least one.
    stages: Vec<Stage>,
    /// Results after the first gap.
    waiting: BTreeMap<u64, Score>,
    /// Decisions of repeats that have not begun, because results of an earlier one are missing.
    queued: VecDeque<Proposal>,
}

impl Tuning {
    /// Creates a tuning run at its start.
    pub fn new(tune: &Tune, seed: u64) -> Result<Tuning, TuningError> {
        let stages = vec![Stage::new(tune, seed, 0, 0, 0)?];
        Ok(Tuning { tune: tune.clone(), seed, stages, waiting: BTreeMap::new(), queued: VecDeque::new() })
    }

    /// Returns the settings.
    pub fn tune(&self) -> &Tune {
        &self.tune
    }

    fn current(&self) -> &Stage {
        self.stages.last().expect("a tuning run begins with a stage")
    }

    fn current_mut(&mut self) -> &mut Stage {
        self.stages.last_mut().expect("a tuning run begins with a stage")
    }

    /// Applies the decisions and results that are there, and begins the next repeat when the current one is over.
    fn advance(&mut self) {
        loop {
            while self.current().answer().is_none()
                && let Some(proposal) = self.queued.pop_front()
            {
                let (end, later) = self.current_mut().add_proposal(proposal);
                self.waiting.extend((end..).zip(later));
            }
            while self.current().played() < self.current().end()
                && let Some(score) = self.waiting.remove(&self.current().played())
            {
                self.current_mut().record(score);
            }
            let (bout, opening, repeat) =
                (self.current().end(), self.current().openings_end(), self.stages.len() as u64);
            if repeat == self.tune.repeats || !self.current().is_over() {
                return;
            }
            // All repeats have the settings of the first, which were valid.
            let Ok(next) = Stage::new(&self.tune, self.seed, repeat, bout, opening) else { return };
            self.stages.push(next);
        }
    }

    /// Returns the number of bouts before the validation: the most that there can be, until the last repeat has its answer.
    pub fn tuning_bouts(&self) -> u64 {
        let left = self.tune.repeats - self.stages.len() as u64;
        self.current().end() + left * self.tune.bouts
    }

    /// Returns the number of bouts, validation included, as far as it is known.
    pub fn bouts(&self) -> u64 {
        self.tuning_bouts() + self.tune.validation_bouts()
    }

    /// Returns the number of steps, as far as it is known.
    pub fn steps(&self) -> u64 {
        self.tuning_bouts() / self.tune.step_bouts()
    }

    /// Returns the number of completed steps before the first missing result.
    pub fn completed_steps(&self) -> u64 {
        self.stages.iter().map(Stage::completed_steps).sum()
    }

    /// Returns the number of bouts that are determined by the results so far.
    pub fn known_bouts(&self) -> u64 {
        if self.has_answers() { self.bouts() } else { self.current().known_bouts() }
    }

    fn has_answers(&self) -> bool {
        self.stages.len() as u64 == self.tune.repeats && self.current().is_over()
    }

    /// Returns the stage that plays a bout; none for the validation.
    fn stage_of(&self, bout: u64) -> Option<&Stage> {
        self.stages.iter().find(|stage| bout < stage.end())
    }

    /// Returns a bout, if the results so far determine it. The openings of the validation are the first.
    pub fn bout(&self, index: u64) -> Option<Bout<u64>> {
        let opening = self.opening(index);
        let Some(stage) = self.stage_of(index) else {
            // All tuned players meet all opponents over an opening before the next.
            let opponents = &self.tune.validation.opponents;
            let place = index.checked_sub(self.tuning_bouts()).filter(|_| self.has_answers())?;
            let place = place % (opponents.len() as u64 * self.tune.repeats);
            let repeat = place / opponents.len() as u64;
            let (tuned, opponent) = (self.tune.tuned(repeat), opponents[place as usize % opponents.len()]);
            let mut players = vec![opponent; self.tune.seats];
            players[0] = tuned;
            let values = vec![(tuned, self.answer(repeat)?)];
            return (opening < self.tune.validation.bouts).then_some(Bout {
                index,
                players,
                opening,
                values,
            });
        };
        let (step, side) = (stage.step(index), stage.side(index));
        let candidates = stage.candidates(step)?;
        let role = |side: usize| if side == 0 { Some(self.tune.roles.plus) } else { self.tune.roles.minus };
        let (players, values) = match self.tune.others(opening - self.tune.validation.bouts) {
            Some(others) => {
                let players = std::iter::once(role(side)?).chain(others).collect();
                (players, vec![(role(side)?, candidates[side].clone())])
            }
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
        let Tune { validation, repeats, .. } = &self.tune;
        match self.stage_of(index) {
            Some(stage) => validation.bouts + stage.opening(index),
            None => {
                let place = index.saturating_sub(self.tuning_bouts());
                place / (validation.opponents.len() as u64 * repeats)
            }
        }
    }

    /// Returns the greatest number of an opening of the bouts up to this one.
    pub(crate) fn last_opening(&self, index: u64) -> u64 {
        match self.stage_of(index) {
            Some(_) => self.opening(index),
            None => self.openings().saturating_sub(1),
        }
    }

    /// Returns the number of openings, as far as it is known.
    pub(crate) fn openings(&self) -> u64 {
        let left = self.tune.repeats - self.stages.len() as u64;
        let later = left * (self.tune.bouts / self.tune.step_bouts()) * self.tune.pairs;
        self.tune.validation.bouts + self.current().openings_end() + later
    }

    /// Returns the repeat that is under way, or the last one.
    pub fn repeat(&self) -> usize {
        self.stages.len() - 1
    }

    /// Returns the tuned values of a repeat, once they are known.
    pub fn answer(&self, repeat: u64) -> Option<Values> {
        self.stages.get(usize::try_from(repeat).ok()?)?.answer()
    }

    /// Returns the tuned values of each repeat, once all are known.
    pub fn answers(&self) -> Option<Vec<Values>> {
        (0..self.tune.repeats).map(|repeat| self.answer(repeat)).collect()
    }

    /// Returns what the user should know about the answers, a sentence or two each; nothing before there are any.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks: Vec<String> = self.stages.iter().flat_map(Stage::remarks).collect();
        let mut seen = BTreeSet::new();
        remarks.retain(|remark| seen.insert(remark.clone()));
        remarks
    }

    /// Records the score of a bout. Ignores bouts of the validation and repeated results.
    pub fn record(&mut self, bout: u64, score: Score) {
        if self.has_answers() || bout < self.current().played() {
            return;
        }
        self.waiting.entry(bout).or_insert(score);
        self.advance();
    }

    /// Returns the computation that the run waits for.
    pub fn pending_proposal(&self) -> Option<ProposalRequest> {
        self.current().pending_proposal().filter(|_| self.queued.is_empty())
    }

    /// Adds the result of a [`ProposalRequest`]: the next trials, or the tuned values.
    pub fn add_proposals(&mut self, found: Vec<Proposal>) {
        self.queued.extend(found);
        self.advance();
    }

    /// Returns the number of proposals so far.
    pub fn proposals(&self) -> usize {
        self.stages.iter().map(Stage::proposals).sum::<usize>() + self.queued.len()
    }

    /// Returns the expected score of the answer of a repeat against the opponents, with its interval, if it is that of a Gaussian
    /// process.
    pub fn recommendation(&self, repeat: usize) -> Option<Recommendation> {
        let (space, trials, seed) = self.gaussian_process(repeat)?;
        space.recommend(&trials, seed).ok()
    }

    /// Returns the space, the trials and the seed of the Gaussian process of a repeat.
    pub fn gaussian_process(&self, repeat: usize) -> Option<(&Space, Vec<Trial>, u64)> {
        self.stages.get(repeat)?.gaussian_process()
    }

    /// Returns the completed steps in order.
    pub fn path(&self) -> impl Iterator<Item = Step> + '_ {
        self.stages.iter().flat_map(Stage::path)
    }

    /// Returns the answer of the current repeat if it is known, else the values after its last completed step or the last
    /// suggested trial.
    pub fn values(&self) -> Vec<f64> {
        self.current().values()
    }

    /// Returns the mean score of the first player over the most recent bouts, and the number of these bouts.
    pub fn recent_score(&self) -> Option<(f64, u64)> {
        let scores = self.stages.iter().rev().flat_map(|stage| stage.results().iter().rev());
        let scores: Vec<f64> = scores
            .take(RECENT_BOUTS)
            .filter_map(|score| score.map(|score| f64::from(score) / 1000.0))
            .collect();
        let bouts = scores.len() as u64;
        (bouts > 0).then(|| (scores.iter().sum::<f64>() / bouts as f64, bouts))
    }

    /// Returns the part of the run's manifest.
    pub fn manifest(&self) -> TuneManifest {
        let end = |stage: &Stage| {
            let values = self.tune.text(&stage.answer()?);
            Some(TuneEnd { bouts: stage.end(), values })
        };
        TuneManifest {
            method: self.tune.method.name().to_string(),
            tuning_bouts: self.tuning_bouts(),
            start: self.tune.text(&self.tune.start()),
            ends: self.stages.iter().map_while(end).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use agon_arena::spec::tune::{ImportedTrial, Method, Roles, Validation};
    use agon_arena::{Spec, SpecSource};
    use agon_games::random::{below, mix, seeded};

    use super::*;

    fn spec(method: &str, opponents: &str) -> Tune {
        let other = if method.contains("other") {
            "[[player]]\nname = \"other\"\nsearch = { algorithm = \"uct\" }\n"
        } else {
            ""
        };
        let text = format!(
            "name = \"t\"\ngame = \"connect-four\"\nlimit = {{ nodes = 50 }}\nopenings = {{ random_plies = 4 }}\n\
             [tune]\nplayer = \"uct\"\n{method}\nvalidation = {{ bouts = 3 }}\n{opponents}\n\
             [[player]]\nname = \"uct\"\nsearch = {{ algorithm = \"uct\" }}\n{other}"
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
        if draw.is_multiple_of(17) { None } else { Some(250 * (draw % 5) as u16) }
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
        // The number of bouts is known at the end of the tuning.
        while (bouts.len() as u64) < tuning.bouts() {
            let bout = bouts.len() as u64;
            run_proposals(&mut tuning);
            if bout == tuning.bouts() {
                break;
            }
            assert!(tuning.known_bouts() > bout);
            let played = tuning.bout(bout).unwrap();
            tuning.record(bout, score(&played));
            bouts.push(played);
        }
        (tuning, bouts)
    }

    #[test]
    fn path_does_not_depend_on_the_order_of_results() {
        let repeats = "repeats = 2\nopponents = [\"self\", \"uct\", \"other\"]\n";
        let early = "repeats = 3\nprecision = 300\n";
        for (method, opponents) in
            [(SPSA, ""), (SPSA, "opponents = [\"uct\"]\n"), (SPSA, repeats), (BAYES, ""), (BAYES, early)]
        {
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
                assert_eq!(tuning.answers(), expected.answers());
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
                    assert_eq!(tuning_bout.values, [(roles.tuned, tuning.answer(0).unwrap())]);
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
            tuning.record(bout, Some(1000));
        }
        assert_eq!(tuning.known_bouts(), 12);
        tuning.record(0, Some(1000));
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
        let same = remarks(|_| Some(500));
        assert!(same.contains("scored the same in 40 of 40 iterations"), "{same}");
        // Greater constants always win.
        let greater =
            remarks(|bout| Some(if bout.values[0].1.0[0] > bout.values[1].1.0[0] { 1000 } else { 0 }));
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
                tuning.record(bout, Some(250 * u16::from(half)));
            }
            tuning.path().next().unwrap().after.unwrap()
        };
        let start = tune.start().numbers();
        assert_eq!(path([2; 6]), start);
        assert_eq!(path([4, 4, 1, 1, 3, 3]), start);
        let (up, down) = (path([4, 0, 4, 0, 4, 0]), path([0, 4, 0, 4, 0, 4]));
        assert!((up[0] - start[0]) * (down[0] - start[0]) < 0.0, "{up:?} {down:?}");
    }

    /// The sides of an iteration meet each other and the named opponents equally often.
    #[test]
    fn a_step_meets_each_opponent_equally_often() {
        let tune = tune(SPSA, "opponents = [\"self\", \"uct\", \"other\"]\n");
        let (_, bouts) = play_in_order(&tune);
        assert_eq!(tune.step_bouts(), 5);
        let Roles { plus, minus, .. } = tune.roles;
        let minus = minus.unwrap();
        for step in bouts[..tune.bouts as usize].chunks(5) {
            let players: Vec<&[usize]> = step.iter().map(|bout| &bout.players[..]).collect();
            let expected: [&[usize]; 5] = [&[plus, minus], &[plus, 0], &[minus, 0], &[plus, 1], &[minus, 1]];
            assert_eq!(players, expected);
            let openings: Vec<u64> = step.iter().map(|bout| bout.opening - step[0].opening).collect();
            assert_eq!(openings, [0, 1, 1, 2, 2]);
        }
    }

    /// Each repeat plays openings of its own, and its answer meets every opponent of the validation over the same openings.
    #[test]
    fn repeats_follow_each_other_and_are_validated_alike() {
        let tune = tune(SPSA, "repeats = 2\nopponents = [\"other\"]\n");
        let tune = Tune { validation: Validation { bouts: 3, opponents: vec![0, 1] }, ..tune };
        let (tuning, bouts) = play_in_order(&tune);
        assert_eq!((tuning.bouts(), tuning.tuning_bouts()), (240 + 12, 240));
        let openings: std::collections::BTreeSet<u64> =
            bouts[..240].iter().map(|bout| bout.opening).collect();
        assert_eq!(openings, (3..3 + 120).collect());
        let answers = tuning.answers().unwrap();
        assert_ne!(answers[0], answers[1]);
        for (place, bout) in bouts[240..].iter().enumerate() {
            let (repeat, opponent) = (place / 2 % 2, place % 2);
            assert_eq!(bout.players, [tune.tuned(repeat as u64), opponent]);
            assert_eq!((bout.opening, &bout.values[0].1), (place as u64 / 4, &answers[repeat]));
        }
    }

    /// A repeat ends as soon as its answer is known precisely enough; the validation follows at once.
    #[test]
    fn precise_answer_ends_the_tuning_early() {
        let whole = play_in_order(&tune(BAYES, "")).0;
        let early = play_in_order(&tune(BAYES, "precision = 300\n")).0;
        assert_eq!(whole.tuning_bouts(), 60);
        assert!(early.tuning_bouts() < 60 && early.tuning_bouts() >= 8 * 3, "{}", early.tuning_bouts());
        assert_eq!(early.bouts(), early.tuning_bouts() + 3);
        let prefix: Vec<Step> = whole.path().take(early.steps() as usize).collect();
        assert_eq!(early.path().collect::<Vec<_>>(), prefix);
        assert_eq!(early.known_bouts(), early.bouts());
        assert!(early.bout(early.bouts()).is_none());
    }

    /// State of a tuning run that is read back has the decisions first, then the results.
    #[test]
    fn stored_decisions_and_results_restore_the_state() {
        let tune = tune(BAYES, "repeats = 3\nprecision = 300\n");
        let mut tuning = Tuning::new(&tune, 7).unwrap();
        let (mut proposals, mut scores) = (Vec::new(), Vec::new());
        loop {
            while let Some(request) = tuning.pending_proposal() {
                let found = request.run();
                proposals.extend(found.clone());
                tuning.add_proposals(found);
            }
            let mut restored = Tuning::new(&tune, 7).unwrap();
            restored.add_proposals(proposals.clone());
            (0..).zip(&scores).for_each(|(bout, score)| restored.record(bout, *score));
            assert_eq!(restored.path().collect::<Vec<_>>(), tuning.path().collect::<Vec<_>>());
            assert_eq!(
                (restored.known_bouts(), restored.bouts(), restored.proposals(), restored.answers()),
                (tuning.known_bouts(), tuning.bouts(), tuning.proposals(), tuning.answers())
            );
            let bout = scores.len() as u64;
            if bout >= tuning.tuning_bouts() {
                break;
            }
            scores.push(score(&tuning.bout(bout).unwrap()));
            tuning.record(bout, scores[bout as usize]);
        }
        assert!(tuning.answers().is_some());
        // Without the decisions they are computed again, although results of later repeats are there.
        let mut again = Tuning::new(&tune, 7).unwrap();
        (0..).zip(&scores).for_each(|(bout, score)| again.record(bout, *score));
        run_proposals(&mut again);
        assert_eq!(again.answers(), tuning.answers());
    }

    /// Imported trials replace the evenly spread ones at the start.
    #[test]
    fn imported_trials_are_evidence() {
        let tune = tune(BAYES, "");
        let trial = |c: i64| ImportedTrial {
            values: Values(vec![c]),
            bouts: 50,
            score: if c < 1_000_000 { 0.7 } else { 0.4 },
            variance: 0.1,
        };
        let imported = (1..=10).map(|step| trial(step * 300_000)).collect();
        let tune = Tune { imported, ..tune };
        let mut tuning = Tuning::new(&tune, 7).unwrap();
        tuning.add_proposals(tuning.pending_proposal().unwrap().run());
        let first = tuning.bout(0).unwrap().values[0].1.clone();
        let fresh = Tune { imported: Vec::new(), ..tune };
        let mut fresh = Tuning::new(&fresh, 7).unwrap();
        fresh.add_proposals(fresh.pending_proposal().unwrap().run());
        assert_ne!(first, fresh.bout(0).unwrap().values[0].1);
    }
}
