//! Charts in plain SVG: intervals, heat maps, and lines with bands and marks.
//!
//! Charts are as wide as a phone's page, so that text stays readable there, and scale with the page. Colours are classes of
//! the style sheet. Text is cut or moved to stay within the frame. Deliberately not here: the data, and any script.

use super::drawing::{Anchor, Drawing, LETTER, SMALL};
use super::html::{fitted, text_width};
use crate::format::{fixed, rate};
use crate::pruning::Interval;

/// Width of every chart.
const WIDTH: f64 = 360.0;
/// Height of a row.
const ROW: f64 = 27.0;
/// Maximum widths of names beside a heat map and beside intervals.
const HEAT_MAP_NAMES: f64 = 120.0;
const INTERVAL_NAMES: f64 = 150.0;
/// Maximum width of names beside lines.
const LINE_NAMES: f64 = 100.0;
/// Number of colours; further players repeat them dashed.
const COLOURS: usize = 6;

/// Maximum number of lines in a chart.
pub(super) const MAX_LINES: usize = 12;
/// Maximum number of rows of intervals.
pub(super) const MAX_ROWS: usize = 24;
/// Maximum number of players in a heat map.
pub(super) const MAX_HEAT_MAP_PLAYERS: usize = 24;

/// The description of an axis.
#[derive(Clone, Copy)]
pub(super) struct Axis<'a> {
    /// Label.
    pub label: &'a str,
    /// Whether the scale is logarithmic.
    pub log: bool,
    /// Whether all values are whole numbers.
    pub whole: bool,
    /// A value that is always within the scale and marked by a line.
    pub mark: Option<f64>,
}

/// A mapping from values to coordinates.
struct Scale {
    low: f64,
    high: f64,
    log: bool,
    whole: bool,
    /// Coordinates of both ends.
    from: f64,
    to: f64,
}

impl Scale {
    /// Creates a scale that fits all values, or a default one without values.
    fn new(axis: Axis<'_>, values: impl Iterator<Item = f64>, from: f64, to: f64) -> Scale {
        let usable = |value: &f64| value.is_finite() && (!axis.log || *value > 0.0);
        let (mut low, mut high) = values
            .chain(axis.mark)
            .filter(usable)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        if low > high {
            (low, high) = if axis.log { (1.0, 10.0) } else { (0.0, 1.0) };
        }
        if axis.log {
            // At least a factor of two, plus a margin.
            let (centre, half) = ((low * high).sqrt(), (high / low).sqrt().max(std::f64::consts::SQRT_2));
            let half = half.powf(1.06);
            (low, high) = (centre / half, centre * half);
        } else {
            let least = if axis.whole { 1.0 } else { 1e-9_f64.max(high.abs() * 1e-6) };
            let margin = if axis.whole { 0.0 } else { 0.04 };
            let width = (high - low).max(least);
            (low, high) = (low - margin * width, low + width * (1.0 + margin));
        }
        Scale { low, high, log: axis.log, whole: axis.whole, from, to }
    }

