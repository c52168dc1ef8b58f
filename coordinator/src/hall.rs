//! The hall: everything the coordinator knows while it runs, behind one lock that is never held across a wait.
//!
//! Services bring what happened in; what follows from it is decided here, by the ledger, the lease book and the
//! standings, and sent out. What must survive is in the store before anybody is told.
//!
//! Here is the state and what changes it as a whole; `sessions` has workers that come and go, `grants` what they are
//! lent, `submissions` what they bring, `trust` who is set aside, `tune` what a tune plays next, `status` what is shown, `run` one run.

mod grants;
mod run;
mod sessions;
mod status;
mod submissions;
mod trust;
mod tune;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use agon_arena::known_answers;
use agon_doors::{Caller, Rates};
use agon_proto::v1::{self, coordinator_message::Kind};
use agon_proto::{Bout as LentBout, Lease as WireLease};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Notify, mpsc, watch};
use tonic::Status;
use tracing::{info, warn};

pub(crate) use self::run::{Remembered, Run, remembered_tally};
pub(crate) use self::submissions::Arrival;
use crate::checks::Checks;
use crate::conduct::Conduct;
use crate::dataset::Dataset;
use crate::export::Recent;
use crate::leases::{BoutKey, LeaseBook, Token};
use crate::metrics::Metrics;
use crate::schedule::Bout;
use crate::store::{Audit, Opinion, RunState, Store};

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

/// Messages that may wait for a worker to read them, and how many of them are kept free of grants.
pub(crate) const OUTBOX: usize = 1024;
const SPARE: usize = OUTBOX / 4;

/// Bouts that a worker may hold ready for each of its slots.
const MOST_AHEAD: u64 = 256;

/// What is written down of one caller's doing: so much a second, and so much at once after a pause.
const NOTES: (u32, u32) = (1, 1000);

/// The way to a worker that is connected.
pub(crate) type Out = mpsc::Sender<Result<v1::CoordinatorMessage, Status>>;

/// A worker that has been here.
pub(crate) struct Worker {
    /// Whose its name is: whoever said hello under it last.
    caller: Caller,
    build: String,
    slots: u32,
    speed: f64,
    out: Option<Out>,
    /// Which of its sessions is the last.
    session: u64,
    /// Bouts it would take, by its own word and less what was sent since.
    room: u64,
    sent: u64,
    specs: HashSet<String>,
    unacknowledged: u64,
    throttled: bool,
    refused: u64,
    conduct: Conduct,
    heard: Instant,
}

struct State {
    runs: BTreeMap<String, Run>,
    /// The ids in the order of submission.
    order: Vec<String>,
    /// The runs that were handed in, anew or again, since the coordinator started.
    asked: BTreeSet<String>,
    workers: BTreeMap<String, Worker>,
    /// Workers that are given nothing, and why.
    quarantine: BTreeMap<String, String>,
    leases: LeaseBook,
    checks: Checks,
    /// Whose workers can be lent something, and when that was looked at.
    callers: (Option<Duration>, HashSet<Caller>),
    /// Why nothing is granted.
    obstacles: BTreeMap<Obstacle, String>,
    sessions: u64,
    draining: bool,
}

/// Everything, shared by the services.
pub struct Hall {
    pub(crate) store: Store,
    pub(crate) dataset: Dataset,
    pub(crate) metrics: Metrics,
    pub(crate) recent: Recent,
    pub(crate) timing: Timing,
    pub(crate) signature: String,
    pub(crate) epoch: u64,
    pub(crate) data: String,
    /// Runs of the dataset that this program does not understand: their ids are taken.
    pub(crate) strange: BTreeSet<String>,
    /// Whether only runs that were handed in to this life are lent, and not those of before.
    only_asked: bool,
    started: Instant,
    /// Before this nothing is granted.
    opens: Duration,
    state: Mutex<State>,
    notes: Mutex<Rates<Caller>>,
    /// What no worker knows: it draws the bouts that are checked.
    secret: u64,
    changes: watch::Sender<u64>,
    pub(crate) export: Notify,
    /// Held by whoever moves bouts out of the state or takes them away.
    pub(crate) exporting: tokio::sync::Mutex<()>,
    /// Held by whoever reads a part to compare what came late with it.
    pub(crate) comparing: tokio::sync::Mutex<()>,
}

/// What a hall must know of the time before it.
#[derive(Default)]
pub(crate) struct Before {
    /// How often the state has been opened.
    pub(crate) epoch: u64,
    /// Whether workers may hold bouts from before, and are waited for.
    pub(crate) settle: bool,
    /// Workers that are given nothing, and why.
    pub(crate) quarantine: BTreeMap<String, String>,
    /// Runs of the dataset that this program does not understand.
    pub(crate) strange: BTreeSet<String>,
    /// Whether runs of before wait until they are handed in again.
    pub(crate) only_asked: bool,
}

/// What cannot be written for now.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Obstacle {
    /// The state: nothing can be acknowledged.
    State,
    /// The dataset: nothing can be exported.
    Dataset,
}

