//! `agon sprt`: a sequential test of two players' results. Counts on the command line are tested once; the bouts of a run
//! one by one in the order of the schedule, as the run itself does.

use std::io::{self, Write};
use std::path::PathBuf;

use agon_analysis::results;
use agon_arena::spec::{Format, Plan, SprtSettings};
use agon_schedule::RunState;
use agon_stats::pairs::{Games, Scores};
use agon_stats::sprt::{Bounds, Model, SequentialTest, Verdict};
use agon_storage::location::Location;
use clap::{Args, ValueEnum};
use serde::Serialize;

use super::counts::{self, Counts, Estimates};
use super::ratings::sources;
use super::runs;
use crate::fail::{Outcome, UsageError, bail_usage};
use crate::number::real;
use crate::table::{fixed, print};

/// The default error rate.
const ERROR_RATE: f64 = 0.05;

#[derive(Args)]
pub struct Sprt {
    /// Run of two players: id, name or unique prefix, or `latest` [default: latest]
    #[arg(value_name = "RUN", conflicts_with_all = ["pairs", "wdl", "pgn"])]
    run: Option<String>,
    #[command(flatten)]
    counts: Counts,
    /// PGN files with games of two players, tested for the one who is named first; - is standard input
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["pairs", "wdl"])]
    pgn: Vec<PathBuf>,
    /// Hypotheses, smaller difference first; with a negative one write --bounds=-1.75,0.25 [default: from the run's spec]
    #[arg(long, value_name = "H0,H1", value_parser = read_bounds, allow_hyphen_values = true)]
    bounds: Option<(f64, f64)>,
    /// Unit of the bounds [default: from the run's spec, or normalised]
    #[arg(long, value_enum)]
    model: Option<ModelName>,
    /// Probability of accepting H1 when H0 is true [default: from the run's spec, or 0.05]
    #[arg(long, value_parser = real("alpha", 0.0, 1.0), allow_negative_numbers = true)]
    alpha: Option<f64>,
    /// Probability of accepting H0 when H1 is true [default: from the run's spec, or 0.05]
    #[arg(long, value_parser = real("beta", 0.0, 1.0), allow_negative_numbers = true)]
    beta: Option<f64>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// Data folder, or an object store as s3://bucket/prefix
    #[arg(long, value_name = "LOCATION", default_value = "agon-data", conflicts_with_all = ["pairs", "wdl", "pgn"])]
    data: Location,
}

/// The model of the differences.
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
struct TestJson {
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    test: Option<Tested>,
    /// The players of PGN files.
    #[serde(rename = "players", skip_serializing_if = "Option::is_none")]
    named: Option<[String; 2]>,
    pairs: Option<[u64; 5]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wdl: Option<[u64; 3]>,
    model: ModelName,
    bounds: [f64; 2],
    alpha: f64,
    beta: f64,
    llr: f64,
    lower: f64,
    upper: f64,
    verdict: &'static str,
    #[serde(flatten)]
    estimates: Estimates,
}

/// The run whose bouts were tested.
#[derive(Serialize, Clone)]
struct Tested {
    run: String,
    complete: bool,
    /// The players; results are from the first one's view.
    players: [String; 2],
    /// The number of tested bouts of the schedule, including failed and void ones.
    prefix: u64,
    /// The bout that decided.
    deciding_bout: Option<u64>,
    #[serde(skip)]
    state: RunState,
    #[serde(skip)]
    progress: String,
}

impl Sprt {
    pub fn run(self) -> Outcome {
        let mut named = None;
        let mut counts = Counts { pairs: self.counts.pairs, wdl: self.counts.wdl };
        if !self.pgn.is_empty() {
            let (players, games) = two_players(&self.pgn)?;
            (named, counts.wdl) = (Some(players), Some(games));
        }
        let (scores, bounds, llr, test) = match counts.scores() {
            Some(scores) => {
                let bounds = self.bounds(None)?;
                (scores, bounds, bounds.llr(scores), None)
            }
            None => {
                let (fold, test) = self.test_run()?;
                (fold.pairs().into(), *fold.bounds(), fold.llr(), Some(test))
            }
        };
        let document = TestJson { named, ..document(&counts, &scores, &bounds, llr, test) };
        print(self.json, &document, |out| write_test(&scores, &bounds, &document, out))
    }