    /// Returns the coordinate of a value, clamped to the ends.
    fn position(&self, value: f64) -> f64 {
        let share = if self.log {
            (value.max(f64::MIN_POSITIVE) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + (self.to - self.from) * share.clamp(0.0, 1.0)
    }

    /// Returns round values with their labels, about `count` of them.
    fn ticks(&self, count: usize) -> Vec<(f64, String)> {
        // On a short logarithmic scale equal steps are rounder.
        if self.log && self.high > 4.0 * self.low { self.log_ticks(count) } else { self.linear_ticks(count) }
    }

    fn linear_ticks(&self, count: usize) -> Vec<(f64, String)> {
        let rough = (self.high - self.low) / count.max(1) as f64;
        let power = 10_f64.powf(rough.log10().floor());
        let mut step = [1.0, 2.0, 2.5, 5.0]
            .map(|factor| factor * power)
            .into_iter()
            .find(|step| *step >= rough * 0.999 && (!self.whole || step.fract() == 0.0))
            .unwrap_or(power * 10.0);
        if self.whole {
            step = step.max(1.0);
        }
        let needed = |decimals: &usize| (step * 10_f64.powi(*decimals as i32)).fract() < 1e-6;
        let decimals = (0..9).find(needed).unwrap_or(9);
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step).floor() as i64;
        (first..=last)
            .map(|index| {
                let value = index as f64 * step;
                let text = if step >= 1000.0 { short(value) } else { fixed(value, decimals) };
                (value, text)
            })
            .collect()
    }

    fn log_ticks(&self, count: usize) -> Vec<(f64, String)> {
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let decades = (last - first).max(1) as usize;
        let within = |values: Vec<f64>| -> Vec<(f64, String)> {
            let shown = values.into_iter().filter(|value| (self.low..=self.high).contains(value));
            shown.map(|value| (value, short(value))).collect()
        };
        let powers = |factors: &[f64]| -> Vec<f64> {
            (first..=last)
                .flat_map(|power| factors.iter().map(move |factor| factor * 10_f64.powi(power)))
                .collect()
        };
        // The finest division that fits.
        for factors in [&[1.0, 1.5, 2.0, 3.0, 5.0, 7.0][..], &[1.0, 2.0, 5.0], &[1.0, 3.0], &[1.0]] {
            let ticks = within(powers(factors));
            if (2..=count + 1).contains(&ticks.len()) {
                return ticks;
            }
        }
        let stride = decades.div_ceil(count.max(1)).max(1);
        within((first..=last).step_by(stride).map(|power| 10_f64.powi(power)).collect())
    }
}

/// Formats a number with as few characters as possible: `0.05`, `3`, `20 k`.
fn short(value: f64) -> String {
    if value.abs() < 1000.0 {
        // As many decimals as the first digit of a small value needs.
        let text = match value.abs() {
            size if size >= 1e-3 || size == 0.0 => format!("{value:.4}"),
            size => format!("{value:.*}", (1.0 - size.log10()).ceil() as usize),
        };
        return text.trim_end_matches('0').trim_end_matches('.').to_string();
    }
    let sign = if value < 0.0 { "-" } else { "" };
    let text = rate(value.abs());
    let (digits, unit) = text.trim_end().split_once(' ').unwrap_or((text.trim_end(), ""));
    let digits =
        if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits };
    format!("{sign}{digits} {unit}").trim_end().to_string()
}

/// A row of a chart of intervals.
pub(super) struct Row {
    /// Label on the left.
    pub name: String,
    /// Class of the colour.
    pub class: String,
    /// Value; a row without one stays empty.
    pub value: Option<f64>,
    /// Ends of the interval; an interval with one end is open at the other.
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// A marked value outside the interval.
    pub extreme: Option<f64>,
    /// Label on the right.
    pub text: String,
}

impl Row {
    /// Creates a row from an estimate.
    pub(super) fn new(name: String, class: String, interval: Interval, text: String) -> Row {
        let Interval { value, low, high } = interval;
        Row { name, class, value: Some(value), low, high, extreme: None, text }
    }
}

