//! Sessions of workers: connecting, heartbeats, returned bouts, expired leases and disconnecting.

use std::collections::{BTreeMap, HashSet};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use agon_proto::v1::{self, coordinator_message::Kind};
use agon_proto::{Heartbeat, Hello, Lease as WireLease};
use agon_schedule::RunState;
use agon_transport::Caller;
use tonic::Status;
use tracing::{info, warn};

use super::{
    Coordinator, Holder, MAX_WAITING_PER_SLOT, SendQueue, State, WINDOW_BYTES, Worker, key_of, lease_ref,
};
use crate::audit::{AuditKind, Entry, credential_of};
use crate::durable::ledger::Witness;
use crate::durable::workers::{Hold, Register};
use crate::durable::{Append, Event};
use crate::leases::{BoutKey, Lease, Progress};

/// The maximum number of quarantined workers of one caller; above it, new names are rejected.
const MAX_QUARANTINED_PER_CALLER: usize = 100;

/// How long workers that left are listed, and the maximum number of them for each credential.
const ABSENCE: Duration = Duration::from_secs(86_400);
const MAX_ABSENT_WORKERS: usize = 1024;

impl Coordinator {
    /// Connects a worker, unless another caller owns its name. Returns the session number.
    pub(crate) fn connect(
        &self,
        hello: &Hello,
        caller: &Caller,
        address: Option<IpAddr>,
        queue: SendQueue,
    ) -> Result<u64, Status> {
        let now = self.now();
        let mut guard = self.lock();
        let state = &mut *guard;
        if let Some(owner) = state.owned_by_another(&hello.worker, caller) {
            return Err(Status::permission_denied(format!(
                "the worker name `{}` belongs to {owner}, and this is {caller}; choose another name with --name, or revoke \
                 that token",
                hello.worker
            )));
        }
        // A caller cannot escape quarantine by changing names.
        let own = |name: &&String| state.workers.get(*name).is_some_and(|known| known.caller == *caller);
        if caller.is_authenticated()
            && !state.workers.contains_key(&hello.worker)
            && state.durable.quarantine().keys().filter(own).count() >= MAX_QUARANTINED_PER_CALLER
        {
            return Err(Status::permission_denied(format!(
                "{MAX_QUARANTINED_PER_CALLER} workers of {caller} are in quarantine; see `agon workers`, and revoke that token or \
                 trust some of them again"
            )));
        }
        state.sessions += 1;
        let session = state.sessions;
        let credential = caller.to_string();
        let holder = Holder { worker: &hello.worker, credential: &credential };
        let (adopted, refused) = self.adopt(state, &hello.held, holder, most_leases(hello.slots as u32), now);
        if adopted.len() < hello.held.len() {
            let (held, adopted) = (hello.held.len(), adopted.len());
            info!(worker = hello.worker, held, adopted, "leases not adopted");
        }
        if refused > 0 {
            let text = format!(
                "{refused} of the {} leases that it claims were not granted to it, or are more than its slots need",
                hello.held.len()
            );
            self.audit_caused_by(Entry::new(AuditKind::Refused, text).worker(&hello.worker), caller);
        }
        let known = state.workers.remove(&hello.worker);
        let worker = Worker {
            caller: caller.clone(),
            witness: Witness::new(&credential, address),
            credential,
            is_recorded: false,
            last_active: now,
            build: hello.build.clone(),
            slots: hello.slots as u32,
            speed: hello.speed,
            queue: Some(queue),
            session,
            room: 0,
            sent: 0,
            // Other ids would only take memory.
            specs: hello.specs.iter().filter(|id| state.durable.run(id).is_some()).cloned().collect(),
            unacknowledged: 0,
            throttled: false,
            engines: hello.engines.iter().cloned().collect(),
            refused: known.as_ref().map_or(0, |known| known.refused),
            reputation: known.map(|known| known.reputation).unwrap_or_default(),
            last_heartbeat: Instant::now(),
        };
        state.workers.insert(hello.worker.clone(), worker);
        let welcome = v1::Welcome {
            // The latest that both sides support.
            protocol: *agon_proto::PROTOCOLS.end().min(hello.protocols.end()),
            epoch: self.epoch,
            heartbeat_ms: self.timing.heartbeat.as_millis() as u32,
            lease_ms: self.timing.lease.as_millis() as u32,
            window_bytes: WINDOW_BYTES,
            adopted,
        };
        state.send(&hello.worker, Kind::Welcome(welcome));
        if state.awaited.remove(&hello.worker) && state.awaited.is_empty() {
            self.release_withheld(state, now);
        }
        drop(guard);
        info!(worker = hello.worker, slots = hello.slots, build = hello.build, "worker connected");
        self.changed();
        Ok(session)
    }

