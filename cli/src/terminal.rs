//! The terminal: how much room it has, how much of it a text takes, and what fits.

use std::io;

use terminal_size::{Height, Width, terminal_size_of};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Columns and rows of the terminal that standard error is; nothing where it is none.
pub fn size_of_stderr() -> Option<(usize, usize)> {
    let (Width(columns), Height(rows)) = terminal_size_of(io::stderr())?;
    // Some say that they have no room at all, and mean that they do not know.
    (columns > 0 && rows > 0).then(|| (usize::from(columns), usize::from(rows)))
}

/// How many columns a text takes: a sign of Chinese or a picture takes two.
pub fn width(text: &str) -> usize {
    text.width()
}

/// As much of a line as so many columns hold.
pub fn cut(line: &str, columns: usize) -> &str {
    let mut used = 0;
    for (place, letter) in line.char_indices() {
        used += letter.width().unwrap_or(0);
        if used > columns {
            return &line[..place];
        }
    }
    line
}

/// As many of a text's lines as so many rows hold, each cut to the columns there are.
pub fn fitted(text: &str, (columns, rows): (usize, usize)) -> String {
    // What fills a row to its last column wraps in some terminals, and behind the last line stands the cursor.
    let lines = text.lines().take(rows.saturating_sub(1).max(1));
    lines.map(|line| cut(line, columns.saturating_sub(1).max(1)).to_string() + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_takes_no_more_rows_than_it_has_lines() {
        assert_eq!(fitted("abcdef\nab\n", (4, 10)), "abc\nab\n");
        assert_eq!(fitted("a\nb\nc\nd\n", (80, 3)), "a\nb\n");
        assert_eq!(fitted("a\nb\n", (1, 1)), "a\n");
    }

    #[test]
    fn wide_signs_take_two_columns() {
        assert_eq!((width("围棋"), width("go"), width("é")), (4, 2, 1));
        assert_eq!([cut("围棋", 4), cut("围棋", 3), cut("围棋", 1)], ["围棋", "围", ""]);
    }
}
