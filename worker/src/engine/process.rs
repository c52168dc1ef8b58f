//! The process of an engine: lines in, lines out, and an end that leaves nothing behind.
//!
//! One thread reads and writes. It waits for output with `poll`, so that an engine costs no other thread, and reads only while it
//! waits: an engine that floods its pipes blocks, and memory stays bounded. The process leads a group of its own, which is killed
//! as a whole.

use std::collections::VecDeque;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command as Process, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use agon_arena::engine::Command;
use agon_arena::{EngineError, EngineFault, FaultKind};
use agon_games::printable::printable;
use agon_search::SearchControl;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

/// The longest line that is read; an engine that writes a longer one is at fault.
const MAX_LINE: usize = 1 << 20;

/// The most bytes that an engine may write before it answers.
const MAX_ANSWER: usize = 64 << 20;

/// The number of kept lines of each stream, and their bytes.
const LAST_LINES: usize = 4;
const MAX_KEPT: usize = 300;

/// How often a waiting thread looks whether it is interrupted and shows that it waits.
const LOOK: Duration = Duration::from_millis(50);

/// The time that an engine has to exit after it was asked to.
const QUIT: Duration = Duration::from_secs(1);

/// A running engine's process.
pub(crate) struct EngineProcess {
    child: Child,
    stdin: ChildStdin,
    stdout: Pipe<ChildStdout>,
    stderr: Pipe<ChildStderr>,
    control: Arc<SearchControl>,
    /// The last lines of both streams, for the detail of a fault.
    last: VecDeque<String>,
    killed: bool,
}

/// The readable end of a pipe with the bytes that are not yet lines.
struct Pipe<R> {
    stream: R,
    buffer: Vec<u8>,
    /// The start of the first line that was not taken.
    start: usize,
    open: bool,
}

impl<R: std::io::Read> Pipe<R> {
    fn new(stream: R) -> Pipe<R> {
        Pipe { stream, buffer: Vec::new(), start: 0, open: true }
    }

    /// Reads what is there. Precondition: the pipe is readable.
    fn read(&mut self) -> usize {
        self.buffer.drain(..self.start);
        self.start = 0;
        let mut chunk = [0; 16 << 10];
        let count = self.stream.read(&mut chunk).unwrap_or(0);
        self.open = count > 0;
        self.buffer.extend_from_slice(&chunk[..count]);
        count
    }

    /// Takes the next complete line.
    fn line(&mut self) -> Option<String> {
        let length = self.buffer[self.start..].iter().position(|&byte| byte == b'\n')?;
        let line = String::from_utf8_lossy(&self.buffer[self.start..self.start + length]).into_owned();
        self.start += length + 1;
        Some(line)
    }

    /// Returns the number of bytes that are not taken.
    fn pending(&self) -> usize {
        self.buffer.len() - self.start
    }
}

