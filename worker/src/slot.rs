//! A slot: a thread that plays one bout at a time.
//!
//! Searches occupy a core for long times, so they run on their own threads and not in the tasks that communicate with
//! the coordinator. Errors and panics of players fail the bout, not the worker.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use agon_arena::limit::speed_factor;
use agon_arena::{Arena, Environment, PlayError, PlayerConfig};
use agon_proto::Lease;
use agon_proto::v1::Submission;
use agon_search::SearchControl;
use tokio::sync::mpsc::UnboundedSender;

use crate::engine::Engines;
use crate::pin::pin;
use crate::play::{BoutError, GameProgress, Identity, Job, Played, play};
use crate::speed::{MEASUREMENT_INTERVAL, measure};
use crate::submit::Command;

/// How long a slot without a bout keeps its players.
const IDLE: Duration = Duration::from_secs(30);

/// The end of a slot's bout.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Ending {
    /// The bout was played. Its last message is part of the report, so that no acknowledgement precedes the report.
    Finished {
        /// The size of the bout.
        played: Played,
        /// The playing time.
        time: Duration,
        /// The last message.
        end: Box<Submission>,
    },
    /// The bout cannot be played.
    Failed(String),
    /// The bout was interrupted.
    Interrupted,
}

/// A slot's report at the end of a bout. All messages of the bout but the last were sent before.
pub(crate) struct Report {
    /// The slot.
    pub(crate) slot: usize,
    /// The bout.
    pub(crate) lease: Lease,
    /// The end.
    pub(crate) ending: Ending,
}

/// The handle of a slot. Its thread ends soon after the handle is dropped.
pub(crate) struct Slot {
    jobs: Sender<Job>,
    control: Arc<SearchControl>,
    progress: Arc<GameProgress>,
    speed: Arc<Speed>,
    thread: JoinHandle<()>,
}

/// The nodes per second of a slot, readable from other threads.
struct Speed(AtomicU64);

impl Speed {
    fn set(&self, speed: f64) {
        self.0.store(speed.to_bits(), Ordering::Relaxed);
    }

    fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }
}

impl Slot {
    /// Starts the thread of a slot.
    pub(crate) fn start(
        number: usize,
        identity: Identity,
        pinned: bool,
        speed: f64,
        engines: Arc<Engines>,
        messages: UnboundedSender<Command>,
        reports: UnboundedSender<Report>,
    ) -> std::io::Result<Slot> {
        let (jobs, inbox) = channel();
        let control = Arc::new(SearchControl::default());
        let progress = Arc::new(GameProgress::default());
        let speed = Arc::new(Speed(AtomicU64::new(speed.to_bits())));
        let mut thread = SlotThread {
            number,
            identity,
            control: Arc::clone(&control),
            progress: Arc::clone(&progress),
            speed: Arc::clone(&speed),
            measured: Instant::now(),
            engines,
            messages,
            reports,
            arena: None,
        };
        let thread = std::thread::Builder::new().name(format!("agon-slot-{number}")).spawn(move || {
            if pinned && !pin(number) {
                tracing::warn!(slot = number, "cannot pin the slot to a core");
            }
            thread.run(&inbox);
        })?;
        Ok(Slot { jobs, control, progress, speed, thread })
    }

    /// Starts a bout on a free slot.
    pub(crate) fn play(&self, job: Job) {
        self.control.resume();
        self.progress.reset();
        // Fails if the thread has ended, which the next check of the worker finds.
        let _ = self.jobs.send(job);
    }

    /// Lets the thread end soon, and its engines with it.
    pub(crate) fn end(&mut self) {
        self.jobs = channel().0;
        self.interrupt();
    }

    /// Lets the thread end and waits for it.
    #[cfg(test)]
    pub(crate) fn end_thread(&mut self) {
        self.end();
        while !self.has_ended() {
            std::thread::yield_now();
        }
    }

    /// Returns whether the thread has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Interrupts the bout; the slot's report follows.
    pub(crate) fn interrupt(&self) {
        self.control.interrupt();
    }

