//! Granting: selects the bouts that connected workers receive.
//!
//! Replicas come before new bouts; runs take turns by priority. The lease book and the ledger keep the result.

use std::collections::BTreeSet;
use std::time::Duration;

use agon_proto::v1::{self, coordinator_message::Kind};
use agon_transport::Caller;
use tracing::{info, warn};

use super::{Coordinator, RESERVED_QUEUE, State, WINDOW_BYTES, Worker, leased_bout};
use crate::leases::BoutKey;
use crate::store::StoreError;
use crate::verification::replication::Digest;
use agon_schedule::RunState;

/// Bouts recorded as granted beyond those that are leased: this many, and as many as are leased.
pub(crate) const RESERVED_AHEAD: u64 = 64;
/// The delay before a reservation on a full disk is retried.
const RESERVE_RETRY: Duration = Duration::from_secs(1);

/// How long the cached set of callers is used.
const CALLERS_MAX_AGE: Duration = Duration::from_secs(1);

impl Coordinator {
    /// Grants bouts to all workers with room.
    pub(crate) fn grant_all(&self, state: &mut State) {
        let has_room = |(_, worker): &(&String, &Worker)| worker.room > 0 && worker.queue.is_some();
        let names: Vec<String> =
            state.workers.iter().filter(has_room).map(|(name, _)| name.clone()).collect();
        for name in names {
            self.grant(state, &name);
        }
    }

    /// Grants a worker as many bouts as it has room for.
    pub(super) fn grant(&self, state: &mut State, name: &str) {
        if state.draining || !state.write_faults.is_empty() || state.quarantine.contains_key(name) {
            return;
        }
        state.refresh_callers(self.now());
        // Runs without work for this worker are skipped for the rest of the call.
        let mut empty = BTreeSet::new();
        loop {
            let Some(worker) = state.workers.get(name) else { return };
            // Back-pressure: skip workers whose send queue is nearly full.
            let reads = worker.queue.as_ref().is_some_and(|queue| queue.capacity() > RESERVED_QUEUE);
            if worker.room == 0 || !reads || worker.unacknowledged > WINDOW_BYTES {
                return;
            }
            let throttled = worker.throttled;
            // Replicas are granted after a run has ended, but not while it is paused.
            let is_granted = |id: &str| {
                let requested = !self.only_requested || state.requested.contains(id);
                requested && state.runs.get(id).is_some_and(|run| run.state != RunState::Paused)
            };
            let caller = |name: &str| state.workers.get(name).map(|worker| &worker.caller);
            // A replica goes to another caller than the earlier ones if there is one.
            let neutral = |digests: &[(String, Digest)]| {
                let earlier: Vec<&Caller> = digests.iter().filter_map(|(name, _)| caller(name)).collect();
                let independent = |caller: &Caller| !earlier.contains(&caller);
                caller(name).is_some_and(independent) || !state.callers.1.iter().any(independent)
            };
            let suits =
                |key: &BoutKey, digests: &[(String, Digest)]| is_granted(&key.run) && neutral(digests);
            if let Some(key) = state.replication.claim_next(name, suits) {
                if !self.grant_bout(state, name, &key) {
                    return;
                }
                continue;
            }
            let Some(id) = state.next_run(&empty, throttled, self.only_requested) else { return };
            let bout = state.next_bout(&id, name);
            self.reserve_ahead(state, &id);
            let Some(bout) = bout else {
                empty.insert(id);
                continue;
            };
            if !self.grant_bout(state, name, &BoutKey { run: id, bout }) {
                return;
            }
        }
    }

    /// Requests that more bouts of a run are recorded as granted, if those recorded may run out.
    fn reserve_ahead(&self, state: &mut State, id: &str) {
        let ahead = RESERVED_AHEAD + state.leases.count_of_run(id);
        if let Some(end) = state.runs.get(id).and_then(|run| run.ledger.reservation_due(ahead))
            && state.reservations.insert(id.to_string(), end).is_none()
        {
            self.reserve.notify_one();
        }
    }

