//! The coordinator's state in memory, behind one lock that is never held across an await.
//!
//! It has the durable state, which only events change, and what is lost with the process: sessions and leases.
//!
//! This module has changes to the state as a whole; `effects` has what follows from events, `sessions` handles connected
//! workers, `grants` leases, `submissions` results, `computations` slow work, and `status` reports.

mod computations;
mod effects;
mod grants;
mod sessions;
mod status;
mod submissions;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc as std_mpsc};
use std::time::{Duration, Instant, SystemTime};

use agon_arena::{Bout, Spec};
use agon_proto::v1::{self, coordinator_message::Kind};
use agon_proto::{Lease as WireLease, LeasedBout};
use agon_transport::{Caller, RateLimiter};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Notify, mpsc, watch};
use tonic::Status;
use tracing::{error, info, warn};

pub(crate) use self::computations::OPENINGS_AHEAD;
pub(crate) use self::grants::RESERVED_AHEAD;
pub(crate) use self::submissions::{Admission, Referees, Rejection};
use crate::dataset::Dataset;
use crate::durable::ledger::Witness;
use crate::durable::workers::Hold;
use crate::durable::{Durable, Run};
use crate::export::RecentBouts;
use crate::leases::{BoutKey, Holder, LeaseBook, Token};
use crate::metrics::Metrics;
use crate::owner::{self, Job};
use crate::store::{Reader, Store, StoreError};
use crate::verification::reputation::Reputation;

/// Heartbeat and lease durations.
#[derive(Clone, Debug)]
pub struct Timing {
    /// The interval of heartbeats.
    pub heartbeat: Duration,
    /// How long a lease lasts without progress.
    pub lease: Duration,
    /// How long grants wait after a restart for workers to return earlier bouts.
    pub grace: Duration,
    /// How long a worker may play a bout.
    pub max_bout: Duration,
}

impl Default for Timing {
    fn default() -> Timing {
        let lease = Duration::from_secs(30);
        Timing {
            heartbeat: Duration::from_secs(5),
            lease,
            grace: lease,
            max_bout: Duration::from_secs(24 * 3600),
        }
    }
}

/// Unacknowledged bytes above which a worker gets no grants.
const WINDOW_BYTES: u64 = 64 << 20;

/// How long the owner of the state may take to execute commands while the coordinator counts as healthy.
const STUCK_AFTER: Duration = Duration::from_secs(5);

/// The capacity of a worker's send queue.
pub(crate) const SEND_QUEUE: usize = 1024;
/// The part of the send queue reserved for messages other than grants.
const RESERVED_QUEUE: usize = SEND_QUEUE / 4;

/// The maximum number of waiting bouts per slot.
const MAX_WAITING_PER_SLOT: u64 = 256;

/// The rate limit of audit entries for each caller.
const AUDITS_PER_SECOND: u32 = 1;
const AUDIT_BURST: u32 = 1000;

/// The send queue of a connected worker.
pub(crate) type SendQueue = mpsc::Sender<Result<v1::CoordinatorMessage, Status>>;

/// A worker that has connected since the start.
pub(crate) struct Worker {
    /// The owner of the name: the caller of its last hello.
    caller: Caller,
    /// The name of its credential.
    credential: String,
    /// Its credential and its machine.
    witness: Witness,
    /// Whether it is on disk that it may hold leases.
    is_recorded: bool,
    /// When it last connected, was granted a bout, held one, or left.
    last_active: Duration,
    build: String,
    slots: u32,
    speed: f64,
    pub(crate) queue: Option<SendQueue>,
    /// The number of its latest session.
    session: u64,
    /// Bouts it accepts: its last report less the grants since.
    pub(crate) room: u64,
    sent: u64,
    specs: HashSet<String>,
    unacknowledged: u64,
    throttled: bool,
    /// The names of the engines that it can start.
    engines: BTreeSet<String>,
    refused: u64,
    pub(crate) reputation: Reputation,
    last_heartbeat: Instant,
}

impl Worker {
    /// Returns whether the worker can start all engines of a spec. Those given by a command run only where specs are submitted
    /// to the process that plays them, which `is_local` states.
    fn has_engines(&self, spec: &Spec, is_local: bool) -> bool {
        (is_local || spec.engine_command().is_none())
            && spec.engine_names().all(|name| self.engines.contains(name))
    }
}

