//! `agon perft`: counts leaves, in parallel over the first two plies.

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use agon_games::AnyGame;
use clap::Args;
use serde::Serialize;

use super::position::PositionArgs;
use crate::fail::{Outcome, WrongCall};
use crate::number::whole;
use crate::table::{Align, Table, rate, write_json};

/// The arguments of `agon perft`.
#[derive(Args)]
pub struct Perft {
    #[command(flatten)]
    start: PositionArgs,
    /// Number of plies
    #[arg(value_parser = whole::<u32>("the depth", 0, 60), allow_negative_numbers = true)]
    depth: u32,
    /// Moves to play first, separated by spaces
    #[arg(
        long,
        value_name = "MOVES",
        default_value = "",
        hide_default_value = true,
        allow_hyphen_values = true
    )]
    moves: String,
    /// Count the leaves below each first move
    #[arg(long)]
    divide: bool,
    /// Threads [default: one per core]
    #[arg(long, value_parser = whole::<u16>("the number of threads", 1, 1024), allow_negative_numbers = true)]
    threads: Option<u16>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Count {
    game: String,
    depth: u32,
    leaves: u64,
    divide: Vec<Division>,
    seconds: f64,
}

#[derive(Serialize)]
struct Division {
    #[serde(rename = "move")]
    word: String,
    leaves: u64,
}

impl Perft {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        if self.moves.trim() == "-" {
            let reason = "--moves -: standard input is read by `agon show` only; write the moves themselves";
            return Err(WrongCall(reason.to_string()).into());
        }
        let game = self.start.game_with_note()?.to_string();
        let (position, _) = self.start.after(&self.moves)?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = self.threads.map_or(cores, usize::from);
        let clock = Instant::now();
        let divide = divide(&*position, self.depth, threads);
        let seconds = clock.elapsed().as_secs_f64();
        let leaves = if self.depth == 0 { 1 } else { divide.iter().map(|division| division.leaves).sum() };
        let divide = if self.divide { divide } else { Vec::new() };
        let count = Count { game, depth: self.depth, leaves, divide, seconds };
        let mut out = io::stdout().lock();
        if self.json {
            write_json(&count, &mut out)?;
        } else {
            write_count(&count, &mut out)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn write_count(count: &Count, out: &mut impl Write) -> io::Result<()> {
    if !count.divide.is_empty() {
        let mut table = Table::new(&[("move", Align::Left), ("leaves", Align::Right)]);
        for division in &count.divide {
            table.row([division.word.clone(), division.leaves.to_string()]);
        }
        table.write(out)?;
        writeln!(out)?;
    }
    let Count { game, depth, leaves, seconds, .. } = count;
    let speed = rate(*leaves as f64 / seconds.max(1e-9));
    let unit = if *leaves == 1 { "leaf" } else { "leaves" };
    writeln!(out, "{game}, depth {depth}: {leaves} {unit} in {seconds:.3} s ({} a second)", speed.trim_end())
}

/// The leaves below each move. Threads take the positions two plies down one after another, so that a move with a
/// large tree does not keep the others waiting.
fn divide(position: &dyn AnyGame, depth: u32, threads: usize) -> Vec<Division> {
    let moves = if depth > 0 { position.children() } else { Vec::new() };
    let totals: Vec<AtomicU64> = moves.iter().map(|_| AtomicU64::new(0)).collect();
    let mut tasks = Vec::new();
    for (index, (_, next)) in moves.iter().enumerate() {
        if depth < 4 {
            tasks.push((index, next.copy(), depth - 1));
        } else {
            tasks.extend(next.children().into_iter().map(|(_, after)| (index, after, depth - 2)));
        }
    }
    let taken = AtomicUsize::new(0);
    let work = || {
        while let Some((index, start, depth)) = tasks.get(taken.fetch_add(1, Ordering::Relaxed)) {
            let leaves = start.perft(*depth);
            totals[*index].fetch_add(leaves, Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(tasks.len()) {
            scope.spawn(work);
        }
        work();
    });
    let counted = moves.into_iter().zip(totals);
    counted.map(|((word, _), leaves)| Division { word, leaves: leaves.into_inner() }).collect()
}
