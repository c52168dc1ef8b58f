//! Errors of ratings by the sandwich: the likelihood's curvature, corrected by the actual variance of bouts.
//!
//! The covariance is A^-1 B A^-1, with A the information and B the summed squares of the units' gradients (Huber
//! 1967; White 1982, with units as clusters: Liang and Zeger 1986), times n / (n - p) for n units and p parameters.
//! It holds even though the games of a bout depend on each other and the model is only approximate.

use nalgebra::{Cholesky, DMatrix};

use super::fit::Fit;
use super::model::Point;
use super::newton::Curvature;
use super::results::{KINDS, Unit};
use super::uncertainty::{Uncertainty, with_spread};
use crate::distribution::Z95;
use crate::elo::POINTS_PER_LOGIT;
use crate::outcome::Outcome;

impl Fit {
    /// Computes intervals and covariance by the sandwich. Intervals are symmetric, of 1.96 standard deviations.
    pub fn sandwich(&self) -> Uncertainty {
        let players = self.problem.players;
        let held = self.problem.held(&self.parameters);
        let (bread, meat) = (self.bread(held), self.meat(held));
        let units: u64 = self.inner.iter().flat_map(|pairing| pairing.units).sum();
        let spare = (units as f64 - self.problem.freedom() as f64).max(1.0);
        let scale = POINTS_PER_LOGIT.powi(2) * (units as f64 / spare).max(1.0);
        let full = &bread * meat * &bread * scale;

        // Change the origin from the means to the anchor.
        let mut covariance = full.view((0, 0), (players, players)).into_owned();
        if let Some(anchor) = self.anchor {
            let block = &self.structure.blocks[self.structure.block_of[anchor]];
            let column = covariance.column(anchor).into_owned();
            for &player in block {
                let mut row = covariance.row_mut(player);
                row -= column.transpose();
            }
            let column = covariance.column(anchor).into_owned();
            for &player in block {
                let mut target = covariance.column_mut(player);
                target -= &column;
            }
        }
        let deviation = |player: usize| covariance[(player, player)].max(0.0).sqrt();
        let ends = |sign: f64| {
            let ratings = self.ratings().iter().enumerate();
            ratings.map(|(player, rating)| rating + sign * Z95 * deviation(player)).collect()
        };
        let advantage_error = Z95 * full[(players, players)].max(0.0).sqrt();
        Uncertainty {
            low: ends(-1.0),
            high: ends(1.0),
            seat_advantage: self
                .seat_advantage()
                .and_then(|value| with_spread((value - advantage_error, value + advantage_error))),
            covariance,
        }
    }

    /// Returns the inverse of the information.
    fn bread(&self, held: [bool; 2]) -> DMatrix<f64> {
        let information = |curvature| {
            self.problem.slopes(&self.tallies, &self.parameters, curvature).holding(held).information
        };
        if let Some(factor) = Cholesky::new(information(Curvature::Observed)) {
            return factor.inverse();
        }
        // Ratings are so far apart that rounding hides their connection: the pseudo-inverse ignores it.
        let mut expected = information(Curvature::Expected);
        expected.fill_upper_triangle_with_lower_triangle();
        let negligible = 1e-14 * expected.amax();
        expected.pseudo_inverse(negligible).expect("the threshold is not negative")
    }

    /// Returns the summed squares of the units' gradients.
    fn meat(&self, held: [bool; 2]) -> DMatrix<f64> {
        let players = self.problem.players;
        let mut meat = DMatrix::zeros(players + 2, players + 2);
        for pairing in &self.inner {
            let difference = self.parameters.ratings[pairing.one] - self.parameters.ratings[pairing.other];
            let gradients = unit_gradients(difference, self.parameters.advantage, self.draw_rate());
            let mut squares = [[0.0; 3]; 3];
            for (gradient, &count) in gradients.iter().zip(&pairing.units) {
                for i in 0..3 {
                    for j in 0..3 {
                        squares[i][j] += count as f64 * gradient[i] * gradient[j];
                    }
                }
            }
            let (one, other) = (pairing.one, pairing.other);
            let places = [(one, 0, 1.0), (other, 0, -1.0), (players, 1, 1.0), (players + 1, 2, 1.0)];
            for (row, i, row_sign) in places {
                for (column, j, column_sign) in places {
                    meat[(row, column)] += row_sign * column_sign * squares[i][j];
                }
            }
        }
        // Fixed parameters have no error.
        for (index, held) in (players..).zip(held) {
            if held {
                meat.row_mut(index).fill(0.0);
                meat.column_mut(index).fill(0.0);
            }
        }
        meat
    }
}

/// Returns the gradient of each unit kind by the difference, the advantage and the draw rate.
pub(super) fn unit_gradients(difference: f64, advantage: f64, rate: f64) -> [[f64; 3]; KINDS] {
    let first = Point::new(advantage + difference, rate);
    let second = Point::new(advantage - difference, rate);
    std::array::from_fn(|kind| {
        let unit = Unit::of_kind(kind);
        let mut gradient = [0.0; 3];
        let games = [(unit.first(), first, 1.0), (unit.second().map(Outcome::reversed), second, -1.0)];
        for (outcome, point, side) in games {
            if let Some(outcome) = outcome {
                let [by_x, by_y] = point.gradient(outcome.half_points());
                gradient[0] += side * by_x;
                gradient[1] += by_x;
                gradient[2] += by_y;
            }
        }
        gradient
    })
}
