//! From text to a position: a game's name, its parameters and their limits.
//!
//! A game is named as `name` or `name:key=value,key=value`. Values are checked here, once, against what the game
//! declares; a game's constructor only sees values within their domains.

use std::fmt;

use crate::game::Game;

/// What values a parameter may take.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Domain {
    /// A whole number within bounds.
    Integer {
        /// The smallest.
        min: u32,
        /// The largest.
        max: u32,
    },
    /// One of a few whole numbers.
    OneOf(&'static [u32]),
    /// One of a few words.
    Choice(&'static [&'static str]),
    /// `true` or `false`.
    Flag,
    /// A multiple of one half within bounds: `7.5`, `6`, `-0.5`.
    Halves {
        /// The smallest, in halves.
        min: i32,
        /// The largest, in halves.
        max: i32,
    },
    /// Whole numbers joined by `-`: `3-4-5`.
    Integers {
        /// The smallest of each.
        min: u32,
        /// The largest of each.
        max: u32,
        /// How many at most; at least one.
        most: usize,
    },
}

impl Domain {
    /// Reads a value; nothing if it is not allowed.
    fn read(self, text: &str) -> Option<Value> {
        // One text for one number: neither `+3` nor `007`.
        let integer = |text: &str| text.parse::<u32>().ok().filter(|number| number.to_string() == text);
        match self {
            Domain::Integer { min, max } => {
                integer(text).filter(|n| (min..=max).contains(n)).map(Value::Integer)
            }
            Domain::OneOf(allowed) => integer(text).filter(|n| allowed.contains(n)).map(Value::Integer),
            Domain::Choice(words) => words.iter().find(|&&word| word == text).map(|&w| Value::Choice(w)),
            Domain::Flag => text.parse().ok().map(Value::Flag),
            Domain::Halves { min, max } => {
                let number: f64 = text.parse().ok()?;
                let halves = number * 2.0;
                let fits = halves.fract() == 0.0 && (f64::from(min)..=f64::from(max)).contains(&halves);
                fits.then_some(Value::Halves(halves as i32))
            }
            Domain::Integers { min, max, most } => {
                let numbers: Vec<u32> = text
                    .split('-')
                    .map(|part| integer(part).filter(|n| (min..=max).contains(n)))
                    .collect::<Option<_>>()?;
                (numbers.len() <= most).then_some(Value::Integers(numbers))
            }
        }
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let half = |halves: i32| f64::from(halves) / 2.0;
        match *self {
            Domain::Integer { min, max } => write!(f, "a whole number from {min} to {max}"),
            Domain::OneOf(allowed) => {
                let texts: Vec<String> = allowed.iter().map(u32::to_string).collect();
                write!(f, "one of {}", texts.join(", "))
            }
            Domain::Choice(words) => write!(f, "one of {}", words.join(", ")),
            Domain::Flag => write!(f, "true or false"),
            Domain::Halves { min, max } => {
                write!(f, "a multiple of 0.5 from {} to {}", half(min), half(max))
            }
            Domain::Integers { min, max, most } => {
                write!(f, "1 to {most} whole numbers from {min} to {max} joined by -, as in 3-4-5")
            }
        }
    }
}

/// A parameter that a game declares.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// The text of its default value.
    pub default: &'static str,
    /// The values it may take.
    pub domain: Domain,
    /// What it means, in a line.
    pub about: &'static str,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Value {
    Integer(u32),
    Choice(&'static str),
    Flag(bool),
    Halves(i32),
    Integers(Vec<u32>),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Integer(n) => write!(f, "{n}"),
            Value::Choice(word) => write!(f, "{word}"),
            Value::Flag(flag) => write!(f, "{flag}"),
            Value::Halves(halves) => write!(f, "{}", f64::from(*halves) / 2.0),
            Value::Integers(numbers) => {
                let texts: Vec<String> = numbers.iter().map(u32::to_string).collect();
                write!(f, "{}", texts.join("-"))
            }
        }
    }
}

/// A value for every parameter that a game declares, each within its domain.
///
/// Displays as `key=value,key=value` with every key in the declared order: the canonical name of a variant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parameters {
    values: Vec<(&'static str, Value)>,
}

