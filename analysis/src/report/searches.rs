//! Sections on searches: node ratios, nodes by depth, pruning, time and depth by ply.

use super::figures::Figure;
use super::html::{Cell, Section, Table, paragraph};
use super::play_statistics::Effort;
use super::summary::common_depth;
use super::svg::{Axis, Line, Row};
use super::{Question, Report};
use crate::format::{fixed, grouped, significant};
use crate::pruning::{DepthNodes, Interval, PlayerPruning, Ratio};

/// Divisor of the searches of the busiest ply, below which a ply is not drawn.
const RARE: u64 = 50;

/// Renders the node ratios between the players of a probe.
pub(super) fn ratios(report: &Report) -> Option<Section> {
    let ratios = &report.pruning.ratios;
    let depth = common_depth(ratios)?;
    let row = |ratio: &Ratio| {
        let name = format!("{} / {}", ratio.a, ratio.b);
        Row::new(name, report.class(&ratio.a), ratio.interval(), fixed(ratio.ratio, 3))
    };
    let rows: Vec<Row> = ratios.iter().filter(|ratio| ratio.depth == depth).map(row).collect();
    let cells = |ratio: &Ratio| {
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
            ratios.iter().map(cells).collect(),
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
    let line = |player: &PlayerPruning| {
        let depths = || by_depth.iter().filter(|row| row.player == player.player);
        let most = depths().map(|row| row.searches).max().unwrap_or(0);
        let (usual, rare): (Vec<_>, Vec<_>) = depths().partition(|row| 2 * row.searches >= most);
        let points = |rows: Vec<&DepthNodes>| -> Vec<(f64, f64)> {
            rows.iter().map(|row| (row.depth as f64, row.nodes.value)).collect()
        };
        Line {
            name: player.player.clone(),
            class: report.class(&player.player),
            points: points(usual),
            rings: points(rare),
            dots: true,
            ..Line::default()
        }
    };
    let lines: Vec<Line> = report.pruning.players.iter().map(line).collect();
    let lines: Vec<Line> = lines.into_iter().filter(|line| !line.points.is_empty()).collect();
    let cells = |row: &DepthNodes| {
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
            by_depth.iter().map(cells).collect(),
        ),
    };
    let depth = Axis { label: "depth", log: false, whole: true, mark: None };
    let nodes = Axis { label: "nodes of the depth alone, mean", log: true, whole: false, mark: None };
    let body = figure.lines(&lines, [depth, nodes], "Mean nodes by depth on a logarithmic scale");
    Some(Section { id: "depths", title: "Nodes by depth", full: false, body })
}

/// Renders the savings of pruning.
pub(super) fn pruning(report: &Report) -> Option<Section> {
    let players = &report.pruning.players;
    let section = |body| Some(Section { id: "pruning", title: "Pruning", full: true, body });
    if players.iter().all(|player| player.mean_depth.is_none()) {
        return section(paragraph("No player searched by depth, so there are no pruning statistics."));
    }
    let ratio = |name: &str, measure: fn(&PlayerPruning) -> Option<Interval>, label: &str, caption: &str| {
        let measured = || players.iter().filter_map(|player| Some((&player.player, measure(player)?)));
        let row = |(name, value): (&String, Interval)| {
            Row::new(name.clone(), report.class(name), value, significant(value.value))
        };
        let rows: Vec<Row> = measured().map(row).collect();
        if rows.is_empty() {
            return String::new();
        }
        let cells = |(name, value): (&String, Interval)| {
            let [value, low, high] = Cell::interval(&value, Cell::significant);
            vec![report.cell(name), value, low, high]
        };
        let figure = Figure {
            name: report.file(name),
            caption: caption.to_string(),
            data: Table::new(
                &format!("{label}, with 95 % intervals from low to high"),
                &["player"],
                &["ratio", "low", "high"],
                measured().map(cells).collect(),
            ),
        };
        figure.intervals(&rows, Axis { label, log: true, whole: false, mark: Some(1.0) }, label, "players")
    };
    let unpruned = ratio(
        "unpruned",
        |player| player.vs_minimax,
        "nodes ÷ nodes without pruning",
        "Nodes relative to a search without pruning, to the same depth at the same positions. Lower is better.",
    );
    let minimal = ratio(
        "minimal",
        |player| player.vs_minimal,
        "leaves ÷ minimal-tree leaves",
        "Leaves relative to the fewest that can prove the value of a uniform tree of the same width and depth. One is optimal; transpositions and uneven trees allow lower values.",
    );
    let mut body = format!("<div class=\"pair\">\n{unpruned}{minimal}</div>\n{}", measures(report));
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
    let defined = |(_, _, value, _): &&Measure| players.iter().any(|player| value(player).is_some());
    let shown: Vec<&Measure> = MEASURES.iter().filter(defined).collect();
    let headings: Vec<&str> = shown.iter().map(|(heading, ..)| *heading).collect();
    let row = |player: &PlayerPruning| {
        let cell = |(_, _, value, cell): &&Measure| cell(value(player).map(|interval| interval.value));
        std::iter::once(report.cell(&player.player)).chain(shown.iter().map(cell)).collect()
    };
    let caption: Vec<&str> = shown.iter().map(|(_, description, ..)| *description).collect();
    let rows = players.iter().map(row).collect();
    Table::new(&sentence(&caption.join("; ")), &["player"], &headings, rows).html()
}

