//! Gaussian process regression: a noisy function of a few parameters, with its uncertainty everywhere.
//!
//! Constant mean, Matern 5/2 kernel with a length per dimension, known noise per observation plus fitted noise
//! (Rasmussen and Williams, "Gaussian processes for machine learning", 2006: RW below). Own code on nalgebra, because
//! of the maintained crates `friedrich` has one noise for all observations and `egobox-gp` adds a second linear
//! algebra library. The choice of the next point is in `acquisition.rs`.

use nalgebra::{Cholesky, DMatrix, DVector, Dyn};
use rand::RngExt as _;
use thiserror::Error;

use crate::distribution::seeded;

/// An observation at a point of the unit cube.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// The point, each coordinate from 0 to 1.
    pub point: Vec<f64>,
    /// The observed value.
    pub value: f64,
    /// The known variance of the value, that of the mean of its bouts; may be 0. The fitted noise is added.
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
    #[error("points and values must be finite, and variances finite and not negative")]
    NotFinite,
    /// A singular covariance.
    #[error(
        "the covariance of the observations cannot be factored: raise the fitted noise or spread the points"
    )]
    Singular,
}

/// The shape of the process, in units of the standardised values and the unit cube.
#[derive(Clone, Debug, PartialEq)]
pub struct Hyperparameters {
    /// The length scale of each dimension.
    pub lengths: Vec<f64>,
    /// The variance of the function.
    pub signal: f64,
    /// The variance of the noise beyond the known one.
    pub noise: f64,
}

/// Bounds of lengths, signal and noise. A few bouts cannot resolve a function that varies within a twentieth of its
/// domain; the least noise keeps the covariance well conditioned.
const LENGTHS: (f64, f64) = (0.05, 10.0);
const SIGNAL: (f64, f64) = (1e-4, 20.0);
const NOISE: (f64, f64) = (1e-6, 4.0);

/// The number of random starts of the hyperparameter search, after a fixed one.
const DRAWN_STARTS: usize = 3;

/// The posterior at one point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// The expected value of the function, without noise.
    pub mean: f64,
    /// The variance of the function, given the hyperparameters.
    pub variance: f64,
}

/// A process fitted to observations.
#[derive(Clone, Debug)]
pub struct GaussianProcess {
    hyperparameters: Hyperparameters,
    points: Vec<Vec<f64>>,
    /// Values are standardised: (value - offset) / scale.
    offset: f64,
    scale: f64,
    factor: Cholesky<f64, Dyn>,
    /// The fitted constant mean of the standardised values.
    constant: f64,
    /// K^-1 (y - constant).
    residual: DVector<f64>,
    /// K^-1 1, and its sum.
    ones: DVector<f64>,
    ones_sum: f64,
    log_marginal_likelihood: f64,
}

impl GaussianProcess {
    /// Fits a process with hyperparameters of maximum marginal likelihood, from several starts drawn by `seed`.
    pub fn fit(observations: &[Observation], seed: u64) -> Result<Self, GaussianProcessError> {
        let dimensions = validate(observations)?;
        let mut random = seeded(seed, 0);
        let mut start = vec![0.3_f64.ln(); dimensions];
        start.extend([1.0_f64.ln(), 0.1_f64.ln()]);
        let bounds = bounds(dimensions);
        let mut best: Option<(f64, Vec<f64>)> = None;
        for number in 0..=DRAWN_STARTS {
            if number > 0 {
                start = bounds.iter().map(|&(low, high)| random.random_range(low..=high)).collect();
            }
            let found = climb(start.clone(), &bounds, |logarithms| {
                let process = Self::with(observations, from_logarithms(logarithms)).ok()?;
                let gradient = process.gradient(observations);
                Some((process.log_marginal_likelihood, gradient))
            });
            if let Some(found) = found
                && best.as_ref().is_none_or(|(value, _)| found.0 > *value)
            {
                best = Some(found);
            }
        }
        let (_, logarithms) = best.ok_or(GaussianProcessError::Singular)?;
        Self::with(observations, from_logarithms(&logarithms))
    }

