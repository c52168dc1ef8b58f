//! How often somebody may call: a bucket that fills by the clock. Time comes in as an argument.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

/// Past so many callers those whose bucket is full are forgotten: they are like new ones.
const MOST_REMEMBERED: usize = 4096;

/// What each caller has left.
pub struct Rates<K> {
    per_second: f64,
    burst: f64,
    buckets: HashMap<K, Bucket>,
}

struct Bucket {
    left: f64,
    at: Duration,
}

impl<K: Hash + Eq> Rates<K> {
    /// So many calls a second, and twice as many at once after a pause.
    pub(crate) fn new(per_second: u32) -> Rates<K> {
        Rates::with_burst(per_second, per_second.saturating_mul(2))
    }

    /// So many calls a second, and so many at once after a pause.
    pub fn with_burst(per_second: u32, burst: u32) -> Rates<K> {
        Rates { per_second: per_second.into(), burst: burst.into(), buckets: HashMap::new() }
    }

    /// Whether somebody may call now. One that may not can try again in a second.
    pub fn may(&mut self, who: K, now: Duration) -> bool {
        let (per_second, burst) = (self.per_second, self.burst);
        let filled = |bucket: &Bucket| {
            burst.min(bucket.left + now.saturating_sub(bucket.at).as_secs_f64() * per_second)
        };
        if self.buckets.len() > MOST_REMEMBERED {
            self.buckets.retain(|_, bucket| filled(bucket) < burst);
        }
        let bucket = self.buckets.entry(who).or_insert(Bucket { left: burst, at: now });
        *bucket = Bucket { left: filled(bucket), at: now };
        let may = bucket.left >= 1.0;
        bucket.left -= f64::from(u8::from(may));
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_any_time_there_are_no_more_calls_than_burst_and_rate_allow() {
        let mut rates = Rates::new(10);
        let mut allowed = 0;
        for millisecond in 0..5000 {
            allowed += u32::from(rates.may("eager", Duration::from_millis(millisecond)));
        }
        assert!((20 + 49..=20 + 50).contains(&allowed), "{allowed}");
        assert!(rates.may("other", Duration::from_millis(4999)), "everybody has a bucket of their own");
        let later = Duration::from_secs(60);
        assert_eq!(
            (0..100).filter(|_| rates.may("eager", later)).count(),
            20,
            "a pause fills the bucket and no more"
        );
    }

    #[test]
    fn whoever_waits_for_their_turn_is_never_refused() {
        let mut rates = Rates::new(10);
        assert!((0..1000).all(|call| rates.may("steady", Duration::from_millis(call * 100))));
    }

    #[test]
    fn those_who_are_gone_are_forgotten() {
        let mut rates = Rates::new(10);
        for who in 0..20_000_u64 {
            rates.may(who, Duration::from_millis(who * 10));
        }
        assert!(rates.buckets.len() <= MOST_REMEMBERED + 1, "{}", rates.buckets.len());
    }
}
