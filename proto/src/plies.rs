//! Plies on the wire and as columns of the dataset. Players are numbers of the spec on the wire and names in the dataset.

use agon_arena::spec::SpecPlayer;
use agon_records::columns::{Lists, Texts};
use agon_records::{LimitKind, Plies, Searches};

use crate::check;
use crate::error::WireError;
use crate::limits::{
    MAX_BATCH_MOVES, MAX_COUNT, MAX_DEPTHS, MAX_LINE, MAX_MOVE, MAX_PLIES, MAX_SEATS, MAX_TIME_US,
};
use crate::packed::{Column, Fields};
use crate::v1;

/// Plies for the wire, as those of a game of this number.
pub(crate) fn to_wire(plies: &Plies, game: u16, players: &[SpecPlayer]) -> Result<v1::MoveBatch, WireError> {
    let searches = &plies.searches;
    let number = |name: &String| {
        let number = check::required("player", players.iter().position(|player| player.name == *name))?;
        Ok(u32::try_from(number).expect("a spec has few players"))
    };
    let numbers = searches.names.iter().map(number).collect::<Result<Vec<u32>, WireError>>()?;
    let (depth_nodes, depth_time_us) = (&searches.depth_nodes, &searches.depth_time_us);
    let (nodes, times) = (depth_nodes.lengths(), depth_time_us.lengths());
    if let Some((depths, found)) = nodes.zip(times).find(|(nodes, times)| nodes != times) {
        check::count("depth_time_us", found, depths..=depths)?;
    }
    let column = |column: &[u64]| zeros_left_out(column.to_vec());
    let small = |column: &[u16]| zeros_left_out(column.iter().map(|&number| number.into()).collect());
    Ok(v1::MoveBatch {
        game: u32::from(game),
        seat: zeros_left_out(
            plies.seat.iter().map(|seat| seat.map_or(0, |seat| u32::from(seat) + 1)).collect(),
        ),
        text: lines("text", &plies.mv)?,
        legal: small(&plies.legal),
        searched: zeros_left_out(plies.searched.clone()),
        player: zeros_left_out(searches.player.iter().map(|&player| numbers[usize::from(player)]).collect()),
        depth: small(&searches.depth),
        selective_depth: small(&searches.selective_depth),
        nodes: column(&searches.nodes),
        leaves: column(&searches.leaves),
        quiescence_nodes: column(&searches.quiescence_nodes),
        cutoffs: column(&searches.cutoffs),
        first_move_cutoffs: column(&searches.first_move_cutoffs),
        table_probes: column(&searches.table_probes),
        table_hits: column(&searches.table_hits),
        table_stores: column(&searches.table_stores),
        researches: column(&searches.researches),
        simulations: column(&searches.simulations),
        tree_nodes: column(&searches.tree_nodes),
        playout_plies: column(&searches.playout_plies),
        depths: zeros_left_out(depth_nodes.lengths().map(|length| length as u32).collect()),
        depth_nodes: column(depth_nodes.values()),
        depth_time_us: column(depth_time_us.values()),
        score: zeros_left_out(searches.score.clone()),
        pv: lines("pv", &searches.pv)?,
        time_us: column(&searches.time_us),
        overshoot_us: column(&searches.overshoot_us),
        limit_kind: searches.limit_kind.iter().map(|&kind| limit_kind_to_wire(kind).into()).collect(),
        limit_value: column(&searches.limit_value),
    })
}

/// The highest number of a field of a batch.
const FIELDS: usize = 30;

