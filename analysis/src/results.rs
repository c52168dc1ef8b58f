//! Who won what: the games of a run counted as bouts, for ratings and sequential tests.
//!
//! Only the columns that say so are read, batch after batch, and parts over several threads; what comes out does not depend
//! on their number. Bouts that are void do not count. A part that is missing or damaged is an error: results that lack some
//! bouts would look as sure as they are wrong. Not here: what the results mean, which is the statistics'.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use agon_arena::Spec;
use agon_arena::spec::Plan;
use agon_records::Table;
use agon_schedule::RunState;
use agon_stats::sprt::{Bounds, BoutResult, Fold};
use agon_stats::tournament::{Game, Tally, pair_score};

use crate::dataset::{Dataset, DatasetError, Part, Run};
use agon_storage::bout_ranges::BoutRanges;
use agon_storage::completeness::{list, missing};

/// The results of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Results {
    /// The bouts that count. Players are numbered as in the spec.
    pub tally: Tally,
    /// How many bouts the dataset has, void ones included.
    pub found: u64,
}

/// Counts all bouts of a run; of a tune those of its validation.
pub fn results(
    dataset: &Dataset,
    run: &Run,
    spec: &Spec,
    threads: NonZeroUsize,
) -> Result<Results, DatasetError> {
    let Scan { found, mut prefixes } = scan(dataset, run, spec, &[u64::MAX], threads)?;
    Ok(Results { tally: prefixes.pop().unwrap_or_default(), found })
}

/// Counts the first bouts of a run for each of several lengths of the schedule, in one go: the tally at a length has the
/// bouts below it. Precondition: the lengths ascend.
pub fn prefixes(
    dataset: &Dataset,
    run: &Run,
    spec: &Spec,
    lengths: &[u64],
    threads: NonZeroUsize,
) -> Result<Vec<Tally>, DatasetError> {
    Ok(scan(dataset, run, spec, lengths, threads)?.prefixes)
}

/// A sequential test between the first two players over the schedule of a run, as far as it goes without holes. Parts behind
/// the bout that decides are not read.
pub fn fold(dataset: &Dataset, run: &Run, spec: &Spec, bounds: Bounds) -> Result<Fold, DatasetError> {
    let names = Names::new(spec);
    let mut fold = Fold::new(bounds);
    let mut seen = BoutRanges::default();
    // Below the first of these a hole is a bout that failed: nothing else is left out by a run that goes on, is done or has
    // decided. Below the second every bout must be there or have failed.
    let (failed_below, expected) = match run.state {
        RunState::Running | RunState::Paused => (u64::MAX, 0),
        RunState::Done => (u64::MAX, run.bouts),
        RunState::Decided => run.deciding_bout.map_or((0, 0), |bout| (bout + 1, bout + 1)),
        RunState::Cancelled => (0, 0),
    };
    let fill = |fold: &mut Fold, seen: &BoutRanges, end: u64| {
        for bout in seen.holes(end.min(failed_below)).into_iter().flatten() {
            // Those that were filled before are refused.
            let _ = fold.put(bout, BoutResult::Void);
        }
    };
    for part in parts(dataset, run, spec)? {
        let mut end = 0;
        each_bout(&part, &names, &mut |bout, key| {
            let score = pair_score(&games_of(key), 0, 1).filter(|_| !run.voided.contains(&bout));
            // A bout that is there twice counts once.
            let _ = fold.put(bout, score.map_or(BoutResult::Void, BoutResult::Pair));
            seen.add(bout, 0);
            end = bout + 1;
            Ok(())
        })?;
        fill(&mut fold, &seen, end);
        // Behind a hole that stays nothing counts.
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
        return Err(DatasetError::NotWhole { run: run.id.clone(), reason });
    }
    Ok(fold)
}

/// The parts of a run that have games.
fn parts(dataset: &Dataset, run: &Run, spec: &Spec) -> Result<Vec<Part>, DatasetError> {
    if let Plan::Probe(_) = spec.plan {
        return Err(DatasetError::Probe { run: run.id.clone() });
    }
    dataset.parts(run, Table::Games)
}

/// What a scan of all parts finds.
struct Scan {
    found: u64,
    prefixes: Vec<Tally>,
}

