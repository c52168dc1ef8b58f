//! The sections on searches: nodes by depth, what pruning saved, time, depth by ply.

use agon_stats::branching::fitted_branching_factor;

use super::page::{Column, Section, figure, paragraph, table};
use super::sections::rest;
use super::survey::Effort;
use super::svg::{self, Axis, Line, MOST_LINES, MOST_ROWS, Row};
use super::words::{common_depth, percent};
use super::{Question, Report};
use crate::format::{fixed, rate};
use crate::pruning::{Interval, PlayerPruning};

/// Nodes of the players of a probe against each other.
pub(super) fn ratios(report: &Report) -> Option<Section> {
    let ratios = &report.pruning.ratios;
    let depth = common_depth(ratios)?;
    let shown: Vec<_> = ratios.iter().filter(|ratio| ratio.depth == depth).collect();
    let row = |ratio: &&crate::pruning::Ratio| Row {
        name: format!("{} / {}", ratio.a, ratio.b),
        value: Some(ratio.ratio),
        low: ratio.low,
        high: ratio.high,
        extreme: None,
        text: fixed(ratio.ratio, 3),
    };
    let rows: Vec<Row> = shown.iter().take(MOST_ROWS).map(row).collect();
    let words: Vec<String> = shown
        .iter()
        .take(MOST_ROWS)
        .map(|ratio| format!("{} to {} {}", ratio.a, ratio.b, fixed(ratio.ratio, 3)))
        .collect();
    let alternative = format!("Ratios of nodes to depth {depth} at the same positions: {}", words.join("; "));
    let axis = Axis {
        label: "nodes of the first for one node of the second",
        log: true,
        whole: false,
        mark: Some(1.0),
    };
    let caption = format!(
        "Geometric means of the ratios of nodes of depth {depth} at the same positions, with intervals of 95 % from resampled positions. Left of one the first player needs fewer.{}",
        rest(shown.len(), MOST_ROWS, "pairs")
    );
    let columns = [
        ("first", Column::Word),
        ("second", Column::Word),
        ("depth", Column::Number),
        ("ratio", Column::Number),
        ("95 %", Column::Number),
        ("positions", Column::Number),
    ];
    let cells: Vec<Vec<String>> = ratios
        .iter()
        .map(|ratio| {
            let interval = Interval { value: ratio.ratio, low: ratio.low, high: ratio.high };
            vec![
                ratio.a.clone(),
                ratio.b.clone(),
                ratio.depth.to_string(),
                fixed(ratio.ratio, 3),
                interval_text(&interval, |value| fixed(value, 3)),
                ratio.positions.to_string(),
            ]
        })
        .collect();
    let numbers = table("Ratios of nodes at every depth that both completed", &columns, &cells);
    let body = figure(&svg::intervals(&rows, axis, &alternative), &caption, &numbers);
    Some(Section { id: "ratios", title: "Nodes against each other", full: false, body })
}

/// Nodes by depth with the uniform trees of the fitted b*.
pub(super) fn depths(report: &Report) -> Option<Section> {
    let by_depth = &report.pruning.by_depth;
    if by_depth.is_empty() {
        return None;
    }
    let mut lines = Vec::new();
    let mut factors = Vec::new();
    for PlayerPruning { player, .. } in &report.pruning.players {
        let depths: Vec<(u32, f64, f64)> = by_depth
            .iter()
            .filter(|row| row.player == *player)
            .map(|row| (row.depth as u32, row.nodes.value, row.searches as f64))
            .collect();
        let Some(branching) = fitted_branching_factor(&depths) else { continue };
        factors.push(format!("{player} {}", fixed(branching, 2)));
        let most = depths.iter().map(|depth| depth.2).fold(0.0, f64::max);
        let (usual, rare): (Vec<_>, Vec<_>) =
            depths.into_iter().partition(|&(.., searches)| 2.0 * searches >= most);
        let marks = |depths: &[(u32, f64, f64)]| -> Vec<(f64, f64)> {
            depths.iter().map(|&(depth, nodes, _)| (f64::from(depth), nodes)).collect()
        };
        let fit =
            usual.iter().map(|&(depth, ..)| (f64::from(depth), uniform_tree(branching, depth))).collect();
        lines.push(Line {
            name: player.clone(),
            points: marks(&usual),
            rare: marks(&rare),
            fit,
            ..Line::default()
        });
    }
    let alternative =
        format!("Nodes by depth on a logarithmic scale; fitted branching factors: {}", factors.join("; "));
    let depth = Axis { label: "depth", log: false, whole: true, mark: None };
    let nodes = Axis { label: "nodes of the depth alone, mean", log: true, whole: false, mark: None };
    let chart = svg::lines(&lines[..lines.len().min(MOST_LINES)], depth, nodes, &alternative);
    let caption = format!(
        "Dots are mean nodes of each completed depth; lines are the uniform trees of 1 + b* + ... + b*^depth nodes that come nearest to them, a depth counting by its searches. Rings are depths that fewer than half of the searches completed, those of easier positions.{}",
        rest(lines.len(), MOST_LINES, "players")
    );
    let columns = [
        ("player", Column::Word),
        ("depth", Column::Number),
        ("nodes", Column::Number),
        ("95 %", Column::Number),
        ("searches", Column::Number),
    ];
    let rows: Vec<Vec<String>> = by_depth
        .iter()
        .map(|row| {
            vec![
                row.player.clone(),
                row.depth.to_string(),
                short(row.nodes.value),
                interval_text(&row.nodes, short),
                row.searches.to_string(),
            ]
        })
        .collect();
    let mut body = figure(&chart, &caption, &table("Nodes by depth", &columns, &rows));
    if !factors.is_empty() {
        body.push_str(&paragraph(&format!("Fitted b*: {}.", factors.join(", "))));
    }
    Some(Section { id: "depths", title: "Nodes against depth", full: false, body })
}

