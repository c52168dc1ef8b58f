//! Export of the games of a run in the formats of other programs.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use agon_analysis::games::Recordings;
use agon_analysis::{Dataset, Query, Recording, Run};
use agon_arena::Spec;
use agon_arena::limit::scaled;
use agon_games::GameSpec;
use agon_games::exchange::{
    Format, GamePlayer, MoveValue, Ply, ScoreSheet, SearchSummary, UtcDateTime, Writer, names,
};
use agon_records::{GameRow, LimitKind, MoveRow};
use agon_search::{Limit, Proof};
use agon_storage::location::Location;
use anyhow::Context as _;

use super::game_name;
use crate::fail::{UsageError, note};
use crate::output::{is_stdout, write_output};

/// An export of games.
pub(super) struct Export<'a> {
    pub dataset: &'a Dataset,
    pub run: &'a Run,
    pub spec: &'a Spec,
    pub query: &'a Query,
    pub format: &'a str,
    pub limit: usize,
}

impl Export<'_> {
    /// Writes the games to a file, and reports their number.
    pub fn write_file(&self, path: &Path) -> anyhow::Result<()> {
        // Check the format before creating the file.
        parse_format(self.format, &self.spec.game)?;
        let written = write_output(path, |mut file| self.write(&mut file))?;
        if !is_stdout(path) {
            let games = if written == 1 { "game" } else { "games" };
            note(&format!("{written} {games} in {}", path.display()));
        }
        Ok(())
    }

    /// Writes at most `limit` games, and returns their number.
    pub fn write(&self, out: &mut impl Write) -> anyhow::Result<usize> {
        let Export { dataset, run, spec, query, format, limit } = *self;
        let writer = Writer::new(parse_format(format, &spec.game)?, &spec.game)?;
        let mut text = String::new();
        let mut written = 0;
        for recording in Recordings::new(dataset, run, query)?.take(limit) {
            let recording = recording?;
            let (bout, game) = (recording.game.bout, recording.game.game);
            let limits = limits(spec, &recording.game);
            let name = game_name(bout, game);
            let sheet = sheet(run, &recording, &limits, &name);
            text.clear();
            writer.write(&sheet, &mut text).with_context(|| {
                format!("bout {bout}, game {game} cannot be written; run `agon verify` for details")
            })?;
            out.write_all(text.as_bytes())?;
            written += 1;
        }
        Ok(written)
    }
}

/// Writes all games of a run to a file of PGN.
pub(in crate::commands) fn export_pgn(data: &Location, run: &str, path: &Path) -> anyhow::Result<()> {
    let dataset = Dataset::open(data)?;
    let run = dataset.run(run)?;
    let spec = run.spec()?;
    let query = Query::default();
    let export =
        Export { dataset: &dataset, run: &run, spec: &spec, query: &query, format: "pgn", limit: usize::MAX };
    export.write_file(path)
}

/// Parses the name of a format that the game has.
pub(in crate::commands) fn parse_format(name: &str, game: &GameSpec) -> Result<Format, UsageError> {
    let format = Format::ALL.into_iter().find(|format| format.name() == name).ok_or_else(|| {
        let known = names(Format::of(game.name()));
        UsageError(format!("there is no format `{name}`; {} has: {known}", game.name()))
    })?;
    Writer::new(format, game).map_err(|error| UsageError(error.to_string()))?;
    Ok(format)
}

/// The limit of a player in a game.
struct SeatLimit {
    limit: String,
    time_control: String,
}

/// Returns the limits of a game by seat, scaled by the speed factor of its machine.
fn limits(spec: &Spec, game: &GameRow) -> Vec<SeatLimit> {
    let of_name = |name: &String| match spec.players.iter().find(|player| player.name == *name) {
        Some(player) => {
            let limit = scaled(player.limit, game.speed_factor);
            SeatLimit { limit: limit_text(limit), time_control: time_control(limit) }
        }
        None => SeatLimit { limit: "?".to_string(), time_control: "?".to_string() },
    };
    game.players.iter().map(of_name).collect()
}

/// Returns the sheet of a recorded game.
fn sheet<'a>(
    run: &'a Run,
    recording: &'a Recording,
    limits: &'a [SeatLimit],
    round: &'a str,
) -> ScoreSheet<'a> {
    let Recording { game, moves } = recording;
    let seats = game.players.iter().zip(&game.payoffs).zip(limits).map(|((player, &payoff), limited)| {
        let SeatLimit { limit, time_control } = limited;
        GamePlayer { player, limit, time_control, payoff }
    });
    let played = recording.played();
    ScoreSheet {
        event: &run.id,
        round,
        started: UtcDateTime::from_unix_microseconds(game.started),
        seats: seats.collect(),
        position: recording.opening_position(),
        plies: moves[..played].iter().map(ply).collect(),
        ending: &game.ending,
        forfeit: game.ending == agon_arena::TIME_FORFEIT,
    }
}

fn ply(row: &MoveRow) -> Ply<'_> {
    let search = row.search.as_ref().map(|search| {
        let value = search.value();
        SearchSummary {
            value: match value.proof {
                Some(Proof::Win(plies)) => MoveValue::Win(plies),
                Some(Proof::Loss(plies)) => MoveValue::Loss(plies),
                Some(Proof::Draw(_) | Proof::Exact(_)) | None => MoveValue::Number(value.number),
            },
            depth: search.depth,
            nodes: search.counters.nodes,
            simulations: search.counters.simulations,
            time: Duration::from_micros(search.time_us),
        }
    });
    Ply { mv: &row.mv, search }
}

/// Formats a limit as on the command line.
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

/// Formats a limit as PGN's tag TimeControl, in seconds; time per move as cutechess writes it.
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
    fn formats_limits_for_calls_and_pgn() {
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
