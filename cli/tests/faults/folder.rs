//! Unusable and damaged data folders, which are rejected with an error or recovered.

use std::fs;
use std::path::Path;
use std::time::Duration;

use agon_games::random::{below, seeded};
use agon_proto::v1::Outcome;

use crate::restore::remove_state;
use crate::{LONG, quick};
use agon_testing::binary::agon;
use agon_testing::folder::{Folder, copy_folder};
use agon_testing::processes::{Cluster, Process, digests, free_port, wait_until};
use agon_testing::scripted_worker::ScriptedWorker;

/// Asserts that a coordinator exits with 1 and this error.
fn assert_refused(data: &str, listen: &str, message: &str) {
    let answer = agon(&["coordinator", "--listen", listen, "--data", data]);
    assert_eq!(answer.code, 1, "{}", answer.err);
    assert!(answer.err.contains("error: ") && answer.err.contains(message), "{}", answer.err);
    assert!(!answer.err.contains("panicked"), "{}", answer.err);
}

#[test]
fn rejects_unusable_data_folders() {
    let cluster = Cluster::start(LONG);
    let free = format!("127.0.0.1:{}", free_port());
    let data = cluster.data().to_str().unwrap();
    // 1. The folder or the address is in use.
    assert_refused(data, &free, "another coordinator uses");
    let taken = cluster.address().replace("http://", "");
    assert_refused(&cluster.path("elsewhere"), &taken, "cannot be listened on");
    assert_eq!(cluster.agon(&["list"]).code, 0, "the first coordinator is not affected");
    // 2. The path cannot be a folder.
    fs::write(cluster.path("file"), "").unwrap();
    assert_refused(&cluster.path("file/data"), &free, "cannot be used");
    assert_refused("/proc/agon-data", &free, "cannot be used");
    // 3. The folder has other files.
    fs::create_dir(cluster.path("foreign")).unwrap();
    fs::write(cluster.path("foreign/letter.txt"), "dear").unwrap();
    assert_refused(&cluster.path("foreign"), &free, "is no data folder of agon");
    fs::write(cluster.path("foreign/agon.json"), "\u{0}not json").unwrap();
    assert_refused(&cluster.path("foreign"), &free, "is no data folder of agon");
    // 4. A newer version wrote it.
    fs::write(cluster.path("foreign/agon.json"), "{\"format\": 99}").unwrap();
    assert_refused(&cluster.path("foreign"), &free, "has format 99");
    fs::create_dir(cluster.path("newer")).unwrap();
    fs::write(cluster.path("newer/agon.json"), "{\"format\": 1}").unwrap();
    let state = rusqlite::Connection::open(cluster.path("newer/coordinator.sqlite")).unwrap();
    state.pragma_update(None, "user_version", 99).unwrap();
    drop(state);
    assert_refused(&cluster.path("newer"), &free, "the state has version 99");
}

/// Returns a cluster whose coordinator was killed after five committed bouts, none of them exported.
pub(crate) fn killed_before_export(spec: &str) -> Cluster {
    let mut cluster = Cluster::start(Duration::from_millis(300));
    cluster.submit(spec);
    let mut rogue = ScriptedWorker::new(&cluster.address(), "before");
    for _ in 0..5 {
        let bout = rogue.lease();
        let messages = rogue.honest_messages(&bout);
        assert_eq!(rogue.submit_one(messages).outcome(), Outcome::Committed);
    }
    cluster.kill();
    // Moves the write-ahead log into the file, so that one file has the whole state.
    let state = rusqlite::Connection::open(cluster.data().join("coordinator.sqlite")).unwrap();
    let busy: i64 = state.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0)).unwrap();
    assert_eq!(busy, 0);
    cluster
}

/// Starts a coordinator on a damaged copy, and asserts that it exits with an error, reports why the run is blocked, or
/// finishes the run with the correct dataset. Returns which.
fn start_on_damaged_copy(
    cluster: Cluster,
    data: &Path,
    undisturbed: &Path,
    what: &str,
) -> (Cluster, &'static str) {
    let mut cluster = cluster.with_data(data);
    cluster.spawn_coordinator();
    let code = wait_until("the coordinator answers or exits", || {
        let code = cluster.coordinator.as_mut().and_then(Process::try_exit_code);
        code.map(Some).or_else(|| (cluster.agon(&["list"]).code == 0).then_some(None))
    });
    if let Some(code) = code {
        let log = cluster.log();
        assert!(code == 1 && log.contains("error: ") && !log.contains("panicked"), "{what}: {code} {log}");
        return (cluster, "rejected");
    }
    let worker = cluster.worker("after");
    let is_blocked = |run: &serde_json::Value| {
        run["waiting"].as_str().is_some_and(|why| why.contains("does not read back"))
    };
    let run = cluster.wait_for_run("the run ends or reports why it is blocked", |run| {
        run["state"] == "done" || is_blocked(run)
    });
    drop(worker);
    let log = cluster.log();
    assert!(!log.contains("panicked"), "{what}: {log}");
    cluster.kill();
    if run["state"] != "done" {
        return (cluster, "blocked");
    }
    cluster.assert_verifies();
    assert_eq!(digests(data), digests(undisturbed), "{what}");
    (cluster, "recovered")
}

#[test]
fn damaged_state_is_rejected_or_recovered() {
    let spec = quick(10);
    let mut cluster = killed_before_export(&spec);
    let original = cluster.data().to_path_buf();
    let (undisturbed, file) = (cluster.path("undisturbed"), cluster.path("undisturbed.toml"));
    fs::write(&file, &spec).unwrap();
    assert_eq!(agon(&["run", &file, "--data", &undisturbed, "--json"]).code, 0);
    let state = fs::read(original.join("coordinator.sqlite")).unwrap();
    let mut random = seeded(11);
    let mut damages: Vec<(String, Vec<u8>)> = Vec::new();
    for length in [0, 1, 100, 4096, state.len() / 2, state.len() - 1] {
        damages.push((format!("truncated to {length} bytes"), state[..length].to_vec()));
    }
    for _ in 0..14 {
        let (byte, bit) = (below(&mut random, state.len()), below(&mut random, 8));
        let mut damaged = state.clone();
        damaged[byte] ^= 1 << bit;
        damages.push((format!("bit {bit} of byte {byte} flipped"), damaged));
    }
    let mut ends = std::collections::BTreeMap::new();
    for (number, (what, bytes)) in damages.into_iter().enumerate() {
        let data = cluster.path(&format!("copy-{number}"));
        copy_folder(&original, Path::new(&data));
        fs::write(Path::new(&data).join("coordinator.sqlite"), bytes).unwrap();
        let end;
        (cluster, end) = start_on_damaged_copy(cluster, Path::new(&data), Path::new(&undisturbed), &what);
        println!("{what}: {end}");
        *ends.entry(end).or_insert(0) += 1;
    }
    assert!(ends["rejected"] >= 5, "{ends:?}: truncated states are not rejected");
    // The undamaged state resumes.
    let (_, end) = start_on_damaged_copy(cluster, &original, Path::new(&undisturbed), "nothing");
    assert_eq!(end, "recovered");
}

#[test]
fn runs_without_state_are_not_replayed() {
    let spec = quick(4);
    let folder = Folder::new();
    let (file, data) = (folder.write("spec.toml", &spec), folder.path("data"));
    assert_eq!(agon(&["run", &file, "--data", &data]).code, 0);
    remove_state(Path::new(&data));
    assert_refused(&data, "127.0.0.1:0", "its state file coordinator.sqlite is gone or empty");
    assert_eq!(agon(&["verify", "--data", &data]).code, 0, "the dataset is intact");
}
