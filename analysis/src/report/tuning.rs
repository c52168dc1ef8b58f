//! Sections on a tune: parameter trajectories, the Gaussian-process posterior around the answer, and the validation match.

use agon_arena::spec::Values;
use agon_arena::spec::tune::{Parameter, decimal, number};
use agon_stats::elo::difference;
use serde::Serialize;

use super::figures::Figure;
use super::html::{Cell, Section, Table, escape, paragraph, value_table};
use super::sections::score_counts;
use super::svg::{Axis, Line, Row, series};
use super::{Report, estimate_text};
use crate::dataset::{Dataset, Run};
use crate::format::{capitalised, count, fixed, likelihood, percent};
use crate::pruning::Interval;
use crate::tune::{Match, TuneError, TuneResult};

/// Maximum number of points of a line.
const MAX_POINTS: usize = 120;
/// Number of values at which a posterior is evaluated.
const GRID_POINTS: usize = 60;
/// Maximum number of parameters in the remark.
const MAX_REMARKED: usize = 4;

/// The state of a tune.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Tuning {
    /// The tuned player.
    pub player: String,
    /// Name of the method.
    pub method: &'static str,
    /// Completed iterations or trials.
    pub folded: u64,
    /// Scheduled iterations or trials.
    pub steps: u64,
    /// The tuned parameters.
    pub parameters: Vec<Trajectory>,
    /// The score of the answer against the opponents that the Gaussian process predicts.
    pub expected: Option<Interval>,
    /// What the user should know about the answer.
    pub remarks: Vec<String>,
    /// Result of the validation against the start, if it has begun. Of several repeats, that of the one whose answer stands for
    /// all.
    pub validation: Option<Validation>,
    /// All matches of the validation that have begun.
    pub matches: Vec<Validation>,
    /// The answer of each repeat.
    pub answers: Vec<Vec<f64>>,
    /// The tuned player as a `[[player]]` table.
    pub table: Option<String>,
    /// The number of seats of the game.
    pub seats: usize,
}

/// The values of a parameter over the tune.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Trajectory {
    /// Path of the parameter within the player.
    pub path: String,
    /// Start value.
    pub start: f64,
    /// Current value; the answer once all steps are complete.
    pub value: f64,
    /// The least and the greatest value.
    pub bounds: [f64; 2],
    /// Whether the parameter is searched on a logarithmic scale.
    pub log: bool,
    /// Step and value by repeat; for trials, the value tried.
    pub paths: Vec<Vec<(u64, f64)>>,
    /// Value and score of each trial.
    pub trials: Vec<(f64, f64)>,
    /// What the parameter changes.
    pub effect: Option<Effect>,
    /// Posterior along this parameter with the others at the answer: value, score and the ends of its interval.
    pub posterior: Vec<(f64, f64, f64, f64)>,
}

/// A match of a tuned player.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Validation {
    /// The tuned player.
    pub tuned: String,
    /// Its opponent.
    pub opponent: String,
    /// Bouts played.
    pub bouts: u64,
    /// Scheduled bouts.
    pub scheduled: u64,
    /// Bouts by the tuned player's score; none for more than two seats.
    pub pairs: Option<[u64; 5]>,
    /// Its mean score.
    pub score: f64,
    /// Elo difference.
    pub elo: Interval,
    /// Likelihood that the tuned player is stronger.
    pub los: f64,
    /// The conclusion in words.
    pub verdict: String,
    /// The warning that the bouts are too few, if they are.
    pub caution: Option<String>,
}

