//! Exponential backoff with jitter.
//!
//! "Equal jitter" of M. Brooker, Exponential Backoff and Jitter (2015): half of the delay is fixed, half is random. The
//! worker's name seeds the generator, so that workers that lost the same coordinator do not reconnect at the same time.

use std::time::Duration;

use agon_games::random::{Random, below, mix, seeded};

const FIRST_DELAY: Duration = Duration::from_millis(200);
const MAX_DELAY: Duration = Duration::from_secs(15);

/// The delays before the retries of one connection.
pub(crate) struct Backoff {
    random: Random,
    attempts: u32,
}

impl Backoff {
    /// Starts without failed attempts. `connection` distinguishes the connections of one worker.
    pub(crate) fn new(worker: &str, connection: u64) -> Backoff {
        let seed = worker.bytes().fold(connection, |seed, byte| mix(seed, u64::from(byte)));
        Backoff { random: seeded(seed), attempts: 0 }
    }

    /// Returns the delay after one more failure.
    pub(crate) fn next_delay(&mut self) -> Duration {
        let max = FIRST_DELAY.saturating_mul(1 << self.attempts.min(16)).min(MAX_DELAY);
        self.attempts += 1;
        let half = max / 2;
        half + Duration::from_millis(below(&mut self.random, half.as_millis() as usize + 1) as u64)
    }

    /// Restarts with the first delay, after a success.
    pub(crate) fn reset(&mut self) {
        self.attempts = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_maximum_and_differ_between_workers() {
        let mut one = Backoff::new("one", 0);
        let mut two = Backoff::new("two", 0);
        let (first, other): (Vec<_>, Vec<_>) = (0..40).map(|_| (one.next_delay(), two.next_delay())).unzip();
        for (attempt, delay) in first.iter().enumerate() {
            let max = (FIRST_DELAY * 2_u32.pow(attempt.min(20) as u32)).min(MAX_DELAY);
            assert!((max / 2..=max).contains(delay), "attempt {attempt}: {delay:?}");
        }
        assert_ne!(first, other);
        one.reset();
        assert!(one.next_delay() <= FIRST_DELAY);
    }
}
