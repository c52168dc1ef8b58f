//! How a tune went: the way of each parameter, what a Gaussian process believes around its answer, and the match that
//! proves it.

use serde::Serialize;

use agon_arena::spec::tune::{Parameter, decimal, number};

use super::Report;
use super::page::{Column, Section, figure, paragraph, table};
use super::svg::{self, Axis, Line};
use super::words::{likelihood, percent};
use crate::dataset::{Dataset, Run};
use crate::format::{fixed, signed};
use crate::pruning::Interval;
use crate::tune::{TuneError, Tuned};

/// The most points of a line, and rows of the table behind it.
const POINTS: usize = 240;
const ROWS: usize = 24;
/// Places at which a posterior is asked for.
const GRID: usize = 60;

/// What a tune came to.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Tuning {
    /// The player that is tuned.
    pub player: String,
    /// The name of the method.
    pub method: &'static str,
    /// Iterations or trials that are whole.
    pub folded: u64,
    /// Those that there will be.
    pub steps: u64,
    /// What is tuned.
    pub parameters: Vec<Trajectory>,
    /// The score against the opponents that a Gaussian process expects of its answer.
    pub expected: Option<Interval>,
    /// What the validation says, if it has begun.
    pub validation: Option<Validation>,
    /// The tuned player as a table of a spec.
    pub table: Option<String>,
}

/// The way of a parameter.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Trajectory {
    /// Its path into the player.
    pub path: String,
    /// Where it started.
    pub start: f64,
    /// Where it is; at the end, the answer.
    pub value: f64,
    /// Whether it was looked for by ratios.
    pub log: bool,
    /// Its value by iteration; of trials the value that was tried.
    pub points: Vec<(u64, f64)>,
    /// Of trials, the value that was tried and the score that it made.
    pub trials: Vec<(f64, f64)>,
    /// What a Gaussian process expects along this parameter, the others being as in the answer: value, score and the ends of
    /// its interval.
    pub posterior: Vec<(f64, f64, f64, f64)>,
}

/// The match between the tuned player and the one that it started from.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Validation {
    /// Bouts that were played, and those that there will be.
    pub bouts: u64,
    /// How many were asked for.
    pub scheduled: u64,
    /// Bouts by the tuned player's score.
    pub pairs: [u64; 5],
    /// Its mean score.
    pub score: f64,
    /// The difference in Elo.
    pub elo: Interval,
    /// The likelihood that it is stronger.
    pub los: Option<f64>,
}

