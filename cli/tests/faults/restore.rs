//! Backup, loss, restore and migration of the state, while workers stay connected.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::folder::killed_before_export;
use crate::quick;
use agon_testing::binary::{agon, agon_with_input, json};
use agon_testing::folder::Folder;
use agon_testing::processes::{Cluster, Process, wait_until};

const LEASE: Duration = Duration::from_millis(1500);

fn exported(run: &Value) -> u64 {
    run["exported"].as_u64().unwrap()
}

/// Removes the state files of a data folder.
pub(crate) fn remove_state(data: &Path) {
    for name in fs::read_dir(data).unwrap() {
        let path = name.unwrap().path();
        if path.to_str().unwrap().contains("coordinator.sqlite") {
            fs::remove_file(path).unwrap();
        }
    }
}

/// Asserts that the coordinator exits with this error.
fn assert_refused(cluster: &mut Cluster, message: &str) {
    cluster.spawn_coordinator();
    let code = cluster.coordinator.as_mut().map(Process::wait);
    assert!(code == Some(1) && cluster.log().contains(message), "{code:?} {}", cluster.log());
}

#[test]
fn restored_backup_resumes() {
    let spec = quick(96);
    let mut cluster = Cluster::start(LEASE);
    let data = cluster.data().to_str().unwrap().to_string();
    let backup = cluster.path("backup.sqlite");
    // 1. A backup while a run is in progress.
    cluster.submit(&spec);
    let worker = cluster.worker("one");
    cluster.wait_for_run("a part is exported", |run| exported(run) >= 16);
    let document = json(&["data", "backup", &backup, "--data", &data, "--json"]);
    assert_eq!((document["runs"].as_u64(), document["version"].as_u64()), (Some(1), Some(8)));
    let answer = agon(&["data", "backup", &backup, "--data", &data]);
    assert!(answer.code == 2 && answer.err.contains("nothing is overwritten"), "{}", answer.err);
    let answer = agon(&["data", "backup", "/dev/null", "--data", &data]);
    assert_eq!((answer.code, answer.out.as_str()), (0, ""), "{}", answer.err);
    let checked = json(&["verify", "--state", "--data", &data, "--json"]);
    assert!(checked["ok"] == true, "{checked}");
    cluster.wait_for_run("more parts are exported", |run| exported(run) >= 48);
    // 2. The state is lost. The coordinator does not start without it.
    cluster.kill();
    remove_state(Path::new(&data));
    assert_refused(&mut cluster, "agon data restore");
    let answer = agon(&["data", "restore", &cluster.path("spec.toml"), "--data", &data]);
    assert!(answer.code == 2 && answer.err.contains("cannot be read"), "{}", answer.err);
    // 3. The backup is restored, once.
    let answer = agon(&["data", "restore", &backup, "--data", &data]);
    assert!(answer.code == 0 && answer.out.contains("--take-over"), "{} {}", answer.out, answer.err);
    let answer = agon(&["data", "restore", &backup, "--data", &data]);
    assert!(answer.code == 1 && answer.err.contains("has a state already"), "{}", answer.err);
    // 4. The run resumes without repeating exported bouts, and the worker is not flagged.
    cluster.flags = vec!["--take-over".to_string()];
    cluster.restart();
    assert!(exported(&cluster.last_run()) >= 48, "{}", cluster.last_run());
    let entries = cluster.json(&["audit"]);
    assert!(entries.to_string().contains("the dataset was ahead of the state"), "{entries}");
    cluster.wait_for_run("the run is done", |run| run["state"] == "done");
    let workers = cluster.agon(&["workers"]).out;
    assert!(workers.contains("one") && !workers.contains("quarantine"), "{workers}");
    drop(worker);
    let document = cluster.last_run();
    assert_eq!((document["bouts"].as_u64(), document["failed"].as_u64()), (Some(96), Some(0)), "{document}");
    let checked = json(&["verify", "--state", "--data", &data, "--json"]);
    assert!(checked["ok"] == true, "{checked}");
    cluster.assert_finishes_undisturbed(&spec);
}

