//! `agon-bench stats`: the accuracy of the statistics, by simulation of worlds with known parameters, and their speed.
//!
//! The simulations themselves are in `agon-simulation`, whose tests run fewer of them.

mod speed;
mod tables;

use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

use agon_simulation::coverage::{EveryResult, coverage_of_pairs, coverage_of_pool, null_claims};
use agon_simulation::fleets::simulate_fleets;
use agon_simulation::rankings::{Recovery, Truth, simulate_recovery};
use agon_simulation::sequential::sprt_error_rates;
use agon_simulation::tuning::{
    Hill, Tuned, climb_by_spsa, simulate_gaussian_process, simulate_hill, simulate_spsa,
};
use agon_simulation::world::World;
use agon_stats::plackett_luce::LowestPlaces;
use agon_stats::sprt::{Bounds, Model, Verdict};
use clap::{Args, ValueEnum};

use self::tables::{CoverageRow, Document, FewRow, FleetRow, NullRow, RankingRow, SprtRow, TuningRow};
use agon::fail::Outcome;
use agon::number::whole;
use agon::output::write_output;
use agon::progress::Progress;
use agon::table::write_json;

/// The arguments of `agon-bench stats`.
#[derive(Args)]
pub struct Stats {
    /// Parts to measure [default: all]
    #[arg(value_enum, value_name = "PART")]
    parts: Vec<Part>,
    /// Run 10,000 simulations per part, 20 tunes and a million games (slow)
    #[arg(long)]
    full: bool,
    /// Number of simulations per part
    #[arg(long, value_name = "N", value_parser = whole::<u64>("the number of simulations", 1, 10_000_000), allow_negative_numbers = true)]
    simulations: Option<u64>,
    /// Only write the PGN of the speed test, one million games of 50 players, to a file or to standard output (-)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["parts", "full", "simulations", "json"])]
    write_pgn: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// A part of the measurements.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Coverage of 95 % intervals for two players after 1 to 20 bouts, exactly
    Few,
    /// Gains that validations claim for tunes without effect
    Null,
    /// Coverage of 95 % intervals for two players
    Pairs,
    /// Coverage of 95 % intervals for pool ratings
    Pool,
    /// Error rates of sequential tests
    Sprt,
    /// Coverage of 95 % intervals for games of many seats
    Rankings,
    /// Detection rate of honest and fabricating workers
    Workers,
    /// Distance of tunes from a known optimum
    Tuning,
    /// Games read and rated per second
    Speed,
}

/// The number of simulations of each part.
struct Size {
    pairs: u64,
    pool: u64,
    sprt: u64,
    rankings: u64,
    fleets: u64,
    tunes: u64,
    games: u64,
}

/// The bootstrap replicas per pool of rankings; coverage is a few tenths of a percent below that of a thousand replicas.
const REPLICAS: NonZeroUsize = NonZeroUsize::new(200).expect("two hundred is not zero");

