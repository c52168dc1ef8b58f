//! The rows of the state.

use agon_schedule::RunState;

use crate::leases::BoutKey;
use crate::verification::replication::Opinion;

/// A stored run.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct StoredRun {
    /// The id.
    pub id: String,
    /// The text of the spec.
    pub text: String,
    /// The files of the spec, as JSON.
    pub files: String,
    /// The state.
    pub state: RunState,
    /// The time of submission, in microseconds since 1970.
    pub submitted_us: i64,
    /// The search signature of the build that accepted it.
    pub signature: String,
    /// The bout that decided a sequential test.
    pub decided: Option<u64>,
    /// The priority; higher runs are played first.
    pub priority: i32,
    /// All bouts below are exported and no longer in the state.
    pub exported: u64,
    /// The encoded totals of the exported bouts; empty if there are none.
    pub totals: String,
    /// The build that accepted it.
    pub build: String,
    /// Bouts that were started and whose lease expired.
    pub abandoned: u64,
    /// All bouts that were ever granted are below.
    pub granted: u64,
}

/// The opinion of a worker on a bout that is being replicated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ReplicaDigest {
    pub(crate) key: BoutKey,
    pub(crate) opinion: Opinion,
}

/// A stored bout without its messages.
#[derive(Clone, PartialEq, Debug)]
pub struct StoredBout {
    /// The number of the bout.
    pub bout: u64,
    /// The worker that played it.
    pub worker: String,
    /// The content digest, unless it failed.
    pub digest: Option<[u8; 32]>,
    /// The encoded summary.
    pub summary: String,
    /// Whether it failed.
    pub failed: bool,
}

/// An audit entry.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Audit {
    /// The number, assigned by the store.
    pub number: u64,
    /// The time in microseconds since 1970.
    pub at_us: i64,
    /// The name of the kind.
    pub kind: String,
    /// The worker concerned, or empty.
    pub worker: String,
    /// The run concerned, or empty.
    pub run: String,
    /// The bout concerned.
    pub bout: Option<u64>,
    /// What happened.
    pub text: String,
}

/// The bouts of a pairing that a worker played, by outcome for the first player.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredCell {
    /// The worker.
    pub worker: String,
    /// The pairing.
    pub pairing: u64,
    /// Won, lost and drawn bouts.
    pub outcomes: [u64; 3],
}
