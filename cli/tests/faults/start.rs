//! States and datasets that do not fit together at the start or that are replaced later, and processes whose surroundings
//! fail: standard error that nobody reads, too few files, too little memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::folder::killed_before_export;
use crate::restore::remove_state;
use crate::{LONG, quick};
use agon_testing::binary::{agon, path};
use agon_testing::folder::Folder;
use agon_testing::processes::{Cluster, Process, free_port, wait_until};

const LEASE: Duration = Duration::from_millis(1500);

/// Asserts that the coordinator exits with this error.
fn assert_refused(cluster: &mut Cluster, message: &str) {
    cluster.spawn_coordinator();
    let code = cluster.coordinator.as_mut().map(Process::wait);
    assert!(code == Some(1) && cluster.log().contains(message), "{message}: {code:?} {}", cluster.log());
}

/// Returns the first part of a run in a table.
fn first_part(data: &Path, table: &str) -> PathBuf {
    let run = fs::read_dir(data.join(table)).unwrap().next().unwrap().unwrap().path();
    let mut parts: Vec<PathBuf> = fs::read_dir(run).unwrap().map(|part| part.unwrap().path()).collect();
    parts.sort();
    parts.remove(0)
}

#[test]
fn state_and_dataset_that_contradict_each_other_are_rejected() {
    let spec = quick(400);
    let mut cluster = Cluster::start(LEASE);
    let data = cluster.data().to_path_buf();
    cluster.submit(&spec);
    let worker = cluster.worker("one");
    cluster.wait_for_run("parts are exported", |run| run["exported"].as_u64() >= Some(32));
    cluster.kill();
    drop(worker);
    // 1. One changed number in the state: fewer exported bouts are folded twice, more are missing.
    let state = rusqlite::Connection::open(data.join("coordinator.sqlite")).unwrap();
    let exported: i64 = state.query_row("SELECT exported FROM runs", [], |row| row.get(0)).unwrap();
    for (changed, message) in [
        (exported - 16, "bouts are marked as exported, but the totals count"),
        (exported - 3, "bouts are marked as exported, but the totals count"),
        (exported + 1, "bouts are marked as exported, but the totals count"),
        (4000, "4000 bouts are marked as exported, but the run has 400"),
    ] {
        state.execute("UPDATE runs SET exported = ?1", [changed]).unwrap();
        assert_refused(&mut cluster, message);
        let answer = agon(&["verify", "--state", "--data", data.to_str().unwrap()]);
        assert!(answer.code == 1 && answer.out.contains(message), "{} {}", answer.out, answer.err);
    }
    state.execute("UPDATE runs SET exported = ?1", [exported]).unwrap();
    drop(state);
    // 2. A part is missing.
    for table in ["games", "moves"] {
        let part = first_part(&data, table);
        let elsewhere = cluster.path("part");
        fs::rename(&part, &elsewhere).unwrap();
        assert_refused(&mut cluster, "16 of ");
        assert!(
            cluster.log().contains("exported bouts are missing in the dataset (0-15)"),
            "{}",
            cluster.log()
        );
        fs::rename(&elsewhere, &part).unwrap();
    }
    // 3. Neither start changed anything.
    cluster.restart();
    let _worker = cluster.worker("two");
    cluster.assert_finishes_undisturbed(&spec);
}

/// A dataset whose last part is gone says that the run is done, and it is not.
#[test]
fn rebuilt_state_plays_missing_last_bouts_again() {
    let spec = quick(40);
    let mut cluster = Cluster::start(LEASE);
    let data = cluster.data().to_path_buf();
    let id = cluster.submit(&spec);
    let worker = cluster.worker("one");
    cluster.wait_for_run("the run is done", |run| run["state"] == "done" && run["exported"] == 40);
    cluster.kill();
    remove_state(&data);
    for table in ["games", "moves"] {
        fs::remove_file(data.join(format!("{table}/run={id}/part-0000000032-0000000039.parquet"))).unwrap();
    }
    cluster.flags = vec!["--take-over".to_string()];
    cluster.restart();
    cluster.wait_for_run("the run is done again", |run| run["state"] == "done" && run["bouts"] == 40);
    drop(worker);
    cluster.assert_undisturbed(&spec);
}

#[test]
fn changed_digest_in_the_state_stops_the_export() {
    let mut cluster = killed_before_export(&quick(12));
    let state = rusqlite::Connection::open(cluster.data().join("coordinator.sqlite")).unwrap();
    state.execute("UPDATE bouts SET digest = zeroblob(32) WHERE bout = 3", []).unwrap();
    drop(state);
    cluster.restart();
    let reason = "bout 3 does not read back: its content does not match its digest";
    let run = cluster.wait_for_run("the run reports the bout", |run| {
        run["waiting"].as_str().is_some_and(|why| why.contains(reason))
    });
    assert_eq!(run["exported"], 0, "{run}");
    assert!(!cluster.data().join("games").exists(), "nothing is exported");
}

