//! Submissions: who may submit a bout, and what the volatile state says of it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agon_arena::{Arena, Spec};
use agon_proto::{Lease as WireLease, LeasedBout};
use agon_transport::Caller;
use tonic::Status;
use tracing::warn;

use super::{Coordinator, Holder, State, Worker, key_of, leased_bout};
use crate::audit::{AuditKind, Entry};
use crate::durable::bouts::Commit;
use crate::durable::ledger::{Attempts, FAILURES, LOSSES};
use crate::durable::workers::Quarantine;
use crate::leases::{BoutKey, Token};
use crate::store::NewBout;

/// The interval at which a caller that waits for an opening looks for it.
const OPENING_CHECK: Duration = Duration::from_secs(1);

/// A bout that a caller may submit.
pub(crate) struct Admission {
    pub(crate) spec: Arc<Spec>,
    pub(crate) bout: LeasedBout,
    pub(crate) referee: Arc<Mutex<Arena>>,
}

/// Why a caller may not submit a bout.
pub(crate) enum Rejection {
    /// The call fails.
    Call(Status),
    /// The worker cannot hold this lease, and is faulty.
    Fault(String),
    /// There is no such run or bout.
    Unknown,
}

impl Coordinator {
    /// Admits a submission of a worker, or of the holder of the lease if no worker is named.
    pub(crate) fn admit(
        &self,
        lease: &WireLease,
        worker: Option<&str>,
        caller: &Caller,
    ) -> Result<Admission, Rejection> {
        let (key, token) = key_of(lease);
        let mut guard = self.lock();
        let state = &mut *guard;
        let leased = state.leases.lease(&key).filter(|leased| leased.token == token);
        if let Some(name) = worker.or(leased.map(|leased| leased.worker.as_str())) {
            if let Some(owner) = state.owned_by_another(name, caller) {
                return Err(Rejection::Call(Status::permission_denied(format!(
                    "{lease} belongs to `{name}`, a worker of {owner}, and this is {caller}"
                ))));
            }
            // A worker that reconnects opens a session before it submits.
            if state.workers.get(name).is_none_or(|known| known.caller != *caller) {
                let text = format!("worker `{name}` has no session with {caller}; open a session first");
                return Err(Rejection::Call(Status::aborted(text)));
            }
        }
        let holder = leased.map(|leased| leased.worker.clone());
        let Some(run) = state.durable.run_mut(&key.run) else { return Err(Rejection::Unknown) };
        let total = run.ledger.total();
        if let Some(worker) = worker {
            if key.bout >= total {
                let fault = format!("{lease} does not exist: the run has bouts 0 to {}", total - 1);
                return Err(Rejection::Fault(fault));
            }
            if holder.is_some_and(|holder| holder != worker) {
                return Err(Rejection::Fault(format!("{lease} was leased to another worker")));
            }
            let credential = caller.to_string();
            if !state.leases.has_issued(token, &key, Holder { worker, credential: &credential }) {
                // The secret of an earlier state may be lost.
                return Err(if state.leases.is_of_this_epoch(token) {
                    Rejection::Fault(format!("{lease} was never leased to this worker"))
                } else {
                    Rejection::Unknown
                });
            }
        }
        if key.bout >= total {
            return Err(Rejection::Unknown);
        }
        if !self.prepare_openings(run, key.bout) {
            let text = format!("the openings of {} are being drawn; submit the bout again", key.run);
            return Err(Rejection::Call(Status::unavailable(text)));
        }
        let bout = run.schedule.bout(key.bout).map_err(|_| Rejection::Unknown)?;
        Ok(Admission {
            spec: Arc::clone(&run.spec),
            bout: leased_bout(&key.run, bout, token),
            referee: Arc::clone(&run.referee),
        })
    }

    /// Returns the spec and the plan of a bout. Waits until its opening is drawn.
    pub(crate) async fn planned_bout(&self, lease: &WireLease) -> Option<(Arc<Spec>, LeasedBout)> {
        let mut changes = self.watch();
        loop {
            changes.mark_unchanged();
            let planned = self.with_run(&lease.run, |run| {
                self.prepare_openings(run, lease.bout).then(|| {
                    let bout = run.schedule.bout(lease.bout).ok()?;
                    let token = Token { epoch: lease.epoch, sequence: lease.sequence };
                    Some((Arc::clone(&run.spec), leased_bout(&lease.run, bout, token)))
                })
            })?;
            if let Some(planned) = planned {
                return planned;
            }
            let _ = tokio::time::timeout(OPENING_CHECK, changes.changed()).await;
        }
    }