    /// Records durably that a worker may hold leases. Only then it is granted any.
    pub(crate) async fn record_holder(&self, worker: &str, session: u64) {
        let credential = self.lock().workers.get(worker).map(|known| credential_of(&known.caller));
        let credential = credential.unwrap_or_default();
        self.commit(Register { worker: worker.to_string(), credential }).await;
        self.commit(Hold { worker: worker.to_string(), holds: true }).await;
        let mut guard = self.lock();
        let state = &mut *guard;
        if let Some(known) = state.workers.get_mut(worker).filter(|known| known.session == session) {
            known.is_recorded = true;
            self.grant(state, worker);
        }
    }

    /// Adopts the leases that a worker holds from before: only those that were granted to it and are still wanted, and no
    /// more than its slots can need. Returns them, and the number of those that it claims wrongly.
    fn adopt(
        &self,
        state: &mut State,
        held: &[WireLease],
        holder: Holder<'_>,
        most: u64,
        now: Duration,
    ) -> (Vec<v1::LeaseRef>, usize) {
        let (mut adopted, mut refused) = (Vec::new(), 0);
        if state.durable.quarantine().contains_key(holder.worker) {
            return (adopted, refused);
        }
        for lease in held {
            let (key, token) = key_of(lease);
            let is_held =
                state.leases.lease(&key, token).is_some_and(|leased| leased.worker == holder.worker);
            let fits = is_held || state.leases.count_of_worker(holder.worker) < most;
            if !fits || !state.leases.has_issued(token, &key, holder) {
                refused += 1;
                continue;
            }
            let Some(run) = state.durable.run(&key.run) else { continue };
            let wanted =
                run.record().state.is_open() && run.ledger.is_open(key.bout) && !run.ledger.is_done(key.bout);
            if !(wanted || state.durable.replication().has(&key)) {
                continue;
            }
            if state.leases.adopt(key.clone(), holder, token, now) {
                if !wanted {
                    state.durable.claim_replica(&key);
                } else if let Some(run) = state.durable.run_mut(&key.run) {
                    run.ledger.claim(key.bout);
                }
                adopted.push(v1::LeaseRef::from(lease));
            }
        }
        (adopted, refused)
    }

    /// Ends a session. Its leases last until they expire, so that the worker can reconnect with them.
    pub(crate) fn disconnect(&self, worker: &str, session: u64) {
        let mut guard = self.lock();
        if let Some(known) = guard.workers.get_mut(worker).filter(|known| known.session == session) {
            (known.queue, known.room) = (None, 0);
            known.last_active = self.now();
            known.specs = HashSet::new();
            info!(worker, "worker disconnected");
            self.forget_idle_holder(&guard, worker);
        }
        drop(guard);
        self.changed();
    }

    /// Records that a disconnected worker without leases holds none.
    fn forget_idle_holder(&self, state: &State, worker: &str) {
        let is_connected = state.workers.get(worker).is_some_and(|known| known.queue.is_some());
        if !is_connected && state.leases.count_of_worker(worker) == 0 {
            self.post(Hold { worker: worker.to_string(), holds: false });
        }
    }

    /// Handles a heartbeat.
    pub(crate) fn heartbeat(&self, worker: &str, session: u64, heartbeat: &Heartbeat) {
        let now = self.now();
        let mut guard = self.lock();
        let state = &mut *guard;
        if !state.has_session(worker, session) {
            return;
        }
        // Started bouts first: their progress extends the waiting ones.
        let (started, waiting): (Vec<_>, Vec<_>) =
            heartbeat.progress.iter().partition(|progress| progress.started);
        for progress in started.into_iter().chain(waiting) {
            let (key, token) = key_of(&progress.lease);
            if state.leases.lease(&key, token).is_none_or(|leased| leased.worker != worker) {
                continue;
            }
            let progress = Progress {
                started: progress.started,
                game: progress.game,
                ply: progress.ply,
                pulse: progress.pulse,
            };
            state.leases.record_progress(&key, token, progress, now);
        }
        let Some(known) = state.workers.get_mut(worker) else { return };
        known.last_heartbeat = Instant::now();
        let held = state.leases.count_of_worker(worker);
        if held > 0 {
            known.last_active = now;
        }
        known.unacknowledged = heartbeat.unacknowledged_bytes;
        if heartbeat.throttled && !known.throttled {
            let text = "throttled by its operating system; gets no bouts of timed runs";
            self.audit_caused_by(Entry::new(AuditKind::Throttled, text).worker(worker), &known.caller);
        }
        known.throttled = heartbeat.throttled;
        if heartbeat.speed > 0.0 {
            known.speed = heartbeat.speed;
        }
        let in_flight = known.sent.saturating_sub(heartbeat.grants_received);
        // Whatever it reports, a worker holds no more than its slots can need.
        let room = most_leases(known.slots).saturating_sub(held);
        known.room = (heartbeat.room as u64).saturating_sub(in_flight).min(room);
        self.grant(state, worker);
    }

