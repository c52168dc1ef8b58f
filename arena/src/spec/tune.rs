//! The settings of a tuning run: the tuned parameters with their bounds, the method and the validation.
//!
//! Values are whole millionths, so that coordinator, worker and dataset agree on every number. The choice of values is in
//! `agon-schedule`.

use crate::config::{PlayerConfig, Target};

/// The most parameters for which a Gaussian process is advisable.
pub const FEW_PARAMETERS: usize = 3;

/// The millionths of 1.
pub const MILLION: i64 = 1_000_000;

/// The settings of a tuning run.
#[derive(Clone, PartialEq, Debug)]
pub struct Tune {
    /// The tuned player, configured with the start values.
    pub player: usize,
    /// The tuned parameters.
    pub parameters: Vec<Parameter>,
    /// The method.
    pub method: Method,
    /// Why `auto` chose the method; none if the spec names it.
    pub why: Option<String>,
    /// The most bouts of one repeat, without the validation.
    pub bouts: u64,
    /// The number of openings per iteration or trial.
    pub pairs: u64,
    /// The opponents of the candidates, in turn, at least one; none stands for the other side of an iteration.
    pub opponents: Vec<Option<usize>>,
    /// The number of times that the player is tuned, each with a seed of its own.
    pub repeats: u64,
    /// The width in Elo, to either side, of the answer's interval at which the tuning ends.
    pub precision: Option<f64>,
    /// Trials of other runs.
    pub imported: Vec<ImportedTrial>,
    /// The match that shows what the tuning achieved.
    pub validation: Validation,
    /// The players that represent the candidates and the answers.
    pub roles: Roles,
    /// The number of seats of the game.
    pub seats: usize,
}

/// The settings of the validation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Validation {
    /// The number of bouts of each tuned player against each opponent.
    pub bouts: u64,
    /// The opponents: the start, then others.
    pub opponents: Vec<usize>,
}

/// The result of earlier bouts at some values.
#[derive(Clone, PartialEq, Debug)]
pub struct ImportedTrial {
    /// The values.
    pub values: Values,
    /// The number of bouts.
    pub bouts: u64,
    /// The mean score, from 0 to 1.
    pub score: f64,
    /// The variance of the score of a bout.
    pub variance: f64,
}

/// The players that a tuning run adds to those of the spec.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Roles {
    /// The candidate; the first of two.
    pub plus: usize,
    /// The second candidate.
    pub minus: Option<usize>,
    /// The answer of the first repeat; those of the others follow.
    pub tuned: usize,
}

/// The method of a tuning run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Method {
    /// Simultaneous perturbation: steps along the difference of two random perturbations.
    Spsa {
        /// The number of iterations in flight.
        window: u64,
        /// The learning rate in the last iteration; without one, the tune finds it.
        rate: Option<f64>,
    },
    /// A Gaussian process that suggests trials.
    Bayes {
        /// The number of trials that are suggested together.
        batch: u64,
    },
}

impl Method {
    /// Returns the name in specs.
    pub fn name(self) -> &'static str {
        match self {
            Method::Spsa { .. } => "spsa",
            Method::Bayes { .. } => "bayes",
        }
    }
}

/// A tuned parameter.
#[derive(Clone, PartialEq, Debug)]
pub struct Parameter {
    /// The path into the player's table, such as `search.c`.
    pub path: String,
    /// The setting of the player.
    pub target: Target,
    /// The start value, in millionths.
    pub start: i64,
    /// The least and the greatest value, in millionths.
    pub bounds: [i64; 2],
    /// Whether values are whole numbers.
    pub whole: bool,
    /// Whether the scale is logarithmic, so that steps are ratios.
    pub log: bool,
    /// The perturbation in the last iteration, as a difference or a ratio; only for SPSA, which calibrates it if
    /// there is none.
    pub step: Option<f64>,
}

/// A value for each parameter, in millionths.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct Values(pub Vec<i64>);

impl Values {
    /// Returns the values as floats.
    pub fn numbers(&self) -> Vec<f64> {
        self.0.iter().map(|&value| number(value)).collect()
    }
}

/// Converts millionths to a float: the one that parsing [`decimal`] gives.
pub fn number(millionths: i64) -> f64 {
    millionths as f64 / MILLION as f64
}

