//! The cluster as real processes: a run in one of them, and one whose workers and coordinator are killed.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod binary;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use agon_analysis::dataset::Dataset;
use agon_records::{BoutRows, Table, content_digest};
use binary::{agon, json, refused};

const SPEC: &str = r#"
name = "kill"
game = "connect-four"
seed = 3
limit = { nodes = 4000 }
openings = { random_plies = 4 }
[tournament]
format = "round-robin"
bouts = 100
[[player]]
name = "pvs"
search = { algorithm = "pvs", table_mb = 1 }
[[player]]
name = "uct"
search = { algorithm = "uct" }
"#;

/// A process that does not outlive the test.
struct Process(Child);

impl Process {
    fn start(arguments: &[&str]) -> Process {
        let mut command = Command::new(env!("CARGO_BIN_EXE_agon"));
        Process(command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // SIGKILL: nothing is flushed, nobody says goodbye.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The content of every bout of the one run of a dataset.
fn digests(data: &Path) -> BTreeMap<u64, [u8; 32]> {
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

#[test]
fn a_run_that_is_killed_again_and_again_has_the_dataset_of_one_that_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    std::fs::write(path("spec.toml"), SPEC).unwrap();

    // 1. Undisturbed, in one process.
    let told = json(&["run", &path("spec.toml"), "--data", &path("calm"), "--json"]);
    assert_eq!(
        (told["state"].as_str(), told["bouts"].as_u64(), told["games"].as_u64()),
        (Some("done"), Some(100), Some(200))
    );

    // 2. A cluster whose members die.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("http://127.0.0.1:{port}");
    let (listen, data) = (format!("127.0.0.1:{port}"), path("wild"));
    let coordinator = || {
        Process::start(&[
            "coordinator",
            "--listen",
            &listen,
            "--data",
            &data,
            "--lease-ms",
            "600",
            "--heartbeat-ms",
            "100",
            "--part-bouts",
            "16",
        ])
    };
    let worker =
        |name: &str| Process::start(&["worker", "--coordinator", &address, "--name", name, "--slots", "1"]);
    let mut keeper = coordinator();
    let mut workers = [worker("a"), worker("b")];
    let started = Instant::now();
    while agon(&["submit", &path("spec.toml"), "--coordinator", &address]).code != 0 {
        assert!(started.elapsed() < Duration::from_secs(60), "the coordinator does not come up");
        std::thread::sleep(Duration::from_millis(50));
    }
    let mut kills = 0;
    loop {
        std::thread::sleep(Duration::from_millis(if kills < 8 { 350 } else { 200 }));
        if kills < 8 {
            let answer = agon(&["list", "--coordinator", &address, "--json"]);
            assert!(
                !answer.out.contains("\"state\":\"done\""),
                "too quick to be disturbed after {kills} kills"
            );
            match kills % 4 {
                0 | 2 => {
                    let index = kills / 2 % 2;
                    let name = ["a", "b"][index];
                    drop(std::mem::replace(&mut workers[index], Process::start(&["list-games"])));
                    workers[index] = worker(name);
                }
                _ => {
                    drop(std::mem::replace(&mut keeper, Process::start(&["list-games"])));
                    keeper = coordinator();
                }
            }
            kills += 1;
            continue;
        }
        let answer = agon(&["list", "--coordinator", &address, "--json"]);
        if answer.out.contains("\"state\":\"done\"") {
            break;
        }
        assert!(started.elapsed() < Duration::from_secs(240), "{} {}", answer.out, answer.err);
    }
    drop(workers);
    drop(keeper);

    // 3. The same, everything once, and sound.
    let (calm, wild) = (digests(Path::new(&path("calm"))), digests(Path::new(&path("wild"))));
    assert_eq!(calm.keys().copied().collect::<Vec<_>>(), (0..100).collect::<Vec<u64>>());
    assert_eq!(calm, wild);
    for data in ["calm", "wild"] {
        let answer = agon(&["verify", "--data", &path(data)]);
        assert_eq!(answer.code, 0, "{} {}", answer.out, answer.err);
    }
    let answer = agon(&["replay", "latest", "--games", "10", "--data", &path("wild")]);
    assert_eq!(answer.code, 0, "{} {}", answer.out, answer.err);
}

#[test]
fn a_run_that_is_interrupted_ends_at_once_and_goes_on_later() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    std::fs::write(path("spec.toml"), SPEC.replace("bouts = 100", "bouts = 300")).unwrap();
    let call = ["run", &path("spec.toml"), "--data", &path("data"), "--json"];
    let mut running = Process::start(&call);
    std::thread::sleep(Duration::from_millis(700));
    let interrupted = Command::new("kill").args(["-INT", &running.0.id().to_string()]).status().unwrap();
    assert!(interrupted.success());
    let asked = Instant::now();
    while running.0.try_wait().unwrap().is_none() {
        assert!(asked.elapsed() < Duration::from_secs(30), "it does not end");
        std::thread::sleep(Duration::from_millis(20));
    }
    let told = json(&call);
    assert_eq!((told["state"].as_str(), told["bouts"].as_u64()), (Some("done"), Some(300)));
}

#[test]
fn the_same_spec_again_is_the_same_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    std::fs::write(path("spec.toml"), SPEC.replace("bouts = 100", "bouts = 3")).unwrap();
    let call = ["run", &path("spec.toml"), "--data", &path("data"), "--json"];
    let first = json(&call);
    let second = json(&call);
    for key in ["run", "state", "bouts", "games", "standings"] {
        assert_eq!(second[key], first[key], "a finished run is shown and not played: {key}");
    }
    let again = json(&[&call[..], &["--again"]].concat());
    assert_eq!(again["run"].as_str().unwrap(), format!("{}-2", first["run"].as_str().unwrap()));
}

#[test]
fn what_cannot_be_run_is_refused_with_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let spec = path("spec.toml");
    for (from, to, sentence) in [
        ("bouts = 100", "bouts = 0", "spec.toml:9: `bouts` of [tournament] must be a whole number from 1 to"),
        ("limit =", "limits =", "did you mean `limit`?"),
        ("\"uct\" }", "\"utc\" }", "there is no algorithm `utc`"),
        ("name = \"uct\"", "name = \"pvs\"", "two players are called `pvs`"),
        ("random_plies = 4", "file = \"nowhere\"", "nowhere"),
        ("[tournament]", "[tournament", "this is not TOML"),
        ("nodes = 4000", "nodes = -1", "must be a whole number"),
    ] {
        assert!(SPEC.contains(from));
        std::fs::write(&spec, SPEC.replace(from, to)).unwrap();
        refused(&["run", &spec, "--data", &path("data")], sentence);
        refused(&["check", &spec], sentence);
    }
    std::fs::write(&spec, SPEC).unwrap();
    std::fs::create_dir(path("foreign")).unwrap();
    std::fs::write(path("foreign/letter.txt"), "dear").unwrap();
    let answer = agon(&["run", &spec, "--data", &path("foreign")]);
    assert!(answer.code == 1 && answer.err.contains("is no data folder of agon"), "{}", answer.err);
    let answer = agon(&["list", "--coordinator", "http://127.0.0.1:9"]);
    assert!(answer.code == 1 && answer.err.contains("no coordinator answers at"), "{}", answer.err);
}

#[test]
fn a_test_stops_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let sprt = SPEC
        .replace(
            "format = \"round-robin\"\nbouts = 100",
            "format = \"sprt\"\nbounds = [0, 100]\nmax_bouts = 400",
        )
        .replace("\"uct\" }", "\"random\" }");
    std::fs::write(path("spec.toml"), sprt).unwrap();
    let told = json(&["run", &path("spec.toml"), "--data", &path("data"), "--json"]);
    assert_eq!((told["state"].as_str(), told["sprt"]["verdict"].as_str()), (Some("decided"), Some("H1")));
    assert!(told["sprt"]["prefix"].as_u64().unwrap() < 200, "{told}");
    // What was under way when the test decided may still have come in.
    assert!(told["bouts"].as_u64().unwrap() < 20_000, "{told}");
}
