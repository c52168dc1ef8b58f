//! The nodes of the whole tree at some positions, depth by depth, where nobody has searched it: it is searched now.
//!
//! The search of a game's family that prunes nothing enters every position up to its depth once a line, so that its nodes
//! are those of perft, summed over the plies. It goes as deep as a budget of nodes allows.

use std::num::NonZeroUsize;

use agon_arena::{Arena, ConfigError, Family, Opening, PlayError, PlayerConfig, Spec, Surroundings};
use agon_games::SetupError;
use agon_search::Limit;

use super::PruningError;

/// How many nodes the whole tree of a position may have, over all depths.
pub(super) const NODES: u64 = 200_000;

/// At how many positions it is counted.
pub(super) const POSITIONS: u64 = 50;

/// The algorithm that prunes nothing.
pub(super) fn algorithm(family: Family) -> &'static str {
    match family {
        Family::Duel => "minimax",
        Family::Many => "max-n",
        Family::Chance => "expectiminimax",
    }
}

/// The nodes of each depth that the budget allows, at each position.
pub(super) fn count(
    spec: &Spec,
    family: Family,
    positions: &[Opening],
    threads: NonZeroUsize,
) -> Result<Vec<Vec<u64>>, PruningError> {
    let text = format!("search = {{ algorithm = \"{}\" }}", algorithm(family));
    let player =
        PlayerConfig::parse(&spec.game, &text).map_err(|error: ConfigError| PlayError::from(error))?;
    let share = positions.len().div_ceil(threads.get()).max(1);
    std::thread::scope(|scope| {
        let start = |positions| {
            let player = &player;
            scope.spawn(move || search(spec, player, positions))
        };
        let workers: Vec<_> = positions.chunks(share).map(start).collect();
        let mut counts = Vec::new();
        for worker in workers {
            counts.extend(worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        Ok(counts)
    })
}

fn search(spec: &Spec, player: &PlayerConfig, positions: &[Opening]) -> Result<Vec<Vec<u64>>, PruningError> {
    let mut arena = Arena::new(&spec.game, std::slice::from_ref(player), Surroundings::system())
        .map_err(|error: SetupError| PruningError::Setup(error))?;
    let mut count = |position: &Opening| -> Result<Vec<u64>, PruningError> {
        let record = arena.search(0, position, Limit::Nodes(NODES), 0, &mut |_| ())?;
        Ok(record.iterations.iter().map(|iteration| iteration.nodes).collect())
    };
    positions.iter().map(&mut count).collect()
}
