//! The universal chess interface (April 2006), without pondering and Chess960.
//!
//! Chess ends by Agon's rules in draws that others only allow to be claimed. A game that goes on after a threefold repetition
//! or fifty moves is searched from that position without its past.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use agon_arena::algorithms::LimitUnit;
use agon_arena::{IterationRecord, Opening, PlayerConfig, SearchConfig, SearchRecord};
use agon_games::{AnyGame, GameSpec, Turn};
use agon_search::value::MAX_PLY;
use agon_search::{Limit, Proof, Value};

use super::options;
use super::serve::{Engine, Flow, Job, Served, say};

/// The option that reserves time for the way of messages, as other engines call it.
const OVERHEAD: &str = "Move Overhead";
/// Its default and its greatest value, in milliseconds.
const OVERHEAD_MS: u64 = 10;
const GREATEST_OVERHEAD_MS: u64 = 5000;
/// The time for a move if the player does not support the limit.
const SUBSTITUTE: Duration = Duration::from_secs(1);
/// The moves to which a clock is spread at most.
const HORIZON: u32 = 30;
/// The greatest score in centipawns that is not a mate.
const GREATEST_CENTIPAWNS: f64 = 20_000.0;

pub struct Uci {
    game: GameSpec,
    /// The player with the options as they were set.
    player: SearchConfig,
    /// The player that sits at the board; none before the first search.
    seated: Option<SearchConfig>,
    /// Whether options were set that the seated player does not have yet.
    is_changed: bool,
    overhead: Duration,
    line: Opening,
    position: Box<dyn AnyGame>,
    /// Whether the running search must not answer before `stop`.
    is_infinite: bool,
    /// The answer that waits for `stop`.
    held: Option<String>,
    /// Nodes and time of the completed iterations of the running search.
    spent: (u64, Duration),
}

impl Uci {
    pub fn new(game: &GameSpec, player: SearchConfig) -> anyhow::Result<Uci> {
        Ok(Uci {
            game: game.clone(),
            player,
            seated: None,
            is_changed: true,
            overhead: Duration::from_millis(OVERHEAD_MS),
            line: Opening::default(),
            position: game.start(None)?,
            is_infinite: false,
            held: None,
            spent: (0, Duration::ZERO),
        })
    }

    fn declare(&self) -> anyhow::Result<()> {
        say(&format!("id name Agon {} ({})", env!("CARGO_PKG_VERSION"), self.player.algorithm.name))?;
        say("id author the Agon developers")?;
        for option in options::uci_declarations(&self.player) {
            say(&option)?;
        }
        say(&format!(
            "option name {OVERHEAD} type spin default {OVERHEAD_MS} min 0 max {GREATEST_OVERHEAD_MS}"
        ))?;
        Ok(say("uciok")?)
    }

    fn set_option(&mut self, words: &[&str]) -> Result<(), String> {
        let value_at = words.iter().position(|word| *word == "value").unwrap_or(words.len());
        if words.first() != Some(&"name") || value_at < 2 {
            return Err("write setoption name NAME value VALUE".to_string());
        }
        let name = words[1..value_at].join(" ");
        let text = words.get(value_at + 1..).unwrap_or_default().join(" ");
        if name.eq_ignore_ascii_case(OVERHEAD) {
            let milliseconds = text.parse().ok().filter(|ms| *ms <= GREATEST_OVERHEAD_MS);
            let milliseconds = milliseconds.ok_or_else(|| {
                format!("`{OVERHEAD}` must be a whole number from 0 to {GREATEST_OVERHEAD_MS}")
            })?;
            self.overhead = Duration::from_millis(milliseconds);
            return Ok(());
        }
        options::set_uci(&mut self.player, &name, &text)?;
        self.is_changed = true;
        Ok(())
    }

    /// Seats the player with the options that were set. They are checked together, since they may come in any order.
    fn seat(&mut self, engine: &mut Engine) -> anyhow::Result<()> {
        if !std::mem::take(&mut self.is_changed) {
            return Ok(());
        }
        if let Err(reason) = options::check(&self.game, &self.player)
            && let Some(seated) = &self.seated
        {
            complain(&format!("{reason}; the options stay as they were"))?;
            self.player = seated.clone();
            return Ok(());
        }
        self.seated = Some(self.player.clone());
        engine.seat(&self.game, &self.player)
    }