impl Stats {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        if let Some(path) = &self.write_pgn {
            let games = speed::pgn(speed::FULL_GAMES);
            write_output(path, |file| Ok(file.write_all(&games)?))?;
            return Ok(ExitCode::SUCCESS);
        }
        let document = self.measure()?;
        let mut out = io::stdout().lock();
        if self.json {
            write_json(&document, &mut out)?;
        } else {
            tables::write(&document, &mut out)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn size(&self) -> Size {
        let count = |quick: u64| self.simulations.unwrap_or(if self.full { 10_000 } else { quick });
        Size {
            pairs: count(1000),
            pool: count(100),
            sprt: count(200),
            rankings: count(20),
            fleets: count(100),
            tunes: if self.full { 20 } else { 5 },
            games: if self.full { speed::FULL_GAMES } else { speed::FULL_GAMES / 10 },
        }
    }

    fn measure(&self) -> anyhow::Result<Document> {
        let size = self.size();
        let progress = Progress::default();
        let is_selected = |part: Part| self.parts.is_empty() || self.parts.contains(&part);
        let mut document = Document::default();
        if is_selected(Part::Few) {
            progress.announce("all results of 1 to 20 bouts");
            measure_few(self.full, &mut document);
        }
        if is_selected(Part::Null) {
            measure_null(&size, &mut document);
        }
        if is_selected(Part::Pairs) {
            measure_pairs(&size, &mut document);
        }
        if is_selected(Part::Pool) {
            measure_pool(&size, &progress, &mut document);
        }
        if is_selected(Part::Sprt) {
            measure_sprt(&size, &progress, &mut document)?;
        }
        if is_selected(Part::Rankings) {
            measure_rankings(&size, &progress, &mut document)?;
        }
        if is_selected(Part::Workers) {
            measure_workers(&size, &progress, &mut document);
        }
        if is_selected(Part::Tuning) {
            measure_tuning(&size, &progress, &mut document)?;
        }
        if is_selected(Part::Speed) {
            progress.announce(&format!("reading and rating {} games", size.games));
            document.speed = Some(speed::measure(size.games)?);
        }
        Ok(document)
    }
}

fn cores() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// Returns the simulated worlds: with seat advantage, draws and openings, without them, and with mostly draws.
fn worlds(players: usize, step: f64) -> [(&'static str, World); 3] {
    let ladder = World::ladder(players, step);
    let plain = World { seat_advantage: 0.0, draw_rate: 0.0, openings: vec![0.0], ..ladder.clone() };
    let drawish = World { draw_rate: 0.7, ..ladder.clone() };
    [("lopsided openings", ladder), ("plain", plain), ("mostly draws", drawish)]
}

/// The numbers of bouts whose results are enumerated, and how many of them quickly.
const FEW: [u64; 12] = [1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 17, 20];
const QUICKLY: usize = 8;

fn measure_few(full: bool, document: &mut Document) {
    for bouts in FEW.into_iter().take(if full { FEW.len() } else { QUICKLY }) {
        let every = EveryResult::new(bouts, cores());
        let mut add = |world: &'static str, scores: &dyn Fn(f64) -> [f64; 5]| {
            document.few.push(FewRow {
                world,
                bouts,
                coverage: tables::SCORES.map(|score| every.coverage(&scores(score))),
                wrong: every.wrong_verdicts(&scores(0.5)),
            });
        };
        for (name, world) in worlds(2, 0.0) {
            add(name, &|score| world.pair_probabilities(score));
        }
        add("both games alike", &|score| [1.0 - score, 0.0, 0.0, 0.0, score]);
    }
}

/// The numbers of validation bouts.
const VALIDATIONS: [u64; 12] = [1, 2, 3, 4, 5, 6, 10, 20, 50, 100, 400, 1000];

fn measure_null(size: &Size, document: &mut Document) {
    for (world, ratings) in worlds(2, 0.0) {
        for bouts in VALIDATIONS {
            let claims = null_claims(&ratings, bouts, size.pairs, 11);
            document.null.push(NullRow { world, bouts, tunes: size.pairs, claims });
        }
    }
}

fn measure_pairs(size: &Size, document: &mut Document) {
    for (name, world) in worlds(2, -60.0) {
        for bouts in [20, 50, 200, 1000] {
            let coverage = coverage_of_pairs(&world, bouts, size.pairs, 1);
            document.coverage.push(CoverageRow::new(name, &coverage));
        }
    }
}

fn measure_pool(size: &Size, progress: &Progress, document: &mut Document) {
    for players in [3, 4] {
        for (name, world) in worlds(players, 60.0) {
            for bouts in [2, 3, 5, 10, 20, 50, 200] {
                progress.announce(&format!("pools of {players} players, {bouts} bouts a pairing: {name}"));
                let coverage = coverage_of_pool(&world, bouts, size.pool, 1, cores());
                document.coverage.push(CoverageRow::new(name, &coverage));
            }
        }
    }
}

fn measure_sprt(size: &Size, progress: &Progress, document: &mut Document) -> anyhow::Result<()> {
    for (name, world) in worlds(2, 0.0) {
        for (model, model_name, elo1) in
            [(Model::Logistic, "logistic", 20.0), (Model::Normalised, "normalised", 20.0)]
        {
            progress.announce(&format!("sequential tests, {model_name}: {name}"));
            let bounds = Bounds::new(0.0, elo1, model, 0.05, 0.1)?;
            for errors in sprt_error_rates(&world, &bounds, size.sprt, 100_000, 1, cores()) {
                document.sprt.push(SprtRow {
                    world: name,
                    model: model_name,
                    bounds: [0.0, elo1],
                    truth: if errors.truth == Verdict::H0 { "H0" } else { "H1" },
                    promised: errors.promised,
                    tests: errors.tests,
                    error_rate: errors.rate(),
                    standard_error: errors.standard_error(),
                    unfinished: errors.unfinished,
                    mean_bouts: errors.mean_bouts,
                });
            }
        }
    }
    Ok(())
}

fn measure_rankings(size: &Size, progress: &Progress, document: &mut Document) -> anyhow::Result<()> {
    let four = vec![60.0, 10.0, -20.0, -50.0];
    let five = vec![120.0, 40.0, 0.0, -60.0, -100.0];
    for (name, ties, lowest) in [
        ("all places", 0.0, LowestPlaces::Decided),
        ("all places, with ties", 0.6, LowestPlaces::Decided),
        ("winners only", 0.0, LowestPlaces::Undecided),
    ] {
        for bouts in [30, 120] {
            progress.announce(&format!("rankings of four seats, {bouts} bouts: {name}"));
            let truth = Truth { strengths: five.clone(), seat_effects: four.clone(), ties, lowest };
            let rows = simulate_recovery(&truth, size.rankings as usize, bouts, REPLICAS.get(), 17)?;
            let (players, seats) = rows.split_at(five.len());
            let mean =
                |rows: &[Recovery]| rows.iter().map(|row| row.coverage).sum::<f64>() / rows.len() as f64;
            let bias = rows.iter().map(|row| (row.mean - row.truth).abs()).fold(0.0, f64::max);
            document.rankings.push(RankingRow {
                ranking: name,
                bouts,
                pools: size.rankings,
                player_coverage: mean(players),
                seat_coverage: mean(seats),
                largest_bias: bias,
            });
        }
    }
    Ok(())
}

fn measure_workers(size: &Size, progress: &Progress, document: &mut Document) {
    let honest = [(3, 300, 0.0), (12, 100, 0.0), (40, 100, 0.0)];
    let fabricating = [0.1, 0.2, 0.3, 0.5, 1.0].map(|share| (6, 300, share));
    for (workers, bouts, fabricated) in honest.into_iter().chain(fabricating) {
        progress.announce(&format!("fleets of {workers} workers"));
        let row = simulate_fleets(workers, bouts, fabricated, size.fleets, 5);
        document.workers.push(FleetRow {
            workers,
            bouts,
            fabricated,
            fleets: size.fleets,
            false_alarms: row.false_alarms,
            certain_alarms: row.certain_alarms,
            caught: (fabricated > 0.0).then_some(row.caught),
            certain_caught: (fabricated > 0.0).then_some(row.certain_caught),
            bouts_until_noted: row.bouts_until[0],
            bouts_until_certain: row.bouts_until[1],
        });
    }
}

fn measure_tuning(size: &Size, progress: &Progress, document: &mut Document) -> anyhow::Result<()> {
    let row = |method: &str, parameters: usize, tunes: &[Tuned]| {
        let losses = || tunes.iter().map(|tune| tune.loss_after);
        TuningRow {
            method: method.to_string(),
            parameters,
            games: tunes.first().map_or(0, |tune| tune.games),
            tunes: tunes.len(),
            loss_before: tunes.first().map_or(0.0, |tune| tune.loss_before),
            mean_loss_after: losses().sum::<f64>() / tunes.len().max(1) as f64,
            largest_loss_after: losses().fold(0.0, f64::max),
        }
    };
    for (parameters, iterations) in [(2, 5000), (8, 20_000)] {
        progress.announce(&format!("SPSA of {parameters} parameters"));
        document.tuning.push(row(
            "SPSA",
            parameters,
            &simulate_spsa(parameters, iterations, 16, 0..size.tunes)?,
        ));
    }
    for parameters in [1, 2] {
        progress.announce(&format!("Gaussian process of {parameters} parameters"));
        let tunes = simulate_gaussian_process(parameters, (6, 8, 100), 0..size.tunes)?;
        document.tuning.push(row("Gaussian process", parameters, &tunes));
    }
    for hill in Hill::ALL {
        progress.announce(&format!("SPSA on the hill {}", hill.name()));
        let parameters = if hill == Hill::Two { 2 } else { 1 };
        document.tuning.push(row(
            &format!("SPSA: {}", hill.name()),
            parameters,
            &climb_by_spsa(hill, 200, 0..size.tunes)?,
        ));
        progress.announce(&format!("Gaussian process on the hill {}", hill.name()));
        let climbs = simulate_hill(hill, (50, 8, 4), 0..size.tunes)?;
        let losses = || climbs.iter().map(|climb| climb.loss);
        document.tuning.push(TuningRow {
            method: format!("Gaussian process: {}", hill.name()),
            parameters,
            games: 400,
            tunes: climbs.len(),
            loss_before: climbs.iter().map(|climb| climb.loss_before).sum::<f64>()
                / climbs.len().max(1) as f64,
            mean_loss_after: losses().sum::<f64>() / climbs.len().max(1) as f64,
            largest_loss_after: losses().fold(0.0, f64::max),
        });
    }
    Ok(())
}
