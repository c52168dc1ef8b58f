//! `agon coordinator`: the service that schedules, lends and keeps.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use tokio::net::TcpListener;

use super::storage::{Storage, TakeOver};
use super::{Log, block_on, stop_signal};
use crate::fail::{Outcome, WrongCall};
use crate::number::whole;

/// The arguments of `agon coordinator`.
#[derive(Args)]
pub struct Coordinator {
    /// Where to listen
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7400")]
    listen: SocketAddr,
    #[command(flatten)]
    storage: Storage,
    #[command(flatten)]
    take_over: TakeOver,
    /// Milliseconds that a lease lasts without progress
    #[arg(long, value_name = "MS", default_value = "30000",
          value_parser = whole::<u32>("the length of a lease", 100, 86_400_000), allow_negative_numbers = true)]
    lease_ms: u32,
    /// Milliseconds between two heartbeats of a worker
    #[arg(long, value_name = "MS", default_value = "5000",
          value_parser = whole::<u32>("the heartbeat", 10, 3_600_000), allow_negative_numbers = true)]
    heartbeat_ms: u32,
    /// Bouts in a full part of the dataset
    #[arg(long, value_name = "BOUTS", default_value = "500",
          value_parser = whole::<u32>("the size of a part", 1, 1_000_000), allow_negative_numbers = true)]
    part_bouts: u32,
    /// Where monitors ask for /metrics, /healthz and /readyz [default: nowhere]
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
    #[command(flatten)]
    log: Log,
    /// Let anybody who can reach this address in: there are no credentials yet
    #[arg(long)]
    insecure_public: bool,
}

impl Coordinator {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        self.log.start("info");
        if !self.listen.ip().is_loopback() && !self.insecure_public {
            let reason = format!(
                "{} can be reached from other machines, and nobody is asked who they are; listen on 127.0.0.1, or say \
                 --insecure-public in a network that you trust",
                self.listen
            );
            return Err(WrongCall(reason).into());
        }
        if self.heartbeat_ms * 3 > self.lease_ms {
            let reason = "a lease must last at least three heartbeats; give --lease-ms and --heartbeat-ms so";
            return Err(WrongCall(reason.to_string()).into());
        }
        let mut config = self.storage.config(&self.take_over)?;
        block_on(async move {
            let listener = TcpListener::bind(self.listen).await.map_err(|error| {
                anyhow::anyhow!(
                    "{} cannot be listened on: {error}; choose another with --listen",
                    self.listen
                )
            })?;
            let monitor = match self.metrics {
                Some(address) => Some(TcpListener::bind(address).await.map_err(|error| {
                    anyhow::anyhow!("{address} cannot be listened on: {error}; choose another with --metrics")
                })?),
                None => None,
            };
            config.metrics = monitor;
            config.timing.lease = Duration::from_millis(self.lease_ms.into());
            config.timing.settle = config.timing.lease;
            config.timing.heartbeat = Duration::from_millis(self.heartbeat_ms.into());
            config.part_bouts = self.part_bouts.into();
            agon_coordinator::run(config, listener, stop_signal()).await?;
            Ok(ExitCode::SUCCESS)
        })
    }
}
