//! Sections on searches: node ratios, nodes by depth, pruning, time and depth by ply.

use agon_stats::branching::fitted_branching_factor;

use super::figures::{interval_figure, line_figure};
use super::html::{Section, columns, paragraph, table};
use super::play_statistics::Effort;
use super::summary::common_depth;
use super::svg::{Axis, Line, Row};
use super::{Question, Report, interval_text};
use crate::format::{fixed, percent, rate};
use crate::pruning::{Interval, PlayerPruning, Ratio};

/// Number of rows by player in the table of depths by ply.
const PLY_ROWS: usize = 12;

/// Divisor of the searches of the busiest ply, below which a ply is not drawn.
const RARE: u64 = 50;

fn interval_row(name: String, interval: Interval, text: String) -> Row {
    let Interval { value, low, high } = interval;
    Row { name, value: Some(value), low, high, extreme: None, text }
}

/// Renders the node ratios between the players of a probe.
pub(super) fn ratios(report: &Report) -> Option<Section> {
    let ratios = &report.pruning.ratios;
    let depth = common_depth(ratios)?;
    let three_decimals = |value| fixed(value, 3);
    let row = |ratio: &Ratio| {
        interval_row(format!("{} / {}", ratio.a, ratio.b), ratio.interval(), three_decimals(ratio.ratio))
    };
    let rows: Vec<Row> = ratios.iter().filter(|ratio| ratio.depth == depth).map(row).collect();
    let cells: Vec<Vec<String>> = ratios
        .iter()
        .map(|ratio| {
            vec![
                ratio.a.clone(),
                ratio.b.clone(),
                ratio.depth.to_string(),
                three_decimals(ratio.ratio),
                interval_text(&ratio.interval(), three_decimals),
                ratio.positions.to_string(),
            ]
        })
        .collect();
    let columns = columns(&["first", "second"], &["depth", "ratio", "95 %", "positions"]);
    let axis =
        Axis { label: "nodes of the first ÷ nodes of the second", log: true, whole: false, mark: Some(1.0) };
    let title = format!("Node ratios to depth {depth} at the same positions");
    let caption = format!(
        "Geometric mean ratios of the nodes of depth {depth} at the same positions, with 95 % intervals over positions. Below one the first player needs fewer."
    );
    let data = table("Node ratios at every depth that both completed", &columns, &cells);
    let body = interval_figure(&rows, axis, (&title, &caption), "pairs", &data);
    Some(Section { id: "ratios", title: "Node ratios", full: false, body })
}

/// Renders nodes by depth with the uniform trees of the fitted branching factors.
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
    let cells: Vec<Vec<String>> = by_depth
        .iter()
        .map(|row| {
            vec![
                row.player.clone(),
                row.depth.to_string(),
                compact(row.nodes.value),
                interval_text(&row.nodes, compact),
                row.searches.to_string(),
            ]
        })
        .collect();
    let columns = columns(&["player"], &["depth", "nodes", "95 %", "searches"]);
    let depth = Axis { label: "depth", log: false, whole: true, mark: None };
    let nodes = Axis { label: "nodes of the depth alone, mean", log: true, whole: false, mark: None };
    let mut body = line_figure(
        &lines,
        [depth, nodes],
        &format!("Nodes by depth on a logarithmic scale; fitted branching factors: {}", factors.join("; ")),
        "Dots are mean nodes of each completed depth; lines are fitted uniform trees of 1 + b* + ... + b*^depth nodes, weighted by searches. Rings are depths that fewer than half of the searches completed, in easier positions.",
        &table("Nodes by depth", &columns, &cells),
    );
    if !factors.is_empty() {
        body.push_str(&paragraph(&format!("Fitted b*: {}.", factors.join(", "))));
    }
    Some(Section { id: "depths", title: "Nodes by depth", full: false, body })
}

/// Returns the nodes of a uniform tree: 1 + b + ... + b^depth.
fn uniform_tree(branching: f64, depth: u32) -> f64 {
    (0..depth).fold(1.0, |sum, _| sum * branching + 1.0)
}

