//! `agon list`: lists the runs of a coordinator.

use std::io::Write as _;

use agon_proto::v1;
use clap::Args;

use super::block_on;
use super::client::{Address, rejection};
use super::status::{RunJson, clock, state_name};
use crate::fail::Outcome;
use crate::table::{Align, Table, print, rate};

#[derive(Args)]
pub struct List {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    address: Address,
}

impl List {
    pub fn run(self) -> Outcome {
        block_on(async move {
            let mut operator = self.address.connect().await?;
            let answer =
                operator.list_runs(v1::ListRunsRequest {}).await.map_err(|status| rejection(&status))?;
            let runs = answer.into_inner().runs;
            let document = serde_json::json!({ "runs": runs.iter().map(RunJson::from).collect::<Vec<_>>() });
            print(self.json, &document, |out| {
                if runs.is_empty() {
                    return writeln!(out, "no runs yet; submit one with `agon submit SPEC`");
                }
                let numbers = ["prio", "held", "bouts", "games", "games/s", "left"];
                let words = ["run", "state"].map(|name| (name, Align::Left));
                let mut table = Table::new(&[&words[..], &numbers.map(|name| (name, Align::Right))].concat());
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
                table.write(out)?;
                let waiting = runs.iter().filter(|run| !run.waiting.is_empty());
                waiting.into_iter().try_for_each(|run| writeln!(out, "{}: {}", run.run, run.waiting))
            })
        })
    }
}
