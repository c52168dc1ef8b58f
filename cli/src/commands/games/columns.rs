//! Rows of the dataset as JSON, under the names of their columns.

use agon_games::exchange::Moment;
use agon_records::{GameRow, MoveRow, SearchColumns};
use serde::Serialize;

use crate::commands::search::{Proven, proven};

/// A row of `games`.
#[derive(Serialize)]
pub(super) struct GameColumns<'a> {
    bout: u64,
    game: u16,
    rules: &'a str,
    variant: &'a str,
    opening: &'a str,
    players: &'a [String],
    payoffs: &'a [i32],
    plies: u32,
    ending: &'a str,
    seed: u64,
    worker: &'a str,
    build: &'a str,
    started: String,
    duration_us: u64,
    speed_factor: f64,
    settings: &'a [String],
}

impl<'a> From<&'a GameRow> for GameColumns<'a> {
    fn from(row: &'a GameRow) -> GameColumns<'a> {
        GameColumns {
            bout: row.bout,
            game: row.game,
            rules: &row.rules,
            variant: &row.variant,
            opening: &row.opening,
            players: &row.players,
            payoffs: &row.payoffs,
            plies: row.plies,
            ending: &row.ending,
            seed: row.seed,
            worker: &row.worker,
            build: &row.build,
            started: Moment::from_unix_microseconds(row.started).to_string(),
            duration_us: row.duration_us,
            speed_factor: row.speed_factor,
            settings: &row.settings,
        }
    }
}

/// A row of `moves`, with what the score proves. Where nobody searched, everything from the player on is null.
#[derive(Serialize)]
pub(super) struct MoveColumns<'a> {
    bout: u64,
    game: u16,
    ply: u16,
    seat: Option<u16>,
    #[serde(rename = "move")]
    mv: &'a str,
    legal: u16,
    player: Option<&'a str>,
    depth: Option<u16>,
    selective_depth: Option<u16>,
    nodes: Option<u64>,
    leaves: Option<u64>,
    quiescence_nodes: Option<u64>,
    cutoffs: Option<u64>,
    first_move_cutoffs: Option<u64>,
    table_probes: Option<u64>,
    table_hits: Option<u64>,
    table_stores: Option<u64>,
    researches: Option<u64>,
    simulations: Option<u64>,
    tree_nodes: Option<u64>,
    playout_plies: Option<u64>,
    depth_nodes: Option<&'a [u64]>,
    depth_time_us: Option<&'a [u64]>,
    score: Option<f64>,
    proven: Option<Proven>,
    pv: Option<&'a str>,
    time_us: Option<u64>,
    overshoot_us: Option<u64>,
    limit_kind: Option<&'static str>,
    limit_value: Option<u64>,
}

impl<'a> From<&'a MoveRow> for MoveColumns<'a> {
    fn from(row: &'a MoveRow) -> MoveColumns<'a> {
        let search = row.search.as_ref();
        let count = |of: fn(&SearchColumns) -> u64| search.map(of);
        MoveColumns {
            bout: row.bout,
            game: row.game,
            ply: row.ply,
            seat: row.seat,
            mv: &row.mv,
            legal: row.legal,
            player: search.map(|search| search.player.as_str()),
            depth: search.map(|search| search.depth),
            selective_depth: search.map(|search| search.selective_depth),
            nodes: count(|search| search.nodes),
            leaves: count(|search| search.leaves),
            quiescence_nodes: count(|search| search.quiescence_nodes),
            cutoffs: count(|search| search.cutoffs),
            first_move_cutoffs: count(|search| search.first_move_cutoffs),
            table_probes: count(|search| search.table_probes),
            table_hits: count(|search| search.table_hits),
            table_stores: count(|search| search.table_stores),
            researches: count(|search| search.researches),
            simulations: count(|search| search.simulations),
            tree_nodes: count(|search| search.tree_nodes),
            playout_plies: count(|search| search.playout_plies),
            depth_nodes: search.map(|search| search.depth_nodes.as_slice()),
            depth_time_us: search.map(|search| search.depth_time_us.as_slice()),
            score: search.map(|search| search.score),
            proven: search.and_then(|search| proven(search.value())),
            pv: search.map(|search| search.pv.as_str()),
            time_us: count(|search| search.time_us),
            overshoot_us: count(|search| search.overshoot_us),
            limit_kind: search.map(|search| search.limit_kind.name()),
            limit_value: count(|search| search.limit_value),
        }
    }
}