/// The dataset has everything since the backup: submitted runs, their results and voided bouts.
#[test]
fn older_state_catches_up_with_dataset() {
    let mut cluster = Cluster::start(LEASE);
    let data = cluster.data().to_str().unwrap().to_string();
    let worker = cluster.worker("one");
    let first = cluster.submit(&quick(40));
    cluster.wait_for_run("the run is done", |run| run["state"] == "done");
    let mut backup = agon(&["data", "backup", &cluster.path("backup.sqlite"), "--data", &data]);
    assert_eq!(backup.code, 0, "{}", backup.err);
    // 1. After the backup, bouts are voided, a run is played and another is cancelled.
    assert_eq!(cluster.json(&["data", "void", &first, "--bouts", "5-9"])["voided"], 5);
    let second = cluster.submit(&quick(41));
    cluster.wait_for_run("the run is done", |run| run["state"] == "done");
    let third = cluster.submit(&quick(4000));
    cluster.wait_for_run("a part is exported", |run| exported(run) >= 16);
    assert_eq!(cluster.agon(&["cancel", &third]).code, 0);
    let ended = cluster.wait_for_run("all bouts are exported", |run| run["exported"] == run["bouts"]);
    drop(worker);
    let known: Vec<Value> = [&first, &second].map(|run| cluster.run_status(run)).to_vec();
    // 2. The state is lost and restored from standard input.
    cluster.kill();
    remove_state(Path::new(&data));
    let bytes = fs::read(cluster.path("backup.sqlite")).unwrap();
    backup = agon_with_input(&["data", "restore", "-", "--data", &data], &bytes);
    assert_eq!(backup.code, 0, "{}", backup.err);
    cluster.restart();
    for before in &known {
        let after = cluster.run_status(before["run"].as_str().unwrap());
        for field in ["state", "bouts", "games", "voided", "exported", "standings"] {
            assert_eq!(after[field], before[field], "{field} of {after}");
        }
    }
    let after = cluster.run_status(&third);
    assert_eq!((&after["state"], &after["games"]), (&ended["state"], &ended["games"]), "{after}");
    // 3. Known runs are not repeated, and voided bouts stay voided.
    assert_eq!(cluster.submit(&quick(41)), second);
    let worker = cluster.worker("two");
    let last = cluster.submit(&quick(8));
    wait_until("the run is done", || (cluster.run_status(&last)["state"] == "done").then_some(()));
    drop(worker);
    let document = fs::read_to_string(cluster.data().join(format!("runs/{first}.json"))).unwrap();
    let document: Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["voided"], serde_json::json!([5, 6, 7, 8, 9]));
    cluster.kill();
    let answer = agon(&["verify", "--all", "--data", &data]);
    assert_eq!(answer.code, 0, "{} {}", answer.out, answer.err);
}

/// The state file of a killed process is a backup, with its write-ahead log.
#[test]
fn restore_includes_the_write_ahead_log() {
    let mut cluster = Cluster::start(LEASE);
    cluster.submit(&quick(40));
    let worker = cluster.worker("one");
    cluster.wait_for_run("some bouts are committed", |run| run["bouts"].as_u64() > Some(5));
    cluster.kill();
    drop(worker);
    let left = cluster.data().join("coordinator.sqlite");
    let count = |file: &Path| -> u64 {
        let state = rusqlite::Connection::open(file).unwrap();
        state.query_row("SELECT count(*) FROM bouts", [], |row| row.get::<_, i64>(0)).unwrap() as u64
    };
    let elsewhere = cluster.path("elsewhere");
    let document = json(&["data", "restore", left.to_str().unwrap(), "--data", &elsewhere, "--json"]);
    let restored = count(&Path::new(&elsewhere).join("coordinator.sqlite"));
    assert_eq!(document["bouts"].as_u64(), Some(restored));
    assert_eq!(restored, count(&left));
}

#[test]
fn rejects_files_that_are_not_backups() {
    let folder = Folder::new();
    let path = |name: &str| folder.path(name);
    let foreign = rusqlite::Connection::open(path("foreign")).unwrap();
    foreign.execute_batch("CREATE TABLE flowers (name TEXT)").unwrap();
    let ancient = rusqlite::Connection::open(path("ancient")).unwrap();
    ancient.execute_batch("CREATE TABLE meta (epoch INTEGER); PRAGMA user_version = 1;").unwrap();
    folder.write(
        "text",
        "a text that is longer than the header of a database file, which has 100 bytes: see sqlite.org",
    );
    for (name, message) in [
        ("foreign", "no backup of agon"),
        ("ancient", "never released"),
        ("text", "no backup of agon"),
        ("nowhere", "there is no such file"),
    ] {
        let answer = agon(&["data", "restore", &path(name), "--data", &path("data")]);
        assert!(answer.code != 0 && answer.err.contains(message), "{name}: {}", answer.err);
        assert!(!Path::new(&path("data")).join("coordinator.sqlite").exists(), "{name}");
    }
}

/// Leaves a part of moves without games, as a coordinator does that is killed between the two.
fn leave_moves_without_games(data: &Path) {
    let moves = data.join("moves");
    let run = std::fs::read_dir(&moves).unwrap().next().unwrap().unwrap().path();
    let games = data.join("games").join(run.file_name().unwrap());
    let mut parts: Vec<_> = std::fs::read_dir(games).unwrap().map(|part| part.unwrap().file_name()).collect();
    // A killed coordinator may leave a part that was never renamed into place.
    parts.retain(|part| part.to_str().unwrap().ends_with(".parquet"));
    parts.sort();
    let last = parts.last().unwrap().to_str().unwrap();
    let end: u64 = last.trim_end_matches(".parquet").rsplit('-').next().unwrap().parse().unwrap();
    let orphan = format!("part-{:010}-{:010}.parquet", end + 1, end + 5);
    std::fs::copy(run.join(&parts[0]), run.join(orphan)).unwrap();
}

