//! Best-reply search (Schadd and Winands 2011): after a move of the hero only one opponent moves, the one with the
//! move that is worst for the hero, and the others pass. The tree has two layers per round instead of one per seat,
//! so that the hero sees more of its own moves ahead.
//!
//! The reported line is the hero's move alone, because replies out of turn are not a line of the game.
//!
//! [`ThreatRule`] orders the opponents by the Threat-ADS list, which changes how soon the worst reply is found but
//! never its value.

use agon_games::Turn;

use super::{ManyRules, ManySearch, ThreatRule};
use crate::budget::BudgetExhausted;
use crate::evaluate::Evaluate;
use crate::value::{INFINITY, MAX_PLY, Score, WIN};

impl<G: ManyRules, E: Evaluate<G>> ManySearch<G, E> {
    /// Returns the hero's value of a position in which the hero moves. Fail-soft.
    pub(super) fn best_move(
        &mut self,
        position: &mut G,
        depth: u32,
        alpha: Score,
        beta: Score,
        ply: usize,
        rule: ThreatRule,
    ) -> Result<Score, BudgetExhausted> {
        // 1. List and rank the hero's moves.
        self.pv.clear(ply);
        let hero = self.hero;
        let start = self.list(position, hero, ply);

        // 2. Search the moves, each answered by the worst reply.
        let mut best = -INFINITY;
        let mut low = alpha;
        let mut index = 0;
        while let Some(mv) = self.next_move(start, index) {
            let value = position.after(mv, |next| {
                self.effort.enter()?;
                if depth <= 1 || next.turn() == Turn::Over || ply + 1 >= MAX_PLY {
                    Ok(self.leaf(next, ply + 1))
                } else {
                    self.worst_reply(next, depth - 1, low, beta, ply + 1, rule)
                }
            })?;
            self.note(position, mv, value, ply);
            if value > best {
                best = value;
                if value > low {
                    low = value;
                    self.pv.extend(ply, mv);
                }
                if value >= beta {
                    self.effort.cutoff(index);
                    self.ordering.note_cutoff(position, hero, mv, depth, ply);
                    break;
                }
            }
            index += 1;
        }
        self.moves.truncate(start);
        Ok(best)
    }

    /// Returns the hero's value of a position in which one opponent moves. Fail-soft.
    fn worst_reply(
        &mut self,
        position: &mut G,
        depth: u32,
        alpha: Score,
        beta: Score,
        ply: usize,
        rule: ThreatRule,
    ) -> Result<Score, BudgetExhausted> {
        // 1. Copy the list of opponents, because the search below may reorder it.
        self.pv.clear(ply);
        let opponents = self.threats.clone();
        let mut worst = INFINITY;
        let mut most_threatening = None;
        let mut high = beta;
        let mut tried = 0;
        for &opponent in opponents.seats() {
            // 2. Pass the turn to this opponent; an eliminated one has none.
            self.out_of_turn |= position.turn() != Turn::Player(opponent);
            let outcome = position.after_reseat(opponent, |there| -> Result<bool, BudgetExhausted> {
                let start = self.list(there, opponent, ply);
                let mut index = 0;
                while let Some(mv) = self.next_move(start, index) {
                    let value =
                        there.after(mv, |next| self.after_reply(next, depth, alpha, high, ply, rule))?;
                    if value < worst {
                        worst = value;
                        most_threatening = Some(opponent);
                        high = high.min(value);
                        // 3. Alpha cutoff: the hero has a better move above.
                        if value <= alpha {
                            self.effort.cutoff(tried);
                            self.ordering.note_cutoff(there, opponent, mv, depth, ply);
                            self.moves.truncate(start);
                            return Ok(true);
                        }
                    }
                    tried += 1;
                    index += 1;
                }
                self.moves.truncate(start);
                Ok(false)
            });
            if outcome.transpose()? == Some(true) {
                break;
            }
        }
        // 4. Access the opponent with the worst reply.
        if let Some(opponent) = most_threatening {
            self.threats.access(opponent, rule);
        }
        // 5. If no opponent can move, evaluate the position itself.
        if worst == INFINITY {
            return Ok(self.leaf(position, ply));
        }
        Ok(worst)
    }

    /// Returns the hero's value after an opponent's reply, with the turn passed back to the hero.
    #[inline]
    fn after_reply(
        &mut self,
        next: &mut G,
        depth: u32,
        alpha: Score,
        beta: Score,
        ply: usize,
        rule: ThreatRule,
    ) -> Result<Score, BudgetExhausted> {
        self.effort.enter()?;
        if depth <= 1 || next.turn() == Turn::Over || ply + 1 >= MAX_PLY {
            return Ok(self.leaf(next, ply + 1));
        }
        let hero = self.hero;
        self.out_of_turn |= next.turn() != Turn::Player(hero);
        let value =
            next.after_reseat(hero, |there| self.best_move(there, depth - 1, alpha, beta, ply + 1, rule));
        // A hero without a turn is eliminated.
        value.unwrap_or_else(|| {
            self.effort.leaf(ply + 1);
            self.pv.clear(ply + 1);
            Ok(ply as Score + 1 - WIN)
        })
    }
}
