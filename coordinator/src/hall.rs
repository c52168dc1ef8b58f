//! The hall: everything the coordinator knows while it runs, behind one lock that is never held across a wait.
//!
//! Services bring what happened in; what follows from it is decided here, by the ledger, the lease book and the
//! standings, and sent out. What must survive is in the store before anybody is told.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use agon_arena::{Arena, Spec, SpecSource, Surroundings};
use agon_proto::v1;
use agon_proto::{Bout as LentBout, Heartbeat, Lease as WireLease};
use agon_stats::sprt::Decision;
use tokio::sync::{Notify, mpsc, watch};
use tonic::Status;
use tracing::{info, warn};

use crate::leases::{BoutKey, LeaseBook, Progress, Token};
use crate::ledger::Ledger;
use crate::schedule::{Bout, Schedule};
use crate::standings::{Standings, Summary};
use crate::store::{RunState, Store};

/// What can be set.
#[derive(Clone, Debug)]
pub struct Timing {
    /// How often workers are heard from.
    pub heartbeat: Duration,
    /// How long a lease lasts without progress.
    pub lease: Duration,
    /// How long nothing is granted anew after a start that finds work under way, so that workers can present it.
    pub settle: Duration,
}

impl Default for Timing {
    fn default() -> Timing {
        let lease = Duration::from_secs(30);
        Timing { heartbeat: Duration::from_secs(5), lease, settle: lease }
    }
}

/// Bytes that a worker may have sent without an acknowledgement before it is given no more.
const WINDOW_BYTES: u64 = 64 << 20;

/// A run that is known.
pub(crate) struct Run {
    pub(crate) source: SpecSource,
    pub(crate) spec: Arc<Spec>,
    pub(crate) schedule: Schedule,
    /// For checking games outside the lock.
    pub(crate) referee: Arc<Mutex<Arena>>,
    pub(crate) ledger: Ledger,
    pub(crate) standings: Standings,
    pub(crate) state: RunState,
    pub(crate) decided: Option<u64>,
    pub(crate) failed: u64,
    pub(crate) exported: u64,
    pub(crate) abandoned: u64,
    pub(crate) submitted_us: i64,
    /// When it was submitted or taken up again, and what was done by then.
    since: Instant,
    done_before: u64,
    games_before: u64,
}

/// A worker that has been here.
pub(crate) struct Worker {
    build: String,
    slots: u32,
    speed: f64,
    out: Option<mpsc::UnboundedSender<Result<v1::CoordinatorMessage, Status>>>,
    /// Which of its sessions is the last.
    session: u64,
    /// Bouts it would take, by its own word and less what was sent since.
    room: u64,
    sent: u64,
    specs: HashSet<String>,
    unacknowledged: u64,
    committed: u64,
    refused: u64,
    flag: String,
    heard: Instant,
}

#[derive(Default)]
struct State {
    runs: BTreeMap<String, Run>,
    /// The ids in the order of submission.
    order: Vec<String>,
    workers: BTreeMap<String, Worker>,
    /// Why nothing is granted.
    obstacles: BTreeMap<Obstacle, String>,
    sessions: u64,
    draining: bool,
}

/// Everything, shared by the services.
pub struct Hall {
    pub(crate) store: Store,
    pub(crate) timing: Timing,
    pub(crate) signature: String,
    pub(crate) epoch: u64,
    pub(crate) data: String,
    started: Instant,
    /// Before this nothing is granted.
    opens: Duration,
    state: Mutex<(State, LeaseBook)>,
    changes: watch::Sender<u64>,
    pub(crate) export: Notify,
}

/// What cannot be written for now.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Obstacle {
    /// The state: nothing can be acknowledged.
    State,
    /// The dataset: nothing can be exported.
    Dataset,
}

/// What becomes of a bout that arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrival {
    /// It should be stored.
    Store,
    /// It is too late: somebody else plays it anew, and the run is timed.
    Stale,
    /// Its run takes no more.
    NotWanted,
}

