//! How long to wait before the next attempt: twice as long each time, within a cap, and not in step with other workers.
//!
//! "Equal jitter" of M. Brooker, Exponential Backoff and Jitter (2015): half of the wait is fixed, half is drawn. The draw
//! is seeded with the worker's name, so that workers that lost the same coordinator come back one after the other.

use std::time::Duration;

use agon_games::random::{Random, below, mix, seeded};

const FIRST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(15);

/// The waits of one connection.
pub(crate) struct Backoff {
    random: Random,
    attempts: u32,
}

impl Backoff {
    /// No attempt has failed yet. `connection` tells the connections of one worker apart.
    pub(crate) fn new(worker: &str, connection: u64) -> Backoff {
        let seed = worker.bytes().fold(connection, |seed, byte| mix(seed, u64::from(byte)));
        Backoff { random: seeded(seed), attempts: 0 }
    }

    /// The wait after one more failure.
    pub(crate) fn wait(&mut self) -> Duration {
        let whole = FIRST.saturating_mul(1 << self.attempts.min(16)).min(LONGEST);
        self.attempts += 1;
        let half = whole / 2;
        half + Duration::from_millis(below(&mut self.random, half.as_millis() as usize + 1) as u64)
    }

    /// An attempt succeeded.
    pub(crate) fn reset(&mut self) {
        self.attempts = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_cap_and_differ_between_workers() {
        let mut one = Backoff::new("one", 0);
        let mut two = Backoff::new("two", 0);
        let (first, other): (Vec<_>, Vec<_>) = (0..40).map(|_| (one.wait(), two.wait())).unzip();
        for (attempt, wait) in first.iter().enumerate() {
            let whole = (FIRST * 2_u32.pow(attempt.min(20) as u32)).min(LONGEST);
            assert!((whole / 2..=whole).contains(wait), "attempt {attempt}: {wait:?}");
        }
        assert_ne!(first, other);
        one.reset();
        assert!(one.wait() <= FIRST);
    }
}
