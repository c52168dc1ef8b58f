//! `agon-bench tuning`: tunes UCT's constant in real games by each method, and measures what each answer loses.

use std::io;
use std::process::ExitCode;

use agon::fail::Outcome;
use agon::number::whole;
use agon::progress::Progress;
use agon::table::{Table, write_json};
use agon_arena::spec::Values;
use agon_arena::{Arena, Bout, Spec, SpecSource};
use agon_schedule::Schedule;
use agon_schedule::tuning::{Proposal, Score};
use agon_stats::acquisition::{Dimension, Space, Trial};
use agon_stats::elo;
use agon_stats::scale::Scale;
use agon_testing::bouts::arena;
use anyhow::Context as _;
use clap::Args;
use serde::Serialize;

/// The bounds of the constant, and the constant of the opponent, from which SPSA starts.
const CONSTANT: [f64; 2] = [0.1, 8.0];
const START: f64 = 5.0;
/// The number of values of the curve, and of the evenly spaced values of a tune.
const CURVE_VALUES: usize = 17;
const GRID_VALUES: usize = 20;
/// The number of values among which the best of a curve is sought.
const FINE: usize = 400;

/// The arguments of `agon-bench tuning`.
#[derive(Args)]
pub struct Tuning {
    /// Game
    #[arg(long, default_value = "connect-four")]
    game: String,
    /// Simulations per move
    #[arg(long, default_value_t = 100, value_name = "N")]
    nodes: u64,
    /// Bouts of a tune, one or more numbers
    #[arg(long, value_delimiter = ',', default_value = "200,800", value_name = "N,...", value_parser = whole::<u64>("the number of bouts", 40, 100_000))]
    bouts: Vec<u64>,
    /// Tunes per method and number of bouts
    #[arg(long, default_value_t = 5, value_name = "N")]
    tunes: u64,
    /// Bouts at each of the 17 values of the curve
    #[arg(long, default_value_t = 700, value_name = "N")]
    curve: u64,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Document {
    game: String,
    nodes: u64,
    /// The values of the curve with their scores against the opponent.
    curve: Vec<[f64; 2]>,
    best: f64,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    method: &'static str,
    bouts: u64,
    answers: Vec<f64>,
    /// The Elo of each answer below the top of the curve.
    losses: Vec<f64>,
}

impl Tuning {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let progress = Progress::default();
        progress.announce("playing the curve");
        let mut games = Games::new(&self.spec("bayes", self.curve * CURVE_VALUES as u64, self.curve, 77))?;
        let values: Vec<f64> = spaced(CURVE_VALUES).collect();
        let trials = games.play_values(&values, self.curve)?;
        let fine: Vec<Vec<f64>> = spaced(FINE).map(|value| vec![value]).collect();
        let elo = |measured: f64| elo::difference(measured);
        let space = space()?;
        let curve = space.posterior(&trials, &fine, 1)?;
        let (top, best) = curve.iter().zip(&fine).fold((f64::NEG_INFINITY, 0.0), |top, (found, value)| {
            if elo(found.value) > top.0 { (elo(found.value), value[0]) } else { top }
        });
        let mut rows = Vec::new();
        for &bouts in &self.bouts {
            for method in ["bayes", "spsa", "grid and cubic"] {
                let mut answers = Vec::new();
                for seed in 0..self.tunes {
                    progress.announce(&format!("{method}, {bouts} bouts, tune {}", seed + 1));
                    answers.push(self.tune(method, bouts, seed + 1)?);
                }
                let at: Vec<Vec<f64>> = answers.iter().map(|answer| vec![*answer]).collect();
                let found = space.posterior(&trials, &at, 1)?;
                let losses = found.iter().map(|found| top - elo(found.value)).collect();
                rows.push(Row { method, bouts, answers, losses });
            }
        }
        let curve = values.iter().zip(&trials).map(|(value, trial)| [*value, trial.score]).collect();
        let document = Document { game: self.game.clone(), nodes: self.nodes, curve, best, rows };
        let mut out = io::stdout().lock();
        if self.json {
            write_json(&document, &mut out)?;
        } else {
            write(&document, &mut out)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Returns a spec of a tune, whose player starts at the opponent's constant.
    fn spec(&self, method: &str, bouts: u64, pairs: u64, seed: u64) -> String {
        let Tuning { game, nodes, .. } = self;
        format!(
            "name = \"tune\"\ngame = \"{game}\"\nseed = {seed}\nlimit = {{ nodes = {nodes} }}\n\
             openings = {{ random_plies = 6 }}\n[tune]\nplayer = \"uct\"\nmethod = \"{method}\"\nbouts = {bouts}\n\
             pairs = {pairs}\nvalidation = {{ bouts = 1 }}\n[[tune.parameter]]\npath = \"search.c\"\nstart = {START}\n\
             min = {}\nmax = {}\nscale = \"log\"\n[[player]]\nname = \"uct\"\nsearch = {{ algorithm = \"uct\" }}\n",
            CONSTANT[0], CONSTANT[1]
        )
    }

    /// Returns the answer of a tune.
    fn tune(&self, method: &str, bouts: u64, seed: u64) -> anyhow::Result<f64> {
        if method == "grid and cubic" {
            let each = bouts / GRID_VALUES as u64;
            let mut games = Games::new(&self.spec("bayes", each * GRID_VALUES as u64, each, seed))?;
            let values: Vec<f64> = spaced(GRID_VALUES).collect();
            let scores: Vec<f64> =
                games.play_values(&values, each)?.iter().map(|trial| trial.score).collect();
            return Ok(top_of_cubic(&scores));
        }
        // 50 trials of four bouts, 100 of eight, 200 of sixteen.
        let pairs = if method == "bayes" { ((bouts as f64 / 12.5).sqrt().round() as u64).max(1) } else { 1 };
        Games::new(&self.spec(method, bouts - bouts % pairs, pairs, seed))?.play_tune()
    }
}

/// A tuning run and the arena in which its bouts are played.
struct Games {
    schedule: Schedule,
    arena: Arena,
}

impl Games {
    fn new(text: &str) -> anyhow::Result<Games> {
        let spec = Spec::parse(&SpecSource { text: text.to_string(), ..SpecSource::default() })?;
        let arena = arena(&spec);
        Ok(Games { schedule: Schedule::resume(spec)?, arena })
    }