/// Gathers what the page says of a tune; nothing of another run.
pub(super) fn read(dataset: &Dataset, run: &Run) -> Result<Option<Tuning>, TuneError> {
    let tuned = match Tuned::read(dataset, run) {
        Ok(tuned) => tuned,
        Err(TuneError::NoTune { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let parameters = tuned.tune.parameters.iter().enumerate();
    let proof = tuned.proof();
    let validation = proof.mean().zip(proof.elo()).map(|(score, elo)| Validation {
        bouts: proof.units(),
        scheduled: tuned.tune.validation,
        pairs: tuned.validation.0,
        score,
        elo: Interval {
            value: elo.value,
            low: Some(elo.value - elo.error),
            high: Some(elo.value + elo.error),
        },
        los: proof.superiority(),
    });
    let expected = tuned.expected.as_ref().map(|found| &found.score);
    Ok(Some(Tuning {
        player: tuned.name.clone(),
        method: tuned.tune.method.name(),
        folded: tuned.path.len() as u64,
        steps: tuned.steps,
        parameters: parameters.map(|(index, parameter)| trajectory(&tuned, index, parameter)).collect(),
        expected: expected.map(|score| Interval {
            value: score.value,
            low: Some(score.low),
            high: Some(score.high),
        }),
        validation,
        table: tuned.player.clone(),
    }))
}

fn trajectory(tuned: &Tuned, index: usize, parameter: &Parameter) -> Trajectory {
    let stride = tuned.path.len().div_ceil(POINTS).max(1);
    let mut points = Vec::new();
    let mut trials = Vec::new();
    for (step, found) in (1_u64..).zip(&tuned.path) {
        let tried = found.candidates.first().map(|values| number(values.0[index]));
        let value = found.after.as_ref().map(|values| values[index]).or(tried);
        if step.is_multiple_of(stride as u64) || step == tuned.path.len() as u64 {
            points.extend(value.map(|value| (step, value)));
        }
        if found.after.is_none() {
            trials.extend(tried.zip(found.score));
        }
    }
    let start = number(parameter.start);
    if tuned.path.iter().any(|step| step.after.is_some()) {
        points.insert(0, (0, start));
    }
    Trajectory {
        path: parameter.path.clone(),
        start,
        value: tuned.values[index],
        log: parameter.log,
        points,
        trials,
        posterior: posterior(tuned, index, parameter),
    }
}

/// What a Gaussian process expects along one parameter through the answer.
fn posterior(tuned: &Tuned, index: usize, parameter: &Parameter) -> Vec<(f64, f64, f64, f64)> {
    let Some((space, trials, seed)) = tuned.tuning.process() else { return Vec::new() };
    let [low, high] = parameter.bounds.map(number);
    let at = |place: usize| {
        let share = place as f64 / (GRID - 1) as f64;
        let value = if parameter.log { low * (high / low).powf(share) } else { low + share * (high - low) };
        let mut values = tuned.values.clone();
        values[index] = value;
        values
    };
    let grid: Vec<Vec<f64>> = (0..GRID).map(at).collect();
    let Ok(found) = space.posterior(&trials, &grid, seed) else { return Vec::new() };
    let point = |(values, score): (Vec<f64>, agon_stats::replicas::Measure)| {
        (values[index], score.value, score.low, score.high)
    };
    grid.into_iter().zip(found).map(point).collect()
}

/// The way of each parameter.
pub(super) fn trajectories(report: &Report) -> Option<Section> {
    let tuning = report.tuning.as_ref()?;
    let step = if tuning.method == "spsa" { "iteration" } else { "trial" };
    let draw = |parameter: &Trajectory| {
        let points: Vec<(f64, f64)> =
            parameter.points.iter().map(|&(step, value)| (step as f64, value)).collect();
        let line = Line {
            name: parameter.path.clone(),
            points,
            rare: Vec::new(),
            band: Vec::new(),
            fit: Vec::new(),
        };
        let x_axis = Axis { label: step, log: false, whole: true, mark: None };
        let y_axis =
            Axis { label: &parameter.path, log: parameter.log, whole: false, mark: Some(parameter.start) };
        let [start, value] = [parameter.start, parameter.value].map(short);
        let caption =
            format!("{} from {start} to {value}; the line across is where it started.", parameter.path);
        let stride = parameter.points.len().div_ceil(ROWS).max(1);
        let shown = parameter.points.iter().enumerate();
        let shown =
            shown.filter(|(index, _)| index.is_multiple_of(stride) || index + 1 == parameter.points.len());
        let rows: Vec<Vec<String>> =
            shown.map(|(_, (step, value))| vec![step.to_string(), short(*value)]).collect();
        let columns = [(step, Column::Number), (parameter.path.as_str(), Column::Number)];
        let numbers = table(&format!("Values of {}", parameter.path), &columns, &rows);
        figure(&svg::lines(&[line], x_axis, y_axis, &caption), &caption, &numbers)
    };
    let body = match tuning.folded {
        0 => paragraph("No step is whole yet."),
        _ => tuning.parameters.iter().map(draw).collect(),
    };
    Some(Section { id: "trajectories", title: "The way of each parameter", full: false, body })
}

/// What a Gaussian process believes.
pub(super) fn posteriors(report: &Report) -> Option<Section> {
    let tuning = report.tuning.as_ref().filter(|tuning| tuning.method != "spsa")?;
    let draw = |parameter: &Trajectory| {
        let curve = Line {
            name: "expected".to_string(),
            points: parameter.posterior.iter().map(|&(value, score, ..)| (value, 100.0 * score)).collect(),
            rare: parameter.trials.iter().map(|&(value, score)| (value, 100.0 * score)).collect(),
            band: parameter
                .posterior
                .iter()
                .map(|&(value, _, low, high)| (value, 100.0 * low, 100.0 * high))
                .collect(),
            fit: Vec::new(),
        };
        let x_axis =
            Axis { label: &parameter.path, log: parameter.log, whole: false, mark: Some(parameter.value) };
        let y_axis = Axis { label: "score in %", log: false, whole: false, mark: Some(50.0) };
        let caption = format!(
            "What is expected along {}, the others being as in the answer, with a band of 95 %; rings are trials as they \
             scored, whatever the others were. The line marks the answer, {}.",
            parameter.path,
            short(parameter.value)
        );
        let stride = parameter.posterior.len().div_ceil(ROWS).max(1);
        let rows: Vec<Vec<String>> = parameter
            .posterior
            .iter()
            .step_by(stride)
            .map(|&(value, score, low, high)| {
                vec![short(value), percent(score), format!("{} to {}", percent(low), percent(high))]
            })
            .collect();
        let columns =
            [(parameter.path.as_str(), Column::Number), ("score", Column::Number), ("95 %", Column::Number)];
        let numbers = table("The expected score", &columns, &rows);
        figure(&svg::lines(&[curve], x_axis, y_axis, &caption), &caption, &numbers)
    };
    let drawn = tuning.parameters.iter().filter(|parameter| !parameter.posterior.is_empty());
    let body: String = drawn.map(draw).collect();
    (!body.is_empty()).then_some(Section {
        id: "posterior",
        title: "What is believed around the answer",
        full: false,
        body,
    })
}

/// The proof.
pub(super) fn validation(report: &Report) -> Option<Section> {
    let tuning = report.tuning.as_ref()?;
    let mut body = match &tuning.validation {
        None => paragraph("The validation has not begun: what is tuned so far proves nothing."),
        Some(proof) => {
            let ends = match (proof.elo.low, proof.elo.high) {
                (Some(low), Some(high)) => format!(" ({} to {})", signed(low, 1), signed(high, 1)),
                _ => String::new(),
            };
            let rows = vec![
                vec!["bouts".to_string(), format!("{} of {}", proof.bouts, proof.scheduled)],
                vec!["score of the tuned player".to_string(), percent(proof.score)],
                vec!["difference".to_string(), format!("{} Elo{ends}", signed(proof.elo.value, 1))],
                vec![
                    "bouts by score 0, 1/2, 1, 3/2, 2".to_string(),
                    proof.pairs.map(|count| count.to_string()).join(", "),
                ],
                vec![
                    "the tuned player is stronger".to_string(),
                    proof.los.map_or("not known".to_string(), likelihood),
                ],
            ];
            let caption =
                "The tuned player against the one that it started from, on openings that the tune never used";
            table(caption, &[("", Column::Word), ("value", Column::Words)], &rows)
        }
    };
    if let Some(text) = &tuning.table {
        body.push_str(&format!("<pre>{}</pre>\n", super::markup::escape(text)));
    }
    Some(Section { id: "validation", title: "The proof", full: true, body })
}

/// The answer in words.
pub(super) fn answer(tuning: &Tuning) -> (String, Vec<String>) {
    let changes: Vec<String> = tuning
        .parameters
        .iter()
        .take(4)
        .map(|parameter| {
            format!("{} from {} to {}", parameter.path, short(parameter.start), short(parameter.value))
        })
        .collect();
    let more = if tuning.parameters.len() > 4 { " and more" } else { "" };
    let remark = format!("{} moved {}{more}.", tuning.player, changes.join(", "));
    let Some(proof) = &tuning.validation else {
        let answer = format!(
            "{} of {} steps of the tune are whole, and nothing is proved yet.",
            tuning.folded, tuning.steps
        );
        return (answer, vec![remark]);
    };
    let (low, high) = (proof.elo.low.unwrap_or(f64::NEG_INFINITY), proof.elo.high.unwrap_or(f64::INFINITY));
    let verdict = if low > 0.0 {
        format!("The tuned {} is stronger than the one it started from", tuning.player)
    } else if high < 0.0 {
        format!("The tuned {} is weaker than the one it started from", tuning.player)
    } else {
        format!("It is not shown that the tuned {} is stronger than the one it started from", tuning.player)
    };
    let answer = format!(
        "{verdict}: {} Elo, 95 % from {} to {}, over {} bouts.",
        signed(proof.elo.value, 0),
        signed(low, 0),
        signed(high, 0),
        proof.bouts
    );
    (answer, vec![remark])
}

/// A value as people read it.
fn short(value: f64) -> String {
    if value.abs() >= 1000.0 { fixed(value, 1) } else { decimal((value * 1e4).round() as i64 * 100) }
}
