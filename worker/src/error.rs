//! Errors that end a worker.

use tonic::{Code, Status};

/// An error that a retry does not fix.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// The coordinator rejected the worker.
    #[error("the coordinator rejected this worker: {reason}")]
    Rejected {
        /// The status code.
        code: Code,
        /// The coordinator's message.
        reason: String,
    },
    /// The coordinator repeatedly rejected the worker's submissions.
    #[error(
        "the coordinator rejected submissions {times} times in a row, most recently: {reason}; run the same build of \
         worker and coordinator"
    )]
    SubmissionsRejected {
        /// The number of rejections.
        times: u32,
        /// The coordinator's last message.
        reason: String,
    },
    /// The thread of a slot could not be started.
    #[error("cannot start the thread of a slot: {0}; configure fewer slots")]
    Threads(#[from] std::io::Error),
    /// A part of the worker ended because of a bug or for want of memory.
    #[error("{task} failed: {reason}; start the worker again, with fewer slots if memory is short")]
    Task {
        /// What the part does.
        task: String,
        /// The reason.
        reason: String,
    },
    /// A setting is invalid.
    #[error("{0}")]
    Config(String),
}

/// Returns whether a retry is pointless after this status.
pub(crate) fn is_final(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::FailedPrecondition
            | Code::InvalidArgument
            | Code::OutOfRange
            | Code::PermissionDenied
            | Code::Unauthenticated
            | Code::Unimplemented
    )
}
