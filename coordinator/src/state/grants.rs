//! Granting: selects the bouts that connected workers receive.
//!
//! Replicas come before new bouts; runs take turns by priority. The lease book and the ledger keep the result.

use std::collections::BTreeSet;
use std::time::Duration;

use agon_proto::v1::{self, coordinator_message::Kind};
use agon_transport::Caller;
use tracing::{info, warn};

use super::{Coordinator, Holder, RESERVED_QUEUE, State, WINDOW_BYTES, Worker, leased_bout};
use crate::durable::runs::Reserve;
use crate::durable::workers::Hold;
use crate::leases::BoutKey;
use crate::verification::replication::Digest;
use agon_schedule::RunState;

/// Bouts recorded as granted beyond those that are leased: this many, and as many as are leased.
pub(crate) const RESERVED_AHEAD: u64 = 64;
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
        if state.draining || !state.write_faults.is_empty() || state.durable.quarantine().contains_key(name) {
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
            let (runs, replication) = state.durable.runs_and_replication();
            // Replicas are granted after a run has ended, but not while it is paused.
            let is_granted = |id: &str| {
                let requested = !self.only_requested || state.requested.contains(id);
                requested && runs.get(id).is_some_and(|run| run.record().state != RunState::Paused)
            };
            let caller = |name: &str| state.workers.get(name).map(|worker| &worker.caller);
            // A replica goes to another caller than the earlier ones if there is one.
            let neutral = |digests: &[(String, Digest)]| {
                let earlier: Vec<&Caller> = digests.iter().filter_map(|(name, _)| caller(name)).collect();
                let independent = |caller: &Caller| !earlier.contains(&caller);
                caller(name).is_some_and(independent) || !state.callers.1.iter().any(independent)
            };
            let has_opening =
                |key: &BoutKey| runs.get(&key.run).is_some_and(|run| run.schedule.is_prepared(key.bout));
            let suits = |key: &BoutKey, digests: &[(String, Digest)]| {
                is_granted(&key.run) && neutral(digests) && has_opening(key)
            };
            if let Some(key) = replication.claim_next(name, suits) {
                if !self.grant_bout(state, name, &key) {
                    return;
                }
                continue;
            }
            let Some(id) = state.next_run(&empty, throttled, self.only_requested) else { return };
            let bout = state.next_bout(&id, name).filter(|bout| self.has_opening(state, &id, *bout));
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

    /// Returns whether the opening of a bout is known. Otherwise gives the bout back until it is drawn.
    fn has_opening(&self, state: &mut State, id: &str, bout: u64) -> bool {
        let Some(run) = state.durable.run_mut(id) else { return false };
        let known = self.prepare_openings(run, bout);
        if !known {
            run.ledger.give_back(bout);
        }
        known
    }

    /// Records that more bouts of a run may be granted, if those recorded may run out.
    fn reserve_ahead(&self, state: &mut State, id: &str) {
        let ahead = RESERVED_AHEAD + state.leases.count_of_run(id);
        if let Some(end) = state.durable.run(id).and_then(|run| run.ledger.reservation_due(ahead))
            && state.reservations.insert(id.to_string())
        {
            self.post(Reserve { run: id.to_string(), end });
        }
    }

    /// Makes the withheld bouts grantable when the awaited workers are back or the grace period is over.
    pub(super) fn release_withheld(&self, state: &mut State) {
        if state.awaited.is_empty() && state.durable.runs().all(|(_, run)| run.ledger.withheld() == 0) {
            return;
        }
        if !state.awaited.is_empty() {
            if self.now() < state.awaited_until {
                return;
            }
            for worker in std::mem::take(&mut state.awaited) {
                info!(worker, "earlier worker did not return in time");
                if state.workers.get(&worker).is_none_or(|known| known.queue.is_none()) {
                    self.post(Hold { worker, holds: false });
                }
            }
        }
        state.durable.runs_mut().for_each(|(_, run)| run.ledger.release_withheld());
        self.grant_all(state);
    }

    /// Grants a worker a bout that is not leased. Returns whether the grant could be sent.
    fn grant_bout(&self, state: &mut State, name: &str, key: &BoutKey) -> bool {
        let (Some(worker), Some(run)) = (state.workers.get_mut(name), state.durable.run_mut(&key.run)) else {
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
        let holder = Holder { worker: name, credential: &worker.credential };
        let token = state.leases.grant(key.clone(), holder, self.now());
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
            let trusted =
                self.connected().filter(|(name, _)| !self.durable.quarantine().contains_key(name.as_str()));
            self.callers = (Some(now), trusted.map(|(_, worker)| worker.caller.clone()).collect());
        }
    }

    /// Returns the run to grant from: among those of the highest priority the one with the fewest leases, so that runs
    /// share the slots evenly, however long their bouts are.
    fn next_run(&self, empty: &BTreeSet<String>, throttled: bool, only_requested: bool) -> Option<String> {
        let waits = |id: &&String| {
            let Some(run) = self.durable.run(id) else { return false };
            run.record().state == RunState::Running
                && run.export_fault.is_none()
                && (!only_requested || self.requested.contains(*id))
                && !empty.contains(*id)
                && !(throttled && run.spec.is_timed())
        };
        let priority = |id: &str| self.durable.run(id).map_or(0, |run| i64::from(run.record().priority));
        let turn = |id: &&String| (-priority(id), self.leases.count_of_run(id));
        self.durable.order().iter().filter(waits).min_by_key(turn).cloned()
    }

    /// Takes the next bout of a run for this worker, skipping bouts that others should get.
    fn next_bout(&mut self, run: &str, worker: &str) -> Option<u64> {
        let (run, quarantine) = self.durable.run_and_quarantine(run)?;
        let trusted = |(name, known): &(&String, &Worker)| {
            known.queue.is_some() && !quarantine.contains_key(name.as_str())
        };
        let present = || self.workers.iter().filter(trusted).map(|(name, _)| name.as_str());
        let ledger = &mut run.ledger;
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
