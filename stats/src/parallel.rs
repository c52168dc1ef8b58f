//! Parallel map with results that do not depend on the number of threads.

use std::num::NonZeroUsize;

/// Returns the results of `work` for 0 to `count - 1`, in order.
pub fn map<T: Send>(count: u64, threads: NonZeroUsize, work: impl Fn(u64) -> T + Sync) -> Vec<T> {
    // Each thread takes every n-th piece, which balances pieces of growing or shrinking size.
    let stride = threads.get();
    let mut shares: Vec<_> = std::thread::scope(|scope| {
        let work = &work;
        let start = |thread: usize| {
            let own = (thread as u64..count).step_by(stride);
            scope.spawn(move || own.map(work).collect::<Vec<T>>())
        };
        let workers: Vec<_> = (0..stride).map(start).collect();
        let join = |worker: std::thread::ScopedJoinHandle<'_, Vec<T>>| match worker.join() {
            Ok(share) => share.into_iter(),
            Err(panic) => std::panic::resume_unwind(panic),
        };
        workers.into_iter().map(join).collect()
    });
    (0..count as usize).filter_map(|index| shares[index % stride].next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order() {
        for threads in [1, 2, 3, 20] {
            let threads = NonZeroUsize::new(threads).unwrap();
            assert_eq!(map(7, threads, |index| index * index), [0, 1, 4, 9, 16, 25, 36]);
        }
    }
}
