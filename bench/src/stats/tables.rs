//! The output of `agon-bench stats`, as JSON and as tables.

use std::io::{self, Write};

use agon_simulation::coverage::Coverage;
use serde::Serialize;

use super::speed::Speed;
use agon::table::{Align, Table};

/// All measurements; parts that were not selected are empty.
#[derive(Serialize, Default)]
pub struct Document {
    pub few: Vec<FewRow>,
    pub null: Vec<NullRow>,
    pub coverage: Vec<CoverageRow>,
    pub sprt: Vec<SprtRow>,
    pub rankings: Vec<RankingRow>,
    pub workers: Vec<FleetRow>,
    pub tuning: Vec<TuningRow>,
    pub speed: Option<Speed>,
}

/// The true scores at which few bouts are examined.
pub const SCORES: [f64; 7] = [0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99];

/// The exact coverage of 95 % intervals after few bouts.
#[derive(Serialize)]
pub struct FewRow {
    pub world: &'static str,
    pub bouts: u64,
    /// The coverage at each of [`SCORES`].
    pub coverage: [f64; SCORES.len()],
    /// How often one of two equal players is called stronger.
    pub wrong: f64,
}

/// How often a validation claims a gain from tunes that change nothing.
#[derive(Serialize)]
pub struct NullRow {
    pub world: &'static str,
    pub bouts: u64,
    pub tunes: u64,
    pub claims: u64,
}

/// The coverage of 95 % intervals.
#[derive(Serialize)]
pub struct CoverageRow {
    pub world: &'static str,
    pub method: String,
    pub bouts: u64,
    pub simulations: u64,
    pub coverage: f64,
    pub standard_error: f64,
}

impl CoverageRow {
    pub fn new(world: &'static str, coverage: &Coverage) -> Self {
        CoverageRow {
            world,
            method: coverage.method.clone(),
            bouts: coverage.bouts,
            simulations: coverage.simulations,
            coverage: coverage.share(),
            standard_error: coverage.standard_error(),
        }
    }
}

/// The error rate of a sequential test.
#[derive(Serialize)]
pub struct SprtRow {
    pub world: &'static str,
    pub model: &'static str,
    pub bounds: [f64; 2],
    pub truth: &'static str,
    pub promised: f64,
    pub tests: u64,
    pub error_rate: f64,
    pub standard_error: f64,
    pub unfinished: u64,
    pub mean_bouts: f64,
}

/// The coverage of rating intervals in games of four seats.
#[derive(Serialize)]
pub struct RankingRow {
    pub ranking: &'static str,
    pub bouts: usize,
    pub pools: u64,
    pub player_coverage: f64,
    pub seat_coverage: f64,
    /// The largest bias of a mean estimate, in Elo.
    pub largest_bias: f64,
}

/// The rates at which workers are flagged.
#[derive(Serialize)]
pub struct FleetRow {
    pub workers: usize,
    pub bouts: u64,
    pub fabricated: f64,
    pub fleets: u64,
    /// The share of fleets in which an honest worker was noted, or quarantined.
    pub false_alarms: f64,
    pub certain_alarms: f64,
    /// The share of fleets in which the fabricating worker was noted, or quarantined.
    pub caught: Option<f64>,
    pub certain_caught: Option<f64>,
    /// The fabricating worker's bouts until then, in the median fleet.
    pub bouts_until_noted: Option<u64>,
    pub bouts_until_certain: Option<u64>,
}

/// The distance of tunes from the optimum, in Elo.
#[derive(Serialize)]
pub struct TuningRow {
    pub method: String,
    pub parameters: usize,
    pub games: u64,
    pub tunes: usize,
    pub loss_before: f64,
    pub mean_loss_after: f64,
    pub largest_loss_after: f64,
}

/// Writes a table for each measured part.
pub fn write(document: &Document, out: &mut impl Write) -> io::Result<()> {
    write_few(&document.few, out)?;
    write_null(&document.null, out)?;
    write_coverage(&document.coverage, out)?;
    write_sprt(&document.sprt, out)?;
    write_rankings(&document.rankings, out)?;
    write_workers(&document.workers, out)?;
    write_tuning(&document.tuning, out)?;
    let Some(speed) = &document.speed else { return Ok(()) };
    let Speed { games, players, megabytes, read_seconds, fit_seconds, interval_milliseconds } = speed;
    writeln!(out, "speed on one thread: {games} games of {players} players, {megabytes:.1} MB of PGN")?;
    writeln!(out, "read {read_seconds:.3} s, fit {fit_seconds:.4} s, intervals {interval_milliseconds:.2} ms")
}

fn percent(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}

/// Writes a table with a title, followed by an empty line; nothing without rows. The first `words` columns are text.
fn write_table<const N: usize>(
    title: &str,
    header: [&str; N],
    words: usize,
    rows: impl ExactSizeIterator<Item = [String; N]>,
    out: &mut impl Write,
) -> io::Result<()> {
    if rows.len() == 0 {
        return Ok(());
    }
    writeln!(out, "{title}")?;
    let align = |column: usize| if column < words { Align::Left } else { Align::Right };
    let columns: Vec<(&str, Align)> =
        header.into_iter().enumerate().map(|(column, name)| (name, align(column))).collect();
    let mut table = Table::new(&columns);
    rows.for_each(|row| table.row(row));
    table.write(out)?;
    writeln!(out)
}

