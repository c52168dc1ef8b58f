//! What happens in a worker, for whoever shows it.

use std::sync::Arc;
use std::time::Duration;

use agon_proto::Lease;
use agon_proto::v1::Outcome;

/// Something that happened.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum WorkerEvent {
    /// The coordinator welcomed the worker.
    Connected {
        /// The coordinator's epoch.
        epoch: u64,
        /// How many bouts the worker goes on with.
        adopted: usize,
    },
    /// The coordinator cannot be reached.
    Disconnected {
        /// Why.
        reason: String,
        /// When it is tried again.
        retry: Duration,
    },
    /// A bout was lent.
    Granted {
        /// Which.
        lease: Lease,
    },
    /// A bout was played to its end.
    Finished {
        /// Which.
        lease: Lease,
        /// Games, or searches of a probe.
        games: u64,
        /// Plies of all games.
        plies: u64,
        /// How long it took.
        time: Duration,
    },
    /// A bout cannot be played here.
    Failed {
        /// Which.
        lease: Lease,
        /// Why.
        reason: String,
    },
    /// The coordinator has a bout, or does not want it.
    Acknowledged {
        /// Which.
        lease: Lease,
        /// What became of it.
        outcome: Outcome,
        /// The coordinator's sentence, where it has one.
        reason: String,
    },
    /// A bout was given up: the coordinator does not want it from this worker any more.
    Dropped {
        /// Which.
        lease: Lease,
        /// Why.
        reason: String,
    },
    /// Nothing new is started any more.
    Draining {
        /// Why.
        reason: String,
    },
}

/// Who is told. Called from the worker's tasks: it must not block.
pub type Watch = Arc<dyn Fn(&WorkerEvent) + Send + Sync>;

/// What a worker did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Summary {
    /// Why it ended.
    pub ended: Ended,
    /// Bouts played to their end.
    pub finished: u64,
    /// Games of them, or searches of probes.
    pub games: u64,
    /// Bouts that could not be played.
    pub failed: u64,
    /// Bouts that count.
    pub committed: u64,
    /// Bouts given back unstarted.
    pub returned: u64,
    /// Bouts given up while they were played.
    pub abandoned: u64,
    /// Bouts played and never acknowledged.
    pub unacknowledged: u64,
}

/// Why a worker ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ended {
    /// Its caller wanted it.
    Shutdown,
    /// The coordinator wanted it.
    Drained {
        /// The coordinator's sentence.
        reason: String,
    },
}
