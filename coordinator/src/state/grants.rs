//! Which bout is leased to which worker.

use std::collections::BTreeSet;
use std::time::Duration;

use agon_proto::v1::{self, coordinator_message::Kind};
use agon_transport::Caller;
use tracing::warn;

use super::{Coordinator, SPARE, State, WINDOW_BYTES, Worker, leased_bout};
use crate::leases::BoutKey;
use crate::verification::replication::Digest;
use agon_schedule::RunState;

/// How long what is known of whose workers are there stays true enough.
const MOMENT: Duration = Duration::from_secs(1);

impl Coordinator {
    pub(crate) fn grant_all(&self, state: &mut State) {
        let hungry = |(_, worker): &(&String, &Worker)| worker.room > 0 && worker.out.is_some();
        let names: Vec<String> = state.workers.iter().filter(hungry).map(|(name, _)| name.clone()).collect();
        for name in names {
            self.grant(state, &name);
        }
    }

    /// Lends a worker as many bouts as it has room for.
    pub(super) fn grant(&self, state: &mut State, name: &str) {
        if self.now() < self.opens
            || state.draining
            || !state.write_faults.is_empty()
            || state.quarantine.contains_key(name)
        {
            return;
        }
        state.refresh_callers(self.now());
        // Runs that have nothing for this worker are left out for the rest of the call.
        let mut empty = BTreeSet::new();
        loop {
            let Some(worker) = state.workers.get(name) else { return };
            // Who does not read what it was leased is leased no more for now.
            let heard = worker.out.as_ref().is_some_and(|out| out.capacity() > SPARE);
            if worker.room == 0 || !heard || worker.unacknowledged > WINDOW_BYTES {
                return;
            }
            let throttled = worker.throttled;
            // Second opinions are wanted even when a run is over, but not while it is paused.
            let is_granted = |id: &str| {
                let asked = !self.only_asked || state.asked.contains(id);
                asked && state.runs.get(id).is_some_and(|run| run.state != RunState::Paused)
            };
            let caller = |name: &str| state.workers.get(name).map(|worker| &worker.caller);
            let neutral = |said: &[(String, Digest)]| {
                let heard: Vec<&Caller> = said.iter().filter_map(|(name, _)| caller(name)).collect();
                let independent = |caller: &Caller| !heard.contains(&caller);
                caller(name).is_some_and(independent) || !state.callers.1.iter().any(independent)
            };
            let suits = |key: &BoutKey, said: &[(String, Digest)]| is_granted(&key.run) && neutral(said);
            if let Some(key) = state.checks.take(name, suits) {
                if !self.grant_bout(state, name, &key) {
                    return;
                }
                continue;
            }
            let Some(id) = state.next_run(&empty, throttled, self.only_asked) else { return };
            let Some(bout) = state.next_bout(&id, name) else {
                empty.insert(id);
                continue;
            };
            if !self.grant_bout(state, name, &BoutKey { run: id, bout }) {
                return;
            }
        }
    }

    /// Lends a worker one bout that nobody has. False where it cannot be sent.
    fn grant_bout(&self, state: &mut State, name: &str, key: &BoutKey) -> bool {
        let (Some(worker), Some(run)) = (state.workers.get_mut(name), state.runs.get_mut(&key.run)) else {
            return false;
        };
        let bout = match run.schedule.bout(key.bout) {
            Ok(bout) => bout,
            Err(error) => {
                warn!(run = key.run, bout = key.bout, %error, "a bout that was checked cannot be made");
                return false;
            }
        };
        let Some(out) = &worker.out else { return false };
        let send = |kind| out.try_send(Ok(v1::CoordinatorMessage { kind: Some(kind) })).is_ok();
        let token = state.leases.grant(key.clone(), name, self.now());
        if worker.specs.insert(key.run.clone()) {
            let spec = v1::RunSpec { run: key.run.clone(), spec: Some(v1::Spec::from(&run.source)) };
            send(Kind::Spec(spec));
        }
        worker.room -= 1;
        worker.sent += 1;
        self.metrics.granted();
        let leased = leased_bout(&key.run, &bout, token);
        send(Kind::Grant(v1::Grant::from(&leased)))
    }
}

impl State {
    /// Looks whose workers can be leased something, unless that was done a moment ago.
    fn refresh_callers(&mut self, now: Duration) {
        if self.callers.0.is_none_or(|at| now >= at + MOMENT) {
            let trusted = self.connected().filter(|(name, _)| !self.quarantine.contains_key(name.as_str()));
            self.callers = (Some(now), trusted.map(|(_, worker)| worker.caller.clone()).collect());
        }
    }

    /// The run whose turn it is: of those with the greatest priority the one with the fewest bouts leased out, so that runs
    /// share the slots evenly however long their bouts are.
    fn next_run(&self, empty: &BTreeSet<String>, throttled: bool, only_asked: bool) -> Option<String> {
        let waits = |id: &&String| {
            let run = &self.runs[*id];
            run.state == RunState::Running
                && run.export_fault.is_none()
                && (!only_asked || self.asked.contains(*id))
                && !empty.contains(*id)
                && !(throttled && run.spec.is_timed())
        };
        let turn = |id: &&String| (-i64::from(self.runs[*id].priority), self.leases.count_of_run(id));
        self.order.iter().filter(waits).min_by_key(turn).cloned()
    }

    /// The next bout of a run that others need not have rather than this worker.
    fn next_bout(&mut self, run: &str, worker: &str) -> Option<u64> {
        let ledger = &mut self.runs.get_mut(run)?.ledger;
        let trusted = |(name, known): &(&String, &Worker)| {
            known.out.is_some() && !self.quarantine.contains_key(name.as_str())
        };
        let present = || self.workers.iter().filter(trusted).map(|(name, _)| name.as_str());
        let mut declined = Vec::new();
        let found = loop {
            match ledger.take() {
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
