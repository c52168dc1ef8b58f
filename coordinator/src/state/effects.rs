//! Effects: what follows from durable events in the volatile state, for leases, sessions and metrics.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use agon_proto::Lease as WireLease;
use agon_proto::v1::{self, coordinator_message::Kind};
use tracing::{info, warn};

use super::{Coordinator, State, key_of, lease_ref};
use crate::audit::{AuditKind, Entry};
use crate::durable::Event;
use crate::durable::workers::{Forget, NAMES_OF_CREDENTIAL, Quarantine};
use crate::leases::BoutKey;
use crate::receipt::NewBout;
use crate::verification::reputation::Reputation;
use agon_schedule::RunState;

impl Coordinator {
    /// Applies events that are on disk, and what follows from them. Returns the runs whose tests have decided.
    pub(crate) fn apply(self: &Arc<Coordinator>, mut events: Vec<Event>) -> BTreeSet<String> {
        let mut verdicts = BTreeSet::new();
        if events.is_empty() {
            return verdicts;
        }
        let mut guard = self.lock();
        let state = &mut *guard;
        let (mut grant, mut tuned) = (false, false);
        for event in &mut events {
            // Applying a bout forgets who failed it.
            let failed_before = match event {
                Event::BoutCommitted(bout) if bout.failure.is_none() => state.failed_at(bout),
                _ => Vec::new(),
            };
            state.durable.apply(event);
            grant |= self.follow(state, event, &failed_before);
            if let Some((id, run)) = event.run().and_then(|id| Some((id, state.durable.run(id)?))) {
                tuned |= run.schedule.tuning().is_some();
                if state.durable.due_verdict(id).is_some() {
                    verdicts.insert(id.to_string());
                }
            }
            if matches!(event, Event::ConvictionClosed(_)) {
                let due = |id: &&String| state.durable.due_verdict(id).is_some();
                verdicts.extend(state.durable.order().iter().filter(due).cloned());
            }
        }
        if grant {
            self.grant_all(state);
        }
        drop(guard);
        if tuned {
            self.computations.notify_one();
        }
        self.export.notify_one();
        self.changed();
        verdicts
    }

    /// Does what follows from an event. Returns whether that may allow new grants.
    fn follow(&self, state: &mut State, event: &mut Event, failed_before: &[String]) -> bool {
        match event {
            Event::BoutCommitted(bout) => self.follow_bout(state, bout, failed_before),
            Event::RunStateChanged { run, to, .. } => {
                info!(run, state = to.name(), "run moved");
                if !to.is_open() {
                    let reason = match to {
                        RunState::Decided => "the test has decided".to_string(),
                        _ => format!("the run is {}", to.name()),
                    };
                    state.end_leases(run, &reason);
                }
                true
            }
            Event::PartWritten { run, .. } => {
                if let Some(run) = state.durable.run_mut(run) {
                    run.last_export = Some(Instant::now());
                }
                false
            }
            Event::Voided { run, .. } => {
                self.recent.remove_run(run);
                let held: Vec<u64> = state.leases.of_run(run).map(|(key, _)| key.bout).collect();
                if let Some(run) = state.durable.run_mut(run) {
                    held.into_iter().for_each(|bout| run.ledger.claim(bout));
                }
                true
            }
            Event::Reserved { run, .. } => {
                state.reservations.remove(run);
                true
            }
            Event::ReplicaReceived { replica, .. } => {
                state.leases.release_all(&replica.key);
                true
            }
            Event::Quarantined { worker, reason } => {
                warn!(worker, reason, "worker quarantined");
                state.revoke_all(worker, &format!("worker quarantined: {reason}"));
                true
            }
            Event::QuarantineLifted { worker } => {
                if let Some(known) = state.workers.get_mut(worker.as_str()) {
                    known.reputation.pardon();
                }
                true
            }
            Event::Audited(entry) => {
                self.metrics.audited(entry.kind);
                false
            }
            Event::Convicted(_) => {
                self.convictions.notify_one();
                false
            }
            Event::WorkerSeen { credential, .. } => {
                if state.durable.names(credential).len().is_multiple_of(NAMES_OF_CREDENTIAL) {
                    self.post(Forget { credential: credential.clone() });
                }
                false
            }
            // New bouts of a run may have waited for the replica.
            Event::ReplicationClosed { .. }
            | Event::RunAdded { .. }
            | Event::Prioritised { .. }
            | Event::Proposed { .. } => true,
            Event::LeasesExpired { .. }
            | Event::PartAssigned { .. }
            | Event::WorkersForgotten { .. }
            | Event::CellsForgotten { .. }
            | Event::ConfirmationsVoided { .. }
            | Event::ConvictionClosed(_)
            | Event::LeaseHolderAdded { .. }
            | Event::LeaseHolderRemoved { .. } => false,
        }
    }