pub(crate) struct State {
    pub(crate) durable: Durable,
    /// Runs submitted since the start, new or not.
    requested: BTreeSet<String>,
    pub(crate) workers: BTreeMap<String, Worker>,
    pub(crate) leases: LeaseBook,
    /// Callers whose workers can be granted bouts, and when this was computed.
    callers: (Option<Duration>, HashSet<Caller>),
    /// Why grants are stopped, by what cannot be written.
    write_faults: BTreeMap<WriteTarget, String>,
    sessions: u64,
    draining: bool,
    /// Runs for which something is being computed.
    computing: BTreeSet<String>,
    /// When leases were last expired.
    last_tick: Duration,
    /// Workers that may hold leases of an earlier process, and how long their bouts are withheld.
    awaited: BTreeSet<String>,
    awaited_until: Duration,
    /// Runs for which more bouts are being reserved.
    reservations: BTreeSet<String>,
    /// Bouts that are about to be committed as failed.
    abandoned: BTreeSet<BoutKey>,
}

/// The state shared by all services.
pub struct Coordinator {
    /// The commands for the owner of the durable state.
    pub(crate) jobs: std_mpsc::Sender<Box<dyn Job>>,
    /// Reads the state file.
    pub(crate) reader: Reader,
    pub(crate) dataset: Dataset,
    pub(crate) metrics: Metrics,
    pub(crate) recent: RecentBouts,
    pub(crate) timing: Timing,
    pub(crate) signature: String,
    pub(crate) epoch: u64,
    pub(crate) data: String,
    /// Runs in the dataset that this build cannot read; their ids are taken.
    pub(crate) unreadable: BTreeSet<String>,
    /// Grants only runs submitted to this process.
    pub(crate) only_requested: bool,
    started: Instant,
    /// When the owner of the state began with the present commands, in milliseconds since the start; 0 if it waits for some.
    write_began_ms: AtomicU64,
    /// The time that tests let pass.
    #[cfg(test)]
    pub(crate) passed_ms: AtomicU64,
    state: Mutex<State>,
    pub(crate) audit_limits: RateLimiter<Caller>,
    fatal: watch::Sender<Option<Fatal>>,
    /// A secret for sampling bouts to replicate.
    secret: u64,
    changes: watch::Sender<u64>,
    pub(crate) export: Notify,
    /// Notified when a run may need a computation.
    pub(crate) computations: Notify,
    /// Notified when a worker is convicted.
    pub(crate) convictions: Notify,
    /// Replays the games of submitted bouts beside the runtime.
    pub(crate) referees: Referees,
    /// Held while openings are drawn for a new run.
    pub(crate) submit_lock: tokio::sync::Mutex<()>,
    /// Held while a part is read for comparison.
    pub(crate) comparison_lock: tokio::sync::Mutex<()>,
    /// Held while a manifest is written.
    pub(crate) manifest_lock: tokio::sync::Mutex<()>,
}

/// What the state and the dataset had at the start.
#[derive(Default)]
pub(crate) struct Recovery {
    pub(crate) durable: Durable,
    /// The search signature of this build.
    pub(crate) signature: String,
    /// How often the state has been opened.
    pub(crate) epoch: u64,
    /// Runs that this build cannot read.
    pub(crate) unreadable: BTreeSet<String>,
    /// Grants only runs submitted to this process.
    pub(crate) only_requested: bool,
}

/// An error that ends the process: what it holds in memory may be wrong. A restart recovers.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum Fatal {
    /// The state cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A task panicked.
    #[error("{task} failed: {reason}")]
    Task {
        /// What the task does.
        task: &'static str,
        /// The message of the panic.
        reason: String,
    },
}

/// Storage that may be unwritable for a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum WriteTarget {
    /// The state: nothing can be acknowledged.
    State,
    /// The dataset: nothing can be exported.
    Dataset,
}

impl Coordinator {
    /// Creates a coordinator, which owns the store.
    pub(crate) fn start(
        store: Store,
        dataset: Dataset,
        timing: Timing,
        data: String,
        recovery: Recovery,
    ) -> Result<Arc<Coordinator>, StoreError> {
        let Recovery { durable, signature, epoch, unreadable, only_requested } = recovery;
        let (jobs, inbox) = std_mpsc::channel();
        let reader = store.reader()?;
        let state = State {
            durable,
            requested: BTreeSet::new(),
            workers: BTreeMap::new(),
            leases: LeaseBook::new(epoch, reader.secret()?, timing.lease),
            callers: Default::default(),
            write_faults: BTreeMap::new(),
            sessions: 0,
            draining: false,
            computing: BTreeSet::new(),
            last_tick: Duration::ZERO,
            awaited: BTreeSet::new(),
            awaited_until: Duration::ZERO,
            reservations: BTreeSet::new(),
            abandoned: BTreeSet::new(),
        };
        let coordinator = Arc::new(Coordinator {
            jobs,
            reader,
            dataset,
            metrics: Metrics::default(),
            recent: RecentBouts::default(),
            timing,
            signature,
            epoch,
            data,
            unreadable,
            only_requested,
            started: Instant::now(),
            write_began_ms: AtomicU64::new(0),
            #[cfg(test)]
            passed_ms: AtomicU64::new(0),
            state: Mutex::new(state),
            audit_limits: RateLimiter::new(AUDITS_PER_SECOND, AUDIT_BURST),
            fatal: watch::Sender::new(None),
            secret: RandomState::new().hash_one(epoch),
            changes: watch::Sender::new(0),
            export: Notify::new(),
            computations: Notify::new(),
            convictions: Notify::new(),
            referees: Referees::new(),
            submit_lock: tokio::sync::Mutex::new(()),
            comparison_lock: tokio::sync::Mutex::new(()),
            manifest_lock: tokio::sync::Mutex::new(()),
        });
        owner::start(&coordinator, store, inbox)?;
        Ok(coordinator)
    }