/// The nodes of a uniform tree: 1 + b + ... + b^depth.
fn uniform_tree(branching: f64, depth: u32) -> f64 {
    (0..depth).fold(1.0, |sum, _| sum * branching + 1.0)
}

/// What pruning saved.
pub(super) fn pruning(report: &Report) -> Option<Section> {
    let players = &report.pruning.players;
    if players.iter().all(|player| player.mean_depth.is_none()) {
        let why = "No player searched by depth, so that there is nothing to say of pruning.";
        return Some(Section {
            id: "pruning",
            title: "What pruning saved",
            full: true,
            body: paragraph(why),
        });
    }
    let mut charts = String::new();
    for (measure, label, caption) in [
        (
            (|player: &PlayerPruning| player.vs_minimax) as fn(&PlayerPruning) -> Option<Interval>,
            "nodes for one node of the full width",
            "Nodes against a search that prunes nothing, to the same depth at the same positions. Left is better.",
        ),
        (
            |player| player.vs_minimal,
            "leaves for one leaf of the minimal tree",
            "Leaves against the fewest that can prove the value of a uniform tree of the same width and depth. One is perfect; below it, the table or an uneven tree saved more.",
        ),
    ] {
        let rows: Vec<Row> = players
            .iter()
            .filter_map(|player| {
                let value = measure(player)?;
                Some(Row {
                    name: player.player.clone(),
                    value: Some(value.value),
                    low: value.low,
                    high: value.high,
                    extreme: None,
                    text: short(value.value),
                })
            })
            .collect();
        if rows.is_empty() {
            continue;
        }
        let axis = Axis { label, log: true, whole: false, mark: Some(1.0) };
        let words: Vec<String> = rows.iter().map(|row| format!("{} {}", row.name, row.text)).collect();
        let alternative = format!("{label}: {}", words.join("; "));
        let caption = format!("{caption}{}", rest(rows.len(), MOST_ROWS, "players"));
        let columns = [("player", Column::Word), ("ratio", Column::Number), ("95 %", Column::Number)];
        let cells: Vec<Vec<String>> = players
            .iter()
            .filter_map(|player| {
                let value = measure(player)?;
                Some(vec![player.player.clone(), short(value.value), interval_text(&value, short)])
            })
            .collect();
        let chart = svg::intervals(&rows[..rows.len().min(MOST_ROWS)], axis, &alternative);
        charts.push_str(&figure(&chart, &caption, &table(label, &columns, &cells)));
    }
    let mut body = format!("<div class=\"pair\">\n{charts}</div>\n{}", measures(players));
    for note in &report.pruning.notes {
        let name = match note.measure {
            "vs_minimax" => "Against the full width: ",
            "vs_minimal" => "Against the minimal tree: ",
            _ => "",
        };
        body.push_str(&paragraph(&sentence(&format!("{name}{}", note.note))));
    }
    Some(Section { id: "pruning", title: "What pruning saved", full: true, body })
}

/// The first letter large and a full stop at the end.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first: String = letters.next().map(|c| c.to_uppercase().collect()).unwrap_or_default();
    let stop = if text.ends_with('.') { "" } else { "." };
    format!("{first}{}{stop}", letters.as_str())
}

