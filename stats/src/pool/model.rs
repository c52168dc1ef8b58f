//! The likelihood of one game and its derivatives.
//!
//! The first seat's expected score s is logistic in x, its advantage in log-odds; draws are split off by Davidson's
//! relation at that score ([`crate::elo::Split`]). With the log-odds y of the draw rate at equality, x and y are the
//! mean of one natural statistic of an exponential family (the score) and the natural parameter of the other (drawn
//! or not). Such mixed parameters are orthogonal (Barndorff-Nielsen 1978, "Information and exponential families"), so
//! the expected cross derivative is 0 and derivatives are short. Written with q = s (1 - s), the draw rate r, and p =
//! r / sqrt(r^2 + 4 (1 - 2r) q):
//!
//! draw d = 4 q p / (1 + p), variance of the score V = q / (1 + p), and for a game of score S drawn (D = 1) or not
//! d/dx ln L = (S - s) (1 + p), d/dy ln L = D - d - 2 (S - s) (1 - 2s) p.

use super::results::GameCounts;
use crate::elo::logistic;

/// The model at one advantage and one draw rate.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    score: f64,
    against: f64,
    product: f64,
    rate: f64,
    root: f64,
    ratio: f64,
}

impl Point {
    /// Creates the model at the first seat's advantage `x` in log-odds and the draw rate at equality.
    #[inline]
    pub fn new(x: f64, rate: f64) -> Self {
        let (score, against) = (logistic(x), logistic(-x));
        let product = score * against;
        // Two forms of the same square, each a sum without cancellation for its half of the rates.
        let square = if rate <= 0.5 {
            rate * rate + 4.0 * (1.0 - 2.0 * rate) * product
        } else {
            (1.0 - rate).powi(2) + (2.0 * rate - 1.0) * (score - against).powi(2)
        };
        let root = square.sqrt();
        Point { score, against, product, rate, root, ratio: rate / root }
    }

    /// Returns the first seat's expected score.
    pub fn score(&self) -> f64 {
        self.score
    }

    /// Returns the probabilities of the first seat's loss, draw and win.
    #[inline]
    pub fn probabilities(&self) -> [f64; 3] {
        // Compute wins and losses from their difference and product, which does not cancel where draws are frequent.
        let product = (2.0 * self.product * (1.0 - self.rate) / (self.root + self.rate)).powi(2);
        let lead = (self.score - self.against).abs();
        let larger = 0.5 * (lead + (lead * lead + 4.0 * product).sqrt());
        let smaller = product / larger;
        let draw = 4.0 * self.product * self.ratio / (1.0 + self.ratio);
        if self.score > self.against { [smaller, draw, larger] } else { [larger, draw, smaller] }
    }

    /// Returns the derivatives of the log-likelihood of a game with these half points for the first seat.
    pub fn gradient(&self, half_points: usize) -> [f64; 2] {
        let excess = half_points as f64 / 2.0 - self.score;
        let drawn = f64::from(u8::from(half_points == 1));
        let draw = 4.0 * self.product * self.ratio / (1.0 + self.ratio);
        [excess * (1.0 + self.ratio), drawn - draw - 2.0 * excess * (self.against - self.score) * self.ratio]
    }

    /// Returns the log-likelihood of games by the first seat's outcome, loss first, with its derivatives.
    #[inline]
    pub fn terms(&self, games: &[f64; 3]) -> Terms {
        let count = games[0] + games[1] + games[2];
        if count == 0.0 {
            return Terms::default();
        }
        let probabilities = self.probabilities();
        // An outcome that did not occur adds nothing, even if its probability is 0.
        let value = (0..3).filter(|&i| games[i] > 0.0).map(|i| games[i] * probabilities[i].ln()).sum();
        let excess = games[2] + 0.5 * games[1] - count * self.score;
        let tilt = self.against - self.score;
        let cube = self.root * self.root * self.root;
        let ratio_by_x = -2.0 * self.rate * (1.0 - 2.0 * self.rate) / cube * self.product * tilt;
        let ratio_by_y = 4.0 * self.product * self.rate * (1.0 - self.rate).powi(2) / cube;
        let draw_by_y = 4.0 * self.product * ratio_by_y / (1.0 + self.ratio).powi(2);
        let expected_xx = -count * self.product * (1.0 + self.ratio);
        let expected_yy = -count * draw_by_y;
        Terms {
            value,
            x: excess * (1.0 + self.ratio),
            y: games[1] - count * probabilities[1] - 2.0 * excess * tilt * self.ratio,
            xx: expected_xx + excess * ratio_by_x,
            xy: excess * ratio_by_y,
            yy: expected_yy - 2.0 * excess * tilt * ratio_by_y,
            expected_xx,
            expected_yy,
        }
    }
}

/// A log-likelihood with its derivatives by x and y, and the expected second ones; that of `xy` is 0.
#[derive(Clone, Copy, Default, Debug)]
pub struct Terms {
    pub value: f64,
    pub x: f64,
    pub y: f64,
    pub xx: f64,
    pub xy: f64,
    pub yy: f64,
    pub expected_xx: f64,
    pub expected_yy: f64,
}