impl Hall {
    /// A hall over an open store.
    pub(crate) fn new(
        store: Store,
        timing: Timing,
        signature: String,
        epoch: u64,
        data: String,
        settle: bool,
    ) -> Hall {
        let leases = LeaseBook::new(epoch, timing.lease);
        Hall {
            store,
            opens: if settle { timing.settle } else { Duration::ZERO },
            timing,
            signature,
            epoch,
            data,
            started: Instant::now(),
            state: Mutex::new((State::default(), leases)),
            changes: watch::Sender::new(0),
            export: Notify::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, (State, LeaseBook)> {
        // A panic under the lock is a bug in one request; what it left is still consistent, for every change is a step.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Something happened that a watcher may want to see.
    pub(crate) fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Tells of changes.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    // ------------------------------------------------------------------------------------------------ runs

    /// Takes a run up, new or from the store.
    pub(crate) fn add_run(&self, id: &str, run: Run) {
        let mut guard = self.lock();
        let (state, leases) = &mut *guard;
        state.order.push(id.to_string());
        state.runs.insert(id.to_string(), run);
        self.grant_all(state, leases);
        drop(guard);
        self.export.notify_one();
        self.changed();
    }

    /// Looks at a run.
    pub(crate) fn with_run<T>(&self, id: &str, look: impl FnOnce(&mut Run) -> T) -> Option<T> {
        self.lock().0.runs.get_mut(id).map(look)
    }

    /// The ids of all runs, in the order of submission.
    pub(crate) fn run_ids(&self) -> Vec<String> {
        self.lock().0.order.clone()
    }

    /// Changes the state of a run that is already durable, and calls back what is under way.
    pub(crate) fn end_run(&self, id: &str, ended: RunState, decided: Option<u64>, reason: &str) {
        let mut guard = self.lock();
        let (state, leases) = &mut *guard;
        let Some(run) = state.runs.get_mut(id) else { return };
        run.state = ended;
        run.decided = decided.or(run.decided);
        let keys: Vec<BoutKey> = leases.of_run(id).map(|(key, _)| key.clone()).collect();
        let mut revoked: BTreeMap<String, Vec<v1::LeaseRef>> = BTreeMap::new();
        for key in keys {
            if let Some(lease) = leases.release(&key) {
                revoked.entry(lease.worker).or_default().push(reference(&key, lease.token));
            }
        }
        for (worker, leases) in revoked {
            let revoke = v1::Revoke { leases, reason: reason.to_string() };
            state.send(&worker, v1::coordinator_message::Kind::Revoke(revoke));
        }
        drop(guard);
        self.export.notify_one();
        self.changed();
    }

    // -------------------------------------------------------------------------------------------- sessions

    /// Lets a worker in. Returns the number of its session and what it may go on with.
    pub(crate) fn welcome(
        &self,
        hello: &agon_proto::Hello,
        out: mpsc::UnboundedSender<Result<v1::CoordinatorMessage, Status>>,
    ) -> u64 {
        let now = self.now();
        let mut guard = self.lock();
        let (state, leases) = &mut *guard;
        state.sessions += 1;
        let session = state.sessions;
        let mut adopted = Vec::new();
        let flagged = state.workers.get(&hello.worker).is_some_and(|known| !known.flag.is_empty());
        for held in hello.held.iter().filter(|_| !flagged) {
            let (key, token) = key_of(held);
            let Some(run) = state.runs.get_mut(&key.run) else { continue };
            if run.state != RunState::Running
                || key.bout >= run.ledger.total()
                || run.ledger.is_done(key.bout)
            {
                continue;
            }
            if leases.adopt(key.clone(), &hello.worker, token, now) {
                run.ledger.claim(key.bout);
                adopted.push(v1::LeaseRef::from(held));
            }
        }
        let known = state.workers.remove(&hello.worker);
        let worker = Worker {
            build: hello.build.clone(),
            slots: hello.slots as u32,
            speed: hello.speed,
            out: Some(out),
            session,
            room: 0,
            sent: 0,
            specs: hello.specs.iter().cloned().collect(),
            unacknowledged: 0,
            committed: known.as_ref().map_or(0, |known| known.committed),
            refused: known.as_ref().map_or(0, |known| known.refused),
            flag: known.map(|known| known.flag).unwrap_or_default(),
            heard: Instant::now(),
        };
        state.workers.insert(hello.worker.clone(), worker);
        let welcome = v1::Welcome {
            protocol: *agon_proto::PROTOCOLS.end(),
            epoch: self.epoch,
            heartbeat_ms: self.timing.heartbeat.as_millis() as u32,
            lease_ms: self.timing.lease.as_millis() as u32,
            window_bytes: WINDOW_BYTES,
            adopted,
        };
        state.send(&hello.worker, v1::coordinator_message::Kind::Welcome(welcome));
        drop(guard);
        info!(worker = hello.worker, slots = hello.slots, build = hello.build, "worker connected");
        self.changed();
        session
    }

    /// A session has ended. Its leases stay until they expire: the worker may come back with them.
    pub(crate) fn farewell(&self, worker: &str, session: u64) {
        let mut guard = self.lock();
        if let Some(known) = guard.0.workers.get_mut(worker).filter(|known| known.session == session) {
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
        let (state, leases) = &mut *guard;
        // What is played comes first: what waits lasts as long as that goes on.
        let (played, waiting): (Vec<_>, Vec<_>) =
            heartbeat.progress.iter().partition(|progress| progress.started);
        for progress in played.into_iter().chain(waiting) {
            let (key, token) = key_of(&progress.lease);
            let progress = Progress { started: progress.started, game: progress.game, ply: progress.ply };
            leases.hear(&key, token, progress, now);
        }
        let Some(known) = state.workers.get_mut(worker).filter(|known| known.session == session) else {
            return;
        };
        known.heard = Instant::now();
        known.unacknowledged = heartbeat.unacknowledged_bytes;
        let under_way = known.sent.saturating_sub(heartbeat.grants_received);
        known.room = (heartbeat.room as u64).saturating_sub(under_way);
        self.grant(state, leases, worker);
    }

    /// Bouts come back unplayed.
    pub(crate) fn returned(&self, worker: &str, list: &[WireLease], reason: &str) {
        let mut guard = self.lock();
        let (state, leases) = &mut *guard;
        for lease in list {
            let (key, token) = key_of(lease);
            if leases.lease(&key).is_some_and(|lease| lease.token == token) {
                leases.release(&key);
                if let Some(run) = state.runs.get_mut(&key.run) {
                    run.ledger.give_back(key.bout);
                }
            }
        }
        if !list.is_empty() {
            info!(worker, bouts = list.len(), reason, "bouts returned");
        }
        self.grant_all(state, leases);
    }

    /// Ends leases of which nothing was heard.
    pub(crate) fn expire(&self) {
        let now = self.now();
        let mut guard = self.lock();
        let (state, leases) = &mut *guard;
        for (key, lease) in leases.expire(now) {
            warn!(run = key.run, bout = key.bout, worker = lease.worker, "lease expired");
            if let Some(run) = state.runs.get_mut(&key.run) {
                run.ledger.lose(key.bout, &lease.worker);
                run.abandoned += u64::from(lease.progress.started);
            }
            let revoke = v1::Revoke {
                leases: vec![reference(&key, lease.token)],
                reason: "nothing was heard of it in time".to_string(),
            };
            state.send(&lease.worker, v1::coordinator_message::Kind::Revoke(revoke));
        }
        self.grant_all(state, leases);
    }

    fn grant_all(&self, state: &mut State, leases: &mut LeaseBook) {
        let names: Vec<String> = state.workers.keys().cloned().collect();
        for name in names {
            self.grant(state, leases, &name);
        }
    }

    /// Lends a worker as many bouts as it has room for.
    fn grant(&self, state: &mut State, leases: &mut LeaseBook, name: &str) {
        let now = self.now();
        if now < self.opens || state.draining || !state.obstacles.is_empty() {
            return;
        }
        let present: Vec<String> = state
            .workers
            .iter()
            .filter(|(_, worker)| worker.out.is_some() && worker.flag.is_empty())
            .map(|(name, _)| name.clone())
            .collect();
        let Some(worker) = state.workers.get_mut(name) else { return };
        if !worker.flag.is_empty() || worker.unacknowledged > WINDOW_BYTES {
            return;
        }
        let Some(out) = worker.out.clone() else { return };
        let send = |kind| out.send(Ok(v1::CoordinatorMessage { kind: Some(kind) })).is_ok();
        'runs: for id in &state.order {
            let Some(run) = state.runs.get_mut(id) else { continue };
            let mut declined = BTreeSet::new();
            while worker.room > 0 && run.state == RunState::Running {
                let Some(index) = run.ledger.take() else { break };
                if run.ledger.is_for_others(index, name, present.iter().map(String::as_str)) {
                    declined.insert(index);
                    continue;
                }
                let bout = match run.schedule.bout(index) {
                    Ok(bout) => bout,
                    Err(error) => {
                        warn!(run = id, bout = index, %error, "a bout that was checked cannot be made");
                        break;
                    }
                };
                let token = leases.grant(BoutKey { run: id.clone(), bout: index }, name, now);
                if worker.specs.insert(id.clone()) {
                    let spec = v1::RunSpec { run: id.clone(), spec: Some(v1::Spec::from(&run.source)) };
                    send(v1::coordinator_message::Kind::Spec(spec));
                }
                let lent = lent(id, &bout, token);
                worker.room -= 1;
                worker.sent += 1;
                if !send(v1::coordinator_message::Kind::Grant(v1::Grant::from(&lent))) {
                    break 'runs;
                }
            }
            for index in declined {
                run.ledger.give_back(index);
            }
            if worker.room == 0 {
                break;
            }
        }
    }

    // ----------------------------------------------------------------------------------------- submissions

    /// What a worker needs to send a bout, if the run is known and has it.
    pub(crate) fn lent(&self, lease: &WireLease) -> Option<(Arc<Spec>, LentBout, Arc<Mutex<Arena>>)> {
        self.with_run(&lease.run, |run| {
            if lease.bout >= run.ledger.total() {
                return None;
            }
            let bout = run.schedule.bout(lease.bout).ok()?;
            let token = Token { epoch: lease.epoch, sequence: lease.sequence };
            Some((Arc::clone(&run.spec), lent(&lease.run, &bout, token), Arc::clone(&run.referee)))
        })?
    }

    /// Why a worker cannot have been lent what it sends, where that is certain.
    pub(crate) fn doubt(&self, lease: &WireLease, worker: &str) -> Option<String> {
        let (key, token) = key_of(lease);
        let guard = self.lock();
        let total = guard.0.runs.get(&key.run)?.ledger.total();
        if key.bout >= total {
            return Some(format!("{lease} cannot be: the run has the bouts 0 to {}", total - 1));
        }
        match guard.1.lease(&key).filter(|lent| lent.token == token) {
            Some(lent) if lent.worker != worker => Some(format!("{lease} was lent to another worker")),
            None if !guard.1.may_have_given(token) => Some(format!("{lease} was never lent")),
            _ => None,
        }
    }

    /// What to do with a bout that arrived whole and sound.
    pub(crate) fn arrival(&self, lease: &WireLease) -> Arrival {
        let (key, token) = key_of(lease);
        let guard = self.lock();
        let Some(run) = guard.0.runs.get(&key.run) else { return Arrival::NotWanted };
        if run.ledger.is_done(key.bout) {
            // The store compares it with what is there.
            return Arrival::Store;
        }
        if run.state != RunState::Running {
            return Arrival::NotWanted;
        }
        let lent_anew = guard.1.lease(&key).is_some_and(|lease| lease.token != token);
        if lent_anew && !run.spec.is_repeatable() { Arrival::Stale } else { Arrival::Store }
    }

    /// Counts a bout that is stored. Of a test, whether it has decided.
    pub(crate) fn committed(
        &self,
        lease: &WireLease,
        worker: &str,
        summary: Option<&Summary>,
    ) -> Option<Decision> {
        let (key, _) = key_of(lease);
        let mut guard = self.lock();
        let (state, leases) = &mut *guard;
        leases.release(&key);
        if let Some(known) = state.workers.get_mut(worker) {
            known.committed += 1;
        }
        let run = state.runs.get_mut(&key.run)?;
        if !run.ledger.finish(key.bout) {
            return None;
        }
        let decision = match summary {
            Some(summary) => run.standings.add(key.bout, summary),
            None => {
                run.failed += 1;
                run.standings.add_failed(key.bout)
            }
        };
        drop(guard);
        self.export.notify_one();
        self.changed();
        decision
    }

    /// A worker could not play a bout. Whether enough have failed at it to give it up.
    pub(crate) fn failed(&self, lease: &WireLease, worker: &str, reason: &str) -> bool {
        warn!(run = lease.run, bout = lease.bout, worker, reason, "a bout failed");
        let (key, token) = key_of(lease);
        let mut guard = self.lock();
        let (state, leases) = &mut *guard;
        // A failure of somebody who has it no more says nothing of the bout: whoever has it now may succeed.
        let Some(lent) = leases.lease(&key).filter(|lent| lent.token == token).cloned() else { return false };
        leases.release(&key);
        let worker = lent.worker.as_str();
        // A fleet with fewer workers than it takes to give a bout up gives it up when all of them have failed.
        let workers = state.workers.values().filter(|worker| worker.out.is_some()).count();
        let Some(run) = state.runs.get_mut(&key.run) else { return false };
        let enough = run.ledger.fail(key.bout, worker) || run.ledger.failures(key.bout) >= workers;
        if !enough {
            run.ledger.give_back(key.bout);
            self.grant_all(state, leases);
        }
        enough
    }

    /// A worker sent what cannot be: it is given no more, and what it holds goes to others.
    pub(crate) fn refuse(&self, worker: &str, reason: &str) {
        warn!(worker, reason, "a bout was refused; its worker is given no more");
        let mut guard = self.lock();
        let (state, leases) = &mut *guard;
        let Some(known) = state.workers.get_mut(worker) else { return };
        known.refused += 1;
        known.flag = reason.to_string();
        let held: Vec<BoutKey> = leases.of_worker(worker).map(|(key, _)| key.clone()).collect();
        let mut revoked = Vec::new();
        for key in held {
            if let Some(run) = state.runs.get_mut(&key.run) {
                run.ledger.give_back(key.bout);
            }
            revoked.extend(leases.release(&key).map(|lease| reference(&key, lease.token)));
        }
        let revoke = v1::Revoke { leases: revoked, reason: "the worker is given no more".to_string() };
        state.send(worker, v1::coordinator_message::Kind::Revoke(revoke));
        self.grant_all(state, leases);
        drop(guard);
        self.changed();
    }

    /// Stops granting because something cannot be written, or goes on.
    pub(crate) fn set_obstacle(&self, obstacle: Obstacle, reason: Option<String>) {
        let mut guard = self.lock();
        let (state, leases) = &mut *guard;
        if state.obstacles.get(&obstacle) == reason.as_ref() {
            return;
        }
        match reason {
            Some(reason) => {
                warn!(reason, "nothing is granted");
                state.obstacles.insert(obstacle, reason);
            }
            None => {
                state.obstacles.remove(&obstacle);
                info!("work goes on");
            }
        }
        self.grant_all(state, leases);
        drop(guard);
        self.changed();
    }

    /// The coordinator shuts down: nothing is granted any more and all sessions end. Workers go on with what they have and
    /// present it to the next coordinator.
    pub(crate) fn drain(&self) {
        let mut guard = self.lock();
        guard.0.draining = true;
        for worker in guard.0.workers.values_mut() {
            worker.out = None;
        }
        drop(guard);
        self.changed();
    }

    /// Whether the coordinator shuts down.
    pub(crate) fn is_draining(&self) -> bool {
        self.lock().0.draining
    }

    // ------------------------------------------------------------------------------------------- operators

    /// How a run is doing; `intervals` are worth their time at its end only.
    pub(crate) fn status(&self, id: &str, intervals: bool) -> Option<v1::RunStatus> {
        let guard = self.lock();
        let (state, leases) = &*guard;
        let run = state.runs.get(id)?;
        let workers = state.workers.values().filter(|worker| worker.out.is_some()).count() as u32;
        let done = run.ledger.done();
        let seconds = run.since.elapsed().as_secs_f64().max(1e-3);
        let rate = (done - run.done_before.min(done)) as f64 / seconds;
        let games = run.standings.games();
        let running = run.state == RunState::Running;
        let left = (run.ledger.total() - done) as f64 / rate;
        let waiting = match state.obstacles.values().next() {
            Some(reason) if running => reason.clone(),
            _ if !running || done == run.ledger.total() => String::new(),
            _ if self.now() < self.opens => {
                "workers may present what they hold from before; nothing is granted anew yet".to_string()
            }
            _ if workers == 0 => "no worker is connected".to_string(),
            _ if state.workers.values().all(|worker| worker.out.is_none() || !worker.flag.is_empty()) => {
                "every connected worker is flagged and given nothing".to_string()
            }
            _ => String::new(),
        };
        Some(v1::RunStatus {
            run: id.to_string(),
            name: run.spec.name.clone(),
            game: run.spec.game.to_string(),
            state: wire_state(run.state) as i32,
            existed: false,
            bouts: run.ledger.total(),
            committed: done,
            failed: run.failed,
            leased: leases.of_run(id).count() as u64,
            games,
            exported: run.exported,
            bouts_per_second: rate,
            games_per_second: (games - run.games_before.min(games)) as f64 / seconds,
            seconds_left: (running && left.is_finite()).then_some(left),
            standings: run.standings.table(intervals && !running),
            sprt: run.standings.sprt(),
            data: self.data.clone(),
            waiting,
            workers,
            abandoned: run.abandoned,
        })
    }

    /// Every worker that has been here.
    pub(crate) fn workers(&self) -> Vec<v1::WorkerStatus> {
        let guard = self.lock();
        let (state, leases) = &*guard;
        let status = |(name, worker): (&String, &Worker)| {
            let held: Vec<_> = leases.of_worker(name).collect();
            v1::WorkerStatus {
                worker: name.clone(),
                build: worker.build.clone(),
                slots: worker.slots,
                speed: worker.speed,
                connected: worker.out.is_some(),
                leases: held.len() as u32,
                committed: worker.committed,
                refused: worker.refused,
                flag: worker.flag.clone(),
                progress: held
                    .iter()
                    .filter(|(_, lease)| lease.progress.started)
                    .map(|(key, lease)| v1::Progress {
                        lease: Some(reference(key, lease.token)),
                        started: true,
                        game: lease.progress.game,
                        ply: lease.progress.ply,
                    })
                    .collect(),
                seconds_since_heartbeat: worker.heard.elapsed().as_secs_f64(),
            }
        };
        state.workers.iter().map(status).collect()
    }
}

impl State {
    /// Sends something to a worker that is connected.
    fn send(&self, worker: &str, kind: v1::coordinator_message::Kind) {
        if let Some(out) = self.workers.get(worker).and_then(|worker| worker.out.as_ref()) {
            // A session that has just ended hears nothing; its end is noticed elsewhere.
            let _ = out.send(Ok(v1::CoordinatorMessage { kind: Some(kind) }));
        }
    }
}

impl Run {
    /// A run with what is already done of it.
    pub(crate) fn new(
        source: SpecSource,
        schedule: Schedule,
        done: &[(u64, Option<Summary>)],
        state: RunState,
        submitted_us: i64,
    ) -> Result<Run, crate::schedule::ScheduleError> {
        let spec = Arc::new(schedule.spec().clone());
        let mut standings = Standings::new(&spec, schedule.referee().seats())?;
        let mut decided = None;
        let mut failed = 0;
        for (bout, summary) in done {
            let decision = match summary {
                Some(summary) => standings.add(*bout, summary),
                None => {
                    failed += 1;
                    standings.add_failed(*bout)
                }
            };
            decided = decision.map(|decision| decision.index).or(decided);
        }
        let referee =
            Arena::new(&spec.game, &[], Surroundings::system()).map_err(agon_arena::PlayError::from)?;
        let ledger = Ledger::new(schedule.bouts(), done.iter().map(|(bout, _)| *bout));
        Ok(Run {
            source,
            done_before: ledger.done(),
            games_before: standings.games(),
            spec,
            schedule,
            referee: Arc::new(Mutex::new(referee)),
            ledger,
            standings,
            state,
            decided,
            failed,
            exported: 0,
            abandoned: 0,
            submitted_us,
            since: Instant::now(),
        })
    }
}

fn key_of(lease: &WireLease) -> (BoutKey, Token) {
    let token = Token { epoch: lease.epoch, sequence: lease.sequence };
    (BoutKey { run: lease.run.clone(), bout: lease.bout }, token)
}

fn reference(key: &BoutKey, token: Token) -> v1::LeaseRef {
    v1::LeaseRef { run: key.run.clone(), bout: key.bout, epoch: token.epoch, sequence: token.sequence }
}

fn lent(run: &str, bout: &Bout, token: Token) -> LentBout {
    let lease =
        WireLease { run: run.to_string(), bout: bout.index, epoch: token.epoch, sequence: token.sequence };
    LentBout { lease, players: bout.players.clone(), opening: bout.opening.clone() }
}

fn wire_state(state: RunState) -> v1::RunState {
    match state {
        RunState::Running => v1::RunState::Running,
        RunState::Done => v1::RunState::Done,
        RunState::Decided => v1::RunState::Decided,
        RunState::Cancelled => v1::RunState::Cancelled,
    }
}
