//! Paranoid search (Sturtevant and Korf 2000): all opponents form one coalition against the hero.
//!
//! Alpha-beta prunes between the two sides; the window passes unchanged between members of the coalition.

use agon_games::{Seat, Turn};

use super::{ManyRules, ManySearch};
use crate::budget::BudgetExhausted;
use crate::evaluate::Evaluate;
use crate::value::{INFINITY, MAX_PLY, Score};

impl<G: ManyRules, E: Evaluate<G>> ManySearch<G, E> {
    /// Returns the value of a position for the side of `seat`, the seat to move: the hero's value, negated for the
    /// coalition. Fail-soft.
    pub(super) fn paranoid(
        &mut self,
        position: &mut G,
        seat: Seat,
        depth: u32,
        alpha: Score,
        beta: Score,
        ply: usize,
    ) -> Result<Score, BudgetExhausted> {
        // 1. List and rank the moves.
        self.pv.clear(ply);
        let start = self.list(position, seat, ply);
        let side = seat == self.hero;

        // 2. Search the moves, each with the rest of the window.
        let mut best = -INFINITY;
        let mut low = alpha;
        let mut index = 0;
        while let Some(mv) = self.next_move(start, index) {
            let value = position.after(mv, |next| {
                self.effort.enter()?;
                match next.turn() {
                    Turn::Player(mover) if depth > 1 && ply + 1 < MAX_PLY => {
                        // 3. Negate the window only if the side changes.
                        if (mover == self.hero) == side {
                            self.paranoid(next, mover, depth - 1, low, beta, ply + 1)
                        } else {
                            Ok(-self.paranoid(next, mover, depth - 1, -beta, -low, ply + 1)?)
                        }
                    }
                    _ => {
                        let value = self.leaf(next, ply + 1);
                        Ok(if side { value } else { -value })
                    }
                }
            })?;
            self.note(position, mv, value, ply);
            if value > best {
                best = value;
                if value > low {
                    low = value;
                    self.pv.extend(ply, mv);
                }
                // 4. Beta cutoff.
                if value >= beta {
                    self.effort.cutoff(index);
                    self.ordering.note_cutoff(position, seat, mv, depth, ply);
                    break;
                }
            }
            index += 1;
        }
        self.moves.truncate(start);
        Ok(best)
    }
}
