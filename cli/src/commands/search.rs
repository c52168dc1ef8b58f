//! `agon search`: searches one position and prints its statistics.

use std::io::{self, Write};
use std::process::ExitCode;

use agon_arena::defaults::default_player;
use agon_arena::{Arena, Environment, IterationRecord, Opening, SearchRecord};
use agon_search::{Counters, Proof, Value};
use clap::Args;
use serde::Serialize;

use super::player::{read_limit, read_player};
use super::position::PositionArgs;
use crate::fail::Outcome;
use crate::number::whole;
use crate::table::{rate, write_json};

#[derive(Args)]
pub struct Search {
    #[command(flatten)]
    start: PositionArgs,
    /// Player: an algorithm, or TOML such as 'search = { algorithm = "uct", c = 1.2 }' [default: the game's default
    /// player, as in `agon list-games GAME`]
    #[arg(long, value_name = "PLAYER")]
    player: Option<String>,
    /// Limit: ms=50, cpu_ms=50, nodes=1000, depth=6 or clock_ms=60000,increment_ms=100
    #[arg(long, value_name = "LIMIT", default_value = "ms=1000")]
    limit: String,
    /// Seed of randomised searches
    #[arg(long, default_value_t = 1, value_parser = whole::<u64>("the seed", 0, u64::MAX), allow_negative_numbers = true)]
    seed: u64,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Document<'a> {
    #[serde(rename = "move")]
    mv: &'a str,
    value: f64,
    proven: Option<Proven>,
    depth: u32,
    selective_depth: u32,
    #[serde(flatten)]
    counters: Counters,
    pv: &'a [String],
    iterations: Vec<Step<'a>>,
    time_us: u64,
    overshoot_us: u64,
}

/// A proven value: `{"win": plies}`, `{"loss": plies}`, `{"draw": plies}` or `{"exact": plies}`.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Proven {
    /// A win in this number of plies.
    Win(u32),
    /// A loss in this number of plies.
    Loss(u32),
    /// A draw within this number of plies.
    Draw(u32),
    /// The number is exact: every line ends within this number of plies.
    Exact(u32),
}

#[derive(Serialize)]
struct Step<'a> {
    depth: u32,
    nodes: u64,
    time_us: u64,
    #[serde(rename = "move")]
    mv: Option<&'a str>,
    value: f64,
}

/// Returns the proof of a value for JSON.
pub fn proven(value: Value) -> Option<Proven> {
    value.proof.map(|proof| match proof {
        Proof::Win(plies) => Proven::Win(plies),
        Proof::Loss(plies) => Proven::Loss(plies),
        Proof::Draw(plies) => Proven::Draw(plies),
        Proof::Exact(plies) => Proven::Exact(plies),
    })
}