    /// Takes back bouts that a worker returned unplayed.
    pub(crate) fn return_bouts(&self, worker: &str, session: u64, leases: &[WireLease], reason: &str) {
        let mut guard = self.lock();
        let state = &mut *guard;
        if !state.has_session(worker, session) {
            return;
        }
        let mut taken = 0;
        for lease in leases {
            let (key, token) = key_of(lease);
            if state.leases.lease(&key, token).is_some_and(|leased| leased.worker == worker) {
                state.reclaim(&key, token);
                taken += 1;
            }
        }
        if taken == 0 {
            return;
        }
        info!(worker, bouts = taken, reason, "bouts returned");
        self.grant_all(state);
    }

    /// Returns the interval at which leases are expired.
    pub(crate) fn tick(&self) -> Duration {
        (self.timing.lease / 20).clamp(Duration::from_millis(20), Duration::from_secs(1))
    }

    /// Ends leases without progress in time, and bouts that take too long. After a long gap, in which the coordinator was
    /// suspended and reports wait to be read, all leases and returns of workers get that time.
    pub(crate) fn expire_leases(&self, now: Duration) {
        let mut guard = self.lock();
        let state = &mut *guard;
        let elapsed = now.saturating_sub(state.last_tick);
        state.last_tick = now;
        if elapsed > self.timing.lease / 2 {
            warn!(seconds = elapsed.as_secs_f64(), "coordinator was suspended; leases postponed");
            state.leases.postpone(elapsed);
            state.awaited_until += elapsed;
            state.workers.values_mut().for_each(|worker| worker.last_active += elapsed);
        } else {
            state.count_usage(elapsed);
        }
        let mut revoked = Revoked::new();
        for (key, lease) in state.leases.expire(now) {
            warn!(run = key.run, bout = key.bout, worker = lease.worker, "lease expired");
            self.metrics.lease_expired();
            let (witness, started) = (state.witness(&lease.worker), lease.progress.started);
            if let Some(run) = state.durable.run_mut(&key.run) {
                run.ledger.lose(key.bout, &lease.worker, &witness, started);
                if started {
                    self.post(Append(vec![Event::LeasesExpired { run: key.run.clone(), bouts: 1 }]));
                }
            }
            state.give_back(&key);
            revoked.entry(lease.worker).or_default().push(lease_ref(&key, lease.token));
        }
        for worker in revoked.keys() {
            self.forget_idle_holder(state, worker);
        }
        state.revoke(revoked, "no progress reported in time");
        self.end_long_bouts(state, now);
        self.release_withheld(state, now);
        self.abandon_bouts(state);
        state.forget_workers(now);
        self.grant_all(state);
    }

    /// Ends the bouts that take longer than the maximum. Each counts as a failure of its worker.
    fn end_long_bouts(&self, state: &mut State, now: Duration) {
        let most = self.timing.max_bout;
        let Some(until) = now.checked_sub(most) else { return };
        let mut revoked = Revoked::new();
        let reason = format!("took longer than {} ms, the limit of --max-bout-ms", most.as_millis());
        let ended: Vec<(BoutKey, Lease)> = state.leases.end_started(until);
        for (key, lease) in ended {
            state.give_back(&key);
            self.fail_bout(state, &key, &lease.worker, &reason);
            revoked.entry(lease.worker).or_default().push(lease_ref(&key, lease.token));
        }
        state.revoke(revoked, &reason);
    }
}

impl State {
    /// Returns whether this is the latest session of a worker: it has the leases, and messages of an earlier one come late.
    fn has_session(&self, worker: &str, session: u64) -> bool {
        self.workers.get(worker).is_some_and(|known| known.session == session)
    }

