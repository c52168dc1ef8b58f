//! Configuration keys: declared once, read and validated in one place.
//!
//! A [`Key`] declares a name, a [`Domain`], a default and a line of help. [`Values::read`] checks written entries
//! against the declared keys. It reports every problem to a [`Problems`] list and does not stop at the first.
//! Game parameters, search options, specs and the settings file share this module.

use std::cell::RefCell;
use std::fmt;
use std::ops::Range;

/// The values that a key allows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Domain {
    /// A whole number within bounds.
    Integer {
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
    },
    /// One of a few whole numbers.
    OneOf(&'static [u64]),
    /// A finite number within bounds.
    Number {
        /// The smallest.
        min: f64,
        /// The largest.
        max: f64,
    },
    /// A multiple of one half within bounds: `7.5`, `6`, `-0.5`.
    Halves {
        /// The smallest, in halves.
        min: i32,
        /// The largest, in halves.
        max: i32,
    },
    /// `true` or `false`.
    Flag,
    /// One of a few words.
    Choice(&'static [&'static str]),
    /// A list of distinct words from a few.
    Choices(&'static [&'static str]),
    /// A list of whole numbers; untyped text joins them by `-`, as in `3-4-5`.
    Integers {
        /// The smallest of each.
        min: u64,
        /// The largest of each.
        max: u64,
        /// The largest length; the smallest is one.
        most: usize,
    },
}

impl Domain {
    /// Reads a value, or returns nothing if the domain does not allow it.
    pub fn read<I: Input>(self, input: &I) -> Option<Value> {
        let word = |input: &I, words: &'static [&'static str]| {
            let text = input.word()?;
            words.iter().find(|&&word| word == text).copied()
        };
        match self {
            Domain::Integer { min, max } => {
                input.integer().filter(|number| (min..=max).contains(number)).map(Value::Integer)
            }
            Domain::OneOf(allowed) => {
                input.integer().filter(|number| allowed.contains(number)).map(Value::Integer)
            }
            Domain::Number { min, max } => {
                input.number().filter(|number| (min..=max).contains(number)).map(Value::Number)
            }
            Domain::Halves { min, max } => {
                let halves = input.number()? * 2.0;
                let fits = halves.fract() == 0.0 && (f64::from(min)..=f64::from(max)).contains(&halves);
                fits.then_some(Value::Halves(halves as i32))
            }
            Domain::Flag => input.flag().map(Value::Flag),
            Domain::Choice(words) => word(input, words).map(Value::Choice),
            Domain::Choices(words) => {
                let mut read = Vec::new();
                for item in input.items(' ')? {
                    let word = word(&item, words).filter(|word| !read.contains(word))?;
                    read.push(word);
                }
                Some(Value::Choices(read))
            }
            Domain::Integers { min, max, most } => {
                let items = input.items('-')?;
                let number = |item: I| item.integer().filter(|number| (min..=max).contains(number));
                let numbers: Vec<u64> = items.into_iter().map(number).collect::<Option<_>>()?;
                (1..=most).contains(&numbers.len()).then_some(Value::Integers(numbers))
            }
        }
    }

    /// Describes the allowed values as TOML writes them: words in quotes.
    pub fn as_toml(self) -> String {
        self.describe("\"")
    }

    fn describe(self, quote: &str) -> String {
        let quoted = |words: &[&str]| {
            words.iter().map(|word| format!("{quote}{word}{quote}")).collect::<Vec<_>>().join(", ")
        };
        let half = |halves: i32| f64::from(halves) / 2.0;
        match self {
            Domain::Integer { min, max } => format!("a whole number from {min} to {max}"),
            Domain::OneOf(allowed) => format!("one of {}", joined(allowed, ", ")),
            Domain::Number { min, max } => format!("a number from {min} to {max}"),
            Domain::Halves { min, max } => format!("a multiple of 0.5 from {} to {}", half(min), half(max)),
            Domain::Flag => "true or false".to_string(),
            Domain::Choice(words) => format!("one of {}", quoted(words)),
            Domain::Choices(words) => format!("a list of any of {}, each at most once", quoted(words)),
            Domain::Integers { min, max, most } => {
                format!("1 to {most} whole numbers from {min} to {max} joined by -, as in 3-4-5")
            }
        }
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe(""))
    }
}

fn joined(numbers: &[u64], separator: &str) -> String {
    numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(separator)
}

