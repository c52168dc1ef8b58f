//! Why a worker ends before it is told to.

use tonic::{Code, Status};

/// What a worker cannot mend by trying again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// The coordinator does not want this worker.
    #[error("the coordinator refused this worker: {reason}")]
    Refused {
        /// The kind of refusal.
        code: Code,
        /// The coordinator's sentence.
        reason: String,
    },
    /// The coordinator keeps refusing what the worker submits.
    #[error(
        "the coordinator refused the submissions {times} times in a row, last with: {reason}; worker and coordinator \
         are probably of builds that do not fit"
    )]
    SubmissionsRefused {
        /// How often.
        times: u32,
        /// The coordinator's last sentence.
        reason: String,
    },
    /// The threads that play cannot be started.
    #[error("a thread for a slot cannot be started: {0}; give fewer slots")]
    Threads(#[from] std::io::Error),
    /// A setting makes no sense.
    #[error("{0}")]
    Config(String),
}

/// Whether a status says that trying again later is of no use.
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