    /// Ends the lease of a committed bout, and judges its worker.
    fn follow_bout(&self, state: &mut State, bout: &mut NewBout, failed_before: &[String]) -> bool {
        let key = BoutKey { run: bout.run.clone(), bout: bout.bout };
        state.end_bout(&key, &bout.worker);
        let Some(run) = state.durable.run_mut(&bout.run) else { return false };
        let more = std::mem::take(&mut run.has_more);
        let divergent = run.compare_workers();
        if let Some(summary) = &bout.summary {
            for name in failed_before {
                self.update_reputation(state, name, |reputation| reputation.crashes += 1);
            }
            let (overshoot_us, moves) = summary.overshoot();
            self.metrics.committed(summary.games.len() as u64, moves);
            self.update_reputation(state, &bout.worker, |reputation| {
                reputation.bouts += 1;
                reputation.games += summary.games.len() as u64;
                reputation.forfeits += summary.forfeits;
                reputation.overshoot_us += overshoot_us;
                reputation.moves += moves;
            });
        }
        for divergent in divergent {
            let reason = format!("in {}: {}", key.run, divergent.reason);
            if divergent.certain {
                self.post(Quarantine { worker: divergent.worker, reason });
            } else {
                // This can be chance; replication decides, where bouts are deterministic.
                self.audit(Entry::new(AuditKind::Departs, reason).worker(&divergent.worker).bout(&key));
                state.durable.suspect(&divergent.worker);
            }
        }
        if let Some(columns) = bout.columns.take() {
            self.recent.insert(key, columns);
        }
        more
    }

    /// Ends the lease of a bout whose submission is answered, if it still has that lease: a replica that is not needed any
    /// more changes nothing durable.
    pub(crate) fn finish_lease(&self, lease: &WireLease) {
        let (key, token) = key_of(lease);
        self.lock().reclaim(&key, token);
    }

    /// Updates the reputation of a worker and quarantines it if it exceeds a limit.
    fn update_reputation(&self, state: &mut State, worker: &str, add: impl FnOnce(&mut Reputation)) {
        let Some(known) = state.workers.get_mut(worker) else { return };
        add(&mut known.reputation);
        if let Some(reason) = known.reputation.fault() {
            self.post(Quarantine { worker: worker.to_string(), reason });
        }
    }

    /// Records that a worker could not play a bout that another worker played.
    pub(super) fn record_crash(&self, state: &mut State, worker: &str) {
        self.update_reputation(state, worker, |reputation| reputation.crashes += 1);
    }
}

impl State {
    /// Returns the workers that failed a bout.
    fn failed_at(&self, bout: &NewBout) -> Vec<String> {
        let run = self.durable.run(&bout.run);
        run.into_iter().flat_map(|run| run.ledger.failed_at(bout.bout)).map(str::to_string).collect()
    }

