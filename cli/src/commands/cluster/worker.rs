//! `agon worker`: plays what a coordinator lends.

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use agon_worker::{Config, WorkerEvent};
use clap::Args;
use tracing::{debug, info, warn};

use super::client::Address;
use super::{Log, block_on, stop_signal};
use crate::fail::{Outcome, WrongCall};
use crate::settings::{Layers, number};

/// The arguments of `agon worker`.
#[derive(Args)]
pub struct Worker {
    /// Bouts played at once [default: one per core]
    #[arg(long, value_parser = number::<u16>("worker.slots"), allow_negative_numbers = true)]
    slots: Option<u16>,
    /// Unique name [default: from host and process id]
    #[arg(long)]
    name: Option<String>,
    /// Pin each slot to a core; use when this worker has the machine to itself
    #[arg(long)]
    pin: bool,
    /// Seconds to finish bouts after a stop signal [default: 20]
    #[arg(long, value_name = "SECONDS", value_parser = number::<u32>("worker.grace"), allow_negative_numbers = true)]
    grace: Option<u32>,
    #[command(flatten)]
    log: Log,
    /// Accept bouts with time limits even while the system throttles this worker
    #[arg(long)]
    timed_when_throttled: bool,
    #[command(flatten)]
    pub address: Address,
}

impl Worker {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let layers = Layers::open(self.address.config.as_deref())?;
        let (mut config, log) = self.choose(&layers)?;
        config.connector.check().map_err(|error| WrongCall(error.to_string()))?;
        log.start("info");
        let teller = Teller::new(Instant::now());
        config.watch = Arc::new(move |event| teller.tell(event, Instant::now()));
        block_on(async move {
            let summary = agon_worker::run(config, stop_signal()).await?;
            info!(
                finished = summary.finished,
                games = summary.games,
                committed = summary.committed,
                returned = summary.returned,
                abandoned = summary.abandoned,
                "the worker is done"
            );
            Ok(ExitCode::SUCCESS)
        })
    }
}

impl Worker {
    /// What all layers together say.
    fn choose(self, layers: &Layers) -> anyhow::Result<(Config, Log)> {
        let text = |text: &str| Ok(text.to_string());
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let host = Some(host.trim()).filter(|host| !host.is_empty()).unwrap_or("worker").to_string();
        let name = layers.value("worker.name", self.name, text)?;
        let name = name.unwrap_or_else(|| format!("{host}-{}", std::process::id()));
        let mut config = Config::new(self.address.connector(layers)?, name);
        if let Some(slots) = layers.value("worker.slots", self.slots, number("worker.slots"))? {
            config.slots = usize::from(slots);
        }
        config.pin = layers.switch("worker.pin", self.pin)?;
        let key = "worker.timed_when_throttled";
        config.timed_when_throttled = layers.switch(key, self.timed_when_throttled)?;
        config.grace = Duration::from_secs(
            layers.value_or("worker.grace", self.grace, number("worker.grace"), 20)?.into(),
        );
        Ok((config, self.log.choose(layers, "worker.log")?))
    }

    /// Asks for every setting, so that the layers know all of them.
    pub fn look(self, layers: &Layers) -> anyhow::Result<()> {
        self.choose(layers).map(|_| ())
    }
}

/// How often is told what was played.
const BETWEEN_SUMMARIES: Duration = Duration::from_secs(30);

/// What happens, as log lines: bouts together now and then, everything else at once.
struct Teller {
    played: Mutex<Played>,
}

/// What was played since it was last told.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Played {
    since: Instant,
    bouts: u64,
    games: u64,
}

impl Teller {
    fn new(now: Instant) -> Teller {
        Teller { played: Mutex::new(Played { since: now, bouts: 0, games: 0 }) }
    }

    fn tell(&self, event: &WorkerEvent, now: Instant) {
        match event {
            WorkerEvent::Connected { epoch, adopted } => {
                info!(epoch, adopted, "connected to the coordinator");
            }
            WorkerEvent::Disconnected { reason, retry } => warn!(
                reason,
                retry_ms = retry.as_millis() as u64,
                "the coordinator cannot be reached; what is held is played, and it is tried again: see that it runs and \
                 that --coordinator is its address"
            ),
            WorkerEvent::Failed { lease, reason } => warn!(%lease, reason, "a bout cannot be played"),
            WorkerEvent::Dropped { lease, reason } => info!(%lease, reason, "a bout is given up"),
            WorkerEvent::Draining { reason } => info!(reason, "draining"),
            WorkerEvent::Finished { lease, games, plies, time } => {
                let ms = time.as_millis() as u64;
                debug!(run = lease.run, bout = lease.bout, games, plies, ms, "bout played");
                if let Some(Played { since, bouts, games }) = self.add(*games, now) {
                    let seconds = (now - since).as_secs_f64();
                    let per_second = (10.0 * games as f64 / seconds).round() / 10.0;
                    info!(bouts, games, per_second, "played");
                }
            }
            other => debug!(?other, "event"),
        }
    }

    /// Counts a bout; what was played since the last time, where it is time to tell.
    fn add(&self, games: u64, now: Instant) -> Option<Played> {
        let mut played = self.played.lock().unwrap_or_else(PoisonError::into_inner);
        played.bouts += 1;
        played.games += games;
        if now - played.since < BETWEEN_SUMMARIES {
            return None;
        }
        Some(std::mem::replace(&mut *played, Played { since: now, bouts: 0, games: 0 }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bouts_are_told_together() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let teller = Teller::new(start);
        assert_eq!((teller.add(2, after(1)), teller.add(2, after(29))), (None, None));
        assert_eq!(teller.add(3, after(31)), Some(Played { since: start, bouts: 3, games: 7 }));
        assert_eq!(teller.add(2, after(60)), None);
        assert_eq!(teller.add(2, after(61)), Some(Played { since: after(31), bouts: 2, games: 4 }));
    }
}
