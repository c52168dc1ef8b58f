//! `agon list`: lists the runs of a coordinator, or of a dataset.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use agon_analysis::{Dataset, DatasetError, Run};
use agon_arena::Spec;
use agon_arena::spec::{Format, Plan};
use agon_proto::{Printable as _, v1};
use agon_schedule::RunState;
use agon_storage::location::Location;
use clap::Args;
use serde::Serialize;

use super::block_on;
use super::client::{Address, Operator, call};
use super::run::DEFAULT_DATA;
use super::status::{RunJson, clock, state_name};
use crate::fail::{Outcome, note};
use crate::table::{Align, Table, print, rate, utc};

#[derive(Args)]
pub struct List {
    /// List the runs of this data folder or object store [default: agon-data, if no coordinator answers]
    #[arg(long, value_name = "LOCATION", conflicts_with = "coordinator")]
    data: Option<Location>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    address: Address,
}

/// A run of a dataset.
#[derive(Serialize)]
struct DatasetRun {
    run: String,
    state: &'static str,
    bouts: u64,
    games: u64,
    game: String,
    total: u64,
    failed: u64,
    voided: u64,
    priority: i32,
    players: Vec<String>,
    submitted: String,
    #[serde(skip)]
    submitted_us: i64,
    #[serde(skip)]
    undecided: bool,
}

impl List {
    pub fn run(self) -> Outcome {
        if let Some(data) = &self.data {
            return list_dataset(data, self.json);
        }
        block_on(async move {
            match self.address.connect_if_any().await? {
                Some(operator) => list_cluster(operator, self.json).await,
                None => {
                    note(&format!("no coordinator answers; runs of {DEFAULT_DATA}:"));
                    list_dataset(&Location::from(Path::new(DEFAULT_DATA)), self.json)
                }
            }
        })
    }
}

async fn list_cluster(mut operator: Operator, json: bool) -> Outcome {
    let answer =
        call(&mut operator, async |operator| operator.list_runs(v1::ListRunsRequest {}).await).await?;
    let runs = answer.printable().runs;
    let document = serde_json::json!({ "runs": runs.iter().map(RunJson::from).collect::<Vec<_>>() });
    print(json, &document, |out| {
        if runs.is_empty() {
            return writeln!(out, "no runs yet; submit one with `agon submit SPEC`");
        }
        let words = [("run", Align::Fixed), ("state", Align::Fixed)];
        let numbers = ["prio", "held", "bouts", "games", "games/s", "left"].map(|name| (name, Align::Right));
        let mut table =
            Table::new(&[&words[..], &numbers].concat()).optional(&["games", "prio", "held", "games/s"]);
        for run in &runs {
            let undecided = run.sprt.as_ref().is_some_and(|test| test.verdict == "undecided");
            table.row([
                run.run.clone(),
                state_text(state_name(run), undecided),
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
}

/// Returns the state in a table: a sequential test that used up its bouts is done and undecided.
fn state_text(state: &str, undecided: bool) -> String {
    if undecided && state == "done" { "undecided".to_string() } else { state.to_string() }
}

/// Lists the runs of a dataset, the newest first.
fn list_dataset(data: &Location, json: bool) -> Outcome {
    let manifests: Vec<Result<Run, DatasetError>> = match Dataset::open(data) {
        Ok(dataset) => dataset.ids().iter().map(|id| dataset.run(id)).collect(),
        Err(DatasetError::NoFolder { .. } | DatasetError::NoDataset { .. }) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    let mut runs: Vec<DatasetRun> = Vec::new();
    let mut code = ExitCode::SUCCESS;
    for manifest in manifests {
        match manifest {
            Ok(run) => runs.push(DatasetRun::from(run)),
            Err(error) => {
                note(&format!("error: {error}"));
                code = ExitCode::FAILURE;
            }
        }
    }
    runs.sort_by_key(|run| std::cmp::Reverse(run.submitted_us));
    let document = serde_json::json!({ "data": data.to_string(), "runs": runs });
    print(json, &document, |out| write_dataset(data, &runs, out))?;
    Ok(code)
}

impl From<Run> for DatasetRun {
    fn from(run: Run) -> DatasetRun {
        let is_test = |spec: Spec| matches!(spec.plan, Plan::Tournament(Format::Sprt(_)));
        DatasetRun {
            // The process that played it may be gone.
            state: if run.state == RunState::Running { "unfinished" } else { run.state.name() },
            undecided: run.deciding_bout.is_none() && run.spec().is_ok_and(is_test),
            bouts: run.committed,
            games: run.games,
            total: run.bouts,
            failed: run.failed,
            voided: run.voided.len() as u64,
            priority: run.priority,
            submitted: utc(run.submitted_us),
            submitted_us: run.submitted_us,
            run: run.id,
            game: run.game,
            players: run.players,
        }
    }
}

fn write_dataset(data: &Location, runs: &[DatasetRun], out: &mut impl Write) -> io::Result<()> {
    if runs.is_empty() {
        return writeln!(out, "no runs in {data} yet; play one with `agon run examples/quick-start.toml`");
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as i64;
    let columns = ["run", "state", "bouts", "age", "game", "players"].map(|name| {
        let align = match name {
            "bouts" | "age" => Align::Right,
            "game" | "players" => Align::Left,
            _ => Align::Fixed,
        };
        (name, align)
    });
    let mut table = Table::new(&columns).optional(&["age", "players", "game"]);
    for run in runs {
        table.row([
            run.run.clone(),
            state_text(run.state, run.undecided),
            format!("{}/{}", run.bouts, run.total),
            age((now - run.submitted_us) / 1_000_000),
            run.game.clone(),
            run.players.join(", "),
        ]);
    }
    table.write(out)
}

/// Formats an age in seconds in its greatest unit.
fn age(seconds: i64) -> String {
    let units = [(86_400, "d"), (3600, "h"), (60, "min")];
    let unit = units.into_iter().find(|(unit, _)| seconds >= *unit);
    unit.map_or_else(|| "now".to_string(), |(unit, name)| format!("{} {name}", seconds / unit))
}

#[cfg(test)]
mod tests {
    use super::age;

    #[test]
    fn formats_ages() {
        let ages = [-5, 59, 60, 7199, 7200, 86_400 * 800].map(age);
        assert_eq!(ages, ["now", "now", "1 min", "1 h", "2 h", "800 d"]);
    }
}
