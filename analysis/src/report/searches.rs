//! Sections on searches: node ratios, nodes by depth, pruning, time and depth by ply.

use super::figures::Figure;
use super::html::{Cell, Section, Table, paragraph};
use super::play_statistics::Effort;
use super::summary::common_depth;
use super::svg::{Axis, Line, Row};
use super::{Question, Report};
use crate::format::{fixed, grouped, significant};
use crate::pruning::{DepthNodes, Interval, PlayerPruning, Ratio};

/// A ply is drawn if it has more than one search for this many of the busiest ply: means of a few searches are noise.
const BUSIEST_TO_RAREST_PLY: u64 = 50;

/// Renders the node ratios between the players of a probe.
pub(super) fn ratios(report: &Report) -> Option<Section> {
    let ratios = &report.pruning.ratios;
    let depth = common_depth(ratios)?;
    let chart_row = |ratio: &Ratio| {
        let pair = format!("{} / {}", ratio.a, ratio.b);
        Row::new(pair, report.class(&ratio.a), ratio.interval(), fixed(ratio.ratio, 3))
    };
    let rows: Vec<Row> = ratios.iter().filter(|ratio| ratio.depth == depth).map(chart_row).collect();
    let table_row = |ratio: &Ratio| {
        let [value, low, high] = Cell::interval(&ratio.interval(), Cell::significant);
        let depth = Cell::from(ratio.depth as u64);
        vec![report.cell(&ratio.a), report.cell(&ratio.b), depth, value, low, high, ratio.positions.into()]
    };
    let figure = Figure {
        name: report.file("ratios"),
        caption: format!(
            "Geometric mean ratios of the nodes of depth {depth} at the same positions, with 95 % intervals over positions. Below one the first player needs fewer."
        ),
        data: Table::new(
            "Node ratios at every depth that both completed, with 95 % intervals from low to high",
            &["first", "second"],
            &["depth", "ratio", "low", "high", "positions"],
            ratios.iter().map(table_row).collect(),
        ),
    };
    let axis =
        Axis { label: "nodes of the first ÷ nodes of the second", log: true, whole: false, mark: Some(1.0) };
    let title = format!("Node ratios to depth {depth} at the same positions");
    let body = figure.intervals(&rows, axis, &title, "pairs");
    Some(Section { id: "ratios", title: "Node ratios", full: false, body })
}

/// Renders the mean nodes of each depth.
pub(super) fn depths(report: &Report) -> Option<Section> {
    let by_depth = &report.pruning.by_depth;
    if by_depth.is_empty() {
        return None;
    }
    let player_line = |player: &PlayerPruning| {
        let own_depths = || by_depth.iter().filter(|row| row.player == player.player);
        let max_searches = own_depths().map(|row| row.searches).max().unwrap_or(0);
        let (common, rare): (Vec<_>, Vec<_>) = own_depths().partition(|row| 2 * row.searches >= max_searches);
        let mean_nodes = |rows: Vec<&DepthNodes>| -> Vec<(f64, f64)> {
            rows.iter().map(|row| (row.depth as f64, row.nodes.value)).collect()
        };
        Line {
            name: player.player.clone(),
            class: report.class(&player.player),
            points: mean_nodes(common),
            rings: mean_nodes(rare),
            dots: true,
            ..Line::default()
        }
    };
    let lines = report.pruning.players.iter().map(player_line);
    let lines: Vec<Line> = lines.filter(|line| !line.points.is_empty()).collect();
    let table_row = |row: &DepthNodes| {
        let [nodes, low, high] = Cell::interval(&row.nodes, |value| Cell::number(value, 1));
        vec![report.cell(&row.player), Cell::from(row.depth as u64), nodes, low, high, row.searches.into()]
    };
    let figure = Figure {
        name: report.file("depths"),
        caption: "Mean nodes of each completed depth. Rings are depths that fewer than half of the searches completed, in easier positions.".to_string(),
        data: Table::new(
            "Mean nodes by depth, with 95 % intervals from low to high",
            &["player"],
            &["depth", "nodes", "low", "high", "searches"],
            by_depth.iter().map(table_row).collect(),
        ),
    };
    let x_axis = Axis { label: "depth", log: false, whole: true, mark: None };
    let y_axis = Axis { label: "nodes of the depth alone, mean", log: true, whole: false, mark: None };
    let body = figure.lines(&lines, [x_axis, y_axis], "Mean nodes by depth on a logarithmic scale");
    Some(Section { id: "depths", title: "Nodes by depth", full: false, body })
}

