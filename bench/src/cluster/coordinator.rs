//! A coordinator in its own process, with its processor time and memory.

use std::path::Path;
use std::time::{Duration, Instant};

use agon::{Operator, client};
use agon_arena::SpecSource;
use agon_proto::v1;
use agon_testing::folder::Folder;
use agon_testing::processes::{Process, free_port};
use agon_transport::Connector;
use anyhow::{Context as _, bail};
use tonic::transport::Endpoint;

/// A coordinator process, killed on drop.
pub(super) struct Coordinator {
    process: Process,
    pub(super) endpoint: Endpoint,
}

/// Clock ticks per second in `/proc`; the same on every Linux system.
const TICKS: u32 = 100;

impl Coordinator {
    /// Starts a coordinator on the folder `data` within `folder`, and returns it with the time until its first answer.
    pub(super) async fn start(folder: &Folder, flags: &[&str]) -> anyhow::Result<(Coordinator, Duration)> {
        let address = format!("127.0.0.1:{}", free_port());
        let data = folder.path("data");
        let arguments = [&["coordinator", "--listen", &address, "--data", &data], flags].concat();
        let variables = [("AGON_LOG".to_string(), "error".to_string())];
        let started = Instant::now();
        let process = Process::start_with(&arguments, &variables, folder.path("coordinator.log").into());
        let endpoint = Endpoint::from_shared(format!("http://{address}")).context("invalid local address")?;
        let mut coordinator = Coordinator { process, endpoint };
        coordinator.wait_until_ready().await?;
        Ok((coordinator, started.elapsed()))
    }

    async fn wait_until_ready(&mut self) -> anyhow::Result<()> {
        loop {
            if let Ok(channel) = Connector::from(self.endpoint.clone()).connect().await
                && client(channel).list_workers(v1::ListWorkersRequest {}).await.is_ok()
            {
                return Ok(());
            }
            if let Some(code) = self.process.try_exit_code() {
                bail!("the coordinator exited with code {code}: {}", self.process.log());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Opens an operator's connection.
    pub(super) async fn operator(&self) -> anyhow::Result<Operator> {
        let connector = Connector::from(self.endpoint.clone());
        Ok(client(connector.connect().await.context("the coordinator does not answer")?))
    }

    /// Submits a spec and returns the run's id.
    pub(super) async fn submit(&self, spec: &SpecSource) -> anyhow::Result<String> {
        let request = v1::SubmitRunRequest { spec: Some(spec.into()), again: false, priority: 0 };
        Ok(self.operator().await?.submit_run(request).await?.into_inner().run)
    }

    /// Waits until a run ends.
    pub(super) async fn finish(&self, run: &str) -> anyhow::Result<v1::RunStatus> {
        let request = v1::WatchRunRequest { run: run.to_string() };
        let mut stream = self.operator().await?.watch_run(request).await?.into_inner();
        let mut last = None;
        while let Some(status) = stream.message().await? {
            last = Some(status);
        }
        last.context("the coordinator sent no status of the run")
    }

    /// Returns the process's processor time.
    pub(super) fn processor_time(&self) -> anyhow::Result<Duration> {
        processor_time(&self.process.id().to_string())
    }

    /// Returns the process's resident memory, in bytes.
    pub(super) fn memory(&self) -> anyhow::Result<f64> {
        memory(&self.process.id().to_string(), "VmRSS:")
    }
}

/// Returns the processor time of a process, given by its id or as `self`.
pub(crate) fn processor_time(process: &str) -> anyhow::Result<Duration> {
    let stat = read_proc(process, "stat")?;
    // The name in parentheses may contain spaces.
    let numbers = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace();
    let ticks: u64 = numbers.skip(11).take(2).filter_map(|text| text.parse::<u64>().ok()).sum();
    Ok(Duration::from_secs(ticks) / TICKS)
}

/// Returns a line of a process's memory status, in bytes.
pub(crate) fn memory(process: &str, line: &str) -> anyhow::Result<f64> {
    let status = read_proc(process, "status")?;
    let value = status.lines().find_map(|text| text.strip_prefix(line)).unwrap_or_default();
    let kibibytes: f64 = value.trim().trim_end_matches(" kB").trim().parse().unwrap_or(0.0);
    Ok(kibibytes * 1024.0)
}

fn read_proc(process: &str, name: &str) -> anyhow::Result<String> {
    let file = format!("/proc/{process}/{name}");
    std::fs::read_to_string(&file).with_context(|| format!("cannot read {file}; this needs Linux"))
}

/// Returns the size of a file or of the files below a folder, in bytes.
pub(super) fn size(path: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(path) else {
        return std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    };
    entries.flatten().map(|entry| size(&entry.path())).sum()
}
