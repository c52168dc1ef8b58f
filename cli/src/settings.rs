//! Layered settings: a flag, else an environment variable, else the configuration file, else a default.
//!
//! The file is TOML with a section for each kind of process, so that one file serves a whole cluster. [`SETTINGS`]
//! lists its keys and the values they allow; opening the file reports all its problems at once. Every value that is
//! asked for is recorded with its origin, for `agon config show`. Secrets are never values: settings name the files that
//! hold them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use agon_arena::engine::{Command, is_engine_name};
use agon_games::schema::{ConfigError, Problem, Problems, hint};
use agon_storage::location::Location;
use toml::de::{DeTable, DeValue};

use crate::fail::UsageError;
use crate::number::whole;

/// A setting: its key in the file, its flag, its environment variable and its kind of value.
pub struct Setting {
    /// The section and the name in it, separated by a dot.
    pub key: &'static str,
    flag: &'static str,
    variable: Option<&'static str>,
    kind: Kind,
}

/// The values that a setting allows.
#[derive(Clone, Copy)]
enum Kind {
    /// Any text; names and paths are checked where they are used.
    Text,
    /// An IP address and a port.
    Address,
    /// `true` or `false`.
    Flag,
    /// One of a few words.
    Choice(&'static [&'static str]),
    /// A table of command lines by name.
    Commands,
    /// A whole number from a least to a greatest value, with its name in errors.
    Whole(&'static str, u64, u64),
}

impl Kind {
    /// Checks a value of the file.
    fn check(self, text: &str) -> Result<(), String> {
        match self {
            Kind::Text | Kind::Commands => Ok(()),
            Kind::Address => address(text).map(|_| ()),
            Kind::Flag => flag(text).map(|_| ()),
            Kind::Choice(words) if words.contains(&text) => Ok(()),
            Kind::Choice(words) => Err(format!("it is {}", words.join(" or "))),
            Kind::Whole(name, least, most) => whole::<u64>(name, least, most)(text).map(|_| ()),
        }
    }
}

fn flag(text: &str) -> Result<bool, String> {
    text.parse().map_err(|_| "it is true or false".to_string())
}

/// Parses an IP address and a port.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        format!(
            "`{text}` is not an address; give an IP address and a port, such as 127.0.0.1:7400 or [::]:7400"
        )
    })
}

/// Returns a parser for clap and [`Layers::value`] of a setting that is a whole number.
pub fn number<T: TryFrom<u64> + 'static>(
    key: &'static str,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    match find(key).kind {
        Kind::Whole(name, least, most) => whole(name, least, most),
        Kind::Text | Kind::Commands | Kind::Address | Kind::Flag | Kind::Choice(_) => {
            unreachable!("{key} is not a number")
        }
    }
}

fn find(key: &str) -> &'static Setting {
    SETTINGS.iter().find(|setting| setting.key == key).expect("every setting is in the list")
}

const fn setting(key: &'static str, flag: &'static str, kind: Kind) -> Setting {
    Setting { key, flag, variable: None, kind }
}

const fn client(key: &'static str, flag: &'static str, variable: &'static str) -> Setting {
    Setting { key, flag, variable: Some(variable), kind: Kind::Text }
}

/// The environment variable that names the configuration file.
pub const CONFIG_VARIABLE: &str = "AGON_CONFIG";

/// The bytes of the largest configuration file.
const MAX_CONFIG_BYTES: u64 = 1 << 20;

const LOG: Kind = Kind::Choice(&["text", "json"]);
const TIMEOUT: Kind = Kind::Whole("the timeout", 100, 86_400_000);

