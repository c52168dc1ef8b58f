//! Gaussian process regression: a noisy function of a few parameters, with its uncertainty everywhere.
//!
//! The values are mean scores of bouts, from 0 to 1, with known noise. The kernel is the squared exponential
//! with a length per dimension, plus an unknown constant (Rasmussen and Williams, "Gaussian processes for machine learning",
//! 2006: RW below). Lengths and signal have priors and are averaged over, because a few bouts do not determine them: one
//! maximum of the likelihood is often a flat function or a jagged one. Own code on nalgebra, because of the maintained
//! crates `friedrich` has one noise for all observations and `egobox-gp` adds a second linear algebra library. The choice
//! of the next point is in `acquisition.rs`.

use nalgebra::{Cholesky, DMatrix, DVector, Dyn};
use rand::RngExt as _;
use thiserror::Error;

use crate::distribution::{Random, normal_quantile, seeded};

/// An observation at a point of the unit cube.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// The point, each coordinate from 0 to 1.
    pub point: Vec<f64>,
    /// The observed mean score.
    pub value: f64,
    /// The variance of the mean score; above 0.
    pub variance: f64,
}

/// Invalid observations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum GaussianProcessError {
    /// Too few observations.
    #[error("a Gaussian process needs at least two observations")]
    TooFew,
    /// Points of different dimensions.
    #[error("all points must have the same number of coordinates, at least one")]
    Dimensions,
    /// Invalid numbers.
    #[error("points and values must be finite, and variances finite and above 0")]
    NotFinite,
    /// A singular covariance.
    #[error("the covariance of the observations cannot be factored: spread the points")]
    Singular,
}

/// The shape of the process, in scores and units of the cube.
#[derive(Clone, Debug, PartialEq)]
pub struct Hyperparameters {
    /// The length scale of each dimension.
    pub lengths: Vec<f64>,
    /// The standard deviation of the function.
    pub signal: f64,
}

/// A log-normal prior: the median, and the standard deviation of the logarithm.
struct LogNormal {
    median: f64,
    deviation: f64,
}

impl LogNormal {
    fn quantile(&self, p: f64) -> f64 {
        self.median * (self.deviation * normal_quantile(p)).exp()
    }
}

/// The prior of a length in one dimension: a parameter's effect has one hill or two within its bounds. In more dimensions
/// lengths grow with the root of their number (Hvarfner, Hellsten and Nardi, "Vanilla Bayesian optimization performs
/// great in high dimensions", 2024), so that the function stays as simple.
const LENGTH: LogNormal = LogNormal { median: 0.3, deviation: 0.5 };
/// The prior of the signal: 0.12 is about 80 Elo.
const SIGNAL: LogNormal = LogNormal { median: 0.12, deviation: 0.7 };
/// The prior of the constant: a score of one half with this standard deviation.
const CENTRE: f64 = 0.5;
const CENTRE_DEVIATION: f64 = 0.25;

/// The number of hyperparameters drawn from the prior, per hyperparameter.
const DRAWS: usize = 32;
/// The maximum number of processes of a mixture.
const PARTS: f64 = 16.0;
/// The variance added to a covariance so that rounding does not make it indefinite.
const JITTER: f64 = 1e-8;

/// The posterior at one point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// The expected value of the function, without noise.
    pub mean: f64,
    /// The variance of the function.
    pub variance: f64,
}

/// The posterior at several points together.
#[derive(Clone, Debug)]
pub struct Joint {
    /// The expected values.
    pub mean: DVector<f64>,
    /// Their covariance.
    pub covariance: DMatrix<f64>,
}

impl Joint {
    /// Reduces the covariance by that of an observation to come at one of the points. The mean stays as it is.
    pub fn await_observation(&mut self, place: usize, variance: f64) {
        let column = self.covariance.column(place).into_owned();
        let total = column[place] + variance;
        self.covariance.ger(-1.0 / total, &column, &column, 1.0);
    }

    /// Returns a lower triangular root of the covariance, which turns independent normal numbers into a function.
    pub fn root(&self) -> Result<DMatrix<f64>, GaussianProcessError> {
        let count = self.mean.len();
        let covariance = &self.covariance + DMatrix::identity(count, count) * JITTER;
        Ok(covariance.cholesky().ok_or(GaussianProcessError::Singular)?.unpack())
    }
}

/// A process given its hyperparameters and observations.
#[derive(Clone, Debug)]
pub struct GaussianProcess {
    hyperparameters: Hyperparameters,
    points: Vec<Vec<f64>>,
    factor: Cholesky<f64, Dyn>,
    /// K^-1 (y - centre).
    residual: DVector<f64>,
    log_marginal_likelihood: f64,
}

