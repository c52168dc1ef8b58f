//! The limit of open files of this process.

/// Raises the limit to `enough` as far as the system allows, and returns the limit.
#[cfg(unix)]
pub fn raise_limit(enough: u64) -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = maximum.map_or(enough, |maximum| maximum.min(enough));
    let limit = current.unwrap_or(u64::MAX);
    let is_raised =
        raised > limit && setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum }).is_ok();
    if is_raised { raised } else { limit }
}

/// Returns no limit: other systems report exhaustion when it happens.
#[cfg(not(unix))]
pub fn raise_limit(_enough: u64) -> u64 {
    u64::MAX
}

/// Returns the number of open files, or that of the standard ones where the system does not list them.
pub fn count() -> u64 {
    std::fs::read_dir("/proc/self/fd").map_or(3, |files| files.count() as u64)
}
