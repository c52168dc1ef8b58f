//! The Go Text Protocol, version 2, for go and othello.
//!
//! Agon alternates the turns. A move out of turn is played after a pass of the other side, where passing is legal. Scores
//! count the stones on the board; no stone counts as dead.

use std::time::{Duration, Instant};

use agon_arena::{Opening, SearchConfig, SearchRecord};
use agon_games::go::Go;
use agon_games::line::follow;
use agon_games::{AnyGame, GameSpec, Seat, Setup as _, Turn};
use agon_search::Limit;

use super::serve::{Engine, Flow, Job, Served, say};

const COMMANDS: [&str; 17] = [
    "boardsize",
    "clear_board",
    "final_score",
    "genmove",
    "known_command",
    "komi",
    "list_commands",
    "name",
    "play",
    "protocol_version",
    "quit",
    "reg_genmove",
    "showboard",
    "time_left",
    "time_settings",
    "undo",
    "version",
];

/// The time for a move of a game without a clock.
const WITHOUT_CLOCK: Duration = Duration::from_secs(1);

/// An answer of the protocol: text, or the text of an error.
type Answer = Result<String, String>;

pub struct Gtp {
    game: GameSpec,
    player: SearchConfig,
    /// The limit of each move; none if the other side's clock decides.
    limit: Option<Limit>,
    /// Whether the game differs from that of the seated player.
    is_changed: bool,
    position: Box<dyn AnyGame>,
    moves: Vec<String>,
    clock: Option<Clock>,
    /// The move that is being searched.
    asked: Option<Asked>,
}

/// A request for a move.
struct Asked {
    /// The number of the request, as it is repeated in the answer.
    id: String,
    seat: Seat,
    /// The number of moves to return to, unless the move is also played.
    back_to: Option<usize>,
    started: Instant,
}

impl Gtp {
    pub fn new(game: GameSpec, player: SearchConfig, limit: Option<Limit>) -> anyhow::Result<Gtp> {
        let position = game.start(None)?;
        Ok(Gtp {
            game,
            player,
            limit,
            is_changed: true,
            position,
            moves: Vec::new(),
            clock: None,
            asked: None,
        })
    }

    fn is_go(&self) -> bool {
        self.game.name() == "go"
    }

    /// Answers every command except `genmove`, `reg_genmove` and `quit`.
    fn answer(&mut self, command: &str, words: &[&str], engine: &mut Engine) -> Answer {
        let nothing = Ok(String::new());
        match (command, words) {
            ("protocol_version", _) => Ok("2".to_string()),
            ("name", _) => Ok(format!("Agon ({})", self.player.algorithm.name)),
            ("version", _) => Ok(env!("CARGO_PKG_VERSION").to_string()),
            ("known_command", [name]) => Ok(self.knows(name).to_string()),
            ("known_command", _) => Ok("false".to_string()),
            ("list_commands", _) => {
                Ok(COMMANDS.into_iter().filter(|name| self.knows(name)).collect::<Vec<_>>().join("\n"))
            }
            ("boardsize", [size]) => {
                let changed = if self.is_go() { self.changed("size", size) } else { None };
                let is_same = !self.is_go() && *size == "8";
                if let Some(game) = changed {
                    self.game = game;
                    self.is_changed = true;
                } else if !is_same {
                    return Err("unacceptable size".to_string());
                }
                self.clear(engine);
                nothing
            }
            ("clear_board", []) => {
                self.clear(engine);
                nothing
            }
            ("komi", [komi]) if self.is_go() => {
                // `7.0` and `6.50` are written differently in a spec.
                let number: f64 = komi.parse().map_err(|_| syntax_error())?;
                self.game = self.changed("komi", &number.to_string()).ok_or("unacceptable komi")?;
                self.is_changed = true;
                self.replay()?;
                nothing
            }
            ("play", [colour, vertex]) => {
                let seat = read_colour(colour)?;
                let mv = self.read_vertex(vertex);
                self.play(seat, &mv)?;
                nothing
            }
            ("undo", []) => {
                let count = self.moves.len().checked_sub(1).ok_or("cannot undo")?;
                self.take_back(count);
                nothing
            }
            ("showboard", []) => Ok(format!("\n{}", self.position.board())),
            ("final_score", []) => self.score(),
            ("time_settings", [main, byo_yomi, stones]) => {
                let seconds = |word: &str| word.parse().map(Duration::from_secs).map_err(|_| syntax_error());
                let stones = stones.parse().map_err(|_| syntax_error())?;
                self.clock = Clock::new(seconds(main)?, seconds(byo_yomi)?, stones);
                nothing
            }
            ("time_left", [colour, seconds, stones]) => {
                let seat = read_colour(colour)?;
                // Some controllers count below zero.
                let left: f64 = seconds.parse().map_err(|_| syntax_error())?;
                let stones = stones.parse().map_err(|_| syntax_error())?;
                if let Some(clock) = &mut self.clock {
                    let time = Duration::try_from_secs_f64(left.max(0.0)).map_err(|_| syntax_error())?;
                    clock.left[seat.index()] = Left { time, stones };
                }
                nothing
            }
            _ if self.knows(command) => Err(syntax_error()),
            _ => Err("unknown command".to_string()),
        }
    }

