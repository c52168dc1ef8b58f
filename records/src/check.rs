//! Checks rows against their request: the game, its players, limits and moves, and every number of a search, by the rules
//! and without searching.
//!
//! The coordinator checks every received bout and the analysis every bout that it reads. The results of searches are not
//! checked here; that needs a replay.

use std::borrow::Cow;

use agon_arena::limit::{FACTORS, scaled};
use agon_arena::spec::SpecPlayer;
use agon_arena::{Arena, Claim, GameRequest, Opening, PlyClaim, SearchClaim, Spec};
use agon_search::SearchNumbers;

use crate::columns::{BoutColumns, Plies, Searches};
use crate::rows::{GameRow, LimitKind, ProbeRow, opening_text};
use crate::schema::Table;

/// A fault in the rows of a game.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{reason}")]
pub struct RowFault {
    /// The table of the row.
    pub table: Table,
    /// The reason.
    pub reason: String,
}

/// Checks the games of a bout against their requests, in order.
pub fn check_bout(
    spec: &Spec,
    referee: &Arena,
    requests: impl Iterator<Item = GameRequest>,
    bout: &BoutColumns,
) -> Result<(), RowFault> {
    let mut indices = bout.moves.indices();
    for (request, row) in requests.zip(&bout.games) {
        check_game(spec, referee, &request, row, &bout.moves, indices.by_ref().take(row.plies as usize))?;
    }
    Ok(())
}

/// Checks a game against its request and by the rules. `indices` are those of its [plies](Plies::indices).
pub fn check_game(
    spec: &Spec,
    referee: &Arena,
    request: &GameRequest,
    row: &GameRow,
    moves: &Plies,
    indices: impl ExactSizeIterator<Item = (usize, Option<usize>)>,
) -> Result<(), RowFault> {
    let check = |same: bool, column: &str, values: &dyn Fn() -> [String; 2]| {
        let reason = || values().join(", not ");
        let fault = || RowFault { table: Table::Games, reason: format!("`{column}` is {}", reason()) };
        if same { Ok(()) } else { Err(fault()) }
    };
    let text = |column, found: &str, expected: &str| {
        check(found == expected, column, &|| [found.to_string(), expected.to_string()])
    };
    text("rules", &row.rules, spec.game.name())?;
    text("variant", &row.variant, &spec.game.parameters().to_string())?;
    text("opening", &row.opening, &opening_text(&request.opening))?;
    let seated = || request.seats.iter().map(|&player| spec.players[player].name.as_str());
    check(row.players.iter().eq(seated()), "players", &|| {
        [format!("{:?}", row.players), format!("{:?}", seated().collect::<Vec<_>>())]
    })?;
    let plies = indices.len();
    check(row.plies as usize == plies, "plies", &|| [row.plies.to_string(), plies.to_string()])?;
    if row.speed_factor != 1.0 && !(spec.normalise && FACTORS.contains(&row.speed_factor)) {
        let reason = format!("`speed_factor` is {}, and the spec does not allow it", row.speed_factor);
        return Err(RowFault { table: Table::Games, reason });
    }
    let mut plies = Vec::with_capacity(indices.len());
    for (ply, (index, search)) in indices.enumerate() {
        let wrong = |reason: String| RowFault { table: Table::Moves, reason };
        if usize::from(moves.ply[index]) != ply {
            return Err(wrong(format!("ply {ply} is missing or another one occurs twice")));
        }
        let search = search.map(|search| {
            let player = check_search(spec, &request.seats, &moves.searches, search, row.speed_factor)?;
            Ok((player, claim_of(spec, player, &moves.searches, search)))
        });
        let search = search.transpose().map_err(|reason: String| wrong(format!("ply {ply}: {reason}")))?;
        plies.push(PlyClaim {
            mv: moves.mv.get(index),
            seat: moves.seat[index].map(usize::from),
            player: search.map(|(player, _)| player),
            legal: u32::from(moves.legal[index]),
            search: search.map(|(_, claim)| claim),
        });
    }
    let claim = Claim {
        plies,
        payoffs: &row.payoffs,
        ending: &row.ending,
        seed: row.seed,
        duration_us: row.duration_us,
    };
    let mut request = Cow::Borrowed(request);
    if row.speed_factor != 1.0 {
        request.to_mut().limits =
            spec.players.iter().map(|player| scaled(player.limit, row.speed_factor)).collect();
    }
    referee.verify(&request, &claim).map_err(|fault| RowFault {
        table: if fault.ply.is_some() { Table::Moves } else { Table::Games },
        reason: fault.to_string(),
    })
}

