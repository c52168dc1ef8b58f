//! `agon replay`: replays recorded games and compares them bit by bit.

use std::io::{self, Write};
use std::process::ExitCode;

use agon_analysis::{Difference, Replay, ReplayError, Selection, replay};
use agon_storage::location::Location;
use clap::Args;

use super::runs;
use crate::fail::{Outcome, UsageError};
use crate::number::{Threads, whole};
use crate::table::{print, write_sentence};

#[derive(Args)]
pub struct ReplayGames {
    /// Run id, name or unique prefix, or `latest`
    #[arg(value_name = "RUN", default_value = "latest")]
    run: String,
    /// Bout, or one of its games such as 12.1 [default: a sample of the run]
    #[arg(value_name = "BOUT[.GAME]", conflicts_with_all = ["games", "seed"])]
    bout: Option<String>,
    /// Number of sampled games, spread over the run
    #[arg(long, default_value_t = 20, value_parser = whole::<u64>("the number of games", 1, 10_000_000), allow_negative_numbers = true)]
    games: u64,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// Data folder, or an object store as s3://bucket/prefix
    #[arg(long, value_name = "LOCATION", default_value = "agon-data")]
    data: Location,
    #[command(flatten)]
    threads: Threads,
    /// Seed of the sample
    #[arg(long, default_value_t = 1, value_parser = whole::<u64>("the seed", 0, u64::MAX), allow_negative_numbers = true)]
    seed: u64,
}

impl ReplayGames {
    pub fn run(self) -> Outcome {
        let selection = match &self.bout {
            None => Selection::Sample { games: self.games, seed: self.seed },
            Some(text) => parse_selection(text)?,
        };
        let (dataset, run) = runs::open(&self.data, &self.run)?;
        let replay =
            replay(&dataset, &run, selection, self.threads.count()).map_err(|error| match error {
                ReplayError::Timed { .. } | ReplayError::NotRecorded { .. } => {
                    anyhow::Error::from(UsageError(error.to_string()))
                }
                error => error.into(),
            })?;
        print(self.json, &replay, |out| write_replay(&replay, out))?;
        Ok(if replay.difference.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// Parses `BOUT` or `BOUT.GAME`.
fn parse_selection(text: &str) -> Result<Selection, UsageError> {
    let (bout, game) = match text.split_once('.') {
        None => (text, None),
        Some((bout, game)) => (bout, Some(game)),
    };
    let selection =
        || Some(Selection::Bout { bout: bout.parse().ok()?, game: game.map(str::parse).transpose().ok()? });
    selection().ok_or_else(|| {
        UsageError(format!(
            "`{text}` is not a bout; give a bout such as `12`, or one of its games such as `12.1`"
        ))
    })
}

fn write_replay(replay: &Replay, out: &mut impl Write) -> io::Result<()> {
    let Replay { run, games, identical_games, moves, identical_moves, difference } = replay;
    let counts =
        format!("{identical_games} of {games} games and {identical_moves} of {moves} moves are identical");
    write_sentence(&format!("{run}: {counts}"), out)?;
    if let Some(Difference { bout, game, ply, column, recorded, replayed }) = difference {
        let ply = ply.map(|ply| format!(", ply {ply}")).unwrap_or_default();
        writeln!(out, "first difference: bout {bout}, game {game}{ply}: `{column}`")?;
        writeln!(out, "  recorded {recorded}")?;
        writeln!(out, "  replayed {replayed}")?;
    }
    Ok(())
}