    /// Returns whether a command is known. Komi exists in go only.
    fn knows(&self, command: &str) -> bool {
        COMMANDS.contains(&command) && (command != "komi" || self.is_go())
    }

    /// Returns the game with another value of a parameter, if that is valid.
    fn changed(&self, name: &str, value: &str) -> Option<GameSpec> {
        let parameters = self.game.parameters().to_string();
        let given = parameters.split(',').filter_map(|pair| pair.split_once('='));
        let given = given.map(|(key, old)| (key, if key == name { value } else { old }));
        GameSpec::new(self.game.name(), given).ok()
    }

    fn clear(&mut self, engine: &mut Engine) {
        self.moves.clear();
        self.position = self.game.start(None).expect("the parameters were checked");
        if let Some(clock) = &mut self.clock {
            clock.reset();
        }
        engine.new_game();
    }

    /// Plays the moves again: in a changed game, or without the last one.
    fn replay(&mut self) -> Result<(), String> {
        self.position = self.game.start(None).map_err(|error| error.to_string())?;
        self.position.follow(&self.moves.join(" ")).map(drop).map_err(|_| "illegal move".to_string())
    }

    /// Returns a vertex in the notation of the game: `C3` in go, `c3` in othello.
    fn read_vertex(&self, vertex: &str) -> String {
        let lower = vertex.to_ascii_lowercase();
        if self.is_go() && lower != "pass" { vertex.to_ascii_uppercase() } else { lower }
    }

    /// Gives the turn to a seat, by a pass of the other one if necessary.
    fn give_turn(&mut self, seat: Seat) -> Result<(), String> {
        match self.position.turn() {
            Turn::Player(mover) if mover == seat => Ok(()),
            Turn::Player(_) if self.position.legal().iter().any(|mv| mv == "pass") => self.append("pass"),
            Turn::Player(_) | Turn::Chance | Turn::Over => Err("illegal move".to_string()),
        }
    }

    fn append(&mut self, mv: &str) -> Result<(), String> {
        let played = self.position.play(self.moves.len() + 1, mv).map_err(|_| "illegal move".to_string())?;
        self.moves.push(played);
        Ok(())
    }

    fn play(&mut self, seat: Seat, mv: &str) -> Result<(), String> {
        let count = self.moves.len();
        self.give_turn(seat)?;
        let outcome = self.append(mv);
        if outcome.is_err() {
            self.take_back(count);
        }
        outcome
    }

    /// Returns to the position after `count` moves.
    fn take_back(&mut self, count: usize) {
        self.moves.truncate(count);
        self.replay().expect("these moves were legal");
    }

    /// Starts the search for a move; returns its answer if there is nothing to search.
    fn ask(
        &mut self,
        id: &str,
        plays: bool,
        words: &[&str],
        engine: &mut Engine,
    ) -> anyhow::Result<Option<Answer>> {
        let seat = match words {
            [colour] => read_colour(colour),
            _ => Err(syntax_error()),
        };
        let seat = match seat {
            Ok(seat) => seat,
            Err(reason) => return Ok(Some(Err(reason))),
        };
        if self.position.turn() == Turn::Over {
            return Ok(Some(Ok("pass".to_string())));
        }
        let back_to = (!plays).then_some(self.moves.len());
        if let Err(reason) = self.give_turn(seat) {
            return Ok(Some(Err(reason)));
        }
        if std::mem::take(&mut self.is_changed) {
            engine.seat(&self.game, &self.player)?;
        }
        let limit = match (self.limit, &self.clock) {
            (Some(limit), _) => limit,
            (None, Some(clock)) => clock.limit(seat),
            (None, None) => Limit::Wall(WITHOUT_CLOCK),
        };
        self.asked = Some(Asked { id: id.to_string(), seat, back_to, started: Instant::now() });
        engine.search(Job::new(Opening { position: None, moves: self.moves.join(" ") }, limit));
        Ok(None)
    }

