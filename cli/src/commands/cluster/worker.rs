//! `agon worker`: plays bouts for a coordinator.

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use agon_worker::{Config, WorkerEvent};
use anyhow::bail;
use clap::Args;
use tracing::{debug, info, warn};

use super::client::Address;
use super::{Log, block_on, stop_signal};
use crate::engines::EngineFlags;
use crate::fail::{Outcome, UsageError};
use crate::open_files;
use crate::settings::{Layers, number};

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
    engines: EngineFlags,
    #[command(flatten)]
    log: Log,
    /// Accept bouts with time limits even while the system throttles this worker
    #[arg(long)]
    timed_when_throttled: bool,
    #[command(flatten)]
    pub address: Address,
}

impl Worker {
    pub fn run(self) -> Outcome {
        let layers = Layers::open(self.address.config.as_deref())?;
        let (mut config, log) = self.settings(&layers)?;
        config.connector.check().map_err(|error| UsageError(error.to_string()))?;
        log.start("info");
        check_open_files()?;
        let logger = EventLogger::new(Instant::now());
        config.on_event = Arc::new(move |event| logger.log(event, Instant::now()));
        block_on(async move {
            let summary = agon_worker::run(config, stop_signal()).await?;
            info!(
                finished = summary.finished,
                games = summary.games,
                committed = summary.committed,
                returned = summary.returned,
                abandoned = summary.abandoned,
                "worker stopped"
            );
            Ok(ExitCode::SUCCESS)
        })
    }
}

impl Worker {
    /// Merges the layers into a configuration.
    fn settings(self, layers: &Layers) -> anyhow::Result<(Config, Log)> {
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
        config.engines.named = layers.commands("engines", self.engines.named());
        config.grace = Duration::from_secs(layers.number("worker.grace", self.grace, 20)?.into());
        Ok((config, self.log.choose(layers, "worker.log")?))
    }

    /// Records every setting in the layers.
    pub fn record(self, layers: &Layers) -> anyhow::Result<()> {
        self.settings(layers).map(|_| ())
    }
}

/// The files of a worker: two connections, with what it takes to open them, and those of the runtime.
const WORKER_FILES: u64 = 40;

/// Raises the limit of open files as needed. Without this, a worker could open a session and not submit what it plays.
fn check_open_files() -> anyhow::Result<()> {
    let open = open_files::count();
    let needed = open + WORKER_FILES;
    let limit = open_files::raise_limit(needed);
    if limit < needed {
        bail!(
            "the open-file limit is {limit}, and this worker needs {needed}: {open} are open, and it opens up to \
             {WORKER_FILES}; raise the limit with `ulimit -n {needed}`"
        );
    }
    Ok(())
}

/// The time between two summaries of played bouts.
const SUMMARY_INTERVAL: Duration = Duration::from_secs(30);

/// A logger of worker events. Bouts are summarised periodically.
struct EventLogger {
    played: Mutex<Played>,
}

/// The bouts since the last summary.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Played {
    since: Instant,
    bouts: u64,
    games: u64,
}

impl EventLogger {
    fn new(now: Instant) -> EventLogger {
        EventLogger { played: Mutex::new(Played { since: now, bouts: 0, games: 0 }) }
    }

    fn log(&self, event: &WorkerEvent, now: Instant) {
        match event {
            WorkerEvent::Connected { epoch, adopted } => {
                info!(epoch, adopted, "coordinator connected");
            }
            WorkerEvent::Disconnected { reason, retry } => warn!(
                reason,
                retry_ms = retry.as_millis() as u64,
                "coordinator unreachable; check that it runs, and the address in --coordinator"
            ),
            WorkerEvent::CredentialRejected { reason, retry } => {
                warn!(reason, retry_ms = retry.as_millis() as u64, "credential rejected");
            }
            WorkerEvent::Failed { lease, reason } => warn!(%lease, reason, "bout failed"),
            WorkerEvent::Dropped { lease, reason } => info!(%lease, reason, "bout abandoned"),
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

    /// Counts a bout. Returns the counts since the last summary if the next one is due.
    fn add(&self, games: u64, now: Instant) -> Option<Played> {
        let mut played = self.played.lock().unwrap_or_else(PoisonError::into_inner);
        played.bouts += 1;
        played.games += games;
        if now - played.since < SUMMARY_INTERVAL {
            return None;
        }
        Some(std::mem::replace(&mut *played, Played { since: now, bouts: 0, games: 0 }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summarises_bouts_periodically() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let logger = EventLogger::new(start);
        assert_eq!((logger.add(2, after(1)), logger.add(2, after(29))), (None, None));
        assert_eq!(logger.add(3, after(31)), Some(Played { since: start, bouts: 3, games: 7 }));
        assert_eq!(logger.add(2, after(60)), None);
        assert_eq!(logger.add(2, after(61)), Some(Played { since: after(31), bouts: 2, games: 4 }));
    }
}