/// Draws a dot with its interval in each row, between two labels.
pub(super) fn intervals(rows: &[Row], axis: Axis<'_>, alternative: &str) -> String {
    let bottom = 6.0 + ROW * rows.len() as f64;
    let mut drawing = Drawing::new(WIDTH, bottom + 40.0);
    let widest = |text: fn(&Row) -> &str, size: f64| {
        rows.iter().map(|row| text_width(text(row)) * size).fold(0.0, f64::max)
    };
    let names = widest(|row| &row.name, LETTER).min(INTERVAL_NAMES) + 10.0;
    let texts = widest(|row| &row.text, SMALL).min(120.0) + 10.0;
    // An open interval has space for its arrow.
    let open = |row: &Row| match (row.low, row.high) {
        (Some(end), None) | (None, Some(end)) => row.value.map(|value| value + (value - end) * 0.15),
        _ => None,
    };
    let values = rows.iter().flat_map(|row| [row.value, row.low, row.high, row.extreme, open(row)]).flatten();
    let scale = Scale::new(axis, values, names + 8.0, WIDTH - texts - 4.0);
    grid_below(&mut drawing, &scale, axis, 4.0, bottom);
    for (index, row) in rows.iter().enumerate() {
        let y = 6.0 + ROW * (index as f64 + 0.5);
        let name = fitted(&row.name, INTERVAL_NAMES / LETTER);
        drawing.text(&format!("label {}", row.class), (0.0, y), Anchor::Start, LETTER, &name);
        drawing.text("quiet", (WIDTH, y), Anchor::End, SMALL, &row.text);
        let Some(value) = row.value.filter(|value| value.is_finite()) else { continue };
        let x = scale.position(value);
        let bar = format!("bar {}", row.class);
        let ends = [row.low, row.high].map(|end| end.map(|end| scale.position(end)));
        let open = row.low.is_some() != row.high.is_some();
        let [low, high] = [(ends[0], scale.from), (ends[1], scale.to)].map(|(end, edge)| match end {
            Some(end) => {
                drawing.line(&bar, (end, y - 4.0), (end, y + 4.0));
                end
            }
            None if open => {
                let back = if edge > x { edge - 6.0 } else { edge + 6.0 };
                drawing.path(&bar, [(back, y - 4.0), (edge, y), (back, y + 4.0)], false);
                edge
            }
            None => x,
        });
        drawing.line(&bar, (low, y), (high, y));
        if let Some(extreme) = row.extreme.filter(|extreme| extreme.is_finite()) {
            let x = scale.position(extreme);
            drawing.line(&bar, (x, y - 5.0), (x, y + 5.0));
        }
        drawing.dot(&format!("dot {}", row.class), (x, y), 4.5);
    }
    drawing.finish(alternative)
}

/// Draws vertical grid lines, their labels and the label of the axis.
fn grid_below(drawing: &mut Drawing, scale: &Scale, axis: Axis<'_>, top: f64, bottom: f64) {
    let ticks = scale.ticks(5);
    let mut previous_end = f64::NEG_INFINITY;
    for (value, text) in &ticks {
        let x = scale.position(*value);
        drawing.line("grid", (x, top), (x, bottom));
        let half = text_width(text) * SMALL / 2.0;
        // A label that would touch the one before it is left out.
        if x - half > previous_end + 3.0 && x + half < WIDTH {
            drawing.text("quiet", (x, bottom + 11.0), Anchor::Middle, SMALL, text);
            previous_end = x + half;
        }
    }
    if let Some(mark) = axis.mark {
        let x = scale.position(mark);
        drawing.line("zero", (x, top), (x, bottom));
    }
    let middle = (scale.from + scale.to) / 2.0;
    drawing.text("quiet", (middle, bottom + 29.0), Anchor::Middle, SMALL, axis.label);
}

