//! Submissions: who may submit a bout, and what the volatile state says of it.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agon_arena::{Arena, Spec};
use agon_proto::{Lease as WireLease, LeasedBout};
use agon_schedule::RunState;
use agon_transport::Caller;
use tokio::sync::Semaphore;
use tonic::Status;
use tracing::warn;

use super::{Coordinator, Holder, State, Worker, key_of, leased_bout};
use crate::audit::{AuditKind, Entry};
use crate::durable::Run;
use crate::durable::bouts::Commit;
use crate::durable::ledger::Witness;
use crate::durable::workers::Quarantine;
use crate::leases::{BoutKey, Token};
use crate::owner::panic_text;

/// The interval at which a caller that waits for an opening looks for it.
const OPENING_CHECK: Duration = Duration::from_secs(1);

/// How many lease durations a worker without leases counts as one that may play a bout.
const PRESENCE_LEASES: u32 = 10;

/// A bout that a caller may submit.
pub(crate) struct Admission {
    pub(crate) spec: Arc<Spec>,
    pub(crate) bout: LeasedBout,
    pub(crate) referee: Arc<Mutex<Arena>>,
    /// The number of incomplete bouts that its stream may have.
    pub(crate) most_open: usize,
}

/// Incomplete bouts that a stream may have beyond the slots of its worker: those that it may still send after their leases
/// ended.
const OPEN_BOUTS_MARGIN: usize = 16;

/// Runs the referees of submitted bouts: those of long bouts on threads of their own, at most one for each core, so that they
/// delay nothing else.
pub(crate) struct Referees(Semaphore);

/// The plies above which a bout is long. A shorter one is checked faster than it is handed to another thread and back.
const LONG_BOUT_PLIES: usize = 500;

impl Referees {
    pub(super) fn new() -> Referees {
        Referees(Semaphore::new(std::thread::available_parallelism().map_or(1, usize::from)))
    }