fn write_few(rows: &[FewRow], out: &mut impl Write) -> io::Result<()> {
    let one_decimal = |share: f64| format!("{:.1}", 100.0 * share);
    let cells = rows.iter().map(|row| {
        let mut cells = std::array::from_fn(|_| String::new());
        cells[0] = row.world.to_string();
        cells[1] = row.bouts.to_string();
        cells[2..9].clone_from_slice(&row.coverage.map(one_decimal));
        cells[9] = one_decimal(row.wrong);
        cells
    });
    let header = ["world", "bouts", "50 %", "60 %", "70 %", "80 %", "90 %", "95 %", "99 %", "wrong"];
    let title = "coverage of 95 % intervals in % at true scores, and verdicts between equal players, exactly";
    write_table(title, header, 1, cells, out)
}

fn write_null(rows: &[NullRow], out: &mut impl Write) -> io::Result<()> {
    let cells = rows.iter().map(|row| {
        let share = percent(row.claims as f64 / row.tunes.max(1) as f64);
        [row.world.to_string(), row.bouts.to_string(), row.tunes.to_string(), row.claims.to_string(), share]
    });
    let header = ["world", "bouts", "tunes", "claims", "share"];
    write_table("validations that call the answer of a tune without effect stronger", header, 1, cells, out)
}

fn write_coverage(rows: &[CoverageRow], out: &mut impl Write) -> io::Result<()> {
    let cells = rows.iter().map(|row| {
        [
            row.method.to_string(),
            row.world.to_string(),
            row.bouts.to_string(),
            row.simulations.to_string(),
            percent(row.coverage),
            percent(row.standard_error),
        ]
    });
    let header = ["interval", "world", "bouts", "simulations", "coverage", "+-"];
    write_table("coverage of 95 % intervals", header, 2, cells, out)
}

fn write_sprt(rows: &[SprtRow], out: &mut impl Write) -> io::Result<()> {
    let cells = rows.iter().map(|row| {
        [
            row.model.to_string(),
            row.world.to_string(),
            row.truth.to_string(),
            row.tests.to_string(),
            percent(row.promised),
            percent(row.error_rate),
            percent(row.standard_error),
            format!("{:.0}", row.mean_bouts),
        ]
    });
    let bounds = rows.first().map_or([0.0; 2], |row| row.bounds);
    let title = format!("error rates of sequential tests of {} against {}", bounds[0], bounds[1]);
    let header = ["model", "world", "truth", "tests", "promised", "errors", "+-", "mean bouts"];
    write_table(&title, header, 3, cells, out)
}

fn write_rankings(rows: &[RankingRow], out: &mut impl Write) -> io::Result<()> {
    let cells = rows.iter().map(|row| {
        [
            row.ranking.to_string(),
            row.bouts.to_string(),
            row.pools.to_string(),
            percent(row.player_coverage),
            percent(row.seat_coverage),
            format!("{:.1} Elo", row.largest_bias),
        ]
    });
    let header = ["ranking", "bouts", "pools", "players", "seats", "largest bias"];
    write_table("coverage of ratings of 5 players in games of 4 seats", header, 1, cells, out)
}

fn write_workers(rows: &[FleetRow], out: &mut impl Write) -> io::Result<()> {
    let bouts = |bouts: Option<u64>| bouts.map_or_else(String::new, |bouts| bouts.to_string());
    let cells = rows.iter().map(|row| {
        [
            row.workers.to_string(),
            row.bouts.to_string(),
            format!("{:.0} %", 100.0 * row.fabricated),
            percent(row.false_alarms),
            percent(row.certain_alarms),
            row.caught.map_or_else(String::new, percent),
            bouts(row.bouts_until_noted),
            row.certain_caught.map_or_else(String::new, percent),
            bouts(row.bouts_until_certain),
        ]
    });
    let header =
        ["workers", "bouts", "forged", "noted", "quarantined", "caught", "after", "quarantined", "after"];
    let fleets = rows.first().map_or(0, |row| row.fleets);
    let title = format!("detection of one fabricating worker among honest ones, {fleets} fleets each");
    write_table(&title, header, 0, cells, out)
}

fn write_tuning(rows: &[TuningRow], out: &mut impl Write) -> io::Result<()> {
    let cells = rows.iter().map(|row| {
        [
            row.method.clone(),
            row.parameters.to_string(),
            row.games.to_string(),
            row.tunes.to_string(),
            format!("{:.1}", row.loss_before),
            format!("{:.1}", row.mean_loss_after),
            format!("{:.1}", row.largest_loss_after),
        ]
    });
    let header = ["method", "parameters", "games", "tunes", "before", "mean after", "worst after"];
    write_table("Elo below the optimum before and after tuning", header, 1, cells, out)
}
