//! The results of a run so far: totals, ratings, search effort and the state of a sequential test.
//!
//! Totals do not identify bouts: bouts with the same players and payoffs are counted together, so that totals stay small
//! however long a run is. The totals of exported bouts are stored with the run.

use std::num::NonZeroUsize;

use agon_arena::Spec;
use agon_arena::spec::{Format, Plan};
use agon_proto::v1;
use agon_schedule::RunState;
use agon_schedule::summary::{Effort, GameSummary, Summary};
use agon_stats::pairs::Pairs;
use agon_stats::plackett_luce::DEFAULT_REPLICAS;
use agon_stats::pool;
use agon_stats::sprt::{BoutResult, SequentialTest, Verdict};
use agon_stats::tournament::{self, Conclusion, Game, Options, Resampling, TournamentRatings};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use agon_schedule::schedule::{ScheduleError, sprt_bounds};
use agon_schedule::tuning::{Proposal, Score};

/// Seed of the bootstrap replicas for games with more than two seats: the default one of the commands that rate a dataset.
const SEED: u64 = 1;

/// The totals of some bouts of a run.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct RunTotals {
    /// Bouts, including failed ones.
    pub bouts: u64,
    /// Failed bouts.
    pub failed: u64,
    /// Games.
    pub games: u64,
    /// Search effort by player.
    effort: Vec<Effort>,
    /// The number of bouts with these games, sorted by the games.
    shapes: Vec<(Vec<GameSummary>, u64)>,
    /// Bouts that a sequential test has seen.
    tested: u64,
    /// Their pairs by half points.
    pairs: [u64; 5],
    /// The scores of the first bouts of a tuning run, one character each.
    #[serde(default)]
    scores: String,
    /// The proposals of a Gaussian process.
    #[serde(default)]
    proposals: Vec<Proposal>,
}

/// The character for a failed bout in the scores of a tuning run with two seats; other bouts have the digit of their half
/// points.
const FAILED: char = 'x';
/// The thousandths of a half point.
const HALF_POINT: u16 = 250;
/// The character for a score of 0 thousandths with more seats, whose characters all have two bytes, and for a failed bout.
const NO_POINTS: u16 = 0x100;
const FAILED_OF_MANY: u16 = NO_POINTS + 1001;

/// Returns the character for a score.
fn encode_score(score: Score, seats: usize) -> char {
    match score {
        None if seats == 2 => FAILED,
        Some(score) if seats == 2 => char::from(b'0' + (score / HALF_POINT).min(4) as u8),
        score => {
            let code = score.map_or(FAILED_OF_MANY, |score| NO_POINTS + score.min(1000));
            char::from_u32(u32::from(code)).expect("the codes up to U+0500 are characters")
        }
    }
}

/// Returns the score of a character.
fn decode_score(character: char) -> Score {
    match u16::try_from(u32::from(character)).ok()? {
        digit @ 0x30..=0x34 => Some((digit - 0x30) * HALF_POINT),
        FAILED_OF_MANY => None,
        code => code.checked_sub(NO_POINTS),
    }
}

impl RunTotals {
    /// Adds the score of the next bout of a tuning run. Ignores bouts after a gap, which only a cancelled run has.
    pub fn add_score(&mut self, bout: u64, score: Score, seats: usize) {
        let score = encode_score(score, seats);
        if bout == (self.scores.len() / score.len_utf8()) as u64 {
            self.scores.push(score);
        }
    }

