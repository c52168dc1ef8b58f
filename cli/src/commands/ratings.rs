//! `agon ratings`: rates the players of runs, PGN files or result tables. The unit of evidence of a run is the bout, that of
//! PGN files and tables, which do not name bouts, the game.

mod csv;
pub mod document;
mod pgn;
pub mod report;
mod results;
pub mod sources;

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use agon_arena::spec::SpecPlayer;
use agon_stats::plackett_luce::DEFAULT_REPLICAS;
use agon_stats::pool::{self, Standing};
use agon_stats::tournament::{BoutCounts, Options, Resampling, TournamentError, TournamentRatings};
use agon_storage::location::Location;
use clap::{Args, ValueEnum};
use serde::Serialize;

use self::document::{RatedPool, Request, Scale, Skipped};
use self::sources::Reading;
use super::runs::{self, LoadedRun};
use crate::fail::{Outcome, UsageError, bail_usage};
use crate::number::{Threads, real, whole};
use crate::progress::Progress;
use crate::table::print;

#[derive(Args)]
pub struct Ratings {
    /// Runs by id, name or unique prefix, or `latest`; runs of one game are rated together [default: latest]
    #[arg(value_name = "RUN", conflicts_with_all = ["pgn", "csv"])]
    runs: Vec<String>,
    /// Player with a fixed rating: 0, or the number after the last =
    #[arg(long, value_name = "NAME[=ELO]", allow_hyphen_values = true)]
    anchor: Option<String>,
    /// Mean of the ratings [default: 0; of two players the second has 0]
    #[arg(long, value_name = "ELO", value_parser = real("the average", -100_000.0, 100_000.0), allow_negative_numbers = true, conflicts_with = "anchor")]
    average: Option<f64>,
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
    #[arg(long, value_name = "LOCATION", default_value = "agon-data", conflicts_with_all = ["pgn", "csv"])]
    data: Location,
    /// Do not model the advantage of the first seat (White)
    #[arg(long)]
    no_seat_advantage: bool,
    /// Prior: wins, and as many losses, added for each player against an average opponent
    #[arg(long, value_name = "GAMES", default_value_t = 0.0, value_parser = real("the prior", 0.0, 1e6), allow_negative_numbers = true)]
    prior: f64,
    /// Bootstrap replicas for the intervals of more than two seats; 0 for no intervals [default: 1000]
    #[arg(long, value_name = "N", conflicts_with_all = ["pgn", "csv"], value_parser = whole::<usize>("the number of replicas", 0, 1_000_000), allow_negative_numbers = true)]
    replicas: Option<usize>,
    /// Seed of the resampling
    #[arg(long, default_value_t = 1, conflicts_with_all = ["pgn", "csv"], value_parser = whole::<u64>("the seed", 0, u64::MAX), allow_negative_numbers = true)]
    seed: u64,
    #[command(flatten)]
    threads: Threads,
}

/// The largest pool: the fit solves equations in all ratings together.
const MOST_PLAYERS: usize = 2000;

/// The pool from which rating takes noticeable time.
const LARGE_POOL: usize = 200;

/// The attribute by which runs are rated separately.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum By {
    /// Games
    Game,
}

/// A function that rates a pool, and calls its second argument after each replica.
type RatePool<'a> = dyn Fn(&Options, &(dyn Fn() + Sync)) -> Result<TournamentRatings, TournamentError> + 'a;

/// The answer of `--by game`.
#[derive(Serialize)]
struct RatedGames {
    games: Vec<RatedPool>,
}

impl Ratings {
    pub fn run(self) -> Outcome {
        if !self.pgn.is_empty() || !self.csv.is_empty() {
            let document = self.rate_files()?;
            return print(self.json, &document, |out| report::write(&document, out));
        }
        let games = self.rate_runs()?;
        if let ([document], None) = (&games[..], self.by) {
            return print(self.json, document, |out| report::write(document, out));
        }
        let documents = RatedGames { games };
        print(self.json, &documents, |out| {
            documents.games.iter().enumerate().try_for_each(|(index, document)| {
                if index > 0 {
                    writeln!(out)?;
                }
                report::write(document, out)
            })
        })
    }

    /// Rates the results of files.
    fn rate_files(&self) -> anyhow::Result<RatedPool> {
        let mut reading = sources::read(&self.pgn, &self.csv)?;
        let left_out = reading.counts.remove_players_below(self.min_games);
        let players = reading.counts.players();
        self.check(&reading, players, left_out)?;
        let results = reading.counts.results();
        let skipped = Skipped { unfinished: reading.unfinished, malformed: reading.malformed, left_out };
        let played = |name: &str| reading.counts.has_games(name);
        self.rate(players, &played, &skipped, &|options, _| TournamentRatings::of_duels(&results, options))
    }

    /// Rates runs, the runs of one game together.
    fn rate_runs(&self) -> anyhow::Result<Vec<RatedPool>> {
        let asked = if self.runs.is_empty() { vec!["latest".to_string()] } else { self.runs.clone() };
        let runs = runs::load(&self.data, &asked, self.threads.count())?;
        if self.replicas.is_some() && runs.iter().all(|run| run.results.tally.seats() == Some(2)) {
            bail_usage!(
                "--replicas is for games of more than two seats; the intervals of two seats have a formula"
            );
        }
        let mut games: Vec<Vec<LoadedRun>> = Vec::new();
        for run in runs {
            let same =
                |runs: &&mut Vec<LoadedRun>| runs[0].spec.game.to_string() == run.spec.game.to_string();
            match games.iter_mut().find(same) {
                Some(runs) => runs.push(run),
                None => games.push(vec![run]),
            }
        }
        if let ([one, other, ..], None) = (&games[..], self.by) {
            bail_usage!(
                "{} plays {} and {} plays {}: ratings of different games are not comparable; --by game rates each game separately",
                one[0].run.id,
                one[0].spec.game,
                other[0].run.id,
                other[0].spec.game
            );
        }
        games.iter().map(|runs| self.rate_game(runs)).collect()
    }

