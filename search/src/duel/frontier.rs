//! The last ply before the horizon, where every child is a leaf. Most nodes of a tree are such leaves; they need no
//! call, window or line of their own. Shared by all duel searches.

use agon_games::{Seat, Turn};

use super::{DuelRules, DuelSearch};
use crate::budget::BudgetExhausted;
use crate::evaluate::Evaluate;
use crate::ordering::VALUE_PLIES;
use crate::value::{INFINITY, Score, end_score};

impl<G: DuelRules, E: Evaluate<G>> DuelSearch<G, E> {
    /// Returns whether all children of a node are leaves. Near the root children are searched normally, because their
    /// values are noted.
    #[inline]
    pub(super) fn at_frontier(&self, depth: u32, ply: usize) -> bool {
        depth == 1 && ply >= VALUE_PLIES && !self.options.quiescence
    }

    /// Returns the best value of the moves from `start` on, and the move that raised it above `alpha`, if any. Stops
    /// at a move that reaches `beta`.
    #[inline]
    pub(super) fn frontier(
        &mut self,
        position: &mut G,
        seat: Seat,
        start: usize,
        alpha: Score,
        beta: Score,
        ply: usize,
    ) -> Result<(Score, Option<G::Move>), BudgetExhausted> {
        let (mut best, mut best_at) = (-INFINITY, start);
        let mut next = start;
        while next < self.moves.len() && best < beta {
            // 1. Request and count nodes in batches.
            let first = next;
            let end = first + self.effort.grant(self.moves.len() - first)?;
            while next < end && best < beta {
                // 2. Evaluate the child, or score it if the game is over.
                self.ordering.pick(&mut self.moves, next);
                let value = position.after(self.moves[next], |child| match child.turn() {
                    Turn::Player(_) => {
                        self.effort.hit_horizon = true;
                        self.evaluator.evaluate(child, seat)
                    }
                    Turn::Chance | Turn::Over => end_score(child.payoff(seat), ply + 1),
                });
                if value > best {
                    (best, best_at) = (value, next);
                }
                next += 1;
            }
            self.effort.leaves(next - first, ply + 1);
        }
        if best <= alpha {
            return Ok((best, None));
        }

        // 3. Record a move that raised alpha; its line ends here.
        let mv = self.moves[best_at];
        if best >= beta {
            self.effort.cutoff(best_at - start);
            self.ordering.note_cutoff(position, seat, mv, 1, ply);
        }
        self.pv.clear(ply + 1);
        self.pv.extend(ply, mv);
        Ok((best, Some(mv)))
    }
}
