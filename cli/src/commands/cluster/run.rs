//! `agon run`: plays a spec with a coordinator and a worker in one process, connected by gRPC over loopback.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use agon_analysis::Dataset;
use agon_proto::v1;
use agon_records as records;
use agon_schedule::schedule::Schedule;
use agon_transport::{ClientCredentials, Connector};
use agon_worker::{Config as WorkerConfig, Ended, Summary, WorkerError};
use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle};

use super::client::{Operator, client, rejection};
use super::live::{LONG_WAIT, Live};
use super::spec_file::SpecFile;
use super::status::{RunJson, is_open, progress_line, state_name, write_result};
use super::storage::{Storage, TakeOver};
use super::{LogForm, block_on, start_log, stop_signal};
use crate::engines::{EngineFlags, check_engines};
use crate::fail::{self, Outcome, UsageError};
use crate::number::whole;
use crate::table::{Align, Table, print, write_sentence};

/// How long the coordinator may take to end after its connection is lost.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// The default data folder.
pub const DEFAULT_DATA: &str = "agon-data";

#[derive(Args)]
pub struct Run {
    /// Spec file
    spec: PathBuf,
    /// Bouts played at once [default: one per core]
    #[arg(long, value_parser = whole::<u16>("the number of slots", 1, 4096), allow_negative_numbers = true)]
    slots: Option<u16>,
    /// Start a new run even if this spec was run before
    #[arg(long)]
    again: bool,
    /// Hide progress
    #[arg(long, short)]
    quiet: bool,
    /// Print one JSON document when the run ends
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    engines: EngineFlags,
    #[command(flatten)]
    storage: Storage,
    #[command(flatten)]
    take_over: TakeOver,
}

impl Run {
    pub fn run(self) -> Outcome {
        let file = SpecFile::read(&self.spec)?;
        Schedule::new(file.spec.clone())
            .map_err(|error| UsageError(format!("{}: {error}", self.spec.display())))?;
        let Run { spec, slots, again, quiet, json, engines, storage, take_over } = self;
        let command = format!("agon run {}", spec.display());
        Ok(Session { slots, again, quiet, json, engines, storage, take_over, command }.play(file)?.code)
    }
}

/// A run on this machine, by a coordinator and a worker of this process.
pub struct Session {
    /// The number of bouts played at once; by default one per core.
    pub slots: Option<u16>,
    /// Whether to start a new run even if this spec was run before.
    pub again: bool,
    /// Whether to hide progress.
    pub quiet: bool,
    /// Whether to print JSON.
    pub json: bool,
    /// The engines that the spec may name.
    pub engines: EngineFlags,
    /// Where the dataset is.
    pub storage: Storage,
    /// Whether to take ownership of it.
    pub take_over: TakeOver,
    /// The command of the user, without its options for data.
    pub command: String,
}

/// A run that ended or was interrupted.
pub struct Played {
    /// The exit code.
    pub code: ExitCode,
    /// The id of the run.
    pub run: String,
}

impl Session {
    /// Plays a spec until the run ends or is interrupted, and prints the result. Precondition: the spec has a schedule.
    pub fn play(self, file: SpecFile) -> anyhow::Result<Played> {
        start_log("error", LogForm::Text);
        check_engines(&file.spec, &self.engines.local())?;
        block_on(self.serve(file))
    }

