//! The client of the bot protocol: `docs/reference/bot-protocol.md`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use agon_arena::engine::{Command, EngineOptions, OptionValue};
use agon_arena::external::Request;
use agon_arena::{EngineConfig, EngineError, ExternalMove, ExternalPlayer, FaultKind};
use agon_games::GameSpec;
use agon_games::schema::unknown;
use agon_search::{Counters, Limit, SearchControl, Value};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::process::EngineProcess;
use super::time::Stopwatch;
use super::uci::not_started;

/// A running bot.
pub(super) struct Bot {
    process: EngineProcess,
    config: EngineConfig,
    game: GameSpec,
    /// The names of the options that it knows, if it lists them.
    known: Option<Vec<String>>,
}

/// A message to a bot. Its fields are in the order of the page.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Message<'a> {
    Hello {
        protocol: u32,
    },
    Options {
        values: Map<String, Json>,
    },
    NewGame {
        game: &'a str,
        parameters: Map<String, Json>,
        seats: usize,
        seat: usize,
        position: Option<&'a str>,
    },
    Move {
        ply: usize,
        seat: usize,
        moves: Vec<&'a str>,
        legal: Vec<String>,
        board: String,
        position: String,
        limit: Map<String, Json>,
    },
    End {
        payoffs: &'a [i32],
        ending: &'a str,
    },
    Quit,
}

/// The answer to `hello`.
#[derive(Deserialize)]
struct Ready {
    #[serde(rename = "type")]
    kind: String,
    options: Option<Vec<String>>,
}

/// The answer to `move`.
#[derive(Deserialize)]
struct Chosen {
    #[serde(rename = "type")]
    kind: String,
    #[serde(rename = "move")]
    mv: String,
    nodes: Option<f64>,
    simulations: Option<f64>,
    depth: Option<f64>,
    selective_depth: Option<f64>,
    score: Option<f64>,
    pv: Option<Vec<String>>,
}

impl Bot {
    /// Starts a bot: hello and options.
    pub(super) fn start(
        command: &Command,
        config: &EngineConfig,
        game: &GameSpec,
        control: &Arc<SearchControl>,
    ) -> Result<Bot, EngineError> {
        let process = EngineProcess::start(command, control)?;
        let mut bot = Bot { process, config: config.clone(), game: game.clone(), known: None };
        let deadline = Instant::now() + config.start;
        bot.write(&Message::Hello { protocol: 1 }, deadline)?;
        let line = bot.process.read_line(deadline).map_err(|error| not_started(error, "ready"))?;
        match serde_json::from_str::<Ready>(&line) {
            Ok(ready) if ready.kind == "ready" => bot.known = ready.options,
            _ => return Err(bot.process.fault(FaultKind::Crash, "it did not answer `hello` with `ready`")),
        }
        bot.send_options(&config.options, deadline)?;
        Ok(bot)
    }

    fn write(&mut self, message: &Message<'_>, deadline: Instant) -> Result<(), EngineError> {
        let mut text = serde_json::to_string(message).expect("a message has only texts as keys");
        text.push('\n');
        self.process.write(&text, deadline)
    }

    fn send_options(&mut self, options: &EngineOptions, deadline: Instant) -> Result<(), EngineError> {
        if options.is_empty() {
            return Ok(());
        }
        if let Some(known) = &self.known
            && let Some(name) = options.keys().find(|name| !known.contains(name))
        {
            let reason = unknown("the bot", "option", name, known.iter().map(String::as_str));
            return Err(self.process.fault(FaultKind::Crash, &format!("it did not start: {reason}")));
        }
        let value = |value: &OptionValue| match value {
            OptionValue::Flag(flag) => Json::from(*flag),
            OptionValue::Whole(number) => Json::from(*number),
            OptionValue::Number(number) => Json::from(*number),
            OptionValue::Text(text) => Json::from(text.as_str()),
        };
        let values = options.iter().map(|(name, option)| (name.clone(), value(option))).collect();
        self.write(&Message::Options { values }, deadline)
    }
}

/// Returns the parameters of a game: numbers, true, false, and texts for everything else.
fn parameters(game: &GameSpec) -> Map<String, Json> {
    let text = game.parameters().to_string();
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    let value = |text: &str| {
        let number = text.parse::<i64>().map(Json::from).or_else(|_| text.parse::<f64>().map(Json::from));
        number.or_else(|_| text.parse::<bool>().map(Json::from)).unwrap_or_else(|_| Json::from(text))
    };
    pairs.map(|(key, text)| (key.to_string(), value(text))).collect()
}

