//! `agon pruning`: how efficiently the players of a run search, with intervals over bouts or positions.

use std::io::{self, Write};

use agon_analysis::pruning::{Interval, PlayerPruning, Pruning, Ratio, Settings, pruning as measure};
use agon_stats::replicas::REPLICAS;
use agon_storage::location::Location;
use clap::Args;

use super::runs;
use crate::fail::Outcome;
use crate::number::{Threads, whole};
use crate::progress::Progress;
use crate::table::{Align, Table, fixed, print, rate, write_facts, write_sentence};

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
    #[arg(long, value_name = "LOCATION", default_value = "agon-data")]
    data: Location,
    #[command(flatten)]
    threads: Threads,
    /// Bootstrap replicas for the intervals; 0 for no intervals
    #[arg(long, value_name = "N", default_value_t = REPLICAS, value_parser = whole::<usize>("the number of replicas", 0, 100_000), allow_negative_numbers = true)]
    replicas: usize,
    /// Seed of the resampling
    #[arg(long, default_value_t = 1, value_parser = whole::<u64>("the seed", 0, u64::MAX), allow_negative_numbers = true)]
    seed: u64,
}

impl PruningOfRun {
    pub fn run(self) -> Outcome {
        let (dataset, run) = runs::open_started(&self.data, &self.run)?;
        let progress = Progress::default();
        progress.announce("reading searches");
        let settings = Settings { replicas: self.replicas, seed: self.seed, threads: self.threads.count() };
        let pruning = measure(&dataset, &run, settings)?;
        progress.clear();
        print(self.json, &pruning, |out| write_answer(&pruning, self.by_depth, out))
    }
}

fn write_answer(pruning: &Pruning, by_depth: bool, out: &mut impl Write) -> io::Result<()> {
    write_sentence(&headline(pruning), out)?;
    if !pruning.complete {
        let unit = if pruning.probe { "positions" } else { "bouts" };
        write_sentence(&runs::not_over(pruning.bouts, pruning.scheduled, unit), out)?;
    }
    if pruning.players.iter().all(|player| player.searches == 0) {
        return Ok(());
    }
    writeln!(out)?;
    let players = &pruning.players[..];
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
    if !pruning.ratios.is_empty() {
        writeln!(out)?;
        ratio_table(pruning, by_depth).write(out)?;
    }
    if by_depth {
        writeln!(out)?;
        match pruning.by_depth.is_empty() {
            true => write_sentence("No search completed a depth: there are no nodes by depth.", out)?,
            false => depth_table(pruning).write(out)?,
        }
    }
    writeln!(out)?;
    write_facts(&facts(pruning), out)
}

