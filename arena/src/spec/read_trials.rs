//! Reads the trials that a tuning run imports: a file of comma-separated values with a line for each trial.
//!
//! The first line names the columns: the path of each parameter, `bouts`, `score` and optionally `variance`. `agon tune
//! --trials` writes such a file.

use agon_games::schema::unknown;

use super::tune::{ImportedTrial, Parameter, Values, decimal, millionths};

/// The most imported trials, which are those of a Gaussian process.
const MAX_IMPORTED: usize = 1000;

/// A problem of a file: its line and the reason.
pub(super) type LineProblem = (usize, String);

/// The meaning of a column.
#[derive(Clone, Copy, PartialEq)]
enum Column {
    Parameter(usize),
    Bouts,
    Score,
    Variance,
}

/// Reads the trials of a file, or returns all its problems.
pub(super) fn trials(text: &str, parameters: &[Parameter]) -> Result<Vec<ImportedTrial>, Vec<LineProblem>> {
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let Some((first, header)) = lines.next() else {
        return Err(vec![(1, "the file is empty; write it with `agon tune --trials`".to_string())]);
    };
    let columns = columns(header, parameters)
        .map_err(|reasons| reasons.into_iter().map(|reason| (first, reason)).collect::<Vec<_>>())?;
    let (mut trials, mut problems) = (Vec::new(), Vec::new());
    for (line, text) in lines {
        match trial(text, &columns, parameters) {
            Ok(trial) => trials.push(trial),
            Err(reason) => problems.push((line, reason)),
        }
    }
    if trials.len() > MAX_IMPORTED {
        let reason = format!("{} trials are more than {MAX_IMPORTED}; leave some out", trials.len());
        problems.push((first, reason));
    }
    if problems.is_empty() { Ok(trials) } else { Err(problems) }
}

/// Reads the line with the names of the columns.
fn columns(header: &str, parameters: &[Parameter]) -> Result<Vec<Column>, Vec<String>> {
    let paths = || parameters.iter().map(|parameter| parameter.path.as_str());
    let known = || paths().chain(["bouts", "score", "variance"]);
    let mut columns: Vec<Column> = Vec::new();
    let mut problems = Vec::new();
    for name in header.split(',').map(str::trim) {
        let column = match name {
            "bouts" => Column::Bouts,
            "score" => Column::Score,
            "variance" => Column::Variance,
            path => match paths().position(|known| known == path) {
                Some(index) => Column::Parameter(index),
                None => {
                    problems.push(unknown("a file of trials", "column", name, known()));
                    continue;
                }
            },
        };
        if columns.contains(&column) {
            problems.push(format!("the column `{name}` is there twice; leave one out"));
        }
        columns.push(column);
    }
    let needed = (0..parameters.len()).map(Column::Parameter).chain([Column::Bouts, Column::Score]);
    for (column, name) in needed.zip(known()) {
        if problems.is_empty() && !columns.contains(&column) {
            problems.push(format!("the column `{name}` is missing; add it, or leave `import` out"));
        }
    }
    if problems.is_empty() { Ok(columns) } else { Err(problems) }
}

/// Reads the line of a trial.
fn trial(text: &str, columns: &[Column], parameters: &[Parameter]) -> Result<ImportedTrial, String> {
    let words: Vec<&str> = text.split(',').map(str::trim).collect();
    if words.len() != columns.len() {
        return Err(format!("{} values for {} columns; give one for each", words.len(), columns.len()));
    }
    let mut values = vec![0; parameters.len()];
    let (mut bouts, mut score, mut variance) = (0, 0.0, None);
    let number = |word: &str, name: &str, most: f64| {
        let read = word.parse::<f64>().ok().filter(|number| (0.0..=most).contains(number));
        read.ok_or_else(|| format!("`{name}` must be a number from 0 to {most}, not `{word}`"))
    };
    for (word, column) in words.iter().zip(columns) {
        match *column {
            Column::Parameter(index) => values[index] = value(word, &parameters[index])?,
            Column::Bouts => {
                let read = word.parse().ok().filter(|bouts| (1..=1_000_000_000).contains(bouts));
                bouts = read.ok_or_else(|| {
                    format!("`bouts` must be a whole number from 1 to 1000000000, not `{word}`")
                })?;
            }
            Column::Score => score = number(word, "score", 1.0)?,
            Column::Variance => variance = Some(number(word, "variance", 0.25)?),
        }
    }
    // Without a variance: that of two independent games without draws.
    let variance = variance.unwrap_or(score * (1.0 - score) / 2.0);
    Ok(ImportedTrial { values: Values(values), bouts, score, variance })
}

/// Reads the value of a parameter.
fn value(word: &str, parameter: &Parameter) -> Result<i64, String> {
    let Parameter { path, bounds, .. } = parameter;
    let value = millionths(word).ok_or_else(|| {
        format!("`{path}` must be a number with at most six digits behind its point, not `{word}`")
    })?;
    if !(bounds[0]..=bounds[1]).contains(&value) {
        let [least, most] = bounds.map(decimal);
        return Err(format!(
            "`{path}` is {word}, and the tune searches {least} to {most}; widen the bounds, or leave the line out"
        ));
    }
    Ok(value)
}
