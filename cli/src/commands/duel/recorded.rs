//! A duel as a recorded run: makes a spec of the options, which are those that users of fastchess and cutechess know, and
//! plays it as `agon run` does. The same call continues the run.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use agon_arena::engine::Command;
use agon_arena::{Spec, SpecSource};
use agon_games::GameSpec;
use agon_schedule::schedule::Schedule;
use agon_storage::location::Location;
use clap::{Args, ValueEnum};

use super::Duel;
use crate::commands::cluster::run::{DEFAULT_DATA, Session};
use crate::commands::cluster::spec_file::{SpecFile, read_text};
use crate::commands::cluster::storage::{Storage, TakeOver};
use crate::commands::games::{export_pgn, parse_format};
use crate::commands::player::{read_limit, read_player};
use crate::engines::EngineFlags;
use crate::fail::{Outcome, UsageError, bail_usage};
use crate::number::whole;
use crate::table::stdout;

/// The most games of a sequential test, unless --games says otherwise.
const MOST_TESTED: u64 = 40_000;

/// The options of a recorded run.
#[derive(Args)]
#[command(next_help_heading = "Recorded duels, as in `agon duel A B`")]
pub struct Recorded {
    /// An engine and its command, for use as a player; repeatable
    #[arg(long = "engine", value_name = "NAME=COMMAND")]
    engines: Vec<String>,
    /// Protocol of the engines [default: by game: uci for chess, gtp for go, otherwise agon]
    #[arg(long, value_enum)]
    protocol: Option<Protocol>,
    /// An option of all engines, or of one, as in Hash=64 or stockfish.Hash=64; repeatable
    #[arg(long = "option", value_name = "[ENGINE.]NAME=VALUE")]
    options: Vec<String>,
    /// The game [default: chess]
    #[arg(long)]
    game: Option<String>,
    /// Game clock: seconds, or minutes:seconds, and an increment
    #[arg(long, value_name = "TIME[+INCREMENT]", group = "limits")]
    tc: Option<String>,
    /// Seconds for each move
    #[arg(long, value_name = "SECONDS", group = "limits")]
    st: Option<String>,
    /// Nodes for each move
    #[arg(long, value_name = "N", group = "limits", value_parser = whole::<u64>("the number of nodes", 1, u64::MAX >> 1), allow_negative_numbers = true)]
    nodes: Option<u64>,
    /// Depth of each move
    #[arg(long, value_name = "N", group = "limits", value_parser = whole::<u32>("the depth", 1, 1000), allow_negative_numbers = true)]
    depth: Option<u32>,
    /// Stop when a sequential test has decided between two differences in normalised Elo; alpha and beta default to 0.05
    #[arg(long, value_name = "H0,H1[,ALPHA,BETA]", allow_hyphen_values = true)]
    sprt: Option<String>,
    /// Openings from a file instead of random plies: EPD, PGN, a Polyglot book, or lines of moves
    #[arg(long, value_name = "FILE", conflicts_with = "random_plies")]
    book: Option<PathBuf>,
    /// Plies of each opening in PGN or in a Polyglot book
    #[arg(long, value_name = "N", requires = "book", value_parser = whole::<u32>("the number of plies", 1, 1000), allow_negative_numbers = true)]
    book_plies: Option<u32>,
    /// Order of the openings of a book [default: sequential]
    #[arg(long, value_enum, requires = "book")]
    book_order: Option<BookOrder>,
    /// Bouts played at once [default: one per core]
    #[arg(long, value_name = "N", value_parser = whole::<u16>("the number of bouts", 1, 4096), allow_negative_numbers = true)]
    concurrency: Option<u16>,
    /// Write all games to a file in PGN when the run ends
    #[arg(long, value_name = "FILE")]
    pgn: Option<PathBuf>,
    /// A player loses whose last searches all had at most the negative of this score, as in score=6,moves=4; with both=true
    /// the opponent must agree
    #[arg(long, value_name = "RULE")]
    resign: Option<String>,
    /// A game is drawn in which the last searches of both players had scores this close to 0, as in score=0.1,moves=8,after=80
    #[arg(long, value_name = "RULE")]
    draw: Option<String>,
    /// A game is drawn after this many plies
    #[arg(long, value_name = "N", value_parser = whole::<u32>("the number of plies", 1, 1_000_000), allow_negative_numbers = true)]
    max_plies: Option<u32>,
    /// Accepted for users of other programs: an engine that crashes always loses the game and is started again
    #[arg(long)]
    recover: bool,
    /// Start a new run even if this duel was run before
    #[arg(long)]
    again: bool,
    /// Hide progress
    #[arg(long, short)]
    quiet: bool,
    /// Print the spec instead of playing
    #[arg(long)]
    print_spec: bool,
    /// Data folder, or an object store as s3://bucket/prefix [default: agon-data]
    #[arg(long, value_name = "LOCATION")]
    data: Option<Location>,
}

