//! `agon data void`: takes bouts out of the count.

use std::io::{self, Write as _};
use std::process::ExitCode;

use agon_proto::v1;
use clap::Args;

use super::block_on;
use super::client::{Address, told};
use crate::fail::{Outcome, WrongCall};

/// The arguments of `agon data void`.
#[derive(Args)]
pub struct Void {
    /// Run id, name or unique prefix, or `latest`
    run: String,
    /// All bouts of this worker
    #[arg(long, conflicts_with = "bouts")]
    worker: Option<String>,
    /// These bouts: a number, or a range as in 120-140
    #[arg(long, value_name = "FIRST-LAST", value_parser = read_bouts)]
    bouts: Option<(u64, u64)>,
    /// Reason, shown by `agon audit`
    #[arg(long, default_value = "", hide_default_value = true)]
    reason: String,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    address: Address,
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
            let reason = "no bouts named; select them with --worker NAME or --bouts FIRST-LAST";
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
