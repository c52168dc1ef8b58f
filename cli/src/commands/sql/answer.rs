//! The answer of `agon sql`: a table, or a list of cells for each row if it is too wide for the terminal; JSON and CSV are
//! written while the query runs.

use std::io::{self, Write};
use std::process::ExitCode;

use agon_analysis::sql::{Answer, Column, Limits, Row, SqlError};
use agon_games::printable::printable;
use serde::Serialize;
use serde_json::Value;

use super::Sql;
use crate::commands::runs;
use crate::fail::{Outcome, UsageError};
use crate::number::cores;
use crate::table::{Align, Table, fixed, stdout, write_facts, write_sentence};

/// A column of the JSON answer.
#[derive(Serialize)]
struct ColumnJson<'a> {
    name: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
}

/// Runs the query and writes its rows.
pub(super) fn answer(call: &Sql) -> Outcome {
    let (dataset, run) = runs::open(call.folder()?, &call.run)?;
    let limits = Limits { megabytes: call.memory, threads: cores() };
    let answer = Answer::ask(&dataset, &run, &call.question, limits).map_err(classified)?;
    let mut out = stdout();
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

/// Turns an error in the query into a usage error.
fn classified(error: SqlError) -> anyhow::Error {
    match error {
        SqlError::Query(reason) => UsageError(reason).into(),
        SqlError::Dataset(error) => error.into(),
        error => error.into(),
    }
}

/// Writes `{"run", "columns": [{"name", "type"}], "rows": [[...]]}`, row by row.
fn write_json(run: &str, answer: Answer, out: &mut impl Write) -> anyhow::Result<()> {
    let columns: Vec<ColumnJson<'_>> =
        answer.columns().iter().map(|Column { name, kind, .. }| ColumnJson { name, kind }).collect();
    let (run, columns) = (serde_json::to_string(run)?, serde_json::to_string(&columns)?);
    write!(out, "{{\"run\":{run},\"columns\":{columns},\"rows\":[")?;
    let mut first = true;
    for rows in answer {
        for row in rows.map_err(classified)? {
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
        for row in rows.map_err(classified)? {
            let cells: Vec<String> = row.iter().map(|cell| quoted(&plain(cell))).collect();
            writeln!(out, "{}", cells.join(","))?;
        }
    }
    Ok(())
}

/// Formats a cell with all digits, and null as the empty text.
fn plain(cell: &Value) -> String {
    match cell {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        cell => cell.to_string(),
    }
}

/// Quotes a cell that contains a comma, a quote or a line break (RFC 4180).
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
        let rows = rows.map_err(classified)?;
        found += rows.len();
        let room = most - shown.len();
        shown.extend(rows.into_iter().take(room));
    }
    if shown.is_empty() {
        write_sentence("The answer has no rows.", out)?;
        return Ok(());
    }
    let cells: Vec<Vec<String>> = shown.iter().map(|row| row.iter().map(display).collect()).collect();
    let table = table(&columns, &cells);
    if table.fits() {
        table.write(out)?;
    } else {
        write_lists(&columns, &cells, out)?;
    }
    if found > shown.len() {
        let more = found - shown.len();
        let rows = if more == 1 { "row" } else { "rows" };
        write_sentence(&format!("and {more} more {rows}; --rows {found} shows them all"), out)?;
    }
    Ok(())
}

/// Formats a cell for a table: on one line, with few decimals.
fn display(cell: &Value) -> String {
    let text = match cell {
        Value::Null => "-".to_string(),
        Value::Number(number) if number.is_f64() => number.as_f64().map_or("-".to_string(), decimals),
        Value::Array(items) => items.iter().map(display).collect::<Vec<_>>().join(" "),
        cell => plain(cell),
    };
    printable(&text).into_owned()
}

/// Formats a number with three decimals, or with four digits if it is very large or very small.
fn decimals(number: f64) -> String {
    match number.abs() {
        size if size >= 1e12 || (size > 0.0 && size < 1e-2) => format!("{number:.3e}"),
        _ => fixed(number, 3),
    }
}

fn table(columns: &[Column], cells: &[Vec<String>]) -> Table {
    let align = |column: &Column| if column.number { Align::Right } else { Align::Left };
    let header: Vec<(&str, Align)> =
        columns.iter().map(|column| (column.name.as_str(), align(column))).collect();
    let mut table = Table::new(&header);
    cells.iter().for_each(|row| table.row(row.iter().cloned()));
    table
}

/// Writes each cell on a line, and an empty line between rows.
fn write_lists(columns: &[Column], cells: &[Vec<String>], out: &mut impl Write) -> io::Result<()> {
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

    #[test]
    fn displays_and_quotes_cells() {
        let displayed = [json!(null), json!(7), json!(0.5), json!(1e-9), json!("a\nb"), json!([1, null])]
            .map(|cell| display(&cell));
        assert_eq!(displayed, ["-", "7", "0.500", "1.000e-9", "a b", "1 -"]);
        assert_eq!(["a", "a,b", "say \"x\""].map(quoted), ["a", "\"a,b\"", "\"say \"\"x\"\"\""]);
    }
}
