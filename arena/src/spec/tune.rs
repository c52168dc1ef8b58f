//! A tune: which numbers of a player are looked for, within which bounds, by which method, and how the answer is proved.
//!
//! Values are whole millionths, so that coordinator, worker and dataset mean the same number by the same text. Here is
//! what a spec says and what values make of a player; which values are played is not decided here.

use crate::config::{PlayerConfig, Target};

/// One unit of a value.
pub const MILLION: i64 = 1_000_000;

/// What a spec says of a tune.
#[derive(Clone, PartialEq, Debug)]
pub struct Tune {
    /// The player that is tuned, which begins with the values that it starts from.
    pub player: usize,
    /// What is tuned.
    pub parameters: Vec<Parameter>,
    /// How.
    pub method: Method,
    /// Bouts of the tune itself.
    pub bouts: u64,
    /// Openings that each iteration or trial plays.
    pub pairs: u64,
    /// Whom the candidates meet in turn; where there are none, the two sides of an iteration meet each other.
    pub opponents: Vec<usize>,
    /// Bouts between the tuned player and the one that it started from.
    pub validation: u64,
    /// The numbers of the players that stand for the candidates and for the answer.
    pub roles: Roles,
}

/// The players that a tune adds to those that are written in the spec.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Roles {
    /// The candidate; of two, the one whose wins count.
    pub plus: usize,
    /// The other candidate.
    pub minus: Option<usize>,
    /// The answer.
    pub tuned: usize,
}

/// How a tune looks for better values.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Method {
    /// Steps along the difference of two random perturbations.
    Spsa {
        /// Iterations in flight.
        window: u64,
        /// The learning rate in the last iteration.
        rate: f64,
    },
    /// A Gaussian process that is asked where to try next.
    Bayes {
        /// Trials that are suggested together.
        batch: u64,
    },
}

impl Method {
    /// Its name in a spec.
    pub fn name(self) -> &'static str {
        match self {
            Method::Spsa { .. } => "spsa",
            Method::Bayes { .. } => "bayes",
        }
    }
}

/// A number that is tuned.
#[derive(Clone, PartialEq, Debug)]
pub struct Parameter {
    /// Where it stands in the player's table, as in `search.c`.
    pub path: String,
    /// What it changes.
    pub target: Target,
    /// Where it starts, in millionths.
    pub start: i64,
    /// The least and the greatest value that is played, in millionths.
    pub bounds: [i64; 2],
    /// Whether only whole numbers are played.
    pub whole: bool,
    /// Whether steps are ratios.
    pub log: bool,
    /// The perturbation in the last iteration, in its own units or as a ratio; only of a method that steps.
    pub step: Option<f64>,
}

/// A value for each parameter of a tune, in millionths.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct Values(pub Vec<i64>);

impl Values {
    /// The values as numbers.
    pub fn numbers(&self) -> Vec<f64> {
        self.0.iter().map(|&value| number(value)).collect()
    }
}

/// The number that so many millionths are: what reading the text of it gives.
pub fn number(millionths: i64) -> f64 {
    millionths as f64 / MILLION as f64
}

/// Millionths as a decimal without needless digits.
pub fn decimal(millionths: i64) -> String {
    let sign = if millionths < 0 { "-" } else { "" };
    let (whole, part) =
        (millionths.unsigned_abs() / MILLION as u64, millionths.unsigned_abs() % MILLION as u64);
    let text = format!("{sign}{whole}.{part:06}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// The millionths of a decimal that has no more than six digits behind its point.
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
    /// The bouts of one iteration or trial: an iteration against others plays both of its sides.
    pub fn step_bouts(&self) -> u64 {
        let sides = if self.roles.minus.is_some() && !self.opponents.is_empty() { 2 } else { 1 };
        sides * self.pairs
    }

    /// Where it starts.
    pub fn start(&self) -> Values {
        Values(self.parameters.iter().map(|parameter| parameter.start).collect())
    }

    /// Numbers as they are played: to the millionth, whole where they must be, within their bounds.
    pub fn playable(&self, numbers: &[f64]) -> Values {
        let value = |(parameter, number): (&Parameter, &f64)| {
            let unit = if parameter.whole { MILLION } else { 1 };
            let rounded = (number * MILLION as f64 / unit as f64).round() as i64;
            rounded.saturating_mul(unit).clamp(parameter.bounds[0], parameter.bounds[1])
        };
        Values(self.parameters.iter().zip(numbers).map(value).collect())
    }

    /// Whether values can be those of this tune.
    pub fn allows(&self, values: &Values) -> bool {
        let fits = |(parameter, value): (&Parameter, &i64)| {
            (parameter.bounds[0]..=parameter.bounds[1]).contains(value)
                && (!parameter.whole || value % MILLION == 0)
        };
        values.0.len() == self.parameters.len() && self.parameters.iter().zip(&values.0).all(fits)
    }

    /// A player with these values.
    pub fn configure(&self, player: &PlayerConfig, values: &Values) -> PlayerConfig {
        let mut config = player.clone();
        for (parameter, value) in self.parameters.iter().zip(&values.0) {
            config.set(parameter.target, number(*value));
        }
        config
    }

    /// Values as they stand in the dataset: `search.c=1.25 search.first_play=1`.
    pub fn text(&self, values: &Values) -> String {
        let pair = |(parameter, value): (&Parameter, &i64)| format!("{}={}", parameter.path, decimal(*value));
        self.parameters.iter().zip(&values.0).map(pair).collect::<Vec<_>>().join(" ")
    }

    /// The values of such a text, if it is one of this tune.
    pub fn read(&self, text: &str) -> Option<Values> {
        let mut words = text.split(' ');
        let read = self.parameters.iter().map(|parameter| {
            let (path, value) = words.next()?.split_once('=')?;
            millionths(value).filter(|_| path == parameter.path)
        });
        let values = Values(read.collect::<Option<_>>()?);
        (words.next().is_none() && self.allows(&values)).then_some(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_read_back() {
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
            assert_eq!(text.parse::<f64>().ok(), Some(number(value)), "the same number either way");
        }
        assert_eq!(millionths("+1.2500000"), Some(1_250_000));
        for wrong in ["", ".", "-", "1.0000001", "1e3", "a", "1.-2", "99999999999999999999", "--1"] {
            assert_eq!(millionths(wrong), None, "{wrong}");
        }
    }
}