    /// Returns whether the bout is leased with this token, and whether it is leased with another.
    pub(crate) fn lease_facts(&self, lease: &WireLease) -> (bool, bool) {
        let (key, token) = key_of(lease);
        let held = self.lock().leases.lease(&key).map(|held| held.token == token);
        (held == Some(true), held == Some(false))
    }

    /// Returns the secret for sampling bouts to replicate.
    pub(crate) fn sampling_secret(&self) -> u64 {
        self.secret
    }

    /// Records that a worker could not play a bout.
    pub(crate) fn record_failure(&self, lease: &WireLease, reason: &str) {
        let (key, token) = key_of(lease);
        let mut guard = self.lock();
        let state = &mut *guard;
        // Ignore the failure of a former holder: the present one may succeed.
        let Some(leased) = state.leases.lease(&key).filter(|leased| leased.token == token).cloned() else {
            return;
        };
        let worker = leased.worker.as_str();
        warn!(run = key.run, bout = key.bout, worker, reason, "bout failed");
        let caller = state.workers.get(worker).map_or_else(Caller::anonymous, |known| known.caller.clone());
        let entry = Entry::new(AuditKind::Failed, reason).worker(worker).bout(&key);
        self.audit_caused_by(entry, &caller);
        state.reclaim(&key, token);
        let Some(run) = state.durable.run_mut(&key.run) else { return };
        if run.ledger.is_done(key.bout) {
            // It was a replica, and another worker could play the bout.
            self.record_crash(state, worker);
            return;
        }
        run.ledger.fail(key.bout, worker, reason);
        self.abandon_bouts(state);
        self.grant_all(state);
    }

    /// Abandons the bouts that nobody can play, so that they hold up no run.
    pub(super) fn abandon_bouts(&self, state: &mut State) {
        for (run, bout, failure) in state.unplayable_bouts() {
            if let Some(run) = state.durable.run_mut(&run) {
                run.ledger.claim(bout);
            }
            let failure = Some(failure);
            self.post(Commit::abandoned(NewBout { run, bout, failure, ..NewBout::default() }));
        }
    }

    /// Quarantines a worker for an invalid submission, durably. Returns the reason with the bout.
    pub(crate) async fn reject(&self, lease: &WireLease, worker: &str, reason: &str) -> String {
        let (key, _) = key_of(lease);
        let fault = format!("bout {} of {}: {reason}", key.bout, key.run);
        let known = {
            let mut state = self.lock();
            let is_trusted = !state.durable.quarantine().contains_key(worker);
            state.workers.get_mut(worker).map(|known| {
                known.refused += 1;
                (known.caller.clone(), is_trusted)
            })
        };
        // A name that never connected cannot be quarantined.
        if let Some((caller, is_trusted)) = known {
            if is_trusted {
                let entry = Entry::new(AuditKind::Refused, reason).worker(worker).bout(&key);
                self.audit_caused_by(entry, &caller);
            }
            self.commit(Quarantine { worker: worker.to_string(), reason: fault.clone() }).await;
        }
        fault
    }
}

impl State {
    /// Returns the bouts that nobody can play, with the reasons.
    fn unplayable_bouts(&self) -> Vec<(String, u64, String)> {
        let quarantine = self.durable.quarantine();
        let candidates: Vec<(&String, &Worker)> =
            self.connected().filter(|(name, _)| !quarantine.contains_key(name.as_str())).collect();
        let mut found = Vec::new();
        for (id, run) in self.durable.runs().filter(|(_, run)| run.record().state.is_open()) {
            for (bout, attempts) in run.ledger.attempts() {
                if self.leases.lease(&BoutKey { run: id.clone(), bout }).is_some() {
                    continue;
                }
                if attempts.losses >= LOSSES {
                    let reason = format!("{LOSSES} leases expired after a worker had begun to play it");
                    found.push((id.clone(), bout, reason));
                } else if self.has_failed_everywhere(attempts, &candidates) {
                    found.push((id.clone(), bout, attempts.reason.clone()));
                }
            }
        }
        found
    }

