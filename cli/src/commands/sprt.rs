//! `agon sprt`: what a sequential test makes of two players' results. It looks at them once: a test that looks after every
//! bout belongs to the run that plays them.

use std::io::{self, Write};
use std::process::ExitCode;

use agon_stats::pairs::Scores;
use agon_stats::sprt::{Bounds, Model, Verdict};
use clap::{Args, ValueEnum};
use serde::Serialize;

use super::counts::{self, Counts};
use crate::fail::{Outcome, WrongCall};
use crate::number::real;
use crate::table::{fixed, write_facts, write_sentence};

/// The arguments of `agon sprt`.
#[derive(Args)]
#[command(after_help = "Example: agon sprt --pairs 365,16618,36229,16974,390 --bounds=0,2")]
pub struct Sprt {
    #[command(flatten)]
    counts: Counts,
    /// The two hypotheses, the smaller difference first; with a negative one write --bounds=-1.75,0.25
    #[arg(long, value_name = "H0,H1", value_parser = read_bounds, allow_hyphen_values = true)]
    bounds: (f64, f64),
    /// What the bounds are measured in
    #[arg(long, value_enum, default_value = "normalised")]
    model: ModelName,
    /// The probability to accept H1 where H0 is true
    #[arg(long, default_value_t = 0.05, value_parser = real("alpha", 0.0, 1.0), allow_negative_numbers = true)]
    alpha: f64,
    /// The probability to accept H0 where H1 is true
    #[arg(long, default_value_t = 0.05, value_parser = real("beta", 0.0, 1.0), allow_negative_numbers = true)]
    beta: f64,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// The models, as they are typed.
#[derive(Clone, Copy, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum ModelName {
    /// Normalised Elo: a test's length does not depend on the draw rate or the openings
    #[value(alias = "normalized")]
    Normalised,
    /// Elo
    Logistic,
}

#[derive(Serialize)]
struct Document {
    pairs: Option<[u64; 5]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wld: Option<[u64; 3]>,
    model: ModelName,
    bounds: [f64; 2],
    alpha: f64,
    beta: f64,
    llr: f64,
    lower: f64,
    upper: f64,
    verdict: &'static str,
    elo: Option<f64>,
    elo_error: Option<f64>,
    nelo: Option<f64>,
    nelo_error: Option<f64>,
    los: Option<f64>,
}

impl Sprt {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let scores = self.counts.scores().ok_or_else(|| {
            WrongCall(
                "give the results to test: --pairs N0,N1,N2,N3,N4, or --wld W,L,D for single games".into(),
            )
        })?;
        let model = match self.model {
            ModelName::Normalised => Model::Normalised,
            ModelName::Logistic => Model::Logistic,
        };
        let bounds = Bounds::new(self.bounds.0, self.bounds.1, model, self.alpha, self.beta)?;
        let llr = bounds.llr(scores);
        let mut out = io::stdout().lock();
        if self.json {
            serde_json::to_writer(&mut out, &self.document(&scores, &bounds, llr))?;
            writeln!(out)?;
        } else {
            write_test(&scores, &bounds, llr, &mut out)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn document(&self, scores: &Scores, bounds: &Bounds, llr: f64) -> Document {
        let (elo, nelo) = (scores.elo(), scores.normalised_elo());
        Document {
            pairs: self.counts.pairs.map(|pairs| pairs.0),
            wld: self.counts.wld.map(counts::wins_losses_draws),
            model: self.model,
            bounds: [bounds.elo0(), bounds.elo1()],
            alpha: bounds.alpha(),
            beta: bounds.beta(),
            llr,
            lower: bounds.lower(),
            upper: bounds.upper(),
            verdict: match bounds.verdict(llr) {
                Verdict::H0 => "H0",
                Verdict::H1 => "H1",
                Verdict::Continue => "continue",
            },
            elo: elo.map(|estimate| estimate.value),
            elo_error: elo.and_then(counts::error_of),
            nelo: nelo.map(|estimate| estimate.value),
            nelo_error: nelo.and_then(counts::error_of),
            los: scores.superiority(),
        }
    }
}

fn read_bounds(text: &str) -> Result<(f64, f64), String> {
    let bounds = text
        .split_once(',')
        .and_then(|(low, high)| Some((low.trim().parse().ok()?, high.trim().parse().ok()?)));
    bounds.ok_or_else(|| "bounds are two numbers, the smaller first, such as --bounds=0,2".to_string())
}

fn write_test(scores: &Scores, bounds: &Bounds, llr: f64, out: &mut impl Write) -> io::Result<()> {
    let (unit, low, high) = (unit_of(bounds.model()), bounds.elo0(), bounds.elo1());
    let verdict = match bounds.verdict(llr) {
        Verdict::H1 => format!("H1 is accepted: the difference is {high} {unit} rather than {low}"),
        Verdict::H0 => format!("H0 is accepted: the difference is {low} {unit} rather than {high}"),
        Verdict::Continue => "continue: the results decide neither way yet".to_string(),
    };
    let mut facts = vec![
        (
            "LLR",
            format!("{} between {:.4} (H0) and {:+.4} (H1)", fixed(llr, 4), bounds.lower(), bounds.upper()),
        ),
        ("test", format!("{low} against {high} {unit}, alpha {}, beta {}", bounds.alpha(), bounds.beta())),
        ("verdict", verdict),
    ];
    facts.extend(pace(scores, bounds, llr).map(|pace| ("pace", pace)));
    facts.extend(counts::facts(scores));
    write_facts(&facts, out)?;
    counts::cautions(scores).iter().try_for_each(|caution| write_sentence(caution, out))
}

fn unit_of(model: Model) -> &'static str {
    match model {
        Model::Logistic => "Elo",
        Model::Normalised => "nElo",
    }
}

/// How far the test has come, and where it would end if the rest were like what was seen.
fn pace(scores: &Scores, bounds: &Bounds, llr: f64) -> Option<String> {
    let end = if llr > 0.0 { bounds.upper() } else { bounds.lower() };
    let share = llr / end;
    if llr == 0.0 || bounds.verdict(llr) != Verdict::Continue {
        return None;
    }
    let hypothesis = if llr > 0.0 { "H1" } else { "H0" };
    let more = scores.units() as f64 * (1.0 - share) / share;
    let unit = if scores.games_per_unit() == 2.0 { "bouts" } else { "games" };
    // Early ratios wander: a pace that promises more than a hundredfold of what was seen promises nothing.
    let forecast = if share >= 0.01 && scores.units() >= counts::FEW_UNITS {
        format!("; about {more:.0} {unit} more if they go on like this")
    } else {
        String::new()
    };
    Some(format!("{:.0} % of the way to {hypothesis}{forecast}", 100.0 * share))
}
