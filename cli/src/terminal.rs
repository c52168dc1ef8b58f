//! The size of the terminal, and the display width of texts.

use std::io;

use terminal_size::{Height, Width, terminal_size_of};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Returns the columns and rows of the terminal on standard error, if it is one.
pub fn size_of_stderr() -> Option<(usize, usize)> {
    let (Width(columns), Height(rows)) = terminal_size_of(io::stderr())?;
    // Some terminals report a size of zero because they do not know it.
    (columns > 0 && rows > 0).then(|| (usize::from(columns), usize::from(rows)))
}

/// Returns the columns of the terminal on standard output, if it is one.
pub fn width_of_stdout() -> Option<usize> {
    let (Width(columns), _) = terminal_size_of(io::stdout())?;
    (columns > 0).then(|| usize::from(columns))
}

/// Returns the number of columns a text takes; a Chinese character or an emoji takes two.
pub fn width(text: &str) -> usize {
    text.width()
}

/// Cuts a line to a number of columns.
pub fn cut(line: &str, columns: usize) -> &str {
    let mut used = 0;
    for (index, letter) in line.char_indices() {
        used += letter.width().unwrap_or(0);
        if used > columns {
            return &line[..index];
        }
    }
    line
}

/// Cuts a text to the rows and columns of a terminal.
pub fn fitted(text: &str, (columns, rows): (usize, usize)) -> String {
    // A full row wraps in some terminals, and the last row holds the cursor.
    let lines = text.lines().take(rows.saturating_sub(1).max(1));
    lines.map(|line| cut(line, columns.saturating_sub(1).max(1)).to_string() + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fits_rows_and_columns() {
        assert_eq!(fitted("abcdef\nab\n", (4, 10)), "abc\nab\n");
        assert_eq!(fitted("a\nb\nc\nd\n", (80, 3)), "a\nb\n");
        assert_eq!(fitted("a\nb\n", (1, 1)), "a\n");
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!((width("围棋"), width("go"), width("é")), (4, 2, 1));
        assert_eq!([cut("围棋", 4), cut("围棋", 3), cut("围棋", 1)], ["围棋", "围", ""]);
    }
}
