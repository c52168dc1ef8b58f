//! Pools of many seats with known strengths: bias and coverage of the fit.

use rand::RngExt as _;

use agon_stats::distribution::{Random, seeded};
use agon_stats::elo::POINTS_PER_LOGIT;
use agon_stats::plackett_luce::{Anchor, Game, LowestPlaces, Pool, RankingError};

/// The true model of a simulated pool.
#[derive(Clone, Debug, PartialEq)]
pub struct Truth {
    /// The strength of each player on the Elo scale, with mean 0.
    pub strengths: Vec<f64>,
    /// The effect of each seat on the Elo scale, with mean 0.
    pub seat_effects: Vec<f64>,
    /// The frequency of ties between neighbouring places: from 0, never, to 1, the most that keeps every expected
    /// place.
    pub ties: f64,
    /// Whether all places are paid or only the winners.
    pub lowest: LowestPlaces,
}

/// The recovery of one parameter over many simulated pools.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recovery {
    /// The true value on the Elo scale.
    pub truth: f64,
    /// The mean of the fitted values.
    pub mean: f64,
    /// The standard error of that mean.
    pub error: f64,
    /// The share of pools whose 95 % bootstrap interval covers the truth.
    pub coverage: f64,
}

impl Truth {
    /// Draws a game of `players`.
    fn game(&self, players: &[usize], random: &mut Random) -> Game {
        let utility =
            |(player, effect): (&usize, &f64)| ((self.strengths[*player] + effect) / POINTS_PER_LOGIT).exp();
        let weights: Vec<f64> = players.iter().zip(&self.seat_effects).map(utility).collect();
        let mut left: Vec<usize> = (0..players.len()).collect();
        let mut order = Vec::new();
        while !left.is_empty() {
            let total: f64 = left.iter().map(|&seat| weights[seat]).sum();
            let mut mark = random.random::<f64>() * total;
            let chosen = left.iter().position(|&seat| {
                mark -= weights[seat];
                mark < 0.0
            });
            order.push(left.remove(chosen.unwrap_or(left.len() - 1)));
        }
        // A tie takes as much probability from either order of the two neighbours, so that a tie broken at random is
        // again a draw from the model.
        let place = match self.lowest {
            LowestPlaces::Decided => random.random_range(0..players.len() - 1),
            LowestPlaces::Undecided => 0,
        };
        let rest: f64 = order[place..].iter().map(|&seat| weights[seat]).sum();
        let odds = (rest - weights[order[place]]) / (rest - weights[order[place + 1]]);
        let shared = random.random::<f64>() < self.ties * odds.min(1.0);
        let mut payoffs = vec![0; players.len()];
        for (rank, &seat) in order.iter().enumerate() {
            let rank = if shared && rank == place + 1 { place } else { rank };
            payoffs[seat] = match self.lowest {
                LowestPlaces::Decided => (players.len() - rank) as i32,
                LowestPlaces::Undecided => i32::from(rank == 0),
            };
        }
        Game { players: players.to_vec(), payoffs }
    }

    /// Draws a pool of `bouts` bouts between random players, each with all rotations of one seating.
    pub fn pool(&self, bouts: usize, random: &mut Random) -> Result<Pool, RankingError> {
        let (players, seats) = (self.strengths.len(), self.seat_effects.len());
        let mut pool = Pool::new(players, seats, self.lowest)?;
        for _ in 0..bouts {
            let mut order: Vec<usize> = (0..players.max(seats)).map(|place| place % players).collect();
            for place in (1..order.len()).rev() {
                order.swap(place, random.random_range(0..=place));
            }
            order.truncate(seats);
            let mut games = Vec::new();
            for _ in 0..seats {
                games.push(self.game(&order, random));
                order.rotate_left(1);
            }
            pool.add(&games)?;
        }
        Ok(pool)
    }
}

/// Compares the fits of `pools` pools of `bouts` bouts with the truth: a row for each player, then for each seat. A
/// pool in which a player has only a bound does not cover that player.
pub fn simulate_recovery(
    truth: &Truth,
    pools: usize,
    bouts: usize,
    replicas: usize,
    seed: u64,
) -> Result<Vec<Recovery>, RankingError> {
    let players = truth.strengths.len();
    let values = [truth.strengths.as_slice(), &truth.seat_effects].concat();
    let mut sums = vec![(0.0, 0.0, 0usize); values.len()];
    for stream in 0..pools as u64 {
        let pool = truth.pool(bouts, &mut seeded(seed, stream))?;
        let fit = pool.fit(Anchor::Mean);
        let drawn = pool.bootstrap(Anchor::Mean, seed ^ stream, replicas);
        for (place, (&value, sum)) in values.iter().zip(&mut sums).enumerate() {
            let (fitted, measure) = match place.checked_sub(players) {
                None => (fit.strengths[place].elo, drawn.strength(place)),
                Some(seat) => (fit.seat_effects[seat], drawn.seat_effect(seat)),
            };
            sum.0 += fitted;
            sum.1 += fitted * fitted;
            sum.2 +=
                usize::from(measure.is_some_and(|measure| measure.low <= value && value <= measure.high));
        }
    }
    let n = pools as f64;
    let row = |(&truth, &(sum, squares, covered)): (&f64, &(f64, f64, usize))| {
        let mean = sum / n;
        let variance = (squares / n - mean * mean).max(0.0) * n / (n - 1.0).max(1.0);
        Recovery { truth, mean, error: (variance / n).sqrt(), coverage: covered as f64 / n }
    };
    Ok(values.iter().zip(&sums).map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Strengths and seat effects are recovered without bias, and the intervals cover them.
    #[test]
    fn recovers_strengths_and_seat_effects() {
        let four = || vec![60.0, 10.0, -20.0, -50.0];
        let five = || vec![120.0, 40.0, 0.0, -60.0, -100.0];
        for (strengths, seat_effects, ties, lowest) in [
            (five(), four(), 0.0, LowestPlaces::Decided),
            (five(), four(), 0.6, LowestPlaces::Decided),
            (five(), four(), 0.0, LowestPlaces::Undecided),
            (vec![80.0, -80.0], vec![40.0, 0.0, -40.0], 0.5, LowestPlaces::Decided),
            (vec![80.0, -80.0], vec![30.0, -30.0], 0.5, LowestPlaces::Decided),
            // 56 rosters of about two bouts.
            (
                vec![30.0, 20.0, 10.0, 0.0, 0.0, -10.0, -20.0, -30.0],
                vec![20.0, 0.0, -20.0],
                0.0,
                LowestPlaces::Decided,
            ),
        ] {
            let truth = Truth { strengths, seat_effects, ties, lowest };
            let pools = 40;
            for row in simulate_recovery(&truth, pools, 120, 60, 17).unwrap() {
                // The maximum of the likelihood is biased away from 0 by about one part in the number of games.
                let slack = 4.0 * row.error + 0.01 * row.truth.abs();
                assert!((row.mean - row.truth).abs() < slack, "{truth:?}: {row:?}");
                // Four standard errors of the simulation.
                assert!(
                    row.coverage > 0.95 - 4.0 * (0.95_f64 * 0.05 / pools as f64).sqrt(),
                    "{truth:?}: {row:?}"
                );
            }
        }
    }
}
