//! Alpha-beta (Knuth and Moore 1975), fail-soft: a value outside the window is a bound.
//!
//! Principal variation search, also known as NegaScout (Reinefeld 1983), is the same with other windows: children after the
//! first are tested with a zero-width window and searched again if they are better.

use agon_games::Seat;

use super::{DuelRules, DuelSearch};
use crate::budget::BudgetExhausted;
use crate::evaluate::Evaluate;
use crate::table::Known;
use crate::value::{INFINITY, Score};

impl<G: DuelRules, E: Evaluate<G>> DuelSearch<G, E> {
    /// Returns the value of a position for `seat`, the seat to move, if it lies within `(alpha, beta)`; else a bound. `TEST`
    /// tests the later children first.
    pub(super) fn alpha_beta<const TEST: bool>(
        &mut self,
        position: &mut G,
        seat: Seat,
        depth: u32,
        mut alpha: Score,
        mut beta: Score,
        ply: usize,
    ) -> Result<Score, BudgetExhausted> {
        // 1. Look the position up: for its value, a narrower window or the best move.
        let key = self.key(position);
        let outside = std::mem::replace(&mut self.effort.hit_horizon, false);
        let table_move = match self.look_up(key, depth, &mut alpha, &mut beta, ply) {
            Ok(best) => best,
            Err(value) => {
                self.effort.hit_horizon |= outside;
                return Ok(value);
            }
        };

        // 2. Cut off if passing already fails high.
        if let Some(bound) = self.null_move(position, seat, depth, beta, ply, Self::alpha_beta::<TEST>)? {
            return Ok(bound);
        }

        // 3. List and rank the moves.
        let listed = self.list(position, seat, depth, ply, table_move);

        // 4. Evaluate the last ply without recursion.
        if self.at_frontier(depth, ply) {
            let (best, best_move) = self.frontier(position, seat, listed.start, alpha, beta, ply)?;
            self.leave(listed, key, ply, outside, || Known::learnt(depth, best, alpha, beta, best_move));
            return Ok(best);
        }

        // 5. Search the moves, each with the rest of the window, or the later ones with a zero-width window above the best
        // value.
        let mut best = -INFINITY;
        let mut best_move = None;
        let mut low = alpha;
        let mut index = 0;
        while let Some(mv) = self.next_move(position, seat, ply, listed, index) {
            let mut reduction = self.reduction(position, mv, depth, index);
            let (mut floor, mut high) = (low, if TEST && index > 0 { low + 1 } else { beta });
            let value = loop {
                let value = position.after(mv, |next| {
                    self.child(
                        next,
                        seat,
                        depth - 1 - reduction,
                        floor,
                        high,
                        ply + 1,
                        Self::alpha_beta::<TEST>,
                    )
                })?;
                if reduction > 0 && value > low {
                    // 6. A reduced child that raises alpha is searched again at full depth.
                    reduction = 0;
                } else if high < beta && value > low && value < beta {
                    // 7. A child that raises alpha by an unknown amount is searched again with the rest of the
                    // window.
                    (floor, high) = (low.max(value - 1), beta);
                } else {
                    break value;
                }
                self.effort.counters.researches += 1;
            };
            self.note(position, mv, value, ply);
            if value > best {
                best = value;
                if value > low {
                    low = value;
                    best_move = Some(mv);
                    self.pv.extend(ply, mv);
                }
                // 8. Beta cutoff.
                if value >= beta {
                    self.effort.cutoff(index);
                    self.ordering.note_cutoff(position, seat, mv, depth, ply);
                    break;
                }
            }
            index += 1;
        }

        // 9. Store the result.
        self.leave(listed, key, ply, outside, || Known::learnt(depth, best, alpha, beta, best_move));
        Ok(best)
    }
}
