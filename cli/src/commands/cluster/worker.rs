//! `agon worker`: plays what a coordinator lends.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use agon_worker::{Config, WorkerEvent};
use clap::Args;
use tracing::{debug, info, warn};

use super::client::Address;
use super::{Log, block_on, stop_signal};
use crate::fail::{Outcome, WrongCall};
use crate::number::whole;
use crate::settings::Layers;

/// The arguments of `agon worker`.
#[derive(Args)]
pub struct Worker {
    /// A name unlike any other worker's [default: made of host and process]
    #[arg(long)]
    name: Option<String>,
    /// How many bouts are played at once [default: one a core]
    #[arg(long, value_parser = slots(), allow_negative_numbers = true)]
    slots: Option<u16>,
    /// Keep each slot on a core of its own, where this worker has the machine to itself
    #[arg(long)]
    pin: bool,
    /// Take bouts by the clock even while the system keeps this worker from running
    #[arg(long)]
    timed_when_throttled: bool,
    #[command(flatten)]
    log: Log,
    /// Seconds to finish when asked to stop [default: 20]
    #[arg(long, value_name = "SECONDS", value_parser = grace(), allow_negative_numbers = true)]
    grace: Option<u32>,
    #[command(flatten)]
    pub address: Address,
}

fn slots() -> impl Fn(&str) -> Result<u16, String> + Clone + Send + Sync + 'static {
    whole("the number of slots", 1, 4096)
}

fn grace() -> impl Fn(&str) -> Result<u32, String> + Clone + Send + Sync + 'static {
    whole("the grace", 0, 86_400)
}

impl Worker {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let layers = Layers::open(self.address.config.as_deref())?;
        let (mut config, log) = self.choose(&layers)?;
        config.dialer.check().map_err(|error| WrongCall(error.to_string()))?;
        log.start("info");
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

impl Worker {
    /// What all layers together say.
    fn choose(self, layers: &Layers) -> anyhow::Result<(Config, Log)> {
        let text = |text: &str| Ok(text.to_string());
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let host = Some(host.trim()).filter(|host| !host.is_empty()).unwrap_or("worker").to_string();
        let name = layers.value("worker.name", self.name, text)?;
        let name = name.unwrap_or_else(|| format!("{host}-{}", std::process::id()));
        let mut config = Config::new(self.address.dialer(layers)?, name);
        if let Some(slots) = layers.value("worker.slots", self.slots, slots())? {
            config.slots = usize::from(slots);
        }
        config.pin = layers.switch("worker.pin", self.pin)?;
        let key = "worker.timed_when_throttled";
        config.timed_when_throttled = layers.switch(key, self.timed_when_throttled)?;
        config.grace = Duration::from_secs(layers.value_or("worker.grace", self.grace, grace(), 20)?.into());
        Ok((config, self.log.choose(layers, "worker.log")?))
    }

    /// Asks for every setting, so that the layers know all of them.
    pub fn look(self, layers: &Layers) -> anyhow::Result<()> {
        self.choose(layers).map(|_| ())
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