/// A measure of a player: its heading, what it is, its value, and how numbers are written.
type Measure = (&'static str, &'static str, fn(&PlayerPruning) -> Option<Interval>, fn(f64) -> String);

/// All measures that somebody has, in a table.
fn measures(players: &[PlayerPruning]) -> String {
    let all: [Measure; 7] = [
        ("depth", "mean completed depth", |player| player.mean_depth, |value| fixed(value, 1)),
        (
            "mean b*",
            "mean effective branching factor b* of single searches",
            |player| player.ebf,
            |value| fixed(value, 2),
        ),
        ("growth", "growth of nodes from depth to depth", |player| player.growth, |value| fixed(value, 2)),
        ("first move cuts", "cutoffs by the first move", |player| player.first_move_share, percent),
        ("table hits", "table hits", |player| player.hit_rate, percent),
        ("of full width", "nodes against the full width", |player| player.vs_minimax, short),
        ("of minimal tree", "leaves against the minimal tree", |player| player.vs_minimal, short),
    ];
    let told: Vec<&Measure> =
        all.iter().filter(|(_, _, of, _)| players.iter().any(|player| of(player).is_some())).collect();
    let columns: Vec<(&str, Column)> = std::iter::once(("player", Column::Word))
        .chain(told.iter().map(|(heading, ..)| (*heading, Column::Number)))
        .collect();
    let row = |player: &PlayerPruning| {
        let cell = |(_, _, of, text): &&Measure| {
            of(player).map_or("-".to_string(), |measure: Interval| text(measure.value))
        };
        std::iter::once(player.player.clone()).chain(told.iter().map(cell)).collect()
    };
    let rows: Vec<Vec<String>> = players.iter().map(row).collect();
    let caption: Vec<&str> = told.iter().map(|(_, about, ..)| *about).collect();
    table(&sentence(&caption.join("; ")), &columns, &rows)
}

/// Time and overshoot.
pub(super) fn time(report: &Report) -> Option<Section> {
    let efforts: Vec<&Effort> = report.efforts.iter().filter(|effort| effort.searches > 0).collect();
    if efforts.is_empty() {
        return None;
    }
    let milliseconds = |us: f64| us / 1000.0;
    let row = |effort: &&Effort| Row {
        name: effort.player.clone(),
        value: effort.median_us.map(milliseconds),
        low: effort.range_us.map(|range| milliseconds(range[0])),
        high: effort.range_us.map(|range| milliseconds(range[1])),
        extreme: Some(milliseconds(effort.longest_us as f64)),
        text: effort.median_us.map_or("-".to_string(), |us| format!("{} ms", three(milliseconds(us)))),
    };
    let rows: Vec<Row> = efforts.iter().take(MOST_ROWS).map(row).collect();
    let words: Vec<String> = rows.iter().map(|row| format!("{} {}", row.name, row.text)).collect();
    let alternative = format!("Median time for a search: {}", words.join("; "));
    let axis = Axis { label: "milliseconds for a search", log: true, whole: false, mark: None };
    let caption = format!(
        "Dots are medians; the bar leaves out the fastest and the slowest twentieth of the searches, the mark is the slowest of all.{}",
        rest(efforts.len(), MOST_ROWS, "players")
    );
    let columns = [
        ("player", Column::Word),
        ("searches", Column::Number),
        ("mean ms", Column::Number),
        ("median ms", Column::Number),
        ("slowest ms", Column::Number),
        ("nodes/s", Column::Number),
        ("simulations/s", Column::Number),
        ("over its limit", Column::Number),
        ("mean over, ms", Column::Number),
        ("most over, ms", Column::Number),
    ];
    let cells: Vec<Vec<String>> = efforts.iter().map(|effort| time_cells(effort)).collect();
    let numbers = table("Time, speed and overshoot", &columns, &cells);
    let timed: Vec<&&Effort> = efforts.iter().filter(|effort| effort.timed).collect();
    let overshoot = match timed.iter().max_by_key(|effort| effort.most_overshoot_us) {
        None => "No player is limited by time, so that nobody can be late.".to_string(),
        Some(worst) if worst.most_overshoot_us == 0 => "Nobody went beyond its limit of time.".to_string(),
        Some(worst) => format!(
            "The furthest beyond a limit of time was {} by {} ms; the table has how often each was late, and by how much.",
            worst.player,
            three(milliseconds(worst.most_overshoot_us as f64))
        ),
    };
    let body = format!(
        "{}{}",
        paragraph(&overshoot),
        figure(&svg::intervals(&rows, axis, &alternative), &caption, &numbers)
    );
    Some(Section { id: "time", title: "Time and overshoot", full: false, body })
}

