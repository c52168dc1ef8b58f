//! The worker: one task that owns the held bouts and handles the events of the coordinator and of the slots.
//!
//! It keeps playing while the coordinator is unreachable, and reconnects. It ends when its caller stops it, when the
//! coordinator drains it, or when the coordinator rejects it for good.

use std::collections::{BTreeMap, BTreeSet};
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use agon_arena::{Spec, SpecSource};
use agon_games::printable::is_printable;
use agon_proto::limits::{MAX_BUILD, MAX_SLOTS, MAX_WORKER_NAME};
use agon_proto::session::clean_reason;
use agon_proto::v1::coordinator_message::Kind;
use agon_proto::v1::{Outcome, worker_message};
use agon_proto::write::failure;
use agon_proto::{
    Heartbeat, Hello, Lease, LeasedBout, PROTOCOLS, Progress, Returned, Welcome, WireError, v1,
};
use agon_schedule::run_id;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinError, JoinHandle};
use tokio::time::{Instant, sleep_until};
use tonic::Code;

use crate::backoff::Backoff;
use crate::config::Config;
use crate::error::WorkerError;
use crate::event::{Ended, Summary, WorkerEvent};
use crate::held_bouts::{HeldBouts, Stage};
use crate::play::{Identity, Job};
use crate::session::{Session, SessionEvent};
use crate::slot::{Ending, Report, Slot, panic_text};
use crate::speed::{ThrottleMonitor, measure_loaded};
use crate::submit::{Command, SubmitEvent, Submitter};

/// The playing time that prefetched bouts must cover: a round trip and the coordinator's commit.
const PREFETCH_TIME: Duration = Duration::from_millis(200);

/// How long a rejected credential is tried again: the coordinator reads a changed file of tokens within a second.
const CREDENTIAL_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the end of a worker waits for the threads of its slots.
const SLOT_END: Duration = Duration::from_secs(1);

/// The maximum number of prefetched bouts per slot.
const MAX_PREFETCH_PER_SLOT: usize = 256;

/// The number of specs kept across sessions for runs without held bouts.
const MAX_IDLE_SPECS: usize = 16;

