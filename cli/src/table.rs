//! Output: JSON for programs; for people, tables with aligned columns and no lines, and sentences.

use std::io::{self, BufWriter, StdoutLock, Write};
use std::process::ExitCode;

pub use agon_analysis::format::{capitalised, fixed, likelihood, percent, rate, signed, utc};
use agon_games::printable::printable;
use anyhow::Context as _;
use serde::{Serialize, Serializer};

use crate::fail::Outcome;
use crate::terminal::{self, cut, width as columns_of};

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
    let written = if json { write_json(document, &mut out) } else { write(&mut out) };
    written.and_then(|()| out.flush()).context("cannot write to standard output")?;
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

/// The content of a column, which decides its alignment and what happens to it in a narrow terminal.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Words, cut in a narrow terminal.
    Left,
    /// Words that are never cut, such as the id of a run.
    Fixed,
    /// A sentence in the last column, wrapped in a narrow terminal.
    Prose,
    /// Numbers, never cut.
    Right,
}

/// The width to which columns are narrowed before optional ones are left out, and the least of all.
const NARROW: [usize; 2] = [12, 8];

/// A text table with a header. In a terminal its columns are narrowed or left out until it fits; elsewhere it has its full
/// width, and a row is a line.
pub struct Table {
    columns: Vec<Align>,
    optional: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Creates an empty table.
    pub fn new(header: &[(&str, Align)]) -> Table {
        let columns = header.iter().map(|column| column.1).collect();
        let rows = vec![header.iter().map(|column| column.0.to_string()).collect()];
        Table { columns, optional: Vec::new(), rows }
    }

    /// Creates an empty table with one column of words and, behind it, columns of numbers.
    pub fn of_numbers(words: &str, numbers: &[&str]) -> Table {
        let numbers = numbers.iter().map(|&name| (name, Align::Right));
        Table::new(&[(words, Align::Left)].into_iter().chain(numbers).collect::<Vec<_>>())
    }

    /// Names the columns that a narrow terminal may do without, the least important one first.
    pub fn optional(mut self, names: &[&'static str]) -> Table {
        let is_column = |name: &&&str| self.rows[0].iter().any(|column| column == **name);
        self.optional = names.iter().filter(is_column).copied().collect();
        self
    }

    /// Adds a row with a cell for each column. Replaces unprintable characters, which could change the terminal.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let row: Vec<String> = cells.into_iter().map(|cell| printable(&cell).into_owned()).collect();
        debug_assert_eq!(row.len(), self.columns.len());
        self.rows.push(row);
    }

