//! `agon replay`: recorded games are played again and compared bit by bit.

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::process::ExitCode;

use agon_analysis::{Dataset, Difference, Replay, ReplayError, Selection, replay};
use agon_storage::location::Location;
use clap::Args;

use super::runs;
use crate::fail::{Outcome, WrongCall};
use crate::number::whole;
use crate::table::{write_json, write_sentence};

/// The arguments of `agon replay`.
#[derive(Args)]
pub struct ReplayGames {
    /// Run id, name or unique prefix, or `latest`
    #[arg(value_name = "RUN", default_value = "latest")]
    run: String,
    /// Bout, or one of its games as in 12.1 [default: a sample of the run]
    #[arg(value_name = "BOUT[.GAME]", conflicts_with_all = ["games", "seed"])]
    place: Option<String>,
    /// Number of sampled games, spread over the run
    #[arg(long, default_value_t = 20, value_parser = whole::<u64>("the number of games", 1, 10_000_000), allow_negative_numbers = true)]
    games: u64,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// Data folder, or an object store as s3://bucket/prefix
    #[arg(long, value_name = "PLACE", default_value = "agon-data")]
    data: Location,
    /// Games played at once [default: one per core]
    #[arg(long, value_parser = whole::<u16>("the number of threads", 1, 1024), allow_negative_numbers = true)]
    threads: Option<u16>,
    /// Seed of the sample
    #[arg(long, default_value_t = 1, value_parser = whole::<u64>("the seed", 0, u64::MAX), allow_negative_numbers = true)]
    seed: u64,
}

impl ReplayGames {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let selection = match &self.place {
            None => Selection::Sample { games: self.games, seed: self.seed },
            Some(text) => read_place(text)?,
        };
        let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let threads =
            self.threads.and_then(|threads| NonZeroUsize::new(usize::from(threads))).unwrap_or(cores);
        let dataset = Dataset::open(&self.data)?;
        let run = runs::find(&dataset, &self.run)?;
        let told = replay(&dataset, &run, selection, threads).map_err(|error| match error {
            // What was asked for cannot be had of this run.
            ReplayError::Timed { .. } | ReplayError::NotRecorded { .. } => {
                anyhow::Error::from(WrongCall(error.to_string()))
            }
            error => error.into(),
        })?;
        let mut out = io::stdout().lock();
        if self.json {
            write_json(&told, &mut out)?;
        } else {
            write_replay(&told, &mut out)?;
        }
        Ok(if told.difference.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn read_place(text: &str) -> Result<Selection, WrongCall> {
    let (bout, game) = match text.split_once('.') {
        None => (text, None),
        Some((bout, game)) => (bout, Some(game)),
    };
    let selection =
        || Some(Selection::Bout { bout: bout.parse().ok()?, game: game.map(str::parse).transpose().ok()? });
    selection().ok_or_else(|| {
        WrongCall(format!("`{text}` is no bout; write its number as in 12, or one game of it as in 12.1"))
    })
}

fn write_replay(told: &Replay, out: &mut impl Write) -> io::Result<()> {
    let Replay { run, games, identical_games, moves, identical_moves, difference } = told;
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
