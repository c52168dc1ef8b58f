//! Flat Monte Carlo without a tree: the moves get playouts in turn, and the best mean wins. The search ends with its
//! budget, or earlier when each move has had a given number of playouts.

use agon_games::Turn;
use agon_games::random::seeded;

use super::{Playout, SamplingRules, mean_payoff};
use crate::budget::Budget;
use crate::counters::Counters;
use crate::evaluate::Evaluate;
use crate::report::{Iteration, SearchResult};
use crate::searcher::Searcher;
use crate::value::Value;

/// A flat Monte Carlo search.
pub struct MonteCarlo<E> {
    per_move: Option<u64>,
    playout: Playout,
    evaluator: E,
}

impl<E> MonteCarlo<E> {
    /// Creates a search with these playouts, at most `per_move` for each move.
    pub fn new(per_move: Option<u64>, playout: Playout, evaluator: E) -> MonteCarlo<E> {
        MonteCarlo { per_move, playout, evaluator }
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
    ) -> SearchResult<G::Move> {
        let mut random = seeded(seed);
        let mut scratch = Vec::new();
        let mut moves = Vec::new();
        root.moves(&mut moves);
        let Turn::Player(seat) = root.turn() else { unreachable!("a search starts where a player moves") };

        // 1. Give playouts to the moves in turn until all have theirs or the budget is exhausted.
        let most = self.per_move.map_or(u64::MAX, |playouts| playouts.saturating_mul(moves.len() as u64));
        let mut totals = vec![(0.0, 0u64); moves.len()];
        let mut counters = Counters { nodes: 1, ..Counters::default() };
        let mut position = root.clone();
        while counters.simulations < most && budget.simulate(counters.simulations, counters.nodes).is_ok() {
            let index = (counters.simulations % moves.len() as u64) as usize;
            // 2. Play the move, then a playout.
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

        // 3. Choose the best mean, the first among equals; a move without playouts only if there is no other.
        let mean = |&(total, visits): &(f64, u64)| {
            if visits == 0 { f64::NEG_INFINITY } else { total / visits as f64 }
        };
        let mut best = 0;
        for index in 1..moves.len() {
            if mean(&totals[index]) > mean(&totals[best]) {
                best = index;
            }
        }
        let number = if totals[best].1 == 0 { 0.0 } else { mean_payoff::<G>(mean(&totals[best])) };
        let value = Value { number, proof: None };
        let result = SearchResult::without_iterations(moves[best], value, counters, &budget);
        SearchResult { selective_depth: 1, ..result }
    }
}
