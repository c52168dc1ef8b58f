//! The owner of the durable state: one thread that judges commands, writes their events and applies them.
//!
//! Commands that arrive while a transaction is being synced share the next one, so that one sync serves many bouts. The
//! commands of a group do not depend on each other. Their events are applied in memory after the transaction is on disk, and
//! only then are the callers answered: what is not durable is neither counted nor acknowledged, and a failed transaction
//! leaves nothing to undo. A caller that hangs up loses only the answer.

use std::any::Any;
use std::collections::{BTreeSet, HashSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak, mpsc};
use std::time::Duration;

use tokio::sync::oneshot;
use tracing::warn;

use crate::durable::runs::Decide;
use crate::durable::{Append, Command, Durable, Event, Scope};
use crate::leases::BoutKey;
use crate::state::{Coordinator, Fatal, WriteTarget};
use crate::store::{Store, StoreError};

/// The maximum number of commands in one transaction.
const MAX_COMMANDS: usize = 512;
/// The delay before a write to a full disk, or to a state that another process has locked, is retried.
const WRITE_RETRY: Duration = Duration::from_millis(if cfg!(test) { 1 } else { 1000 });

/// The commands that wait for the owner.
pub(crate) type Inbox = mpsc::Receiver<Box<dyn Job>>;

/// A command on its way, with the answer to its caller.
pub(crate) trait Job: Send {
    fn scope(&self) -> Scope;
    fn decide(&mut self, durable: &Durable) -> Vec<Event>;
    /// Returns whether the command waits while the state cannot be written. Others fail.
    fn waits(&self) -> bool;
    /// Answers the caller, who may have hung up.
    fn answer(self: Box<Self>, written: Result<(), StoreError>);
}

pub(crate) struct Pending<C: Command> {
    /// The command, until it is judged.
    command: Option<C>,
    answer: Option<C::Answer>,
    caller: Option<oneshot::Sender<Result<C::Answer, StoreError>>>,
    waits: bool,
}

impl<C: Command> Pending<C> {
    /// Returns a command that nobody waits for.
    fn unattended(command: C) -> Box<dyn Job> {
        Box::new(Pending { command: Some(command), answer: None, caller: None, waits: true })
    }

    /// Returns a command and the place where its answer arrives.
    pub(crate) fn attended(command: C, waits: bool) -> (Box<dyn Job>, Answer<C>) {
        let (caller, answer) = oneshot::channel();
        let job = Pending { command: Some(command), answer: None, caller: Some(caller), waits };
        (Box::new(job), answer)
    }
}

/// Where the answer to a command arrives.
pub(crate) type Answer<C> = oneshot::Receiver<Result<<C as Command>::Answer, StoreError>>;

impl<C: Command> Job for Pending<C>
where
    C::Answer: Send,
{
    fn scope(&self) -> Scope {
        self.command.as_ref().map_or(Scope::Addition, C::scope)
    }

    fn decide(&mut self, durable: &Durable) -> Vec<Event> {
        let Some(command) = self.command.take() else { return Vec::new() };
        let (events, answer) = command.decide(durable);
        self.answer = Some(answer);
        events
    }

    fn waits(&self) -> bool {
        self.waits
    }

    fn answer(self: Box<Self>, written: Result<(), StoreError>) {
        let Pending { answer, caller, .. } = *self;
        if let Some(caller) = caller {
            let _ = caller.send(written.and_then(|()| answer.ok_or(StoreError::Closed)));
        }
    }
}

impl Coordinator {
    /// Executes a command. Fails if the state cannot be written for now.
    pub(crate) async fn execute<C: Command>(&self, command: C) -> Result<C::Answer, StoreError> {
        self.send(command, false).await
    }

    /// Executes a command. Waits while the state cannot be written; if it never can, the process ends.
    pub(crate) async fn commit<C: Command>(&self, command: C) -> C::Answer {
        match self.send(command, true).await {
            Ok(answer) => answer,
            Err(_) => std::future::pending().await,
        }
    }

