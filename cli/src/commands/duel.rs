//! `agon duel`: a quick series on this machine, without a coordinator and a dataset; or, given players instead of a game, a
//! recorded run without a spec file.

mod recorded;

use std::io::{self, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use agon_arena::{Adjudication, Arena, Environment, GameRecord, Opening, PlayerConfig, Roster, SeedPath};
use agon_games::GameSpec;
use clap::Args;
use serde::Serialize;

use self::recorded::Recorded;
use super::player::{NamedPlayer, read_limit, read_player};
use crate::fail::{Outcome, bail_usage};
use crate::number::{Threads, whole};
use crate::progress::Progress;
use crate::table::{Table, percent, print, rate};

#[derive(Args)]
pub struct Duel {
    /// A game, or two or more players of a recorded run: names of --engine, algorithms, or TOML as of --player
    #[arg(value_name = "GAME | PLAYER", required = true)]
    what: Vec<String>,
    /// Algorithms with default options, separated by commas
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    players: Vec<String>,
    /// Another player: an algorithm, or TOML such as 'search = { algorithm = "uct", c = 1.2 }'
    #[arg(long = "player", value_name = "PLAYER")]
    more: Vec<String>,
    /// Minimum number of games, of each pairing in a recorded run; each bout plays one opening in every rotation of the
    /// seats [default: 20, with --sprt at most 40000]
    #[arg(long, value_parser = whole::<u64>("the number of games", 1, 10_000_000), allow_negative_numbers = true)]
    games: Option<u64>,
    /// Limit per move: ms=50, cpu_ms=50, nodes=1000, depth=6 or clock_ms=60000,increment_ms=100 [default: ms=50]
    #[arg(long, value_name = "LIMIT", group = "limits")]
    limit: Option<String>,
    /// Random plies in each opening [default: 4]
    #[arg(long, value_parser = whole::<u32>("the number of random plies", 0, 1000), allow_negative_numbers = true)]
    random_plies: Option<u32>,
    /// Seed of openings, chance and searches
    #[arg(long, default_value_t = 1, value_parser = whole::<u64>("the seed", 0, i64::MAX as u64), allow_negative_numbers = true)]
    seed: u64,
    #[command(flatten)]
    threads: Threads,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    recorded: Recorded,
}

#[derive(Serialize)]
struct Document {
    game: String,
    games: u64,
    players: Vec<Line>,
}

/// The results and search statistics of a player.
#[derive(Serialize, Clone, Default)]
struct Line {
    name: String,
    games: u64,
    wins: u64,
    draws: u64,
    losses: u64,
    score: f64,
    mean_payoff: f64,
    moves: u64,
    nodes: u64,
    mean_depth: f64,
    nodes_per_second: f64,
    #[serde(skip)]
    payoffs: i64,
    #[serde(skip)]
    points: f64,
    #[serde(skip)]
    depths: u64,
    #[serde(skip)]
    seconds: f64,
}

impl Duel {
    pub fn run(self) -> Outcome {
        let [game] = &self.what[..] else { return self.run_recorded() };
        if let Some(option) = self.recorded.given() {
            bail_usage!(
                "--{option} is for a recorded run between players, as in `agon duel pvs uct --game {game} --{option} ...`; \
                 `agon duel {game}` records nothing"
            );
        }
        let game = GameSpec::parse(game)?;
        let limit = read_limit(self.limit.as_deref().unwrap_or("ms=50"))?;
        let named: Vec<NamedPlayer> = self
            .players
            .iter()
            .chain(&self.more)
            .map(|text| read_player(&game, text.trim()))
            .collect::<Result<_, _>>()?;
        if named.len() < 2 {
            bail_usage!("a duel needs two players or more; give for example --players pvs,uct");
        }
        let configs: Vec<PlayerConfig> = named.iter().map(|player| player.config.clone()).collect();
        let margins: Vec<_> = configs.iter().map(PlayerConfig::margin).collect();
        let seats = game.parameters().seats();
        let roster = Roster::round_robin(seats, named.len())?;
        let bouts = roster.bouts_for(self.games.unwrap_or(20));
        let lines = Mutex::new(empty_lines(&named));
        let next_bout = AtomicU64::new(0);
        // Report an invalid configuration once, not in each thread.
        Arena::new(&game, &configs, Environment::system())?;
        let progress = Progress::default();
        let play = || -> anyhow::Result<()> {
            let mut arena = Arena::new(&game, &configs, Environment::system())?;
            loop {
                let bout = next_bout.fetch_add(1, Ordering::Relaxed);
                if bout >= bouts {
                    return Ok(());
                }
                let numbered = roster.bout(bout);
                let seed_path = SeedPath { run: self.seed, bout: numbered.opening, game: 0 };
                let moves = arena.random_opening(seed_path, self.random_plies.unwrap_or(4))?;
                let planned = numbered.with_opening(Opening { position: None, moves });
                for game in planned.games(
                    self.seed,
                    vec![limit; configs.len()],
                    margins.clone(),
                    Adjudication::default(),
                ) {
                    let record = arena.play(&game, &mut |_| ())?;
                    count(&mut lines.lock().expect("no thread panicked"), &record);
                    progress.show(|| format!("{} of {bouts} bouts", bout + 1));
                }
            }
        };
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..self.threads.count().get()).map(|_| scope.spawn(play)).collect();
            workers
                .into_iter()
                .try_for_each(|worker| worker.join().expect("a thread that plays does not panic"))
        })?;
        drop(progress);
        let mut lines = lines.into_inner().expect("no thread panicked");
        lines.iter_mut().for_each(Line::sum_up);
        // Each game counts once for each of its seats.
        let games = lines.iter().map(|line| line.games).sum::<u64>() / seats as u64;
        let document = Document { game: game.to_string(), games, players: lines };
        print(self.json, &document, |out| write_document(&document, out))
    }
}

