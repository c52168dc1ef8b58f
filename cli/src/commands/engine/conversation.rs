//! What `agon engine check` asks an engine outside of games: unknown messages, `stop`, and the end of the process.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command as Process, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use agon_arena::engine::{Command, Protocol};
use agon_games::printable::printable;
use rustix::process::{Pid, Signal, kill_process_group};

use super::check::{Verdict, milliseconds};

/// The time for the answer to a message that needs no search.
const ANSWER: Duration = Duration::from_secs(10);
/// The time for `bestmove` after `stop`, and for the end after `quit`.
const PROMPT: Duration = Duration::from_secs(1);
/// The time of a search before it is stopped.
const SEARCH: Duration = Duration::from_millis(300);

/// A running engine.
struct Conversation {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

/// Runs all checks of a protocol, each with a process of its own.
pub fn check_conversation(command: &Command, protocol: Protocol) -> Vec<(&'static str, Verdict)> {
    let greeted = || -> Result<Conversation, String> {
        let mut talk = Conversation::start(command)?;
        talk.greet(protocol)?;
        Ok(talk)
    };
    let mut verdicts = vec![("unknown", greeted().and_then(|mut talk| talk.unknown(protocol)))];
    if protocol == Protocol::Uci {
        verdicts.push(("stop", greeted().and_then(|mut talk| talk.stop())));
    }
    let quit = if protocol == Protocol::Agon { r#"{"type":"quit"}"# } else { "quit" };
    verdicts.push(("quit", greeted().and_then(|mut talk| talk.end(Some(quit)))));
    verdicts.push(("end of input", greeted().and_then(|mut talk| talk.end(None))));
    verdicts
}

impl Conversation {
    fn start(command: &Command) -> Result<Conversation, String> {
        let mut process = Process::new(&command.program);
        process.args(&command.args).envs(&command.env).process_group(0);
        process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child =
            process.spawn().map_err(|error| format!("`{}` cannot be started: {error}", command.program))?;
        let output = child.stdout.take().expect("the output is piped");
        let (sender, lines) = channel();
        // Ends with the output of the process, or with this conversation.
        std::thread::spawn(move || {
            let mut lines = BufReader::new(output).lines().map_while(Result::ok);
            let _ = lines.try_for_each(|line| sender.send(line));
        });
        Ok(Conversation { input: child.stdin.take(), child, lines })
    }

    fn send(&mut self, line: &str) -> Result<(), String> {
        let input = self.input.as_mut().expect("nothing is sent after the end of the input");
        writeln!(input, "{line}").map_err(|_| format!("it did not read `{line}`"))
    }

    /// Waits for a line that begins with `start`. `question` is named in the error.
    fn wait_for(&mut self, start: &str, question: &str, time: Duration) -> Result<String, String> {
        let deadline = Instant::now() + time;
        let mut last = None;
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) if line.trim_start().starts_with(start) => return Ok(line),
                Ok(line) => last = Some(line),
                Err(reason) => {
                    let what = match reason {
                        RecvTimeoutError::Timeout => format!("no `{start}` within {time:?}"),
                        RecvTimeoutError::Disconnected => "it closed its output".to_string(),
                    };
                    let last = last
                        .map_or_else(String::new, |line| format!("; its last line: {}", printable(&line)));
                    return Err(format!("{question}: {what}{last}"));
                }
            }
        }
    }

    fn ask(&mut self, question: &str, start: &str) -> Result<String, String> {
        self.send(question)?;
        self.wait_for(start, question, ANSWER)
    }

    fn greet(&mut self, protocol: Protocol) -> Result<(), String> {
        match protocol {
            Protocol::Uci => {
                self.ask("uci", "uciok")?;
                self.ask("isready", "readyok")?;
            }
            Protocol::Gtp => drop(self.ask("protocol_version", "=")?),
            Protocol::Agon => drop(self.ask(r#"{"type":"hello","protocol":1}"#, "{")?),
        }
        Ok(())
    }

    /// Asks something that the engine does not know, and then something that it does.
    fn unknown(&mut self, protocol: Protocol) -> Verdict {
        match protocol {
            Protocol::Uci => {
                self.send("agon_asks_nonsense 1")?;
                self.ask("isready", "readyok")?;
                Ok("ignores an unknown command".to_string())
            }
            Protocol::Gtp => {
                self.ask("17 agon_asks_nonsense", "?17")?;
                self.ask("18 name", "=18")?;
                Ok("rejects an unknown command, and repeats the numbers of commands".to_string())
            }
            Protocol::Agon => {
                self.send(r#"{"type":"agon_asks_nonsense","field":[1]}"#)?;
                // It may have ended already; its status shows it.
                let _ = self.send(r#"{"type":"quit","agon_asks_nonsense":1}"#);
                let status = self.wait_for_end()?;
                match status.success() {
                    true => Ok("ignores unknown messages and fields".to_string()),
                    false => Err(format!("it ended by an unknown message or field ({status})")),
                }
            }
        }
    }

    /// Stops a search without a limit; asks whether the engine is ready meanwhile.
    fn stop(&mut self) -> Verdict {
        self.send("position startpos")?;
        self.send("go infinite")?;
        if let Ok(line) = self.wait_for("bestmove", "go infinite", SEARCH) {
            return Err(format!("go infinite: `{}` came before `stop`", printable(&line)));
        }
        self.ask("isready", "readyok")?;
        let started = Instant::now();
        self.send("stop")?;
        let line = self.wait_for("bestmove", "stop", PROMPT)?;
        Ok(format!("{} after {:.1} ms", printable(&line), milliseconds(started.elapsed())))
    }

    /// Says `quit`, or closes the input, and waits for the end of the process.
    fn end(&mut self, quit: Option<&str>) -> Verdict {
        let started = Instant::now();
        match quit {
            Some(quit) => self.send(quit)?,
            None => drop(self.input.take()),
        }
        let status = self.wait_for_end()?;
        Ok(format!("ends after {:.0} ms ({status})", milliseconds(started.elapsed())))
    }

    fn wait_for_end(&mut self) -> Result<ExitStatus, String> {
        let started = Instant::now();
        while started.elapsed() < PROMPT {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Ok(status);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Err(format!("it still ran after {PROMPT:?}; Agon kills it"))
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}