/// Gathers the state of a tune; `None` for another kind of run.
pub(super) fn read(dataset: &Dataset, run: &Run) -> Result<Option<Tuning>, TuneError> {
    let tuned = match TuneResult::read(dataset, run) {
        Ok(tuned) => tuned,
        Err(TuneError::NoTune { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let parameters = tuned.tune.parameters.iter().enumerate();
    let word = |found: &Match| {
        if found.is_start { "its start".to_string() } else { found.opponent.clone() }
    };
    let validation = |found: &Match| {
        found.mean().zip(found.compare()).map(|(score, compared)| Validation {
            tuned: found.tuned.clone(),
            opponent: found.opponent.clone(),
            bouts: found.scores.len() as u64,
            scheduled: found.scheduled,
            pairs: found.pairs().map(|pairs| pairs.0),
            score,
            elo: compared.into(),
            los: compared.los,
            verdict: compared.sentence(&format!("the tuned {}", tuned.name), &word(found)),
            caution: compared.caution("bout"),
        })
    };
    Ok(Some(Tuning {
        player: tuned.name.clone(),
        method: tuned.tune.method.name(),
        folded: tuned.path.len() as u64,
        steps: tuned.steps,
        parameters: parameters.map(|(index, parameter)| trajectory(&tuned, index, parameter)).collect(),
        expected: tuned.expected.as_ref().map(|expected| expected.score.into()),
        remarks: tuned.tuning.remarks(),
        validation: tuned.proof().and_then(validation),
        matches: tuned.matches.iter().filter_map(validation).collect(),
        answers: tuned.answers.iter().map(Values::numbers).collect(),
        table: tuned.player.clone(),
        seats: tuned.tune.seats,
    }))
}

/// Returns the values of a parameter over the steps, thinned to [`MAX_POINTS`].
fn trajectory(tuned: &TuneResult, index: usize, parameter: &Parameter) -> Trajectory {
    let start = number(parameter.start);
    let (mut paths, mut trials) = (Vec::new(), Vec::new());
    for repeat in tuned.path.chunk_by(|one, other| one.repeat == other.repeat) {
        let stride = repeat.len().div_ceil(MAX_POINTS).max(1) as u64;
        let mut points = Vec::new();
        for (step, found) in (1_u64..).zip(repeat) {
            let tried = found.candidates.first().map(|values| number(values.0[index]));
            let value = found.after.as_ref().map(|values| values[index]).or(tried);
            if step.is_multiple_of(stride) || step == repeat.len() as u64 {
                points.extend(value.map(|value| (step, value)));
            }
            if found.after.is_none() {
                trials.extend(tried.zip(found.score));
            }
        }
        if repeat.iter().any(|step| step.after.is_some()) {
            points.insert(0, (0, start));
        }
        paths.push(points);
    }
    let posterior = posterior(tuned, index, parameter);
    Trajectory {
        path: parameter.path.clone(),
        start,
        value: tuned.values[index],
        bounds: parameter.bounds.map(number),
        log: parameter.log,
        paths,
        trials,
        effect: effect(tuned, index, &posterior),
        posterior,
    }
}

/// Evaluates the posterior of the Gaussian process along one parameter through the answer.
fn posterior(tuned: &TuneResult, index: usize, parameter: &Parameter) -> Vec<(f64, f64, f64, f64)> {
    let Some((space, trials, seed)) =
        tuned.tuning.gaussian_process(tuned.chosen.unwrap_or(tuned.tuning.repeat()))
    else {
        return Vec::new();
    };
    let [low, high] = parameter.bounds.map(number);
    let grid_point = |number: usize| {
        let share = number as f64 / (GRID_POINTS - 1) as f64;
        let value = if parameter.log { low * (high / low).powf(share) } else { low + share * (high - low) };
        let mut values = tuned.values.clone();
        values[index] = value;
        values
    };
    let grid: Vec<Vec<f64>> = (0..GRID_POINTS).map(grid_point).collect();
    let Ok(scores) = space.posterior(&trials, &grid, seed) else { return Vec::new() };
    let curve_point = |(values, score): (Vec<f64>, agon_stats::replicas::Measure)| {
        (values[index], score.value, score.low, score.high)
    };
    grid.into_iter().zip(scores).map(curve_point).collect()
}

/// Renders the value of each parameter over the steps.
pub(super) fn trajectories(report: &Report) -> Option<Section> {
    let tuning = report.tuning.as_ref()?;
    let step_name = if tuning.method == "spsa" { "iteration" } else { "trial" };
    let trajectory_chart = |parameter: &Trajectory| {
        let line = |(repeat, points): (usize, &Vec<(u64, f64)>)| Line {
            name: if parameter.paths.len() == 1 {
                parameter.path.clone()
            } else {
                format!("repeat {}", repeat + 1)
            },
            class: series(repeat),
            points: points.iter().map(|&(step, value)| (step as f64, value)).collect(),
            ..Line::default()
        };
        let lines: Vec<Line> = parameter.paths.iter().enumerate().map(line).collect();
        let x_axis = Axis { label: step_name, log: false, whole: true, mark: None };
        let y_axis =
            Axis { label: &parameter.path, log: parameter.log, whole: false, mark: Some(parameter.start) };
        let [start, value] = [parameter.start, parameter.value].map(value_text);
        let caption =
            format!("{} from {start} to {value}; the horizontal line is the start value.", parameter.path);
        let rows = (1_u64..).zip(&parameter.paths).flat_map(|(repeat, points)| {
            let row = move |&(step, value): &(u64, f64)| {
                vec![Cell::from(repeat), Cell::from(step), Cell::Number(value_text(value))]
            };
            points.iter().map(row)
        });
        let figure = Figure {
            name: report.file(&parameter.path),
            data: Table::new(
                &format!("Values of {}", parameter.path),
                &[],
                &["repeat", step_name, &parameter.path],
                rows.collect(),
            ),
            caption: caption.clone(),
        };
        figure.lines(&lines, [x_axis, y_axis], &caption)
    };
    let body = match tuning.folded {
        0 => paragraph("No step is complete yet."),
        _ => tuning.parameters.iter().map(trajectory_chart).collect(),
    };
    Some(Section { id: "trajectories", title: "Parameter trajectories", full: false, body })
}

/// Renders the posterior of a Gaussian process along each parameter.
pub(super) fn posteriors(report: &Report) -> Option<Section> {
    let tuning = report.tuning.as_ref().filter(|tuning| tuning.method != "spsa")?;
    // A share of the wins of many seats has no Elo against a single opponent.
    let in_elo = tuning.seats == 2;
    let scaled = |score: f64| if in_elo { difference(score) } else { 100.0 * score };
    let posterior_chart = |parameter: &Trajectory| {
        let posterior = parameter.posterior.iter();
        // Trials of a few bouts may have won or lost them all.
        let ring = |&(value, score): &(f64, f64)| (value, scaled(score.clamp(0.03, 0.97)));
        let curve = Line {
            name: "expected".to_string(),
            class: series(0),
            points: posterior.clone().map(|&(value, score, ..)| (value, scaled(score))).collect(),
            rings: parameter.trials.iter().map(ring).collect(),
            band: posterior
                .clone()
                .map(|&(value, _, low, high)| (value, scaled(low), scaled(high)))
                .collect(),
            ..Line::default()
        };
        let x_axis =
            Axis { label: &parameter.path, log: parameter.log, whole: false, mark: Some(parameter.value) };
        let (label, even) = if in_elo { ("Elo", 0.0) } else { ("share in %", 100.0 / tuning.seats as f64) };
        let y_axis = Axis { label, log: false, whole: false, mark: Some(even) };
        let caption = format!(
            "Expected strength against the opponents along {} with the other parameters at the answer, and its 95 % band. \
             Rings are the results of trials with any values of the others. The vertical line is the answer, {}.",
            parameter.path,
            value_text(parameter.value)
        );
        let table_row = |&(value, score, low, high): &(f64, f64, f64, f64)| {
            let scores = [score, low, high].map(|score| Cell::percent(Some(score)));
            std::iter::once(Cell::Number(value_text(value))).chain(scores).collect()
        };
        let figure = Figure {
            name: report.file(&format!("posterior-{}", parameter.path)),
            data: Table::new(
                "Expected score in percent, with 95 % intervals from low to high",
                &[],
                &[&parameter.path, "score", "low", "high"],
                posterior.map(table_row).collect(),
            ),
            caption: caption.clone(),
        };
        figure.lines(&[curve], [x_axis, y_axis], &caption)
    };
    let evaluated = tuning.parameters.iter().filter(|parameter| !parameter.posterior.is_empty());
    let body: String = evaluated.map(posterior_chart).collect();
    (!body.is_empty()).then_some(Section {
        id: "posterior",
        title: "Expected strength around the answer",
        full: false,
        body,
    })
}

/// The change of strength that a parameter makes, in Elo.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Effect {
    /// With a Gaussian process, the difference between the best and the worst value of the range, with the others at the
    /// answer. With SPSA, the mean gain of the greater of the two values of an iteration over the smaller.
    pub elo: f64,
    /// The 95 % interval of SPSA's.
    pub interval: Option<(f64, f64)>,
}

/// The Elo of a point per game around an even score: the slope of the logistic curve.
const ELO_PER_SCORE: f64 = 1600.0 / std::f64::consts::LN_10;
/// The least number of iterations with an effect.
const LEAST_ITERATIONS: usize = 10;

/// Returns the effect of a parameter on the strength.
fn effect(tuned: &TuneResult, index: usize, posterior: &[(f64, f64, f64, f64)]) -> Option<Effect> {
    let scores = || posterior.iter().map(|&(_, score, ..)| score);
    if let Some((worst, best)) = scores().reduce(f64::min).zip(scores().reduce(f64::max)) {
        return Some(Effect { elo: difference(best) - difference(worst), interval: None });
    }
    let gains: Vec<f64> = tuned
        .path
        .iter()
        .filter_map(|step| {
            let [plus, minus] = &step.candidates[..] else { return None };
            let direction = (plus.0[index] - minus.0[index]).signum() as f64;
            Some(direction * (step.score? - 0.5)).filter(|_| direction != 0.0)
        })
        .collect();
    let count = gains.len() as f64;
    let mean = gains.iter().sum::<f64>() / count;
    let squares: f64 = gains.iter().map(|gain| (gain - mean).powi(2)).sum();
    let margin = 1.96 * (squares / (count - 1.0) / count).sqrt();
    let ends = (ELO_PER_SCORE * (mean - margin), ELO_PER_SCORE * (mean + margin));
    (gains.len() >= LEAST_ITERATIONS).then_some(Effect { elo: ELO_PER_SCORE * mean, interval: Some(ends) })
}

/// Renders which parameters matter.
pub(super) fn effects(report: &Report) -> Option<Section> {
    let tuning = report.tuning.as_ref().filter(|tuning| tuning.parameters.len() > 1 && tuning.seats == 2)?;
    let mut found: Vec<(&Trajectory, Effect)> =
        tuning.parameters.iter().filter_map(|parameter| Some((parameter, parameter.effect?))).collect();
    found.sort_by(|(_, one), (_, other)| other.elo.abs().total_cmp(&one.elo.abs()));
    let row = |(parameter, effect): &(&Trajectory, Effect)| Row {
        name: parameter.path.clone(),
        class: series(0),
        value: Some(effect.elo),
        low: effect.interval.map(|(low, _)| low),
        high: effect.interval.map(|(_, high)| high),
        extreme: None,
        text: fixed(effect.elo, 1),
    };
    let rows: Vec<Row> = found.iter().map(row).collect();
    let caption = if tuning.method == "spsa" {
        "Mean gain of the greater of the two values of an iteration over the smaller, with its 95 % interval. Where it contains 0, \
         nothing shows that the parameter matters near the path."
    } else {
        "Expected difference between the best and the worst value of the range, with the other parameters at the answer."
    };
    let data = found.iter().map(|(parameter, effect)| {
        let ends = effect.interval.map_or([None; 2], |(low, high)| [Some(low), Some(high)]);
        let number = |value: Option<f64>| Cell::Number(value.map_or(String::new(), |value| fixed(value, 1)));
        vec![Cell::from(parameter.path.as_str()), number(Some(effect.elo)), number(ends[0]), number(ends[1])]
    });
    let figure = Figure {
        name: report.file("effects"),
        data: Table::new(caption, &["parameter"], &["Elo", "low", "high"], data.collect()),
        caption: caption.to_string(),
    };
    let axis = Axis { label: "Elo", log: false, whole: false, mark: Some(0.0) };
    let body = figure.intervals(&rows, axis, "Effect of each parameter", "parameters");
    (!rows.is_empty()).then_some(Section {
        id: "effects",
        title: "Which parameters matter",
        full: false,
        body,
    })
}

/// Renders the start and the answers over all parameters, as shares of their ranges.
pub(super) fn coordinates(report: &Report) -> Option<Section> {
    let tuning = report.tuning.as_ref().filter(|tuning| tuning.parameters.len() > 2)?;
    let share = |parameter: &Trajectory, value: f64| {
        let scale = |value: f64| if parameter.log { value.ln() } else { value };
        let [low, high] = parameter.bounds.map(scale);
        100.0 * (scale(value) - low) / (high - low)
    };
    let line = |index: usize, name: String, values: Vec<f64>| Line {
        name,
        class: series(index),
        points: (1..)
            .zip(tuning.parameters.iter().zip(values))
            .map(|(place, (parameter, value))| (f64::from(place), share(parameter, value)))
            .collect(),
        dots: true,
        ..Line::default()
    };
    let starts = tuning.parameters.iter().map(|parameter| parameter.start).collect();
    let mut lines = vec![line(0, "start".to_string(), starts)];
    let several = tuning.answers.len() > 1;
    for (index, answer) in (1..).zip(&tuning.answers) {
        let name = if several { format!("answer {index}") } else { "answer".to_string() };
        lines.push(line(index, name, answer.clone()));
    }
    if tuning.answers.is_empty() {
        let values = tuning.parameters.iter().map(|parameter| parameter.value).collect();
        lines.push(line(1, "now".to_string(), values));
    }
    let order: Vec<String> = (1..)
        .zip(&tuning.parameters)
        .map(|(place, parameter): (u32, _)| format!("{place} {}", parameter.path))
        .collect();
    let caption = format!(
        "Values as shares of the range from min (0) to max (100), on the scale of each parameter: {}.",
        order.join(", ")
    );
    let rows = lines.iter().flat_map(|line| {
        line.points.iter().map(|(place, share)| {
            vec![
                Cell::from(line.name.as_str()),
                Cell::Number(fixed(*place, 0)),
                Cell::Number(fixed(*share, 1)),
            ]
        })
    });
    let figure = Figure {
        name: report.file("coordinates"),
        data: Table::new("Shares of the ranges", &["values"], &["parameter", "share in %"], rows.collect()),
        caption: caption.clone(),
    };
    let axis = |label, whole| Axis { label, log: false, whole, mark: None };
    let body =
        figure.lines(&lines, [axis("parameter", true), axis("share of the range in %", false)], &caption);
    Some(Section { id: "coordinates", title: "All parameters together", full: false, body })
}

/// Renders the validation match.
pub(super) fn validation(report: &Report) -> Option<Section> {
    let tuning = report.tuning.as_ref()?;
    let mut body = match &tuning.validation {
        None => paragraph("The validation has not begun; nothing is proven so far."),
        Some(validation) => {
            let mut rows = vec![
                ("bouts", format!("{} of {}", count(validation.bouts), count(validation.scheduled))),
                ("score of the tuned player", percent(validation.score)),
                ("difference", estimate_text(&validation.elo, 1, " Elo")),
            ];
            rows.extend(validation.pairs.map(score_counts));
            rows.push(("the tuned player is stronger", likelihood(validation.los)));
            value_table("The tuned player against its start, on openings that the tune did not use", rows)
        }
    };
    if tuning.matches.len() > 1 {
        let row = |found: &Validation| {
            vec![
                Cell::from(found.tuned.as_str()),
                Cell::from(found.opponent.as_str()),
                Cell::from(found.bouts),
                Cell::percent(Some(found.score)),
                Cell::Number(estimate_text(&found.elo, 0, "")),
            ]
        };
        let caption = "All matches of the validation, with the difference in Elo and its 95 % interval";
        let rows = tuning.matches.iter().map(row).collect();
        body.push_str(&Table::new(caption, &["tuned", "against"], &["bouts", "score", "Elo"], rows).html());
    }
    if let Some(text) = &tuning.table {
        body.push_str(&format!("<pre>{}</pre>\n", escape(text)));
    }
    Some(Section { id: "validation", title: "Validation", full: true, body })
}

/// Summarises a tune in one sentence and its remarks.
pub(super) fn summarise(tuning: &Tuning) -> (String, Vec<String>) {
    let changes: Vec<String> = tuning
        .parameters
        .iter()
        .take(MAX_REMARKED)
        .map(|parameter| {
            format!(
                "{} from {} to {}",
                parameter.path,
                value_text(parameter.start),
                value_text(parameter.value)
            )
        })
        .collect();
    let more = if tuning.parameters.len() > MAX_REMARKED { " and more" } else { "" };
    let remark = format!("Changes to {}: {}{more}.", tuning.player, changes.join(", "));
    let Some(validation) = &tuning.validation else {
        let answer = format!(
            "{} of {} steps of the tune are complete; nothing is proven yet.",
            count(tuning.folded),
            count(tuning.steps)
        );
        return (answer, vec![remark]);
    };
    let answer = format!(
        "{}: {} over {} bouts.",
        capitalised(&validation.verdict),
        estimate_text(&validation.elo, 0, " Elo"),
        count(validation.bouts)
    );
    let remarks = [remark].into_iter().chain(tuning.remarks.clone()).chain(validation.caution.clone());
    (answer, remarks.collect())
}

/// Formats a parameter value.
fn value_text(value: f64) -> String {
    if value.abs() >= 1000.0 { fixed(value, 1) } else { decimal((value * 1e4).round() as i64 * 100) }
}
