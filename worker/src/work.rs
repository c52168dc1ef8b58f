//! The worker: one task that owns what is held, hears the coordinator and the slots, and says what happens next.
//!
//! It keeps working while the coordinator is away: slots go on with what is held, and sessions are tried again until one
//! is welcomed. Only three things end it: its caller, the coordinator's drain, and a refusal that no repetition mends.

use std::collections::{BTreeMap, BTreeSet};
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use agon_arena::{Spec, SpecSource};
use agon_proto::limits::{MAX_BUILD, MAX_SLOTS, MAX_WORKER_NAME};
use agon_proto::v1::coordinator_message::Kind;
use agon_proto::v1::{Outcome, worker_message};
use agon_proto::write::failure;
use agon_proto::{Bout, Heartbeat, Hello, Lease, PROTOCOLS, Progress, Returned, Welcome, WireError, v1};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use crate::backoff::Backoff;
use crate::config::Config;
use crate::error::WorkerError;
use crate::event::{Ended, Summary, WorkerEvent};
use crate::holdings::{Holdings, Stage};
use crate::play::{Identity, Job};
use crate::session::{Session, SessionEvent};
use crate::slot::{Ending, Report, Slot};
use crate::speed::{Throttle, measure_loaded};
use crate::submit::{Command, SubmitEvent, Submitter};

/// What is held ready must last so long, whatever the round trip and the coordinator's disk take.
const AHEAD: Duration = Duration::from_millis(200);

/// The most bouts held ready for each slot.
const MOST_AHEAD: usize = 256;

/// Specs of runs that are not held are kept from one session to the next up to this many.
const KEPT_SPECS: usize = 16;