/// Renders the savings of pruning.
pub(super) fn pruning(report: &Report) -> Option<Section> {
    let players = &report.pruning.players;
    let section = |body| Some(Section { id: "pruning", title: "Pruning", full: true, body });
    if players.iter().all(|player| player.mean_depth.is_none()) {
        return section(paragraph("No player searched by depth, so there are no pruning statistics."));
    }
    let ratio_chart = |file: &str,
                       measure: fn(&PlayerPruning) -> Option<Interval>,
                       label: &str,
                       caption: &str| {
        let measured = || players.iter().filter_map(|player| Some((&player.player, measure(player)?)));
        let chart_row = |(player, ratio): (&String, Interval)| {
            Row::new(player.clone(), report.class(player), ratio, significant(ratio.value))
        };
        let rows: Vec<Row> = measured().map(chart_row).collect();
        if rows.is_empty() {
            return String::new();
        }
        let table_row = |(player, ratio): (&String, Interval)| {
            let [value, low, high] = Cell::interval(&ratio, Cell::significant);
            vec![report.cell(player), value, low, high]
        };
        let figure = Figure {
            name: report.file(file),
            caption: caption.to_string(),
            data: Table::new(
                &format!("{label}, with 95 % intervals from low to high"),
                &["player"],
                &["ratio", "low", "high"],
                measured().map(table_row).collect(),
            ),
        };
        figure.intervals(&rows, Axis { label, log: true, whole: false, mark: Some(1.0) }, label, "players")
    };
    let unpruned = ratio_chart(
        "unpruned",
        |player| player.vs_minimax,
        "nodes ÷ nodes without pruning",
        "Nodes relative to a search without pruning, to the same depth at the same positions. Lower is better.",
    );
    let minimal = ratio_chart(
        "minimal",
        |player| player.vs_minimal,
        "leaves ÷ minimal-tree leaves",
        "Leaves relative to the fewest that can prove the value of a uniform tree of the same width and depth. One is optimal; transpositions and uneven trees allow lower values.",
    );
    let mut body = format!("<div class=\"pair\">\n{unpruned}{minimal}</div>\n{}", measures(report));
    for note in &report.pruning.notes {
        let measure = match note.measure {
            "vs_minimax" => "Without pruning: ",
            "vs_minimal" => "Minimal tree: ",
            _ => "",
        };
        body.push_str(&paragraph(&sentence(&format!("{measure}{}", note.note))));
    }
    section(body)
}

/// Capitalises the first letter and ends the text with a full stop.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first: String = letters.next().map(|c| c.to_uppercase().collect()).unwrap_or_default();
    let full_stop = if text.ends_with('.') { "" } else { "." };
    format!("{first}{}{full_stop}", letters.as_str())
}

/// A column of the table of measures: heading, description, value and cell.
type Measure = (&'static str, &'static str, fn(&PlayerPruning) -> Option<Interval>, fn(Option<f64>) -> Cell);

const MEASURES: [Measure; 7] = [
    ("depth", "mean completed depth", |player| player.mean_depth, |value| Cell::number(value, 1)),
    (
        "b*",
        "mean effective branching factor b* of the searches",
        |player| player.ebf,
        |value| Cell::number(value, 2),
    ),
    ("growth", "growth of nodes from depth to depth", |player| player.growth, |value| Cell::number(value, 2)),
    (
        "first-move cutoffs, %",
        "share of cutoffs by the first move",
        |player| player.first_move_share,
        Cell::percent,
    ),
    ("table hits, %", "share of table probes that hit", |player| player.hit_rate, Cell::percent),
    ("vs unpruned", "nodes ÷ nodes without pruning", |player| player.vs_minimax, Cell::significant),
    ("vs minimal tree", "leaves ÷ minimal-tree leaves", |player| player.vs_minimal, Cell::significant),
];