/// A protocol of engines.
#[derive(Clone, Copy, ValueEnum)]
enum Protocol {
    /// Universal Chess Interface
    Uci,
    /// Go Text Protocol
    Gtp,
    /// Agon's bot protocol
    Agon,
}

/// The order of the openings of a book.
#[derive(Clone, Copy, ValueEnum)]
enum BookOrder {
    /// As in the file
    Sequential,
    /// Shuffled by the seed
    Random,
}

/// Returns the name of a value as on the command line.
fn value_name(value: &impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_string()).unwrap_or_default()
}

impl Recorded {
    /// Returns the first option that was given.
    pub fn given(&self) -> Option<&'static str> {
        let Recorded { engines, protocol, options, game, tc, st, nodes, depth, sprt, book, .. } = self;
        let Recorded {
            concurrency,
            pgn,
            resign,
            draw,
            max_plies,
            recover,
            again,
            quiet,
            print_spec,
            data,
            ..
        } = self;
        let given = [
            ("engine", !engines.is_empty()),
            ("protocol", protocol.is_some()),
            ("option", !options.is_empty()),
            ("game", game.is_some()),
            ("tc", tc.is_some()),
            ("st", st.is_some()),
            ("nodes", nodes.is_some()),
            ("depth", depth.is_some()),
            ("sprt", sprt.is_some()),
            ("book", book.is_some()),
            ("concurrency", concurrency.is_some()),
            ("pgn", pgn.is_some()),
            ("resign", resign.is_some()),
            ("draw", draw.is_some()),
            ("max-plies", max_plies.is_some()),
            ("recover", *recover),
            ("again", *again),
            ("quiet", *quiet),
            ("print-spec", *print_spec),
            ("data", data.is_some()),
        ];
        given.iter().find(|(_, given)| *given).map(|(option, _)| *option)
    }
}

impl Duel {
    /// Plays a recorded run between the named players.
    pub(super) fn run_recorded(self) -> Outcome {
        if !self.players.is_empty() || !self.more.is_empty() {
            bail_usage!(
                "give the players of a recorded run as arguments, as in `agon duel pvs uct`, without --players"
            );
        }
        if self.threads.is_given() {
            bail_usage!("--threads is for a series without a record; a recorded run has --concurrency");
        }
        let game = GameSpec::parse(self.recorded.game.as_deref().unwrap_or("chess"))?;
        if self.recorded.pgn.is_some() {
            parse_format("pgn", &game)?;
        }
        let source = self.source(&game)?;
        let invalid = |error: &dyn std::fmt::Display| UsageError(format!("this duel: {error}"));
        let spec = Spec::parse(&source).map_err(|error| {
            let reasons: Vec<String> = error.problems.iter().map(|problem| problem.reason.clone()).collect();
            invalid(&reasons.join("\n"))
        })?;
        if self.recorded.print_spec {
            stdout().write_all(source.text.as_bytes())?;
            return Ok(ExitCode::SUCCESS);
        }
        Schedule::new(spec.clone()).map_err(|error| invalid(&error))?;
        let Recorded { concurrency, pgn, again, quiet, data, .. } = self.recorded;
        let data = data.map_or_else(|| DEFAULT_DATA.parse(), Ok).map_err(|error| invalid(&error))?;
        let session = Session {
            slots: concurrency,
            again,
            quiet,
            json: self.json,
            engines: EngineFlags::default(),
            storage: Storage { data: data.clone(), state: None },
            take_over: TakeOver::default(),
            command: "agon duel ...".to_string(),
        };
        let played = session.play(SpecFile { source, spec })?;
        if let Some(path) = &pgn {
            export_pgn(&data, &played.run, path)?;
        }
        Ok(played.code)
    }

