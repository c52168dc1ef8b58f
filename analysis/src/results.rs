//! Game results of a run, counted by bout for ratings and sequential tests.
//!
//! Only the result columns are read, over several threads; the counts do not depend on their number. Voided bouts are
//! skipped. Missing and damaged parts are errors, because partial counts would look as certain as complete ones.
//! Deliberately not here: statistics.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicUsize, Ordering};

use agon_arena::Spec;
use agon_arena::spec::Plan;
use agon_records::Table;
use agon_schedule::RunState;
use agon_stats::sprt::{Bounds, BoutResult, SequentialTest};
use agon_stats::tournament::{BoutCounts, Game, pair_score};
use agon_storage::bout_ranges::BoutRanges;
use agon_storage::completeness::{list, missing};

use crate::dataset::{Dataset, DatasetError, Part, Run};
use crate::scan::on_threads;

/// The results of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Results {
    /// Counted bouts, with players in spec order.
    pub tally: BoutCounts,
    /// Bouts in the dataset, including voided ones.
    pub found: u64,
}

/// Counts all rated bouts of a run; in a tune only the validation is rated.
pub fn results(
    dataset: &Dataset,
    run: &Run,
    spec: &Spec,
    threads: NonZeroUsize,
) -> Result<Results, DatasetError> {
    let Scan { found, mut prefixes } = scan(dataset, run, spec, &[u64::MAX], threads)?;
    Ok(Results { tally: prefixes.pop().unwrap_or_default(), found })
}

/// Counts several prefixes of the schedule in one scan: each tally has the bouts below the given length. Precondition: the
/// lengths ascend.
pub fn prefixes(
    dataset: &Dataset,
    run: &Run,
    spec: &Spec,
    lengths: &[u64],
    threads: NonZeroUsize,
) -> Result<Vec<BoutCounts>, DatasetError> {
    Ok(scan(dataset, run, spec, lengths, threads)?.prefixes)
}

/// Runs the sequential test between the first two players over the schedule, up to the first hole. Parts after the deciding
/// bout are not read.
pub fn fold(
    dataset: &Dataset,
    run: &Run,
    spec: &Spec,
    bounds: Bounds,
) -> Result<SequentialTest, DatasetError> {
    let names = Names::new(spec);
    let mut fold = SequentialTest::new(bounds);
    let mut seen = BoutRanges::default();
    // Below `failed_below` a hole is a failed bout, because running, done and decided runs leave out nothing else. Below
    // `expected` every bout must be present or have failed.
    let (failed_below, expected) = match run.state {
        RunState::Running | RunState::Paused => (u64::MAX, run.exported),
        RunState::Done => (u64::MAX, run.bouts),
        RunState::Decided => run.deciding_bout.map_or((0, 0), |bout| (bout + 1, bout + 1)),
        RunState::Cancelled => (0, 0),
    };
    let fill = |fold: &mut SequentialTest, seen: &BoutRanges, end: u64| {
        for bout in seen.holes(end.min(failed_below)).into_iter().flatten() {
            // `put` rejects bouts that were filled before.
            let _ = fold.record(bout, BoutResult::Void);
        }
    };
    for part in parts(dataset, run, spec)? {
        let mut end = 0;
        each_bout(&part, &names, &mut |bout, key| {
            let score = pair_score(&games_of(key), 0, 1).filter(|_| !run.voided.contains(&bout));
            // `put` rejects duplicates.
            let _ = fold.record(bout, score.map_or(BoutResult::Void, BoutResult::Pair));
            seen.add(bout, 0);
            end = bout + 1;
            Ok(())
        })?;
        fill(&mut fold, &seen, end);
        // Nothing counts after a permanent hole.
        if fold.decision().is_some() || fold.waiting() > 0 {
            break;
        }
    }
    if fold.decision().is_none() {
        fill(&mut fold, &seen, expected);
    }
    let holes = seen.holes(fold.prefix());
    let missing: u64 = holes.iter().map(|hole| hole.end() - hole.start() + 1).sum();
    if missing > run.failed {
        let reason = format!("{missing} bouts are missing{}, and {} failed", list(&holes), run.failed);
        return Err(DatasetError::Incomplete { run: run.id.clone(), reason });
    }
    Ok(fold)
}

