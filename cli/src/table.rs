//! Output: JSON for programs; for people, tables with aligned columns and no lines, and text wrapped at 80 columns.

use std::io::{self, BufWriter, StdoutLock, Write};
use std::process::ExitCode;

pub use agon_analysis::format::{fixed, rate, shortened, signed, utc};
use serde::{Serialize, Serializer};

use crate::fail::Outcome;
use crate::terminal::width as columns_of;

/// Buffered standard output.
pub type Stdout = BufWriter<StdoutLock<'static>>;

/// Returns buffered standard output. Flush it: dropping it hides errors.
pub fn stdout() -> Stdout {
    BufWriter::with_capacity(1 << 16, io::stdout().lock())
}

/// Prints a document as JSON, or as the text that `write` makes of it.
pub fn print(
    json: bool,
    document: &impl Serialize,
    write: impl FnOnce(&mut Stdout) -> io::Result<()>,
) -> Outcome {
    let mut out = stdout();
    if json {
        write_json(document, &mut out)?;
    } else {
        write(&mut out)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Writes one JSON document on a line.
pub fn write_json(document: &impl Serialize, out: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, document)?;
    writeln!(out)
}

/// Serializes an empty text as null.
pub fn null_if_empty<S: Serializer>(text: &impl AsRef<str>, serializer: S) -> Result<S::Ok, S::Error> {
    Some(text.as_ref()).filter(|text| !text.is_empty()).serialize(serializer)
}

/// The alignment of a column.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// For words.
    Left,
    /// For numbers.
    Right,
}

/// A text table with a header.
pub struct Table {
    columns: Vec<Align>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Creates an empty table.
    pub fn new(header: &[(&str, Align)]) -> Table {
        let columns = header.iter().map(|column| column.1).collect();
        Table { columns, rows: vec![header.iter().map(|column| column.0.to_string()).collect()] }
    }

    /// Creates an empty table with one column of words and, behind it, columns of numbers.
    pub fn of_numbers(words: &str, numbers: &[&str]) -> Table {
        let numbers = numbers.iter().map(|&name| (name, Align::Right));
        Table::new(&[(words, Align::Left)].into_iter().chain(numbers).collect::<Vec<_>>())
    }

    /// Adds a row with a cell for each column.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let row: Vec<String> = cells.into_iter().collect();
        debug_assert_eq!(row.len(), self.columns.len());
        self.rows.push(row);
    }

    /// Writes the table without trailing spaces. Wraps words in the last column at 80 columns.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let width = |column: usize| self.rows.iter().map(|row| columns_of(&row[column])).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let last = self.columns.len() - 1;
        let indent: usize = widths[..last].iter().map(|width| width + 2).sum();
        for row in &self.rows {
            let mut line = String::new();
            for ((cell, &width), align) in row.iter().zip(&widths).zip(&self.columns[..last]) {
                let padding = " ".repeat(width - columns_of(cell));
                match align {
                    Align::Left => line.push_str(&format!("{cell}{padding}  ")),
                    Align::Right => line.push_str(&format!("{padding}{cell}  ")),
                }
            }
            if self.columns[last] == Align::Right {
                line.push_str(&" ".repeat(widths[last] - columns_of(&row[last])));
                line.push_str(&row[last]);
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

/// The width of all text output.
pub const COLUMNS: usize = 80;

/// Wraps a text between words into lines of at most `room` columns, at least one line.
pub fn folded(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is always a line");
        if !line.is_empty() && columns_of(line) + 1 + columns_of(word) > room {
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

/// Writes a list of names and texts, wrapped at 80 columns.
pub fn write_facts(facts: &[(&str, String)], out: &mut impl Write) -> io::Result<()> {
    let indent = facts.iter().map(|fact| fact.0.chars().count() + 2).max().unwrap_or(0);
    for (name, text) in facts {
        for (index, line) in folded(text, COLUMNS - indent).into_iter().enumerate() {
            let name = if index == 0 { name } else { "" };
            writeln!(out, "{}", format!("{name:<indent$}{line}").trim_end())?;
        }
    }
    Ok(())
}

/// Writes a sentence, wrapped at 80 columns.
pub fn write_sentence(sentence: &str, out: &mut impl Write) -> io::Result<()> {
    folded(sentence, COLUMNS).iter().try_for_each(|line| writeln!(out, "{line}"))
}

/// Writes a heading and words, wrapped at 80 columns.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wraps_the_last_column() {
        let mut table = Table::new(&[("name", Align::Left), ("about", Align::Left)]);
        table.row(["a".to_string(), "word ".repeat(20).trim_end().to_string()]);
        let mut text = Vec::new();
        table.write(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text.lines().map(str::len).collect::<Vec<_>>(), [11, 80, 30]);
    }

    #[test]
    fn aligns_columns() {
        let mut table = Table::new(&[("name", Align::Left), ("n", Align::Right)]);
        table.row(["a".to_string(), "100".to_string()]);
        let mut text = Vec::new();
        table.write(&mut text).unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), "name    n\na     100\n");
        let mut table = Table::new(&[("name", Align::Left), ("n", Align::Right)]);
        table.row(["围棋手".to_string(), "1".to_string()]);
        let mut text = Vec::new();
        table.write(&mut text).unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), "name    n\n围棋手  1\n");
    }
}
