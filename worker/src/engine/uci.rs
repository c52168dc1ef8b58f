//! The client of UCI, the Universal Chess Interface (S. Meyer-Kahlen, 2006).
//!
//! Pondering, multiple lines and Chess960 are never asked for. An engine that is too late is stopped, and plays on if it obeys.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agon_arena::engine::{Command, EngineOptions, OptionValue};
use agon_arena::external::Request;
use agon_arena::{EngineConfig, EngineError, ExternalMove, ExternalPlayer, FaultKind};
use agon_games::schema::unknown;
use agon_search::value::WIN;
use agon_search::{Counters, Limit, Score, SearchControl, Value};

use super::process::EngineProcess;
use super::time::Stopwatch;

/// The time that an engine has to obey `stop`.
const STOP: Duration = Duration::from_millis(500);

/// A running UCI engine.
pub(super) struct Uci {
    process: EngineProcess,
    config: EngineConfig,
    declared: BTreeMap<String, Declared>,
}

/// An option as the engine declares it.
#[derive(Clone, PartialEq, Debug)]
struct Declared {
    kind: String,
    min: Option<i64>,
    max: Option<i64>,
    choices: Vec<String>,
}

impl Uci {
    /// Starts an engine: handshake, options, ready.
    pub(super) fn start(
        command: &Command,
        config: &EngineConfig,
        control: &Arc<SearchControl>,
    ) -> Result<Uci, EngineError> {
        let process = EngineProcess::start(command, control)?;
        let mut uci = Uci { process, config: config.clone(), declared: BTreeMap::new() };
        let deadline = Instant::now() + config.start;
        uci.process.write("uci\n", deadline)?;
        loop {
            let line = uci.process.read_line(deadline).map_err(|error| not_started(error, "uciok"))?;
            let mut words = line.split_ascii_whitespace();
            match words.next() {
                Some("uciok") => break,
                Some("option") => uci.declared.extend(read_option(&line)),
                _ => {}
            }
        }
        uci.send_options(&config.options, deadline)?;
        uci.wait_ready(deadline)?;
        Ok(uci)
    }

    /// Sends options after checking them against the declared ones.
    fn send_options(&mut self, options: &EngineOptions, deadline: Instant) -> Result<(), EngineError> {
        let mut text = String::new();
        for (name, value) in options {
            let found = self.declared.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            let reason = match found {
                None => Some(unknown("the engine", "option", name, self.declared.keys().map(String::as_str))),
                Some((known, declared)) => declared.objection(value).map(|form| {
                    format!("the option `{known}` of the engine cannot be `{value}`; it must be {form}")
                }),
            };
            if let Some(reason) = reason {
                return Err(self.process.fault(FaultKind::Crash, &format!("it did not start: {reason}")));
            }
            let _ = writeln!(text, "setoption name {} value {value}", found.map_or(name, |(known, _)| known));
        }
        self.process.write(&text, deadline)
    }

    fn wait_ready(&mut self, deadline: Instant) -> Result<(), EngineError> {
        self.process.write("isready\n", deadline)?;
        while self.process.read_line(deadline).map_err(|error| not_started(error, "readyok"))?.trim()
            != "readyok"
        {}
        Ok(())
    }

    /// Reads the lines of a search up to its best move.
    fn read_answer(
        &mut self,
        read_line: impl Fn(&mut EngineProcess) -> Result<String, EngineError>,
    ) -> Result<Answer, EngineError> {
        let mut answer = Answer::default();
        loop {
            let line = read_line(&mut self.process)?;
            let mut words = line.split_ascii_whitespace();
            match words.next() {
                Some("info") => answer.add(&line),
                Some("bestmove") => {
                    answer.mv = words.next().unwrap_or_default().to_string();
                    return Ok(answer);
                }
                _ => {}
            }
        }
    }
}

/// Names what the engine did not send, if it sent nothing in time.
pub(super) fn not_started(error: EngineError, expected: &str) -> EngineError {
    match error {
        EngineError::Fault(mut fault) => {
            if fault.kind == FaultKind::NoAnswer {
                fault.detail = format!("it did not send `{expected}` in time: {}", fault.detail);
            }
            fault.kind = FaultKind::Crash;
            EngineError::Fault(fault)
        }
        other => other,
    }
}

impl Declared {
    /// Returns what a value must be, if this one is not allowed.
    fn objection(&self, value: &OptionValue) -> Option<String> {
        match (self.kind.as_str(), value) {
            ("spin", OptionValue::Whole(number)) => {
                let (min, max) = (self.min.unwrap_or(i64::MIN), self.max.unwrap_or(i64::MAX));
                let form = || format!("a whole number from {min} to {max}");
                (!(min..=max).contains(number)).then(form)
            }
            ("spin", _) => Some("a whole number".to_string()),
            ("check", OptionValue::Flag(_)) => None,
            ("check", _) => Some("true or false".to_string()),
            ("combo", value) => {
                let text = value.to_string();
                let known = self.choices.iter().any(|choice| choice.eq_ignore_ascii_case(&text));
                (!known).then(|| format!("one of {}", self.choices.join(", ")))
            }
            _ => None,
        }
    }
}

