//! The configuration of an engine: a player that is a program of its own.
//!
//! A spec names the program, or gives its command. What starts it and speaks to it is in `agon-worker`; which options an engine
//! has is known only after it has started.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use agon_games::choices;
use agon_games::schema::{Choice, ConfigError, Input};
use agon_search::Limit;
use toml::de::DeValue;

use crate::section::{Found, Section, Toml};

const KEYS: &[&str] = &[
    "protocol",
    "name",
    "command",
    "args",
    "options",
    "env",
    "directory",
    "grace_ms",
    "start_ms",
    "hang_ms",
];

/// The protocol of an engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// The Universal Chess Interface.
    Uci,
    /// The Go Text Protocol, version 2.
    Gtp,
    /// Agon's bot protocol: a JSON object a line.
    Agon,
}

choices!(Protocol { Uci = "uci", Gtp = "gtp", Agon = "agon" });

impl Protocol {
    /// Returns the games that the protocol can play; none stands for all.
    pub fn games(self) -> Option<&'static [&'static str]> {
        match self {
            Protocol::Uci => Some(&["chess"]),
            Protocol::Gtp => Some(&["go", "othello"]),
            Protocol::Agon => None,
        }
    }
}

/// A command that starts an engine.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Command {
    /// The program: a path, or a name in `PATH`.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its environment, besides that of the worker.
    pub env: BTreeMap<String, String>,
    /// Its working directory; that of the worker if there is none.
    pub directory: Option<String>,
}

impl Command {
    /// Splits a command line at spaces. Quotes, single or double, keep spaces. Returns none without a program, and for an open
    /// quote.
    pub fn parse(line: &str) -> Option<Command> {
        let mut words: Vec<String> = Vec::new();
        let (mut word, mut quote) = (None::<String>, None);
        for c in line.chars() {
            match quote {
                Some(open) if c == open => quote = None,
                Some(_) => word.get_or_insert_default().push(c),
                None if c == '"' || c == '\'' => {
                    quote = Some(c);
                    word.get_or_insert_default();
                }
                None if c.is_whitespace() => words.extend(word.take()),
                None => word.get_or_insert_default().push(c),
            }
        }
        words.extend(word);
        let mut words = words.into_iter();
        let program = words.next().filter(|program| quote.is_none() && !program.is_empty())?;
        Some(Command { program, args: words.collect(), ..Command::default() })
    }
}

/// The program of an engine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Program {
    /// A name that the worker maps to a command.
    Named(String),
    /// A command, for specs that run on the machine of their author.
    Command(Command),
}

/// The value of an option.
#[derive(Clone, PartialEq, Debug)]
pub enum OptionValue {
    /// True or false.
    Flag(bool),
    /// A whole number.
    Whole(i64),
    /// Another number.
    Number(f64),
    /// A text.
    Text(String),
}

impl OptionValue {
    fn read(value: &DeValue<'_>) -> Option<OptionValue> {
        match value {
            DeValue::Boolean(flag) => Some(OptionValue::Flag(*flag)),
            DeValue::Integer(number) => {
                i64::from_str_radix(number.as_str(), number.radix()).ok().map(OptionValue::Whole)
            }
            DeValue::Float(_) => Toml(value).number().map(OptionValue::Number),
            DeValue::String(text) if !text.contains(['\n', '\r']) => {
                Some(OptionValue::Text(text.to_string()))
            }
            _ => None,
        }
    }

    fn from_number(number: f64) -> OptionValue {
        if number.fract() == 0.0 { OptionValue::Whole(number as i64) } else { OptionValue::Number(number) }
    }

    fn number(&self) -> Option<f64> {
        match self {
            OptionValue::Whole(number) => Some(*number as f64),
            OptionValue::Number(number) => Some(*number),
            OptionValue::Flag(_) | OptionValue::Text(_) => None,
        }
    }

    fn as_toml(&self) -> String {
        match self {
            OptionValue::Text(text) => quoted(text),
            other => other.to_string(),
        }
    }
}

/// Displays as engines read it: `true`, `16`, `0.5` or the text.
impl fmt::Display for OptionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptionValue::Flag(flag) => write!(f, "{flag}"),
            OptionValue::Whole(number) => write!(f, "{number}"),
            OptionValue::Number(number) => write!(f, "{number}"),
            OptionValue::Text(text) => f.write_str(text),
        }
    }
}

