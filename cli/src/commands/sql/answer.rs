//! The answer of `agon sql`: a table of 80 columns, or a list of cells for each row if the table is too wide; JSON and CSV are
//! written while the query runs.

use std::io::{self, Write};
use std::process::ExitCode;

use agon_analysis::sql::{Answer, Column, Limits, Row, SqlError};
use serde::Serialize;
use serde_json::Value;

use super::Sql;
use crate::commands::runs;
use crate::fail::{Outcome, UsageError};
use crate::number::cores;
use crate::table::{Align, COLUMNS, Table, fixed, shortened, stdout, write_facts, write_sentence};

/// The smallest width to which a column of words is cut.
const NARROWEST: usize = 12;

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
    match widths(&columns, &cells) {
        Some(widths) => table(&columns, &cells, &widths).write(out)?,
        None => write_lists(&columns, &cells, out)?,
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
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Formats a number with three decimals, or with four digits if it is very large or very small.
fn decimals(number: f64) -> String {
    match number.abs() {
        size if size >= 1e12 || (size > 0.0 && size < 1e-2) => format!("{number:.3e}"),
        _ => fixed(number, 3),
    }
}

/// Returns widths of columns that fit together, if there are any.
fn widths(columns: &[Column], cells: &[Vec<String>]) -> Option<Vec<usize>> {
    let width = |index: usize, column: &Column| {
        let cells = cells.iter().map(|row| row[index].chars().count());
        cells.chain([column.name.chars().count()]).max().unwrap_or(0)
    };
    let mut widths: Vec<usize> =
        columns.iter().enumerate().map(|(index, column)| width(index, column)).collect();
    let gaps = 2 * widths.len().saturating_sub(1);
    // Shrink the widest column of words first; never cut numbers.
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

    fn column(name: &str, number: bool) -> Column {
        Column { name: name.to_string(), kind: String::new(), number }
    }

    #[test]
    fn displays_and_quotes_cells() {
        let displayed = [json!(null), json!(7), json!(0.5), json!(1e-9), json!("a\nb"), json!([1, null])]
            .map(|cell| display(&cell));
        assert_eq!(displayed, ["-", "7", "0.500", "1.000e-9", "a b", "1 -"]);
        assert_eq!(["a", "a,b", "say \"x\""].map(quoted), ["a", "\"a,b\"", "\"say \"\"x\"\"\""]);
    }

    #[test]
    fn shrinks_columns_to_fit() {
        let wide = vec!["x".repeat(70), "y".repeat(70), "123456".to_string()];
        let columns = [column("a", false), column("b", false), column("n", true)];
        let found = widths(&columns, std::slice::from_ref(&wide)).unwrap();
        assert_eq!(found, [35, 35, 6]);
        assert_eq!(found.iter().sum::<usize>() + 4, COLUMNS);
        let many: Vec<Column> = (0..30).map(|_| column("n", true)).collect();
        assert_eq!(widths(&many, &[vec!["1234".to_string(); 30]]), None);
    }
}
