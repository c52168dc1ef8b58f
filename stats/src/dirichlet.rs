//! The distribution of a mean whose weights have a Dirichlet distribution.
//!
//! The mean of values a with weights of the parameters alpha is below c exactly if sum (a - c) G is below 0, for
//! independent gamma variables G of shapes alpha. The probability is the integral of the sum's characteristic function
//! (Imhof 1961, "Computing the distribution of quadratic forms in normal variables"), here over the logarithm of the
//! frequency: the integrand is analytic there, so that the trapezoidal rule converges exponentially.

use crate::distribution::normal_quantile;
use crate::elo::logistic;

/// The largest step of the rule, and that in units of the distance of the threshold from the mean in deviations: its
/// error is below exp(-2 (pi / step / distance)^2).
const STEP: f64 = 0.2;
const STEP_OF_DISTANCE: f64 = 0.85;

/// The largest log-odds of a quantile: some 6000 Elo.
const FARTHEST: f64 = 35.0;

/// The standard deviations beyond which a probability is 0 or 1 for the purposes of this module.
const FAR: f64 = 10.0;

/// The size of the integrand below which the rest is left out.
const NEGLIGIBLE: f64 = 1e-13;

/// The values and their Dirichlet parameters. Precondition: at least two values have a positive parameter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DirichletMean<'a> {
    /// The values, ascending.
    pub values: &'a [f64],
    /// The parameters, not negative.
    pub weights: &'a [f64],
}

impl DirichletMean<'_> {
    /// Returns the probability that the mean is at most `threshold`.
    pub fn probability_below(&self, threshold: f64) -> f64 {
        let terms: Vec<(f64, f64)> = (self.values.iter().zip(self.weights))
            .map(|(value, weight)| (value - threshold, *weight))
            .filter(|(distance, weight)| *distance != 0.0 && *weight > 0.0)
            .collect();
        let mean: f64 = terms.iter().map(|(distance, weight)| weight * distance).sum();
        let variance: f64 = terms.iter().map(|(distance, weight)| weight * distance * distance).sum();
        if mean.abs() > FAR * variance.sqrt() {
            return if mean > 0.0 { 0.0 } else { 1.0 };
        }
        let largest = terms.iter().fold(0.0, |largest: f64, (distance, _)| largest.max(distance.abs()));
        let step = STEP.min(STEP_OF_DISTANCE * variance.sqrt() / mean.abs());
        // Below this frequency the integrand is the frequency times the mean: a geometric sum.
        let least = 1e-4 / (mean.abs() + variance.sqrt() + largest);
        let mut integral = mean * least / step.exp_m1();
        for index in 0.. {
            let frequency = least * (step * f64::from(index)).exp();
            let (mut angle, mut decay) = (0.0, 0.0);
            for (distance, weight) in &terms {
                let turn = distance * frequency;
                angle += weight * turn.atan();
                decay += 0.5 * weight * (turn * turn).ln_1p();
            }
            let size = (-decay).exp();
            integral += size * angle.sin();
            // A sum that is not a number ends too.
            if size.is_nan() || size < NEGLIGIBLE {
                break;
            }
        }
        (0.5 - step * integral / std::f64::consts::PI).clamp(0.0, 1.0)
    }

    /// Returns the log-odds of the value below which the mean lies with this probability, by the Illinois method.
    /// Precondition: the values lie between 0 and 1.
    pub fn quantile_log_odds(&self, probability: f64) -> f64 {
        let excess = |log_odds: f64| self.probability_below(logistic(log_odds)) - probability;
        // A bracket about the quantile of a normal distribution.
        let total: f64 = self.weights.iter().sum();
        let moment = |power: i32| {
            let terms =
                self.values.iter().zip(self.weights).map(|(value, weight)| weight * value.powi(power));
            terms.sum::<f64>() / total
        };
        let mean = moment(1);
        let slope = (mean * (1.0 - mean)).max(f64::MIN_POSITIVE);
        let deviation = ((moment(2) - mean * mean).max(0.0) / (total + 1.0)).sqrt() / slope;
        let guess = (mean / (1.0 - mean)).ln() + normal_quantile(probability) * deviation;
        let guess = guess.clamp(1.0 - FARTHEST, FARTHEST - 1.0);
        let mut reach = (0.2 * deviation).clamp(1e-9, 1.0);
        let (mut low, mut high) = (guess - reach, guess + reach);
        let (mut below, mut above) = (excess(low), excess(high));
        while below > 0.0 && low > -FARTHEST {
            (high, above) = (low, below);
            reach *= 2.0;
            low = (low - reach).max(-FARTHEST);
            below = excess(low);
        }
        while above < 0.0 && high < FARTHEST {
            (low, below) = (high, above);
            reach *= 2.0;
            high = (high + reach).min(FARTHEST);
            above = excess(high);
        }
        if below >= 0.0 || above <= 0.0 {
            return if below >= 0.0 { low } else { high };
        }
        let mut side = 0;
        for _ in 0..200 {
            let middle = (low * above - high * below) / (above - below);
            let found = excess(middle);
            if found.abs() < 1e-11 || high - low < 1e-9 {
                return middle;
            }
            // An end that stays is given half its weight, so that the other cannot creep.
            if found < 0.0 {
                (low, below) = (middle, found);
                above *= if side < 0 { 0.5 } else { 1.0 };
                side = -1;
            } else {
                (high, above) = (middle, found);
                below *= if side > 0 { 0.5 } else { 1.0 };
                side = 1;
            }
        }
        0.5 * (low + high)
    }
}

#[cfg(test)]
mod tests {
    use statrs::distribution::{Beta, ContinuousCDF as _};

    use super::*;

    /// With two values the mean has a beta distribution.
    #[test]
    fn two_values_have_beta_distribution() {
        for (against, weight) in [(0.5, 0.5), (0.95, 1.05), (0.5, 12.5), (3.0, 0.7), (250.5, 199.5)] {
            let mean = DirichletMean { values: &[0.0, 1.0], weights: &[against, weight] };
            let beta = Beta::new(weight, against).unwrap();
            for threshold in [0.001, 0.2, 0.4995, 0.5, 0.5005, 0.62, 0.97] {
                let (got, expected) = (mean.probability_below(threshold), beta.cdf(threshold));
                assert!((got - expected).abs() < 1e-8, "{against} {weight} {threshold}: {got} {expected}");
            }
            for share in [0.025, 0.5, 0.975] {
                let got = logistic(mean.quantile_log_odds(share));
                assert!((beta.cdf(got) - share).abs() < 1e-8, "{against} {weight} {share}: {got}");
            }
        }
    }

    /// Equal values count together.
    #[test]
    fn parameters_of_equal_values_add_up() {
        let split = DirichletMean { values: &[0.0, 0.5, 0.5, 1.0], weights: &[0.5, 2.0, 3.0, 1.5] };
        let joined = DirichletMean { values: &[0.0, 0.5, 1.0], weights: &[0.5, 5.0, 1.5] };
        for threshold in [0.3, 0.5, 0.6] {
            let (one, other) = (split.probability_below(threshold), joined.probability_below(threshold));
            assert!((one - other).abs() < 1e-12);
        }
        let even = DirichletMean { values: &[0.0, 0.5, 1.0], weights: &[0.5, 20.0, 0.5] };
        assert!((even.probability_below(0.5) - 0.5).abs() < 1e-12);
    }
}
