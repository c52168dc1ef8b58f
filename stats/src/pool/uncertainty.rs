//! The uncertainty of ratings.

use nalgebra::DMatrix;

use super::fit::Fit;
use crate::comparison::Comparison;
use crate::pairs::{compare_estimate, superiority_of_estimate};

/// The 95 % intervals of a fit's ratings, in the order of the fit's players.
#[derive(Clone, Debug)]
pub struct Uncertainty {
    /// The ends in Elo; `None` for an open end, and for both if there are too few units.
    pub intervals: Vec<(Option<f64>, Option<f64>)>,
    /// The covariance of the ratings with their component's zero, in squared Elo, widened for few units.
    pub covariance: DMatrix<f64>,
    /// Whether there are more units than parameters; otherwise only two players are compared.
    pub estimable: bool,
    /// The interval of the first seat's advantage, if it was fitted, no seat always won, and results vary.
    pub seat_advantage: Option<(f64, f64)>,
}

/// Returns an interval if it has a width. Without variation between units, the uncertainty cannot be estimated.
pub(crate) fn with_spread((low, high): (f64, f64)) -> Option<(f64, f64)> {
    const LEAST_WIDTH: f64 = 1e-3;
    (high - low > LEAST_WIDTH).then_some((low, high))
}

impl Uncertainty {
    /// Returns the standard deviation of a player's rating.
    pub fn deviation(&self, player: usize) -> f64 {
        self.covariance[(player, player)].max(0.0).sqrt()
    }

    /// Compares two players. `None` if no results connect them, or if there are too few units.
    pub fn compare(&self, fit: &Fit, one: usize, other: usize) -> Option<Comparison> {
        let structure = &fit.structure;
        if one == other || structure.component_of[one] != structure.component_of[other] {
            return None;
        }
        if let Some(pair) = fit.pair {
            return Some(if one < other { pair } else { pair.reversed() });
        }
        let (elo, variance, bounded) = self.difference(fit, one, other)?;
        Some(compare_estimate(elo, variance, bounded))
    }

    /// Returns the likelihood of superiority of [`Uncertainty::compare`].
    pub fn superiority(&self, fit: &Fit, one: usize, other: usize) -> Option<f64> {
        if fit.pair.is_some() || one == other || fit.component_of()[one] != fit.component_of()[other] {
            return Some(self.compare(fit, one, other)?.los);
        }
        let (elo, variance, bounded) = self.difference(fit, one, other)?;
        Some(superiority_of_estimate(elo, variance, bounded))
    }

    /// Returns the difference of two players, its variance, and on which sides it is bounded; `None` if there are too
    /// few units.
    fn difference(&self, fit: &Fit, one: usize, other: usize) -> Option<(f64, f64, [bool; 2])> {
        if !self.estimable {
            return None;
        }
        let covariance = &self.covariance;
        let variance = covariance[(one, one)] + covariance[(other, other)] - 2.0 * covariance[(one, other)];
        let bounded = &fit.structure.bounded;
        let ([one_low, one_high], [other_low, other_high]) = (bounded[one], bounded[other]);
        let difference = fit.ratings()[one] - fit.ratings()[other];
        Some((difference, variance, [one_low && other_high, one_high && other_low]))
    }

    /// Returns a rating relative to the mean of others with its 95 % interval, for ratings that are bounded on both
    /// sides.
    pub fn contrast(&self, fit: &Fit, weights: &[f64]) -> Option<(f64, f64)> {
        let bounded = |player: usize| fit.structure.bounded[player] == [true; 2];
        if !(0..weights.len()).all(|player| weights[player] == 0.0 || bounded(player)) {
            return None;
        }
        let value: f64 = weights.iter().zip(fit.ratings()).map(|(weight, rating)| weight * rating).sum();
        if let Some(pair) = fit.pair {
            // Both weights are opposite.
            let (low, high) = pair.low.zip(pair.high)?;
            let ends = (weights[0] * low, weights[0] * high);
            return Some((ends.0.min(ends.1), ends.0.max(ends.1)));
        }
        if !self.estimable {
            return None;
        }
        let row = |one: usize| -> f64 {
            weights.iter().enumerate().map(|(other, weight)| weight * self.covariance[(one, other)]).sum()
        };
        let variance: f64 = weights.iter().enumerate().map(|(one, weight)| weight * row(one)).sum();
        let Comparison { low, high, .. } = compare_estimate(value, variance, [true; 2]);
        low.zip(high)
    }
}
