//! `agon pruning`: how the players of a run search and prune, with intervals over bouts or positions.

use std::io::{self, BufWriter, Write};
use std::num::NonZeroUsize;
use std::process::ExitCode;

use agon_analysis::Dataset;
use agon_analysis::pruning::{Interval, PlayerPruning, Pruning, Ratio, Settings, pruning};
use agon_stats::replicas::REPLICAS;
use agon_storage::location::Location;
use clap::Args;

use super::runs;
use crate::fail::Outcome;
use crate::number::whole;
use crate::progress::Progress;
use crate::table::{Align, Table, fixed, rate, shortened, write_facts, write_json, write_sentence};

/// The most characters of a name beside eight numbers.
const NAME: usize = 16;

/// The arguments of `agon pruning`.
#[derive(Args)]
pub struct PruningOfRun {
    /// Run id, name or unique prefix, or `latest`
    #[arg(value_name = "RUN", default_value = "latest")]
    run: String,
    /// Show nodes and ratios by depth
    #[arg(long)]
    by_depth: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// Data folder, or an object store as s3://bucket/prefix
    #[arg(long, value_name = "PLACE", default_value = "agon-data")]
    data: Location,
    /// Threads [default: one per core]
    #[arg(long, value_parser = whole::<u16>("the number of threads", 1, 1024), allow_negative_numbers = true)]
    threads: Option<u16>,
    /// Bootstrap replicas for the intervals; 0 for no intervals
    #[arg(long, value_name = "N", default_value_t = REPLICAS, value_parser = whole::<usize>("the number of replicas", 0, 100_000), allow_negative_numbers = true)]
    replicas: usize,
    /// Seed of the resampling
    #[arg(long, default_value_t = 1, value_parser = whole::<u64>("the seed", 0, u64::MAX), allow_negative_numbers = true)]
    seed: u64,
}

impl PruningOfRun {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let threads =
            self.threads.and_then(|threads| NonZeroUsize::new(usize::from(threads))).unwrap_or(cores);
        let dataset = Dataset::open(&self.data)?;
        let run = runs::find(&dataset, &self.run)?;
        let progress = Progress::default();
        progress.announce("reading searches");
        let settings = Settings { replicas: self.replicas, seed: self.seed, threads };
        let told = pruning(&dataset, &run, settings)?;
        progress.clear();
        let mut out = BufWriter::new(io::stdout().lock());
        if self.json {
            write_json(&told, &mut out)?;
        } else {
            write_answer(&told, self.by_depth, &mut out)?;
        }
        out.flush()?;
        Ok(ExitCode::SUCCESS)
    }
}

fn write_answer(told: &Pruning, by_depth: bool, out: &mut impl Write) -> io::Result<()> {
    write_sentence(&headline(told), out)?;
    if !told.complete {
        let unit = if told.probe { "positions" } else { "bouts" };
        let sentence = format!(
            "The run goes on: {} of its {} {unit} were done when its file was written.",
            told.bouts, told.scheduled
        );
        write_sentence(&sentence, out)?;
    }
    if told.players.iter().all(|player| player.searches == 0) {
        return Ok(());
    }
    writeln!(out)?;
    let players = &told.players[..];
    let columns: [Column; 4] = [
        ("nodes/s", |player| player.nps, rate),
        ("depth", |player| player.mean_depth, two_decimals),
        ("b*", |player| player.ebf, two_decimals),
        ("growth", |player| player.growth, two_decimals),
    ];
    table(players, &columns).write(out)?;
    let columns: [Column; 4] = [
        ("first %", |player| player.first_move_share, per_cent),
        ("hits %", |player| player.hit_rate, per_cent),
        ("/minimax", |player| player.vs_minimax, three_digits),
        ("/minimal", |player| player.vs_minimal, three_digits),
    ];
    if columns.iter().any(|(_, of, _)| players.iter().any(|player| of(player).is_some())) {
        writeln!(out)?;
        table(players, &columns).write(out)?;
    }
    if !told.ratios.is_empty() {
        writeln!(out)?;
        ratio_table(told, by_depth).write(out)?;
    }
    if by_depth {
        writeln!(out)?;
        match told.by_depth.is_empty() {
            true => write_sentence("No search completed a depth: there are no nodes by depth.", out)?,
            false => depth_table(told).write(out)?,
        }
    }
    writeln!(out)?;
    write_facts(&facts(told), out)
}