/// Works until `shutdown` is ready, the coordinator drains the worker or refuses it. After `shutdown` it returns within
/// the grace of its configuration. Threads of slots that are interrupted end on their own soon after.
pub fn run(
    config: Config,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Eventually<Result<Summary, WorkerError>> {
    start(config, Box::pin(shutdown))
}

/// What is boxed is compiled here, once, and not with everybody who waits for it.
type Eventually<T> = Pin<Box<dyn Future<Output = T> + Send>>;

fn start(config: Config, shutdown: Eventually<()>) -> Eventually<Result<Summary, WorkerError>> {
    Box::pin(run_to_end(config, shutdown))
}

async fn run_to_end(config: Config, shutdown: Eventually<()>) -> Result<Summary, WorkerError> {
    check(&config)?;
    let slots = config.slots;
    let measured = tokio::task::spawn_blocking(move || measure_loaded(slots)).await;
    let (answers, speed) = measured.expect("the fixed searches do not panic");
    let mut worker = Worker::start(config, answers.signature, speed)?;
    let outcome = worker.work(shutdown).await;
    if let Some(session) = worker.session.take() {
        session.close(farewell(worker.config.grace)).await;
    }
    outcome
}

/// The very last part of a grace, in which the last messages of the session leave.
fn farewell(grace: Duration) -> Duration {
    (grace / 8).min(Duration::from_millis(500))
}

fn check(config: &Config) -> Result<(), WorkerError> {
    let wrong = |reason: String| Err(WorkerError::Config(reason));
    if config.slots == 0 || config.slots > MAX_SLOTS {
        return wrong(format!("a worker has 1 to {MAX_SLOTS} slots, not {}", config.slots));
    }
    let sound =
        |text: &str, most| !text.is_empty() && text.len() <= most && !text.chars().any(char::is_control);
    let (name, build) = (&config.name, &config.build);
    if !sound(build, MAX_BUILD) {
        return wrong(format!("a build's name has 1 to {MAX_BUILD} printable characters, not {build:?}"));
    }
    if !sound(name, MAX_WORKER_NAME) {
        return wrong(format!(
            "a worker's name has 1 to {MAX_WORKER_NAME} printable characters, not {name:?}"
        ));
    }
    Ok(())
}

struct Worker {
    config: Config,
    signature: String,
    speed: f64,
    throttle: Throttle,
    throttled: bool,
    slots: Vec<Slot>,
    reports: mpsc::UnboundedReceiver<Report>,
    held: Holdings,
    /// The specs of runs, or why they cannot be played.
    specs: BTreeMap<String, Result<Arc<Spec>, String>>,
    /// Runs in the order in which their specs came.
    runs: Vec<String>,
    session: Option<Session>,
    /// What the coordinator said in its welcome; none while there is no session or it is not welcomed.
    welcome: Option<Welcome>,
    backoff: Backoff,
    /// When the next session is tried; meaningless while there is one.
    retry: Instant,
    next_heartbeat: Instant,
    grants_received: u64,
    /// The room that the coordinator knows of.
    told_room: usize,
    /// Whether the coordinator was told of more unacknowledged bytes than it wants to see.
    told_full: bool,
    /// The mean time of a bout, by exponential smoothing.
    pace: Option<Duration>,
    submissions: mpsc::UnboundedSender<Command>,
    submitted: mpsc::UnboundedReceiver<SubmitEvent>,
    may_submit: watch::Sender<bool>,
    unacknowledged_bytes: Arc<AtomicU64>,
    draining: Option<Draining>,
    summary: Summary,
}

/// How far the end is.
struct Draining {
    /// When what is still played is given up.
    interrupt: Instant,
    interrupted: bool,
    /// When the worker ends, whatever is left.
    deadline: Instant,
}

/// What woke the worker.
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
        let (may_submit, welcome) = watch::channel(false);
        let unacknowledged_bytes = Arc::new(AtomicU64::new(0));
        let identity = Identity { worker: config.name.clone(), build: config.build.clone() };
        let slot = |number| {
            Slot::start(number, identity.clone(), config.pin, speed, submissions.clone(), report.clone())
        };
        let slots = (0..config.slots).map(slot).collect::<Result<_, _>>()?;
        let submitter = Submitter {
            connector: config.connector.clone(),
            backoff: Backoff::new(&config.name, 1),
            commands,
            events,
            welcome,
            bytes: Arc::clone(&unacknowledged_bytes),
        };
        tokio::spawn(submitter.run());
        let now = Instant::now();
        Ok(Worker {
            signature,
            speed,
            throttle: Throttle::start(),
            throttled: false,
            slots,
            reports,
            held: Holdings::new(config.slots),
            specs: BTreeMap::new(),
            runs: Vec::new(),
            session: None,
            welcome: None,
            backoff: Backoff::new(&config.name, 0),
            retry: now,
            next_heartbeat: now,
            grants_received: 0,
            told_room: 0,
            told_full: false,
            pace: None,
            submissions,
            submitted,
            may_submit,
            unacknowledged_bytes,
            draining: None,
            summary: Summary {
                ended: Ended::Shutdown,
                finished: 0,
                games: 0,
                failed: 0,
                committed: 0,
                returned: 0,
                abandoned: 0,
                unacknowledged: 0,
            },
            config,
        })
    }

    async fn work(&mut self, mut shutdown: Eventually<()>) -> Result<Summary, WorkerError> {
        loop {
            self.start_bouts();
            self.tell_room();
            if self.is_drained() {
                self.summary.unacknowledged = self.held.unacknowledged() as u64;
                // Slots that have not heard of their interruption by the deadline are left to themselves.
                self.summary.abandoned += self.held.busy().count() as u64;
                return Ok(self.summary.clone());
            }
            let time = self.next_time();
            let wake = tokio::select! {
                () = &mut shutdown, if self.draining.is_none() => Wake::Shutdown,
                event = next_event(&mut self.session) => Wake::Session(event),
                Some(report) = self.reports.recv() => Wake::Slot(report),
                Some(event) = self.submitted.recv() => Wake::Submit(event),
                () = sleep_until(time) => Wake::Time,
            };
            match wake {
                Wake::Shutdown => self.drain(Ended::Shutdown, "the worker is told to stop"),
                Wake::Session(event) => self.hear(event).await?,
                Wake::Slot(report) => self.stopped(report),
                Wake::Submit(event) => self.settle(event)?,
                Wake::Time => self.tick(),
            }
            // Slots that ended at the same time are one reason to speak, not many.
            while let Ok(report) = self.reports.try_recv() {
                self.stopped(report);
            }
        }
    }

    fn tell(&self, event: &WorkerEvent) {
        (self.config.watch)(event);
    }

    // ------------------------------------------------------------------------------------------------- the session

    /// When there is something to do even if nothing happens.
    fn next_time(&self) -> Instant {
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

    fn tick(&mut self) {
        let now = Instant::now();
        match (&self.session, &self.welcome) {
            (None, _) if now >= self.retry => {
                let hello = self.hello();
                self.session = Some(Session::open(&self.config.connector, &hello));
            }
            (Some(_), Some(welcome)) if now >= self.next_heartbeat => {
                self.next_heartbeat = now + welcome.heartbeat;
                self.throttled = self.throttle.sample() && !self.config.timed_when_throttled;
                self.speed = self.slots.iter().map(Slot::speed).sum::<f64>() / self.slots.len() as f64;
                self.heartbeat(self.progress());
            }
            _ => {}
        }
        if let Some(draining) = &mut self.draining
            && now >= draining.interrupt
            && !draining.interrupted
        {
            draining.interrupted = true;
            for slot in self.held.busy() {
                self.slots[slot].interrupt();
            }
        }
    }

    fn hello(&mut self) -> Hello {
        // What a run needs is kept while its bouts are held; of others only the latest.
        let held: BTreeSet<&String> = self.held.stages().map(|(lease, _)| &lease.run).collect();
        let surplus = self.runs.len().saturating_sub(KEPT_SPECS);
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
            specs: self.runs.clone(),
        }
    }

    async fn hear(&mut self, event: SessionEvent) -> Result<(), WorkerError> {
        match event {
            SessionEvent::Welcome(welcome) => self.welcomed(welcome),
            SessionEvent::Message(kind) => {
                if let Err(error) = self.obey(*kind).await {
                    tracing::warn!(%error, "a message of the coordinator is ignored");
                }
            }
            SessionEvent::Refused(status) => {
                let (code, reason) = (status.code(), status.message().to_string());
                return Err(WorkerError::Refused { code, reason });
            }
            SessionEvent::Lost(reason) => {
                self.session = None;
                self.welcome = None;
                self.may_submit.send_replace(false);
                let retry = self.backoff.wait();
                self.retry = Instant::now() + retry;
                self.tell(&WorkerEvent::Disconnected { reason, retry });
            }
        }
        Ok(())
    }

    fn welcomed(&mut self, welcome: Welcome) {
        let adopted: BTreeSet<&Lease> = welcome.adopted.iter().collect();
        let lost: Vec<Lease> = self
            .held
            .stages()
            .map(|(lease, _)| lease)
            .filter(|lease| !adopted.contains(lease))
            .cloned()
            .collect();
        for lease in lost {
            self.give_up(&lease, "the coordinator did not adopt it");
        }
        let adopted = self.held.stages().count();
        self.tell(&WorkerEvent::Connected { epoch: welcome.epoch, adopted });
        self.backoff.reset();
        self.grants_received = 0;
        self.told_room = 0;
        self.told_full = false;
        self.next_heartbeat = Instant::now();
        self.welcome = Some(welcome);
        self.may_submit.send_replace(true);
    }

    async fn obey(&mut self, kind: Kind) -> Result<(), WireError> {
        match kind {
            Kind::Welcome(_) => tracing::warn!("a second welcome is ignored"),
            Kind::Spec(spec) => self.learn(spec).await?,
            Kind::Grant(grant) => {
                self.grants_received += 1;
                self.told_room = self.told_room.saturating_sub(1);
                self.granted(Bout::try_from(grant)?);
            }
            Kind::Revoke(revoke) => {
                let revoked = Returned::try_from(revoke)?;
                for lease in &revoked.leases {
                    self.give_up(lease, &revoked.reason);
                }
            }
            Kind::Drain(drain) => {
                let reason = agon_proto::session::shortened(&drain.reason);
                self.drain(Ended::Drained { reason: reason.clone() }, &reason);
            }
        }
        Ok(())
    }

    async fn learn(&mut self, message: v1::RunSpec) -> Result<(), WireError> {
        let run = message.run;
        let source = SpecSource::try_from(message.spec.ok_or(WireError::Missing { field: "spec" })?)?;
        // A long book of openings takes a while to read.
        let parsed = tokio::task::spawn_blocking(move || Spec::parse(&source)).await;
        let spec = match parsed {
            Ok(Ok(spec)) => Ok(Arc::new(spec)),
            Ok(Err(error)) => Err(format!("this build cannot read the spec: {error}")),
            Err(panic) => Err(format!("this build cannot read the spec: {panic}")),
        };
        self.runs.retain(|other| *other != run);
        self.runs.push(run.clone());
        self.specs.insert(run, spec);
        Ok(())
    }

    fn granted(&mut self, bout: Bout) {
        let refusal = match self.specs.get(&bout.lease.run) {
            _ if self.draining.is_some() => Some(String::new()),
            None => Some("its spec was not sent".to_string()),
            Some(Err(reason)) => Some(reason.clone()),
            Some(Ok(spec)) => bout.fits(spec).err().map(|error| error.to_string()),
        };
        let lease = bout.lease.clone();
        match refusal {
            Some(reason) => self.give_back(vec![lease], &reason),
            None if self.held.grant(bout) => self.tell(&WorkerEvent::Granted { lease }),
            None => tracing::debug!(%lease, "a lease that is held already was granted again"),
        }
    }

    fn give_back(&mut self, leases: Vec<Lease>, reason: &str) {
        if leases.is_empty() {
            return;
        }
        self.summary.returned += leases.len() as u64;
        self.say_returned(leases, reason);
    }

    fn say_returned(&self, leases: Vec<Lease>, reason: &str) {
        if let Some(session) = &self.session {
            let returned = Returned { leases, reason: reason.to_string() };
            session.send(worker_message::Kind::Return((&returned).into()));
        }
    }

    // ---------------------------------------------------------------------------------------------------- heartbeats

    fn room(&self) -> usize {
        if self.draining.is_some() {
            return 0;
        }
        (self.config.slots + self.prefetch()).saturating_sub(self.held.to_play())
    }

    /// How many bouts are held ready beyond those that are played.
    fn prefetch(&self) -> usize {
        let slots = self.config.slots;
        self.config.prefetch.unwrap_or_else(|| match self.pace {
            None => slots,
            Some(pace) => {
                let bouts = slots as f64 * AHEAD.as_secs_f64() / pace.as_secs_f64().max(1e-6);
                (bouts.ceil() as usize).clamp(1, slots * MOST_AHEAD)
            }
        })
    }

    /// Speaks at once when a slot has nothing to do, much of what is held ready is used up, or bytes are within the
    /// window again, and the coordinator does not know it yet. What is played is left to the next regular heartbeat.
    fn tell_room(&mut self) {
        let news = self.room().saturating_sub(self.told_room);
        let room = news > 0 && (self.held.idle() || 2 * news >= self.prefetch());
        if self.welcome.is_some() && (room || (self.told_full && !self.is_full())) {
            self.heartbeat(Vec::new());
        }
    }

    /// Whether more bytes are unacknowledged than the coordinator wants to see.
    fn is_full(&self) -> bool {
        let bytes = self.unacknowledged_bytes.load(Ordering::Relaxed);
        self.welcome.as_ref().is_some_and(|welcome| bytes > welcome.window_bytes)
    }

    fn heartbeat(&mut self, progress: Vec<Progress>) {
        let Some(session) = self.session.as_ref() else { return };
        self.told_room = self.room();
        self.told_full = self.is_full();
        let heartbeat = Heartbeat {
            room: self.told_room,
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

    // --------------------------------------------------------------------------------------------------------- bouts

    fn start_bouts(&mut self) {
        while let Some((slot, bout)) = self.held.start() {
            let Some(Ok(spec)) = self.specs.get(&bout.lease.run) else {
                unreachable!("a bout is held only while its spec is");
            };
            self.slots[slot].give(Job { spec: Arc::clone(spec), bout });
        }
    }

    /// A slot has stopped.
    fn stopped(&mut self, report: Report) {
        let Report { slot, lease, ending } = report;
        if self.held.stopped(slot).is_none() {
            // It was given up before.
            self.submit(Command::Stopped(lease));
            return;
        }
        match ending {
            Ending::Finished { played, time, end } => {
                self.submit(Command::Message(lease.clone(), *end));
                self.summary.finished += 1;
                self.summary.games += played.games;
                self.pace = Some(self.pace.map_or(time, |pace| (pace * 7 + time) / 8));
                self.tell(&WorkerEvent::Finished { lease, games: played.games, plies: played.plies, time });
            }
            Ending::Failed(reason) => {
                self.submit(Command::Message(lease.clone(), failure(&lease, &reason)));
                self.summary.failed += 1;
                self.tell(&WorkerEvent::Failed { lease, reason });
            }
            Ending::Interrupted => {
                self.held.forget(&lease);
                self.summary.abandoned += 1;
                self.submit(Command::Forget(lease.clone()));
                self.say_returned(vec![lease], "");
            }
        }
    }

    /// A bout is not wanted any more, wherever it is.
    fn give_up(&mut self, lease: &Lease, reason: &str) {
        match self.held.forget(lease) {
            None => return,
            Some(Stage::Waiting) => {}
            Some(Stage::Playing(slot)) => {
                self.summary.abandoned += 1;
                self.slots[slot].interrupt();
                self.submit(Command::ForgetAhead(lease.clone()));
            }
            Some(Stage::Done) => self.submit(Command::Forget(lease.clone())),
        }
        self.tell(&WorkerEvent::Dropped { lease: lease.clone(), reason: reason.to_string() });
    }

    fn submit(&self, command: Command) {
        // The task ends early only after an event that ends the worker.
        let _ = self.submissions.send(command);
    }

    fn settle(&mut self, event: SubmitEvent) -> Result<(), WorkerError> {
        let (lease, outcome, reason) = match event {
            SubmitEvent::Acknowledged(lease, outcome, reason) => (lease, outcome, reason),
            SubmitEvent::Refused { times, reason } => {
                return Err(WorkerError::SubmissionsRefused { times, reason });
            }
        };
        self.summary.committed += u64::from(matches!(outcome, Outcome::Committed | Outcome::Duplicate));
        // One that is not yet played to its end is not wanted any more.
        match self.held.stage(&lease) {
            Some(Stage::Done) => drop(self.held.forget(&lease)),
            _ => self.give_up(&lease, &reason),
        }
        self.tell(&WorkerEvent::Acknowledged { lease, outcome, reason });
        Ok(())
    }

    // ------------------------------------------------------------------------------------------------------- the end

    fn drain(&mut self, ended: Ended, reason: &str) {
        if self.draining.is_some() {
            return;
        }
        self.tell(&WorkerEvent::Draining { reason: reason.to_string() });
        self.summary.ended = ended;
        let now = Instant::now();
        let grace = self.config.grace - farewell(self.config.grace);
        // The last part of the grace is for giving back what is interrupted and for acknowledgements.
        let last = (grace / 4).min(Duration::from_secs(3));
        self.draining =
            Some(Draining { interrupt: now + (grace - last), interrupted: false, deadline: now + grace });
        let waiting = self.held.take_waiting();
        self.give_back(waiting, "");
        if self.welcome.is_some() {
            self.heartbeat(self.progress());
        }
    }

    fn is_drained(&self) -> bool {
        self.draining.as_ref().is_some_and(|draining| {
            let idle = self.held.busy().count() == 0 && self.held.unacknowledged() == 0;
            idle || Instant::now() >= draining.deadline
        })
    }
}

async fn next_event(session: &mut Option<Session>) -> SessionEvent {
    match session {
        Some(session) => session.next().await,
        None => pending().await,
    }
}
