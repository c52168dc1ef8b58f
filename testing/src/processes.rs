//! A cluster of real processes on one machine: a coordinator that restarts on the same port and folder, workers, and the
//! dataset they write.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use agon_analysis::dataset::Dataset;
use agon_records::{BoutRows, Table, content_digest};
use serde_json::Value;

use crate::binary::{Answer, agon, call, json, path};

/// The time after which a waiting test fails.
pub const PATIENCE: Duration = Duration::from_secs(300);

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

    /// Does the same with environment variables.
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

    /// Sends a signal by its name.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }

    /// Returns the exit code if the process has ended.
    pub fn ended(&mut self) -> Option<i32> {
        self.child.try_wait().unwrap().map(|status| status.code().unwrap_or(-1))
    }

    /// Waits for the process to end.
    pub fn exit_code(&mut self) -> i32 {
        until("the process ends", || self.ended())
    }

    /// Returns its standard error so far.
    pub fn said(&self) -> String {
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

/// Calls the binary with environment variables.
pub fn agon_with(arguments: &[&str], variables: &[(String, String)]) -> Answer {
    call(arguments, variables, b"")
}

/// Polls until `look` finds something; fails after [`PATIENCE`].
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(started.elapsed() < PATIENCE, "timed out waiting: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns a port that was free a moment ago.
pub fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A coordinator's port and folder, and its process while it runs.
pub struct Cluster {
    folder: tempfile::TempDir,
    port: u16,
    data: String,
    timing: [String; 2],
    part_bouts: String,
    /// More arguments and variables of the coordinator.
    pub more: Vec<String>,
    variables: Vec<(String, String)>,
    /// Additional flags for the coordinator and for its clients.
    flags: Vec<String>,
    client: Vec<String>,
    /// The coordinator process; none while it is stopped.
    pub coordinator: Option<Process>,
}

impl Cluster {
    /// Starts a coordinator with the given lease duration and nine heartbeats per lease.
    pub fn start(lease: Duration) -> Cluster {
        let mut cluster = Cluster::prepare(lease);
        cluster.restart();
        cluster
    }

    /// Prepares a cluster whose coordinator has not started yet.
    pub fn prepare(lease: Duration) -> Cluster {
        let folder = tempfile::tempdir().unwrap();
        Cluster {
            port: free_port(),
            data: folder.path().join("data").to_str().unwrap().to_string(),
            folder,
            timing: timing(lease),
            part_bouts: "16".to_string(),
            more: Vec::new(),
            variables: Vec::new(),
            flags: Vec::new(),
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

    /// Puts the dataset into an object store, in parts of four bouts, and the state into the test's folder.
    pub fn with_store(self, address: &str, variables: Vec<(String, String)>) -> Cluster {
        let more = vec!["--state".to_string(), self.path("state")];
        Cluster { data: address.to_string(), more, variables, part_bouts: "4".to_string(), ..self }
    }

    /// Returns a path in the test's folder.
    pub fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_string()
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

    /// Kills the coordinator if it runs, and starts one on the same folder and port without waiting for it.
    pub fn start_again(&mut self) {
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
        ];
        arguments.extend(self.more.iter().map(String::as_str));
        arguments.extend(self.flags.iter().map(String::as_str));
        let log = self.folder.path().join("coordinator.log");
        self.coordinator = Some(Process::start_with(&arguments, &self.variables, log));
    }

    /// Does the same and waits until the coordinator answers.
    pub fn restart(&mut self) {
        self.start_again();
        let code = until("the coordinator answers or ends", || {
            let ended = self.coordinator.as_mut().and_then(Process::ended);
            ended.map(Some).or_else(|| (self.ask(&["list"]).code == 0).then_some(None))
        });
        assert_eq!(code, None, "{}", self.said());
    }

    /// Returns the coordinator's standard error.
    pub fn said(&self) -> String {
        self.coordinator.as_ref().map(Process::said).unwrap_or_default()
    }

    /// Starts a worker with one slot.
    pub fn worker(&self, name: &str) -> Process {
        let log = self.folder.path().join(format!("{name}.log"));
        let arguments =
            ["worker", "--coordinator", &self.address(), "--name", name, "--slots", "1", "--grace", "5"];
        let arguments = [&arguments[..], &self.client()].concat();
        Process::start_logged(&arguments, log)
    }

    /// Calls the binary with the address of this coordinator.
    pub fn ask(&self, arguments: &[&str]) -> Answer {
        agon(&[arguments, &["--coordinator", &self.address()], &self.client()[..]].concat())
    }

    fn client(&self) -> Vec<&str> {
        self.client.iter().map(String::as_str).collect()
    }

    /// Submits a spec and returns the id of its run.
    pub fn submit(&self, spec: &str) -> String {
        let file = self.path("spec.toml");
        std::fs::write(&file, spec).unwrap();
        let answer = self.ask(&["submit", &file, "--json"]);
        assert_eq!(answer.code, 0, "{}", answer.err);
        serde_json::from_str::<Value>(&answer.out).unwrap()["run"].as_str().unwrap().to_string()
    }

    /// Returns the status of a run.
    pub fn run_of(&self, id: &str) -> Value {
        let told = self.json(&["list"]);
        told["runs"].as_array().unwrap().iter().find(|run| run["run"] == id).unwrap().clone()
    }

    /// Returns the JSON of a command for this coordinator.
    pub fn json(&self, arguments: &[&str]) -> Value {
        json(&[arguments, &["--json", "--coordinator", &self.address()], &self.client()[..]].concat())
    }

    /// Returns the status of the last run.
    pub fn run(&self) -> Value {
        let told = self.json(&["list"]);
        told["runs"].as_array().unwrap().last().unwrap().clone()
    }

    /// Waits until the status of the last run satisfies `so`.
    pub fn until_run(&self, what: &str, so: impl Fn(&Value) -> bool) -> Value {
        until(what, || Some(self.run()).filter(&so))
    }

    /// Returns a worker as `agon workers list` shows it.
    pub fn worker_status(&self, name: &str) -> Value {
        let told = self.json(&["workers"]);
        let workers = told["workers"].as_array().unwrap().clone();
        workers.into_iter().find(|worker| worker["worker"] == name).unwrap_or_default()
    }

    /// Waits until the last run is done, kills the coordinator and checks the dataset: every bout once, legal, and with
    /// the content of an undisturbed run.
    pub fn finishes_like_an_undisturbed_run(&mut self, spec: &str) {
        self.until_run("the run is done", |run| run["state"] == "done");
        self.kill();
        self.equals_an_undisturbed_run(spec);
    }

    /// Checks the dataset of a stopped coordinator against an undisturbed run.
    pub fn equals_an_undisturbed_run(&self, spec: &str) {
        self.verifies();
        let file = self.path("calm.toml");
        std::fs::write(&file, spec).unwrap();
        let calm = self.path("calm");
        let told = json(&["run", &file, "--data", &calm, "--json"]);
        let calm = digests(Path::new(&calm));
        assert_eq!(
            calm.keys().copied().collect::<Vec<_>>(),
            (0..told["total"].as_u64().unwrap()).collect::<Vec<_>>()
        );
        assert_eq!(digests(self.data()), calm);
    }

    /// Checks that `agon verify` finds no error.
    pub fn verifies(&self) {
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