/// All settings.
pub const SETTINGS: &[Setting] = &[
    setting("coordinator.listen", "--listen", Kind::Address),
    setting("coordinator.data", "--data", Kind::Text),
    setting("coordinator.state", "--state", Kind::Text),
    setting("coordinator.lease_ms", "--lease-ms", Kind::Whole("the lease duration", 100, 86_400_000)),
    setting(
        "coordinator.heartbeat_ms",
        "--heartbeat-ms",
        Kind::Whole("the heartbeat interval", 10, 3_600_000),
    ),
    setting(
        "coordinator.max_bout_ms",
        "--max-bout-ms",
        Kind::Whole("the maximal time of a bout", 1000, u32::MAX as u64),
    ),
    setting("coordinator.part_bouts", "--part-bouts", Kind::Whole("the size of a part", 1, 1_000_000)),
    setting("coordinator.export_seconds", "--export-seconds", Kind::Whole("the export interval", 1, 86_400)),
    setting("coordinator.metrics", "--metrics", Kind::Address),
    setting("coordinator.log", "--log", LOG),
    setting("coordinator.tls_cert", "--tls-cert", Kind::Text),
    setting("coordinator.tls_key", "--tls-key", Kind::Text),
    setting("coordinator.tls_client_ca", "--tls-client-ca", Kind::Text),
    setting("coordinator.tokens", "--tokens", Kind::Text),
    setting("coordinator.insecure", "--insecure", Kind::Flag),
    setting(
        "coordinator.limits.connections",
        "--max-connections",
        Kind::Whole("the number of connections", 1, 1_000_000),
    ),
    setting(
        "coordinator.limits.streams",
        "--max-streams",
        Kind::Whole("the number of calls at once", 1, 10_000),
    ),
    setting(
        "coordinator.limits.calls_per_second",
        "--max-calls-per-second",
        Kind::Whole("the number of calls a second", 1, 1_000_000),
    ),
    setting("coordinator.limits.first_call_ms", "--first-call-ms", TIMEOUT),
    setting("coordinator.limits.idle_ms", "--idle-ms", TIMEOUT),
    client("client.coordinator", "--coordinator", "AGON_COORDINATOR"),
    client("client.tls_ca", "--tls-ca", "AGON_TLS_CA"),
    client("client.tls_cert", "--tls-cert", "AGON_TLS_CERT"),
    client("client.tls_key", "--tls-key", "AGON_TLS_KEY"),
    client("client.token_file", "--token-file", "AGON_TOKEN_FILE"),
    setting("worker.name", "--name", Kind::Text),
    setting("worker.slots", "--slots", Kind::Whole("the number of slots", 1, 4096)),
    setting("worker.pin", "--pin", Kind::Flag),
    setting("worker.timed_when_throttled", "--timed-when-throttled", Kind::Flag),
    setting("worker.grace", "--grace", Kind::Whole("the grace period", 0, 86_400)),
    setting("worker.log", "--log", LOG),
    setting("engines", "--engine", Kind::Commands),
];

/// Where a value came from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Origin {
    /// A flag of the call.
    Flag(&'static str),
    /// An environment variable.
    Environment(&'static str),
    /// The configuration file, with the line.
    File(String),
    /// No layer sets it.
    Default,
}

impl Origin {
    /// Returns the kind of origin in a word.
    pub fn kind(&self) -> &'static str {
        match self {
            Origin::Flag(_) => "flag",
            Origin::Environment(_) => "environment",
            Origin::File(_) => "file",
            Origin::Default => "default",
        }
    }
}

impl Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Origin::Flag(name) | Origin::Environment(name) => f.write_str(name),
            Origin::File(place) => f.write_str(place),
            Origin::Default => f.write_str("default"),
        }
    }
}

/// A recorded value.
pub struct Shown {
    /// The setting.
    pub key: &'static str,
    /// The value, if there is one.
    pub value: Option<String>,
    /// Where it came from.
    pub origin: Origin,
}

/// A value of the file with its line.
struct Written {
    text: String,
    line: usize,
}

/// Returns a variable of the environment unless it is empty.
type Lookup = fn(&str) -> Option<String>;

/// All layers.
pub struct Layers {
    path: Option<PathBuf>,
    file: BTreeMap<String, Written>,
    environment: Lookup,
    shown: RefCell<Vec<Shown>>,
}

