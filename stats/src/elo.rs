//! The Elo scale: expected scores, differences and draw probabilities.
//!
//! A difference determines the expected score by the logistic curve, 400 points for odds of ten. Draws are split off
//! at that expected score, so that a difference means the same at any draw rate.

/// Elo points per unit of log-odds: 400 / ln 10.
pub const POINTS_PER_LOGIT: f64 = 400.0 / std::f64::consts::LN_10;

/// Points of normalised Elo per standard deviation of one game's score: 800 / ln 10. Between equal players without
/// draws, whose deviation is 1/2, one point is one point of Elo.
pub const NORMALISED_UNIT: f64 = 800.0 / std::f64::consts::LN_10;

/// The least score that is distinguished from 0; by symmetry, the distance from 1.
pub const LEAST_SCORE: f64 = 0.001;

/// The largest reported difference: that of [`LEAST_SCORE`].
pub const LARGEST_DIFFERENCE: f64 = 1_199.826_195_290_393;

/// Returns the logistic function, 1 / (1 + e^-x), of a difference in log-odds.
#[inline]
pub(crate) fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// Returns the expected score of a player who is `difference` Elo points stronger than the opponent.
pub fn expected_score(difference: f64) -> f64 {
    logistic(difference / POINTS_PER_LOGIT)
}

/// Returns the Elo difference for an expected score: -400 log10(1/score - 1). The score is clamped to 0.001 and
/// 0.999, so that the difference is finite.
pub fn difference(score: f64) -> f64 {
    let score = score.clamp(LEAST_SCORE, 1.0 - LEAST_SCORE);
    -400.0 * (1.0 / score - 1.0).log10()
}

/// The probabilities of a game's outcomes for one player.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Split {
    /// The probability of a win.
    pub win: f64,
    /// The probability of a draw.
    pub draw: f64,
    /// The probability of a loss.
    pub loss: f64,
}

impl Split {
    /// Returns the outcome probabilities at an expected score, where `draw_rate` of the games between equal players
    /// are drawn: draw = nu sqrt(win loss) (Davidson 1970, "On extending the Bradley-Terry model to accommodate ties
    /// in paired comparison experiments") with win + draw/2 the expected score. Both arguments are clamped to be
    /// probabilities.
    ///
    /// With nu = 2 r / (1 - r) for the draw rate r at equality, and q = s (1 - s), the relation is the quadratic (1 -
    /// 2r) d^2 + 2 r^2 d - 4 r^2 q = 0. Its root is written without cancellation and holds at r = 0 (no draws) and at
    /// r = 1 (the most draws that the score allows).
    pub fn at(expected_score: f64, draw_rate: f64) -> Self {
        let score = expected_score.clamp(0.0, 1.0);
        let rate = draw_rate.clamp(0.0, 1.0);
        let product = score * (1.0 - score);
        let root = (rate * rate + 4.0 * (1.0 - 2.0 * rate) * product).max(0.0).sqrt();
        // Both are 0 only if no draw is possible.
        let draw = if rate + root > 0.0 { 4.0 * rate * product / (rate + root) } else { 0.0 };
        Split { win: (score - draw / 2.0).max(0.0), draw, loss: (1.0 - score - draw / 2.0).max(0.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_and_differences_are_inverse() {
        for points in [-1000.0, -190.848_501_887_864_98, -1.0, 0.0, 35.0, 400.0] {
            assert!((difference(expected_score(points)) - points).abs() < 1e-9);
        }
        assert!((difference(0.75) - 190.848_501_887_864_98).abs() < 1e-9);
        assert!((expected_score(400.0) - 10.0 / 11.0).abs() < 1e-15);
    }

    #[test]
    fn differences_are_clamped() {
        for score in [1.0, 0.999, 0.9999] {
            assert!((difference(score) - LARGEST_DIFFERENCE).abs() < 1e-9);
            assert!((difference(1.0 - score) + LARGEST_DIFFERENCE).abs() < 1e-9);
        }
    }

    #[test]
    fn split_at_known_score() {
        let split = Split::at(0.76, 0.3);
        for (got, expected) in [(split.draw, 0.23845), (split.win, 0.64078), (split.loss, 0.12078)] {
            assert!((got - expected).abs() < 5e-6, "{got} is not {expected}");
        }
    }

    /// Davidson's relation, the expected score and the draw rate at equality define a split.
    #[test]
    fn split_satisfies_davidsons_relation() {
        for rate in [0.0, 0.01, 0.3, 0.5, 0.77, 0.999] {
            let nu = 2.0 * rate / (1.0 - rate);
            for score in [0.0, 0.001, 0.2, 0.5, 0.76, 0.9999, 1.0] {
                let Split { win, draw, loss } = Split::at(score, rate);
                assert!((win + draw + loss - 1.0).abs() < 1e-12);
                assert!((win + draw / 2.0 - score).abs() < 1e-12);
                assert!((draw - nu * (win * loss).sqrt()).abs() < 1e-9, "{score} {rate}");
            }
            assert!((Split::at(0.5, rate).draw - rate).abs() < 1e-12);
        }
        assert_eq!(Split::at(0.7, 1.0).draw, 0.6000000000000001);
        assert_eq!(Split::at(0.5, 1.0), Split { win: 0.0, draw: 1.0, loss: 0.0 });
    }
}
