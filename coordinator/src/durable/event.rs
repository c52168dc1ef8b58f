//! Events: the changes of the durable state. Each is written to the state file, then applied in memory.

use agon_schedule::RunState;
use agon_schedule::tuning::Proposal;

use super::{Conviction, Run};
use crate::audit::Entry;
use crate::leases::BoutKey;
use crate::receipt::NewBout;
use crate::standings::RunTotals;
use crate::store::{ReplicaDigest, StoredCell, StoredRun};

/// A change of the durable state.
pub(crate) enum Event {
    /// A run was submitted.
    RunAdded {
        /// Its row.
        stored: Box<StoredRun>,
        /// The run itself, until it is applied.
        run: Option<Box<Run>>,
    },
    /// A bout was played or given up.
    BoutCommitted(Box<NewBout>),
    /// A run moved to another state.
    RunStateChanged {
        run: String,
        to: RunState,
        /// The bout that decided a sequential test, if one did.
        decided: Option<u64>,
    },
    /// A run got another priority.
    Prioritised { run: String, priority: i32 },
    /// Leases of started bouts expired.
    LeasesExpired { run: String, bouts: u64 },
    /// The bouts below `end` may be granted.
    Reserved { run: String, end: u64 },
    /// Bouts were assigned to a part, which is written next.
    PartAssigned { run: String, first: u64, last: u64 },
    /// All bouts below `exported` are in the dataset.
    PartWritten {
        run: String,
        exported: u64,
        /// The totals of all exported bouts.
        totals: RunTotals,
        /// The outcomes that the new part adds.
        cells: Vec<StoredCell>,
    },
    /// Bouts do not count: those in the state are played again, those in the dataset are listed.
    Voided {
        run: String,
        /// The worker whose bouts were selected, or empty.
        worker: String,
        replayed: Vec<u64>,
        voided: Vec<u64>,
        /// The totals of all exported bouts that count.
        totals: RunTotals,
    },
    /// The outcomes of a run by worker were forgotten: nobody compares its workers any more.
    CellsForgotten { run: String },
    /// A Gaussian process proposed values.
    Proposed {
        run: String,
        proposals: Vec<Proposal>,
        /// The totals, which contain the proposals.
        totals: RunTotals,
    },
    /// A replica arrived.
    ReplicaReceived {
        replica: ReplicaDigest,
        /// Whether it differs, so that a further worker decides.
        disputed: bool,
    },
    /// A bout needs no more replicas.
    ReplicationClosed {
        key: BoutKey,
        /// Whose bout was confirmed.
        confirmed: Option<Confirmation>,
    },
    /// A worker was quarantined, for a further reason if it was before.
    Quarantined { worker: String, reason: String },
    /// A worker left quarantine.
    QuarantineLifted { worker: String },
    /// A worker may hold leases.
    LeaseHolderAdded { worker: String },
    /// A worker holds no leases.
    LeaseHolderRemoved { worker: String },
    /// A worker opened a session with a credential.
    WorkerSeen { worker: String, credential: String },
    /// Names of workers with a credential were forgotten.
    WorkersForgotten { credential: String, workers: Vec<String> },
    /// A worker with this credential was convicted: its confirmations are void.
    ConfirmationsVoided { credential: String },
    /// The committed bout of a worker was contradicted by two others: its bouts are voided next.
    Convicted(Conviction),
    /// The bouts of a convicted worker were voided.
    ConvictionClosed(Conviction),
    /// An audit entry.
    Audited(Entry),
}

/// A worker whose bout another worker confirmed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Confirmation {
    pub(crate) worker: String,
    /// Its credential, if the other worker has another one.
    pub(crate) credential: Option<String>,
}

impl Event {
    /// Returns the run concerned.
    pub(crate) fn run(&self) -> Option<&str> {
        match self {
            Event::RunAdded { stored, .. } => Some(&stored.id),
            Event::BoutCommitted(bout) => Some(&bout.run),
            Event::RunStateChanged { run, .. }
            | Event::Prioritised { run, .. }
            | Event::LeasesExpired { run, .. }
            | Event::Reserved { run, .. }
            | Event::PartAssigned { run, .. }
            | Event::PartWritten { run, .. }
            | Event::Voided { run, .. }
            | Event::CellsForgotten { run }
            | Event::Proposed { run, .. } => Some(run),
            Event::ReplicaReceived { replica, .. } => Some(&replica.key.run),
            Event::ReplicationClosed { key, .. } => Some(&key.run),
            Event::Quarantined { .. }
            | Event::QuarantineLifted { .. }
            | Event::LeaseHolderAdded { .. }
            | Event::LeaseHolderRemoved { .. }
            | Event::WorkerSeen { .. }
            | Event::WorkersForgotten { .. }
            | Event::ConfirmationsVoided { .. }
            | Event::Convicted(_)
            | Event::ConvictionClosed(_)
            | Event::Audited(_) => None,
        }
    }
}
