//! What is known of the players so far: results, ratings, nodes and depths, and how a sequential test stands.
//!
//! A tally forgets which bout was which: bouts with the same players and payoffs are counted together. So it stays small
//! however long a run is, and what is remembered of bouts that have left for the dataset is a tally like any other.

use std::num::NonZeroUsize;

use agon_arena::Spec;
use agon_arena::spec::{Format, Plan, Values};
use agon_proto::v1;
use agon_records::BoutColumns;
use agon_stats::pairs::{PairScore, Pairs};
use agon_stats::pool;
use agon_stats::sprt::{BoutResult, Decision, Fold, Verdict};
use agon_stats::tournament::{self, Answer, Errors, Game, Options, pair_of};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::course::Score;
use crate::schedule::{ScheduleError, sprt_bounds};
use crate::store::BoutSummary;

/// Seed and number of the replicas behind the intervals of games with many seats.
const SEED: u64 = 1;
const REPLICAS: NonZeroUsize = NonZeroUsize::new(200).expect("two hundred is not zero");

/// What is kept of a bout for the standings.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Summary {
    games: Shape,
    effort: Vec<Effort>,
    /// Games that ended because a clock ran out.
    forfeits: u64,
}

/// The games of a bout without their moves.
type Shape = Vec<GameSummary>;

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
struct GameSummary {
    players: Vec<usize>,
    payoffs: Vec<i32>,
}

/// What a player spent on its moves, summed.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
struct Effort {
    moves: u64,
    nodes: u64,
    depth: u64,
    overshoot_us: u64,
    most_overshoot_us: u64,
}

impl Effort {
    fn add(&mut self, other: &Effort) {
        self.moves += other.moves;
        self.nodes += other.nodes;
        self.depth += other.depth;
        self.overshoot_us += other.overshoot_us;
        self.most_overshoot_us = self.most_overshoot_us.max(other.most_overshoot_us);
    }

    /// Takes away what was added. The greatest overshoot stays: nothing remembers the one below it.
    fn subtract(&mut self, other: &Effort) {
        self.moves = self.moves.saturating_sub(other.moves);
        self.nodes = self.nodes.saturating_sub(other.nodes);
        self.depth = self.depth.saturating_sub(other.depth);
        self.overshoot_us = self.overshoot_us.saturating_sub(other.overshoot_us);
    }
}

impl Summary {
    /// What the standings need of a bout.
    pub fn new(spec: &Spec, bout: &BoutColumns) -> Summary {
        let number = |name: &String| spec.players.iter().position(|player| player.name == *name);
        let mut effort = vec![Effort::default(); spec.players.len()];
        let mut spend = |player: Option<usize>, nodes, depth: u16, overshoot_us| {
            if let Some(player) = player {
                effort[player].add(&Effort {
                    moves: 1,
                    nodes,
                    depth: u64::from(depth),
                    overshoot_us,
                    most_overshoot_us: overshoot_us,
                });
            }
        };
        let searches = &bout.moves.searches;
        let players: Vec<Option<usize>> = searches.names.iter().map(number).collect();
        for (index, player) in searches.player.iter().enumerate() {
            let player = players[usize::from(*player)];
            spend(player, searches.nodes[index], searches.depth[index], searches.overshoot_us[index]);
        }
        for search in bout.probes.iter().filter_map(|probe| probe.decision.search.as_ref()) {
            spend(number(&search.player), search.nodes, search.depth, search.overshoot_us);
        }
        let game = |row: &agon_records::GameRow| GameSummary {
            players: row.players.iter().filter_map(number).collect(),
            payoffs: row.payoffs.clone(),
        };
        let forfeits = bout.games.iter().filter(|row| row.ending == agon_arena::TIME_FORFEIT).count();
        Summary { games: bout.games.iter().map(game).collect(), effort, forfeits: forfeits as u64 }
    }

    /// What was stored of a bout; none where it failed.
    pub fn read(row: &BoutSummary) -> Option<Summary> {
        if row.failed { None } else { unseal(&row.summary) }
    }

    /// The half points of who began the first game, of a bout of two seats.
    pub fn half_points(&self) -> Option<u8> {
        pair_score(&self.games).map(PairScore::half_points)
    }

    /// How many games it has.
    pub fn games(&self) -> u64 {
        self.games.len() as u64
    }

    /// How many of them ended because a clock ran out.
    pub fn forfeits(&self) -> u64 {
        self.forfeits
    }

    /// Microseconds over the limit, of all moves together, and how many moves there were.
    pub fn overshoot(&self) -> (u64, u64) {
        self.effort
            .iter()
            .fold((0, 0), |(sum, moves), effort| (sum + effort.overshoot_us, moves + effort.moves))
    }

    /// Which pairing it was, and whether its first player won the bout (0), lost it (1) or neither (2): what workers are
    /// compared by. None of a probe.
    pub fn cell(&self) -> Option<(u64, usize)> {
        let roster = self.games.first()?.players.iter().collect::<std::collections::BTreeSet<_>>();
        let first = **roster.first()?;
        let pairing = roster
            .iter()
            .fold(0_u64, |key, player| key.wrapping_mul(1 << 10).wrapping_add(**player as u64 + 1));
        let mut score = 0.0;
        let mut expected = 0.0;
        for game in &self.games {
            for (player, share) in Game::from(game).shares() {
                expected += if player == first { 1.0 / game.players.len() as f64 } else { 0.0 };
                score += if player == first { share } else { 0.0 };
            }
        }
        let outcome = if score > expected + 1e-9 {
            0
        } else if score < expected - 1e-9 {
            1
        } else {
            2
        };
        Some((pairing, outcome))
    }
}

impl From<&GameSummary> for Game {
    fn from(game: &GameSummary) -> Game {
        Game { players: game.players.clone(), payoffs: game.payoffs.clone() }
    }
}

/// The score of who began the first game of a bout of two seats.
fn pair_score(shape: &[GameSummary]) -> Option<PairScore> {
    let games: Vec<Game> = shape.iter().map(Game::from).collect();
    pair_of(&games).map(|(_, [first, second])| PairScore::of(first, second))
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
    shapes: Vec<(Shape, u64)>,
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
        self.games += summary.games();
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
        self.games = self.games.saturating_sub(summary.games());
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
        if let Some(score) = pair_score(&summary.games) {
            let count = &mut self.pairs[usize::from(score.half_points())];
            *count = count.saturating_sub(1);
        }
    }

    /// Notes the next bout that a sequential test has looked at.
    pub fn test(&mut self, summary: Option<&Summary>) {
        self.tested += 1;
        if let Some(score) = summary.and_then(|summary| pair_score(&summary.games)) {
            self.pairs[usize::from(score.half_points())] += 1;
        }
    }
}

/// The text by which something is stored: JSON, and the beginning of its digest, by which damage is noticed.
pub fn seal(value: &impl Serialize) -> String {
    let json = serde_json::to_string(value).expect("what is stored is plain data");
    format!("{json} {}", short_digest(&json))
}

/// Reads a stored text; none where it is damaged.
pub fn unseal<T: DeserializeOwned>(text: &str) -> Option<T> {
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
        self.fold(bout, pair_score(&summary.games).map_or(BoutResult::Void, BoutResult::Pair))
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
