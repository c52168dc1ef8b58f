//! `agon cancel`, `agon pause`, `agon resume`, `agon prioritise`: control of a run.

use std::io::Write as _;

use agon_proto::v1;
use clap::Args;

use super::client::{Address, Operator};
use super::status::{RunJson, progress_line, state_name};
use crate::commands::runs::announce;
use crate::fail::Outcome;
use crate::table::print;

/// The arguments of a command on one run.
#[derive(Args)]
pub struct Steer {
    /// Run id, name or unique prefix, or `latest`
    #[arg(default_value = "latest")]
    run: String,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    address: Address,
}

impl Steer {
    fn ask(
        self,
        ask: &impl AsyncFn(&mut Operator, String) -> Result<tonic::Response<v1::RunStatus>, tonic::Status>,
    ) -> Outcome {
        let status = self.address.ask(async |operator| ask(operator, self.run.clone()).await)?;
        announce(&self.run, &status.run);
        print(self.json, &RunJson::from(&status), |out| {
            let priority = match status.priority {
                0 => String::new(),
                priority => format!(", priority {priority}"),
            };
            let (state, progress) = (state_name(&status), progress_line(&status));
            writeln!(out, "{}: {state}{priority}, {progress}", status.run)
        })
    }

    pub fn cancel(self) -> Outcome {
        self.ask(&async |operator, run| operator.cancel_run(v1::CancelRunRequest { run }).await)
    }

    pub fn pause(self) -> Outcome {
        self.ask(&async |operator, run| operator.pause_run(v1::PauseRunRequest { run }).await)
    }

    pub fn resume(self) -> Outcome {
        self.ask(&async |operator, run| operator.resume_run(v1::ResumeRunRequest { run }).await)
    }
}

#[derive(Args)]
#[command(allow_missing_positional = true)]
pub struct Prioritise {
    #[command(flatten)]
    steer: Steer,
    /// Runs with a higher number go first; equal runs share the workers
    #[arg(allow_negative_numbers = true, value_parser = clap::value_parser!(i32).range(-1000..=1000))]
    priority: i32,
}

impl Prioritise {
    pub fn run(self) -> Outcome {
        let priority = self.priority;
        self.steer.ask(&async |operator, run| {
            operator.prioritise_run(v1::PrioritiseRunRequest { run, priority }).await
        })
    }
}
