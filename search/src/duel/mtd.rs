//! The memory-enhanced test drivers of Plaat, Schaeffer, Pijls and de Bruin (1996): alpha-beta with windows of width
//! zero, called again and again until lower and upper bound meet. They differ only in where they ask next.

use super::{DuelRules, DuelSearch};
use crate::budget::BudgetExhausted;
use crate::evaluate::Evaluate;
use crate::value::{INFINITY, MAX_EVALUATION, Score, UNIT, WIN};

/// Where a driver asks next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Driver {
    /// MTD(f): beside the last value found, starting from the iteration before.
    F,
    /// SSS* as a driver: down from above.
    Sss,
    /// DUAL* as a driver: up from below.
    Dual,
    /// In the middle of the bounds.
    Bisection,
}

agon_games::choices!(Driver { F = "f", Sss = "sss", Dual = "dual", Bisection = "bisection" });

impl<G: DuelRules, E: Evaluate<G>> DuelSearch<G, E> {
    /// One iteration by a driver.
    pub(super) fn drive(
        &mut self,
        root: &mut G,
        depth: u32,
        driver: Driver,
    ) -> Result<Score, BudgetExhausted> {
        // 1. Nothing is known but that a value lies between a loss and a win.
        let (mut lower, mut upper) = (-WIN, WIN);
        let mut last = self.guess.unwrap_or(0);
        let mut asked = false;
        let mut line = Vec::new();
        while lower < upper {
            // 2. Choose where to ask: whether the value is at least `beta`.
            let beta = match driver {
                Driver::F => last.max(lower + 1),
                Driver::Sss => upper,
                Driver::Dual => lower + 1,
                Driver::Bisection => bisect(lower, upper, last),
            };
            // 3. Ask, and move the bound that the answer proves.
            if asked {
                self.effort.counters.researches += 1;
            }
            asked = true;
            last = self.search_window(root, depth, beta - 1, beta)?;
            debug_assert!(last > -INFINITY && last < INFINITY);
            if last < beta {
                upper = last.min(upper);
            } else {
                lower = last.max(lower);
                // Only a pass that fails high has a move to show for it.
                line.clear();
                line.extend_from_slice(self.lines.best());
            }
            // 4. With a table that forgets, a bound may not move as far as it should; it always moves.
            if upper < lower {
                lower = upper;
            }
        }
        // 5. The last proof of what is reached is the line that reaches it.
        self.lines.set_best(&line);
        Ok(lower)
    }
}

/// The middle of the bounds, but near the guess while a bound is still that of the ends of the game.
fn bisect(lower: Score, upper: Score, guess: Score) -> Score {
    const NEAR: Score = 4 * UNIT;
    let low = if lower > -MAX_EVALUATION { lower } else { lower.max(guess.saturating_sub(NEAR)) };
    let high = if upper < MAX_EVALUATION { upper } else { upper.min(guess.saturating_add(NEAR)) };
    let middle = low + (high - low) / 2;
    middle.clamp(lower + 1, upper)
}
