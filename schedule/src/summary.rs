//! The summary of a bout: what standings, ratings and the comparison of workers need.

use agon_stats::pairs::PairScore;
use agon_stats::tournament::{Game, pair_of};
use serde::{Deserialize, Serialize};

/// The results and effort of a bout, without its moves.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// The games without their moves.
    pub games: Vec<GameSummary>,
    /// The effort of each player of the spec.
    pub effort: Vec<Effort>,
    /// The number of games lost on time.
    pub forfeits: u64,
}

/// A game without its moves.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct GameSummary {
    /// The players by seat, as numbers of the spec.
    pub players: Vec<usize>,
    /// The payoffs by seat.
    pub payoffs: Vec<i32>,
}

/// The sums over the searches of one player.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Effort {
    /// The number of searches.
    pub moves: u64,
    /// Nodes.
    pub nodes: u64,
    /// Depths.
    pub depth: u64,
    /// Microseconds over the time limit.
    pub overshoot_us: u64,
    /// The largest overshoot of one search.
    pub most_overshoot_us: u64,
}

impl Effort {
    /// Adds `other`.
    pub fn add(&mut self, other: &Effort) {
        self.moves += other.moves;
        self.nodes += other.nodes;
        self.depth += other.depth;
        self.overshoot_us += other.overshoot_us;
        self.most_overshoot_us = self.most_overshoot_us.max(other.most_overshoot_us);
    }

    /// Subtracts `other`. The largest overshoot stays, since the second largest is unknown.
    pub fn subtract(&mut self, other: &Effort) {
        self.moves = self.moves.saturating_sub(other.moves);
        self.nodes = self.nodes.saturating_sub(other.nodes);
        self.depth = self.depth.saturating_sub(other.depth);
        self.overshoot_us = self.overshoot_us.saturating_sub(other.overshoot_us);
    }
}

impl Summary {
    /// Returns the score of the player that began the first game, in a bout with two seats.
    pub fn pair_score(&self) -> Option<PairScore> {
        let games: Vec<Game> = self.games.iter().map(Game::from).collect();
        pair_of(&games).map(|(_, [first, second])| PairScore::of(first, second))
    }

    /// Returns the same score in half points.
    pub fn half_points(&self) -> Option<u8> {
        self.pair_score().map(PairScore::half_points)
    }

    /// Returns the microseconds over the time limit and the number of moves, summed over the players.
    pub fn overshoot(&self) -> (u64, u64) {
        self.effort
            .iter()
            .fold((0, 0), |(sum, moves), effort| (sum + effort.overshoot_us, moves + effort.moves))
    }

    /// Returns a key of the pairing, and whether its first player won the bout (0), lost it (1) or neither (2). The
    /// comparison of workers counts these. A probe has none.
    pub fn pairing_outcome(&self) -> Option<(u64, usize)> {
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