    /// Runs the check of a bout with this number of plies. Returns the reason if it panics.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        plies: usize,
        check: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, String> {
        if plies <= LONG_BOUT_PLIES {
            return catch_unwind(AssertUnwindSafe(check)).map_err(|panic| panic_text(&*panic));
        }
        let _permit = self.0.acquire().await;
        tokio::task::spawn_blocking(check).await.map_err(|error| error.to_string())
    }
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
        let leased = state.leases.lease(&key, token);
        let Some(name) = worker.or(leased.map(|leased| leased.worker.as_str())) else {
            // Only the holder of a lease can report that it failed the bout.
            return Err(Rejection::Unknown);
        };
        if let Some(owner) = state.owned_by_another(name, caller) {
            return Err(Rejection::Call(Status::permission_denied(format!(
                "{lease} belongs to `{name}`, a worker of {owner}, and this is {caller}"
            ))));
        }
        // A worker that reconnects opens a session before it submits.
        let Some(known) = state.workers.get(name).filter(|known| known.caller == *caller) else {
            let text = format!("worker `{name}` has no session with {caller}; open a session first");
            return Err(Rejection::Call(Status::aborted(text)));
        };
        let most_open = known.slots as usize + OPEN_BOUTS_MARGIN;
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
            most_open,
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
        let state = self.lock();
        let is_leased = state.leases.lease(&key, token).is_some();
        (is_leased, !is_leased && state.leases.is_leased(&key))
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
        let Some(worker) = state.leases.lease(&key, token).map(|leased| leased.worker.clone()) else {
            return;
        };
        state.reclaim(&key, token);
        self.fail_bout(state, &key, &worker, reason);
        self.abandon_bouts(state);
        self.grant_all(state);
    }

    /// Returns how long a worker without leases, which may be absent, counts as one that may play a bout.
    pub(super) fn presence(&self) -> Duration {
        self.timing.lease * PRESENCE_LEASES
    }

    /// Records that a worker failed a bout that it no longer holds.
    pub(super) fn fail_bout(&self, state: &mut State, key: &BoutKey, worker: &str, reason: &str) {
        warn!(run = key.run, bout = key.bout, worker, reason, "bout failed");
        let caller = state.workers.get(worker).map_or_else(Caller::anonymous, |known| known.caller.clone());
        let entry = Entry::new(AuditKind::Failed, reason).worker(worker).bout(key);
        self.audit_caused_by(entry, &caller);
        let witness = state.witness(worker);
        let Some(run) = state.durable.run_mut(&key.run) else { return };
        if run.ledger.is_done(key.bout) {
            // It was a replica, and another worker could play the bout.
            self.record_crash(state, worker);
            return;
        }
        run.ledger.fail(key.bout, worker, &witness, reason);
    }

    /// Abandons the bouts that nobody can play, so that they hold up no run. Waits while bouts are not granted, and for
    /// workers of an earlier process.
    pub(super) fn abandon_bouts(&self, state: &mut State) {
        if !state.write_faults.is_empty() || !state.awaited.is_empty() {
            return;
        }
        for (key, failure) in state.newly_unplayable(self.presence()) {
            if let Some(run) = state.durable.run_mut(&key.run) {
                run.ledger.claim(key.bout);
            }
            self.post(Commit::abandoned(&key, failure));
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
    /// Returns the bouts that nobody can play, with the reasons, each once: the owner may not have executed the command that
    /// abandons it yet.
    fn newly_unplayable(&mut self, presence: Duration) -> BTreeMap<BoutKey, String> {
        let mut found = self.unplayable_bouts(presence);
        let known = std::mem::replace(&mut self.abandoned, found.keys().cloned().collect());
        found.retain(|key, _| !known.contains(key));
        found
    }

    /// Returns the bouts that nobody can play, with the reasons.
    fn unplayable_bouts(&self, presence: Duration) -> BTreeMap<BoutKey, String> {
        let mut found = BTreeMap::new();
        for (id, run) in self.durable.open_runs() {
            let is_granted = run.record().state == RunState::Running && run.export_fault.is_none();
            if !is_granted || run.ledger.attempts().next().is_none() {
                continue;
            }
            let candidates = self.candidates(run, presence);
            for (bout, attempts) in run.ledger.attempts() {
                let key = BoutKey { run: id.clone(), bout };
                if self.leases.is_leased(&key) {
                    continue;
                }
                if let Some(reason) = attempts.verdict(candidates.iter().copied()) {
                    found.insert(key, reason);
                }
            }
        }
        found
    }

    /// Returns the witnesses that may play bouts of a run: workers that play or were granted bouts in this time, and those
    /// that left in this time and may return.
    fn candidates(&self, run: &Run, presence: Duration) -> BTreeSet<&Witness> {
        let (quarantine, is_timed) = (self.durable.quarantine(), run.spec.is_timed());
        let now = self.last_tick;
        let is_candidate = |(name, worker): &(&String, &Worker)| {
            let is_active = now < worker.last_active + presence || self.leases.count_of_worker(name) > 0;
            let has_engines = || worker.has_engines(&run.spec, true);
            is_active
                && !(is_timed && worker.throttled)
                && !quarantine.contains_key(name.as_str())
                && has_engines()
        };
        self.workers.iter().filter(is_candidate).map(|(_, worker)| &worker.witness).collect()
    }

    /// Returns the witness that a worker is.
    pub(super) fn witness(&self, worker: &str) -> Witness {
        self.workers.get(worker).map_or_else(|| Witness::new("", None), |known| known.witness.clone())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;
    use crate::durable::ledger::{FAILURES, LOSSES};
    use crate::fixtures::{TestWorker, coordinator};

    /// Returns whether a bout was committed as failed.
    async fn is_abandoned(coordinator: &Coordinator, lease: &WireLease) -> bool {
        coordinator.settle().await;
        coordinator.with_run(&lease.run, |run| run.record().kept.contains_key(&lease.bout)).unwrap()
    }

    #[tokio::test]
    async fn bout_that_three_machines_fail_is_abandoned() {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = coordinator(folder.path()).await;
        for (worker, machine, enough) in [("one", 1, false), ("two", 2, false), ("three", 3, true)] {
            let lease = TestWorker::connect(&coordinator, worker, machine).await.lease(&coordinator);
            assert_eq!(lease.bout, 0, "others get a failed bout first");
            coordinator.record_failure(&lease, "no reason");
            assert_eq!(is_abandoned(&coordinator, &lease).await, enough, "{worker}");
        }
    }

    #[tokio::test]
    async fn lone_worker_gets_a_failed_bout_again_before_it_is_abandoned() {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = coordinator(folder.path()).await;
        let only = TestWorker::connect(&coordinator, "only", 1).await;
        for attempt in 1..=FAILURES {
            let lease = only.lease(&coordinator);
            assert_eq!(lease.bout, 0, "{attempt}");
            coordinator.record_failure(&lease, "no reason");
            assert_eq!(is_abandoned(&coordinator, &lease).await, attempt == FAILURES, "{attempt}");
        }
        assert_eq!(only.lease(&coordinator).bout, 1);
    }

    #[tokio::test]
    async fn names_on_one_machine_abandon_no_bout_that_another_machine_may_play() {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = coordinator(folder.path()).await;
        let other = TestWorker::connect(&coordinator, "other", 2).await;
        let kept = other.lease(&coordinator);
        let mut failed = Vec::new();
        for number in 0..6 {
            let liar = TestWorker::connect(&coordinator, &format!("liar-{number}"), 1).await;
            let lease = liar.lease(&coordinator);
            coordinator.record_failure(&lease, "no reason");
            assert!(!is_abandoned(&coordinator, &lease).await, "{number}");
            failed.push(lease.bout);
        }
        assert_eq!(failed, [1, 2, 3, 4, 5, 6], "another machine gets the failed bouts");
        other.ask(&coordinator, 6);
        let held: Vec<u64> = other.leases(&coordinator).iter().map(|lease| lease.bout).collect();
        assert_eq!((kept.bout, held), (0, vec![0, 1, 2, 3, 4, 5, 6]));
    }

    #[tokio::test]
    async fn failed_bout_waits_for_a_machine_that_is_briefly_absent() {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = coordinator(folder.path()).await;
        let absent = TestWorker::connect(&coordinator, "absent", 2).await;
        coordinator.disconnect("absent", absent.session);
        let liar = TestWorker::connect(&coordinator, "liar", 1).await;
        let lease = liar.lease(&coordinator);
        coordinator.record_failure(&lease, "no reason");
        for _ in 1..FAILURES {
            let lease = liar.lease(&coordinator);
            assert_eq!(lease.bout, 0);
            coordinator.record_failure(&lease, "no reason");
        }
        coordinator.pass(coordinator.timing.lease * 2);
        assert!(!is_abandoned(&coordinator, &lease).await, "`absent` may return");
        let played = liar.lease(&coordinator);
        assert_eq!(played.bout, 1, "one machine gets a bout as often as it may fail");
        for pulse in 0..20 {
            liar.play(&coordinator, &played, pulse);
            coordinator.pass(coordinator.timing.lease / 2);
        }
        assert!(is_abandoned(&coordinator, &lease).await, "nobody waits for ever");
    }

    #[tokio::test]
    async fn failed_bout_does_not_wait_for_workers_in_quarantine() {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = coordinator(folder.path()).await;
        TestWorker::connect(&coordinator, "faulty", 2).await;
        let only = TestWorker::connect(&coordinator, "only", 1).await;
        let mut lease = only.lease(&coordinator);
        coordinator.record_failure(&lease, "no reason");
        let quarantine = || Quarantine { worker: "faulty".to_string(), reason: "no reason".to_string() };
        for _ in 1..FAILURES {
            assert!(!is_abandoned(&coordinator, &lease).await, "`faulty` may play it");
            coordinator.commit(quarantine()).await;
            lease = only.lease(&coordinator);
            assert_eq!(lease.bout, 0);
            coordinator.record_failure(&lease, "no reason");
        }
        assert!(is_abandoned(&coordinator, &lease).await);
    }

    #[tokio::test]
    async fn bout_that_ends_ten_workers_is_abandoned() {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = coordinator(folder.path()).await;
        for number in 0..LOSSES {
            let worker = TestWorker::connect(&coordinator, &format!("w{number}"), 1).await;
            let lease = worker.lease(&coordinator);
            assert_eq!(lease.bout, 0);
            worker.play(&coordinator, &lease, 1);
            coordinator.disconnect(&worker.name, worker.session);
            coordinator.pass(coordinator.timing.lease * 2);
            assert_eq!(is_abandoned(&coordinator, &lease).await, number + 1 == LOSSES, "{number}");
        }
    }

    #[tokio::test]
    async fn unplayable_bout_is_abandoned_once() {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = coordinator(folder.path()).await;
        let only = TestWorker::connect(&coordinator, "only", 1).await;
        let lease = only.lease(&coordinator);
        let (key, token) = key_of(&lease);
        let mut state = coordinator.lock();
        state.reclaim(&key, token);
        let found = || [key.clone()];
        for _ in 0..FAILURES {
            coordinator.fail_bout(&mut state, &key, "only", "no reason");
        }
        let presence = coordinator.presence();
        assert!(state.newly_unplayable(presence).into_keys().eq(found()));
        assert!(state.newly_unplayable(presence).is_empty(), "the owner has not executed it yet");
    }

    #[tokio::test]
    async fn failure_without_a_lease_draws_no_openings() {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = coordinator(folder.path()).await;
        let worker = TestWorker::connect(&coordinator, "w", 1).await;
        let held = worker.lease(&coordinator);
        let caller = Caller::anonymous();
        let invented = WireLease { bout: 399, sequence: 5, ..held.clone() };
        assert!(matches!(coordinator.admit(&invented, None, &caller), Err(Rejection::Unknown)));
        assert!(matches!(coordinator.admit(&invented, Some("w"), &caller), Err(Rejection::Fault(_))));
        assert!(coordinator.admit(&held, None, &caller).is_ok());
    }

    #[tokio::test]
    async fn referee_that_panics_leaves_its_place_to_others() {
        let referees = Referees::new();
        for plies in [1, LONG_BOUT_PLIES + 1] {
            for _ in 0..100 {
                assert!(referees.run(plies, || panic!("a bug")).await.is_err());
            }
            assert_eq!(referees.run(plies, || 7).await.unwrap(), 7);
        }
    }
}
