//! Results as a table: a row for each meeting, with the columns white, black, wins, draws and losses (of White).
//!
//! Such tables are made on purpose, by people or by programs: a row that cannot be read is an error and not left out.

use std::io::{BufRead, Read as _};

use agon_stats::outcome::Outcome;

use super::results::Tallies;
use crate::fail::WrongCall;

/// The columns, in the order they have unless the first row names them.
const COLUMNS: [&str; 5] = ["white", "black", "wins", "draws", "losses"];

/// The largest count of a row.
const LARGEST_COUNT: u64 = 1_000_000_000_000;

/// The longest row, in bytes.
const LONGEST_ROW: u64 = 64 * 1024;

/// Counts all rows of a table; `name` is what errors call it.
pub fn read(mut source: impl BufRead, name: &str, tallies: &mut Tallies) -> anyhow::Result<()> {
    let mut order = [0, 1, 2, 3, 4];
    let mut row = Vec::new();
    for line in 1_u64.. {
        row.clear();
        if source.by_ref().take(LONGEST_ROW).read_until(b'\n', &mut row)? == 0 {
            break;
        }
        let wrong = |what: String| WrongCall(format!("{name}:{line}: {what}"));
        if row.len() as u64 == LONGEST_ROW {
            return Err(wrong(format!("the row is longer than {LONGEST_ROW} bytes")).into());
        }
        let text = if line == 1 { row.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&row) } else { &row };
        let text = text.trim_ascii();
        if text.is_empty() || text[0] == b'#' {
            continue;
        }
        let cells = cells(text);
        if let Some(named) = header(&cells) {
            order = named;
            continue;
        }
        let cell = |column: usize| {
            cells.get(order[column]).map(Vec::as_slice).ok_or_else(|| {
                wrong(format!("the row has {} cells; it needs {}", cells.len(), COLUMNS.join(", ")))
            })
        };
        let player = |column: usize| {
            let name = cell(column)?;
            if name.is_empty() { Err(wrong(format!("{} is empty", COLUMNS[column]))) } else { Ok(name) }
        };
        let count = |column: usize| {
            let text = String::from_utf8_lossy(cell(column)?).into_owned();
            text.parse().ok().filter(|&count| count <= LARGEST_COUNT).ok_or_else(|| {
                wrong(format!(
                    "{} is `{text}`; it is a whole number from 0 to {LARGEST_COUNT}",
                    COLUMNS[column]
                ))
            })
        };
        let (white, black) = (tallies.player(player(0)?), tallies.player(player(1)?));
        let (wins, draws, losses): (u64, u64, u64) = (count(2)?, count(3)?, count(4)?);
        if white == black {
            return Err(wrong(format!("`{}` is on both sides", tallies.name(white))).into());
        }
        for (outcome, games) in [(Outcome::Win, wins), (Outcome::Draw, draws), (Outcome::Loss, losses)] {
            tallies.add(white, black, outcome, games);
        }
    }
    Ok(())
}

/// Where each column is, if this row names all of them.
fn header(cells: &[Vec<u8>]) -> Option<[usize; 5]> {
    let mut order = [0; 5];
    for (place, column) in order.iter_mut().zip(COLUMNS) {
        *place = cells.iter().position(|cell| cell.eq_ignore_ascii_case(column.as_bytes()))?;
    }
    Some(order)
}

/// The cells of a row: separated by commas, in quotes where they hold some, a quote doubled inside quotes (RFC 4180).
fn cells(row: &[u8]) -> Vec<Vec<u8>> {
    let (mut cells, mut cell, mut within) = (Vec::new(), Vec::new(), false);
    let mut bytes = row.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' if within && bytes.peek() == Some(&b'"') => {
                cell.push(b'"');
                bytes.next();
            }
            b'"' if within || cell.trim_ascii().is_empty() => within = !within,
            b',' if !within => cells.push(std::mem::take(&mut cell)),
            _ => cell.push(byte),
        }
    }
    cells.push(cell);
    cells.into_iter().map(|cell| cell.trim_ascii().to_vec()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn games(text: &str) -> Result<u64, String> {
        let mut tallies = Tallies::default();
        read(text.as_bytes(), "table", &mut tallies).map_err(|error| error.to_string())?;
        Ok(tallies.counts.values().flatten().sum())
    }

    #[test]
    fn rows_are_counted() {
        assert_eq!(games("white,black,wins,draws,losses\na,b,6,3,1\n\n# note\nb,a,1,2,3\r\n"), Ok(16));
        assert_eq!(games("\u{feff}Losses, Wins, Draws, Black, White, note\n1,2,3,a,b,hello"), Ok(6));
        assert_eq!(games("\"Fischer, \"\"Bobby\"\"\", Spassky, 7, 11, 3"), Ok(21));
        assert_eq!(cells(b"\"a, \"\"b\"\"\" ,c"), [b"a, \"b\"".to_vec(), b"c".to_vec()]);
        assert_eq!(games(""), Ok(0));
    }

    #[test]
    fn rows_that_cannot_be_read_are_named() {
        for (row, reason) in [
            ("a,b,1,2", "table:2: the row has 4 cells; it needs white, black, wins, draws, losses"),
            ("a,b,-1,2,3", "table:2: wins is `-1`; it is a whole number from 0 to"),
            ("a,b,1,NaN,3", "table:2: draws is `NaN`"),
            ("a,b,1,2,99999999999999999999", "table:2: losses is"),
            ("a,b,1,2,1000000000001", "table:2: losses is"),
            (",b,1,2,3", "table:2: white is empty"),
            ("a,a,1,2,3", "table:2: `a` is on both sides"),
        ] {
            let error = games(&format!("x,y,1,1,1\n{row}\n")).expect_err("refused");
            assert!(error.starts_with(reason), "{error}");
        }
    }
}