    /// Counts the time that the slots played each run.
    fn count_usage(&mut self, elapsed: Duration) {
        let running = self.durable.open_runs().filter(|(_, run)| run.record().state == RunState::Running);
        self.leases.count_usage(elapsed, running.map(|(id, _)| id.as_str()));
    }

    /// Forgets workers that left long ago, and the first to leave of those that a credential has too many of. Those in
    /// quarantine count against their credential and stay.
    fn forget_workers(&mut self, now: Duration) {
        let mut gone: BTreeMap<&str, Vec<(Duration, &String)>> = BTreeMap::new();
        for (name, worker) in &self.workers {
            let stays = worker.queue.is_some()
                || self.leases.count_of_worker(name) > 0
                || self.durable.quarantine().contains_key(name);
            if !stays {
                gone.entry(&worker.credential).or_default().push((worker.last_active, name));
            }
        }
        let mut forgotten: Vec<String> = Vec::new();
        for mut workers in gone.into_values() {
            workers.sort_unstable();
            let surplus = workers.len().saturating_sub(MAX_ABSENT_WORKERS);
            let is_forgotten = |(number, (left, _)): &(usize, &(Duration, &String))| {
                *number < surplus || now > *left + ABSENCE
            };
            forgotten.extend(
                workers.iter().enumerate().filter(is_forgotten).map(|(_, (_, name))| (*name).clone()),
            );
        }
        for name in forgotten {
            self.workers.remove(&name);
            self.durable.forget_worker(&name);
        }
    }
}

/// Leases to be revoked, by worker.
type Revoked = BTreeMap<String, Vec<v1::LeaseRef>>;

