//! Logistic regression: how features predict the winner.
//!
//! The probability of a win is the logistic of an intercept and a weighted sum of features (Cox, "The regression
//! analysis of binary sequences", 1958); a draw is half a win. Newton's method with halved steps on the penalised
//! log-likelihood. Sums run in the order of the observations and use `libm`, so that the same data give the same
//! weights.

use nalgebra::{DMatrix, DVector};
use thiserror::Error;

/// The ridge penalty, as strong as one observation of weight one for a feature of unit size. It keeps coefficients of
/// separable data finite.
const RIDGE: f64 = 1.0;
/// An iteration limit far beyond convergence.
const MOST_ITERATIONS: usize = 100;
const TOLERANCE: f64 = 1e-10;

/// Observations: features, outcomes and weights.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Data {
    features: usize,
    values: Vec<f64>,
    outcomes: Vec<f64>,
    weights: Vec<f64>,
}

/// Data that cannot be fitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum LogisticError {
    /// No observations.
    #[error("there are no observations to fit")]
    Empty,
    /// A singular Hessian.
    #[error("the features are linearly dependent; leave some of them out")]
    Singular,
}

/// Fitted coefficients.
#[derive(Clone, PartialEq, Debug)]
pub struct Fit {
    /// The log-odds at features of 0.
    pub intercept: f64,
    /// The change of the log-odds per unit of each feature.
    pub coefficients: Vec<f64>,
}

impl Data {
    /// Creates an empty data set with `features` features.
    pub fn new(features: usize) -> Data {
        Data { features, ..Data::default() }
    }

    /// Adds an observation: its features, its outcome from 0 to 1, and its weight.
    pub fn add(&mut self, values: impl IntoIterator<Item = f64>, outcome: f64, weight: f64) {
        let before = self.values.len();
        self.values.extend(values);
        debug_assert_eq!(self.values.len() - before, self.features);
        self.outcomes.push(outcome);
        self.weights.push(weight);
    }

    /// Returns the number of observations.
    pub fn len(&self) -> usize {
        self.outcomes.len()
    }

    /// Returns whether there are no observations.
    pub fn is_empty(&self) -> bool {
        self.outcomes.is_empty()
    }

    /// Returns the total weight.
    pub fn weight(&self) -> f64 {
        self.weights.iter().sum()
    }

    fn rows(&self) -> impl Iterator<Item = (&[f64], f64, f64)> {
        let outcomes = self.outcomes.iter().zip(&self.weights);
        self.values
            .chunks(self.features.max(1))
            .zip(outcomes)
            .map(|(row, (&outcome, &weight))| (row, outcome, weight))
    }

    /// Returns the mean negative log-likelihood of a fit.
    pub fn loss(&self, fit: &Fit) -> f64 {
        let sum: f64 = self.rows().map(|(row, outcome, weight)| weight * loss(fit.odds(row), outcome)).sum();
        sum / self.weight()
    }

    /// Returns the root mean square of each feature.
    fn sizes(&self) -> Vec<f64> {
        let mut squares = vec![0.0; self.features];
        for (row, _, weight) in self.rows() {
            for (square, value) in squares.iter_mut().zip(row) {
                *square += weight * value * value;
            }
        }
        squares.iter().map(|square| (square / self.weight()).sqrt()).collect()
    }

    /// Fits all coefficients. A feature that is always 0 gets 0.
    pub fn fit(&self) -> Result<Fit, LogisticError> {
        if self.is_empty() || self.weight() <= 0.0 {
            return Err(LogisticError::Empty);
        }
        let sizes = self.sizes();
        let count = self.features + 1;
        let mut theta = DVector::zeros(count);
        let mut value = self.penalised(&theta, &sizes);
        for _ in 0..MOST_ITERATIONS {
            let (gradient, curvature) = self.derivatives(&theta, &sizes);
            let step = curvature.cholesky().ok_or(LogisticError::Singular)?.solve(&gradient);
            let mut share = 1.0;
            let (next, next_value) = loop {
                let next = &theta - share * &step;
                let next_value = self.penalised(&next, &sizes);
                if next_value <= value || share < 1e-6 {
                    break (next, next_value);
                }
                share /= 2.0;
            };
            let gain = value - next_value;
            (theta, value) = (next, next_value);
            if gain <= TOLERANCE * value.abs() {
                break;
            }
        }
        let coefficient =
            |(index, size): (usize, &f64)| if *size > 0.0 { theta[index + 1] / size } else { 0.0 };
        Ok(Fit { intercept: theta[0], coefficients: sizes.iter().enumerate().map(coefficient).collect() })
    }

    /// Fits one factor for all `coefficients` and an intercept, which converts the coefficients to log-odds.
    pub fn fit_scale(&self, coefficients: &[f64]) -> Result<Fit, LogisticError> {
        let mut one = Data::new(1);
        for (row, outcome, weight) in self.rows() {
            let sum: f64 = row.iter().zip(coefficients).map(|(value, coefficient)| value * coefficient).sum();
            one.add([sum], outcome, weight);
        }
        let fit = one.fit()?;
        let scaled = coefficients.iter().map(|coefficient| coefficient * fit.coefficients[0]).collect();
        Ok(Fit { intercept: fit.intercept, coefficients: scaled })
    }

