//! Searches that sample: flat Monte Carlo and UCT, for any number of seats, with or without chance.
//!
//! This file has what they share: playouts and what they are worth. Rewards lie between 0 and 1 and sum to 1 over the
//! seats, whatever the game pays.

pub mod monte_carlo;
mod tree;
pub mod uct;

use agon_games::random::{Random, below};
use agon_games::{Game, Ordered, Seat, Turn};

use crate::evaluate::Evaluate;
use crate::value::{MAX_SEATS, UNIT};

/// A reward for each seat.
pub(crate) type Rewards = [f64; MAX_SEATS];

/// What a sampling search asks of a game.
pub trait SamplingRules: Game + Ordered {}
impl<G: Game + Ordered> SamplingRules for G {}

/// How playouts choose their moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rollout {
    /// By the game's own light policy, uniform unless the game says otherwise.
    Uniform,
    /// The most promising move by the game's rules of thumb, ties at random.
    Greedy,
}

agon_games::choices!(Rollout { Uniform = "uniform", Greedy = "greedy" });

/// How playouts are made and cut off.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Playout {
    /// How moves are chosen.
    pub rollout: Rollout,
    /// The plies after which the position is evaluated instead of played on; 0 plays to the end.
    pub plies: u32,
    /// How many units of the evaluation make a lead of e to 1 in reward.
    pub scale: f64,
}

impl Playout {
    /// Plays on from `position` and returns the rewards and how many plies that took.
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

    /// The rewards that an evaluation promises: softmax over the seats (for two seats the logistic curve).
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

/// The rewards of an end: payoffs brought to the range from 0 to 1.
fn end_rewards<G: Game>(position: &G) -> Rewards {
    let mut rewards = [0.0; MAX_SEATS];
    let range = f64::from(G::PAYOFFS.max - G::PAYOFFS.min);
    for seat in Seat::all(G::SEATS) {
        rewards[seat.index()] = f64::from(position.payoff(seat) - G::PAYOFFS.min) / range;
    }
    rewards
}

/// A mean reward as it is reported: from -1 to 1 in a duel (times the greatest payoff), from 0 to 1 for many seats.
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
            // Each of the ties is kept with equal chance.
            ties += 1;
            if below(random, ties) == 0 {
                best = mv;
            }
        }
    }
    best
}
