//! Sections on a tune: parameter trajectories, the Gaussian-process posterior around the answer, and the validation match.

use agon_arena::spec::tune::{Parameter, decimal, number};
use serde::Serialize;

use super::figures::Figure;
use super::html::{Cell, Section, Table, escape, paragraph, value_table};
use super::sections::score_counts;
use super::svg::{Axis, Line, series};
use super::{Report, estimate_text};
use crate::dataset::{Dataset, Run};
use crate::format::{capitalised, count, fixed, likelihood, percent};
use crate::pruning::Interval;
use crate::tune::{TuneError, TuneResult};

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
    /// Result of the validation, if it has begun.
    pub validation: Option<Validation>,
    /// The tuned player as a `[[player]]` table.
    pub table: Option<String>,
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
    /// Whether the parameter is searched on a logarithmic scale.
    pub log: bool,
    /// Step and value; for trials, the value tried.
    pub points: Vec<(u64, f64)>,
    /// Value and score of each trial.
    pub trials: Vec<(f64, f64)>,
    /// Posterior along this parameter with the others at the answer: value, score and the ends of its interval.
    pub posterior: Vec<(f64, f64, f64, f64)>,
}

/// The match between the tuned player and its start.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Validation {
    /// Bouts played.
    pub bouts: u64,
    /// Scheduled bouts.
    pub scheduled: u64,
    /// Bouts by the tuned player's score.
    pub pairs: [u64; 5],
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
    let scores = tuned.validation_scores();
    let validation = scores.mean().zip(scores.compare()).map(|(score, compared)| Validation {
        bouts: scores.units(),
        scheduled: tuned.tune.validation,
        pairs: tuned.validation.0,
        score,
        elo: compared.into(),
        los: compared.los,
        verdict: compared.sentence(&format!("the tuned {}", tuned.name), "its start"),
        caution: compared.caution("bout"),
    });
    Ok(Some(Tuning {
        player: tuned.name.clone(),
        method: tuned.tune.method.name(),
        folded: tuned.path.len() as u64,
        steps: tuned.steps,
        parameters: parameters.map(|(index, parameter)| trajectory(&tuned, index, parameter)).collect(),
        expected: tuned.expected.as_ref().map(|expected| expected.score.into()),
        remarks: tuned.tuning.remarks(),
        validation,
        table: tuned.player.clone(),
    }))
}

/// Returns the values of a parameter over the steps, thinned to [`MAX_POINTS`].
fn trajectory(tuned: &TuneResult, index: usize, parameter: &Parameter) -> Trajectory {
    let stride = tuned.path.len().div_ceil(MAX_POINTS).max(1);
    let mut points = Vec::new();
    let mut trials = Vec::new();
    for (number_of_step, step) in (1_u64..).zip(&tuned.path) {
        let tried = step.candidates.first().map(|values| number(values.0[index]));
        let value = step.after.as_ref().map(|values| values[index]).or(tried);
        if number_of_step.is_multiple_of(stride as u64) || number_of_step == tuned.path.len() as u64 {
            points.extend(value.map(|value| (number_of_step, value)));
        }
        // The steps of a Gaussian process are trials, which have no value after them.
        if step.after.is_none() {
            trials.extend(tried.zip(step.score));
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

/// Evaluates the posterior of the Gaussian process along one parameter through the answer.
fn posterior(tuned: &TuneResult, index: usize, parameter: &Parameter) -> Vec<(f64, f64, f64, f64)> {
    let Some((space, trials, seed)) = tuned.tuning.gaussian_process() else { return Vec::new() };
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
        let line = Line {
            name: parameter.path.clone(),
            class: series(0),
            points: parameter.points.iter().map(|&(step, value)| (step as f64, value)).collect(),
            ..Line::default()
        };
        let x_axis = Axis { label: step_name, log: false, whole: true, mark: None };
        let y_axis =
            Axis { label: &parameter.path, log: parameter.log, whole: false, mark: Some(parameter.start) };
        let [start, value] = [parameter.start, parameter.value].map(value_text);
        let caption =
            format!("{} from {start} to {value}; the horizontal line is the start value.", parameter.path);
        let table_row = |&(step, value): &(u64, f64)| vec![Cell::from(step), Cell::Number(value_text(value))];
        let figure = Figure {
            name: report.file(&parameter.path),
            data: Table::new(
                &format!("Values of {}", parameter.path),
                &[],
                &[step_name, &parameter.path],
                parameter.points.iter().map(table_row).collect(),
            ),
            caption: caption.clone(),
        };
        figure.lines(&[line], [x_axis, y_axis], &caption)
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
    let posterior_chart = |parameter: &Trajectory| {
        let in_percent = |&(value, score): &(f64, f64)| (value, 100.0 * score);
        let posterior = parameter.posterior.iter();
        let curve = Line {
            name: "expected".to_string(),
            class: series(0),
            points: posterior.clone().map(|&(value, score, ..)| in_percent(&(value, score))).collect(),
            rings: parameter.trials.iter().map(in_percent).collect(),
            band: posterior
                .clone()
                .map(|&(value, _, low, high)| (value, 100.0 * low, 100.0 * high))
                .collect(),
            ..Line::default()
        };
        let x_axis =
            Axis { label: &parameter.path, log: parameter.log, whole: false, mark: Some(parameter.value) };
        let y_axis = Axis { label: "score in %", log: false, whole: false, mark: Some(50.0) };
        let caption = format!(
            "Expected score along {} with the other parameters at the answer, and its 95 % band. Rings are the scores of \
             trials with any values of the others. The vertical line is the answer, {}.",
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
        title: "Expected score around the answer",
        full: false,
        body,
    })
}

/// Renders the validation match.
pub(super) fn validation(report: &Report) -> Option<Section> {
    let tuning = report.tuning.as_ref()?;
    let mut body = match &tuning.validation {
        None => paragraph("The validation has not begun; nothing is proven so far."),
        Some(validation) => {
            let rows = [
                ("bouts", format!("{} of {}", count(validation.bouts), count(validation.scheduled))),
                ("score of the tuned player", percent(validation.score)),
                ("difference", estimate_text(&validation.elo, 1, " Elo")),
                score_counts(validation.pairs),
                ("the tuned player is stronger", likelihood(validation.los)),
            ];
            value_table("The tuned player against its start, on openings that the tune did not use", rows)
        }
    };
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
