//! `agon engine serve`: a player behind a protocol of engines.
//!
//! One thread reads, one searches, and the main thread handles their events one after the other: it alone writes and changes
//! the state of the protocol. The arena moves into the search thread and comes back with the result.

use std::collections::VecDeque;
use std::io::{self, BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Instant;

use agon_arena::defaults::default_player;
use agon_arena::{
    Arena, Environment, IterationRecord, Opening, PlayError, PlayerConfig, SearchConfig, SearchRecord,
    SeedPath,
};
use agon_games::GameSpec;
use agon_search::Limit;
use anyhow::anyhow;
use clap::{Args, ValueEnum};

use super::{bot, gtp, uci};
use crate::commands::player::{read_limit, read_player};
use crate::fail::{Outcome, bail_usage};
use crate::number::whole;

#[derive(Args)]
pub struct Serve {
    /// Protocol: uci for chess, gtp for go and othello, agon for every game
    #[arg(long, value_enum)]
    protocol: Protocol,
    /// Player: an algorithm, or TOML such as 'search = { algorithm = "uct", c = 1.2 }' [default: the game's default
    /// player, as in `agon list-games GAME`]
    #[arg(long, value_name = "PLAYER")]
    player: Option<String>,
    /// Game: a name, or name:key=value,key=value [default: chess for uci, go for gtp; in the protocol agon the other side
    /// names it]
    #[arg(long, value_name = "GAME")]
    game: Option<String>,
    /// Limit of each move, regardless of the other side's clock (gtp): ms=500, nodes=1000, ...
    #[arg(long, value_name = "LIMIT")]
    limit: Option<String>,
    /// Seed of randomised searches
    #[arg(long, default_value_t = 1, value_parser = whole::<u64>("the seed", 0, u64::MAX), allow_negative_numbers = true)]
    seed: u64,
}

/// The protocols.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Protocol {
    Uci,
    Gtp,
    Agon,
}

impl Serve {
    pub fn run(self) -> Outcome {
        let (sender, events) = channel();
        let engine = Engine::new(self.seed, sender.clone());
        let limit = self.limit.as_deref().map(read_limit).transpose()?;
        if limit.is_some() && self.protocol != Protocol::Gtp {
            bail_usage!(
                "--limit: in this protocol the other side gives the limit of each move; leave it out"
            );
        }
        let protocol: Box<dyn Served> = match self.protocol {
            Protocol::Uci => {
                let (game, player) = self.seated("chess:ply_limit=10000")?;
                if game.name() != "chess" {
                    bail_usage!("--game {game}: the protocol uci is for chess; give --protocol agon");
                }
                Box::new(uci::Uci::new(&game, player)?)
            }
            Protocol::Gtp => {
                let (game, player) = self.seated("go")?;
                if !["go", "othello"].contains(&game.name()) {
                    bail_usage!(
                        "--game {game}: the protocol gtp is for go and othello; give --protocol agon"
                    );
                }
                if matches!(limit, Some(Limit::Clock { .. })) {
                    bail_usage!("--limit: the other side keeps the clock; give ms, cpu_ms, nodes or depth");
                }
                if let Some(limit) = limit {
                    PlayerConfig::Search(player.clone()).check_limit(limit)?;
                }
                Box::new(gtp::Gtp::new(game, player, limit)?)
            }
            Protocol::Agon => Box::new(bot::Bot::new(self.game.as_deref(), self.player.as_deref())?),
        };
        std::thread::spawn(move || read_lines(&sender));
        serve(protocol, engine, &events)?;
        Ok(ExitCode::SUCCESS)
    }

    /// Returns the game and its player.
    fn seated(&self, otherwise: &str) -> anyhow::Result<(GameSpec, SearchConfig)> {
        let game = GameSpec::parse(self.game.as_deref().unwrap_or(otherwise))?;
        let player = read_search(&game, self.player.as_deref().unwrap_or_else(|| default_player(&game)))?;
        Ok((game, player))
    }
}

/// Parses a player that is a search of Agon.
pub fn read_search(game: &GameSpec, text: &str) -> anyhow::Result<SearchConfig> {
    match read_player(game, text)?.config {
        PlayerConfig::Search(search) => Ok(search),
        PlayerConfig::Engine(engine) => {
            bail_usage!("--player: `{}` is an engine already; name an algorithm of Agon", engine.name())
        }
    }
}

/// Whether the engine goes on after an input.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    Continue,
    Quit,
}

/// The state of a protocol. An input is a line, or nothing for the end of the input.
pub trait Served {
    /// Handles an input while no search runs.
    fn input(&mut self, line: Option<&str>, engine: &mut Engine) -> anyhow::Result<Flow>;

    /// Handles an input that cannot wait for the end of the search; returns none for one that can. After [`Flow::Quit`]
    /// the engine quits when the search has ended.
    fn urgent(&mut self, _line: Option<&str>, _engine: &mut Engine) -> anyhow::Result<Option<Flow>> {
        Ok(None)
    }

    /// Handles a completed iteration.
    fn iteration(&mut self, _iteration: &IterationRecord) -> anyhow::Result<()> {
        Ok(())
    }

    /// Handles the end of a search. The next input waits while [`Served::holds`].
    fn found(&mut self, record: &SearchRecord, engine: &mut Engine) -> anyhow::Result<()>;

    /// Returns whether an answer is held back until an urgent input releases it.
    fn holds(&self) -> bool {
        false
    }
}

