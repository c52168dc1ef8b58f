//! Minimax at full width: the reference for the laws of every other search, and the baseline of what pruning saves.

use agon_games::Seat;

use super::{DuelRules, DuelSearch};
use crate::budget::BudgetExhausted;
use crate::evaluate::Evaluate;
use crate::value::{INFINITY, Score};

impl<G: DuelRules, E: Evaluate<G>> DuelSearch<G, E> {
    /// Returns the value of a position for `seat`, the seat to move. The window is not used.
    pub(super) fn minimax(
        &mut self,
        position: &mut G,
        seat: Seat,
        depth: u32,
        _alpha: Score,
        _beta: Score,
        ply: usize,
    ) -> Result<Score, BudgetExhausted> {
        // 1. List the moves in the game's own order.
        let listed = self.list(position, seat, depth, ply, None);

        // 2. Evaluate the last ply without recursion.
        if self.at_frontier(depth, ply) {
            let (best, _) = self.frontier(position, seat, listed.start, -INFINITY, INFINITY, ply)?;
            self.moves.truncate(listed.start);
            return Ok(best);
        }

        // 3. Return the best of the children's values.
        let mut best = -INFINITY;
        let mut index = 0;
        while let Some(mv) = self.next_move(position, seat, ply, listed, index) {
            let value = position.after(mv, |next| {
                self.child(next, seat, depth - 1, -INFINITY, INFINITY, ply + 1, Self::minimax)
            })?;
            self.note(position, mv, value, ply);
            if value > best {
                best = value;
                self.pv.extend(ply, mv);
            }
            index += 1;
        }
        self.moves.truncate(listed.start);
        Ok(best)
    }
}
