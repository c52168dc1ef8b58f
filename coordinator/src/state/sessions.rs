//! Workers come, are heard from, and go.

use std::collections::BTreeMap;
use std::time::Instant;

use agon_proto::v1::{self, coordinator_message::Kind};
use agon_proto::{Heartbeat, Hello, Lease as WireLease};
use agon_transport::Caller;
use tonic::Status;
use tracing::{info, warn};

use super::{Coordinator, MOST_AHEAD, Out, WINDOW_BYTES, Worker, key_of, reference};
use crate::audit::{AuditKind, Entry};
use crate::leases::Progress;

/// So many workers of one credential that are in quarantine are enough.
const MOST_SET_ASIDE: usize = 100;

impl Coordinator {
    /// Lets a worker in, unless its name is somebody else's. Returns the number of its session.
    pub(crate) fn connect(&self, hello: &Hello, caller: &Caller, out: Out) -> Result<u64, Status> {
        let now = self.now();
        let mut guard = self.lock();
        let state = &mut *guard;
        if let Some(owner) = state.owned_by_another(&hello.worker, caller) {
            return Err(Status::permission_denied(format!(
                "a worker called `{}` has come with {owner} before, and this is {caller}; choose another name with \
                 --name, or revoke that token",
                hello.worker
            )));
        }
        // Whoever comes under name after name and lies under each is let in no more.
        let own = |name: &&String| state.workers.get(*name).is_some_and(|known| known.caller == *caller);
        if caller.is_authenticated()
            && !state.workers.contains_key(&hello.worker)
            && state.quarantine.keys().filter(own).count() >= MOST_SET_ASIDE
        {
            return Err(Status::permission_denied(format!(
                "{MOST_SET_ASIDE} workers that came with {caller} are in quarantine; look at `agon workers`, and revoke \
                 that token, or trust some of them again"
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
            if !(wanted || state.checks.has(&key)) {
                continue;
            }
            if state.leases.adopt(key.clone(), &hello.worker, token, now) {
                if wanted {
                    run.ledger.claim(key.bout);
                } else {
                    state.checks.claim(&key);
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
            out: Some(out),
            session,
            room: 0,
            sent: 0,
            specs: hello.specs.iter().cloned().collect(),
            unacknowledged: 0,
            throttled: false,
            refused: known.as_ref().map_or(0, |known| known.refused),
            reputation: known.map(|known| known.reputation).unwrap_or_default(),
            heard: Instant::now(),
        };
        state.workers.insert(hello.worker.clone(), worker);
        let welcome = v1::Welcome {
            // The latest that both speak: who was let in speaks one of ours.
            protocol: *agon_proto::PROTOCOLS.end().min(hello.protocols.end()),
            epoch: self.epoch,
            heartbeat_ms: self.timing.heartbeat.as_millis() as u32,
            lease_ms: self.timing.lease.as_millis() as u32,
            window_bytes: WINDOW_BYTES,
            adopted,
        };
        state.send(&hello.worker, Kind::Welcome(welcome));
        drop(guard);
        info!(worker = hello.worker, slots = hello.slots, build = hello.build, "worker connected");
        self.changed();
        Ok(session)
    }

    /// A session has ended. Its leases stay until they expire: the worker may come back with them.
    pub(crate) fn disconnect(&self, worker: &str, session: u64) {
        let mut guard = self.lock();
        if let Some(known) = guard.workers.get_mut(worker).filter(|known| known.session == session) {
            known.out = None;
            known.room = 0;
            info!(worker, "worker disconnected");
        }
        drop(guard);
        self.changed();
    }

    /// A worker is heard from.
    pub(crate) fn heartbeat(&self, worker: &str, session: u64, heartbeat: &Heartbeat) {
        let now = self.now();
        let mut guard = self.lock();
        let state = &mut *guard;
        // What is played comes first: what waits lasts as long as that goes on.
        let (played, waiting): (Vec<_>, Vec<_>) =
            heartbeat.progress.iter().partition(|progress| progress.started);
        for progress in played.into_iter().chain(waiting) {
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
            state.leases.hear(&key, token, progress, now);
        }
        let Some(known) = state.workers.get_mut(worker).filter(|known| known.session == session) else {
            return;
        };
        known.heard = Instant::now();
        known.unacknowledged = heartbeat.unacknowledged_bytes;
        if heartbeat.throttled && !known.throttled {
            let text = "throttled by its operating system; it gets no bouts of timed runs";
            self.audit(Entry::new(AuditKind::Throttled, text).worker(worker).caused_by(&known.caller));
        }
        known.throttled = heartbeat.throttled;
        if heartbeat.speed > 0.0 {
            known.speed = heartbeat.speed;
        }
        let under_way = known.sent.saturating_sub(heartbeat.grants_received);
        // However much it says that it would take, it holds no more than its slots can need.
        let most = u64::from(known.slots) * (1 + MOST_AHEAD);
        let room = most.saturating_sub(state.leases.count_of_worker(worker));
        known.room = (heartbeat.room as u64).saturating_sub(under_way).min(room);
        self.grant(state, worker);
    }

    /// Bouts come back unplayed.
    pub(crate) fn returned(&self, worker: &str, list: &[WireLease], reason: &str) {
        let mut guard = self.lock();
        let state = &mut *guard;
        let mut taken = 0;
        for lease in list {
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

    /// Ends leases of which nothing was heard.
    pub(crate) fn expire(&self) {
        let now = self.now();
        let mut guard = self.lock();
        let state = &mut *guard;
        let mut revoked: BTreeMap<String, Vec<v1::LeaseRef>> = BTreeMap::new();
        for (key, lease) in state.leases.expire(now) {
            warn!(run = key.run, bout = key.bout, worker = lease.worker, "lease expired");
            self.metrics.lease_expired();
            state.checks.give_back(&key);
            if let Some(run) = state.runs.get_mut(&key.run) {
                run.ledger.lose(key.bout, &lease.worker);
                if lease.progress.started {
                    run.abandoned += 1;
                    self.store.raise_abandoned(&key.run, run.abandoned);
                }
            }
            revoked.entry(lease.worker).or_default().push(reference(&key, lease.token));
        }
        state.revoke(revoked, "nothing was heard of it in time");
        self.grant_all(state);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::sync::Arc;

    use agon_proto::v1::operator_server::Operator as _;
    use tokio::sync::mpsc;

    use super::*;
    use crate::dataset::Dataset;
    use crate::service::operator::OperatorService;
    use crate::state::{Recovery, SPARE, Timing};
    use crate::store::Store;
    use agon_storage::location::Location;

    const SPEC: &str = r#"
name = "deaf"
game = "connect-four"
seed = 1
limit = { nodes = 10 }
openings = { random_plies = 2 }
tournament = { format = "round-robin", bouts = 400 }
[[player]]
name = "a"
search = { algorithm = "pvs", table_mb = 1 }
[[player]]
name = "b"
search = { algorithm = "uct" }
"#;

    async fn coordinator(folder: &std::path::Path) -> Arc<Coordinator> {
        let store = Store::open(&folder.join("state")).unwrap();
        let place = Location::Folder(folder.to_path_buf());
        let (dataset, epoch) = Dataset::open(&place, &store, false).await.unwrap();
        let recovery = Recovery { epoch, ..Recovery::default() };
        let coordinator = Coordinator::new(store, dataset, Timing::default(), String::new(), recovery);
        let coordinator = Arc::new(coordinator);
        let spec = Some(v1::Spec { text: SPEC.to_string(), ..Default::default() });
        let request = v1::SubmitRunRequest { spec, ..Default::default() };
        OperatorService::new(Arc::clone(&coordinator))
            .submit_run(tonic::Request::new(request))
            .await
            .unwrap();
        coordinator
    }

    fn hello(coordinator: &Coordinator, worker: &str) -> Hello {
        Hello {
            protocols: agon_proto::PROTOCOLS,
            worker: worker.to_string(),
            build: String::new(),
            slots: 1,
            signature: coordinator.signature.clone(),
            speed: 1.0,
            held: Vec::new(),
            specs: Vec::new(),
        }
    }

    #[tokio::test]
    async fn who_does_not_read_is_lent_no_more_and_then_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = coordinator(folder.path()).await;
        // The welcome, a spec and two bouts, and what is kept free of bouts.
        let (out, mut unread) = mpsc::channel(SPARE + 4);
        let session = coordinator.connect(&hello(&coordinator, "deaf"), &Caller::anonymous(), out).unwrap();
        let ask = |room| {
            let heartbeat = Heartbeat { room, grants_received: u64::MAX, ..Heartbeat::default() };
            coordinator.heartbeat("deaf", session, &heartbeat);
            coordinator.lock().leases.count()
        };
        assert_eq!(ask(100), 2, "no more than there is room for on the way");
        assert_eq!(ask(100), 2);
        for _ in 0..SPARE {
            coordinator.drain_worker("deaf").unwrap();
        }
        assert_eq!((coordinator.levels().sessions, coordinator.lock().leases.count()), (1, 2));
        coordinator.drain_worker("deaf").unwrap();
        assert_eq!(
            (coordinator.levels().sessions, coordinator.lock().leases.count()),
            (0, 0),
            "what it held is for others"
        );
        let mut heard = 0;
        while unread.recv().await.is_some() {
            heard += 1;
        }
        assert_eq!(heard, SPARE + 4, "it finds the end behind what it did not read");
    }

    #[tokio::test]
    async fn whatever_it_says_a_worker_holds_no_more_than_its_slots_can_need() {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = coordinator(folder.path()).await;
        let (out, mut inbox) = mpsc::channel(crate::state::OUTBOX);
        let session = coordinator.connect(&hello(&coordinator, "greedy"), &Caller::anonymous(), out).unwrap();
        for _ in 0..4 {
            let heartbeat = Heartbeat { room: 100_000, grants_received: u64::MAX, ..Heartbeat::default() };
            coordinator.heartbeat("greedy", session, &heartbeat);
            while inbox.try_recv().is_ok() {}
        }
        assert_eq!(coordinator.lock().leases.count(), 257);
    }
}