/// Lists the parts with games.
fn parts(dataset: &Dataset, run: &Run, spec: &Spec) -> Result<Vec<Part>, DatasetError> {
    if let Plan::Probe(_) = spec.plan {
        return Err(DatasetError::Probe { run: run.id.clone() });
    }
    dataset.parts(run, Table::Games)
}

/// Result of a scan of all parts.
struct Scan {
    found: u64,
    prefixes: Vec<BoutCounts>,
}

/// One thread's share of a scan.
struct Share {
    /// For each stretch of the schedule, the number of bouts by their games.
    kinds: Vec<HashMap<Vec<u32>, u64>>,
    /// Ranges of bouts, by part.
    ranges: BTreeMap<usize, Vec<RangeInclusive<u64>>>,
}

fn scan(
    dataset: &Dataset,
    run: &Run,
    spec: &Spec,
    lengths: &[u64],
    threads: NonZeroUsize,
) -> Result<Scan, DatasetError> {
    let parts = parts(dataset, run, spec)?;
    let names = Names::new(spec);
    let voided: HashSet<u64> = run.voided.iter().copied().collect();
    let next = AtomicUsize::new(0);
    let work = || -> Result<Share, (usize, DatasetError)> {
        let mut share = Share { kinds: vec![HashMap::new(); lengths.len()], ranges: BTreeMap::new() };
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(part) = parts.get(index) else { return Ok(share) };
            let ranges = count(part, &names, &voided, lengths, spec, &mut share.kinds)
                .map_err(|error| (index, error))?;
            share.ranges.insert(index, ranges);
        }
    };
    let mut kinds: Vec<HashMap<Vec<u32>, u64>> = vec![HashMap::new(); lengths.len()];
    let mut ranges = BTreeMap::new();
    let mut first_error: Option<(usize, DatasetError)> = None;
    for share in on_threads(threads.get().min(parts.len()), work) {
        match share {
            Ok(share) => {
                for (all, some) in kinds.iter_mut().zip(share.kinds) {
                    for (key, count) in some {
                        *all.entry(key).or_insert(0) += count;
                    }
                }
                ranges.extend(share.ranges);
            }
            // Parts are taken in order, so the smallest index is the first damaged part of the run.
            Err(error) if first_error.as_ref().is_none_or(|first| error.0 < first.0) => {
                first_error = Some(error);
            }
            Err(_) => {}
        }
    }
    if let Some((_, error)) = first_error {
        return Err(error);
    }
    let mut seen = BoutRanges::default();
    for (index, ranges) in ranges {
        for range in ranges {
            let bout = *range.start();
            if let Some(other) = seen.add_range(range, index) {
                let reason = format!("duplicate bout; the first is in {}", parts[other].name);
                return Err(DatasetError::Bout { file: parts[index].file.clone(), bout, reason });
            }
        }
    }
    let last_part = parts.iter().filter_map(|part| part.bouts).map(|(first, _)| first).max();
    if let Some(reason) = missing(run, run.bouts, &seen, last_part.unwrap_or(0)) {
        return Err(DatasetError::Incomplete { run: run.id.clone(), reason });
    }
    let mut tally = BoutCounts::new(names.names);
    let mut prefixes = Vec::with_capacity(kinds.len());
    for stretch in kinds {
        for (key, count) in stretch {
            tally.add(&games_of(&key), count).map_err(|error| DatasetError::Incomplete {
                run: run.id.clone(),
                reason: format!("a bout cannot be counted: {error}"),
            })?;
        }
        prefixes.push(tally.clone());
    }
    Ok(Scan { found: seen.bouts(), prefixes })
}

