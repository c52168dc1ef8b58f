//! `agon worker`: plays what a coordinator lends.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use agon_worker::{Config, WorkerEvent};
use clap::Args;
use tracing::{debug, info, warn};

use super::client::Address;
use super::{Log, block_on, stop_signal};
use crate::fail::Outcome;
use crate::number::whole;

/// The arguments of `agon worker`.
#[derive(Args)]
pub struct Worker {
    #[command(flatten)]
    address: Address,
    /// A name unlike any other worker's [default: made of host and process]
    #[arg(long)]
    name: Option<String>,
    /// How many bouts are played at once [default: one a core]
    #[arg(long, value_parser = whole::<u16>("the number of slots", 1, 4096), allow_negative_numbers = true)]
    slots: Option<u16>,
    /// Keep each slot on a core of its own, where this worker has the machine to itself
    #[arg(long)]
    pin: bool,
    /// Take bouts by the clock even while the system keeps this worker from running
    #[arg(long)]
    timed_when_throttled: bool,
    #[command(flatten)]
    log: Log,
    /// Seconds to finish when asked to stop
    #[arg(long, value_name = "SECONDS", default_value = "20",
          value_parser = whole::<u32>("the grace", 0, 86_400), allow_negative_numbers = true)]
    grace: u32,
}

impl Worker {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        self.log.start("info");
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let host = Some(host.trim()).filter(|host| !host.is_empty()).unwrap_or("worker").to_string();
        let name = self.name.unwrap_or_else(|| format!("{host}-{}", std::process::id()));
        let mut config = Config::new(self.address.endpoint()?, name);
        if let Some(slots) = self.slots {
            config.slots = usize::from(slots);
        }
        config.pin = self.pin;
        config.timed_when_throttled = self.timed_when_throttled;
        config.grace = Duration::from_secs(self.grace.into());
        config.watch = Arc::new(tell);
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

/// What happens, as log lines.
fn tell(event: &WorkerEvent) {
    match event {
        WorkerEvent::Connected { epoch, adopted } => info!(epoch, adopted, "connected"),
        WorkerEvent::Disconnected { reason, retry } => {
            warn!(reason, retry_ms = retry.as_millis() as u64, "the coordinator cannot be reached; waiting");
        }
        WorkerEvent::Failed { lease, reason } => warn!(%lease, reason, "a bout failed"),
        WorkerEvent::Dropped { lease, reason } => warn!(%lease, reason, "a bout was dropped"),
        WorkerEvent::Draining { reason } => info!(reason, "draining"),
        WorkerEvent::Finished { lease, games, plies, time } => {
            info!(
                run = lease.run,
                bout = lease.bout,
                games,
                plies,
                ms = time.as_millis() as u64,
                "bout played"
            );
        }
        other => debug!(?other, "event"),
    }
}
