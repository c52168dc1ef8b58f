//! Simulated players, openings and results.
//!
//! Openings favour one seat or the other. Both games of a bout share the opening, so that they depend on each other.

use rand::RngExt as _;

use agon_stats::distribution::Random;
use agon_stats::elo::{Split, expected_score};
use agon_stats::multinomial::multinomial;
use agon_stats::outcome::Outcome;
use agon_stats::pairs::{PairScore, Pairs};
use agon_stats::pool::Results;

/// Players of known strengths. Precondition of all methods: at least two players and at least one opening.
#[derive(Clone, PartialEq, Debug)]
pub struct World {
    /// The strengths in Elo.
    pub ratings: Vec<f64>,
    /// The first seat's advantage in Elo.
    pub seat_advantage: f64,
    /// The share of draws between equal players.
    pub draw_rate: f64,
    /// The Elo that each opening adds to the first seat's advantage; all are equally frequent.
    pub openings: Vec<f64>,
}

impl World {
    /// Creates players `step` Elo apart, with a small advantage of the first seat, some draws, and unbalanced
    /// openings.
    pub fn ladder(players: usize, step: f64) -> Self {
        World {
            ratings: (0..players).map(|player| step * player as f64).collect(),
            seat_advantage: 30.0,
            draw_rate: 0.3,
            openings: vec![-250.0, -120.0, 0.0, 120.0, 250.0],
        }
    }

    /// Returns the probabilities of a bout's nine results for `one` against `other`: 3 times the half points with the
    /// first seat, plus those with the second.
    pub fn bout_probabilities(&self, one: usize, other: usize) -> [f64; 9] {
        let difference = self.ratings[one] - self.ratings[other];
        let mut probabilities = [0.0; 9];
        for opening in &self.openings {
            let advantage = self.seat_advantage + opening;
            let first = Split::at(expected_score(difference + advantage), self.draw_rate);
            let second = Split::at(expected_score(difference - advantage), self.draw_rate);
            for (i, first) in [first.loss, first.draw, first.win].into_iter().enumerate() {
                for (j, second) in [second.loss, second.draw, second.win].into_iter().enumerate() {
                    probabilities[3 * i + j] += first * second / self.openings.len() as f64;
                }
            }
        }
        probabilities
    }

    /// Returns the probabilities of the five scores of a bout if the expected score is `score`, by the difference of the
    /// first two players that gives it.
    pub fn pair_probabilities(&self, score: f64) -> [f64; 5] {
        let (mut low, mut high) = (-4000.0, 4000.0);
        let mut world = self.clone();
        for _ in 0..100 {
            world.ratings = vec![0.5 * (low + high), 0.0];
            if world.score(0, 1) < score {
                low = world.ratings[0];
            } else {
                high = world.ratings[0];
            }
        }
        let mut scores = [0.0; 5];
        for (kind, probability) in world.bout_probabilities(0, 1).into_iter().enumerate() {
            scores[kind / 3 + kind % 3] += probability;
        }
        scores
    }

    /// Returns the expected score of `one` in a bout against `other`.
    pub fn score(&self, one: usize, other: usize) -> f64 {
        let probabilities = self.bout_probabilities(one, other);
        probabilities.into_iter().enumerate().map(|(kind, p)| p * (kind / 3 + kind % 3) as f64 / 4.0).sum()
    }

    /// Draws `bouts` bouts of `one` against `other`.
    pub fn pairs(&self, one: usize, other: usize, bouts: u64, random: &mut Random) -> Pairs {
        let mut pairs = Pairs::default();
        let drawn = multinomial(random, bouts, &self.bout_probabilities(one, other));
        for (kind, count) in drawn.into_iter().enumerate() {
            pairs.0[kind / 3 + kind % 3] += count;
        }
        pairs
    }

    /// Draws an endless sequence of bouts of `one` against `other`.
    pub fn bouts(&self, one: usize, other: usize, mut random: Random) -> impl Iterator<Item = PairScore> {
        let probabilities = self.bout_probabilities(one, other);
        std::iter::repeat_with(move || {
            let mut left: f64 = random.random();
            let kind = probabilities.iter().position(|&probability| {
                left -= probability;
                left < 0.0
            });
            let kind = kind.unwrap_or(8);
            PairScore::of(Outcome::ALL[kind / 3], Outcome::ALL[kind % 3])
        })
    }

    /// Draws a round robin with `bouts` bouts per pairing.
    pub fn tournament(&self, bouts: u64, random: &mut Random) -> Results {
        self.results(|probabilities| multinomial(random, bouts, probabilities))
    }

    /// Returns a round robin with the expected frequency of every result, to within one in `bouts`: the limit of many
    /// results.
    pub fn expected_tournament(&self, bouts: f64) -> Results {
        self.results(|probabilities| probabilities.map(|probability| (probability * bouts).round() as u64))
    }

    fn results(&self, mut counts: impl FnMut(&[f64; 9]) -> [u64; 9]) -> Results {
        let mut results = Results::default();
        let players: Vec<_> =
            (0..self.ratings.len()).map(|index| results.player(&Self::name(index))).collect();
        for one in 0..players.len() {
            for other in one + 1..players.len() {
                let counts = counts(&self.bout_probabilities(one, other));
                for (kind, count) in counts.into_iter().enumerate() {
                    let (first, second) = (Outcome::ALL[kind / 3], Outcome::ALL[kind % 3]);
                    let added = results.add_bouts(players[one], players[other], first, second, count);
                    added.expect("the players are different");
                }
            }
        }
        results
    }

    /// Returns the name of a player; names sort like players.
    fn name(index: usize) -> String {
        format!("player {index:04}")
    }
}
