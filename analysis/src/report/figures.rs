//! Figures: a chart with its caption, its text alternative, a table of its numbers, and links that save both.
//!
//! The links contain the files, so that saving needs no script and no network.

use std::fmt::Write as _;
use std::sync::LazyLock;

use super::html::{Table, escape};
use super::svg::{self, Axis, Line, MAX_LINES, MAX_ROWS, Row};

/// Colours, and the rules of charts and boards; the page and saved images have the same ones.
pub(super) const PALETTE: &str = include_str!("palette.css");
pub(super) const CHARTS: &str = include_str!("charts.css");
pub(super) const BOARDS: &str = include_str!("boards.css");

/// A chart of the page.
pub(super) struct Figure {
    /// Name of the files that the chart is saved as, without their ending.
    pub name: String,
    pub caption: String,
    pub data: Table,
}

impl Figure {
    /// Renders a chart with its caption, a collapsed table of its data, and links that save them.
    pub(super) fn draw(&self, svg: &str) -> String {
        let Figure { name, caption, data } = self;
        format!(
            "<figure>\n{svg}\n<figcaption>{}</figcaption>\n<details><summary>Data table</summary>\n{}</details>\n\
             <p class=\"save\">Save as {} {}</p>\n</figure>\n",
            escape(caption),
            data.html(),
            saved_svg(name, svg, CHARTS),
            saved(name, "csv", "text/csv;charset=utf-8", &data.csv())
        )
    }

    /// Renders a chart of intervals; rows beyond the limit are only in the table.
    pub(super) fn intervals(mut self, rows: &[Row], axis: Axis<'_>, title: &str, noun: &str) -> String {
        let shown = &rows[..rows.len().min(MAX_ROWS)];
        let values: Vec<String> = shown.iter().map(|row| format!("{} {}", row.name, row.text)).collect();
        let chart = svg::intervals(shown, axis, &format!("{title}: {}", values.join("; ")));
        self.caption.push_str(&omitted(rows.len(), MAX_ROWS, noun));
        self.draw(&chart)
    }

    /// Renders a chart of one line per player; lines beyond the limit are only in the table.
    pub(super) fn lines(mut self, lines: &[Line], [x, y]: [Axis<'_>; 2], alternative: &str) -> String {
        let chart = svg::lines(&lines[..lines.len().min(MAX_LINES)], x, y, alternative);
        self.caption.push_str(&omitted(lines.len(), MAX_LINES, "players"));
        self.draw(&chart)
    }
}

/// Returns a sentence about what a chart leaves out.
fn omitted(count: usize, shown: usize, noun: &str) -> String {
    if count > shown {
        format!(" Only the first {shown} of {count} {noun} are drawn.")
    } else {
        String::new()
    }
}

/// Renders a link that saves an image of the page as a file of its own, in light colours.
pub(super) fn saved_svg(name: &str, svg: &str, rules: &str) -> String {
    let (_, frame) = svg.split_once("viewBox=\"0 0 ").unwrap_or_default();
    let (frame, _) = frame.split_once('"').unwrap_or_default();
    let (width, height) = frame.split_once(' ').unwrap_or(("360", "240"));
    let head = format!("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" ");
    let style =
        format!("><style>{}</style><rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>", light(rules));
    let image = svg.replacen("<svg ", &head, 1).replacen('>', &style, 1);
    saved(name, "svg", "image/svg+xml;charset=utf-8", &image)
}

/// Replaces the names of colours by those of the light palette, because few programs but browsers know such names.
fn light(rules: &str) -> String {
    static COLOURS: LazyLock<Vec<(String, &str)>> = LazyLock::new(|| {
        let (light, _) = PALETTE.split_once("@media").unwrap_or((PALETTE, ""));
        let pairs =
            light.split([';', '{']).filter_map(|pair| pair.trim().strip_prefix("--")?.split_once(": "));
        pairs.map(|(name, colour)| (format!("var(--{name})"), colour)).collect()
    });
    COLOURS.iter().fold(rules.to_string(), |rules, (name, colour)| rules.replace(name, colour))
}

/// Renders a link that saves a text as a file.
fn saved(name: &str, ending: &str, kind: &str, text: &str) -> String {
    let mut data = String::with_capacity(text.len() * 5 / 4);
    for byte in text.bytes() {
        match byte {
            b'"' | b'#' | b'%' | b'&' | b'<' | b'>' | b'\'' | 0..=b' ' | 0x7f.. => {
                let _ = write!(data, "%{byte:02X}");
            }
            byte => data.push(char::from(byte)),
        }
    }
    format!(
        "<a download=\"{}.{ending}\" href=\"data:{kind},{data}\">{}</a>",
        escape(name),
        ending.to_uppercase()
    )
}
