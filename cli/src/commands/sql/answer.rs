//! The answer to a question in SQL: a table within eighty columns, or its rows one below the other where it is too wide; JSON
//! and comma-separated values as they are made.

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use agon_analysis::Dataset;
use agon_analysis::sql::{Answer, Column, Limits, Row, SqlError};
use agon_storage::location::Location;
use serde::Serialize;
use serde_json::Value;

use super::Sql;
use crate::commands::runs::{self, cores};
use crate::fail::{Outcome, WrongCall};
use crate::table::{Align, COLUMNS, Table, fixed, shortened, write_facts, write_sentence};

/// The narrowest that a column of words is cut to.
const NARROWEST: usize = 12;

/// A column for programs.
#[derive(Serialize)]
struct Named<'a> {
    name: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
}

/// Asks, and writes what comes.
pub(super) fn answer(call: &Sql) -> Outcome {
    if let Location::Store(address) = Location::from(&call.data) {
        let told =
            format!("`agon sql` reads folders, not {address}; docs/dataset.md asks DuckDB and Polars there");
        return Err(WrongCall(told).into());
    }
    let dataset = Dataset::open(&call.data)?;
    let run = runs::find(&dataset, &call.run)?;
    let limits = Limits { megabytes: call.memory, threads: cores() };
    let answer = Answer::ask(&dataset, &run, &call.question, limits).map_err(sorted)?;
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    if call.json {
        write_json(&run.id, answer, &mut out)?;
    } else if call.csv {
        write_csv(answer, &mut out)?;
    } else {
        write_rows(answer, call.rows, &mut out)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// A question that is wrong is a wrong call.
fn sorted(error: SqlError) -> anyhow::Error {
    match error {
        SqlError::Question(reason) => WrongCall(reason).into(),
        SqlError::Dataset(error) => error.into(),
        error => error.into(),
    }
}

/// Writes `{"run", "columns": [{"name", "type"}], "rows": [[...]]}`, a row as soon as it is there.
fn write_json(run: &str, answer: Answer, out: &mut impl Write) -> anyhow::Result<()> {
    let columns: Vec<Named<'_>> =
        answer.columns().iter().map(|Column { name, kind, .. }| Named { name, kind }).collect();
    let (run, columns) = (serde_json::to_string(run)?, serde_json::to_string(&columns)?);
    write!(out, "{{\"run\":{run},\"columns\":{columns},\"rows\":[")?;
    let mut first = true;
    for rows in answer {
        for row in rows.map_err(sorted)? {
            if !std::mem::take(&mut first) {
                out.write_all(b",")?;
            }
            serde_json::to_writer(&mut *out, &row)?;
        }
    }
    writeln!(out, "]}}")?;
    Ok(())
}

fn write_csv(answer: Answer, out: &mut impl Write) -> anyhow::Result<()> {
    let names: Vec<String> = answer.columns().iter().map(|column| quoted(&column.name)).collect();
    writeln!(out, "{}", names.join(","))?;
    for rows in answer {
        for row in rows.map_err(sorted)? {
            let cells: Vec<String> = row.iter().map(|cell| quoted(&plain(cell))).collect();
            writeln!(out, "{}", cells.join(","))?;
        }
    }
    Ok(())
}

/// A cell with all its digits; nothing for null.
fn plain(cell: &Value) -> String {
    match cell {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        cell => cell.to_string(),
    }
}

/// In quotes where a comma, a quote or the end of a line is in it (RFC 4180).
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_string()
    }
}

fn write_rows(answer: Answer, most: usize, out: &mut impl Write) -> anyhow::Result<()> {
    let columns = answer.columns().to_vec();
    let (mut shown, mut found): (Vec<Row>, usize) = (Vec::new(), 0);
    for rows in answer {
        let rows = rows.map_err(sorted)?;
        found += rows.len();
        let room = most - shown.len();
        shown.extend(rows.into_iter().take(room));
    }
    if shown.is_empty() {
        write_sentence("The answer has no rows.", out)?;
        return Ok(());
    }
    let cells: Vec<Vec<String>> = shown.iter().map(|row| row.iter().map(read).collect()).collect();
    match widths(&columns, &cells) {
        Some(widths) => table(&columns, &cells, &widths).write(out)?,
        None => below_each_other(&columns, &cells, out)?,
    }
    if found > shown.len() {
        let more = found - shown.len();
        let rows = if more == 1 { "row" } else { "rows" };
        write_sentence(&format!("and {more} more {rows}; --rows {found} shows them all"), out)?;
    }
    Ok(())
}