impl Parameters {
    /// The defaults, with the given `key=value` texts over them.
    pub fn read<'a>(
        game: &'static str,
        declared: &'static [Parameter],
        given: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Parameters, SetupError> {
        let mut values: Vec<(&'static str, Value)> = declared
            .iter()
            .map(|parameter| {
                let value = parameter.domain.read(parameter.default).expect("a default lies in its domain");
                (parameter.name, value)
            })
            .collect();
        let mut seen = Vec::new();
        for (name, text) in given {
            let index = declared.iter().position(|parameter| parameter.name == name).ok_or_else(|| {
                SetupError::UnknownParameter {
                    game,
                    name: name.to_string(),
                    suggestion: suggestion(name, declared.iter().map(|parameter| parameter.name)),
                    known: declared.iter().map(|parameter| parameter.name).collect(),
                }
            })?;
            if seen.contains(&index) {
                return Err(SetupError::RepeatedParameter { game, name: declared[index].name });
            }
            seen.push(index);
            let domain = declared[index].domain;
            values[index].1 = domain.read(text).ok_or_else(|| SetupError::BadValue {
                game,
                name: declared[index].name,
                value: text.to_string(),
                domain,
            })?;
        }
        Ok(Parameters { values })
    }

    /// The defaults of a game.
    pub fn defaults(declared: &'static [Parameter]) -> Parameters {
        Parameters::read("", declared, []).expect("defaults lie in their domains")
    }

    fn value(&self, name: &str) -> &Value {
        let found = self.values.iter().find(|(known, _)| *known == name);
        &found.expect("a game asks only for parameters that it declares").1
    }

    /// The value of a declared [`Domain::Integer`] or [`Domain::OneOf`].
    pub fn integer(&self, name: &str) -> u32 {
        match self.value(name) {
            Value::Integer(n) => *n,
            other => unreachable!("{name} is declared as an integer and holds {other:?}"),
        }
    }

    /// The value of a declared [`Domain::Choice`].
    pub fn choice(&self, name: &str) -> &'static str {
        match self.value(name) {
            Value::Choice(word) => word,
            other => unreachable!("{name} is declared as a choice and holds {other:?}"),
        }
    }

    /// The value of a declared [`Domain::Flag`].
    pub fn flag(&self, name: &str) -> bool {
        match self.value(name) {
            Value::Flag(flag) => *flag,
            other => unreachable!("{name} is declared as a flag and holds {other:?}"),
        }
    }

    /// The value of a declared [`Domain::Halves`], in halves.
    pub fn halves(&self, name: &str) -> i32 {
        match self.value(name) {
            Value::Halves(halves) => *halves,
            other => unreachable!("{name} is declared in halves and holds {other:?}"),
        }
    }

    /// The value of a declared [`Domain::Integers`].
    pub fn integers(&self, name: &str) -> &[u32] {
        match self.value(name) {
            Value::Integers(numbers) => numbers,
            other => unreachable!("{name} is declared as integers and holds {other:?}"),
        }
    }

    /// The number of seats: the parameter `seats` where the game declares one, else two.
    pub fn seats(&self) -> usize {
        let declared = self.values.iter().any(|(name, _)| *name == "seats");
        if declared { self.integer("seats") as usize } else { 2 }
    }
}

impl fmt::Display for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, value)) in self.values.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{name}={value}")?;
        }
        Ok(())
    }
}

/// What the turn order of a game promises.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turns {
    /// Seats follow each other in rotation, always; who cannot move passes.
    Rotate,
    /// Seats follow each other in rotation; a seat that is out is skipped and never moves again.
    RotateSkippingOut,
    /// A seat may move several times in a row.
    MoveAgain,
    /// Chance decides some plies; between them a seat may move several times in a row.
    Dice,
}

/// How a game is named and begun.
pub trait Setup: Game {
    /// The name in calls and files: lower case, words joined by `-`.
    const NAME: &'static str;
    /// The rules in one line of at most 100 characters.
    const SUMMARY: &'static str;
    /// The parameters. A game for several numbers of seats has `seats` first, a [`Domain::OneOf`] or a
    /// [`Domain::Integer`] of exactly the numbers that the registry lists for it, 2 included.
    const PARAMETERS: &'static [Parameter];
    /// What the turn order promises.
    const TURNS: Turns;

    /// What a person who asks for these parameters may want to know, if anything.
    fn note(_parameters: &Parameters) -> Option<&'static str> {
        None
    }

    /// The first position. Parameters that do not go together are a [`SetupError::Conflict`].
    fn initial(parameters: &Parameters) -> Result<Self, SetupError>;

    /// The position that a text of [`Notation::position`] describes, every part of it checked.
    ///
    /// [`Notation::position`]: crate::game::Notation::position
    fn from_position(parameters: &Parameters, text: &str) -> Result<Self, SetupError>;
}

