//! Reading bytes that may be damaged. The Parquet reader panics over some of what it finds in pages that were changed, where
//! some columns are read and not compared with the seal; here that is an error like any other, and nothing is printed about
//! it.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use crate::read::ReadError;

/// Why the bytes of a part cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PartError {
    /// The reader says why.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The reader fell over them.
    #[error("the file is damaged ({0}); fetch or export it again")]
    Damaged(String),
}

thread_local! {
    /// Whether this thread is reading bytes that may be damaged.
    static READING: Cell<bool> = const { Cell::new(false) };
}

static QUIET: Once = Once::new();

/// Reads a part, or some of it.
pub fn attempt<T>(read: impl FnOnce() -> Result<T, ReadError>) -> Result<T, PartError> {
    // Panics of all other work are reported as they were before.
    QUIET.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !READING.get() {
                before(panic);
            }
        }));
    });
    READING.set(true);
    // What was read so far is dropped with the panic: nothing half-made is seen afterwards.
    let outcome = panic::catch_unwind(AssertUnwindSafe(read));
    READING.set(false);
    match outcome {
        Ok(rows) => Ok(rows?),
        Err(panic) => Err(PartError::Damaged(message(&*panic))),
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("its reader cannot go on").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_falls_over_is_an_error() {
        let error = attempt(|| -> Result<(), ReadError> { panic!("at byte {}", 3) });
        assert_eq!(
            error.unwrap_err().to_string(),
            "the file is damaged (at byte 3); fetch or export it again"
        );
        let error = attempt(|| crate::read_games(bytes::Bytes::new()).map(|_| ()));
        assert!(matches!(error, Err(PartError::Read(_))));
        assert!(attempt(|| Ok(())).is_ok());
    }
}
