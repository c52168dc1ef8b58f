//! Node counts of unpruned trees at some positions of a probe, if no player searched without pruning.
//!
//! An unpruned search enters a position once for each sequence of moves to it, so perft gives its node counts. With dice, whose
//! outcomes are not plies of a search, the search itself runs. Both go as deep as a budget allows.

use std::num::NonZeroUsize;

use agon_arena::{Arena, Environment, Family, Opening, PlayError, PlayerConfig, Spec};
use agon_search::Limit;

use super::PruningError;

/// Number of positions whose trees are counted.
pub(super) const POSITIONS: u64 = 50;

/// Approximate limit of the leaves counted at one depth.
const MAX_LEAVES: u64 = 5_000_000;

/// Node limit of a search with dice.
const MAX_NODES: u64 = 100_000;

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
    let chunk_size = positions.len().div_ceil(threads.get()).max(1);
    std::thread::scope(|scope| {
        let spawn = |chunk| scope.spawn(move || count_chunk(spec, family, chunk));
        let threads: Vec<_> = positions.chunks(chunk_size).map(spawn).collect();
        let mut counts = Vec::new();
        for thread in threads {
            counts.extend(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        Ok(counts)
    })
}

fn count_chunk(
    spec: &Spec,
    family: Family,
    positions: &[(Opening, usize)],
) -> Result<Vec<Vec<u64>>, PruningError> {
    let settings = format!("search = {{ algorithm = \"{}\" }}", algorithm(family));
    let player = PlayerConfig::parse(&spec.game, &settings).map_err(PlayError::from)?;
    let mut arena = Arena::new(&spec.game, &[player], Environment::system())?;
    let mut counts = Vec::new();
    for (position, depth) in positions {
        counts.push(match family {
            Family::Duel | Family::Many => perft_nodes(&arena, position, *depth)?,
            Family::Chance => {
                let record = arena.search(0, position, Limit::Nodes(MAX_NODES), 0, &mut |_| ())?;
                record.iterations.iter().map(|iteration| iteration.nodes).take(*depth).collect()
            }
        });
    }
    Ok(counts)
}

/// Counts nodes by depth with perft. Stops before a depth whose leaves would exceed [`MAX_LEAVES`] if they grew as from the
/// depth before to the last one.
fn perft_nodes(arena: &Arena, position: &Opening, max_depth: usize) -> Result<Vec<u64>, PlayError> {
    let (mut nodes_by_depth, mut nodes) = (Vec::new(), 1);
    let (mut previous, mut last) = (1, 1);
    while nodes_by_depth.len() < max_depth && last * last <= u128::from(MAX_LEAVES) * previous {
        let leaves = arena.perft(position, nodes_by_depth.len() as u32 + 1)?;
        nodes += leaves;
        nodes_by_depth.push(nodes);
        (previous, last) = (last.max(1), u128::from(leaves));
    }
    Ok(nodes_by_depth)
}