    /// Returns the scores of the first bouts of a tuning run.
    pub fn scores(&self) -> impl Iterator<Item = Score> + '_ {
        self.scores.chars().map(decode_score)
    }

    /// Returns the proposals of a Gaussian process so far.
    pub fn proposals(&self) -> &[Proposal] {
        &self.proposals
    }

    /// Adds proposals of a Gaussian process.
    pub fn add_proposals(&mut self, proposals: &[Proposal]) {
        self.proposals.extend_from_slice(proposals);
    }

    /// Adds a played bout. `rated` is false for bouts whose players change from bout to bout.
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
            Ok(index) => self.shapes[index].1 += 1,
            Err(index) => self.shapes.insert(index, (summary.games.clone(), 1)),
        }
    }

    /// Adds a failed bout.
    pub fn add_failed(&mut self) {
        self.bouts += 1;
        self.failed += 1;
    }

    /// Removes a voided bout.
    pub fn subtract(&mut self, summary: &Summary) {
        self.bouts = self.bouts.saturating_sub(1);
        self.games = self.games.saturating_sub(summary.games.len() as u64);
        for (sum, effort) in self.effort.iter_mut().zip(&summary.effort) {
            sum.subtract(effort);
        }
        if let Ok(index) = self.shapes.binary_search_by(|(shape, _)| shape.cmp(&summary.games)) {
            self.shapes[index].1 -= 1;
            if self.shapes[index].1 == 0 {
                self.shapes.remove(index);
            }
        }
    }

    /// Removes the pair of a voided bout from a sequential test.
    pub fn subtract_pair(&mut self, summary: &Summary) {
        if let Some(score) = summary.pair_score() {
            let count = &mut self.pairs[usize::from(score.half_points())];
            *count = count.saturating_sub(1);
        }
    }

    /// Adds the next bout to a sequential test.
    pub fn add_pair(&mut self, summary: Option<&Summary>) {
        self.tested += 1;
        if let Some(score) = summary.and_then(Summary::pair_score) {
            self.pairs[usize::from(score.half_points())] += 1;
        }
    }
}

/// Encodes a value for the store: JSON and a prefix of its digest, which detects damage.
pub fn encode_checked(value: &impl Serialize) -> String {
    let json = serde_json::to_string(value).expect("stored values are plain data");
    format!("{json} {}", short_digest(&json))
}

/// Decodes a stored value. Returns `None` if it is damaged.
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
    probe: bool,
    /// The first player of a tuning run whose bouts are rated.
    rated: Option<usize>,
    /// The players shown in the table.
    shown: Vec<String>,
    totals: RunTotals,
    test: Option<SequentialTest>,
}

impl Standings {
    /// Creates standings from the totals of the first bouts of a run.
    pub fn new(spec: &Spec, mut totals: RunTotals) -> Result<Standings, ScheduleError> {
        let test = match &spec.plan {
            Plan::Tournament(Format::Sprt(settings)) => {
                Some(SequentialTest::resume(sprt_bounds(settings)?, Pairs(totals.pairs), totals.tested))
            }
            _ => None,
        };
        // The test counts on by itself.
        (totals.tested, totals.pairs) = (0, [0; 5]);
        let shown: Vec<usize> = match &spec.plan {
            Plan::Tune(tune) => (0..tune.repeats)
                .map(|repeat| tune.tuned(repeat))
                .chain(tune.validation.opponents.clone())
                .collect(),
            _ => (0..spec.players.len()).collect(),
        };
        Ok(Standings {
            rated: spec.tune().map(|tune| tune.roles.tuned),
            shown: shown.iter().map(|&player| spec.players[player].name.clone()).collect(),
            names: spec.players.iter().map(|player| player.name.clone()).collect(),
            probe: matches!(spec.plan, Plan::Probe(_)),
            totals,
            test,
        })
    }

    /// Adds a bout.
    pub fn add(&mut self, bout: u64, summary: &Summary) {
        let is_rated = self.rated.is_none_or(|first| summary.players().iter().any(|player| *player >= first));
        self.totals.add(summary, is_rated);
        self.record(bout, summary.pair_score().map_or(BoutResult::Void, BoutResult::Pair));
    }

    /// Adds a failed bout: a sequential test skips it.
    pub fn add_failed(&mut self, bout: u64) {
        self.totals.add_failed();
        self.record(bout, BoutResult::Void);
    }

    /// Gives the result of a bout to the sequential test, if there is one. Ignores a bout that it has seen.
    fn record(&mut self, bout: u64, result: BoutResult) {
        if let Some(test) = &mut self.test {
            let _ = test.record(bout, result);
        }
    }

    /// Returns the totals.
    pub fn totals(&self) -> &RunTotals {
        &self.totals
    }

    /// Returns the bout that decided a sequential test.
    pub fn deciding_bout(&self) -> Option<u64> {
        self.test.as_ref()?.decision().map(|decision| decision.index)
    }

    /// Converts the totals for the statistics.
    fn bouts(&self) -> tournament::BoutCounts {
        let mut bouts = tournament::BoutCounts::new(self.names.clone());
        for (shape, count) in &self.totals.shapes {
            // Bouts that cannot be rated are skipped.
            let _ = bouts.add(&shape.iter().map(Game::from).collect::<Vec<_>>(), *count);
        }
        bouts
    }

