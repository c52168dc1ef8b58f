//! TOML tables with names for errors.
//!
//! A reading function returns none after it has reported a problem, so that its caller can find further problems.

use std::ops::{Range, RangeInclusive};

use agon_games::schema::{Choice, Domain, Entry, Input, Problems, Scope, Value, unknown};
use toml::de::{DeTable, DeValue};

/// A value that was read, or nothing where a problem has been reported.
pub(crate) type Found<T> = Option<T>;

/// A TOML value as input of a [`Domain`].
#[derive(Clone, Copy)]
pub(crate) struct Toml<'t, 's>(pub(crate) &'t DeValue<'s>);

impl Input for Toml<'_, '_> {
    fn integer(&self) -> Option<u64> {
        let integer = self.0.as_integer()?;
        u64::from_str_radix(integer.as_str(), integer.radix()).ok()
    }

    fn number(&self) -> Option<f64> {
        let text = match self.0 {
            DeValue::Integer(integer) if integer.radix() == 10 => integer.as_str(),
            DeValue::Float(float) => float.as_str(),
            _ => return None,
        };
        text.parse().ok().filter(|number: &f64| number.is_finite())
    }

    fn flag(&self) -> Option<bool> {
        self.0.as_bool()
    }

    fn word(&self) -> Option<&str> {
        self.0.as_str()
    }

    fn items(&self, _separator: char) -> Option<Vec<Self>> {
        Some(self.0.as_array()?.iter().map(|item| Toml(item.get_ref())).collect())
    }
}

/// A table with its name in errors and the list of its problems.
#[derive(Clone, Copy)]
pub(crate) struct Section<'t, 's> {
    pub(crate) table: &'t DeTable<'s>,
    pub(crate) name: &'t str,
    /// The start of the table: the location of problems without a key.
    pub(crate) start: Option<usize>,
    pub(crate) problems: &'t Problems,
}

impl<'t, 's> Section<'t, 's> {
    /// Reports unknown keys.
    pub(crate) fn allow(self, known: &[&str]) {
        for (key, _) in self.table.iter().filter(|(key, _)| !known.contains(&&**key.get_ref())) {
            let reason = unknown(self.name, "key", key.get_ref(), known.iter().copied());
            self.problems.add(Some(key.span()), reason);
        }
    }

    /// Reports a problem with a key: at its value, or at the start of the table where the key is missing.
    pub(crate) fn reject<T>(self, key: &str, reason: impl Into<String>) -> Found<T> {
        self.problems.add(self.span(key).or_else(|| self.start()), reason);
        None
    }

    /// Reports a key that is missing.
    pub(crate) fn missing<T>(self, key: &str, form: &str) -> Found<T> {
        self.problems.add(self.start(), format!("{} needs `{key}`: {form}", self.name));
        None
    }

    /// Reports a value that is not allowed.
    pub(crate) fn wrong<T>(self, key: &str, form: &str) -> Found<T> {
        self.reject(key, format!("`{key}` of {} must be {form}", self.name))
    }

    /// Returns the bytes of a value.
    pub(crate) fn span(self, key: &str) -> Option<Range<usize>> {
        self.table.get(key).map(toml::Spanned::span)
    }

    /// Returns the start of the table as an empty range.
    pub(crate) fn start(self) -> Option<Range<usize>> {
        self.start.map(|start| start..start)
    }

    /// Returns a value as it is written.
    pub(crate) fn value(self, key: &str) -> Option<&'t DeValue<'s>> {
        self.table.get(key).map(toml::Spanned::get_ref)
    }

    /// Returns whether a key is present.
    pub(crate) fn has(self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// Reads an optional value by `read`.
    pub(crate) fn maybe<T>(
        self,
        key: &str,
        form: &str,
        read: impl Fn(&'t DeValue<'s>) -> Option<T>,
    ) -> Found<Option<T>> {
        match self.value(key) {
            None => Some(None),
            Some(value) => read(value).map(Some).or_else(|| self.wrong(key, form)),
        }
    }

    /// Reads a required value by `read`.
    pub(crate) fn need<T>(
        self,
        key: &str,
        form: &str,
        read: impl Fn(&'t DeValue<'s>) -> Option<T>,
    ) -> Found<T> {
        self.maybe(key, form, read)?.or_else(|| self.missing(key, form))
    }

    /// Reads a required whole number.
    pub(crate) fn count(self, key: &str, range: RangeInclusive<u64>) -> Found<u64> {
        let domain = Domain::Integer { min: *range.start(), max: *range.end() };
        self.need(key, &domain.as_toml(), |value| integer(domain, value))
    }

    /// Reads an optional whole number.
    pub(crate) fn count_or(self, key: &str, range: RangeInclusive<u64>, default: u64) -> Found<u64> {
        let domain = Domain::Integer { min: *range.start(), max: *range.end() };
        Some(self.maybe(key, &domain.as_toml(), |value| integer(domain, value))?.unwrap_or(default))
    }

    /// Reads a required choice.
    pub(crate) fn choice<T: Choice>(self, key: &str) -> Found<T> {
        let form = Domain::Choice(T::NAMES).as_toml();
        self.need(key, &form, |value| T::named(value.as_str()?))
    }

    /// Reads an optional choice.
    pub(crate) fn choice_or<T: Choice>(self, key: &str, default: T) -> Found<T> {
        let form = Domain::Choice(T::NAMES).as_toml();
        Some(self.maybe(key, &form, |value| T::named(value.as_str()?))?.unwrap_or(default))
    }

    /// Returns the table of a key.
    pub(crate) fn section(self, key: &str, name: &'t str) -> Found<Option<Section<'t, 's>>> {
        match self.table.get_key_value(key) {
            None => Some(None),
            Some((word, value)) => match value.get_ref() {
                DeValue::Table(table) => {
                    Some(Some(Section { table, name, start: Some(word.span().start), ..self }))
                }
                _ => self.wrong(key, "a table"),
            },
        }
    }

    /// Returns the entries as input for declared keys, without those in `also`.
    pub(crate) fn entries(self, scope: Scope<'t>) -> impl Iterator<Item = Entry<'t, Toml<'t, 's>>> {
        let entries = self.table.iter().filter(move |(key, _)| !scope.also.contains(&&**key.get_ref()));
        entries.map(|(key, value)| Entry {
            key: key.get_ref(),
            value: Toml(value.get_ref()),
            key_span: Some(key.span()),
            value_span: Some(value.span()),
        })
    }
}

fn integer(domain: Domain, value: &DeValue<'_>) -> Option<u64> {
    match domain.read(&Toml(value))? {
        Value::Integer(number) => Some(number),
        other => unreachable!("an integer domain reads integers and not {other:?}"),
    }
}