/// Adds encoded plies to those of a bout: of one of its games, which `place` finds for the number that they give it, with
/// the number of its next ply. `games` that are yet to come are expected to be as long. Returns how many were added.
pub(crate) fn from_wire(
    batch: &[u8],
    place: impl FnOnce(u64) -> Result<(u64, u16, usize), WireError>,
    games: usize,
    players: &[SpecPlayer],
    plies: &mut Plies,
) -> Result<usize, WireError> {
    let fields = Fields::<{ FIELDS + 1 }>::read("moves", batch)?;
    let (bout, game, first) = place(fields.number(1))?;
    // 1. The moves say how many plies there are.
    let before = plies.mv.len();
    add_lines("text", fields.text(4)?, &mut plies.mv, 1..=MAX_MOVE)?;
    let count = plies.mv.len() - before;
    let added = count;
    check::count("moves", count, 1..=MAX_BATCH_MOVES)?;
    check::count("plies", first + count, 1..=MAX_PLIES)?;
    if before == 0 {
        plies.reserve(count * games);
    }
    let ply = |ply| u16::try_from(ply).expect("a game has at most 65536 plies");
    plies.bout.resize(before + count, bout);
    plies.game.resize(before + count, game);
    plies.ply.extend((first..first + count).map(ply));
    let (seats, mut largest) = (fields.column(3, "seat"), 0);
    seats.each(count, |seat| {
        largest = largest.max(seat);
        plies.seat.push((seat as u16).checked_sub(1));
    })?;
    seats.at_most(Some(largest), MAX_SEATS as u64)?;
    fields.column(5, "legal").add_small(count, &mut plies.legal)?;
    fields.column(6, "searched").each(count, |searched| plies.searched.push(searched != 0))?;
    // 2. Those that were searched say how many searches there are.
    let count = plies.searched[before..].iter().filter(|&&searched| searched).count();
    let searches = &mut plies.searches;
    add_players(fields.column(7, "player"), count, players, searches)?;
    fields.column(8, "depth").add_small(count, &mut searches.depth)?;
    fields.column(9, "selective_depth").add_small(count, &mut searches.selective_depth)?;
    let add = |number, name, most, to: &mut Vec<u64>| fields.column(number, name).add(count, most, to);
    add(10, "nodes", MAX_COUNT, &mut searches.nodes)?;
    add(11, "leaves", MAX_COUNT, &mut searches.leaves)?;
    add(12, "quiescence_nodes", MAX_COUNT, &mut searches.quiescence_nodes)?;
    add(13, "cutoffs", MAX_COUNT, &mut searches.cutoffs)?;
    add(14, "first_move_cutoffs", MAX_COUNT, &mut searches.first_move_cutoffs)?;
    add(15, "table_probes", MAX_COUNT, &mut searches.table_probes)?;
    add(16, "table_hits", MAX_COUNT, &mut searches.table_hits)?;
    add(17, "table_stores", MAX_COUNT, &mut searches.table_stores)?;
    add(18, "researches", MAX_COUNT, &mut searches.researches)?;
    add(19, "simulations", MAX_COUNT, &mut searches.simulations)?;
    add(20, "tree_nodes", MAX_COUNT, &mut searches.tree_nodes)?;
    add(21, "playout_plies", MAX_COUNT, &mut searches.playout_plies)?;
    add(27, "time_us", MAX_TIME_US, &mut searches.time_us)?;
    add(28, "overshoot_us", MAX_TIME_US, &mut searches.overshoot_us)?;
    add(30, "limit_value", u64::MAX, &mut searches.limit_value)?;
    fields.column(25, "score").add_doubles(count, &mut searches.score)?;
    let mut unknown = Ok(());
    fields.column(29, "limit_kind").each(count, |found| match limit_kind_from_wire(found as i32) {
        Ok(kind) => searches.limit_kind.push(kind),
        Err(error) => unknown = Err(error),
    })?;
    unknown?;
    // 3. Texts and lists.
    let before = searches.pv.len();
    if count > 0 {
        add_lines("pv", fields.text(26)?, &mut searches.pv, 0..=MAX_LINE)?;
    }
    check::count("pv", searches.pv.len() - before, count..=count)?;
    let mut depths = Vec::with_capacity(count);
    fields.column(22, "depths").add(count, MAX_DEPTHS as u64, &mut depths)?;
    let (nodes, times) = (fields.column(23, "depth_nodes"), fields.column(24, "depth_time_us"));
    add_lists(nodes, &depths, MAX_COUNT, &mut searches.depth_nodes)?;
    add_lists(times, &depths, MAX_TIME_US, &mut searches.depth_time_us)?;
    Ok(added)
}