/// Boxed so that the futures are monomorphised once, in this crate.
type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Runs a worker until `shutdown` completes, the coordinator drains it or rejects it. Returns within the configured grace
/// period after `shutdown`. Interrupted slot threads end soon afterwards.
pub fn run(
    config: Config,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> BoxFuture<Result<Summary, WorkerError>> {
    start(config, Box::pin(shutdown))
}

fn start(config: Config, shutdown: BoxFuture<()>) -> BoxFuture<Result<Summary, WorkerError>> {
    Box::pin(run_to_end(config, shutdown))
}

async fn run_to_end(config: Config, shutdown: BoxFuture<()>) -> Result<Summary, WorkerError> {
    validate(&config)?;
    let slots = config.slots;
    let measured = tokio::task::spawn_blocking(move || measure_loaded(slots)).await;
    // It panics where memory is short.
    let (answers, speed) =
        measured.map_err(|error| end_of_task("the measurement of the speed", Err(error)))?;
    let mut worker = Worker::start(config, answers.signature, speed)?;
    let outcome = worker.run(shutdown).await;
    if let Some(session) = worker.session.take() {
        session.close(close_time(worker.config.grace)).await;
    }
    worker.end_slots().await;
    outcome
}

/// Returns the part of the grace period that is reserved for the last messages of the session.
fn close_time(grace: Duration) -> Duration {
    (grace / 8).min(Duration::from_millis(500))
}

fn validate(config: &Config) -> Result<(), WorkerError> {
    let Config { slots, name, build, .. } = config;
    if !(1..=MAX_SLOTS).contains(slots) {
        return Err(WorkerError::Config(format!("a worker has 1 to {MAX_SLOTS} slots, not {slots}")));
    }
    for (what, text, most) in [("build", build, MAX_BUILD), ("worker", name, MAX_WORKER_NAME)] {
        if text.is_empty() || text.len() > most || !is_printable(text) {
            return Err(WorkerError::Config(format!(
                "invalid {what} name {text:?}; use 1 to {most} printable characters"
            )));
        }
    }
    Ok(())
}

struct Worker {
    config: Config,
    signature: String,
    speed: f64,
    throttle: ThrottleMonitor,
    throttled: bool,
    slots: Vec<Slot>,
    reports: mpsc::UnboundedReceiver<Report>,
    held: HeldBouts,
    /// The spec of each known run, or the reason why it cannot be played.
    specs: BTreeMap<String, Result<Arc<Spec>, String>>,
    /// The keys of `specs` in order of arrival.
    runs: Vec<String>,
    session: Option<Session>,
    /// The welcome of the current session.
    welcome: Option<Welcome>,
    backoff: Backoff,
    /// When the coordinator first rejected the credential, since the last session.
    rejected_since: Option<Instant>,
    /// The time of the next connection attempt, if there is no session.
    retry: Instant,
    next_heartbeat: Instant,
    grants_received: u64,
    /// The free room in the last heartbeat, minus the grants since.
    reported_room: usize,
    /// Whether the last heartbeat exceeded the coordinator's window of unacknowledged bytes.
    reported_full: bool,
    /// The exponentially smoothed duration of a bout.
    bout_time: Option<Duration>,
    submissions: mpsc::UnboundedSender<Command>,
    submitted: mpsc::UnboundedReceiver<SubmitEvent>,
    /// The task behind both channels.
    submitter: JoinHandle<()>,
    in_session: watch::Sender<bool>,
    unacknowledged_bytes: Arc<AtomicU64>,
    draining: Option<Draining>,
    summary: Summary,
}

/// The deadlines of draining.
struct Draining {
    /// The time at which bouts in progress are interrupted.
    interrupt: Instant,
    interrupted: bool,
    /// The time at which the worker ends in any case.
    deadline: Instant,
}

/// The reason for a pass of the main loop.
enum Wake {
    Shutdown,
    Session(SessionEvent),
    Slot(Report),
    Submit(SubmitEvent),
    Time,
}

impl Worker {
    fn start(config: Config, signature: String, speed: f64) -> Result<Worker, WorkerError> {
        let (report, reports) = mpsc::unbounded_channel();
        let (submissions, commands) = mpsc::unbounded_channel();
        let (events, submitted) = mpsc::unbounded_channel();
        let (in_session, session_open) = watch::channel(false);
        let unacknowledged_bytes = Arc::new(AtomicU64::new(0));
        let identity = Identity { worker: config.name.clone(), build: config.build.clone() };
        let engines = Arc::new(config.engines.clone());
        let slot = |number| {
            let (identity, engines) = (identity.clone(), Arc::clone(&engines));
            Slot::start(number, identity, config.pin, speed, engines, submissions.clone(), report.clone())
        };
        let slots = (0..config.slots).map(slot).collect::<Result<_, _>>()?;
        let submitter = Submitter {
            connector: config.connector.clone(),
            backoff: Backoff::new(&config.name, 1),
            commands,
            events,
            in_session: session_open,
            bytes: Arc::clone(&unacknowledged_bytes),
        };
        let submitter = tokio::spawn(submitter.run());
        let now = Instant::now();
        Ok(Worker {
            signature,
            speed,
            throttle: ThrottleMonitor::start(),
            throttled: false,
            slots,
            reports,
            held: HeldBouts::new(config.slots),
            specs: BTreeMap::new(),
            runs: Vec::new(),
            session: None,
            welcome: None,
            backoff: Backoff::new(&config.name, 0),
            rejected_since: None,
            retry: now,
            next_heartbeat: now,
            grants_received: 0,
            reported_room: 0,
            reported_full: false,
            bout_time: None,
            submissions,
            submitted,
            submitter,
            in_session,
            unacknowledged_bytes,
            draining: None,
            summary: Summary::default(),
            config,
        })
    }

    async fn run(&mut self, mut shutdown: BoxFuture<()>) -> Result<Summary, WorkerError> {
        loop {
            self.start_bouts();
            self.report_room();
            if self.is_drained() {
                self.summary.unacknowledged = self.held.unacknowledged() as u64;
                // Slots that have not stopped by the deadline are abandoned.
                self.summary.abandoned += self.held.busy_slots().count() as u64;
                return Ok(self.summary.clone());
            }
            let time = self.next_deadline();
            let wake = tokio::select! {
                () = &mut shutdown, if self.draining.is_none() => Wake::Shutdown,
                event = next_event(&mut self.session) => Wake::Session(event),
                Some(report) = self.reports.recv() => Wake::Slot(report),
                event = self.submitted.recv() => match event {
                    Some(event) => Wake::Submit(event),
                    // Nothing would be submitted any more.
                    None => return Err(end_of_task("the submission of bouts", (&mut self.submitter).await)),
                },
                () = sleep_until(time) => Wake::Time,
            };
            match wake {
                Wake::Shutdown => self.drain(Ended::Shutdown, "shutdown requested"),
                Wake::Session(event) => self.handle_session_event(event).await?,
                Wake::Slot(report) => self.handle_report(report),
                Wake::Submit(event) => self.handle_submit_event(event)?,
                Wake::Time => self.tick()?,
            }
            // Reports that arrive together need only one heartbeat.
            while let Ok(report) = self.reports.try_recv() {
                self.handle_report(report);
            }
        }
    }

    /// Ends the threads of the slots, and waits a short time for their engines.
    async fn end_slots(&mut self) {
        self.slots.iter_mut().for_each(Slot::end);
        let deadline = Instant::now() + SLOT_END;
        while !self.slots.iter().all(Slot::has_ended) && Instant::now() < deadline {
            sleep_until(Instant::now() + Duration::from_millis(2)).await;
        }
    }

    fn emit(&self, event: &WorkerEvent) {
        (self.config.on_event)(event);
    }

    /// Returns the time at which [`Worker::tick`] must run.
    fn next_deadline(&self) -> Instant {
        let session = match (&self.session, &self.welcome) {
            (None, _) => Some(self.retry),
            (Some(_), Some(_)) => Some(self.next_heartbeat),
            (Some(_), None) => None,
        };
        let drain = self.draining.as_ref().map(|draining| match draining.interrupted {
            false => draining.interrupt,
            true => draining.deadline,
        });
        let far = || Instant::now() + Duration::from_secs(3600);
        session.into_iter().chain(drain).min().unwrap_or_else(far)
    }

    fn tick(&mut self) -> Result<(), WorkerError> {
        let now = Instant::now();
        if let Some(slot) = self.slots.iter().position(Slot::has_ended) {
            return Err(WorkerError::Task {
                task: format!("slot {slot}"),
                reason: "its thread ended".to_string(),
            });
        }
        match (&self.session, &self.welcome) {
            (None, _) if now >= self.retry => {
                let hello = self.hello();
                self.session = Some(Session::open(&self.config.connector, &hello));
            }
            (Some(_), Some(welcome)) if now >= self.next_heartbeat => {
                self.next_heartbeat = now + welcome.heartbeat;
                self.throttled = self.throttle.sample() && !self.config.timed_when_throttled;
                self.speed = self.slots.iter().map(Slot::speed).sum::<f64>() / self.slots.len() as f64;
                self.send_heartbeat(self.progress());
            }
            _ => {}
        }
        if let Some(draining) = &mut self.draining
            && now >= draining.interrupt
            && !draining.interrupted
        {
            draining.interrupted = true;
            for slot in self.held.busy_slots() {
                self.slots[slot].interrupt();
            }
        }
        Ok(())
    }

    fn hello(&mut self) -> Hello {
        // Keeps the specs of held bouts, and the latest others.
        let held: BTreeSet<&String> = self.held.stages().map(|(lease, _)| &lease.run).collect();
        let surplus = self.runs.len().saturating_sub(MAX_IDLE_SPECS);
        let old: Vec<String> =
            self.runs.iter().take(surplus).filter(|run| !held.contains(run)).cloned().collect();
        for run in old {
            self.specs.remove(&run);
            self.runs.retain(|other| *other != run);
        }
        Hello {
            protocols: PROTOCOLS,
            worker: self.config.name.clone(),
            build: self.config.build.clone(),
            slots: self.config.slots,
            signature: self.signature.clone(),
            speed: self.speed,
            held: self.held.stages().map(|(lease, _)| lease.clone()).collect(),
            // A spec that was changed on its way is sent again.
            specs: self
                .runs
                .iter()
                .filter(|run| self.specs.get(*run).is_some_and(Result::is_ok))
                .cloned()
                .collect(),
            engines: self.config.engines.names().map(str::to_string).collect(),
        }
    }

    async fn handle_session_event(&mut self, event: SessionEvent) -> Result<(), WorkerError> {
        match event {
            SessionEvent::Welcome(welcome) => self.begin_session(welcome),
            SessionEvent::Message(kind) => {
                if let Err(error) = self.handle_message(*kind).await {
                    tracing::warn!(%error, "ignored an invalid message of the coordinator");
                }
            }
            SessionEvent::Rejected(status) => {
                let (code, reason) = (status.code(), clean_reason(status.message()));
                let since = *self.rejected_since.get_or_insert_with(Instant::now);
                if code != Code::Unauthenticated || since.elapsed() >= CREDENTIAL_TIMEOUT {
                    return Err(WorkerError::Rejected { code, reason });
                }
                let retry = self.end_session();
                self.emit(&WorkerEvent::CredentialRejected { reason, retry });
            }
            SessionEvent::Lost(reason) => {
                let retry = self.end_session();
                self.emit(&WorkerEvent::Disconnected { reason, retry });
            }
        }
        Ok(())
    }

    /// Forgets the session. Returns the delay before the next one.
    fn end_session(&mut self) -> Duration {
        self.session = None;
        self.welcome = None;
        self.in_session.send_replace(false);
        let delay = self.backoff.next_delay();
        self.retry = Instant::now() + delay;
        delay
    }

    fn begin_session(&mut self, welcome: Welcome) {
        self.rejected_since = None;
        let adopted: BTreeSet<&Lease> = welcome.adopted.iter().collect();
        let lost: Vec<Lease> = self
            .held
            .stages()
            .map(|(lease, _)| lease)
            .filter(|lease| !adopted.contains(lease))
            .cloned()
            .collect();
        for lease in lost {
            self.drop_bout(&lease, "the coordinator did not adopt it");
        }
        let adopted = self.held.stages().count();
        self.emit(&WorkerEvent::Connected { epoch: welcome.epoch, adopted });
        self.backoff.reset();
        self.grants_received = 0;
        self.reported_room = 0;
        self.reported_full = false;
        self.next_heartbeat = Instant::now();
        self.welcome = Some(welcome);
        self.in_session.send_replace(true);
    }

    async fn handle_message(&mut self, kind: Kind) -> Result<(), WireError> {
        match kind {
            Kind::Welcome(_) => tracing::warn!("ignored a second welcome"),
            Kind::Spec(spec) => self.store_spec(spec).await?,
            Kind::Grant(grant) => {
                self.grants_received += 1;
                self.reported_room = self.reported_room.saturating_sub(1);
                self.accept_grant(LeasedBout::try_from(grant)?);
            }
            Kind::Revoke(revoke) => {
                let revoked = Returned::try_from(revoke)?;
                for lease in &revoked.leases {
                    self.drop_bout(lease, &revoked.reason);
                }
            }
            Kind::Drain(drain) => {
                let reason = clean_reason(&drain.reason);
                self.drain(Ended::Drained { reason: reason.clone() }, &reason);
            }
        }
        Ok(())
    }

    async fn store_spec(&mut self, message: v1::RunSpec) -> Result<(), WireError> {
        let run = message.run;
        let source = SpecSource::try_from(message.spec.ok_or(WireError::Missing { field: "spec" })?)?;
        // Parsing a large opening book takes a while.
        let id = run.clone();
        let parsed = tokio::task::spawn_blocking(move || {
            run_id::check(&id, &source).map_err(|error| error.to_string())?;
            Spec::parse(&source).map_err(|error| format!("this build cannot read the spec: {error}"))
        });
        let parsed = parsed.await.map_err(|panic| format!("this build cannot read the spec: {panic}"));
        let spec = parsed.and_then(|parsed| parsed).map(Arc::new);
        if let Err(reason) = &spec {
            tracing::error!(run, reason, "spec rejected; its bouts are returned");
            let unplayed =
                self.held.stages().filter(|(lease, stage)| lease.run == run && !matches!(stage, Stage::Done));
            let unplayed: Vec<Lease> = unplayed.map(|(lease, _)| lease.clone()).collect();
            unplayed.iter().for_each(|lease| self.drop_bout(lease, reason));
            self.return_leases(unplayed, reason);
        }
        self.runs.retain(|other| *other != run);
        self.runs.push(run.clone());
        self.specs.insert(run, spec);
        Ok(())
    }

    fn accept_grant(&mut self, bout: LeasedBout) {
        let rejection = match self.specs.get(&bout.lease.run) {
            _ if self.draining.is_some() => Some(String::new()),
            None => Some("its spec was not sent".to_string()),
            Some(Err(reason)) => Some(reason.clone()),
            Some(Ok(spec)) => bout.check(spec).err().map(|error| error.to_string()),
        };
        let lease = bout.lease.clone();
        match rejection {
            Some(reason) => self.return_leases(vec![lease], &reason),
            None if self.held.add(bout) => self.emit(&WorkerEvent::Granted { lease }),
            None => tracing::debug!(%lease, "ignored the grant of a held lease"),
        }
    }

    fn return_leases(&mut self, leases: Vec<Lease>, reason: &str) {
        if leases.is_empty() {
            return;
        }
        self.summary.returned += leases.len() as u64;
        self.send_return(leases, reason);
    }

    fn send_return(&self, leases: Vec<Lease>, reason: &str) {
        if let Some(session) = &self.session {
            let returned = Returned { leases, reason: reason.to_string() };
            session.send(worker_message::Kind::Return((&returned).into()));
        }
    }

    /// Returns the number of bouts that the worker can accept.
    fn room(&self) -> usize {
        if self.draining.is_some() {
            return 0;
        }
        (self.config.slots + self.prefetch()).saturating_sub(self.held.pending())
    }

    /// Returns the number of bouts to hold ready beyond those in progress.
    fn prefetch(&self) -> usize {
        let slots = self.config.slots;
        self.config.prefetch.unwrap_or_else(|| match self.bout_time {
            None => slots,
            Some(time) => {
                let bouts = slots as f64 * PREFETCH_TIME.as_secs_f64() / time.as_secs_f64().max(1e-6);
                (bouts.ceil() as usize).clamp(1, slots * MAX_PREFETCH_PER_SLOT)
            }
        })
    }

    /// Sends a heartbeat early if a slot is free, much of the prefetch is used up, or the unacknowledged bytes are within
    /// the window again, and the coordinator does not know it. Progress is left to the regular heartbeat.
    fn report_room(&mut self) {
        let new = self.room().saturating_sub(self.reported_room);
        let room = new > 0 && (self.held.has_free_slot() || 2 * new >= self.prefetch());
        if self.welcome.is_some() && (room || (self.reported_full && !self.is_full())) {
            self.send_heartbeat(Vec::new());
        }
    }

    /// Returns whether the unacknowledged bytes exceed the coordinator's window.
    fn is_full(&self) -> bool {
        let bytes = self.unacknowledged_bytes.load(Ordering::Relaxed);
        self.welcome.as_ref().is_some_and(|welcome| bytes > welcome.window_bytes)
    }

    fn send_heartbeat(&mut self, progress: Vec<Progress>) {
        let Some(session) = self.session.as_ref() else { return };
        self.reported_room = self.room();
        self.reported_full = self.is_full();
        let heartbeat = Heartbeat {
            room: self.reported_room,
            progress,
            unacknowledged_bytes: self.unacknowledged_bytes.load(Ordering::Relaxed),
            grants_received: self.grants_received,
            throttled: self.throttled,
            speed: self.speed,
        };
        session.send(worker_message::Kind::Heartbeat((&heartbeat).into()));
    }

    fn progress(&self) -> Vec<Progress> {
        let progress = |(lease, stage): (&Lease, Stage)| {
            let (started, (game, ply, pulse)) = match stage {
                Stage::Waiting => (false, (0, 0, 0)),
                Stage::Playing(slot) => (true, self.slots[slot].progress()),
                Stage::Done => return None,
            };
            Some(Progress { lease: lease.clone(), started, game, ply, pulse })
        };
        self.held.stages().filter_map(progress).collect()
    }

    fn start_bouts(&mut self) {
        while let Some((slot, leased)) = self.held.start() {
            let Some(Ok(spec)) = self.specs.get(&leased.lease.run) else {
                unreachable!("the specs of held bouts are kept");
            };
            self.slots[slot].play(Job { spec: Arc::clone(spec), leased });
        }
    }

    fn handle_report(&mut self, report: Report) {
        let Report { slot, lease, ending } = report;
        if self.held.stop(slot).is_none() {
            // The bout was dropped before.
            self.submit(Command::SlotStopped(lease));
            return;
        }
        match ending {
            Ending::Finished { played, time, end } => {
                self.submit(Command::Message(lease.clone(), *end));
                self.summary.finished += 1;
                self.summary.games += played.games;
                self.bout_time = Some(self.bout_time.map_or(time, |mean| (mean * 7 + time) / 8));
                self.emit(&WorkerEvent::Finished { lease, games: played.games, plies: played.plies, time });
            }
            Ending::Failed(reason) => {
                self.submit(Command::Message(lease.clone(), failure(&lease, &reason)));
                self.summary.failed += 1;
                self.emit(&WorkerEvent::Failed { lease, reason });
            }
            Ending::Interrupted => {
                self.held.remove(&lease);
                self.summary.abandoned += 1;
                self.submit(Command::Remove(lease.clone()));
                self.send_return(vec![lease], "");
            }
        }
    }

    /// Drops a bout in any stage.
    fn drop_bout(&mut self, lease: &Lease, reason: &str) {
        match self.held.remove(lease) {
            None => return,
            Some(Stage::Waiting) => {}
            Some(Stage::Playing(slot)) => {
                self.summary.abandoned += 1;
                self.slots[slot].interrupt();
                self.submit(Command::Abandon(lease.clone()));
            }
            Some(Stage::Done) => self.submit(Command::Remove(lease.clone())),
        }
        self.emit(&WorkerEvent::Dropped { lease: lease.clone(), reason: reason.to_string() });
    }

    fn submit(&self, command: Command) {
        // The task ends early only after a rejection, which ends the worker.
        let _ = self.submissions.send(command);
    }

    fn handle_submit_event(&mut self, event: SubmitEvent) -> Result<(), WorkerError> {
        let (lease, outcome, reason) = match event {
            SubmitEvent::Acknowledged(lease, outcome, reason) => (lease, outcome, reason),
            SubmitEvent::Rejected { times, reason } => {
                return Err(WorkerError::SubmissionsRejected { times, reason });
            }
        };
        self.summary.committed += u64::from(matches!(outcome, Outcome::Committed | Outcome::Duplicate));
        // The coordinator no longer needs a bout that is acknowledged before its end.
        match self.held.stage(&lease) {
            Some(Stage::Done) => drop(self.held.remove(&lease)),
            _ => self.drop_bout(&lease, &reason),
        }
        self.emit(&WorkerEvent::Acknowledged { lease, outcome, reason });
        Ok(())
    }

    fn drain(&mut self, ended: Ended, reason: &str) {
        if self.draining.is_some() {
            return;
        }
        self.emit(&WorkerEvent::Draining { reason: reason.to_string() });
        self.summary.ended = ended;
        let now = Instant::now();
        let grace = self.config.grace - close_time(self.config.grace);
        // The last part of the grace period is for returning interrupted bouts and for acknowledgements.
        let last = (grace / 4).min(Duration::from_secs(3));
        self.draining =
            Some(Draining { interrupt: now + (grace - last), interrupted: false, deadline: now + grace });
        let waiting = self.held.take_waiting();
        self.return_leases(waiting, "");
        if self.welcome.is_some() {
            self.send_heartbeat(self.progress());
        }
    }

    fn is_drained(&self) -> bool {
        self.draining.as_ref().is_some_and(|draining| {
            let idle = self.held.busy_slots().count() == 0 && self.held.unacknowledged() == 0;
            idle || Instant::now() >= draining.deadline
        })
    }
}

/// Returns the error for a task that ended before the worker.
fn end_of_task(task: &str, ended: Result<(), JoinError>) -> WorkerError {
    let reason = match ended.map_err(JoinError::try_into_panic) {
        Err(Ok(panic)) => format!("it panicked: {}", panic_text(&*panic)),
        Ok(()) | Err(Err(_)) => "it ended early".to_string(),
    };
    WorkerError::Task { task: task.to_string(), reason }
}

async fn next_event(session: &mut Option<Session>) -> SessionEvent {
    match session {
        Some(session) => session.next().await,
        None => pending().await,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use agon_transport::{ClientCredentials, Connector};

    use super::*;

    fn worker() -> Worker {
        let connector = Connector::new("http://127.0.0.1:1", ClientCredentials::default()).unwrap();
        let mut config = Config::new(connector, "tester");
        config.slots = 2;
        Worker::start(config, String::new(), 1.0).unwrap()
    }

    /// Returns the error with which a worker ends.
    async fn end(mut worker: Worker) -> String {
        let ended = tokio::time::timeout(Duration::from_secs(20), worker.run(Box::pin(pending())));
        ended.await.expect("the worker ends").err().unwrap().to_string()
    }

    #[tokio::test]
    async fn ends_with_its_submissions() {
        let mut broken = worker();
        let (events, submitted) = mpsc::unbounded_channel();
        broken.submitted = submitted;
        broken.submitter = tokio::spawn(async move {
            let _events = events;
            panic!("no {}", "memory");
        });
        let error = end(broken).await;
        assert!(error.starts_with("the submission of bouts failed: it panicked: no memory"), "{error}");
        let stopped = worker();
        stopped.submitter.abort();
        let error = end(stopped).await;
        assert!(error.starts_with("the submission of bouts failed: it ended early"), "{error}");
    }

    #[tokio::test]
    async fn ends_with_the_thread_of_a_slot() {
        let mut broken = worker();
        broken.slots[1].end_thread();
        let error = end(broken).await;
        assert!(error.starts_with("slot 1 failed: its thread ended"), "{error}");
    }
}