    /// Computes the ratings. `intervals` requests the bootstrap intervals of games with many seats, which take time.
    fn ratings(&self, intervals: bool) -> Option<TournamentRatings> {
        let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let resampling = intervals.then_some(Resampling { replicas: DEFAULT_REPLICAS, seed: SEED, threads });
        self.bouts().rate(&Options { resampling, ..Options::default() }, &|| ()).ok()
    }

    /// Returns the table, best players first and unrated ones last, and its conclusion. A probe is not rated.
    pub fn table(&self, intervals: bool) -> (Vec<v1::Standing>, Option<Conclusion>) {
        let ratings = if self.probe { None } else { self.ratings(intervals) };
        let rated = ratings.as_ref().map(TournamentRatings::shown_standings).unwrap_or_default();
        let mut table: Vec<v1::Standing> = rated.iter().map(|row| self.row(&row.name, Some(row))).collect();
        let unrated = self.shown.iter().filter(|name| rated.iter().all(|row| row.name != **name));
        table.extend(unrated.map(|name| self.row(name, None)));
        (table, ratings.and_then(|ratings| ratings.conclusion()))
    }

    fn row(&self, name: &str, rated: Option<&pool::Standing>) -> v1::Standing {
        let player = self.names.iter().position(|known| known == name);
        let effort = player.and_then(|player| self.totals.effort.get(player)).copied().unwrap_or_default();
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

    /// Returns the state of a sequential test of a run in this state.
    pub fn sprt(&self, state: RunState) -> Option<v1::Sprt> {
        let test = self.test.as_ref()?;
        let verdict = test.decision().map_or(Verdict::Continue, |decision| decision.verdict);
        Some(v1::Sprt {
            llr: test.llr(),
            lower: test.bounds().lower(),
            upper: test.bounds().upper(),
            verdict: state.verdict(verdict).to_string(),
            pairs: test.pairs().0.to_vec(),
            prefix: test.prefix(),
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    const SPEC: &str = r#"
name = "sweep"
game = "connect-four"
seed = 1
limit = { depth = 1 }
[tournament]
format = "round-robin"
bouts = 40
[[player]]
name = "a"
search = { algorithm = "pvs" }
[[player]]
name = "b"
search = { algorithm = "minimax" }
"#;

    /// Returns the standings of a run in which `a` won both games of this many bouts.
    fn after_sweep(bouts: u64) -> (Vec<v1::Standing>, Conclusion) {
        let source = agon_arena::SpecSource { text: SPEC.to_string(), ..Default::default() };
        let spec = Spec::parse(&source).unwrap();
        let mut standings = Standings::new(&spec, RunTotals::default()).unwrap();
        let game = |players, payoffs| GameSummary { players, payoffs };
        let games = vec![game(vec![0, 1], vec![1, -1]), game(vec![1, 0], vec![-1, 1])];
        let summary = Summary { games, effort: vec![Effort::default(); 2], forfeits: 0 };
        (0..bouts).for_each(|bout| standings.add(bout, &summary));
        let (table, conclusion) = standings.table(false);
        (table, conclusion.unwrap())
    }

    #[test]
    fn few_bouts_prove_nothing() {
        let (table, conclusion) = after_sweep(2);
        assert_eq!(conclusion.sentence, "too few results to call a or b stronger");
        assert!(conclusion.caution.is_some() && conclusion.los < Some(0.975), "{conclusion:?}");
        assert!(table[0].low < Some(0.0) && table[0].high.is_none(), "{table:?}");
        let (_, conclusion) = after_sweep(20);
        assert_eq!((conclusion.sentence.as_str(), conclusion.caution), ("a is stronger than b", None));
    }

    #[test]
    fn first_of_two_players_has_their_whole_difference() {
        let (table, _) = after_sweep(4);
        let pairs = agon_stats::pairs::Scores::from(Pairs([0, 0, 0, 0, 4])).compare().unwrap();
        assert!((table[0].elo.unwrap() - pairs.elo).abs() < 1e-6, "{table:?}");
        assert_eq!((table[1].elo, table[1].player.as_str()), (Some(0.0), "b"));
    }
}
