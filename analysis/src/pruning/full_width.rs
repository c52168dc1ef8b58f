//! The nodes of the whole tree at some positions, depth by depth, where nobody has searched it.
//!
//! A search that prunes nothing enters every position up to its depth once a line, so that its nodes are the lines of no
//! ply, of one, and so on to its depth: what perft counts. With dice, where outcomes are no plies of a search, the search
//! itself is asked. Both go as deep as a budget allows.

use std::num::NonZeroUsize;

use agon_arena::{Arena, Environment, Family, Opening, PlayError, PlayerConfig, Spec};
use agon_search::Limit;

use super::PruningError;

/// At how many positions whole trees are counted.
pub(super) const POSITIONS: u64 = 50;

/// About how many lines a position may have at the depth that is counted last.
const LINES: u64 = 5_000_000;

/// How many nodes a search of a position may take.
const NODES: u64 = 100_000;

/// The algorithm that prunes nothing.
pub(super) fn algorithm(family: Family) -> &'static str {
    match family {
        Family::Duel => "minimax",
        Family::Many => "max-n",
        Family::Chance => "expectiminimax",
    }
}

/// The nodes of each depth that the budget allows, at each position, to the depth that is asked for at most.
pub(super) fn count(
    spec: &Spec,
    family: Family,
    positions: &[(Opening, usize)],
    threads: NonZeroUsize,
) -> Result<Vec<Vec<u64>>, PruningError> {
    let share = positions.len().div_ceil(threads.get()).max(1);
    std::thread::scope(|scope| {
        let start = |positions| scope.spawn(move || count_some(spec, family, positions));
        let workers: Vec<_> = positions.chunks(share).map(start).collect();
        let mut counts = Vec::new();
        for worker in workers {
            counts.extend(worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        Ok(counts)
    })
}

fn count_some(
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
            Family::Duel | Family::Many => lines(&arena, position, *depth)?,
            Family::Chance => {
                let record = arena.search(0, position, Limit::Nodes(NODES), 0, &mut |_| ())?;
                record.iterations.iter().map(|iteration| iteration.nodes).take(*depth).collect()
            }
        });
    }
    Ok(counts)
}

/// Nodes of the whole tree by depth, as long as the next depth promises to have few enough lines.
fn lines(arena: &Arena, position: &Opening, depth: usize) -> Result<Vec<u64>, PlayError> {
    let (mut counts, mut nodes) = (Vec::new(), 1);
    let (mut before, mut last) = (1, 1);
    while counts.len() < depth && u128::from(last) * u128::from(last) <= u128::from(LINES) * before {
        let found = arena.perft(position, counts.len() as u32 + 1)?;
        nodes += found;
        counts.push(nodes);
        (before, last) = (u128::from(last).max(1), found);
    }
    Ok(counts)
}