#[test]
fn replaced_data_folder_ends_the_coordinator() {
    for delete in [false, true] {
        let mut cluster = Cluster::start(LONG);
        cluster.submit(&quick(40_000));
        let worker = cluster.worker("one");
        cluster.wait_for_run("a part is exported", |run| run["exported"].as_u64() >= Some(16));
        let data = cluster.data().to_path_buf();
        if delete {
            fs::remove_dir_all(&data).or_else(|_| fs::remove_dir_all(&data)).unwrap();
        } else {
            fs::rename(&data, data.with_extension("renamed")).unwrap();
        }
        let code = cluster.coordinator.as_mut().map(Process::wait);
        let log = cluster.log();
        assert!(code == Some(1) && log.contains("was renamed, replaced or deleted"), "{code:?} {log}");
        assert!(!data.exists(), "the folder was made anew");
        drop(worker);
    }
}

#[test]
fn coordinator_works_while_nobody_reads_its_log() {
    let folder = Folder::new();
    let (listen, data) = (format!("127.0.0.1:{}", free_port()), folder.path("data"));
    let mut coordinator = Command::new(path())
        .args(["coordinator", "--listen", &listen, "--data", &data])
        .env("AGON_LOG", "trace")
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let unread = coordinator.stderr.take().unwrap();
    let (address, spec) = (format!("http://{listen}"), folder.write("spec.toml", quick(300)));
    wait_until("the run is submitted", || {
        (agon(&["submit", &spec, "--coordinator", &address]).code == 0).then_some(())
    });
    let _worker = Process::start(&["worker", "--coordinator", &address, "--slots", "2"]);
    wait_until("the run is done", || {
        let list = agon(&["list", "--coordinator", &address]);
        list.out.contains("done").then_some(())
    });
    coordinator.kill().unwrap();
    coordinator.wait().unwrap();
    drop(unread);
}

#[test]
fn one_spec_that_is_submitted_many_times_at_once_is_one_run() {
    let cluster = Cluster::start(LONG);
    let spec = cluster.path("spec.toml");
    fs::write(&spec, quick(40)).unwrap();
    let address = cluster.address();
    let submits: Vec<_> = (0..30)
        .map(|_| {
            let (spec, address) = (spec.clone(), address.clone());
            std::thread::spawn(move || agon(&["submit", &spec, "--coordinator", &address]))
        })
        .collect();
    for submit in submits {
        let answer = submit.join().unwrap();
        assert_eq!(answer.code, 0, "{}", answer.err);
    }
    assert_eq!(cluster.json(&["list"])["runs"].as_array().unwrap().len(), 1);
}

/// Calls the binary in a shell that first sets limits.
#[cfg(unix)]
fn limited(limit: &str, arguments: &[&str]) -> std::process::Child {
    let line = format!("{limit}; exec \"$0\" \"$@\"");
    let mut shell = Command::new("sh");
    let shell = shell.arg("-c").arg(line).arg(path()).args(arguments);
    shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

#[cfg(unix)]
#[test]
fn worker_with_few_files_plays() {
    let cluster = Cluster::start(LEASE);
    cluster.submit(&quick(60));
    let address = cluster.address();
    let arguments = ["worker", "--coordinator", &address, "--slots", "8", "--name", "few"];
    let mut worker = limited("ulimit -n 64", &arguments);
    cluster.wait_for_run("the run is done", |run| run["state"] == "done");
    worker.kill().unwrap();
    worker.wait().unwrap();
}

/// Whatever fails first, the command ends: before, it printed a panic and waited for ever.
#[cfg(target_os = "linux")]
#[test]
fn run_ends_where_memory_is_short() {
    let folder = Folder::new();
    let (spec, data) = (folder.write("spec.toml", quick(8)), folder.path("data"));
    let kilobytes = (40_000..120_000).step_by(4_000).map(|limit| (limit, "2"));
    for (limit, slots) in kilobytes.chain([(4_000_000, "4000")]) {
        let limits = format!("ulimit -v {limit}; export RUST_BACKTRACE=1");
        let run = limited(&limits, &["run", &spec, "--data", &data, "--slots", slots, "--quiet"]);
        let process = run.id().to_string();
        let (ended, waits) = std::sync::mpsc::channel();
        let killer = std::thread::spawn(move || {
            let is_late = waits.recv_timeout(Duration::from_secs(100)).is_err();
            is_late.then(|| Command::new("kill").args(["-KILL", &process]).status().unwrap())
        });
        let output = run.wait_with_output().unwrap();
        let _ = ended.send(());
        assert_eq!(killer.join().unwrap(), None, "{limit}: the command waits for ever");
        let error = String::from_utf8(output.stderr).unwrap();
        let is_reported = error.contains("error: ") || error.contains("failed") || error.contains("panicked");
        assert!(output.status.success() || is_reported, "{limit}: {:?} {error}", output.status);
    }
}
