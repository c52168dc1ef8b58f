//! Keeping a thread on one core, where the system can.

/// Keeps this thread on one of the cores that the process may use, another for each slot. Where there are fewer cores
/// than slots, or the system cannot do it, nothing happens and false is said.
#[cfg(target_os = "linux")]
pub(crate) fn pin(slot: usize) -> bool {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    let Ok(allowed) = sched_getaffinity(None) else { return false };
    let Some(core) = (0..CpuSet::MAX_CPU).filter(|&core| allowed.is_set(core)).nth(slot) else {
        return false;
    };
    let mut one = CpuSet::new();
    one.set(core);
    sched_setaffinity(None, &one).is_ok()
}

/// Other systems choose cores themselves.
#[cfg(not(target_os = "linux"))]
pub(crate) fn pin(_slot: usize) -> bool {
    false
}
