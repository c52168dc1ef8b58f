//! The log of a service on standard error: lines without control sequences, written by a thread of their own.
//!
//! A reader that is stuck stops only that thread: further lines wait in a queue of bounded length, and those that do not fit
//! are counted and dropped.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use agon_games::printable::printable;
use clap::{Args, ValueEnum};
use tracing::warn;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::settings::Layers;

/// The number of lines that wait for the reader of the log.
const QUEUED_LINES: usize = 8192;
/// How long the end of the process waits for the reader of the log.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// The log of this process.
static LOG: OnceLock<LogQueue> = OnceLock::new();

/// The log options of a service.
#[derive(Args)]
pub(super) struct Log {
    /// Log format on standard error [default: text]; AGON_LOG sets levels, as in info,agon_worker=debug
    #[arg(long, value_name = "FORM")]
    log: Option<LogForm>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum LogForm {
    /// Human-readable lines
    Text,
    /// One JSON object per line
    Json,
}

impl std::fmt::Display for LogForm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if *self == LogForm::Text { "text" } else { "json" })
    }
}

impl Log {
    /// Merges the layers into the log options.
    pub(super) fn choose(self, layers: &Layers, key: &'static str) -> anyhow::Result<Log> {
        let parse = |text: &str| LogForm::from_str(text, false).map_err(|_| "it is text or json".to_string());
        Ok(Log { log: Some(layers.value_or(key, self.log, parse, LogForm::Text)?) })
    }

    pub(super) fn start(&self, default: &str) {
        start_log(default, self.log.unwrap_or(LogForm::Text));
    }
}

/// A writer of log lines. An event is one line, and no text in it changes the terminal: of all control sequences, only
/// colours pass, and those only if the log is coloured.
struct LogWriter<W> {
    output: W,
    is_coloured: bool,
}

