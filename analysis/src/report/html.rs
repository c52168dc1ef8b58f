//! HTML building blocks of the report: escaped text, text widths, sections, paragraphs and tables.
//!
//! Every text is escaped exactly once.

use super::Availability;

/// Escapes markup, and replaces control characters and bidirectional overrides.
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
            c if c.is_control() => safe.push('\u{fffd}'),
            // Bidirectional overrides would also affect the text that follows.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => safe.push('\u{fffd}'),
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
    format!("<p>{}</p>\n", escape(text))
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

/// Builds the header of a table whose word columns precede its number columns.
pub(super) fn columns<'a>(words: &[&'a str], numbers: &[&'a str]) -> Vec<(&'a str, Column)> {
    let words = words.iter().map(|&name| (name, Column::Word));
    words.chain(numbers.iter().map(|&name| (name, Column::Number))).collect()
}

/// Renders a table; the first cell of each row is its header.
pub(super) fn table(caption: &str, columns: &[(&str, Column)], rows: &[Vec<String>]) -> String {
    let head: String = columns
        .iter()
        .map(|(name, column)| format!("<th scope=\"col\"{}>{}</th>", column.class(), escape(name)))
        .collect();
    let row = |cells: &Vec<String>| {
        let cells: String = cells
            .iter()
            .zip(columns)
            .enumerate()
            .map(|(index, (cell, (_, column)))| {
                let (class, text) = (column.class(), escape(cell));
                match index {
                    0 => format!("<th scope=\"row\"{class}>{text}</th>"),
                    _ => format!("<td{class}>{text}</td>"),
                }
            })
            .collect();
        format!("<tr>{cells}</tr>\n")
    };
    let rows: String = rows.iter().map(row).collect();
    format!(
        "<div class=\"wide\" tabindex=\"0\"><table>\n<caption><span>{}</span></caption>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n",
        escape(caption)
    )
}

/// Renders a table of named values.
pub(super) fn value_table<const N: usize>(caption: &str, rows: [(&str, String); N]) -> String {
    let rows = rows.map(|(name, value)| vec![name.to_string(), value]);
    table(caption, &[("", Column::Word), ("value", Column::Words)], &rows)
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
    fn fitted_text_fits() {
        for text in ["", "a", "depth-12", "WWWWWWWWWWWWWWWWWWWWW", "ひらがなひらがな"] {
            let cut = fitted(text, 6.0);
            assert!(text_width(&cut) <= 6.0, "{cut}");
        }
        assert_eq!(fitted("depth-5", 10.0), "depth-5");
    }
}
