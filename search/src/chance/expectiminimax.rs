//! Expectiminimax (Michie 1966): the value of a chance node is the weighted mean of its outcomes' values.

use agon_games::Seat;

use super::{ChanceRules, ChanceSearch};
use crate::budget::BudgetExhausted;
use crate::evaluate::Evaluate;

impl<G: ChanceRules, E: Evaluate<G>> ChanceSearch<G, E> {
    /// Returns the expected payoff of a chance node for `seat`, searching every outcome in full.
    pub(super) fn expectation(
        &mut self,
        position: &mut G,
        seat: Seat,
        depth: u32,
        ply: usize,
    ) -> Result<f64, BudgetExhausted> {
        // 1. List the outcomes.
        let start = self.moves.len();
        position.moves(&mut self.moves);

        // 2. Sum their values by weight, in the game's order.
        let mut sum = 0.0;
        for index in start..self.moves.len() {
            let outcome = self.moves[index];
            let weight = f64::from(position.weight(outcome));
            let value = position.after(outcome, |next| {
                self.child(next, seat, depth - 1, f64::NEG_INFINITY, f64::INFINITY, ply + 1)
            })?;
            sum += weight * value;
        }
        self.moves.truncate(start);
        self.pv.clear(ply);
        Ok(sum / f64::from(position.total_weight()))
    }
}
