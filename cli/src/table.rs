//! Tables for people: aligned columns, two spaces between them, no lines.

use std::io::{self, Write};

use agon_games::exchange::Moment;

/// Which side a column's cells lean to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// Rows of text below a header.
pub struct Table {
    columns: Vec<Align>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns.
    pub fn new(header: &[(&str, Align)]) -> Table {
        let columns = header.iter().map(|column| column.1).collect();
        Table { columns, rows: vec![header.iter().map(|column| column.0.to_string()).collect()] }
    }

    /// Adds a row, a cell for each column.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let row: Vec<String> = cells.into_iter().collect();
        debug_assert_eq!(row.len(), self.columns.len());
        self.rows.push(row);
    }

    /// Writes the table; lines have no trailing spaces. Words in the last column go on below themselves where they would
    /// pass eighty columns.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let width =
            |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let last = self.columns.len() - 1;
        let indent: usize = widths[..last].iter().map(|width| width + 2).sum();
        for row in &self.rows {
            let mut line = String::new();
            for ((cell, &width), align) in row.iter().zip(&widths).zip(&self.columns[..last]) {
                match align {
                    Align::Left => line.push_str(&format!("{cell:<width$}  ")),
                    Align::Right => line.push_str(&format!("{cell:>width$}  ")),
                }
            }
            if self.columns[last] == Align::Right {
                line.push_str(&format!("{:>width$}", row[last], width = widths[last]));
                writeln!(out, "{}", line.trim_end())?;
                continue;
            }
            for (index, text) in folded(&row[last], COLUMNS.saturating_sub(indent)).into_iter().enumerate() {
                if index > 0 {
                    line = " ".repeat(indent);
                }
                line.push_str(&text);
                writeln!(out, "{}", line.trim_end())?;
            }
        }
        Ok(())
    }
}

/// The width that everything for people fits.
pub const COLUMNS: usize = 80;

/// A text in lines of at most so many characters, broken between words; at least one line.
fn folded(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is always a line");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > room {
            lines.push(word.to_string());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

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

/// A fact a line: what it is, and what is so, folded at 80 columns.
pub fn write_facts(facts: &[(&str, String)], out: &mut impl Write) -> io::Result<()> {
    let indent = facts.iter().map(|fact| fact.0.chars().count() + 2).max().unwrap_or(0);
    for (name, text) in facts {
        for (index, line) in folded(text, COLUMNS - indent).into_iter().enumerate() {
            let name = if index == 0 { name } else { "" };
            writeln!(out, "{name:<indent$}{line}")?;
        }
    }
    Ok(())
}

/// A sentence, folded at 80 columns.
pub fn write_sentence(sentence: &str, out: &mut impl Write) -> io::Result<()> {
    folded(sentence, COLUMNS).iter().try_for_each(|line| writeln!(out, "{line}"))
}

/// Words after a heading, folded at 80 columns.
pub fn write_words(heading: &str, words: &[impl AsRef<str>], out: &mut impl Write) -> io::Result<()> {
    let mut line = heading.to_string();
    for word in words {
        let word = word.as_ref();
        if line.len() + 1 + word.len() > COLUMNS {
            writeln!(out, "{line}")?;
            line = " ".to_string();
        }
        line.push(' ');
        line.push_str(word);
    }
    writeln!(out, "{line}")
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
    fn the_last_column_is_folded() {
        let mut table = Table::new(&[("name", Align::Left), ("about", Align::Left)]);
        table.row(["a".to_string(), "word ".repeat(20).trim_end().to_string()]);
        let mut text = Vec::new();
        table.write(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text.lines().map(str::len).collect::<Vec<_>>(), [11, 80, 30]);
    }

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(&[("name", Align::Left), ("n", Align::Right)]);
        table.row(["a".to_string(), "100".to_string()]);
        let mut text = Vec::new();
        table.write(&mut text).unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), "name    n\na     100\n");
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
