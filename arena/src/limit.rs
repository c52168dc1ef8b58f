//! Reads limits from text and from TOML, and scales time limits.

use std::ops::RangeInclusive;
use std::time::Duration;

use agon_games::schema::{ConfigError, Domain, Input, Problems};
use agon_search::Limit;
use agon_search::value::MAX_PLY;
use toml::de::DeTable;

use crate::section::{Found, Section, Toml};

/// The keys of a limit, for errors.
const FORM: &str = "one of ms, cpu_ms, nodes or depth, or clock_ms with or without increment_ms";

/// The longest time limit, a year: sums of such times do not overflow.
const MAX_MS: u64 = 365 * 24 * 3600 * 1000;
/// The greatest node limit, which is the greatest integer that TOML guarantees.
const MAX_NODES: u64 = i64::MAX as u64;

/// Reads `ms=50`, `cpu_ms=50`, `nodes=1000`, `depth=6` or `clock_ms=60000,increment_ms=100`.
pub fn parse_limit(text: &str) -> Result<Limit, ConfigError> {
    let mut toml = String::new();
    for pair in text.split(',') {
        toml.push_str(pair);
        toml.push('\n');
    }
    let table = DeTable::parse(&toml).map_err(|_| {
        ConfigError::new(None, format!("the limit `{text}` is not key=number, each key once; give {FORM}"))
    })?;
    let problems = Problems::default();
    let section = Section { table: table.get_ref(), name: "a limit", start: None, problems: &problems };
    let limit = read_limit(section);
    problems.finish(limit)
}

/// Reads a limit from a table such as `{ ms = 50 }`.
pub(crate) fn read_limit(section: Section<'_, '_>) -> Found<Limit> {
    let earlier_problems = section.problems.count();
    section.allow(&["ms", "cpu_ms", "nodes", "depth", "clock_ms", "increment_ms"]);
    let read = |name: &str, min: u64, max: u64| {
        let value = Toml(section.value(name)?);
        value.integer().filter(|number| (min..=max).contains(number)).or_else(|| {
            let domain = Domain::Integer { min, max };
            section.reject(name, format!("the limit `{name}` must be {domain}"))
        })
    };
    // A time may be 0: such a search plays the first legal move. With a limit of 0 nodes or depth there would be no search.
    let milliseconds = |name: &str| read(name, 0, MAX_MS).map(Duration::from_millis);
    let mut limits = Vec::new();
    limits.extend(milliseconds("ms").map(Limit::Wall));
    limits.extend(milliseconds("cpu_ms").map(Limit::Cpu));
    limits.extend(read("nodes", 1, MAX_NODES).map(Limit::Nodes));
    limits.extend(read("depth", 1, MAX_PLY as u64).map(|depth| Limit::Depth(depth as u32)));
    let increment = milliseconds("increment_ms");
    let clock = milliseconds("clock_ms");
    limits
        .extend(clock.map(|remaining| Limit::Clock { remaining, increment: increment.unwrap_or_default() }));
    if section.problems.count() > earlier_problems {
        return None;
    }
    match limits[..] {
        // An increment belongs to a clock.
        [limit] if increment.is_none() || clock.is_some() => Some(limit),
        _ => {
            section.problems.add(section.start(), format!("a limit is exactly one: {FORM}"));
            None
        }
    }
}

/// The speed of the reference machine, for which time limits are meant if the spec sets `normalise`: nodes per second in the
/// fixed searches of [`known_answers`](crate::signature::known_answers).
pub const REFERENCE_SPEED: f64 = 2_000_000.0;

/// The range of the factors by which time limits may be multiplied.
pub const FACTORS: RangeInclusive<f64> = 0.05..=20.0;

/// Returns the factor of time limits for a machine with this speed in nodes per second: twice the speed gives half the time.
/// Rounds to thousandths, so that three decimals are the exact factor.
pub fn speed_factor(speed: f64) -> f64 {
    let factor = (REFERENCE_SPEED / speed.max(1.0)).clamp(*FACTORS.start(), *FACTORS.end());
    (factor * 1000.0).round() / 1000.0
}

/// Multiplies a time limit by a factor; returns other limits unchanged.
pub fn scaled(limit: Limit, factor: f64) -> Limit {
    if factor == 1.0 {
        return limit;
    }
    let scale = |time: Duration| time.mul_f64(factor);
    match limit {
        Limit::Wall(time) => Limit::Wall(scale(time)),
        Limit::Cpu(time) => Limit::Cpu(scale(time)),
        Limit::Clock { remaining, increment } => {
            Limit::Clock { remaining: scale(remaining), increment: scale(increment) }
        }
        Limit::Nodes(_) | Limit::Depth(_) => limit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_every_kind() {
        assert_eq!(parse_limit("ms=50"), Ok(Limit::Wall(Duration::from_millis(50))));
        assert_eq!(parse_limit("cpu_ms=0"), Ok(Limit::Cpu(Duration::ZERO)));
        assert_eq!(parse_limit("nodes = 1_000"), Ok(Limit::Nodes(1000)));
        assert_eq!(parse_limit("depth=6"), Ok(Limit::Depth(6)));
        let clock =
            Limit::Clock { remaining: Duration::from_secs(60), increment: Duration::from_millis(100) };
        assert_eq!(parse_limit("clock_ms=60000,increment_ms=100"), Ok(clock));
    }

    #[test]
    fn rejects_invalid_limits_with_a_remedy() {
        for (text, expected) in [
            ("", "a limit is exactly one: one of ms, cpu_ms, nodes or depth, or clock_ms"),
            ("ms=5,nodes=5", "a limit is exactly one"),
            ("increment_ms=5", "a limit is exactly one"),
            ("ms=5,increment_ms=5", "a limit is exactly one"),
            ("ms=-1", "the limit `ms` must be a whole number from 0 to"),
            ("nodes=1.5", "the limit `nodes` must be a whole number from 1 to"),
            ("nodes=0", "the limit `nodes` must be a whole number from 1 to"),
            ("depth=0", "the limit `depth` must be a whole number from 1 to"),
            ("dept=5", "did you mean `depth`?"),
            ("fast", "is not key=number, each key once"),
            ("ms=5,ms=6", "each key once"),
        ] {
            let error = parse_limit(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
