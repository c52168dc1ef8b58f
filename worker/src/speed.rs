//! The speed of slots, and whether the system throttles the worker.

use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use agon_arena::{KnownAnswers, known_answers};

/// The age of a slot's speed after which it is measured again, before the next bout.
pub(crate) const MEASUREMENT_INTERVAL: Duration = Duration::from_secs(600);

/// The share of throttled time above which a worker reports that it is throttled.
const MAX_THROTTLED_SHARE: f64 = 0.01;

/// Searches the known positions on this thread, and returns the answers and the nodes per second.
pub(crate) fn measure() -> (KnownAnswers, f64) {
    let started = Instant::now();
    let answers = known_answers();
    let speed = answers.nodes as f64 / started.elapsed().as_secs_f64().max(1e-9);
    (answers, speed)
}

/// Measures on all cores that the slots use, and returns the answers and the mean speed of a slot. Slots beyond the cores
/// share these: their measurements would only take memory.
pub(crate) fn measure_loaded(slots: usize) -> (KnownAnswers, f64) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let (answers, total) = std::thread::scope(|scope| {
        let start = |_| std::thread::Builder::new().spawn_scoped(scope, measure);
        let others: Vec<_> = (1..slots.min(cores)).map(start).collect();
        let (answers, own) = measure();
        // A core whose thread cannot start or fails for want of memory counts like this one.
        let speed = |other: std::io::Result<ScopedJoinHandle<'_, (KnownAnswers, f64)>>| {
            other.ok().and_then(|thread| thread.join().ok()).map_or(own, |(_, speed)| speed)
        };
        (answers, others.into_iter().map(speed).sum::<f64>() + own)
    });
    (answers, total / slots as f64)
}

/// Samples the throttled time of this process's control group.
pub(crate) struct ThrottleMonitor {
    last: Option<(Instant, Duration)>,
}

impl ThrottleMonitor {
    /// Takes the first sample.
    pub(crate) fn start() -> ThrottleMonitor {
        ThrottleMonitor { last: throttled_time().map(|throttled| (Instant::now(), throttled)) }
    }

    /// Returns whether the process was throttled for a relevant share of the time since the last sample.
    pub(crate) fn sample(&mut self) -> bool {
        let (Some((then, before)), Some(throttled)) = (self.last, throttled_time()) else { return false };
        let now = Instant::now();
        self.last = Some((now, throttled));
        is_throttled(throttled.saturating_sub(before), now - then)
    }
}

fn is_throttled(throttled: Duration, elapsed: Duration) -> bool {
    throttled.as_secs_f64() > MAX_THROTTLED_SHARE * elapsed.as_secs_f64()
}

/// Returns the total throttled time of this process's control group, if the system reports it.
fn throttled_time() -> Option<Duration> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/");
    // In a container the group may be mounted as the root.
    let paths = [
        format!("/sys/fs/cgroup{group}/cpu.stat"),
        "/sys/fs/cgroup/cpu.stat".to_string(),
        "/sys/fs/cgroup/cpu/cpu.stat".to_string(),
    ];
    paths.iter().find_map(|path| parse_cpu_stat(&std::fs::read_to_string(path).ok()?))
}

/// Reads the throttled time from `cpu.stat` of either control group version.
fn parse_cpu_stat(text: &str) -> Option<Duration> {
    text.lines().find_map(|line| match line.split_once(' ')? {
        ("throttled_usec", number) => number.trim().parse().ok().map(Duration::from_micros),
        ("throttled_time", number) => number.trim().parse().ok().map(Duration::from_nanos),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_both_control_group_versions() {
        let version_2 = "usage_usec 12\nnr_periods 3\nnr_throttled 2\nthrottled_usec 1500\n";
        assert_eq!(parse_cpu_stat(version_2), Some(Duration::from_micros(1500)));
        let version_1 = "nr_periods 3\nnr_throttled 2\nthrottled_time 7000\n";
        assert_eq!(parse_cpu_stat(version_1), Some(Duration::from_nanos(7000)));
        assert_eq!(parse_cpu_stat("usage_usec 12\n"), None, "no quota, no throttled time");
    }

    #[test]
    fn tolerates_one_percent_of_throttled_time() {
        let second = Duration::from_secs(1);
        assert!(!is_throttled(Duration::from_millis(10), second));
        assert!(is_throttled(Duration::from_millis(11), second));
    }

    #[test]
    fn measures_all_slots_at_once() {
        let (answers, speed) = measure_loaded(3);
        assert_eq!(answers, known_answers());
        assert!(speed > 0.0);
    }
}
