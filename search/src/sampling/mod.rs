//! Sampling searches: flat Monte Carlo and UCT, for any number of seats, with or without chance.
//!
//! This file has what they share: playouts and their rewards. A reward is a payoff on the scale of the game's ordinary
//! results: 0 is an ordinary loss and 1 an ordinary win, so that exploration means the same in every game; a gammon in
//! backgammon is worth 1.5. Rewards sum to the same over the seats in every ending. Results report mean payoffs.

pub mod monte_carlo;
mod tree;
pub mod uct;

use agon_games::random::{Random, below};
use agon_games::{Game, Ordered, Seat, Turn};

use crate::evaluate::Evaluate;
use crate::value::{MAX_SEATS, UNIT};

/// A reward for each seat: 0 for an ordinary loss, 1 for an ordinary win.
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

/// How an evaluation becomes rewards where a playout is cut off.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Estimate {
    /// The evaluation is an expected payoff, as in games with chance.
    Payoff,
    /// This number of evaluation units makes odds of e to 1.
    Odds(f64),
}

/// The settings of playouts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Playout {
    /// The policy.
    pub rollout: Rollout,
    /// The plies after which the position is evaluated; 0 plays to the end.
    pub plies: u32,
    /// How the evaluation becomes rewards.
    pub estimate: Estimate,
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

    /// Returns the rewards of a static evaluation: as a payoff, or softmax over the seats (for two seats the logistic
    /// curve).
    fn evaluated_rewards<G: SamplingRules, E: Evaluate<G>>(
        &self,
        position: &G,
        evaluator: &mut E,
    ) -> Rewards {
        let mut rewards = [0.0; MAX_SEATS];
        for seat in Seat::all(G::SEATS) {
            rewards[seat.index()] = f64::from(evaluator.evaluate(position, seat)) / f64::from(UNIT);
        }
        let scale = match self.estimate {
            Estimate::Payoff => {
                let (least, most) = (f64::from(G::PAYOFFS.min), f64::from(G::PAYOFFS.max));
                rewards[..G::SEATS]
                    .iter_mut()
                    .for_each(|units| *units = reward::<G>(units.clamp(least, most)));
                return rewards;
            }
            Estimate::Odds(scale) => scale,
        };
        let mut most = f64::NEG_INFINITY;
        for units in &mut rewards[..G::SEATS] {
            *units /= scale;
            most = most.max(*units);
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

/// Returns the rewards at the end of a game.
fn end_rewards<G: Game>(position: &G) -> Rewards {
    let mut rewards = [0.0; MAX_SEATS];
    for seat in Seat::all(G::SEATS) {
        rewards[seat.index()] = reward::<G>(f64::from(position.payoff(seat)));
    }
    rewards
}

/// Returns the payoff of an ordinary loss.
fn ordinary_loss<G: Game>() -> f64 {
    f64::from(G::PAYOFFS.min + G::PAYOFFS.max - G::PAYOFFS.spread) / 2.0
}

/// Returns the reward of a payoff.
fn reward<G: Game>(payoff: f64) -> f64 {
    (payoff - ordinary_loss::<G>()) / f64::from(G::PAYOFFS.spread)
}

/// Returns the mean payoff, in the game's own units, of a mean reward: the inverse of [`reward`].
pub(crate) fn mean_payoff<G: Game>(reward: f64) -> f64 {
    reward.mul_add(f64::from(G::PAYOFFS.spread), ordinary_loss::<G>())
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
