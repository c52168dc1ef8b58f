//! Specs: experiments written in TOML and parsed into a validated type.
//!
//! Unknown keys are errors, and errors name the line, the found value and the allowed ones. No file is opened here: the caller
//! supplies the contents of the files that a spec names, so that a spec means the same on every machine.

mod openings;
mod read;
mod read_adjudication;
mod read_trials;
mod read_tune;
pub mod tune;

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use agon_games::GameSpec;
use agon_games::printable::printable;
use agon_games::schema::Problem;
use agon_search::Limit;
use toml::de::{DeTable, DeValue};

use crate::adjudication::Adjudication;
use crate::bout::{Bout, GameRequest, Opening};
use crate::config::PlayerConfig;
use crate::engine::{EngineConfig, Program, Protocol};
use crate::limit::scaled;

pub use openings::{LARGEST_BOOK, Openings};
pub use tune::{Tune, Values};

/// The text of a spec with the texts of the files that it names.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SpecSource {
    /// The TOML.
    pub text: String,
    /// File contents by the names that the text uses.
    pub files: BTreeMap<String, String>,
}

/// The problems of a rejected spec, at least one. Displays as one line per problem.
#[derive(Clone, PartialEq, Debug)]
pub struct SpecError {
    /// The problems of the spec by line, then those of its files.
    pub problems: Vec<SpecProblem>,
}

/// A problem of a spec.
#[derive(Clone, PartialEq, Debug)]
pub struct SpecProblem {
    /// The file; none for the spec itself.
    pub file: Option<String>,
    /// The line, counted from 1, if known.
    pub line: Option<usize>,
    /// The problem and its remedy.
    pub reason: String,
}

impl fmt::Display for SpecProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}, ")?;
        }
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        f.write_str(&self.reason)
    }
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.problems.iter().map(ToString::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for SpecError {}

/// An experiment: players, game, limits and schedule.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The name, which is the first part of run ids.
    pub name: String,
    /// The game.
    pub game: GameSpec,
    /// The seed of all randomness.
    pub seed: u64,
    /// Whether time limits are multiplied by a factor for the speed of the worker, see [`crate::limit::speed_factor`].
    pub normalise: bool,
    /// The openings of the games.
    pub openings: Openings,
    /// When games end before the rules end them.
    pub adjudication: Adjudication,
    /// The players of the spec, followed by those that a tuning run adds.
    pub players: Vec<SpecPlayer>,
    /// The kind of experiment, with its settings.
    pub plan: Plan,
}

/// A player of a spec.
#[derive(Clone, Debug)]
pub struct SpecPlayer {
    /// The name, which is unique.
    pub name: String,
    /// The configuration.
    pub config: PlayerConfig,
    /// The limit for each move.
    pub limit: Limit,
}

impl SpecPlayer {
    /// Returns whether the player's moves depend on neither the seed nor the machine.
    pub fn is_deterministic(&self) -> bool {
        self.config.search().is_none_or(|search| !search.algorithm.draws) && self.is_repeatable()
    }

    /// Returns whether the player's searches have scores in evaluation units.
    pub fn has_scores(&self) -> bool {
        match &self.config {
            PlayerConfig::Search(search) => search.algorithm.evaluates && search.algorithm.has_depth(),
            PlayerConfig::Engine(engine) => engine.protocol != Protocol::Gtp,
        }
    }

    /// Returns whether the same seed gives the same moves on any machine: with a limit of nodes or depth, built-in searches and
    /// the engines of a spec that says so.
    pub fn is_repeatable(&self) -> bool {
        !self.has_time_limit() && self.config.engine().is_none_or(|engine| engine.deterministic)
    }

    /// Returns whether time limits the player's moves.
    pub fn has_time_limit(&self) -> bool {
        !matches!(self.limit, Limit::Nodes(_) | Limit::Depth(_))
    }
}

/// The kind of experiment, with its settings.
#[derive(Clone, PartialEq, Debug)]
pub enum Plan {
    /// The players play bouts.
    Tournament(Format),
    /// The players search the same positions.
    Probe(Positions),
    /// One player is tuned.
    Tune(Tune),
}

/// The format of a tournament.
#[derive(Clone, PartialEq, Debug)]
pub enum Format {
    /// Everybody plays everybody.
    RoundRobin {
        /// The number of bouts of each pairing, one for each opening.
        bouts: u64,
    },
    /// One player plays everybody.
    Gauntlet {
        /// The number of that player.
        hero: usize,
        /// The number of bouts of each pairing, one for each opening.
        bouts: u64,
    },
    /// Two players play until a sequential test decides.
    Sprt(SprtSettings),
}

