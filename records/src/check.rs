//! Whether rows say what was asked for: the game, its players, limits and moves, by the rules and without searching.
//!
//! The coordinator asks this of every bout that arrives and the analysis of every bout that it reads. What a search found
//! is not checked here: only playing it again can.

use agon_arena::limit::{FACTORS, scaled};
use agon_arena::{Arena, Claim, GameRequest, Opening, PlyClaim, SearchClaim, Spec};

use crate::columns::{BoutColumns, Plies, Searches};
use crate::rows::{GameRow, LimitKind, ProbeRow, opening_text};
use crate::schema::Table;

/// What is wrong with a game, and the table whose row has it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{reason}")]
pub struct RowFault {
    /// The table.
    pub table: Table,
    /// What is wrong.
    pub reason: String,
}

/// Checks all of a bout whose games are those that `requests` asks for, in their order.
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

/// Checks a game against what was asked for, and then by the rules. `indices` are those of its [plies](Plies::indices).
pub fn check_game(
    spec: &Spec,
    referee: &Arena,
    request: &GameRequest,
    row: &GameRow,
    moves: &Plies,
    indices: impl ExactSizeIterator<Item = (usize, Option<usize>)>,
) -> Result<(), RowFault> {
    let is = |same: bool, column: &str, told: &dyn Fn() -> [String; 2]| {
        let reason = || told().join(", not ");
        let fault = || RowFault { table: Table::Games, reason: format!("`{column}` is {}", reason()) };
        if same { Ok(()) } else { Err(fault()) }
    };
    let text = |column, found: &str, expected: &str| {
        is(found == expected, column, &|| [found.to_string(), expected.to_string()])
    };
    text("rules", &row.rules, spec.game.name())?;
    text("variant", &row.variant, &spec.game.parameters().to_string())?;
    text("opening", &row.opening, &opening_text(&request.opening))?;
    let seated = || request.seats.iter().map(|&player| spec.players[player].name.as_str());
    is(row.players.iter().eq(seated()), "players", &|| {
        [format!("{:?}", row.players), format!("{:?}", seated().collect::<Vec<_>>())]
    })?;
    let plies = indices.len();
    is(row.plies as usize == plies, "plies", &|| [row.plies.to_string(), plies.to_string()])?;
    if row.speed_factor != 1.0 && !(spec.normalise && FACTORS.contains(&row.speed_factor)) {
        let reason = format!("`speed_factor` is {}, and limits may not be scaled so", row.speed_factor);
        return Err(RowFault { table: Table::Games, reason });
    }
    let mut plies = Vec::with_capacity(indices.len());
    for (ply, (index, search)) in indices.enumerate() {
        let wrong = |reason: String| RowFault { table: Table::Moves, reason };
        if usize::from(moves.ply[index]) != ply {
            return Err(wrong(format!("ply {ply} is missing or another is there twice")));
        }
        let search = search.map(|search| {
            let player = check_search(spec, &request.seats, &moves.searches, search, row.speed_factor)?;
            let unit = spec.players[player].config.algorithm.limit_unit;
            let spent = unit.spent(&moves.searches.counters(search));
            Ok((player, SearchClaim { spent, depth: u32::from(moves.searches.depth[search]) }))
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
    let claim = Claim { plies, payoffs: &row.payoffs, ending: &row.ending, seed: row.seed };
    referee.verify(request, &claim).map_err(|fault| RowFault {
        table: if fault.ply.is_some() { Table::Moves } else { Table::Games },
        reason: fault.to_string(),
    })
}

/// Checks what a search says of its player, its limit and itself; the answer is the player's number. It is looked for
/// among those who are `seated` first.
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
    // What is left on a clock changes from move to move.
    if found_kind != kind || (kind != LimitKind::ClockMs && found_value != value) {
        let found = format!("{} {found_value}", found_kind.name());
        return Err(format!("the limit is {found}, not {} {value}", kind.name()));
    }
    let score = searches.score[index];
    if !score.is_finite() {
        return Err(format!("the score is {score}"));
    }
    if searches.depth_nodes.get(index).len() != searches.depth_time_us.get(index).len() {
        return Err("`depth_nodes` and `depth_time_us` have different lengths".to_string());
    }
    Ok(number)
}

/// Checks the search of a probe against what was asked for, and then by the rules.
pub fn check_probe(
    spec: &Spec,
    referee: &Arena,
    players: &[usize],
    opening: &Opening,
    row: &ProbeRow,
) -> Result<(), String> {
    let ProbeRow { position, moves, decision: found } = row;
    if *position != opening.position.clone().unwrap_or_default() || *moves != opening.moves {
        return Err("the position is not the one that the spec asks for".to_string());
    }
    if usize::from(found.ply) != moves.split_ascii_whitespace().count() {
        return Err(format!("`ply` is {}, and the position has another number of moves", found.ply));
    }
    let search = found.search.as_ref().ok_or("there is no search")?;
    let plies: Plies = [found].into_iter().collect();
    let number = check_search(spec, players, &plies.searches, 0, 1.0)?;
    if players.get(usize::from(found.game)) != Some(&number) {
        return Err(format!("it is not the turn of `{}` to search", search.player));
    }
    let rules = referee.decision(opening).map_err(|error| error.to_string())?;
    if found.seat.map(usize::from) != Some(rules.seat) || u64::from(found.legal) != rules.legal {
        return Err(format!("seat {} has {} legal moves", rules.seat, rules.legal));
    }
    referee.verify_answer(opening, &found.mv).map_err(|fault| fault.to_string())
}
