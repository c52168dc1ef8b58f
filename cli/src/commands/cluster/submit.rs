//! `agon submit`: hands a spec to a coordinator.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use agon_proto::v1;
use clap::Args;

use super::block_on;
use super::client::{Address, told};
use super::run::same_games;
use super::spec_file::SpecFile;
use super::status::{RunJson, is_open, progress_line, state_name};
use crate::fail::{self, Outcome};
use crate::table::write_json;

/// The arguments of `agon submit`.
#[derive(Args)]
pub struct Submit {
    /// Spec file
    spec: PathBuf,
    /// Runs with a higher number go first; equal runs share the workers
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(i32).range(-1000..=1000))]
    priority: i32,
    /// Start a new run even if this spec was submitted before
    #[arg(long)]
    again: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    address: Address,
}

impl Submit {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let file = SpecFile::read(&self.spec)?;
        block_on(async move {
            let mut operator = self.address.connect().await?;
            let request = v1::SubmitRunRequest {
                spec: Some((&file.source).into()),
                again: self.again,
                priority: self.priority,
            };
            let status = operator.submit_run(request).await.map_err(|status| told(&status))?.into_inner();
            let mut out = io::stdout().lock();
            if self.json {
                write_json(&RunJson::from(&status), &mut out)?;
            } else {
                let what = if status.existed { state_name(&status) } else { "submitted" };
                writeln!(out, "{}: {what}, {}", status.run, progress_line(&status))?;
                match status.state() {
                    v1::RunState::Paused => writeln!(out, "let it go on with: agon resume {}", status.run)?,
                    _ if is_open(&status) => writeln!(out, "follow it with: agon watch {}", status.run)?,
                    _ => writeln!(out, "run it once more with: agon submit {} --again", self.spec.display())?,
                }
            }
            if let Some(warning) = same_games(&file, &status).filter(|_| self.again) {
                fail::tell(&warning);
            }
            Ok(ExitCode::SUCCESS)
        })
    }
}