    /// Creates the process with given hyperparameters.
    pub fn with(
        observations: &[Observation],
        hyperparameters: Hyperparameters,
    ) -> Result<Self, GaussianProcessError> {
        let dimensions = validate(observations)?;
        if hyperparameters.lengths.len() != dimensions {
            return Err(GaussianProcessError::Dimensions);
        }
        let (offset, scale) = standardisation(observations);
        let n = observations.len();
        let covariance = DMatrix::from_fn(n, n, |i, j| {
            let kernel = hyperparameters.kernel(&observations[i].point, &observations[j].point);
            let noise = hyperparameters.noise + observations[i].variance / (scale * scale);
            if i == j { kernel + noise } else { kernel }
        });
        let factor = covariance.cholesky().ok_or(GaussianProcessError::Singular)?;
        let values = DVector::from_iterator(n, observations.iter().map(|seen| (seen.value - offset) / scale));
        let ones = factor.solve(&DVector::from_element(n, 1.0));
        let ones_sum = ones.sum();
        // The constant of generalised least squares (RW equation 2.43 with one constant basis function).
        let constant = ones.dot(&values) / ones_sum;
        let centred = values.add_scalar(-constant);
        let residual = factor.solve(&centred);
        // RW equation 2.30.
        let log_marginal_likelihood = -0.5 * centred.dot(&residual)
            - 0.5 * factor.ln_determinant()
            - 0.5 * n as f64 * std::f64::consts::TAU.ln();
        let points = observations.iter().map(|seen| seen.point.clone()).collect();
        Ok(GaussianProcess {
            hyperparameters,
            points,
            offset,
            scale,
            factor,
            constant,
            residual,
            ones,
            ones_sum,
            log_marginal_likelihood,
        })
    }

    /// Returns the hyperparameters.
    pub fn hyperparameters(&self) -> &Hyperparameters {
        &self.hyperparameters
    }

    /// Returns the log marginal likelihood of the standardised values, at the fitted constant mean.
    pub fn log_marginal_likelihood(&self) -> f64 {
        self.log_marginal_likelihood
    }

    /// Returns the function's mean and variance at a point of the unit cube. Precondition: the dimension of the
    /// observations.
    pub fn predict(&self, point: &[f64]) -> Prediction {
        let n = self.points.len();
        let kernels = self.points.iter().map(|seen| self.hyperparameters.kernel(seen, point));
        let covariances = DVector::from_iterator(n, kernels);
        let mean = self.constant + covariances.dot(&self.residual);
        // RW equations 2.26 and 2.42: the unexplained variance plus that of the unknown constant.
        let mut whitened = covariances.clone();
        self.factor.l_dirty().solve_lower_triangular_mut(&mut whitened);
        let unexplained = self.hyperparameters.signal - whitened.norm_squared();
        let missing = 1.0 - self.ones.dot(&covariances);
        let variance = (unexplained + missing * missing / self.ones_sum).max(0.0);
        Prediction { mean: self.offset + self.scale * mean, variance: self.scale * self.scale * variance }
    }

    /// Returns the gradient of the log marginal likelihood in the logarithms of the hyperparameters (RW equation
    /// 5.9). The derivative by the fitted constant is 0 and adds nothing.
    fn gradient(&self, observations: &[Observation]) -> Vec<f64> {
        let dimensions = self.hyperparameters.lengths.len();
        let (n, inverse) = (observations.len(), self.factor.inverse());
        let mut gradient = vec![0.0; dimensions + 2];
        for i in 0..n {
            for j in 0..=i {
                // The matrix is symmetric: off-diagonal terms count twice.
                let twice = if i == j { 0.5 } else { 1.0 };
                let weight = twice * (self.residual[i] * self.residual[j] - inverse[(i, j)]);
                let (first, second) = (&observations[i].point, &observations[j].point);
                gradient[dimensions] += weight * self.hyperparameters.kernel(first, second);
                if i == j {
                    gradient[dimensions + 1] += weight * self.hyperparameters.noise;
                } else {
                    self.hyperparameters.add_length_slopes(first, second, weight, &mut gradient);
                }
            }
        }
        gradient
    }
}

