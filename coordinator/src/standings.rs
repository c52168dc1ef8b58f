//! What is known of the players so far: results, ratings, nodes and depths, and how a sequential test stands.

use agon_arena::Spec;
use agon_arena::spec::{Format, Plan};
use agon_proto::v1;
use agon_records::BoutRows;
use agon_stats::outcome::Outcome;
use agon_stats::pairs::PairScore;
use agon_stats::plackett_luce::{Anchor, Game, LowestPlaces, Pool};
use agon_stats::pool::{Fit, Options, Results};
use agon_stats::sprt::{BoutResult, Decision, Fold, Verdict};
use serde::{Deserialize, Serialize};

use crate::schedule::{ScheduleError, sprt_bounds};

/// Seed and number of the replicas behind the intervals of games with many seats.
const SEED: u64 = 1;
const REPLICAS: usize = 200;

/// What is kept of a bout for the standings.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Summary {
    games: Vec<GameSummary>,
    effort: Vec<Effort>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
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
}

impl Summary {
    /// What the standings need of a bout.
    pub fn new(spec: &Spec, rows: &BoutRows) -> Summary {
        let number = |name: &str| spec.players.iter().position(|player| player.name == name);
        let mut effort = vec![Effort::default(); spec.players.len()];
        let decisions = rows.moves.iter().chain(rows.probes.iter().map(|probe| &probe.decision));
        for search in decisions.filter_map(|row| row.search.as_ref()) {
            if let Some(player) = number(&search.player) {
                effort[player].moves += 1;
                effort[player].nodes += search.nodes;
                effort[player].depth += u64::from(search.depth);
            }
        }
        let game = |row: &agon_records::GameRow| GameSummary {
            players: row.players.iter().filter_map(|name| number(name)).collect(),
            payoffs: row.payoffs.clone(),
        };
        Summary { games: rows.games.iter().map(game).collect(), effort }
    }

    /// The text that is stored: JSON, and the beginning of its digest, by which damage is noticed.
    pub fn to_text(&self) -> String {
        let json = serde_json::to_string(self).expect("a summary is plain data");
        format!("{json} {}", short_digest(&json))
    }

    /// Reads a stored text; none where it is damaged.
    pub fn from_text(text: &str) -> Option<Summary> {
        let (json, digest) = text.rsplit_once(' ')?;
        if digest != short_digest(json) {
            return None;
        }
        serde_json::from_str(json).ok()
    }

    /// How many games it has.
    pub fn games(&self) -> u64 {
        self.games.len() as u64
    }
}

fn short_digest(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..16].to_string()
}

/// The results of a run so far.
pub struct Standings {
    names: Vec<String>,
    tallies: Vec<Tally>,
    effort: Vec<Effort>,
    pool: Pooled,
    fold: Option<Fold>,
    games: u64,
}

/// What rates the players.
enum Pooled {
    /// Two seats.
    Duel(Results),
    /// More.
    Many(Box<Pool>),
    /// A probe rates nobody.
    Nobody,
}

/// A rating and the ends of its interval. One that is only a bound has one end.
#[derive(Clone, Copy)]
struct Rating {
    elo: f64,
    low: Option<f64>,
    high: Option<f64>,
}

#[derive(Clone, Copy, Default)]
struct Tally {
    games: u64,
    wins: u64,
    draws: u64,
    losses: u64,
    score: f64,
}

impl Standings {
    /// Nothing is known yet.
    pub fn new(spec: &Spec, seats: usize) -> Result<Standings, ScheduleError> {
        let fold = match &spec.plan {
            Plan::Tournament(Format::Sprt(settings)) => Some(Fold::new(sprt_bounds(settings)?)),
            _ => None,
        };
        let many = || Pool::new(spec.players.len(), seats, LowestPlaces::Undecided).map(Box::new);
        let pool = match &spec.plan {
            Plan::Probe(_) => Pooled::Nobody,
            Plan::Tournament(_) if seats == 2 => {
                let mut results = Results::default();
                for player in &spec.players {
                    results.player(&player.name);
                }
                Pooled::Duel(results)
            }
            Plan::Tournament(_) => many().map_or(Pooled::Nobody, Pooled::Many),
        };
        Ok(Standings {
            names: spec.players.iter().map(|player| player.name.clone()).collect(),
            tallies: vec![Tally::default(); spec.players.len()],
            effort: vec![Effort::default(); spec.players.len()],
            pool,
            fold,
            games: 0,
        })
    }

