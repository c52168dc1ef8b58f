//! Flat Monte Carlo: the moves take turns, a playout each, and the best mean wins. There is no tree.

use agon_games::Turn;
use agon_games::random::seeded;

use super::{Playout, SamplingRules, reported};
use crate::budget::Budget;
use crate::counters::Counters;
use crate::evaluate::Evaluate;
use crate::report::{Answer, Iteration};
use crate::searcher::Searcher;
use crate::value::Value;

/// A flat Monte Carlo search.
pub struct MonteCarlo<E> {
    playout: Playout,
    evaluator: E,
}

impl<E> MonteCarlo<E> {
    /// A search that makes such playouts.
    pub fn new(playout: Playout, evaluator: E) -> MonteCarlo<E> {
        MonteCarlo { playout, evaluator }
    }
}

impl<G: SamplingRules, E: Evaluate<G>> Searcher<G> for MonteCarlo<E> {
    fn new_game(&mut self) {}

    fn search(
        &mut self,
        root: &G,
        mut budget: Budget,
        seed: u64,
        _report: &mut dyn FnMut(&Iteration<G::Move>),
    ) -> Answer<G::Move> {
        let mut random = seeded(seed);
        let mut scratch = Vec::new();
        let mut moves = Vec::new();
        root.moves(&mut moves);
        let Turn::Player(seat) = root.turn() else { unreachable!("a search starts where a player moves") };

        // 1. The moves take turns until the budget is spent.
        let mut totals = vec![(0.0, 0u64); moves.len()];
        let mut counters = Counters { nodes: 1, ..Counters::default() };
        let mut position = root.clone();
        while budget.simulate(counters.simulations, counters.nodes).is_ok() {
            let index = (counters.simulations % moves.len() as u64) as usize;
            // 2. Play the move and then at random to the end.
            position.clone_from(root);
            position.play(moves[index]);
            let (rewards, plies) =
                self.playout.run(&mut position, &mut self.evaluator, &mut random, &mut scratch);
            totals[index].0 += rewards[seat.index()];
            totals[index].1 += 1;
            counters.simulations += 1;
            counters.playout_plies += u64::from(plies);
            counters.nodes += 1 + u64::from(plies);
            counters.leaves += 1;
        }

        // 3. The best mean; of equal ones the first; a move without a playout only where there is no other.
        let mean = |&(total, visits): &(f64, u64)| if visits == 0 { -1.0 } else { total / visits as f64 };
        let mut best = 0;
        for index in 1..moves.len() {
            if mean(&totals[index]) > mean(&totals[best]) {
                best = index;
            }
        }
        let number = if totals[best].1 == 0 { 0.0 } else { reported::<G>(mean(&totals[best])) };
        Answer {
            best: moves[best],
            value: Value { number, proof: None },
            depth: 0,
            selective_depth: 1,
            counters,
            line: vec![moves[best]],
            iterations: Vec::new(),
            time: budget.elapsed(),
            overshoot: budget.overshoot(),
        }
    }
}
