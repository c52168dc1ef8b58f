//! Rate limits per caller.

use std::hash::Hash;
use std::num::NonZeroU32;

use governor::Quota;
use governor::clock::{Clock, MonotonicClock};
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::HashMapStateStore;

/// Above this many callers, evict those with their whole burst left; they carry no state.
const MAX_CALLERS: usize = 4096;

/// A rate limit that applies to each caller separately.
pub struct RateLimiter<K: Clone + Hash + Eq, C: Clock = MonotonicClock>(
    governor::RateLimiter<K, HashMapStateStore<K>, C, NoOpMiddleware<C::Instant>>,
);

impl<K: Clone + Hash + Eq> RateLimiter<K> {
    /// Allows `per_second` calls per second, and `burst` calls at once after a pause. Zero counts as one.
    pub fn new(per_second: u32, burst: u32) -> RateLimiter<K> {
        RateLimiter::with_clock(per_second, burst, MonotonicClock)
    }
}

impl<K: Clone + Hash + Eq, C: Clock> RateLimiter<K, C> {
    fn with_clock(per_second: u32, burst: u32, clock: C) -> RateLimiter<K, C> {
        let [per_second, burst] = [per_second, burst].map(|n| NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN));
        let quota = Quota::per_second(per_second).allow_burst(burst);
        RateLimiter(governor::RateLimiter::new(quota, HashMapStateStore::default(), clock))
    }

    /// Counts a call and returns whether it is within the limit.
    pub fn check(&self, caller: &K) -> bool {
        if self.0.len() > MAX_CALLERS {
            self.0.retain_recent();
        }
        self.0.check_key(caller).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use governor::clock::FakeRelativeClock;

    use super::*;

    fn limiter<K: Clone + Hash + Eq>() -> (RateLimiter<K, FakeRelativeClock>, FakeRelativeClock) {
        let clock = FakeRelativeClock::default();
        (RateLimiter::with_clock(10, 20, clock.clone()), clock)
    }

    #[test]
    fn calls_never_exceed_burst_plus_rate() {
        let (limiter, clock) = limiter();
        let mut allowed = 0;
        for _ in 0..5000 {
            allowed += u32::from(limiter.check(&"eager"));
            clock.advance(Duration::from_millis(1));
        }
        assert!((20 + 49..=20 + 50).contains(&allowed), "{allowed}");
        assert!(limiter.check(&"other"), "each caller has its own quota");
        clock.advance(Duration::from_secs(55));
        assert_eq!(
            (0..100).filter(|_| limiter.check(&"eager")).count(),
            20,
            "a pause restores the burst only"
        );
    }

    #[test]
    fn allows_calls_at_the_rate() {
        let (limiter, clock) = limiter();
        for _ in 0..1000 {
            assert!(limiter.check(&"steady"));
            clock.advance(Duration::from_millis(100));
        }
    }

    #[test]
    fn evicts_callers_that_are_gone() {
        let (limiter, clock) = limiter();
        for caller in 0..20_000_u64 {
            limiter.check(&caller);
            clock.advance(Duration::from_millis(10));
        }
        assert!(limiter.0.len() <= MAX_CALLERS + 1, "{}", limiter.0.len());
    }
}
