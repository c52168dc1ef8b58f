//! What a ply of engines costs Agon: a coordinator and a worker in this process, and engines that answer at once.
//!
//! The processor time is that of this process alone, without the engines.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use agon_proto::v1;
use agon_testing::folder::Folder;
use agon_transport::{ClientCredentials, Connector};
use agon_worker::{Engines as Programs, WorkerEvent};
use anyhow::Context as _;
use clap::Args;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// Measure what a ply of engines costs Agon's own processes
#[derive(Args)]
pub struct Engines {
    /// Program of the engine [default: the mock engine beside this program]
    #[arg(long)]
    command: Option<PathBuf>,
    /// Protocol of the engine, which plays chess by uci and othello by agon
    #[arg(long, default_value = "agon", value_parser = ["uci", "agon"])]
    protocol: String,
    /// Bouts, of two games each
    #[arg(long, default_value_t = 200)]
    bouts: u64,
    /// Games at once
    #[arg(long, default_value_t = 2)]
    slots: usize,
}

impl Engines {
    pub fn run(self) -> anyhow::Result<ExitCode> {
        agon::block_on(async move {
            let report = self.measure().await?;
            println!("{report}");
            Ok(ExitCode::SUCCESS)
        })
    }

    fn spec(&self) -> anyhow::Result<String> {
        let mock = std::env::current_exe()?.with_file_name("mock-engine");
        let (program, args) = match &self.command {
            Some(command) => (command.clone(), String::new()),
            None => (mock, format!(", args = [\"{}\"]", self.protocol)),
        };
        let game = if self.protocol == "uci" { "chess" } else { "othello" };
        let player = |name: &str| {
            let protocol = &self.protocol;
            format!(
                "[[player]]\nname = \"{name}\"\nengine = {{ protocol = \"{protocol}\", command = {program:?}{args} }}\n"
            )
        };
        Ok(format!(
            "name = \"engines\"\ngame = \"{game}\"\nseed = 1\nlimit = {{ nodes = 1 }}\nopenings = {{ random_plies = 6 }}\n\
             [tournament]\nformat = \"round-robin\"\nbouts = {}\n{}{}",
            self.bouts,
            player("one"),
            player("two")
        ))
    }

    async fn measure(&self) -> anyhow::Result<String> {
        let folder = Folder::new();
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let endpoint = format!("http://{}", listener.local_addr()?);
        let mut config = agon_coordinator::Config::new(folder.as_path().join("data"));
        // As in `agon run`, specs may give commands.
        config.only_requested = true;
        let (stop, stopped) = oneshot::channel::<()>();
        let coordinator = tokio::spawn(agon_coordinator::run(config, listener, async {
            let _ = stopped.await;
        }));
        let connector = Connector::new(&endpoint, ClientCredentials::default())?;
        let mut operator = agon::client(connector.connect().await.context("cannot connect")?);
        let (plies, games) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let mut worker = agon_worker::Config::new(connector, "bench");
        worker.slots = self.slots;
        worker.engines = Programs { any_command: true, ..Programs::default() };
        let (counted_plies, counted_games) = (Arc::clone(&plies), Arc::clone(&games));
        worker.on_event = Arc::new(move |event| {
            if let WorkerEvent::Finished { plies, games, .. } = event {
                counted_plies.fetch_add(*plies, Ordering::Relaxed);
                counted_games.fetch_add(*games, Ordering::Relaxed);
            }
        });
        let (halt, halted) = oneshot::channel::<()>();
        let worker = tokio::spawn(agon_worker::run(worker, async {
            let _ = halted.await;
        }));
        while operator.list_workers(v1::ListWorkersRequest {}).await?.into_inner().workers.is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let spec = Some(v1::Spec { text: self.spec()?, ..Default::default() });
        let (started, cpu_before) = (Instant::now(), own_cpu_time()?);
        let request = v1::SubmitRunRequest { spec, ..Default::default() };
        let run = operator.submit_run(request).await?.into_inner().run;
        loop {
            let status = operator.show_run(v1::ShowRunRequest { run: run.clone() }).await?.into_inner();
            if status.committed + status.failed >= self.bouts {
                anyhow::ensure!(status.failed == 0, "{} bouts failed", status.failed);
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let (elapsed, cpu) = (started.elapsed(), own_cpu_time()? - cpu_before);
        drop((halt, stop));
        worker.await??;
        coordinator.await??;
        let (plies, games) = (plies.load(Ordering::Relaxed), games.load(Ordering::Relaxed));
        Ok(format!(
            "{games} games of {} plies, {} slots, {:.1} s\ngames per second             {:.1}\nAgon's own time per ply      {:.1} us of a core",
            plies / games.max(1),
            self.slots,
            elapsed.as_secs_f64(),
            games as f64 / elapsed.as_secs_f64(),
            cpu.as_secs_f64() * 1e6 / plies.max(1) as f64
        ))
    }
}

/// Returns the processor time of this process, without that of its children.
fn own_cpu_time() -> anyhow::Result<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(')').context("/proc/self/stat has no name")?;
    // User and system time in hundredths of a second: fields 14 and 15.
    let ticks = fields.split_ascii_whitespace().skip(11).take(2).map(str::parse::<u64>);
    Ok(Duration::from_millis(10 * ticks.sum::<Result<u64, _>>()?))
}
