//! HTML building blocks of the report: escaped text, text widths, sections, paragraphs and tables.
//!
//! Every text is escaped exactly once.

use agon_games::printable::is_unprintable;

use super::Availability;
use crate::format::{fixed, grouped, signed, significant};
use crate::pruning::Interval;

/// Escapes markup, and replaces unprintable characters.
pub(super) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\n' | '\t' => safe.push(c),
            // Bidirectional controls would also affect the text that follows.
            c if is_unprintable(c) => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

/// Length above which a name may be broken over lines.
pub(super) const LONG_NAME: usize = 16;

/// Escapes a heading and keeps short hyphenated names on one line.
pub(super) fn heading(text: &str) -> String {
    let word = |word: &str| match word.contains('-') && word.chars().count() <= LONG_NAME + 1 {
        true => format!("<span class=\"name\">{}</span>", escape(word)),
        false => escape(word),
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// Estimates the width of a text in units of the font size, generously for common sans-serif fonts.
pub(super) fn text_width(text: &str) -> f64 {
    let width = |c: char| match c {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ' => 0.36,
        'f' | 't' | 'r' | '-' | '(' | ')' | '/' => 0.46,
        'm' | 'w' | 'M' | 'W' | '@' | '%' => 0.98,
        'A'..='Z' | '+' | '=' | '<' | '>' | '~' | '#' => 0.84,
        c if c.is_ascii() => 0.66,
        _ => 1.05,
    };
    text.chars().map(width).sum()
}

/// Shortens a text to fit a width given in units of the font size.
pub(super) fn fitted(text: &str, width: f64) -> String {
    if text_width(text) <= width {
        return text.to_string();
    }
    let mut length = text.chars().count();
    loop {
        let cut = crate::format::shortened(text, length);
        if length <= 3 || text_width(&cut) <= width {
            return cut;
        }
        length -= 1;
    }
}

/// A section of the page below the summary.
pub(super) struct Section {
    /// Anchor name.
    pub id: &'static str,
    pub title: &'static str,
    /// Whether the section takes the full page width.
    pub full: bool,
    pub body: String,
}

/// Wraps plain text in a paragraph.
pub(super) fn paragraph(text: &str) -> String {
    // A percent sign stays beside its number.
    format!("<p>{}</p>\n", escape(text).replace(" %", "\u{a0}%"))
}

/// Renders a value, or the reason why it is missing.
pub(super) fn available<T>(value: &Availability<T>, body: impl FnOnce(&T) -> String) -> String {
    match value {
        Availability::Available(value) => body(value),
        Availability::Missing { why } => paragraph(why),
    }
}

/// Alignment and wrapping of a table column.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    /// Numbers, right-aligned.
    Number,
    /// A name or word on one line.
    Word,
    /// Text that may wrap.
    Words,
}

impl Column {
    fn class(self) -> &'static str {
        match self {
            Column::Number => "",
            Column::Word => " class=\"left\"",
            Column::Words => " class=\"left words\"",
        }
    }
}

/// A cell of a table.
#[derive(Clone)]
pub(super) enum Cell {
    /// A text, which is not empty if it is the first of its row.
    Text(String),
    /// The name of a player with the class of its colour.
    Player(String, String),
    /// The digits of a number. The page separates thousands.
    Number(String),
    /// An unknown or undefined value.
    Missing,
}

impl Cell {
    /// Formats a number with a fixed number of decimals, or an unknown one.
    pub(super) fn number(value: Option<f64>, decimals: usize) -> Cell {
        value.map_or(Cell::Missing, |value| Cell::Number(fixed(value, decimals)))
    }

    /// Formats a number with its sign, or an unknown one.
    pub(super) fn signed(value: Option<f64>, decimals: usize) -> Cell {
        value.map_or(Cell::Missing, |value| Cell::Number(signed(value, decimals)))
    }

    /// Formats a number with three significant digits, or an unknown one.
    pub(super) fn significant(value: Option<f64>) -> Cell {
        value.map_or(Cell::Missing, |value| Cell::Number(significant(value)))
    }

    /// Formats a share in percent, or an unknown one.
    pub(super) fn percent(share: Option<f64>) -> Cell {
        Cell::number(share.map(|share| 100.0 * share), 1)
    }

    /// Formats an estimate and the ends of its interval.
    pub(super) fn interval(interval: &Interval, cell: impl Fn(Option<f64>) -> Cell) -> [Cell; 3] {
        [Some(interval.value), interval.low, interval.high].map(cell)
    }

    fn html(&self) -> String {
        match self {
            Cell::Text(text) => escape(text),
            Cell::Player(name, class) => {
                format!("<span class=\"swatch {class}\"></span>{}", escape(name))
            }
            Cell::Number(digits) => escape(&grouped(digits)),
            Cell::Missing => "-".to_string(),
        }
    }

    fn csv(&self) -> String {
        match self {
            Cell::Text(text) | Cell::Player(text, _) => csv_field(text),
            Cell::Number(digits) => digits.trim_start_matches('+').to_string(),
            Cell::Missing => String::new(),
        }
    }
}

