//! `agon tune`: the path, result and validation of a tuning run, or weights fitted to recorded games.

use std::io::{self, Write};

use agon_analysis::regression::{FittedWeight, FittedWeights, RegressionError, regression};
use agon_analysis::tune::Match;
use agon_analysis::{Dataset, Run, TrialsError, TuneError, TuneResult, trials_of_tournament};
use agon_arena::spec::Values;
use agon_arena::spec::tune::{decimal, number};
use agon_stats::replicas::Measure;
use agon_storage::location::Location;
use clap::Args;
use serde::Serialize;

use super::counts::plus_minus;
use super::runs;
use crate::fail::{Outcome, UsageError};
use crate::table::{Align, Table, capitalised, likelihood, percent, print, write_sentence};

/// The rows shown of a path.
const ROWS: usize = 12;

#[derive(Args)]
pub struct TuneOfRun {
    /// Run id, name or unique prefix, or `latest`
    #[arg(value_name = "RUN", default_value = "latest", conflicts_with = "from")]
    run: String,
    /// Fit the evaluation to the games of these runs
    #[arg(long, value_name = "RUN", num_args = 1..)]
    from: Vec<String>,
    /// Print the trials as comma-separated values that a tune can import
    #[arg(long, conflicts_with_all = ["from", "json"])]
    trials: bool,
    /// With --trials: the player of a tournament that the others met
    #[arg(long, value_name = "PLAYER", requires = "trials", requires = "parameters")]
    against: Option<String>,
    /// With --against: the parameters in which the players differ, such as search.c
    #[arg(long, value_name = "PATH", value_delimiter = ',', requires = "against")]
    parameters: Vec<String>,
    /// Features to fit [default: all features of the game]
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "from")]
    features: Vec<String>,
    /// Data folder, or an object store as s3://bucket/prefix
    #[arg(long, value_name = "LOCATION", default_value = "agon-data")]
    data: Location,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct TuningJson {
    run: String,
    complete: bool,
    player: String,
    method: &'static str,
    steps: u64,
    folded: u64,
    parameters: Vec<ParameterJson>,
    expected: Option<Measure>,
    remarks: Vec<String>,
    validation: Option<ValidationJson>,
    matches: Vec<ValidationJson>,
    repeats: Vec<Vec<f64>>,
    table: Option<String>,
    path: Vec<StepJson>,
}

#[derive(Serialize)]
struct ParameterJson {
    path: String,
    start: f64,
    min: f64,
    max: f64,
    value: f64,
}

#[derive(Serialize)]
struct ValidationJson {
    tuned: String,
    opponent: String,
    bouts: u64,
    scheduled: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pairs: Option<[u64; 5]>,
    score: f64,
    elo: f64,
    elo_error: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    los: f64,
    verdict: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    caution: Option<String>,
}

#[derive(Serialize)]
struct StepJson {
    repeat: u64,
    step: usize,
    candidates: Vec<Vec<f64>>,
    score: Option<f64>,
    values: Option<Vec<f64>>,
}

impl TuneOfRun {
    pub fn run(self) -> Outcome {
        if !self.from.is_empty() {
            return self.fit(&Dataset::open(&self.data)?);
        }
        let (dataset, run) = runs::open_started(&self.data, &self.run)?;
        if let Some(against) = &self.against {
            let trials = trials_of_tournament(&dataset, &run, against, &self.parameters);
            return print_trials(&trials.map_err(|error| match error {
                TrialsError::Dataset(error) => anyhow::Error::from(error),
                error => UsageError(error.to_string()).into(),
            })?);
        }
        let tuned = TuneResult::read(&dataset, &run).map_err(|error| match error {
            TuneError::NoTune { .. } => UsageError(error.to_string()).into(),
            error => anyhow::Error::from(error),
        })?;
        if self.trials {
            let trials = tuned.trials().ok_or_else(|| {
                UsageError(format!(
                    "the iterations of {} in {} are no trials, which have a score against fixed opponents; start another tune \
                     at the values that `agon tune` prints",
                    tuned.tune.method.name(),
                    run.id
                ))
            });
            return print_trials(&trials?);
        }
        let document = document(&run, &tuned);
        print(self.json, &document, |out| write_document(&document, &tuned, out))
    }