    async fn serve(self, file: SpecFile) -> anyhow::Result<Played> {
        // 1. Start a coordinator on its own port, for this process only.
        let listener = TcpListener::bind("127.0.0.1:0").await.context("cannot open a local port")?;
        let address = listener.local_addr().context("cannot open a local port")?;
        let (stop, stopped) = watch::channel(false);
        let mut config = self.storage.config(&self.take_over)?;
        // No other worker holds leases of this process, so that none need time to return.
        config.timing.grace = Duration::ZERO;
        // The user sees how long a bout takes, and can interrupt it.
        config.timing.max_bout = Duration::MAX;
        config.timing.heartbeat = Duration::from_secs(1);
        // Other unfinished runs of the dataset wait.
        config.only_requested = true;
        let mut coordinator = tokio::spawn(agon_coordinator::run(config, listener, wait(stopped)));

        // 2. Submit the run.
        let connector = Connector::new(&format!("http://{address}"), ClientCredentials::default())?;
        let reminder = tokio::spawn(async {
            tokio::time::sleep(LONG_WAIT).await;
            fail::note("waiting for the coordinator of this command, which is opening the dataset");
        });
        let submitted = tokio::select! {
            ended = &mut coordinator => return Err(ended_early(ended)),
            submitted = submit(&connector, &file, self.again) => submitted,
        };
        reminder.abort();
        let (mut operator, mut status) = match submitted {
            Ok(submitted) => submitted,
            // The connection may be lost because the coordinator failed.
            Err(error) => {
                return match tokio::time::timeout(CLOSE_TIMEOUT, coordinator).await {
                    Ok(ended) => Err(ended_early(ended)),
                    Err(_) => Err(error),
                };
            }
        };
        let id = status.run.clone();
        if status.existed && status.state() == v1::RunState::Paused {
            status = self.resume(&mut operator, status).await?;
        }
        let finished_before = status.existed && !is_open(&status);
        // The worker connects later.
        status.waiting.clear();
        if !self.quiet {
            let so_far = progress_line(&status);
            let what = match (status.existed, status.state()) {
                (false, _) => String::new(),
                (true, v1::RunState::Running) => format!("{id} continues ({so_far})"),
                (true, v1::RunState::Cancelled) => {
                    format!("{id} was cancelled ({so_far}); --again runs it once more")
                }
                (true, _) => format!("{id} was run before ({so_far}); --again runs it once more"),
            };
            let warning = if self.again { repetition_warning(&file, &status) } else { None };
            let others = other_unfinished_runs(&mut operator, &id).await;
            for line in [what].into_iter().filter(|line| !line.is_empty()).chain(warning).chain(others) {
                fail::note(&line);
            }
        }

        // 3. Start a worker, unless the run is over.
        let (halt, halted) = watch::channel(false);
        let mut worker = WorkerConfig::new(connector, format!("local-{}", std::process::id()));
        if let Some(slots) = self.slots {
            worker.slots = usize::from(slots);
        }
        worker.grace = Duration::from_secs(1);
        worker.engines = self.engines.local();
        let mut worker =
            if finished_before { None } else { Some(tokio::spawn(agon_worker::run(worker, wait(halted)))) };

        // 4. Watch until the run is over or interrupted.
        let mut live = Live::new(self.quiet || self.json);
        let request = v1::WatchRunRequest { run: id.clone() };
        let mut stream = operator.watch_run(request).await.map_err(|status| rejection(&status))?.into_inner();
        let mut last = status;
        let mut is_connected = false;
        let mut interrupt = std::pin::pin!(stop_signal());
        let mut stopped_early = None;
        let interrupted = loop {
            tokio::select! {
                () = &mut interrupt => break true,
                ended = worker_end(&mut worker) => {
                    stopped_early = Some(ended);
                    break false;
                }
                message = stream.message() => match message.map_err(|status| rejection(&status))? {
                    Some(mut status) => {
                        // Hide the wait for the worker of this process, which measures itself before it connects.
                        is_connected |= status.workers > 0;
                        if !is_connected {
                            status.waiting.clear();
                        }
                        live.show(&status);
                        last = status;
                    }
                    None => break false,
                },
                ended = &mut coordinator => return Err(ended_early(ended)),
            }
        };
        live.clear();

        // 5. Shut down; acknowledged bouts are on disk.
        drop(stream);
        let _ = halt.send(true);
        let worked = match (stopped_early, worker) {
            (Some(ended), _) => ended.and_then(|summary| Err(early_end(&summary))),
            (None, None) => Ok(()),
            (None, Some(worker)) => worker_result(worker.await).map(drop),
        };
        if interrupted {
            // Include the bouts that the worker finished while it stopped.
            let request = v1::ShowRunRequest { run: id };
            last = operator.show_run(request).await.map_or(last, tonic::Response::into_inner);
            last.waiting.clear();
        }
        drop(operator);
        let _ = stop.send(true);
        coordinator.await.map_err(|error| ended_early(Err(error)))??;
        let repeatable = file.spec.is_repeatable() && file.spec.engines().next().is_none();
        if interrupted && is_open(&last) {
            // The same Ctrl-C may have closed standard output: note this first, and ignore errors.
            fail::note("interrupted; the same command continues the run");
            last.exported = self.exported(&last).await.unwrap_or(last.exported);
            let _ = self.write_answer(&last, repeatable);
            return Ok(Played { code: ExitCode::FAILURE, run: last.run });
        }
        worked?;
        let code = self.write_answer(&last, repeatable)?;
        Ok(Played { code, run: last.run })
    }

