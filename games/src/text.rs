//! What texts of games share: a grid with labels on its sides, numbers.

/// How the rows and columns of a board are named.
#[derive(Clone, Copy, Debug)]
pub enum Labels {
    /// Columns `a b c`, row 1 at the bottom: chess, tic-tac-toe.
    BottomUp,
    /// Columns `a b c`, row 1 at the top: othello.
    TopDown,
    /// Columns `A B C` without `I`, row 1 at the bottom: go.
    Go,
}

impl Labels {
    /// The name of a column.
    pub fn column(self, column: usize) -> char {
        let letter = match self {
            Labels::Go if column >= 8 => b'B' + column as u8,
            Labels::Go => b'A' + column as u8,
            _ => b'a' + column as u8,
        };
        char::from(letter)
    }

    /// The column of a name, if it is one below `width`. Go's letters may be of either case.
    pub fn column_named(self, name: char, width: usize) -> Option<usize> {
        let name = if matches!(self, Labels::Go) { name.to_ascii_uppercase() } else { name };
        (0..width).find(|&column| self.column(column) == name)
    }
}

/// Draws `width` by `height` cells; `cell(column, row)` counts rows as the labels do, from 0.
pub fn grid(width: usize, height: usize, labels: Labels, cell: impl Fn(usize, usize) -> char) -> String {
    let mut text = String::new();
    for line in 0..height {
        let row = if matches!(labels, Labels::TopDown) { line } else { height - 1 - line };
        text.push_str(&format!("{:>2} ", row + 1));
        for column in 0..width {
            text.push(' ');
            text.push(cell(column, row));
        }
        text.push('\n');
    }
    text.push_str("   ");
    for column in 0..width {
        text.push(' ');
        text.push(labels.column(column));
    }
    text
}

/// A whole number as it is written: digits, no sign, no leading zeros. Positions are read by it, so that each has one
/// text.
pub fn number(text: &str) -> Option<u32> {
    let plain = text == "0" || !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_one_text() {
        for (text, read) in
            [("0", Some(0)), ("7", Some(7)), ("120", Some(120)), ("4294967295", Some(u32::MAX))]
        {
            assert_eq!(number(text), read);
        }
        for text in ["", "00", "07", "+7", "-0", "-7", " 7", "7.", "4294967296", "\u{0667}"] {
            assert_eq!(number(text), None, "{text:?}");
        }
    }

    #[test]
    fn go_has_no_column_i() {
        let letters: String = (0..19).map(|column| Labels::Go.column(column)).collect();
        assert_eq!(letters, "ABCDEFGHJKLMNOPQRST");
        assert_eq!(Labels::Go.column_named('j', 19), Some(8));
        assert_eq!(Labels::Go.column_named('I', 19), None);
    }

    #[test]
    fn rows_are_drawn_as_labelled() {
        let name = |column, row| char::from(b'0' + (3 * row + column) as u8);
        assert_eq!(grid(3, 2, Labels::BottomUp, name), " 2  3 4 5\n 1  0 1 2\n    a b c");
        assert_eq!(grid(3, 2, Labels::TopDown, name), " 1  0 1 2\n 2  3 4 5\n    a b c");
    }
}
