//! Folds columns of a whole table over several threads.
//!
//! Each thread takes the next row group, decodes the requested columns and folds their rows into its own accumulator. The
//! order is not deterministic, so folds must not depend on it: integer sums, for example. Memory is bounded by one row group
//! per thread plus the accumulators. Voided bouts are skipped; damaged and missing parts are errors.

use std::collections::{BTreeSet, VecDeque};
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError};

use agon_records::{Batch, Groups, ReadError, Source, Table};
use agon_schedule::RunState;
use agon_storage::bout_ranges::BoutRanges;

use crate::dataset::{Dataset, DatasetError, Part, Run};

/// Lists all parts of a table and checks that none is missing.
pub fn whole_table(dataset: &Dataset, run: &Run, table: Table) -> Result<Vec<Part>, DatasetError> {
    whole_range(dataset, run, table, &(0..=u64::MAX))
}

/// Lists all parts of a table and checks that no part with one of the given bouts is missing.
pub(crate) fn whole_range(
    dataset: &Dataset,
    run: &Run,
    table: Table,
    bouts: &RangeInclusive<u64>,
) -> Result<Vec<Part>, DatasetError> {
    let parts = dataset.parts(run, table)?;
    // Each part of `games` has a part of `moves` with the same name.
    if table == Table::Moves {
        for games in dataset.parts(run, Table::Games)? {
            if !parts.iter().any(|part| part.file_name() == games.file_name()) {
                let name = format!("{}/run={}/{}", table.name(), run.id, games.file_name());
                return Err(DatasetError::MissingPart { name });
            }
        }
    }
    // Bouts below `end` must be present unless they failed.
    let end = match run.state {
        RunState::Done => run.bouts,
        RunState::Running | RunState::Paused => {
            let last_part = parts.iter().filter_map(|part| part.bouts).map(|(first, _)| first).max();
            last_part.unwrap_or(0).max(run.exported)
        }
        // A run that ended early may have holes anywhere.
        RunState::Decided | RunState::Cancelled => 0,
    };
    let mut listed = BoutRanges::default();
    for (index, part) in parts.iter().enumerate() {
        // Holes can be detected only if every file name states its bouts.
        let Some((first, last)) = part.bouts else { return Ok(parts) };
        listed.add_range(first..=last, index);
    }
    let holes = listed.holes(end);
    let missing: u64 = holes.iter().map(|hole| hole.end() - hole.start() + 1).sum();
    let overlaps = |hole: &&RangeInclusive<u64>| hole.start() <= bouts.end() && bouts.start() <= hole.end();
    // Failed bouts have no rows, so up to `failed` missing bouts are expected.
    match holes.iter().find(overlaps) {
        Some(hole) if missing > run.failed => {
            Err(DatasetError::MissingBouts { table: table.name(), first: *hole.start(), last: *hole.end() })
        }
        _ => Ok(parts),
    }
}

/// The row groups that no thread has taken yet.
struct Queue {
    parts: VecDeque<Part>,
    /// The current part and its next row group.
    current: Option<(Arc<OpenPart>, usize)>,
}

/// An open part with its decoded Parquet footer.
struct OpenPart {
    part: Part,
    source: Source,
    groups: Groups,
}

impl Queue {
    /// Takes the next row group: its part and its index.
    fn next(&mut self, columns: &[&str]) -> Result<Option<(Arc<OpenPart>, usize)>, DatasetError> {
        loop {
            if let Some((opened, next)) = &mut self.current
                && *next < opened.groups.count()
            {
                *next += 1;
                return Ok(Some((Arc::clone(opened), *next - 1)));
            }
            let Some(part) = self.parts.pop_front() else { return Ok(None) };
            let source = part.open()?;
            let groups = part.decode(|| Groups::open(&source, part.table, columns))?;
            self.current = Some((Arc::new(OpenPart { part, source, groups }), 0));
        }
    }
}

/// Folds all rows of some parts and returns one accumulator per thread.
pub fn scan<A: Send>(
    run: &Run,
    parts: Vec<Part>,
    columns: &[&str],
    threads: NonZeroUsize,
    start: impl Fn() -> A + Sync,
    fold: impl Fn(&mut A, &Batch) -> Result<(), ReadError> + Sync,
) -> Result<Vec<A>, DatasetError> {
    let voided: BTreeSet<u64> = run.voided.iter().copied().collect();
    let mut columns = columns.to_vec();
    if !voided.is_empty() && !columns.contains(&"bout") {
        columns.push("bout");
    }
    let (columns, queue) = (&columns[..], &Mutex::new(Queue { parts: parts.into(), current: None }));
    // After an error the other threads take no more parts.
    let take = || queue.lock().unwrap_or_else(PoisonError::into_inner).next(columns);
    let stop = || queue.lock().unwrap_or_else(PoisonError::into_inner).parts.clear();
    let work = || {
        let mut accumulator = start();
        // The last part, with this thread's own file handle.
        let mut file: Option<(Arc<OpenPart>, Source)> = None;
        while let Some((opened, group)) = take()? {
            let source = match file.take() {
                Some((last, source)) if Arc::ptr_eq(&last, &opened) => source,
                _ => opened.part.reopen(&opened.source)?,
            };
            opened.part.decode(|| {
                for batch in opened.groups.read(&source, group)? {
                    let batch = batch?;
                    let batch = if voided.is_empty() { batch } else { batch.without(&voided)? };
                    fold(&mut accumulator, &batch)?;
                }
                Ok(())
            })?;
            file = Some((opened, source));
        }
        Ok(accumulator)
    };
    on_threads(threads.get(), || work().inspect_err(|_| stop())).into_iter().collect()
}

/// Runs `work` on several threads and returns their results; panics propagate.
pub(crate) fn on_threads<T: Send>(threads: usize, work: impl Fn() -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(&work)).collect();
        let join = |worker: std::thread::ScopedJoinHandle<'_, T>| match worker.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        workers.into_iter().map(join).collect()
    })
}
