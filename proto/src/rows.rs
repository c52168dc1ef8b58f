//! Plies on the wire and as rows of the dataset. Players are numbers on the wire and names in rows.

use agon_arena::spec::SpecPlayer;
use agon_records::{LimitKind, MoveRow, SearchColumns};

use crate::check;
use crate::error::WireError;
use crate::limits::{MAX_COUNT, MAX_DEPTHS, MAX_LINE, MAX_MOVE, MAX_SEATS, MAX_TIME_US};
use crate::v1;

/// A ply for the wire.
pub(crate) fn to_wire(row: &MoveRow, players: &[SpecPlayer]) -> Result<v1::Move, WireError> {
    let search = row.search.as_ref().map(|search| search_to_wire(search, players)).transpose()?;
    Ok(v1::Move {
        seat: row.seat.map_or(0, |seat| u32::from(seat) + 1),
        text: row.mv.clone(),
        legal: u32::from(row.legal),
        search,
    })
}

/// A ply from the wire, as the row at its place.
pub(crate) fn from_wire(
    mv: v1::Move,
    (bout, game, ply): (u64, u16, u16),
    players: &[SpecPlayer],
) -> Result<MoveRow, WireError> {
    let seat = check::number("seat", mv.seat, 0..=MAX_SEATS as u16)?;
    Ok(MoveRow {
        bout,
        game,
        ply,
        seat: seat.checked_sub(1),
        mv: check::name("text", mv.text, MAX_MOVE)?,
        legal: check::number("legal", mv.legal, 0..=u16::MAX)?,
        search: mv.search.map(|search| search_from_wire(search, players)).transpose()?,
    })
}

fn search_to_wire(row: &SearchColumns, players: &[SpecPlayer]) -> Result<v1::Search, WireError> {
    let player = players.iter().position(|player| player.name == row.player);
    let player = check::required("player", player)?;
    Ok(v1::Search {
        player: u32::try_from(player).expect("a spec has few players"),
        depth: u32::from(row.depth),
        selective_depth: u32::from(row.selective_depth),
        nodes: row.nodes,
        leaves: row.leaves,
        quiescence_nodes: row.quiescence_nodes,
        cutoffs: row.cutoffs,
        first_move_cutoffs: row.first_move_cutoffs,
        table_probes: row.table_probes,
        table_hits: row.table_hits,
        table_stores: row.table_stores,
        researches: row.researches,
        simulations: row.simulations,
        tree_nodes: row.tree_nodes,
        playout_plies: row.playout_plies,
        depth_nodes: row.depth_nodes.clone(),
        depth_time_us: row.depth_time_us.clone(),
        score: row.score,
        pv: row.pv.clone(),
        time_us: row.time_us,
        overshoot_us: row.overshoot_us,
        limit_kind: match row.limit_kind {
            LimitKind::Ms => v1::LimitKind::Ms,
            LimitKind::CpuMs => v1::LimitKind::CpuMs,
            LimitKind::Nodes => v1::LimitKind::Nodes,
            LimitKind::Depth => v1::LimitKind::Depth,
            LimitKind::ClockMs => v1::LimitKind::ClockMs,
        }
        .into(),
        limit_value: row.limit_value,
    })
}

fn search_from_wire(search: v1::Search, players: &[SpecPlayer]) -> Result<SearchColumns, WireError> {
    let last = players.len().saturating_sub(1) as u64;
    let player = check::number("player", search.player, 0..=last)? as usize;
    let depths = search.depth_nodes.len();
    check::count("depth_nodes", depths, 0..=MAX_DEPTHS)?;
    check::count("depth_time_us", search.depth_time_us.len(), depths..=depths)?;
    let count = |field, found: u64| check::number(field, found, 0..=MAX_COUNT);
    let unknown = WireError::UnknownValue { field: "limit_kind", found: search.limit_kind };
    let limit_kind = match v1::LimitKind::try_from(search.limit_kind) {
        Ok(v1::LimitKind::Ms) => LimitKind::Ms,
        Ok(v1::LimitKind::CpuMs) => LimitKind::CpuMs,
        Ok(v1::LimitKind::Nodes) => LimitKind::Nodes,
        Ok(v1::LimitKind::Depth) => LimitKind::Depth,
        Ok(v1::LimitKind::ClockMs) => LimitKind::ClockMs,
        Ok(v1::LimitKind::Unspecified) | Err(_) => return Err(unknown),
    };
    Ok(SearchColumns {
        player: players[player].name.clone(),
        depth: check::number("depth", search.depth, 0..=u16::MAX)?,
        selective_depth: check::number("selective_depth", search.selective_depth, 0..=u16::MAX)?,
        nodes: count("nodes", search.nodes)?,
        leaves: count("leaves", search.leaves)?,
        quiescence_nodes: count("quiescence_nodes", search.quiescence_nodes)?,
        cutoffs: count("cutoffs", search.cutoffs)?,
        first_move_cutoffs: count("first_move_cutoffs", search.first_move_cutoffs)?,
        table_probes: count("table_probes", search.table_probes)?,
        table_hits: count("table_hits", search.table_hits)?,
        table_stores: count("table_stores", search.table_stores)?,
        researches: count("researches", search.researches)?,
        simulations: count("simulations", search.simulations)?,
        tree_nodes: count("tree_nodes", search.tree_nodes)?,
        playout_plies: count("playout_plies", search.playout_plies)?,
        depth_nodes: search
            .depth_nodes
            .into_iter()
            .map(|found| count("depth_nodes", found))
            .collect::<Result<_, _>>()?,
        depth_time_us: search
            .depth_time_us
            .into_iter()
            .map(|found| check::number("depth_time_us", found, 0..=MAX_TIME_US))
            .collect::<Result<_, _>>()?,
        score: check::finite("score", search.score)?,
        pv: check::line("pv", search.pv, MAX_LINE)?,
        time_us: check::number("time_us", search.time_us, 0..=MAX_TIME_US)?,
        overshoot_us: check::number("overshoot_us", search.overshoot_us, 0..=MAX_TIME_US)?,
        limit_kind,
        limit_value: search.limit_value,
    })
}
