//! `agon workers`: lists, drains, quarantines and trusts workers.

use std::io::Write as _;

use agon_proto::v1;
use clap::{Args, Subcommand};
use serde::Serialize;

use super::client::{Address, Operator};
use crate::fail::Outcome;
use crate::table::{Align, Table, null_if_empty, print, rate};

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
    pub fn run(self) -> Outcome {
        match self.command.unwrap_or(WorkersCommand::List(self.list)) {
            WorkersCommand::List(command) => command.run(),
            WorkersCommand::Drain(command) => command.drain(),
            WorkersCommand::Quarantine(command) => command.run(),
            WorkersCommand::Trust(command) => command.trust(),
        }
    }
}

#[derive(Args)]
struct List {
    #[command(flatten)]
    address: Address,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Worker<'a>(#[serde(with = "WorkerJson")] &'a v1::WorkerStatus);

/// The JSON fields of a worker.
#[derive(Serialize)]
#[serde(remote = "v1::WorkerStatus")]
struct WorkerJson {
    worker: String,
    build: String,
    slots: u32,
    #[serde(rename = "nodes_per_second")]
    speed: f64,
    connected: bool,
    leases: u32,
    committed: u64,
    refused: u64,
    #[serde(serialize_with = "null_if_empty")]
    flag: String,
    seconds_since_heartbeat: f64,
    throttled: bool,
    confirmed: u64,
    crashes: u64,
    forfeits: u64,
    mean_overshoot_us: f64,
}

impl List {
    fn run(self) -> Outcome {
        let answer =
            self.address.ask(async |operator| operator.list_workers(v1::ListWorkersRequest {}).await)?;
        let workers = answer.workers;
        let document = serde_json::json!({ "workers": workers.iter().map(Worker).collect::<Vec<_>>() });
        print(self.json, &document, |out| {
            if workers.is_empty() {
                return writeln!(out, "no worker has connected yet; start one with `agon worker`");
            }
            let numbers = ["slots", "nodes/s", "bouts", "held", "checked", "over ms"];
            let numbers = numbers.map(|name| (name, Align::Right));
            let (worker, state) = ([("worker", Align::Fixed)], [("state", Align::Prose)]);
            let mut table = Table::new(&[&worker[..], &numbers, &state].concat())
                .optional(&["over ms", "checked", "nodes/s"]);
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
            table.write(out)
        })
    }
}

/// Describes the state of a worker.
fn state_of(worker: &v1::WorkerStatus) -> String {
    let state = match (worker.connected, worker.throttled) {
        (true, true) => "throttled".to_string(),
        (true, false) => "connected".to_string(),
        (false, _) => format!("gone for {:.0} s", worker.seconds_since_heartbeat),
    };
    if worker.flag.is_empty() { state } else { format!("quarantine: {}", worker.flag) }
}

/// The arguments of a command on one worker.
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
        self.worker.ask(&async |operator, worker| {
            let reason = reason.clone();
            operator.quarantine_worker(v1::QuarantineWorkerRequest { worker, reason }).await
        })
    }
}

impl OneWorker {
    fn ask(
        self,
        ask: &impl AsyncFn(&mut Operator, String) -> Result<tonic::Response<v1::WorkerStatus>, tonic::Status>,
    ) -> Outcome {
        let status = self.address.ask(async |operator| ask(operator, self.worker.clone()).await)?;
        print(self.json, &Worker(&status), |out| writeln!(out, "{}: {}", status.worker, state_of(&status)))
    }

    fn trust(self) -> Outcome {
        self.ask(&async |operator, worker| operator.trust_worker(v1::TrustWorkerRequest { worker }).await)
    }

    fn drain(self) -> Outcome {
        self.ask(&async |operator, worker| operator.drain_worker(v1::DrainWorkerRequest { worker }).await)
    }
}
