//! `agon list`: the runs of a coordinator.

use std::io::{self, Write as _};
use std::process::ExitCode;

use agon_proto::v1;
use clap::Args;

use super::block_on;
use super::client::{Address, told};
use super::status::{RunJson, clock, state_name};
use crate::fail::Outcome;
use crate::table::{Align, Table, rate, write_json};

/// The arguments of `agon list`.
#[derive(Args)]
pub struct List {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    address: Address,
}

impl List {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        block_on(async move {
            let mut operator = self.address.connect().await?;
            let answer = operator.list_runs(v1::ListRunsRequest {}).await.map_err(|status| told(&status))?;
            let runs = answer.into_inner().runs;
            let mut out = io::stdout().lock();
            if self.json {
                let runs: Vec<RunJson> = runs.iter().map(RunJson::from).collect();
                write_json(&serde_json::json!({ "runs": runs }), &mut out)?;
            } else if runs.is_empty() {
                writeln!(out, "no runs yet; submit one with `agon submit SPEC`")?;
            } else {
                let words = [
                    ("run", Align::Left),
                    ("state", Align::Left),
                    ("prio", Align::Right),
                    ("held", Align::Right),
                    ("bouts", Align::Right),
                    ("games", Align::Right),
                    ("games/s", Align::Right),
                    ("left", Align::Right),
                ];
                let mut table = Table::new(&words);
                for run in &runs {
                    table.row([
                        run.run.clone(),
                        state_name(run).to_string(),
                        run.priority.to_string(),
                        run.leased.to_string(),
                        format!("{}/{}", run.committed, run.bouts),
                        run.games.to_string(),
                        rate(run.games_per_second),
                        run.seconds_left.map(clock).unwrap_or_default(),
                    ]);
                }
                table.write(&mut out)?;
                for run in runs.iter().filter(|run| !run.waiting.is_empty()) {
                    writeln!(out, "{}: {}", run.run, run.waiting)?;
                }
            }
            Ok(ExitCode::SUCCESS)
        })
    }
}