    /// Writes the table to standard output, fitted to its terminal.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        self.write_within(terminal::width_of_stdout(), out)
    }

    /// Writes the table without trailing spaces, fitted to a number of columns.
    pub fn write_within(&self, room: Option<usize>, out: &mut impl Write) -> io::Result<()> {
        let (missing, widths) = self.fit(room.unwrap_or(usize::MAX));
        let shown = |column: usize| !self.optional[..missing].contains(&self.rows[0][column].as_str());
        for row in &self.rows {
            let mut line = String::new();
            for (column, (&align, &width)) in self.columns.iter().zip(&widths).enumerate() {
                if !shown(column) {
                    continue;
                }
                let indent = columns_of(&line);
                let cell = match align {
                    Align::Prose => folded(&row[column], width).join(&format!("\n{}", " ".repeat(indent))),
                    _ => shortened(&row[column], width),
                };
                let padding = " ".repeat(width.saturating_sub(columns_of(&cell)));
                match align {
                    Align::Right => line.push_str(&format!("{padding}{cell}  ")),
                    _ => line.push_str(&format!("{cell}{padding}  ")),
                }
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        if missing > 0 {
            writeln!(out, "(not shown in this width: {})", self.optional[..missing].join(", "))?;
        }
        Ok(())
    }

    /// Returns whether the table fits the terminal of standard output.
    pub fn fits(&self) -> bool {
        let room = terminal::width_of_stdout().unwrap_or(usize::MAX);
        total(&self.fit(room).1) <= room
    }

    /// Returns how many optional columns are left out of a number of columns, and the widths of all columns.
    fn fit(&self, room: usize) -> (usize, Vec<usize>) {
        let most = self.optional.len();
        let mut attempts = (0..=most).map(|missing| (missing, self.narrowed(missing, NARROW[0], room)));
        let fitting = attempts.find(|(_, widths)| total(widths) <= room);
        fitting.unwrap_or_else(|| (most, self.narrowed(most, NARROW[1], room)))
    }

    /// Returns the widths of the columns without the first `missing` optional ones, with the widest words cut as needed.
    fn narrowed(&self, missing: usize, least: usize, room: usize) -> Vec<usize> {
        let mut widths = self.widths(missing);
        while total(&widths) > room {
            // A sentence needs room for its longest words.
            let is_wide = |&column: &usize| match self.columns[column] {
                Align::Left => widths[column] > least,
                Align::Prose => widths[column] > 2 * least,
                Align::Fixed | Align::Right => false,
            };
            let wide = (0..widths.len()).filter(is_wide);
            let Some(widest) = wide.max_by_key(|&column| widths[column]) else { break };
            widths[widest] -= 1;
        }
        widths
    }

    /// Returns the widths of the columns; those of the first `missing` optional ones are zero.
    fn widths(&self, missing: usize) -> Vec<usize> {
        let width = |column: usize| {
            let is_missing = self.optional[..missing].contains(&self.rows[0][column].as_str());
            let widths = self.rows.iter().map(|row| columns_of(&row[column]));
            if is_missing { 0 } else { widths.max().unwrap_or(0) }
        };
        (0..self.columns.len()).map(width).collect()
    }
}

/// Returns the width of a table with columns of these widths; a column without width is not shown.
fn total(widths: &[usize]) -> usize {
    let shown = widths.iter().filter(|&&width| width > 0);
    shown.map(|width| width + 2).sum::<usize>().saturating_sub(2)
}

/// The greatest width of sentences.
const COLUMNS: usize = 80;

/// Returns the width of sentences: that of the terminal, and at most 80 columns.
pub fn sentence_width() -> usize {
    terminal::width_of_stdout().unwrap_or(COLUMNS).min(COLUMNS)
}

/// Cuts a text to at most `width` columns of a terminal, ending in two dots if it was cut.
pub fn shortened(text: &str, width: usize) -> String {
    if columns_of(text) <= width {
        text.to_string()
    } else {
        format!("{}..", cut(text, width.saturating_sub(2)))
    }
}

/// Wraps a text between words into lines of at most `room` columns, at least one line. A percent sign stays with its number.
pub fn folded(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let glued = text.replace(" %", "\u{a0}%");
    for word in glued.split(' ').map(|word| word.replace('\u{a0}', " ")) {
        let line = lines.last_mut().expect("there is always a line");
        if !line.is_empty() && columns_of(line) + 1 + columns_of(&word) > room {
            lines.push(word);
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(&word);
        }
    }
    lines
}

/// Writes a list of names and texts, wrapped to the width of sentences.
pub fn write_facts(facts: &[(&str, String)], out: &mut impl Write) -> io::Result<()> {
    let indent = facts.iter().map(|fact| fact.0.chars().count() + 2).max().unwrap_or(0);
    for (name, text) in facts {
        for (index, line) in folded(text, sentence_width().saturating_sub(indent)).into_iter().enumerate() {
            let name = if index == 0 { name } else { "" };
            writeln!(out, "{}", format!("{name:<indent$}{line}").trim_end())?;
        }
    }
    Ok(())
}

/// Writes a sentence, wrapped to the width of sentences.
pub fn write_sentence(sentence: &str, out: &mut impl Write) -> io::Result<()> {
    folded(sentence, sentence_width()).iter().try_for_each(|line| writeln!(out, "{line}"))
}

/// Writes a heading and words, wrapped to the width of sentences.
pub fn write_words(heading: &str, words: &[impl AsRef<str>], out: &mut impl Write) -> io::Result<()> {
    let mut line = heading.to_string();
    for word in words {
        let word = word.as_ref();
        if columns_of(&line) + 1 + columns_of(word) > sentence_width() {
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

    fn written(table: &Table, room: Option<usize>) -> String {
        let mut text = Vec::new();
        table.write_within(room, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn wraps_sentences_in_a_terminal() {
        let mut table = Table::new(&[("name", Align::Left), ("about", Align::Prose)]);
        table.row(["a".to_string(), "word ".repeat(20).trim_end().to_string()]);
        let lengths = |room| written(&table, room).lines().map(str::len).collect::<Vec<_>>();
        assert_eq!(lengths(Some(80)), [11, 80, 30]);
        assert_eq!(lengths(None), [11, 105]);
        assert_eq!(
            folded("LOS 50.0 %: either may be stronger", 10),
            ["LOS", "50.0 %:", "either may", "be", "stronger"]
        );
    }

    #[test]
    fn fits_a_narrow_terminal() {
        let mut table = Table::of_numbers("player", &["Elo", "nodes", "depth"]).optional(&["depth", "nodes"]);
        let name = "a-player-with-a-name-of-some-forty-letters";
        table.row([name, "+1234", "12345", "7"].map(str::to_string));
        let lines = |room| written(&table, room).lines().map(str::to_string).collect::<Vec<_>>();
        assert!(lines(None)[1].starts_with(&format!("{name}  +1234")));
        assert_eq!(lines(Some(48))[1], "a-player-with-a-name-of-s..  +1234  12345      7");
        assert_eq!(lines(Some(30))[1], "a-player-with-..  +1234  12345");
        assert_eq!(lines(Some(30))[2], "(not shown in this width: depth)");
        assert_eq!(lines(Some(16))[1], "a-playe..  +1234");
        assert_eq!(lines(Some(3)), lines(Some(15)));
    }

    #[test]
    fn replaces_unprintable_characters() {
        let mut table = Table::new(&[("name", Align::Left)]);
        table.row(["a\x1b[31mb\nc\u{202e}".to_string()]);
        assert_eq!(written(&table, None), "name\na\u{fffd}[31mb c\u{fffd}\n");
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
