//! `agon bench games`: random games and perft leaves a second, one thread, the median of several runs.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use agon_games::random::seeded;
use agon_games::{AnyGame, GAMES, GameSpec};
use clap::Args;
use serde::Serialize;

use crate::fail::Outcome;
use crate::number::whole;
use crate::table::{Align, Table, rate, write_json};

/// The arguments of `agon bench games`.
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
    /// Runs the command.
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
        let mut out = io::stdout().lock();
        if self.json {
            write_json(&Document { games: speeds }, &mut out)?;
        } else {
            write_table(&speeds, &mut out)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn write_table(speeds: &[Speed], out: &mut impl Write) -> io::Result<()> {
    let columns = [
        ("game", Align::Left),
        ("games/s", Align::Right),
        ("plies", Align::Right),
        ("ns/ply", Align::Right),
        ("rollouts/s", Align::Right),
        ("perft", Align::Right),
        ("leaves/s", Align::Right),
    ];
    let mut table = Table::new(&columns);
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
        let (played, moves, rate) = play(start, run, budget, false);
        games += played;
        plies += moves;
        rate
    });
    let rollouts = median(runs, |run| play(start, run, budget, true).2);
    let (depth, leaves) = perft_depth(start, budget);
    let perft = median(runs, |_| leaves as f64 * perft_walks(start, depth, budget));
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

fn median(runs: u16, mut measure: impl FnMut(u64) -> f64) -> f64 {
    let mut figures: Vec<f64> = (0..u64::from(runs)).map(&mut measure).collect();
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// Plays random games for `budget`: how many, how many plies, how many a second.
fn play(start: &dyn AnyGame, seed: u64, budget: Duration, rollout: bool) -> (u64, u64, f64) {
    let mut random = seeded(seed);
    let (mut games, mut plies) = (0, 0);
    let clock = Instant::now();
    let mut batch = 1;
    loop {
        plies += start.random_games(batch, &mut random, rollout);
        games += batch;
        let elapsed = clock.elapsed();
        if elapsed >= budget {
            return (games, plies, games as f64 / elapsed.as_secs_f64());
        }
        // Reading the clock must not cost what a game of nim does.
        batch = if elapsed < budget / 64 { batch * 2 } else { batch };
    }
}

/// The perft with the most leaves among the depths that fit the budget, and its leaves. Where games are short, the
/// deepest has but a few: most lines have ended before.
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

/// How often a second the tree of that depth is walked, over as many walks as fill the budget.
fn perft_walks(start: &dyn AnyGame, depth: u32, budget: Duration) -> f64 {
    let mut walks = 0u64;
    let mut batch = 1;
    let clock = Instant::now();
    loop {
        for _ in 0..batch {
            // Hidden, so that a walk whose answer is known is not left out.
            std::hint::black_box(std::hint::black_box(start).perft(depth));
        }
        walks += batch;
        let elapsed = clock.elapsed();
        if elapsed >= budget {
            return walks as f64 / elapsed.as_secs_f64();
        }
        // Reading the clock must not cost what a small tree does.
        batch = if elapsed < budget / 64 { batch * 2 } else { batch };
    }
}
