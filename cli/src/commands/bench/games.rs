//! `agon bench games`: random games and perft leaves per second in one thread, as the median of several runs.

use std::hint::black_box;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use agon_games::random::seeded;
use agon_games::{AnyGame, GAMES, GameSpec};
use agon_search::rate::{RateError, per_second};
use clap::Args;
use serde::Serialize;

use crate::fail::Outcome;
use crate::number::whole;
use crate::table::{Table, print, rate};

#[derive(Args)]
pub struct Games {
    /// Games to measure [default: all, with default parameters]
    #[arg(value_name = "GAME")]
    games: Vec<String>,
    /// Number of runs; the median counts
    #[arg(long, default_value_t = 5, value_parser = whole::<u16>("the number of runs", 1, 1000), allow_negative_numbers = true)]
    runs: u16,
    /// Milliseconds per run
    #[arg(long, default_value_t = 200, value_parser = whole::<u64>("the number of milliseconds", 1, 600_000), allow_negative_numbers = true)]
    ms: u64,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Document {
    games: Vec<Speed>,
}

#[derive(Serialize)]
struct Speed {
    game: String,
    games_per_second: f64,
    plies_per_game: f64,
    ns_per_ply: f64,
    rollouts_per_second: f64,
    perft_depth: u32,
    perft_leaves: u64,
    perft_leaves_per_second: f64,
}

impl Games {
    pub fn run(self) -> Outcome {
        let mut names: Vec<&str> = self.games.iter().map(String::as_str).collect();
        if names.is_empty() {
            names = GAMES.iter().map(|info| info.name).collect();
        }
        let games: Vec<GameSpec> = names.into_iter().map(GameSpec::parse).collect::<Result<_, _>>()?;
        let budget = Duration::from_millis(self.ms);
        let mut speeds = Vec::new();
        for spec in &games {
            speeds.push(measure(spec, self.runs, budget)?);
        }
        let document = Document { games: speeds };
        print(self.json, &document, |out| write_table(&document.games, out))
    }
}

fn write_table(speeds: &[Speed], out: &mut impl Write) -> io::Result<()> {
    let numbers = ["games/s", "plies", "ns/ply", "rollouts/s", "perft", "leaves/s"];
    let mut table = Table::of_numbers("game", &numbers);
    for speed in speeds {
        table.row([
            speed.game.split(':').next().unwrap_or_default().to_string(),
            rate(speed.games_per_second),
            format!("{:.1}", speed.plies_per_game),
            format!("{:.0}", speed.ns_per_ply),
            rate(speed.rollouts_per_second),
            speed.perft_depth.to_string(),
            rate(speed.perft_leaves_per_second),
        ]);
    }
    table.write(out)
}

fn measure(spec: &GameSpec, runs: u16, budget: Duration) -> anyhow::Result<Speed> {
    let start = &*spec.start(None)?;
    let (mut games, mut plies) = (0, 0);
    let uniform = median(runs, |run| {
        let (played, moves, rate) = play(start, run, budget, false)?;
        games += played;
        plies += moves;
        Ok(rate)
    })?;
    let rollouts = median(runs, |run| Ok(play(start, run, budget, true)?.2))?;
    let (depth, leaves) = perft_depth(start, budget);
    let perft = median(runs, |_| Ok(leaves_per_second(start, depth, budget)?))?;
    let plies_per_game = plies as f64 / games as f64;
    Ok(Speed {
        game: spec.to_string(),
        games_per_second: uniform,
        plies_per_game,
        ns_per_ply: 1e9 / (uniform * plies_per_game),
        rollouts_per_second: rollouts,
        perft_depth: depth,
        perft_leaves: leaves,
        perft_leaves_per_second: perft,
    })
}

/// Returns the median of a measurement over some runs, whose number it is given.
fn median(runs: u16, mut measure: impl FnMut(u64) -> anyhow::Result<f64>) -> anyhow::Result<f64> {
    let mut results: Vec<f64> = (0..u64::from(runs)).map(&mut measure).collect::<Result<_, _>>()?;
    results.sort_by(f64::total_cmp);
    Ok(results[results.len() / 2])
}

/// Plays random games for `budget`, and returns the games, plies and games per second.
fn play(
    start: &dyn AnyGame,
    seed: u64,
    budget: Duration,
    rollout: bool,
) -> Result<(u64, u64, f64), RateError> {
    let mut random = seeded(seed);
    let mut plies = 0;
    let (games, elapsed) =
        repeat(budget, |batch| plies += black_box(start).random_games(batch, &mut random, rollout));
    // A ply is the least piece of work: its rate must be credible too.
    per_second(black_box(plies), elapsed)?;
    Ok((games, plies, per_second(games, elapsed)?))
}

/// Returns the depth with the most leaves that fits the budget, and its leaves. In short games greater depths have fewer.
fn perft_depth(start: &dyn AnyGame, budget: Duration) -> (u32, u64) {
    let mut best = (1, start.perft(1));
    for depth in 2..=40 {
        let clock = Instant::now();
        let leaves = start.perft(depth);
        let elapsed = clock.elapsed();
        if leaves > best.1 && elapsed <= budget {
            best = (depth, leaves);
        }
        // The next depth takes several times as long.
        if leaves == 0 || elapsed * 5 > budget {
            break;
        }
    }
    best
}

/// Returns the perft leaves per second at a depth, over the budget.
fn leaves_per_second(start: &dyn AnyGame, depth: u32, budget: Duration) -> Result<f64, RateError> {
    let mut leaves = 0;
    let (_, elapsed) = repeat(budget, |batch| {
        for _ in 0..batch {
            leaves += black_box(start).perft(black_box(depth));
        }
    });
    per_second(black_box(leaves), elapsed)
}

/// Repeats some work for `budget`, and returns the number of repetitions and the elapsed time. `work` is given the number
/// of its repetitions until the next look at the clock, whose cost is negligible.
fn repeat(budget: Duration, mut work: impl FnMut(u64)) -> (u64, Duration) {
    let (mut done, mut batch) = (0, 1);
    let clock = Instant::now();
    loop {
        work(batch);
        done += batch;
        let elapsed = clock.elapsed();
        if elapsed >= budget {
            return (done, elapsed);
        }
        batch = if elapsed < budget / 64 { batch * 2 } else { batch };
    }
}