/// A cell as people read it: on one line, few decimals.
fn read(cell: &Value) -> String {
    let text = match cell {
        Value::Null => "-".to_string(),
        Value::Number(number) if number.is_f64() => number.as_f64().map_or("-".to_string(), decimals),
        Value::Array(items) => items.iter().map(read).collect::<Vec<_>>().join(" "),
        cell => plain(cell),
    };
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// A number with three decimals, or with four digits where that would say too little or too much.
fn decimals(number: f64) -> String {
    match number.abs() {
        size if size >= 1e12 || (size > 0.0 && size < 1e-2) => format!("{number:.3e}"),
        _ => fixed(number, 3),
    }
}

/// The widths of columns that fit together; none where even the narrowest do not.
fn widths(columns: &[Column], cells: &[Vec<String>]) -> Option<Vec<usize>> {
    let width = |index: usize, column: &Column| {
        let cells = cells.iter().map(|row| row[index].chars().count());
        cells.chain([column.name.chars().count()]).max().unwrap_or(0)
    };
    let mut widths: Vec<usize> =
        columns.iter().enumerate().map(|(index, column)| width(index, column)).collect();
    let gaps = 2 * widths.len().saturating_sub(1);
    // The widest column of words gives way first; numbers are never cut.
    while widths.iter().sum::<usize>() + gaps > COLUMNS {
        let wide = (0..columns.len()).filter(|&index| !columns[index].number && widths[index] > NARROWEST);
        let widest = wide.max_by_key(|&index| widths[index])?;
        widths[widest] -= 1;
    }
    Some(widths)
}

fn table(columns: &[Column], cells: &[Vec<String>], widths: &[usize]) -> Table {
    let names: Vec<String> =
        columns.iter().zip(widths).map(|(column, &width)| shortened(&column.name, width)).collect();
    let header: Vec<(&str, Align)> = names
        .iter()
        .zip(columns)
        .map(|(name, column)| (name.as_str(), if column.number { Align::Right } else { Align::Left }))
        .collect();
    let mut table = Table::new(&header);
    for row in cells {
        table.row(row.iter().zip(widths).map(|(cell, &width)| shortened(cell, width)));
    }
    table
}

/// A line a cell, an empty line between rows.
fn below_each_other(columns: &[Column], cells: &[Vec<String>], out: &mut impl Write) -> io::Result<()> {
    for (index, row) in cells.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        let facts: Vec<(&str, String)> =
            columns.iter().zip(row).map(|(column, cell)| (column.name.as_str(), cell.clone())).collect();
        write_facts(&facts, out)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn column(name: &str, number: bool) -> Column {
        Column { name: name.to_string(), kind: String::new(), number }
    }

    #[test]
    fn cells_are_read_and_quoted() {
        let read_all = [json!(null), json!(7), json!(0.5), json!(1e-9), json!("a\nb"), json!([1, null])]
            .map(|cell| read(&cell));
        assert_eq!(read_all, ["-", "7", "0.500", "1.000e-9", "a b", "1 -"]);
        assert_eq!(["a", "a,b", "say \"x\""].map(quoted), ["a", "\"a,b\"", "\"say \"\"x\"\"\""]);
    }

    #[test]
    fn tables_fit_or_are_turned() {
        let wide = vec!["x".repeat(70), "y".repeat(70), "123456".to_string()];
        let columns = [column("a", false), column("b", false), column("n", true)];
        let found = widths(&columns, std::slice::from_ref(&wide)).unwrap();
        assert_eq!(found, [35, 35, 6]);
        assert_eq!(found.iter().sum::<usize>() + 4, COLUMNS);
        let many: Vec<Column> = (0..30).map(|_| column("n", true)).collect();
        assert_eq!(widths(&many, &[vec!["1234".to_string(); 30]]), None);
    }
}