/// Formats millionths as the shortest decimal.
pub fn decimal(millionths: i64) -> String {
    let sign = if millionths < 0 { "-" } else { "" };
    let (whole, part) =
        (millionths.unsigned_abs() / MILLION as u64, millionths.unsigned_abs() % MILLION as u64);
    let text = format!("{sign}{whole}.{part:06}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// Parses a decimal with at most six digits after the point.
pub fn millionths(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let part = part.trim_end_matches('0');
    let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || part.len() > 6 || !plain(whole) || !plain(part) {
        return None;
    }
    let part: i64 = if part.is_empty() { 0 } else { format!("{part:0<6}").parse().ok()? };
    let all = whole.parse::<i64>().ok()?.checked_mul(MILLION)?.checked_add(part)?;
    Some(if negative { -all } else { all })
}

impl Tune {
    /// Returns the number of bouts of one iteration or trial.
    pub fn step_bouts(&self) -> u64 {
        self.pairs * self.cycle_bouts() / self.opponents.len() as u64
    }

    /// Returns the number of bouts over an opening: the two sides of an iteration each meet an opponent that is not one of
    /// them.
    fn sides(&self, opponent: Option<usize>) -> u64 {
        if self.roles.minus.is_some() && opponent.is_some() { 2 } else { 1 }
    }

    /// Returns the number of bouts in which each opponent has had its turn.
    fn cycle_bouts(&self) -> u64 {
        self.opponents.iter().map(|opponent| self.sides(*opponent)).sum()
    }

    /// Returns the opening of a bout of a step, and the side that plays it, both counted from 0.
    pub fn opening_and_side(&self, place: u64) -> (u64, usize) {
        let (cycle, mut rest) = (place / self.cycle_bouts(), place % self.cycle_bouts());
        let mut opening = cycle * self.opponents.len() as u64;
        for opponent in &self.opponents {
            if rest < self.sides(*opponent) {
                break;
            }
            rest -= self.sides(*opponent);
            opening += 1;
        }
        (opening, rest as usize)
    }

    /// Returns the players that share a bout over an opening with a candidate; none if the other side of an iteration does.
    pub fn others(&self, opening: u64) -> Option<Vec<usize>> {
        let count = self.opponents.len() as u64;
        (0..self.seats as u64 - 1).map(|seat| self.opponents[((opening + seat) % count) as usize]).collect()
    }

    /// Returns the number of bouts of the validation.
    pub fn validation_bouts(&self) -> u64 {
        self.validation.bouts * self.validation.opponents.len() as u64 * self.repeats
    }

    /// Returns the player that represents the answer of a repeat.
    pub fn tuned(&self, repeat: u64) -> usize {
        self.roles.tuned + repeat as usize
    }

    /// Returns why the method was chosen, and what would be better for these parameters, a sentence each.
    pub fn advice(&self) -> Vec<String> {
        let many = matches!(self.method, Method::Bayes { .. }) && self.parameters.len() > FEW_PARAMETERS;
        let better = many.then(|| {
            format!(
                "A Gaussian process is weak with {} parameters: `method = \"spsa\"` needs fewer bouts, and `agon tune --from` fits \
                 evaluation weights to recorded games.",
                self.parameters.len()
            )
        });
        self.why.iter().map(|why| format!("{why}.")).chain(better).collect()
    }

    /// Returns the start values.
    pub fn start(&self) -> Values {
        Values(self.parameters.iter().map(|parameter| parameter.start).collect())
    }

    /// Rounds numbers to millionths or whole numbers and clamps them to the bounds.
    pub fn playable(&self, numbers: &[f64]) -> Values {
        let value = |(parameter, number): (&Parameter, &f64)| {
            let unit = if parameter.whole { MILLION } else { 1 };
            let rounded = (number * MILLION as f64 / unit as f64).round() as i64;
            rounded.saturating_mul(unit).clamp(parameter.bounds[0], parameter.bounds[1])
        };
        Values(self.parameters.iter().zip(numbers).map(value).collect())
    }

    /// Returns whether values are within the bounds and whole where required.
    pub fn allows(&self, values: &Values) -> bool {
        let fits = |(parameter, value): (&Parameter, &i64)| {
            (parameter.bounds[0]..=parameter.bounds[1]).contains(value)
                && (!parameter.whole || value % MILLION == 0)
        };
        values.0.len() == self.parameters.len() && self.parameters.iter().zip(&values.0).all(fits)
    }

    /// Returns a player with these values.
    pub fn configure(&self, player: &PlayerConfig, values: &Values) -> PlayerConfig {
        let mut config = player.clone();
        for (parameter, value) in self.parameters.iter().zip(&values.0) {
            config.set(&parameter.target, number(*value));
        }
        config
    }

    /// Formats values for the dataset, such as `search.c=1.25 search.first_play=1`.
    pub fn text(&self, values: &Values) -> String {
        let pair = |(parameter, value): (&Parameter, &i64)| format!("{}={}", parameter.path, decimal(*value));
        self.parameters.iter().zip(&values.0).map(pair).collect::<Vec<_>>().join(" ")
    }

    /// Parses the format of [`Tune::text`]. Returns none for values of other parameters or out of bounds.
    pub fn read(&self, text: &str) -> Option<Values> {
        // The names of engines' options may have spaces.
        let mut rest = text;
        let mut values = Vec::new();
        for (index, parameter) in self.parameters.iter().enumerate() {
            rest = if index == 0 { rest } else { rest.strip_prefix(' ')? };
            rest = rest.strip_prefix(&parameter.path)?.strip_prefix('=')?;
            let (value, after) = rest.split_at(rest.find(' ').unwrap_or(rest.len()));
            values.push(millionths(value)?);
            rest = after;
        }
        let values = Values(values);
        (rest.is_empty() && self.allows(&values)).then_some(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_survive_parsing() {
        for (value, text) in [
            (0, "0"),
            (1, "0.000001"),
            (-1, "-0.000001"),
            (1_250_000, "1.25"),
            (-40_000_000, "-40"),
            (1_000_000_000_000, "1000000"),
        ] {
            assert_eq!(decimal(value), text);
            assert_eq!(millionths(text), Some(value));
            assert_eq!(text.parse::<f64>().ok(), Some(number(value)), "`decimal` and `number` agree");
        }
        assert_eq!(millionths("+1.2500000"), Some(1_250_000));
        for wrong in ["", ".", "-", "1.0000001", "1e3", "a", "1.-2", "99999999999999999999", "--1"] {
            assert_eq!(millionths(wrong), None, "{wrong}");
        }
    }
}
