//! Clocks for budgets; tests provide their own.

use std::time::{Duration, Instant};

/// A monotonic clock with an arbitrary origin.
pub trait Clock: Send + Sync {
    /// Returns the time since the clock's origin; never decreases.
    fn now(&self) -> Duration;
}

/// Wall time.
#[derive(Clone, Copy, Debug)]
pub struct WallClock(Instant);

impl WallClock {
    /// Starts a clock at zero.
    pub fn start() -> WallClock {
        WallClock(Instant::now())
    }
}

impl Clock for WallClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Processor time of the calling thread: fair on shared machines.
#[derive(Clone, Copy, Debug)]
pub struct ThreadClock;

impl Clock for ThreadClock {
    fn now(&self) -> Duration {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    }
}

/// A clock that always shows zero.
#[derive(Clone, Copy, Debug)]
pub struct StoppedClock;

impl Clock for StoppedClock {
    fn now(&self) -> Duration {
        Duration::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_time_ignores_sleep() {
        let before = ThreadClock.now();
        std::thread::sleep(Duration::from_millis(30));
        assert!(ThreadClock.now() - before < Duration::from_millis(25));
        let mut sum = 0u64;
        while ThreadClock.now() - before < Duration::from_millis(2) {
            sum = std::hint::black_box(sum + 1);
        }
    }
}
