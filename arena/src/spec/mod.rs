//! Spec files: one experiment as a user writes it, read in two steps: TOML text, then a validated type.
//!
//! No key is silently ignored. An error names the place in the text, what was found and what is allowed. Files that a
//! spec names are not opened here: whoever has them hands their text in, so that a spec means the same everywhere.

mod openings;
mod read;
mod read_tune;
pub mod tune;

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use agon_games::GameSpec;
use agon_games::schema::Problem;
use agon_search::Limit;
use toml::de::{DeTable, DeValue};

use crate::arena::Opening;
use crate::config::PlayerConfig;

pub use openings::{LARGEST_BOOK, Openings};
pub use tune::{Tune, Values};

/// A spec as it is handed around: its text and the texts of the files that it names.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SpecSource {
    /// The TOML.
    pub text: String,
    /// File contents by the names that the text uses.
    pub files: BTreeMap<String, String>,
}

/// Every problem of a rejected spec; at least one. Displays as a line for each.
#[derive(Clone, PartialEq, Debug)]
pub struct SpecError {
    /// The problems: those of the spec by line, then those of its files.
    pub problems: Vec<SpecProblem>,
}

/// One reason why a spec is rejected.
#[derive(Clone, PartialEq, Debug)]
pub struct SpecProblem {
    /// The file that it concerns; none for the spec itself.
    pub file: Option<String>,
    /// The line, counted from 1, where it is known.
    pub line: Option<usize>,
    /// A sentence with the remedy.
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

/// An experiment: who plays what, how long, how often.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The first part of the run's id.
    pub name: String,
    /// The game.
    pub game: GameSpec,
    /// Where all randomness comes from.
    pub seed: u64,
    /// Whether limits of time are scaled by the speed of whoever plays.
    pub normalise: bool,
    /// Where games start.
    pub openings: Openings,
    /// Who plays: those that are written, and behind them those that a tune adds.
    pub players: Vec<SpecPlayer>,
    /// What they do.
    pub plan: Plan,
}

/// A player of a spec.
#[derive(Clone, Debug)]
pub struct SpecPlayer {
    /// Its name, unlike any other's.
    pub name: String,
    /// What it is.
    pub config: PlayerConfig,
    /// What it may spend on a move.
    pub limit: Limit,
}

impl SpecPlayer {
    /// Whether it always plays the same in the same game, whatever the seed and the machine.
    pub fn is_deterministic(&self) -> bool {
        !self.config.algorithm.draws && matches!(self.limit, Limit::Nodes(_) | Limit::Depth(_))
    }

    /// Whether the same seed makes it play the same on any machine: its games can be played again bit by bit.
    pub fn is_repeatable(&self) -> bool {
        matches!(self.limit, Limit::Nodes(_) | Limit::Depth(_))
    }
}

/// What the players of a spec do.
#[derive(Clone, PartialEq, Debug)]
pub enum Plan {
    /// They meet in bouts.
    Tournament(Format),
    /// They search the same positions.
    Probe(Positions),
    /// One of them is tuned.
    Tune(Tune),
}

/// Who meets whom, and how often.
#[derive(Clone, PartialEq, Debug)]
pub enum Format {
    /// Everybody meets everybody.
    RoundRobin {
        /// Openings for each pairing.
        bouts: u64,
    },
    /// One player meets everybody.
    Gauntlet {
        /// Its number.
        hero: usize,
        /// Openings for each pairing.
        bouts: u64,
    },
    /// Two players meet until a sequential test decides.
    Sprt(SprtSettings),
}

/// The settings of a sequential test.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SprtSettings {
    /// Elo under the first and under the second hypothesis.
    pub bounds: [f64; 2],
    /// Whether these are normalised Elo.
    pub normalised: bool,
    /// How often the first hypothesis may be wrongly refused.
    pub alpha: f64,
    /// How often the second may.
    pub beta: f64,
    /// Bouts after which it ends undecided.
    pub max_bouts: u64,
}

/// The positions of a probe.
#[derive(Clone, PartialEq, Debug)]
pub enum Positions {
    /// From random games, each after a number of plies within a range.
    Random {
        /// How many.
        count: u64,
        /// The fewest and the most plies.
        plies: [u32; 2],
    },
    /// Given lines.
    Lines(Vec<Opening>),
    /// Each seat's turns in games that are played at random.
    Play {
        /// How many games.
        games: u64,
        /// How many turns of the first seat are searched in each.
        turns: u32,
        /// How many of its turns come before them.
        after: u32,
    },
}