/// The answer in words.
fn headline(told: &Pruning) -> String {
    if told.players.iter().all(|player| player.searches == 0) {
        return format!("{} has no searches in its dataset yet.", told.run);
    }
    // Of a probe: who needs the fewest nodes at the greatest depth, against whom it saves most.
    if let Some(best) =
        compared(told).map(smaller_first).min_by(|one, other| one.ratio.total_cmp(&other.ratio))
    {
        let known = best.low.zip(best.high);
        let sentence = format!(
            "{} needs {} times the nodes of {} to depth {}{}",
            best.a,
            three_digits(best.ratio),
            best.b,
            best.depth,
            between(known, three_digits)
        );
        let doubt = match known {
            Some((low, high)) if low <= 1.0 && high >= 1.0 => ", which may be chance",
            _ => "",
        };
        return format!("{sentence} at {} positions{doubt}.", best.positions);
    }
    let mut branching: Vec<(&PlayerPruning, Interval)> =
        told.players.iter().filter_map(|player| Some((player, player.ebf?))).collect();
    branching.sort_by(|one, other| one.1.value.total_cmp(&other.1.value));
    match &branching[..] {
        [] => "No search of the run completed a depth: there is nothing to say about pruning.".to_string(),
        [(player, ebf)] => format!(
            "{} searches with an effective branching factor of {}{}; nobody else here deepens.",
            player.player,
            two_decimals(ebf.value),
            between(ebf.low.zip(ebf.high), two_decimals)
        ),
        [(player, ebf), .., (most, other)] => format!(
            "{} branches least: an effective branching factor of {}{}, against {} of {}.",
            player.player,
            two_decimals(ebf.value),
            between(ebf.low.zip(ebf.high), two_decimals),
            two_decimals(other.value),
            most.player
        ),
    }
}

/// For each pair of players the ratio at the greatest depth that they share at most of the positions.
fn compared(told: &Pruning) -> impl Iterator<Item = &Ratio> {
    let ratios = told.ratios.chunk_by(|one, next| (&one.a, &one.b) == (&next.a, &next.b));
    ratios.filter_map(|depths| {
        let most = depths.iter().map(|ratio| ratio.positions).max()?;
        depths.iter().rfind(|ratio| 2 * ratio.positions >= most)
    })
}

/// The same ratio with the player before that needs fewer nodes.
fn smaller_first(ratio: &Ratio) -> Ratio {
    if ratio.ratio <= 1.0 {
        return ratio.clone();
    }
    let inverse = |number: f64| 1.0 / number;
    Ratio {
        a: ratio.b.clone(),
        b: ratio.a.clone(),
        depth: ratio.depth,
        ratio: inverse(ratio.ratio),
        low: ratio.high.map(inverse),
        high: ratio.low.map(inverse),
        positions: ratio.positions,
    }
}

/// A column: its heading, its measure, and how numbers are written.
type Column = (&'static str, fn(&PlayerPruning) -> Option<Interval>, fn(f64) -> String);

/// A row a player, each measure with the distance to the farther end of its interval.
fn table(players: &[PlayerPruning], columns: &[Column]) -> Table {
    let mut header = vec![("player", Align::Left)];
    for (heading, ..) in columns {
        header.extend([(*heading, Align::Right), ("+-", Align::Right)]);
    }
    let mut table = Table::new(&header);
    for player in players {
        let mut cells = vec![shortened(&player.player, NAME)];
        for (_, of, text) in columns {
            let measure = of(player);
            let distance = measure.and_then(|Interval { value, low, high }| {
                Some((value - low?).max(high? - value).max(0.0)).filter(|distance| distance.is_finite())
            });
            let cell = |number: Option<f64>| number.map_or("-".to_string(), text);
            cells.extend([cell(measure.map(|measure| measure.value)), cell(distance)]);
        }
        table.row(cells);
    }
    table
}

fn ratio_table(told: &Pruning, all: bool) -> Table {
    let names = [("nodes of", Align::Left), ("to those of", Align::Left)];
    let numbers = ["depth", "ratio", "low", "high", "positions"].map(|name| (name, Align::Right));
    let mut table = Table::new(&[&names[..], &numbers[..]].concat());
    let rows: Vec<&Ratio> = if all { told.ratios.iter().collect() } else { compared(told).collect() };
    for ratio in rows {
        let end = |end: Option<f64>| end.map_or("-".to_string(), three_digits);
        table.row([
            shortened(&ratio.a, NAME),
            shortened(&ratio.b, NAME),
            ratio.depth.to_string(),
            three_digits(ratio.ratio),
            end(ratio.low),
            end(ratio.high),
            ratio.positions.to_string(),
        ]);
    }
    table
}

fn depth_table(told: &Pruning) -> Table {
    let numbers = ["depth", "nodes", "low", "high", "searches"].map(|name| (name, Align::Right));
    let mut table = Table::new(&[&[("player", Align::Left)][..], &numbers[..]].concat());
    for row in &told.by_depth {
        let end = |end: Option<f64>| end.map_or("-".to_string(), rate);
        table.row([
            shortened(&row.player, NAME),
            row.depth.to_string(),
            rate(row.nodes.value),
            end(row.nodes.low),
            end(row.nodes.high),
            row.searches.to_string(),
        ]);
    }
    table
}

fn facts(told: &Pruning) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    for player in &told.players {
        if let Some(sps) = player.sps {
            let text = format!(
                "{}{} simulations a second by {}",
                rate(sps.value).trim_end(),
                between(sps.low.zip(sps.high), |number| rate(number).trim_end().to_string()),
                player.player
            );
            facts.push(("sampling", text));
        }
    }
    for note in &told.notes {
        let name = match note.measure {
            "vs_minimax" => "/minimax",
            "vs_minimal" => "/minimal",
            _ => "depth",
        };
        facts.push((name, note.note.clone()));
    }
    let searches: u64 = told.players.iter().map(|player| player.searches).sum();
    facts.push(("searches", searches.to_string()));
    facts.push(("+-", format!("to the farther end of the 95 % interval, by resampling {}", told.unit)));
    facts
}