/// What is known while parts are read. Sums do not depend on the order of parts, and everything else is kept by part.
#[derive(Default)]
struct Collected {
    /// For each stretch of the schedule how many bouts had these games.
    kinds: Vec<HashMap<Vec<u32>, u64>>,
    ranges: BTreeMap<usize, Vec<RangeInclusive<u64>>>,
    errors: BTreeMap<usize, DatasetError>,
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
    let voided = run.voided.iter().copied().collect();
    let next = AtomicUsize::new(0);
    let collected =
        Mutex::new(Collected { kinds: vec![HashMap::new(); lengths.len()], ..Collected::default() });
    std::thread::scope(|scope| {
        for _ in 0..threads.get().min(parts.len()) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(part) = parts.get(index) else { return };
                    let counted = count(part, &names, &voided, lengths, spec.first_rated_bout());
                    let mut collected = collected.lock().unwrap_or_else(PoisonError::into_inner);
                    match counted {
                        Ok((kinds, ranges)) => {
                            for (all, some) in collected.kinds.iter_mut().zip(kinds) {
                                for (key, count) in some {
                                    *all.entry(key).or_insert(0) += count;
                                }
                            }
                            collected.ranges.insert(index, ranges);
                        }
                        Err(error) => {
                            collected.errors.insert(index, error);
                        }
                    }
                }
            });
        }
    });
    let Collected { kinds, ranges, mut errors } =
        collected.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, error)) = errors.pop_first() {
        return Err(error);
    }
    let mut seen = BoutRanges::default();
    for (index, ranges) in ranges {
        for range in ranges {
            let bout = *range.start();
            if let Some(other) = seen.add_range(range, index) {
                let reason = format!("it is there a second time; the first is in {}", parts[other].name);
                return Err(DatasetError::Bout { file: parts[index].file.clone(), bout, reason });
            }
        }
    }
    let last_part = parts.iter().filter_map(|part| part.bouts).map(|(first, _)| first).max();
    if let Some(reason) = missing(run, run.bouts, &seen, last_part.unwrap_or(0)) {
        return Err(DatasetError::NotWhole { run: run.id.clone(), reason });
    }
    let mut tally = Tally::new(names.names);
    let mut prefixes = Vec::with_capacity(kinds.len());
    for stretch in kinds {
        for (key, count) in stretch {
            tally.add(&games_of(&key), count).map_err(|error| DatasetError::NotWhole {
                run: run.id.clone(),
                reason: format!("a bout cannot be counted: {error}"),
            })?;
        }
        prefixes.push(tally.clone());
    }
    Ok(Scan { found: seen.bouts(), prefixes })
}

/// Bouts by their games for each stretch of the schedule, and the bouts that were seen as ranges.
type Counted = (Vec<HashMap<Vec<u32>, u64>>, Vec<RangeInclusive<u64>>);

fn count(
    part: &Part,
    names: &Names,
    voided: &HashSet<u64>,
    lengths: &[u64],
    rated_from: u64,
) -> Result<Counted, DatasetError> {
    let mut kinds: Vec<HashMap<Vec<u32>, u64>> = vec![HashMap::new(); lengths.len()];
    let mut ranges: Vec<RangeInclusive<u64>> = Vec::new();
    each_bout(part, names, &mut |bout, key| {
        match ranges.last_mut() {
            Some(range) if range.end() + 1 == bout => *range = *range.start()..=bout,
            Some(range) if *range.end() >= bout => {
                return Err("the part has it twice, or its bouts are not in order".to_string());
            }
            _ => ranges.push(bout..=bout),
        }
        let stretch = lengths.partition_point(|length| *length <= bout);
        if let Some(kinds) = kinds.get_mut(stretch)
            && !voided.contains(&bout)
            && bout >= rated_from
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
    Ok((kinds, ranges))
}

/// The players of a run by name.
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

/// What is done with a bout and its key; or why that cannot be.
type Visit<'a> = dyn FnMut(u64, &[u32]) -> Result<(), String> + 'a;

/// Calls `visit` for each bout of a part, in order, with a key that is equal for bouts with the same games: for each game the
/// number of seats, then the players and the payoffs by seat.
fn each_bout(part: &Part, names: &Names, visit: &mut Visit<'_>) -> Result<(), DatasetError> {
    let file = part.open()?;
    let mut batches = part.attempt(|| agon_records::stream_results(file))?;
    let wrong = |bout: u64, reason: String| DatasetError::Bout { file: part.file.clone(), bout, reason };
    let mut key: Vec<u32> = Vec::new();
    let mut current: Option<u64> = None;
    while let Some(batch) = part.attempt(|| batches.next().transpose())? {
        for row in 0..batch.len() {
            let (bout, _) = batch.place(row);
            if current != Some(bout) {
                if let Some(before) = current {
                    visit(before, &key).map_err(|reason| wrong(before, reason))?;
                }
                key.clear();
                current = Some(bout);
            }
            let payoffs = batch.payoffs(row);
            key.push(payoffs.len() as u32);
            let start = key.len();
            for name in batch.players(row) {
                let number = names.numbers.get(name);
                key.push(*number.ok_or_else(|| wrong(bout, format!("the spec has no player `{name}`")))?);
            }
            if key.len() - start != payoffs.len() {
                return Err(wrong(bout, "a game has not as many payoffs as players".to_string()));
            }
            key.extend(payoffs.iter().map(|payoff| *payoff as u32));
        }
    }
    match current {
        Some(bout) => visit(bout, &key).map_err(|reason| wrong(bout, reason)),
        None => Ok(()),
    }
}

/// The games of a key.
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
