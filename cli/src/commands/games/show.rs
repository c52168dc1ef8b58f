//! One game ply by ply: player, search and board.

use std::io::{self, Write};
use std::ops::RangeInclusive;

use agon_analysis::board_view::{BoardView, game_boards};
use agon_analysis::format::value_text;
use agon_analysis::games::Recordings;
use agon_analysis::{Dataset, Query, Recording, Run};
use agon_games::GameSpec;
use agon_games::exchange::UtcDateTime;
use agon_records::{GameRow, MoveRow, SearchRow};
use serde::Serialize;

use super::columns::MoveColumns;
use super::list::payoffs_text;
use crate::fail::{UsageError, bail_usage};
use crate::table::{write_facts, write_json, write_sentence};

#[derive(Serialize)]
struct Document<'a> {
    run: &'a str,
    game: &'a GameRow,
    /// The position before the first shown ply.
    start: BoardView,
    moves: Vec<Step<'a>>,
}

/// A ply with the position after it.
#[derive(Serialize)]
struct Step<'a> {
    #[serde(flatten)]
    columns: MoveColumns<'a>,
    /// Whether the move was played; false if the clock had run out.
    played: bool,
    #[serde(flatten)]
    after: BoardView,
}

/// Shows a game of a run, or some plies of it.
pub(super) fn show(
    dataset: &Dataset,
    run: &Run,
    (bout, game): (u64, u16),
    plies: Option<RangeInclusive<u64>>,
    json: bool,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    if run.voided.contains(&bout) {
        bail_usage!("bout {bout} was voided; choose another");
    }
    let query = Query { bouts: Some(bout..=bout), game: Some(game), ..Query::default() };
    let found = Recordings::new(dataset, run, &query)?.next().transpose()?;
    let recording = found
        .ok_or_else(|| UsageError(format!("bout {bout}, game {game} is not in the dataset of {}", run.id)))?;
    let last = recording.moves.len().saturating_sub(1) as u64;
    let plies = plies.unwrap_or(0..=last);
    if *plies.start() > last {
        bail_usage!("the game has no ply {}; its last is {last}", plies.start());
    }
    let row = &recording.game;
    let spec = GameSpec::parse(&format!("{}:{}", row.rules, row.variant))?;
    let boards = game_boards(&recording, plies.clone())?;
    let shown = recording.moves.iter().enumerate().filter(|(index, _)| plies.contains(&(*index as u64)));
    let moves = shown.zip(boards.after).map(|((index, row), after)| Step {
        columns: MoveColumns(row),
        played: index < recording.played(),
        after,
    });
    let document = Document { run: &run.id, game: row, start: boards.start, moves: moves.collect() };
    if json {
        write_json(&document, out)?;
    } else {
        draw(&document, &spec, &recording, out)?;
    }
    Ok(())
}

fn draw(
    document: &Document<'_>,
    spec: &GameSpec,
    recording: &Recording,
    out: &mut impl Write,
) -> io::Result<()> {
    let game = &recording.game;
    writeln!(out, "{}, bout {}, game {}: {spec}\n", document.run, game.bout, game.game)?;
    write_head(game, out)?;
    writeln!(out, "\n{}\n", document.start.board)?;
    for step in &document.moves {
        write_ply(step.columns.0, game, step.played, out)?;
        writeln!(out, "\n{}\n", step.after.board)?;
    }
    Ok(())
}

fn write_head(game: &GameRow, out: &mut impl Write) -> io::Result<()> {
    let started = UtcDateTime::from_unix_microseconds(game.started);
    let who = |(seat, name): (usize, &String)| {
        let settings = game.settings.get(seat).filter(|settings| !settings.is_empty());
        let text = settings.map_or_else(|| name.clone(), |settings| format!("{name} with {settings}"));
        (format!("seat {seat}"), text)
    };
    let mut facts: Vec<(String, String)> = game.players.iter().enumerate().map(who).collect();
    let payoffs = payoffs_text(&game.payoffs);
    facts.push(("ending".to_string(), format!("{} after {} plies", game.ending, game.plies)));
    if !game.detail.is_empty() {
        facts.push(("detail".to_string(), game.detail.clone()));
    }
    facts.push(("payoffs".to_string(), payoffs));
    let opening = if game.opening.is_empty() { "none" } else { &game.opening };
    facts.push(("opening".to_string(), opening.to_string()));
    facts.push(("played".to_string(), format!("{started} by {}, agon {}", game.worker, game.build)));
    let facts: Vec<(&str, String)> = facts.iter().map(|(name, text)| (name.as_str(), text.clone())).collect();
    write_facts(&facts, out)
}

fn write_ply(row: &MoveRow, game: &GameRow, played: bool, out: &mut impl Write) -> io::Result<()> {
    let who = match row.seat {
        None => "chance".to_string(),
        Some(seat) => match game.players.get(usize::from(seat)) {
            Some(name) => format!("seat {seat}, {name}"),
            None => format!("seat {seat}"),
        },
    };
    let late = if played { "" } else { " (not played: the clock had run out)" };
    write_sentence(&format!("ply {}: {who}: {}{late}", row.ply, row.mv), out)?;
    match &row.search {
        Some(search) => {
            write_sentence(&search_text(search, row.legal), out)?;
            if !search.pv.is_empty() {
                write_facts(&[("line", search.pv.clone())], out)?;
            }
            Ok(())
        }
        None if row.seat.is_some() => writeln!(out, "opening"),
        None => Ok(()),
    }
}

/// Describes a search.
fn search_text(search: &SearchRow, legal: u16) -> String {
    let value = value_text(search.value());
    let simulations = match search.counters.simulations {
        0 => String::new(),
        simulations => format!(", {simulations} simulations"),
    };
    format!(
        "{value}, depth {}{simulations}, {} nodes, {:.1} ms of {}={}, {legal} legal",
        search.depth,
        search.counters.nodes,
        search.time_us as f64 / 1000.0,
        search.limit_kind.name(),
        search.limit_value,
    )
}