impl Hyperparameters {
    /// Returns sqrt(5) times the distance of two points in units of the lengths.
    fn distance(&self, first: &[f64], second: &[f64]) -> f64 {
        let part = |((a, b), length): ((&f64, &f64), &f64)| ((a - b) / length) * ((a - b) / length);
        (5.0 * first.iter().zip(second).zip(&self.lengths).map(part).sum::<f64>()).sqrt()
    }

    /// Returns the Matern covariance with smoothness 5/2 (RW equation 4.17).
    fn kernel(&self, first: &[f64], second: &[f64]) -> f64 {
        let distance = self.distance(first, second);
        self.signal * (1.0 + distance + distance * distance / 3.0) * (-distance).exp()
    }

    /// Adds `weight` times the kernel's derivatives in the logarithms of the lengths.
    fn add_length_slopes(&self, first: &[f64], second: &[f64], weight: f64, gradient: &mut [f64]) {
        let distance = self.distance(first, second);
        let common = weight * self.signal * (5.0 / 3.0) * (1.0 + distance) * (-distance).exp();
        for (dimension, length) in self.lengths.iter().enumerate() {
            let part = (first[dimension] - second[dimension]) / length;
            gradient[dimension] += common * part * part;
        }
    }
}

fn validate(observations: &[Observation]) -> Result<usize, GaussianProcessError> {
    let [first, _, ..] = observations else { return Err(GaussianProcessError::TooFew) };
    let dimensions = first.point.len();
    if dimensions == 0 || observations.iter().any(|seen| seen.point.len() != dimensions) {
        return Err(GaussianProcessError::Dimensions);
    }
    let sound = |seen: &Observation| {
        let numbers = seen.point.iter().chain([&seen.value, &seen.variance]);
        numbers.into_iter().all(|number| number.is_finite()) && seen.variance >= 0.0
    };
    if !observations.iter().all(sound) {
        return Err(GaussianProcessError::NotFinite);
    }
    Ok(dimensions)
}

/// Returns the mean and the standard deviation of the values; the deviation is 1 if all values are equal.
fn standardisation(observations: &[Observation]) -> (f64, f64) {
    let n = observations.len() as f64;
    let mean = observations.iter().map(|seen| seen.value).sum::<f64>() / n;
    let square = observations.iter().map(|seen| (seen.value - mean) * (seen.value - mean)).sum::<f64>() / n;
    (mean, if square > 0.0 { square.sqrt() } else { 1.0 })
}

fn from_logarithms(logarithms: &[f64]) -> Hyperparameters {
    let mut values: Vec<f64> = logarithms.iter().map(|logarithm| logarithm.exp()).collect();
    let noise = values.pop().expect("signal and noise follow the lengths");
    let signal = values.pop().expect("signal and noise follow the lengths");
    Hyperparameters { lengths: values, signal, noise }
}

fn bounds(dimensions: usize) -> Vec<(f64, f64)> {
    let mut bounds = vec![LENGTHS; dimensions];
    bounds.extend([SIGNAL, NOISE]);
    bounds.into_iter().map(|(low, high): (f64, f64)| (low.ln(), high.ln())).collect()
}

