//! The summary of a bout: the results and effort from which standings, ratings and the comparison of workers are computed.

use agon_stats::pairs::PairScore;
use agon_stats::tournament::{Game, pair_of};
use serde::{Deserialize, Serialize};

/// The results and effort of a bout, without its moves.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// The games of the bout.
    pub games: Vec<GameSummary>,
    /// The effort of each player, in the order of the spec.
    pub effort: Vec<Effort>,
    /// The number of games lost on time.
    pub forfeits: u64,
}

/// A game without its moves.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct GameSummary {
    /// The players by seat, as indices into the players of the spec.
    pub players: Vec<usize>,
    /// The payoffs by seat.
    pub payoffs: Vec<i32>,
}

/// The search effort of one player, summed over its moves.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Effort {
    /// The number of searches.
    pub moves: u64,
    /// The number of nodes.
    pub nodes: u64,
    /// The sum of the search depths.
    pub depth: u64,
    /// The time over the limit, in microseconds.
    pub overshoot_us: u64,
    /// The largest overshoot of one search, in microseconds.
    pub most_overshoot_us: u64,
}

impl Effort {
    /// Adds the effort of `other`.
    pub fn add(&mut self, other: &Effort) {
        self.moves += other.moves;
        self.nodes += other.nodes;
        self.depth += other.depth;
        self.overshoot_us += other.overshoot_us;
        self.most_overshoot_us = self.most_overshoot_us.max(other.most_overshoot_us);
    }

    /// Subtracts the effort of `other`. The largest overshoot stays, because the next largest is not known.
    pub fn subtract(&mut self, other: &Effort) {
        self.moves = self.moves.saturating_sub(other.moves);
        self.nodes = self.nodes.saturating_sub(other.nodes);
        self.depth = self.depth.saturating_sub(other.depth);
        self.overshoot_us = self.overshoot_us.saturating_sub(other.overshoot_us);
    }
}

impl Summary {
    /// Returns the score of the player that began the first game. `None` unless the bout is two games with two seats, played
    /// with reversed seats.
    pub fn pair_score(&self) -> Option<PairScore> {
        let games: Vec<Game> = self.games.iter().map(Game::from).collect();
        pair_of(&games).map(|(_, [first, second])| PairScore::of(first, second))
    }

    /// Returns the [`pair_score`](Summary::pair_score) in half points, 0 to 4.
    fn half_points(&self) -> Option<u8> {
        self.pair_score().map(PairScore::half_points)
    }

    /// Returns the players of the first game by seat; none for a probe.
    pub fn players(&self) -> &[usize] {
        self.games.first().map_or(&[], |game| &game.players)
    }

    /// Returns the score of the player in the first seat of the first game, in thousandths: its mean share of the point of a
    /// game. Two seats have a score only if the bout is a pair.
    pub fn score(&self) -> Option<u16> {
        let first = self.games.first()?;
        if first.players.len() == 2 {
            return self.half_points().map(|half_points| 250 * u16::from(half_points));
        }
        let candidate = *first.players.first()?;
        let shares = self.games.iter().map(|game| {
            let game = Game::from(game);
            let own = game.shares().filter(|(player, _)| *player == candidate);
            own.map(|(_, share)| share).sum::<f64>()
        });
        Some((1000.0 * shares.sum::<f64>() / self.games.len() as f64).round() as u16)
    }

    /// Returns the time over the limit in microseconds and the number of moves, both summed over the players.
    pub fn overshoot(&self) -> (u64, u64) {
        self.effort
            .iter()
            .fold((0, 0), |(sum, moves), effort| (sum + effort.overshoot_us, moves + effort.moves))
    }

    /// Returns a key for the set of players, and the outcome for the player listed first in the spec: 0 for more than an
    /// even share of the points, 1 for less, 2 for exactly that. The comparison of workers counts these outcomes.
    /// `None` for a probe, which has no games.
    pub fn pairing_outcome(&self) -> Option<(u64, usize)> {
        let players = self.games.first()?.players.iter().collect::<std::collections::BTreeSet<_>>();
        let first = **players.first()?;
        let pairing = players
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