    /// Returns the bounds of the options, else of the spec.
    fn bounds(&self, spec: Option<&SprtSettings>) -> anyhow::Result<Bounds> {
        let (low, high) = self.bounds.or(spec.map(|test| test.bounds.into())).ok_or_else(|| {
            UsageError("give the differences to test, the smaller first, such as --bounds=0,5".to_string())
        })?;
        let model = match (self.model, spec) {
            (Some(ModelName::Normalised), _) | (None, None) => Model::Normalised,
            (Some(ModelName::Logistic), _) => Model::Logistic,
            (None, Some(test)) if test.normalised => Model::Normalised,
            (None, Some(_)) => Model::Logistic,
        };
        let alpha = self.alpha.or(spec.map(|test| test.alpha)).unwrap_or(ERROR_RATE);
        let beta = self.beta.or(spec.map(|test| test.beta)).unwrap_or(ERROR_RATE);
        Ok(Bounds::new(low, high, model, alpha, beta)?)
    }

    /// Tests the bouts of a run in the order of its schedule.
    fn test_run(&self) -> anyhow::Result<(SequentialTest, Tested)> {
        let (dataset, run) = runs::open_started(&self.data, self.run.as_deref().unwrap_or("latest"))?;
        let spec = run.spec()?;
        if let Plan::Probe(_) = spec.plan {
            return Err(agon_analysis::DatasetError::Probe { run: run.id }.into());
        }
        if spec.tune().is_some() {
            let id = run.id;
            bail_usage!("{id} is a tuning run; `agon tune {id}` prints its validation");
        }
        let names: Vec<&str> = spec.players.iter().map(|player| player.name.as_str()).collect();
        let (&[one, other], 2) = (&names[..], spec.game.parameters().seats()) else {
            bail_usage!(
                "a sequential test takes two players of a game of two seats; {} has {}",
                run.id,
                names.join(", ")
            );
        };
        let settings = match &spec.plan {
            Plan::Tournament(Format::Sprt(settings)) => Some(settings),
            _ => None,
        };
        let fold = results::fold(&dataset, &run, &spec, self.bounds(settings)?)?;
        // The counters of an open run change; those of a closed run are complete.
        let found = if run.state.is_open() {
            fold.prefix() + fold.waiting() as u64
        } else {
            (run.committed + run.voided.len() as u64).saturating_sub(run.failed)
        };
        let test = Tested {
            complete: run.is_complete(),
            players: [one.to_string(), other.to_string()],
            prefix: fold.prefix(),
            deciding_bout: fold.decision().map(|decision| decision.index),
            state: run.state,
            progress: runs::progress(&run, found),
            run: run.id,
        };
        Ok((fold, test))
    }
}

/// Returns the answer for results, of a run if there is a `test`.
fn document(counts: &Counts, scores: &Scores, bounds: &Bounds, llr: f64, test: Option<Tested>) -> TestJson {
    let verdict = match (&test, bounds.verdict(llr)) {
        (Some(test), verdict) => test.state.verdict(verdict),
        // Results on the command line may always grow.
        (None, Verdict::Continue) => RunState::Running.verdict(Verdict::Continue),
        (None, verdict) => RunState::Decided.verdict(verdict),
    };
    let of_run = test.is_some().then(|| scores.counts().try_into().ok()).flatten();
    TestJson {
        test,
        named: None,
        pairs: counts.pairs.map(|pairs| pairs.0).or(of_run),
        wdl: counts.wdl.map(counts::wins_draws_losses),
        model: match bounds.model() {
            Model::Normalised => ModelName::Normalised,
            Model::Logistic => ModelName::Logistic,
        },
        bounds: [bounds.elo0(), bounds.elo1()],
        alpha: bounds.alpha(),
        beta: bounds.beta(),
        llr,
        lower: bounds.lower(),
        upper: bounds.upper(),
        verdict,
        estimates: Estimates::of(scores),
    }
}