impl GaussianProcess {
    /// Creates the process with given hyperparameters.
    pub fn with(
        observations: &[Observation],
        hyperparameters: Hyperparameters,
    ) -> Result<Self, GaussianProcessError> {
        let dimensions = validate(observations)?;
        if hyperparameters.lengths.len() != dimensions {
            return Err(GaussianProcessError::Dimensions);
        }
        let points: Vec<Vec<f64>> = observations.iter().map(|seen| seen.point.clone()).collect();
        let mut covariance = hyperparameters.covariance(&points, &points);
        for (place, seen) in observations.iter().enumerate() {
            covariance[(place, place)] += seen.variance + JITTER;
        }
        let factor = covariance.cholesky().ok_or(GaussianProcessError::Singular)?;
        let centred =
            DVector::from_iterator(points.len(), observations.iter().map(|seen| seen.value - CENTRE));
        let residual = factor.solve(&centred);
        // RW equation 2.30.
        let log_marginal_likelihood = -0.5 * centred.dot(&residual)
            - 0.5 * factor.ln_determinant()
            - 0.5 * points.len() as f64 * std::f64::consts::TAU.ln();
        Ok(GaussianProcess { hyperparameters, points, factor, residual, log_marginal_likelihood })
    }

    /// Returns the log marginal likelihood.
    pub fn log_marginal_likelihood(&self) -> f64 {
        self.log_marginal_likelihood
    }

    /// Returns the posterior at a point of the unit cube. Precondition: the dimension of the observations.
    pub fn predict(&self, point: &[f64]) -> Prediction {
        let joint = self.joint(&[point.to_vec()]);
        Prediction { mean: joint.mean[0], variance: joint.covariance[(0, 0)].max(0.0) }
    }

    /// Returns the posterior at several points (RW equations 2.25 and 2.26). Precondition: the dimension of the
    /// observations.
    pub fn joint(&self, points: &[Vec<f64>]) -> Joint {
        let mut covariances = self.hyperparameters.covariance(&self.points, points);
        let mean = covariances.tr_mul(&self.residual).add_scalar(CENTRE);
        self.factor.l_dirty().solve_lower_triangular_mut(&mut covariances);
        let explained = covariances.tr_mul(&covariances);
        Joint { mean, covariance: self.hyperparameters.covariance(points, points) - explained }
    }
}

impl Hyperparameters {
    /// Returns the prior covariances between two lists of points.
    fn covariance(&self, first: &[Vec<f64>], second: &[Vec<f64>]) -> DMatrix<f64> {
        DMatrix::from_fn(first.len(), second.len(), |i, j| self.kernel(&first[i], &second[j]))
    }

    /// Returns the squared exponential (RW equation 4.9), plus the covariance of the constant.
    fn kernel(&self, first: &[f64], second: &[f64]) -> f64 {
        let part = |((a, b), length): ((&f64, &f64), &f64)| ((a - b) / length) * ((a - b) / length);
        let square: f64 = first.iter().zip(second).zip(&self.lengths).map(part).sum();
        CENTRE_DEVIATION * CENTRE_DEVIATION + self.signal * self.signal * (-0.5 * square).exp()
    }
}

/// Processes weighted by the posterior probabilities of their hyperparameters.
#[derive(Clone, Debug)]
pub struct Mixture {
    parts: Vec<(f64, GaussianProcess)>,
}

impl Mixture {
    /// Fits a mixture: weights hyperparameters spread over their prior by the marginal likelihood (importance sampling).
    pub fn fit(observations: &[Observation], seed: u64) -> Result<Self, GaussianProcessError> {
        let dimensions = validate(observations)?;
        let origin = spread_origin(dimensions + 1, seed);
        let widening = (dimensions as f64).sqrt();
        let draw = |index: usize| {
            let mut draws = spread_point(index, &origin);
            // The spread has points at the very ends, where a quantile is infinite.
            draws.iter_mut().for_each(|draw| *draw = draw.clamp(1e-3, 1.0 - 1e-3));
            let signal = SIGNAL.quantile(draws[dimensions]);
            let lengths = draws[..dimensions].iter().map(|&draw| widening * LENGTH.quantile(draw)).collect();
            let process = GaussianProcess::with(observations, Hyperparameters { lengths, signal })?;
            Ok((process.log_marginal_likelihood, process))
        };
        let drawn: Result<Vec<_>, GaussianProcessError> = (0..DRAWS * (dimensions + 1)).map(draw).collect();
        let mut parts = drawn?;
        parts.sort_by(|first, second| second.0.total_cmp(&first.0));
        let best = parts[0].0;
        parts.iter_mut().for_each(|part| part.0 = (part.0 - best).exp());
        // Systematic resampling: as many equal shares of the probability as parts, each at its middle.
        let total = parts.iter().map(|part| part.0).sum::<f64>();
        let mut reached = 0.0;
        let mut shares = 0.0;
        parts.iter_mut().for_each(|part| {
            reached += PARTS * part.0 / total;
            part.0 = ((reached + 0.5).floor().min(PARTS) - shares) / PARTS;
            shares = (reached + 0.5).floor().min(PARTS);
        });
        parts.retain(|part| part.0 > 0.0);
        Ok(Mixture { parts })
    }