    /// Counts a bout; of a test, whether it decides now or did before.
    pub fn add(&mut self, bout: u64, summary: &Summary) -> Option<Decision> {
        self.games += summary.games();
        for (sum, effort) in self.effort.iter_mut().zip(&summary.effort) {
            sum.moves += effort.moves;
            sum.nodes += effort.nodes;
            sum.depth += effort.depth;
        }
        for game in &summary.games {
            self.tally(game);
        }
        self.rate(summary);
        let pair = pair_of(summary).map(|(_, outcomes)| PairScore::of(outcomes[0], outcomes[1]));
        self.fold(bout, pair.map_or(BoutResult::Void, BoutResult::Pair))
    }

    /// Counts a bout that failed: no evidence, but the test goes on behind it.
    pub fn add_failed(&mut self, bout: u64) -> Option<Decision> {
        self.fold(bout, BoutResult::Void)
    }

    fn fold(&mut self, bout: u64, result: BoutResult) -> Option<Decision> {
        self.fold.as_mut()?.put(bout, result).unwrap_or(None)
    }

    fn tally(&mut self, game: &GameSummary) {
        let best = game.payoffs.iter().max();
        let winners = game.payoffs.iter().filter(|payoff| Some(*payoff) == best).count();
        for (&player, payoff) in game.players.iter().zip(&game.payoffs) {
            let tally = &mut self.tallies[player];
            tally.games += 1;
            if Some(payoff) != best {
                tally.losses += 1;
            } else if winners == 1 {
                tally.wins += 1;
                tally.score += 1.0;
            } else {
                tally.draws += 1;
                tally.score += 1.0 / winners as f64;
            }
        }
    }

    fn rate(&mut self, summary: &Summary) {
        match &mut self.pool {
            Pooled::Duel(results) => {
                if let Some(([one, other], [first, second])) = pair_of(summary) {
                    let [one, other] = [one, other].map(|player| results.player(&self.names[player]));
                    // One player in both seats says nothing.
                    let _ = results.add_bouts(one, other, first, second, 1);
                }
            }
            Pooled::Many(pool) => {
                let games: Vec<Game> = summary
                    .games
                    .iter()
                    .map(|game| Game { players: game.players.clone(), payoffs: game.payoffs.clone() })
                    .collect();
                let _ = pool.add(&games);
            }
            Pooled::Nobody => {}
        }
    }

    /// How many games were counted.
    pub fn games(&self) -> u64 {
        self.games
    }

    /// The table for people, the best first. `intervals` of games with many seats cost time and are left out while
    /// nobody needs them.
    pub fn table(&self, intervals: bool) -> Vec<v1::Standing> {
        let mut table: Vec<v1::Standing> = (0..self.names.len()).map(|player| self.row(player)).collect();
        for (row, rating) in table.iter_mut().zip(self.ratings(intervals)) {
            row.elo = rating.map(|rating| rating.elo);
            row.low = rating.and_then(|rating| rating.low);
            row.high = rating.and_then(|rating| rating.high);
        }
        if !matches!(self.pool, Pooled::Nobody) {
            let key = |row: &v1::Standing| row.elo.unwrap_or(f64::NEG_INFINITY);
            table.sort_by(|one, other| {
                key(other).total_cmp(&key(one)).then(other.score.total_cmp(&one.score))
            });
        }
        table
    }

    fn row(&self, player: usize) -> v1::Standing {
        let (tally, effort) = (self.tallies[player], self.effort[player]);
        let mean = |sum: f64, count: u64| if count == 0 { 0.0 } else { sum / count as f64 };
        v1::Standing {
            player: self.names[player].clone(),
            elo: None,
            low: None,
            high: None,
            games: tally.games,
            wins: tally.wins,
            draws: tally.draws,
            losses: tally.losses,
            score: mean(tally.score, tally.games),
            mean_nodes: mean(effort.nodes as f64, effort.moves),
            mean_depth: mean(effort.depth as f64, effort.moves),
            moves: effort.moves,
        }
    }

    /// The rating of each player with the ends of its interval, where they can be said.
    fn ratings(&self, intervals: bool) -> Vec<Option<Rating>> {
        match &self.pool {
            Pooled::Duel(results) => duel_ratings(results, &self.names),
            Pooled::Many(pool) => {
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
                (0..self.names.len()).map(|player| rating(player).filter(|_| self.games > 0)).collect()
            }
            Pooled::Nobody => vec![None; self.names.len()],
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

/// The players of a bout of two seats and the outcomes for the first of them in its two games.
fn pair_of(summary: &Summary) -> Option<([usize; 2], [Outcome; 2])> {
    let [first, second] = &summary.games[..] else { return None };
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