#[test]
fn take_over_rebuilds_state_from_dataset() {
    let spec = quick(40);
    let mut cluster = Cluster::start(LEASE);
    let data = cluster.data().to_path_buf();
    cluster.submit(&spec);
    let worker = cluster.worker("one");
    let before = cluster.wait_for_run("a part is exported", |run| exported(run) >= 16);
    cluster.kill();
    remove_state(&data);
    leave_moves_without_games(&data);
    assert_refused(&mut cluster, "--take-over");
    cluster.flags = vec!["--take-over".to_string()];
    cluster.restart();
    assert!(exported(&cluster.last_run()) >= exported(&before));
    // The totals rebuilt from parts equal those of the bouts.
    let done = cluster.wait_for_run("the run is done", |run| run["state"] == "done");
    drop(worker);
    cluster.kill();
    let rated = json(&["ratings", "--data", data.to_str().unwrap(), "--json"]);
    assert_eq!(done["games"], rated["players"][0]["games"], "{done} {rated}");
    cluster.assert_undisturbed(&spec);
}

#[test]
fn state_check_finds_unreadable_rows() {
    let cluster = killed_before_export(&quick(12));
    let data = cluster.data().to_str().unwrap().to_string();
    assert_eq!(agon(&["verify", "--state", "--data", &data]).code, 0);
    let state = rusqlite::Connection::open(cluster.data().join("coordinator.sqlite")).unwrap();
    for (change, message) in [
        (
            "UPDATE bouts SET summary = (SELECT summary FROM bouts b WHERE b.bout = 1) WHERE bout = 2",
            "bout 2: its content does not match its summary",
        ),
        (
            "UPDATE bouts SET digest = zeroblob(32) WHERE bout = 3",
            "bout 3: its content does not match its digest",
        ),
        ("UPDATE bouts SET payload = substr(payload, 1, 40) WHERE bout = 4", "bout 4: "),
        (
            "INSERT INTO parts SELECT id, 0, 11 FROM runs",
            "a part of bouts 0 to 11 is due, but the state has 5",
        ),
        ("UPDATE runs SET exported = 99", "99 bouts are marked as exported, but the run has 12"),
        ("UPDATE runs SET exported = 1, folded = '{}'", "the totals of"),
    ] {
        state.execute(change, []).unwrap();
        let answer = agon(&["verify", "--state", "--data", &data]);
        assert!(answer.code == 1 && answer.out.contains(message), "{change}: {} {}", answer.out, answer.err);
    }
    let answer = agon(&["verify", "--state=nowhere"]);
    assert!(answer.code == 2 && answer.err.contains("there is no state in nowhere"), "{}", answer.err);
}

#[test]
fn migrates_state_of_previous_version() {
    let spec = quick(40);
    let mut cluster = Cluster::start(LEASE);
    cluster.submit(&spec);
    let worker = cluster.worker("one");
    cluster.wait_for_run("a part is exported", |run| exported(run) >= 16);
    cluster.kill();
    // Reverts the schema to the previous version.
    let file = cluster.data().join("coordinator.sqlite");
    let state = rusqlite::Connection::open(&file).unwrap();
    state
        .execute_batch(
            "ALTER TABLE runs DROP COLUMN build; ALTER TABLE runs DROP COLUMN abandoned; DROP TABLE opinions;
             ALTER TABLE runs DROP COLUMN granted; DROP TABLE holders; ALTER TABLE meta DROP COLUMN id;
             ALTER TABLE meta DROP COLUMN secret; DROP TABLE credentials; DROP TABLE workers; DROP TABLE convictions;
             PRAGMA user_version = 2;",
        )
        .unwrap();
    drop(state);
    cluster.restart();
    assert!(cluster.log().contains("state migrated"), "{}", cluster.log());
    assert!(cluster.data().join("coordinator.sqlite.version-2").is_file());
    cluster.wait_for_run("the run is done", |run| run["state"] == "done");
    drop(worker);
    cluster.assert_finishes_undisturbed(&spec);
}

#[test]
fn run_of_other_build_waits_for_resume() {
    let spec = quick(20);
    let mut cluster = Cluster::start(LEASE);
    let id = cluster.submit(&spec);
    cluster.kill();
    let state = rusqlite::Connection::open(cluster.data().join("coordinator.sqlite")).unwrap();
    state.execute("UPDATE runs SET signature = '0123456789abcdef'", []).unwrap();
    drop(state);
    cluster.restart();
    let worker = cluster.worker("one");
    assert_eq!(cluster.last_run()["state"], "paused");
    let entries = cluster.json(&["audit", "--run", &id]);
    assert!(entries.to_string().contains("a build that searches differently"), "{entries}");
    assert_eq!(cluster.agon(&["resume", &id]).code, 0);
    cluster.wait_for_run("the run is done", |run| run["state"] == "done");
    drop(worker);
}
