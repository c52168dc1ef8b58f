//! `agon cancel`, `agon pause`, `agon resume`, `agon prioritise`: what an operator does with a run.

use std::io::{self, Write as _};
use std::process::ExitCode;

use agon_proto::v1;
use clap::Args;

use super::block_on;
use super::client::{Address, Operator, told};
use super::status::{RunJson, progress_line, state_name};
use crate::fail::{Outcome, WrongCall};
use crate::table::write_json;

/// A run and how the answer is printed.
#[derive(Args)]
pub struct Steer {
    /// A run: its id, a unique beginning of it, or `latest`
    run: String,
    #[command(flatten)]
    address: Address,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl Steer {
    fn ask(
        self,
        ask: impl AsyncFnOnce(&mut Operator, String) -> Result<tonic::Response<v1::RunStatus>, tonic::Status>,
    ) -> Outcome {
        block_on(async move {
            let mut operator = self.address.connect().await?;
            let status = ask(&mut operator, self.run).await.map_err(|status| told(&status))?.into_inner();
            let mut out = io::stdout().lock();
            if self.json {
                write_json(&RunJson::from(&status), &mut out)?;
            } else {
                let priority = match status.priority {
                    0 => String::new(),
                    priority => format!(", priority {priority}"),
                };
                writeln!(
                    out,
                    "{}: {}{priority}, {}",
                    status.run,
                    state_name(&status),
                    progress_line(&status)
                )?;
            }
            Ok(ExitCode::SUCCESS)
        })
    }

    /// Runs `agon cancel`.
    pub fn cancel(self) -> Outcome {
        self.ask(async |operator, run| operator.cancel_run(v1::CancelRunRequest { run }).await)
    }

    /// Runs `agon pause`.
    pub fn pause(self) -> Outcome {
        self.ask(async |operator, run| operator.pause_run(v1::PauseRunRequest { run }).await)
    }

    /// Runs `agon resume`.
    pub fn resume(self) -> Outcome {
        self.ask(async |operator, run| operator.resume_run(v1::ResumeRunRequest { run }).await)
    }
}

/// The arguments of `agon prioritise`.
#[derive(Args)]
pub struct Prioritise {
    #[command(flatten)]
    steer: Steer,
    /// Runs with a greater number are played first; those with the same share the workers
    #[arg(allow_negative_numbers = true, value_parser = clap::value_parser!(i32).range(-1000..=1000))]
    priority: i32,
}

impl Prioritise {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let priority = self.priority;
        self.steer.ask(async |operator, run| {
            operator.prioritise_run(v1::PrioritiseRunRequest { run, priority }).await
        })
    }
}

/// The arguments of `agon void`.
#[derive(Args)]
pub struct Void {
    /// A run: its id, a unique beginning of it, or `latest`
    run: String,
    /// All bouts that this worker brought
    #[arg(long, conflicts_with = "bouts")]
    worker: Option<String>,
    /// These bouts: one number, or the first and the last
    #[arg(long, value_name = "FIRST-LAST", value_parser = read_bouts)]
    bouts: Option<(u64, u64)>,
    /// Why, for whoever reads `agon audit`
    #[arg(long, default_value = "", hide_default_value = true)]
    reason: String,
    #[command(flatten)]
    address: Address,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

fn read_bouts(text: &str) -> Result<(u64, u64), String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.trim().parse(), last.trim().parse()) {
        (Ok(first), Ok(last)) if first <= last => Ok((first, last)),
        _ => Err("give one number, or the first and the last as in 120-140".to_string()),
    }
}

impl Void {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        if self.worker.is_none() && self.bouts.is_none() {
            let reason = "say which bouts: those of one worker with --worker NAME, or some by their numbers with --bouts \
                          FIRST-LAST";
            return Err(WrongCall(reason.to_string()).into());
        }
        block_on(async move {
            let mut operator = self.address.connect().await?;
            let (first, last) = self.bouts.unwrap_or_default();
            let worker = self.worker.unwrap_or_default();
            let request = v1::VoidBoutsRequest { run: self.run, worker, first, last, reason: self.reason };
            let answer = operator.void_bouts(request).await.map_err(|status| told(&status))?.into_inner();
            let mut out = io::stdout().lock();
            if self.json {
                let v1::VoidBoutsResponse { requeued, voided } = answer;
                serde_json::to_writer(
                    &mut out,
                    &serde_json::json!({ "requeued": requeued, "voided": voided }),
                )?;
                writeln!(out)?;
            } else {
                writeln!(
                    out,
                    "{} bouts are played anew; {} are in the dataset and left out from now on",
                    answer.requeued, answer.voided
                )?;
            }
            Ok(ExitCode::SUCCESS)
        })
    }
}
