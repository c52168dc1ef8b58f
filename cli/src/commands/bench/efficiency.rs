//! `agon bench efficiency`: the nodes of ordering stages and algorithms relative to alpha-beta, at equal depth on the same
//! positions; and the depths of minimax and alpha-beta in equal time.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use agon_arena::{Arena, Environment, Opening, SeedPath};
use agon_games::GameSpec;
use agon_search::Limit;
use clap::Args;
use serde::Serialize;

use crate::commands::player::{read_limit, read_player};
use crate::fail::{Outcome, UsageError};
use crate::number::{cores, whole};
use crate::table::{Align, Table, print};

#[derive(Args)]
pub struct Efficiency {
    /// Games with search depths, as in othello=6 [default: five classical games]
    #[arg(value_name = "GAME=DEPTH")]
    games: Vec<String>,
    /// Positions per game, from random games
    #[arg(long, default_value_t = 200, value_parser = whole::<u64>("the number of positions", 1, 100_000), allow_negative_numbers = true)]
    positions: u64,
    /// Limit for the depth comparison of minimax and alpha-beta
    #[arg(long, default_value = "cpu_ms=50")]
    time: String,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// The default games and depths.
const DEFAULT: [(&str, u32); 5] =
    [("connect-four", 10), ("othello", 6), ("kalah", 9), ("checkers", 9), ("chess", 5)];

const ALL: &str = r#""table", "pv", "values", "static", "killers", "history""#;

#[derive(Serialize)]
struct Document {
    positions: u64,
    games: Vec<Game>,
}

#[derive(Serialize)]
struct Game {
    game: String,
    depth: u32,
    /// The nodes of alpha-beta with every stage, the denominator of the ratios.
    reference_nodes: u64,
    ratios: Vec<Ratio>,
    mean_depth_minimax: f64,
    mean_depth_alpha_beta: f64,
}

#[derive(Serialize)]
struct Ratio {
    player: String,
    ratio: f64,
}

/// Returns the players that are compared with alpha-beta with every stage.
fn contestants() -> Vec<(String, String)> {
    let alpha_beta = |order: &str| format!(r#"search = {{ algorithm = "alpha-beta", order = [{order}] }}"#);
    let mut players = Vec::new();
    for stage in ["table", "pv", "values", "static", "killers", "history"] {
        let order: Vec<&str> = ALL.split(", ").filter(|word| word.trim_matches('"') != stage).collect();
        players.push((format!("without {stage}"), alpha_beta(&order.join(", "))));
    }
    let no_table = r#"search = { algorithm = "alpha-beta", table_mb = 0, order = ["pv", "values", "static", "killers", "history"] }"#;
    players.push(("no table at all".to_string(), no_table.to_string()));
    let no_order = r#"search = { algorithm = "alpha-beta", table_mb = 0, order = [] }"#;
    players.push(("nothing".to_string(), no_order.to_string()));
    players.push(("pvs".to_string(), "pvs".to_string()));
    players.push(("mtd(f)".to_string(), "mtd".to_string()));
    let aspiration = r#"search = { algorithm = "alpha-beta", aspiration = 0.5 }"#;
    players.push(("aspiration 0.5".to_string(), aspiration.to_string()));
    players
}

impl Efficiency {
    pub fn run(self) -> Outcome {
        let time = read_limit(&self.time)?;
        let games: Vec<(String, u32)> = if self.games.is_empty() {
            DEFAULT.map(|(name, depth)| (name.to_string(), depth)).to_vec()
        } else {
            self.games.iter().map(|text| parse_game(text)).collect::<Result<_, _>>()?
        };
        let mut document = Document { positions: self.positions, games: Vec::new() };
        for (name, depth) in games {
            let game = GameSpec::parse(&name)?;
            let nodes =
                |player: &str| Ok::<_, anyhow::Error>(self.sum(&game, player, Limit::Depth(depth))?.0);
            let reference_nodes = nodes("alpha-beta")?;
            let mut ratios = Vec::new();
            for (name, player) in contestants() {
                ratios.push(Ratio { player: name, ratio: nodes(&player)? as f64 / reference_nodes as f64 });
            }
            let mean_depth = |player: &str| {
                let (_, depths) = self.sum(&game, player, time)?;
                Ok::<_, anyhow::Error>(depths as f64 / self.positions as f64)
            };
            document.games.push(Game {
                game: game.to_string(),
                depth,
                reference_nodes,
                ratios,
                mean_depth_minimax: mean_depth("minimax")?,
                mean_depth_alpha_beta: mean_depth("alpha-beta")?,
            });
        }
        print(self.json, &document, |out| write_document(&document, out))
    }

    /// Sums the nodes and depths of a player over the positions, on all cores.
    fn sum(&self, game: &GameSpec, player: &str, limit: Limit) -> anyhow::Result<(u64, u64)> {
        let config = read_player(game, player)?.config;
        let next_position = AtomicU64::new(0);
        let work = || -> anyhow::Result<(u64, u64)> {
            let mut arena = Arena::new(game, std::slice::from_ref(&config), Environment::system())?;
            let (mut nodes, mut depths) = (0, 0);
            loop {
                let number = next_position.fetch_add(1, Ordering::Relaxed);
                if number >= self.positions {
                    return Ok((nodes, depths));
                }
                let seed_path = SeedPath { run: 7, bout: number, game: 0 };
                let moves = arena.random_opening(seed_path, 4 + (number % 24) as u32)?;
                let opening = Opening { position: None, moves };
                let record = arena.search(0, &opening, limit, 1, &mut |_| ())?;
                nodes += record.counters.nodes;
                depths += u64::from(record.depth);
            }
        };
        let results: anyhow::Result<Vec<(u64, u64)>> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..cores().get()).map(|_| scope.spawn(work)).collect();
            workers
                .into_iter()
                .map(|worker| worker.join().expect("a thread that searches does not panic"))
                .collect()
        });
        Ok(results?.into_iter().fold((0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1)))
    }
}

/// Parses `othello=6`.
fn parse_game(text: &str) -> Result<(String, u32), UsageError> {
    let pair = text.rsplit_once('=').and_then(|(game, depth)| Some((game.to_string(), depth.parse().ok()?)));
    pair.filter(|(_, depth)| (1..=100).contains(depth))
        .ok_or_else(|| UsageError(format!("`{text}` is not GAME=DEPTH; write for example othello=6")))
}

fn write_document(document: &Document, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "nodes relative to alpha-beta with every stage, {} positions per game",
        document.positions
    )?;
    let mut columns = vec![("", Align::Left)];
    let titles: Vec<String> = document
        .games
        .iter()
        .map(|game| format!("{}, {}", game.game.split(':').next().unwrap_or_default(), game.depth))
        .collect();
    columns.extend(titles.iter().map(|title| (title.as_str(), Align::Right)));
    let mut table = Table::new(&columns);
    for index in 0..contestants().len() {
        let name = document.games.first().map(|game| game.ratios[index].player.clone());
        let ratios = document.games.iter().map(|game| format!("{:.2}", game.ratios[index].ratio));
        table.row(name.into_iter().chain(ratios));
    }
    let depths = |name: &str, depth: fn(&Game) -> f64| {
        std::iter::once(name.to_string())
            .chain(document.games.iter().map(move |game| format!("{:.1}", depth(game))))
    };
    table.row(depths("minimax's depth", |game| game.mean_depth_minimax));
    table.row(depths("alpha-beta's depth", |game| game.mean_depth_alpha_beta));
    table.write(out)
}