/// A unit of time: its name and its microseconds.
type Unit = (&'static str, f64);

/// Formats a time; the clock counts microseconds.
fn time_text(microseconds: f64, (name, unit): Unit) -> String {
    match microseconds {
        time if time < 1.0 && unit > 1.0 => "under 1 µs".to_string(),
        time if time < 1.0 => format!("under 1 {name}"),
        time => format!("{} {name}", grouped(&significant(time / unit))),
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
    let drawn = |microseconds: f64| microseconds.max(1.0) / unit.1;
    let row = |effort: &&Effort| Row {
        name: effort.player.clone(),
        class: report.class(&effort.player),
        value: effort.median_us.map(drawn),
        low: effort.range_us.map(|range| drawn(range[0])),
        high: effort.range_us.map(|range| drawn(range[1])),
        extreme: Some(drawn(effort.longest_us as f64)),
        text: effort.median_us.map_or("-".to_string(), |median| time_text(median, unit)),
    };
    let rows: Vec<Row> = efforts.iter().map(row).collect();
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
    let name = unit.0;
    let headings = [
        "searches",
        &format!("mean {name}"),
        &format!("median {name}"),
        &format!("slowest {name}"),
        "nodes/s",
        "simulations/s",
        "overshoots, %",
        &format!("mean overshoot, {name}"),
        &format!("largest overshoot, {name}"),
    ];
    let figure = Figure {
        name: report.file("time"),
        caption: "Dots are medians, bars the range from the 5 % to the 95 % quantile, outer marks the slowest search.".to_string(),
        data: Table::new(
            "Time, speed and overshoot",
            &["player"],
            &headings,
            efforts.iter().map(|effort| time_cells(report, effort, unit)).collect(),
        ),
    };
    let label = if unit.1 > 1.0 { "milliseconds per search" } else { "microseconds per search" };
    let axis = Axis { label, log: true, whole: false, mark: None };
    let chart = figure.intervals(&rows, axis, "Median time per search", "players");
    let body = format!("{}{chart}", paragraph(&overshoot));
    Some(Section { id: "time", title: "Time and overshoot", full: false, body })
}

fn time_cells(report: &Report, effort: &Effort, (_, unit): Unit) -> Vec<Cell> {
    let searches = effort.searches.max(1) as f64;
    let seconds = effort.time_us as f64 / 1e6;
    let speed = |count: u64| Cell::number((count > 0 && seconds > 0.0).then(|| count as f64 / seconds), 0);
    let time = |microseconds: f64| Cell::number(Some(microseconds / unit), 3);
    let timed = |cell: Cell| if effort.timed { cell } else { Cell::Missing };
    vec![
        report.cell(&effort.player),
        effort.searches.into(),
        time(effort.time_us as f64 / searches),
        effort.median_us.map_or(Cell::Missing, time),
        time(effort.longest_us as f64),
        speed(effort.nodes),
        speed(effort.simulations),
        timed(Cell::percent(Some(effort.overshoots as f64 / searches))),
        timed(time(effort.overshoot_us as f64 / searches)),
        timed(time(effort.most_overshoot_us as f64)),
    ]
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
            class: report.class(&effort.player),
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
    let cells = |effort: &Effort| {
        let player = report.cell(&effort.player);
        let row = |&(ply, depth, searches): &(f64, f64, u64)| {
            let ply = Cell::number(Some(ply), usize::from(ply.fract() > 0.0));
            vec![player.clone(), ply, Cell::number(Some(depth), 2), searches.into()]
        };
        effort.depth_by_ply.iter().map(row).collect::<Vec<_>>()
    };
    let figure = Figure {
        name: report.file("plies"),
        caption: "Mean completed depth over the course of the games. Plies with less than a fiftieth of the searches of the busiest ply are not drawn.".to_string(),
        data: Table::new(
            "Mean completed depth by ply",
            &["player"],
            &["ply", "mean depth", "searches"],
            report.efforts.iter().flat_map(cells).collect(),
        ),
    };
    let ply = Axis { label: "ply", log: false, whole: true, mark: None };
    let depth = Axis { label: "mean completed depth", log: false, whole: false, mark: None };
    let means = format!("Mean completed depth by ply; over all plies: {}", means.join("; "));
    let body = figure.lines(&lines, [ply, depth], &means);
    Some(Section { id: "plies", title: "Depth by ply", full: false, body })
}
