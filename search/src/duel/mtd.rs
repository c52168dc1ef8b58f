//! Memory-enhanced test drivers (Plaat, Schaeffer, Pijls and de Bruin 1996): alpha-beta with zero-width windows,
//! repeated until the lower and the upper bound meet. They differ only in their choice of windows.

use super::{DuelRules, DuelSearch, FailedHigh};
use crate::budget::BudgetExhausted;
use crate::evaluate::Evaluate;
use crate::value::{INFINITY, MAX_EVALUATION, Score, UNIT, WIN};

/// The choice of the next window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Driver {
    /// MTD(f): at the last value, starting from the previous iteration's.
    F,
    /// SSS*: at the upper bound.
    Sss,
    /// DUAL*: at the lower bound.
    Dual,
    /// At the middle of the bounds.
    Bisection,
}

agon_games::choices!(Driver { F = "f", Sss = "sss", Dual = "dual", Bisection = "bisection" });

impl<G: DuelRules, E: Evaluate<G>> DuelSearch<G, E> {
    /// Runs one iteration.
    pub(super) fn drive(
        &mut self,
        root: &mut G,
        depth: u32,
        driver: Driver,
    ) -> Result<Score, BudgetExhausted> {
        // 1. Start with a loss and a win as bounds.
        let (mut lower, mut upper) = (-WIN, WIN);
        let mut last = self.guess.unwrap_or(0);
        let mut asked = false;
        let mut held = FailedHigh::NOTHING;
        while lower < upper {
            // 2. Choose the window: test whether the value is at least `beta`.
            let beta = match driver {
                Driver::F => last.max(lower + 1),
                Driver::Sss => upper,
                Driver::Dual => lower + 1,
                Driver::Bisection => bisect(lower, upper, last),
            };
            // 3. Search it, and move the bound that the result proves.
            if asked {
                self.effort.counters.researches += 1;
            }
            asked = true;
            last = self.pass(root, depth, beta - 1, beta, &mut held)?;
            debug_assert!(last > -INFINITY && last < INFINITY);
            if last < beta {
                upper = last.min(upper);
            } else {
                lower = last.max(lower);
            }
            // 4. A table that overwrites entries can make the bounds cross; a bound always moves.
            if upper < lower {
                lower = upper;
            }
        }
        // 5. Only a pass that fails high has a line; that of the last one reaches the value.
        self.pv.set_best(&held.line);
        Ok(lower)
    }
}

/// Returns the middle of the bounds, or a value near the guess while a bound is still a win or a loss.
fn bisect(lower: Score, upper: Score, guess: Score) -> Score {
    const NEAR: Score = 4 * UNIT;
    let low = if lower > -MAX_EVALUATION { lower } else { lower.max(guess.saturating_sub(NEAR)) };
    let high = if upper < MAX_EVALUATION { upper } else { upper.min(guess.saturating_add(NEAR)) };
    let middle = low + (high - low) / 2;
    middle.clamp(lower + 1, upper)
}