    /// Writes the spec of the options.
    fn source(&self, game: &GameSpec) -> anyhow::Result<SpecSource> {
        let options = &self.recorded;
        let players = self.player_tables(game)?;
        let mut text = String::new();
        let names: Vec<String> = players.iter().map(|(name, _)| word(name)).collect();
        let mut name = names.join("-vs-");
        name.truncate(60);
        writeln!(text, "name = {}", quoted(name.trim_matches('-')))?;
        writeln!(text, "game = {}", quoted(options.game.as_deref().unwrap_or("chess")))?;
        writeln!(text, "seed = {}", self.seed)?;
        writeln!(text, "limit = {}", self.limit_table()?)?;
        let mut source = SpecSource::default();
        match &options.book {
            Some(path) => {
                let file = file_name(path)?;
                let mut book = format!("file = {}", quoted(&file));
                if let Some(plies) = options.book_plies {
                    write!(book, ", plies = {plies}")?;
                }
                if let Some(order) = options.book_order {
                    write!(book, ", order = {}", quoted(&value_name(&order)))?;
                }
                writeln!(text, "openings = {{ {book} }}")?;
                source.files.insert(file, read_text(path)?);
            }
            None => match self.random_plies.unwrap_or(4) {
                0 => {}
                plies => writeln!(text, "openings = {{ random_plies = {plies} }}")?,
            },
        }
        text.push_str("\n[tournament]\n");
        let seats = game.parameters().seats() as u64;
        match &options.sprt {
            Some(test) => {
                let bouts = self.games.unwrap_or(MOST_TESTED).div_ceil(seats);
                writeln!(text, "format = \"sprt\"\n{}\nmax_bouts = {bouts}", sprt_keys(test)?)?;
            }
            None => {
                let bouts = self.games.unwrap_or(20).div_ceil(seats);
                writeln!(text, "format = \"round-robin\"\nbouts = {bouts}")?;
            }
        }
        let rules = [("resign", &options.resign), ("draw", &options.draw)];
        let mut adjudication = String::new();
        for (key, rule) in rules.into_iter().filter_map(|(key, rule)| Some((key, rule.as_ref()?))) {
            writeln!(adjudication, "{key} = {}", table(key, rule)?)?;
        }
        if let Some(plies) = options.max_plies {
            writeln!(adjudication, "max_plies = {plies}")?;
        }
        if !adjudication.is_empty() {
            write!(text, "\n[adjudication]\n{adjudication}")?;
        }
        for (name, table) in players {
            write!(text, "\n[[player]]\nname = {}\n{table}\n", quoted(&name))?;
        }
        source.text = text;
        Ok(source)
    }

    /// Returns the name and the table of each player. Players of one name get numbers.
    fn player_tables(&self, game: &GameSpec) -> anyhow::Result<Vec<(String, String)>> {
        let mut engines = Vec::new();
        for text in &self.recorded.engines {
            let Some((name, command)) = text
                .split_once('=')
                .filter(|(name, command)| !name.trim().is_empty() && !command.trim().is_empty())
            else {
                bail_usage!(
                    "--engine {text}: give a name and a command, as in --engine stockfish=/usr/games/stockfish"
                );
            };
            if !self.what.iter().any(|player| player == name) {
                bail_usage!(
                    "the engine `{name}` does not play; name it among the players, as in `agon duel {name} ...`"
                );
            }
            engines.push((name, command));
        }
        let (mut players, mut bases) = (Vec::new(), Vec::new());
        for text in &self.what {
            let (base, table) = match engines.iter().find(|(name, _)| name == text) {
                Some((name, command)) => (name.to_string(), self.engine_table(game, name, command)?),
                None => {
                    let player = read_player(game, text.trim())?;
                    let search = format!("search = {{ algorithm = {} }}", quoted(text.trim()));
                    let table = if text.contains('=') { text.trim().to_string() } else { search };
                    (player.name, table)
                }
            };
            let same = bases.iter().filter(|earlier| **earlier == base).count();
            let name = if same == 0 { base.clone() } else { format!("{base}-{}", same + 1) };
            bases.push(base);
            players.push((name, table));
        }
        let is_used = |option: &&String| {
            let (name, _) = option.split_once('.').unwrap_or(("", option));
            engines.iter().any(|(engine, _)| name.is_empty() || name.contains('=') || *engine == name)
        };
        if let Some(option) = self.recorded.options.iter().find(|option| !is_used(option)) {
            bail_usage!(
                "--option {option}: no engine of this duel has that name; engines are named by --engine"
            );
        }
        Ok(players)
    }

    fn engine_table(&self, game: &GameSpec, name: &str, command: &str) -> anyhow::Result<String> {
        let protocol = self.recorded.protocol.unwrap_or(match game.name() {
            "chess" => Protocol::Uci,
            "go" => Protocol::Gtp,
            _ => Protocol::Agon,
        });
        let protocol = value_name(&protocol);
        let Some(Command { program, args, .. }) = Command::parse(command) else {
            bail_usage!("--engine {name}={command}: a quote is not closed");
        };
        let mut table = format!("protocol = {}, command = {}", quoted(&protocol), quoted(&program));
        if !args.is_empty() {
            let args: Vec<String> = args.iter().map(|arg| quoted(arg)).collect();
            write!(table, ", args = [{}]", args.join(", "))?;
        }
        let mut values = Vec::new();
        for option in &self.recorded.options {
            let Some((key, value)) = option.split_once('=') else {
                bail_usage!("--option {option}: give a name and a value, as in --option Hash=64");
            };
            match key.split_once('.') {
                Some((engine, key)) if engine == name => values.push((key, value)),
                Some(_) => {}
                None => values.push((key, value)),
            }
        }
        if !values.is_empty() {
            let values: Vec<String> = values
                .iter()
                .map(|(key, value)| format!("{} = {}", quoted(key), option_value(value)))
                .collect();
            write!(table, ", options = {{ {} }}", values.join(", "))?;
        }
        Ok(format!("engine = {{ {table} }}"))
    }