/// Draws shares from 0 to 1 of rows against columns. Rows are players with the classes of their colours; columns are labelled
/// by row number, because names would not fit.
pub(super) fn heat_map(
    players: &[(String, String)],
    cells: &[Vec<Option<f64>>],
    alternative: &str,
) -> String {
    let count = players.len().max(1) as f64;
    let numbered: Vec<String> =
        players.iter().enumerate().map(|(index, (name, _))| format!("{} {name}", index + 1)).collect();
    let widest = numbered.iter().map(|name| text_width(name) * LETTER).fold(0.0, f64::max);
    let left = widest.min(HEAT_MAP_NAMES) + 10.0;
    let side = ((WIDTH - left - 2.0) / count).min(60.0);
    // High enough for a name with any number of columns.
    let height = side.clamp(LETTER * 1.2, 34.0);
    let top = 20.0;
    let mut drawing = Drawing::new(WIDTH, top + height * count + 2.0);
    let shows_numbers = side >= 26.0;
    // If the widest number does not fit above its column, only every nth column is labelled.
    let spaced = (text_width(&players.len().to_string()) + 0.5) * SMALL;
    let label_stride = (spaced / side).ceil().max(1.0) as usize;
    for (index, (name, (_, class))) in numbered.iter().zip(players).enumerate() {
        let y = top + height * (index as f64 + 0.5);
        drawing.text(
            &format!("label {class}"),
            (0.0, y),
            Anchor::Start,
            LETTER,
            &fitted(name, HEAT_MAP_NAMES / LETTER),
        );
        let x = left + side * (index as f64 + 0.5);
        if index % label_stride == 0 {
            drawing.text("quiet", (x, 10.0), Anchor::Middle, SMALL, &(index + 1).to_string());
        }
    }
    for (row, shares) in cells.iter().enumerate() {
        for (column, share) in shares.iter().enumerate() {
            let (x, y) = (left + side * column as f64, top + height * row as f64);
            let class = match share {
                _ if row == column => "self".to_string(),
                None => "none".to_string(),
                Some(share) => format!("h{}", (share.clamp(0.0, 1.0) * 8.0).round()),
            };
            drawing.rect(&class, (x + 0.5, y + 0.5), (side - 1.0, height - 1.0));
            if let Some(share) = share.filter(|_| shows_numbers && row != column) {
                let text = fixed(share * 100.0, 0);
                let at = (x + side / 2.0, y + height / 2.0);
                drawing.text(&format!("cell t{class}"), at, Anchor::Middle, SMALL, &text);
            }
        }
    }
    drawing.finish(alternative)
}

/// A line of a chart.
#[derive(Default)]
pub(super) struct Line {
    /// Label.
    pub name: String,
    /// Class of the colour.
    pub class: String,
    /// Points sorted by x.
    pub points: Vec<(f64, f64)>,
    /// Points drawn as rings beside the line.
    pub rings: Vec<(f64, f64)>,
    /// Intervals: x and both ends.
    pub band: Vec<(f64, f64, f64)>,
    /// Whether each point is marked by a dot.
    pub dots: bool,
}

