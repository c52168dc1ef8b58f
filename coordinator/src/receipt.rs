//! The way of a bout from a worker into the state, with one type for each stage: held, received, checked, durable.
//!
//! The fields are private, and each stage is made only from the one before: nothing is committed that the referee has not
//! checked, and nothing is acknowledged as committed that is not on disk.

use std::collections::hash_map::OccupiedEntry;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use agon_arena::Arena;
use agon_proto::{Assembled, Assembler, CompleteBout, Lease, WireError, v1};
use agon_records::{BoutColumns, check_bout, check_probe};
use agon_schedule::Summary;
use agon_storage::summarise;
use agon_transport::Caller;

use crate::audit::credential_of;
use crate::durable::bouts::{Commit, Uncommitted};
use crate::leases::BoutKey;
use crate::standings::decode_checked;
use crate::state::{Admission, Coordinator};
use crate::store::StoredBout;
use crate::verification::replication::{Digest, Opinion};

/// A bout that its worker may submit, and that is partly received.
pub(crate) struct HeldBout {
    lease: Lease,
    assembler: Assembler,
    referee: Arc<Mutex<Arena>>,
}

/// A bout that is completely received.
pub(crate) struct ReceivedBout {
    held: HeldBout,
    complete: Box<CompleteBout>,
}

/// What the last message of a bout completes.
pub(crate) enum Arrived {
    /// The bout was played.
    Complete(Box<ReceivedBout>),
    /// The worker could not play it.
    Failed {
        /// Its lease.
        lease: Lease,
        /// The reason of the worker.
        reason: String,
    },
}

/// A message that does not fit its bout.
pub(crate) struct Invalid {
    /// The lease of the bout.
    pub(crate) lease: Lease,
    /// The worker that submits it.
    pub(crate) worker: String,
    /// What is wrong.
    pub(crate) reason: String,
}

impl HeldBout {
    /// Begins to receive an admitted bout.
    pub(crate) fn new(lease: Lease, admission: Admission) -> Result<HeldBout, WireError> {
        let Admission { spec, bout, referee, .. } = admission;
        Ok(HeldBout { lease, assembler: Assembler::new(spec, bout)?, referee })
    }

    fn worker(&self) -> &str {
        self.assembler.played_by().0
    }
}

/// Adds a message to a bout. Removes the bout if it is complete, or if the message does not fit it.
pub(crate) fn accept(
    mut held: OccupiedEntry<'_, Lease, HeldBout>,
    message: v1::Submission,
) -> Result<Option<Arrived>, Invalid> {
    match held.get_mut().assembler.accept(message) {
        Ok(None) => Ok(None),
        Ok(Some(Assembled::Complete(complete))) => {
            Ok(Some(Arrived::Complete(Box::new(ReceivedBout { held: held.remove(), complete }))))
        }
        Ok(Some(Assembled::Failed { reason })) => {
            Ok(Some(Arrived::Failed { lease: held.remove().lease, reason }))
        }
        Err(error) => {
            let held = held.remove();
            let worker = held.worker().to_string();
            Err(Invalid { lease: held.lease, worker, reason: error.to_string() })
        }
    }
}

impl Arrived {
    /// Returns the lease of the bout.
    pub(crate) fn lease(&self) -> &Lease {
        match self {
            Arrived::Complete(received) => received.lease(),
            Arrived::Failed { lease, .. } => lease,
        }
    }
}

impl ReceivedBout {
    /// Returns the lease.
    pub(crate) fn lease(&self) -> &Lease {
        &self.held.lease
    }

    /// Returns the worker that submitted the bout.
    pub(crate) fn worker(&self) -> &str {
        self.held.worker()
    }

    /// Returns the number of plies.
    pub(crate) fn plies(&self) -> usize {
        self.complete.bout.moves.len()
    }

    /// Replays the games of the bout by the rules.
    pub(crate) fn check(self, coordinator: &Coordinator) -> Result<CheckedBout, String> {
        let started = Instant::now();
        let verified = self.verify();
        coordinator.metrics.checked(started);
        verified?;
        let ReceivedBout { held: HeldBout { lease, assembler, .. }, complete } = self;
        let CompleteBout { bout: columns, content_digest: digest, .. } = *complete;
        let worker = assembler.played_by().0.to_string();
        let summary = summarise(assembler.spec(), &columns);
        let bout = NewBout {
            worker,
            digest: Some(digest),
            summary: Some(summary),
            columns: Some(columns),
            payload: assembler.into_encoded(),
            ..NewBout::empty(&lease.run, lease.bout)
        };
        Ok(CheckedBout { lease, digest, bout })
    }

