//! Where settings come from: a flag, else an environment variable, else the configuration file, else a default.
//!
//! The file is TOML with a section for each kind of process, so that one file serves a whole cluster; [`SETTINGS`] is the one
//! list of what it may say. Every value that is asked for is remembered with its origin, for `agon config show`. Secrets
//! are never values: settings name the files that hold them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::{Path, PathBuf};

use agon_coordinator::place::Place;
use agon_games::setup::suggestion;
use toml::de::{DeTable, DeValue};

use crate::fail::WrongCall;

/// A setting: its key in the file, its flag, and its environment variable.
pub struct Setting {
    /// The section and the name in it, with a dot between.
    pub key: &'static str,
    flag: &'static str,
    variable: Option<&'static str>,
}

const fn setting(key: &'static str, flag: &'static str) -> Setting {
    Setting { key, flag, variable: None }
}

const fn client(key: &'static str, flag: &'static str, variable: &'static str) -> Setting {
    Setting { key, flag, variable: Some(variable) }
}

/// The environment variable that names the configuration file.
pub const CONFIG_VARIABLE: &str = "AGON_CONFIG";

/// Every setting there is.
pub const SETTINGS: &[Setting] = &[
    setting("coordinator.listen", "--listen"),
    setting("coordinator.data", "--data"),
    setting("coordinator.state", "--state"),
    setting("coordinator.lease_ms", "--lease-ms"),
    setting("coordinator.heartbeat_ms", "--heartbeat-ms"),
    setting("coordinator.part_bouts", "--part-bouts"),
    setting("coordinator.metrics", "--metrics"),
    setting("coordinator.log", "--log"),
    setting("coordinator.tls_cert", "--tls-cert"),
    setting("coordinator.tls_key", "--tls-key"),
    setting("coordinator.tls_client_ca", "--tls-client-ca"),
    setting("coordinator.tokens", "--tokens"),
    setting("coordinator.insecure", "--insecure"),
    setting("coordinator.limits.connections", "--max-connections"),
    setting("coordinator.limits.streams", "--max-streams"),
    setting("coordinator.limits.calls_per_second", "--max-calls-per-second"),
    setting("coordinator.limits.first_call_ms", "--first-call-ms"),
    setting("coordinator.limits.idle_ms", "--idle-ms"),
    client("client.coordinator", "--coordinator", "AGON_COORDINATOR"),
    client("client.tls_ca", "--tls-ca", "AGON_TLS_CA"),
    client("client.tls_cert", "--tls-cert", "AGON_TLS_CERT"),
    client("client.tls_key", "--tls-key", "AGON_TLS_KEY"),
    client("client.token_file", "--token-file", "AGON_TOKEN_FILE"),
    setting("worker.name", "--name"),
    setting("worker.slots", "--slots"),
    setting("worker.pin", "--pin"),
    setting("worker.timed_when_throttled", "--timed-when-throttled"),
    setting("worker.grace", "--grace"),
    setting("worker.log", "--log"),
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
    /// Nobody said anything.
    Default,
}

impl Origin {
    /// The kind of it, in a word.
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

/// A value that was asked for.
pub struct Shown {
    /// The setting.
    pub key: &'static str,
    /// The value, if there is one.
    pub value: Option<String>,
    /// Where it came from.
    pub origin: Origin,
}

/// A value of the file as text, with its line.
struct Written {
    text: String,
    line: usize,
}

/// A variable of the environment, unless it is empty.
type Environment = fn(&str) -> Option<String>;

/// The layers over each other.
pub struct Layers {
    path: Option<PathBuf>,
    file: BTreeMap<String, Written>,
    environment: Environment,
    shown: RefCell<Vec<Shown>>,
}

impl Layers {
    /// Reads the file that a flag names, or else the environment; without either there is none.
    pub fn open(flag: Option<&Path>) -> anyhow::Result<Layers> {
        let environment = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        let path = flag.map(Path::to_path_buf).or_else(|| environment(CONFIG_VARIABLE).map(PathBuf::from));
        let file = match &path {
            None => BTreeMap::new(),
            Some(path) => {
                let text = std::fs::read_to_string(path).map_err(|error| {
                    WrongCall(format!("the configuration {} cannot be read: {error}", path.display()))
                })?;
                read(&text)
                    .map_err(|(line, reason)| WrongCall(format!("{}:{line}: {reason}", path.display())))?
            }
        };
        Ok(Layers { path, file, environment, shown: RefCell::default() })
    }

    /// A value, if anybody said one. `parse` reads what stands in the environment and in the file.
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

    /// A value, or its default.
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

    /// A file or folder. What the configuration file says is meant from where it lies.
    pub fn path(&self, key: &'static str, flag: Option<PathBuf>) -> anyhow::Result<Option<PathBuf>> {
        let (found, origin) = self.find_path(key, flag)?;
        self.show(key, found.as_ref().map(|path| path.display().to_string()), origin);
        Ok(found)
    }

    /// The same with a default.
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
        // An address is no path, wherever the file lies.
        let placed = |path: PathBuf| match (beside, Place::from(&path)) {
            (Some(folder), Place::Folder(path)) => folder.join(path),
            _ => path,
        };
        Ok((found.map(placed), origin))
    }

