//! Games of a run in the formats of other programs, one after the other as they are read.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use agon_analysis::games::Recordings;
use agon_analysis::{Dataset, Query, Recording, Run};
use agon_arena::Spec;
use agon_arena::limit::scaled;
use agon_games::GameSpec;
use agon_games::exchange::{Format, Moment, Ply, SeatSheet, Sheet, Thought, Worth, Writer, names};
use agon_records::{GameRow, LimitKind, MoveRow};
use agon_search::{Limit, Proof};
use anyhow::Context as _;

use super::place_name;
use crate::fail::WrongCall;

/// Writes games to a file and says how many.
pub(super) fn to_file(
    dataset: &Dataset,
    run: &Run,
    spec: &Spec,
    query: &Query,
    format: &str,
    limit: usize,
    path: &Path,
) -> anyhow::Result<()> {
    // A call that is wrong leaves no file behind.
    read_format(format, &spec.game)?;
    let cannot = || format!("{} cannot be written", path.display());
    let file = File::create(path).with_context(cannot)?;
    let mut out = BufWriter::with_capacity(1 << 16, file);
    let written = export(dataset, run, spec, query, format, limit, &mut out)?;
    out.flush().with_context(cannot)?;
    let games = if written == 1 { "game" } else { "games" };
    // Where standard error cannot be written, there is nobody left to tell.
    let _ = writeln!(std::io::stderr(), "{written} {games} in {}", path.display());
    Ok(())
}

/// Writes games, at most `limit` of them, and returns how many.
pub(super) fn export(
    dataset: &Dataset,
    run: &Run,
    spec: &Spec,
    query: &Query,
    format: &str,
    limit: usize,
    out: &mut impl Write,
) -> anyhow::Result<usize> {
    let writer = Writer::new(read_format(format, &spec.game)?, &spec.game)?;
    let mut text = String::new();
    let mut written = 0;
    for recording in Recordings::new(dataset, run, query)?.take(limit) {
        let recording = recording?;
        let (bout, game) = (recording.game.bout, recording.game.game);
        let limits = limits(spec, &recording.game);
        text.clear();
        writer.write(&sheet(run, &recording, &limits, &place_name(bout, game)), &mut text).with_context(
            || format!("bout {bout}, game {game} cannot be written; `agon verify` says more"),
        )?;
        out.write_all(text.as_bytes())?;
        written += 1;
    }
    Ok(written)
}

/// The format of this name, which the game must have.
fn read_format(name: &str, game: &GameSpec) -> Result<Format, WrongCall> {
    let format = Format::ALL.into_iter().find(|format| format.name() == name).ok_or_else(|| {
        let known = names(Format::of(game.name()));
        WrongCall(format!("there is no format `{name}`; {} has: {known}", game.name()))
    })?;
    Writer::new(format, game).map_err(|error| WrongCall(error.to_string()))?;
    Ok(format)
}

/// What limited a player in a game, in the words of the formats.
struct Limited {
    limit: String,
    time_control: String,
}

/// The limits of a game by seat, as they were for the machine that played it.
fn limits(spec: &Spec, game: &GameRow) -> Vec<Limited> {
    let of_name = |name: &String| match spec.players.iter().find(|player| player.name == *name) {
        Some(player) => {
            let limit = scaled(player.limit, game.speed_factor);
            Limited { limit: limit_text(limit), time_control: time_control(limit) }
        }
        None => Limited { limit: "?".to_string(), time_control: "?".to_string() },
    };
    game.players.iter().map(of_name).collect()
}

/// A recorded game as the formats want it.
fn sheet<'a>(run: &'a Run, recording: &'a Recording, limits: &'a [Limited], round: &'a str) -> Sheet<'a> {
    let Recording { game, moves } = recording;
    let seats = game.players.iter().zip(&game.payoffs).zip(limits).map(|((player, &payoff), limited)| {
        let Limited { limit, time_control } = limited;
        SeatSheet { player, limit, time_control, payoff }
    });
    let played = recording.played();
    Sheet {
        event: &run.id,
        round,
        started: Moment::from_unix_microseconds(game.started),
        seats: seats.collect(),
        position: recording.opening_position(),
        plies: moves[..played].iter().map(ply).collect(),
        ending: &game.ending,
        forfeit: played < moves.len(),
    }
}

fn ply(row: &MoveRow) -> Ply<'_> {
    let thought = row.search.as_ref().map(|search| {
        let value = search.value();
        Thought {
            value: match value.proof {
                Some(Proof::Win(plies)) => Worth::Win(plies),
                Some(Proof::Loss(plies)) => Worth::Loss(plies),
                None => Worth::Number(value.number),
            },
            depth: search.depth,
            nodes: search.counters.nodes,
            simulations: search.counters.simulations,
            time: Duration::from_micros(search.time_us),
        }
    });
    Ply { mv: &row.mv, thought }
}

/// A limit as a call has it.
pub(in crate::commands) fn limit_text(limit: Limit) -> String {
    let (kind, value) = LimitKind::of(limit);
    let increment = match limit {
        Limit::Clock { increment, .. } if !increment.is_zero() => {
            format!(",increment_ms={}", increment.as_millis())
        }
        _ => String::new(),
    };
    format!("{}={value}{increment}", kind.name())
}

/// A limit as PGN's tag TimeControl has it, in seconds; time for a move as cutechess writes it.
fn time_control(limit: Limit) -> String {
    match limit {
        Limit::Wall(time) | Limit::Cpu(time) => format!("{}/move", time.as_secs_f64()),
        Limit::Clock { remaining, increment } if increment.is_zero() => remaining.as_secs_f64().to_string(),
        Limit::Clock { remaining, increment } => {
            format!("{}+{}", remaining.as_secs_f64(), increment.as_secs_f64())
        }
        Limit::Nodes(_) | Limit::Depth(_) => "-".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_in_the_words_of_calls_and_of_pgn() {
        for (text, control) in [
            ("ms=50", "0.05/move"),
            ("cpu_ms=2000", "2/move"),
            ("nodes=2000", "-"),
            ("depth=4", "-"),
            ("clock_ms=10000", "10"),
            ("clock_ms=60000,increment_ms=100", "60+0.1"),
        ] {
            let limit = agon_arena::parse_limit(text).unwrap();
            assert_eq!((limit_text(limit).as_str(), time_control(limit).as_str()), (text, control));
        }
    }
}