    fn verify(&self) -> Result<(), String> {
        let (spec, columns) = (self.held.assembler.spec(), &self.complete.bout);
        let bout = &self.held.assembler.leased().bout;
        let referee = self.held.referee.lock().unwrap_or_else(PoisonError::into_inner);
        check_bout(spec, &referee, spec.games(bout, 1.0), columns).map_err(|fault| fault.reason)?;
        columns
            .probes
            .iter()
            .try_for_each(|row| check_probe(spec, &referee, &bout.players, &bout.opening, row))
    }
}

/// A bout whose games the referee has replayed.
pub(crate) struct CheckedBout {
    lease: Lease,
    digest: Digest,
    bout: NewBout,
}

/// A bout that is on disk and counts. Only this is acknowledged as committed.
pub(crate) struct DurableBout(Lease);

/// A checked bout that does not count.
pub(crate) struct UncommittedBout {
    /// Its lease.
    pub(crate) lease: Lease,
    /// The worker that submitted it.
    pub(crate) worker: String,
    /// The digest of its content.
    pub(crate) digest: Digest,
    /// The reason.
    pub(crate) reason: Uncommitted,
}

impl CheckedBout {
    /// Commits the bout. Waits while the disk is full.
    pub(crate) async fn commit(
        self,
        coordinator: &Coordinator,
        caller: &Caller,
    ) -> Result<DurableBout, UncommittedBout> {
        let CheckedBout { lease, digest, bout } = self;
        let worker = bout.worker.clone();
        let (is_replica, is_leased_again) = coordinator.lease_facts(&lease);
        let bout = Box::new(NewBout { credential: credential_of(caller), ..bout });
        let secret = coordinator.sampling_secret();
        let started = Instant::now();
        // The owner answers when the bout is on disk.
        let outcome = coordinator.commit(Commit { bout, is_replica, is_leased_again, secret }).await;
        coordinator.metrics.stored(started);
        match outcome {
            Ok(()) => Ok(DurableBout(lease)),
            Err(reason) => Err(UncommittedBout { lease, worker, digest, reason }),
        }
    }
}

impl DurableBout {
    /// Returns the acknowledgement.
    pub(crate) fn acknowledge(&self) -> v1::Acknowledgement {
        let outcome = v1::Outcome::Committed as i32;
        v1::Acknowledgement { lease: Some((&self.0).into()), outcome, reason: String::new() }
    }
}

/// A bout to write: one that the referee has checked, one that nobody could play, or one of the state file.
pub(crate) struct NewBout {
    pub(crate) run: String,
    pub(crate) bout: u64,
    /// The worker that played it.
    pub(crate) worker: String,
    /// Its credential; empty if it has none.
    pub(crate) credential: String,
    /// The content digest, unless it failed.
    pub(crate) digest: Option<Digest>,
    /// The results and effort, unless it failed.
    pub(crate) summary: Option<Summary>,
    /// The plies, to be exported without reading them back; unless it failed.
    pub(crate) columns: Option<BoutColumns>,
    /// The submitted messages; empty if it failed.
    pub(crate) payload: Vec<u8>,
    /// Why it failed, if it did.
    pub(crate) failure: Option<String>,
    /// Whether another worker should replicate it.
    pub(crate) needs_replica: bool,
    /// Private, so that no other module makes one.
    _made_here: (),
}

impl NewBout {
    fn empty(run: &str, bout: u64) -> NewBout {
        NewBout {
            run: run.to_string(),
            bout,
            worker: String::new(),
            credential: String::new(),
            digest: None,
            summary: None,
            columns: None,
            payload: Vec::new(),
            failure: None,
            needs_replica: false,
            _made_here: (),
        }
    }

    /// Returns a bout that nobody could play, for the reason of the last failure.
    pub(crate) fn abandoned(key: &BoutKey, reason: String) -> NewBout {
        NewBout { failure: Some(reason), ..NewBout::empty(&key.run, key.bout) }
    }

    /// Returns a bout of the state file, without its messages. `None` if it is damaged.
    pub(crate) fn restored(run: &str, row: StoredBout) -> Option<NewBout> {
        let summary = if row.failed { None } else { Some(decode_checked(&row.summary)?) };
        let StoredBout { bout, worker, digest, .. } = row;
        Some(NewBout { worker, digest, summary, ..NewBout::empty(run, bout) })
    }

    /// Returns a bout of a test, played by this worker.
    #[cfg(test)]
    pub(crate) fn of_test(run: &str, bout: u64, worker: &str, digest: Digest) -> NewBout {
        NewBout { worker: worker.to_string(), digest: Some(digest), ..NewBout::empty(run, bout) }
    }

    /// Returns the content according to the worker, unless the bout failed.
    pub(crate) fn opinion(&self) -> Option<Opinion> {
        let NewBout { worker, credential, digest, .. } = self;
        Some(Opinion { worker: worker.clone(), credential: credential.clone(), digest: (*digest)? })
    }
}
