//! Sampling searches: flat Monte Carlo and UCT, for any number of seats, with or without chance.
//!
//! This file has what they share: playouts and their rewards. Rewards lie between 0 and 1 and sum to 1 over the
//! seats, whatever payoffs the game has.

pub mod monte_carlo;
mod tree;
pub mod uct;

use agon_games::random::{Random, below};
use agon_games::{Game, Ordered, Seat, Turn};

use crate::evaluate::Evaluate;
use crate::value::{MAX_SEATS, UNIT};

/// A reward for each seat.
pub(crate) type Rewards = [f64; MAX_SEATS];

/// The rules that a sampling search needs.
pub trait SamplingRules: Game + Ordered {}
impl<G: Game + Ordered> SamplingRules for G {}

/// The policy of a playout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rollout {
    /// The game's own light policy, by default uniform.
    Uniform,
    /// The best move by the game's own ordering, ties at random.
    Greedy,
}

agon_games::choices!(Rollout { Uniform = "uniform", Greedy = "greedy" });

/// The settings of playouts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Playout {
    /// The policy.
    pub rollout: Rollout,
    /// The plies after which the position is evaluated; 0 plays to the end.
    pub plies: u32,
    /// The number of evaluation units that make reward odds of e to 1.
    pub scale: f64,
}

impl Playout {
    /// Plays on from `position` and returns the rewards and the number of plies.
    fn run<G: SamplingRules, E: Evaluate<G>>(
        &self,
        position: &mut G,
        evaluator: &mut E,
        random: &mut Random,
        scratch: &mut Vec<G::Move>,
    ) -> (Rewards, u32) {
        let mut plies = 0;
        loop {
            let turn = position.turn();
            if turn == Turn::Over {
                return (end_rewards(position), plies);
            }
            if self.plies > 0 && plies >= self.plies {
                return (self.evaluated_rewards(position, evaluator), plies);
            }
            let mv = match (self.rollout, turn) {
                (Rollout::Greedy, Turn::Player(_)) => most_promising(position, random, scratch),
                _ => position.rollout(random, scratch),
            };
            position.play(mv);
            plies += 1;
        }
    }

    /// Returns the rewards of a static evaluation: softmax over the seats (for two seats the logistic curve).
    fn evaluated_rewards<G: SamplingRules, E: Evaluate<G>>(
        &self,
        position: &G,
        evaluator: &mut E,
    ) -> Rewards {
        let mut rewards = [0.0; MAX_SEATS];
        let mut most = f64::NEG_INFINITY;
        for seat in Seat::all(G::SEATS) {
            let units = f64::from(evaluator.evaluate(position, seat)) / f64::from(UNIT);
            rewards[seat.index()] = units / self.scale;
            most = most.max(units / self.scale);
        }
        let mut sum = 0.0;
        for reward in &mut rewards[..G::SEATS] {
            *reward = libm::exp(*reward - most);
            sum += *reward;
        }
        rewards[..G::SEATS].iter_mut().for_each(|reward| *reward /= sum);
        rewards
    }
}

/// Returns the rewards at the end of a game: payoffs scaled to the range from 0 to 1.
fn end_rewards<G: Game>(position: &G) -> Rewards {
    let mut rewards = [0.0; MAX_SEATS];
    let range = f64::from(G::PAYOFFS.max - G::PAYOFFS.min);
    for seat in Seat::all(G::SEATS) {
        rewards[seat.index()] = f64::from(position.payoff(seat) - G::PAYOFFS.min) / range;
    }
    rewards
}

/// Returns a mean reward as it is reported: from -1 to 1 in a duel, from 0 to 1 with more seats.
pub(crate) fn reported<G: Game>(reward: f64) -> f64 {
    if G::SEATS == 2 { reward.mul_add(2.0, -1.0) } else { reward }
}

fn most_promising<G: SamplingRules>(
    position: &G,
    random: &mut Random,
    scratch: &mut Vec<G::Move>,
) -> G::Move {
    scratch.clear();
    position.moves(scratch);
    let mut best = scratch[0];
    let (mut most, mut ties) = (position.promise(best), 1);
    for &mv in &scratch[1..] {
        let promise = position.promise(mv);
        if promise > most {
            (best, most, ties) = (mv, promise, 1);
        } else if promise == most {
            // Reservoir sampling: each tie is kept with equal probability.
            ties += 1;
            if below(random, ties) == 0 {
                best = mv;
            }
        }
    }
    best
}
