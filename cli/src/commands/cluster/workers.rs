//! `agon workers`: who plays, what, and how fast.

use std::io::{self, Write as _};
use std::process::ExitCode;

use agon_proto::v1;
use clap::Args;
use serde::Serialize;

use super::block_on;
use super::client::{Address, told};
use crate::fail::Outcome;
use crate::table::{Align, Table, rate};

/// The arguments of `agon workers`.
#[derive(Args)]
pub struct Workers {
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
}

impl Workers {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        block_on(async move {
            let mut operator = self.address.connect().await?;
            let answer = operator.list_workers(v1::ListWorkersRequest {}).await.map_err(|status| told(&status))?;
            let workers = answer.into_inner().workers;
            let mut out = io::stdout().lock();
            if self.json {
                let workers: Vec<WorkerJson> = workers.into_iter().map(WorkerJson::from).collect();
                serde_json::to_writer(&mut out, &serde_json::json!({ "workers": workers }))?;
                writeln!(out)?;
            } else if workers.is_empty() {
                writeln!(out, "no worker has come yet; start one with `agon worker`")?;
            } else {
                let words = [
                    ("worker", Align::Left),
                    ("slots", Align::Right),
                    ("nodes/s", Align::Right),
                    ("bouts", Align::Right),
                    ("held", Align::Right),
                    ("state", Align::Left),
                ];
                let mut table = Table::new(&words);
                for worker in &workers {
                    let state = match (&worker.flag, worker.connected) {
                        (flag, _) if !flag.is_empty() => format!("flagged: {flag}"),
                        (_, true) => "connected".to_string(),
                        (_, false) => format!("gone for {:.0} s", worker.seconds_since_heartbeat),
                    };
                    table.row([
                        worker.worker.clone(),
                        worker.slots.to_string(),
                        rate(worker.speed),
                        worker.committed.to_string(),
                        worker.leases.to_string(),
                        state,
                    ]);
                }
                table.write(&mut out)?;
            }
            Ok(ExitCode::SUCCESS)
        })
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
        }
    }
}