/// Creates a line for each player; players of the same name get numbers.
fn empty_lines(named: &[NamedPlayer]) -> Vec<Line> {
    let name = |index: usize| {
        let same = |other: &&NamedPlayer| other.name == named[index].name;
        if named.iter().filter(same).count() == 1 {
            return named[index].name.clone();
        }
        format!("{} #{}", named[index].name, named[..=index].iter().filter(same).count())
    };
    (0..named.len()).map(|index| Line { name: name(index), ..Line::default() }).collect()
}

fn count(lines: &mut [Line], record: &GameRecord) {
    let even = record.payoffs.iter().sum::<i32>() as f64 / record.payoffs.len() as f64;
    let best = record.payoffs.iter().copied().max().unwrap_or(0);
    for (seat, &player) in record.players.iter().enumerate() {
        let payoff = record.payoffs[seat];
        let line = &mut lines[player];
        line.games += 1;
        line.payoffs += i64::from(payoff);
        let shared = record.payoffs.iter().filter(|&&other| other == best).count() > 1;
        match f64::from(payoff).total_cmp(&even) {
            std::cmp::Ordering::Greater if !shared || record.payoffs.len() == 2 => line.wins += 1,
            std::cmp::Ordering::Less => line.losses += 1,
            _ => line.draws += 1,
        }
        // The points against each other player: 1 for a higher payoff, 1/2 for an equal one.
        let others = record.payoffs.iter().zip(&record.players).filter(|(_, other)| **other != player);
        let points: Vec<f64> = others
            .map(|(&other, _)| match payoff.cmp(&other) {
                std::cmp::Ordering::Greater => 1.0,
                std::cmp::Ordering::Equal => 0.5,
                std::cmp::Ordering::Less => 0.0,
            })
            .collect();
        line.points += points.iter().sum::<f64>() / points.len().max(1) as f64;
    }
    for mv in &record.moves {
        if let (Some(player), Some(search)) = (mv.player, &mv.search) {
            let line = &mut lines[player];
            line.moves += 1;
            line.nodes += search.counters.nodes;
            line.depths += u64::from(search.depth);
            line.seconds += search.time.as_secs_f64();
        }
    }
}

impl Line {
    fn sum_up(&mut self) {
        let games = self.games.max(1) as f64;
        self.score = self.points / games;
        self.mean_payoff = self.payoffs as f64 / games;
        self.mean_depth = self.depths as f64 / self.moves.max(1) as f64;
        self.nodes_per_second = if self.seconds > 0.0 { self.nodes as f64 / self.seconds } else { 0.0 };
    }
}

fn write_document(document: &Document, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{}: {} games", document.game, document.games)?;
    let numbers = ["games", "won", "drawn", "lost", "score", "payoff", "depth", "nodes/move", "nodes/s"];
    let mut table =
        Table::of_numbers("player", &numbers).optional(&["nodes/s", "payoff", "depth", "nodes/move"]);
    for line in &document.players {
        table.row([
            line.name.clone(),
            line.games.to_string(),
            line.wins.to_string(),
            line.draws.to_string(),
            line.losses.to_string(),
            percent(line.score),
            format!("{:+.2}", line.mean_payoff),
            format!("{:.1}", line.mean_depth),
            rate(line.nodes as f64 / line.moves.max(1) as f64),
            rate(line.nodes_per_second),
        ]);
    }
    table.write(out)
}