    /// Returns the limit as a table of a spec.
    fn limit_table(&self) -> Result<String, UsageError> {
        let Recorded { tc, st, nodes, depth, .. } = &self.recorded;
        if let Some(clock) = tc {
            let (time, increment) = clock.split_once('+').unwrap_or((clock, "0"));
            let (minutes, seconds) = time.split_once(':').unwrap_or(("0", time));
            let times = [minutes, seconds, increment].map(milliseconds);
            let [Some(minutes), Some(seconds), Some(increment)] = times else {
                bail_usage!(
                    "--tc {clock}: give seconds and an increment, as in 8+0.08 or 1:30+1; a clock has no number of moves"
                );
            };
            return Ok(format!("{{ clock_ms = {}, increment_ms = {increment} }}", 60 * minutes + seconds));
        }
        if let Some(seconds) = st {
            let Some(time) = milliseconds(seconds).filter(|time| *time > 0) else {
                bail_usage!("--st {seconds}: give seconds, at least 0.001");
            };
            return Ok(format!("{{ ms = {time} }}"));
        }
        if let Some(nodes) = nodes {
            return Ok(format!("{{ nodes = {nodes} }}"));
        }
        if let Some(depth) = depth {
            return Ok(format!("{{ depth = {depth} }}"));
        }
        let limit = self.limit.as_deref().unwrap_or("ms=50");
        read_limit(limit)?;
        table("limit", limit)
    }
}

/// Parses seconds; none if they are no number from 0 to a year.
fn milliseconds(seconds: &str) -> Option<u64> {
    let seconds: f64 = seconds.trim().parse().ok()?;
    (0.0..=3.2e7).contains(&seconds).then(|| (seconds * 1000.0).round() as u64)
}

/// Formats `key=value,key=value` as a table of a spec.
fn table(option: &str, text: &str) -> Result<String, UsageError> {
    let mut entries = Vec::new();
    for entry in text.split(',') {
        let Some((key, value)) = entry.split_once('=') else {
            bail_usage!("--{option} {text}: give keys and values, as in score=6,moves=4");
        };
        let is_value = value == "true" || value == "false" || value.trim().parse::<f64>().is_ok();
        if !is_value || !key.trim().bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_') {
            bail_usage!("--{option} {text}: `{entry}` is no key with a number");
        }
        entries.push(format!("{} = {}", key.trim(), value.trim()));
    }
    Ok(format!("{{ {} }}", entries.join(", ")))
}

/// Formats the settings of a sequential test as keys of a spec.
fn sprt_keys(text: &str) -> Result<String, UsageError> {
    let numbers: Option<Vec<f64>> = text.split(',').map(|number| number.trim().parse().ok()).collect();
    match numbers.as_deref() {
        Some([low, high]) => Ok(format!("bounds = [{low:?}, {high:?}]")),
        Some([low, high, alpha, beta]) => {
            Ok(format!("bounds = [{low:?}, {high:?}]\nalpha = {alpha:?}\nbeta = {beta:?}"))
        }
        _ => {
            bail_usage!("--sprt {text}: give two differences, the smaller first, as in 0,5, or 0,5,0.05,0.05")
        }
    }
}

/// Returns the value of an engine's option as TOML: a whole number, true, false, or a text.
fn option_value(text: &str) -> String {
    if text == "true" || text == "false" || text.parse::<i64>().is_ok() {
        text.to_string()
    } else {
        quoted(text)
    }
}

/// Formats a text as a TOML string.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

/// Returns the letters, digits and hyphens of a name as a part of a run's name.
fn word(name: &str) -> String {
    let letters = name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-');
    letters.map(|c| c.to_ascii_lowercase()).collect::<String>().trim_matches('-').to_string()
}

fn file_name(path: &Path) -> Result<String, UsageError> {
    let name = path.file_name().and_then(|name| name.to_str());
    name.map(str::to_string).ok_or_else(|| UsageError(format!("--book {}: give a file", path.display())))
}