impl Positions {
    /// How many positions in a row are of one game, and so no evidence apart from each other.
    pub fn together(&self) -> u64 {
        match self {
            Positions::Play { turns, .. } => u64::from(*turns).max(1),
            Positions::Random { .. } | Positions::Lines(_) => 1,
        }
    }
}

impl Spec {
    /// Reads a spec.
    pub fn parse(source: &SpecSource) -> Result<Spec, SpecError> {
        let table = parse_toml(&source.text)?;
        read::spec(table.get_ref(), source)
    }

    /// The tune, if it is one.
    pub fn tune(&self) -> Option<&Tune> {
        match &self.plan {
            Plan::Tune(tune) => Some(tune),
            _ => None,
        }
    }

    /// The players that have other values than the spec says, as they are with these. Precondition: the tune of the spec
    /// allows them.
    pub fn configured<'a>(
        &'a self,
        values: &'a [(usize, Values)],
    ) -> impl Iterator<Item = (usize, PlayerConfig)> + 'a {
        let tuned = values.iter().filter_map(|(player, values)| Some((*player, values, self.tune()?)));
        tuned.map(|(player, values, tune)| (player, tune.configure(&self.players[player].config, values)))
    }

    /// Such values by seat, as they stand in the row of a game; none where the spec is no tune.
    pub fn settings(&self, values: &[(usize, Values)], seats: &[usize]) -> Vec<String> {
        let Some(tune) = self.tune() else { return Vec::new() };
        let text = |seat: &usize| {
            let found = values.iter().find(|(player, _)| player == seat);
            found.map(|(_, values)| tune.text(values)).unwrap_or_default()
        };
        seats.iter().map(text).collect()
    }

    /// The first bout whose players are the same as in every later one, so that its result says how strong they are: what
    /// comes before is between candidates of a tune.
    pub fn first_rated_bout(&self) -> u64 {
        self.tune().map_or(0, |tune| tune.bouts)
    }

    /// Whether all its players are repeatable: then a result that comes late is as good as one that comes in time.
    pub fn is_repeatable(&self) -> bool {
        self.players.iter().all(SpecPlayer::is_repeatable)
    }

    /// Whether a player is limited by the clock on the wall, so that a machine that is kept from running is unfair to it.
    pub fn is_timed(&self) -> bool {
        self.players.iter().any(|player| matches!(player.limit, Limit::Wall(_) | Limit::Clock { .. }))
    }
}

impl SpecSource {
    /// The names of the files that the text needs, in any order.
    pub fn needed_files(text: &str) -> Result<Vec<String>, SpecError> {
        let table = parse_toml(text)?;
        let mut names = Vec::new();
        collect_files(table.get_ref(), &mut names);
        Ok(names)
    }

    /// A text that is the same for specs that say the same, whatever their comments, spaces and order of keys.
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
        SpecProblem { file: None, line, reason: printable(&problem.reason) }
    }
}

/// A sentence without the control characters of what it quotes: it is shown in terminals and kept in logs.
fn printable(reason: &str) -> String {
    let mut text = String::new();
    for c in reason.chars() {
        if c.is_control() { text.extend(c.escape_default()) } else { text.push(c) }
    }
    text
}

fn parse_toml(text: &str) -> Result<toml::Spanned<DeTable<'_>>, SpecError> {
    DeTable::parse(text).map_err(|error| {
        let reason = format!("this is not TOML: {}", error.message().trim_end().replace('\n', ", "));
        SpecError { problems: vec![SpecProblem::new(text, &Problem { span: error.span(), reason })] }
    })
}

/// Every `file = "..."` of a table that may have one.
fn collect_files(table: &DeTable<'_>, names: &mut Vec<String>) {
    let sources = [table.get("openings"), sub(table, "probe").and_then(|probe| probe.get("positions"))];
    for source in sources.into_iter().flatten() {
        if let DeValue::Table(inner) = source.get_ref()
            && let Some(name) = inner.get("file").and_then(|value| value.get_ref().as_str())
            && !names.iter().any(|known| known == name)
        {
            names.push(name.to_string());
        }
    }
}

fn sub<'t, 's>(table: &'t DeTable<'s>, name: &str) -> Option<&'t DeTable<'s>> {
    match table.get(name)?.get_ref() {
        DeValue::Table(inner) => Some(inner),
        _ => None,
    }
}

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
