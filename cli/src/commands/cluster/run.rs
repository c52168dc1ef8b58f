//! `agon run`: coordinator and worker in one process, talking gRPC over loopback, from a spec to its answer.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use agon_proto::v1;
use agon_schedule::schedule::Schedule;
use agon_transport::{ClientCredentials, Connector};
use agon_worker::Config as WorkerConfig;
use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::client::{Operator, client, told};
use super::live::Live;
use super::spec_file::SpecFile;
use super::status::{RunJson, is_open, progress_line, state_name, write_result};
use super::storage::{Storage, TakeOver};
use super::{LogForm, block_on, start_log, stop_signal};
use crate::fail::{self, Outcome, WrongCall};
use crate::number::whole;
use crate::table::write_json;

/// Where data lie unless somebody says otherwise.
const DEFAULT_DATA: &str = "agon-data";

/// The arguments of `agon run`.
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
    storage: Storage,
    #[command(flatten)]
    take_over: TakeOver,
}

impl Run {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        start_log("error", LogForm::Text);
        let file = SpecFile::read(&self.spec)?;
        Schedule::new(file.spec.clone())
            .map_err(|error| WrongCall(format!("{}: {error}", self.spec.display())))?;
        block_on(self.play(file))
    }

    async fn play(self, file: SpecFile) -> Outcome {
        // 1. A coordinator on a port of its own, for this process alone.
        let listener = TcpListener::bind("127.0.0.1:0").await.context("no local port can be had")?;
        let address = listener.local_addr().context("no local port can be had")?;
        let (stop, stopped) = watch::channel(false);
        let mut config = self.storage.config(&self.take_over)?;
        // Nobody else holds anything of this process's runs, and a worker in it does not get lost.
        config.timing.grace = Duration::ZERO;
        config.timing.heartbeat = Duration::from_secs(1);
        // What else is unfinished in the same place waits until it is asked for.
        config.only_asked = true;
        let mut coordinator = tokio::spawn(agon_coordinator::run(config, listener, wait(stopped)));

        // 2. The run.
        let connector = Connector::new(&format!("http://{address}"), ClientCredentials::default())?;
        let submitted = tokio::select! {
            ended = &mut coordinator => return Err(ended_early(ended)),
            submitted = submit(&connector, &file, self.again) => submitted?,
        };
        let (mut operator, mut status) = submitted;
        let id = status.run.clone();
        if status.existed && status.state() == v1::RunState::Paused {
            status = self.resume(&mut operator, status).await?;
        }
        let finished_before = status.existed && !is_open(&status);
        // The worker comes when all of this is said.
        status.waiting.clear();
        if !self.quiet {
            let so_far = progress_line(&status);
            let what = match (status.existed, status.state()) {
                (false, _) => String::new(),
                (true, v1::RunState::Running) => format!("{id} goes on ({so_far})"),
                (true, v1::RunState::Cancelled) => {
                    format!("{id} was cancelled ({so_far}); --again runs it once more")
                }
                (true, _) => format!("{id} was run before ({so_far}); --again runs it once more"),
            };
            let warning = if self.again { same_games(&file, &status) } else { None };
            let others = unfinished_beside(&mut operator, &id).await;
            for line in [what].into_iter().filter(|line| !line.is_empty()).chain(warning).chain(others) {
                fail::tell(&line);
            }
        }

        // 3. Workers, unless there is nothing to do.
        let (halt, halted) = watch::channel(false);
        let mut worker = WorkerConfig::new(connector, format!("local-{}", std::process::id()));
        if let Some(slots) = self.slots {
            worker.slots = usize::from(slots);
        }
        worker.grace = Duration::from_secs(1);
        let worker = tokio::spawn(async move {
            if finished_before { Ok(None) } else { agon_worker::run(worker, wait(halted)).await.map(Some) }
        });

        // 4. Watch until the run is over or somebody has had enough.
        let mut live = Live::new(self.quiet || self.json);
        let request = v1::WatchRunRequest { run: id.clone() };
        let mut stream = operator.watch_run(request).await.map_err(|status| told(&status))?.into_inner();
        let mut last = status;
        let mut arrived = false;
        let mut enough = std::pin::pin!(stop_signal());
        let interrupted = loop {
            tokio::select! {
                () = &mut enough => break true,
                message = stream.message() => match message.map_err(|status| told(&status))? {
                    Some(mut status) => {
                        // The worker of this process measures itself before it comes: that it is not there yet is no news.
                        arrived |= status.workers > 0;
                        if !arrived {
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

        // 5. Everybody goes home; what was acknowledged is on disk.
        drop(stream);
        let _ = halt.send(true);
        let worked = worker.await.context("the worker ended badly")?;
        if interrupted {
            // What the worker finished before it went counts too.
            let request = v1::ShowRunRequest { run: id };
            last = operator.show_run(request).await.map_or(last, tonic::Response::into_inner);
            last.waiting.clear();
        }
        drop(operator);
        let _ = stop.send(true);
        coordinator.await.context("the coordinator ended badly")??;
        if interrupted {
            // First of all, for whoever reads the answer may be gone with the same Ctrl-C.
            let _ = writeln!(io::stderr(), "stopped; the same command goes on from here");
            let _ = self.tell(&last);
            return Ok(ExitCode::FAILURE);
        }
        worked?;
        self.tell(&last)?;
        Ok(ExitCode::SUCCESS)
    }

    /// Resumes a run that an operator paused. Fails if the run is paused because the build changed.
    async fn resume(&self, operator: &mut Operator, status: v1::RunStatus) -> anyhow::Result<v1::RunStatus> {
        let id = status.run;
        if status.pause_reason == v1::PauseReason::BuildChanged as i32 {
            let data = self.data_option();
            bail!(
                "{id} is paused: it was started by a build that searches differently. To resume or cancel it, start `agon coordinator{data}` and say `agon resume \
                 {id}` or `agon cancel {id}`; `agon run {}{data} --again` plays it from its beginning",
                self.spec.display()
            );
        }
        let request = v1::ResumeRunRequest { run: id.clone() };
        let status = operator.resume_run(request).await.map_err(|status| told(&status))?.into_inner();
        if !self.quiet {
            fail::tell(&format!("{id} was paused by an operator and is resumed"));
        }
        Ok(v1::RunStatus { existed: true, ..status })
    }

    /// The option that says where the data lie, where it must be said.
    fn data_option(&self) -> String {
        let data = self.storage.data.to_string();
        if data == DEFAULT_DATA { String::new() } else { format!(" --data {data}") }
    }

    fn tell(&self, status: &v1::RunStatus) -> anyhow::Result<()> {
        let mut out = io::stdout().lock();
        if self.json {
            write_json(&RunJson::from(status), &mut out)?;
            return Ok(());
        }
        // What the coordinator calls running has nobody left who runs it.
        let state = if is_open(status) { "stopped" } else { state_name(status) };
        write_result(status, state, &mut out)?;
        if status.abandoned > 0 {
            writeln!(out, "\n{} bouts were given up under way and played again", status.abandoned)?;
        }
        writeln!(out)?;
        let (run, data) = (&status.run, self.data_option());
        if status.tune.is_some() {
            writeln!(out, "Path and player:  agon tune {run}{data}")?;
        }
        let unit = if status.probe { "positions" } else { "bouts" };
        let kept = status.committed.saturating_sub(status.exported);
        if is_open(status) && kept > 0 {
            writeln!(out, "{kept} {unit} are kept in the state, and reach the dataset as the run goes on")?;
        }
        if status.exported > 0 {
            let table = if status.probe { "probes" } else { "moves" };
            let which = if is_open(status) {
                format!("The searches of {} {unit} are", status.exported)
            } else {
                "Every search is".to_string()
            };
            writeln!(out, "{which} in {}/{table}/run={run}", self.storage.data)?;
            writeln!(out, "Check it:         agon verify {run}{data}")?;
        }
        if status.exported > 0 && !status.probe {
            writeln!(out, "Play it again:    agon replay {run}{data}")?;
        }
        Ok(())
    }
}

/// What to know before a spec is run once more, where that tells nothing new.
pub fn same_games(file: &SpecFile, status: &v1::RunStatus) -> Option<String> {
    let first = agon_schedule::run_id::first(&file.spec.name, &file.source).ok()?;
    (status.run != first && !status.existed && file.spec.is_repeatable()).then(|| {
        format!(
            "{} plays the games of {first} once more, move by move, since all limits are of nodes or depth; for new games \
             change `seed`",
            status.run
        )
    })
}

/// What else is unfinished in the same place, and waits meanwhile.
async fn unfinished_beside(operator: &mut Operator, id: &str) -> Option<String> {
    let runs = operator.list_runs(v1::ListRunsRequest {}).await.ok()?.into_inner().runs;
    let others = runs.iter().filter(|run| run.run != id && is_open(run)).map(|run| run.run.as_str());
    let others: Vec<&str> = others.collect();
    (!others.is_empty())
        .then(|| format!("unfinished here, and waiting until they are run again: {}", others.join(", ")))
}

/// Ready when the switch is thrown or nobody can throw it any more.
async fn wait(mut switch: watch::Receiver<bool>) {
    let _ = switch.wait_for(|thrown| *thrown).await;
}

async fn submit(
    connector: &Connector,
    file: &SpecFile,
    again: bool,
) -> anyhow::Result<(Operator, v1::RunStatus)> {
    let mut patience = 200;
    let channel = loop {
        match connector.connect().await {
            Ok(channel) => break channel,
            Err(error) if patience == 0 => return Err(error).context("the coordinator does not answer"),
            Err(_) => patience -= 1,
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let mut operator = client(channel);
    let request = v1::SubmitRunRequest { spec: Some((&file.source).into()), again, priority: 0 };
    let status = operator.submit_run(request).await.map_err(|status| told(&status))?.into_inner();
    Ok((operator, status))
}

fn ended_early(
    ended: Result<Result<(), agon_coordinator::CoordinatorError>, tokio::task::JoinError>,
) -> anyhow::Error {
    match ended {
        Ok(Ok(())) => anyhow!("the coordinator ended early"),
        Ok(Err(error)) => error.into(),
        Err(error) => anyhow!("the coordinator ended badly: {error}"),
    }
}
