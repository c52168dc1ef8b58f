//! What is known of the players so far: results, ratings, nodes and depths, and how a sequential test stands.
//!
//! A tally forgets which bout was which: bouts with the same players and payoffs are counted together. So it stays small
//! however long a run is, and what is remembered of bouts that have left for the dataset is a tally like any other.

use agon_arena::Spec;
use agon_arena::spec::{Format, Plan};
use agon_proto::v1;
use agon_records::BoutRows;
use agon_stats::outcome::Outcome;
use agon_stats::pairs::{PairScore, Pairs};
use agon_stats::plackett_luce::{Anchor, Game, LowestPlaces, Pool};
use agon_stats::pool::{Fit, Options, Results};
use agon_stats::sprt::{BoutResult, Decision, Fold, Verdict};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::schedule::{ScheduleError, sprt_bounds};
use crate::store::BoutSummary;

/// Seed and number of the replicas behind the intervals of games with many seats.
const SEED: u64 = 1;
const REPLICAS: usize = 200;

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
    pub fn new(spec: &Spec, rows: &BoutRows) -> Summary {
        let number = |name: &str| spec.players.iter().position(|player| player.name == name);
        let mut effort = vec![Effort::default(); spec.players.len()];
        let decisions = rows.moves.iter().chain(rows.probes.iter().map(|probe| &probe.decision));
        for search in decisions.filter_map(|row| row.search.as_ref()) {
            if let Some(player) = number(&search.player) {
                effort[player].add(&Effort {
                    moves: 1,
                    nodes: search.nodes,
                    depth: u64::from(search.depth),
                    overshoot_us: search.overshoot_us,
                    most_overshoot_us: search.overshoot_us,
                });
            }
        }
        let game = |row: &agon_records::GameRow| GameSummary {
            players: row.players.iter().filter_map(|name| number(name)).collect(),
            payoffs: row.payoffs.clone(),
        };
        let forfeits = rows.games.iter().filter(|row| row.ending == agon_arena::TIME_FORFEIT).count();
        Summary { games: rows.games.iter().map(game).collect(), effort, forfeits: forfeits as u64 }
    }

    /// What was stored of a bout; none where it failed.
    pub fn read(row: &BoutSummary) -> Option<Summary> {
        if row.failed { None } else { unseal(&row.summary) }
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
            for (player, share) in game.shares() {
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

impl GameSummary {
    /// Each player with its share of the one point that a game has.
    fn shares(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        let best = self.payoffs.iter().max().copied();
        let winners = self.payoffs.iter().filter(|payoff| Some(**payoff) == best).count() as f64;
        let share = move |payoff: &i32| if Some(*payoff) == best { 1.0 / winners } else { 0.0 };
        self.players.iter().copied().zip(self.payoffs.iter().map(share))
    }
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
}

impl Tally {
    /// Counts a bout that was played.
    pub fn add(&mut self, summary: &Summary) {
        self.bouts += 1;
        self.games += summary.games();
        self.effort.resize(self.effort.len().max(summary.effort.len()), Effort::default());
        for (sum, effort) in self.effort.iter_mut().zip(&summary.effort) {
            sum.add(effort);
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
        if let Some((_, [first, second])) = pair_of(&summary.games) {
            let count = &mut self.pairs[PairScore::of(first, second).half_points() as usize];
            *count = count.saturating_sub(1);
        }
    }

    /// Notes the next bout that a sequential test has looked at.
    pub fn test(&mut self, summary: Option<&Summary>) {
        self.tested += 1;
        if let Some((_, [first, second])) = summary.and_then(|summary| pair_of(&summary.games)) {
            self.pairs[PairScore::of(first, second).half_points() as usize] += 1;
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
pub struct Standings {
    names: Vec<String>,
    seats: usize,
    probe: bool,
    tally: Tally,
    fold: Option<Fold>,
}

/// A rating and the ends of its interval. One that is only a bound has one end.
#[derive(Clone, Copy)]
struct Rating {
    elo: f64,
    low: Option<f64>,
    high: Option<f64>,
}

/// Results of one player.
#[derive(Clone, Copy, Default)]
struct Record {
    games: u64,
    wins: u64,
    draws: u64,
    losses: u64,
    score: f64,
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
        Ok(Standings {
            names: spec.players.iter().map(|player| player.name.clone()).collect(),
            seats,
            probe: matches!(spec.plan, Plan::Probe(_)),
            tally,
            fold,
        })
    }

    /// Counts a bout; of a test, whether it decides now or did before.
    pub fn add(&mut self, bout: u64, summary: &Summary) -> Option<Decision> {
        self.tally.add(summary);
        let pair = pair_of(&summary.games).map(|(_, outcomes)| PairScore::of(outcomes[0], outcomes[1]));
        self.fold(bout, pair.map_or(BoutResult::Void, BoutResult::Pair))
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

    /// Results by player.
    fn records(&self) -> Vec<Record> {
        let mut records = vec![Record::default(); self.names.len()];
        for (shape, count) in &self.tally.shapes {
            for (player, share) in shape.iter().flat_map(GameSummary::shares) {
                let record = &mut records[player];
                record.games += count;
                record.score += share * *count as f64;
                let outcome = if share == 0.0 {
                    &mut record.losses
                } else if share == 1.0 {
                    &mut record.wins
                } else {
                    &mut record.draws
                };
                *outcome += count;
            }
        }
        records
    }

    /// The table for people, the best first. `intervals` of games with many seats cost time and are left out while
    /// nobody needs them.
    pub fn table(&self, intervals: bool) -> Vec<v1::Standing> {
        let ratings = if self.probe { vec![None; self.names.len()] } else { self.ratings(intervals) };
        let row = |(player, (record, rating)): (usize, (Record, Option<Rating>))| {
            let effort = self.tally.effort.get(player).copied().unwrap_or_default();
            let mean = |sum: f64, count: u64| if count == 0 { 0.0 } else { sum / count as f64 };
            v1::Standing {
                player: self.names[player].clone(),
                elo: rating.map(|rating| rating.elo),
                low: rating.and_then(|rating| rating.low),
                high: rating.and_then(|rating| rating.high),
                games: record.games,
                wins: record.wins,
                draws: record.draws,
                losses: record.losses,
                score: mean(record.score, record.games),
                mean_nodes: mean(effort.nodes as f64, effort.moves),
                mean_depth: mean(effort.depth as f64, effort.moves),
                moves: effort.moves,
                mean_overshoot_us: mean(effort.overshoot_us as f64, effort.moves),
                most_overshoot_us: effort.most_overshoot_us,
            }
        };
        let mut table: Vec<v1::Standing> =
            self.records().into_iter().zip(ratings).enumerate().map(row).collect();
        if !self.probe {
            let key = |row: &v1::Standing| row.elo.unwrap_or(f64::NEG_INFINITY);
            table.sort_by(|one, other| {
                key(other).total_cmp(&key(one)).then(other.score.total_cmp(&one.score))
            });
        }
        table
    }

    /// The rating of each player with the ends of its interval, where they can be said.
    fn ratings(&self, intervals: bool) -> Vec<Option<Rating>> {
        let nobody = || vec![None; self.names.len()];
        if self.tally.shapes.is_empty() {
            return nobody();
        }
        if self.seats == 2 {
            return duel_ratings(&self.results(), &self.names);
        }
        let Ok(mut pool) = Pool::new(self.names.len(), self.seats, LowestPlaces::Undecided) else {
            return nobody();
        };
        for (shape, count) in &self.tally.shapes {
            let game =
                |game: &GameSummary| Game { players: game.players.clone(), payoffs: game.payoffs.clone() };
            let games: Vec<Game> = shape.iter().map(game).collect();
            // What cannot be ranked says nothing.
            let _ = pool.add_bouts(&games, *count);
        }
        let fit = pool.fit(Anchor::Mean);
        let replicas = intervals.then(|| pool.bootstrap(Anchor::Mean, SEED, REPLICAS));
        let rating = |player: usize| {
            let ends = replicas.as_ref().and_then(|replicas| replicas.strength(player));
            Some(Rating {
                elo: fit.strengths.get(player)?.elo,
                low: ends.map(|measure| measure.low),
                high: ends.map(|measure| measure.high),
            })
        };
        (0..self.names.len()).map(rating).collect()
    }

    fn results(&self) -> Results {
        let mut results = Results::default();
        let players: Vec<_> = self.names.iter().map(|name| results.player(name)).collect();
        for (shape, count) in &self.tally.shapes {
            if let Some(([one, other], [first, second])) = pair_of(shape) {
                // One player in both seats says nothing.
                let _ = results.add_bouts(players[one], players[other], first, second, *count);
            }
        }
        results
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

/// The players of a bout of two seats and the outcomes for the first of them in its two games.
fn pair_of(shape: &[GameSummary]) -> Option<([usize; 2], [Outcome; 2])> {
    let [first, second] = shape else { return None };
    let (&[one, other], &[second_one, second_other]) = (&first.players[..], &second.players[..]) else {
        return None;
    };
    if (one, other) != (second_other, second_one) {
        return None;
    }
    let outcomes = [
        Outcome::of_payoffs(*first.payoffs.first()?, *first.payoffs.get(1)?),
        Outcome::of_payoffs(*second.payoffs.get(1)?, *second.payoffs.first()?),
    ];
    Some(([one, other], outcomes))
}

fn duel_ratings(results: &Results, names: &[String]) -> Vec<Option<Rating>> {
    let Ok(fit) = Fit::new(results, &Options::default()) else { return vec![None; names.len()] };
    let uncertainty = fit.sandwich();
    let standings = fit.standings(&uncertainty);
    let rating = |name: &String| {
        let row = standings.iter().find(|row| row.name == *name)?;
        Some(Rating { elo: row.elo, low: row.low, high: row.high })
    };
    names.iter().map(rating).collect()
}
