//! An engine that misbehaves on command: `mock-engine PROTOCOL [MISBEHAVIOUR [MOVE]]`, with a protocol of uci, gtp and agon.
//!
//! It plays the first legal move as far as its protocol names any: the bot protocol does, and the others play a fixed opening
//! line of their game. The misbehaviour begins at its move with the number MOVE, from 0.

#![allow(clippy::unwrap_used, reason = "a failing test panics")]

use std::io::{self, BufRead, Write};
use std::process::{Command, Stdio, exit};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

/// The line that the engine knows: a game of chess for both colours, which lasts long enough for the tests.
const CHESS: [&str; 12] =
    ["g1f3", "g8f6", "f3g1", "f6g8", "b1c3", "b8c6", "c3b1", "c6b8", "g1h3", "g8h6", "h3g1", "h6g8"];

struct Mock {
    misbehaviour: String,
    from: usize,
    moves: usize,
}

fn say(text: &str) {
    let mut out = io::stdout().lock();
    if writeln!(out, "{text}").and_then(|()| out.flush()).is_err() {
        exit(0);
    }
}

fn forever() -> ! {
    loop {
        sleep(Duration::from_secs(3600));
    }
}

impl Mock {
    /// Misbehaves before a move. Returns the text of an answer that replaces the right one.
    fn before_move(&mut self) -> Option<&'static str> {
        let is_due = self.moves >= self.from;
        self.moves += 1;
        if !is_due {
            return None;
        }
        match self.misbehaviour.as_str() {
            "no-answer" | "ignore-stop" => forever(),
            "late" => sleep(Duration::from_millis(700)),
            "crash" => {
                eprintln!("segmentation fault, as if");
                exit(11);
            }
            "illegal" => return Some("a1a1"),
            "garbage" => return Some("\u{1}\u{2}garbage without end"),
            "flood" => loop {
                say(&"info string flood ".repeat(1000));
            },
            "long-line" => {
                let mut out = io::stdout().lock();
                loop {
                    if out.write_all(&[b'x'; 65_536]).is_err() {
                        exit(0);
                    }
                }
            }
            "stderr-flood" => {
                for number in 0..100_000 {
                    eprintln!("line {number} of a flood");
                }
            }
            "children" => {
                let mut child = Command::new("sleep").arg("3600").stdin(Stdio::null()).spawn().unwrap();
                eprintln!("child {}", child.id());
                child.wait().unwrap();
            }
            "close" => {
                drop(Command::new("true").status());
                // Standard output cannot be closed without unsafe code; a process that replaces this one can.
                use std::os::unix::process::CommandExt as _;
                let _ = Command::new("sh").args(["-c", "exec >&-; sleep 3600"]).exec();
            }
            _ => {}
        }
        None
    }

    fn uci(&mut self) {
        let mut played = 0;
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            match words.first().copied() {
                Some("uci") if self.misbehaviour == "handshake" => say("hello, I am no engine"),
                Some("uci") => {
                    say("id name mock");
                    say("option name Hash type spin default 1 min 1 max 1024");
                    say("option name Clear Hash type button");
                    say("uciok");
                }
                Some("isready") => say("readyok"),
                Some("position") => {
                    let moves = words.iter().skip_while(|word| **word != "moves").skip(1);
                    played = moves.count();
                }
                Some("go") => {
                    let answer = self.before_move();
                    if let Some(garbage) = answer.filter(|_| self.misbehaviour == "garbage") {
                        say(garbage);
                        continue;
                    }
                    say("info depth 1 seldepth 2 score cp 13 nodes 20 time 1 pv e2e4");
                    say(&format!("bestmove {}", answer.unwrap_or(CHESS[played % CHESS.len()])));
                }
                Some("quit") => self.quit(),
                _ => {}
            }
        }
        self.quit();
    }

    fn gtp(&mut self) {
        let mut next = 0;
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            match words.first().copied() {
                Some("protocol_version") if self.misbehaviour == "handshake" => say("= 7\n"),
                Some("protocol_version") => say("= 2\n"),
                Some("clear_board") => {
                    next = 0;
                    say("=\n");
                }
                Some("genmove") => {
                    let answer = self.before_move();
                    if let Some(garbage) = answer.filter(|_| self.misbehaviour == "garbage") {
                        say(garbage);
                        continue;
                    }
                    // Every second row, each player in its own, without a capture.
                    let row = if words[1] == "b" { 2 } else { 5 };
                    let column = char::from(b"ABCDEFGHJ"[next % 9]);
                    let mv = if next < 9 { format!("{column}{row}") } else { "pass".to_string() };
                    next += 1;
                    match (answer, self.misbehaviour.as_str()) {
                        (_, "resign") => say("= resign\n"),
                        (Some(answer), _) => say(&format!("= {answer}\n")),
                        (None, _) => say(&format!("= {mv}\n")),
                    }
                }
                Some("quit") => {
                    say("=\n");
                    self.quit();
                }
                Some("time_settings" | "time_left") => say("? unknown command\n"),
                _ => say("=\n"),
            }
        }
        self.quit();
    }

    fn agon(&mut self) {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            let message: Value = serde_json::from_str(&line).unwrap();
            match message["type"].as_str().unwrap() {
                "hello" if self.misbehaviour == "handshake" => say("ready, of course"),
                "hello" => say(r#"{"type":"ready","name":"mock","options":["Hash"]}"#),
                "move" => match self.before_move() {
                    Some(answer) if self.misbehaviour == "garbage" => say(answer),
                    Some(answer) => say(&format!(r#"{{"type":"move","move":"{answer}"}}"#)),
                    None => {
                        let mv = message["legal"][0].as_str().unwrap();
                        say(&format!(
                            r#"{{"type":"move","move":"{mv}","nodes":7,"depth":3,"score":0.5,"pv":["{mv}"]}}"#
                        ));
                    }
                },
                "quit" => self.quit(),
                _ => {}
            }
        }
        self.quit();
    }

    fn quit(&self) -> ! {
        if self.misbehaviour == "hang-at-quit" {
            forever();
        }
        exit(0);
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |index: usize| arguments.get(index).cloned().unwrap_or_default();
    let mut mock = Mock { misbehaviour: argument(1), from: argument(2).parse().unwrap_or(0), moves: 0 };
    match mock.misbehaviour.as_str() {
        "crash-at-start" => {
            eprintln!("no weights file");
            exit(3);
        }
        "slow-start" => forever(),
        _ => {}
    }
    match argument(0).as_str() {
        "uci" => mock.uci(),
        "gtp" => mock.gtp(),
        "agon" => mock.agon(),
        other => {
            eprintln!("there is no protocol `{other}`");
            exit(2);
        }
    }
}
