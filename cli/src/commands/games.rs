//! `agon games`: lists the games of a run, shows one ply by ply, or exports them for other programs.

mod columns;
mod export;
mod list;
mod show;

use std::io::Write as _;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::process::ExitCode;

use agon_analysis::{DatasetError, GameResult, Query};
use agon_arena::Spec;
use agon_arena::spec::Plan;
use agon_games::schema::unknown;
use agon_storage::location::Location;
use clap::{Args, ValueEnum};

use super::runs;
use crate::fail::{Outcome, UsageError, bail_usage};
use crate::number::whole;
use crate::table::stdout;

use self::export::Export;
pub(super) use self::export::{export_pgn, limit_text, parse_format};

/// The default number of games in a table.
const LISTED: usize = 20;

#[derive(Args)]
pub struct Games {
    /// Run id, name or unique prefix, or `latest`
    #[arg(value_name = "RUN", default_value = "latest")]
    run: String,
    /// Show one game ply by ply, as in 12.1
    #[arg(long, value_name = "BOUT.GAME", conflicts_with_all = ["players", "winner", "result", "bout", "ending", "min_plies", "max_plies", "limit", "export"])]
    show: Option<String>,
    /// Only this ply of the shown game, or a range as in 10-19
    #[arg(long, value_name = "A[-B]", requires = "show")]
    plies: Option<String>,
    /// Only games of this player; repeat for games of all named players
    #[arg(long = "player", value_name = "NAME")]
    players: Vec<String>,
    /// Only games that this player won
    #[arg(long, value_name = "NAME")]
    winner: Option<String>,
    /// Only games with this result for the first --player
    #[arg(long, value_enum, requires = "players")]
    result: Option<ResultArg>,
    /// Maximum number of games [default: 20 in a table, all in JSON and exports]
    #[arg(long, value_name = "N", value_parser = whole::<usize>("the number of games", 1, u64::from(u32::MAX)), allow_negative_numbers = true)]
    limit: Option<usize>,
    /// Export the games: pgn (chess), pdn (checkers), sgf (go), or text (every game)
    #[arg(long, value_name = "FORMAT", conflicts_with = "json")]
    export: Option<String>,
    /// Write the export to a file instead of standard output (-)
    #[arg(long, value_name = "FILE", requires = "export")]
    output: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// Data folder, or an object store as s3://bucket/prefix
    #[arg(long, value_name = "LOCATION", default_value = "agon-data")]
    data: Location,
    /// Only this bout, or a range as in 10-19
    #[arg(long, value_name = "N[-M]")]
    bout: Option<String>,
    /// Only games whose ending contains this text, as in checkmate
    #[arg(long, value_name = "TEXT")]
    ending: Option<String>,
    /// Only games of at least N plies
    #[arg(long, value_name = "N", value_parser = whole::<u32>("the number of plies", 0, u64::from(u32::MAX)), allow_negative_numbers = true)]
    min_plies: Option<u32>,
    /// Only games of at most N plies
    #[arg(long, value_name = "N", value_parser = whole::<u32>("the number of plies", 0, u64::from(u32::MAX)), allow_negative_numbers = true)]
    max_plies: Option<u32>,
}

/// How a game ended for a player.
#[derive(Clone, Copy, ValueEnum)]
enum ResultArg {
    /// No seat got more, and at least one got less
    Win,
    /// All seats got the same
    Draw,
    /// At least one seat got more
    Loss,
}

impl Games {
    pub fn run(self) -> Outcome {
        let query = self.query()?;
        let (dataset, run) = runs::open_started(&self.data, &self.run)?;
        let spec = run.spec()?;
        if let Plan::Probe(_) = spec.plan {
            return Err(DatasetError::Probe { run: run.id }.into());
        }
        self.check_names(&spec)?;
        let mut out = stdout();
        if let Some(game) = &self.show {
            let game = parse_game(game)?;
            let plies = self.plies.as_deref().map(|text| parse_range(text, "plies")).transpose()?;
            show::show(&dataset, &run, game, plies, self.json, &mut out)?;
        } else if let Some(format) = &self.export {
            let limit = self.limit.unwrap_or(usize::MAX);
            let export = Export { dataset: &dataset, run: &run, spec: &spec, query: &query, format, limit };
            match &self.output {
                None => export.write(&mut out).map(|_| ())?,
                Some(file) => export.write_file(file)?,
            }
        } else if self.json {
            list::write_json(&dataset, &run, &query, self.limit.unwrap_or(usize::MAX), &mut out)?;
        } else {
            list::write_table(&dataset, &run, &query, self.limit.unwrap_or(LISTED), &mut out)?;
        }
        out.flush()?;
        Ok(ExitCode::SUCCESS)
    }

    fn query(&self) -> Result<Query, UsageError> {
        let bouts = self.bout.as_deref().map(|text| parse_range(text, "bouts")).transpose()?;
        let plies = (self.min_plies.unwrap_or(0), self.max_plies.unwrap_or(u32::MAX));
        if plies.0 > plies.1 {
            bail_usage!("--min-plies {} is larger than --max-plies {}", plies.0, plies.1);
        }
        Ok(Query {
            bouts,
            game: None,
            players: self.players.clone(),
            winner: self.winner.clone(),
            result: self.result.map(|result| match result {
                ResultArg::Win => GameResult::Win,
                ResultArg::Draw => GameResult::Draw,
                ResultArg::Loss => GameResult::Loss,
            }),
            ending: self.ending.clone(),
            plies: (self.min_plies.is_some() || self.max_plies.is_some()).then_some(plies.0..=plies.1),
        })
    }

    /// Checks that every named player is in the run.
    fn check_names(&self, spec: &Spec) -> Result<(), UsageError> {
        let known: Vec<&str> = spec.players.iter().map(|player| player.name.as_str()).collect();
        for name in self.players.iter().chain(&self.winner) {
            if !known.contains(&name.as_str()) {
                return Err(UsageError(unknown("the run", "player", name, known)));
            }
        }
        Ok(())
    }
}

/// Parses the bout and the number of a game, as in `12.1`.
fn parse_game(text: &str) -> Result<(u64, u16), UsageError> {
    let read = || {
        let (bout, game) = text.split_once('.')?;
        Some((bout.parse().ok()?, game.parse().ok()?))
    };
    read().ok_or_else(|| {
        UsageError(format!("`{text}` is not a game; write its bout and its number, as in 12.1"))
    })
}

/// Parses a number, or the first and the last of a range.
fn parse_range(text: &str, what: &str) -> Result<RangeInclusive<u64>, UsageError> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let range = first.parse().ok().zip(last.parse().ok()).filter(|(first, last): &(u64, u64)| first <= last);
    range.map(|(first, last)| first..=last).ok_or_else(|| {
        UsageError(format!(
            "`{text}` is not a range of {what}; write a number as in 12, or a range as in 10-19"
        ))
    })
}

/// Returns the name of a game within its run.
fn game_name(bout: u64, game: u16) -> String {
    format!("{bout}.{game}")
}