/// The options of an engine by name.
pub type EngineOptions = BTreeMap<String, OptionValue>;

/// A valid engine of a game.
#[derive(Clone, PartialEq, Debug)]
pub struct EngineConfig {
    /// The protocol.
    pub protocol: Protocol,
    /// The program.
    pub program: Program,
    /// The options that differ from the engine's defaults.
    pub options: EngineOptions,
    /// The margin beyond a limit of time within which a move counts.
    pub grace: Duration,
    /// The time within which it must start.
    pub start: Duration,
    /// The time after which a search without a limit of time counts as hanging.
    pub hang: Duration,
    /// Whether the spec promises that the engine's moves depend on nothing but the position, the options and the limit.
    pub deterministic: bool,
}

impl EngineConfig {
    /// Creates an engine with the default margins and without options.
    pub fn new(protocol: Protocol, program: Program) -> EngineConfig {
        EngineConfig {
            protocol,
            program,
            options: EngineOptions::new(),
            grace: Duration::from_millis(20),
            start: Duration::from_secs(10),
            hang: Duration::from_secs(60),
            deterministic: false,
        }
    }

    /// Returns the name of the engine, or its program.
    pub fn name(&self) -> &str {
        match &self.program {
            Program::Named(name) => name,
            Program::Command(command) => &command.program,
        }
    }

    /// Reads the table of an engine. `deterministic` is the promise of the spec.
    pub(crate) fn read(game: &str, deterministic: bool, section: Section<'_, '_>) -> Found<EngineConfig> {
        section.allow(KEYS);
        let protocol: Found<Protocol> = section.choice("protocol");
        if let Some((protocol, games)) = protocol.and_then(|protocol| Some((protocol, protocol.games()?)))
            && !games.contains(&game)
        {
            let reason = format!(
                "\"{}\" is a protocol for {}, not for {game}; use \"agon\", which is for all games",
                protocol.name(),
                games.join(" and ")
            );
            section.reject::<()>("protocol", reason);
        }
        if protocol == Some(Protocol::Gtp) && section.has("options") {
            let reason = "gtp has no options; leave `options` out, and give the engine's command arguments";
            section.reject::<()>("options", reason);
        }
        let program = read_program(section);
        let options = read_options(section);
        let milliseconds = |key, range, default: Duration| {
            section.count_or(key, range, default.as_millis() as u64).map(Duration::from_millis)
        };
        let default = EngineConfig::new(Protocol::Agon, Program::Named(String::new()));
        let grace = milliseconds("grace_ms", 0..=60_000, default.grace);
        let start = milliseconds("start_ms", 1..=600_000, default.start);
        let hang = milliseconds("hang_ms", 1..=86_400_000, default.hang);
        Some(EngineConfig {
            protocol: protocol?,
            program: program?,
            options: options?,
            grace: grace?,
            start: start?,
            hang: hang?,
            deterministic,
        })
    }

    /// Checks that the protocol can express a limit.
    pub(crate) fn check_limit(&self, limit: Limit) -> Result<(), ConfigError> {
        if self.protocol == Protocol::Gtp && matches!(limit, Limit::Nodes(_) | Limit::Depth(_)) {
            let reason = "gtp knows limits of time only; give ms, cpu_ms or clock_ms, and an option of the engine's command \
                          for its strength";
            return Err(ConfigError::new(None, reason));
        }
        Ok(())
    }

    /// Returns the number that an option has, if it has one.
    pub(crate) fn number(&self, option: &str) -> Option<f64> {
        self.options.get(option)?.number()
    }

    /// Sets an option to a number.
    pub(crate) fn set(&mut self, option: &str, number: f64) {
        self.options.insert(option.to_string(), OptionValue::from_number(number));
    }

    /// Returns the engine as a line of a spec.
    pub(crate) fn to_toml(&self) -> String {
        let default = EngineConfig::new(self.protocol, self.program.clone());
        let mut parts = vec![format!("protocol = \"{}\"", self.protocol.name())];
        match &self.program {
            Program::Named(name) => parts.push(format!("name = {}", quoted(name))),
            Program::Command(command) => {
                parts.push(format!("command = {}", quoted(&command.program)));
                if !command.args.is_empty() {
                    let args: Vec<String> = command.args.iter().map(|arg| quoted(arg)).collect();
                    parts.push(format!("args = [{}]", args.join(", ")));
                }
                if !command.env.is_empty() {
                    parts.push(format!("env = {}", table(&command.env, |value| quoted(value))));
                }
                parts
                    .extend(command.directory.iter().map(|folder| format!("directory = {}", quoted(folder))));
            }
        }
        if !self.options.is_empty() {
            parts.push(format!("options = {}", table(&self.options, OptionValue::as_toml)));
        }
        for (key, time, usual) in [
            ("grace_ms", self.grace, default.grace),
            ("start_ms", self.start, default.start),
            ("hang_ms", self.hang, default.hang),
        ] {
            if time != usual {
                parts.push(format!("{key} = {}", time.as_millis()));
            }
        }
        format!("engine = {{ {} }}\n", parts.join(", "))
    }
}