impl Search {
    pub fn run(self) -> Outcome {
        let game = self.start.game()?;
        let player = read_player(&game, self.player.as_deref().unwrap_or_else(|| default_player(&game)))?;
        let limit = read_limit(&self.limit)?;
        let mut arena = Arena::new(&game, &[player.config], Environment::system())?;
        let opening = Opening { position: self.start.position.clone(), moves: self.start.moves.clone() };
        let mut out = io::stdout().lock();
        let mut header_due = !self.json;
        let mut failed = Ok(());
        let record = arena.search(0, &opening, limit, self.seed, &mut |iteration| {
            if !self.json && failed.is_ok() {
                failed = write_iteration(&mut out, iteration, std::mem::take(&mut header_due));
            }
        })?;
        failed?;
        if self.json {
            write_json(&document(&record), &mut out)?;
        } else {
            write_record(&mut out, &player.name, &record)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The mark of an end that is not proven.
const UNPROVEN: &str = "?";

fn document(record: &SearchRecord) -> Document<'_> {
    Document {
        mv: &record.mv,
        value: record.value.number,
        proven: proven(record.value),
        depth: record.depth,
        selective_depth: record.selective_depth,
        counters: record.counters,
        pv: &record.line,
        iterations: record
            .iterations
            .iter()
            .map(|iteration| Step {
                depth: iteration.depth,
                nodes: iteration.nodes,
                time_us: iteration.time.as_micros() as u64,
                mv: iteration.line.first().map(String::as_str),
                value: iteration.value.number,
            })
            .collect(),
        time_us: record.time.as_micros() as u64,
        overshoot_us: record.overshoot.as_micros() as u64,
    }
}

/// Formats a value: a number, a proven end, or an end with a question mark, which a search for many seats expects.
pub fn value_text(value: Value) -> String {
    let expected = if value.proof.is_none() { UNPROVEN } else { "" };
    match Value::recorded(value.number, 0).proof.or(value.proof) {
        Some(Proof::Win(plies)) => format!("win in {plies}{expected}"),
        Some(Proof::Loss(plies)) => format!("loss in {plies}{expected}"),
        Some(Proof::Draw(plies)) => format!("draw in {plies}"),
        Some(Proof::Exact(_)) => format!("{:+.3} proven", value.number),
        None => format!("{:+.3}", value.number),
    }
}

/// Cuts a line of moves to a number of columns.
fn shortened(line: &[String], room: usize) -> String {
    let mut text = String::new();
    for word in line {
        if text.len() + word.len() + 1 > room {
            text.push('…');
            break;
        }
        text.push_str(word);
        text.push(' ');
    }
    text.trim_end().to_string()
}

fn write_iteration(out: &mut impl Write, iteration: &IterationRecord, header: bool) -> io::Result<()> {
    if header {
        writeln!(out, "{:>5}  {:>12}  {:>12}  {:>9}  line", "depth", "value", "nodes", "time")?;
    }
    let time = format!("{:.1} ms", iteration.time.as_secs_f64() * 1e3);
    let line = shortened(&iteration.line, 32);
    let value = value_text(iteration.value);
    writeln!(out, "{:>5}  {value:>12}  {:>12}  {time:>9}  {line}", iteration.depth, iteration.nodes)?;
    out.flush()
}

fn write_record(out: &mut impl Write, player: &str, record: &SearchRecord) -> io::Result<()> {
    let counters = &record.counters;
    if !record.iterations.is_empty() {
        writeln!(out)?;
    }
    writeln!(out, "{player} plays {}: {}", record.mv, value_text(record.value))?;
    let seconds = record.time.as_secs_f64();
    let speed = |count: u64| rate(count as f64 / seconds.max(1e-9));
    let mut facts = vec![format!(
        "{} nodes in {:.1} ms ({}/s)",
        counters.nodes,
        seconds * 1e3,
        speed(counters.nodes).trim()
    )];
    if record.depth > 0 {
        facts.push(format!("depth {}, selective {}", record.depth, record.selective_depth));
    }
    if counters.cutoffs > 0 {
        let share = 100.0 * counters.first_move_cutoffs as f64 / counters.cutoffs as f64;
        facts.push(format!("{} cutoffs, {share:.0} % by the first move", counters.cutoffs));
    }
    if counters.table_probes > 0 {
        let share = 100.0 * counters.table_hits as f64 / counters.table_probes as f64;
        facts.push(format!("{} table probes, {share:.0} % hits", counters.table_probes));
    }
    if counters.simulations > 0 {
        facts.push(format!(
            "{} simulations ({}/s), {} tree nodes",
            counters.simulations,
            speed(counters.simulations).trim(),
            counters.tree_nodes
        ));
    }
    if value_text(record.value).ends_with(UNPROVEN) {
        facts.push(format!("{UNPROVEN} if the other seats play as the search expects"));
    }
    if !record.overshoot.is_zero() {
        facts.push(format!("{:.2} ms beyond the limit", record.overshoot.as_secs_f64() * 1e3));
    }
    facts.iter().try_for_each(|fact| writeln!(out, "  {fact}"))?;
    writeln!(out, "  line: {}", shortened(&record.line, 70))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_that_are_not_proven_are_marked() {
        let text = |number, proof| value_text(Value { number, proof });
        assert_eq!(text(99_999.999_9, Some(Proof::Win(1))), "win in 1");
        assert_eq!([text(99_999.999_9, None), text(-99_999.999_7, None)], ["win in 1?", "loss in 3?"]);
        assert_eq!([text(60.0, None), text(0.0, Some(Proof::Draw(9)))], ["+60.000", "draw in 9"]);
    }
}
