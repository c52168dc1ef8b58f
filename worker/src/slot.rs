//! A slot: a thread that plays one bout at a time.
//!
//! Searches keep a core busy for as long as they like, so they run on threads of their own and never in the tasks that
//! speak with the coordinator. Whatever goes wrong in a player is the failure of its bout and not of the worker.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use agon_arena::limit::speed_factor;
use agon_arena::{Arena, Environment, PlayError, PlayerConfig};
use agon_proto::Lease;
use agon_proto::v1::Submission;
use agon_search::SearchControl;
use tokio::sync::mpsc::UnboundedSender;

use crate::pin::pin;
use crate::play::{Identity, Job, PlayFault, Played, Tally, play};
use crate::speed::{MEASURED_FOR, measure};
use crate::submit::Command;

/// How the bout of a slot ended.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Ending {
    /// It was played. Its last message comes with the report, so that no acknowledgement overtakes it.
    Finished {
        /// What was played.
        played: Played,
        /// How long it took.
        time: Duration,
        /// The last message.
        end: Box<Submission>,
    },
    /// It cannot be played here.
    Failed(String),
    /// It was interrupted.
    Interrupted,
}

/// What a slot tells when its bout has ended; all messages of the bout but the last went out before.
pub(crate) struct Report {
    /// The slot.
    pub(crate) slot: usize,
    /// The bout.
    pub(crate) lease: Lease,
    /// How it ended.
    pub(crate) ending: Ending,
}

/// The handle of a slot. Its thread ends soon after the handle is dropped.
pub(crate) struct Slot {
    jobs: Sender<Job>,
    control: Arc<SearchControl>,
    tally: Arc<Tally>,
    speed: Arc<Speed>,
}

/// Nodes a second of a slot, for another thread to read.
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
        messages: UnboundedSender<Command>,
        reports: UnboundedSender<Report>,
    ) -> std::io::Result<Slot> {
        let (jobs, inbox) = channel();
        let control = Arc::new(SearchControl::default());
        let tally = Arc::new(Tally::default());
        let speed = Arc::new(Speed(AtomicU64::new(speed.to_bits())));
        let mut player = Player {
            number,
            identity,
            control: Arc::clone(&control),
            tally: Arc::clone(&tally),
            speed: Arc::clone(&speed),
            measured: Instant::now(),
            messages,
            reports,
            arena: None,
        };
        std::thread::Builder::new().name(format!("agon-slot-{number}")).spawn(move || {
            if pinned && !pin(number) {
                tracing::warn!(slot = number, "there is no core of its own for this slot");
            }
            player.work(&inbox);
        })?;
        Ok(Slot { jobs, control, tally, speed })
    }

    /// Gives a free slot its next bout.
    pub(crate) fn give(&self, job: Job) {
        self.control.resume();
        self.tally.reset();
        self.jobs.send(job).expect("the thread of a slot lives as long as its handle");
    }

    /// Ends the bout of the slot early; its report follows.
    pub(crate) fn interrupt(&self) {
        self.control.interrupt();
    }

    /// The game that it plays, the plies of it, and a number that grows while it searches.
    pub(crate) fn progress(&self) -> (u32, u32, u64) {
        let (game, ply) = self.tally.read();
        (game, ply, self.control.pulse())
    }

    /// Nodes a second of the fixed searches, when they were last measured.
    pub(crate) fn speed(&self) -> f64 {
        self.speed.get()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.interrupt();
    }
}

/// What the thread of a slot has.
struct Player {
    number: usize,
    identity: Identity,
    control: Arc<SearchControl>,
    tally: Arc<Tally>,
    speed: Arc<Speed>,
    measured: Instant,
    messages: UnboundedSender<Command>,
    reports: UnboundedSender<Report>,
    /// The players of the run that was played last: their tables need not be made anew.
    arena: Option<(String, Arena)>,
}

impl Player {
    fn work(&mut self, inbox: &Receiver<Job>) {
        while let Ok(job) = inbox.recv() {
            let lease = job.bout.lease.clone();
            let ending = self.play(&job);
            // Where nobody listens any more the worker has ended, and so does the thread.
            let _ = self.reports.send(Report { slot: self.number, lease, ending });
        }
    }

    fn play(&mut self, job: &Job) -> Ending {
        if self.measured.elapsed() >= MEASURED_FOR {
            self.speed.set(measure().1);
            self.measured = Instant::now();
        }
        let factor = if job.spec.normalise { speed_factor(self.speed.get()) } else { 1.0 };
        let started = Instant::now();
        // What a player that panicked leaves behind is thrown away: only what is put back is used again.
        let kept = self.arena.take().filter(|(run, _)| *run == job.bout.lease.run);
        let seat = || match kept {
            Some((_, arena)) => Ok(arena),
            None => self.seat(job),
        };
        let mut send = |message| {
            let _ = self.messages.send(Command::Message(job.bout.lease.clone(), message));
        };
        let result = guarded(|| play(job, seat, &self.identity, factor, &self.tally, &mut send));
        // A search that was interrupted answers early without saying so.
        if self.control.is_interrupted() {
            return Ending::Interrupted;
        }
        match result {
            Ok((played, end, arena)) => {
                self.arena = Some((job.bout.lease.run.clone(), arena));
                Ending::Finished { played, time: started.elapsed(), end: Box::new(end) }
            }
            Err(reason) => Ending::Failed(reason),
        }
    }

    fn seat(&self, job: &Job) -> Result<Arena, PlayError> {
        let players: Vec<PlayerConfig> =
            job.spec.players.iter().map(|player| player.config.clone()).collect();
        let environment = Environment { control: Arc::clone(&self.control), ..Environment::system() };
        Ok(Arena::new(&job.spec.game, &players, environment)?)
    }
}

/// Runs something whose panic is an error like any other.
fn guarded<T>(run: impl FnOnce() -> Result<T, PlayFault>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(result) => result.map_err(|fault| fault.to_string()),
        Err(panic) => Err(format!("a player panicked: {}", panic_text(panic.as_ref()))),
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("it did not say why")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_reason() {
        let message = guarded::<()>(|| panic!("no move {}", 7)).unwrap_err();
        assert_eq!(message, "a player panicked: no move 7");
        assert_eq!(guarded::<()>(|| panic!("plain")).unwrap_err(), "a player panicked: plain");
        assert_eq!(guarded::<()>(|| Err(PlayError::Interrupted.into())).unwrap_err(), "interrupted");
        assert_eq!(guarded(|| Ok(1)), Ok(1));
    }
}