/// Counts the bouts of a part by their games into each stretch of the schedule, and returns the ranges of bouts found.
fn count(
    part: &Part,
    names: &Names,
    voided: &HashSet<u64>,
    lengths: &[u64],
    spec: &Spec,
    kinds: &mut [HashMap<Vec<u32>, u64>],
) -> Result<Vec<RangeInclusive<u64>>, DatasetError> {
    let mut ranges: Vec<RangeInclusive<u64>> = Vec::new();
    each_bout(part, names, &mut |bout, key| {
        match ranges.last_mut() {
            Some(range) if range.end() + 1 == bout => *range = *range.start()..=bout,
            Some(range) if *range.end() >= bout => {
                return Err("duplicate or unordered bouts in the part".to_string());
            }
            _ => ranges.push(bout..=bout),
        }
        let stretch = lengths.partition_point(|length| *length <= bout);
        if let Some(kinds) = kinds.get_mut(stretch)
            && !voided.contains(&bout)
            && is_rated(spec, key)
        {
            match kinds.get_mut(key) {
                Some(count) => *count += 1,
                None => {
                    kinds.insert(key.to_vec(), 1);
                }
            }
        }
        Ok(())
    })?;
    Ok(ranges)
}

/// Returns whether a bout with this key counts for ratings.
fn is_rated(spec: &Spec, key: &[u32]) -> bool {
    let seats = key.first().map_or(0, |seats| *seats as usize);
    let mut players = key.iter().skip(1).take(seats);
    spec.tune().is_none_or(|tune| players.any(|player| *player as usize >= tune.roles.tuned))
}

/// Players by name and number.
struct Names {
    names: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl Names {
    fn new(spec: &Spec) -> Names {
        let names: Vec<String> = spec.players.iter().map(|player| player.name.clone()).collect();
        let numbers = names.iter().cloned().zip(0..).collect();
        Names { names, numbers }
    }
}

/// Visitor of a bout and its key.
type Visit<'a> = dyn FnMut(u64, &[u32]) -> Result<(), String> + 'a;

/// Visits the bouts of a part in order. The key encodes the games of a bout: for each game the number of seats, then the
/// players and the payoffs by seat.
fn each_bout(part: &Part, names: &Names, visit: &mut Visit<'_>) -> Result<(), DatasetError> {
    let file = part.open()?;
    let mut batches = part.decode(|| agon_records::stream_results(file))?;
    let invalid = |bout: u64, reason: String| DatasetError::Bout { file: part.file.clone(), bout, reason };
    let mut key: Vec<u32> = Vec::new();
    let mut current: Option<u64> = None;
    while let Some(batch) = part.decode(|| batches.next().transpose())? {
        for row in 0..batch.len() {
            let (bout, _) = batch.key(row);
            if current != Some(bout) {
                if let Some(before) = current {
                    visit(before, &key).map_err(|reason| invalid(before, reason))?;
                }
                key.clear();
                current = Some(bout);
            }
            let payoffs = batch.payoffs(row);
            key.push(payoffs.len() as u32);
            let start = key.len();
            for name in batch.players(row) {
                let number = names.numbers.get(name);
                key.push(*number.ok_or_else(|| invalid(bout, format!("the spec has no player `{name}`")))?);
            }
            if key.len() - start != payoffs.len() {
                return Err(invalid(bout, "a game has different numbers of players and payoffs".to_string()));
            }
            key.extend(payoffs.iter().map(|payoff| *payoff as u32));
        }
    }
    match current {
        Some(bout) => visit(bout, &key).map_err(|reason| invalid(bout, reason)),
        None => Ok(()),
    }
}

/// Decodes the games of a key.
fn games_of(mut key: &[u32]) -> Vec<Game> {
    let mut games = Vec::new();
    while let Some((&seats, rest)) = key.split_first() {
        let (players, rest) = rest.split_at(seats as usize);
        let (payoffs, rest) = rest.split_at(seats as usize);
        games.push(Game {
            players: players.iter().map(|&player| player as usize).collect(),
            payoffs: payoffs.iter().map(|&payoff| payoff as i32).collect(),
        });
        key = rest;
    }
    games
}
