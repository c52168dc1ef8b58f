//! The client of GTP, the Go Text Protocol (G. Farnebäck, version 2 draft 2, 2002), for go and for othello.
//!
//! The engine is told every move and asked for its own. Its opinion about the end of the game is never asked for.

use std::sync::Arc;
use std::time::{Duration, Instant};

use agon_arena::engine::Command;
use agon_arena::engine::EngineOptions;
use agon_arena::external::Request;
use agon_arena::{EngineConfig, EngineError, ExternalMove, ExternalPlayer, FaultKind};
use agon_games::GameSpec;
use agon_search::{Counters, Limit, SearchControl, Value};

use super::process::EngineProcess;
use super::time::Stopwatch;
use super::uci::not_started;

/// The colours by seat.
const COLOURS: [&str; 2] = ["b", "w"];

/// A running GTP engine.
pub(super) struct Gtp {
    process: EngineProcess,
    config: EngineConfig,
    game: GameSpec,
    /// The number of moves of the game that the engine knows.
    known: usize,
    /// Whether it knows the time of the game.
    timed: bool,
}

impl Gtp {
    /// Starts an engine and asks for its version of the protocol.
    pub(super) fn start(
        command: &Command,
        config: &EngineConfig,
        game: &GameSpec,
        control: &Arc<SearchControl>,
    ) -> Result<Gtp, EngineError> {
        let process = EngineProcess::start(command, control)?;
        let mut gtp = Gtp { process, config: config.clone(), game: game.clone(), known: 0, timed: false };
        let deadline = Instant::now() + config.start;
        let version = gtp.ask("protocol_version", deadline).map_err(|error| not_started(error, "= 2"))?;
        match version {
            // Many engines do not know the command.
            Ok(version) if version != "2" => {
                let reason = format!("it speaks version {version} of GTP, and Agon version 2");
                Err(gtp.process.fault(FaultKind::Crash, &reason))
            }
            _ => Ok(gtp),
        }
    }

    /// Sends a command and reads its response: the text behind `=`, or as an error that behind `?`.
    fn ask(&mut self, command: &str, deadline: Instant) -> Result<Result<String, String>, EngineError> {
        self.process.write(&format!("{command}\n"), deadline)?;
        read_response(&mut self.process, |process| process.read_line(deadline))
    }

    /// Sends a command that the engine must accept.
    fn tell(&mut self, command: &str, deadline: Instant) -> Result<(), EngineError> {
        let answer = self.ask(command, deadline)?;
        let refused =
            |reason| self.process.fault(FaultKind::Crash, &format!("it refused `{command}`: {reason}"));
        answer.map(drop).map_err(refused)
    }

    /// Tells the time, which engines may ignore.
    fn tell_time(&mut self, request: &Request<'_>, deadline: Instant) -> Result<(), EngineError> {
        let seconds = |time: Duration| time.as_millis().div_ceil(1000);
        match request.limit() {
            Limit::Wall(time) | Limit::Cpu(time) if !self.timed => {
                // No main time, and one move in each period.
                drop(self.ask(&format!("time_settings 0 {} 1", seconds(time)), deadline)?);
            }
            Limit::Clock { .. } => {
                for (seat, limit) in request.limits.iter().enumerate() {
                    let Limit::Clock { remaining, .. } = limit else { continue };
                    if !self.timed {
                        drop(self.ask(&format!("time_settings {} 0 0", remaining.as_secs()), deadline)?);
                    }
                    self.timed = true;
                    let colour = COLOURS[seat.min(1)];
                    drop(self.ask(&format!("time_left {colour} {} 0", remaining.as_secs()), deadline)?);
                }
            }
            Limit::Wall(_) | Limit::Cpu(_) | Limit::Nodes(_) | Limit::Depth(_) => {}
        }
        self.timed = true;
        Ok(())
    }
}

/// Returns a move, of which GTP says nothing more.
fn chosen(mv: String, time: Duration) -> ExternalMove {
    ExternalMove {
        mv,
        counters: Counters::default(),
        depth: 0,
        selective_depth: 0,
        value: Value { number: 0.0, proof: None },
        line: Vec::new(),
        time,
    }
}