/// Renders the savings of pruning.
pub(super) fn pruning(report: &Report) -> Option<Section> {
    let players = &report.pruning.players;
    let section = |body| Some(Section { id: "pruning", title: "Pruning", full: true, body });
    if players.iter().all(|player| player.mean_depth.is_none()) {
        return section(paragraph("No player searched by depth, so there are no pruning statistics."));
    }
    let ratio = |measure: fn(&PlayerPruning) -> Option<Interval>, label: &str, caption: &str| {
        let measured = players.iter().filter_map(|player| Some((&player.player, measure(player)?)));
        let row =
            |(name, value): (&String, Interval)| interval_row(name.clone(), value, compact(value.value));
        let rows: Vec<Row> = measured.clone().map(row).collect();
        if rows.is_empty() {
            return String::new();
        }
        let cells = |(name, value): (&String, Interval)| {
            vec![name.clone(), compact(value.value), interval_text(&value, compact)]
        };
        let cells: Vec<Vec<String>> = measured.map(cells).collect();
        let axis = Axis { label, log: true, whole: false, mark: Some(1.0) };
        let data = table(label, &columns(&["player"], &["ratio", "95 %"]), &cells);
        interval_figure(&rows, axis, (label, caption), "players", &data)
    };
    let unpruned = ratio(
        |player| player.vs_minimax,
        "nodes ÷ nodes without pruning",
        "Nodes relative to a search without pruning, to the same depth at the same positions. Lower is better.",
    );
    let minimal = ratio(
        |player| player.vs_minimal,
        "leaves ÷ minimal-tree leaves",
        "Leaves relative to the fewest that can prove the value of a uniform tree of the same width and depth. One is optimal; transpositions and uneven trees allow lower values.",
    );
    let mut body = format!("<div class=\"pair\">\n{unpruned}{minimal}</div>\n{}", measures(players));
    for note in &report.pruning.notes {
        let name = match note.measure {
            "vs_minimax" => "Without pruning: ",
            "vs_minimal" => "Minimal tree: ",
            _ => "",
        };
        body.push_str(&paragraph(&sentence(&format!("{name}{}", note.note))));
    }
    section(body)
}

/// Capitalises the first letter and ends the text with a full stop.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first: String = letters.next().map(|c| c.to_uppercase().collect()).unwrap_or_default();
    let stop = if text.ends_with('.') { "" } else { "." };
    format!("{first}{}{stop}", letters.as_str())
}

/// A column of the table of measures: heading, description, value and number format.
type Measure = (&'static str, &'static str, fn(&PlayerPruning) -> Option<Interval>, fn(f64) -> String);

const MEASURES: [Measure; 7] = [
    ("depth", "mean completed depth", |player| player.mean_depth, |value| fixed(value, 1)),
    ("mean b*", "mean effective branching factor b* by search", |player| player.ebf, |value| fixed(value, 2)),
    ("growth", "growth of nodes from depth to depth", |player| player.growth, |value| fixed(value, 2)),
    ("first-move cutoffs", "share of cutoffs by the first move", |player| player.first_move_share, percent),
    ("table hits", "share of table probes that hit", |player| player.hit_rate, percent),
    ("vs unpruned", "nodes ÷ nodes without pruning", |player| player.vs_minimax, compact),
    ("vs minimal tree", "leaves ÷ minimal-tree leaves", |player| player.vs_minimal, compact),
];

/// Renders the measures that at least one player has.
fn measures(players: &[PlayerPruning]) -> String {
    let defined = |(_, _, value, _): &&Measure| players.iter().any(|player| value(player).is_some());
    let shown: Vec<&Measure> = MEASURES.iter().filter(defined).collect();
    let headings: Vec<&str> = shown.iter().map(|(heading, ..)| *heading).collect();
    let row = |player: &PlayerPruning| {
        let cell = |(_, _, value, format): &&Measure| {
            value(player).map_or("-".to_string(), |interval: Interval| format(interval.value))
        };
        std::iter::once(player.player.clone()).chain(shown.iter().map(cell)).collect()
    };
    let rows: Vec<Vec<String>> = players.iter().map(row).collect();
    let caption: Vec<&str> = shown.iter().map(|(_, description, ..)| *description).collect();
    table(&sentence(&caption.join("; ")), &columns(&["player"], &headings), &rows)
}

