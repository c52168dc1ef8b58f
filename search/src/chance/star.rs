//! Star1 and Star2 (Ballard 1983): a chance node is cut off as soon as the outcomes searched so far put its value
//! outside the window, given the bounds of the others. Star2 first probes one move below each outcome, which bounds
//! the outcome's value from one side. The window of an outcome only narrows from its probe to its search, so that the
//! probed move need not be searched again.
//!
//! Sums of `f64` are inexact, so a cutoff must miss the window by more than [`SLACK`]: an exact value equals
//! expectiminimax's to the last bit.

use agon_games::{Seat, Turn};

use super::{Algorithm, ChanceRules, ChanceSearch, Probe, bounds};
use crate::budget::BudgetExhausted;
use crate::evaluate::Evaluate;
use crate::value::MAX_PLY;

/// The least distance from the window for a cutoff: far above rounding, far below the resolution of an evaluation.
const SLACK: f64 = 1e-9;

/// The known values and bounds of one chance node's outcomes, in units of weight.
struct Outcomes {
    total: f64,
    /// The sum of weighted values of searched outcomes.
    sum: f64,
    /// The sums of weighted bounds of the other outcomes.
    least: f64,
    most: f64,
}

impl Outcomes {
    /// Returns the window in which the value of one outcome matters, given the bounds of the others. Below it the
    /// node fails low, above it high. `bound` is the outcome's own bound.
    fn window(&self, weight: f64, bound: (f64, f64), alpha: f64, beta: f64) -> (f64, f64) {
        let others_most = self.sum + self.most - weight * bound.1;
        let others_least = self.sum + self.least - weight * bound.0;
        let slack = SLACK * self.total / weight;
        let low = ((alpha * self.total - others_most) / weight).max(bound.0);
        let high = ((beta * self.total - others_least) / weight).min(bound.1);
        (low - slack, high + slack)
    }

    /// Returns a bound of the node's value outside the window, if the sums imply one.
    fn decides(&self, alpha: f64, beta: f64) -> Option<f64> {
        let upper = (self.sum + self.most) / self.total;
        let lower = (self.sum + self.least) / self.total;
        if upper <= alpha - SLACK / 2.0 {
            Some(upper)
        } else if lower >= beta + SLACK / 2.0 {
            Some(lower)
        } else {
            None
        }
    }
}

impl<G: ChanceRules, E: Evaluate<G>> ChanceSearch<G, E> {
    /// Returns the expected payoff of a chance node for `seat` if it lies within `(alpha, beta)`; else a bound.
    pub(super) fn star(
        &mut self,
        position: &mut G,
        seat: Seat,
        depth: u32,
        alpha: f64,
        beta: f64,
        ply: usize,
    ) -> Result<f64, BudgetExhausted> {
        // 1. List the outcomes, bounded only by the game's payoffs.
        let (least, most) = bounds::<G>();
        let start = self.moves.len();
        position.moves(&mut self.moves);
        let count = self.moves.len() - start;
        let total = f64::from(position.total_weight());
        let mut known = Outcomes { total, sum: 0.0, least: total * least, most: total * most };
        let first = self.probes.len();
        self.probes.extend((0..count).map(|_| Probe { bounds: (least, most), probed: None }));

        // 2. Star2: probe one move below each outcome for a bound, which may already decide.
        let mut decided = None;
        if self.algorithm == Algorithm::Star2 {
            for index in 0..count {
                let outcome = self.moves[start + index];
                let weight = f64::from(position.weight(outcome));
                let (low, high) = known.window(weight, (least, most), alpha, beta);
                let probe =
                    position.after(outcome, |next| self.probe(next, seat, depth - 1, low, high, ply + 1))?;
                known.least += weight * (probe.bounds.0 - least);
                known.most += weight * (probe.bounds.1 - most);
                self.probes[first + index] = probe;
                decided = known.decides(alpha, beta);
                if decided.is_some() {
                    break;
                }
            }
        }

        // 3. Search the outcomes in order, each with the window in which its value matters.
        if decided.is_none() {
            for index in 0..count {
                let outcome = self.moves[start + index];
                let weight = f64::from(position.weight(outcome));
                let Probe { bounds: bound, probed } = self.probes[first + index];
                let (low, high) = known.window(weight, bound, alpha, beta);
                let value = if bound.0 == bound.1 {
                    bound.0
                } else {
                    position.after(outcome, |next| match (probed, next.turn()) {
                        (Some(_), Turn::Player(mover)) if mover == seat => {
                            self.decide(next, mover, depth - 1, low, high, ply + 1, probed)
                        }
                        (Some((mv, value)), Turn::Player(mover)) => {
                            let probed = Some((mv, -value));
                            Ok(-self.decide(next, mover, depth - 1, -high, -low, ply + 1, probed)?)
                        }
                        _ => self.child(next, seat, depth - 1, low, high, ply + 1),
                    })?
                };
                known.sum += weight * value;
                known.least -= weight * bound.0;
                known.most -= weight * bound.1;
                // 4. Cut off as soon as the others cannot bring the value back into the window.
                decided = known.decides(alpha, beta);
                if decided.is_some() {
                    if index + 1 < count {
                        self.effort.cutoff(index);
                    }
                    break;
                }
            }
        }
        self.moves.truncate(start);
        self.probes.truncate(first);
        self.pv.clear(ply);
        Ok(decided.unwrap_or(known.sum / known.total))
    }

    /// Searches the first move below an outcome, which bounds its value for `seat`: the mover gets at least that.
    fn probe(
        &mut self,
        next: &mut G,
        seat: Seat,
        depth: u32,
        low: f64,
        high: f64,
        ply: usize,
    ) -> Result<Probe<G::Move>, BudgetExhausted> {
        let (least, most) = bounds::<G>();
        let nothing = Probe { bounds: (least, most), probed: None };
        let Turn::Player(mover) = next.turn() else { return Ok(nothing) };
        if depth == 0 || ply >= MAX_PLY {
            return Ok(nothing);
        }
        // 1. Enter the outcome's position and choose the first move by ordering.
        self.effort.enter()?;
        let start = self.moves.len();
        next.moves(&mut self.moves);
        self.ordering.rank(next, mover, ply, &self.moves, start, None);
        self.ordering.pick(&mut self.moves, start);
        let mv = self.moves[start];
        self.moves.truncate(start);

        // 2. The move's value bounds the outcome from the mover's side, unless it is itself only a bound from the
        // other side.
        let value = next.after(mv, |after| self.child(after, seat, depth - 1, low, high, ply + 1))?;
        let bounds = if mover == seat {
            (if value > low { value } else { least }, most)
        } else {
            (least, if value < high { value } else { most })
        };
        Ok(Probe { bounds, probed: Some((mv, value)) })
    }
}