    /// Returns the posterior at a point of the unit cube, with the mean and the variance of the mixture.
    pub fn predict(&self, point: &[f64]) -> Prediction {
        let each = || self.parts.iter().map(|(weight, process)| (weight, process.predict(point)));
        let mean = each().map(|(weight, found)| weight * found.mean).sum::<f64>();
        let square = |found: Prediction| found.variance + (found.mean - mean) * (found.mean - mean);
        Prediction { mean, variance: each().map(|(weight, found)| weight * square(found)).sum() }
    }

    /// Returns the posterior of each process at several points, with its probability.
    pub fn joint(&self, points: &[Vec<f64>]) -> Vec<(f64, Joint)> {
        self.parts.iter().map(|(weight, process)| (*weight, process.joint(points))).collect()
    }
}

/// Draws the origin of a spread.
pub(crate) fn spread_origin(dimensions: usize, seed: u64) -> Vec<f64> {
    let mut random: Random = seeded(seed, 0);
    (0..dimensions).map(|_| random.random()).collect()
}

/// Returns a point of a low-discrepancy sequence: multiples of powers of the root of x^(d+1) = x + 1 (Roberts' R sequence,
/// 2018), from an origin.
pub(crate) fn spread_point(index: usize, origin: &[f64]) -> Vec<f64> {
    let mut root = 2.0_f64;
    for _ in 0..60 {
        root = (1.0 + root).powf(1.0 / (origin.len() + 1) as f64);
    }
    let coordinate =
        |(place, start): (usize, &f64)| (start + index as f64 / root.powi(place as i32 + 1)).fract();
    origin.iter().enumerate().map(coordinate).collect()
}

