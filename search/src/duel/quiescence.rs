//! Quiescence: beyond the horizon only noisy moves are searched, until the position is quiet.

use agon_games::{Seat, Turn};

use super::{DuelRules, DuelSearch};
use crate::budget::BudgetExhausted;
use crate::evaluate::Evaluate;
use crate::value::{INFINITY, MAX_PLY, Score, end_score};

impl<G: DuelRules, E: Evaluate<G>> DuelSearch<G, E> {
    /// Returns the quiescence value of a position for `seat`, the seat to move.
    pub(super) fn quiescence(
        &mut self,
        position: &mut G,
        seat: Seat,
        mut alpha: Score,
        beta: Score,
        ply: usize,
    ) -> Result<Score, BudgetExhausted> {
        // 1. Stand pat: unless a noisy move is mandatory, the evaluation is a lower bound.
        let mut best = -INFINITY;
        let may_stand_pat = position.may_stand_pat();
        if may_stand_pat || ply >= MAX_PLY {
            self.effort.leaf(ply);
            best = self.evaluator.evaluate(position, seat);
            if best >= beta || ply >= MAX_PLY {
                return Ok(best);
            }
            alpha = alpha.max(best);
        }

        // 2. List and rank the noisy moves.
        let start = self.moves.len();
        position.noisy_moves(&mut self.moves);
        self.ordering.rank_noisy(position, &self.moves, start);

        // 3. Search them as alpha-beta does.
        for index in start..self.moves.len() {
            self.ordering.pick_best(&mut self.moves, index);
            let mv = self.moves[index];
            let value = position.after(mv, |next| {
                self.effort.enter()?;
                self.effort.counters.quiescence_nodes += 1;
                match next.turn() {
                    Turn::Player(mover) if mover == seat => {
                        self.quiescence(next, mover, alpha, beta, ply + 1)
                    }
                    Turn::Player(mover) => Ok(-self.quiescence(next, mover, -beta, -alpha, ply + 1)?),
                    Turn::Chance | Turn::Over => {
                        self.effort.leaf(ply + 1);
                        Ok(end_score(next.payoff(seat), ply + 1))
                    }
                }
            })?;
            best = best.max(value);
            alpha = alpha.max(value);
            if best >= beta {
                self.effort.cutoff(index - start);
                break;
            }
        }
        self.moves.truncate(start);
        Ok(best)
    }
}
