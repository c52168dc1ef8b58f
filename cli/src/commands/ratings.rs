//! `agon ratings`: the ratings of the players of runs, of PGN files or of tables of results. Of a run the unit of evidence is
//! the bout; PGN files and tables do not say which games belong to one, and there it is the game.

mod csv;
pub mod document;
mod pgn;
pub mod report;
mod results;
pub mod sources;

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

use agon_arena::spec::SpecPlayer;
use agon_stats::pool::{self, DEFAULT_REPLICAS};
use agon_stats::tournament::{Answer, AnswerError, Errors, Options, Tally};
use agon_storage::location::Location;
use clap::{Args, ValueEnum};
use serde::Serialize;

use self::document::{Document, Skipped};
use self::sources::Reading;
use super::runs::{self, Counted};
use crate::fail::{Outcome, WrongCall};
use crate::number::{real, whole};
use crate::progress::Progress;
use crate::table::write_json;

/// The arguments of `agon ratings`.
#[derive(Args)]
pub struct Ratings {
    /// Runs by id, name or unique prefix, or `latest`; runs of one game are rated together [default: latest]
    #[arg(value_name = "RUN", conflicts_with_all = ["pgn", "csv"])]
    runs: Vec<String>,
    /// Player with a fixed rating: 0, or the number after the last =
    #[arg(long, value_name = "NAME[=ELO]", allow_hyphen_values = true)]
    anchor: Option<String>,
    /// Mean of the ratings
    #[arg(long, value_name = "ELO", default_value_t = 0.0, value_parser = real("the average", -100_000.0, 100_000.0), allow_negative_numbers = true, conflicts_with = "anchor")]
    average: f64,
    /// Show each player's results against each opponent
    #[arg(long)]
    crosstable: bool,
    /// Show the likelihood of superiority for each pair of players
    #[arg(long)]
    los: bool,
    /// Show scored against expected points, largest deviation first
    #[arg(long)]
    residuals: bool,
    /// PGN files to rate instead of runs; - is standard input
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pgn: Vec<PathBuf>,
    /// Tables to rate instead of runs, with columns white, black, wins, draws, losses; - is standard input
    #[arg(long, value_name = "FILE", num_args = 1..)]
    csv: Vec<PathBuf>,
    /// Rate each game separately
    #[arg(long, value_enum, conflicts_with_all = ["pgn", "csv"])]
    by: Option<By>,
    /// Leave out players with fewer games
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u64>("the number of games", 1, u64::MAX), allow_negative_numbers = true)]
    min_games: u64,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// Data folder, or an object store as s3://bucket/prefix
    #[arg(long, value_name = "PLACE", default_value = "agon-data", conflicts_with_all = ["pgn", "csv"])]
    data: Location,
    /// Do not model the advantage of the first seat (White)
    #[arg(long)]
    no_seat_advantage: bool,
    /// Prior: wins, and as many losses, added for each player against an average opponent
    #[arg(long, value_name = "GAMES", default_value_t = 0.0, value_parser = real("the prior", 0.0, 1e6), allow_negative_numbers = true)]
    prior: f64,
    /// Bootstrap replicas for the errors; 0 for errors by formula [default: 1000, or 0 above 200 players]
    #[arg(long, value_name = "N", value_parser = whole::<usize>("the number of replicas", 0, 1_000_000), allow_negative_numbers = true)]
    replicas: Option<usize>,
    /// Seed of the resampling
    #[arg(long, default_value_t = 1, value_parser = whole::<u64>("the seed", 0, u64::MAX), allow_negative_numbers = true)]
    seed: u64,
    /// Threads [default: one per core]
    #[arg(long, value_parser = whole::<usize>("the number of threads", 1, 1024), allow_negative_numbers = true)]
    threads: Option<usize>,
}

/// The most players: the fit solves equations in all of them together.
const MOST_PLAYERS: usize = 2000;

/// Up to so many players errors are resampled by default: beyond, a thousand fits take minutes.
const RESAMPLED_PLAYERS: usize = 200;

/// What is rated apart.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum By {
    /// Games
    Game,
}

/// Rates something by options, with a call after each replica.
type Rate<'a> = dyn Fn(&Options, &(dyn Fn() + Sync)) -> Result<Answer, AnswerError> + 'a;

/// What is rated, each game by itself.
#[derive(Serialize)]
struct Documents {
    games: Vec<Document>,
}

