//! The hall: everything the coordinator knows while it runs, behind one lock that is never held across a wait.
//!
//! Services bring what happened in; what follows from it is decided here, by the ledger, the lease book and the
//! standings, and sent out. What must survive is in the store before anybody is told.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use agon_arena::{Arena, Spec, SpecSource, Surroundings, known_answers};
use agon_proto::v1;
use agon_proto::{Bout as LentBout, Heartbeat, Lease as WireLease};
use agon_stats::homogeneity::{Cell, WorkerReport, compare};
use agon_stats::sprt::Decision;
use tokio::sync::{Notify, mpsc, watch};
use tonic::Status;
use tracing::{info, warn};

use crate::checks::{Checks, Digest, Finding};
use crate::conduct::Conduct;
use crate::export::{Dataset, Recent};
use crate::leases::{BoutKey, LeaseBook, Progress, Token};
use crate::ledger::Ledger;
use crate::metrics::{Levels, Metrics};
use crate::schedule::{Bout, Schedule};
use crate::standings::{Standings, Summary, Tally, unseal};
use crate::store::{Audit, RunState, Store, StoredCell, StoredRun};

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
    pub(crate) priority: i32,
    pub(crate) decided: Option<u64>,
    /// Every bout below is in the dataset, and what is remembered of them.
    pub(crate) exported: u64,
    pub(crate) folded: Tally,
    /// Whether the dataset has its description, from this life on.
    pub(crate) described: bool,
    /// Exported bouts that do not count.
    pub(crate) voided: BTreeSet<u64>,
    pub(crate) abandoned: u64,
    pub(crate) submitted_us: i64,
    /// What each worker brought, by pairing and outcome.
    cells: BTreeMap<(String, u64), [u64; 3]>,
    /// How often the workers were compared, and when they are next.
    looks: u32,
    next_look: u64,
    checked: u64,
    disputed: u64,
    /// When it was submitted or taken up again, and what was done by then.
    since: Instant,
    done_before: u64,
    games_before: u64,
}

/// A departure that chance would make in one honest fleet of twenty is noted. One that is so many times rarer sets the
/// worker aside: in one honest fleet of ten thousand.
const CERTAINTY: f64 = 500.0;

/// A worker whose results are not like the others'.
struct Departure {
    worker: String,
    reason: String,
    certain: bool,
}

/// The workers of a run are compared when it has so many bouts, and at each doubling.
const FIRST_LOOK: u64 = 128;

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
    throttled: bool,
    refused: u64,
    conduct: Conduct,
    heard: Instant,
}

struct State {
    runs: BTreeMap<String, Run>,
    /// The ids in the order of submission.
    order: Vec<String>,
    workers: BTreeMap<String, Worker>,
    /// Workers that are given nothing, and why.
    quarantine: BTreeMap<String, String>,
    leases: LeaseBook,
    checks: Checks,
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
    started: Instant,
    /// Before this nothing is granted.
    opens: Duration,
    state: Mutex<State>,
    /// What no worker knows: it draws the bouts that are checked.
    secret: u64,
    changes: watch::Sender<u64>,
    pub(crate) export: Notify,
    /// Held by whoever moves bouts out of the state or takes them away.
    pub(crate) exporting: tokio::sync::Mutex<()>,
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
    /// It was asked for to check another worker, and is counted already.
    Check,
    /// It is too late: somebody else plays it anew, and the run is timed.
    Stale,
    /// Its run takes no more.
    NotWanted,
}

