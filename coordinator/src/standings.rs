//! What is known of the players so far: results, ratings, nodes and depths, and how a sequential test stands.
//!
//! A tally forgets which bout was which: bouts with the same players and payoffs are counted together. So it stays small
//! however long a run is, and what is remembered of bouts that have left for the dataset is a tally like any other.

use std::num::NonZeroUsize;

use agon_arena::Spec;
use agon_arena::spec::{Format, Plan, Values};
use agon_proto::v1;
use agon_schedule::summary::{Effort, GameSummary, Summary};
use agon_stats::pairs::Pairs;
use agon_stats::pool;
use agon_stats::sprt::{BoutResult, Decision, Fold, Verdict};
use agon_stats::tournament::{self, Answer, Errors, Game, Options};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::store::BoutSummary;
use agon_schedule::schedule::{ScheduleError, sprt_bounds};
use agon_schedule::tuning::Score;

/// Seed and number of the replicas behind the intervals of games with many seats.
const SEED: u64 = 1;
const REPLICAS: NonZeroUsize = NonZeroUsize::new(200).expect("two hundred is not zero");

/// Returns the stored summary of a bout; none where it failed.
pub fn read_summary(row: &BoutSummary) -> Option<Summary> {
    if row.failed { None } else { decode_checked(&row.summary) }
}

/// What is remembered of some bouts of a run.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Tally {
    /// Bouts, those that failed included.
    pub bouts: u64,
    /// Bouts that failed.
    pub failed: u64,
    /// Games.
    pub games: u64,
    effort: Vec<Effort>,
    /// How many bouts had these games, sorted by them.
    shapes: Vec<(Vec<GameSummary>, u64)>,
    /// Of a sequential test: the length of the prefix that it has looked at, and what that holds.
    tested: u64,
    pairs: [u64; 5],
    /// Of a tune: what its first bouts came to, a character each, and what a Gaussian process proposed.
    #[serde(default)]
    scores: String,
    #[serde(default)]
    proposals: Vec<Vec<i64>>,
}

/// The character of a bout of a tune that failed; of others it is the digit of the half points.
const FAILED: char = 'x';

impl Tally {
    /// Notes what the next bout of a tune came to. Behind a hole, which only a tune that was ended has, nothing follows.
    pub fn note_score(&mut self, bout: u64, score: Score) {
        if bout == self.scores.len() as u64 {
            self.scores.push(score.map_or(FAILED, |half| char::from(b'0' + half.min(4))));
        }
    }

    /// What the first bouts of a tune came to.
    pub fn scores(&self) -> impl Iterator<Item = Score> + '_ {
        self.scores.bytes().map(|digit| digit.is_ascii_digit().then(|| digit - b'0'))
    }

    /// What a Gaussian process proposed so far.
    pub fn proposals(&self) -> impl Iterator<Item = Values> + '_ {
        self.proposals.iter().cloned().map(Values)
    }

    /// Notes what a Gaussian process proposes.
    pub fn propose(&mut self, found: &[Values]) {
        self.proposals.extend(found.iter().map(|values| values.0.clone()));
    }

    /// Counts a bout that was played; whether its players are the same in other bouts, so that it rates them.
    pub fn add(&mut self, summary: &Summary, rated: bool) {
        self.bouts += 1;
        self.games += summary.games.len() as u64;
        self.effort.resize(self.effort.len().max(summary.effort.len()), Effort::default());
        for (sum, effort) in self.effort.iter_mut().zip(&summary.effort) {
            sum.add(effort);
        }
        if !rated {
            return;
        }
        match self.shapes.binary_search_by(|(shape, _)| shape.cmp(&summary.games)) {
            Ok(place) => self.shapes[place].1 += 1,
            Err(place) => self.shapes.insert(place, (summary.games.clone(), 1)),
        }
    }

    /// Counts a bout that failed.
    pub fn add_failed(&mut self) {
        self.bouts += 1;
        self.failed += 1;
    }

    /// Takes away a bout that does not count any more.
    pub fn subtract(&mut self, summary: &Summary) {
        self.bouts = self.bouts.saturating_sub(1);
        self.games = self.games.saturating_sub(summary.games.len() as u64);
        for (sum, effort) in self.effort.iter_mut().zip(&summary.effort) {
            sum.subtract(effort);
        }
        if let Ok(place) = self.shapes.binary_search_by(|(shape, _)| shape.cmp(&summary.games)) {
            self.shapes[place].1 -= 1;
            if self.shapes[place].1 == 0 {
                self.shapes.remove(place);
            }
        }
    }

    /// Takes a pair out of what a sequential test has seen: its bout is void.
    pub fn forget_test(&mut self, summary: &Summary) {
        if let Some(score) = summary.pair_score() {
            let count = &mut self.pairs[usize::from(score.half_points())];
            *count = count.saturating_sub(1);
        }
    }

    /// Notes the next bout that a sequential test has looked at.
    pub fn test(&mut self, summary: Option<&Summary>) {
        self.tested += 1;
        if let Some(score) = summary.and_then(Summary::pair_score) {
            self.pairs[usize::from(score.half_points())] += 1;
        }
    }
}

/// The text by which something is stored: JSON, and the beginning of its digest, by which damage is noticed.
pub fn encode_checked(value: &impl Serialize) -> String {
    let json = serde_json::to_string(value).expect("what is stored is plain data");
    format!("{json} {}", short_digest(&json))
}

/// Reads a stored text; none where it is damaged.
pub fn decode_checked<T: DeserializeOwned>(text: &str) -> Option<T> {
    let (json, digest) = text.rsplit_once(' ')?;
    if digest != short_digest(json) {
        return None;
    }
    serde_json::from_str(json).ok()
}