impl Layers {
    /// Reads the file that the flag names, else the one that the environment names, else none.
    pub fn open(flag: Option<&Path>) -> anyhow::Result<Layers> {
        let environment = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        let path = flag.map(Path::to_path_buf).or_else(|| environment(CONFIG_VARIABLE).map(PathBuf::from));
        let file = match &path {
            None => BTreeMap::new(),
            Some(path) => {
                let text = agon_files::read_text(path, MAX_CONFIG_BYTES).map_err(|error| {
                    UsageError(format!("cannot read the configuration {}: {error}", path.display()))
                })?;
                read(&text).map_err(|error| {
                    let problem = |problem: &Problem| {
                        let line = problem.place(&text).map_or(1, |(line, _)| line);
                        format!("{}:{line}: {}", path.display(), problem.reason)
                    };
                    UsageError(error.problems.iter().map(problem).collect::<Vec<_>>().join("\n"))
                })?
            }
        };
        Ok(Layers { path, file, environment, shown: RefCell::default() })
    }

    /// Returns a value if a layer sets it. `parse` reads the texts of the environment and the file.
    pub fn value<T: Display>(
        &self,
        key: &'static str,
        flag: Option<T>,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> anyhow::Result<Option<T>> {
        let (found, origin) = self.find(key, flag, &parse)?;
        self.show(key, found.as_ref().map(T::to_string), origin);
        Ok(found)
    }

    /// Returns a value or its default.
    pub fn value_or<T: Display>(
        &self,
        key: &'static str,
        flag: Option<T>,
        parse: impl Fn(&str) -> Result<T, String>,
        default: T,
    ) -> anyhow::Result<T> {
        let (found, origin) = self.find(key, flag, &parse)?;
        let value = found.unwrap_or(default);
        self.show(key, Some(value.to_string()), origin);
        Ok(value)
    }

    /// Returns a whole number or its default.
    pub fn number<T: Display + TryFrom<u64> + 'static>(
        &self,
        key: &'static str,
        flag: Option<T>,
        default: T,
    ) -> anyhow::Result<T> {
        self.value_or(key, flag, number(key), default)
    }

    /// Returns a file or folder. Relative paths in the configuration file start at its folder.
    pub fn path(&self, key: &'static str, flag: Option<PathBuf>) -> anyhow::Result<Option<PathBuf>> {
        let (found, origin) = self.find_path(key, flag)?;
        self.show(key, found.as_ref().map(|path| path.display().to_string()), origin);
        Ok(found)
    }

    /// Returns a file or folder or its default.
    pub fn path_or(
        &self,
        key: &'static str,
        flag: Option<PathBuf>,
        default: &str,
    ) -> anyhow::Result<PathBuf> {
        let (found, origin) = self.find_path(key, flag)?;
        let path = found.unwrap_or_else(|| default.into());
        self.show(key, Some(path.display().to_string()), origin);
        Ok(path)
    }

    fn find_path(
        &self,
        key: &'static str,
        flag: Option<PathBuf>,
    ) -> anyhow::Result<(Option<PathBuf>, Origin)> {
        let (found, origin) = self.find(key, flag, &|text: &str| Ok(PathBuf::from(text)))?;
        let beside =
            self.path.as_deref().and_then(Path::parent).filter(|_| matches!(origin, Origin::File(_)));
        // A store address is not a path.
        let placed = |path: PathBuf| match (beside, Location::from(&path)) {
            (Some(folder), Location::Folder(path)) => folder.join(path),
            _ => path,
        };
        Ok((found.map(placed), origin))
    }

    /// Returns a switch, which is off by default.
    pub fn switch(&self, key: &'static str, is_given: bool) -> anyhow::Result<bool> {
        self.value_or(key, is_given.then_some(true), flag, false)
    }

    /// Returns the commands of a table by name. Those of flags precede.
    pub fn commands(&self, key: &'static str, flags: BTreeMap<String, Command>) -> BTreeMap<String, Command> {
        let is_flag = !flags.is_empty();
        let mut commands = flags;
        let prefix = format!("{key}.");
        for (name, written) in &self.file {
            if let (Some(name), Some(command)) = (name.strip_prefix(&prefix), Command::parse(&written.text)) {
                commands.entry(name.to_string()).or_insert(command);
            }
        }
        let names = commands.keys().cloned().collect::<Vec<_>>().join(", ");
        let origin = match (is_flag, &self.path) {
            (true, _) => Origin::Flag(find(key).flag),
            (false, Some(path)) if !commands.is_empty() => Origin::File(path.display().to_string()),
            (false, _) => Origin::Default,
        };
        self.show(key, (!names.is_empty()).then_some(names), origin);
        commands
    }