/// A value as a file or a call writes it, before a [`Domain`] checks it.
pub trait Input: Sized {
    /// Returns the whole number that is written, if it is one and not negative.
    fn integer(&self) -> Option<u64>;
    /// Returns the finite number that is written, if it is one.
    fn number(&self) -> Option<f64>;
    /// Returns the truth value that is written, if it is one.
    fn flag(&self) -> Option<bool>;
    /// Returns the word that is written, if it is one.
    fn word(&self) -> Option<&str>;
    /// Returns the items of a list. Untyped text is split at the separator.
    fn items(&self, separator: char) -> Option<Vec<Self>>;
    /// Returns the value for an error message, if it is short.
    fn quote(&self) -> Option<&str> {
        None
    }
}

/// Untyped text, as in `size=10`.
impl Input for &str {
    fn integer(&self) -> Option<u64> {
        // Each number has one text: neither `+3` nor `007`.
        self.parse::<u64>().ok().filter(|number| number.to_string() == *self)
    }

    fn number(&self) -> Option<f64> {
        self.parse().ok().filter(|number: &f64| number.is_finite())
    }

    fn flag(&self) -> Option<bool> {
        self.parse().ok()
    }

    fn word(&self) -> Option<&str> {
        Some(self)
    }

    fn items(&self, separator: char) -> Option<Vec<Self>> {
        Some(self.split(separator).collect())
    }

    fn quote(&self) -> Option<&str> {
        Some(self)
    }
}

/// A declared key.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// Its default as untyped text; a list separates words by spaces.
    pub default: &'static str,
    /// The values it allows.
    pub domain: Domain,
    /// Its meaning in one line.
    pub about: &'static str,
}

impl Key {
    /// Returns the default value.
    pub fn default_value(&self) -> Value {
        self.domain.read(&self.default).expect("a default lies in its domain")
    }

    /// Returns the default as TOML writes it.
    pub fn default_toml(&self) -> String {
        match self.domain {
            Domain::Choice(_) | Domain::Choices(_) => self.default_value().as_toml(),
            Domain::Integer { .. }
            | Domain::OneOf(_)
            | Domain::Number { .. }
            | Domain::Halves { .. }
            | Domain::Flag
            | Domain::Integers { .. } => self.default.to_string(),
        }
    }
}

/// A checked value.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// From [`Domain::Integer`] or [`Domain::OneOf`].
    Integer(u64),
    /// From [`Domain::Number`].
    Number(f64),
    /// From [`Domain::Halves`], in halves.
    Halves(i32),
    /// From [`Domain::Flag`].
    Flag(bool),
    /// From [`Domain::Choice`].
    Choice(&'static str),
    /// From [`Domain::Choices`].
    Choices(Vec<&'static str>),
    /// From [`Domain::Integers`].
    Integers(Vec<u64>),
}

impl Value {
    /// Writes the value as TOML.
    pub fn as_toml(&self) -> String {
        match self {
            Value::Choice(word) => format!("\"{word}\""),
            Value::Choices(words) => {
                let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
                format!("[{}]", quoted.join(", "))
            }
            Value::Integer(_) | Value::Number(_) | Value::Halves(_) | Value::Flag(_) | Value::Integers(_) => {
                self.to_string()
            }
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Integer(number) => write!(f, "{number}"),
            Value::Number(number) => write!(f, "{number}"),
            Value::Halves(halves) => write!(f, "{}", f64::from(*halves) / 2.0),
            Value::Flag(flag) => write!(f, "{flag}"),
            Value::Choice(word) => f.write_str(word),
            Value::Choices(words) => f.write_str(&words.join(" ")),
            Value::Integers(numbers) => f.write_str(&joined(numbers, "-")),
        }
    }
}

/// An enum whose variants have names in configurations. [`choices!`](crate::choices) implements it.
pub trait Choice: Copy + 'static {
    /// Every variant.
    const ALL: &'static [Self];
    /// Their names, in the same order.
    const NAMES: &'static [&'static str];

    /// Returns the variant's name.
    fn name(self) -> &'static str;

    /// Returns the variant with a name.
    fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|variant| variant.name() == name)
    }
}

/// Names the variants of an enum. A variant without a name does not compile.
#[macro_export]
macro_rules! choices {
    ($type:ty { $($variant:ident = $name:literal),* $(,)? }) => {
        impl $crate::schema::Choice for $type {
            const ALL: &'static [Self] = &[$(Self::$variant),*];
            const NAMES: &'static [&'static str] = &[$($name),*];

            fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),*
                }
            }
        }
    };
}

