//! Limits from text and from TOML.

use std::ops::RangeInclusive;
use std::time::Duration;

use agon_search::Limit;
use agon_search::value::MAX_PLY;
use toml::de::DeTable;

use crate::error::ConfigError;
use crate::settings::whole;

/// What a limit looks like, for errors.
const FORM: &str = "one of ms, cpu_ms, nodes or depth, or clock_ms with or without increment_ms";

/// A year: no move takes longer, and no sum of such times overflows.
const LONGEST_MS: u64 = 365 * 24 * 3600 * 1000;

/// Reads `ms=50`, `cpu_ms=50`, `nodes=1000`, `depth=6` or `clock_ms=60000,increment_ms=100`.
pub fn parse_limit(text: &str) -> Result<Limit, ConfigError> {
    let mut toml = String::new();
    for pair in text.split(',') {
        toml.push_str(pair);
        toml.push('\n');
    }
    let wrong = |reason: String| ConfigError { span: None, reason };
    let table = DeTable::parse(&toml)
        .map_err(|_| wrong(format!("the limit `{text}` is not key=number, each key once; give {FORM}")))?;
    read_limit(table.get_ref()).map_err(|error| wrong(error.reason))
}

/// Reads a limit from a table such as `{ ms = 50 }`.
pub fn read_limit(table: &DeTable<'_>) -> Result<Limit, ConfigError> {
    let known = ["ms", "cpu_ms", "nodes", "depth", "clock_ms", "increment_ms"];
    for (key, _) in table {
        let name: &str = key.get_ref();
        if !known.contains(&name) {
            return Err(ConfigError::unknown_key(key.span(), "a limit", "key", name, known));
        }
    }
    let read = |name: &str, range: RangeInclusive<u64>| match table.get(name) {
        None => Ok(None),
        Some(value) => {
            let (least, most) = (range.start(), range.end());
            let number = whole(value.get_ref()).filter(|number| range.contains(number));
            number.map(Some).ok_or_else(|| ConfigError {
                span: Some(value.span()),
                reason: format!("the limit `{name}` must be a whole number from {least} to {most}"),
            })
        }
    };
    // In no time a search answers with the first move it finds; of no nodes and no depth nothing could be said.
    let milliseconds = |name: &str| Ok(read(name, 0..=LONGEST_MS)?.map(Duration::from_millis));
    let mut limits = Vec::new();
    limits.extend(milliseconds("ms")?.map(Limit::Wall));
    limits.extend(milliseconds("cpu_ms")?.map(Limit::Cpu));
    limits.extend(read("nodes", 1..=u64::MAX >> 1)?.map(Limit::Nodes));
    limits.extend(read("depth", 1..=MAX_PLY as u64)?.map(|depth| Limit::Depth(depth as u32)));
    let increment = milliseconds("increment_ms")?;
    let clock = milliseconds("clock_ms")?;
    limits
        .extend(clock.map(|remaining| Limit::Clock { remaining, increment: increment.unwrap_or_default() }));
    match limits[..] {
        [limit] if increment.is_none() || clock.is_some() => Ok(limit),
        _ => Err(ConfigError { span: None, reason: format!("a limit is exactly one: {FORM}") }),
    }
}

/// Nodes a second of the [known answers](crate::signature::known_answers) on the machine that limits of time are meant
/// for where a spec says `normalise`.
pub const REFERENCE_SPEED: f64 = 2_000_000.0;

/// What limits of time may be multiplied by. A machine further from the reference cannot stand in for it.
pub const FACTORS: RangeInclusive<f64> = 0.05..=20.0;

/// What limits of time are multiplied by where the fixed searches run at this speed: a machine that is twice as fast has
/// half the time. In steps of a thousandth, so that the factor reads back exactly as it was used.
pub fn speed_factor(speed: f64) -> f64 {
    let factor = (REFERENCE_SPEED / speed.max(1.0)).clamp(*FACTORS.start(), *FACTORS.end());
    (factor * 1000.0).round() / 1000.0
}

/// A limit of time multiplied by a factor; other limits as they are.
pub fn scaled(limit: Limit, factor: f64) -> Limit {
    if factor == 1.0 {
        return limit;
    }
    let time = |time: Duration| time.mul_f64(factor);
    match limit {
        Limit::Wall(limit) => Limit::Wall(time(limit)),
        Limit::Cpu(limit) => Limit::Cpu(time(limit)),
        Limit::Clock { remaining, increment } => {
            Limit::Clock { remaining: time(remaining), increment: time(increment) }
        }
        Limit::Nodes(_) | Limit::Depth(_) => limit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_read() {
        assert_eq!(parse_limit("ms=50"), Ok(Limit::Wall(Duration::from_millis(50))));
        assert_eq!(parse_limit("cpu_ms=0"), Ok(Limit::Cpu(Duration::ZERO)));
        assert_eq!(parse_limit("nodes = 1_000"), Ok(Limit::Nodes(1000)));
        assert_eq!(parse_limit("depth=6"), Ok(Limit::Depth(6)));
        let clock =
            Limit::Clock { remaining: Duration::from_secs(60), increment: Duration::from_millis(100) };
        assert_eq!(parse_limit("clock_ms=60000,increment_ms=100"), Ok(clock));
    }

    #[test]
    fn what_is_no_limit_is_refused_with_a_remedy() {
        for (text, said) in [
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
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
