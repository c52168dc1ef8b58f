//! `agon tune`: what a tune came to: its path, the answer, and the match that proves it; or weights from records.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use agon_analysis::regression::{Fitted, RegressionError, regression};
use agon_analysis::{Dataset, Run, TuneError, Tuned};
use agon_arena::spec::Values;
use agon_arena::spec::tune::{decimal, number};
use agon_stats::pairs::Estimate;
use clap::Args;
use serde::Serialize;

use super::runs;
use crate::fail::{Outcome, WrongCall};
use crate::table::{Align, Table, write_json};

/// Rows of the path that are shown.
const ROWS: usize = 12;

/// The arguments of `agon tune`.
#[derive(Args)]
pub struct TuneOfRun {
    /// Run id, name or unique prefix, or `latest`
    #[arg(value_name = "RUN", default_value = "latest", conflicts_with = "from")]
    run: String,
    /// Fit the evaluation to the games of these runs
    #[arg(long, value_name = "RUN", num_args = 1..)]
    from: Vec<String>,
    /// Features to fit [default: all features of the game]
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "from")]
    features: Vec<String>,
    /// Data folder
    #[arg(long, value_name = "DIR", default_value = "agon-data")]
    data: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Document {
    run: String,
    complete: bool,
    player: String,
    method: &'static str,
    steps: u64,
    folded: u64,
    parameters: Vec<ParameterJson>,
    expected: Option<MeasureJson>,
    validation: Option<ValidationJson>,
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
struct MeasureJson {
    value: f64,
    low: f64,
    high: f64,
}

#[derive(Serialize)]
struct ValidationJson {
    bouts: u64,
    scheduled: u64,
    pairs: [u64; 5],
    score: f64,
    elo: f64,
    elo_error: f64,
    los: Option<f64>,
}

#[derive(Serialize)]
struct StepJson {
    step: usize,
    candidates: Vec<Vec<f64>>,
    score: Option<f64>,
    values: Option<Vec<f64>>,
}

impl TuneOfRun {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let dataset = Dataset::open(&self.data)?;
        if !self.from.is_empty() {
            return self.fit(&dataset);
        }
        let run = runs::find(&dataset, &self.run)?;
        let tuned = Tuned::read(&dataset, &run).map_err(|error| match error {
            TuneError::NoTune { .. } => WrongCall(error.to_string()).into(),
            error => anyhow::Error::from(error),
        })?;
        let document = document(&run, &tuned);
        let mut out = io::stdout().lock();
        if self.json {
            write_json(&document, &mut out)?;
        } else {
            write_document(&document, &tuned, &mut out)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Fits weights to the games of runs.
    fn fit(&self, dataset: &Dataset) -> Outcome {
        let runs = self.from.iter().map(|asked| dataset.find(asked)).collect::<Result<Vec<_>, _>>()?;
        let fitted = regression(dataset, &runs, &self.features).map_err(|error| match error {
            RegressionError::Dataset(error) => anyhow::Error::from(error),
            RegressionError::Unplayable { .. } => error.into(),
            error => WrongCall(error.to_string()).into(),
        })?;
        let mut out = io::stdout().lock();
        if self.json {
            write_json(&FittedJson::from(&fitted), &mut out)?;
        } else {
            write_fitted(&fitted, &mut out)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

#[derive(Serialize)]
struct FittedJson {
    game: String,
    games: u64,
    positions: u64,
    held_games: u64,
    loss: f64,
    held_loss: f64,
    held_loss_usual: f64,
    held_loss_blind: f64,
    weights: Vec<WeightJson>,
    table: String,
}

#[derive(Serialize)]
struct WeightJson {
    feature: &'static str,
    usual: f64,
    weight: f64,
}

impl From<&Fitted> for FittedJson {
    fn from(fitted: &Fitted) -> FittedJson {
        FittedJson {
            game: fitted.game.clone(),
            games: fitted.games,
            positions: fitted.positions,
            held_games: fitted.held_games,
            loss: fitted.loss,
            held_loss: fitted.held.fitted,
            held_loss_usual: fitted.held.usual,
            held_loss_blind: fitted.held.blind,
            weights: fitted
                .weights
                .iter()
                .map(|&(feature, usual, weight)| WeightJson { feature, usual, weight })
                .collect(),
            table: fitted.player.clone(),
        }
    }
}

fn write_fitted(fitted: &Fitted, out: &mut impl Write) -> io::Result<()> {
    let Fitted { game, games, positions, held_games, held, loss, .. } = fitted;
    writeln!(out, "{game}: {positions} positions of {games} games, {held_games} games held out\n")?;
    let words = [("feature", Align::Left), ("usual", Align::Right), ("fitted", Align::Right)];
    let mut table = Table::new(&words);
    for (name, usual, weight) in &fitted.weights {
        table.row([name.to_string(), usual.to_string(), weight.to_string()]);
    }
    table.write(out)?;
    writeln!(out, "\nmean loss (minus the logarithm of the chance given to what came out):")?;
    let words = [("weights", Align::Left), ("fitted to", Align::Right), ("held out", Align::Right)];
    let mut table = Table::new(&words);
    table.row(["fitted".to_string(), format!("{loss:.4}"), format!("{:.4}", held.fitted)]);
    table.row(["usual, scaled".to_string(), String::new(), format!("{:.4}", held.usual)]);
    table.row(["none".to_string(), String::new(), format!("{:.4}", held.blind)]);
    table.write(out)?;
    let verdict = if held.fitted < held.usual.min(held.blind) {
        "games that were held out bear it out; a match must prove that it plays better"
    } else {
        "games that were held out do not bear it out: play more, or keep the usual weights"
    };
    writeln!(out, "{verdict}\n")?;
    write!(out, "{}", fitted.player)
}

fn document(run: &Run, tuned: &Tuned) -> Document {
    let parameters = tuned.tune.parameters.iter().zip(&tuned.values);
    let proof = tuned.proof();
    let validation =
        proof.mean().zip(proof.elo()).map(|(score, Estimate { value, error, .. })| ValidationJson {
            bouts: proof.units(),
            scheduled: tuned.tune.validation,
            pairs: tuned.validation.0,
            score,
            elo: value,
            elo_error: error,
            los: proof.superiority(),
        });
    let steps = tuned.path.iter().enumerate().map(|(step, found)| StepJson {
        step,
        candidates: found.candidates.iter().map(Values::numbers).collect(),
        score: found.score,
        values: found.after.clone(),
    });
    let expected = tuned.expected.as_ref().map(|expected| MeasureJson {
        value: expected.score.value,
        low: expected.score.low,
        high: expected.score.high,
    });
    Document {
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
        expected,
        validation,
        table: tuned.player.clone(),
        path: steps.collect(),
    }
}

fn write_document(document: &Document, tuned: &Tuned, out: &mut impl Write) -> io::Result<()> {
    let spsa = document.method == "spsa";
    let what = if spsa { "iterations" } else { "trials" };
    let Document { run, player, method, folded, steps, .. } = document;
    writeln!(out, "{run}: {player} tuned by {method}, {folded} of {steps} {what}\n")?;
    write_path(document, tuned, out)?;
    writeln!(out)?;
    let words = ["parameter", "start", "min", "max", if tuned.answer.is_some() { "tuned" } else { "now" }];
    let mut table =
        Table::new(&words.map(|word| (word, if word == "parameter" { Align::Left } else { Align::Right })));
    for (parameter, value) in tuned.tune.parameters.iter().zip(&tuned.values) {
        let [least, most] = parameter.bounds.map(decimal);
        let now = decimal((value * 1e6).round() as i64);
        table.row([parameter.path.clone(), decimal(parameter.start), least, most, now]);
    }
    table.write(out)?;
    if let Some(MeasureJson { value, low, high }) = &document.expected {
        writeln!(
            out,
            "\nexpected score of these values against the opponents: {:.1} % ({:.1} to {:.1})",
            100.0 * value,
            100.0 * low,
            100.0 * high
        )?;
    }
    match &document.validation {
        None => writeln!(out, "\nthe validation has not begun: what is tuned so far proves nothing")?,
        Some(proof) => {
            let ValidationJson { bouts, scheduled, score, elo, elo_error, .. } = proof;
            let [low, high] = [elo - elo_error, elo + elo_error];
            let sure = if low > 0.0 {
                "the tuned player is stronger"
            } else if high < 0.0 {
                "the tuned player is weaker: keep the start"
            } else {
                "it is not shown that the tuned player is stronger"
            };
            writeln!(
                out,
                "\nvalidation on openings that the tune never used, {bouts} of {scheduled} bouts:"
            )?;
            writeln!(
                out,
                "tuned scored {:.1} % against start, Elo {elo:+.1} +- {elo_error:.1} (95 %)\n{sure}",
                100.0 * score
            )?;
        }
    }
    if let Some(table) = &document.table {
        write!(out, "\n{table}")?;
    }
    Ok(())
}

/// Some steps of the path, the first and the last among them.
fn write_path(document: &Document, tuned: &Tuned, out: &mut impl Write) -> io::Result<()> {
    let spsa = document.method == "spsa";
    let parameters = &tuned.tune.parameters;
    let shown = parameters.len().min(if spsa { 4 } else { 5 });
    let mut words = vec![(if spsa { "iteration" } else { "trial" }, Align::Right)];
    // The last word of a path is enough beside the table of all paths below.
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
        cells.push(step.score.map(|score| format!("{:.1} %", 100.0 * score)).unwrap_or_default());
        table.row(cells);
    }
    if count == 0 {
        return writeln!(out, "no step is whole yet");
    }
    table.write(out)?;
    if shown < parameters.len() {
        writeln!(out, "({} more parameters; --json has all)", parameters.len() - shown)?;
    }
    Ok(())
}