/// A written entry: a key with a value, and their places in the text where those are known.
pub struct Entry<'a, I> {
    /// The key.
    pub key: &'a str,
    /// The value.
    pub value: I,
    /// The bytes of the key.
    pub key_span: Option<Range<usize>>,
    /// The bytes of the value.
    pub value_span: Option<Range<usize>>,
}

/// The table that entries belong to, as errors name it.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    /// The table: `virus`, or ``search `pvs` ``.
    pub place: &'a str,
    /// The noun for its keys: `parameter`, `option`.
    pub noun: &'a str,
    /// Keys that the table has besides the declared ones.
    pub also: &'a [&'a str],
}

/// A value for each declared key.
///
/// Displays as `key=value,key=value` in the declared order.
#[derive(Clone, PartialEq, Debug)]
pub struct Values {
    values: Vec<(&'static str, Value)>,
}

impl Values {
    /// Returns the defaults.
    pub fn defaults(keys: &'static [Key]) -> Values {
        Values { values: keys.iter().map(|key| (key.name, key.default_value())).collect() }
    }

    /// Reads entries over the defaults. Reports unknown keys, repeated keys and rejected values; each leaves the default.
    pub fn read<'a, I: Input>(
        scope: Scope<'_>,
        keys: &'static [Key],
        entries: impl IntoIterator<Item = Entry<'a, I>>,
        problems: &Problems,
    ) -> Values {
        let place = scope.place;
        let mut read = Values::defaults(keys);
        let mut seen = Vec::new();
        for Entry { key: name, value, key_span, value_span } in entries {
            let Some(index) = keys.iter().position(|key| key.name == name) else {
                let known = keys.iter().map(|key| key.name).chain(scope.also.iter().copied());
                problems.add(key_span, unknown(place, scope.noun, name, known));
                continue;
            };
            if seen.contains(&index) {
                let noun = scope.noun;
                problems.add(key_span, format!("{place}: the {noun} `{name}` is given twice; give it once"));
                continue;
            }
            seen.push(index);
            let domain = keys[index].domain;
            match (domain.read(&value), value.quote()) {
                (Some(value), _) => read.values[index].1 = value,
                (None, Some(text)) => problems
                    .add(value_span, format!("{place}: `{name}` cannot be `{text}`; it must be {domain}")),
                (None, None) => {
                    problems.add(value_span, format!("{place}: `{name}` must be {}", domain.as_toml()));
                }
            }
        }
        read
    }

    /// Replaces the value of a declared key.
    pub fn set(&mut self, name: &str, value: Value) {
        let found = self.values.iter_mut().find(|(known, _)| *known == name);
        found.expect("only declared keys are set").1 = value;
    }

    /// Returns the keys and values that differ from the defaults.
    pub fn changed(&self, keys: &'static [Key]) -> impl Iterator<Item = (&'static str, &Value)> {
        let changed = |key: &&Key| key.default_value() != *self.value(key.name);
        keys.iter().filter(changed).map(|key| (key.name, self.value(key.name)))
    }

    /// Returns whether a key is declared.
    pub fn has(&self, name: &str) -> bool {
        self.values.iter().any(|(known, _)| *known == name)
    }

    /// Returns the value of a declared key.
    pub fn value(&self, name: &str) -> &Value {
        let found = self.values.iter().find(|(known, _)| *known == name);
        &found.expect("only declared keys are asked for").1
    }

    /// Returns the value of a declared [`Domain::Integer`] or [`Domain::OneOf`].
    pub fn integer(&self, name: &str) -> u64 {
        match self.value(name) {
            Value::Integer(number) => *number,
            other => unreachable!("{name} is declared as an integer and holds {other:?}"),
        }
    }

    /// Returns the value of a declared [`Domain::Number`].
    pub fn number(&self, name: &str) -> f64 {
        match self.value(name) {
            Value::Number(number) => *number,
            other => unreachable!("{name} is declared as a number and holds {other:?}"),
        }
    }

    /// Returns the value of a declared [`Domain::Halves`], in halves.
    pub fn halves(&self, name: &str) -> i32 {
        match self.value(name) {
            Value::Halves(halves) => *halves,
            other => unreachable!("{name} is declared in halves and holds {other:?}"),
        }
    }

