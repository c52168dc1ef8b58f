//! Node counts of unpruned trees at some positions of a probe, if no player searched without pruning.
//!
//! An unpruned search enters every position up to its depth once per line, so perft gives its node counts. With dice, whose
//! outcomes are not plies of a search, the search itself runs. Both go as deep as a budget allows.

use std::num::NonZeroUsize;

use agon_arena::{Arena, Environment, Family, Opening, PlayError, PlayerConfig, Spec};
use agon_search::Limit;

use super::PruningError;

/// Number of positions whose trees are counted.
pub(super) const POSITIONS: u64 = 50;

/// Approximate limit of the lines counted at one depth.
const LINES: u64 = 5_000_000;

/// Node limit of a search.
const NODES: u64 = 100_000;

/// Returns the algorithm without pruning.
pub(super) fn algorithm(family: Family) -> &'static str {
    match family {
        Family::Duel => "minimax",
        Family::Many => "max-n",
        Family::Chance => "expectiminimax",
    }
}

/// Counts nodes by depth at each position, as deep as the budget allows and at most to the given depth.
pub(super) fn count(
    spec: &Spec,
    family: Family,
    positions: &[(Opening, usize)],
    threads: NonZeroUsize,
) -> Result<Vec<Vec<u64>>, PruningError> {
    let share = positions.len().div_ceil(threads.get()).max(1);
    std::thread::scope(|scope| {
        let start = |positions| scope.spawn(move || count_chunk(spec, family, positions));
        let workers: Vec<_> = positions.chunks(share).map(start).collect();
        let mut counts = Vec::new();
        for worker in workers {
            counts.extend(worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        Ok(counts)
    })
}

fn count_chunk(
    spec: &Spec,
    family: Family,
    positions: &[(Opening, usize)],
) -> Result<Vec<Vec<u64>>, PruningError> {
    let text = format!("search = {{ algorithm = \"{}\" }}", algorithm(family));
    let player = PlayerConfig::parse(&spec.game, &text).map_err(PlayError::from)?;
    let mut arena = Arena::new(&spec.game, &[player], Environment::system())?;
    let mut counts = Vec::new();
    for (position, depth) in positions {
        counts.push(match family {
            Family::Duel | Family::Many => perft_nodes(&arena, position, *depth)?,
            Family::Chance => {
                let record = arena.search(0, position, Limit::Nodes(NODES), 0, &mut |_| ())?;
                record.iterations.iter().map(|iteration| iteration.nodes).take(*depth).collect()
            }
        });
    }
    Ok(counts)
}

/// Counts nodes by depth with perft, while the next depth is predicted to stay within [`LINES`].
fn perft_nodes(arena: &Arena, position: &Opening, depth: usize) -> Result<Vec<u64>, PlayError> {
    let (mut counts, mut nodes) = (Vec::new(), 1);
    let (mut before_last, mut last) = (1, 1);
    while counts.len() < depth && u128::from(last) * u128::from(last) <= u128::from(LINES) * before_last {
        let lines = arena.perft(position, counts.len() as u32 + 1)?;
        nodes += lines;
        counts.push(nodes);
        (before_last, last) = (u128::from(last).max(1), lines);
    }
    Ok(counts)
}