    /// Ends the leases of a run that has ended, and tells their holders. Replication continues after the end of a run.
    fn end_leases(&mut self, id: &str, reason: &str) {
        let unwanted = |(key, _): &(&BoutKey, _)| !self.durable.replication().has(key);
        let keys: Vec<BoutKey> =
            self.leases.of_run(id).filter(unwanted).map(|(key, _)| key.clone()).collect();
        let mut revoked: BTreeMap<String, Vec<v1::LeaseRef>> = BTreeMap::new();
        for key in keys {
            // The run may be reopened.
            if let Some(run) = self.durable.run_mut(&key.run) {
                run.ledger.give_back(key.bout);
            }
            for lease in self.leases.release_all(&key) {
                revoked.entry(lease.worker).or_default().push(lease_ref(&key, lease.token));
            }
        }
        self.revoke(revoked, reason);
    }

    /// Ends the leases of a bout that `winner` submitted, and tells others that play it too.
    fn end_bout(&mut self, key: &BoutKey, winner: &str) {
        let mut revoked: BTreeMap<String, Vec<v1::LeaseRef>> = BTreeMap::new();
        let ended = self.leases.release_all(key);
        if ended.len() > 1 {
            for lease in ended.into_iter().filter(|lease| lease.worker != winner) {
                revoked.entry(lease.worker).or_default().push(lease_ref(key, lease.token));
            }
        }
        self.revoke(revoked, "another worker finished the bout first");
    }

    /// Takes all bouts of a worker back.
    fn revoke_all(&mut self, worker: &str, reason: &str) {
        let held: Vec<_> =
            self.leases.of_worker(worker).map(|(key, lease)| (key.clone(), lease.token)).collect();
        let leases = held.iter().map(|(key, token)| lease_ref(key, *token)).collect();
        for (key, token) in held {
            self.reclaim(&key, token);
        }
        self.send(worker, Kind::Revoke(v1::Revoke { leases, reason: reason.to_string() }));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use agon_proto::Heartbeat;
    use agon_transport::Caller;
    use tokio::sync::mpsc;

    use super::*;
    use crate::fixtures::{coordinator, hello};
    use crate::state::SEND_QUEUE;

    /// A replica may not be needed any more when it arrives: nothing durable changes then.
    #[tokio::test]
    async fn answered_submission_ends_its_lease() {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = coordinator(folder.path()).await;
        let (queue, _inbox) = mpsc::channel(SEND_QUEUE);
        let session =
            coordinator.connect(&hello(&coordinator, "w"), &Caller::anonymous(), None, queue).unwrap();
        coordinator.record_holder("w", session).await;
        let heartbeat = Heartbeat { room: 1, grants_received: u64::MAX, ..Heartbeat::default() };
        coordinator.heartbeat("w", session, &heartbeat);
        let lease = {
            let state = coordinator.lock();
            let (key, lease) = state.leases.of_worker("w").next().unwrap();
            WireLease {
                run: key.run.clone(),
                bout: key.bout,
                epoch: lease.token.epoch,
                sequence: lease.token.sequence,
            }
        };
        coordinator.finish_lease(&WireLease { sequence: lease.sequence + 1, ..lease.clone() });
        assert_eq!(coordinator.lock().leases.count(), 1, "another lease");
        coordinator.finish_lease(&lease);
        assert_eq!(coordinator.lock().leases.count(), 0);
    }

    #[tokio::test]
    async fn submissions_and_drains_are_audited() {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = coordinator(folder.path()).await;
        let (queue, _inbox) = mpsc::channel(SEND_QUEUE);
        coordinator.connect(&hello(&coordinator, "w"), &Caller::anonymous(), None, queue).unwrap();
        coordinator.drain_worker("w", &Caller::anonymous()).unwrap();
        coordinator.settle().await;
        let entries = coordinator.reader.audits(None, None, 10).unwrap();
        let texts: Vec<&str> = entries.iter().map(|entry| entry.text.as_str()).collect();
        assert_eq!(texts, ["submitted by an operator", "drained by an operator"]);
    }
}
