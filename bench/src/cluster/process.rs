//! A coordinator as a process of its own, and what the system says of it.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use agon_arena::SpecSource;
use agon_proto::v1;
use agon_transport::Connector;
use anyhow::{Context as _, bail, ensure};
use tonic::transport::Endpoint;

use agon::{Operator, client};

/// A coordinator that does not outlive this value.
pub(super) struct Coordinator {
    child: Child,
    pub(super) endpoint: Endpoint,
}

/// Ticks a second of the times in `/proc`: the same on every Linux.
const TICKS: f64 = 100.0;

/// Returns the path of the `agon` binary, which stands beside this program.
pub(crate) fn agon_binary() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe().context("cannot find the path of this program")?;
    let agon = program.with_file_name(format!("agon{}", std::env::consts::EXE_SUFFIX));
    ensure!(
        agon.exists(),
        "{} does not exist; build it with `cargo build --release -p agon`",
        agon.display()
    );
    Ok(agon)
}

impl Coordinator {
    /// Starts one over a folder, with these arguments beside. Returns it with the time until it answered.
    pub(super) async fn start(data: &Path, more: &[&str]) -> anyhow::Result<(Coordinator, Duration)> {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let address = port.context("no local port can be had")?.to_string();
        let program = agon_binary()?;
        let started = Instant::now();
        let child = Command::new(program)
            .args(["coordinator", "--listen", &address, "--data"])
            .arg(data)
            .args(more)
            .env("AGON_LOG", "error")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .context("the coordinator cannot be started")?;
        let endpoint = Endpoint::from_shared(format!("http://{address}")).context("a local address")?;
        let mut coordinator = Coordinator { child, endpoint };
        coordinator.answers().await?;
        Ok((coordinator, started.elapsed()))
    }

    async fn answers(&mut self) -> anyhow::Result<()> {
        loop {
            if let Ok(channel) = Connector::from(self.endpoint.clone()).connect().await
                && client(channel).list_workers(v1::ListWorkersRequest {}).await.is_ok()
            {
                return Ok(());
            }
            if let Some(status) = self.child.try_wait().context("the coordinator cannot be watched")? {
                bail!("the coordinator ended early: {status}");
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// An operator's connection.
    pub(super) async fn operator(&self) -> anyhow::Result<Operator> {
        let connector = Connector::from(self.endpoint.clone());
        Ok(client(connector.connect().await.context("the coordinator does not answer")?))
    }

    /// Hands a spec in and returns the run's id.
    pub(super) async fn submit(&self, spec: &SpecSource) -> anyhow::Result<String> {
        let request = v1::SubmitRunRequest { spec: Some(spec.into()), again: false, priority: 0 };
        Ok(self.operator().await?.submit_run(request).await?.into_inner().run)
    }

    /// Waits until a run is over.
    pub(super) async fn finish(&self, run: &str) -> anyhow::Result<v1::RunStatus> {
        let request = v1::WatchRunRequest { run: run.to_string() };
        let mut stream = self.operator().await?.watch_run(request).await?.into_inner();
        let mut last = None;
        while let Some(status) = stream.message().await? {
            last = Some(status);
        }
        last.context("the coordinator says nothing of the run")
    }

    /// Processor time that it has used, in seconds.
    pub(super) fn cpu(&self) -> anyhow::Result<f64> {
        let stat = self.read("stat")?;
        // The name in brackets may have spaces; the numbers come behind it.
        let numbers = stat.rsplit(')').next().unwrap_or_default();
        let ticks: u64 = numbers
            .split_ascii_whitespace()
            .skip(11)
            .take(2)
            .filter_map(|text| text.parse::<u64>().ok())
            .sum();
        Ok(ticks as f64 / TICKS)
    }

    /// Memory that it has, in bytes.
    pub(super) fn memory(&self) -> anyhow::Result<f64> {
        let status = self.read("status")?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
        let kilobytes: f64 = line.trim().trim_end_matches(" kB").trim().parse().unwrap_or(0.0);
        Ok(kilobytes * 1024.0)
    }

    fn read(&self, name: &str) -> anyhow::Result<String> {
        let file = format!("/proc/{}/{name}", self.child.id());
        std::fs::read_to_string(&file).with_context(|| format!("{file} is needed, which only Linux has"))
    }
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A folder that is removed at the end.
pub(super) struct Folder(pub(super) std::path::PathBuf);

impl Folder {
    /// A new one, beside where temporary files lie. A file system in memory would make durability look cheap.
    pub(super) fn new(name: &str) -> anyhow::Result<Folder> {
        let folder = std::env::temp_dir().join(format!("agon-bench-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
        Ok(Folder(folder))
    }

    /// Bytes of the files below.
    pub(super) fn bytes(&self, below: &str) -> u64 {
        fn sum(place: &Path) -> u64 {
            let Ok(entries) = std::fs::read_dir(place) else {
                return std::fs::metadata(place).map_or(0, |data| data.len());
            };
            entries.flatten().map(|entry| sum(&entry.path())).sum()
        }
        sum(&self.0.join(below))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
