//! Errors of ratings by the sandwich: the likelihood's curvature, corrected by the actual variance of bouts.
//!
//! The covariance is A^-1 B A^-1, with A the information and B the summed squares of the units' gradients (Huber
//! 1967; White 1982, with units as clusters: Liang and Zeger 1986), times n / (n - p) for n units and p parameters, and
//! intervals are those of Student's distribution with n - p degrees. Both include the imaginary bouts of `fit`, so that
//! few units that happen to agree with the fit do not look certain. It holds even though the games of a bout depend on
//! each other and the model is only approximate.

use nalgebra::{Cholesky, DMatrix};
use statrs::distribution::{ContinuousCDF as _, StudentsT};

use super::fit::{Fit, SWEEPS, imaginary_bouts};
use super::model::Point;
use super::newton::Curvature;
use super::results::{KINDS, Unit};
use super::uncertainty::{Uncertainty, with_spread};
use crate::comparison::SURE;
use crate::distribution::Z95;
use crate::elo::POINTS_PER_LOGIT;
use crate::outcome::Outcome;
use crate::pairs::compare_estimate;

impl Fit {
    /// Computes intervals and covariance.
    pub fn uncertainty(&self) -> Uncertainty {
        let players = self.problem.players;
        let held = self.problem.held(&self.parameters);
        let imaginary = imaginary_bouts(players, &self.results.pairings);
        let (bread, meat) = (self.bread(held, &imaginary), self.meat(held, &imaginary));
        let units: u64 = self.results.pairings.iter().flat_map(|pairing| pairing.units).sum();
        let spare = units as f64 - self.problem.freedom() as f64;
        let estimable = spare > 0.0;
        let scale = POINTS_PER_LOGIT.powi(2) * widening(units as f64, spare.max(1.0));
        let full = &bread * meat * &bread * scale;

        // Change the origin from the components' means to their zeros.
        let mut covariance = full.view((0, 0), (players, players)).into_owned();
        for (component, zero) in self.structure.components.iter().zip(&self.zeros) {
            for _ in 0..2 {
                let mut mean = DMatrix::zeros(players, 1);
                zero.iter().for_each(|&player| mean += covariance.column(player) / zero.len() as f64);
                for &player in &component.members {
                    let moved = covariance.column(player) - mean.column(0);
                    covariance.set_column(player, &moved);
                }
                covariance.transpose_mut();
            }
        }
        let interval = |player: usize| {
            if self.anchor == Some(player) {
                return (Some(0.0), Some(0.0));
            }
            let rating = self.ratings()[player];
            if let Some(pair) = self.pair {
                let pair = if player == 0 { pair } else { pair.reversed() };
                let share = if self.anchor.is_some() { 1.0 } else { 0.5 };
                return (pair.low.map(|low| share * low), pair.high.map(|high| share * high));
            }
            let alone = self.structure.components[self.component_of()[player]].members.len() == 1;
            if alone || !estimable {
                return (None, None);
            }
            let own = compare_estimate(rating, covariance[(player, player)], self.structure.bounded[player]);
            (own.low, own.high)
        };
        let intervals = (0..players).map(interval).collect();
        let advantage_error = Z95 * full[(players, players)].max(0.0).sqrt();
        let first_seat_lost = !self.seat_is_separated();
        Uncertainty {
            intervals,
            estimable,
            seat_advantage: self
                .seat_advantage()
                .filter(|_| first_seat_lost && estimable)
                .and_then(|value| with_spread((value - advantage_error, value + advantage_error))),
            covariance,
        }
    }

    /// Returns whether one seat won all games, so that its advantage has no estimate.
    fn seat_is_separated(&self) -> bool {
        let mut points = [0; 2];
        for pairing in &self.results.pairings {
            for (kind, &count) in pairing.units.iter().enumerate() {
                let unit = Unit::of_kind(kind);
                for outcome in [unit.first(), unit.second().map(Outcome::reversed)].into_iter().flatten() {
                    points[0] += count * outcome.half_points() as u64;
                    points[1] += count * outcome.reversed().half_points() as u64;
                }
            }
        }
        points.contains(&0)
    }

    /// Returns the inverse of the information.
    fn bread(&self, held: [bool; 2], imaginary: &[f64]) -> DMatrix<f64> {
        let pairings = self.results.pairings.iter().zip(imaginary);
        let tallies: Vec<_> = pairings.map(|(pairing, &bouts)| pairing.tally_with(bouts)).collect();
        let information =
            |curvature| self.problem.slopes(&tallies, &self.parameters, curvature).holding(held).information;
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
    fn meat(&self, held: [bool; 2], imaginary: &[f64]) -> DMatrix<f64> {
        let players = self.problem.players;
        let mut meat = DMatrix::zeros(players + 2, players + 2);
        for (pairing, &bouts) in self.results.pairings.iter().zip(imaginary) {
            let difference = self.parameters.ratings[pairing.one] - self.parameters.ratings[pairing.other];
            let gradients = unit_gradients(difference, self.parameters.advantage, self.draw_rate());
            let mut squares = [[0.0; 3]; 3];
            let real = pairing.units.iter().map(|&count| count as f64).enumerate();
            for (kind, count) in real.chain(SWEEPS.map(|sweep| (sweep, bouts / 2.0))) {
                let gradient = &gradients[kind];
                for i in 0..3 {
                    for j in 0..3 {
                        squares[i][j] += count * gradient[i] * gradient[j];
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

/// Returns the factor of the variances of `units` units, `spare` more than the fit of the parameters needs: n / (n - p),
/// and the square of Student's quantile in units of the normal one.
fn widening(units: f64, spare: f64) -> f64 {
    // From here on the two differ by less than a thousandth, and the quantile is slow to compute.
    const NORMAL: f64 = 10_000.0;
    if spare >= NORMAL {
        return units / spare;
    }
    let student = StudentsT::new(0.0, 1.0, spare).expect("a positive number of degrees of freedom");
    units / spare * (student.inverse_cdf(SURE) / Z95).powi(2)
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
