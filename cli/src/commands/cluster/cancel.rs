//! `agon cancel`: ends a run; what it has played stays.

use std::io::{self, Write as _};
use std::process::ExitCode;

use agon_proto::v1;
use clap::Args;

use super::block_on;
use super::client::{Address, told};
use super::status::{RunJson, progress_line};
use crate::fail::Outcome;

/// The arguments of `agon cancel`.
#[derive(Args)]
pub struct Cancel {
    /// A run: its id, a unique beginning of it, or `latest`
    run: String,
    #[command(flatten)]
    address: Address,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl Cancel {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        block_on(async move {
            let mut operator = self.address.connect().await?;
            let request = v1::CancelRunRequest { run: self.run.clone() };
            let status = operator.cancel_run(request).await.map_err(|status| told(&status))?.into_inner();
            let mut out = io::stdout().lock();
            if self.json {
                serde_json::to_writer(&mut out, &RunJson::from(&status))?;
                writeln!(out)?;
            } else {
                writeln!(out, "{}: cancelled, {}", status.run, progress_line(&status))?;
            }
            Ok(ExitCode::SUCCESS)
        })
    }
}