    /// Fits weights to the games of runs.
    fn fit(&self, dataset: &Dataset) -> Outcome {
        let find = |asked: &String| dataset.find(asked).inspect(|run| runs::announce(asked, &run.id));
        let runs = self.from.iter().map(find).collect::<Result<Vec<_>, _>>()?;
        let fitted = regression(dataset, &runs, &self.features).map_err(|error| match error {
            RegressionError::Dataset(error) => anyhow::Error::from(error),
            RegressionError::Unplayable { .. } => error.into(),
            error => UsageError(error.to_string()).into(),
        })?;
        print(self.json, &fitted, |out| write_fitted(&fitted, out))
    }
}

/// Prints trials as a file.
fn print_trials(trials: &str) -> Outcome {
    print(false, &(), |out| out.write_all(trials.as_bytes()))
}

fn write_fitted(fitted: &FittedWeights, out: &mut impl Write) -> io::Result<()> {
    let FittedWeights { game, games, positions, held_games, loss, .. } = fitted;
    writeln!(out, "{game}: {positions} positions of {games} games, {held_games} games held out\n")?;
    let mut table = Table::of_numbers("feature", &["usual", "fitted"]);
    for FittedWeight { feature, usual, weight } in &fitted.weights {
        table.row([feature.to_string(), usual.to_string(), weight.to_string()]);
    }
    table.write(out)?;
    writeln!(out, "\nmean log loss of the predicted results:")?;
    let mut table = Table::of_numbers("weights", &["fitted to", "held out"]);
    table.row(["fitted".to_string(), format!("{loss:.4}"), format!("{:.4}", fitted.held_loss)]);
    table.row(["usual, scaled".to_string(), String::new(), format!("{:.4}", fitted.held_loss_usual)]);
    table.row(["none".to_string(), String::new(), format!("{:.4}", fitted.held_loss_blind)]);
    table.write(out)?;
    let verdict = if fitted.held_loss < fitted.held_loss_usual.min(fitted.held_loss_blind) {
        "the held-out games confirm the fit; a match must prove that it plays better"
    } else {
        "the held-out games do not confirm the fit: play more games, or keep the usual weights"
    };
    writeln!(out, "{verdict}\n")?;
    write!(out, "{}", fitted.table)
}

fn document(run: &Run, tuned: &TuneResult) -> TuningJson {
    let parameters = tuned.tune.parameters.iter().zip(&tuned.values);
    let validation = |found: &Match| {
        let other = if found.is_start { "its start" } else { &found.opponent };
        found.mean().zip(found.compare()).map(|(score, comparison)| ValidationJson {
            tuned: found.tuned.clone(),
            opponent: found.opponent.clone(),
            bouts: found.scores.len() as u64,
            scheduled: found.scheduled,
            pairs: found.pairs().map(|pairs| pairs.0),
            score,
            elo: comparison.elo,
            elo_error: comparison.error(),
            low: comparison.low,
            high: comparison.high,
            los: comparison.los,
            verdict: comparison.sentence("the tuned player", other),
            caution: comparison.caution("bout"),
        })
    };
    let steps = tuned.path.iter().enumerate().map(|(step, found)| StepJson {
        repeat: found.repeat,
        step,
        candidates: found.candidates.iter().map(Values::numbers).collect(),
        score: found.score,
        values: found.after.clone(),
    });
    TuningJson {
        run: run.id.clone(),
        complete: run.is_complete(),
        player: tuned.name.clone(),
        method: tuned.tune.method.name(),
        steps: tuned.steps,
        folded: tuned.path.len() as u64,
        parameters: parameters
            .map(|(parameter, value)| ParameterJson {
                path: parameter.path.clone(),
                start: number(parameter.start),
                min: number(parameter.bounds[0]),
                max: number(parameter.bounds[1]),
                value: *value,
            })
            .collect(),
        expected: tuned.expected.as_ref().map(|expected| expected.score),
        remarks: tuned.tuning.remarks(),
        validation: tuned.proof().and_then(validation),
        matches: tuned.matches.iter().filter_map(validation).collect(),
        repeats: tuned.answers.iter().map(Values::numbers).collect(),
        table: tuned.player.clone(),
        path: steps.collect(),
    }
}