    /// Returns all recorded values in the order of [`SETTINGS`].
    pub fn shown(self) -> Vec<Shown> {
        let mut shown = self.shown.into_inner();
        shown.sort_by_key(|shown| SETTINGS.iter().position(|setting| setting.key == shown.key));
        shown
    }

    fn show(&self, key: &'static str, value: Option<String>, origin: Origin) {
        self.shown.borrow_mut().push(Shown { key, value, origin });
    }

    fn find<T>(
        &self,
        key: &'static str,
        flag: Option<T>,
        parse: &dyn Fn(&str) -> Result<T, String>,
    ) -> anyhow::Result<(Option<T>, Origin)> {
        let setting = find(key);
        if let Some(value) = flag {
            return Ok((Some(value), Origin::Flag(setting.flag)));
        }
        if let Some(variable) = setting.variable
            && let Some(text) = (self.environment)(variable)
        {
            let value = parse(&text).map_err(|reason| UsageError(format!("{variable}={text}: {reason}")))?;
            return Ok((Some(value), Origin::Environment(variable)));
        }
        if let (Some(written), Some(path)) = (self.file.get(key), &self.path) {
            let place = format!("{}:{}", path.display(), written.line);
            let name = key.rsplit('.').next().unwrap_or(key);
            let value =
                parse(&written.text).map_err(|reason| UsageError(format!("{place}: `{name}`: {reason}")))?;
            return Ok((Some(value), Origin::File(place)));
        }
        Ok((None, Origin::Default))
    }
}

/// Reads the values of a file by their keys. Reports all unknown keys and unreadable values at once.
fn read(text: &str) -> Result<BTreeMap<String, Written>, ConfigError> {
    let table = DeTable::parse(text)
        .map_err(|error| ConfigError::new(error.span(), format!("this is not TOML: {}", error.message())))?;
    let (problems, mut values) = (Problems::default(), BTreeMap::new());
    collect(table.get_ref(), "", text, &mut values, &problems);
    problems.finish(Some(values))
}

