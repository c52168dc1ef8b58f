//! Thread affinity.

/// Pins this thread to the core for a slot, among those the process may use. Returns false if there is no such core or
/// the system refuses.
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

/// Pins nothing: unsupported on this system.
#[cfg(not(target_os = "linux"))]
pub(crate) fn pin(_slot: usize) -> bool {
    false
}