/// Draws lines with their names at their right ends.
pub(super) fn lines(lines: &[Line], x_axis: Axis<'_>, y_axis: Axis<'_>, alternative: &str) -> String {
    let bottom = 230.0_f64.max(16.0 * lines.len() as f64 + 20.0);
    let mut drawing = Drawing::new(WIDTH, bottom + 40.0);
    let names = lines.iter().map(|line| text_width(&line.name) * SMALL).fold(0.0, f64::max).min(LINE_NAMES);
    let top = 24.0;
    let all = |line: &Line| -> Vec<(f64, f64)> {
        let ends = line.band.iter().flat_map(|&(x, low, high)| [(x, low), (x, high)]);
        let marks = line.points.iter().chain(&line.rings).copied();
        marks.chain(ends).collect()
    };
    let points: Vec<(f64, f64)> =
        lines.iter().flat_map(all).filter(|(x, y)| x.is_finite() && y.is_finite()).collect();
    let y_scale = Scale::new(y_axis, points.iter().map(|point| point.1), bottom, top);
    let ticks = y_scale.ticks(6);
    let left = ticks.iter().map(|(_, text)| text_width(text) * SMALL).fold(0.0, f64::max) + 8.0;
    let right = WIDTH - names - 20.0;
    let x_scale = Scale::new(x_axis, points.iter().map(|point| point.0), left, right);
    for (value, text) in &ticks {
        let y = y_scale.position(*value);
        drawing.line("grid", (left, y), (right, y));
        drawing.text("quiet", (left - 5.0, y), Anchor::End, SMALL, text);
    }
    if let Some(mark) = y_axis.mark {
        let y = y_scale.position(mark);
        drawing.line("zero", (left, y), (right, y));
    }
    drawing.text("quiet", (0.0, 8.0), Anchor::Start, SMALL, y_axis.label);
    grid_below(&mut drawing, &x_scale, x_axis, top, bottom);
    let at = |(x, y): (f64, f64)| (x_scale.position(x), y_scale.position(y));
    let usable =
        |point: &(f64, f64)| point.0.is_finite() && point.1.is_finite() && (!y_axis.log || point.1 > 0.0);
    for line in lines.iter().filter(|line| line.band.len() > 1) {
        let up = line.band.iter().map(|&(x, low, _)| at((x, low)));
        let down = line.band.iter().rev().map(|&(x, _, high)| at((x, high)));
        drawing.path(&format!("band {}", line.class), up.chain(down), true);
    }
    let mut ends = Vec::new();
    for line in lines {
        let class = &line.class;
        let drawn: Vec<(f64, f64)> = line.points.iter().copied().filter(usable).map(at).collect();
        if drawn.len() > 1 {
            drawing.path(&format!("curve {class}"), drawn.iter().copied(), false);
        }
        for point in drawn.iter().filter(|_| line.dots || drawn.len() == 1) {
            drawing.dot(&format!("dot {class}"), *point, 3.0);
        }
        for point in line.rings.iter().copied().filter(usable).map(at) {
            drawing.dot(&format!("ring {class}"), point, 3.0);
        }
        if let Some(last) = drawn.last() {
            ends.push((line, *last));
        }
    }
    let wanted: Vec<f64> = ends.iter().map(|(_, end)| end.1).collect();
    for ((line, end), y) in ends.iter().zip(spread(&wanted, SMALL + 3.0, top, bottom)) {
        let class = &line.class;
        drawing.line(&format!("leader {class}"), *end, (right + 14.0, y));
        let name = fitted(&line.name, LINE_NAMES / SMALL);
        drawing.text(&format!("label {class}"), (right + 17.0, y), Anchor::Start, SMALL, &name);
    }
    drawing.finish(alternative)
}

/// Returns the class of the colour with an index.
pub(super) fn series(index: usize) -> String {
    let dashed = if (index / COLOURS).is_multiple_of(2) { "" } else { " dashed" };
    format!("s{}{dashed}", index % COLOURS)
}

