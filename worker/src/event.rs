//! The events of a worker, for display and logs, and its summary.

use std::sync::Arc;
use std::time::Duration;

use agon_proto::Lease;
use agon_proto::v1::Outcome;

/// An event of a worker.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum WorkerEvent {
    /// The coordinator accepted the worker.
    Connected {
        /// The coordinator's epoch.
        epoch: u64,
        /// The number of earlier bouts that the worker continues.
        adopted: usize,
    },
    /// The session ended, or the coordinator could not be reached.
    Disconnected {
        /// The cause.
        reason: String,
        /// The delay before the next attempt.
        retry: Duration,
    },
    /// The coordinator does not accept the credential yet.
    CredentialRejected {
        /// The coordinator's message.
        reason: String,
        /// The delay before the next attempt.
        retry: Duration,
    },
    /// A bout was leased.
    Granted {
        /// The lease.
        lease: Lease,
    },
    /// A bout was played to its end.
    Finished {
        /// The lease.
        lease: Lease,
        /// The number of games, or of searches for a probe.
        games: u64,
        /// The plies of all games.
        plies: u64,
        /// The playing time.
        time: Duration,
    },
    /// A bout cannot be played.
    Failed {
        /// The lease.
        lease: Lease,
        /// The cause.
        reason: String,
    },
    /// The coordinator acknowledged a bout.
    Acknowledged {
        /// The lease.
        lease: Lease,
        /// The outcome of the submission.
        outcome: Outcome,
        /// The coordinator's message, possibly empty.
        reason: String,
    },
    /// A bout was abandoned because its lease ended.
    Dropped {
        /// The lease.
        lease: Lease,
        /// The cause.
        reason: String,
    },
    /// The worker accepts no more bouts.
    Draining {
        /// The cause.
        reason: String,
    },
}

/// The callback for events. The worker's tasks call it, so it must not block.
pub type EventHandler = Arc<dyn Fn(&WorkerEvent) + Send + Sync>;

/// The totals of a worker that ended.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Summary {
    /// The reason for the end.
    pub ended: Ended,
    /// Bouts played to their end.
    pub finished: u64,
    /// Games of these bouts, or searches for probes.
    pub games: u64,
    /// Bouts that could not be played.
    pub failed: u64,
    /// Bouts that the coordinator has committed.
    pub committed: u64,
    /// Bouts returned before they began.
    pub returned: u64,
    /// Bouts interrupted while they were played.
    pub abandoned: u64,
    /// Bouts played but never acknowledged.
    pub unacknowledged: u64,
}

/// The reason why a worker ended.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub enum Ended {
    /// Its caller stopped it.
    #[default]
    Shutdown,
    /// The coordinator drained it.
    Drained {
        /// The coordinator's message.
        reason: String,
    },
}