    /// Something that is off unless it is said to be on.
    pub fn switch(&self, key: &'static str, flag: bool) -> anyhow::Result<bool> {
        let parse = |text: &str| text.parse().map_err(|_| "it is true or false".to_string());
        self.value_or(key, flag.then_some(true), parse, false)
    }

    /// Everything that was asked for, in the order of [`SETTINGS`].
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
        let setting =
            SETTINGS.iter().find(|setting| setting.key == key).expect("every setting is in the list");
        if let Some(value) = flag {
            return Ok((Some(value), Origin::Flag(setting.flag)));
        }
        if let Some(variable) = setting.variable
            && let Some(text) = (self.environment)(variable)
        {
            let value = parse(&text).map_err(|reason| WrongCall(format!("{variable}={text}: {reason}")))?;
            return Ok((Some(value), Origin::Environment(variable)));
        }
        if let (Some(written), Some(path)) = (self.file.get(key), &self.path) {
            let place = format!("{}:{}", path.display(), written.line);
            let name = key.rsplit('.').next().unwrap_or(key);
            let value =
                parse(&written.text).map_err(|reason| WrongCall(format!("{place}: `{name}`: {reason}")))?;
            return Ok((Some(value), Origin::File(place)));
        }
        Ok((None, Origin::Default))
    }
}

/// Every value of a file by its key, or the line and a sentence.
fn read(text: &str) -> Result<BTreeMap<String, Written>, (usize, String)> {
    let line_of = |offset: usize| text[..offset.min(text.len())].matches('\n').count() + 1;
    let table = DeTable::parse(text).map_err(|error| {
        let line = error.span().map_or(1, |span| line_of(span.start));
        (line, format!("this is not TOML: {}", error.message()))
    })?;
    let mut values = BTreeMap::new();
    collect(table.get_ref(), "", &line_of, &mut values)?;
    Ok(values)
}

fn collect(
    table: &DeTable<'_>,
    section: &str,
    line_of: &dyn Fn(usize) -> usize,
    values: &mut BTreeMap<String, Written>,
) -> Result<(), (usize, String)> {
    for (name, value) in table {
        let line = line_of(name.span().start);
        let key = if section.is_empty() {
            name.get_ref().to_string()
        } else {
            format!("{section}.{}", name.get_ref())
        };
        let text = match value.get_ref() {
            DeValue::Table(inner)
                if SETTINGS.iter().any(|known| known.key.starts_with(&format!("{key}."))) =>
            {
                collect(inner, &key, line_of, values)?;
                continue;
            }
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(number) => number.to_string(),
            DeValue::Boolean(truth) => truth.to_string(),
            _ => String::new(),
        };
        if !SETTINGS.iter().any(|known| known.key == key) {
            let near = suggestion(&key, SETTINGS.iter().map(|known| known.key));
            let meant = near.map(|near| format!(": did you mean `{near}`?")).unwrap_or_default();
            return Err((line, format!("there is no setting `{key}`{meant}; `agon config show` lists them")));
        }
        if text.is_empty() {
            return Err((line, format!("`{key}` is a text, a whole number, or true or false")));
        }
        values.insert(key, Written { text, line });
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    fn layers(file: &str, environment: Environment) -> Layers {
        let path = Some(PathBuf::from("etc/agon.toml"));
        Layers { path, file: read(file).unwrap(), environment, shown: RefCell::default() }
    }

    const FILE: &str =
        "[client]\ncoordinator = \"from-file\"\ntls_ca = \"ca.pem\"\n[worker]\nslots = 3\npin = true\n";

    #[test]
    fn a_flag_goes_before_a_variable_before_the_file_before_the_default() {
        let text = |text: &str| Ok(text.to_string());
        let named = |name: &str| (name == "AGON_COORDINATOR").then(|| "from-variable".to_string());
        let ask = |flag: Option<&str>, file: &str, environment| {
            let layers = layers(file, environment);
            let key = "client.coordinator";
            let value = layers.value_or(key, flag.map(str::to_string), text, "built-in".to_string()).unwrap();
            (value, layers.shown().remove(0).origin.to_string())
        };
        let unnamed = |_: &str| None;
        let table: [(_, _, Environment, _, _); 4] = [
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
    fn paths_of_the_file_are_beside_it_and_others_are_not() {
        let layers = layers(FILE, |name| (name == "AGON_TLS_KEY").then(|| "key".to_string()));
        assert_eq!(layers.path("client.tls_ca", None).unwrap(), Some("etc/ca.pem".into()));
        assert_eq!(layers.path("client.tls_ca", Some("x".into())).unwrap(), Some("x".into()));
        assert_eq!(layers.path("client.tls_key", None).unwrap(), Some("key".into()));
        assert_eq!(layers.path("client.tls_cert", None).unwrap(), None);
        assert!(layers.switch("worker.pin", false).unwrap());
        assert!(!layers.switch("worker.timed_when_throttled", false).unwrap());
    }

    #[test]
    fn what_the_file_may_not_say_is_refused_with_its_line() {
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
        ] {
            let (found, reason) = read(file).map(|_| ()).unwrap_err();
            assert!(found == line && reason.contains(sentence), "{found}: {reason}");
        }
        let layers = layers(FILE, |_| None);
        let wrong = layers.value::<u8>("worker.slots", None, |_| Err("no".to_string())).unwrap_err();
        assert_eq!(wrong.to_string(), "etc/agon.toml:5: `slots`: no");
    }
}
