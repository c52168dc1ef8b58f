//! Conversion of plies between the wire and columns. Players are numbers of the spec on the wire and names in columns.

use std::ops::RangeInclusive;

use agon_arena::spec::SpecPlayer;
use agon_records::columns::{ListColumn, TextColumn};
use agon_records::{LimitKind, Plies, Searches};
use agon_search::Counters;
use agon_search::bounds::MAX_DURATION_US;

use crate::check;
use crate::error::WireError;
use crate::limits::{MAX_BATCH_MOVES, MAX_COUNT, MAX_DEPTHS, MAX_LINE, MAX_MOVE, MAX_PLIES, MAX_SEATS};
use crate::packed::{Column, Fields, Writer};
use crate::v1;

/// The fields of a `MoveBatch` by their numbers in agon.proto.
mod field {
    use agon_search::Counters;

    pub(super) const GAME: usize = 1;
    pub(super) const SEAT: usize = 3;
    pub(super) const TEXT: usize = 4;
    pub(super) const LEGAL: usize = 5;
    pub(super) const SEARCHED: usize = 6;
    pub(super) const PLAYER: usize = 7;
    pub(super) const DEPTH: usize = 8;
    pub(super) const SELECTIVE_DEPTH: usize = 9;
    /// The first of the original counters; the others follow in the order of the list.
    pub(super) const COUNTERS: usize = 10;
    pub(super) const DEPTHS: usize = COUNTERS + Counters::ORIGINAL;
    pub(super) const DEPTH_NODES: usize = 23;
    pub(super) const DEPTH_TIME_US: usize = 24;
    pub(super) const SCORE: usize = 25;
    pub(super) const PV: usize = 26;
    pub(super) const TIME_US: usize = 27;
    pub(super) const OVERSHOOT_US: usize = 28;
    pub(super) const LIMIT_KIND: usize = 29;
    pub(super) const LIMIT_VALUE: usize = 30;
    /// The columns of all counters that were added later, concatenated in the order of the list.
    pub(super) const LATER_COUNTERS: usize = 31;
    /// One more than the highest number.
    pub(super) const END: usize = LATER_COUNTERS + 1;
}

/// Encodes the plies from `row` on, and their searches from `search` on, as a `MoveBatch` of a game. Checks the same bounds
/// as the receiver.
pub(crate) fn to_wire(
    plies: &Plies,
    row: usize,
    search: usize,
    game: u16,
    players: &[SpecPlayer],
) -> Result<Vec<u8>, WireError> {
    let searches = &plies.searches;
    let number = |name: &String| {
        let number = check::required("player", players.iter().position(|player| player.name == *name))?;
        Ok(number as u64)
    };
    let numbers = searches.names.iter().map(number).collect::<Result<Vec<u64>, WireError>>()?;
    let all = search..searches.player.len();
    let lists =
        |lists: &ListColumn| all.clone().flat_map(|index| lists.get(index)).copied().collect::<Vec<u64>>();
    let mut depths = Vec::with_capacity(all.len());
    for index in all.clone() {
        let length = searches.depth_nodes.get(index).len();
        check::count("depth_time_us", searches.depth_time_us.get(index).len(), length..=length)?;
        depths.push(length as u64);
    }
    let mut batch = Writer::default();
    batch.number(field::GAME, game.into());
    let seats = plies.seat[row..].iter().map(|seat| seat.map_or(0, |seat| u64::from(seat) + 1));
    batch.column(field::SEAT, "seat", MAX_SEATS as u64, seats)?;
    batch.text(field::TEXT, &lines("text", &plies.mv, row, 1..=MAX_MOVE)?);
    batch.small(field::LEGAL, "legal", &plies.legal[row..])?;
    batch.column(field::SEARCHED, "searched", 1, plies.searched[row..].iter().map(|&it| it.into()))?;
    let player = searches.player[search..].iter().map(|&player| numbers[usize::from(player)]);
    batch.column(field::PLAYER, "player", u64::MAX, player)?;
    batch.small(field::DEPTH, "depth", &searches.depth[search..])?;
    batch.small(field::SELECTIVE_DEPTH, "selective_depth", &searches.selective_depth[search..])?;
    let counters = searches.counters.each_ref().map(|column| column[search..].iter().copied());
    for (index, column) in counters.iter().enumerate().take(Counters::ORIGINAL) {
        let name = Counters::LIST[index].name;
        batch.column(field::COUNTERS + index, name, MAX_COUNT, column.clone())?;
    }
    batch.column(field::DEPTHS, "depths", MAX_DEPTHS as u64, depths.into_iter())?;
    let (nodes, times) = (lists(&searches.depth_nodes), lists(&searches.depth_time_us));
    batch.column(field::DEPTH_NODES, "depth_nodes", MAX_COUNT, nodes.into_iter())?;
    batch.column(field::DEPTH_TIME_US, "depth_time_us", MAX_DURATION_US, times.into_iter())?;
    batch.doubles(field::SCORE, "score", &searches.score[search..])?;
    batch.text(field::PV, &lines("pv", &searches.pv, search, 0..=MAX_LINE)?);
    batch.column(field::TIME_US, "time_us", MAX_DURATION_US, searches.time_us[search..].iter().copied())?;
    batch.column(
        field::OVERSHOOT_US,
        "overshoot_us",
        MAX_DURATION_US,
        searches.overshoot_us[search..].iter().copied(),
    )?;
    let kinds = searches.limit_kind[search..].iter().map(|&kind| limit_kind_to_wire(kind) as u64);
    batch.column(field::LIMIT_KIND, "limit_kind", u64::MAX, kinds)?;
    batch.column(
        field::LIMIT_VALUE,
        "limit_value",
        u64::MAX,
        searches.limit_value[search..].iter().copied(),
    )?;
    let later = counters[Counters::ORIGINAL..].iter().cloned().flatten();
    batch.column(field::LATER_COUNTERS, "later_counters", MAX_COUNT, later)?;
    Ok(batch.finish())
}

