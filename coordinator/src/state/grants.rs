//! Granting: selects the bouts that connected workers receive.
//!
//! Replicas come before new bouts; runs take turns by priority. The lease book and the ledger keep the result.

use std::collections::BTreeSet;
use std::time::Duration;

use agon_proto::v1::{self, coordinator_message::Kind};
use agon_transport::Caller;
use tracing::{info, warn};

use super::{Coordinator, Holder, RESERVED_QUEUE, Run, State, WINDOW_BYTES, Worker, leased_bout};
use crate::audit::credential_of;
use crate::durable::workers::Hold;
use crate::durable::{Append, Event};
use crate::leases::BoutKey;
use crate::verification::replication::Opinion;
use agon_schedule::RunState;

/// Bouts recorded as granted beyond those that are leased: this many, and as many as are leased.
pub(crate) const RESERVED_AHEAD: u64 = 64;
/// How many heartbeats ago a bout was begun that is granted to a second worker.
const SPARE_HEARTBEATS: u32 = 2;
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
            if worker.room == 0 || !worker.is_recorded || !reads || worker.unacknowledged > WINDOW_BYTES {
                return;
            }
            let (runs, replication) = state.durable.runs_and_replication();
            // Replicas are granted after a run has ended, but not while it is paused.
            let is_granted = |id: &str| {
                let requested = !self.only_requested || state.requested.contains(id);
                requested && runs.get(id).is_some_and(|run| run.record().state != RunState::Paused)
            };
            let caller = |name: &str| state.workers.get(name).map(|worker| &worker.caller);
            // A replica goes to another caller than the earlier ones if there is one.
            let neutral = |earlier: &[Opinion]| {
                let earlier: Vec<&Caller> =
                    earlier.iter().filter_map(|opinion| caller(&opinion.worker)).collect();
                let independent = |caller: &Caller| !earlier.contains(&caller);
                caller(name).is_some_and(independent) || !state.callers.1.iter().any(independent)
            };
            let has_opening =
                |key: &BoutKey| runs.get(&key.run).is_some_and(|run| run.schedule.is_prepared(key.bout));
            let has_engines = |key: &BoutKey| {
                runs.get(&key.run).is_some_and(|run| worker.has_engines(&run.spec, self.only_requested))
            };
            let suits = |key: &BoutKey, earlier: &[Opinion]| {
                is_granted(&key.run) && neutral(earlier) && has_opening(key) && has_engines(key)
            };
            let credential = caller(name).map(credential_of).unwrap_or_default();
            if let Some(key) = replication.claim_next(name, &credential, suits) {
                if !self.grant_bout(state, name, &key) {
                    return;
                }
                continue;
            }
            let Some(id) = state.next_run(&empty, worker, self.only_requested) else {
                break;
            };
            let bout = state.next_bout(&id, name, self.presence());
            let bout = bout.filter(|bout| self.has_opening(state, &id, *bout));
            self.reserve_ahead(state, &id);
            let Some(bout) = bout else {
                empty.insert(id);
                continue;
            };
            if !self.grant_bout(state, name, &BoutKey { run: id, bout }) {
                return;
            }
        }
        self.grant_spares(state, name);
    }

    /// Grants a worker with idle slots the bouts that others began first, a second time: the end of a run does not wait for a
    /// slow machine. The first result counts.
    fn grant_spares(&self, state: &mut State, name: &str) {
        while let Some(worker) = state.workers.get(name)
            && worker.room > 0
            && state.leases.count_of_worker(name) < u64::from(worker.slots)
            && let age = self.timing.heartbeat * SPARE_HEARTBEATS
            && let Some(key) = state.next_spare(name, self.now(), age, self.only_requested)
        {
            if self.only_requested && !state.requested.contains(&key.run) {
                return;
            }
            info!(run = key.run, bout = key.bout, worker = name, "bout granted again");
            if !self.grant_bout(state, name, &key) {
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
            self.post(Append(vec![Event::Reserved { run: id.to_string(), end }]));
        }
    }

    /// Makes the withheld bouts grantable when the awaited workers are back or the grace period is over.
    pub(super) fn release_withheld(&self, state: &mut State, now: Duration) {
        if state.awaited.is_empty() && state.durable.open_runs().all(|(_, run)| run.ledger.withheld() == 0) {
            return;
        }
        if !state.awaited.is_empty() {
            if now < state.awaited_until {
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

    /// Grants a worker a bout. Returns whether the grant could be sent.
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
            let spec = v1::RunSpec { run: key.run.clone(), spec: Some(v1::Spec::from(&*run.source)) };
            send(Kind::Spec(spec));
        }
        worker.room -= 1;
        worker.last_active = self.now();
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

    /// Returns the run to grant from: among those of the highest priority the one whose turn it is.
    fn next_run(&self, empty: &BTreeSet<String>, worker: &Worker, only_requested: bool) -> Option<String> {
        let waits = |(id, run): &(&String, &Run)| {
            run.record().state == RunState::Running
                && run.export_fault.is_none()
                && (!only_requested || self.requested.contains(*id))
                && !empty.contains(*id)
                && !(worker.throttled && run.spec.is_timed())
                && worker.has_engines(&run.spec, only_requested)
                && !self.durable.awaits_replicas(id)
        };
        let turn = |(id, run): &(&String, &Run)| (-i64::from(run.record().priority), self.leases.turn(id));
        self.durable.open_runs().filter(waits).min_by_key(turn).map(|(id, _)| id.clone())
    }

    /// Returns the bout of a repeatable run that another worker began first, at least `age` ago, and that has no spare lease.
    fn next_spare(
        &self,
        worker: &str,
        now: Duration,
        age: Duration,
        only_requested: bool,
    ) -> Option<BoutKey> {
        let known = self.workers.get(worker)?;
        let witness = &known.witness;
        let suits = |key: &BoutKey| {
            let Some(run) = self.durable.run(&key.run) else { return false };
            let is_granted = run.record().state == RunState::Running && run.export_fault.is_none();
            is_granted
                && run.spec.is_repeatable()
                && known.has_engines(&run.spec, only_requested)
                && !run.ledger.is_done(key.bout)
                && run.schedule.is_prepared(key.bout)
                && !run.ledger.has_tried(key.bout, witness)
                && self.leases.of_bout(key).count() == 1
                && self.leases.of_bout(key).all(|lease| lease.worker != worker)
        };
        let repeatable = |(_, run): (&String, &Run)| run.spec.is_repeatable();
        if !self.durable.open_runs().any(repeatable) {
            return None;
        }
        let until = now.checked_sub(age)?;
        self.leases.started_until(until).map(|(key, _)| key).find(|key| suits(key)).cloned()
    }

    /// Takes the next bout of a run that this worker can play, skipping bouts that others should get.
    fn next_bout(&mut self, run: &str, worker: &str, presence: Duration) -> Option<u64> {
        let now = self.last_tick;
        let witness = &self.workers.get(worker)?.witness;
        let (run, quarantine) = self.durable.run_and_quarantine(run)?;
        let is_timed = run.spec.is_timed();
        let is_present = |(name, known): &(&String, &Worker)| {
            let is_active = now < known.last_active + presence || self.leases.count_of_worker(name) > 0;
            known.queue.is_some()
                && is_active
                && !(is_timed && known.throttled)
                && run.spec.engine_names().all(|engine| known.engines.contains(engine))
                && !quarantine.contains_key(name.as_str())
        };
        let present = || {
            let workers = self.workers.iter().filter(is_present);
            workers.map(|(name, known)| (&known.witness, name.as_str()))
        };
        let ledger = &mut run.ledger;
        let mut declined = Vec::new();
        let found = loop {
            match ledger.take_next() {
                Some(bout) if ledger.is_for_others(bout, (witness, worker), present()) => declined.push(bout),
                other => break other,
            }
        };
        for bout in declined {
            ledger.give_back(bout);
        }
        found
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::sync::Arc;

    use agon_proto::Lease as WireLease;
    use agon_proto::v1::operator_server::Operator as _;
    use tonic::Request;

    use super::*;
    use crate::durable::bouts::{Commit, Uncommitted};
    use crate::fixtures::{SPEC, TestWorker, coordinator, empty_coordinator};
    use crate::receipt::NewBout;
    use crate::service::operator::OperatorService;

    /// Leaves a run of 400 bouts only its first `bouts` to grant.
    fn shorten(coordinator: &Coordinator, bouts: u64) {
        let run = coordinator.run_ids().remove(0);
        coordinator.with_run(&run, |run| run.ledger.open_to(bouts));
    }

    /// A slow worker plays the last bout, and another has nothing else to play. Returns both, and the bout.
    async fn tail(coordinator: &Arc<Coordinator>) -> (TestWorker, TestWorker, WireLease) {
        shorten(coordinator, 1);
        let slow = TestWorker::connect(coordinator, "slow", 1).await;
        let lease = slow.lease(coordinator);
        slow.play(coordinator, &lease, 1);
        let idle = TestWorker::connect(coordinator, "idle", 2).await;
        idle.ask(coordinator, 9);
        coordinator.pass(coordinator.timing.heartbeat);
        assert!(idle.leases(coordinator).is_empty(), "the bout may end soon");
        coordinator.pass(coordinator.timing.heartbeat * 2);
        (slow, idle, lease)
    }

    fn finish(worker: &TestWorker, lease: &WireLease) -> Commit {
        let played = NewBout::of_test(&lease.run, lease.bout, &worker.name, [1; 32]);
        Commit { bout: Box::new(played), is_replica: true, is_leased_again: false, secret: 0 }
    }

    #[tokio::test]
    async fn last_bout_is_granted_twice_and_counts_once() {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = coordinator(folder.path()).await;
        let (mut slow, mut idle, lease) = tail(&coordinator).await;
        let spare = idle.leases(&coordinator);
        assert_eq!(spare.iter().map(|lease| lease.bout).collect::<Vec<_>>(), [0]);
        assert_eq!(coordinator.lock().leases.count_of_run(&lease.run), 1, "it is one bout");
        let third = TestWorker::connect(&coordinator, "third", 3).await;
        third.ask(&coordinator, 1);
        coordinator.pass(coordinator.timing.heartbeat);
        assert!(third.leases(&coordinator).is_empty(), "not three times");
        assert_eq!(coordinator.commit(finish(&idle, &lease)).await, Ok(()));
        assert_eq!(slow.revocations(), ["another worker finished the bout first"]);
        assert!(idle.revocations().is_empty());
        assert!(!slow.leases(&coordinator).contains(&lease));
        assert!(!idle.leases(&coordinator).contains(&spare[0]));
        let done = coordinator.with_run(&lease.run, |run| run.ledger.done());
        assert_eq!(done, Some(1));
        let late = coordinator.commit(Commit { is_replica: false, ..finish(&slow, &lease) }).await;
        assert_eq!(late, Err(Uncommitted::Duplicate));
        assert_eq!(coordinator.with_run(&lease.run, |run| run.ledger.done()), done);
    }

    #[tokio::test]
    async fn bout_with_two_leases_is_not_granted_again_when_one_ends() {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = coordinator(folder.path()).await;
        let (slow, idle, lease) = tail(&coordinator).await;
        let spare = idle.leases(&coordinator).pop().unwrap();
        for pulse in 0..20 {
            idle.play(&coordinator, &spare, pulse);
            coordinator.pass(coordinator.timing.lease / 4);
        }
        assert!(slow.leases(&coordinator).is_empty(), "its lease expired");
        let taken = || coordinator.with_run(&lease.run, |run| run.ledger.take_next()).unwrap();
        assert_eq!(taken(), None, "the other still plays it");
        coordinator.record_failure(&spare, "no reason");
        assert_eq!(taken(), Some(0));
    }

    #[tokio::test]
    async fn openings_are_requested_only_while_some_are_missing() {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = empty_coordinator(folder.path()).await;
        // There are more different openings than bouts.
        let text = SPEC.replace("random_plies = 2", "random_plies = 8");
        let spec = Some(v1::Spec { text, ..Default::default() });
        let request = Request::new(v1::SubmitRunRequest { spec, ..Default::default() });
        OperatorService::new(Arc::clone(&coordinator)).submit_run(request).await.unwrap();
        let run = coordinator.run_ids().remove(0);
        coordinator.with_run(&run, |run| {
            let last = run.schedule.bouts() - 1;
            run.schedule.draw_bout(last).unwrap();
            for bout in [0, 100, last] {
                assert!(coordinator.prepare_openings(run, bout));
                assert_eq!(run.wanted_openings, None, "{bout}");
            }
        });
    }

    const ENGINES: &str = r#"
name = "engines"
game = "connect-four"
limit = { nodes = 10 }
tournament = { format = "round-robin", bouts = 4 }
[[player]]
name = "a"
engine = { protocol = "agon", name = "bot" }
[[player]]
name = "b"
search = { algorithm = "uct" }
"#;

    fn submission_of(text: String) -> Request<v1::SubmitRunRequest> {
        let spec = Some(v1::Spec { text, ..Default::default() });
        Request::new(v1::SubmitRunRequest { spec, ..Default::default() })
    }

    #[tokio::test]
    async fn bouts_of_engines_go_only_to_workers_that_have_them() {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = empty_coordinator(folder.path()).await;
        let service = OperatorService::new(Arc::clone(&coordinator));
        let run = service.submit_run(submission_of(ENGINES.to_string())).await.unwrap().into_inner().run;
        let without = TestWorker::connect_with_engines(&coordinator, "without", 1, &["other"]).await;
        without.ask(&coordinator, 1);
        assert!(without.leases(&coordinator).is_empty());
        assert_eq!(
            coordinator.status(&run, false).unwrap().waiting,
            "no connected worker has the engine bot; start one with --engine bot=COMMAND"
        );
        let with = TestWorker::connect_with_engines(&coordinator, "with", 2, &["other", "bot"]).await;
        assert_eq!(with.lease(&coordinator).run, run);
        assert_eq!(coordinator.status(&run, false).unwrap().waiting, "");
    }

    #[tokio::test]
    async fn specs_cannot_start_programs_on_a_cluster() {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = empty_coordinator(folder.path()).await;
        let service = OperatorService::new(Arc::clone(&coordinator));
        let text = ENGINES.replace("name = \"bot\"", "command = \"bot\"");
        let error = service.submit_run(submission_of(text)).await.unwrap_err();
        assert_eq!(error.code(), tonic::Code::InvalidArgument);
        assert!(error.message().contains("start workers with --engine NAME=bot"), "{error}");
    }

    #[tokio::test]
    async fn only_open_runs_take_turns() {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = coordinator(folder.path()).await;
        let run = coordinator.run_ids().remove(0);
        let _worker = TestWorker::connect(&coordinator, "one", 1).await;
        let next = || {
            let state = coordinator.lock();
            state.next_run(&BTreeSet::new(), &state.workers["one"], false)
        };
        let open = || coordinator.lock().durable.open_runs().count();
        assert_eq!((next(), open()), (Some(run.clone()), 1));
        let move_to = |to| {
            let from = &[RunState::Running, RunState::Paused];
            crate::durable::runs::Move { run: run.clone(), from, to, entry: None }
        };
        coordinator.commit(move_to(RunState::Paused)).await.unwrap();
        assert_eq!((next(), open()), (None, 1));
        coordinator.commit(move_to(RunState::Running)).await.unwrap();
        assert_eq!((next(), open()), (Some(run.clone()), 1));
        coordinator.commit(move_to(RunState::Cancelled)).await.unwrap();
        assert_eq!((next(), open()), (None, 0));
    }
}