/// Reads a response up to its empty line.
fn read_response(
    process: &mut EngineProcess,
    read_line: impl Fn(&mut EngineProcess) -> Result<String, EngineError>,
) -> Result<Result<String, String>, EngineError> {
    let first = loop {
        let line = read_line(process)?;
        if !line.trim().is_empty() {
            break line;
        }
    };
    let line = first.trim();
    let (accepted, rest) = match (line.strip_prefix('='), line.strip_prefix('?')) {
        (Some(rest), _) => (true, rest),
        (None, Some(rest)) => (false, rest),
        (None, None) => {
            return Err(process.fault(FaultKind::Crash, "its response begins with neither `=` nor `?`"));
        }
    };
    while !read_line(process)?.trim().is_empty() {}
    // A number of the command may follow, which Agon never gives.
    let text = rest.trim().to_string();
    Ok(if accepted { Ok(text) } else { Err(text) })
}

impl ExternalPlayer for Gtp {
    fn set_options(&mut self, _options: &EngineOptions) -> Result<(), EngineError> {
        Ok(())
    }

    fn new_game(&mut self, start: Option<&str>, _seat: usize) -> Result<(), EngineError> {
        if start.is_some() {
            let reason = "gtp cannot set up a position; give openings as moves";
            return Err(EngineError::Unavailable(reason.to_string()));
        }
        let deadline = Instant::now() + self.config.start;
        let parameters = self.game.parameters();
        if self.game.name() == "go" {
            let (size, komi) = (parameters.integer("size"), f64::from(parameters.halves("komi")) / 2.0);
            self.tell(&format!("boardsize {size}"), deadline)?;
            self.tell("clear_board", deadline)?;
            self.tell(&format!("komi {komi}"), deadline)?;
        } else {
            // The size cannot vary, and some engines know no command for it.
            drop(self.ask("boardsize 8", deadline)?);
            self.tell("clear_board", deadline)?;
        }
        (self.known, self.timed) = (0, false);
        Ok(())
    }

    fn choose(&mut self, request: &Request<'_>) -> Result<ExternalMove, EngineError> {
        // 1. The moves that it does not know.
        let deadline = Instant::now() + self.config.start;
        // A pass of othello is forced and follows from the rules, and not all engines know the word.
        let is_othello = self.game.name() == "othello";
        for played in request.moves[self.known..].iter().filter(|played| !is_othello || played.mv != "pass") {
            let colour = COLOURS[played.seat.unwrap_or(0).min(1)];
            self.tell(&format!("play {colour} {}", played.mv), deadline)?;
        }
        self.known = request.moves.len();
        if is_othello && request.position.legal() == ["pass"] {
            return Ok(chosen("pass".to_string(), Duration::ZERO));
        }
        self.tell_time(request, deadline)?;
        // 2. Its own.
        let watch = Stopwatch::start(request.limit(), &self.config, &self.process);
        let late = |error: EngineError, process: &EngineProcess| match error {
            EngineError::Fault(fault) if fault.kind == FaultKind::NoAnswer => {
                process.fault(FaultKind::NoAnswer, &watch.too_late("its process was ended"))
            }
            error => error,
        };
        let command = format!("genmove {}\n", COLOURS[request.seat.min(1)]);
        let deadline = watch.deadline(&self.process)?;
        self.process.write(&command, deadline).map_err(|error| late(error, &self.process))?;
        let answer = read_response(&mut self.process, |process| watch.read_line(process));
        let time = watch.elapsed(&self.process);
        match answer.map_err(|error| late(error, &self.process))? {
            Ok(mv) if mv.eq_ignore_ascii_case("resign") => {
                Err(self.process.fault(FaultKind::Resigned, "it resigned"))
            }
            Ok(mv) => {
                self.known += 1;
                Ok(chosen(if is_othello { mv.to_ascii_lowercase() } else { mv }, time))
            }
            Err(reason) => {
                Err(self.process.fault(FaultKind::Crash, &format!("it refused `genmove`: {reason}")))
            }
        }
    }

    fn end_game(&mut self, _payoffs: &[i32], _ending: &str) {}

    fn cpu_time(&self) -> Duration {
        self.process.cpu_time()
    }
}

impl Drop for Gtp {
    fn drop(&mut self) {
        self.process.quit("quit\n");
    }
}
