//! The last ply before the horizon, where every child is a leaf: most nodes of a tree are such leaves, and they need
//! neither a call, nor a window, nor a line of their own. The same for every algorithm of this room.

use agon_games::{Seat, Turn};

use super::{DuelRules, DuelSearch};
use crate::budget::BudgetExhausted;
use crate::evaluate::Evaluate;
use crate::ordering::VALUE_PLIES;
use crate::value::{INFINITY, Score, end_score};

impl<G: DuelRules, E: Evaluate<G>> DuelSearch<G, E> {
    /// Whether all children of a node are leaves. Near the root they are not treated as such: their values are noted.
    #[inline]
    pub(super) fn at_frontier(&self, depth: u32, ply: usize) -> bool {
        depth == 1 && ply >= VALUE_PLIES && !self.options.quiescence
    }

    /// The best value of the moves listed from `start` on, and the move that raised it above `alpha`, if one did. Moves
    /// after one that reaches `beta` are left out.
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
            // 1. Nodes are asked for and counted many at a time.
            let first = next;
            let end = first + self.effort.grant(self.moves.len() - first)?;
            while next < end && best < beta {
                // 2. A child is an end of the game or is evaluated.
                self.ordering.pick(&mut self.moves, next);
                let value = position.after(self.moves[next], |child| match child.turn() {
                    Turn::Player(_) => {
                        self.effort.horizon = true;
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

        // 3. A move of the window or above it is worth remembering; no line goes on from it.
        let mv = self.moves[best_at];
        if best >= beta {
            self.effort.cutoff(best_at - start);
            self.ordering.note_cutoff(position, seat, mv, 1, ply);
        }
        self.lines.clear(ply + 1);
        self.lines.extend(ply, mv);
        Ok((best, Some(mv)))
    }
}