    /// Returns a row in units of its features' sizes, after a 1 for the intercept.
    fn scaled<'a>(row: &'a [f64], sizes: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
        let scaled = row.iter().zip(sizes).map(|(value, size)| if *size > 0.0 { value / size } else { 0.0 });
        std::iter::once(1.0).chain(scaled)
    }

    fn penalised(&self, theta: &DVector<f64>, sizes: &[f64]) -> f64 {
        let sum: f64 = self
            .rows()
            .map(|(row, outcome, weight)| {
                let odds =
                    Data::scaled(row, sizes).zip(theta.iter()).map(|(value, theta)| value * theta).sum();
                weight * loss(odds, outcome)
            })
            .sum();
        sum + 0.5 * RIDGE * theta.iter().skip(1).map(|theta| theta * theta).sum::<f64>()
    }

    fn derivatives(&self, theta: &DVector<f64>, sizes: &[f64]) -> (DVector<f64>, DMatrix<f64>) {
        let count = theta.len();
        let mut gradient = DVector::zeros(count);
        let mut curvature = DMatrix::zeros(count, count);
        for (row, outcome, weight) in self.rows() {
            let values: Vec<f64> = Data::scaled(row, sizes).collect();
            let odds: f64 = values.iter().zip(theta.iter()).map(|(value, theta)| value * theta).sum();
            let chance = chance(odds);
            for (index, value) in values.iter().enumerate() {
                gradient[index] += weight * (chance - outcome) * value;
                for (other, second) in values.iter().enumerate().take(index + 1) {
                    curvature[(index, other)] += weight * chance * (1.0 - chance) * value * second;
                }
            }
        }
        for index in 1..count {
            gradient[index] += RIDGE * theta[index];
            curvature[(index, index)] += RIDGE;
            for other in 0..index {
                curvature[(other, index)] = curvature[(index, other)];
            }
        }
        (gradient, curvature)
    }
}

impl Fit {
    fn odds(&self, row: &[f64]) -> f64 {
        self.intercept + row.iter().zip(&self.coefficients).map(|(value, weight)| value * weight).sum::<f64>()
    }
}

fn chance(odds: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-odds))
}

/// Returns the negative log-likelihood of an outcome, ln(1 + e^x) - y x, without overflow.
fn loss(odds: f64, outcome: f64) -> f64 {
    let softplus = odds.max(0.0) + libm::log1p(libm::exp(-odds.abs()));
    softplus - outcome * odds
}

#[cfg(test)]
mod tests {
    use rand::RngExt as _;

    use super::*;
    use crate::distribution::seeded;

    /// Draws data from a known truth: three relevant features, one irrelevant, one always 0.
    fn world(games: usize, seed: u64) -> Data {
        let mut random = seeded(seed, 0);
        let mut data = Data::new(5);
        for _ in 0..games {
            let row: Vec<f64> = (0..4).map(|_| f64::from(random.random_range(-5_i32..=5))).collect();
            let odds = 0.2 + 0.5 * row[0] - 0.3 * row[1] + 0.05 * row[2];
            let outcome = if random.random::<f64>() < chance(odds) { 1.0 } else { 0.0 };
            data.add(row.into_iter().chain([0.0]), outcome, 1.0);
        }
        data
    }

    #[test]
    fn recovers_known_coefficients() {
        for seed in 0..5 {
            let fit = world(20_000, seed).fit().unwrap();
            let truth = [0.5, -0.3, 0.05, 0.0, 0.0];
            assert!((fit.intercept - 0.2).abs() < 0.07, "{fit:?}");
            for (found, truth) in fit.coefficients.iter().zip(truth) {
                assert!((found - truth).abs() < 0.03, "{fit:?}");
            }
            assert_eq!(fit.coefficients[4], 0.0);
        }
    }

    /// No other coefficients have a smaller penalised loss, and the fit predicts held-out data better than no model.
    #[test]
    fn fit_minimises_penalised_loss() {
        let data = world(3000, 9);
        let fit = data.fit().unwrap();
        let sizes = data.sizes();
        let theta = |fit: &Fit| {
            let scaled = fit.coefficients.iter().zip(&sizes).map(|(one, size)| one * size);
            DVector::from_iterator(6, std::iter::once(fit.intercept).chain(scaled))
        };
        let least = data.penalised(&theta(&fit), &sizes);
        for index in 0..4 {
            for by in [-0.01, 0.01] {
                let mut moved = fit.clone();
                moved.coefficients[index] += by;
                assert!(data.penalised(&theta(&moved), &sizes) > least);
            }
        }
        let held = world(3000, 10);
        let nothing = Fit { intercept: 0.0, coefficients: vec![0.0; 5] };
        assert!((held.loss(&nothing) - std::f64::consts::LN_2).abs() < 1e-12);
        assert!(held.loss(&fit) < 0.9 * held.loss(&nothing));
        let scaled = data.fit_scale(&[50.0, -30.0, 5.0, 0.0, 0.0]).unwrap();
        assert!((scaled.coefficients[0] - 0.5).abs() < 0.08, "{scaled:?}");
    }

    #[test]
    fn separable_data_gives_finite_coefficients() {
        let mut data = Data::new(1);
        assert_eq!(data.fit(), Err(LogisticError::Empty));
        for _ in 0..50 {
            data.add([1.0], 1.0, 1.0);
            data.add([-1.0], 0.0, 1.0);
        }
        let fit = data.fit().unwrap();
        assert!(fit.coefficients[0] > 1.0 && fit.coefficients[0] < 20.0, "{fit:?}");
    }
}