    /// Returns whether enough workers failed a bout. A credential is one witness, whatever names it uses: as long as a worker
    /// with another credential is connected, the bout waits for that.
    fn has_failed_everywhere(&self, attempts: &Attempts, candidates: &[(&String, &Worker)]) -> bool {
        let credential = |name: &String| self.workers.get(name).map(|worker| worker.credential.as_str());
        let witnesses: BTreeSet<&str> = attempts.failed.iter().filter_map(credential).collect();
        let is_new = |(_, worker): &(&String, &Worker)| !witnesses.contains(worker.credential.as_str());
        let untried = |(name, _): &(&String, &Worker)| !attempts.failed.contains(name.as_str());
        !attempts.failed.is_empty()
            && !candidates.is_empty()
            && !candidates.iter().any(is_new)
            && (attempts.failed.len() >= FAILURES || !candidates.iter().any(untried))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use agon_proto::{Heartbeat, Progress};
    use tokio::sync::mpsc;

    use super::*;
    use crate::fixtures::{coordinator, hello};
    use crate::state::SEND_QUEUE;

    /// Leases the first bout to a worker that just connects. Returns the lease.
    fn lease_first(coordinator: &Coordinator, worker: &str) -> WireLease {
        let (queue, inbox) = mpsc::channel(SEND_QUEUE);
        let session = coordinator.connect(&hello(coordinator, worker), &Caller::anonymous(), queue).unwrap();
        std::mem::forget(inbox);
        let heartbeat = Heartbeat { room: 1, grants_received: u64::MAX, ..Heartbeat::default() };
        coordinator.heartbeat(worker, session, &heartbeat);
        let state = coordinator.lock();
        let (key, lease) = state.leases.of_worker(worker).next().unwrap();
        let Token { epoch, sequence } = lease.token;
        WireLease { run: key.run.clone(), bout: key.bout, epoch, sequence }
    }

    /// Returns the reason for which a bout was abandoned.
    async fn abandoned(coordinator: &Coordinator, lease: &WireLease) -> Option<String> {
        coordinator.settle().await;
        let record = |run: &mut crate::durable::Run| run.record().kept.contains_key(&lease.bout);
        coordinator.with_run(&lease.run, record).unwrap().then(|| lease.to_string())
    }

    #[tokio::test]
    async fn bout_that_three_workers_fail_is_abandoned() {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = coordinator(folder.path()).await;
        for worker in ["keeps-one", "keeps-another"] {
            lease_first(&coordinator, worker);
        }
        for (worker, enough) in [("one", false), ("two", false), ("three", true)] {
            let lease = lease_first(&coordinator, worker);
            assert_eq!(lease.bout, 2, "others get a failed bout first");
            coordinator.record_failure(&lease, "no reason");
            assert_eq!(abandoned(&coordinator, &lease).await.is_some(), enough, "{worker}");
        }
    }

    #[tokio::test]
    async fn failed_bout_does_not_wait_for_workers_in_quarantine() {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = coordinator(folder.path()).await;
        lease_first(&coordinator, "faulty");
        let lease = lease_first(&coordinator, "only");
        coordinator.record_failure(&lease, "no reason");
        assert_eq!(abandoned(&coordinator, &lease).await, None, "`faulty` may play it");
        let quarantine = Quarantine { worker: "faulty".to_string(), reason: "no reason".to_string() };
        coordinator.commit(quarantine).await;
        coordinator.expire_leases(coordinator.now());
        assert!(abandoned(&coordinator, &lease).await.is_some());
    }

    #[tokio::test]
    async fn bout_that_ends_ten_workers_is_abandoned() {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = coordinator(folder.path()).await;
        let mut now = coordinator.now();
        for number in 0..LOSSES {
            let worker = format!("w{number}");
            let lease = lease_first(&coordinator, &worker);
            assert_eq!(lease.bout, 0);
            let progress = Progress { lease: lease.clone(), started: true, game: 0, ply: 1, pulse: 1 };
            let session = u64::from(number) + 1;
            let heartbeat = Heartbeat { progress: vec![progress], ..Heartbeat::default() };
            coordinator.heartbeat(&worker, session, &heartbeat);
            coordinator.disconnect(&worker, session);
            // Time passes in ticks: a gap would postpone the leases.
            let end = now + coordinator.timing.lease * 2;
            while now < end {
                now += coordinator.tick();
                coordinator.expire_leases(now);
            }
            assert_eq!(abandoned(&coordinator, &lease).await.is_some(), number + 1 == LOSSES, "{number}");
        }
    }
}