    /// Resumes a run that an operator paused. Fails if the run is paused because the build changed.
    async fn resume(&self, operator: &mut Operator, status: v1::RunStatus) -> anyhow::Result<v1::RunStatus> {
        let id = status.run;
        if status.pause_reason == v1::PauseReason::BuildChanged as i32 {
            let data = self.data_option();
            bail!(
                "{id} is paused: it was started by a build that searches differently. To resume or cancel it, start `agon coordinator{data}` and use `agon resume \
                 {id}` or `agon cancel {id}`; `{}{data} --again` plays it from its beginning",
                self.command
            );
        }
        let request = v1::ResumeRunRequest { run: id.clone() };
        let status = operator.resume_run(request).await.map_err(|status| rejection(&status))?.into_inner();
        if !self.quiet {
            fail::note(&format!("{id} was paused by an operator and is resumed"));
        }
        Ok(v1::RunStatus { existed: true, ..status })
    }

    /// Returns the option `--data`, unless it has its default.
    fn data_option(&self) -> String {
        let data = self.storage.data.to_string();
        if data == DEFAULT_DATA { String::new() } else { format!(" --data {data}") }
    }

    /// Returns the end of the bouts that a stopped run has in its dataset.
    async fn exported(&self, status: &v1::RunStatus) -> Option<u64> {
        let (data, id) = (self.storage.data.clone(), status.run.clone());
        let table = if status.probe { records::Table::Probes } else { records::Table::Games };
        // Reading an object store blocks.
        let parts = tokio::task::spawn_blocking(move || {
            let dataset = Dataset::open(&data)?;
            dataset.parts(&dataset.run(&id)?, table)
        });
        let parts = parts.await.ok()?.ok()?;
        parts.iter().filter_map(|part| part.bouts).map(|(_, last)| last + 1).max()
    }

    fn write_answer(&self, status: &v1::RunStatus, repeatable: bool) -> Outcome {
        // An open run stops with this process.
        let state = if is_open(status) { "interrupted" } else { state_name(status) };
        let mut document = RunJson::from(status);
        document.state = state;
        print(self.json, &document, |out| self.write_text(status, state, repeatable, out))
    }

    fn write_text(
        &self,
        status: &v1::RunStatus,
        state: &str,
        repeatable: bool,
        out: &mut impl Write,
    ) -> io::Result<()> {
        write_result(status, state, out)?;
        if status.abandoned > 0 {
            writeln!(out, "\n{} bouts were abandoned and played again", status.abandoned)?;
        }
        writeln!(out)?;
        let (run, data) = (&status.run, self.data_option());
        let unit = if status.probe { "positions" } else { "bouts" };
        if is_open(status) {
            write_sentence(&amounts(status, unit), out)?;
        }
        if status.exported == 0 {
            return Ok(());
        }
        let table = if status.probe { "probes" } else { "moves" };
        let which = if is_open(status) { "Their searches are" } else { "Every search is" };
        writeln!(out, "{which} in {}/{table}/run={run}", self.storage.data)?;
        writeln!(out, "Check it:         agon verify {run}{data}")?;
        if repeatable {
            writeln!(out, "Play it again:    agon replay {run}{data}")?;
        }
        let (question, answer) = match status {
            _ if status.probe => ("pruning", "nodes and pruning of each player"),
            _ if status.tune.is_some() => ("tune", "the path, and the tuned player"),
            _ if status.sprt.is_some() => ("sprt", "the test in detail"),
            _ => ("ratings", "ratings with intervals"),
        };
        let mut next = Table::new(&[("Next:", Align::Fixed), ("", Align::Prose)]);
        next.row([format!("  agon report {run}{data}"), "a page with results, charts and games".to_string()]);
        next.row([format!("  agon {question} {run}{data}"), answer.to_string()]);
        writeln!(out)?;
        next.write(out)
    }
}

