//! `agon run`: coordinator and worker in one process, talking gRPC over loopback, from a spec to its answer.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use agon_coordinator::schedule::Schedule;
use agon_doors::{Dialer, Papers};
use agon_proto::v1;
use agon_worker::Config as WorkerConfig;
use anyhow::{Context as _, anyhow};
use clap::Args;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::client::{Operator, client, told};
use super::live::Live;
use super::spec_file::SpecFile;
use super::status::{RunJson, progress_line, sprt_line, state_name, tune_lines, write_standings};
use super::storage::{Storage, TakeOver};
use super::{LogForm, block_on, start_log, stop_signal};
use crate::fail::{Outcome, WrongCall};
use crate::number::whole;
use crate::table::write_json;

/// The arguments of `agon run`.
#[derive(Args)]
pub struct Run {
    /// The spec of the run
    spec: PathBuf,
    #[command(flatten)]
    storage: Storage,
    #[command(flatten)]
    take_over: TakeOver,
    /// How many bouts are played at once [default: one a core]
    #[arg(long, value_parser = whole::<u16>("the number of slots", 1, 4096), allow_negative_numbers = true)]
    slots: Option<u16>,
    /// Run the spec once more instead of showing the run there is
    #[arg(long)]
    again: bool,
    /// Print one JSON document at the end
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
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
        config.timing.settle = Duration::ZERO;
        config.timing.heartbeat = Duration::from_secs(1);
        // What else is unfinished in the same place waits until it is asked for.
        config.only_asked = true;
        let mut coordinator = tokio::spawn(agon_coordinator::run(config, listener, wait(stopped)));

        // 2. The run.
        let dialer = Dialer::new(&format!("http://{address}"), Papers::default())?;
        let submitted = tokio::select! {
            ended = &mut coordinator => return Err(ended_early(ended)),
            submitted = submit(&dialer, &file, self.again) => submitted?,
        };
        let (mut operator, status) = submitted;
        let id = status.run.clone();
        let finished_before = status.existed && status.state() != v1::RunState::Running;
        if status.existed && !self.quiet {
            let so_far = progress_line(&status);
            let what = if finished_before { "was run before; --again runs it once more" } else { "goes on" };
            let _ = writeln!(io::stderr(), "{id} {what} ({so_far})");
        }

        // 3. Workers, unless there is nothing to do.
        let (halt, halted) = watch::channel(false);
        let mut worker = WorkerConfig::new(dialer, format!("local-{}", std::process::id()));
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
        let mut enough = std::pin::pin!(stop_signal());
        let interrupted = loop {
            tokio::select! {
                () = &mut enough => break true,
                message = stream.message() => match message.map_err(|status| told(&status))? {
                    Some(status) => {
                        live.show(&status);
                        last = status;
                    }
                    None => break false,
                },
                ended = &mut coordinator => return Err(ended_early(ended)),
            }
        };
        live.clear()?;

        // 5. Everybody goes home; what was acknowledged is on disk.
        drop((stream, operator));
        let _ = halt.send(true);
        let worked = worker.await.context("the worker ended badly")?;
        let _ = stop.send(true);
        coordinator.await.context("the coordinator ended badly")??;
        if !interrupted {
            worked?;
        }
        self.tell(&last, interrupted)
    }

    fn tell(&self, status: &v1::RunStatus, interrupted: bool) -> Outcome {
        let mut out = io::stdout().lock();
        if self.json {
            write_json(&RunJson::from(status), &mut out)?;
        } else {
            writeln!(out, "{} ({}): {}", status.run, status.game, state_name(status))?;
            writeln!(out, "{}", progress_line(status))?;
            writeln!(out)?;
            if let Some(tune) = &status.tune {
                writeln!(out, "{}\n", tune_lines(tune))?;
            }
            write_standings(status, usize::MAX, &mut out)?;
            if let Some(sprt) = &status.sprt {
                writeln!(out, "\n{}", sprt_line(sprt))?;
            }
            if status.abandoned > 0 {
                writeln!(out, "\n{} bouts were given up under way and played again", status.abandoned)?;
            }
            if status.tune.is_some() {
                writeln!(out, "\nPath and player: agon tune {} --data {}", status.run, self.storage.data)?;
            }
            let table = if status.games > 0 { "moves" } else { "probes" };
            writeln!(out, "\nEvery search is in {}/{table}/run={}", self.storage.data, status.run)?;
            if status.games > 0 {
                writeln!(
                    out,
                    "Check it with `agon verify`, play it again with `agon replay {}`",
                    status.run
                )?;
            }
        }
        if interrupted {
            let _ = writeln!(io::stderr(), "stopped; the same command goes on from here");
            return Ok(ExitCode::FAILURE);
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Ready when the switch is thrown or nobody can throw it any more.
async fn wait(mut switch: watch::Receiver<bool>) {
    let _ = switch.wait_for(|thrown| *thrown).await;
}

async fn submit(dialer: &Dialer, file: &SpecFile, again: bool) -> anyhow::Result<(Operator, v1::RunStatus)> {
    let mut patience = 200;
    let channel = loop {
        match dialer.connect().await {
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
