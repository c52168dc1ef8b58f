//! The generalised sequential probability ratio test: is the first player stronger by `elo1` rather than `elo0`?
//!
//! The ratio compares the maximum likelihoods under both hypotheses (`likelihood`), not their quadratic
//! approximation, which fails on one-sided data. Short games end first, so a test over results in order of arrival
//! would be biased: `schedule` only tests prefixes of the schedule.

mod likelihood;
mod schedule;

pub use schedule::{BoutResult, Decision, ScheduleError, SequentialTest};

use thiserror::Error;

use crate::pairs::Scores;

/// The unit of the hypotheses' differences.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Model {
    /// Elo: the hypotheses are expected scores.
    Logistic,
    /// Normalised Elo: the hypotheses are expected scores in deviations of a game's score, so that the test's
    /// expected length depends neither on the draw rate nor on the openings.
    Normalised,
}

impl Model {
    /// Returns the largest bound: above it a dozen bouts suffice without a test.
    pub fn largest_bound(self) -> f64 {
        match self {
            Model::Logistic => 1000.0,
            // The iteration starts at the uniform distribution, whose scores are within sqrt(2) deviations of their
            // mean: it converges for at most 231 points.
            Model::Normalised => 200.0,
        }
    }
}

/// Validated hypotheses and error rates of a test.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bounds {
    elo0: f64,
    elo1: f64,
    model: Model,
    alpha: f64,
    beta: f64,
}

/// Invalid bounds.
#[derive(Clone, Copy, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum BoundsError {
    /// A bound that is not a number, or too large.
    #[error("the bound {value} is not a number between -{largest} and {largest}")]
    OutOfRange {
        /// The value as given.
        value: f64,
        /// The largest bound of this model.
        largest: f64,
    },
    /// Both hypotheses are the same.
    #[error("both bounds are {0}: the hypotheses must differ, the null hypothesis first, such as 0 and 5")]
    Equal(f64),
    /// The null hypothesis is the larger one.
    #[error("the bounds {0} and {1} are reversed: the smaller comes first")]
    Reversed(f64, f64),
    /// An error rate out of range.
    #[error("{name} is {value}; an error rate lies between 0 and 0.5, both excluded, such as 0.05")]
    ErrorRate {
        /// `alpha` or `beta`.
        name: &'static str,
        /// The value as given.
        value: f64,
    },
}

/// The current result of a test.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Verdict {
    /// The difference is `elo0` rather than `elo1`.
    H0,
    /// The difference is `elo1` rather than `elo0`.
    H1,
    /// Undecided.
    Continue,
}

impl Bounds {
    /// Validates hypotheses and error rates. `alpha` is the probability of accepting `elo1` if `elo0` is true, `beta`
    /// that of accepting `elo0` if `elo1` is true.
    pub fn new(elo0: f64, elo1: f64, model: Model, alpha: f64, beta: f64) -> Result<Self, BoundsError> {
        let largest = model.largest_bound();
        for value in [elo0, elo1] {
            if value.is_nan() || value.abs() > largest {
                return Err(BoundsError::OutOfRange { value, largest });
            }
        }
        if elo0 == elo1 {
            return Err(BoundsError::Equal(elo0));
        }
        if elo0 > elo1 {
            return Err(BoundsError::Reversed(elo0, elo1));
        }
        for (name, value) in [("alpha", alpha), ("beta", beta)] {
            if !(value > 0.0 && value < 0.5) {
                return Err(BoundsError::ErrorRate { name, value });
            }
        }
        Ok(Bounds { elo0, elo1, model, alpha, beta })
    }

    /// Returns the difference under the null hypothesis.
    pub fn elo0(&self) -> f64 {
        self.elo0
    }

    /// Returns the difference under the alternative.
    pub fn elo1(&self) -> f64 {
        self.elo1
    }

    /// Returns the unit of the differences.
    pub fn model(&self) -> Model {
        self.model
    }

    /// Returns the probability of wrongly accepting the alternative.
    pub fn alpha(&self) -> f64 {
        self.alpha
    }

    /// Returns the probability of wrongly accepting the null hypothesis.
    pub fn beta(&self) -> f64 {
        self.beta
    }

    /// Returns the log-likelihood ratio that accepts the null hypothesis: ln(beta / (1 - alpha)) (Wald 1945).
    pub fn lower(&self) -> f64 {
        (self.beta / (1.0 - self.alpha)).ln()
    }

    /// Returns the log-likelihood ratio that accepts the alternative: ln((1 - beta) / alpha).
    pub fn upper(&self) -> f64 {
        ((1.0 - self.beta) / self.alpha).ln()
    }

    /// Returns the log-likelihood ratio of the alternative against the null hypothesis; zero without data.
    pub fn llr(&self, scores: impl Into<Scores>) -> f64 {
        likelihood::ratio(self, &scores.into())
    }

    /// Returns the verdict for a log-likelihood ratio.
    pub fn verdict(&self, llr: f64) -> Verdict {
        if llr >= self.upper() {
            Verdict::H1
        } else if llr <= self.lower() {
            Verdict::H0
        } else {
            Verdict::Continue
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wald_thresholds() {
        let bounds = Bounds::new(0.0, 5.0, Model::Logistic, 0.05, 0.05).unwrap();
        assert!((bounds.upper() - 2.94444).abs() < 5e-6);
        assert!((bounds.lower() + 2.94444).abs() < 5e-6);
        let lopsided = Bounds::new(0.0, 5.0, Model::Logistic, 0.05, 0.1).unwrap();
        assert!((lopsided.lower() - (0.1f64 / 0.95).ln()).abs() < 1e-15);
        assert!((lopsided.upper() - (0.9f64 / 0.05).ln()).abs() < 1e-15);
        assert_eq!(bounds.verdict(2.95), Verdict::H1);
        assert_eq!(bounds.verdict(-2.95), Verdict::H0);
        assert_eq!(bounds.verdict(2.94), Verdict::Continue);
    }

    #[test]
    fn rejects_invalid_bounds() {
        let refused = |elo0, elo1, alpha, beta| {
            Bounds::new(elo0, elo1, Model::Normalised, alpha, beta).expect_err("wrong").to_string()
        };
        assert!(refused(f64::NAN, 5.0, 0.05, 0.05).contains("NaN"));
        assert!(refused(0.0, f64::INFINITY, 0.05, 0.05).contains("inf"));
        assert!(refused(0.0, 5000.0, 0.05, 0.05).contains("5000"));
        assert!(refused(5.0, 0.0, 0.05, 0.05).contains("reversed"));
        assert!(refused(5.0, 5.0, 0.05, 0.05).contains("both bounds are 5"));
        for rate in [0.0, 0.5, -0.1, 1.0, f64::NAN] {
            assert!(refused(0.0, 5.0, rate, 0.05).starts_with("alpha"));
            assert!(refused(0.0, 5.0, 0.05, rate).starts_with("beta"));
        }
    }
}