    /// Withholds the bouts that workers of an earlier process may hold, until these are back or the grace period is over.
    pub(crate) fn await_workers(&self) {
        let mut guard = self.lock();
        let state = &mut *guard;
        state.request_replicated_openings();
        let holders = state.durable.holders().clone();
        if self.timing.grace.is_zero() {
            holders.into_iter().for_each(|worker| self.post(Hold { worker, holds: false }));
            return;
        }
        state.awaited = holders;
        state.awaited_until = self.now() + self.timing.grace;
        if !state.awaited.is_empty() {
            state.durable.runs_mut().for_each(|(_, run)| run.ledger.withhold());
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // A panic under the lock is a bug in one request; each change leaves the state consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn now(&self) -> Duration {
        let elapsed = self.started.elapsed();
        #[cfg(test)]
        let elapsed = elapsed + Duration::from_millis(self.passed_ms.load(Ordering::Relaxed));
        elapsed
    }

    /// Lets time pass in ticks.
    #[cfg(test)]
    pub(crate) fn pass(&self, time: Duration) {
        let end = self.now() + time;
        while self.now() < end {
            self.passed_ms.fetch_add(self.tick().as_millis() as u64, Ordering::Relaxed);
            self.expire_leases(self.now());
        }
    }

    /// Records that the owner of the state begins to execute commands.
    pub(crate) fn begin_write(&self) {
        let now = u64::try_from(self.now().as_millis()).unwrap_or(u64::MAX);
        self.write_began_ms.store(now.max(1), Ordering::Relaxed);
    }

    /// Records that the owner of the state has executed its commands.
    pub(crate) fn end_write(&self) {
        self.write_began_ms.store(0, Ordering::Relaxed);
    }

    /// Returns for how long the state has not been written although commands wait, if that is too long.
    pub(crate) fn stuck_for(&self) -> Option<Duration> {
        let began = self.write_began_ms.load(Ordering::Relaxed);
        let stuck = self.now().saturating_sub(Duration::from_millis(began));
        (began > 0 && stuck >= STUCK_AFTER).then_some(stuck)
    }

    /// Notifies watchers of a change.
    pub(crate) fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Returns a receiver of change notifications.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Ends the coordinator: [`crate::run`] returns this error.
    pub(crate) fn fail(&self, failure: Fatal) {
        error!(%failure, "coordinator failed");
        self.fatal.send_replace(Some(failure));
    }

    /// Waits for a fatal error.
    pub(crate) async fn failure(&self) -> Fatal {
        let mut fatal = self.fatal.subscribe();
        let failure = fatal.wait_for(Option::is_some).await;
        failure.ok().and_then(|failure| failure.clone()).unwrap_or(Fatal::Store(StoreError::Closed))
    }

    /// Marks a run as submitted to this process.
    pub(crate) fn request_run(&self, id: &str) {
        let mut guard = self.lock();
        let state = &mut *guard;
        if state.requested.insert(id.to_string()) {
            self.grant_all(state);
        }
    }

    /// Calls `f` with a run.
    pub(crate) fn with_run<T>(&self, id: &str, f: impl FnOnce(&mut Run) -> T) -> Option<T> {
        self.lock().durable.run_mut(id).map(f)
    }

    /// Returns all run ids in order of submission.
    pub(crate) fn run_ids(&self) -> Vec<String> {
        self.lock().durable.order().to_vec()
    }

    /// Stops grants for a reason, or resumes them.
    pub(crate) fn set_write_fault(&self, target: WriteTarget, reason: Option<String>) {
        let mut guard = self.lock();
        let state = &mut *guard;
        if state.write_faults.get(&target) == reason.as_ref() {
            return;
        }
        match reason {
            Some(reason) => {
                warn!(reason, "grants stopped");
                state.write_faults.insert(target, reason);
            }
            None => {
                state.write_faults.remove(&target);
                info!("grants resumed");
            }
        }
        self.grant_all(state);
        drop(guard);
        self.changed();
    }

    /// Returns whether storage cannot be written for now.
    pub(crate) fn has_write_fault(&self, target: WriteTarget) -> bool {
        self.lock().write_faults.contains_key(&target)
    }

    /// Stops grants of one run for a reason, or resumes them.
    pub(crate) fn set_export_fault(&self, id: &str, reason: Option<String>) {
        let mut guard = self.lock();
        let state = &mut *guard;
        let Some(run) = state.durable.run_mut(id).filter(|run| run.export_fault != reason) else { return };
        match &reason {
            Some(reason) => warn!(run = id, reason, "run grants stopped"),
            None => info!(run = id, "run grants resumed"),
        }
        run.export_fault = reason;
        self.grant_all(state);
        drop(guard);
        self.changed();
    }

    /// Returns why a run cannot be exported.
    pub(crate) fn export_fault(&self, id: &str) -> Option<String> {
        let state = self.lock();
        let of_run = state.durable.run(id).and_then(|run| run.export_fault.clone());
        of_run.or_else(|| state.write_faults.get(&WriteTarget::Dataset).cloned())
    }

    /// Begins the shutdown: stops grants and ends all sessions. Workers keep their bouts for the next coordinator.
    pub(crate) fn drain(&self) {
        let mut guard = self.lock();
        guard.draining = true;
        for worker in guard.workers.values_mut() {
            worker.queue = None;
        }
        drop(guard);
        self.export.notify_one();
        self.changed();
    }

    /// Returns whether the coordinator is shutting down.
    pub(crate) fn is_draining(&self) -> bool {
        self.lock().draining
    }
}

impl State {
    /// Returns the connected workers.
    fn connected(&self) -> impl Iterator<Item = (&String, &Worker)> {
        self.workers.iter().filter(|(_, worker)| worker.queue.is_some())
    }