/// The ends of an interval in brackets, where it has any.
fn between(ends: Option<(f64, f64)>, text: impl Fn(f64) -> String) -> String {
    ends.map(|(low, high)| format!(" ({} to {})", text(low), text(high))).unwrap_or_default()
}

fn two_decimals(number: f64) -> String {
    fixed(number, 2)
}

fn per_cent(share: f64) -> String {
    fixed(100.0 * share, 1)
}

/// A ratio with three digits.
fn three_digits(ratio: f64) -> String {
    match ratio {
        ratio if ratio >= 1000.0 => rate(ratio).trim_end().to_string(),
        ratio if ratio >= 99.95 => fixed(ratio, 0),
        ratio if ratio >= 9.995 => fixed(ratio, 1),
        ratio if ratio >= 0.9995 || ratio == 0.0 => fixed(ratio, 2),
        ratio if ratio >= 0.0995 => fixed(ratio, 3),
        ratio if ratio >= 0.00995 => fixed(ratio, 4),
        ratio => format!("{ratio:.1e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_keep_three_digits() {
        let texts = [0.0, 1e-7, 0.0123, 0.5, 0.9999, 1.0, 12.34, 123.4, 4321.0].map(three_digits);
        assert_eq!(texts, ["0.00", "1.0e-7", "0.0123", "0.500", "1.00", "1.00", "12.3", "123", "4.32 k"]);
    }

    fn interval(value: f64) -> Option<Interval> {
        Some(Interval { value, low: Some(value * 0.9), high: Some(value * 1.1) })
    }

    fn player(name: &str) -> PlayerPruning {
        PlayerPruning {
            player: name.to_string(),
            game: "othello".to_string(),
            searches: 1_000_000,
            nps: interval(123e6),
            sps: interval(123e6),
            mean_depth: interval(100.0),
            ebf: interval(100.0),
            growth: interval(100.0),
            first_move_share: interval(1.0),
            hit_rate: interval(1.0),
            vs_minimax: interval(1.234e-7),
            vs_minimal: interval(123.4),
        }
    }

    fn told(players: &[&str]) -> Pruning {
        Pruning {
            run: "run".to_string(),
            complete: false,
            bouts: 1,
            scheduled: 2,
            probe: false,
            unit: "bouts",
            players: players.iter().map(|name| player(name)).collect(),
            ratios: Vec::new(),
            by_depth: Vec::new(),
            notes: Vec::new(),
        }
    }

    fn text(told: &Pruning) -> String {
        let mut text = Vec::new();
        write_answer(told, true, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn everything_fits_eighty_columns() {
        let long = "a-player-with-a-name-of-some-forty-letters";
        let mut told = told(&[long, "b"]);
        let (a, b) = (long.to_string(), long.to_string());
        told.ratios = vec![Ratio {
            a,
            b,
            depth: 100,
            ratio: 1e-7,
            low: Some(1e-8),
            high: Some(1e9),
            positions: 1 << 40,
        }];
        let text = text(&told);
        assert!(text.lines().all(|line| line.chars().count() <= crate::table::COLUMNS), "{text}");
    }

    #[test]
    fn the_first_line_says_who_needs_least() {
        let mut told = told(&["a", "b"]);
        assert!(text(&told).starts_with("a branches least: "), "{}", text(&told));
        let ratio = |depth, ratio: f64, positions| Ratio {
            a: "a".to_string(),
            b: "b".to_string(),
            depth,
            ratio,
            low: Some(ratio * 0.5),
            high: Some(ratio * 1.25),
            positions,
        };
        // The last depth is shared at too few positions.
        told.ratios = vec![ratio(1, 1.0, 10), ratio(2, 2.0, 10), ratio(3, 8.0, 2)];
        let line = "b needs 0.500 times the nodes of a to depth 2 (0.400 to 1.00) at 10 positions, which may be chance.";
        assert!(text(&told).replace('\n', " ").starts_with(line), "{}", text(&told));
        told.players.iter_mut().for_each(|player| player.searches = 0);
        assert!(
            text(&told)
                .starts_with("run has no searches in its dataset yet.\nThe run goes on: 1 of its 2 bouts")
        );
    }
}