    /// Returns the result by the stones on the board.
    fn score(&self) -> Answer {
        let lead = if self.is_go() {
            let mut go = Go::initial(self.game.parameters()).map_err(|error| error.to_string())?;
            follow(&mut go, &self.moves.join(" ")).map_err(|error| error.to_string())?;
            f64::from(go.lead()) / 2.0
        } else {
            let position = self.position.position();
            let discs = position.split(' ').next().unwrap_or_default();
            f64::from(discs.matches('x').count() as i32 - discs.matches('o').count() as i32)
        };
        Ok(match lead {
            lead if lead > 0.0 => format!("B+{lead}"),
            lead if lead < 0.0 => format!("W+{}", -lead),
            _ => "0".to_string(),
        })
    }
}

impl Served for Gtp {
    fn input(&mut self, line: Option<&str>, engine: &mut Engine) -> anyhow::Result<Flow> {
        let Some(line) = line else { return Ok(Flow::Quit) };
        let line = line.split('#').next().unwrap_or_default();
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let (id, words) = match words.split_first() {
            None => return Ok(Flow::Continue),
            Some((&id, rest)) if id.bytes().all(|byte| byte.is_ascii_digit()) => (id, rest),
            Some(_) => ("", &words[..]),
        };
        let (&command, words) = words.split_first().unwrap_or((&"", &[]));
        let answer = match command {
            "quit" => {
                reply(id, &Ok(String::new()))?;
                return Ok(Flow::Quit);
            }
            "genmove" | "reg_genmove" => match self.ask(id, command == "genmove", words, engine)? {
                Some(answer) => answer,
                None => return Ok(Flow::Continue),
            },
            _ => self.answer(command, words, engine),
        };
        reply(id, &answer)?;
        Ok(Flow::Continue)
    }

    fn found(&mut self, record: &SearchRecord, _engine: &mut Engine) -> anyhow::Result<()> {
        let asked = self.asked.take().expect("a search answers a request");
        if let Some(clock) = &mut self.clock {
            clock.spend(asked.seat, asked.started.elapsed());
        }
        match asked.back_to {
            Some(count) => self.take_back(count),
            None => self.append(&record.mv).expect("a search returns a legal move"),
        }
        Ok(reply(&asked.id, &Ok(record.mv.clone()))?)
    }
}

/// Writes an answer, which ends with an empty line.
fn reply(id: &str, answer: &Answer) -> std::io::Result<()> {
    match answer {
        Ok(text) => say(&format!("={id} {text}\n")),
        Err(reason) => say(&format!("?{id} {reason}\n")),
    }
}

fn syntax_error() -> String {
    "syntax error".to_string()
}

fn read_colour(text: &str) -> Result<Seat, String> {
    match text.to_ascii_lowercase().as_str() {
        "b" | "black" => Ok(Seat::FIRST),
        "w" | "white" => Ok(Seat::SECOND),
        _ => Err(syntax_error()),
    }
}

/// Main time, then Canadian byo-yomi: a number of stones within a time.
#[derive(Clone, Copy)]
struct Clock {
    main: Duration,
    byo_yomi: Duration,
    stones: u32,
    left: [Left; 2],
}

/// The time left to a seat.
#[derive(Clone, Copy)]
struct Left {
    time: Duration,
    /// The stones to be placed within the time; 0 during the main time.
    stones: u32,
}

impl Clock {
    /// Creates a clock, or none for settings that mean unlimited time.
    fn new(main: Duration, byo_yomi: Duration, stones: u32) -> Option<Clock> {
        let is_unlimited = !byo_yomi.is_zero() && stones == 0;
        let left = [Left { time: main, stones: 0 }; 2];
        let mut clock = Clock { main, byo_yomi, stones, left };
        clock.reset();
        (!is_unlimited).then_some(clock)
    }

    fn reset(&mut self) {
        self.left = [Left { time: self.main, stones: 0 }; 2];
        if self.main.is_zero() {
            self.left = [Left { time: self.byo_yomi, stones: self.stones }; 2];
        }
    }

    fn limit(&self, seat: Seat) -> Limit {
        let Left { time, stones } = self.left[seat.index()];
        if stones > 0 {
            // A tenth is left for the way of messages.
            return Limit::Wall(time * 9 / 10 / stones);
        }
        let increment = if self.stones > 0 { self.byo_yomi / self.stones } else { Duration::ZERO };
        Limit::Clock { remaining: time, increment }
    }

    /// Counts the time of a move, for controllers that do not send `time_left`.
    fn spend(&mut self, seat: Seat, time: Duration) {
        let period = Left { time: self.byo_yomi, stones: self.stones };
        let left = &mut self.left[seat.index()];
        if left.stones == 0 && (self.stones == 0 || time < left.time) {
            left.time = left.time.saturating_sub(time);
            return;
        }
        // The move that ends the main time is the first of a period.
        let (within, over) = if left.stones > 0 { (*left, time) } else { (period, time - left.time) };
        let stones = within.stones - 1;
        *left = if stones > 0 { Left { time: within.time.saturating_sub(over), stones } } else { period };
    }
}
