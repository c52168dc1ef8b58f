//! A cluster of real processes on one machine: a coordinator that can restart on the same port and folder, workers, and
//! checks of the dataset that they write.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use agon_analysis::dataset::Dataset;
use agon_records::{BoutRows, Table, content_digest};
use serde_json::Value;

use crate::binary::{Answer, agon, json, path};
use crate::folder::Folder;

/// The time after which [`wait_until`] fails.
pub const TIMEOUT: Duration = Duration::from_secs(300);

/// A process that is killed when the test ends.
pub struct Process {
    child: Child,
    log: Option<PathBuf>,
}

impl Process {
    /// Starts the binary and discards its output.
    pub fn start(arguments: &[&str]) -> Process {
        Process::spawn(arguments, &[], Stdio::null(), None)
    }

    /// Starts the binary and keeps its standard error in a file.
    pub fn start_logged(arguments: &[&str], log: PathBuf) -> Process {
        Process::start_with(arguments, &[], log)
    }

    /// Starts the binary with environment variables and keeps its standard error in a file.
    pub fn start_with(arguments: &[&str], variables: &[(String, String)], log: PathBuf) -> Process {
        let file = File::create(&log).unwrap();
        Process::spawn(arguments, variables, file.into(), Some(log))
    }

    fn spawn(
        arguments: &[&str],
        variables: &[(String, String)],
        stderr: Stdio,
        log: Option<PathBuf>,
    ) -> Process {
        let mut command = Command::new(path());
        command.envs(variables.iter().cloned());
        let child = command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr).spawn();
        Process { child: child.unwrap(), log }
    }

    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by its name.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }

    /// Returns the exit code if the process has ended.
    pub fn try_exit_code(&mut self) -> Option<i32> {
        self.child.try_wait().unwrap().map(|status| status.code().unwrap_or(-1))
    }

    /// Waits for the process to end.
    pub fn wait(&mut self) -> i32 {
        wait_until("the process ends", || self.try_exit_code())
    }

    /// Returns the standard error written so far.
    pub fn log(&self) -> String {
        self.log.as_ref().map(|log| std::fs::read_to_string(log).unwrap()).unwrap_or_default()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // SIGKILL: the process flushes nothing and closes no session.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Polls until `look` returns something; fails after [`TIMEOUT`].
#[track_caller]
pub fn wait_until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(started.elapsed() < TIMEOUT, "timed out waiting until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns a port that was free a moment ago.
pub fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A coordinator's port and folder, and its process while it runs.
pub struct Cluster {
    folder: Folder,
    port: u16,
    data: String,
    timing: [String; 2],
    /// Bouts in a full part.
    pub part_bouts: String,
    /// Seconds between exports of parts that are not full; by default longer than a test.
    pub export_seconds: String,
    /// Additional flags for the coordinator.
    pub flags: Vec<String>,
    variables: Vec<(String, String)>,
    /// Additional flags for workers and operators.
    client: Vec<String>,
    /// The coordinator process; none while it is stopped.
    pub coordinator: Option<Process>,
}

impl Cluster {
    /// Starts a coordinator with the given lease duration and nine heartbeats per lease.
    pub fn start(lease: Duration) -> Cluster {
        let mut cluster = Cluster::new(lease);
        cluster.restart();
        cluster
    }

    /// Makes a cluster whose coordinator has not started yet.
    pub fn new(lease: Duration) -> Cluster {
        let folder = Folder::new();
        Cluster {
            port: free_port(),
            data: folder.path("data"),
            folder,
            timing: timing(lease),
            part_bouts: "16".to_string(),
            export_seconds: "86400".to_string(),
            flags: Vec::new(),
            variables: Vec::new(),
            client: Vec::new(),
            coordinator: None,
        }
    }

    /// Changes the lease duration from the next start on.
    pub fn with_lease(self, lease: Duration) -> Cluster {
        Cluster { timing: timing(lease), ..self }
    }

    /// Adds flags for the coordinator and for its clients from the next start on.
    pub fn with_flags(self, flags: Vec<String>, client: Vec<String>) -> Cluster {
        Cluster { flags, client, ..self }
    }

    /// Moves the data folder.
    pub fn with_data(self, data: &Path) -> Cluster {
        Cluster { data: data.to_str().unwrap().to_string(), ..self }
    }

    /// Puts the dataset into an object store, with four bouts per part, and the state into the test's folder.
    pub fn with_object_store(self, address: &str, variables: Vec<(String, String)>) -> Cluster {
        let flags = vec!["--state".to_string(), self.path("state")];
        Cluster { data: address.to_string(), flags, variables, part_bouts: "4".to_string(), ..self }
    }

    /// Returns a path in the test's folder.
    pub fn path(&self, name: &str) -> String {
        self.folder.path(name)
    }

    /// Returns the data folder.
    pub fn data(&self) -> &Path {
        Path::new(&self.data)
    }

    /// Returns the coordinator's URL.
    pub fn address(&self) -> String {
        let scheme = if self.client.iter().any(|flag| flag == "--tls-ca") { "https" } else { "http" };
        format!("{scheme}://127.0.0.1:{}", self.port)
    }

    /// Kills the coordinator.
    pub fn kill(&mut self) {
        self.coordinator = None;
    }

    /// Kills the coordinator if it runs, and starts one on the same folder and port without waiting until it answers.
    pub fn spawn_coordinator(&mut self) {
        self.kill();
        let listen = format!("127.0.0.1:{}", self.port);
        let [lease, heartbeat] = &self.timing;
        let mut arguments = vec![
            "coordinator",
            "--listen",
            &listen,
            "--data",
            &self.data,
            "--lease-ms",
            lease,
            "--heartbeat-ms",
            heartbeat,
            "--part-bouts",
            &self.part_bouts,
            "--export-seconds",
            &self.export_seconds,
        ];
        arguments.extend(self.flags.iter().map(String::as_str));
        let log = self.path("coordinator.log").into();
        self.coordinator = Some(Process::start_with(&arguments, &self.variables, log));
    }

    /// Kills the coordinator if it runs, starts one on the same folder and port, and waits until it answers.
    pub fn restart(&mut self) {
        self.spawn_coordinator();
        let code = wait_until("the coordinator answers or exits", || {
            let code = self.coordinator.as_mut().and_then(Process::try_exit_code);
            code.map(Some).or_else(|| (self.agon(&["list"]).code == 0).then_some(None))
        });
        assert_eq!(code, None, "{}", self.log());
    }

    /// Returns the coordinator's standard error.
    pub fn log(&self) -> String {
        self.coordinator.as_ref().map(Process::log).unwrap_or_default()
    }

    /// Starts a worker with one slot.
    pub fn worker(&self, name: &str) -> Process {
        let log = self.path(&format!("{name}.log")).into();
        let arguments =
            ["worker", "--coordinator", &self.address(), "--name", name, "--slots", "1", "--grace", "5"];
        let arguments = [&arguments[..], &self.client()].concat();
        Process::start_logged(&arguments, log)
    }

    /// Calls the binary with the address of this coordinator.
    pub fn agon(&self, arguments: &[&str]) -> Answer {
        agon(&[arguments, &["--coordinator", &self.address()], &self.client()[..]].concat())
    }

    fn client(&self) -> Vec<&str> {
        self.client.iter().map(String::as_str).collect()
    }

    /// Submits a spec and returns the id of its run.
    pub fn submit(&self, spec: &str) -> String {
        let file = self.folder.write("spec.toml", spec);
        let answer = self.agon(&["submit", &file, "--json"]);
        assert_eq!(answer.code, 0, "{}", answer.err);
        serde_json::from_str::<Value>(&answer.out).unwrap()["run"].as_str().unwrap().to_string()
    }

    /// Returns the status of a run.
    pub fn run_status(&self, id: &str) -> Value {
        let status = self.json(&["list"]);
        status["runs"].as_array().unwrap().iter().find(|run| run["run"] == id).unwrap().clone()
    }

    /// Returns the JSON that a command for this coordinator prints.
    pub fn json(&self, arguments: &[&str]) -> Value {
        json(&[arguments, &["--json", "--coordinator", &self.address()], &self.client()[..]].concat())
    }

    /// Returns the status of the last run.
    pub fn last_run(&self) -> Value {
        let status = self.json(&["list"]);
        status["runs"].as_array().unwrap().last().unwrap().clone()
    }

    /// Waits until the status of the last run satisfies a condition.
    #[track_caller]
    pub fn wait_for_run(&self, what: &str, condition: impl Fn(&Value) -> bool) -> Value {
        wait_until(what, || Some(self.last_run()).filter(&condition))
    }

    /// Returns a worker as `agon workers list` shows it.
    pub fn worker_status(&self, name: &str) -> Value {
        let status = self.json(&["workers"]);
        let workers = status["workers"].as_array().unwrap().clone();
        workers.into_iter().find(|worker| worker["worker"] == name).unwrap_or_default()
    }

    /// Waits until the last run is done, kills the coordinator and asserts that the dataset has every bout once, legal and
    /// with the content of an undisturbed run.
    pub fn assert_finishes_undisturbed(&mut self, spec: &str) {
        self.wait_for_run("the run is done", |run| run["state"] == "done");
        self.kill();
        self.assert_undisturbed(spec);
    }

    /// Asserts that the dataset of a stopped coordinator equals that of an undisturbed run.
    pub fn assert_undisturbed(&self, spec: &str) {
        self.assert_verifies();
        let file = self.folder.write("undisturbed.toml", spec);
        let data = self.path("undisturbed");
        let status = json(&["run", &file, "--data", &data, "--json"]);
        let undisturbed = digests(Path::new(&data));
        assert_eq!(
            undisturbed.keys().copied().collect::<Vec<_>>(),
            (0..status["total"].as_u64().unwrap()).collect::<Vec<_>>()
        );
        assert_eq!(digests(self.data()), undisturbed);
    }

    /// Checks that `agon verify` finds no error.
    pub fn assert_verifies(&self) {
        let answer = agon(&["verify", "--data", &self.data]);
        assert_eq!(answer.code, 0, "{} {}", answer.out, answer.err);
    }
}

/// Returns the lease duration and the heartbeat interval in milliseconds.
fn timing(lease: Duration) -> [String; 2] {
    [lease.as_millis().to_string(), (lease.as_millis() / 9).to_string()]
}

/// Returns the content digest of every bout of the last run.
pub fn digests(data: &Path) -> BTreeMap<u64, [u8; 32]> {
    let dataset = Dataset::open(data).unwrap();
    let run = dataset.find("latest").unwrap();
    let mut bouts: BTreeMap<u64, BoutRows> = BTreeMap::new();
    for part in dataset.parts(&run, Table::Games).unwrap() {
        for row in part.games().unwrap() {
            bouts.entry(row.bout).or_default().games.push(row);
        }
    }
    for part in dataset.parts(&run, Table::Moves).unwrap() {
        for row in part.moves().unwrap() {
            bouts.entry(row.bout).or_default().moves.push(row);
        }
    }
    bouts.iter().map(|(bout, rows)| (*bout, content_digest(rows))).collect()
}
