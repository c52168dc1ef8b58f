//! How sure ratings are: what both ways of telling it have in common.

use nalgebra::DMatrix;

use super::fit::Fit;
use crate::distribution::normal_cdf;

/// Intervals of 95 % and the covariance of a fit's ratings, in the order of the fit's players. Players with a bound have a
/// variance here like everybody, but it says nothing of the bound: they are left out where intervals are told.
#[derive(Clone, Debug)]
pub struct Uncertainty {
    /// The lower ends, in Elo.
    pub low: Vec<f64>,
    /// The upper ends.
    pub high: Vec<f64>,
    /// The covariance of the ratings with the anchor at zero, in squared Elo.
    pub covariance: DMatrix<f64>,
    /// The ends of the first seat's advantage, where it was fitted and the results vary.
    pub seat_advantage: Option<(f64, f64)>,
}

/// An interval, where it is one: where all units of a pairing came out alike nothing was drawn that differed, and what has no
/// width, but for rounding, does not tell how sure a number is.
pub(crate) fn with_spread((low, high): (f64, f64)) -> Option<(f64, f64)> {
    const LEAST_WIDTH: f64 = 1e-3;
    (high - low > LEAST_WIDTH).then_some((low, high))
}

impl Uncertainty {
    /// The interval of a player's rating; nothing where the results do not vary.
    pub fn interval(&self, player: usize) -> Option<(f64, f64)> {
        with_spread((self.low[player], self.high[player]))
    }

    /// The standard deviation of a player's rating.
    pub fn deviation(&self, player: usize) -> f64 {
        self.covariance[(player, player)].max(0.0).sqrt()
    }

    /// The likelihood of superiority of `one` over `other`: Phi of their difference in its standard deviations. Nothing if
    /// they are not in one block: then one has a bound only, or nothing connects them.
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
        // Without variance the sign is certain, as far as the data can tell.
        let deviations =
            if variance > 0.0 { difference / variance.sqrt() } else { difference * f64::INFINITY };
        Some(normal_cdf(deviations))
    }
}
