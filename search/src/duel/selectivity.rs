//! Selectivity, off by default: the null move and late move reductions. Both can change a search's value.
//!
//! Two guards keep null moves out of zugzwang: the game's own (in chess, the mover has a piece besides pawns), and, from
//! some depth on, a search of the real moves to the same reduced depth (Tabibi and Netanyahu 2002).

use agon_games::Seat;

use super::{DuelRules, DuelSearch};
use crate::budget::BudgetExhausted;
use crate::evaluate::Evaluate;
use crate::value::{MAX_EVALUATION, Score};

/// The depth reduction after a null move (Donninger 1993).
const NULL_REDUCTION: u32 = 2;
/// The least depth at which a search without null moves must confirm the bound of a null move.
const CONFIRMED_DEPTH: u32 = 5;
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
        // 1. Two null moves in a row prove nothing, nor does one where every move may be worse than passing.
        let after_null = std::mem::take(&mut self.after_null);
        if after_null || !self.options.null_move || ply == 0 || depth <= NULL_REDUCTION {
            return Ok(None);
        }
        if beta.abs() > MAX_EVALUATION || !position.passing_hurts() {
            return Ok(None);
        }
        // 2. An evaluation below beta is unlikely to fail high.
        self.effort.leaf(ply);
        if self.evaluator.evaluate(position, seat) < beta {
            return Ok(None);
        }
        // 3. Pass and search less deep.
        let reduced = depth - 1 - NULL_REDUCTION;
        self.after_null = true;
        let outcome = position.after_reseat(seat.other(), |next| {
            self.child(next, seat, reduced, beta - 1, beta, ply + 1, &search)
        });
        self.after_null = false;
        let Some(value) = outcome else { return Ok(None) };
        let mut bound = Some(value?).filter(|&value| value >= beta && value <= MAX_EVALUATION);
        // 4. In zugzwang the bound is wrong: near the root a search with real moves only must confirm it.
        if bound.is_some() && depth >= CONFIRMED_DEPTH {
            self.options.null_move = false;
            let confirmed = search(self, position, seat, reduced, beta - 1, beta, ply);
            self.options.null_move = true;
            bound = Some(confirmed?).filter(|&value| value >= beta && value <= MAX_EVALUATION);
        }
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
