//! `agon perft`: counts leaves, in parallel over the first two plies.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use agon_games::AnyGame;
use clap::Args;
use serde::Serialize;

use super::position::PositionArgs;
use crate::fail::{Outcome, bail_usage};
use crate::number::{Threads, whole};
use crate::table::{Table, print, rate};

#[derive(Args)]
pub struct Perft {
    #[command(flatten)]
    start: PositionArgs,
    /// Number of plies
    #[arg(value_parser = whole::<u32>("the depth", 0, 60), allow_negative_numbers = true)]
    depth: u32,
    /// Count the leaves below each first move
    #[arg(long)]
    divide: bool,
    #[command(flatten)]
    threads: Threads,
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
    pub fn run(self) -> Outcome {
        if self.start.moves.trim() == "-" {
            bail_usage!("--moves -: standard input is read by `agon show` only; write the moves themselves");
        }
        let game = self.start.game()?;
        let (position, _) = self.start.after_moves(&game)?;
        let clock = Instant::now();
        let divide = divide(&*position, self.depth, self.threads.count().get());
        let seconds = clock.elapsed().as_secs_f64();
        let leaves = if self.depth == 0 { 1 } else { divide.iter().map(|division| division.leaves).sum() };
        let divide = if self.divide { divide } else { Vec::new() };
        let count = Count { game: game.to_string(), depth: self.depth, leaves, divide, seconds };
        print(self.json, &count, |out| write_count(&count, out))
    }
}

fn write_count(count: &Count, out: &mut impl Write) -> io::Result<()> {
    if !count.divide.is_empty() {
        let mut table = Table::of_numbers("move", &["leaves"]);
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

/// Counts the leaves below each move. Threads share the positions two plies down, which balances moves with large trees.
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
    let next_task = AtomicUsize::new(0);
    let work = || {
        while let Some((index, start, depth)) = tasks.get(next_task.fetch_add(1, Ordering::Relaxed)) {
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