    /// Rates runs of one game.
    fn rate_game(&self, runs: &[LoadedRun]) -> anyhow::Result<RatedPool> {
        let mut tally = BoutCounts::default();
        for run in runs {
            tally.merge(&run.results.tally)?;
        }
        let left_out = tally.remove_players_below(self.min_games);
        let records = tally.records();
        let names = tally.names().iter().zip(&records).filter(|(_, record)| record.games > 0);
        let names: Vec<&str> = names.map(|(name, _)| name.as_str()).collect();
        let summaries: Vec<_> = runs.iter().map(LoadedRun::summary).collect();
        if names.is_empty() {
            runs.iter().try_for_each(LoadedRun::check_played)?;
            bail_usage!("there is nothing to rate: no player has {} games", self.min_games);
        }
        let skipped = Skipped { unfinished: 0, malformed: 0, left_out };
        let played = |name: &str| names.contains(&name);
        let mut document = self.rate(names.len(), &played, &skipped, &|options, replica_done| {
            tally.rate(options, replica_done)
        })?;
        if let [one, other] = &document.players[..] {
            let number = |player: &Standing| tally.names().iter().position(|name| *name == player.name);
            let pairs = number(one).zip(number(other)).map(|(one, other)| tally.pairs(one, other).0);
            document.pairs = pairs.filter(|pairs| pairs.iter().sum::<u64>() > 0);
        }
        document.run = if let [run] = &summaries[..] { Some(run.run.clone()) } else { None };
        document.complete = summaries.iter().all(|run| run.complete);
        document.runs = summaries;
        document.game = Some(runs[0].spec.game.to_string());
        document.cautions.extend(changed_players(runs));
        Ok(document)
    }

    /// Rates a pool.
    fn rate(
        &self,
        players: usize,
        played: &dyn Fn(&str) -> bool,
        skipped: &Skipped,
        rate: &RatePool<'_>,
    ) -> anyhow::Result<RatedPool> {
        let scale = match (&self.anchor, self.average) {
            (Some(text), _) => {
                let (anchor, rating) = parse_anchor(text, played);
                Scale::Anchor(anchor, rating)
            }
            (None, Some(average)) => Scale::Mean(average),
            (None, None) => Scale::Difference,
        };
        let anchor = match &scale {
            Scale::Anchor(anchor, _) => Some(anchor.clone()),
            Scale::Mean(_) | Scale::Difference => None,
        };
        let progress = Progress::default();
        if players > LARGE_POOL {
            progress.announce(&format!("rating {players} players"));
        }
        let replicas = self.replicas.unwrap_or(DEFAULT_REPLICAS.get());
        let resampling = NonZeroUsize::new(replicas).map(|replicas| Resampling {
            replicas,
            seed: self.seed,
            threads: self.threads.count(),
        });
        let model = pool::Options { anchor, seat_advantage: !self.no_seat_advantage, prior: self.prior };
        let finished = AtomicUsize::new(0);
        let answer = rate(&Options { model, resampling }, &|| {
            let finished = finished.fetch_add(1, Ordering::Relaxed) + 1;
            progress.show(|| format!("{finished} of {replicas} replicas"));
        })?;
        let request = Request {
            scale,
            replicas,
            los: self.los,
            crosstable: self.crosstable,
            residuals: self.residuals,
        };
        Ok(RatedPool::new(&answer, &request, skipped))
    }

    /// Rejects pools without players, and pools that are too large.
    fn check(&self, reading: &Reading, players: usize, left_out: usize) -> Result<(), UsageError> {
        if players == 0 {
            let reason = match (reading.malformed, reading.unfinished, left_out) {
                (0, 0, 0) => "no games were found".to_string(),
                (0, 0, _) => format!("no player has {} games", self.min_games),
                (malformed, unfinished, _) => {
                    format!("{malformed} games are malformed and {unfinished} unfinished")
                }
            };
            bail_usage!("there is nothing to rate: {reason}");
        }
        if players > MOST_PLAYERS {
            bail_usage!(
                "{players} players are too many: at most {MOST_PLAYERS} are rated together; leave out those with few games by \
                 --min-games"
            );
        }
        Ok(())
    }
}

/// Warns of players whose configuration differs between runs.
fn changed_players(runs: &[LoadedRun]) -> Vec<String> {
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
                    "`{}` is configured differently in {} and {earlier}; both are rated as one player.",
                    player.name, run.run.id
                ));
            }
        }
    }
    cautions
}

/// Returns whether two players of a game differ in nothing but their names.
pub fn same_player(one: &SpecPlayer, other: &SpecPlayer) -> bool {
    one.config == other.config && one.limit == other.limit
}

/// Parses `NAME` or `NAME=ELO`; names may contain an equals sign.
fn parse_anchor(text: &str, played: impl Fn(&str) -> bool) -> (String, f64) {
    let split = text.rsplit_once('=').filter(|_| !played(text)).and_then(|(name, elo)| {
        let elo: f64 = elo.trim().parse().ok()?;
        (elo.abs() <= 100_000.0).then(|| (name.to_string(), elo))
    });
    split.unwrap_or_else(|| (text.to_string(), 0.0))
}
