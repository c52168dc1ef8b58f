//! `agon ratings`: the ratings of a pool, from PGN files or tables of results. There the unit of evidence is the game,
//! because neither says which games belong to one bout.

mod csv;
mod document;
mod pgn;
mod report;
mod results;
pub mod sources;

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

use agon_stats::pool::{DEFAULT_REPLICAS, Fit, Options, Uncertainty};
use clap::Args;

use self::document::Document;
use self::sources::Reading;
use crate::fail::{Outcome, WrongCall};
use crate::number::{real, whole};
use crate::progress::Progress;

/// The arguments of `agon ratings`.
#[derive(Args)]
#[command(
    after_help = "Examples: agon ratings --pgn games.pgn, agon ratings --csv results.csv --anchor pvs=2000 --los"
)]
pub struct Ratings {
    /// PGN files to rate; - is standard input
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pgn: Vec<PathBuf>,
    /// Tables to rate, with the columns white, black, wins, draws, losses; - is standard input
    #[arg(long, value_name = "FILE", num_args = 1..)]
    csv: Vec<PathBuf>,
    /// The player whose rating is given: 0, or the number after the last =
    #[arg(long, value_name = "NAME[=ELO]", allow_hyphen_values = true)]
    anchor: Option<String>,
    /// The mean of the ratings
    #[arg(long, value_name = "ELO", default_value_t = 0.0, value_parser = real("the average", -100_000.0, 100_000.0), allow_negative_numbers = true, conflicts_with = "anchor")]
    average: f64,
    /// Leave the advantage of the first seat (White) out of the model
    #[arg(long)]
    no_seat_advantage: bool,
    /// Resampled pools for the errors; 0 for errors by formula [default: 1000, or 0 above 200 players]
    #[arg(long, value_name = "N", value_parser = whole::<usize>("the number of replicas", 0, 1_000_000), allow_negative_numbers = true)]
    replicas: Option<usize>,
    /// The seed of the resampling
    #[arg(long, default_value_t = 1, value_parser = whole::<u64>("the seed", 0, u64::MAX), allow_negative_numbers = true)]
    seed: u64,
    /// Imaginary wins, and as many losses, of everybody against a player of the average rating
    #[arg(long, value_name = "GAMES", default_value_t = 0.0, value_parser = real("the prior", 0.0, 1e6), allow_negative_numbers = true)]
    prior: f64,
    /// Leave out players with fewer games
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u64>("the number of games", 1, u64::MAX), allow_negative_numbers = true)]
    min_games: u64,
    /// Show who did what against whom
    #[arg(long)]
    crosstable: bool,
    /// Show the likelihood of superiority of everybody over everybody
    #[arg(long)]
    los: bool,
    /// Show points made against points expected, the greatest surprise first
    #[arg(long)]
    residuals: bool,
    /// How many replicas at once [default: one a core]
    #[arg(long, value_parser = whole::<usize>("the number of threads", 1, 1024), allow_negative_numbers = true)]
    threads: Option<usize>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// The most players: the fit solves equations in all of them together.
const MOST_PLAYERS: usize = 2000;

/// Up to so many players errors are resampled by default: beyond, a thousand fits take minutes.
const RESAMPLED_PLAYERS: usize = 200;

impl Ratings {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let mut reading = sources::read(&self.pgn, &self.csv)?;
        let left_out = reading.tallies.keep_players_of(self.min_games);
        let players = reading.tallies.players();
        self.check(&reading, players, left_out)?;
        let results = reading.tallies.results();
        let (anchor, shift) = match &self.anchor {
            None => (None, self.average),
            Some(text) => read_anchor(text, |name| reading.tallies.has_games(name)),
        };
        let options =
            Options { anchor: anchor.clone(), seat_advantage: !self.no_seat_advantage, prior: self.prior };
        let progress = Progress::new();
        if players > RESAMPLED_PLAYERS {
            progress.announce(&format!("rating {players} players"));
        }
        let fit = Fit::new(&results, &options)?;
        let default = if players <= RESAMPLED_PLAYERS { DEFAULT_REPLICAS.get() } else { 0 };
        let replicas = self.replicas.unwrap_or(default);
        let uncertainty = self.uncertainty(&fit, replicas, &progress);
        let document = Document::new(
            &fit,
            &uncertainty,
            &document::Asked {
                shift,
                anchor,
                replicas,
                los: self.los,
                crosstable: self.crosstable,
                residuals: self.residuals,
            },
            &document::Skipped { unfinished: reading.unfinished, malformed: reading.malformed, left_out },
        );
        progress.wipe();
        let mut out = io::stdout().lock();
        if self.json {
            serde_json::to_writer(&mut out, &document)?;
            writeln!(out)?;
        } else {
            report::write(&document, &mut out)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Pools that nothing can be said of.
    fn check(&self, reading: &Reading, players: usize, left_out: usize) -> Result<(), WrongCall> {
        if players == 0 {
            let reason = match (reading.malformed, reading.unfinished, left_out) {
                (0, 0, 0) => "no games were found".to_string(),
                (0, 0, _) => format!("nobody has {} games", self.min_games),
                (malformed, unfinished, _) => {
                    format!("of the games {malformed} are malformed and {unfinished} unfinished")
                }
            };
            return Err(WrongCall(format!("there is nothing to rate: {reason}")));
        }
        if players > MOST_PLAYERS {
            return Err(WrongCall(format!(
                "there are {players} players; at most {MOST_PLAYERS} are rated together, and --min-games leaves out those \
                 with few games"
            )));
        }
        Ok(())
    }

    fn uncertainty(&self, fit: &Fit, replicas: usize, progress: &Progress) -> Uncertainty {
        let Some(count) = NonZeroUsize::new(replicas) else { return fit.sandwich() };
        let cores = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let threads = self.threads.and_then(NonZeroUsize::new).unwrap_or_else(cores);
        let made = AtomicUsize::new(0);
        fit.bootstrap_watched(count, self.seed, threads, &|| {
            let made = made.fetch_add(1, Ordering::Relaxed) + 1;
            progress.show(|| format!("{made} of {replicas} replicas"));
        })
    }
}

/// Reads `NAME` or `NAME=ELO`; names may hold an equals sign.
fn read_anchor(text: &str, played: impl Fn(&str) -> bool) -> (Option<String>, f64) {
    let split = text.rsplit_once('=').filter(|_| !played(text)).and_then(|(name, elo)| {
        let elo: f64 = elo.trim().parse().ok()?;
        (elo.abs() <= 100_000.0).then(|| (Some(name.to_string()), elo))
    });
    split.unwrap_or_else(|| (Some(text.to_string()), 0.0))
}