fn short_digest(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..16].to_string()
}

/// The results of a run so far.
#[derive(Clone)]
pub struct Standings {
    names: Vec<String>,
    seats: usize,
    probe: bool,
    /// Bouts below rate nobody.
    rated_from: u64,
    /// The players that a table shows.
    shown: Vec<String>,
    tally: Tally,
    fold: Option<Fold>,
}

impl Standings {
    /// What is known when so much is remembered of the first bouts of a run.
    pub fn new(spec: &Spec, seats: usize, tally: Tally) -> Result<Standings, ScheduleError> {
        let fold = match &spec.plan {
            Plan::Tournament(Format::Sprt(settings)) => {
                Some(Fold::resume(sprt_bounds(settings)?, Pairs(tally.pairs), tally.tested))
            }
            _ => None,
        };
        let shown: Vec<usize> = match &spec.plan {
            Plan::Tune(tune) => vec![tune.roles.tuned, tune.player],
            _ => (0..spec.players.len()).collect(),
        };
        Ok(Standings {
            rated_from: spec.first_rated_bout(),
            shown: shown.iter().map(|&player| spec.players[player].name.clone()).collect(),
            names: spec.players.iter().map(|player| player.name.clone()).collect(),
            seats,
            probe: matches!(spec.plan, Plan::Probe(_)),
            tally,
            fold,
        })
    }

    /// Counts a bout; of a test, whether it decides now or did before.
    pub fn add(&mut self, bout: u64, summary: &Summary) -> Option<Decision> {
        self.tally.add(summary, bout >= self.rated_from);
        self.fold(bout, summary.pair_score().map_or(BoutResult::Void, BoutResult::Pair))
    }

    /// Counts a bout that failed: no evidence, but the test goes on behind it.
    pub fn add_failed(&mut self, bout: u64) -> Option<Decision> {
        self.tally.add_failed();
        self.fold(bout, BoutResult::Void)
    }

    fn fold(&mut self, bout: u64, result: BoutResult) -> Option<Decision> {
        self.fold.as_mut()?.put(bout, result).unwrap_or(None)
    }

    /// Everything that was counted.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// The bout that decided a test.
    pub fn deciding_bout(&self) -> Option<u64> {
        self.fold.as_ref()?.decision().map(|decision| decision.index)
    }

    /// The bouts that were counted, as the statistics take them.
    fn bouts(&self) -> tournament::Tally {
        let mut bouts = tournament::Tally::new(self.names.clone());
        for (shape, count) in &self.tally.shapes {
            // What cannot be rated says nothing.
            let _ = bouts.add(&shape.iter().map(Game::from).collect::<Vec<_>>(), *count);
        }
        bouts
    }

    /// The players' ratings, where there is something to rate. `intervals` of games with many seats cost time and are left
    /// out while nobody needs them.
    fn answer(&self, intervals: bool) -> Option<Answer> {
        let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let errors = if intervals && self.seats > 2 {
            Errors::Bootstrap { replicas: REPLICAS, seed: SEED, threads }
        } else {
            Errors::Sandwich
        };
        self.bouts().answer(&Options { model: pool::Options::default(), errors }, &|| ()).ok()
    }

    /// The table for people, the best first; those without games last. A probe has no best.
    pub fn table(&self, intervals: bool) -> Vec<v1::Standing> {
        let answer = if self.probe { None } else { self.answer(intervals) };
        let rated = answer.as_ref().map_or(&[][..], Answer::standings);
        let mut table: Vec<v1::Standing> = rated.iter().map(|row| self.row(&row.name, Some(row))).collect();
        let unrated = self.shown.iter().filter(|name| rated.iter().all(|row| row.name != **name));
        table.extend(unrated.map(|name| self.row(name, None)));
        table
    }

    fn row(&self, name: &str, rated: Option<&pool::Standing>) -> v1::Standing {
        let player = self.names.iter().position(|known| known == name);
        let effort = player.and_then(|player| self.tally.effort.get(player)).copied().unwrap_or_default();
        let mean = |sum: u64| if effort.moves == 0 { 0.0 } else { sum as f64 / effort.moves as f64 };
        v1::Standing {
            player: name.to_string(),
            elo: rated.map(|row| row.elo),
            low: rated.and_then(|row| row.low),
            high: rated.and_then(|row| row.high),
            games: rated.map_or(0, |row| row.games),
            wins: rated.map_or(0, |row| row.wins),
            draws: rated.map_or(0, |row| row.draws),
            losses: rated.map_or(0, |row| row.losses),
            score: rated.and_then(|row| row.score).unwrap_or(0.0),
            mean_nodes: mean(effort.nodes),
            mean_depth: mean(effort.depth),
            moves: effort.moves,
            mean_overshoot_us: mean(effort.overshoot_us),
            most_overshoot_us: effort.most_overshoot_us,
        }
    }

    /// How a sequential test stands.
    pub fn sprt(&self) -> Option<v1::Sprt> {
        let fold = self.fold.as_ref()?;
        let verdict = match fold.decision().map(|decision| decision.verdict) {
            Some(Verdict::H0) => "H0",
            Some(Verdict::H1) => "H1",
            _ => "continue",
        };
        Some(v1::Sprt {
            llr: fold.llr(),
            lower: fold.bounds().lower(),
            upper: fold.bounds().upper(),
            verdict: verdict.to_string(),
            pairs: fold.pairs().0.to_vec(),
            prefix: fold.prefix(),
        })
    }
}