    /// Reads `startpos` or `fen FEN`, then optionally `moves` and moves.
    fn set_position(&mut self, words: &[&str]) -> Result<(), String> {
        let moves_at = words.iter().position(|word| *word == "moves").unwrap_or(words.len());
        let fen = match words.first() {
            Some(&"startpos") => None,
            Some(&"fen") => Some(normal_fen(&words[1..moves_at])),
            _ => return Err("write position startpos, or position fen FEN, and moves MOVES".to_string()),
        };
        let position = self.game.start(fen.as_deref()).map_err(|error| error.to_string())?;
        let mut read =
            Read { game: &self.game, line: Opening { position: fen, moves: String::new() }, position };
        for (index, word) in words.iter().skip(moves_at + 1).enumerate() {
            read.go_on()?;
            let mv = read.position.play(index + 1, word).map_err(|error| error.to_string())?;
            if !read.line.moves.is_empty() {
                read.line.moves.push(' ');
            }
            read.line.moves.push_str(&mv);
        }
        read.go_on()?;
        (self.line, self.position) = (read.line, read.position);
        Ok(())
    }

    fn go(&mut self, words: &[&str], engine: &mut Engine) -> anyhow::Result<()> {
        self.seat(engine)?;
        let Turn::Player(seat) = self.position.turn() else {
            let score = if self.position.ending() == Some("checkmate") { "mate 0" } else { "cp 0" };
            say(&format!("info depth 0 score {score}"))?;
            return Ok(say("bestmove (none)")?);
        };
        let go = Go::read(words, seat.index()).unwrap_or_else(|word| {
            // Whatever the call says, the other side waits for a move.
            let _ = complain(&format!("`{word}` is not understood in go; this move takes one second"));
            Go { time: Some(SUBSTITUTE), ..Go::default() }
        });
        self.is_infinite = go.is_infinite();
        self.spent = (0, Duration::ZERO);
        let mut job = go.job(self.line.clone(), self.overhead);
        if let Err(error) = PlayerConfig::Search(self.player.clone()).check_limit(job.limit) {
            complain(&format!("{error}; this move takes one second"))?;
            job.limit = Limit::Wall(SUBSTITUTE);
        }
        engine.search(job);
        Ok(())
    }

    fn score(&self, value: Value) -> String {
        // A mate is counted in moves of the side that mates or is mated.
        let centipawns = match value.proof {
            Some(Proof::Win(plies)) => return format!("mate {}", plies.div_ceil(2)),
            Some(Proof::Loss(plies)) => return format!("mate -{}", plies.div_ceil(2)),
            Some(Proof::Draw(_)) => 0.0,
            Some(Proof::Exact(_)) | None => match self.player.algorithm.limit_unit {
                LimitUnit::Nodes => 100.0 * value.number,
                // The inverse of what a playout makes of an evaluation where it is cut off.
                LimitUnit::Simulations => {
                    let scale = self.player.settings.number("rollout_scale");
                    100.0 * scale * ((1.0 + value.number) / (1.0 - value.number)).ln()
                }
            },
        };
        format!("cp {:.0}", centipawns.clamp(-GREATEST_CENTIPAWNS, GREATEST_CENTIPAWNS))
    }

    fn info(
        &self,
        depth: u32,
        selective: u32,
        nodes: u64,
        time: Duration,
        value: Value,
        line: &[String],
    ) -> String {
        let rate = (nodes as f64 / time.as_secs_f64().max(1e-6)) as u64;
        let score = self.score(value);
        let mut text = format!(
            "info depth {depth} seldepth {} nodes {nodes} nps {rate} time {} score {score}",
            selective.max(depth),
            time.as_millis()
        );
        if !line.is_empty() {
            let _ = write!(text, " pv {}", line.join(" "));
        }
        text
    }

