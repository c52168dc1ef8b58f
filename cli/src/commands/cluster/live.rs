//! The display of a run in progress: a block that is redrawn on a terminal, an occasional line elsewhere.

use std::io::{self, Write as _};
use std::time::{Duration, Instant};

use agon_proto::v1;
use indicatif::{ProgressBar, ProgressDrawTarget};

use super::status::{conclusion, progress_line, sprt_lines, standings, state_name, tune_lines};
use crate::fail::note;
use crate::progress::message_only;
use crate::terminal::{fitted, size_of_stderr};

/// The time between two lines where there is no terminal.
const BETWEEN_LINES: Duration = Duration::from_secs(10);
/// The most players shown while a run goes on.
const ROWS: usize = 10;
const BAR: usize = 24;
/// Columns and rows of a terminal that does not report its size.
const USUAL_SIZE: (usize, usize) = (80, 24);

/// How long a run waits before a quiet display says so.
pub const LONG_WAIT: Duration = Duration::from_secs(10);

/// The display of one run on standard error.
pub struct Live {
    /// What a quiet display knows; none if it is not quiet.
    quiet: Option<Waiting>,
    /// The block, hidden where standard error is no terminal.
    block: ProgressBar,
    last: Option<Instant>,
}

impl Live {
    /// Creates a display; `quiet` shows only for what a run waits long.
    pub fn new(quiet: bool) -> Live {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let target = if quiet || dumb { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let block = ProgressBar::with_draw_target(None, target).with_style(message_only());
        Live { quiet: quiet.then(Waiting::default), block, last: None }
    }

    /// Shows the run's status.
    pub fn show(&mut self, status: &v1::RunStatus) {
        if let Some(waiting) = &mut self.quiet {
            if let Some(reason) = waiting.overdue(&status.waiting, Instant::now()) {
                note(&format!("{} waits: {reason}", status.run));
            }
            return;
        }
        // A closed standard error must not stop the run.
        let _ = if self.block.is_hidden() { self.line(status) } else { self.draw(status) };
    }

    fn line(&mut self, status: &v1::RunStatus) -> io::Result<()> {
        if self.last.is_none_or(|last| last.elapsed() >= BETWEEN_LINES) {
            self.last = Some(Instant::now());
            writeln!(io::stderr(), "{}: {}{}", status.run, state(status), progress_line(status))?;
            if let Some(tune) = &status.tune {
                writeln!(io::stderr(), "{}", tune_lines(tune))?;
            }
        }
        Ok(())
    }

    fn draw(&mut self, status: &v1::RunStatus) -> io::Result<()> {
        let mut text = Vec::new();
        let share = status.committed as f64 / status.bouts.max(1) as f64;
        let full = (share * BAR as f64) as usize;
        let bar = format!("{}{}", "#".repeat(full), "-".repeat(BAR - full));
        writeln!(text, "{} [{bar}] {:.0} %", status.run, 100.0 * share)?;
        writeln!(text, "{}{}", state(status), progress_line(status))?;
        if let Some(test) = sprt_lines(status) {
            writeln!(text, "{test}")?;
        }
        if let Some(tune) = &status.tune {
            writeln!(text, "{}", tune_lines(tune))?;
        }
        let size = size_of_stderr().unwrap_or(USUAL_SIZE);
        standings(status, ROWS).write_within(Some(size.0.saturating_sub(1)), &mut text)?;
        if let Some(conclusion) = conclusion(status) {
            writeln!(text, "{conclusion}")?;
        }
        let text = fitted(&String::from_utf8_lossy(&text), size);
        self.block.reset();
        self.block.set_message(text.trim_end().to_string());
        self.block.force_draw();
        Ok(())
    }

    /// Clears the block.
    pub fn clear(&self) {
        self.block.finish_and_clear();
    }
}

/// For what a run waits.
#[derive(Default)]
struct Waiting {
    /// The reason, and since when.
    current: Option<(String, Instant)>,
    shown: bool,
}

impl Waiting {
    /// Notes for what the run waits now; empty if it does not. Returns the reason, once, if it has lasted long.
    fn overdue(&mut self, reason: &str, now: Instant) -> Option<String> {
        if self.current.as_ref().is_none_or(|(known, _)| known != reason) {
            *self = Waiting { current: Some((reason.to_string(), now)), shown: reason.is_empty() };
        }
        let (reason, since) = self.current.as_ref()?;
        let is_due = !self.shown && now.duration_since(*since) >= LONG_WAIT;
        self.shown |= is_due;
        is_due.then(|| reason.clone())
    }
}

/// Returns the state as a prefix, unless the run is simply running.
fn state(status: &v1::RunStatus) -> String {
    match status.state() {
        v1::RunState::Running => String::new(),
        v1::RunState::Paused => format!("paused (agon resume {}), ", status.run),
        _ => format!("{}, ", state_name(status)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quiet_display_names_a_long_wait_once() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut waiting = Waiting::default();
        let mut overdue = |reason: &str, seconds| waiting.overdue(reason, after(seconds));
        assert_eq!((overdue("no workers", 0), overdue("no workers", 9)), (None, None));
        assert_eq!(overdue("no workers", 10), Some("no workers".to_string()));
        assert_eq!(overdue("no workers", 60), None);
        assert_eq!((overdue("", 61), overdue("", 99)), (None, None));
        assert_eq!((overdue("the disk is full", 100), overdue("no workers", 109)), (None, None));
        assert_eq!(overdue("no workers", 119), Some("no workers".to_string()));
    }
}
