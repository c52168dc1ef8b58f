//! The uncertainty of ratings, by the sandwich or the bootstrap.

use nalgebra::DMatrix;

use super::fit::Fit;
use crate::distribution::normal_cdf;

/// The 95 % intervals and the covariance of a fit's ratings, in the order of the fit's players. The values of players
/// with a bound are meaningless.
#[derive(Clone, Debug)]
pub struct Uncertainty {
    /// The lower ends in Elo.
    pub low: Vec<f64>,
    /// The upper ends in Elo.
    pub high: Vec<f64>,
    /// The covariance of the ratings with the anchor at zero, in squared Elo.
    pub covariance: DMatrix<f64>,
    /// The interval of the first seat's advantage, if it was fitted and the results vary.
    pub seat_advantage: Option<(f64, f64)>,
}

/// Returns an interval if it has a width. Without variation between units, the uncertainty cannot be estimated.
pub(crate) fn with_spread((low, high): (f64, f64)) -> Option<(f64, f64)> {
    const LEAST_WIDTH: f64 = 1e-3;
    (high - low > LEAST_WIDTH).then_some((low, high))
}

impl Uncertainty {
    /// Returns the interval of a player's rating; `None` if the results do not vary.
    pub fn interval(&self, player: usize) -> Option<(f64, f64)> {
        with_spread((self.low[player], self.high[player]))
    }

    /// Returns the standard deviation of a player's rating.
    pub fn deviation(&self, player: usize) -> f64 {
        self.covariance[(player, player)].max(0.0).sqrt()
    }

    /// Returns the likelihood of superiority of `one` over `other`: Phi of their difference in standard deviations.
    /// `None` if they are in different blocks.
    pub fn superiority(&self, fit: &Fit, one: usize, other: usize) -> Option<f64> {
        if fit.structure.block_of[one] != fit.structure.block_of[other] {
            return None;
        }
        let difference = fit.ratings()[one] - fit.ratings()[other];
        let covariance = &self.covariance;
        let variance = covariance[(one, one)] + covariance[(other, other)] - 2.0 * covariance[(one, other)];
        if difference == 0.0 {
            return Some(0.5);
        }
        // Without variance the sign is certain.
        let deviations =
            if variance > 0.0 { difference / variance.sqrt() } else { difference * f64::INFINITY };
        Some(normal_cdf(deviations))
    }
}