/// Checks the player, limit and numbers of a search. Returns the number of the player, which is looked up among the `seated`
/// first.
fn check_search(
    spec: &Spec,
    seated: &[usize],
    searches: &Searches,
    index: usize,
    factor: f64,
) -> Result<usize, String> {
    let name = searches.player(index);
    let is = |number: &usize| spec.players[*number].name == name;
    let number = seated.iter().copied().find(is).or_else(|| (0..spec.players.len()).find(is));
    let number = number.ok_or_else(|| format!("the run has no player `{name}`"))?;
    let (kind, value) = LimitKind::of(scaled(spec.players[number].limit, factor));
    let (found_kind, found_value) = (searches.limit_kind[index], searches.limit_value[index]);
    // The time left on a clock differs from move to move.
    if found_kind != kind || (kind != LimitKind::ClockMs && found_value != value) {
        let found = format!("{} {found_value}", found_kind.name());
        return Err(format!("the limit is {found}, not {} {value}", kind.name()));
    }
    let score = searches.score[index];
    if !score.is_finite() {
        return Err(format!("the score is {score}"));
    }
    Ok(number)
}

/// Returns the claim of a search for the referee.
fn claim_of<'a>(spec: &Spec, player: usize, searches: &'a Searches, index: usize) -> SearchClaim<'a> {
    let pv = searches.pv.get(index);
    let SpecPlayer { config, .. } = &spec.players[player];
    SearchClaim {
        numbers: SearchNumbers {
            counters: searches.counters(index),
            depth: searches.depth[index].into(),
            selective_depth: searches.selective_depth[index].into(),
            depth_nodes: searches.depth_nodes.get(index),
            depth_time_us: searches.depth_time_us.get(index),
            pv: pv.bytes().filter(|&byte| byte == b' ').count() as u64 + u64::from(!pv.is_empty()),
            score: searches.score[index],
            time_us: searches.time_us[index],
            overshoot_us: searches.overshoot_us[index],
        },
        samples: config.samples(),
        // A tuning run may tune the option.
        playouts_per_move: config.playouts_per_move().filter(|_| spec.tune().is_none()),
        limit_value: searches.limit_value[index],
    }
}

/// Checks the search of a probe against its request and by the rules.
pub fn check_probe(
    spec: &Spec,
    referee: &Arena,
    players: &[usize],
    opening: &Opening,
    row: &ProbeRow,
) -> Result<(), String> {
    let ProbeRow { position, moves, decision: found } = row;
    if *position != opening.position.clone().unwrap_or_default() || *moves != opening.moves {
        return Err("the position is not that of the spec".to_string());
    }
    if usize::from(found.ply) != moves.split_ascii_whitespace().count() {
        return Err(format!("`ply` is {}, and the position has a different number of moves", found.ply));
    }
    let search = found.search.as_ref().ok_or("the search is missing")?;
    let plies: Plies = [found].into_iter().collect();
    let number = check_search(spec, players, &plies.searches, 0, 1.0)?;
    if players.get(usize::from(found.game)) != Some(&number) {
        return Err(format!("`{}` searched out of turn", search.player));
    }
    let rules = referee.decision(opening).map_err(|error| error.to_string())?;
    if found.seat.map(usize::from) != Some(rules.seat) || u64::from(found.legal) != rules.legal {
        return Err(format!("seat {} has {} legal moves", rules.seat, rules.legal));
    }
    let claim = claim_of(spec, number, &plies.searches, 0);
    let limit = spec.players[number].limit;
    referee.verify_answer(opening, &found.mv, limit, &claim).map_err(|fault| fault.to_string())
}