    /// Releases the answer that waits for `stop`.
    fn release(&mut self) -> anyhow::Result<()> {
        self.is_infinite = false;
        match self.held.take() {
            Some(answer) => Ok(say(&answer)?),
            None => Ok(()),
        }
    }
}

impl Served for Uci {
    fn input(&mut self, line: Option<&str>, engine: &mut Engine) -> anyhow::Result<Flow> {
        let Some(line) = line else { return Ok(Flow::Quit) };
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let Some((&command, words)) = words.split_first() else { return Ok(Flow::Continue) };
        let outcome = match command {
            "uci" => {
                self.declare()?;
                Ok(())
            }
            "isready" => {
                self.seat(engine)?;
                say("readyok")?;
                Ok(())
            }
            "setoption" => self.set_option(words),
            "ucinewgame" => {
                engine.new_game();
                Ok(())
            }
            "position" => self.set_position(words),
            "go" => {
                self.go(words, engine)?;
                Ok(())
            }
            "quit" => return Ok(Flow::Quit),
            "stop" | "ponderhit" | "debug" | "register" => Ok(()),
            _ => Err(format!("there is no command `{command}`; the protocol begins with `uci`")),
        };
        if let Err(reason) = outcome {
            complain(&reason)?;
        }
        Ok(Flow::Continue)
    }

    fn urgent(&mut self, line: Option<&str>, engine: &mut Engine) -> anyhow::Result<Option<Flow>> {
        match line {
            Some("stop") => {
                engine.interrupt();
                self.release()?;
                Ok(Some(Flow::Continue))
            }
            Some("isready") => {
                say("readyok")?;
                Ok(Some(Flow::Continue))
            }
            Some("quit") | None => {
                engine.interrupt();
                self.release()?;
                Ok(Some(Flow::Quit))
            }
            Some(_) => Ok(None),
        }
    }

    fn iteration(&mut self, iteration: &IterationRecord) -> anyhow::Result<()> {
        self.spent = (self.spent.0 + iteration.nodes, self.spent.1 + iteration.time);
        let (nodes, time) = self.spent;
        let depth = iteration.depth;
        Ok(say(&self.info(depth, iteration.selective_depth, nodes, time, iteration.value, &iteration.line))?)
    }

    fn found(&mut self, record: &SearchRecord, _engine: &mut Engine) -> anyhow::Result<()> {
        let nodes = match self.player.algorithm.limit_unit {
            LimitUnit::Nodes => record.counters.nodes,
            LimitUnit::Simulations => record.counters.simulations,
        };
        // A search without iterations has the depth of its line.
        let depth = if record.iterations.is_empty() { record.line.len() as u32 } else { record.depth };
        say(&self.info(depth, record.selective_depth, nodes, record.time, record.value, &record.line))?;
        let answer = format!("bestmove {}", record.mv);
        if self.is_infinite {
            self.held = Some(answer);
            return Ok(());
        }
        Ok(say(&answer)?)
    }

    fn holds(&self) -> bool {
        self.held.is_some()
    }
}

/// Writes an error; the protocol has no other way.
fn complain(reason: &str) -> std::io::Result<()> {
    say(&format!("info string error: {}", reason.replace('\n', "; ")))
}

/// A position while its line is read.
struct Read<'a> {
    game: &'a GameSpec,
    line: Opening,
    position: Box<dyn AnyGame>,
}

impl Read<'_> {
    /// Goes on after a draw that others only allow to be claimed: from the same position, without its past.
    fn go_on(&mut self) -> Result<(), String> {
        let ending = self.position.ending();
        if !matches!(ending, Some("threefold repetition" | "fifty moves" | "ply limit")) {
            return Ok(());
        }
        let fen = self.position.position();
        let mut fields: Vec<&str> = fen.split(' ').collect();
        fields[4..].copy_from_slice(&["0", "1"]);
        let fen = fields.join(" ");
        self.position = self.game.start(Some(&fen)).map_err(|error| error.to_string())?;
        self.line = Opening { position: Some(fen), moves: String::new() };
        Ok(())
    }
}