fn time_cells(effort: &Effort) -> Vec<String> {
    let searches = effort.searches.max(1) as f64;
    let seconds = effort.time_us as f64 / 1e6;
    let speed = |count: u64| match count > 0 && seconds > 0.0 {
        true => short(count as f64 / seconds),
        false => "-".to_string(),
    };
    let late = |text: String| if effort.timed { text } else { "-".to_string() };
    vec![
        effort.player.clone(),
        effort.searches.to_string(),
        three(effort.time_us as f64 / 1000.0 / searches),
        effort.median_us.map_or("-".to_string(), |us| three(us / 1000.0)),
        three(effort.longest_us as f64 / 1000.0),
        speed(effort.nodes),
        speed(effort.simulations),
        late(percent(effort.overshoots as f64 / searches)),
        late(three(effort.overshoot_us as f64 / 1000.0 / searches)),
        late(three(effort.most_overshoot_us as f64 / 1000.0)),
    ]
}

/// Plies with fewer searches than the busiest has, divided by this, are not drawn.
const RARE: u64 = 50;

/// Mean depth by ply.
pub(super) fn depth_by_ply(report: &Report) -> Option<Section> {
    // The positions of a probe are no games that could be followed.
    if report.question == Question::Probe || report.lengths.is_none() {
        return None;
    }
    let line = |effort: &Effort| {
        // The mean of a handful of searches is noise.
        let least = effort.depth_by_ply.iter().map(|point| point.2).max().unwrap_or(0) / RARE;
        let points = effort.depth_by_ply.iter().filter(|point| point.2 > least);
        Line {
            name: effort.player.clone(),
            points: points.map(|&(ply, depth, _)| (ply, depth)).collect(),
            ..Line::default()
        }
    };
    let lines: Vec<Line> = report.efforts.iter().map(line).filter(|line| !line.points.is_empty()).collect();
    if lines.is_empty() {
        return None;
    }
    let mean =
        |effort: &Effort| effort.mean_depth.map(|depth| format!("{} {}", effort.player, fixed(depth, 1)));
    let means: Vec<String> = report.efforts.iter().filter_map(mean).collect();
    let alternative = format!("Mean completed depth by ply; over all plies: {}", means.join("; "));
    let ply = Axis { label: "ply", log: false, whole: true, mark: None };
    let depth = Axis { label: "mean completed depth", log: false, whole: false, mark: None };
    let chart = svg::lines(&lines[..lines.len().min(MOST_LINES)], ply, depth, &alternative);
    let caption = format!(
        "How deep searches went as games went on. Plies with less than a fiftieth of the searches of the busiest ply are not drawn.{}",
        rest(lines.len(), MOST_LINES, "players")
    );
    let columns = [
        ("player", Column::Word),
        ("ply", Column::Number),
        ("mean depth", Column::Number),
        ("searches", Column::Number),
    ];
    let mut rows = Vec::new();
    for effort in &report.efforts {
        let step = effort.depth_by_ply.len().div_ceil(12).max(1);
        for (ply, depth, searches) in effort.depth_by_ply.iter().step_by(step) {
            rows.push(vec![effort.player.clone(), fixed(*ply, 1), fixed(*depth, 2), searches.to_string()]);
        }
    }
    let body = figure(&chart, &caption, &table("Mean depth at some plies", &columns, &rows));
    Some(Section { id: "plies", title: "Depth by ply", full: false, body })
}

fn interval_text(interval: &Interval, text: impl Fn(f64) -> String) -> String {
    match (interval.low, interval.high) {
        (Some(low), Some(high)) => format!("{} to {}", text(low), text(high)),
        _ => "-".to_string(),
    }
}

/// A number with three digits and a unit of thousands; small ones with as many decimals as they need.
fn short(value: f64) -> String {
    if value >= 0.1 { rate(value).trim_end().to_string() } else { three(value) }
}

/// A number with about three digits.
fn three(value: f64) -> String {
    match value.abs() {
        size if size >= 99.95 => fixed(value, 0),
        size if size >= 9.995 => fixed(value, 1),
        size if size >= 0.0995 || size == 0.0 => fixed(value, 2),
        size if size >= 0.00995 => fixed(value, 3),
        size if size >= 0.000995 => fixed(value, 4),
        _ => format!("{value:.1e}"),
    }
}