    async fn send<C: Command>(&self, command: C, waits: bool) -> Result<C::Answer, StoreError> {
        let (job, answer) = Pending::attended(command, waits);
        self.jobs.send(job).map_err(|_| StoreError::Closed)?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    /// Waits until all earlier commands are executed, unless the state cannot be written for now.
    pub(crate) async fn settle(&self) {
        let _ = self.execute(Append(Vec::new())).await;
    }

    /// Executes a command in the background.
    pub(crate) fn post<C: Command>(&self, command: C) {
        // An owner that has ended has ended the process too.
        let _ = self.jobs.send(Pending::unattended(command));
    }
}

/// Starts the owner of a store. It ends when the coordinator is dropped.
pub(crate) fn start(coordinator: &Arc<Coordinator>, store: Store, inbox: Inbox) -> Result<(), StoreError> {
    let weak = Arc::downgrade(coordinator);
    let work = move || {
        let worked = catch_unwind(AssertUnwindSafe(|| run(&weak, store, &inbox)));
        let failure = match worked {
            Ok(Ok(())) => return,
            Ok(Err(failure)) => Fatal::Store(failure),
            Err(panic) => Fatal::Task { task: "the owner of the state", reason: panic_text(&*panic) },
        };
        if let Some(coordinator) = weak.upgrade() {
            coordinator.fail(failure);
        }
    };
    let thread = std::thread::Builder::new().name("state".to_string()).spawn(work);
    thread.map(drop).map_err(|error| StoreError::Failed(error.to_string()))
}

/// Returns the message of a panic.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no reason".to_string())
}

/// Executes commands in groups until all senders are gone.
fn run(coordinator: &Weak<Coordinator>, mut store: Store, inbox: &Inbox) -> Result<(), StoreError> {
    // Commands that were received but not judged yet.
    let mut waiting: VecDeque<Box<dyn Job>> = VecDeque::new();
    loop {
        if waiting.is_empty() {
            let Ok(job) = inbox.recv() else { return Ok(()) };
            waiting.push_back(job);
        }
        let Some(coordinator) = coordinator.upgrade() else { return Ok(()) };
        let mut group = Group::default();
        while group.jobs.len() < MAX_COMMANDS
            && let Some(job) = waiting.pop_front().or_else(|| inbox.try_recv().ok())
        {
            if let Err(job) = group.add(job) {
                waiting.push_front(job);
                break;
            }
        }
        let verdicts = execute_group(&coordinator, &mut store, group, inbox, &mut waiting)?;
        for run in verdicts {
            waiting.push_front(Pending::unattended(Decide { run }));
        }
    }
}

/// Commands of one transaction, none of which depends on another.
#[derive(Default)]
pub(crate) struct Group {
    jobs: Vec<Box<dyn Job>>,
    bouts: HashSet<BoutKey>,
    /// Runs with bouts in the group, and runs that are in the group as a whole.
    bout_runs: HashSet<String>,
    runs: HashSet<String>,
    workers: HashSet<String>,
    /// Whether the group is one command that depends on all others.
    is_closed: bool,
}

impl Group {
    /// Adds a job, or returns it if it depends on one of the group.
    pub(crate) fn add(&mut self, job: Box<dyn Job>) -> Result<(), Box<dyn Job>> {
        if self.is_closed {
            return Err(job);
        }
        let is_independent = match job.scope() {
            Scope::Addition => true,
            Scope::Bout(key) => {
                let free = !self.runs.contains(&key.run);
                self.bout_runs.insert(key.run.clone());
                free && self.bouts.insert(key)
            }
            Scope::Run(id) => !self.bout_runs.contains(&id) && self.runs.insert(id),
            Scope::Worker(name) => self.workers.insert(name),
            Scope::Everything => {
                self.is_closed = self.jobs.is_empty();
                self.is_closed
            }
        };
        if !is_independent {
            return Err(job);
        }
        self.jobs.push(job);
        Ok(())
    }
}

/// Judges, writes, applies and answers a group. Returns the runs whose tests have decided.
pub(crate) fn execute_group(
    coordinator: &Arc<Coordinator>,
    store: &mut Store,
    mut group: Group,
    inbox: &Inbox,
    waiting: &mut VecDeque<Box<dyn Job>>,
) -> Result<BTreeSet<String>, StoreError> {
    coordinator.begin_write();
    let mut decided: Vec<(Box<dyn Job>, Vec<Event>)> = {
        let state = coordinator.lock();
        let decide = |mut job: Box<dyn Job>| {
            let events = job.decide(&state.durable);
            (job, events)
        };
        group.jobs.drain(..).map(decide).collect()
    };
    loop {
        let written = if decided.iter().any(|(_, events)| !events.is_empty()) {
            store.write(decided.iter().flat_map(|(_, events)| events))
        } else if coordinator.has_write_fault(WriteTarget::State) {
            // Without a write nothing shows that the fault is over.
            store.probe()
        } else {
            Ok(())
        };
        match written {
            Ok(()) => break,
            Err(fault @ (StoreError::Full | StoreError::Locked)) => {
                coordinator.set_write_fault(WriteTarget::State, Some(fault.to_string()));
                decided = fail_impatient(decided, &fault);
                std::thread::sleep(WRITE_RETRY);
                waiting.extend(inbox.try_iter());
                let unjudged = waiting.drain(..).map(|job| (job, Vec::new())).collect();
                waiting.extend(fail_impatient(unjudged, &fault).into_iter().map(|(job, _)| job));
            }
            Err(failure) => {
                warn!(%failure, "transaction failed");
                for (job, _) in decided {
                    job.answer(Err(failure.clone()));
                }
                return Err(failure);
            }
        }
    }
    coordinator.set_write_fault(WriteTarget::State, None);
    let mut events = Vec::new();
    let mut jobs = Vec::with_capacity(decided.len());
    for (job, decided) in decided {
        jobs.push(job);
        events.extend(decided);
    }
    let verdicts = coordinator.apply(events);
    coordinator.end_write();
    for job in jobs {
        job.answer(Ok(()));
    }
    Ok(verdicts)
}