    /// Plays a tune and returns its answer.
    fn play_tune(&mut self) -> anyhow::Result<f64> {
        let bouts = self.schedule.spec().tune().context("the spec has a tune")?.bouts;
        for index in 0..bouts {
            self.propose()?;
            let bout = self.schedule.draw_bout(index)?;
            let score = self.play(&bout)?;
            self.schedule.record(index, score);
        }
        self.propose()?;
        let answer = self.tuning()?.answer(0).context("all bouts are played")?;
        Ok(answer.numbers()[0])
    }

    /// Plays `each` bouts at each of some values against the opponent.
    fn play_values(&mut self, values: &[f64], each: u64) -> anyhow::Result<Vec<Trial>> {
        let tune = self.schedule.spec().tune().context("the spec has a tune")?.clone();
        let tuning = self.schedule.tuning_mut().context("the spec has a tune")?;
        let trial = |value: &f64| Proposal::Trial(tune.playable(&[*value]).0);
        tuning.add_proposals(values.iter().map(trial).collect());
        let mut trials = Vec::new();
        for (place, value) in (0..).zip(values) {
            let mut scores = Vec::new();
            for index in place * each..(place + 1) * each {
                let bout = self.schedule.draw_bout(index)?;
                scores.extend(self.play(&bout)?.map(|score| f64::from(score) / 1000.0));
            }
            trials.extend(Trial::new(vec![*value], &scores));
        }
        Ok(trials)
    }

    fn tuning(&mut self) -> anyhow::Result<&mut agon_schedule::Tuning> {
        self.schedule.tuning_mut().context("the spec has a tune")
    }

    fn propose(&mut self) -> anyhow::Result<()> {
        while let Some(request) = self.tuning()?.pending_proposal() {
            self.tuning()?.add_proposals(request.run());
        }
        Ok(())
    }