/// A column that goes out: nothing where all of it is 0.
fn zeros_left_out<T: PartialEq + Default>(column: Vec<T>) -> Vec<T> {
    if column.iter().all(|entry| *entry == T::default()) { Vec::new() } else { column }
}

fn add_players(
    column: Column<'_>,
    count: usize,
    players: &[SpecPlayer],
    to: &mut Searches,
) -> Result<(), WireError> {
    // Two or a few players take turns: each is looked up once.
    let mut known: Vec<(u64, u16)> = Vec::new();
    let mut largest = 0;
    column.each(count, |player| {
        largest = largest.max(player);
        let number = match known.iter().find(|(number, _)| *number == player) {
            Some(&(_, number)) => number,
            None => {
                let name = usize::try_from(player).ok().and_then(|player| players.get(player));
                let number = name.map_or(0, |player| to.number(&player.name));
                known.push((player, number));
                number
            }
        };
        to.player.push(number);
    })?;
    column.at_most(Some(largest), players.len().saturating_sub(1) as u64)
}

fn add_lists(column: Column<'_>, lengths: &[u64], most: u64, to: &mut Lists) -> Result<(), WireError> {
    let mut values = Vec::new();
    column.add(lengths.iter().sum::<u64>() as usize, most, &mut values)?;
    to.extend(&values, lengths.iter().map(|&length| length as usize));
    Ok(())
}

/// Texts, a line each.
fn lines(field: &'static str, texts: &Texts) -> Result<String, WireError> {
    let mut lines = String::new();
    for index in 0..texts.len() {
        let text = texts.get(index);
        if text.contains('\n') {
            return Err(WireError::ControlCharacter { field });
        }
        if index > 0 {
            lines.push('\n');
        }
        lines.push_str(text);
    }
    Ok(lines)
}

/// Adds the texts of lines, each within these bounds.
fn add_lines(
    field: &'static str,
    lines: &str,
    to: &mut Texts,
    bounds: std::ops::RangeInclusive<usize>,
) -> Result<(), WireError> {
    check::lines(field, lines)?;
    for text in lines.split('\n') {
        if text.len() < *bounds.start() {
            return Err(WireError::Missing { field });
        }
        check::length(field, text.len(), *bounds.end())?;
        to.push(text);
    }
    Ok(())
}

fn limit_kind_to_wire(kind: LimitKind) -> v1::LimitKind {
    match kind {
        LimitKind::Ms => v1::LimitKind::Ms,
        LimitKind::CpuMs => v1::LimitKind::CpuMs,
        LimitKind::Nodes => v1::LimitKind::Nodes,
        LimitKind::Depth => v1::LimitKind::Depth,
        LimitKind::ClockMs => v1::LimitKind::ClockMs,
    }
}

fn limit_kind_from_wire(found: i32) -> Result<LimitKind, WireError> {
    match v1::LimitKind::try_from(found) {
        Ok(v1::LimitKind::Ms) => Ok(LimitKind::Ms),
        Ok(v1::LimitKind::CpuMs) => Ok(LimitKind::CpuMs),
        Ok(v1::LimitKind::Nodes) => Ok(LimitKind::Nodes),
        Ok(v1::LimitKind::Depth) => Ok(LimitKind::Depth),
        Ok(v1::LimitKind::ClockMs) => Ok(LimitKind::ClockMs),
        Ok(v1::LimitKind::Unspecified) | Err(_) => {
            Err(WireError::UnknownValue { field: "limit_kind", found })
        }
    }
}
