//! Result tables: rows with the columns white, black, wins, draws and losses (of White).
//!
//! An unreadable row is an error, not skipped as in PGN: such tables are written on purpose.

use std::io::{BufRead, Read as _};

use agon_stats::outcome::Outcome;

use super::results::ResultCounts;
use crate::fail::UsageError;

/// The columns, in this order unless a header names them.
const COLUMNS: [&str; 5] = ["white", "black", "wins", "draws", "losses"];

/// The largest count of a row.
const LARGEST_COUNT: u64 = 1_000_000_000_000;

/// The longest row, in bytes.
const LONGEST_ROW: u64 = 64 * 1024;

/// Counts all rows of a table; `name` is its name in errors.
pub fn read(mut source: impl BufRead, name: &str, counts: &mut ResultCounts) -> anyhow::Result<()> {
    let mut order = [0, 1, 2, 3, 4];
    let mut row = Vec::new();
    for line in 1_u64.. {
        row.clear();
        if source.by_ref().take(LONGEST_ROW).read_until(b'\n', &mut row)? == 0 {
            break;
        }
        let wrong = |reason: String| UsageError(format!("{name}:{line}: {reason}"));
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
        let (white, black) = (counts.player(player(0)?), counts.player(player(1)?));
        let (wins, draws, losses): (u64, u64, u64) = (count(2)?, count(3)?, count(4)?);
        if white == black {
            return Err(wrong(format!("`{}` is on both sides", counts.name(white))).into());
        }
        for (outcome, games) in [(Outcome::Win, wins), (Outcome::Draw, draws), (Outcome::Loss, losses)] {
            counts.add(white, black, outcome, games);
        }
    }
    Ok(())
}

/// Returns the position of each column if this row is a header.
fn header(cells: &[Vec<u8>]) -> Option<[usize; 5]> {
    let mut order = [0; 5];
    for (position, column) in order.iter_mut().zip(COLUMNS) {
        *position = cells.iter().position(|cell| cell.eq_ignore_ascii_case(column.as_bytes()))?;
    }
    Some(order)
}

/// Splits a row into cells: commas separate them, quotes enclose commas, and doubled quotes stand for one (RFC 4180).
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
        let mut counts = ResultCounts::default();
        read(text.as_bytes(), "table", &mut counts).map_err(|error| error.to_string())?;
        Ok(counts.counts.values().flatten().sum())
    }

    #[test]
    fn counts_rows() {
        assert_eq!(games("white,black,wins,draws,losses\na,b,6,3,1\n\n# note\nb,a,1,2,3\r\n"), Ok(16));
        assert_eq!(games("\u{feff}Losses, Wins, Draws, Black, White, note\n1,2,3,a,b,hello"), Ok(6));
        assert_eq!(games("\"Fischer, \"\"Bobby\"\"\", Spassky, 7, 11, 3"), Ok(21));
        assert_eq!(cells(b"\"a, \"\"b\"\"\" ,c"), [b"a, \"b\"".to_vec(), b"c".to_vec()]);
        assert_eq!(games(""), Ok(0));
    }

    #[test]
    fn rejects_unreadable_rows() {
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