/// Decodes a `MoveBatch` and adds its plies to a bout. `locate` maps the game of the message to the bout, the game and the
/// number of its next ply. `games` is the expected number of games, for reserving memory. Returns the number of plies.
pub(crate) fn from_wire(
    batch: &[u8],
    locate: impl FnOnce(u64) -> Result<(u64, u16, usize), WireError>,
    games: usize,
    players: &[SpecPlayer],
    plies: &mut Plies,
) -> Result<usize, WireError> {
    let fields = Fields::<{ field::END }>::read("moves", batch)?;
    let (bout, game, first) = locate(fields.number(field::GAME))?;
    // 1. The number of plies is that of the moves.
    let before = plies.mv.len();
    add_lines("text", fields.text(field::TEXT)?, &mut plies.mv, 1..=MAX_MOVE)?;
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
    let (seats, mut largest) = (fields.column(field::SEAT, "seat"), 0);
    seats.each(count, |seat| {
        largest = largest.max(seat);
        plies.seat.push((seat as u16).checked_sub(1));
    })?;
    seats.at_most(Some(largest), MAX_SEATS as u64)?;
    fields.column(field::LEGAL, "legal").add_small(count, &mut plies.legal)?;
    fields.column(field::SEARCHED, "searched").each(count, |searched| plies.searched.push(searched != 0))?;
    // 2. The number of searches is that of the searched plies.
    let count = plies.searched[before..].iter().filter(|&&searched| searched).count();
    let searches = &mut plies.searches;
    add_players(fields.column(field::PLAYER, "player"), count, players, searches)?;
    fields.column(field::DEPTH, "depth").add_small(count, &mut searches.depth)?;
    fields
        .column(field::SELECTIVE_DEPTH, "selective_depth")
        .add_small(count, &mut searches.selective_depth)?;
    let add = |number, name, most, to: &mut Vec<u64>| fields.column(number, name).add(count, most, to);
    for (index, counter) in Counters::LIST[..Counters::ORIGINAL].iter().enumerate() {
        add(field::COUNTERS + index, counter.name, MAX_COUNT, &mut searches.counters[index])?;
    }
    let mut later = Vec::new();
    let columns = Counters::COUNT - Counters::ORIGINAL;
    fields.column(field::LATER_COUNTERS, "later_counters").add(columns * count, MAX_COUNT, &mut later)?;
    for (index, column) in searches.counters[Counters::ORIGINAL..].iter_mut().enumerate() {
        column.extend_from_slice(&later[index * count..(index + 1) * count]);
    }
    add(field::TIME_US, "time_us", MAX_DURATION_US, &mut searches.time_us)?;
    add(field::OVERSHOOT_US, "overshoot_us", MAX_DURATION_US, &mut searches.overshoot_us)?;
    add(field::LIMIT_VALUE, "limit_value", u64::MAX, &mut searches.limit_value)?;
    fields.column(field::SCORE, "score").add_doubles(count, &mut searches.score)?;
    let mut unknown = Ok(());
    fields.column(field::LIMIT_KIND, "limit_kind").each(count, |found| {
        match limit_kind_from_wire(found as i32) {
            Ok(kind) => searches.limit_kind.push(kind),
            Err(error) => unknown = Err(error),
        }
    })?;
    unknown?;
    // 3. Texts and lists.
    let before = searches.pv.len();
    if count > 0 {
        add_lines("pv", fields.text(field::PV)?, &mut searches.pv, 0..=MAX_LINE)?;
    }
    check::count("pv", searches.pv.len() - before, count..=count)?;
    let mut depths = Vec::with_capacity(count);
    fields.column(field::DEPTHS, "depths").add(count, MAX_DEPTHS as u64, &mut depths)?;
    let (nodes, times) = (
        fields.column(field::DEPTH_NODES, "depth_nodes"),
        fields.column(field::DEPTH_TIME_US, "depth_time_us"),
    );
    add_lists(nodes, &depths, MAX_COUNT, &mut searches.depth_nodes)?;
    add_lists(times, &depths, MAX_DURATION_US, &mut searches.depth_time_us)?;
    Ok(added)
}

