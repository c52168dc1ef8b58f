//! Text shared by the games: labelled boards, rows of squares in position texts, and numbers.

use crate::game::Seat;

/// A naming of the rows and columns of a board.
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
    /// Returns the name of a column.
    pub fn column(self, column: usize) -> char {
        let letter = match self {
            Labels::Go if column >= 8 => b'B' + column as u8,
            Labels::Go => b'A' + column as u8,
            _ => b'a' + column as u8,
        };
        char::from(letter)
    }

    /// Returns the column with a name, if it is below `width`. Go's letters may be of either case.
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

/// Writes `width` by `height` cells as rows joined by `/`; `cell(column, line)` counts lines from the top.
pub fn write_rows(width: usize, height: usize, cell: impl Fn(usize, usize) -> char) -> String {
    let line = |line| (0..width).map(|column| cell(column, line)).collect::<String>();
    (0..height).map(line).collect::<Vec<_>>().join("/")
}

/// A cell that holds a symbol.
pub struct Piece {
    /// The column, from the left.
    pub column: usize,
    /// The line, from the top.
    pub line: usize,
    /// The index of the symbol.
    pub symbol: usize,
}

/// Reads rows joined by `/`, which have these widths from the top. Returns the cells that are not empty (`.`), from the top
/// left.
pub fn read_rows(text: &str, widths: &[usize], symbols: &[char]) -> Result<Vec<Piece>, String> {
    let lines: Vec<&str> = text.split('/').collect();
    if !lines.iter().map(|line| line.chars().count()).eq(widths.iter().copied()) {
        let mut named: Vec<String> = widths.iter().map(usize::to_string).collect();
        named.dedup();
        return Err(format!("there must be {} rows of {} squares", widths.len(), named.join(", ")));
    }
    let mut pieces = Vec::new();
    for (line, row) in lines.into_iter().enumerate() {
        for (column, character) in row.chars().enumerate().filter(|&(_, character)| character != '.') {
            let symbol = symbols.iter().position(|&known| known == character);
            let symbol = symbol.ok_or_else(|| {
                let known = listed(&[symbols, &['.']].concat());
                format!("`{character}` is not a square; a square is {known}")
            })?;
            pieces.push(Piece { column, line, symbol });
        }
    }
    Ok(pieces)
}

/// The symbols of seats that are written as numbers.
pub const SEAT_DIGITS: [char; 6] = ['0', '1', '2', '3', '4', '5'];

/// Reads the seat to move, which is written as one of the symbols.
pub fn read_mover(text: &str, symbols: &[char]) -> Result<Seat, String> {
    let seat = symbols.iter().position(|&symbol| text.chars().eq([symbol]));
    seat.map(|seat| Seat(seat as u8)).ok_or_else(|| format!("the seat to move is {}", listed(symbols)))
}

/// Lists symbols for an error message: `x, o or .`.
fn listed(symbols: &[char]) -> String {
    let (last, others) = symbols.split_last().expect("there are symbols");
    let others: Vec<String> = others.iter().map(char::to_string).collect();
    format!("{} or {last}", others.join(", "))
}

/// Splits a text at its single spaces into `N` fields.
pub fn fields<const N: usize>(text: &str) -> Result<[&str; N], String> {
    let fields: Vec<&str> = text.split(' ').collect();
    let count = fields.len();
    let plural = if count == 1 { "" } else { "s" };
    fields
        .try_into()
        .map_err(|_| format!("it has {count} field{plural} instead of {N}, separated by single spaces"))
}

/// Reads the number of plies played, at most `limit`.
pub fn read_plies(text: &str, limit: u16) -> Result<u16, String> {
    let plies = number(text).filter(|&plies| plies <= limit);
    plies.ok_or_else(|| format!("the number of plies must be a whole number from 0 to {limit}"))
}

/// Reads a whole number of digits without sign or leading zeros, so that each position has one text.
pub fn number<T: TryFrom<u32>>(text: &str) -> Option<T> {
    let plain = text == "0" || !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse::<u32>().ok().filter(|_| plain).and_then(|number| T::try_from(number).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_canonical_numbers_only() {
        for (text, read) in
            [("0", Some(0)), ("7", Some(7)), ("120", Some(120)), ("4294967295", Some(u32::MAX))]
        {
            assert_eq!(number(text), read);
        }
        for text in ["", "00", "07", "+7", "-0", "-7", " 7", "7.", "4294967296", "\u{0667}"] {
            assert_eq!(number::<u32>(text), None, "{text:?}");
        }
    }

    #[test]
    fn go_labels_skip_column_i() {
        let letters: String = (0..19).map(|column| Labels::Go.column(column)).collect();
        assert_eq!(letters, "ABCDEFGHJKLMNOPQRST");
        assert_eq!(Labels::Go.column_named('j', 19), Some(8));
        assert_eq!(Labels::Go.column_named('I', 19), None);
    }

    #[test]
    fn draws_rows_in_label_order() {
        let name = |column, row| char::from(b'0' + (3 * row + column) as u8);
        assert_eq!(grid(3, 2, Labels::BottomUp, name), " 2  3 4 5\n 1  0 1 2\n    a b c");
        assert_eq!(grid(3, 2, Labels::TopDown, name), " 1  0 1 2\n 2  3 4 5\n    a b c");
    }
}