/// Returns the most bouts that a worker with this many slots may hold.
fn most_leases(slots: u32) -> u64 {
    u64::from(slots) * (1 + MAX_WAITING_PER_SLOT)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use tokio::sync::mpsc;

    use super::*;
    use crate::durable::workers::Quarantine;
    use crate::fixtures::{TestWorker, coordinator, hello};
    use crate::state::RESERVED_QUEUE;

    #[tokio::test]
    async fn worker_that_does_not_read_gets_no_grants_and_is_disconnected() {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = coordinator(folder.path()).await;
        // Room for the welcome, a spec, two bouts and the reserved part.
        let (queue, mut unread) = mpsc::channel(RESERVED_QUEUE + 4);
        let hello = hello(&coordinator, "slow-reader");
        let session = coordinator.connect(&hello, &Caller::anonymous(), None, queue).unwrap();
        coordinator.record_holder("slow-reader", session).await;
        let ask = |room| {
            let heartbeat = Heartbeat { room, grants_received: u64::MAX, ..Heartbeat::default() };
            coordinator.heartbeat("slow-reader", session, &heartbeat);
            coordinator.lock().leases.count()
        };
        assert_eq!(ask(100), 2, "no more than the send queue holds");
        assert_eq!(ask(100), 2);
        for _ in 0..RESERVED_QUEUE {
            coordinator.drain_worker("slow-reader", &Caller::anonymous()).unwrap();
        }
        let sessions_and_leases = || {
            let state = coordinator.lock();
            (state.connected().count(), state.leases.count())
        };
        assert_eq!(sessions_and_leases(), (1, 2));
        coordinator.drain_worker("slow-reader", &Caller::anonymous()).unwrap();
        assert_eq!(sessions_and_leases(), (0, 0), "its leases are released");
        let mut received = 0;
        while unread.recv().await.is_some() {
            received += 1;
        }
        assert_eq!(received, RESERVED_QUEUE + 4, "the stream ends after the unread messages");
    }

    #[tokio::test]
    async fn limits_the_leases_of_a_worker_by_its_slots() {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = coordinator(folder.path()).await;
        let id = coordinator.run_ids().remove(0);
        coordinator.with_run(&id, |run| run.ledger.reserve_to(400));
        let mut eager = TestWorker::connect(&coordinator, "eager", 1).await;
        for _ in 0..4 {
            eager.ask(&coordinator, 100_000);
            while eager.inbox.try_recv().is_ok() {}
        }
        assert_eq!(coordinator.lock().leases.count(), 257);
    }

    /// Leases of an earlier process are adopted up to what the slots need, whether they come in one hello or in several;
    /// the rest is in the audit.
    #[tokio::test]
    async fn adopts_no_more_leases_than_the_slots_need() {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = coordinator(folder.path()).await;
        let run = coordinator.run_ids().remove(0);
        let credential = Caller::anonymous().to_string();
        let holder = Holder { worker: "hoarder", credential: &credential };
        let held: Vec<WireLease> = (0..300)
            .map(|bout| {
                let mut state = coordinator.lock();
                let key = BoutKey { run: run.clone(), bout };
                let token = state.leases.grant(key.clone(), holder, Duration::ZERO);
                state.leases.release(&key, token);
                WireLease { run: run.clone(), bout, epoch: token.epoch, sequence: token.sequence }
            })
            .collect();
        let invented = WireLease { sequence: 7, ..held[0].clone() };
        let adopted = |held: Vec<WireLease>| {
            let (queue, _) = mpsc::channel(9);
            let hello = Hello { held, ..hello(&coordinator, "hoarder") };
            coordinator.connect(&hello, &Caller::anonymous(), None, queue).unwrap();
            coordinator.lock().leases.count()
        };
        assert_eq!(adopted(vec![invented]), 0);
        assert_eq!(adopted(held[..200].to_vec()), 200);
        assert_eq!(adopted(held[100..].to_vec()), 257);
        assert_eq!(adopted(held[..257].to_vec()), 257, "it returns with what it has");
        coordinator.settle().await;
        let audit = coordinator.reader.audits(Some("hoarder"), None, 9).unwrap();
        let texts: Vec<&str> = audit.iter().map(|entry| entry.text.as_str()).collect();
        let text = |refused, held| {
            format!(
                "{refused} of the {held} leases that it claims were not granted to it, or are more than its slots need"
            )
        };
        assert_eq!(texts.len(), 2, "{texts:?}");
        assert!(texts.contains(&text(1, 1).as_str()) && texts.contains(&text(43, 200).as_str()), "{texts:?}");
    }

    /// A second process with the name and the credential of a worker, or the worker itself, opens a session: the leases go
    /// over to that, as far as it holds them, and the earlier session has no say any more.
    #[tokio::test]
    async fn only_the_latest_session_extends_and_returns_leases() {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = coordinator(folder.path()).await;
        let earlier = TestWorker::connect(&coordinator, "w", 1).await;
        let lease = earlier.lease(&coordinator);
        let later = TestWorker::connect(&coordinator, "w", 1).await;
        let ends = |worker: &TestWorker| {
            let state = coordinator.lock();
            state.leases.of_worker(&worker.name).map(|(_, lease)| lease.expires).collect::<Vec<_>>()
        };
        let before = ends(&later);
        coordinator.passed_ms.fetch_add(1000, std::sync::atomic::Ordering::Relaxed);
        earlier.play(&coordinator, &lease, 1);
        coordinator.return_bouts("w", earlier.session, std::slice::from_ref(&lease), "");
        assert_eq!(ends(&later), before);
        later.play(&coordinator, &lease, 1);
        assert!(ends(&later) > before);
        coordinator.return_bouts("w", later.session, &[lease], "");
        assert!(ends(&later).is_empty());
    }

    /// Whoever learns the token of a lease needs the name and the credential too: other names of the credential, and other
    /// credentials under the name, can neither adopt nor submit the bout.
    #[tokio::test]
    async fn lease_is_useless_to_other_names_and_credentials() {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = coordinator(folder.path()).await;
        let holder = TestWorker::connect(&coordinator, "w", 1).await;
        let lease = holder.lease(&coordinator);
        let (key, token) = key_of(&lease);
        let anonymous = Caller::anonymous().to_string();
        let may_use = |worker, credential: &str| {
            coordinator.lock().leases.has_issued(token, &key, Holder { worker, credential })
        };
        assert!(may_use("w", &anonymous));
        assert!(!may_use("thief", &anonymous) && !may_use("w", "the token `thief`"));
        let (queue, _) = mpsc::channel(9);
        let thief = Hello { held: vec![lease.clone()], ..hello(&coordinator, "thief") };
        coordinator.connect(&thief, &Caller::anonymous(), None, queue).unwrap();
        assert_eq!(coordinator.lock().leases.of_worker("thief").count(), 0);
        assert_eq!(holder.leases(&coordinator), std::slice::from_ref(&lease));
        assert!(coordinator.admit(&lease, Some("thief"), &Caller::anonymous()).is_err());
        assert!(coordinator.admit(&lease, Some("w"), &Caller::anonymous()).is_ok());
    }

    #[tokio::test]
    async fn worker_is_granted_bouts_after_it_is_recorded() {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = coordinator(folder.path()).await;
        let (queue, _inbox) = mpsc::channel(crate::state::SEND_QUEUE);
        let session =
            coordinator.connect(&hello(&coordinator, "w"), &Caller::anonymous(), None, queue).unwrap();
        let heartbeat = Heartbeat { room: 1, grants_received: u64::MAX, ..Heartbeat::default() };
        coordinator.heartbeat("w", session, &heartbeat);
        assert_eq!(coordinator.lock().leases.count(), 0);
        coordinator.record_holder("w", session).await;
        assert_eq!(coordinator.lock().leases.count(), 1);
        assert!(coordinator.lock().durable.holders().contains("w"));
    }

    #[tokio::test]
    async fn suspended_coordinator_ends_no_lease_and_no_wait() {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = coordinator(folder.path()).await;
        let worker = TestWorker::connect(&coordinator, "w", 1).await;
        let lease = worker.lease(&coordinator);
        worker.play(&coordinator, &lease, 1);
        {
            let mut state = coordinator.lock();
            state.awaited.insert("earlier".to_string());
            state.awaited_until = coordinator.now() + coordinator.timing.grace;
        }
        coordinator.pass(coordinator.timing.lease / 3);
        // The process stops for two lease times; a tick comes before the reports that wait.
        let stop = coordinator.timing.lease * 2;
        coordinator.passed_ms.fetch_add(stop.as_millis() as u64, std::sync::atomic::Ordering::Relaxed);
        coordinator.expire_leases(coordinator.now());
        assert_eq!(worker.leases(&coordinator), [lease], "its reports are not read yet");
        assert_eq!(coordinator.lock().awaited.len(), 1, "nor the hello of a worker that returns");
        assert!(coordinator.lock().durable.runs().all(|(_, run)| run.ledger.prefix() == 0));
        coordinator.pass(coordinator.timing.lease);
        assert_eq!((worker.leases(&coordinator).len(), coordinator.lock().awaited.len()), (0, 0));
    }

    #[tokio::test]
    async fn endless_bout_ends_after_the_maximum_and_counts_as_a_failure() {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = coordinator(folder.path()).await;
        let mut endless = TestWorker::connect(&coordinator, "endless", 1).await;
        let lease = endless.lease(&coordinator);
        let ends = |coordinator: &Coordinator, endless: &mut TestWorker, steps: u32| {
            for pulse in 0..steps {
                endless.play(coordinator, &lease, u64::from(pulse) + 1);
                coordinator.pass(coordinator.timing.max_bout / steps);
            }
            endless.leases(coordinator).is_empty()
        };
        let steps = 5000;
        coordinator.pass(Duration::from_secs(10));
        assert!(ends(&coordinator, &mut endless, steps));
        assert_eq!(endless.revocations(), ["took longer than 86400000 ms, the limit of --max-bout-ms"]);
        coordinator.settle().await;
        let audit = coordinator.reader.audits(Some("endless"), None, 9).unwrap();
        assert!(
            audit.iter().any(|entry| entry.kind == "failed" && entry.bout == Some(lease.bout)),
            "{audit:?}"
        );
        let again = endless.lease(&coordinator);
        assert_eq!(again.bout, lease.bout, "a lone worker tries again");
    }

    #[tokio::test]
    async fn forgets_workers_that_left() {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = coordinator(folder.path()).await;
        let connect = |name: &str| {
            let (queue, _) = mpsc::channel(9);
            coordinator.connect(&hello(&coordinator, name), &Caller::anonymous(), None, queue).unwrap()
        };
        let stays = connect("stays");
        coordinator.commit(Quarantine { worker: "bad".to_string(), reason: "no reason".to_string() }).await;
        for name in ["bad".to_string()].into_iter().chain((0..1200).map(|number| format!("pod-{number:04}")))
        {
            let session = connect(&name);
            coordinator.disconnect(&name, session);
        }
        let known = || coordinator.lock().workers.len();
        assert_eq!(known(), 1202);
        coordinator.expire_leases(coordinator.now());
        assert_eq!(known(), MAX_ABSENT_WORKERS + 2);
        assert!(coordinator.worker("pod-0000").is_none() && coordinator.worker("pod-1199").is_some());
        let day = ABSENCE.as_millis() as u64;
        coordinator.passed_ms.fetch_add(day, std::sync::atomic::Ordering::Relaxed);
        coordinator.lock().last_tick = coordinator.now();
        coordinator.expire_leases(coordinator.now());
        assert_eq!(known(), 2, "the connected one, and the one in quarantine");
        assert!(stays > 0);
    }
}