fn write_document(document: &TuningJson, tuned: &TuneResult, out: &mut impl Write) -> io::Result<()> {
    let spsa = document.method == "spsa";
    let what = if spsa { "iterations" } else { "trials" };
    let TuningJson { run, player, method, folded, steps, .. } = document;
    writeln!(out, "{run}: {player} tuned by {method}, {folded} of {steps} {what}\n")?;
    write_path(document, tuned, out)?;
    writeln!(out)?;
    let now = if tuned.chosen.is_some() { "tuned" } else { "now" };
    let mut table = Table::of_numbers("parameter", &["start", "min", "max", now]);
    for (parameter, value) in tuned.tune.parameters.iter().zip(&tuned.values) {
        let [least, most] = parameter.bounds.map(decimal);
        let now = decimal((value * 1e6).round() as i64);
        table.row([parameter.path.clone(), decimal(parameter.start), least, most, now]);
    }
    table.write(out)?;
    if let Some(Measure { value, low, high }) = document.expected {
        writeln!(
            out,
            "\nexpected score of these values against the opponents: {:.1} % ({:.1} to {:.1})",
            100.0 * value,
            100.0 * low,
            100.0 * high
        )?;
    }
    if !document.remarks.is_empty() {
        writeln!(out)?;
        document.remarks.iter().try_for_each(|remark| write_sentence(remark, out))?;
    }
    match &document.validation {
        None => writeln!(out, "\nthe validation has not begun: these values are not proven yet")?,
        Some(proof) => {
            let ValidationJson { bouts, scheduled, score, elo, low, high, los, verdict, caution, .. } = proof;
            writeln!(out, "\nvalidation on openings that tuning did not use, {bouts} of {scheduled} bouts:")?;
            writeln!(
                out,
                "tuned scored {:.1} % against start, Elo {} (95 %)",
                100.0 * score,
                plus_minus(*elo, *low, *high)
            )?;
            let caution = caution.as_ref().map_or(String::new(), |caution| format!(" {caution}"));
            let verdict = capitalised(verdict);
            write_sentence(&format!("{verdict} (LOS {}).{caution}", likelihood(*los)), out)?;
        }
    }
    if tuned.matches.len() > 1 {
        write_matches(document, out)?;
    }
    if let Some(table) = &document.table {
        write!(out, "\n{table}")?;
    }
    Ok(())
}

/// Writes the spread of the repeats and all matches of the validation.
fn write_matches(document: &TuningJson, out: &mut impl Write) -> io::Result<()> {
    if document.repeats.len() > 1 {
        let spread = document.parameters.iter().enumerate().map(|(index, parameter)| {
            let values = || document.repeats.iter().map(|answer| answer[index]);
            let ends = [values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max)];
            let [least, most] = ends.map(|value| decimal((value * 1e6).round() as i64));
            format!("{} {least} to {most}", parameter.path)
        });
        let spread: Vec<String> = spread.collect();
        writeln!(out)?;
        let text = format!("{} repeats ended at {}.", document.repeats.len(), spread.join(", "));
        write_sentence(&text, out)?;
    }
    writeln!(out)?;
    let mut table = Table::new(&[
        ("tuned", Align::Left),
        ("against", Align::Left),
        ("bouts", Align::Right),
        ("score", Align::Right),
        ("Elo", Align::Right),
    ]);
    for found in &document.matches {
        table.row([
            found.tuned.clone(),
            found.opponent.clone(),
            found.bouts.to_string(),
            percent(found.score),
            plus_minus(found.elo, found.low, found.high),
        ]);
    }
    table.write(out)
}

/// Writes evenly spaced steps of the path, including the first and the last.
fn write_path(document: &TuningJson, tuned: &TuneResult, out: &mut impl Write) -> io::Result<()> {
    let spsa = document.method == "spsa";
    let parameters = &tuned.tune.parameters;
    let shown = parameters.len().min(if spsa { 4 } else { 5 });
    let mut words = vec![(if spsa { "iteration" } else { "trial" }, Align::Right)];
    // The table below has the full paths.
    let names =
        parameters[..shown].iter().map(|parameter| parameter.path.rsplit('.').next().unwrap_or_default());
    words.extend(names.map(|name| (name, Align::Right)));
    words.push((if spsa { "plus scored" } else { "scored" }, Align::Right));
    let mut table = Table::new(&words);
    let count = document.path.len();
    let rows = count.min(ROWS);
    for row in 0..rows {
        let index = if rows < 2 { 0 } else { row * (count - 1) / (rows - 1) };
        let step = &document.path[index];
        let values = step.values.as_ref().or(step.candidates.first());
        let mut cells = vec![(index + 1).to_string()];
        cells.extend(
            values.into_iter().flatten().take(shown).map(|value| decimal((value * 1e6).round() as i64)),
        );
        cells.push(step.score.map(percent).unwrap_or_default());
        table.row(cells);
    }
    if count == 0 {
        return writeln!(out, "no step is complete yet");
    }
    table.write(out)?;
    if shown < parameters.len() {
        writeln!(out, "({} more parameters; --json has all)", parameters.len() - shown)?;
    }
    Ok(())
}
