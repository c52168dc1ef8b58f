//! Rates of measurements: counted work per second.
//!
//! A compiler may remove work whose result nobody uses, and the loop that remains then looks immensely fast.
//! [`per_second`] rejects such a measurement instead of reporting it.

use std::time::Duration;

/// The greatest credible rate: more than one unit in each cycle of any processor.
pub const MAX_RATE: f64 = 1e10;

/// The least measurable time: reading a clock may take as long.
const MIN_TIME: Duration = Duration::from_nanos(100);

/// Why a measurement is no rate.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum RateError {
    /// The elapsed time is below the resolution of the clock.
    TooShort {
        /// The counted work.
        count: u64,
        /// The elapsed time.
        elapsed: Duration,
    },
    /// No processor works at this rate.
    TooFast {
        /// The counted work.
        count: u64,
        /// The elapsed time.
        elapsed: Duration,
    },
}

impl std::fmt::Display for RateError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RateError::TooShort { count, elapsed } => write!(
                f,
                "no rate for a count of {count} in {elapsed:?}: the clock does not resolve less than {MIN_TIME:?}; measure \
                 more work, and check that the compiler did not remove it"
            ),
            RateError::TooFast { count, elapsed } => write!(
                f,
                "no rate for a count of {count} in {elapsed:?}: that is more than one in each cycle of any processor; \
                 check that the compiler did not remove the work"
            ),
        }
    }
}

impl std::error::Error for RateError {}

/// Returns the work per second, or an error if no processor could have done it in that time.
pub fn per_second(count: u64, elapsed: Duration) -> Result<f64, RateError> {
    if elapsed < MIN_TIME {
        return Err(RateError::TooShort { count, elapsed });
    }
    let rate = count as f64 / elapsed.as_secs_f64();
    if rate > MAX_RATE {
        return Err(RateError::TooFast { count, elapsed });
    }
    Ok(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_work_per_second() {
        assert_eq!(per_second(400_000, Duration::from_millis(100)), Ok(4e6));
        assert_eq!(per_second(0, Duration::from_secs(1)), Ok(0.0));
        assert_eq!(per_second(1_000, MIN_TIME), Ok(1e10));
    }

    #[test]
    fn rejects_rates_beyond_the_clock() {
        // A loop of 400,000 games that the compiler removed.
        let removed = per_second(400_000, Duration::from_nanos(350)).unwrap_err();
        assert_eq!(
            removed.to_string(),
            "no rate for a count of 400000 in 350ns: that is more than one in each cycle of any processor; check that the \
             compiler did not remove the work"
        );
        assert!(per_second(1_001, MIN_TIME).is_err());
    }

    #[test]
    fn rejects_times_below_the_resolution_of_the_clock() {
        let elapsed = MIN_TIME - Duration::from_nanos(1);
        assert_eq!(per_second(1, elapsed), Err(RateError::TooShort { count: 1, elapsed }));
        assert!(per_second(0, Duration::ZERO).is_err());
    }
}
