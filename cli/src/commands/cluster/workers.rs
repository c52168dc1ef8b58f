//! `agon workers`: lists, drains, quarantines and trusts workers.

use std::io::{self, Write as _};
use std::process::ExitCode;

use agon_proto::v1;
use clap::{Args, Subcommand};
use serde::Serialize;

use super::block_on;
use super::client::{Address, Operator, told};
use crate::fail::Outcome;
use crate::table::{Align, Table, rate, write_json};

/// The arguments of `agon workers`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Workers {
    #[command(subcommand)]
    command: Option<WorkersCommand>,
    #[command(flatten)]
    list: List,
}

#[derive(Subcommand)]
enum WorkersCommand {
    /// List workers (the default)
    List(List),
    /// Let a worker finish its bouts and exit
    Drain(OneWorker),
    /// Give a worker no more bouts until it is trusted
    Quarantine(Quarantine),
    /// Take a worker out of quarantine
    Trust(OneWorker),
}

impl Workers {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        match self.command.unwrap_or(WorkersCommand::List(self.list)) {
            WorkersCommand::List(command) => command.run(),
            WorkersCommand::Drain(command) => command.drain(),
            WorkersCommand::Quarantine(command) => command.run(),
            WorkersCommand::Trust(command) => command.trust(),
        }
    }
}

/// The arguments of `agon workers list`.
#[derive(Args)]
struct List {
    #[command(flatten)]
    address: Address,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct WorkerJson {
    worker: String,
    build: String,
    slots: u32,
    nodes_per_second: f64,
    connected: bool,
    leases: u32,
    committed: u64,
    refused: u64,
    flag: Option<String>,
    seconds_since_heartbeat: f64,
    throttled: bool,
    confirmed: u64,
    crashes: u64,
    forfeits: u64,
    mean_overshoot_us: f64,
}

impl List {
    fn run(self) -> Outcome {
        block_on(async move {
            let mut operator = self.address.connect().await?;
            let answer =
                operator.list_workers(v1::ListWorkersRequest {}).await.map_err(|status| told(&status))?;
            let workers = answer.into_inner().workers;
            let mut out = io::stdout().lock();
            if self.json {
                let workers: Vec<WorkerJson> = workers.into_iter().map(WorkerJson::from).collect();
                write_json(&serde_json::json!({ "workers": workers }), &mut out)?;
            } else if workers.is_empty() {
                writeln!(out, "no worker has connected yet; start one with `agon worker`")?;
            } else {
                let words = [
                    ("worker", Align::Left),
                    ("slots", Align::Right),
                    ("nodes/s", Align::Right),
                    ("bouts", Align::Right),
                    ("held", Align::Right),
                    ("checked", Align::Right),
                    ("over ms", Align::Right),
                    ("state", Align::Left),
                ];
                let mut table = Table::new(&words);
                for worker in &workers {
                    table.row([
                        worker.worker.clone(),
                        worker.slots.to_string(),
                        rate(worker.speed),
                        worker.committed.to_string(),
                        worker.leases.to_string(),
                        worker.confirmed.to_string(),
                        format!("{:.2}", worker.mean_overshoot_us / 1000.0),
                        state_of(worker),
                    ]);
                }
                table.write(&mut out)?;
            }
            Ok(ExitCode::SUCCESS)
        })
    }
}

/// The state of a worker in a few words.
fn state_of(worker: &v1::WorkerStatus) -> String {
    let state = match (worker.connected, worker.throttled) {
        (true, true) => "throttled".to_string(),
        (true, false) => "connected".to_string(),
        (false, _) => format!("gone for {:.0} s", worker.seconds_since_heartbeat),
    };
    if worker.flag.is_empty() { state } else { format!("quarantine: {}", worker.flag) }
}

/// A worker and how the answer is printed.
#[derive(Args)]
struct OneWorker {
    /// Worker name, as `agon workers` lists it
    worker: String,
    #[command(flatten)]
    address: Address,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// The arguments of `agon workers quarantine`.
#[derive(Args)]
struct Quarantine {
    #[command(flatten)]
    worker: OneWorker,
    /// Reason, shown by `agon workers` and `agon audit`
    #[arg(long, default_value = "", hide_default_value = true)]
    reason: String,
}

impl Quarantine {
    fn run(self) -> Outcome {
        let reason = self.reason;
        self.worker.ask(async |operator, worker| {
            operator.quarantine_worker(v1::QuarantineWorkerRequest { worker, reason }).await
        })
    }
}

impl OneWorker {
    fn ask(
        self,
        ask: impl AsyncFnOnce(&mut Operator, String) -> Result<tonic::Response<v1::WorkerStatus>, tonic::Status>,
    ) -> Outcome {
        block_on(async move {
            let mut operator = self.address.connect().await?;
            let status = ask(&mut operator, self.worker).await.map_err(|status| told(&status))?.into_inner();
            let mut out = io::stdout().lock();
            if self.json {
                write_json(&WorkerJson::from(status), &mut out)?;
            } else {
                writeln!(out, "{}: {}", status.worker, state_of(&status))?;
            }
            Ok(ExitCode::SUCCESS)
        })
    }

    fn trust(self) -> Outcome {
        self.ask(async |operator, worker| operator.trust_worker(v1::TrustWorkerRequest { worker }).await)
    }

    fn drain(self) -> Outcome {
        self.ask(async |operator, worker| operator.drain_worker(v1::DrainWorkerRequest { worker }).await)
    }
}

impl From<v1::WorkerStatus> for WorkerJson {
    fn from(worker: v1::WorkerStatus) -> WorkerJson {
        WorkerJson {
            worker: worker.worker,
            build: worker.build,
            slots: worker.slots,
            nodes_per_second: worker.speed,
            connected: worker.connected,
            leases: worker.leases,
            committed: worker.committed,
            refused: worker.refused,
            flag: Some(worker.flag).filter(|flag| !flag.is_empty()),
            seconds_since_heartbeat: worker.seconds_since_heartbeat,
            throttled: worker.throttled,
            confirmed: worker.confirmed,
            crashes: worker.crashes,
            forfeits: worker.forfeits,
            mean_overshoot_us: worker.mean_overshoot_us,
        }
    }
}