/// The log-likelihood of a pairing's games, with derivatives by the players' difference, the first seat's advantage
/// and the draw rate's log-odds, in this order.
#[derive(Clone, Copy, Default, Debug)]
pub struct PairingTerms {
    pub value: f64,
    pub gradient: [f64; 3],
    pub hessian: [[f64; 3]; 3],
    pub expected: [[f64; 3]; 3],
}

impl PairingTerms {
    /// Computes the terms at a difference and an advantage in log-odds.
    #[inline]
    pub fn new(difference: f64, advantage: f64, rate: f64, tally: &GameCounts) -> Self {
        let first = Point::new(advantage + difference, rate).terms(&tally.first);
        let [loss, draw, win] = tally.second;
        let second = Point::new(advantage - difference, rate).terms(&[win, draw, loss]);
        let square = |first_xx: f64, second_xx: f64, first_xy: f64, second_xy: f64, yy: f64| {
            let (same, opposite) = (first_xx + second_xx, first_xx - second_xx);
            let (same_y, opposite_y) = (first_xy + second_xy, first_xy - second_xy);
            [[same, opposite, opposite_y], [opposite, same, same_y], [opposite_y, same_y, yy]]
        };
        PairingTerms {
            value: first.value + second.value,
            gradient: [first.x - second.x, first.x + second.x, first.y + second.y],
            hessian: square(first.xx, second.xx, first.xy, second.xy, first.yy + second.yy),
            expected: square(
                first.expected_xx,
                second.expected_xx,
                0.0,
                0.0,
                first.expected_yy + second.expected_yy,
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elo::Split;

    const RATES: [f64; 6] = [0.0, 0.02, 0.3, 0.5, 0.8, 0.999];
    const ADVANTAGES: [f64; 6] = [-6.0, -1.2, -0.1, 0.0, 0.7, 5.0];

    #[test]
    fn probabilities_match_split() {
        for rate in RATES {
            for x in ADVANTAGES {
                let split = Split::at(logistic(x), rate);
                let got = Point::new(x, rate).probabilities();
                for (got, expected) in got.into_iter().zip([split.loss, split.draw, split.win]) {
                    assert!((got - expected).abs() < 1e-12, "{x} {rate}: {got} is not {expected}");
                }
            }
        }
    }

    /// Each derivative equals the difference quotient of its antiderivative.
    #[test]
    fn derivatives_match_likelihood() {
        let games = [13.0, 9.0, 31.0];
        let log_odds = |rate: f64| (rate / (1.0 - rate)).ln();
        let terms = |x: f64, y: f64| Point::new(x, logistic(y)).terms(&games);
        for rate in &RATES[1..] {
            for x in ADVANTAGES {
                let (y, step) = (log_odds(*rate), 1e-5);
                let here = terms(x, y);
                let by_x =
                    |f: fn(Terms) -> f64| (f(terms(x + step, y)) - f(terms(x - step, y))) / (2.0 * step);
                let by_y =
                    |f: fn(Terms) -> f64| (f(terms(x, y + step)) - f(terms(x, y - step))) / (2.0 * step);
                for (got, expected) in [
                    (here.x, by_x(|t| t.value)),
                    (here.y, by_y(|t| t.value)),
                    (here.xx, by_x(|t| t.x)),
                    (here.xy, by_y(|t| t.x)),
                    (here.xy, by_x(|t| t.y)),
                    (here.yy, by_y(|t| t.y)),
                ] {
                    assert!(
                        (got - expected).abs() < 1e-4 * (1.0 + got.abs()),
                        "{x} {rate}: {got} {expected}"
                    );
                }
                let mut summed = [0.0; 2];
                for (outcome, &count) in games.iter().enumerate() {
                    let gradient = Point::new(x, *rate).gradient(outcome);
                    summed.iter_mut().zip(gradient).for_each(|(sum, slope)| *sum += count * slope);
                }
                assert!((summed[0] - here.x).abs() < 1e-9 * (1.0 + here.x.abs()));
                assert!((summed[1] - here.y).abs() < 1e-9 * (1.0 + here.y.abs()));
            }
        }
    }

    /// The negated expected second derivatives are the variances of the first, and the parameters are orthogonal.
    #[test]
    fn information_is_variance_of_gradient() {
        for rate in &RATES[1..] {
            for x in ADVANTAGES {
                let point = Point::new(x, *rate);
                let mut variance = [0.0; 3];
                for (outcome, probability) in point.probabilities().into_iter().enumerate() {
                    let [by_x, by_y] = point.gradient(outcome);
                    variance[0] += probability * by_x * by_x;
                    variance[1] += probability * by_x * by_y;
                    variance[2] += probability * by_y * by_y;
                }
                let terms = point.terms(&point.probabilities());
                assert!((variance[0] + terms.expected_xx).abs() < 1e-9);
                assert!(variance[1].abs() < 1e-9);
                assert!((variance[2] + terms.expected_yy).abs() < 1e-9);
            }
        }
    }
}
