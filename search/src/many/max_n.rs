//! Max-n (Luckhardt and Irani 1986): every seat maximises its own value, and a position has a value for each seat.
//!
//! Each mover takes its best move, the first among equals. Shallow pruning (Korf 1991) is sound only for non-negative
//! values with a constant sum, so it requires [`Values::Shares`].

use agon_games::{Payoffs, Seat, Turn};

use super::{ManyRules, ManySearch};
use crate::budget::BudgetExhausted;
use crate::evaluate::Evaluate;
use crate::value::{MAX_PLY, MAX_SEATS, Score, UNIT, Value, shared_end_score};

/// A value for each seat.
pub(super) type Tuple = [Score; MAX_SEATS];

/// The sum of all seats' shares: a multiple of sixty, so that shared payoffs are integers.
const WHOLE: Score = 600_000;

/// The meaning of the seats' values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Values {
    /// The static evaluation for each seat.
    Raw,
    /// Each seat's share of a constant sum: its lead over the lowest evaluation.
    Shares {
        /// Whether subtrees that cannot matter to the mover above are cut off.
        pruning: bool,
    },
}

impl Values {
    /// Returns the reported value of one seat's component.
    pub(super) fn value(self, component: Score) -> Value {
        match self {
            Values::Raw => Value::from(component),
            Values::Shares { .. } => Value { number: f64::from(component) / f64::from(WHOLE), proof: None },
        }
    }
}

/// Converts evaluations to shares of [`WHOLE`]: each seat's lead over the last seat, plus one unit, in proportion.
/// The rounding remainder goes to the first seats, so that the sum is exact.
fn shares(evaluations: &[Score]) -> Tuple {
    let least = evaluations.iter().copied().min().unwrap_or(0);
    let lead = |score: Score| i64::from(score) - i64::from(least) + i64::from(UNIT);
    let sum: i64 = evaluations.iter().map(|&score| lead(score)).sum();
    let mut tuple = [0; MAX_SEATS];
    let mut left = WHOLE;
    for (place, &score) in tuple.iter_mut().zip(evaluations) {
        *place = (i64::from(WHOLE) * lead(score) / sum) as Score;
        left -= *place;
    }
    for place in tuple.iter_mut().take(left as usize) {
        *place += 1;
    }
    tuple
}

/// Returns a seat's share at the end of a game.
fn end_share(payoffs: Payoffs, payoff: i32) -> Score {
    (i64::from(WHOLE) * i64::from(payoff - payoffs.min) / i64::from(payoffs.max - payoffs.min)) as Score
}

impl<G: ManyRules, E: Evaluate<G>> ManySearch<G, E> {
    /// Returns a position's values for all seats. `bound` is the seat to move at the node above and the value it
    /// already has.
    pub(super) fn max_n(
        &mut self,
        position: &mut G,
        seat: Seat,
        depth: u32,
        bound: Option<(Seat, Score)>,
        ply: usize,
        values: Values,
    ) -> Result<Tuple, BudgetExhausted> {
        // 1. List and rank the moves.
        self.pv.clear(ply);
        let start = self.list(position, seat, ply);

        // 2. Search each child for its values and compare this mover's component.
        let mut best: Option<Tuple> = None;
        let mut index = 0;
        while let Some(mv) = self.next_move(start, index) {
            let own_bound = best.map(|tuple| (seat, tuple[seat.index()]));
            let tuple = position.after(mv, |next| {
                self.effort.enter()?;
                match next.turn() {
                    Turn::Player(mover) if depth > 1 && ply + 1 < MAX_PLY => {
                        self.max_n(next, mover, depth - 1, own_bound, ply + 1, values)
                    }
                    _ => Ok(self.tuple(next, ply + 1, values)),
                }
            })?;
            let own = tuple[seat.index()];
            self.note(position, mv, own, ply);
            if best.is_none_or(|best| own > best[seat.index()]) {
                best = Some(tuple);
                self.pv.extend(ply, mv);
                // 3. Cut off if too little is left for the mover above. Strictly less, so that the first of equal
                // moves stays the choice.
                if let (Values::Shares { pruning: true }, Some((above, has))) = (values, bound)
                    && above != seat
                    && WHOLE - own < has
                {
                    self.effort.cutoff(index);
                    self.ordering.note_cutoff(position, seat, mv, depth, ply);
                    break;
                }
            }
            index += 1;
        }
        self.moves.truncate(start);
        Ok(best.expect("a position that is not over has a move"))
    }

    /// Returns the values of a position that is over or at the horizon.
    fn tuple(&mut self, position: &G, ply: usize, values: Values) -> Tuple {
        self.effort.leaf(ply);
        self.pv.clear(ply);
        let over = position.turn() == Turn::Over;
        self.effort.hit_horizon |= !over;
        let mut tuple = [0; MAX_SEATS];
        for seat in Seat::all(G::SEATS) {
            tuple[seat.index()] = match (over, values) {
                (true, Values::Raw) => shared_end_score(G::PAYOFFS, position.payoff(seat), ply),
                (true, Values::Shares { .. }) => end_share(G::PAYOFFS, position.payoff(seat)),
                (false, _) => self.evaluator.evaluate(position, seat),
            };
        }
        match values {
            Values::Shares { .. } if !over => shares(&tuple[..G::SEATS]),
            _ => tuple,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_sum_to_whole() {
        for evaluations in [&[0, 0, 0][..], &[900_000_000, -900_000_000, 7], &[1, 2, 3, 4, 5, 6], &[-5, -5]] {
            let tuple = shares(evaluations);
            assert_eq!(tuple.iter().sum::<Score>(), WHOLE, "{evaluations:?}");
            assert!(tuple.iter().all(|&share| share >= 0));
        }
        let ends: Score = [20, 20, 20].into_iter().map(|payoff| end_share(Payoffs::SHARED, payoff)).sum();
        assert_eq!(ends, WHOLE);
    }
}