impl Hall {
    /// A hall over an open store.
    pub(crate) fn new(
        store: Store,
        dataset: Dataset,
        timing: Timing,
        epoch: u64,
        data: String,
        settle: bool,
        quarantine: BTreeMap<String, String>,
    ) -> Hall {
        let state = State {
            runs: BTreeMap::new(),
            order: Vec::new(),
            workers: BTreeMap::new(),
            quarantine,
            leases: LeaseBook::new(epoch, timing.lease),
            checks: Checks::default(),
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
            started: Instant::now(),
            state: Mutex::new(state),
            secret: RandomState::new().hash_one(epoch),
            changes: watch::Sender::new(0),
            export: Notify::new(),
            exporting: tokio::sync::Mutex::new(()),
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

    // ------------------------------------------------------------------------------------------------ runs

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

    /// Puts a run that was read again from the store in the place of what was known of it.
    pub(crate) fn replace_run(&self, id: &str, run: Run) {
        let mut guard = self.lock();
        let state = &mut *guard;
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
        let state = &mut *guard;
        state.sessions += 1;
        let session = state.sessions;
        let mut adopted = Vec::new();
        let trusted = !state.quarantine.contains_key(&hello.worker);
        for held in hello.held.iter().filter(|_| trusted) {
            let (key, token) = key_of(held);
            let Some(run) = state.runs.get_mut(&key.run) else { continue };
            let wanted =
                run.state.is_open() && key.bout < run.ledger.total() && !run.ledger.is_done(key.bout);
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
            conduct: known.map(|known| known.conduct).unwrap_or_default(),
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
            self.note(
                "throttled",
                worker,
                None,
                "the system keeps it from running; it is lent nothing by the clock",
            );
        }
        known.throttled = heartbeat.throttled;
        if heartbeat.speed > 0.0 {
            known.speed = heartbeat.speed;
        }
        let under_way = known.sent.saturating_sub(heartbeat.grants_received);
        known.room = (heartbeat.room as u64).saturating_sub(under_way);
        self.grant(state, worker);
    }

    /// Bouts come back unplayed.
    pub(crate) fn returned(&self, worker: &str, list: &[WireLease], reason: &str) {
        let mut guard = self.lock();
        let state = &mut *guard;
        for lease in list {
            let (key, token) = key_of(lease);
            state.take_back(&key, token);
        }
        if !list.is_empty() {
            info!(worker, bouts = list.len(), reason, "bouts returned");
        }
        self.grant_all(state);
    }

    /// Ends leases of which nothing was heard.
    pub(crate) fn expire(&self) {
        let now = self.now();
        let mut guard = self.lock();
        let state = &mut *guard;
        for (key, lease) in state.leases.expire(now) {
            warn!(run = key.run, bout = key.bout, worker = lease.worker, "lease expired");
            self.metrics.lease_expired();
            state.checks.give_back(&key);
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
        self.grant_all(state);
    }

    fn grant_all(&self, state: &mut State) {
        let hungry = |(_, worker): &(&String, &Worker)| worker.room > 0 && worker.out.is_some();
        let names: Vec<String> = state.workers.iter().filter(hungry).map(|(name, _)| name.clone()).collect();
        for name in names {
            self.grant(state, &name);
        }
    }

    /// Lends a worker as many bouts as it has room for.
    fn grant(&self, state: &mut State, name: &str) {
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
            if let Some(key) = state.checks.take(name) {
                if !self.lend(state, name, &key) {
                    return;
                }
                continue;
            }
            let Some(id) = state.next_run(&empty, throttled) else { return };
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
            send(v1::coordinator_message::Kind::Spec(spec));
        }
        worker.room -= 1;
        worker.sent += 1;
        self.metrics.granted();
        let lent = lent(&key.run, &bout, token);
        send(v1::coordinator_message::Kind::Grant(v1::Grant::from(&lent)))
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
        let state = self.lock();
        let total = state.runs.get(&key.run)?.ledger.total();
        if key.bout >= total {
            return Some(format!("{lease} cannot be: the run has the bouts 0 to {}", total - 1));
        }
        match state.leases.lease(&key).filter(|lent| lent.token == token) {
            Some(lent) if lent.worker != worker => Some(format!("{lease} was lent to another worker")),
            None if !state.leases.may_have_given(token) => Some(format!("{lease} was never lent")),
            _ => None,
        }
    }

    /// What to do with a bout that arrived whole and sound.
    pub(crate) fn arrival(&self, lease: &WireLease) -> Arrival {
        let (key, token) = key_of(lease);
        let state = self.lock();
        let Some(run) = state.runs.get(&key.run) else { return Arrival::NotWanted };
        let held = state.leases.lease(&key);
        if run.ledger.is_done(key.bout) {
            let asked = state.checks.has(&key) && held.is_some_and(|held| held.token == token);
            // What nobody asked for is compared with what is stored.
            return if asked { Arrival::Check } else { Arrival::Store };
        }
        if !run.state.is_open() {
            return Arrival::NotWanted;
        }
        let lent_anew = held.is_some_and(|held| held.token != token);
        if lent_anew && !run.spec.is_repeatable() { Arrival::Stale } else { Arrival::Store }
    }

    /// A bout that was asked for to check another worker. Whether it agrees.
    pub(crate) fn checked(&self, lease: &WireLease, worker: &str, digest: Digest) -> bool {
        let (key, _) = key_of(lease);
        let mut guard = self.lock();
        let state = &mut *guard;
        state.leases.release(&key);
        let finding = state.checks.answer(&key, worker, digest);
        let Some(run) = state.runs.get_mut(&key.run) else { return true };
        run.checked += 1;
        match &finding {
            Finding::Unasked | Finding::Agrees { .. } => true,
            Finding::Disputed { first } => {
                run.disputed += 1;
                let text = format!(
                    "{worker} played it again and it differs from what {first} brought; a third decides"
                );
                self.note("disputed", first, Some(&key), &text);
                self.grant_all(state);
                false
            }
            Finding::Convicted { liar, counted } => {
                let text = if *counted {
                    format!(
                        "two other workers agree on another content; its bouts should be voided: agon void {} --worker {liar}",
                        key.run
                    )
                } else {
                    "it said that a bout differs, and two other workers agree that it does not".to_string()
                };
                self.note("convicted", liar, Some(&key), &text);
                self.quarantine(state, liar, &format!("bout {} of {}: {text}", key.bout, key.run));
                *liar != worker
            }
            Finding::Hopeless => {
                self.note("disputed", worker, Some(&key), "three workers brought three contents");
                false
            }
        }
    }

    /// Counts a bout that is stored. Of a test, whether it has decided.
    pub(crate) fn committed(
        &self,
        lease: &WireLease,
        worker: &str,
        counted: Option<(&Summary, Digest)>,
    ) -> Option<Decision> {
        let (key, _) = key_of(lease);
        let mut guard = self.lock();
        let state = &mut *guard;
        state.leases.release(&key);
        let run = state.runs.get_mut(&key.run)?;
        let blamed: Vec<String> = run.ledger.failed_at(key.bout).map(str::to_string).collect();
        if !run.ledger.finish(key.bout) {
            return None;
        }
        let repeatable = run.spec.is_repeatable();
        let decision = match counted {
            Some((summary, _)) => run.add(key.bout, worker, summary),
            None => run.standings.add_failed(key.bout),
        };
        let departing = run.look();
        if let Some((summary, digest)) = counted {
            for name in &blamed {
                self.judge(state, name, |conduct| conduct.crashes += 1);
            }
            let (overshoot_us, moves) = summary.overshoot();
            self.metrics.committed(summary.games(), moves);
            self.judge(state, worker, |conduct| {
                conduct.bouts += 1;
                conduct.games += summary.games();
                conduct.forfeits += summary.forfeits();
                conduct.overshoot_us += overshoot_us;
                conduct.moves += moves;
            });
            if repeatable && state.checks.wants(worker, &key, &digest, self.secret) {
                state.checks.add(key.clone(), worker, digest);
            }
        }
        for Departure { worker, reason, certain } in departing {
            let reason = format!("in {}: {reason}", key.run);
            if certain {
                self.quarantine(state, &worker, &reason);
            } else {
                // Chance does such things now and then; where bouts can be repeated, others tell.
                self.note("departs", &worker, Some(&key), &reason);
                state.checks.suspect(&worker);
            }
        }
        drop(guard);
        self.export.notify_one();
        self.changed();
        decision
    }

    /// Adds to what is known of a worker, and sets it aside where that is enough.
    fn judge(&self, state: &mut State, worker: &str, add: impl FnOnce(&mut Conduct)) {
        let Some(known) = state.workers.get_mut(worker) else { return };
        add(&mut known.conduct);
        if let Some(fault) = known.conduct.fault() {
            self.quarantine(state, worker, &fault);
        }
    }

    /// Gives a worker nothing more, from now on and through restarts, until somebody trusts it again.
    fn quarantine(&self, state: &mut State, worker: &str, reason: &str) {
        if state.quarantine.contains_key(worker) {
            return;
        }
        warn!(worker, reason, "a worker is set aside");
        state.quarantine.insert(worker.to_string(), reason.to_string());
        self.store.note_quarantine(worker, Some(reason));
        self.note("quarantined", worker, None, reason);
        let keys: Vec<BoutKey> = state.leases.of_worker(worker).map(|(key, _)| key.clone()).collect();
        let mut revoked = Vec::new();
        for key in keys {
            if let Some(lease) = state.leases.lease(&key) {
                let token = lease.token;
                state.take_back(&key, token);
                revoked.push(reference(&key, token));
            }
        }
        let revoke = v1::Revoke { leases: revoked, reason: format!("the worker is set aside: {reason}") };
        state.send(worker, v1::coordinator_message::Kind::Revoke(revoke));
        self.grant_all(state);
        self.changed();
    }

    /// An operator sets a worker aside, or trusts it again.
    pub(crate) fn set_quarantine(&self, worker: &str, reason: Option<&str>) -> Result<(), String> {
        let mut guard = self.lock();
        let state = &mut *guard;
        if !state.workers.contains_key(worker) && !state.quarantine.contains_key(worker) {
            return Err(format!("no worker is called `{worker}`; `agon workers` lists them"));
        }
        match reason {
            Some(reason) => self.quarantine(state, worker, reason),
            None => {
                if state.quarantine.remove(worker).is_none() {
                    return Err(format!("`{worker}` is not in quarantine"));
                }
                if let Some(known) = state.workers.get_mut(worker) {
                    known.conduct = Conduct::default();
                }
                self.store.note_quarantine(worker, None);
                self.note("trusted", worker, None, "an operator trusts it again");
                self.grant_all(state);
                self.changed();
            }
        }
        Ok(())
    }

    /// Asks a worker to finish and end.
    pub(crate) fn drain_worker(&self, worker: &str) -> Result<(), String> {
        let mut guard = self.lock();
        match guard.workers.get_mut(worker) {
            Some(known) if known.out.is_some() => known.room = 0,
            Some(_) => return Err(format!("`{worker}` is not connected")),
            None => return Err(format!("no worker is called `{worker}`; `agon workers` lists them")),
        }
        let drain = v1::Drain { reason: "an operator asked it to end".to_string() };
        guard.send(worker, v1::coordinator_message::Kind::Drain(drain));
        Ok(())
    }

    /// A worker could not play a bout. Whether enough have failed at it to give it up.
    pub(crate) fn failed(&self, lease: &WireLease, worker: &str, reason: &str) -> bool {
        warn!(run = lease.run, bout = lease.bout, worker, reason, "a bout failed");
        let (key, token) = key_of(lease);
        let mut guard = self.lock();
        let state = &mut *guard;
        // A failure of somebody who has it no more says nothing of the bout: whoever has it now may succeed.
        let Some(lent) = state.leases.lease(&key).filter(|lent| lent.token == token).cloned() else {
            return false;
        };
        let worker = lent.worker.as_str();
        self.note("failed", worker, Some(&key), reason);
        state.take_back(&key, token);
        // A fleet with fewer workers than it takes to give a bout up gives it up when all of them have failed.
        let workers = state.workers.values().filter(|worker| worker.out.is_some()).count();
        let Some(run) = state.runs.get_mut(&key.run) else { return false };
        if run.ledger.is_done(key.bout) {
            // It was to check another, who could play it.
            self.judge(state, worker, |conduct| conduct.crashes += 1);
            return false;
        }
        let enough = run.ledger.fail(key.bout, worker) || run.ledger.failures(key.bout) >= workers;
        if enough {
            run.ledger.claim(key.bout);
        } else {
            self.grant_all(state);
        }
        enough
    }

    /// A worker sent what cannot be: what it holds goes to others, and it is given no more. Returns the whole sentence.
    pub(crate) fn refuse(&self, lease: &WireLease, worker: &str, reason: &str) -> String {
        let (key, _) = key_of(lease);
        let mut guard = self.lock();
        let state = &mut *guard;
        if let Some(known) = state.workers.get_mut(worker) {
            known.refused += 1;
        }
        self.note("refused", worker, Some(&key), reason);
        let reason = format!("bout {} of {}: {reason}", key.bout, key.run);
        // Whoever names itself badly, or nobody that was ever here, cannot be set aside.
        if state.workers.contains_key(worker) {
            self.quarantine(state, worker, &reason);
        }
        reason
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

    /// The coordinator shuts down: nothing is granted any more and all sessions end. Workers go on with what they have and
    /// present it to the next coordinator.
    pub(crate) fn drain(&self) {
        let mut guard = self.lock();
        guard.draining = true;
        for worker in guard.workers.values_mut() {
            worker.out = None;
        }
        drop(guard);
        self.changed();
    }

    /// Whether the coordinator shuts down.
    pub(crate) fn is_draining(&self) -> bool {
        self.lock().draining
    }

    // ------------------------------------------------------------------------------------------- operators

    /// How a run is doing; `intervals` are worth their time at its end only.
    pub(crate) fn status(&self, id: &str, intervals: bool) -> Option<v1::RunStatus> {
        let guard = self.lock();
        let state = &*guard;
        let run = state.runs.get(id)?;
        let workers = state.workers.values().filter(|worker| worker.out.is_some()).count() as u32;
        // Of a run that ended early the ledger knows only that nothing more is wanted.
        let done = if run.state.is_open() {
            run.ledger.done()
        } else {
            run.standings.tally().bouts + run.voided.len() as u64
        };
        let seconds = run.since.elapsed().as_secs_f64().max(1e-3);
        let rate = (done - run.done_before.min(done)) as f64 / seconds;
        let games = run.standings.tally().games;
        let running = run.state == RunState::Running;
        let left = (run.ledger.total() - done) as f64 / rate;
        let waiting = match state.obstacles.values().next() {
            Some(reason) if running => reason.clone(),
            _ if !running || done == run.ledger.total() => String::new(),
            _ if self.now() < self.opens => {
                "workers may present what they hold from before; nothing is granted anew yet".to_string()
            }
            _ if workers == 0 => "no worker is connected".to_string(),
            _ if state.connected().all(|(name, _)| state.quarantine.contains_key(name)) => {
                "every connected worker is in quarantine: `agon workers` says why".to_string()
            }
            _ if run.spec.is_timed() && state.connected().all(|(_, worker)| worker.throttled) => {
                "every connected worker is throttled by its system, and the run is by the clock".to_string()
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
            failed: run.standings.tally().failed,
            leased: state.leases.count_of_run(id),
            games,
            exported: run.exported,
            bouts_per_second: rate,
            games_per_second: (games - run.games_before.min(games)) as f64 / seconds,
            seconds_left: (running && left.is_finite()).then_some(left),
            standings: run.standings.table(intervals && !run.state.is_open()),
            sprt: run.standings.sprt(),
            data: self.data.clone(),
            waiting,
            workers,
            abandoned: run.abandoned,
            priority: run.priority,
            voided: run.voided.len() as u64,
            checked: run.checked,
            disputed: run.disputed,
        })
    }

    /// What there is of everything now.
    pub(crate) fn levels(&self) -> Levels {
        let state = self.lock();
        let count =
            |wanted: fn(&Worker) -> bool| state.connected().filter(|(_, worker)| wanted(worker)).count();
        let runs = RunState::ALL
            .map(|(kind, name)| (name, state.runs.values().filter(|run| run.state == kind).count() as i64));
        Levels {
            sessions: state.connected().count() as i64,
            slots: state.connected().map(|(_, worker)| i64::from(worker.slots)).sum(),
            quarantined: state.quarantine.len() as i64,
            throttled: count(|worker| worker.throttled) as i64,
            leases: state.leases.count() as i64,
            checks: state.checks.waiting() as i64,
            waiting: !state.obstacles.is_empty(),
            runs: runs.to_vec(),
        }
    }

    /// Every worker that has been here.
    pub(crate) fn workers(&self) -> Vec<v1::WorkerStatus> {
        let guard = self.lock();
        let state = &*guard;
        state.workers.iter().map(|(name, worker)| state.worker_status(name, worker)).collect()
    }

    /// One worker, if it has been here.
    pub(crate) fn worker(&self, name: &str) -> Option<v1::WorkerStatus> {
        let state = self.lock();
        state.workers.get(name).map(|worker| state.worker_status(name, worker))
    }
}

impl State {
    /// The workers that are there.
    fn connected(&self) -> impl Iterator<Item = (&String, &Worker)> {
        self.workers.iter().filter(|(_, worker)| worker.out.is_some())
    }

    /// The run whose turn it is: of those with the greatest priority the one with the fewest bouts lent out, so that runs
    /// share the slots evenly however long their bouts are.
    fn next_run(&self, empty: &BTreeSet<String>, throttled: bool) -> Option<String> {
        let waits = |id: &&String| {
            let run = &self.runs[*id];
            run.state == RunState::Running && !empty.contains(*id) && !(throttled && run.spec.is_timed())
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

    fn worker_status(&self, name: &str, worker: &Worker) -> v1::WorkerStatus {
        let held: Vec<_> = self.leases.of_worker(name).collect();
        v1::WorkerStatus {
            worker: name.to_string(),
            build: worker.build.clone(),
            slots: worker.slots,
            speed: worker.speed,
            connected: worker.out.is_some(),
            leases: held.len() as u32,
            committed: worker.conduct.bouts,
            refused: worker.refused,
            flag: self.quarantine.get(name).cloned().unwrap_or_default(),
            progress: held
                .iter()
                .filter(|(_, lease)| lease.progress.started)
                .map(|(key, lease)| v1::Progress {
                    lease: Some(reference(key, lease.token)),
                    started: true,
                    game: lease.progress.game,
                    ply: lease.progress.ply,
                    pulse: lease.progress.pulse,
                })
                .collect(),
            seconds_since_heartbeat: worker.heard.elapsed().as_secs_f64(),
            throttled: worker.throttled,
            confirmed: self.checks.confirmed(name),
            crashes: worker.conduct.crashes,
            forfeits: worker.conduct.forfeits,
            mean_overshoot_us: worker.conduct.mean_overshoot_us(),
        }
    }

    /// Sends something to a worker that is connected.
    fn send(&self, worker: &str, kind: v1::coordinator_message::Kind) {
        if let Some(out) = self.workers.get(worker).and_then(|worker| worker.out.as_ref()) {
            // A session that has just ended hears nothing; its end is noticed elsewhere.
            let _ = out.send(Ok(v1::CoordinatorMessage { kind: Some(kind) }));
        }
    }
}

/// What is remembered of the exported bouts of a run; none where it is damaged.
pub(crate) fn remembered_tally(stored: &StoredRun) -> Option<Tally> {
    if stored.folded.is_empty() { Some(Tally::default()) } else { unseal(&stored.folded) }
}

/// A run from the store: its row, the bouts that are not exported, and what is remembered of the others.
pub(crate) struct Remembered {
    pub(crate) stored: StoredRun,
    /// Bouts with who brought them; none where they failed.
    pub(crate) bouts: Vec<(u64, String, Option<Summary>)>,
    pub(crate) cells: Vec<StoredCell>,
    pub(crate) voided: BTreeSet<u64>,
}

impl Run {
    /// A run with what is already done of it.
    pub(crate) fn new(
        source: SpecSource,
        schedule: Schedule,
        remembered: Remembered,
    ) -> Result<Run, crate::schedule::ScheduleError> {
        let Remembered { stored, bouts, cells, voided } = remembered;
        let spec = Arc::new(schedule.spec().clone());
        let folded = remembered_tally(&stored).unwrap_or_default();
        let standings = Standings::new(&spec, schedule.referee().seats(), folded.clone())?;
        let referee =
            Arena::new(&spec.game, &[], Surroundings::system()).map_err(agon_arena::PlayError::from)?;
        let ledger = Ledger::new(schedule.bouts(), stored.exported, bouts.iter().map(|(bout, ..)| *bout));
        let cells = cells.into_iter().map(|cell| ((cell.worker, cell.pairing), cell.outcomes)).collect();
        let mut run = Run {
            source,
            spec,
            schedule,
            referee: Arc::new(Mutex::new(referee)),
            ledger,
            standings,
            state: stored.state,
            priority: stored.priority,
            decided: stored.decided,
            exported: stored.exported,
            folded,
            described: false,
            voided,
            abandoned: 0,
            submitted_us: stored.submitted_us,
            cells,
            looks: 0,
            next_look: FIRST_LOOK,
            checked: 0,
            disputed: 0,
            since: Instant::now(),
            done_before: 0,
            games_before: 0,
        };
        for (bout, worker, summary) in &bouts {
            match summary {
                Some(summary) => run.add(*bout, worker, summary),
                None => run.standings.add_failed(*bout),
            };
        }
        run.decided = run.decided.or(run.standings.deciding_bout());
        run.done_before = run.ledger.done();
        run.games_before = run.standings.tally().games;
        // Looks that an earlier life has made are made: what they spent stays spent.
        while run.ledger.done() >= run.next_look {
            run.looks += 1;
            run.next_look *= 2;
        }
        Ok(run)
    }

    /// Counts a bout that was played.
    fn add(&mut self, bout: u64, worker: &str, summary: &Summary) -> Option<Decision> {
        if let Some((pairing, outcome)) = summary.cell() {
            self.cells.entry((worker.to_string(), pairing)).or_default()[outcome] += 1;
        }
        self.standings.add(bout, summary)
    }

    /// Compares the workers at each doubling of the bouts: who departs too far from the others, and how.
    fn look(&mut self) -> Vec<Departure> {
        if self.ledger.done() < self.next_look {
            return Vec::new();
        }
        self.next_look = self.ledger.done().max(1) * 2;
        let names: BTreeSet<&str> = self.cells.keys().map(|(worker, _)| worker.as_str()).collect();
        let names: Vec<&str> = names.into_iter().collect();
        let pairings: BTreeSet<u64> = self.cells.keys().map(|(_, pairing)| *pairing).collect();
        let pairings: Vec<u64> = pairings.into_iter().collect();
        let cell = |((worker, pairing), outcomes): (&(String, u64), &[u64; 3])| Cell {
            pairing: pairings.binary_search(pairing).unwrap_or_default(),
            worker: names.binary_search(&worker.as_str()).unwrap_or_default(),
            outcomes: *outcomes,
        };
        let cells: Vec<Cell> = self.cells.iter().map(cell).collect();
        let report = compare(&cells, self.looks + 1);
        // A look at which nothing can be compared spends nothing.
        self.looks += u32::from(report.degrees > 0.0);
        let limit = report.limit;
        let departs = |report: &WorkerReport| Departure {
            worker: names[report.worker].to_string(),
            reason: format!(
                "its results differ from the others' by chi-square {:.1} with {} degrees of freedom, by chance once in {:.0}",
                report.chi_square,
                report.degrees,
                1.0 / report.probability.max(1e-300)
            ),
            certain: report.probability * CERTAINTY < limit,
        };
        report.workers.iter().filter(|report| report.flagged).map(departs).collect()
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
    LentBout { lease, players: bout.players.clone(), opening: bout.opening.clone() }
}

fn wire_state(state: RunState) -> v1::RunState {
    match state {
        RunState::Running => v1::RunState::Running,
        RunState::Paused => v1::RunState::Paused,
        RunState::Done => v1::RunState::Done,
        RunState::Decided => v1::RunState::Decided,
        RunState::Cancelled => v1::RunState::Cancelled,
    }
}