/// The settings of a sequential test.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SprtSettings {
    /// The Elo difference under H0 and under H1.
    pub bounds: [f64; 2],
    /// Whether the differences are in normalised Elo.
    pub normalised: bool,
    /// The probability of wrongly rejecting H0.
    pub alpha: f64,
    /// The probability of wrongly rejecting H1.
    pub beta: f64,
    /// The number of bouts after which the test ends undecided.
    pub max_bouts: u64,
}

/// The positions of a probe.
#[derive(Clone, PartialEq, Debug)]
pub enum Positions {
    /// Positions from random games.
    Random {
        /// The number of positions.
        count: u64,
        /// The least and the greatest number of plies before a position.
        plies: [u32; 2],
    },
    /// The positions after given lines.
    Lines(Vec<Opening>),
    /// Turns of a player in recorded games.
    Recorded {
        /// The moves before each turn; the turns of one game are consecutive.
        lines: Vec<Opening>,
        /// The number of searched turns in each game.
        turns: u32,
    },
    /// Turns of the first seat in random games.
    Play {
        /// The number of games.
        games: u64,
        /// The number of searched turns in each game.
        turns: u32,
        /// The number of earlier turns that are skipped.
        after: u32,
    },
}

impl Positions {
    /// Returns the number of consecutive positions from one game, which are not independent.
    pub fn positions_per_game(&self) -> u64 {
        match self {
            Positions::Play { turns, .. } | Positions::Recorded { turns, .. } => u64::from(*turns).max(1),
            Positions::Random { .. } | Positions::Lines(_) => 1,
        }
    }
}

impl Spec {
    /// Parses a spec.
    pub fn parse(source: &SpecSource) -> Result<Spec, SpecError> {
        let table = parse_toml(&source.text)?;
        read::spec(table.get_ref(), source)
    }

    /// Returns the settings of a tuning run.
    pub fn tune(&self) -> Option<&Tune> {
        match &self.plan {
            Plan::Tune(tune) => Some(tune),
            _ => None,
        }
    }

    /// Returns the requests for the games of a bout, with time limits multiplied by `factor`.
    pub fn games<'a>(&self, bout: &'a Bout, factor: f64) -> impl Iterator<Item = GameRequest> + use<'a> {
        let limits = self.players.iter().map(|player| scaled(player.limit, factor)).collect();
        let margins = self.players.iter().map(|player| player.config.margin()).collect();
        bout.games(self.seed, limits, margins, self.adjudication)
    }

    /// Returns the engines.
    pub fn engines(&self) -> impl Iterator<Item = &EngineConfig> {
        self.players.iter().filter_map(|player| player.config.engine())
    }

    /// Returns the names of the engines that a worker must have, possibly several times.
    pub fn engine_names(&self) -> impl Iterator<Item = &str> {
        let is_named = |engine: &&EngineConfig| matches!(engine.program, Program::Named(_));
        self.engines().filter(is_named).map(EngineConfig::name)
    }

    /// Returns the first engine that the spec starts by a command, which only the machine of its author may run.
    pub fn engine_command(&self) -> Option<&EngineConfig> {
        self.engines().find(|engine| matches!(engine.program, Program::Command(_)))
    }

    /// Returns the configurations of the players with tuned values. Precondition: the values are within the bounds of the
    /// tuning run, see [`Tune::allows`].
    pub fn configured_players<'a>(
        &'a self,
        values: &'a [(usize, Values)],
    ) -> impl Iterator<Item = (usize, PlayerConfig)> + 'a {
        let tuned = values.iter().filter_map(|(player, values)| Some((*player, values, self.tune()?)));
        tuned.map(|(player, values, tune)| (player, tune.configure(&self.players[player].config, values)))
    }

    /// Formats the tuned values of each player of a game, for its row. `seated` are the players by seat. Returns an empty list
    /// unless the run is a tuning run.
    pub fn settings(&self, values: &[(usize, Values)], seated: &[usize]) -> Vec<String> {
        let Some(tune) = self.tune() else { return Vec::new() };
        let text = |player: &usize| {
            let tuned = values.iter().find(|(tuned, _)| tuned == player);
            tuned.map(|(_, values)| tune.text(values)).unwrap_or_default()
        };
        seated.iter().map(text).collect()
    }

    /// Returns whether a bout between these players counts for ratings. In a tuning run those of the validation do, because the
    /// players change before.
    pub fn is_rated(&self, players: &[usize]) -> bool {
        self.tune().is_none_or(|tune| players.iter().any(|player| *player >= tune.roles.tuned))
    }

    /// Returns whether all players are repeatable, so that a late result is as good as a timely one.
    pub fn is_repeatable(&self) -> bool {
        self.players.iter().all(SpecPlayer::is_repeatable)
    }

    /// Returns whether a player has a limit of wall time or a game clock, which a throttled machine makes unfair.
    pub fn is_timed(&self) -> bool {
        self.players.iter().any(|player| matches!(player.limit, Limit::Wall(_) | Limit::Clock { .. }))
    }
}

