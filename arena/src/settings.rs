//! The options of an algorithm: declared once, read from TOML, refused with what is allowed.
//!
//! No setting is silently ignored: a key that the algorithm does not have is an error that lists those it has.

use std::fmt;

use toml::de::{DeTable, DeValue};

use crate::error::ConfigError;

/// What values an option may take.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Domain {
    /// A whole number within bounds.
    Whole {
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
    },
    /// A number within bounds.
    Number {
        /// The smallest.
        min: f64,
        /// The largest.
        max: f64,
    },
    /// `true` or `false`.
    Flag,
    /// One of a few words.
    Word(&'static [&'static str]),
    /// A list of different words out of a few.
    Words(&'static [&'static str]),
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted =
            |words: &[&str]| words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ");
        match self {
            Domain::Whole { min, max } => write!(f, "a whole number from {min} to {max}"),
            Domain::Number { min, max } => write!(f, "a number from {min} to {max}"),
            Domain::Flag => write!(f, "true or false"),
            Domain::Word(words) => write!(f, "one of {}", quoted(words)),
            Domain::Words(words) => write!(f, "a list of any of {}, each at most once", quoted(words)),
        }
    }
}

/// The value of an option.
#[derive(Clone, PartialEq, Debug)]
pub enum Setting {
    /// Of [`Domain::Whole`].
    Whole(u64),
    /// Of [`Domain::Number`].
    Number(f64),
    /// Of [`Domain::Flag`].
    Flag(bool),
    /// Of [`Domain::Word`].
    Word(&'static str),
    /// Of [`Domain::Words`].
    Words(Vec<&'static str>),
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Setting::Whole(number) => write!(f, "{number}"),
            Setting::Number(number) => write!(f, "{number}"),
            Setting::Flag(flag) => write!(f, "{flag}"),
            Setting::Word(word) => write!(f, "\"{word}\""),
            Setting::Words(words) => {
                let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
                write!(f, "[{}]", quoted.join(", "))
            }
        }
    }
}

/// An option that an algorithm declares.
#[derive(Clone, Copy, Debug)]
pub struct OptionInfo {
    /// Its name.
    pub name: &'static str,
    /// The text of its default, as TOML.
    pub default: &'static str,
    /// The values it may take.
    pub domain: Domain,
    /// What it does, in a line.
    pub about: &'static str,
}

impl OptionInfo {
    fn default_setting(&self) -> Setting {
        let text = format!("x = {}", self.default);
        let table = DeTable::parse(&text).expect("a default is TOML");
        let value = table.get_ref().values().next().expect("the default is a value").get_ref();
        self.read(value).expect("a default lies in its domain")
    }

    fn read(&self, value: &DeValue<'_>) -> Option<Setting> {
        match self.domain {
            Domain::Whole { min, max } => {
                let number = whole(value)?;
                (min..=max).contains(&number).then_some(Setting::Whole(number))
            }
            Domain::Number { min, max } => {
                let number = number(value)?;
                (min..=max).contains(&number).then_some(Setting::Number(number))
            }
            Domain::Flag => value.as_bool().map(Setting::Flag),
            Domain::Word(words) => word(value, words).map(Setting::Word),
            Domain::Words(words) => {
                let list = value.as_array()?;
                let mut read = Vec::new();
                for item in list {
                    let word = word(item.get_ref(), words)?;
                    if read.contains(&word) {
                        return None;
                    }
                    read.push(word);
                }
                Some(Setting::Words(read))
            }
        }
    }
}

fn word(value: &DeValue<'_>, words: &'static [&'static str]) -> Option<&'static str> {
    let text = value.as_str()?;
    words.iter().find(|&&word| word == text).copied()
}

/// A TOML integer that is not negative.
pub(crate) fn whole(value: &DeValue<'_>) -> Option<u64> {
    let integer = value.as_integer()?;
    u64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

/// A TOML integer or float that is finite.
pub(crate) fn number(value: &DeValue<'_>) -> Option<f64> {
    let text = match value {
        DeValue::Integer(integer) if integer.radix() == 10 => integer.as_str(),
        DeValue::Float(float) => float.as_str(),
        _ => return None,
    };
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// A value for every option that an algorithm declares.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    values: Vec<(&'static str, Setting)>,
}

impl Settings {
    /// The defaults, with a table's entries over them. `place` says where the table stands, for errors.
    pub fn read(
        place: &str,
        declared: &'static [OptionInfo],
        table: &DeTable<'_>,
        skip: &[&str],
    ) -> Result<Settings, ConfigError> {
        let mut values: Vec<(&'static str, Setting)> =
            declared.iter().map(|option| (option.name, option.default_setting())).collect();
        for (key, value) in table {
            let name: &str = key.get_ref();
            if skip.contains(&name) {
                continue;
            }
            let Some(index) = declared.iter().position(|option| option.name == name) else {
                return Err(ConfigError::unknown_key(
                    key.span(),
                    place,
                    "option",
                    name,
                    declared.iter().map(|option| option.name).chain(skip.iter().copied()),
                ));
            };
            let option = &declared[index];
            values[index].1 = option.read(value.get_ref()).ok_or_else(|| ConfigError {
                span: Some(value.span()),
                reason: format!("{place}: `{name}` must be {}", option.domain),
            })?;
        }
        Ok(Settings { values })
    }

    /// Gives a declared option another value of its kind.
    pub(crate) fn set(&mut self, name: &'static str, value: Setting) {
        let found = self.values.iter_mut().find(|(known, _)| *known == name);
        found.expect("only options that are declared are set").1 = value;
    }

    /// The options that have another value than the declared one, as `name = value`.
    pub(crate) fn unusual(&self, declared: &[OptionInfo]) -> Vec<String> {
        let options = declared.iter().map(|option| (option, self.value(option.name)));
        let changed = options.filter(|(option, value)| option.default_setting() != **value);
        changed.map(|(option, value)| format!("{} = {value}", option.name)).collect()
    }

    fn value(&self, name: &str) -> &Setting {
        let found = self.values.iter().find(|(known, _)| *known == name);
        &found.expect("an algorithm asks only for options that it declares").1
    }

    /// The value of a declared [`Domain::Whole`].
    pub fn whole(&self, name: &str) -> u64 {
        match self.value(name) {
            Setting::Whole(number) => *number,
            other => unreachable!("{name} is declared as a whole number and holds {other:?}"),
        }
    }

    /// The value of a declared [`Domain::Number`].
    pub fn number(&self, name: &str) -> f64 {
        match self.value(name) {
            Setting::Number(number) => *number,
            other => unreachable!("{name} is declared as a number and holds {other:?}"),
        }
    }

    /// The value of a declared [`Domain::Flag`].
    pub fn flag(&self, name: &str) -> bool {
        match self.value(name) {
            Setting::Flag(flag) => *flag,
            other => unreachable!("{name} is declared as a flag and holds {other:?}"),
        }
    }

    /// The value of a declared [`Domain::Word`].
    pub fn word(&self, name: &str) -> &'static str {
        match self.value(name) {
            Setting::Word(word) => word,
            other => unreachable!("{name} is declared as a word and holds {other:?}"),
        }
    }

    /// The value of a declared [`Domain::Words`].
    pub fn words(&self, name: &str) -> &[&'static str] {
        match self.value(name) {
            Setting::Words(words) => words,
            other => unreachable!("{name} is declared as words and holds {other:?}"),
        }
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, value)) in self.values.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{name} = {value}")?;
        }
        Ok(())
    }
}