    /// Returns the value of a declared [`Domain::Flag`].
    pub fn flag(&self, name: &str) -> bool {
        match self.value(name) {
            Value::Flag(flag) => *flag,
            other => unreachable!("{name} is declared as a flag and holds {other:?}"),
        }
    }

    /// Returns the variant of a declared [`Domain::Choice`] whose words are the names of `T`.
    pub fn choice<T: Choice>(&self, name: &str) -> T {
        match self.value(name) {
            Value::Choice(word) => T::named(word).expect("a choice is declared with the names of its type"),
            other => unreachable!("{name} is declared as a choice and holds {other:?}"),
        }
    }

    /// Returns the variants of a declared [`Domain::Choices`] whose words are names of `T`.
    pub fn choices<T: Choice>(&self, name: &str) -> Vec<T> {
        let variant =
            |word: &&str| T::named(word).expect("choices are declared with the names of their type");
        match self.value(name) {
            Value::Choices(words) => words.iter().map(variant).collect(),
            other => unreachable!("{name} is declared as choices and holds {other:?}"),
        }
    }

    /// Returns the value of a declared [`Domain::Integers`].
    pub fn integers(&self, name: &str) -> &[u64] {
        match self.value(name) {
            Value::Integers(numbers) => numbers,
            other => unreachable!("{name} is declared as integers and holds {other:?}"),
        }
    }

    /// Returns the number of seats: the key `seats` where it is declared, otherwise two.
    pub fn seats(&self) -> usize {
        if self.has("seats") { self.integer("seats") as usize } else { 2 }
    }
}

impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, value)) in self.values.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{name}={value}")?;
        }
        Ok(())
    }
}

/// One reason why a configuration is rejected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// The bytes of the text that it concerns, where they are known.
    pub span: Option<Range<usize>>,
    /// A sentence with the remedy.
    pub reason: String,
}

impl Problem {
    /// Returns the line and the column in `text`, counted from 1.
    pub fn place(&self, text: &str) -> Option<(usize, usize)> {
        let before = text.get(..self.span.as_ref()?.start)?;
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|&c| c != '\n').count() + 1;
        Some((line, column))
    }
}

/// The list that readers report problems to.
#[derive(Default, Debug)]
pub struct Problems(RefCell<Vec<Problem>>);

impl Problems {
    /// Adds a problem.
    pub fn add(&self, span: Option<Range<usize>>, reason: impl Into<String>) {
        self.0.borrow_mut().push(Problem { span, reason: reason.into() });
    }

    /// Returns how many problems there are.
    pub fn count(&self) -> usize {
        self.0.borrow().len()
    }

    /// Returns the problems.
    pub fn into_vec(self) -> Vec<Problem> {
        self.0.into_inner()
    }

    /// Returns what was read, or all problems. Precondition: nothing was read only where there is a problem.
    pub fn finish<T>(self, read: Option<T>) -> Result<T, ConfigError> {
        let problems = self.into_vec();
        match read {
            Some(read) if problems.is_empty() => Ok(read),
            _ => Err(ConfigError { problems }),
        }
    }
}

/// Every problem of a rejected configuration; at least one. Displays as a line for each.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigError {
    /// The problems, in the order in which they were found.
    pub problems: Vec<Problem>,
}

impl ConfigError {
    /// Creates the error of a single problem.
    pub fn new(span: Option<Range<usize>>, reason: impl Into<String>) -> ConfigError {
        ConfigError { problems: vec![Problem { span, reason: reason.into() }] }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reasons: Vec<&str> = self.problems.iter().map(|problem| problem.reason.as_str()).collect();
        f.write_str(&reasons.join("\n"))
    }
}

impl std::error::Error for ConfigError {}

/// Returns the known name nearest to `name`, if one is near. Ignores case.
pub fn suggest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    known
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(&name, &candidate.to_lowercase()), candidate))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// Returns the middle of a sentence about an unknown name: ``: did you mean `near`?``, or `;` where nothing is near.
pub fn hint<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    suggest(name, known).map_or_else(|| ";".to_string(), |near| format!(": did you mean `{near}`?"))
}

