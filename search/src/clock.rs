//! Clocks: a search asks one how much time has passed, and a test can hold it.

use std::time::{Duration, Instant};

/// Something that knows how much time has passed since some moment of its own.
pub trait Clock: Send + Sync {
    /// The time since that moment; never goes back.
    fn now(&self) -> Duration;
}

/// The time that passes for everybody.
#[derive(Clone, Copy, Debug)]
pub struct WallClock(Instant);

impl WallClock {
    /// A clock that starts now.
    pub fn start() -> WallClock {
        WallClock(Instant::now())
    }
}

impl Clock for WallClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}

/// The processor time of the thread that asks: fair on machines that others share.
#[derive(Clone, Copy, Debug)]
pub struct ThreadClock;

impl Clock for ThreadClock {
    fn now(&self) -> Duration {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    }
}

/// A clock that stands still.
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
    fn thread_time_passes_only_while_the_thread_works() {
        let before = ThreadClock.now();
        std::thread::sleep(Duration::from_millis(30));
        assert!(ThreadClock.now() - before < Duration::from_millis(25));
        let mut sum = 0u64;
        while ThreadClock.now() - before < Duration::from_millis(2) {
            sum = std::hint::black_box(sum + 1);
        }
    }
}