impl SpecSource {
    /// Returns the names of the files that a spec needs.
    pub fn needed_files(text: &str) -> Result<Vec<String>, SpecError> {
        let table = parse_toml(text)?;
        let mut names = Vec::new();
        collect_files(table.get_ref(), &mut names);
        Ok(names)
    }

    /// Returns the text that the digest covers. It does not depend on comments, spaces and the order of keys.
    pub fn canonical(&self) -> Result<String, SpecError> {
        let table = parse_toml(&self.text)?;
        let mut text = String::new();
        write_table(table.get_ref(), &mut text);
        for (name, content) in &self.files {
            let _ = write!(text, "\n{name:?} {content:?}");
        }
        Ok(text)
    }
}

impl SpecProblem {
    fn new(text: &str, problem: &Problem) -> SpecProblem {
        let line = problem.place(text).map(|(line, _)| line);
        SpecProblem { file: None, line, reason: printable(&problem.reason).into_owned() }
    }
}

fn parse_toml(text: &str) -> Result<toml::Spanned<DeTable<'_>>, SpecError> {
    DeTable::parse(text).map_err(|error| {
        let reason = format!("this is not TOML: {}", error.message().trim_end().replace('\n', ", "));
        SpecError { problems: vec![SpecProblem::new(text, &Problem { span: error.span(), reason })] }
    })
}

/// Collects the names of files: the values of the key `file` in the tables that may have it.
fn collect_files(table: &DeTable<'_>, names: &mut Vec<String>) {
    let sources = [table.get("openings"), subtable(table, "probe").and_then(|probe| probe.get("positions"))];
    for source in sources.into_iter().flatten() {
        if let DeValue::Table(inner) = source.get_ref()
            && let Some(name) = inner.get("file").and_then(|value| value.get_ref().as_str())
            && !names.iter().any(|known| known == name)
        {
            names.push(name.to_string());
        }
    }
    let imported = subtable(table, "tune").and_then(|tune| tune.get("import"));
    names.extend(imported.and_then(|value| value.get_ref().as_str()).map(str::to_string));
}

fn subtable<'t, 's>(table: &'t DeTable<'s>, name: &str) -> Option<&'t DeTable<'s>> {
    match table.get(name)?.get_ref() {
        DeValue::Table(inner) => Some(inner),
        _ => None,
    }
}

/// Writes a table in canonical form, with sorted keys.
fn write_table(table: &DeTable<'_>, out: &mut String) {
    let mut entries: Vec<_> = table.iter().map(|(key, value)| (key.get_ref(), value.get_ref())).collect();
    entries.sort_by_key(|(key, _)| *key);
    out.push('{');
    for (key, value) in entries {
        let _ = write!(out, "{key:?}:");
        write_value(value, out);
        out.push(',');
    }
    out.push('}');
}

fn write_value(value: &DeValue<'_>, out: &mut String) {
    match value {
        DeValue::String(text) => {
            let _ = write!(out, "{text:?}");
        }
        DeValue::Integer(number) => {
            // The digits are without the prefix of their radix.
            let _ = write!(out, "{}:{}", number.radix(), number.as_str());
        }
        DeValue::Float(number) => out.push_str(number.as_str()),
        DeValue::Boolean(flag) => {
            let _ = write!(out, "{flag}");
        }
        DeValue::Datetime(date) => {
            let _ = write!(out, "{date}");
        }
        DeValue::Array(items) => {
            out.push('[');
            for item in items {
                write_value(item.get_ref(), out);
                out.push(',');
            }
            out.push(']');
        }
        DeValue::Table(table) => write_table(table, out),
    }
}