/// Why a text names no game or no position.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// No such game.
    #[error("there is no game `{name}`{}", remedy(suggestion, "`agon list-games` lists them"))]
    UnknownGame {
        /// What was asked for.
        name: String,
        /// What may have been meant.
        suggestion: Option<&'static str>,
    },
    /// No such parameter.
    #[error("{game} has no parameter `{name}`{}", remedy(suggestion, &known_parameters(known)))]
    UnknownParameter {
        /// The game.
        game: &'static str,
        /// What was asked for.
        name: String,
        /// What may have been meant.
        suggestion: Option<&'static str>,
        /// What there is.
        known: Vec<&'static str>,
    },
    /// The same parameter twice.
    #[error("{game}: the parameter `{name}` is given twice; give it once")]
    RepeatedParameter {
        /// The game.
        game: &'static str,
        /// The parameter.
        name: &'static str,
    },
    /// A parameter without a value.
    #[error("`{text}` is not of the form key=value; write for example `virus:seats=4,size=10`")]
    NotAPair {
        /// What stands there.
        text: String,
    },
    /// A value outside its domain.
    #[error("{game}: `{name}` cannot be `{value}`; it must be {domain}")]
    BadValue {
        /// The game.
        game: &'static str,
        /// The parameter.
        name: &'static str,
        /// What was given.
        value: String,
        /// What is allowed.
        domain: Domain,
    },
    /// Parameters that do not go together.
    #[error("{game}: {reason}")]
    Conflict {
        /// The game.
        game: &'static str,
        /// A sentence with the remedy.
        reason: String,
    },
    /// A position text that describes no position.
    #[error("{game}: the position is not valid: {reason}; the form is: {form}")]
    Position {
        /// The game.
        game: &'static str,
        /// What is wrong.
        reason: String,
        /// What a position text looks like.
        form: &'static str,
    },
}

/// What may have been meant, and where to look otherwise.
fn remedy(suggestion: &Option<&'static str>, otherwise: &str) -> String {
    match suggestion {
        Some(name) => format!(": did you mean `{name}`? {otherwise}"),
        None => format!("; {otherwise}"),
    }
}

fn known_parameters(known: &[&str]) -> String {
    if known.is_empty() { "it has none".to_string() } else { format!("it has: {}", known.join(", ")) }
}

/// The known name nearest to `name`, if one is near. Upper and lower case are alike.
pub fn suggestion<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    known
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(&name, &candidate.to_lowercase()), candidate))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    static DECLARED: &[Parameter] = &[
        Parameter { name: "seats", default: "3", domain: Domain::OneOf(&[2, 3]), about: "" },
        Parameter { name: "size", default: "10", domain: Domain::Integer { min: 4, max: 16 }, about: "" },
        Parameter {
            name: "pattern",
            default: "plus",
            domain: Domain::Choice(&["plus", "square"]),
            about: "",
        },
        Parameter { name: "capture", default: "false", domain: Domain::Flag, about: "" },
        Parameter {
            name: "komi",
            default: "7.5",
            domain: Domain::Halves { min: -1000, max: 1000 },
            about: "",
        },
        Parameter {
            name: "heaps",
            default: "3-4-5",
            domain: Domain::Integers { min: 0, max: 9, most: 4 },
            about: "",
        },
    ];

    fn read(given: &[(&'static str, &'static str)]) -> Result<Parameters, String> {
        Parameters::read("test", DECLARED, given.iter().copied()).map_err(|error| error.to_string())
    }

    #[test]
    fn canonical_text_lists_every_parameter() {
        let all = "seats=3,size=10,pattern=plus,capture=false,komi=7.5,heaps=3-4-5";
        assert_eq!(read(&[]).unwrap().to_string(), all);
        let some = read(&[("komi", "-3"), ("heaps", "0-9"), ("seats", "2"), ("capture", "true")]).unwrap();
        assert_eq!(some.to_string(), "seats=2,size=10,pattern=plus,capture=true,komi=-3,heaps=0-9");
        assert_eq!(some.seats(), 2);
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
            assert_eq!(read(&[(name, value)]).unwrap_err(), said);
        }
        assert_eq!(
            read(&[("size", "9"), ("size", "9")]).unwrap_err(),
            "test: the parameter `size` is given twice; give it once"
        );
    }
}