    /// Plays a bout and returns the score of its first player in thousandths.
    fn play(&mut self, bout: &Bout) -> anyhow::Result<Score> {
        let spec = self.schedule.spec();
        let tune = spec.tune().context("the spec has a tune")?;
        for (player, values) in &bout.values {
            let values: &Values = values;
            self.arena.configure(*player, tune.configure(&spec.players[*player].config, values));
        }
        let mut half = 0;
        for request in spec.games(bout, 1.0) {
            let record = self.arena.play(&request, &mut |_| ())?;
            let seat = request.seats.iter().position(|player| *player == bout.players[0]);
            half += 1 + record.payoffs[seat.context("the first player has a seat")?].signum();
        }
        Ok(u16::try_from(250 * half).ok())
    }
}

fn space() -> anyhow::Result<Space> {
    let [minimum, maximum] = CONSTANT;
    let name = "search.c".to_string();
    Ok(Space::new(vec![Dimension { name, minimum, maximum, whole: false, scale: Scale::Log }])?)
}

/// Returns values at equal ratios from bound to bound.
fn spaced(count: usize) -> impl Iterator<Item = f64> {
    let ratio = CONSTANT[1] / CONSTANT[0];
    (0..count).map(move |place| CONSTANT[0] * ratio.powf(place as f64 / (count - 1) as f64))
}

/// Fits a cubic to scores at evenly spaced values by least squares, and returns the value of its maximum.
fn top_of_cubic(scores: &[f64]) -> f64 {
    let at = |place: usize, count: usize| 2.0 * place as f64 / (count - 1) as f64 - 1.0;
    // The normal equations, solved by elimination.
    let mut rows = [[0.0; 5]; 4];
    for (place, score) in scores.iter().enumerate() {
        let x = at(place, scores.len());
        for (power, row) in rows.iter_mut().enumerate() {
            for (column, cell) in row.iter_mut().enumerate() {
                let factor = if column == 4 { *score } else { x.powi(column as i32) };
                *cell += x.powi(power as i32) * factor;
            }
        }
    }
    for pivot in 0..4 {
        for other in 0..4 {
            if other != pivot {
                let factor = rows[other][pivot] / rows[pivot][pivot];
                let used = rows[pivot];
                rows[other].iter_mut().zip(used).for_each(|(cell, used)| *cell -= factor * used);
            }
        }
    }
    let height =
        |x: f64| (0..4).map(|power| rows[power][4] / rows[power][power] * x.powi(power as i32)).sum();
    let heights = spaced(FINE).enumerate().map(|(place, value)| {
        let height: f64 = height(at(place, FINE));
        (height, value)
    });
    heights.fold((f64::NEG_INFINITY, START), |best, next| if next.0 > best.0 { next } else { best }).1
}

fn write(document: &Document, out: &mut impl io::Write) -> io::Result<()> {
    let Document { game, nodes, curve, best, rows } = document;
    writeln!(out, "UCT's constant in {game} at {nodes} simulations; the best is {best:.2}\n")?;
    let mut table = Table::of_numbers("c", &["score against c = 5"]);
    for [value, score] in curve {
        table.row([format!("{value:.2}"), format!("{:.1} %", 100.0 * score)]);
    }
    table.write(out)?;
    writeln!(out)?;
    let mut table = Table::of_numbers("method", &["bouts", "tunes", "mean Elo lost", "+-", "worst"]);
    for Row { method, bouts, losses, .. } in rows {
        let count = losses.len() as f64;
        let mean = losses.iter().sum::<f64>() / count;
        let variance =
            losses.iter().map(|loss| (loss - mean) * (loss - mean)).sum::<f64>() / (count - 1.0).max(1.0);
        table.row([
            (*method).to_string(),
            bouts.to_string(),
            losses.len().to_string(),
            format!("{mean:.1}"),
            format!("{:.1}", (variance / count).sqrt()),
            format!("{:.1}", losses.iter().copied().fold(0.0, f64::max)),
        ]);
    }
    table.write(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cubic_finds_the_top() {
        let top = 1.7_f64;
        let scores: Vec<f64> =
            spaced(GRID_VALUES).map(|value| 0.6 - 0.02 * (value / top).ln().powi(2)).collect();
        assert!((top_of_cubic(&scores) - top).abs() < 0.02, "{}", top_of_cubic(&scores));
    }
}