impl EngineProcess {
    /// Starts the process.
    pub(crate) fn start(
        command: &Command,
        control: &Arc<SearchControl>,
    ) -> Result<EngineProcess, EngineError> {
        let mut process = Process::new(&command.program);
        process.args(&command.args).envs(&command.env).process_group(0);
        process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(directory) = &command.directory {
            process.current_dir(directory);
        }
        let unavailable = |error: std::io::Error| {
            EngineError::Unavailable(format!("cannot start the engine `{}`: {error}", command.program))
        };
        let mut child = process.spawn().map_err(unavailable)?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            unreachable!("all streams are piped");
        };
        let control = Arc::clone(control);
        let (stdout, stderr) = (Pipe::new(stdout), Pipe::new(stderr));
        let process =
            EngineProcess { child, stdin, stdout, stderr, control, last: VecDeque::new(), killed: false };
        // A process that does not read must not block the thread.
        rustix::io::ioctl_fionbio(&process.stdin, true).map_err(|error| unavailable(error.into()))?;
        Ok(process)
    }

    /// Writes a text, which ends with a line break.
    pub(crate) fn write(&mut self, text: &str, deadline: Instant) -> Result<(), EngineError> {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            match self.stdin.write(rest) {
                Ok(count) => rest = &rest[count..],
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => self.wait(deadline, true)?,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return Err(self.crashed()),
            }
        }
        Ok(())
    }

    /// Reads the next line without its end, until the deadline.
    pub(crate) fn read_line(&mut self, deadline: Instant) -> Result<String, EngineError> {
        let mut received = 0;
        loop {
            if let Some(line) = self.stdout.line() {
                self.keep("", &line);
                return Ok(line);
            }
            if !self.stdout.open {
                return Err(self.crashed());
            }
            let before = self.stdout.pending();
            if before > MAX_LINE || received > MAX_ANSWER {
                let reason = format!("it wrote a line of more than {MAX_LINE} bytes");
                return Err(self.fault(FaultKind::Crash, &reason));
            }
            self.wait(deadline, false)?;
            received += self.stdout.pending().saturating_sub(before);
        }
    }

    /// Waits until a stream was read, or can be written.
    fn wait(&mut self, deadline: Instant, writable: bool) -> Result<(), EngineError> {
        loop {
            if self.control.is_interrupted() {
                return Err(EngineError::Interrupted);
            }
            let Some(left) = deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
            else {
                return Err(self.fault(FaultKind::NoAnswer, "it did not answer in time"));
            };
            let timeout = Timespec::try_from(left.min(LOOK)).expect("a short time");
            // A closed stream would end every wait. While writing, an engine that only writes must not fill the memory.
            let wanted = [
                self.stdout.open && (!writable || self.stdout.pending() < MAX_LINE),
                self.stderr.open,
                writable,
            ];
            let streams = [
                PollFd::new(&self.stdout.stream, PollFlags::IN),
                PollFd::new(&self.stderr.stream, PollFlags::IN),
                PollFd::new(&self.stdin, PollFlags::OUT),
            ];
            let mut polled: Vec<PollFd<'_>> =
                streams.into_iter().zip(wanted).filter(|(_, wanted)| *wanted).map(|(fd, _)| fd).collect();
            match poll(&mut polled, Some(&timeout)) {
                Ok(0) => {
                    self.control.show_progress();
                    continue;
                }
                Ok(_) => {}
                Err(error) if error == rustix::io::Errno::INTR => continue,
                Err(_) => return Err(self.crashed()),
            }
            let mut ready = polled.iter().map(|stream| !stream.revents().is_empty());
            let [answered, complained, can_write] =
                wanted.map(|wanted| wanted && ready.next().unwrap_or(false));
            drop(polled);
            if complained {
                self.read_errors();
            }
            if answered {
                self.stdout.read();
            }
            if can_write || (answered && !writable) {
                return Ok(());
            }
        }
    }

    fn read_errors(&mut self) {
        self.stderr.read();
        while let Some(line) = self.stderr.line() {
            self.keep("stderr: ", &line);
        }
        if self.stderr.pending() > MAX_LINE {
            self.stderr.buffer.clear();
        }
    }

    fn keep(&mut self, stream: &str, line: &str) {
        if self.last.len() == LAST_LINES {
            self.last.pop_front();
        }
        let mut end = line.len().min(MAX_KEPT);
        while !line.is_char_boundary(end) {
            end -= 1;
        }
        self.last.push_back(format!("{stream}{}", &line[..end]));
    }

    /// Returns a fault with the last lines of the engine.
    pub(crate) fn fault(&self, kind: FaultKind, reason: &str) -> EngineError {
        let last: Vec<_> = self.last.iter().map(|line| printable(line)).collect();
        let lines =
            if last.is_empty() { String::new() } else { format!("; its last lines: {}", last.join(" | ")) };
        EngineFault { kind, detail: format!("{reason}{lines}") }.into()
    }

    /// Returns the fault of a process that ended or closed its output.
    fn crashed(&mut self) -> EngineError {
        // Its last words may still be in the pipe, and its end may follow that of its output.
        let deadline = Instant::now() + Duration::from_millis(100);
        while self.stderr.open && Instant::now() < deadline {
            let timeout = Timespec::try_from(Duration::from_millis(20)).expect("a short time");
            let mut polled = [PollFd::new(&self.stderr.stream, PollFlags::IN)];
            match poll(&mut polled, Some(&timeout)) {
                Ok(1..) => self.read_errors(),
                _ => break,
            }
        }
        let reason = match self.exit_within(Duration::from_millis(100)) {
            Some(status) => format!("it ended ({status})"),
            None => "it closed its output".to_string(),
        };
        self.fault(FaultKind::Crash, &reason)
    }

    /// Waits a short time for the end of the process and describes it. Does not reap it, so that the number of its group stays
    /// its own.
    fn exit_within(&self, time: Duration) -> Option<String> {
        let deadline = Instant::now() + time;
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        loop {
            match waitid(WaitId::Pid(self.group()?), options) {
                Ok(Some(status)) => {
                    return Some(match (status.exit_status(), status.terminating_signal()) {
                        (Some(code), _) => format!("exit code {code}"),
                        (None, Some(signal)) => format!("signal {signal}"),
                        (None, None) => "in an unknown way".to_string(),
                    });
                }
                Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(2)),
                Ok(None) | Err(_) => return None,
            }
        }
    }

    /// Returns the number of the process and of its group.
    fn group(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
    }

    /// Returns the processor time of the process and of its children that ended, in steps of a hundredth of a second.
    pub(crate) fn cpu_time(&self) -> Duration {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        cpu_time_of(&text)
    }

    /// Asks the engine to exit, and kills its process group.
    pub(crate) fn quit(&mut self, text: &str) {
        let deadline = Instant::now() + QUIT;
        if !self.control.is_interrupted()
            && self.exit_within(Duration::ZERO).is_none()
            && self.write(text, deadline).is_ok()
        {
            self.exit_within(QUIT);
        }
        self.kill();
    }

    fn kill(&mut self) {
        // The number of the group is not used again before its leader is reaped.
        if let Some(group) = self.group().filter(|_| !self.killed) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        self.killed = true;
        let _ = self.child.wait();
    }
}

impl Drop for EngineProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns the processor time in a text of `/proc/PID/stat`: fields 14 to 17, in hundredths of a second.
fn cpu_time_of(stat: &str) -> Duration {
    // The name of the program, in brackets, may have spaces.
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks: u64 =
        fields.split_ascii_whitespace().skip(11).take(4).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_read_behind_the_name() {
        let stat = "12 (a) b) S 1 12 12 0 -1 4194304 96 0 0 0 7 3 2 1 20 0 1 0 100 5 6";
        assert_eq!(cpu_time_of(stat), Duration::from_millis(130));
        assert_eq!(cpu_time_of(""), Duration::ZERO);
    }
}
