//! `agon bench search`: the speed of each algorithm on each fitting game, and one signature over all counters.
//!
//! The signature does not depend on the clock, threads or the machine. Any change of a search or a rule changes it.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use agon_arena::algorithms::fitting;
use agon_arena::signature::sign;
use agon_arena::{Arena, Environment, LimitUnit, Opening, SeedPath};
use agon_games::{GAMES, GameSpec};
use agon_search::Limit;
use agon_search::rate::per_second;
use clap::Args;
use serde::Serialize;

use crate::commands::player::read_player;
use crate::fail::Outcome;
use crate::number::whole;
use crate::table::{Align, Table, print, rate};

#[derive(Args)]
pub struct Search {
    /// Games to search [default: all; games of many seats with the fewest and the most]
    #[arg(value_name = "GAME")]
    games: Vec<String>,
    /// Nodes per search; a hundredth as many simulations for sampling algorithms
    #[arg(long, default_value_t = 20_000, value_parser = whole::<u64>("the number of nodes", 100, 1_000_000_000), allow_negative_numbers = true)]
    nodes: u64,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Document {
    searches: Vec<Line>,
    signature: String,
}

#[derive(Serialize)]
struct Line {
    game: String,
    algorithm: &'static str,
    nodes: u64,
    depth: u32,
    simulations: u64,
    nodes_per_second: f64,
}

/// The plies before the positions that each algorithm searches.
const OPENINGS: [u32; 3] = [0, 7, 16];

impl Search {
    pub fn run(self) -> Outcome {
        let games = if self.games.is_empty() { all_games() } else { self.games.clone() };
        let mut lines = Vec::new();
        let mut signature = 0;
        for name in &games {
            let game = GameSpec::parse(name)?;
            let info =
                GAMES.iter().find(|info| info.name == game.name()).expect("a GameSpec names a listed game");
            for algorithm in fitting(info, game.parameters().seats()) {
                let config = read_player(&game, algorithm.name)?.config;
                let limit = Limit::Nodes(match algorithm.limit_unit {
                    LimitUnit::Nodes => self.nodes,
                    LimitUnit::Simulations => self.nodes / 100,
                });
                let mut arena = Arena::new(&game, &[config], Environment::system())?;
                let mut line = Line {
                    game: name.clone(),
                    algorithm: algorithm.name,
                    nodes: 0,
                    depth: 0,
                    simulations: 0,
                    nodes_per_second: 0.0,
                };
                let mut elapsed = Duration::ZERO;
                for (number, plies) in OPENINGS.into_iter().enumerate() {
                    let opening = opening(&arena, number as u64, plies);
                    let clock = Instant::now();
                    let record = arena.search(0, &opening, limit, 1, &mut |_| ())?;
                    elapsed += clock.elapsed();
                    line.nodes += record.counters.nodes;
                    line.depth = line.depth.max(record.depth);
                    line.simulations += record.counters.simulations;
                    signature = sign(signature, &record);
                }
                line.nodes_per_second = per_second(line.nodes, elapsed)?;
                lines.push(line);
            }
        }
        let document = Document { searches: lines, signature: format!("{signature:016x}") };
        print(self.json, &document, |out| write_document(&document, out))
    }
}

/// Returns every game; those of many seats with the fewest and the most.
fn all_games() -> Vec<String> {
    GAMES
        .iter()
        .flat_map(|info| match info.seats {
            [first, .., last] => {
                vec![format!("{}:seats={first}", info.name), format!("{}:seats={last}", info.name)]
            }
            _ => vec![info.name.to_string()],
        })
        .collect()
}

/// Returns a random opening before a decision of a player.
fn opening(arena: &Arena, number: u64, plies: u32) -> Opening {
    let seed_path = SeedPath { run: 1, bout: number, game: 0 };
    // A game may end before this number of plies: then take the first decision.
    let moves = arena.random_decision(seed_path, plies).or_else(|_| arena.random_decision(seed_path, 0));
    Opening { position: None, moves: moves.unwrap_or_default() }
}

fn write_document(document: &Document, out: &mut impl Write) -> io::Result<()> {
    let columns = [
        ("game", Align::Left),
        ("algorithm", Align::Left),
        ("depth", Align::Right),
        ("nodes", Align::Right),
        ("nodes/s", Align::Right),
    ];
    let mut table = Table::new(&columns);
    for line in &document.searches {
        table.row([
            line.game.clone(),
            line.algorithm.to_string(),
            if line.depth > 0 { line.depth.to_string() } else { "-".to_string() },
            line.nodes.to_string(),
            rate(line.nodes_per_second),
        ]);
    }
    table.write(out)?;
    writeln!(out, "\nsignature {}", document.signature)
}
