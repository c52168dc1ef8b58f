//! The columns that make two datasets equal, by name, with their values as texts that differ wherever values do.
//!
//! Rows are taken apart field by field, so that a new column does not compile until it is decided whether it counts.
//! Where there was no search, `player` is null and the columns behind it are left out.

use agon_records::{GameRow, MoveRow, ProbeRow, SearchColumns};

/// Columns with their values, in the order of the table.
pub(crate) type Columns = Vec<(&'static str, String)>;

/// Texts are quoted, so that none can be taken for a number or for null.
fn text(text: &str) -> String {
    format!("{text:?}")
}

/// The columns of a game.
pub(crate) fn of_game(row: &GameRow) -> Columns {
    let GameRow {
        bout,
        game,
        rules,
        variant,
        opening,
        players,
        payoffs,
        plies,
        ending,
        seed,
        worker: _,
        build: _,
        started: _,
        duration_us: _,
    } = row;
    vec![
        ("bout", bout.to_string()),
        ("game", game.to_string()),
        ("rules", text(rules)),
        ("variant", text(variant)),
        ("opening", text(opening)),
        ("players", format!("{players:?}")),
        ("payoffs", format!("{payoffs:?}")),
        ("plies", plies.to_string()),
        ("ending", text(ending)),
        ("seed", seed.to_string()),
    ]
}

/// The columns of a ply.
pub(crate) fn of_move(row: &MoveRow) -> Columns {
    let MoveRow { bout, game, ply, seat, mv, legal, search } = row;
    let mut columns = vec![
        ("bout", bout.to_string()),
        ("game", game.to_string()),
        ("ply", ply.to_string()),
        ("seat", seat.map_or_else(|| "null".to_string(), |seat| seat.to_string())),
        ("move", text(mv)),
        ("legal", legal.to_string()),
    ];
    match search {
        Some(search) => columns.extend(of_search(search)),
        None => columns.push(("player", "null".to_string())),
    }
    columns
}

/// The columns of a search of a probe.
pub(crate) fn of_probe(row: &ProbeRow) -> Columns {
    let ProbeRow { position, moves, decision } = row;
    let mut columns = vec![("position", text(position)), ("moves", text(moves))];
    columns.extend(of_move(decision));
    columns
}

fn of_search(search: &SearchColumns) -> Columns {
    let SearchColumns {
        player,
        depth,
        selective_depth,
        nodes,
        leaves,
        quiescence_nodes,
        cutoffs,
        first_move_cutoffs,
        table_probes,
        table_hits,
        table_stores,
        researches,
        simulations,
        tree_nodes,
        playout_plies,
        depth_nodes,
        depth_time_us: _,
        score,
        pv,
        time_us: _,
        overshoot_us: _,
        limit_kind,
        limit_value,
    } = search;
    vec![
        ("player", text(player)),
        ("depth", depth.to_string()),
        ("selective_depth", selective_depth.to_string()),
        ("nodes", nodes.to_string()),
        ("leaves", leaves.to_string()),
        ("quiescence_nodes", quiescence_nodes.to_string()),
        ("cutoffs", cutoffs.to_string()),
        ("first_move_cutoffs", first_move_cutoffs.to_string()),
        ("table_probes", table_probes.to_string()),
        ("table_hits", table_hits.to_string()),
        ("table_stores", table_stores.to_string()),
        ("researches", researches.to_string()),
        ("simulations", simulations.to_string()),
        ("tree_nodes", tree_nodes.to_string()),
        ("playout_plies", playout_plies.to_string()),
        ("depth_nodes", format!("{depth_nodes:?}")),
        // The shortest text that reads back as the same bits: two scores that differ have two texts.
        ("score", format!("{score:?}")),
        ("pv", text(pv)),
        ("limit_kind", text(limit_kind.name())),
        ("limit_value", limit_value.to_string()),
    ]
}

#[cfg(test)]
mod tests {
    use agon_records::schema::UNCOUNTED;
    use agon_records::{LimitKind, Table};

    use super::*;

    fn probe() -> ProbeRow {
        let search = SearchColumns {
            player: "a".to_string(),
            depth: 1,
            selective_depth: 2,
            nodes: 3,
            leaves: 4,
            quiescence_nodes: 5,
            cutoffs: 6,
            first_move_cutoffs: 7,
            table_probes: 8,
            table_hits: 9,
            table_stores: 10,
            researches: 11,
            simulations: 12,
            tree_nodes: 13,
            playout_plies: 14,
            depth_nodes: vec![15],
            depth_time_us: vec![16],
            score: 0.0,
            pv: "b".to_string(),
            time_us: 17,
            overshoot_us: 18,
            limit_kind: LimitKind::Nodes,
            limit_value: 19,
        };
        let decision = MoveRow {
            bout: 0,
            game: 0,
            ply: 0,
            seat: None,
            mv: "b".to_string(),
            legal: 1,
            search: Some(search),
        };
        ProbeRow { position: String::new(), moves: String::new(), decision }
    }

    #[test]
    fn every_column_that_counts_is_compared() {
        let names = |columns: Columns| columns.into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        let counted = |table: Table| {
            table
                .columns()
                .map(|column| column.name)
                .filter(|name| !UNCOUNTED.contains(name))
                .collect::<Vec<_>>()
        };
        let game = GameRow {
            bout: 0,
            game: 0,
            rules: String::new(),
            variant: String::new(),
            opening: String::new(),
            players: vec![],
            payoffs: vec![],
            plies: 0,
            ending: String::new(),
            seed: 0,
            worker: String::new(),
            build: String::new(),
            started: 0,
            duration_us: 0,
        };
        assert_eq!(names(of_game(&game)), counted(Table::Games));
        assert_eq!(names(of_probe(&probe())), counted(Table::Probes));
        assert_eq!(names(of_move(&probe().decision)), counted(Table::Moves));
    }

    #[test]
    fn zeros_with_different_signs_differ() {
        let mut other = probe();
        other.decision.search.as_mut().unwrap().score = -0.0;
        assert_ne!(of_probe(&probe()), of_probe(&other));
    }
}