    /// Returns the owner of a worker's name if it is another caller whose credential is still valid.
    fn owned_by_another(&self, worker: &str, caller: &Caller) -> Option<&Caller> {
        let owner = self.workers.get(worker).map(|known| &known.caller)?;
        (owner != caller && owner.is_authenticated() && owner.is_valid()).then_some(owner)
    }

    /// Ends the lease with this token and returns its bout.
    pub(crate) fn reclaim(&mut self, key: &BoutKey, token: Token) {
        if self.leases.release(key, token).is_some() {
            self.give_back(key);
        }
    }

    /// Makes a bout grantable again whose lease has ended, unless it has another.
    fn give_back(&mut self, key: &BoutKey) {
        if self.leases.is_leased(key) {
            return;
        }
        self.durable.give_back_replica(key);
        if let Some(run) = self.durable.run_mut(&key.run) {
            run.ledger.give_back(key.bout);
        }
    }

    /// Revokes leases.
    fn revoke(&mut self, revoked: BTreeMap<String, Vec<v1::LeaseRef>>, reason: &str) {
        for (worker, leases) in revoked {
            self.send(&worker, Kind::Revoke(v1::Revoke { leases, reason: reason.to_string() }));
        }
    }

    /// Sends a message to a connected worker. Ends the session of a worker whose queue is full and releases its
    /// leases.
    pub(crate) fn send(&mut self, worker: &str, kind: Kind) {
        let Some(known) = self.workers.get_mut(worker) else { return };
        let Some(queue) = &known.queue else { return };
        // The end of a closed session is handled elsewhere.
        if let Err(TrySendError::Full(_)) = queue.try_send(Ok(v1::CoordinatorMessage { kind: Some(kind) })) {
            warn!(worker, "session ended: send queue full");
            (known.queue, known.room) = (None, 0);
            let held: Vec<_> =
                self.leases.of_worker(worker).map(|(key, lease)| (key.clone(), lease.token)).collect();
            for (key, token) in held {
                self.reclaim(&key, token);
            }
        }
    }
}

/// Returns the coordinator's time in microseconds since 1970.
pub(crate) fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// Splits a lease from the wire into the bout and the token.
fn key_of(lease: &WireLease) -> (BoutKey, Token) {
    let token = Token { epoch: lease.epoch, sequence: lease.sequence };
    (BoutKey { run: lease.run.clone(), bout: lease.bout }, token)
}

/// Builds the reference of a lease for the wire.
pub(crate) fn lease_ref(key: &BoutKey, token: Token) -> v1::LeaseRef {
    v1::LeaseRef { run: key.run.clone(), bout: key.bout, epoch: token.epoch, sequence: token.sequence }
}

/// Builds a leased bout for the wire.
fn leased_bout(run: &str, bout: Bout, token: Token) -> LeasedBout {
    let lease =
        WireLease { run: run.to_string(), bout: bout.index, epoch: token.epoch, sequence: token.sequence };
    LeasedBout { lease, bout }
}
