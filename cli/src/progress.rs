//! How far the work is, on standard error, while somebody watches: one line that is written over and wiped at the end.

use std::io::{self, IsTerminal, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Work shorter than this shows nothing, and nothing is shown more often.
const PAUSE: Duration = Duration::from_millis(250);

/// A line of progress; any thread may show something.
pub struct Progress {
    watched: bool,
    /// When something was shown last, or the work began, and whether the line is in use.
    shown: Mutex<(Instant, bool)>,
}

impl Progress {
    /// Progress of work that begins now.
    pub fn new() -> Self {
        Progress { watched: io::stderr().is_terminal(), shown: Mutex::new((Instant::now(), false)) }
    }

    /// Shows at once what work begins that will not tell how far it is.
    pub fn announce(&self, text: &str) {
        if let Ok(mut shown) = self.shown.lock()
            && self.watched
        {
            *shown = (Instant::now(), true);
            let _ = write!(io::stderr(), "\r{text:<70}");
        }
    }

    /// Shows a text, unless nobody watches or something was shown just now.
    pub fn show(&self, text: impl FnOnce() -> String) {
        if !self.watched {
            return;
        }
        // A thread that finds the line taken goes on with its work: there will be more to show.
        let Ok(mut shown) = self.shown.try_lock() else { return };
        if shown.0.elapsed() >= PAUSE {
            *shown = (Instant::now(), true);
            let _ = write!(io::stderr(), "\r{:<70}", text());
        }
    }

    /// Wipes the line, for other words on standard error or standard output.
    pub fn wipe(&self) {
        if let Ok(mut shown) = self.shown.lock()
            && std::mem::take(&mut shown.1)
        {
            let _ = write!(io::stderr(), "\r{:70}\r", "");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.wipe();
    }
}