/// Returns a local maximum within bounds by resilient propagation: each coordinate has its own step, which grows
/// while the slope keeps its sign (Blum and Riedmiller, "Optimization of Gaussian process hyperparameters using
/// Rprop", 2013). `None` if the start has no value.
fn climb(
    start: Vec<f64>,
    bounds: &[(f64, f64)],
    evaluate: impl Fn(&[f64]) -> Option<(f64, Vec<f64>)>,
) -> Option<(f64, Vec<f64>)> {
    let mut point = start;
    let (mut value, mut slopes) = evaluate(&point)?;
    let mut best = (value, point.clone());
    let mut steps = vec![0.2; point.len()];
    for _ in 0..100 {
        for (((coordinate, step), slope), &(low, high)) in
            point.iter_mut().zip(&steps).zip(&slopes).zip(bounds)
        {
            if *slope != 0.0 {
                *coordinate = (*coordinate + step * slope.signum()).clamp(low, high);
            }
        }
        let Some((next_value, next_slopes)) = evaluate(&point) else { break };
        for ((step, slope), next) in steps.iter_mut().zip(&slopes).zip(&next_slopes) {
            let factor = if slope * next > 0.0 { 1.2 } else { 0.5 };
            *step = (*step * factor).clamp(1e-6, 1.0);
        }
        (value, slopes) = (next_value, next_slopes);
        if value > best.0 {
            best = (value, point.clone());
        }
        if steps.iter().all(|step| *step < 1e-3) {
            break;
        }
    }
    Some(best)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replicas::standard_normal;

    fn observations(count: usize, dimensions: usize, noise: f64, seed: u64) -> Vec<Observation> {
        let mut random = seeded(seed, 1);
        let mut draw = || {
            let point: Vec<f64> = (0..dimensions).map(|_| random.random()).collect();
            let wave = (5.0 * point[0]).sin() + point[1..].iter().map(|x| x * x).sum::<f64>();
            let value = 40.0 + 7.0 * wave + noise * standard_normal(&mut random);
            Observation { point, value, variance: 0.0 }
        };
        (0..count).map(|_| draw()).collect()
    }

    fn shape(dimensions: usize) -> Hyperparameters {
        let lengths = (0..dimensions).map(|dimension| 0.2 + 0.3 * dimension as f64).collect();
        Hyperparameters { lengths, signal: 0.8, noise: 0.05 }
    }

    #[test]
    fn gradient_matches_finite_differences() {
        for dimensions in 1..=4 {
            let mut seen = observations(12, dimensions, 1.0, 3);
            seen.iter_mut().enumerate().for_each(|(i, one)| one.variance = 0.3 * i as f64);
            let hyperparameters = shape(dimensions);
            let mut logarithms: Vec<f64> = hyperparameters.lengths.iter().map(|length| length.ln()).collect();
            logarithms.extend([hyperparameters.signal.ln(), hyperparameters.noise.ln()]);
            let gradient = GaussianProcess::with(&seen, hyperparameters).unwrap().gradient(&seen);
            for place in 0..dimensions + 2 {
                let at = |shift: f64| {
                    let mut shifted = logarithms.clone();
                    shifted[place] += shift;
                    GaussianProcess::with(&seen, from_logarithms(&shifted)).unwrap().log_marginal_likelihood
                };
                let slope = (at(1e-5) - at(-1e-5)) / 2e-5;
                assert!((gradient[place] - slope).abs() < 1e-6, "{place}: {} not {slope}", gradient[place]);
            }
        }
    }

    /// Compares with the textbook form by explicit inverses. A vague prior on the constant is a kernel that adds the
    /// same large variance to every covariance.
    #[test]
    fn prediction_matches_vague_constant_prior() {
        let mut seen = observations(9, 2, 1.0, 5);
        seen.iter_mut().enumerate().for_each(|(i, one)| one.variance = 0.2 * i as f64);
        let hyperparameters = shape(2);
        let process = GaussianProcess::with(&seen, hyperparameters.clone()).unwrap();
        let (offset, scale) = standardisation(&seen);
        let vague = 1e4;
        let covariance = DMatrix::from_fn(9, 9, |i, j| {
            let noise = if i == j { 0.05 + seen[i].variance / (scale * scale) } else { 0.0 };
            vague + hyperparameters.kernel(&seen[i].point, &seen[j].point) + noise
        });
        let inverse = covariance.try_inverse().unwrap();
        let values = DVector::from_iterator(9, seen.iter().map(|one| (one.value - offset) / scale));
        for point in [[0.1, 0.9], [0.5, 0.5], [1.0, 0.0]] {
            let kernels = seen.iter().map(|one| vague + hyperparameters.kernel(&one.point, &point));
            let covariances = DVector::from_iterator(9, kernels);
            let mean = offset + scale * (covariances.transpose() * &inverse * &values)[0];
            let explained = (covariances.transpose() * &inverse * &covariances)[0];
            let variance = scale * scale * (vague + 0.8 - explained);
            let predicted = process.predict(&point);
            assert!((predicted.mean - mean).abs() < 1e-2, "{predicted:?} {mean}");
            assert!((predicted.variance / variance - 1.0).abs() < 2e-3, "{predicted:?} {variance}");
        }
    }

    #[test]
    fn learns_smooth_function() {
        let seen = observations(40, 2, 0.0, 7);
        let process = GaussianProcess::fit(&seen, 1).unwrap();
        for point in [[0.3, 0.4], [0.7, 0.6], [0.5, 0.1]] {
            let truth = 40.0 + 7.0 * ((5.0_f64 * point[0]).sin() + point[1] * point[1]);
            let predicted = process.predict(&point);
            assert!((predicted.mean - truth).abs() < 0.5, "{predicted:?} {truth}");
        }
    }

    /// Fitted noise is separated from the function, and intervals cover the function.
    #[test]
    fn estimates_noise_and_covers_function() {
        let (mut covered, mut asked) = (0, 0);
        let mut noises = Vec::new();
        for seed in 0..12 {
            let seen = observations(40, 1, 3.0, seed);
            let process = GaussianProcess::fit(&seen, seed).unwrap();
            noises.push(process.hyperparameters.noise.sqrt() * process.scale);
            for x in [0.1, 0.3, 0.5, 0.7, 0.9] {
                let truth = 40.0 + 7.0 * (5.0_f64 * x).sin();
                let Prediction { mean, variance } = process.predict(&[x]);
                covered += usize::from((mean - truth).abs() < 1.96 * variance.sqrt());
                asked += 1;
            }
        }
        let noise = noises.iter().sum::<f64>() / noises.len() as f64;
        assert!((2.4..3.4).contains(&noise), "{noise}");
        // Intervals are somewhat narrow, because the hyperparameters count as known: require 90 % instead of 95 %.
        assert!(covered as f64 >= 0.9 * f64::from(asked), "{covered} of {asked}");
    }

    #[test]
    fn uncertain_observation_has_little_weight() {
        let at = |x: f64, value: f64, variance: f64| Observation { point: vec![x], value, variance };
        let seen = |variance| [at(0.0, 0.0, 0.1), at(0.5, 9.0, variance), at(1.0, 0.0, 0.1)];
        let shape = Hyperparameters { lengths: vec![0.5], signal: 1.0, noise: 1e-3 };
        let mean =
            |variance| GaussianProcess::with(&seen(variance), shape.clone()).unwrap().predict(&[0.5]).mean;
        assert!(mean(0.01) > 8.0 && mean(1000.0) < 4.0, "{} {}", mean(0.01), mean(1000.0));
    }

    #[test]
    fn rejects_invalid_observations() {
        let at = |point: Vec<f64>, value: f64, variance: f64| Observation { point, value, variance };
        let fit = |seen: &[Observation]| GaussianProcess::fit(seen, 1).map(|_| ()).unwrap_err();
        assert_eq!(fit(&[]), GaussianProcessError::TooFew);
        assert_eq!(fit(&[at(vec![], 1.0, 0.0), at(vec![], 1.0, 0.0)]), GaussianProcessError::Dimensions);
        let unlike = [at(vec![0.1], 1.0, 0.0), at(vec![0.1, 0.2], 1.0, 0.0)];
        assert_eq!(fit(&unlike), GaussianProcessError::Dimensions);
        let negative = [at(vec![0.1], 1.0, 0.0), at(vec![0.1], 1.0, -1.0)];
        assert_eq!(fit(&negative), GaussianProcessError::NotFinite);
        let equal = [at(vec![0.1], 1.0, 0.0), at(vec![0.1], 1.0, 0.0)];
        assert_eq!(GaussianProcess::fit(&equal, 1).unwrap().predict(&[0.7]).mean, 1.0);
    }
}