impl Hall {
    /// A hall over an open store.
    pub(crate) fn new(store: Store, dataset: Dataset, timing: Timing, data: String, before: Before) -> Hall {
        let Before { epoch, settle, quarantine, strange, only_asked } = before;
        let state = State {
            runs: BTreeMap::new(),
            order: Vec::new(),
            asked: BTreeSet::new(),
            workers: BTreeMap::new(),
            quarantine,
            leases: LeaseBook::new(epoch, timing.lease),
            checks: Checks::default(),
            callers: Default::default(),
            obstacles: BTreeMap::new(),
            sessions: 0,
            draining: false,
        };
        Hall {
            store,
            dataset,
            metrics: Metrics::default(),
            recent: Recent::default(),
            opens: if settle { timing.settle } else { Duration::ZERO },
            timing,
            signature: known_answers().signature,
            epoch,
            data,
            strange,
            only_asked,
            started: Instant::now(),
            state: Mutex::new(state),
            notes: Mutex::new(Rates::with_burst(NOTES.0, NOTES.1)),
            secret: RandomState::new().hash_one(epoch),
            changes: watch::Sender::new(0),
            export: Notify::new(),
            exporting: tokio::sync::Mutex::new(()),
            comparing: tokio::sync::Mutex::new(()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
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

    /// Writes something down for operators, without waiting for it.
    pub(crate) fn note(&self, kind: &str, worker: &str, place: Option<&BoutKey>, text: &str) {
        self.metrics.noted(kind);
        self.store.note(Audit {
            number: 0,
            at_us: now_us(),
            kind: kind.to_string(),
            worker: worker.to_string(),
            run: place.map(|key| key.run.clone()).unwrap_or_default(),
            bout: place.map(|key| key.bout),
            text: text.to_string(),
        });
    }

    /// Writes down what a caller has brought about, as often as it may: nobody fills the disk with it.
    pub(crate) fn note_of(
        &self,
        caller: &Caller,
        kind: &str,
        worker: &str,
        place: Option<&BoutKey>,
        text: &str,
    ) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if notes.may(caller.clone(), self.now()) {
            self.note(kind, worker, place, text);
        } else {
            self.metrics.noted(kind);
        }
    }

    /// Writes down something about a run as a whole.
    pub(crate) fn note_run(&self, kind: &str, run: &str, text: &str) {
        self.note_both(kind, "", run, text);
    }

    /// Writes down something about a worker in a run.
    pub(crate) fn note_both(&self, kind: &str, worker: &str, run: &str, text: &str) {
        self.metrics.noted(kind);
        self.store.note(Audit {
            at_us: now_us(),
            kind: kind.to_string(),
            worker: worker.to_string(),
            run: run.to_string(),
            text: text.to_string(),
            ..Audit::default()
        });
    }

    /// Somebody has handed a run in, or asks for one that is known.
    pub(crate) fn ask_for(&self, id: &str) {
        let mut guard = self.lock();
        let state = &mut *guard;
        if state.asked.insert(id.to_string()) {
            self.grant_all(state);
        }
    }

    /// Takes a run up, new or from the store.
    pub(crate) fn add_run(&self, id: &str, run: Run) {
        let mut guard = self.lock();
        let state = &mut *guard;
        state.order.push(id.to_string());
        state.runs.insert(id.to_string(), run);
        self.grant_all(state);
        drop(guard);
        self.export.notify_one();
        self.changed();
    }

    /// Takes up what was said of bouts that wait for another worker's word. What is of a run that is not known is left.
    pub(crate) fn restore_opinions(&self, opinions: Vec<Opinion>) {
        let mut guard = self.lock();
        let state = &mut *guard;
        for Opinion { key, worker, digest } in opinions {
            if state.runs.contains_key(&key.run) {
                state.checks.restore(key, &worker, digest);
            }
        }
        self.grant_all(state);
    }

    /// Puts a run that was read again from the store, where these bouts were taken away, in the place of what was known of
    /// it.
    pub(crate) fn replace_run(&self, id: &str, run: Run, taken: &[u64]) {
        let mut guard = self.lock();
        let state = &mut *guard;
        for &bout in taken {
            state.checks.forget(&BoutKey { run: id.to_string(), bout });
        }
        let held: Vec<u64> = state.leases.of_run(id).map(|(key, _)| key.bout).collect();
        state.runs.insert(id.to_string(), run);
        if let Some(run) = state.runs.get_mut(id) {
            for bout in held {
                run.ledger.claim(bout);
            }
        }
        self.grant_all(state);
        drop(guard);
        self.export.notify_one();
        self.changed();
    }

    /// Pauses a run, lets it go on, or changes how early it is played: what is already durable.
    pub(crate) fn steer(&self, id: &str, steer: impl FnOnce(&mut Run)) {
        let mut guard = self.lock();
        let state = &mut *guard;
        if let Some(run) = state.runs.get_mut(id) {
            steer(run);
        }
        self.grant_all(state);
        drop(guard);
        self.changed();
    }

    /// Looks at a run.
    pub(crate) fn with_run<T>(&self, id: &str, look: impl FnOnce(&mut Run) -> T) -> Option<T> {
        self.lock().runs.get_mut(id).map(look)
    }

    /// The ids of all runs, in the order of submission.
    pub(crate) fn run_ids(&self) -> Vec<String> {
        self.lock().order.clone()
    }

    /// Changes the state of a run that is already durable, and calls back what is under way.
    pub(crate) fn end_run(&self, id: &str, ended: RunState, decided: Option<u64>, reason: &str) {
        let mut guard = self.lock();
        let state = &mut *guard;
        let Some(run) = state.runs.get_mut(id) else { return };
        run.state = ended;
        run.decided = decided.or(run.decided);
        // Second opinions are wanted even when the run is over.
        let unwanted = |(key, _): &(&BoutKey, _)| !state.checks.has(key);
        let keys: Vec<BoutKey> =
            state.leases.of_run(id).filter(unwanted).map(|(key, _)| key.clone()).collect();
        let mut revoked: BTreeMap<String, Vec<v1::LeaseRef>> = BTreeMap::new();
        for key in keys {
            if let Some(lease) = state.leases.release(&key) {
                revoked.entry(lease.worker).or_default().push(reference(&key, lease.token));
            }
        }
        state.revoke(revoked, reason);
        drop(guard);
        self.export.notify_one();
        self.changed();
    }

    /// Stops granting for a reason, or goes on.
    pub(crate) fn set_obstacle(&self, obstacle: Obstacle, reason: Option<String>) {
        let mut guard = self.lock();
        let state = &mut *guard;
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
        self.grant_all(state);
        drop(guard);
        self.changed();
    }

    /// Stops lending bouts of one run for a reason, or goes on.
    pub(crate) fn set_run_obstacle(&self, id: &str, reason: Option<String>) {
        let mut guard = self.lock();
        let state = &mut *guard;
        let Some(run) = state.runs.get_mut(id).filter(|run| run.obstacle != reason) else { return };
        match &reason {
            Some(reason) => warn!(run = id, reason, "nothing of the run is granted"),
            None => info!(run = id, "the run goes on"),
        }
        run.obstacle = reason;
        self.grant_all(state);
        drop(guard);
        self.changed();
    }

    /// The coordinator shuts down: nothing is granted any more and all sessions end. Workers go on with what they have and
    /// present it to the next coordinator.
    pub(crate) fn drain(&self) {
        let mut guard = self.lock();
        guard.draining = true;
        for worker in guard.workers.values_mut() {
            worker.out = None;
        }
        drop(guard);
        self.export.notify_one();
        self.changed();
    }

    /// Whether the coordinator shuts down.
    pub(crate) fn is_draining(&self) -> bool {
        self.lock().draining
    }
}

impl State {
    /// The workers that are there.
    fn connected(&self) -> impl Iterator<Item = (&String, &Worker)> {
        self.workers.iter().filter(|(_, worker)| worker.out.is_some())
    }

    /// Whose a worker's name is, if not this caller's. A name is free once the credential of whoever had it counts no more.
    fn owned_by_another(&self, worker: &str, caller: &Caller) -> Option<&Caller> {
        let owner = self.workers.get(worker).map(|known| &known.caller)?;
        (owner != caller && owner.is_known() && owner.is_valid()).then_some(owner)
    }

    /// Ends a lease that is held by this token; its bout waits for somebody else.
    fn take_back(&mut self, key: &BoutKey, token: Token) {
        if self.leases.lease(key).is_some_and(|lease| lease.token == token) {
            self.leases.release(key);
            self.checks.give_back(key);
            if let Some(run) = self.runs.get_mut(&key.run) {
                run.ledger.give_back(key.bout);
            }
        }
    }

    /// Calls leases back from those who held them.
    fn revoke(&mut self, revoked: BTreeMap<String, Vec<v1::LeaseRef>>, reason: &str) {
        for (worker, leases) in revoked {
            self.send(&worker, Kind::Revoke(v1::Revoke { leases, reason: reason.to_string() }));
        }
    }

    /// Sends something to a worker that is connected. The session of one that does not read is over, and what it holds is
    /// for others.
    fn send(&mut self, worker: &str, kind: Kind) {
        let Some(known) = self.workers.get_mut(worker) else { return };
        let Some(out) = &known.out else { return };
        // A session that has just ended hears nothing; its end is noticed elsewhere.
        if let Err(TrySendError::Full(_)) = out.try_send(Ok(v1::CoordinatorMessage { kind: Some(kind) })) {
            warn!(worker, "it does not read what it is sent; its session is over");
            (known.out, known.room) = (None, 0);
            let held: Vec<_> =
                self.leases.of_worker(worker).map(|(key, lease)| (key.clone(), lease.token)).collect();
            for (key, token) in held {
                self.take_back(&key, token);
            }
        }
    }
}

/// Microseconds since 1970 by the coordinator's clock.
pub(crate) fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
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
    let (players, opening, values) = (bout.players.clone(), bout.opening.clone(), bout.values.clone());
    LentBout { lease, players, opening, values }
}
