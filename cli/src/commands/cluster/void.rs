//! `agon data void`: excludes bouts from the results.

use std::io::Write as _;

use agon_proto::v1;
use clap::Args;

use super::client::Address;
use crate::commands::runs::announce;
use crate::fail::{Outcome, bail_usage};
use crate::table::print;

#[derive(Args)]
pub struct Void {
    /// Run id, name or unique prefix, or `latest`
    run: String,
    /// All bouts of this worker
    #[arg(long, conflicts_with = "bouts")]
    worker: Option<String>,
    /// These bouts: a number, or a range as in 120-140
    #[arg(long, value_name = "FIRST-LAST", value_parser = parse_bouts)]
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

fn parse_bouts(text: &str) -> Result<(u64, u64), String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.trim().parse(), last.trim().parse()) {
        (Ok(first), Ok(last)) if first <= last => Ok((first, last)),
        _ => Err("give one number, or the first and the last as in 120-140".to_string()),
    }
}

impl Void {
    pub fn run(self) -> Outcome {
        if self.worker.is_none() && self.bouts.is_none() {
            bail_usage!("no bouts named; select them with --worker NAME or --bouts FIRST-LAST");
        }
        let (first, last) = self.bouts.unwrap_or_default();
        let worker = self.worker.unwrap_or_default();
        // Name the run first: another may be the latest when the bouts are voided.
        let asked = v1::ShowRunRequest { run: self.run.clone() };
        let shown = self.address.clone().ask(async |operator| operator.show_run(asked.clone()).await)?;
        announce(&self.run, &shown.run);
        let run = shown.run;
        let request = v1::VoidBoutsRequest { run: run.clone(), worker, first, last, reason: self.reason };
        let v1::VoidBoutsResponse { requeued, voided } =
            self.address.ask(async |operator| operator.void_bouts(request.clone()).await)?;
        let document = serde_json::json!({ "run": run, "requeued": requeued, "voided": voided });
        print(self.json, &document, |out| {
            writeln!(
                out,
                "bouts that are played again: {requeued}; void in the dataset from now on: {voided}"
            )
        })
    }
}
