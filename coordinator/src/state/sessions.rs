//! Sessions of workers: connecting, heartbeats, returned bouts, expired leases and disconnecting.

use std::collections::{BTreeMap, HashSet};
use std::time::Instant;

use agon_proto::v1::{self, coordinator_message::Kind};
use agon_proto::{Heartbeat, Hello, Lease as WireLease};
use agon_transport::Caller;
use tonic::Status;
use tracing::{info, warn};

use super::{Coordinator, MAX_WAITING_PER_SLOT, SendQueue, State, WINDOW_BYTES, Worker, key_of, lease_ref};
use crate::audit::{AuditKind, Entry};
use crate::leases::Progress;

/// The maximum number of quarantined workers of one caller; above it, new names are rejected.
const MAX_QUARANTINED_PER_CALLER: usize = 100;

impl Coordinator {
    /// Connects a worker, unless another caller owns its name. Returns the session number.
    pub(crate) fn connect(&self, hello: &Hello, caller: &Caller, queue: SendQueue) -> Result<u64, Status> {
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
            && state.quarantine.keys().filter(own).count() >= MAX_QUARANTINED_PER_CALLER
        {
            return Err(Status::permission_denied(format!(
                "{MAX_QUARANTINED_PER_CALLER} workers of {caller} are in quarantine; see `agon workers`, and revoke that token or \
                 trust some of them again"
            )));
        }
        state.sessions += 1;
        let session = state.sessions;
        let mut adopted = Vec::new();
        let trusted = !state.quarantine.contains_key(&hello.worker);
        for held in hello.held.iter().filter(|_| trusted) {
            let (key, token) = key_of(held);
            let Some(run) = state.runs.get_mut(&key.run) else { continue };
            let wanted = run.state.is_open() && run.ledger.is_open(key.bout) && !run.ledger.is_done(key.bout);
            if !(wanted || state.replication.has(&key)) {
                continue;
            }
            if state.leases.adopt(key.clone(), &hello.worker, token, now) {
                if wanted {
                    run.ledger.claim(key.bout);
                } else {
                    state.replication.claim(&key);
                }
                adopted.push(v1::LeaseRef::from(held));
            }
        }
        let known = state.workers.remove(&hello.worker);
        let worker = Worker {
            caller: caller.clone(),
            build: hello.build.clone(),
            slots: hello.slots as u32,
            speed: hello.speed,
            queue: Some(queue),
            session,
            room: 0,
            sent: 0,
            // Other ids would only take memory.
            specs: hello.specs.iter().filter(|id| state.runs.contains_key(*id)).cloned().collect(),
            unacknowledged: 0,
            throttled: false,
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
            self.release_withheld(state);
        }
        drop(guard);
        info!(worker = hello.worker, slots = hello.slots, build = hello.build, "worker connected");
        self.changed();
        Ok(session)
    }

    /// Ends a session. Its leases last until they expire, so that the worker can reconnect with them.
    pub(crate) fn disconnect(&self, worker: &str, session: u64) {
        let mut guard = self.lock();
        if let Some(known) = guard.workers.get_mut(worker).filter(|known| known.session == session) {
            (known.queue, known.room) = (None, 0);
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
            self.store.remove_holder(worker);
        }
    }

    /// Handles a heartbeat.
    pub(crate) fn heartbeat(&self, worker: &str, session: u64, heartbeat: &Heartbeat) {
        let now = self.now();
        let mut guard = self.lock();
        let state = &mut *guard;
        // Started bouts first: their progress extends the waiting ones.
        let (started, waiting): (Vec<_>, Vec<_>) =
            heartbeat.progress.iter().partition(|progress| progress.started);
        for progress in started.into_iter().chain(waiting) {
            let (key, token) = key_of(&progress.lease);
            if state.leases.lease(&key).is_none_or(|leased| leased.worker != worker) {
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
        let Some(known) = state.workers.get_mut(worker).filter(|known| known.session == session) else {
            return;
        };
        known.last_heartbeat = Instant::now();
        known.unacknowledged = heartbeat.unacknowledged_bytes;
        if heartbeat.throttled && !known.throttled {
            let text = "throttled by its operating system; gets no bouts of timed runs";
            self.audit(Entry::new(AuditKind::Throttled, text).worker(worker).caused_by(&known.caller));
        }
        known.throttled = heartbeat.throttled;
        if heartbeat.speed > 0.0 {
            known.speed = heartbeat.speed;
        }
        let in_flight = known.sent.saturating_sub(heartbeat.grants_received);
        // Whatever it reports, a worker holds no more than its slots can need.
        let limit = u64::from(known.slots) * (1 + MAX_WAITING_PER_SLOT);
        let room = limit.saturating_sub(state.leases.count_of_worker(worker));
        known.room = (heartbeat.room as u64).saturating_sub(in_flight).min(room);
        self.grant(state, worker);
    }

    /// Takes back bouts that a worker returned unplayed.
    pub(crate) fn return_bouts(&self, worker: &str, leases: &[WireLease], reason: &str) {
        let mut guard = self.lock();
        let state = &mut *guard;
        let mut taken = 0;
        for lease in leases {
            let (key, token) = key_of(lease);
            if state.leases.lease(&key).is_some_and(|leased| leased.worker == worker && leased.token == token)
            {
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

    /// Ends leases without progress in time.
    pub(crate) fn expire_leases(&self) {
        let now = self.now();
        let mut guard = self.lock();
        let state = &mut *guard;
        let mut revoked: BTreeMap<String, Vec<v1::LeaseRef>> = BTreeMap::new();
        for (key, lease) in state.leases.expire(now) {
            warn!(run = key.run, bout = key.bout, worker = lease.worker, "lease expired");
            self.metrics.lease_expired();
            state.replication.give_back(&key);
            if let Some(run) = state.runs.get_mut(&key.run) {
                run.ledger.lose(key.bout, &lease.worker);
                if lease.progress.started {
                    run.abandoned += 1;
                    self.store.raise_abandoned(&key.run, run.abandoned);
                }
            }
            revoked.entry(lease.worker).or_default().push(lease_ref(&key, lease.token));
        }
        for worker in revoked.keys() {
            self.forget_idle_holder(state, worker);
        }
        state.revoke(revoked, "no progress reported in time");
        self.release_withheld(state);
        self.grant_all(state);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use tokio::sync::mpsc;

    use super::*;
    use crate::fixtures::{coordinator, hello};
    use crate::state::RESERVED_QUEUE;

    #[tokio::test]
    async fn worker_that_does_not_read_gets_no_grants_and_is_disconnected() {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = coordinator(folder.path()).await;
        // Room for the welcome, a spec, two bouts and the reserved part.
        let (queue, mut unread) = mpsc::channel(RESERVED_QUEUE + 4);
        let session =
            coordinator.connect(&hello(&coordinator, "slow-reader"), &Caller::anonymous(), queue).unwrap();
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
        let (queue, mut inbox) = mpsc::channel(crate::state::SEND_QUEUE);
        let session =
            coordinator.connect(&hello(&coordinator, "eager"), &Caller::anonymous(), queue).unwrap();
        for _ in 0..4 {
            let heartbeat = Heartbeat { room: 100_000, grants_received: u64::MAX, ..Heartbeat::default() };
            coordinator.heartbeat("eager", session, &heartbeat);
            while inbox.try_recv().is_ok() {}
        }
        assert_eq!(coordinator.lock().leases.count(), 257);
    }
}
