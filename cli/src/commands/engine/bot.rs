//! The bot protocol of `docs/reference/bot-protocol.md`, from the side of the bot.

use std::time::Duration;

use agon_arena::defaults::default_player;
use agon_arena::{Opening, SearchConfig, SearchRecord};
use agon_games::GameSpec;
use agon_search::Limit;
use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::options;
use super::serve::{Engine, Flow, Job, Served, read_search, say};

/// The version of the protocol.
const PROTOCOL: u64 = 1;

/// The longest time of a move, a year.
const LONGEST_MS: f64 = 365.0 * 24.0 * 3600.0 * 1000.0;

pub struct Bot {
    /// The player as the call names it; none for the default player of each game.
    player: Option<String>,
    /// The algorithm of the player, if the call names a game to read it for.
    known: Option<SearchConfig>,
    /// The name of the only game, if the call names one.
    game: Option<&'static str>,
    options: Map<String, Value>,
    /// The start position of the game.
    position: Option<String>,
}

/// A message to the bot.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Message {
    Hello {
        protocol: u64,
    },
    Options {
        values: Map<String, Value>,
    },
    NewGame {
        game: String,
        #[serde(default)]
        parameters: Map<String, Value>,
        position: Option<String>,
    },
    Move {
        seat: usize,
        moves: Vec<String>,
        limit: TimeOrEffort,
    },
    Quit,
    /// `end`, and messages of later versions.
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct TimeOrEffort {
    ms: Option<f64>,
    cpu_ms: Option<f64>,
    nodes: Option<u64>,
    depth: Option<u32>,
    clock_ms: Option<Vec<f64>>,
    #[serde(default)]
    increment_ms: f64,
}

/// A message of the bot.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Answer<'a> {
    Ready {
        name: String,
        author: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        options: Option<Vec<&'static str>>,
    },
    Move {
        #[serde(rename = "move")]
        mv: &'a str,
        nodes: u64,
        depth: u32,
        selective_depth: u32,
        score: f64,
        pv: &'a [String],
        simulations: u64,
    },
}

impl Bot {
    pub fn new(game: Option<&str>, player: Option<&str>) -> anyhow::Result<Bot> {
        let game = game.map(GameSpec::parse).transpose()?;
        let known = game.as_ref().map(|game| configured(game, player)).transpose()?;
        Ok(Bot {
            player: player.map(str::to_string),
            known,
            game: game.map(|game| game.name()),
            options: Map::new(),
            position: None,
        })
    }

    fn new_game(
        &mut self,
        name: &str,
        parameters: &Map<String, Value>,
        position: Option<String>,
        engine: &mut Engine,
    ) -> anyhow::Result<()> {
        if let Some(only) = self.game.filter(|only| *only != name) {
            bail!("--game {only}: the other side plays {name}");
        }
        let given: Vec<(&str, String)> =
            parameters.iter().map(|(key, value)| (key.as_str(), text_of(value))).collect();
        let game = GameSpec::new(name, given.iter().map(|(key, value)| (*key, value.as_str())))?;
        let mut player = configured(&game, self.player.as_deref())?;
        for (name, value) in &self.options {
            options::set_by_name(&mut player, name, &text_of(value)).map_err(anyhow::Error::msg)?;
        }
        options::check(&game, &player).map_err(anyhow::Error::msg)?;
        self.position = position;
        engine.seat(&game, &player)
    }
}

fn configured(game: &GameSpec, player: Option<&str>) -> anyhow::Result<SearchConfig> {
    read_search(game, player.unwrap_or_else(|| default_player(game)))
}

/// Returns a value as untyped text.
fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}

impl TimeOrEffort {
    fn limit(&self, seat: usize) -> Option<Limit> {
        let time = |ms: f64| Duration::from_secs_f64(ms.clamp(0.0, LONGEST_MS) / 1e3);
        let clock = self.clock_ms.as_ref().and_then(|clocks| clocks.get(seat));
        let increment = time(self.increment_ms);
        let wall = self.ms.map(|ms| Limit::Wall(time(ms)));
        wall.or(self.cpu_ms.map(|ms| Limit::Cpu(time(ms))))
            .or(self.nodes.map(Limit::Nodes))
            .or(self.depth.map(Limit::Depth))
            .or(clock.map(|left| Limit::Clock { remaining: time(*left), increment }))
    }
}

impl Served for Bot {
    fn input(&mut self, line: Option<&str>, engine: &mut Engine) -> anyhow::Result<Flow> {
        let Some(line) = line else { return Ok(Flow::Quit) };
        if line.is_empty() {
            return Ok(Flow::Continue);
        }
        let message = serde_json::from_str(line).with_context(|| format!("this is no message: {line}"))?;
        match message {
            Message::Hello { protocol: PROTOCOL } => {
                let algorithm = self.known.as_ref().map(|player| player.algorithm);
                let name = algorithm.map_or_else(String::new, |algorithm| format!(" ({})", algorithm.name));
                let options =
                    algorithm.map(|algorithm| algorithm.options.iter().map(|key| key.name).collect());
                write(&Answer::Ready {
                    name: format!("Agon {}{name}", env!("CARGO_PKG_VERSION")),
                    author: "the Agon developers",
                    options,
                })?;
            }
            Message::Hello { protocol } => {
                bail!(
                    "the other side speaks version {protocol} of the protocol, and this build version {PROTOCOL}"
                )
            }
            Message::Options { values } => self.options = values,
            Message::NewGame { game, parameters, position } => {
                self.new_game(&game, &parameters, position, engine)?;
            }
            Message::Move { seat, moves, limit } => {
                let limit = limit.limit(seat).with_context(|| format!("this has no limit: {line}"))?;
                if !engine.is_seated() {
                    bail!("a move is asked for before a game; `new_game` comes first");
                }
                engine.search(Job::new(
                    Opening { position: self.position.clone(), moves: moves.join(" ") },
                    limit,
                ));
            }
            Message::Quit => return Ok(Flow::Quit),
            Message::Other => {}
        }
        Ok(Flow::Continue)
    }

    fn urgent(&mut self, line: Option<&str>, engine: &mut Engine) -> anyhow::Result<Option<Flow>> {
        let is_end = line.is_none_or(|line| matches!(serde_json::from_str(line), Ok(Message::Quit)));
        if is_end {
            engine.interrupt();
        }
        Ok(is_end.then_some(Flow::Quit))
    }

    fn found(&mut self, record: &SearchRecord, _engine: &mut Engine) -> anyhow::Result<()> {
        write(&Answer::Move {
            mv: &record.mv,
            nodes: record.counters.nodes,
            depth: record.depth,
            selective_depth: record.selective_depth,
            score: record.value.number,
            pv: &record.line,
            simulations: record.counters.simulations,
        })
    }
}

fn write(answer: &Answer<'_>) -> anyhow::Result<()> {
    Ok(say(&serde_json::to_string(answer)?)?)
}