/// States how much of an interrupted run is in its dataset, which the commands on a dataset read, and how much more its state
/// keeps.
fn amounts(status: &v1::RunStatus, unit: &str) -> String {
    let v1::RunStatus { exported, committed, bouts, .. } = *status;
    let there = format!("{exported} of {bouts} {unit} are in the dataset");
    match committed.saturating_sub(exported) {
        0 => format!("{there}."),
        kept => format!(
            "{there}; {kept} more, counted above, are kept behind an earlier one that was not finished and follow when the \
             run continues."
        ),
    }
}

/// Warns if running a spec once more repeats its games.
pub fn repetition_warning(file: &SpecFile, status: &v1::RunStatus) -> Option<String> {
    let first = agon_schedule::run_id::first(&file.spec.name, &file.source).ok()?;
    (status.run != first && !status.existed && file.spec.is_repeatable()).then(|| {
        format!(
            "{} repeats the games of {first} move by move, because all limits are of nodes or depth; for new games change \
             `seed`",
            status.run
        )
    })
}

/// Lists the other unfinished runs of the dataset.
async fn other_unfinished_runs(operator: &mut Operator, id: &str) -> Option<String> {
    let runs = operator.list_runs(v1::ListRunsRequest {}).await.ok()?.into_inner().runs;
    let others = runs.iter().filter(|run| run.run != id && is_open(run)).map(|run| run.run.as_str());
    let others: Vec<&str> = others.collect();
    (!others.is_empty())
        .then(|| format!("other unfinished runs, waiting until they are run again: {}", others.join(", ")))
}

/// Waits until the value is true or its sender is dropped.
async fn wait(mut signal: watch::Receiver<bool>) {
    let _ = signal.wait_for(|sent| *sent).await;
}

/// Waits for the end of the worker, if there is one.
async fn worker_end(worker: &mut Option<JoinHandle<Worked>>) -> anyhow::Result<Summary> {
    match worker {
        Some(running) => {
            let ended = running.await;
            *worker = None;
            worker_result(ended)
        }
        None => std::future::pending().await,
    }
}

type Worked = Result<Summary, WorkerError>;

fn worker_result(ended: Result<Worked, JoinError>) -> anyhow::Result<Summary> {
    match ended {
        Ok(worked) => Ok(worked?),
        Err(error) => Err(anyhow!("the worker failed: {error}; the same command continues the run")),
    }
}

/// Returns the error for a worker that ended in order before the run did.
fn early_end(summary: &Summary) -> anyhow::Error {
    let reason = match &summary.ended {
        Ended::Drained { reason } => reason,
        Ended::Shutdown => "it was stopped",
    };
    anyhow!("the worker of this command ended: {reason}; the same command continues the run")
}

async fn submit(
    connector: &Connector,
    file: &SpecFile,
    again: bool,
) -> anyhow::Result<(Operator, v1::RunStatus)> {
    let mut attempts = 200;
    let connection = loop {
        match connector.connect().await {
            Ok(connection) => break connection,
            Err(error) if attempts == 0 => return Err(error).context("the coordinator does not answer"),
            Err(_) => attempts -= 1,
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let mut operator = client(connection);
    let request = v1::SubmitRunRequest { spec: Some((&file.source).into()), again, priority: 0 };
    let status = operator.submit_run(request).await.map_err(|status| rejection(&status))?.into_inner();
    Ok((operator, status))
}

fn ended_early(
    ended: Result<Result<(), agon_coordinator::CoordinatorError>, tokio::task::JoinError>,
) -> anyhow::Error {
    match ended {
        Ok(Ok(())) => anyhow!("the coordinator stopped early"),
        Ok(Err(error)) => error.into(),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => anyhow!("the coordinator failed: {}", fail::panic_text(&*panic)),
            Err(error) => anyhow!("the coordinator failed: {error}"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupted_run_states_what_its_dataset_lacks() {
        let status = |exported| v1::RunStatus { bouts: 400, committed: 123, exported, ..Default::default() };
        assert_eq!(amounts(&status(123), "bouts"), "123 of 400 bouts are in the dataset.");
        assert_eq!(
            amounts(&status(120), "bouts"),
            "120 of 400 bouts are in the dataset; 3 more, counted above, are kept behind an earlier one that was not \
             finished and follow when the run continues."
        );
    }
}
