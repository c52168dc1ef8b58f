//! How fast the slots of a worker are, and whether its system keeps it from running.

use std::time::{Duration, Instant};

use agon_arena::{KnownAnswers, known_answers};

/// A slot measures itself again after so long, before its next bout.
pub(crate) const MEASURED_FOR: Duration = Duration::from_secs(600);

/// The share of the time between two looks that a worker may be kept from running without saying so.
const TOLERATED: f64 = 0.01;

/// The known answers, and the nodes a second that they took on this thread.
pub(crate) fn measure() -> (KnownAnswers, f64) {
    let started = Instant::now();
    let answers = known_answers();
    let speed = answers.nodes as f64 / started.elapsed().as_secs_f64().max(1e-9);
    (answers, speed)
}

/// The known answers, and the mean speed of a slot while all are busy.
pub(crate) fn measure_loaded(slots: usize) -> (KnownAnswers, f64) {
    let (answers, own) = std::thread::scope(|scope| {
        let others: Vec<_> = (1..slots).map(|_| scope.spawn(measure)).collect();
        let (answers, own) = measure();
        let speeds = others.into_iter().map(|other| other.join().map_or(own, |(_, speed)| speed));
        (answers, speeds.sum::<f64>() + own)
    });
    (answers, own / slots as f64)
}

/// Looks at the time for which the system kept this process's control group from running.
pub(crate) struct Throttle {
    last: Option<(Instant, Duration)>,
}

impl Throttle {
    /// Starts to look.
    pub(crate) fn start() -> Throttle {
        Throttle { last: kept_from_running().map(|kept| (Instant::now(), kept)) }
    }

    /// Whether the process was kept from running for a share of the time since the last look that counts.
    pub(crate) fn sample(&mut self) -> bool {
        let (Some((then, before)), Some(kept)) = (self.last, kept_from_running()) else { return false };
        let now = Instant::now();
        self.last = Some((now, kept));
        is_throttled(kept.saturating_sub(before), now - then)
    }
}

fn is_throttled(kept: Duration, between: Duration) -> bool {
    kept.as_secs_f64() > TOLERATED * between.as_secs_f64()
}

/// For how long the control group of this process has been kept from running, where the system tells.
fn kept_from_running() -> Option<Duration> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/");
    // Inside a container the group's own files may stand at the top.
    let places = [
        format!("/sys/fs/cgroup{path}/cpu.stat"),
        "/sys/fs/cgroup/cpu.stat".to_string(),
        "/sys/fs/cgroup/cpu/cpu.stat".to_string(),
    ];
    places.iter().find_map(|place| read_stat(&std::fs::read_to_string(place).ok()?))
}

/// The line of either version of control groups.
fn read_stat(text: &str) -> Option<Duration> {
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
    fn both_versions_of_control_groups_are_read() {
        let second = "usage_usec 12\nnr_periods 3\nnr_throttled 2\nthrottled_usec 1500\n";
        assert_eq!(read_stat(second), Some(Duration::from_micros(1500)));
        let first = "nr_periods 3\nnr_throttled 2\nthrottled_time 7000\n";
        assert_eq!(read_stat(first), Some(Duration::from_nanos(7000)));
        assert_eq!(read_stat("usage_usec 12\n"), None, "no quota, nothing to tell");
    }

    #[test]
    fn a_hundredth_of_the_time_is_tolerated() {
        let second = Duration::from_secs(1);
        assert!(!is_throttled(Duration::from_millis(10), second));
        assert!(is_throttled(Duration::from_millis(11), second));
    }

    #[test]
    fn all_slots_are_measured_at_once() {
        let (answers, speed) = measure_loaded(3);
        assert_eq!(answers, known_answers());
        assert!(speed > 0.0);
    }
}