fn add_players(
    column: Column<'_>,
    count: usize,
    players: &[SpecPlayer],
    to: &mut Searches,
) -> Result<(), WireError> {
    // Few players take turns: each is looked up once.
    let mut known: Vec<(u64, u16)> = Vec::new();
    let mut largest = 0;
    column.each(count, |player| {
        largest = largest.max(player);
        let number = match known.iter().find(|(number, _)| *number == player) {
            Some(&(_, number)) => number,
            None => {
                let name = usize::try_from(player).ok().and_then(|player| players.get(player));
                let number = name.map_or(0, |player| to.player_index(&player.name));
                known.push((player, number));
                number
            }
        };
        to.player.push(number);
    })?;
    column.at_most(Some(largest), players.len().saturating_sub(1) as u64)
}

fn add_lists(column: Column<'_>, lengths: &[u64], most: u64, to: &mut ListColumn) -> Result<(), WireError> {
    let mut values = Vec::new();
    column.add(lengths.iter().sum::<u64>() as usize, most, &mut values)?;
    to.extend(&values, lengths.iter().map(|&length| length as usize));
    Ok(())
}

/// Joins the texts from `first` on by line breaks, if each is within the bounds.
fn lines(
    field: &'static str,
    texts: &TextColumn,
    first: usize,
    bounds: RangeInclusive<usize>,
) -> Result<String, WireError> {
    let mut lines = String::new();
    for index in first..texts.len() {
        let text = texts.get(index);
        check_text(field, text, &bounds)?;
        if text.contains('\n') {
            return Err(WireError::Unprintable { field });
        }
        if index > first {
            lines.push('\n');
        }
        lines.push_str(text);
    }
    check::lines(field, &lines)?;
    Ok(lines)
}

fn check_text(field: &'static str, text: &str, bounds: &RangeInclusive<usize>) -> Result<(), WireError> {
    if text.len() < *bounds.start() {
        return Err(WireError::Missing { field });
    }
    check::length(field, text.len(), *bounds.end())
}

/// Adds the texts of lines, each within the bounds.
fn add_lines(
    field: &'static str,
    lines: &str,
    to: &mut TextColumn,
    bounds: RangeInclusive<usize>,
) -> Result<(), WireError> {
    check::lines(field, lines)?;
    for text in lines.split('\n') {
        check_text(field, text, &bounds)?;
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