fn collect(
    table: &DeTable<'_>,
    section: &str,
    text: &str,
    values: &mut BTreeMap<String, Written>,
    problems: &Problems,
) {
    for (name, value) in table {
        let key = if section.is_empty() {
            name.get_ref().to_string()
        } else {
            format!("{section}.{}", name.get_ref())
        };
        if let DeValue::Table(inner) = value.get_ref()
            && SETTINGS.iter().any(|known| known.key.starts_with(&format!("{key}.")))
        {
            collect(inner, &key, text, values, problems);
            continue;
        }
        let Some(setting) = SETTINGS.iter().find(|known| known.key == key) else {
            let hint = hint(&key, SETTINGS.iter().map(|known| known.key));
            let reason = format!("there is no setting `{key}`{hint} `agon config show` lists them");
            problems.add(Some(name.span()), reason);
            continue;
        };
        if let (Kind::Commands, DeValue::Table(commands)) = (setting.kind, value.get_ref()) {
            for (name, command) in commands {
                let line = text[..name.span().start].matches('\n').count() + 1;
                let read = command.get_ref().as_str().filter(|line| Command::parse(line).is_some());
                match read.filter(|_| is_engine_name(name.get_ref())) {
                    Some(read) => {
                        let written = Written { text: read.to_string(), line };
                        values.insert(format!("{key}.{}", name.get_ref()), written);
                    }
                    None => problems.add(
                        Some(name.span()),
                        format!(
                            "`{}` in [{key}] must be a name of letters, digits and -_.+ with a command line in quotes",
                            name.get_ref()
                        ),
                    ),
                }
            }
            continue;
        }
        let written = match value.get_ref() {
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(number) => number.to_string(),
            DeValue::Boolean(flag) => flag.to_string(),
            DeValue::Float(_) | DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => String::new(),
        };
        if written.is_empty() {
            problems.add(Some(name.span()), format!("`{key}` is a text, a whole number, or true or false"));
            continue;
        }
        if let Err(reason) = setting.kind.check(&written) {
            problems.add(Some(name.span()), format!("`{}`: {reason}", name.get_ref()));
        }
        let line = text[..name.span().start].matches('\n').count() + 1;
        values.insert(key, Written { text: written, line });
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    fn layers(file: &str, environment: Lookup) -> Layers {
        let path = Some(PathBuf::from("etc/agon.toml"));
        Layers { path, file: read(file).unwrap(), environment, shown: RefCell::default() }
    }

    const FILE: &str =
        "[client]\ncoordinator = \"from-file\"\ntls_ca = \"ca.pem\"\n[worker]\nslots = 3\npin = true\n";

    #[test]
    fn flag_precedes_variable_precedes_file_precedes_default() {
        let text = |text: &str| Ok(text.to_string());
        let named = |name: &str| (name == "AGON_COORDINATOR").then(|| "from-variable".to_string());
        let ask = |flag: Option<&str>, file: &str, environment| {
            let layers = layers(file, environment);
            let key = "client.coordinator";
            let value = layers.value_or(key, flag.map(str::to_string), text, "built-in".to_string()).unwrap();
            (value, layers.shown().remove(0).origin.to_string())
        };
        let unnamed = |_: &str| None;
        let table: [(_, _, Lookup, _, _); 4] = [
            (Some("from-flag"), FILE, named, "from-flag", "--coordinator"),
            (None, FILE, named, "from-variable", "AGON_COORDINATOR"),
            (None, FILE, unnamed, "from-file", "etc/agon.toml:2"),
            (None, "", unnamed, "built-in", "default"),
        ];
        for (flag, file, environment, value, origin) in table {
            assert_eq!(ask(flag, file, environment), (value.to_string(), origin.to_string()));
        }
    }

    #[test]
    fn relative_paths_of_the_file_start_at_its_folder() {
        let layers = layers(FILE, |name| (name == "AGON_TLS_KEY").then(|| "key".to_string()));
        assert_eq!(layers.path("client.tls_ca", None).unwrap(), Some("etc/ca.pem".into()));
        assert_eq!(layers.path("client.tls_ca", Some("x".into())).unwrap(), Some("x".into()));
        assert_eq!(layers.path("client.tls_key", None).unwrap(), Some("key".into()));
        assert_eq!(layers.path("client.tls_cert", None).unwrap(), None);
        assert!(layers.switch("worker.pin", false).unwrap());
        assert!(!layers.switch("worker.timed_when_throttled", false).unwrap());
    }

    #[test]
    fn rejects_unknown_keys_and_wrong_values_with_their_lines() {
        for (file, line, sentence) in [
            (
                "[client]\n\ncordinator = \"x\"",
                3,
                "there is no setting `client.cordinator`: did you mean `client.coordinator`?",
            ),
            ("listen = \"x\"", 1, "there is no setting `listen`"),
            ("[coordinator.limit]\nstreams = 3", 1, "there is no setting `coordinator.limit`"),
            ("[worker]\nslots = 1.5", 2, "`worker.slots` is a text, a whole number, or true or false"),
            ("[worker]\nname = \"\"", 2, "`worker.name` is a text"),
            ("[worker\n", 1, "this is not TOML"),
            ("[engines]\ngnugo = 3", 2, "`gnugo` in [engines] must be a name"),
            ("[engines]\n\"a b\" = \"x\"", 2, "`a b` in [engines] must be a name"),
        ] {
            let error = read(file).map(|_| ()).unwrap_err();
            let found = error.problems[0].place(file).map(|(line, _)| line);
            assert!(found == Some(line) && error.to_string().contains(sentence), "{found:?}: {error}");
        }
        let all = "[client]\ncordinator = 1\n[worker]\nslots = 0\npin = 3\nname = 1.5\n[coordinator]\nlog = \"xml\"\n";
        let error = read(all).map(|_| ()).unwrap_err();
        let lines: Vec<usize> = error.problems.iter().map(|problem| problem.place(all).unwrap().0).collect();
        assert_eq!(lines.len(), 5, "{error}");
        let layers = layers(FILE, |_| None);
        let wrong = layers.value::<u8>("worker.slots", None, |_| Err("no".to_string())).unwrap_err();
        assert_eq!(wrong.to_string(), "etc/agon.toml:5: `slots`: no");
    }
}
