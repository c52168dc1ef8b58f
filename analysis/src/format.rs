//! Numbers, dates and names as people read them, in a terminal and on a page: few digits, no sign on zero, nothing too long.
//!
//! Deliberately not here: where they stand, which is the table's or the page's affair.

use agon_games::exchange::Moment;
use agon_search::{Proof, Value};

/// A text of at most so many characters: what is cut off shows as two dots.
pub fn shortened(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_string();
    }
    let mut cut: String = text.chars().take(room.saturating_sub(2)).collect();
    cut.push_str("..");
    cut
}

/// A number with few digits and a unit of thousands: `7.03 k`, `224 M`.
pub fn rate(number: f64) -> String {
    let (scaled, unit) = match number {
        n if n >= 1e9 => (n / 1e9, " G"),
        n if n >= 1e6 => (n / 1e6, " M"),
        n if n >= 1e3 => (n / 1e3, " k"),
        n => (n, "  "),
    };
    let decimals = match scaled {
        n if n >= 99.95 => 0,
        n if n >= 9.995 => 1,
        _ => 2,
    };
    format!("{scaled:.decimals$}{unit}")
}

/// A number with so many decimals, and no sign where it is rounded to zero.
pub fn fixed(number: f64, decimals: usize) -> String {
    let text = format!("{number:.decimals$}");
    let zero = text.bytes().all(|byte| matches!(byte, b'-' | b'0' | b'.'));
    if zero { text.trim_start_matches('-').to_string() } else { text }
}

/// The same with a plus sign before what is above zero.
pub fn signed(number: f64, decimals: usize) -> String {
    let text = fixed(number, decimals);
    let above = number > 0.0 && text.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    if above { format!("+{text}") } else { text }
}

/// What a position is worth to whoever searched it.
pub fn worth(value: Value) -> String {
    match value.proof {
        Some(Proof::Win(1)) => "won in 1 ply".to_string(),
        Some(Proof::Win(plies)) => format!("won in {plies} plies"),
        Some(Proof::Loss(1)) => "lost in 1 ply".to_string(),
        Some(Proof::Loss(plies)) => format!("lost in {plies} plies"),
        None => format!("value {}", signed(value.number, 3)),
    }
}

/// Microseconds since 1970 as a date and a time, UTC, to the second.
pub fn utc(microseconds: i64) -> String {
    let Moment { year, month, day, hour, minute, second, .. } = Moment::from_unix_microseconds(microseconds);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_keep_three_digits() {
        let texts = [0.5, 7.0, 703.0, 7034.0, 224e6, 99.96, 1.5e9].map(rate);
        assert_eq!(texts, ["0.50  ", "7.00  ", "703  ", "7.03 k", "224 M", "100  ", "1.50 G"]);
    }

    #[test]
    fn zero_has_no_sign() {
        assert_eq!([-0.04, 0.04, -0.06, 12.0].map(|number| fixed(number, 1)), ["0.0", "0.0", "-0.1", "12.0"]);
        assert_eq!(
            [-0.04, 0.04, -0.06, 12.0].map(|number| signed(number, 1)),
            ["0.0", "0.0", "-0.1", "+12.0"]
        );
    }

    #[test]
    fn what_is_too_long_is_cut() {
        assert_eq!(
            ["", "abcd", "abcde", "äöüßé"].map(|text| shortened(text, 4)),
            ["", "abcd", "ab..", "äö.."]
        );
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_794_843_296, "2026-11-16T15:34:56Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
        ] {
            assert_eq!(utc(seconds * 1_000_000), text);
        }
    }
}