/// Returns the limit of a request.
fn limit(request: &Request<'_>) -> Map<String, Json> {
    let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let one = |key: &str, value: u64| Map::from_iter([(key.to_string(), Json::from(value))]);
    match request.limit() {
        Limit::Wall(time) => one("ms", milliseconds(time)),
        Limit::Cpu(time) => one("cpu_ms", milliseconds(time)),
        Limit::Nodes(nodes) => one("nodes", nodes),
        Limit::Depth(depth) => one("depth", depth.into()),
        Limit::Clock { remaining, increment } => {
            // A seat without a clock seems to have as much time as the one that moves.
            let left = |limit: &Limit| match limit {
                Limit::Clock { remaining, .. } => milliseconds(*remaining),
                _ => milliseconds(remaining),
            };
            let clocks: Vec<u64> = request.limits.iter().map(left).collect();
            Map::from_iter([
                ("clock_ms".to_string(), Json::from(clocks)),
                ("increment_ms".to_string(), Json::from(milliseconds(increment))),
            ])
        }
    }
}

impl ExternalPlayer for Bot {
    fn set_options(&mut self, options: &EngineOptions) -> Result<(), EngineError> {
        self.send_options(options, Instant::now() + self.config.start)
    }

    fn new_game(&mut self, start: Option<&str>, seat: usize) -> Result<(), EngineError> {
        let game = self.game.clone();
        let seats = game.parameters().seats();
        let message = Message::NewGame {
            game: game.name(),
            parameters: parameters(&game),
            seats,
            seat,
            position: start,
        };
        self.write(&message, Instant::now() + self.config.start)
    }

    fn choose(&mut self, request: &Request<'_>) -> Result<ExternalMove, EngineError> {
        let message = Message::Move {
            ply: request.moves.len(),
            seat: request.seat,
            moves: request.moves.iter().map(|played| played.mv).collect(),
            legal: request.position.legal(),
            board: request.position.board(),
            position: request.position.position(),
            limit: limit(request),
        };
        let watch = Stopwatch::start(request.limit(), &self.config, &self.process);
        let late = |error: EngineError, process: &EngineProcess| match error {
            EngineError::Fault(fault) if fault.kind == FaultKind::NoAnswer => {
                process.fault(FaultKind::NoAnswer, &watch.too_late("its process was ended"))
            }
            error => error,
        };
        let deadline = watch.deadline(&self.process)?;
        self.write(&message, deadline).map_err(|error| late(error, &self.process))?;
        let line = watch.read_line(&mut self.process).map_err(|error| late(error, &self.process))?;
        let time = watch.elapsed(&self.process);
        let chosen = match serde_json::from_str::<Chosen>(&line) {
            Ok(chosen) if chosen.kind == "move" => chosen,
            _ => return Err(self.process.fault(FaultKind::Crash, "it did not answer `move` with a `move`")),
        };
        // A number that is negative or no number counts as 0.
        let count = |number: Option<f64>| number.unwrap_or(0.0) as u64;
        let depth = |number: Option<f64>| number.unwrap_or(0.0) as u32;
        let counters = Counters {
            nodes: count(chosen.nodes),
            simulations: count(chosen.simulations),
            ..Counters::default()
        };
        Ok(ExternalMove {
            mv: chosen.mv,
            counters,
            depth: depth(chosen.depth),
            selective_depth: depth(chosen.selective_depth).max(depth(chosen.depth)),
            value: Value { number: chosen.score.unwrap_or(0.0), proof: None },
            line: chosen.pv.unwrap_or_default(),
            time,
        })
    }

    fn end_game(&mut self, payoffs: &[i32], ending: &str) {
        // A bot that does not read is found at its next move.
        let _ = self.write(&Message::End { payoffs, ending }, Instant::now() + Duration::from_millis(100));
    }

    fn cpu_time(&self) -> Duration {
        self.process.cpu_time()
    }
}

impl Drop for Bot {
    fn drop(&mut self) {
        let quit = serde_json::to_string(&Message::Quit).expect("a message without fields");
        self.process.quit(&format!("{quit}\n"));
    }
}
