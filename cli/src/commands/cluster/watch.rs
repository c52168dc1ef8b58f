//! `agon watch`: follows a run until it ends.

use std::io;
use std::process::ExitCode;

use agon_proto::{Printable as _, v1};
use anyhow::bail;
use clap::Args;

use super::block_on;
use super::client::{Address, Operator, call, rejection};
use super::live::Live;
use super::status::{RunJson, is_open, state_name, write_result};
use crate::commands::runs::announce;
use crate::fail::Outcome;
use crate::table::write_json;

#[derive(Args)]
pub struct Watch {
    /// Run id, name or unique prefix, or `latest`
    #[arg(default_value = "latest")]
    run: String,
    /// Print the current state and exit
    #[arg(long)]
    once: bool,
    /// Print one JSON document per line at each change
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    address: Address,
}

impl Watch {
    pub fn run(self) -> Outcome {
        block_on(async move {
            let mut operator = self.address.connect().await?;
            let request = v1::WatchRunRequest { run: self.run.clone() };
            let watch = async |operator: &mut Operator| operator.watch_run(request.clone()).await;
            let mut stream = call(&mut operator, watch).await?;
            let mut live = Live::new(self.json || self.once);
            let mut last = None;
            while let Some(status) = stream.message().await.map_err(|status| rejection(&status))? {
                let status = status.printable();
                if self.json {
                    let mut out = io::stdout().lock();
                    write_json(&RunJson::from(&status), &mut out)?;
                }
                if last.is_none() {
                    announce(&self.run, &status.run);
                }
                live.show(&status);
                last = Some(status);
                if self.once {
                    break;
                }
            }
            live.clear();
            let is_cut_off = last.as_ref().is_some_and(is_open) && !self.once;
            if let Some(status) = last.filter(|_| !self.json) {
                let mut out = io::stdout().lock();
                write_result(&status, state_name(&status), &mut out)?;
            }
            if is_cut_off {
                bail!("the coordinator shut down and the run is not over; watch again when it is back");
            }
            Ok(ExitCode::SUCCESS)
        })
    }
}
