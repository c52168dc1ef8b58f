//! Max-n (Luckhardt and Irani 1986): everybody plays for themselves, and a position has a value for each seat.
//!
//! Each mover takes the move that is best for itself; of equally good ones the first. Shallow pruning (Korf 1991) needs
//! values that cannot fall below nothing and that sum to a constant, so it goes with [`Values::Shares`] only; elsewhere
//! it would be unsound.

use agon_games::{Payoffs, Seat, Turn};

use super::{ManyRules, ManySearch};
use crate::budget::BudgetExhausted;
use crate::evaluate::Evaluate;
use crate::value::{MAX_PLY, MAX_SEATS, Score, UNIT, Value, shared_end_score};

/// A value for each seat.
pub(super) type Tuple = [Score; MAX_SEATS];

/// What the shares of all seats sum to: a multiple of sixty, so that shared payoffs are whole.
const WHOLE: Score = 600_000;

/// What the seats' values are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Values {
    /// The evaluation for each seat as it is.
    Raw,
    /// Each seat's share of a constant sum: by how much its evaluation exceeds the least of them.
    Shares {
        /// Whether subtrees that cannot matter to the mover above are cut off.
        pruning: bool,
    },
}

impl Values {
    /// The reported value of one seat's component.
    pub(super) fn value(self, component: Score) -> Value {
        match self {
            Values::Raw => Value::from(component),
            Values::Shares { .. } => Value { number: f64::from(component) / f64::from(WHOLE), proof: None },
        }
    }
}

/// Turns evaluations into shares of [`WHOLE`]: each seat's lead over the last seat, plus one unit, by proportion. What
/// rounding leaves goes to the first seats, so that the sum is exact.
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

/// The shares of an end.
fn end_share(payoffs: Payoffs, payoff: i32) -> Score {
    (i64::from(WHOLE) * i64::from(payoff - payoffs.min) / i64::from(payoffs.max - payoffs.min)) as Score
}

impl<G: ManyRules, E: Evaluate<G>> ManySearch<G, E> {
    /// The values of a position for all seats, by the moves that each mover prefers. `bound` is the value that the mover
    /// of the node above already has, and its seat.
    pub(super) fn max_n(
        &mut self,
        position: &mut G,
        seat: Seat,
        depth: u32,
        bound: Option<(Seat, Score)>,
        ply: usize,
        values: Values,
    ) -> Result<Tuple, BudgetExhausted> {
        // 1. List the moves.
        self.lines.clear(ply);
        let start = self.list(position, seat, ply);

        // 2. Each child's values are what its own mover makes of it; this mover looks at its own component.
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
                self.lines.extend(ply, mv);
                // 3. What this mover has is lost to the mover above; if too little is left for that one, it will not
                //    come here. Strictly too little, so that of equally good moves the first stays the choice.
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

    /// The values of a position that is over or at the horizon.
    fn tuple(&mut self, position: &G, ply: usize, values: Values) -> Tuple {
        self.effort.leaf(ply);
        self.lines.clear(ply);
        let over = position.turn() == Turn::Over;
        self.effort.horizon |= !over;
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
    fn shares_sum_to_the_whole() {
        for evaluations in [&[0, 0, 0][..], &[900_000_000, -900_000_000, 7], &[1, 2, 3, 4, 5, 6], &[-5, -5]] {
            let tuple = shares(evaluations);
            assert_eq!(tuple.iter().sum::<Score>(), WHOLE, "{evaluations:?}");
            assert!(tuple.iter().all(|&share| share >= 0));
        }
        let ends: Score = [20, 20, 20].into_iter().map(|payoff| end_share(Payoffs::SHARED, payoff)).sum();
        assert_eq!(ends, WHOLE);
    }
}
