//! Selectivity, off by default: the null move and late move reductions. Both can change a search's value.

use agon_games::Seat;

use super::{DuelRules, DuelSearch};
use crate::budget::BudgetExhausted;
use crate::evaluate::Evaluate;
use crate::value::{MAX_EVALUATION, Score};

/// The depth reduction after a null move (Donninger 1993).
const NULL_REDUCTION: u32 = 2;
/// The least depth at which moves are reduced, and the number of moves searched in full first.
const LATE_DEPTH: u32 = 3;
const LATE_INDEX: usize = 4;

impl<G: DuelRules, E: Evaluate<G>> DuelSearch<G, E> {
    /// Returns a bound that fails high after passing the turn, if there is one.
    #[inline]
    pub(super) fn null_move(
        &mut self,
        position: &mut G,
        seat: Seat,
        depth: u32,
        beta: Score,
        ply: usize,
        search: impl Fn(&mut Self, &mut G, Seat, u32, Score, Score, usize) -> Result<Score, BudgetExhausted>,
    ) -> Result<Option<Score>, BudgetExhausted> {
        if !self.options.null_move || ply == 0 || depth <= NULL_REDUCTION || beta.abs() > MAX_EVALUATION {
            return Ok(None);
        }
        // Two null moves in a row prove nothing, and an evaluation below beta is unlikely to fail high.
        if self.after_null {
            return Ok(None);
        }
        self.effort.leaf(ply);
        if self.evaluator.evaluate(position, seat) < beta {
            return Ok(None);
        }
        self.after_null = true;
        let outcome = position.after_reseat(seat.other(), |next| {
            self.child(next, seat, depth - 1 - NULL_REDUCTION, beta - 1, beta, ply + 1, search)
        });
        self.after_null = false;
        let Some(value) = outcome else { return Ok(None) };
        let bound = Some(value?).filter(|&value| value >= beta && value <= MAX_EVALUATION);
        // A cutoff by an illegal move proves nothing: the tree was not searched completely.
        self.effort.hit_horizon |= bound.is_some();
        Ok(bound)
    }

    /// Returns the depth reduction of a move's first search.
    #[inline]
    pub(super) fn reduction(&self, position: &G, mv: G::Move, depth: u32, index: usize) -> u32 {
        let late = self.options.late_move_reductions && depth >= LATE_DEPTH && index >= LATE_INDEX;
        u32::from(late && position.promise(mv) <= 0)
    }
}