    /// Records which bouts may be granted next, whenever a run needs that. After a restart, only recorded bouts can be held
    /// by workers.
    pub(crate) async fn reserve_grants(&self) -> Result<(), StoreError> {
        loop {
            self.reserve.notified().await;
            let ends: Vec<(String, u64)> =
                self.lock().reservations.iter().map(|(id, end)| (id.clone(), *end)).collect();
            match self.store.reserve_grants(ends.clone()).await {
                Ok(()) => {
                    let mut guard = self.lock();
                    let state = &mut *guard;
                    for (id, end) in ends {
                        state.reservations.remove(&id);
                        if let Some(run) = state.runs.get_mut(&id) {
                            run.ledger.reserve_to(end);
                        }
                    }
                    self.grant_all(state);
                }
                Err(StoreError::Full) => {
                    tokio::time::sleep(RESERVE_RETRY).await;
                    self.reserve.notify_one();
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Makes the withheld bouts grantable when the awaited workers are back or the grace period is over.
    pub(super) fn release_withheld(&self, state: &mut State) {
        if state.awaited.is_empty() && state.runs.values().all(|run| run.ledger.withheld() == 0) {
            return;
        }
        if !state.awaited.is_empty() {
            if self.now() < state.awaited_until {
                return;
            }
            for worker in std::mem::take(&mut state.awaited) {
                info!(worker, "earlier worker did not return in time");
                if state.workers.get(&worker).is_none_or(|known| known.queue.is_none()) {
                    self.store.remove_holder(&worker);
                }
            }
        }
        state.runs.values_mut().for_each(|run| run.ledger.release_withheld());
        self.grant_all(state);
    }

    /// Grants a worker a bout that is not leased. Returns whether the grant could be sent.
    fn grant_bout(&self, state: &mut State, name: &str, key: &BoutKey) -> bool {
        let (Some(worker), Some(run)) = (state.workers.get_mut(name), state.runs.get_mut(&key.run)) else {
            return false;
        };
        let bout = match run.schedule.bout(key.bout) {
            Ok(bout) => bout,
            Err(error) => {
                warn!(run = key.run, bout = key.bout, %error, "bout not constructible");
                return false;
            }
        };
        let Some(queue) = &worker.queue else { return false };
        let send = |kind| queue.try_send(Ok(v1::CoordinatorMessage { kind: Some(kind) })).is_ok();
        let token = state.leases.grant(key.clone(), name, self.now());
        if worker.specs.insert(key.run.clone()) {
            let spec = v1::RunSpec { run: key.run.clone(), spec: Some(v1::Spec::from(&run.source)) };
            send(Kind::Spec(spec));
        }
        worker.room -= 1;
        worker.sent += 1;
        self.metrics.granted();
        let leased = leased_bout(&key.run, bout, token);
        send(Kind::Grant(v1::Grant::from(&leased)))
    }
}

impl State {
    /// Refreshes the callers whose workers can be granted bouts, if the cached set is too old.
    fn refresh_callers(&mut self, now: Duration) {
        if self.callers.0.is_none_or(|at| now >= at + CALLERS_MAX_AGE) {
            let trusted = self.connected().filter(|(name, _)| !self.quarantine.contains_key(name.as_str()));
            self.callers = (Some(now), trusted.map(|(_, worker)| worker.caller.clone()).collect());
        }
    }

    /// Returns the run to grant from: among those of the highest priority the one with the fewest leases, so that runs
    /// share the slots evenly, however long their bouts are.
    fn next_run(&self, empty: &BTreeSet<String>, throttled: bool, only_requested: bool) -> Option<String> {
        let waits = |id: &&String| {
            let run = &self.runs[*id];
            run.state == RunState::Running
                && run.export_fault.is_none()
                && (!only_requested || self.requested.contains(*id))
                && !empty.contains(*id)
                && !(throttled && run.spec.is_timed())
        };
        let turn = |id: &&String| (-i64::from(self.runs[*id].priority), self.leases.count_of_run(id));
        self.order.iter().filter(waits).min_by_key(turn).cloned()
    }

    /// Takes the next bout of a run for this worker, skipping bouts that others should get.
    fn next_bout(&mut self, run: &str, worker: &str) -> Option<u64> {
        let ledger = &mut self.runs.get_mut(run)?.ledger;
        let trusted = |(name, known): &(&String, &Worker)| {
            known.queue.is_some() && !self.quarantine.contains_key(name.as_str())
        };
        let present = || self.workers.iter().filter(trusted).map(|(name, _)| name.as_str());
        let mut declined = Vec::new();
        let found = loop {
            match ledger.take_next() {
                Some(bout) if ledger.is_for_others(bout, worker, present()) => declined.push(bout),
                other => break other,
            }
        };
        for bout in declined {
            ledger.give_back(bout);
        }
        found
    }
}
