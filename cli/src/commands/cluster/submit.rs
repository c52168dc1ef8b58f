//! `agon submit`: submits a spec to a coordinator.

use std::io::Write as _;
use std::path::PathBuf;

use agon_proto::v1;
use clap::Args;

use super::client::Address;
use super::run::repetition_warning;
use super::spec_file::SpecFile;
use super::status::{RunJson, is_open, progress_line, state_name};
use crate::fail::{self, Outcome};
use crate::table::print;

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
    pub fn run(self) -> Outcome {
        let file = SpecFile::read(&self.spec)?;
        let spec = Some((&file.source).into());
        let request = v1::SubmitRunRequest { spec, again: self.again, priority: self.priority };
        let status = self.address.ask(async |operator| operator.submit_run(request.clone()).await)?;
        let warning = repetition_warning(&file, &status).filter(|_| self.again);
        warning.iter().for_each(|warning| fail::note(warning));
        print(self.json, &RunJson::from(&status), |out| {
            let what = if status.existed { state_name(&status) } else { "submitted" };
            writeln!(out, "{}: {what}, {}", status.run, progress_line(&status))?;
            match status.state() {
                v1::RunState::Paused => writeln!(out, "resume it with: agon resume {}", status.run),
                _ if is_open(&status) => writeln!(out, "follow it with: agon watch {}", status.run),
                _ => writeln!(out, "run it once more with: agon submit {} --again", self.spec.display()),
            }
        })
    }
}