/// Reads the games of two players in PGN files, for the player who is named first.
fn two_players(files: &[PathBuf]) -> anyhow::Result<([String; 2], Games)> {
    let reading = sources::read(files, &[])?;
    match reading.counts.of_two() {
        Some(found) => Ok(found),
        None => bail_usage!(
            "a sequential test takes games of two players; these files have games of {} players",
            reading.counts.players()
        ),
    }
}

fn read_bounds(text: &str) -> Result<(f64, f64), String> {
    let bounds = text
        .split_once(',')
        .and_then(|(low, high)| Some((low.trim().parse().ok()?, high.trim().parse().ok()?)));
    bounds.ok_or_else(|| "bounds are two numbers, the smaller first, such as --bounds=0,2".to_string())
}

fn write_test(scores: &Scores, bounds: &Bounds, document: &TestJson, out: &mut impl Write) -> io::Result<()> {
    let llr = document.llr;
    let (unit, low, high) = (unit_of(bounds.model()), bounds.elo0(), bounds.elo1());
    let verdict = match document.verdict {
        "H1" => format!("H1 is accepted: the difference is {high} {unit} rather than {low}"),
        "H0" => format!("H0 is accepted: the difference is {low} {unit} rather than {high}"),
        "undecided" => "undecided: neither hypothesis is accepted, and the run has no more bouts".to_string(),
        open => format!("{open}: neither hypothesis is accepted yet"),
    };
    let mut facts = Vec::new();
    if let Some(Tested { run, players: [one, other], prefix, deciding_bout, progress, .. }) = &document.test {
        facts.push(("run", format!("{run}: {progress}")));
        facts.push(("players", format!("{one} against {other}")));
        let tested = format!("the first {prefix} bouts of the schedule");
        facts.push((
            "tested",
            match deciding_bout {
                Some(bout) => format!("{tested}: bout {bout} decided"),
                None => tested,
            },
        ));
    }
    if let Some([one, other]) = &document.named {
        facts.push(("players", format!("{one} against {other}")));
    }
    facts.extend([
        (
            "LLR",
            format!("{} between {:.4} (H0) and {:+.4} (H1)", fixed(llr, 4), bounds.lower(), bounds.upper()),
        ),
        ("test", format!("{low} against {high} {unit}, alpha {}, beta {}", bounds.alpha(), bounds.beta())),
        ("verdict", verdict),
    ]);
    facts.extend(pace(scores, bounds, llr).map(|pace| ("pace", pace)));
    let names = document.test.as_ref().map(|test| &test.players).or(document.named.as_ref());
    let players = names.map_or(counts::UNNAMED, |[one, other]| [one, other]);
    counts::write(facts, scores, players, out)
}

fn unit_of(model: Model) -> &'static str {
    match model {
        Model::Logistic => "Elo",
        Model::Normalised => "nElo",
    }
}

/// Describes the progress of a test, and its end if later results are like those so far.
fn pace(scores: &Scores, bounds: &Bounds, llr: f64) -> Option<String> {
    let end = if llr > 0.0 { bounds.upper() } else { bounds.lower() };
    let share = llr / end;
    if llr == 0.0 || bounds.verdict(llr) != Verdict::Continue {
        return None;
    }
    let hypothesis = if llr > 0.0 { "H1" } else { "H0" };
    let more = scores.units() as f64 * (1.0 - share) / share;
    let unit = if scores.games_per_unit() == 2.0 { "bouts" } else { "games" };
    // Early ratios vary too much for a forecast.
    let forecast = if share >= 0.01 && scores.units() >= counts::FEW_UNITS {
        format!("; about {more:.0} {unit} more at this pace")
    } else {
        String::new()
    };
    Some(format!("{:.0} % of the way to {hypothesis}{forecast}", 100.0 * share))
}
