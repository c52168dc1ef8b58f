//! How answers are written: tables for people, with aligned columns, two spaces between them and no lines, and JSON for
//! programs.

use std::io::{self, Write};

pub use agon_analysis::format::{fixed, rate, shortened, signed, utc};
use serde::Serialize;

use crate::terminal::width as columns_of;

/// An answer for programs: one JSON document on a line.
pub fn write_json(answer: &impl Serialize, out: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, answer)?;
    writeln!(out)
}

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
        let width = |column: usize| self.rows.iter().map(|row| columns_of(&row[column])).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let last = self.columns.len() - 1;
        let indent: usize = widths[..last].iter().map(|width| width + 2).sum();
        for row in &self.rows {
            let mut line = String::new();
            for ((cell, &width), align) in row.iter().zip(&widths).zip(&self.columns[..last]) {
                let air = " ".repeat(width - columns_of(cell));
                match align {
                    Align::Left => line.push_str(&format!("{cell}{air}  ")),
                    Align::Right => line.push_str(&format!("{air}{cell}  ")),
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

/// The width that everything for people fits.
pub const COLUMNS: usize = 80;

/// A text in lines of at most so many columns, broken between words; at least one line.
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

/// A fact a line: what it is, and what is so, folded at 80 columns.
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

#[cfg(test)]
mod tests {
    use super::*;

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
        let mut table = Table::new(&[("name", Align::Left), ("n", Align::Right)]);
        table.row(["围棋手".to_string(), "1".to_string()]);
        let mut text = Vec::new();
        table.write(&mut text).unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), "name    n\n围棋手  1\n");
    }
}