    /// Returns the current game, its number of plies, and a number that grows during a search.
    pub(crate) fn progress(&self) -> (u32, u32, u64) {
        let (game, ply) = self.progress.read();
        (game, ply, self.control.pulse())
    }

    /// Returns the nodes per second of the last measurement.
    pub(crate) fn speed(&self) -> f64 {
        self.speed.get()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.interrupt();
    }
}

/// The state of a slot's thread.
struct SlotThread {
    number: usize,
    identity: Identity,
    control: Arc<SearchControl>,
    progress: Arc<GameProgress>,
    speed: Arc<Speed>,
    measured: Instant,
    engines: Arc<Engines>,
    messages: UnboundedSender<Command>,
    reports: UnboundedSender<Report>,
    /// The players of the last run; reused so that their tables are not allocated again.
    arena: Option<(String, Arena)>,
}

impl SlotThread {
    fn run(&mut self, inbox: &Receiver<Job>) {
        loop {
            let job = match inbox.recv_timeout(IDLE) {
                Ok(job) => job,
                Err(RecvTimeoutError::Timeout) => {
                    // Engines and tables of an idle slot would only take memory.
                    self.arena = None;
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let lease = job.leased.lease.clone();
            let ending = self.play(&job);
            // Fails after the worker has ended; then the thread ends too.
            let _ = self.reports.send(Report { slot: self.number, lease, ending });
        }
    }

    fn play(&mut self, job: &Job) -> Ending {
        if self.measured.elapsed() >= MEASUREMENT_INTERVAL {
            self.speed.set(measure().1);
            self.measured = Instant::now();
        }
        let factor = if job.spec.normalise { speed_factor(self.speed.get()) } else { 1.0 };
        let started = Instant::now();
        // After a panic the arena is not stored again, since its state may be invalid.
        let reusable = self.arena.take().filter(|(run, _)| *run == job.leased.lease.run);
        let seat = || match reusable {
            Some((_, arena)) => Ok(arena),
            None => self.create_arena(job),
        };
        let mut send = |message| {
            let _ = self.messages.send(Command::Message(job.leased.lease.clone(), message));
        };
        let result = catch_panic(|| play(job, seat, &self.identity, factor, &self.progress, &mut send));
        // An interrupted search returns early without an error.
        if self.control.is_interrupted() {
            return Ending::Interrupted;
        }
        match result {
            Ok((played, end, arena)) => {
                self.arena = Some((job.leased.lease.run.clone(), arena));
                Ending::Finished { played, time: started.elapsed(), end: Box::new(end) }
            }
            Err(reason) => Ending::Failed(reason),
        }
    }

    fn create_arena(&self, job: &Job) -> Result<Arena, PlayError> {
        let players: Vec<PlayerConfig> =
            job.spec.players.iter().map(|player| player.config.clone()).collect();
        let engines = Arc::<Engines>::clone(&self.engines);
        let environment =
            Environment { control: Arc::clone(&self.control), engines, ..Environment::system() };
        Ok(Arena::new(&job.spec.game, &players, environment)?)
    }
}

/// Runs a closure and turns its panic into an error message.
fn catch_panic<T>(run: impl FnOnce() -> Result<T, BoutError>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(panic) => Err(format!("a player panicked: {}", panic_text(panic.as_ref()))),
    }
}

/// Returns the message of a panic.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("unknown reason")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn catches_panics_with_their_message() {
        let message = catch_panic::<()>(|| panic!("no move {}", 7)).unwrap_err();
        assert_eq!(message, "a player panicked: no move 7");
        assert_eq!(catch_panic::<()>(|| panic!("plain")).unwrap_err(), "a player panicked: plain");
        assert_eq!(catch_panic::<()>(|| Err(PlayError::Interrupted.into())).unwrap_err(), "interrupted");
        assert_eq!(catch_panic(|| Ok(1)), Ok(1));
    }
}
