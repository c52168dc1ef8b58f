//! A run as it goes on: a block that is drawn again on a terminal, a line now and then elsewhere.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use agon_proto::v1;

use super::status::{progress_line, sprt_lines, state_name, tune_lines, write_standings};
use crate::terminal::{fitted, size_of_stderr};

/// How often a line is written where there is no terminal.
const BETWEEN_LINES: Duration = Duration::from_secs(10);
/// The most players shown while a run goes on.
const ROWS: usize = 10;
const BAR: usize = 24;
/// Columns and rows of a terminal that does not tell them.
const USUAL_SIZE: (usize, usize) = (80, 24);

/// The display of one run on standard error.
pub struct Live {
    terminal: bool,
    quiet: bool,
    /// Lines drawn the last time.
    drawn: usize,
    last: Option<Instant>,
}

impl Live {
    /// A display; `quiet` shows nothing.
    pub fn new(quiet: bool) -> Live {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        Live { terminal: io::stderr().is_terminal() && !dumb, quiet, drawn: 0, last: None }
    }

    /// Shows how the run is.
    pub fn show(&mut self, status: &v1::RunStatus) {
        if self.quiet {
            return;
        }
        // Where standard error is closed there is nobody to show it to.
        let _ = if self.terminal { self.draw(status) } else { self.line(status) };
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
        write_standings(status, ROWS, &mut text)?;
        let above = self.above();
        let text = fitted(&String::from_utf8_lossy(&text), size_of_stderr().unwrap_or(USUAL_SIZE));
        self.drawn = text.lines().count();
        io::stderr().write_all(format!("{above}{text}").as_bytes())
    }

    /// Takes the block away.
    pub fn clear(&mut self) -> io::Result<()> {
        io::stderr().write_all(self.above().as_bytes())
    }

    /// What takes the cursor to the beginning of the block and wipes it, in one piece: a Ctrl-C that is typed shows up
    /// between pieces, and leaves the cursor behind it.
    fn above(&mut self) -> String {
        match std::mem::take(&mut self.drawn) {
            0 => String::new(),
            drawn => format!("\r\x1b[{drawn}A\x1b[J"),
        }
    }
}

/// The state before what it explains, where the run does not simply go on.
fn state(status: &v1::RunStatus) -> String {
    match status.state() {
        v1::RunState::Running => String::new(),
        v1::RunState::Paused => format!("paused (agon resume {}), ", status.run),
        _ => format!("{}, ", state_name(status)),
    }
}