impl Ratings {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let mut out = io::stdout().lock();
        if self.pgn.is_empty() && self.csv.is_empty() {
            let documents = self.of_runs()?;
            if self.by.is_some() && self.json {
                write_json(&Documents { games: documents }, &mut out)?;
                return Ok(ExitCode::SUCCESS);
            }
            for (index, document) in documents.iter().enumerate() {
                if index > 0 {
                    writeln!(out)?;
                }
                self.write(document, &mut out)?;
            }
        } else {
            let document = self.of_files()?;
            self.write(&document, &mut out)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn write(&self, document: &Document, out: &mut impl Write) -> anyhow::Result<()> {
        if self.json {
            serde_json::to_writer(&mut *out, document)?;
            writeln!(out)?;
        } else {
            report::write(document, out)?;
        }
        Ok(())
    }

    /// Rates what files hold.
    fn of_files(&self) -> anyhow::Result<Document> {
        let mut reading = sources::read(&self.pgn, &self.csv)?;
        let left_out = reading.tallies.keep_players_of(self.min_games);
        let players = reading.tallies.players();
        self.check(&reading, players, left_out)?;
        let results = reading.tallies.results();
        let skipped = Skipped { unfinished: reading.unfinished, malformed: reading.malformed, left_out };
        let played = |name: &str| reading.tallies.has_games(name);
        self.rated(players, &played, &skipped, &|options, made_one| {
            Answer::of_duels(&results, options, made_one)
        })
    }

    /// Rates runs, those of one game together.
    fn of_runs(&self) -> anyhow::Result<Vec<Document>> {
        let asked = if self.runs.is_empty() { vec!["latest".to_string()] } else { self.runs.clone() };
        let runs = runs::read(&self.data, &asked, self.threads())?;
        let mut games: Vec<Vec<Counted>> = Vec::new();
        for run in runs {
            let same = |runs: &&mut Vec<Counted>| runs[0].spec.game.to_string() == run.spec.game.to_string();
            match games.iter_mut().find(same) {
                Some(runs) => runs.push(run),
                None => games.push(vec![run]),
            }
        }
        if let ([one, other, ..], None) = (&games[..], self.by) {
            return Err(WrongCall(format!(
                "{} plays {} and {} plays {}: ratings of different games do not compare; --by game rates each by itself",
                one[0].run.id, one[0].spec.game, other[0].run.id, other[0].spec.game
            ))
            .into());
        }
        games.iter().map(|runs| self.of_game(runs)).collect()
    }

    /// Rates runs of one game.
    fn of_game(&self, runs: &[Counted]) -> anyhow::Result<Document> {
        let mut tally = Tally::default();
        for run in runs {
            tally.merge(&run.results.tally)?;
        }
        let left_out = tally.keep_players_of(self.min_games);
        let records = tally.records();
        let names = tally.names().iter().zip(&records).filter(|(_, record)| record.games > 0);
        let names: Vec<&str> = names.map(|(name, _)| name.as_str()).collect();
        let told: Vec<_> = runs.iter().map(Counted::told).collect();
        if names.is_empty() {
            runs.iter().try_for_each(Counted::check_played)?;
            let reason = format!("nobody has {} games", self.min_games);
            return Err(WrongCall(format!("there is nothing to rate: {reason}")).into());
        }
        let skipped = Skipped { unfinished: 0, malformed: 0, left_out };
        let played = |name: &str| names.contains(&name);
        let mut document =
            self.rated(names.len(), &played, &skipped, &|options, made_one| tally.answer(options, made_one))?;
        document.run = if let [run] = &told[..] { Some(run.run.clone()) } else { None };
        document.complete = told.iter().all(|run| run.complete);
        document.runs = told;
        document.game = Some(runs[0].spec.game.to_string());
        document.cautions.extend(changed_players(runs));
        Ok(document)
    }

    /// Rates what `answer` knows of.
    fn rated(
        &self,
        players: usize,
        played: &dyn Fn(&str) -> bool,
        skipped: &Skipped,
        answer: &Rate<'_>,
    ) -> anyhow::Result<Document> {
        let (anchor, shift) = match &self.anchor {
            None => (None, self.average),
            Some(text) => read_anchor(text, played),
        };
        let progress = Progress::default();
        if players > RESAMPLED_PLAYERS {
            progress.announce(&format!("rating {players} players"));
        }
        let default = if players <= RESAMPLED_PLAYERS { DEFAULT_REPLICAS.get() } else { 0 };
        let replicas = self.replicas.unwrap_or(default);
        let errors = match NonZeroUsize::new(replicas) {
            None => Errors::Sandwich,
            Some(replicas) => Errors::Bootstrap { replicas, seed: self.seed, threads: self.threads() },
        };
        let model = pool::Options {
            anchor: anchor.clone(),
            seat_advantage: !self.no_seat_advantage,
            prior: self.prior,
        };
        let made = AtomicUsize::new(0);
        let answer = answer(&Options { model, errors }, &|| {
            let made = made.fetch_add(1, Ordering::Relaxed) + 1;
            progress.show(|| format!("{made} of {replicas} replicas"));
        })?;
        let asked = document::Asked {
            shift,
            anchor,
            replicas,
            los: self.los,
            crosstable: self.crosstable,
            residuals: self.residuals,
        };
        Ok(Document::new(&answer, &asked, skipped))
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

    fn threads(&self) -> NonZeroUsize {
        self.threads.and_then(NonZeroUsize::new).unwrap_or_else(runs::cores)
    }
}

/// Players of one name that are not configured alike in all runs.
fn changed_players(runs: &[Counted]) -> Vec<String> {
    let mut cautions = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        for player in &run.spec.players {
            let before = runs[..index].iter().find_map(|earlier| {
                let mut players = earlier.spec.players.iter();
                players.find(|known| known.name == player.name).map(|known| (known, &earlier.run.id))
            });
            if let Some((known, earlier)) = before
                && !same_player(known, player)
            {
                cautions.push(format!(
                    "`{}` is not configured in {} as it is in {earlier}; they are rated as one.",
                    player.name, run.run.id
                ));
            }
        }
    }
    cautions
}

/// Whether two players of a game are the same but for their names.
pub fn same_player(one: &SpecPlayer, other: &SpecPlayer) -> bool {
    one.config.algorithm.name == other.config.algorithm.name
        && one.config.settings == other.config.settings
        && one.config.weights == other.config.weights
        && one.limit == other.limit
}

/// Reads `NAME` or `NAME=ELO`; names may hold an equals sign.
fn read_anchor(text: &str, played: impl Fn(&str) -> bool) -> (Option<String>, f64) {
    let split = text.rsplit_once('=').filter(|_| !played(text)).and_then(|(name, elo)| {
        let elo: f64 = elo.trim().parse().ok()?;
        (elo.abs() <= 100_000.0).then(|| (Some(name.to_string()), elo))
    });
    split.unwrap_or_else(|| (Some(text.to_string()), 0.0))
}