/// An event of the engine.
pub enum Event {
    /// A line of input; none at its end.
    Input(Option<String>),
    /// A completed iteration.
    Iteration(IterationRecord),
    /// The end of a search; nothing if the search panicked.
    Found(Option<Box<Found>>),
}

/// The end of a search.
pub struct Found {
    arena: Arena,
    record: Result<SearchRecord, PlayError>,
}

/// A search to be done.
pub struct Job {
    /// The position.
    pub line: Opening,
    /// The limit.
    pub limit: Limit,
    /// A further limit of depth.
    pub depth: Option<u32>,
    /// A further limit of time.
    pub deadline: Option<Instant>,
}

impl Job {
    /// Creates a search with one limit.
    pub fn new(line: Opening, limit: Limit) -> Job {
        Job { line, limit, depth: None, deadline: None }
    }
}

/// A player that searches in a thread of its own.
pub struct Engine {
    environment: Environment,
    events: Sender<Event>,
    seed: SeedPath,
    /// None before the first game and during a search.
    arena: Option<Arena>,
    is_searching: bool,
    deadline: Option<Instant>,
}

impl Engine {
    fn new(seed: u64, events: Sender<Event>) -> Engine {
        let seed = SeedPath { run: seed, bout: 0, game: 0 };
        let environment = Environment::system();
        Engine { environment, events, seed, arena: None, is_searching: false, deadline: None }
    }

    /// Seats a player at a game.
    pub fn seat(&mut self, game: &GameSpec, player: &SearchConfig) -> anyhow::Result<()> {
        let players = [PlayerConfig::Search(player.clone())];
        self.arena = Some(Arena::new(game, &players, self.environment.clone())?);
        Ok(())
    }

    /// Returns whether a player is seated and no search runs.
    pub fn is_seated(&self) -> bool {
        self.arena.is_some()
    }

    /// Forgets what was learnt in the game so far.
    pub fn new_game(&mut self) {
        if let Some(arena) = &mut self.arena {
            arena.new_game();
        }
    }

    /// Starts a search. Precondition: a player is seated and no search runs.
    pub fn search(&mut self, job: Job) {
        let mut arena = self.arena.take().expect("a player is seated and no search runs");
        self.environment.control.resume();
        (self.is_searching, self.deadline) = (true, job.deadline);
        let (control, events) = (self.environment.control.clone(), self.events.clone());
        let ply = job.line.moves.split_ascii_whitespace().count() as u32;
        let seed = self.seed.ply_seed(ply);
        std::thread::spawn(move || {
            let mut report = |iteration: &IterationRecord| {
                if job.depth.is_some_and(|depth| iteration.depth >= depth) {
                    control.interrupt();
                }
                // The main thread ends the process before it drops the receiver.
                let _ = events.send(Event::Iteration(iteration.clone()));
            };
            let found = catch_unwind(AssertUnwindSafe(|| {
                let record = arena.search_next(0, &job.line, job.limit, seed, &mut report);
                Box::new(Found { arena, record })
            }));
            let _ = events.send(Event::Found(found.ok()));
        });
    }

    /// Ends the search, which then answers with the best move so far.
    pub fn interrupt(&self) {
        self.environment.control.interrupt();
    }

    fn finish(&mut self, found: Option<Box<Found>>) -> anyhow::Result<SearchRecord> {
        (self.is_searching, self.deadline) = (false, None);
        let found = *found.ok_or_else(|| anyhow!("the search failed; the message above says why"))?;
        self.arena = Some(found.arena);
        Ok(found.record?)
    }
}

/// Writes a line and flushes it.
pub fn say(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

fn read_lines(events: &Sender<Event>) {
    let mut input = io::stdin().lock();
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let line = match input.read_until(b'\n', &mut bytes) {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(String::from_utf8_lossy(&bytes).trim_end().to_string()),
        };
        let is_end = line.is_none();
        if events.send(Event::Input(line)).is_err() || is_end {
            return;
        }
    }
}

/// Handles events until the other side quits.
fn serve(mut protocol: Box<dyn Served>, mut engine: Engine, events: &Receiver<Event>) -> anyhow::Result<()> {
    let mut waiting: VecDeque<Option<String>> = VecDeque::new();
    loop {
        while !engine.is_searching && !protocol.holds() {
            let Some(line) = waiting.pop_front() else { break };
            if protocol.input(line.as_deref(), &mut engine)? == Flow::Quit {
                return Ok(());
            }
        }
        let event = match engine.deadline {
            None => events.recv().map_err(RecvTimeoutError::from),
            Some(deadline) => events.recv_timeout(deadline.saturating_duration_since(Instant::now())),
        };
        match event {
            Ok(Event::Input(line)) => {
                let is_busy = engine.is_searching || protocol.holds();
                let handled = if is_busy { protocol.urgent(line.as_deref(), &mut engine)? } else { None };
                match handled {
                    None => waiting.push_back(line),
                    Some(Flow::Continue) => {}
                    Some(Flow::Quit) => waiting = VecDeque::from([None]),
                }
            }
            Ok(Event::Iteration(iteration)) => protocol.iteration(&iteration)?,
            Ok(Event::Found(found)) => {
                let record = engine.finish(found)?;
                protocol.found(&record, &mut engine)?;
            }
            Err(RecvTimeoutError::Timeout) => {
                engine.interrupt();
                engine.deadline = None;
            }
            Err(RecvTimeoutError::Disconnected) => unreachable!("the engine holds a sender"),
        }
    }
}