/// Returns the sentence about an unknown name, with the nearest and all known ones.
pub fn unknown<'a>(place: &str, noun: &str, name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let hint = hint(name, known.iter().copied());
    let list =
        if known.is_empty() { "it has none".to_string() } else { format!("it has: {}", known.join(", ")) };
    format!("{place} has no {noun} `{name}`{hint} {list}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, PartialEq, Debug)]
    enum Pattern {
        Plus,
        Square,
    }

    choices!(Pattern { Plus = "plus", Square = "square" });

    const fn key(name: &'static str, default: &'static str, domain: Domain) -> Key {
        Key { name, default, domain, about: "" }
    }

    static KEYS: &[Key] = &[
        key("seats", "3", Domain::OneOf(&[2, 3])),
        key("size", "10", Domain::Integer { min: 4, max: 16 }),
        key("pattern", "plus", Domain::Choice(Pattern::NAMES)),
        key("capture", "false", Domain::Flag),
        key("komi", "7.5", Domain::Halves { min: -1000, max: 1000 }),
        key("heaps", "3-4-5", Domain::Integers { min: 0, max: 9, most: 4 }),
    ];

    fn read(given: &[(&str, &'static str)]) -> Result<Values, ConfigError> {
        let problems = Problems::default();
        let entries =
            given.iter().map(|&(key, value)| Entry { key, value, key_span: None, value_span: None });
        let scope = Scope { place: "test", noun: "parameter", also: &[] };
        let values = Values::read(scope, KEYS, entries, &problems);
        problems.finish(Some(values))
    }

    #[test]
    fn canonical_text_lists_every_key() {
        let all = "seats=3,size=10,pattern=plus,capture=false,komi=7.5,heaps=3-4-5";
        assert_eq!(read(&[]).unwrap().to_string(), all);
        let some = read(&[("komi", "-3"), ("heaps", "0-9"), ("seats", "2"), ("capture", "true")]).unwrap();
        assert_eq!(some.to_string(), "seats=2,size=10,pattern=plus,capture=true,komi=-3,heaps=0-9");
        assert_eq!(some.choice::<Pattern>("pattern"), Pattern::Plus);
    }

    #[test]
    fn bad_values_are_named_with_what_is_allowed() {
        for (name, value, said) in [
            ("seats", "4", "test: `seats` cannot be `4`; it must be one of 2, 3"),
            ("size", "3", "test: `size` cannot be `3`; it must be a whole number from 4 to 16"),
            ("size", "-1", "test: `size` cannot be `-1`; it must be a whole number from 4 to 16"),
            ("pattern", "x", "test: `pattern` cannot be `x`; it must be one of plus, square"),
            ("capture", "1", "test: `capture` cannot be `1`; it must be true or false"),
            ("komi", "NaN", "test: `komi` cannot be `NaN`; it must be a multiple of 0.5 from -500 to 500"),
            ("komi", "0.3", "test: `komi` cannot be `0.3`; it must be a multiple of 0.5 from -500 to 500"),
            (
                "heaps",
                "1-2-3-4-5",
                "test: `heaps` cannot be `1-2-3-4-5`; \
                 it must be 1 to 4 whole numbers from 0 to 9 joined by -, as in 3-4-5",
            ),
            (
                "sise",
                "9",
                "test has no parameter `sise`: did you mean `size`? it has: seats, size, pattern, capture, komi, heaps",
            ),
        ] {
            assert_eq!(read(&[(name, value)]).unwrap_err().to_string(), said);
        }
        assert_eq!(
            read(&[("size", "9"), ("size", "9")]).unwrap_err().to_string(),
            "test: the parameter `size` is given twice; give it once"
        );
    }

    #[test]
    fn all_problems_are_reported_at_once() {
        let error = read(&[("sise", "9"), ("pattern", "round"), ("size", "9"), ("size", "8")]).unwrap_err();
        let reasons: Vec<&str> = error.problems.iter().map(|problem| problem.reason.as_str()).collect();
        assert_eq!(reasons.len(), 3, "{error}");
        assert!(reasons[0].starts_with("test has no parameter `sise`"), "{error}");
        assert_eq!(reasons[1], "test: `pattern` cannot be `round`; it must be one of plus, square");
        assert!(reasons[2].ends_with("given twice; give it once"), "{error}");
    }

    #[test]
    fn names_and_variants_belong_together() {
        assert_eq!(Pattern::NAMES, ["plus", "square"]);
        assert_eq!(Pattern::named("square"), Some(Pattern::Square));
        assert_eq!(Pattern::named("round"), None);
    }

    #[test]
    fn problems_know_line_and_column() {
        let problem = Problem { span: Some(6..7), reason: String::new() };
        assert_eq!(problem.place("ab\nc = d"), Some((2, 4)));
    }
}
