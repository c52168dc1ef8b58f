//! The page: its head, its first screen, its sections in their order, and the few elements that they are made of.
//!
//! One file without scripts, pictures or addresses. Texts go through `escape` on their way in, and nowhere else.

use super::markup::{escape, heading};
use super::{Question, Report, Told, searches, sections, tuning};
use crate::format::{rate, utc};

const STYLE: &str = include_str!("style.css");

/// A part of the page below its first screen.
pub(super) struct Section {
    /// Its name in the address.
    pub id: &'static str,
    /// What it is about.
    pub title: &'static str,
    /// Whether it needs the whole width.
    pub full: bool,
    /// Its markup.
    pub body: String,
}

/// The whole page.
pub(super) fn page(report: &Report) -> String {
    let sections: Vec<Section> = [
        tuning::validation(report),
        tuning::trajectories(report),
        tuning::posteriors(report),
        sections::test(report),
        sections::ratings(report),
        sections::crosstable(report),
        sections::convergence(report),
        searches::ratios(report),
        searches::depths(report),
        searches::pruning(report),
        searches::time(report),
        searches::depth_by_ply(report),
        sections::lengths(report),
        sections::moments(report),
        Some(sections::reproduction(report)),
    ]
    .into_iter()
    .flatten()
    .collect();
    let links: String = sections
        .iter()
        .map(|section| format!("<a href=\"#{}\">{}</a>", section.id, escape(section.title)))
        .collect();
    let bodies: String = sections
        .iter()
        .map(|Section { id, title, full, body }| {
            let class = if *full { " class=\"full\"" } else { "" };
            format!("<section id=\"{id}\"{class}>\n<h2>{}</h2>\n{body}\n</section>\n", escape(title))
        })
        .collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n{first}\
         <nav aria-label=\"Sections\">{links}</nav>\n<div class=\"sections\">\n{bodies}</div>\n\
         <footer>Made by agon {version} from the dataset of {title}. Intervals are of 95 %, from resampled bouts or \
         positions unless another way is named.</footer>\n</main>\n</body>\n</html>\n",
        title = escape(&report.run),
        first = first_screen(report),
        version = env!("CARGO_PKG_VERSION"),
    )
}

fn first_screen(report: &Report) -> String {
    let what = match report.question {
        Question::Tournament => "Tournament",
        Question::Test => "Sequential test",
        Question::Probe => "Probe",
        Question::Tune => "Tune",
    };
    let remarks: String = report.remarks.iter().map(|remark| paragraph(remark)).collect();
    format!(
        "<header>\n<p class=\"kicker\">{what} of {}</p>\n<h1>{}</h1>\n<p class=\"answer\">{}</p>\n{remarks}{}</header>\n",
        escape(&report.game),
        escape(&report.run),
        heading(&report.answer),
        facts(report)
    )
}

fn facts(report: &Report) -> String {
    let unit = if report.question == Question::Probe { "Positions" } else { "Bouts" };
    let bouts = match report.counted == report.bouts {
        true => report.bouts.to_string(),
        false => format!("{} of {}", report.counted, report.bouts),
    };
    let searches: u64 = report.efforts.iter().map(|effort| effort.searches).sum();
    let nodes: u64 = report.efforts.iter().map(|effort| effort.nodes).sum();
    let mut facts = vec![("State", report.state.to_string()), (unit, bouts)];
    if let Some(lengths) = &report.lengths {
        facts.push(("Games", lengths.games.to_string()));
    }
    facts.push(("Players", report.players.len().to_string()));
    facts.push(("Searches", searches.to_string()));
    facts.push(("Nodes", rate(nodes as f64).trim_end().to_string()));
    for (name, count) in [("Bouts failed", report.failed), ("Bouts void", report.voided)] {
        if count > 0 {
            facts.push((name, count.to_string()));
        }
    }
    // To the minute.
    facts.push(("Submitted, UTC", utc(report.submitted_us).replace('T', " ").chars().take(16).collect()));
    let facts: String = facts
        .iter()
        .map(|(name, value)| format!("<div><dt>{name}</dt><dd>{}</dd></div>", escape(value)))
        .collect();
    format!("<dl class=\"facts\">{facts}</dl>\n")
}

/// A paragraph of plain text.
pub(super) fn paragraph(text: &str) -> String {
    format!("<p>{}</p>\n", escape(text))
}

/// What is said, or the sentence why not.
pub(super) fn told<T>(told: &Told<T>, body: impl FnOnce(&T) -> String) -> String {
    match told {
        Told::There(value) => body(value),
        Told::Not { why } => paragraph(why),
    }
}

/// A chart, what it shows, and the numbers behind it.
pub(super) fn figure(svg: &str, caption: &str, numbers: &str) -> String {
    format!(
        "<figure>\n{svg}\n<figcaption>{}</figcaption>\n<details><summary>The numbers</summary>\n{numbers}</details>\n</figure>\n",
        escape(caption)
    )
}

/// How the cells of a column are set.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    /// Numbers.
    Number,
    /// A name or a word.
    Word,
    /// Words that may go over several lines.
    Words,
}

impl Column {
    fn class(self) -> &'static str {
        match self {
            Column::Number => "",
            Column::Word => " class=\"left\"",
            Column::Words => " class=\"left words\"",
        }
    }
}

/// A table with its caption; the first cell of a row is its head.
pub(super) fn table(caption: &str, columns: &[(&str, Column)], rows: &[Vec<String>]) -> String {
    let head: String = columns
        .iter()
        .map(|(name, column)| format!("<th scope=\"col\"{}>{}</th>", column.class(), escape(name)))
        .collect();
    let row = |cells: &Vec<String>| {
        let cells: String = cells
            .iter()
            .zip(columns)
            .enumerate()
            .map(|(index, (cell, (_, column)))| {
                let (class, text) = (column.class(), escape(cell));
                match index {
                    0 => format!("<th scope=\"row\"{class}>{text}</th>"),
                    _ => format!("<td{class}>{text}</td>"),
                }
            })
            .collect();
        format!("<tr>{cells}</tr>\n")
    };
    let rows: String = rows.iter().map(row).collect();
    format!(
        "<div class=\"wide\" tabindex=\"0\"><table>\n<caption><span>{}</span></caption>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n",
        escape(caption)
    )
}
