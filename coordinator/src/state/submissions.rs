//! Submissions: who may submit a bout, what happens to it, and what follows from a commit, a replica or a failure.

use std::sync::{Arc, Mutex};

use agon_arena::{Arena, Spec};
use agon_proto::{Lease as WireLease, LeasedBout};
use agon_stats::sprt::Decision;
use agon_transport::Caller;
use tonic::Status;
use tracing::warn;

use super::run::DivergentWorker;
use super::{Coordinator, key_of, leased_bout};
use crate::audit::{AuditKind, Entry};
use crate::leases::Token;
use crate::store::ReplicaDigest;
use crate::verification::replication::{Digest, ReplicaVerdict};
use agon_schedule::Summary;

/// What to do with a received bout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SubmissionVerdict {
    /// Store it.
    Store,
    /// Compare it: it replicates a committed bout.
    Replica,
    /// Reject it: the run is timed, and the bout is leased again.
    Stale,
    /// Reject it: the run accepts no more bouts.
    RunClosed,
}

impl Coordinator {
    /// Returns the spec, the bout and the referee of a lease, if the run has the bout.
    pub(crate) fn leased_bout(
        &self,
        lease: &WireLease,
    ) -> Option<(Arc<Spec>, LeasedBout, Arc<Mutex<Arena>>)> {
        self.with_run(&lease.run, |run| {
            if lease.bout >= run.ledger.total() {
                return None;
            }
            let bout = run.schedule.bout(lease.bout).ok()?;
            let token = Token { epoch: lease.epoch, sequence: lease.sequence };
            Some((Arc::clone(&run.spec), leased_bout(&lease.run, bout, token), Arc::clone(&run.referee)))
        })?
    }

    /// Rejects a caller that may not submit for this worker, or for the holder of the lease if no worker is named.
    pub(crate) fn authorise(
        &self,
        lease: &WireLease,
        worker: Option<&str>,
        caller: &Caller,
    ) -> Result<(), Status> {
        let (key, token) = key_of(lease);
        let state = self.lock();
        let holder = state
            .leases
            .lease(&key)
            .filter(|leased| leased.token == token)
            .map(|leased| leased.worker.as_str());
        let Some(name) = worker.or(holder) else { return Ok(()) };
        if let Some(owner) = state.owned_by_another(name, caller) {
            return Err(Status::permission_denied(format!(
                "{lease} belongs to `{name}`, a worker of {owner}, and this is {caller}"
            )));
        }
        // A worker that reconnects opens a session before it submits.
        if state.workers.get(name).is_none_or(|known| known.caller != *caller) {
            let text = format!("worker `{name}` has no session with {caller}; open a session first");
            return Err(Status::aborted(text));
        }
        Ok(())
    }

    /// Returns why the worker cannot hold this lease, if that is certain.
    pub(crate) fn lease_fault(&self, lease: &WireLease, worker: &str) -> Option<String> {
        let (key, token) = key_of(lease);
        let state = self.lock();
        let total = state.runs.get(&key.run)?.ledger.total();
        if key.bout >= total {
            return Some(format!("{lease} does not exist: the run has bouts 0 to {}", total - 1));
        }
        match state.leases.lease(&key).filter(|leased| leased.token == token) {
            Some(leased) if leased.worker != worker => Some(format!("{lease} was leased to another worker")),
            None if !state.leases.may_have_issued(token) => Some(format!("{lease} was never leased")),
            _ => None,
        }
    }

    /// Returns what to do with a verified bout.
    pub(crate) fn judge_submission(&self, lease: &WireLease) -> SubmissionVerdict {
        let (key, token) = key_of(lease);
        let state = self.lock();
        let Some(run) = state.runs.get(&key.run) else { return SubmissionVerdict::RunClosed };
        let held = state.leases.lease(&key);
        if run.ledger.is_done(key.bout) {
            let requested = state.replication.has(&key) && held.is_some_and(|held| held.token == token);
            // The store compares an unrequested bout with the committed one.
            return if requested { SubmissionVerdict::Replica } else { SubmissionVerdict::Store };
        }
        if !run.state.is_open() {
            return SubmissionVerdict::RunClosed;
        }
        let leased_again = held.is_some_and(|held| held.token != token);
        if leased_again && !run.spec.is_repeatable() {
            SubmissionVerdict::Stale
        } else {
            SubmissionVerdict::Store
        }
    }

    /// Compares a replica with the committed bout. Returns whether this worker is right, as far as known.
    pub(crate) fn resolve_replica(&self, lease: &WireLease, worker: &str, digest: Digest) -> bool {
        let (key, _) = key_of(lease);
        let mut guard = self.lock();
        let state = &mut *guard;
        state.leases.release(&key);
        let verdict = state.replication.record(&key, worker, digest);
        match &verdict {
            ReplicaVerdict::Unrequested => {}
            ReplicaVerdict::Disputed { .. } => {
                self.store.add_replica_digest(ReplicaDigest {
                    key: key.clone(),
                    worker: worker.to_string(),
                    digest,
                });
            }
            ReplicaVerdict::Confirmed { .. }
            | ReplicaVerdict::Outvoted { .. }
            | ReplicaVerdict::Inconclusive => {
                self.store.remove_replica_digests(&key);
            }
        }
        let Some(run) = state.runs.get_mut(&key.run) else { return true };
        run.checked += 1;
        match &verdict {
            ReplicaVerdict::Unrequested | ReplicaVerdict::Confirmed { .. } => true,
            ReplicaVerdict::Disputed { first } => {
                run.disputed += 1;
                let text = format!(
                    "the replica of {worker} differs from the bout of {first}; a third worker decides"
                );
                self.audit(Entry::new(AuditKind::Disputed, text).worker(first).bout(&key));
                self.grant_all(state);
                false
            }
            ReplicaVerdict::Outvoted { worker: outvoted, counted } => {
                let text = if *counted {
                    format!(
                        "two other workers agree on different content; void its bouts: agon data void {} --worker {outvoted}",
                        key.run
                    )
                } else {
                    "its replica differs from the content that two other workers agree on".to_string()
                };
                self.audit(Entry::new(AuditKind::Convicted, text.as_str()).worker(outvoted).bout(&key));
                self.quarantine(state, outvoted, &format!("bout {} of {}: {text}", key.bout, key.run));
                *outvoted != worker
            }
            ReplicaVerdict::Inconclusive => {
                let text = "three workers submitted three different contents";
                self.audit(Entry::new(AuditKind::Disputed, text).worker(worker).bout(&key));
                false
            }
        }
    }

