//! One game ply by ply: who moved, what was thought, and the board after it.

use std::io::{self, Write};
use std::ops::RangeInclusive;

use agon_analysis::games::Recordings;
use agon_analysis::{Dataset, Query, Recording, Run};
use agon_games::exchange::Moment;
use agon_games::{AnyGame, GameSpec};
use agon_records::{GameRow, MoveRow, SearchColumns};
use agon_search::Proof;
use anyhow::Context as _;
use serde::Serialize;

use super::columns::{GameColumns, MoveColumns};
use super::export::{opening_position, played};
use super::list::payoffs_text;
use crate::fail::WrongCall;
use crate::table::{signed, write_facts, write_sentence};

#[derive(Serialize)]
struct Document<'a> {
    run: &'a str,
    game: GameColumns<'a>,
    /// Before the first ply that is shown.
    start: Sight,
    moves: Vec<Step<'a>>,
}

/// A position as `agon show` has it.
#[derive(Serialize)]
struct Sight {
    board: String,
    position: String,
}

/// A ply, and what is on the board after it.
#[derive(Serialize)]
struct Step<'a> {
    #[serde(skip)]
    row: &'a MoveRow,
    #[serde(flatten)]
    columns: MoveColumns<'a>,
    /// Not so where the clock ran out before.
    played: bool,
    #[serde(flatten)]
    after: Sight,
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
        return Err(WrongCall(format!("bout {bout} was voided and does not count; choose another")).into());
    }
    let query = Query { bouts: Some(bout..=bout), game: Some(game), ..Query::default() };
    let found = Recordings::new(dataset, run, &query)?.next().transpose()?;
    let recording = found
        .ok_or_else(|| WrongCall(format!("bout {bout}, game {game} is not in the dataset of {}", run.id)))?;
    let last = recording.moves.len().saturating_sub(1) as u64;
    let plies = plies.unwrap_or(0..=last);
    if *plies.start() > last {
        return Err(WrongCall(format!("the game has no ply {}; its last is {last}", plies.start())).into());
    }
    let row = &recording.game;
    let spec = GameSpec::parse(&format!("{}:{}", row.rules, row.variant))?;
    let document = follow(&spec, run, &recording, plies)
        .with_context(|| format!("bout {bout}, game {game} cannot be played; `agon verify` says more"))?;
    if json {
        serde_json::to_writer(&mut *out, &document)?;
        writeln!(out)?;
    } else {
        draw(&document, &spec, &recording, out)?;
    }
    Ok(())
}

/// Plays the game and looks at every position of it that is asked for.
fn follow<'a>(
    spec: &GameSpec,
    run: &'a Run,
    recording: &'a Recording,
    plies: RangeInclusive<u64>,
) -> anyhow::Result<Document<'a>> {
    let Recording { game, moves } = recording;
    // What is wrong is the dataset, not the call: the errors of the rules lose their types.
    let mut position =
        spec.start(opening_position(&game.opening)).map_err(|error| anyhow::anyhow!("{error}"))?;
    let played = played(recording);
    let mut start = None;
    let mut steps = Vec::new();
    for (index, row) in moves.iter().enumerate() {
        let shown = plies.contains(&(index as u64));
        if shown {
            start.get_or_insert_with(|| look(&*position));
        }
        if index < played {
            position.play(index + 1, &row.mv).map_err(|error| anyhow::anyhow!("{error}"))?;
        }
        if shown {
            steps.push(Step {
                row,
                columns: MoveColumns::from(row),
                played: index < played,
                after: look(&*position),
            });
        }
    }
    Ok(Document {
        run: &run.id,
        game: GameColumns::from(game),
        start: start.unwrap_or_else(|| look(&*position)),
        moves: steps,
    })
}

fn look(position: &dyn AnyGame) -> Sight {
    Sight { board: position.board(), position: position.position() }
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
        write_ply(step.row, game, step.played, out)?;
        writeln!(out, "\n{}\n", step.after.board)?;
    }
    Ok(())
}

fn write_head(game: &GameRow, out: &mut impl Write) -> io::Result<()> {
    let started = Moment::from_unix_microseconds(game.started);
    let mut facts: Vec<(String, String)> =
        game.players.iter().enumerate().map(|(seat, name)| (format!("seat {seat}"), name.clone())).collect();
    let payoffs = payoffs_text(&game.payoffs);
    facts.push(("ending".to_string(), format!("{} after {} plies", game.ending, game.plies)));
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
            write_sentence(&thought(search, row.legal), out)?;
            if !search.pv.is_empty() {
                write_facts(&[("line", search.pv.clone())], out)?;
            }
            Ok(())
        }
        None if row.seat.is_some() => writeln!(out, "opening"),
        None => Ok(()),
    }
}

/// What was thought, in a sentence.
fn thought(search: &SearchColumns, legal: u16) -> String {
    let value = search.value();
    let proof = match value.proof {
        Some(Proof::Win(plies)) => format!("won in {plies} plies"),
        Some(Proof::Loss(plies)) => format!("lost in {plies} plies"),
        None => format!("value {}", signed(value.number, 3)),
    };
    let simulations = match search.simulations {
        0 => String::new(),
        simulations => format!(", {simulations} simulations"),
    };
    format!(
        "{proof}, depth {}{simulations}, {} nodes, {:.1} ms of {}={}, {legal} legal",
        search.depth,
        search.nodes,
        search.time_us as f64 / 1000.0,
        search.limit_kind.name(),
        search.limit_value,
    )
}
