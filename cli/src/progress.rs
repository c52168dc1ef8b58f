//! The progress of long work: one line on standard error while it is a terminal, cleared at the end.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Redraws per second; work that ends sooner shows little.
const REDRAWS: u8 = 4;

/// A line of progress that any thread may update. It is hidden where standard error is not a terminal.
pub struct Progress(ProgressBar);

impl Default for Progress {
    fn default() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(REDRAWS));
        Progress(bar.with_style(message_only()))
    }
}

impl Progress {
    /// Shows a text at once, for work that reports no progress of its own.
    pub fn announce(&self, text: &str) {
        self.0.reset();
        self.0.set_message(text.to_string());
        self.0.force_draw();
    }

    /// Shows a text, unless the line is hidden or was redrawn just now.
    pub fn show(&self, text: impl FnOnce() -> String) {
        if !self.0.is_hidden() && self.0.elapsed() >= Duration::from_secs(1) / u32::from(REDRAWS) {
            self.announce(&text());
        }
    }

    /// Clears the line before other output.
    pub fn clear(&self) {
        self.0.finish_and_clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Returns the style of a display that is all message.
pub fn message_only() -> ProgressStyle {
    ProgressStyle::with_template("{msg}").expect("a template with one known key")
}