/// Returns whether a text can be the name of an engine.
pub fn is_engine_name(text: &str) -> bool {
    let known = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
    (1..=60).contains(&text.len()) && text.chars().all(known)
}

fn read_program(section: Section<'_, '_>) -> Found<Program> {
    let line = |value: &DeValue<'_>| {
        let text = value.as_str().filter(|text| !text.is_empty() && !text.contains(['\n', '\r', '\0']));
        text.map(str::to_string)
    };
    match (section.has("name"), section.has("command")) {
        (true, false) => {
            for key in ["args", "env", "directory"].into_iter().filter(|key| section.has(key)) {
                let reason =
                    format!("`{key}` goes with `command`; the worker that names the engine gives its own");
                section.reject::<()>(key, reason);
            }
            let form = "a word of at most 60 letters, digits and -_.+, as workers name it by --engine";
            let name = section.need("name", form, |value| line(value).filter(|name| is_engine_name(name)));
            name.map(Program::Named)
        }
        (false, true) => {
            let program = section.need("command", "a program", line);
            let args = section.maybe("args", "a list of texts", |value| {
                value.as_array()?.iter().map(|item| Some(item.get_ref().as_str()?.to_string())).collect()
            });
            let env = section.maybe("env", "a table of texts", |value| {
                let DeValue::Table(table) = value else { return None };
                let entry = |(key, value): (&toml::Spanned<_>, &toml::Spanned<DeValue<'_>>)| {
                    let key: &std::borrow::Cow<'_, str> = key.get_ref();
                    Some((key.to_string(), value.get_ref().as_str()?.to_string()))
                };
                table.iter().map(|(key, value)| entry((key, value))).collect::<Option<BTreeMap<_, _>>>()
            });
            let directory = section.maybe("directory", "a folder", line);
            Some(Program::Command(Command {
                program: program?,
                args: args?.unwrap_or_default(),
                env: env?.unwrap_or_default(),
                directory: directory?,
            }))
        }
        (true, true) | (false, false) => {
            let reason = "an engine has either a `name`, which workers map to a command, or a `command`";
            section.problems.add(section.start(), reason);
            None
        }
    }
}

fn read_options(section: Section<'_, '_>) -> Found<EngineOptions> {
    let Some(inner) = section.section("options", "options")? else { return Some(EngineOptions::new()) };
    let mut options = EngineOptions::new();
    let before = section.problems.count();
    for (key, value) in inner.table {
        match OptionValue::read(value.get_ref()) {
            Some(read) => drop(options.insert(key.get_ref().to_string(), read)),
            None => {
                let reason =
                    format!("the option `{}` must be a number, a text, true or false", key.get_ref());
                section.problems.add(Some(value.span()), reason);
            }
        }
    }
    (section.problems.count() == before).then_some(options)
}

/// Returns a text as TOML quotes it.
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

/// Returns an inline table.
fn table<V>(entries: &BTreeMap<String, V>, value: impl Fn(&V) -> String) -> String {
    let entries: Vec<String> =
        entries.iter().map(|(key, entry)| format!("{} = {}", quoted(key), value(entry))).collect();
    format!("{{ {} }}", entries.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_split_at_spaces_outside_quotes() {
        let parse = |line| Command::parse(line).map(|command| (command.program, command.args.join("|")));
        let pair = |program: &str, args: &str| Some((program.to_string(), args.to_string()));
        assert_eq!(parse("stockfish"), pair("stockfish", ""));
        assert_eq!(parse(" gnugo  --mode gtp "), pair("gnugo", "--mode|gtp"));
        assert_eq!(parse(r#""/a b/c" 'd e'f "" "#), pair("/a b/c", "d ef|"));
        for wrong in ["", "  ", "\"open", "'' x"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
