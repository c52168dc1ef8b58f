//! Principal variation search, also known as NegaScout (Reinefeld 1983): after the first child the others are only asked
//! whether they are better, by a window of width zero, and searched again when they are.

use agon_games::Seat;

use super::{DuelRules, DuelSearch};
use crate::budget::BudgetExhausted;
use crate::evaluate::Evaluate;
use crate::table::Known;
use crate::value::{INFINITY, Score};

impl<G: DuelRules, E: Evaluate<G>> DuelSearch<G, E> {
    /// The value of a position for `seat`, whose turn it is, if it lies within `(alpha, beta)`; else a bound of it.
    pub(super) fn pvs(
        &mut self,
        position: &mut G,
        seat: Seat,
        depth: u32,
        mut alpha: Score,
        mut beta: Score,
        ply: usize,
    ) -> Result<Score, BudgetExhausted> {
        // 1. The table may know the value, a narrower window, or at least the best move.
        let key = self.key(position);
        let table_move = match self.look_up(key, depth, &mut alpha, &mut beta, ply) {
            Ok(best) => best,
            Err(value) => return Ok(value),
        };

        // 2. If even passing is too good, so is the best move.
        if let Some(bound) = self.null_move(position, seat, depth, beta, ply, Self::pvs)? {
            return Ok(bound);
        }

        // 3. List and rank the moves.
        let listed = self.list(position, seat, depth, ply, table_move);

        // 4. The last ply is a matter of its own.
        if self.at_frontier(depth, ply) {
            let (best, best_move) = self.frontier(position, seat, listed.start, alpha, beta, ply)?;
            self.leave(listed, key, ply, || Known::learnt(depth, best, alpha, beta, best_move));
            return Ok(best);
        }

        // 5. The first child gets the whole window, the others a window of width zero above the best so far.
        let mut best = -INFINITY;
        let mut best_move = None;
        let mut low = alpha;
        let mut index = 0;
        while let Some(mv) = self.next_move(position, seat, ply, listed, index) {
            let mut reduction = self.reduction(position, mv, depth, index);
            let (mut floor, mut high) = (low, if index == 0 { beta } else { low + 1 });
            let value = loop {
                let value = position.after(mv, |next| {
                    self.child(next, seat, depth - 1 - reduction, floor, high, ply + 1, Self::pvs)
                })?;
                if reduction > 0 && value > low {
                    // 6. A reduced child that looks good is asked again at full depth.
                    reduction = 0;
                } else if high < beta && value > low && value < beta {
                    // 7. A child that is better, by how much is not known yet, gets the window that is left.
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
                    self.lines.extend(ply, mv);
                }
                // 8. Too good: the opponent will not let it come to this.
                if value >= beta {
                    self.effort.cutoff(index);
                    self.ordering.note_cutoff(position, seat, mv, depth, ply);
                    break;
                }
            }
            index += 1;
        }

        // 9. Remember what was learnt.
        self.leave(listed, key, ply, || Known::learnt(depth, best, alpha, beta, best_move));
        Ok(best)
    }
}