/// Returns a FEN with the clocks that it leaves out, and with its castling rights in order.
fn normal_fen(fields: &[&str]) -> String {
    let mut fields: Vec<String> = fields.iter().map(ToString::to_string).collect();
    for (index, clock) in [(4, "0"), (5, "1")] {
        if fields.len() == index {
            fields.push(clock.to_string());
        }
    }
    if let Some(rights) = fields.get_mut(2) {
        let mut ordered: Vec<char> = rights.chars().collect();
        ordered.sort_by_key(|right| "KQkq".find(*right));
        *rights = ordered.into_iter().collect();
    }
    // Beyond a hundred plies the game goes on without its past.
    if let Some(clock) = fields.get_mut(4).filter(|clock| clock.parse().is_ok_and(|plies: u32| plies > 100)) {
        *clock = "100".to_string();
    }
    fields.join(" ")
}

/// The words of `go`.
#[derive(Default)]
struct Go {
    time: Option<Duration>,
    nodes: Option<u64>,
    depth: Option<u32>,
    /// The clock of the side to move.
    clock: Option<Duration>,
    increment: Duration,
    moves_to_go: Option<u32>,
}

impl Go {
    /// Reads the words for a seat. Returns the first that is not understood.
    fn read(words: &[&str], seat: usize) -> Result<Go, String> {
        let (clock, increment) = [("wtime", "winc"), ("btime", "binc")][seat];
        let mut go = Go::default();
        let mut words = words.iter();
        while let Some(&word) = words.next() {
            if ["infinite", "ponder"].contains(&word) {
                continue;
            }
            // Clocks may have run out: then they are negative.
            let number = words.next().and_then(|number| number.parse::<i64>().ok()).ok_or(word)?;
            let count = number.max(0) as u64;
            let small = count.min(u64::from(u32::MAX)) as u32;
            let time = Duration::from_millis(count);
            match word {
                "movetime" => go.time = Some(time),
                "nodes" => go.nodes = Some(count.max(1)),
                "depth" => go.depth = Some(small.clamp(1, MAX_PLY as u32)),
                // A mate in n moves is found within twice as many plies.
                "mate" => go.depth = Some(small.saturating_mul(2).clamp(1, MAX_PLY as u32)),
                "movestogo" => go.moves_to_go = Some(small.max(1)),
                _ if word == clock => go.clock = Some(time),
                _ if word == increment => go.increment = time,
                "wtime" | "btime" | "winc" | "binc" => {}
                _ => return Err(word.to_string()),
            }
        }
        Ok(go)
    }

    /// Returns whether the search ends only by `stop`.
    fn is_infinite(&self) -> bool {
        self.time.is_none() && self.nodes.is_none() && self.depth.is_none() && self.clock.is_none()
    }

    /// Returns the search that keeps all limits. A node limit is exact; a limit of time beside it ends the search from
    /// outside.
    fn job(&self, line: Opening, overhead: Duration) -> Job {
        let usable = |time: Duration| time.saturating_sub(overhead).max(Duration::from_millis(1));
        let clock = self.clock.map(usable);
        let limit = match (clock, self.moves_to_go) {
            (Some(remaining), None) => Some(Limit::Clock { remaining, increment: self.increment }),
            (Some(remaining), Some(moves)) => {
                let share = remaining / moves.min(HORIZON) + self.increment * 4 / 5;
                Some(Limit::Wall(share.min(remaining / 2)))
            }
            (None, _) => self.time.map(|time| Limit::Wall(usable(time))),
        };
        let deadline = limit.and_then(Limit::time).map(|time| Instant::now() + time);
        let limit = match (self.nodes, limit, self.depth) {
            (Some(nodes), _, _) => Limit::Nodes(nodes),
            (None, Some(limit), _) => return Job { line, limit, depth: self.depth, deadline: None },
            (None, None, Some(depth)) => Limit::Depth(depth),
            (None, None, None) => Limit::Nodes(u64::MAX),
        };
        Job { line, limit, depth: self.depth, deadline }
    }
}