/// Renders search times and overshoots.
pub(super) fn time(report: &Report) -> Option<Section> {
    let efforts: Vec<&Effort> = report.efforts.iter().filter(|effort| effort.searches > 0).collect();
    if efforts.is_empty() {
        return None;
    }
    let row = |effort: &&Effort| Row {
        name: effort.player.clone(),
        value: effort.median_us.map(milliseconds),
        low: effort.range_us.map(|range| milliseconds(range[0])),
        high: effort.range_us.map(|range| milliseconds(range[1])),
        extreme: Some(milliseconds(effort.longest_us as f64)),
        text: effort.median_us.map_or("-".to_string(), |us| format!("{} ms", milliseconds_text(us))),
    };
    let rows: Vec<Row> = efforts.iter().map(row).collect();
    let columns = columns(
        &["player"],
        &[
            "searches",
            "mean ms",
            "median ms",
            "slowest ms",
            "nodes/s",
            "simulations/s",
            "overshoots",
            "mean overshoot, ms",
            "largest overshoot, ms",
        ],
    );
    let cells: Vec<Vec<String>> = efforts.iter().map(|effort| time_cells(effort)).collect();
    let timed = efforts.iter().filter(|effort| effort.timed);
    let overshoot = match timed.max_by_key(|effort| effort.most_overshoot_us) {
        None => "No player is limited by time.".to_string(),
        Some(worst) if worst.most_overshoot_us == 0 => "No search exceeded its time limit.".to_string(),
        Some(worst) => format!(
            "Largest overshoot of a time limit: {} by {} ms. The data table shows how often each player overshot, and by how much.",
            worst.player,
            milliseconds_text(worst.most_overshoot_us as f64)
        ),
    };
    let axis = Axis { label: "milliseconds per search", log: true, whole: false, mark: None };
    let caption =
        "Dots are medians, bars the range from the 5 % to the 95 % quantile, outer marks the slowest search.";
    let data = table("Time, speed and overshoot", &columns, &cells);
    let figure = interval_figure(&rows, axis, ("Median time per search", caption), "players", &data);
    let body = format!("{}{figure}", paragraph(&overshoot));
    Some(Section { id: "time", title: "Time and overshoot", full: false, body })
}

fn time_cells(effort: &Effort) -> Vec<String> {
    let searches = effort.searches.max(1) as f64;
    let seconds = effort.time_us as f64 / 1e6;
    let speed = |count: u64| match count > 0 && seconds > 0.0 {
        true => compact(count as f64 / seconds),
        false => "-".to_string(),
    };
    let timed = |text: String| if effort.timed { text } else { "-".to_string() };
    vec![
        effort.player.clone(),
        effort.searches.to_string(),
        milliseconds_text(effort.time_us as f64 / searches),
        effort.median_us.map_or("-".to_string(), milliseconds_text),
        milliseconds_text(effort.longest_us as f64),
        speed(effort.nodes),
        speed(effort.simulations),
        timed(percent(effort.overshoots as f64 / searches)),
        timed(milliseconds_text(effort.overshoot_us as f64 / searches)),
        timed(milliseconds_text(effort.most_overshoot_us as f64)),
    ]
}

fn milliseconds(microseconds: f64) -> f64 {
    microseconds / 1000.0
}

fn milliseconds_text(microseconds: f64) -> String {
    three_digits(milliseconds(microseconds))
}

/// Renders the mean depth by ply.
pub(super) fn depth_by_ply(report: &Report) -> Option<Section> {
    // The positions of a probe are not consecutive plies of a game.
    if report.question == Question::Probe || report.lengths.is_none() {
        return None;
    }
    let line = |effort: &Effort| {
        // Means of a few searches are noise.
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
    let mut rows = Vec::new();
    for effort in &report.efforts {
        let step = effort.depth_by_ply.len().div_ceil(PLY_ROWS).max(1);
        for (ply, depth, searches) in effort.depth_by_ply.iter().step_by(step) {
            rows.push(vec![effort.player.clone(), fixed(*ply, 1), fixed(*depth, 2), searches.to_string()]);
        }
    }
    let columns = columns(&["player"], &["ply", "mean depth", "searches"]);
    let ply = Axis { label: "ply", log: false, whole: true, mark: None };
    let depth = Axis { label: "mean completed depth", log: false, whole: false, mark: None };
    let body = line_figure(
        &lines,
        [ply, depth],
        &format!("Mean completed depth by ply; over all plies: {}", means.join("; ")),
        "Mean completed depth over the course of the games. Plies with less than a fiftieth of the searches of the busiest ply are not drawn.",
        &table("Mean depth at selected plies", &columns, &rows),
    );
    Some(Section { id: "plies", title: "Depth by ply", full: false, body })
}

/// Formats a number with three digits and a unit of thousands, or with the decimals that a small one needs.
fn compact(value: f64) -> String {
    if value >= 0.1 { rate(value).trim_end().to_string() } else { three_digits(value) }
}

/// Formats a number with about three digits.
fn three_digits(value: f64) -> String {
    match value.abs() {
        size if size >= 99.95 => fixed(value, 0),
        size if size >= 9.995 => fixed(value, 1),
        size if size >= 0.0995 || size == 0.0 => fixed(value, 2),
        size if size >= 0.00995 => fixed(value, 3),
        size if size >= 0.000995 => fixed(value, 4),
        _ => format!("{value:.1e}"),
    }
}