/// Renders the measures that at least one player has.
fn measures(report: &Report) -> String {
    let players = &report.pruning.players;
    let is_defined = |(_, _, measure, _): &&Measure| players.iter().any(|player| measure(player).is_some());
    let shown: Vec<&Measure> = MEASURES.iter().filter(is_defined).collect();
    let headings: Vec<&str> = shown.iter().map(|(heading, ..)| *heading).collect();
    let table_row = |player: &PlayerPruning| {
        let value = |(_, _, measure, cell): &&Measure| cell(measure(player).map(|interval| interval.value));
        std::iter::once(report.cell(&player.player)).chain(shown.iter().map(value)).collect()
    };
    let descriptions: Vec<&str> = shown.iter().map(|(_, description, ..)| *description).collect();
    let rows = players.iter().map(table_row).collect();
    Table::new(&sentence(&descriptions.join("; ")), &["player"], &headings, rows).html()
}

/// A unit of time: its name and its microseconds.
type Unit = (&'static str, f64);

/// Formats a time; the clock counts microseconds.
fn time_text(microseconds: f64, (unit_name, unit): Unit) -> String {
    match microseconds {
        time if time < 1.0 && unit > 1.0 => "under 1 µs".to_string(),
        time if time < 1.0 => format!("under 1 {unit_name}"),
        time => format!("{} {unit_name}", grouped(&significant(time / unit))),
    }
}

/// Renders search times and overshoots.
pub(super) fn time(report: &Report) -> Option<Section> {
    let efforts: Vec<&Effort> = report.efforts.iter().filter(|effort| effort.searches > 0).collect();
    if efforts.is_empty() {
        return None;
    }
    // One unit for the whole section, in which the slowest median has at least one digit.
    let slowest = efforts.iter().filter_map(|effort| effort.median_us).fold(0.0, f64::max);
    let unit: Unit = if slowest < 1000.0 { ("µs", 1.0) } else { ("ms", 1000.0) };
    // The axis is logarithmic, and the clock counts microseconds.
    let on_axis = |microseconds: f64| microseconds.max(1.0) / unit.1;
    let chart_row = |effort: &&Effort| Row {
        name: effort.player.clone(),
        class: report.class(&effort.player),
        value: effort.median_us.map(on_axis),
        low: effort.range_us.map(|range| on_axis(range[0])),
        high: effort.range_us.map(|range| on_axis(range[1])),
        extreme: Some(on_axis(effort.longest_us as f64)),
        text: effort.median_us.map_or("-".to_string(), |median| time_text(median, unit)),
    };
    let rows: Vec<Row> = efforts.iter().map(chart_row).collect();
    let timed = efforts.iter().filter(|effort| effort.timed);
    let overshoot = match timed.max_by_key(|effort| effort.most_overshoot_us) {
        None => "No player is limited by time.".to_string(),
        Some(worst) if worst.most_overshoot_us == 0 => "No search exceeded its time limit.".to_string(),
        Some(worst) => format!(
            "Largest overshoot of a time limit: {} by {}. The data table shows how often each player overshot, and by how much.",
            worst.player,
            time_text(worst.most_overshoot_us as f64, unit)
        ),
    };
    let unit_name = unit.0;
    let headings = [
        "searches",
        &format!("mean {unit_name}"),
        &format!("median {unit_name}"),
        &format!("slowest {unit_name}"),
        "nodes/s",
        "simulations/s",
        "overshoots, %",
        &format!("mean overshoot, {unit_name}"),
        &format!("largest overshoot, {unit_name}"),
    ];
    let figure = Figure {
        name: report.file("time"),
        caption: "Dots are medians, bars the range from the 5 % to the 95 % quantile, outer marks the slowest search.".to_string(),
        data: Table::new(
            "Time, speed and overshoot",
            &["player"],
            &headings,
            efforts.iter().map(|effort| time_row(report, effort, unit)).collect(),
        ),
    };
    let label = if unit.1 > 1.0 { "milliseconds per search" } else { "microseconds per search" };
    let axis = Axis { label, log: true, whole: false, mark: None };
    let chart = figure.intervals(&rows, axis, "Median time per search", "players");
    let body = format!("{}{chart}", paragraph(&overshoot));
    Some(Section { id: "time", title: "Time and overshoot", full: false, body })
}

/// Returns the row of a player in the table of times.
fn time_row(report: &Report, effort: &Effort, (_, unit): Unit) -> Vec<Cell> {
    let searches = effort.searches.max(1) as f64;
    let seconds = effort.time_us as f64 / 1e6;
    let speed = |count: u64| Cell::number((count > 0 && seconds > 0.0).then(|| count as f64 / seconds), 0);
    let time = |microseconds: f64| Cell::number(Some(microseconds / unit), 3);
    let if_timed = |cell: Cell| if effort.timed { cell } else { Cell::Missing };
    vec![
        report.cell(&effort.player),
        effort.searches.into(),
        time(effort.time_us as f64 / searches),
        effort.median_us.map_or(Cell::Missing, time),
        time(effort.longest_us as f64),
        speed(effort.nodes),
        speed(effort.simulations),
        if_timed(Cell::percent(Some(effort.overshoots as f64 / searches))),
        if_timed(time(effort.overshoot_us as f64 / searches)),
        if_timed(time(effort.most_overshoot_us as f64)),
    ]
}

/// Renders the mean depth by ply.
pub(super) fn depth_by_ply(report: &Report) -> Option<Section> {
    // The positions of a probe are not consecutive plies of a game.
    if report.question == Question::Probe || report.lengths.is_none() {
        return None;
    }
    let player_line = |effort: &Effort| {
        let busiest = effort.depth_by_ply.iter().map(|&(_, _, searches)| searches).max().unwrap_or(0);
        let is_drawn = |&&(_, _, searches): &&(f64, f64, u64)| searches > busiest / BUSIEST_TO_RAREST_PLY;
        let points = effort.depth_by_ply.iter().filter(is_drawn);
        Line {
            name: effort.player.clone(),
            class: report.class(&effort.player),
            points: points.map(|&(ply, depth, _)| (ply, depth)).collect(),
            ..Line::default()
        }
    };
    let lines: Vec<Line> =
        report.efforts.iter().map(player_line).filter(|line| !line.points.is_empty()).collect();
    if lines.is_empty() {
        return None;
    }
    let mean_text =
        |effort: &Effort| effort.mean_depth.map(|depth| format!("{} {}", effort.player, fixed(depth, 1)));
    let means: Vec<String> = report.efforts.iter().filter_map(mean_text).collect();
    let player_rows = |effort: &Effort| {
        let player = report.cell(&effort.player);
        let table_row = |&(ply, depth, searches): &(f64, f64, u64)| {
            let ply = Cell::number(Some(ply), usize::from(ply.fract() > 0.0));
            vec![player.clone(), ply, Cell::number(Some(depth), 2), searches.into()]
        };
        effort.depth_by_ply.iter().map(table_row).collect::<Vec<_>>()
    };
    let figure = Figure {
        name: report.file("plies"),
        caption: "Mean completed depth over the course of the games. Plies with less than a fiftieth of the searches of the busiest ply are not drawn.".to_string(),
        data: Table::new(
            "Mean completed depth by ply",
            &["player"],
            &["ply", "mean depth", "searches"],
            report.efforts.iter().flat_map(player_rows).collect(),
        ),
    };
    let x_axis = Axis { label: "ply", log: false, whole: true, mark: None };
    let y_axis = Axis { label: "mean completed depth", log: false, whole: false, mark: None };
    let description = format!("Mean completed depth by ply; over all plies: {}", means.join("; "));
    let body = figure.lines(&lines, [x_axis, y_axis], &description);
    Some(Section { id: "plies", title: "Depth by ply", full: false, body })
}