    /// Returns whether another worker should replicate a bout that is about to be stored.
    pub(crate) fn needs_replica(&self, lease: &WireLease, worker: &str, digest: &Digest) -> bool {
        let (key, _) = key_of(lease);
        let state = self.lock();
        let repeatable = state.runs.get(&key.run).is_some_and(|run| run.spec.is_repeatable());
        repeatable && state.replication.is_sampled(worker, &key, digest, self.secret)
    }

    /// Records a stored bout: with its summary, and with its digest if another worker should replicate it; `None` for a
    /// failed bout. Returns the decision of a sequential test.
    pub(crate) fn record_commit(
        &self,
        lease: &WireLease,
        worker: &str,
        played: Option<(&Summary, Option<Digest>)>,
    ) -> Option<Decision> {
        let (key, _) = key_of(lease);
        let mut guard = self.lock();
        let state = &mut *guard;
        state.leases.release(&key);
        let run = state.runs.get_mut(&key.run)?;
        let failed_before: Vec<String> = run.ledger.failed_at(key.bout).map(str::to_string).collect();
        if !run.ledger.finish(key.bout) {
            return None;
        }
        let decision = match played {
            Some((summary, _)) => run.add(key.bout, worker, summary),
            None => run.add_failed(key.bout),
        };
        let more = run.extend();
        let divergent = run.compare_workers();
        if let Some((summary, replicate)) = played {
            for name in &failed_before {
                self.update_reputation(state, name, |reputation| reputation.crashes += 1);
            }
            let (overshoot_us, moves) = summary.overshoot();
            self.metrics.committed(summary.games.len() as u64, moves);
            self.update_reputation(state, worker, |reputation| {
                reputation.bouts += 1;
                reputation.games += summary.games.len() as u64;
                reputation.forfeits += summary.forfeits;
                reputation.overshoot_us += overshoot_us;
                reputation.moves += moves;
            });
            if let Some(digest) = replicate
                && let Some(dropped) = state.replication.add(key.clone(), worker, digest)
            {
                self.store.remove_replica_digests(&dropped);
            }
        }
        for DivergentWorker { worker, reason, certain } in divergent {
            let reason = format!("in {}: {reason}", key.run);
            if certain {
                self.quarantine(state, &worker, &reason);
            } else {
                // This can be chance; replication decides, where bouts are deterministic.
                self.audit(Entry::new(AuditKind::Departs, reason).worker(&worker).bout(&key));
                state.replication.suspect(&worker);
            }
        }
        if more {
            self.grant_all(state);
        }
        drop(guard);
        self.export.notify_one();
        self.changed();
        decision
    }

    /// Records that a worker could not play a bout. Returns whether enough workers failed it to abandon it.
    pub(crate) fn record_failure(&self, lease: &WireLease, worker: &str, reason: &str) -> bool {
        warn!(run = lease.run, bout = lease.bout, worker, reason, "bout failed");
        let (key, token) = key_of(lease);
        let mut guard = self.lock();
        let state = &mut *guard;
        // Ignore the failure of a former holder: the present one may succeed.
        let Some(leased) = state.leases.lease(&key).filter(|leased| leased.token == token).cloned() else {
            return false;
        };
        let worker = leased.worker.as_str();
        let caller = state.workers.get(worker).map_or_else(Caller::anonymous, |known| known.caller.clone());
        self.audit(Entry::new(AuditKind::Failed, reason).worker(worker).bout(&key).caused_by(&caller));
        state.reclaim(&key, token);
        // With fewer workers than it takes to abandon a bout, abandon it when all of them failed.
        let workers = state.workers.values().filter(|worker| worker.queue.is_some()).count();
        let Some(run) = state.runs.get_mut(&key.run) else { return false };
        if run.ledger.is_done(key.bout) {
            // It was a replica, and another worker could play the bout.
            self.update_reputation(state, worker, |reputation| reputation.crashes += 1);
            return false;
        }
        let enough = run.ledger.fail(key.bout, worker) || run.ledger.failures(key.bout) >= workers;
        if enough {
            run.ledger.claim(key.bout);
        } else {
            self.grant_all(state);
        }
        enough
    }

    /// Quarantines a worker for an invalid submission. Returns the reason with the bout.
    pub(crate) fn reject(&self, lease: &WireLease, worker: &str, reason: &str) -> String {
        let (key, _) = key_of(lease);
        let mut guard = self.lock();
        let state = &mut *guard;
        let fault = format!("bout {} of {}: {reason}", key.bout, key.run);
        // A name that never connected cannot be quarantined.
        if let Some(known) = state.workers.get_mut(worker) {
            known.refused += 1;
            if !state.quarantine.contains_key(worker) {
                let entry = Entry::new(AuditKind::Refused, reason).worker(worker).bout(&key);
                self.audit(entry.caused_by(&known.caller));
            }
            self.quarantine(state, worker, &fault);
        }
        fault
    }
}
