//! The time to read and rate a PGN of many games between 50 players, which is generated in memory.

use std::hint::black_box;
use std::io::Write;
use std::time::Instant;

use agon_search::rate::per_second;
use agon_simulation::world::World;
use agon_stats::distribution::seeded;
use agon_stats::elo::{Split, expected_score};
use agon_stats::multinomial::multinomial;
use agon_stats::pool::{Fit, Options};
use serde::Serialize;

use agon::Reading;
use agon::progress::Progress;

/// The number of games of a full measurement.
pub const FULL_GAMES: u64 = 1_000_000;

/// The number of players.
const PLAYERS: usize = 50;

/// The number of measurements; the best counts, since other processes may use the machine.
const RUNS: usize = 5;

/// The times on one thread.
#[derive(Serialize)]
pub struct Speed {
    pub games: u64,
    pub players: usize,
    pub megabytes: f64,
    pub read_seconds: f64,
    pub fit_seconds: f64,
    pub interval_milliseconds: f64,
}

/// Generates a PGN of this many games: a round-robin with both seats of each opening.
pub fn pgn(games: u64) -> Vec<u8> {
    let world = World::ladder(PLAYERS, 10.0);
    let mut random = seeded(games, 0);
    let mut text = Vec::with_capacity(games as usize * 64);
    let mut written = 0;
    'rounds: for round in 0.. {
        let opening = world.openings[round % world.openings.len()];
        for (one, other) in (0..PLAYERS).flat_map(|one| (one + 1..PLAYERS).map(move |other| (one, other))) {
            for (white, black) in [(one, other), (other, one)] {
                if written == games {
                    break 'rounds;
                }
                written += 1;
                let lead = world.ratings[white] - world.ratings[black] + world.seat_advantage + opening;
                let split = Split::at(expected_score(lead), world.draw_rate);
                let drawn = multinomial(&mut random, 1, &[split.win, split.draw, split.loss]);
                let result = if drawn[0] == 1 {
                    "1-0"
                } else if drawn[1] == 1 {
                    "1/2-1/2"
                } else {
                    "0-1"
                };
                write!(
                    text,
                    "[White \"p{white}\"]\n[Black \"p{black}\"]\n[Result \"{result}\"]\n\n{result}\n\n"
                )
                .expect("writing to memory does not fail");
            }
        }
    }
    text
}

/// Reads and rates a PGN of this many games.
pub fn measure(games: u64) -> anyhow::Result<Speed> {
    let text = pgn(games);
    let mut speed = Speed {
        games,
        players: PLAYERS,
        megabytes: text.len() as f64 / 1e6,
        read_seconds: f64::INFINITY,
        fit_seconds: f64::INFINITY,
        interval_milliseconds: f64::INFINITY,
    };
    for _ in 0..RUNS {
        let start = Instant::now();
        let mut reading = Reading::default();
        reading.pgn(black_box(text.as_slice()), "a PGN in memory", &Progress::default())?;
        speed.read_seconds = speed.read_seconds.min(games as f64 / per_second(games, start.elapsed())?);
        let start = Instant::now();
        let fit = Fit::new(&reading.counts.results(), &Options::default())?;
        speed.fit_seconds = speed.fit_seconds.min(1.0 / per_second(1, start.elapsed())?);
        let start = Instant::now();
        black_box(fit.standings(&fit.uncertainty()));
        speed.interval_milliseconds = speed.interval_milliseconds.min(1e3 / per_second(1, start.elapsed())?);
    }
    Ok(speed)
}
