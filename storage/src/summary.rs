//! The summary of a recorded bout.

use agon_arena::Spec;
use agon_records::{BoutColumns, GameRow};
use agon_schedule::summary::{Effort, GameSummary, Summary};

/// Summarises a bout of a run with this spec.
pub fn summarise(spec: &Spec, bout: &BoutColumns) -> Summary {
    let number = |name: &String| spec.players.iter().position(|player| player.name == *name);
    let mut effort = vec![Effort::default(); spec.players.len()];
    let mut spend = |player: Option<usize>, nodes, depth: u16, overshoot_us| {
        if let Some(player) = player {
            effort[player].add(&Effort {
                moves: 1,
                nodes,
                depth: u64::from(depth),
                overshoot_us,
                most_overshoot_us: overshoot_us,
            });
        }
    };
    let searches = &bout.moves.searches;
    let players: Vec<Option<usize>> = searches.names.iter().map(number).collect();
    for (index, player) in searches.player.iter().enumerate() {
        let player = players[usize::from(*player)];
        spend(player, searches.counters(index).nodes, searches.depth[index], searches.overshoot_us[index]);
    }
    for search in bout.probes.iter().filter_map(|probe| probe.decision.search.as_ref()) {
        spend(number(&search.player), search.counters.nodes, search.depth, search.overshoot_us);
    }
    let game = |row: &GameRow| GameSummary {
        players: row.players.iter().filter_map(number).collect(),
        payoffs: row.payoffs.clone(),
    };
    // The faults of engines are not the worker's.
    let forfeits = bout.games.iter().filter(|row| row.has_late_ply()).count();
    Summary { games: bout.games.iter().map(game).collect(), effort, forfeits: forfeits as u64 }
}