impl From<u64> for Cell {
    fn from(count: u64) -> Cell {
        Cell::Number(count.to_string())
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_string())
    }
}

/// Quotes a field if needed. A text that a spreadsheet would run as a formula starts with an apostrophe.
fn csv_field(text: &str) -> String {
    let text = if text.starts_with(['=', '+', '-', '@']) { format!("'{text}") } else { text.to_string() };
    if text.contains(['"', ',', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

/// A table of the page, which is also the CSV file of its chart.
pub(super) struct Table {
    caption: String,
    columns: Vec<(String, Column)>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// Creates a table whose word columns precede its number columns.
    pub(super) fn new(caption: &str, words: &[&str], numbers: &[&str], rows: Vec<Vec<Cell>>) -> Table {
        let words = words.iter().map(|name| (name.to_string(), Column::Word));
        let numbers = numbers.iter().map(|name| (name.to_string(), Column::Number));
        Table { caption: caption.to_string(), columns: words.chain(numbers).collect(), rows }
    }

    /// Creates a table with a kind for each column.
    pub(super) fn of(caption: &str, columns: &[(&str, Column)], rows: Vec<Vec<Cell>>) -> Table {
        let columns = columns.iter().map(|&(name, column)| (name.to_string(), column)).collect();
        Table { caption: caption.to_string(), columns, rows }
    }

    /// Renders the table; the first cell of each row is its header.
    pub(super) fn html(&self) -> String {
        let head: String = self
            .columns
            .iter()
            .map(|(name, column)| format!("<th scope=\"col\"{}>{}</th>", column.class(), escape(name)))
            .collect();
        let row = |cells: &Vec<Cell>| {
            let cell = |(index, (cell, (_, column))): (usize, (&Cell, &(String, Column)))| {
                let (class, text) = (column.class(), cell.html());
                match index {
                    0 => format!("<th scope=\"row\"{class}>{text}</th>"),
                    _ => format!("<td{class}>{text}</td>"),
                }
            };
            let cells: String = cells.iter().zip(&self.columns).enumerate().map(cell).collect();
            format!("<tr>{cells}</tr>\n")
        };
        let rows: String = self.rows.iter().map(row).collect();
        format!(
            "<div class=\"wide\" tabindex=\"0\"><table>\n<caption><span>{}</span></caption>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n",
            escape(&self.caption)
        )
    }

    /// Writes the table as CSV (RFC 4180), with the digits of the page.
    pub(super) fn csv(&self) -> String {
        let head: Vec<String> = self.columns.iter().map(|(name, _)| csv_field(name)).collect();
        let rows = self.rows.iter().map(|cells| cells.iter().map(Cell::csv).collect::<Vec<_>>().join(","));
        std::iter::once(head.join(",")).chain(rows).map(|line| line + "\r\n").collect()
    }
}

/// Renders a table of named values.
pub(super) fn value_table<'a>(caption: &str, rows: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let rows = rows.into_iter().map(|(name, value)| vec![Cell::from(name), Cell::Text(value)]);
    Table::of(caption, &[("", Column::Word), ("value", Column::Words)], rows.collect()).html()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_markup() {
        let hostile = "<script>alert(\"x\")</script>&amp; 'a'\u{0}\u{202e}";
        let safe = escape(hostile);
        assert!(!safe.contains(['<', '>', '"', '\'', '\u{0}', '\u{202e}']), "{safe}");
        assert_eq!(safe.matches("&amp;amp;").count(), 1);
        assert_eq!(escape("plain-name 1"), "plain-name 1");
    }

    #[test]
    fn heading_keeps_short_names_unbroken() {
        let long = "a-name-that-is-rather-long";
        assert_eq!(
            heading(&format!("p-1, {long} & all")),
            format!("<span class=\"name\">p-1,</span> {long} &amp; all")
        );
    }

    #[test]
    fn csv_has_the_digits_of_the_page() {
        let row = |name: &str, number| vec![Cell::from(name), Cell::signed(number, 1), Cell::from(1_234_567)];
        let rows = vec![row("a, \"b\"", Some(12_345.67)), row("=c", None)];
        let table = Table::new("", &["player"], &["Elo", "games"], rows);
        assert_eq!(table.csv(), "player,Elo,games\r\n\"a, \"\"b\"\"\",12345.7,1234567\r\n'=c,,1234567\r\n");
        let page = table.html();
        assert!(page.contains("<td>+12,345.7</td><td>1,234,567</td>"), "{page}");
        assert!(page.contains("<td>-</td>"), "{page}");
    }

    #[test]
    fn fitted_text_fits() {
        for text in ["", "a", "depth-12", "WWWWWWWWWWWWWWWWWWWWW", "ひらがなひらがな"] {
            let cut = fitted(text, 6.0);
            assert!(text_width(&cut) <= 6.0, "{cut}");
        }
        assert_eq!(fitted("depth-5", 10.0), "depth-5");
    }
}