/// Summarises the answer in a sentence.
fn headline(pruning: &Pruning) -> String {
    if pruning.players.iter().all(|player| player.searches == 0) {
        return format!("{} has no searches in its dataset yet.", pruning.run);
    }
    // For a probe: the pair with the smallest ratio at the greatest depth.
    if let Some(best) =
        compared(pruning).map(smaller_first).min_by(|one, other| one.ratio.total_cmp(&other.ratio))
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
        pruning.players.iter().filter_map(|player| Some((player, player.ebf?))).collect();
    branching.sort_by(|one, other| one.1.value.total_cmp(&other.1.value));
    match &branching[..] {
        [] => "No search of the run completed a depth, so that pruning cannot be measured.".to_string(),
        [(player, ebf)] => format!(
            "{} searches with an effective branching factor of {}{}; the other players do not deepen.",
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

/// Returns, for each pair of players, the ratio at the greatest depth that both reached at most positions.
fn compared(pruning: &Pruning) -> impl Iterator<Item = &Ratio> {
    let ratios = pruning.ratios.chunk_by(|one, next| (&one.a, &one.b) == (&next.a, &next.b));
    ratios.filter_map(|depths| {
        let most = depths.iter().map(|ratio| ratio.positions).max()?;
        depths.iter().rfind(|ratio| 2 * ratio.positions >= most)
    })
}

/// Orders a ratio so that the player that needs fewer nodes comes first.
fn smaller_first(ratio: &Ratio) -> Ratio {
    if ratio.ratio <= 1.0 { ratio.clone() } else { ratio.inverse() }
}

/// A column: its heading, its measure, and the format of its numbers.
type Column = (&'static str, fn(&PlayerPruning) -> Option<Interval>, fn(f64) -> String);

/// Returns a table with each player's measures and the distances to the farther ends of their intervals.
fn table(players: &[PlayerPruning], columns: &[Column]) -> Table {
    let mut header = vec![("player", Align::Left)];
    for (heading, ..) in columns {
        header.extend([(*heading, Align::Right), ("+-", Align::Right)]);
    }
    let mut table = Table::new(&header).optional(&["+-"]);
    for player in players {
        let mut cells = vec![player.player.clone()];
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

fn ratio_table(pruning: &Pruning, all: bool) -> Table {
    let names = [("nodes of", Align::Left), ("to those of", Align::Left)];
    let numbers = ["depth", "ratio", "low", "high", "positions"].map(|name| (name, Align::Right));
    let mut table = Table::new(&[&names[..], &numbers[..]].concat()).optional(&["positions"]);
    let rows: Vec<&Ratio> = if all { pruning.ratios.iter().collect() } else { compared(pruning).collect() };
    for ratio in rows {
        let end = |end: Option<f64>| end.map_or("-".to_string(), three_digits);
        table.row([
            ratio.a.clone(),
            ratio.b.clone(),
            ratio.depth.to_string(),
            three_digits(ratio.ratio),
            end(ratio.low),
            end(ratio.high),
            ratio.positions.to_string(),
        ]);
    }
    table
}

fn depth_table(pruning: &Pruning) -> Table {
    let mut table = Table::of_numbers("player", &["depth", "nodes", "low", "high", "searches"]);
    for row in &pruning.by_depth {
        let end = |end: Option<f64>| end.map_or("-".to_string(), rate);
        table.row([
            row.player.clone(),
            row.depth.to_string(),
            rate(row.nodes.value),
            end(row.nodes.low),
            end(row.nodes.high),
            row.searches.to_string(),
        ]);
    }
    table
}

fn facts(pruning: &Pruning) -> Vec<(&'static str, String)> {
    let mut facts = vec![("run", pruning.run.clone())];
    for player in &pruning.players {
        if let Some(sps) = player.sps {
            let text = format!(
                "{}{} simulations/s by {}",
                rate(sps.value).trim_end(),
                between(sps.low.zip(sps.high), |number| rate(number).trim_end().to_string()),
                player.player
            );
            facts.push(("sampling", text));
        }
    }
    for note in &pruning.notes {
        let name = match note.measure {
            "vs_minimax" => "/minimax",
            "vs_minimal" => "/minimal",
            _ => "depth",
        };
        facts.push((name, note.note.clone()));
    }
    let searches: u64 = pruning.players.iter().map(|player| player.searches).sum();
    facts.push(("searches", searches.to_string()));
    facts.push(("+-", format!("to the farther end of the 95 % interval, by resampling {}", pruning.unit)));
    facts
}

/// Formats the ends of an interval in brackets, if it has any.
fn between(ends: Option<(f64, f64)>, text: impl Fn(f64) -> String) -> String {
    ends.map(|(low, high)| format!(" ({} to {})", text(low), text(high))).unwrap_or_default()
}

fn two_decimals(number: f64) -> String {
    fixed(number, 2)
}

fn per_cent(share: f64) -> String {
    fixed(100.0 * share, 1)
}

/// Formats a ratio with three significant digits.
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

    fn sample(players: &[&str]) -> Pruning {
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

    fn text(pruning: &Pruning) -> String {
        let mut text = Vec::new();
        write_answer(pruning, true, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn tables_fit_eighty_columns() {
        let long = "a-player-with-a-name-of-some-forty-letters";
        let mut pruning = sample(&[long, "b"]);
        let (a, b) = (long.to_string(), long.to_string());
        pruning.ratios = vec![Ratio {
            a,
            b,
            depth: 100,
            ratio: 1e-7,
            low: Some(1e-8),
            high: Some(1e9),
            positions: 1 << 40,
        }];
        let table = ratio_table(&pruning, true);
        let mut text = Vec::new();
        table.write_within(Some(80), &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn first_line_names_the_most_efficient_player() {
        let mut pruning = sample(&["a", "b"]);
        assert!(text(&pruning).starts_with("a branches least: "), "{}", text(&pruning));
        let ratio = |depth, ratio: f64, positions| Ratio {
            a: "a".to_string(),
            b: "b".to_string(),
            depth,
            ratio,
            low: Some(ratio * 0.5),
            high: Some(ratio * 1.25),
            positions,
        };
        // Too few positions reach the last depth.
        pruning.ratios = vec![ratio(1, 1.0, 10), ratio(2, 2.0, 10), ratio(3, 8.0, 2)];
        let line = "b needs 0.500 times the nodes of a to depth 2 (0.400 to 1.00) at 10 positions, which may be chance.";
        assert!(text(&pruning).replace('\n', " ").starts_with(line), "{}", text(&pruning));
        pruning.players.iter_mut().for_each(|player| player.searches = 0);
        assert!(
            text(&pruning).starts_with(
                "run has no searches in its dataset yet.\nThe run is not over: 1 of its 2 bouts are in the dataset."
            )
        );
    }
}