/// Reads `option name N type T default D min A max B var V`.
fn read_option(line: &str) -> Option<(String, Declared)> {
    let rest = line.trim().strip_prefix("option")?.trim_start().strip_prefix("name")?;
    let (name, rest) = rest.split_once(" type ")?;
    let words: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |key: &str| {
        let place = words.iter().position(|word| *word == key)?;
        words.get(place + 1)?.parse().ok()
    };
    // Choices may have spaces.
    let choices = rest.split(" var ").skip(1).map(|choice| choice.trim().to_string()).collect();
    let kind = (*words.first()?).to_string();
    Some((name.trim().to_string(), Declared { kind, min: number("min"), max: number("max"), choices }))
}

/// What an engine said about a search.
#[derive(Clone, Default, PartialEq, Debug)]
struct Answer {
    mv: String,
    depth: u32,
    selective_depth: u32,
    nodes: u64,
    score: Option<Value>,
    line: Vec<String>,
}

impl Answer {
    /// Adds an `info` line. Scores that are only bounds, and lines other than the best, are left out.
    fn add(&mut self, line: &str) {
        let mut words = line.split_ascii_whitespace().skip(1);
        let (mut score, mut bound, mut pv, mut depth) = (None, false, Vec::new(), None);
        while let Some(word) = words.next() {
            match word {
                "string" => return,
                "multipv" if words.next() != Some("1") => return,
                "depth" => depth = words.next().and_then(|word| word.parse().ok()),
                "seldepth" => {
                    let found = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
                    self.selective_depth = self.selective_depth.max(found);
                }
                "nodes" => {
                    let found = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
                    self.nodes = self.nodes.max(found);
                }
                "score" => {
                    let kind = words.next();
                    score = words
                        .next()
                        .and_then(|word| word.parse().ok())
                        .and_then(|number| read_score(kind?, number));
                }
                "lowerbound" | "upperbound" => bound = true,
                "pv" => pv = words.by_ref().map(str::to_string).collect(),
                _ => {}
            }
        }
        if let Some(score) = score.filter(|_| !bound) {
            self.score = Some(score);
            self.depth = depth.unwrap_or(self.depth);
            if !pv.is_empty() {
                self.line = pv;
            }
        }
    }

    fn into_move(self, time: Duration) -> ExternalMove {
        let Answer { mv, depth, selective_depth, nodes, score, line } = self;
        let value = score.unwrap_or(Value { number: 0.0, proof: None });
        let proven_plies = value.proof.map_or(0, |proof| u64::from(proof.plies()));
        let counters = Counters { nodes, proven_plies, ..Counters::default() };
        ExternalMove { mv, counters, depth, selective_depth: selective_depth.max(depth), value, line, time }
    }
}

/// Reads a score: centipawns become pawns, and moves to mate a proven end.
fn read_score(kind: &str, number: i64) -> Option<Value> {
    match kind {
        "cp" => Some(Value { number: number as f64 / 100.0, proof: None }),
        // The side that mates moves last. The mated side counts its own moves.
        "mate" => {
            let plies =
                |moves: i64, last: i64| Score::try_from(moves.clamp(0, 5000) * 2 - last).unwrap_or(0).max(0);
            let score = if number > 0 { WIN - plies(number, 1) } else { plies(-number, 0) - WIN };
            Some(Value::from(score))
        }
        _ => None,
    }
}

/// Returns the command that starts a search.
fn go(request: &Request<'_>) -> String {
    let milliseconds = |time: Duration| time.as_millis();
    match request.limit() {
        Limit::Wall(time) | Limit::Cpu(time) => format!("go movetime {}\n", milliseconds(time).max(1)),
        Limit::Nodes(nodes) => format!("go nodes {nodes}\n"),
        Limit::Depth(depth) => format!("go depth {depth}\n"),
        Limit::Clock { remaining, increment } => {
            // A seat without a clock seems to have as much time as the one that moves.
            let [white, black] = [0, 1].map(|seat| match request.limits.get(seat) {
                Some(Limit::Clock { remaining, increment }) => (*remaining, *increment),
                _ => (remaining, increment),
            });
            let times = [white.0, black.0, white.1, black.1].map(milliseconds);
            format!(
                "go wtime {} btime {} winc {} binc {}\n",
                times[0].max(1),
                times[1].max(1),
                times[2],
                times[3]
            )
        }
    }
}