/// Moves coordinates at least `gap` apart and into `top..=bottom`, as far as there is room.
fn spread(wanted: &[f64], gap: f64, top: f64, bottom: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&one, &other| wanted[one].total_cmp(&wanted[other]));
    let mut spread = wanted.to_vec();
    let mut least = top;
    for &index in &order {
        spread[index] = spread[index].max(least);
        least = spread[index] + gap;
    }
    let mut most = bottom;
    for &index in order.iter().rev() {
        spread[index] = spread[index].min(most);
        most = spread[index] - gap;
    }
    spread
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::drawing::tests::check_frame as check;

    const ELO: Axis<'_> = Axis { label: "Elo", log: false, whole: false, mark: Some(0.0) };
    const NODES: Axis<'_> = Axis { label: "nodes", log: true, whole: false, mark: None };
    const BOUTS: Axis<'_> = Axis { label: "bouts", log: false, whole: true, mark: None };

    fn names(count: usize) -> Vec<String> {
        let long = "a-player-with-a-name-of-some-forty-letters";
        (0..count)
            .map(|index| if index % 3 == 2 { format!("{long}{index}") } else { format!("p{index}") })
            .collect()
    }

    #[test]
    fn charts_stay_within_frame() {
        for count in [1, 2, 5, 12] {
            let names = names(count);
            for spread in [0.0, 1e-7, 3.0, 400.0, 1e6] {
                let row = |(index, name): (usize, &String)| {
                    let value = spread * (index as f64 - 2.0);
                    Row {
                        name: name.clone(),
                        class: series(index),
                        value: Some(value),
                        low: (index != 1).then_some(value - spread / 3.0),
                        high: Some(value + spread / 4.0),
                        extreme: (index == 3).then_some(value + spread),
                        text: format!("{value:+.0}"),
                    }
                };
                let rows: Vec<Row> = names.iter().enumerate().map(row).collect();
                check(&intervals(&rows, ELO, "ratings"));
                check(&intervals(&rows, NODES, "nodes"));
                for log in [ELO, NODES] {
                    let line = |(index, name): (usize, &String)| {
                        let y = |x: f64| spread * (index as f64 * 0.2 + x) / (1.0 + x);
                        let points: Vec<(f64, f64)> =
                            (1..20 - index).map(|x| (x as f64, y(x as f64))).collect();
                        let band = points.iter().map(|&(x, y)| (x, y - 1.0, y + 1.0)).collect();
                        let rings = vec![(21.0, spread), (22.0, f64::NAN)];
                        Line {
                            name: name.clone(),
                            class: series(index),
                            points,
                            rings,
                            band,
                            dots: index % 2 == 0,
                        }
                    };
                    let drawn: Vec<Line> = names.iter().enumerate().map(line).collect();
                    check(&lines(&drawn, BOUTS, log, "over bouts"));
                }
            }
        }
    }

    #[test]
    fn heat_map_stays_within_frame() {
        for count in [1, 2, 5, 12, 24] {
            let share = |row: usize, column: usize| {
                (row != column && !(row + column).is_multiple_of(5))
                    .then_some(row as f64 / (row + column) as f64)
            };
            let cells: Vec<Vec<Option<f64>>> =
                (0..count).map(|row| (0..count).map(|column| share(row, column)).collect()).collect();
            let players: Vec<(String, String)> = names(count).into_iter().zip((0..).map(series)).collect();
            check(&heat_map(&players, &cells, "scores"));
        }
    }

    #[test]
    fn non_finite_values_are_not_drawn() {
        let row = |value| Row {
            name: "a".to_string(),
            class: series(0),
            value,
            low: None,
            high: None,
            extreme: None,
            text: "-".to_string(),
        };
        check(&intervals(&[row(Some(f64::NAN)), row(None)], ELO, "nothing"));
        check(&intervals(&[], NODES, "nothing"));
        let line = Line { points: vec![(1.0, f64::INFINITY), (2.0, f64::NAN)], ..Line::default() };
        check(&lines(&[line], BOUTS, NODES, "nothing"));
        check(&lines(&[], BOUTS, ELO, "nothing"));
    }

    #[test]
    fn ticks_are_round_and_few() {
        for (low, high) in [(0.0, 1.0), (-350.0, 420.0), (3.0, 4.0), (1.0, 12_000.0), (0.5, 0.52)] {
            for log in [false, true] {
                if log && low <= 0.0 {
                    continue;
                }
                let scale = Scale { low, high, log, whole: false, from: 0.0, to: 1.0 };
                let ticks = scale.ticks(5);
                assert!((1..=8).contains(&ticks.len()), "{low} to {high}, log {log}: {ticks:?}");
                assert!(
                    ticks.iter().all(|(value, text)| (low..=high).contains(value) && text.len() <= 6),
                    "{ticks:?}"
                );
            }
        }
        assert_eq!([0.0, 0.05, 3.0, 20_000.0, -1_500_000.0].map(short), ["0", "0.05", "3", "20 k", "-1.5 M"]);
    }

    #[test]
    fn labels_are_spread() {
        for count in 0..14 {
            for crowd in [0.0, 1.0, 30.0] {
                let wanted: Vec<f64> =
                    (0..count).map(|index| 150.0 + crowd * f64::from(index * 7 % 5)).collect();
                let mut places = spread(&wanted, 14.0, 10.0, 230.0);
                places.sort_by(f64::total_cmp);
                assert!(places.windows(2).all(|pair| pair[1] - pair[0] > 13.99), "{places:?}");
                assert!(places.iter().all(|place| (10.0..=230.0).contains(place)), "{places:?}");
            }
        }
    }
}
