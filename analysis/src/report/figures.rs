//! Charts with their captions, data tables and text alternatives.

use super::html::escape;
use super::svg::{self, Axis, Line, MOST_LINES, MOST_ROWS, Row};

/// Renders a chart with its caption and a collapsed table of its data.
pub(super) fn figure(svg: &str, caption: &str, data: &str) -> String {
    format!(
        "<figure>\n{svg}\n<figcaption>{}</figcaption>\n<details><summary>Data table</summary>\n{data}</details>\n</figure>\n",
        escape(caption)
    )
}

/// Renders a chart of intervals; rows beyond the limit are only in the table.
pub(super) fn interval_figure(
    rows: &[Row],
    axis: Axis<'_>,
    (title, caption): (&str, &str),
    noun: &str,
    data: &str,
) -> String {
    let shown = &rows[..rows.len().min(MOST_ROWS)];
    let values: Vec<String> = shown.iter().map(|row| format!("{} {}", row.name, row.text)).collect();
    let chart = svg::intervals(shown, axis, &format!("{title}: {}", values.join("; ")));
    figure(&chart, &format!("{caption}{}", omitted(rows.len(), MOST_ROWS, noun)), data)
}

/// Renders a chart of one line per player; lines beyond the limit are only in the table.
pub(super) fn line_figure(
    lines: &[Line],
    [x, y]: [Axis<'_>; 2],
    alternative: &str,
    caption: &str,
    data: &str,
) -> String {
    let chart = svg::lines(&lines[..lines.len().min(MOST_LINES)], x, y, alternative);
    figure(&chart, &format!("{caption}{}", omitted(lines.len(), MOST_LINES, "players")), data)
}

/// Returns a sentence about what a chart leaves out.
fn omitted(count: usize, shown: usize, noun: &str) -> String {
    if count > shown {
        format!(" Only the first {shown} of {count} {noun} are drawn.")
    } else {
        String::new()
    }
}
