//! Which bout is lent to which worker.

use std::collections::BTreeSet;

use agon_proto::v1::{self, coordinator_message::Kind};
use tracing::warn;

use super::{Hall, State, WINDOW_BYTES, Worker, lent};
use crate::leases::BoutKey;
use crate::store::RunState;

impl Hall {
    pub(super) fn grant_all(&self, state: &mut State) {
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
            || !state.obstacles.is_empty()
            || state.quarantine.contains_key(name)
        {
            return;
        }
        // Runs that have nothing for this worker are left out for the rest of the call.
        let mut empty = BTreeSet::new();
        loop {
            let Some(worker) = state.workers.get(name) else { return };
            if worker.room == 0 || worker.out.is_none() || worker.unacknowledged > WINDOW_BYTES {
                return;
            }
            let throttled = worker.throttled;
            // Second opinions are wanted even when a run is over, but not while it is paused.
            let lent = |id: &str| {
                let asked = !self.only_asked || state.asked.contains(id);
                asked && state.runs.get(id).is_some_and(|run| run.state != RunState::Paused)
            };
            if let Some(key) = state.checks.take(name, lent) {
                if !self.lend(state, name, &key) {
                    return;
                }
                continue;
            }
            let Some(id) = state.next_run(&empty, throttled, self.only_asked) else { return };
            let Some(bout) = state.next_bout(&id, name) else {
                empty.insert(id);
                continue;
            };
            if !self.lend(state, name, &BoutKey { run: id, bout }) {
                return;
            }
        }
    }

    /// Lends a worker one bout that nobody has. False where it cannot be sent.
    fn lend(&self, state: &mut State, name: &str, key: &BoutKey) -> bool {
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
        let send = |kind| out.send(Ok(v1::CoordinatorMessage { kind: Some(kind) })).is_ok();
        let token = state.leases.grant(key.clone(), name, self.now());
        if worker.specs.insert(key.run.clone()) {
            let spec = v1::RunSpec { run: key.run.clone(), spec: Some(v1::Spec::from(&run.source)) };
            send(Kind::Spec(spec));
        }
        worker.room -= 1;
        worker.sent += 1;
        self.metrics.granted();
        let lent = lent(&key.run, &bout, token);
        send(Kind::Grant(v1::Grant::from(&lent)))
    }
}

impl State {
    /// The run whose turn it is: of those with the greatest priority the one with the fewest bouts lent out, so that runs
    /// share the slots evenly however long their bouts are.
    fn next_run(&self, empty: &BTreeSet<String>, throttled: bool, only_asked: bool) -> Option<String> {
        let waits = |id: &&String| {
            let run = &self.runs[*id];
            run.state == RunState::Running
                && run.obstacle.is_none()
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
