//! `agon engine check`: tests an engine against its protocol, with a verdict a line.
//!
//! Games are played as in a run, so that the checks see what a run sees. A conversation of its own asks what no game asks: `stop`,
//! unknown messages, and how the process ends.

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agon_arena::adjudication::Adjudication;
use agon_arena::engine::{Command, Program, Protocol};
use agon_arena::{
    Arena, EngineConfig, Environment, GameRecord, GameRequest, Opening, PlayerConfig, SeedPath,
};
use agon_games::schema::Choice as _;
use agon_games::{GameSpec, Turn};
use agon_search::Limit;
use agon_worker::Engines;
use clap::Args;

use super::conversation::check_conversation;
use crate::commands::player::{read_limit, read_player};
use crate::fail::{Outcome, bail_usage};
use crate::number::whole;

#[derive(Args)]
pub struct Check {
    /// Command that starts the engine, as in 'gnugo --mode gtp'
    #[arg(value_name = "COMMAND")]
    command: String,
    /// Protocol of the engine
    #[arg(long, value_name = "PROTOCOL", value_parser = ["uci", "gtp", "agon"])]
    protocol: String,
    /// Game: a name, or name:key=value,key=value [default: chess for uci, go for gtp, connect-four for agon]
    #[arg(long, value_name = "GAME")]
    game: Option<String>,
    /// Number of games against random moves
    #[arg(long, default_value_t = 4, value_parser = whole::<u32>("the number of games", 1, 10_000), allow_negative_numbers = true)]
    games: u32,
    /// Limit of each move in them: ms=50, clock_ms=60000,increment_ms=100, ...
    #[arg(long, value_name = "LIMIT", default_value = "ms=50")]
    limit: String,
    /// Milliseconds beyond a limit of time within which a move counts, as the key `grace_ms` of a spec
    #[arg(long, value_name = "MS", default_value_t = 20, value_parser = whole::<u64>("the margin", 0, 60_000), allow_negative_numbers = true)]
    grace_ms: u64,
}

/// The random plies before each game.
const OPENING_PLIES: u32 = 4;

/// A verdict: what was found, or what is wrong.
pub type Verdict = Result<String, String>;

impl Check {
    pub fn run(self) -> Outcome {
        let Some(command) = Command::parse(&self.command) else {
            bail_usage!("COMMAND `{}` has no program, or an open quote", self.command);
        };
        let protocol =
            Protocol::named(&self.protocol).expect("the values of --protocol are those of the type");
        let game = GameSpec::parse(self.game.as_deref().unwrap_or(match protocol {
            Protocol::Uci => "chess",
            Protocol::Gtp => "go",
            Protocol::Agon => "connect-four",
        }))?;
        if let Some(games) = protocol.games()
            && !games.contains(&game.name())
        {
            bail_usage!("--game {game}: the protocol {} is for {}", self.protocol, games.join(" and "));
        }
        let limit = read_limit(&self.limit)?;
        let engine = EngineConfig {
            grace: Duration::from_millis(self.grace_ms),
            ..EngineConfig::new(protocol, Program::Command(command.clone()))
        };
        let player = PlayerConfig::Engine(engine.clone());
        player.check_limit(limit)?;
        let bench = Bench::new(&game, player, engine)?;

        let mut failed = 0;
        let mut report = |name: &str, verdict: Verdict| -> io::Result<bool> {
            let (word, text) = match &verdict {
                Ok(text) => ("ok", text),
                Err(text) => ("FAIL", text),
            };
            failed += u32::from(verdict.is_err());
            let mut out = io::stdout().lock();
            writeln!(out, "{word:<4}  {name:<12}  {text}")?;
            out.flush()?;
            Ok(verdict.is_ok())
        };
        // Without a start nothing else can be checked.
        if report("start", bench.start())? {
            report("games", bench.games(self.games, limit))?;
            // GTP has no command that sets a position with the side to move.
            if protocol != Protocol::Gtp {
                report("position", bench.position(limit))?;
            }
            for (name, limit) in [
                ("time", Limit::Wall(Duration::from_millis(50))),
                (
                    "clock",
                    Limit::Clock { remaining: Duration::from_secs(2), increment: Duration::from_millis(20) },
                ),
                ("nodes", Limit::Nodes(1000)),
                ("depth", Limit::Depth(2)),
            ] {
                if bench.player.check_limit(limit).is_ok() {
                    report(name, bench.limited(limit))?;
                }
            }
            for (name, verdict) in check_conversation(&command, protocol) {
                report(name, verdict)?;
            }
        }
        let verdict = match failed {
            0 => "the engine passes".to_string(),
            1 => "the engine fails 1 check".to_string(),
            count => format!("the engine fails {count} checks"),
        };
        writeln!(io::stdout(), "{verdict}")?;
        Ok(ExitCode::from(u8::from(failed > 0)))
    }
}

/// An engine and a random player at a game.
struct Bench {
    game: GameSpec,
    environment: Environment,
    engine: EngineConfig,
    player: PlayerConfig,
    random: PlayerConfig,
}

