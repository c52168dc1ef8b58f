//! Numbers, dates and names for people, shared by the terminal tables and the HTML report.

use agon_games::exchange::UtcDateTime;
use agon_search::{Proof, Value};

/// Cuts a text to at most `width` characters, ending in two dots if it was cut.
pub fn shortened(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_string();
    }
    text.chars().take(width.saturating_sub(2)).chain(['.', '.']).collect()
}

/// Formats a number with three digits and a unit of thousands: `7.03 k`, `224 M`.
pub fn rate(number: f64) -> String {
    let (scaled, unit) = match number {
        n if n >= 1e12 => (n / 1e12, " T"),
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

/// Separates the thousands of a decimal number.
pub fn grouped(number: &str) -> String {
    let start = number.len() - number.trim_start_matches(['+', '-']).len();
    let end = number.find('.').unwrap_or(number.len());
    let mut text = number.to_string();
    let digits = end.saturating_sub(start);
    for back in (3..digits).step_by(3) {
        text.insert(end - back, ',');
    }
    text
}

/// Formats a whole number with separated thousands.
pub fn count(number: u64) -> String {
    grouped(&number.to_string())
}

/// Formats a number with a fixed number of decimals, without a sign if it rounds to zero.
pub fn fixed(number: f64, decimals: usize) -> String {
    let text = format!("{number:.decimals$}");
    let zero = text.bytes().all(|byte| matches!(byte, b'-' | b'0' | b'.'));
    if zero { text.trim_start_matches('-').to_string() } else { text }
}

/// Formats a number with at least three significant digits, never in scientific notation.
pub fn significant(number: f64) -> String {
    let decimals = match number.abs() {
        size if size >= 99.95 || size == 0.0 => 0,
        size => (2.0 - size.log10().floor()).clamp(0.0, 12.0) as usize,
    };
    fixed(number, decimals)
}

/// Formats like [`fixed`], with a plus sign on positive numbers.
pub fn signed(number: f64, decimals: usize) -> String {
    let text = fixed(number, decimals);
    let positive = number > 0.0 && text.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    if positive { format!("+{text}") } else { text }
}

/// Formats a share as a percentage with one decimal.
pub fn percent(share: f64) -> String {
    format!("{} %", fixed(share * 100.0, 1))
}

/// Formats a likelihood of superiority, which is never certain.
pub fn likelihood(share: f64) -> String {
    match share {
        share if share > 0.9995 => "> 99.9 %".to_string(),
        share if share < 0.0005 => "< 0.1 %".to_string(),
        share => percent(share),
    }
}

/// Returns a sentence with a capital letter.
pub fn capitalised(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// Describes the value of a position from the view of the player that searched it.
pub fn value_text(value: Value) -> String {
    match value.proof {
        Some(Proof::Win(1)) => "won in 1 ply".to_string(),
        Some(Proof::Win(plies)) => format!("won in {plies} plies"),
        Some(Proof::Loss(1)) => "lost in 1 ply".to_string(),
        Some(Proof::Loss(plies)) => format!("lost in {plies} plies"),
        Some(Proof::Draw(1)) => "drawn in 1 ply".to_string(),
        Some(Proof::Draw(plies)) => format!("drawn in {plies} plies"),
        Some(Proof::Exact(_)) | None => format!("value {}", signed(value.number, 3)),
    }
}

/// Formats microseconds since 1970 as a UTC date and time, to the second.
pub fn utc(microseconds: i64) -> String {
    let UtcDateTime { year, month, day, hour, minute, second, .. } =
        UtcDateTime::from_unix_microseconds(microseconds);
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
    fn thousands_are_separated() {
        let texts = ["0", "999", "-1000", "+1234567.8901", "12345"].map(grouped);
        assert_eq!(texts, ["0", "999", "-1,000", "+1,234,567.8901", "12,345"]);
    }

    #[test]
    fn likelihoods_are_never_certain() {
        assert_eq!(
            [0.0, 0.0004, 0.0006, 0.5, 0.9994, 0.9996, 1.0].map(likelihood),
            ["< 0.1 %", "< 0.1 %", "0.1 %", "50.0 %", "99.9 %", "> 99.9 %", "> 99.9 %"]
        );
    }

    #[test]
    fn small_numbers_keep_their_digits() {
        let texts = [0.0, 0.000_021_34, 0.5, 7.0, 99.96, 1234.5].map(significant);
        assert_eq!(texts, ["0", "0.0000213", "0.500", "7.00", "100", "1234"]);
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
    fn long_texts_are_shortened() {
        assert_eq!(
            ["", "abcd", "abcde", "äöüßé"].map(|text| shortened(text, 4)),
            ["", "abcd", "ab..", "äö.."]
        );
    }

    #[test]
    fn dates_match_the_calendar() {
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