fn validate(observations: &[Observation]) -> Result<usize, GaussianProcessError> {
    let [first, _, ..] = observations else { return Err(GaussianProcessError::TooFew) };
    let dimensions = first.point.len();
    if dimensions == 0 || observations.iter().any(|seen| seen.point.len() != dimensions) {
        return Err(GaussianProcessError::Dimensions);
    }
    let sound = |seen: &Observation| {
        let numbers = seen.point.iter().chain([&seen.value, &seen.variance]);
        numbers.into_iter().all(|number| number.is_finite()) && seen.variance > 0.0
    };
    if !observations.iter().all(sound) {
        return Err(GaussianProcessError::NotFinite);
    }
    Ok(dimensions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replicas::standard_normal;

    fn wave(point: &[f64]) -> f64 {
        0.5 + 0.1 * (5.0 * point[0]).sin() + point[1..].iter().map(|x| 0.1 * x * x).sum::<f64>()
    }

    fn observations(count: usize, dimensions: usize, deviation: f64, seed: u64) -> Vec<Observation> {
        let mut random = seeded(seed, 1);
        let mut draw = || {
            let point: Vec<f64> = (0..dimensions).map(|_| random.random()).collect();
            let value = wave(&point) + deviation * standard_normal(&mut random);
            Observation { point, value, variance: deviation * deviation }
        };
        (0..count).map(|_| draw()).collect()
    }

    fn shape(dimensions: usize) -> Hyperparameters {
        let lengths = (0..dimensions).map(|dimension| 0.2 + 0.3 * dimension as f64).collect();
        Hyperparameters { lengths, signal: 0.1 }
    }

    /// Compares with the textbook form by explicit inverses.
    #[test]
    fn prediction_matches_explicit_inverse() {
        let seen = observations(9, 2, 0.05, 5);
        let process = GaussianProcess::with(&seen, shape(2)).unwrap();
        let kernel = |first: &[f64], second: &[f64]| {
            let [x, y] = [(first[0] - second[0]) / 0.2, (first[1] - second[1]) / 0.5];
            0.0625 + 0.01 * (-(x * x + y * y) / 2.0).exp()
        };
        let covariance = DMatrix::from_fn(9, 9, |i, j| {
            kernel(&seen[i].point, &seen[j].point) + if i == j { 0.0025 + JITTER } else { 0.0 }
        });
        let inverse = covariance.clone().try_inverse().unwrap();
        let values = DVector::from_iterator(9, seen.iter().map(|one| one.value - 0.5));
        let likelihood = -0.5 * (values.transpose() * &inverse * &values)[0]
            - 0.5 * covariance.determinant().ln()
            - 4.5 * std::f64::consts::TAU.ln();
        assert!((process.log_marginal_likelihood() - likelihood).abs() < 1e-9);
        for point in [[0.1, 0.9], [0.5, 0.5], [1.0, 0.0]] {
            let covariances = DVector::from_iterator(9, seen.iter().map(|one| kernel(&one.point, &point)));
            let mean = 0.5 + (covariances.transpose() * &inverse * &values)[0];
            let variance = kernel(&point, &point) - (covariances.transpose() * &inverse * &covariances)[0];
            let predicted = process.predict(&point);
            assert!((predicted.mean - mean).abs() < 1e-9, "{predicted:?} {mean}");
            assert!((predicted.variance - variance).abs() < 1e-9, "{predicted:?} {variance}");
        }
    }

    #[test]
    fn awaited_observation_reduces_covariance_like_its_result() {
        let mut seen = observations(9, 2, 0.05, 5);
        let points = vec![vec![0.1, 0.9], vec![0.5, 0.5], vec![1.0, 0.0]];
        let mut joint = GaussianProcess::with(&seen, shape(2)).unwrap().joint(&points);
        joint.await_observation(1, 0.01 + JITTER);
        seen.push(Observation { point: points[1].clone(), value: 0.9, variance: 0.01 });
        let expected = GaussianProcess::with(&seen, shape(2)).unwrap().joint(&points);
        assert!((&joint.covariance - &expected.covariance).amax() < 1e-9);
        let root = joint.root().unwrap();
        assert!((&root * root.transpose() - &joint.covariance).amax() < 1e-7);
    }

    #[test]
    fn mixture_learns_smooth_function() {
        let mixture = Mixture::fit(&observations(40, 2, 0.002, 7), 1).unwrap();
        for point in [[0.3, 0.4], [0.7, 0.6], [0.5, 0.1]] {
            let predicted = mixture.predict(&point);
            assert!((predicted.mean - wave(&point)).abs() < 0.005, "{predicted:?} {}", wave(&point));
        }
    }

    #[test]
    fn mixture_covers_function() {
        let (mut covered, mut asked) = (0, 0);
        for seed in 0..20 {
            let mixture = Mixture::fit(&observations(30, 1, 0.1, seed), seed).unwrap();
            for x in [0.1, 0.3, 0.5, 0.7, 0.9] {
                let Prediction { mean, variance } = mixture.predict(&[x]);
                covered += usize::from((mean - wave(&[x])).abs() < 1.96 * variance.sqrt());
                asked += 1;
            }
        }
        assert!(covered as f64 >= 0.9 * f64::from(asked), "{covered} of {asked}");
    }

    #[test]
    fn uncertain_observation_has_little_weight() {
        let at = |x: f64, value: f64, variance: f64| Observation { point: vec![x], value, variance };
        let mean = |variance| {
            let seen = [at(0.0, 0.4, 1e-4), at(0.5, 0.7, variance), at(1.0, 0.4, 1e-4)];
            let shape = Hyperparameters { lengths: vec![0.3], signal: 0.1 };
            GaussianProcess::with(&seen, shape).unwrap().predict(&[0.5]).mean
        };
        assert!(mean(1e-4) > 0.65 && mean(1.0) < 0.5, "{} {}", mean(1e-4), mean(1.0));
    }

    #[test]
    fn rejects_invalid_observations() {
        let at = |point: Vec<f64>, value: f64, variance: f64| Observation { point, value, variance };
        let fit = |seen: &[Observation]| Mixture::fit(seen, 1).map(|_| ()).unwrap_err();
        assert_eq!(fit(&[]), GaussianProcessError::TooFew);
        assert_eq!(fit(&[at(vec![], 1.0, 0.1), at(vec![], 1.0, 0.1)]), GaussianProcessError::Dimensions);
        let unlike = [at(vec![0.1], 1.0, 0.1), at(vec![0.1, 0.2], 1.0, 0.1)];
        assert_eq!(fit(&unlike), GaussianProcessError::Dimensions);
        for (value, variance) in [(1.0, 0.0), (1.0, -1.0), (f64::NAN, 0.1)] {
            let invalid = at(vec![0.1], value, variance);
            assert_eq!(fit(&[at(vec![0.1], 1.0, 0.1), invalid]), GaussianProcessError::NotFinite);
        }
    }
}