/// Fails the jobs that do not wait until the state can be written, and returns the others.
fn fail_impatient(
    jobs: Vec<(Box<dyn Job>, Vec<Event>)>,
    fault: &StoreError,
) -> Vec<(Box<dyn Job>, Vec<Event>)> {
    let (kept, failed): (Vec<_>, Vec<_>) = jobs.into_iter().partition(|(job, _)| job.waits());
    for (job, _) in failed {
        job.answer(Err(fault.clone()));
    }
    kept
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::audit::{AuditKind, Entry};
    use crate::durable::workers::Hold;
    use crate::fixtures::coordinator_and_disk;

    fn entry() -> Append {
        Append(vec![Event::Audited(Entry::new(AuditKind::Throttled, "no reason"))])
    }

    #[tokio::test]
    async fn full_disk_stops_grants_until_a_write_succeeds() {
        let folder = tempfile::tempdir().unwrap();
        let (coordinator, is_full) = coordinator_and_disk(folder.path()).await;
        let has_fault = || coordinator.has_write_fault(WriteTarget::State);
        is_full.store(true, Ordering::Relaxed);
        assert_eq!(coordinator.execute(entry()).await, Err(StoreError::Full));
        // No command waits: nothing is left to write.
        tokio::time::sleep(WRITE_RETRY * 2).await;
        assert!(has_fault(), "the disk is full");
        is_full.store(false, Ordering::Relaxed);
        coordinator.commit(Hold { worker: "w".to_string(), holds: true }).await;
        assert!(!has_fault());
    }

    #[tokio::test]
    async fn grants_resume_without_a_command_when_there_is_space() {
        let folder = tempfile::tempdir().unwrap();
        let (coordinator, is_full) = coordinator_and_disk(folder.path()).await;
        is_full.store(true, Ordering::Relaxed);
        assert_eq!(coordinator.execute(entry()).await, Err(StoreError::Full));
        is_full.store(false, Ordering::Relaxed);
        while coordinator.has_write_fault(WriteTarget::State) {
            tokio::time::sleep(WRITE_RETRY / 10).await;
        }
    }

    #[tokio::test]
    async fn stuck_owner_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let (coordinator, is_full) = coordinator_and_disk(folder.path()).await;
        coordinator.execute(entry()).await.unwrap();
        coordinator.passed_ms.fetch_add(6000, Ordering::Relaxed);
        assert_eq!(coordinator.stuck_for(), None, "it has nothing to write");
        is_full.store(true, Ordering::Relaxed);
        coordinator.execute(entry()).await.unwrap_err();
        coordinator.passed_ms.fetch_add(6000, Ordering::Relaxed);
        assert_eq!(coordinator.stuck_for().map(|stuck| stuck.as_secs()), Some(6));
        is_full.store(false, Ordering::Relaxed);
        coordinator.commit(entry()).await;
        assert_eq!(coordinator.stuck_for(), None);
    }

    /// Another process holds the write lock of the state for longer than the busy timeout.
    #[tokio::test]
    async fn locked_state_stops_grants_until_it_is_free() {
        let folder = tempfile::tempdir().unwrap();
        let (coordinator, _) = coordinator_and_disk(folder.path()).await;
        let other = rusqlite::Connection::open(folder.path().join("state")).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        assert_eq!(coordinator.execute(entry()).await, Err(StoreError::Locked));
        assert!(coordinator.has_write_fault(WriteTarget::State));
        other.execute_batch("COMMIT").unwrap();
        coordinator.commit(entry()).await;
        assert!(!coordinator.has_write_fault(WriteTarget::State));
    }
}