impl<W: io::Write> io::Write for LogWriter<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let mut cleaned = String::with_capacity(text.len() + 1);
        for (index, piece) in text.split('\x1b').enumerate() {
            if index > 0 && self.is_coloured && begins_with_colour(piece) {
                cleaned.push('\x1b');
            }
            cleaned.push_str(&printable(piece));
        }
        cleaned.push('\n');
        self.output.write_all(cleaned.as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

/// Returns whether a text, which follows an escape character, completes a sequence that sets a colour or a weight.
fn begins_with_colour(text: &str) -> bool {
    let Some(parameters) = text.strip_prefix('[') else { return false };
    let end = parameters.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
    end.starts_with('m')
}

/// The lines on their way to the log's thread.
struct LogQueue {
    messages: SyncSender<LogMessage>,
    /// Lines that did not fit since the last report.
    dropped: Arc<AtomicU64>,
}

enum LogMessage {
    Line(Vec<u8>),
    /// Answers when all earlier lines are written.
    Flush(SyncSender<()>),
}

impl LogQueue {
    /// Starts the thread. Where it cannot start, lines are written directly.
    fn start(output: impl io::Write + Send + 'static) -> LogQueue {
        let (messages, inbox) = sync_channel(QUEUED_LINES);
        let dropped = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&dropped);
        let write = move || write_lines(&inbox, output, &counter);
        let _ = std::thread::Builder::new().name("log".to_string()).spawn(write);
        LogQueue { messages, dropped }
    }

    /// Queues a line without waiting.
    fn push(&self, line: Vec<u8>) {
        match self.messages.try_send(LogMessage::Line(line)) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => drop(self.dropped.fetch_add(1, Ordering::Relaxed)),
            Err(TrySendError::Disconnected(message)) => {
                if let LogMessage::Line(line) = message {
                    let _ = io::stderr().write_all(&line);
                }
            }
        }
    }

    /// Waits until all lines are written, or for a while if the reader is stuck. Returns whether they are.
    fn flush(&self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        let (done, written) = sync_channel(1);
        let mut message = LogMessage::Flush(done);
        loop {
            match self.messages.try_send(message) {
                Ok(()) => break,
                Err(TrySendError::Disconnected(_)) => return true,
                Err(TrySendError::Full(_)) if Instant::now() >= deadline => return false,
                Err(TrySendError::Full(unsent)) => message = unsent,
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        written.recv_timeout(deadline.saturating_duration_since(Instant::now())).is_ok()
    }
}

/// Writes lines until the queue is gone.
fn write_lines(inbox: &Receiver<LogMessage>, mut output: impl io::Write, dropped: &AtomicU64) {
    for message in inbox {
        match message {
            // Nothing can be reported about a log that cannot be written.
            LogMessage::Line(line) => drop(output.write_all(&line)),
            LogMessage::Flush(done) => {
                let _ = output.flush();
                let _ = done.send(());
            }
        }
        let lines = dropped.swap(0, Ordering::Relaxed);
        if lines > 0 {
            warn!(lines, "log lines dropped: standard error was not read");
        }
    }
}

/// Writes each buffer as one line of the log.
struct QueueWriter;

impl io::Write for QueueWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if let Some(log) = LOG.get() {
            log.push(line.to_vec());
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes the queued lines of the log, before the process ends.
pub fn flush_log() {
    if let Some(log) = LOG.get() {
        log.flush(FLUSH_TIMEOUT);
    }
}

/// Starts the log on standard error with the levels of `AGON_LOG`.
pub(super) fn start_log(default: &str, form: LogForm) {
    let parse = |text: &str| text.parse::<Targets>().ok();
    let chosen = std::env::var("AGON_LOG").ok().as_deref().and_then(parse);
    let wanted = tracing_subscriber::registry().with(chosen.or_else(|| parse(default)));
    let colour = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    LOG.get_or_init(|| LogQueue::start(io::stderr()));
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(move || LogWriter { output: QueueWriter, is_coloured: colour })
        .with_ansi(colour);
    // A second start in one process keeps the first log.
    let _ = match form {
        LogForm::Text => wanted.with(lines.with_target(false)).try_init(),
        LogForm::Json => wanted.with(lines.json().flatten_event(true)).try_init(),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_of_the_log() {
        let lines = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        struct Shared(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);
        impl io::Write for Shared {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.lock().expect("no thread panics").extend_from_slice(bytes);
                Ok(bytes.len())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let shared = std::sync::Arc::clone(&lines);
        let layer = tracing_subscriber::fmt::layer()
            .with_writer(move || LogWriter {
                output: Shared(std::sync::Arc::clone(&shared)),
                is_coloured: false,
            })
            .without_time()
            .with_target(false)
            .with_ansi(false);
        let reason = "no\x1b[2J\nINFO quarantined honest\u{202e}\u{9b}31m";
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            tracing::warn!(reason, "bout failed");
            tracing::warn!(%reason, "bout failed");
            tracing::warn!("bout failed: {reason}");
        });
        let text = String::from_utf8(lines.lock().expect("no thread panics").clone()).expect("UTF-8");
        assert_eq!(text.lines().count(), 3, "{text:?}");
        assert!(
            begins_with_colour("[1;31mred") && !begins_with_colour("[2J") && !begins_with_colour("]0;title")
        );
        let unsafe_character = |c: char| c != '\n' && agon_games::printable::is_unprintable(c);
        assert!(!text.contains(unsafe_character), "{text:?}");
    }

    /// An output whose reader is stuck until the lock is free.
    struct Stuck(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

    impl io::Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no thread panics").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn stuck_reader_of_the_log_stops_nobody() {
        let written = std::sync::Arc::default();
        let log = LogQueue::start(Stuck(std::sync::Arc::clone(&written)));
        let stuck = written.lock().expect("no thread panics");
        for number in 0..2 * QUEUED_LINES {
            log.push(format!("{number}\n").into_bytes());
        }
        assert!(!log.flush(Duration::from_millis(50)), "nothing is written");
        // One line may be in the hands of the thread.
        let dropped = log.dropped.load(Ordering::Relaxed) as usize;
        assert!((QUEUED_LINES - 1..=QUEUED_LINES).contains(&dropped), "{dropped}");
        drop(stuck);
        assert!(log.flush(Duration::from_secs(20)));
        log.push(b"last\n".to_vec());
        assert!(log.flush(Duration::from_secs(20)));
        let text = String::from_utf8(written.lock().expect("no thread panics").clone()).expect("UTF-8");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            (lines.len(), lines[0], lines[lines.len() - 1]),
            (2 * QUEUED_LINES - dropped + 1, "0", "last")
        );
        assert_eq!(log.dropped.load(Ordering::Relaxed), 0, "they were reported");
    }
}
