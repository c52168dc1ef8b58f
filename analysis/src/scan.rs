//! Some columns of a whole table of a run, folded by several threads as they go by.
//!
//! A thread takes the next row group of the next part, reads the pages of the columns that are asked for, and folds their
//! rows into an accumulator of its own. Which thread sees which rows, and in which order, is chance: a fold whose result
//! must not depend on it adds whole numbers. Memory is that of one row group a thread and of the accumulators, however
//! large the dataset is. Bouts that do not count are left out, what is damaged or missing is an error that names it.
//! Deliberately not here: what the columns mean.

use std::collections::{BTreeSet, VecDeque};
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError};

use agon_records::{Batch, Groups, ReadError, Source, Table};
use agon_schedule::RunState;

use crate::dataset::{Dataset, DatasetError, Part, Run};
use agon_storage::bout_ranges::BoutRanges;

/// The parts of a table of a run that should be read, all of which are there.
pub fn whole_table(dataset: &Dataset, run: &Run, table: Table) -> Result<Vec<Part>, DatasetError> {
    whole_range(dataset, run, table, &(0..=u64::MAX))
}

/// All parts of a table of a run, of which those with some bouts are there.
pub(crate) fn whole_range(
    dataset: &Dataset,
    run: &Run,
    table: Table,
    bouts: &RangeInclusive<u64>,
) -> Result<Vec<Part>, DatasetError> {
    let parts = dataset.parts(run, table)?;
    if table == Table::Moves {
        for games in dataset.parts(run, Table::Games)? {
            if !parts.iter().any(|part| part.file_name() == games.file_name()) {
                let name = format!("{}/run={}/{}", table.name(), run.id, games.file_name());
                return Err(DatasetError::MissingPart { name });
            }
        }
    }
    let end = match run.state {
        RunState::Done => run.bouts,
        RunState::Running | RunState::Paused => {
            parts.iter().filter_map(|part| part.bouts).map(|(first, _)| first).max().unwrap_or(0)
        }
        // Bouts of a run that ended early may be anywhere.
        RunState::Decided | RunState::Cancelled => 0,
    };
    let mut named = BoutRanges::default();
    for (number, part) in parts.iter().enumerate() {
        // Where a name does not say which bouts its part has, nothing can be missed.
        let Some((first, last)) = part.bouts else { return Ok(parts) };
        named.add_range(first..=last, number);
    }
    let holes = named.holes(end);
    let missing: u64 = holes.iter().map(|hole| hole.end() - hole.start() + 1).sum();
    let asked = |hole: &&RangeInclusive<u64>| hole.start() <= bouts.end() && bouts.start() <= hole.end();
    match holes.iter().find(asked) {
        Some(hole) if missing > run.failed => {
            Err(DatasetError::MissingBouts { table: table.name(), first: *hole.start(), last: *hole.end() })
        }
        _ => Ok(parts),
    }
}

/// Row groups that nobody has taken yet.
struct Queue {
    parts: VecDeque<Part>,
    /// The part that is being read, and the first row group of it that is free.
    current: Option<(Arc<Opened>, usize)>,
}

/// A part whose directory was read.
struct Opened {
    part: Part,
    source: Source,
    groups: Groups,
}

impl Queue {
    fn next(&mut self, columns: &[&str]) -> Result<Option<(Arc<Opened>, usize)>, DatasetError> {
        loop {
            if let Some((opened, next)) = &mut self.current
                && *next < opened.groups.count()
            {
                *next += 1;
                return Ok(Some((Arc::clone(opened), *next - 1)));
            }
            let Some(part) = self.parts.pop_front() else { return Ok(None) };
            let source = part.open()?;
            let groups = part.attempt(|| Groups::open(&source, part.table, columns))?;
            self.current = Some((Arc::new(Opened { part, source, groups }), 0));
        }
    }
}

/// Folds all rows of some parts of a run: one accumulator a thread, in no order that means anything.
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
    // A thread that falls over reports it itself; the others take no more.
    let take = || queue.lock().unwrap_or_else(PoisonError::into_inner).next(columns);
    let stop = || queue.lock().unwrap_or_else(PoisonError::into_inner).parts.clear();
    let work = || {
        let mut accumulator = start();
        let mut file: Option<(Arc<Opened>, Source)> = None;
        while let Some((opened, group)) = take()? {
            let own = match file.take() {
                Some((before, own)) if Arc::ptr_eq(&before, &opened) => own,
                _ => opened.part.open_again(&opened.source)?,
            };
            opened.part.attempt(|| {
                for batch in opened.groups.read(&own, group)? {
                    let batch = batch?;
                    let batch = if voided.is_empty() { batch } else { batch.without(&voided)? };
                    fold(&mut accumulator, &batch)?;
                }
                Ok(())
            })?;
            file = Some((opened, own));
        }
        Ok(accumulator)
    };
    std::thread::scope(|scope| {
        let worker = || work().inspect_err(|_| stop());
        let workers: Vec<_> = (0..threads.get()).map(|_| scope.spawn(worker)).collect();
        let join = |worker: std::thread::ScopedJoinHandle<'_, Result<A, DatasetError>>| match worker.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        workers.into_iter().map(join).collect()
    })
}
