//! Sessions of workers: connecting, heartbeats, returned bouts, expired leases and disconnecting.

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

use agon_proto::v1::{self, coordinator_message::Kind};
use agon_proto::{Heartbeat, Hello, Lease as WireLease};
use agon_transport::Caller;
use tonic::Status;
use tracing::{info, warn};

use super::{
    Coordinator, Holder, MAX_WAITING_PER_SLOT, SendQueue, State, WINDOW_BYTES, Worker, key_of, lease_ref,
};
use crate::audit::{AuditKind, Entry};
use crate::durable::runs::Abandon;
use crate::durable::workers::Hold;
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
        let adopted = self.adopt(state, &hello.held, holder, most_leases(hello.slots as u32), now);
        if adopted.len() < hello.held.len() {
            info!(
                worker = hello.worker,
                held = hello.held.len(),
                adopted = adopted.len(),
                "leases not adopted"
            );
        }
        let known = state.workers.remove(&hello.worker);
        let worker = Worker {
            caller: caller.clone(),
            credential,
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

    /// Adopts the leases that a worker holds from before: only those that were granted to it and are still wanted, and no
    /// more than its slots can need.
    fn adopt(
        &self,
        state: &mut State,
        held: &[WireLease],
        holder: Holder<'_>,
        most: u64,
        now: Duration,
    ) -> Vec<v1::LeaseRef> {
        let mut adopted = Vec::new();
        if state.durable.quarantine().contains_key(holder.worker) {
            return adopted;
        }
        for lease in held.iter().take(usize::try_from(most).unwrap_or(usize::MAX)) {
            let (key, token) = key_of(lease);
            let Some(run) = state.durable.run(&key.run) else { continue };
            let wanted =
                run.record().state.is_open() && run.ledger.is_open(key.bout) && !run.ledger.is_done(key.bout);
            if !(wanted || state.durable.replication().has(&key)) {
                continue;
            }
            if state.leases.adopt(key.clone(), holder, token, now) {
                if !wanted {
                    state.durable.replication_mut().claim(&key);
                } else if let Some(run) = state.durable.run_mut(&key.run) {
                    run.ledger.claim(key.bout);
                }
                adopted.push(v1::LeaseRef::from(lease));
            }
        }
        adopted
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
            self.post(Hold { worker: worker.to_string(), holds: false });
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
            self.audit_caused_by(Entry::new(AuditKind::Throttled, text).worker(worker), &known.caller);
        }
        known.throttled = heartbeat.throttled;
        if heartbeat.speed > 0.0 {
            known.speed = heartbeat.speed;
        }
        let in_flight = known.sent.saturating_sub(heartbeat.grants_received);
        // Whatever it reports, a worker holds no more than its slots can need.
        let room = most_leases(known.slots).saturating_sub(state.leases.count_of_worker(worker));
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

    /// Returns the interval at which leases are expired.
    pub(crate) fn tick(&self) -> Duration {
        (self.timing.lease / 20).clamp(Duration::from_millis(20), Duration::from_secs(1))
    }

    /// Ends leases without progress in time. After a long gap, in which the coordinator was
    /// suspended and reports wait to be read, all leases get that time.
    pub(crate) fn expire_leases(&self, now: Duration) {
        let mut guard = self.lock();
        let state = &mut *guard;
        let gap = now.saturating_sub(state.last_tick);
        state.last_tick = now;
        if gap > self.timing.lease / 2 {
            warn!(seconds = gap.as_secs_f64(), "coordinator was suspended; leases postponed");
            state.leases.postpone(gap);
        }
        let mut revoked: BTreeMap<String, Vec<v1::LeaseRef>> = BTreeMap::new();
        for (key, lease) in state.leases.expire(now) {
            warn!(run = key.run, bout = key.bout, worker = lease.worker, "lease expired");
            self.metrics.lease_expired();
            state.durable.replication_mut().give_back(&key);
            if let Some(run) = state.durable.run_mut(&key.run) {
                run.ledger.lose(key.bout, &lease.worker, lease.progress.started);
                if lease.progress.started {
                    self.post(Abandon { run: key.run.clone(), bouts: 1 });
                }
            }
            revoked.entry(lease.worker).or_default().push(lease_ref(&key, lease.token));
        }
        for worker in revoked.keys() {
            self.forget_idle_holder(state, worker);
        }
        state.revoke(revoked, "no progress reported in time");
        self.release_withheld(state);
        self.abandon_bouts(state);
        self.grant_all(state);
    }
}

/// Returns the most bouts that a worker with this many slots may hold.
fn most_leases(slots: u32) -> u64 {
    u64::from(slots) * (1 + MAX_WAITING_PER_SLOT)
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