impl Bench {
    fn new(game: &GameSpec, player: PlayerConfig, engine: EngineConfig) -> anyhow::Result<Bench> {
        let engines = Engines { any_command: true, ..Engines::default() };
        let environment = Environment { engines: Arc::new(engines), ..Environment::system() };
        let random = read_player(game, "random")?.config;
        Ok(Bench { game: game.clone(), environment, engine, player, random })
    }

    fn arena(&self) -> Result<Arena, String> {
        let players = [self.player.clone(), self.random.clone()];
        Arena::new(&self.game, &players, self.environment.clone()).map_err(|error| error.to_string())
    }

    /// Starts the engine twice, one process after the other.
    fn start(&self) -> Verdict {
        let mut times = Vec::new();
        for _ in 0..2 {
            let started = Instant::now();
            let engines = &self.environment.engines;
            let engine = engines.start(&self.engine, &self.game, &self.environment.control);
            times.push(started.elapsed());
            drop(engine.map_err(|error| error.to_string())?);
        }
        Ok(format!(
            "ready after {:.0} ms, and after {:.0} ms again",
            milliseconds(times[0]),
            milliseconds(times[1])
        ))
    }

    /// Plays games by one process, each from another opening, with the engine in every seat in turn.
    fn games(&self, games: u32, limit: Limit) -> Verdict {
        let mut arena = self.arena()?;
        let (mut moves, mut slowest) = (0, Duration::ZERO);
        for game in 0..games {
            let seed_path = SeedPath { run: 1, bout: u64::from(game), game };
            let opening =
                arena.random_opening(seed_path, OPENING_PLIES).map_err(|error| error.to_string())?;
            let seat = game as usize % arena.seats();
            let record =
                self.play(&mut arena, Opening { position: None, moves: opening }, seat, limit, seed_path)?;
            let times = times(&record);
            moves += times.len();
            slowest = slowest.max(times.into_iter().max().unwrap_or_default());
        }
        let games = if games == 1 { "1 game".to_string() } else { format!("{games} games") };
        Ok(format!("{games}, {moves} legal moves, the slowest after {:.1} ms", milliseconds(slowest)))
    }

    /// Plays a game that starts from another position than the first.
    fn position(&self, limit: Limit) -> Verdict {
        let mut arena = self.arena()?;
        let seed_path = SeedPath { run: 2, bout: 0, game: 0 };
        let line = arena.random_decision(seed_path, OPENING_PLIES).map_err(|error| error.to_string())?;
        let mut position = self.game.start(None).map_err(|error| error.to_string())?;
        position.follow(&line).map_err(|error| error.to_string())?;
        let seat = if let Turn::Player(seat) = position.turn() { seat.index() } else { 0 };
        let text = position.position();
        let opening = Opening { position: Some(text.clone()), moves: String::new() };
        let record = self.play(&mut arena, opening, seat, limit, seed_path)?;
        Ok(format!("{} plies from `{text}`", record.moves.len()))
    }

    /// Plays a game with another limit.
    fn limited(&self, limit: Limit) -> Verdict {
        let mut arena = self.arena()?;
        let seed_path = SeedPath { run: 3, bout: 0, game: 0 };
        let record = self.play(&mut arena, Opening::default(), 0, limit, seed_path)?;
        let times = times(&record);
        let slowest = milliseconds(times.iter().max().copied().unwrap_or_default());
        Ok(match limit {
            Limit::Nodes(nodes) => {
                let counters = record.moves.iter().filter_map(|mv| Some(mv.search.as_ref()?.counters));
                let most = counters.map(|counters| counters.nodes.max(counters.simulations)).max();
                format!("{} moves; at most {} nodes of {nodes}", times.len(), most.unwrap_or(0))
            }
            _ => format!("{} moves, the slowest after {slowest:.1} ms", times.len()),
        })
    }

    /// Plays a game with the engine in one seat. A fault of the engine is an error.
    fn play(
        &self,
        arena: &mut Arena,
        opening: Opening,
        seat: usize,
        limit: Limit,
        seed_path: SeedPath,
    ) -> Result<GameRecord, String> {
        let seats = (0..arena.seats()).map(|other| usize::from(other != seat)).collect();
        let request = GameRequest {
            opening,
            seats,
            limits: vec![limit, Limit::Nodes(1)],
            engines: vec![self.player.margin(), None],
            adjudication: Adjudication::default(),
            seed_path,
        };
        let record = arena.play(&request, &mut |_| ()).map_err(|error| error.to_string())?;
        if record.detail.is_empty() {
            return Ok(record);
        }
        let moves: Vec<&str> = record.moves.iter().map(|mv| mv.mv.as_str()).collect();
        Err(format!("{}: {}; after the moves: {}", record.ending, record.detail, moves.join(" ")))
    }
}

/// Returns the times of the engine's moves.
fn times(record: &GameRecord) -> Vec<Duration> {
    let own = record.moves.iter().filter(|mv| mv.player == Some(0));
    own.filter_map(|mv| Some(mv.search.as_ref()?.time)).collect()
}

pub fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
