//! Converts panics of the Parquet reader into errors.
//!
//! The reader panics on some damaged pages. This can happen where only some columns are read, whose pages are not compared
//! with the seal.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use crate::read::ReadError;

/// Why the bytes of a part cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PartError {
    /// The reader returned an error.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The reader panicked.
    #[error("the file is damaged ({0}); fetch or export it again")]
    Damaged(String),
}

thread_local! {
    /// Whether this thread is inside [`catch_panics`].
    static READING: Cell<bool> = const { Cell::new(false) };
}

static QUIET: Once = Once::new();

/// Runs a reader and returns its panic as an error, without a message on standard error.
pub fn catch_panics<T>(read: impl FnOnce() -> Result<T, ReadError>) -> Result<T, PartError> {
    // All other panics are reported as before.
    QUIET.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !READING.get() {
                before(panic);
            }
        }));
    });
    READING.set(true);
    // Unwind safety: the panic drops everything that was read.
    let outcome = panic::catch_unwind(AssertUnwindSafe(read));
    READING.set(false);
    match outcome {
        Ok(rows) => Ok(rows?),
        Err(panic) => Err(PartError::Damaged(message(&*panic))),
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("the reader panicked").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_panics_as_errors() {
        let error = catch_panics(|| -> Result<(), ReadError> { panic!("at byte {}", 3) });
        assert_eq!(
            error.unwrap_err().to_string(),
            "the file is damaged (at byte 3); fetch or export it again"
        );
        let error = catch_panics(|| crate::read_games(bytes::Bytes::new()).map(|_| ()));
        assert!(matches!(error, Err(PartError::Read(_))));
        assert!(catch_panics(|| Ok(())).is_ok());
    }
}