/// Returns the command that sets the position.
fn position(request: &Request<'_>) -> String {
    let mut text = match request.start {
        None => "position startpos".to_string(),
        Some(start) => format!("position fen {start}"),
    };
    if !request.moves.is_empty() {
        text.push_str(" moves");
        for played in request.moves {
            text.push(' ');
            text.push_str(played.mv);
        }
    }
    text.push('\n');
    text
}

impl ExternalPlayer for Uci {
    fn set_options(&mut self, options: &EngineOptions) -> Result<(), EngineError> {
        self.send_options(options, Instant::now() + self.config.start)
    }

    fn new_game(&mut self, _start: Option<&str>, _seat: usize) -> Result<(), EngineError> {
        let deadline = Instant::now() + self.config.start;
        self.process.write("ucinewgame\n", deadline)?;
        self.wait_ready(deadline)
    }

    fn choose(&mut self, request: &Request<'_>) -> Result<ExternalMove, EngineError> {
        let text = position(request) + &go(request);
        let watch = Stopwatch::start(request.limit(), &self.config, &self.process);
        self.process.write(&text, watch.deadline(&self.process)?)?;
        match self.read_answer(|process| watch.read_line(process)) {
            Ok(answer) => Ok(answer.into_move(watch.elapsed(&self.process))),
            Err(EngineError::Fault(late)) if late.kind == FaultKind::NoAnswer => {
                // It has lost the game. One that obeys can play the next.
                let deadline = Instant::now() + STOP;
                self.process.write("stop\n", deadline)?;
                match self.read_answer(|process| process.read_line(deadline)) {
                    Ok(_) => {
                        Err(self.process.fault(FaultKind::Late, &watch.too_late("it played after `stop`")))
                    }
                    Err(EngineError::Interrupted) => Err(EngineError::Interrupted),
                    Err(_) => {
                        Err(self.process.fault(FaultKind::NoAnswer, &watch.too_late("it ignored `stop`")))
                    }
                }
            }
            Err(error) => Err(error),
        }
    }

    fn end_game(&mut self, _payoffs: &[i32], _ending: &str) {}

    fn cpu_time(&self) -> Duration {
        self.process.cpu_time()
    }
}

impl Drop for Uci {
    fn drop(&mut self) {
        self.process.quit("quit\n");
    }
}

#[cfg(test)]
mod tests {
    use agon_search::Proof;

    use super::*;

    #[test]
    fn options_are_read_with_spaces_and_choices() {
        let line = "option name Skill Level type spin default 20 min 0 max 20";
        let (name, declared) = read_option(line).unwrap();
        assert_eq!((name.as_str(), declared.min, declared.max), ("Skill Level", Some(0), Some(20)));
        assert_eq!(declared.objection(&OptionValue::Whole(20)), None);
        assert_eq!(declared.objection(&OptionValue::Whole(21)).unwrap(), "a whole number from 0 to 20");
        let line = "option name Style type combo default Solid play var Solid play var Risky";
        let (_, declared) = read_option(line).unwrap();
        assert_eq!(declared.choices, ["Solid play", "Risky"]);
        let text = |text: &str| OptionValue::Text(text.to_string());
        assert_eq!(declared.objection(&text("solid play")), None);
        assert_eq!(declared.objection(&text("wild")).unwrap(), "one of Solid play, Risky");
        assert_eq!(read_option("option nonsense"), None);
    }

    #[test]
    fn info_lines_give_the_last_exact_score() {
        let mut answer = Answer::default();
        answer.add("info depth 3 seldepth 5 score cp 25 nodes 100 nps 5 time 3 pv e2e4 e7e5");
        answer.add("info depth 4 seldepth 4 multipv 2 score cp 900 nodes 150 pv a2a3");
        answer.add("info depth 4 score cp 80 lowerbound nodes 200 pv d2d4");
        answer.add("info string depth 99 score cp 1");
        answer.add("info currmove e2e4 currmovenumber 1");
        assert_eq!((answer.depth, answer.selective_depth, answer.nodes), (3, 5, 200));
        assert_eq!(answer.score.unwrap().number, 0.25);
        assert_eq!(answer.line, ["e2e4", "e7e5"]);
        answer.add("info depth 5 score mate 3 nodes 300 pv f1b5");
        assert_eq!(answer.score.unwrap().proof, Some(Proof::Win(5)));
        answer.add("info depth 6 score mate -2");
        let played = answer.into_move(Duration::ZERO);
        assert_eq!(played.value.proof, Some(Proof::Loss(4)));
        assert_eq!((played.line.len(), played.counters.proven_plies, played.depth), (1, 4, 6));
    }
}
