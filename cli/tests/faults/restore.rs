//! States that are copied, lost, put back and brought to a later version, while workers know nothing of it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::binary::{agon, agon_with_input, json};
use crate::folder::half_done;
use crate::processes::{Cluster, Process, until};
use crate::quick;

const LEASE: Duration = Duration::from_millis(1500);

fn exported(run: &Value) -> u64 {
    run["exported"].as_u64().unwrap()
}

/// Removes the state of a folder as a broken disk would.
fn destroy(data: &Path) {
    for name in fs::read_dir(data).unwrap() {
        let path = name.unwrap().path();
        if path.to_str().unwrap().contains("coordinator.sqlite") {
            fs::remove_file(path).unwrap();
        }
    }
}

/// The coordinator does not start, for a reason.
fn refused(cluster: &mut Cluster, sentence: &str) {
    cluster.start_again();
    let code = cluster.coordinator.as_mut().map(Process::exit_code);
    assert!(code == Some(1) && cluster.said().contains(sentence), "{code:?} {}", cluster.said());
}

#[test]
fn a_state_is_backed_up_destroyed_restored_and_goes_on() {
    let spec = quick(96);
    let mut cluster = Cluster::start(LEASE);
    let data = cluster.data().to_str().unwrap().to_string();
    let backup = cluster.path("backup.sqlite");
    // 1. A backup while it works, and a run that begins after it.
    cluster.submit(&spec);
    let worker = cluster.worker("one");
    cluster.until_run("some of it is exported", |run| exported(run) >= 16);
    let told = json(&["data", "backup", &backup, "--data", &data, "--json"]);
    assert_eq!((told["runs"].as_u64(), told["version"].as_u64()), (Some(1), Some(5)));
    let answer = agon(&["data", "backup", &backup, "--data", &data]);
    assert!(answer.code == 2 && answer.err.contains("nothing is written over"), "{}", answer.err);
    let checked = json(&["verify", "--state", "--data", &data, "--json"]);
    assert!(checked["ok"] == true, "{checked}");
    cluster.until_run("more is exported", |run| exported(run) >= 48);
    // 2. The disk breaks. Nothing begins anew by mistake.
    cluster.kill();
    destroy(Path::new(&data));
    refused(&mut cluster, "agon data restore");
    let answer = agon(&["data", "restore", &cluster.path("spec.toml"), "--data", &data]);
    assert!(answer.code == 2 && answer.err.contains("cannot be read"), "{}", answer.err);
    // 3. The copy is put back, once.
    let answer = agon(&["data", "restore", &backup, "--data", &data]);
    assert!(answer.code == 0 && answer.out.contains("--take-over"), "{} {}", answer.out, answer.err);
    let answer = agon(&["data", "restore", &backup, "--data", &data]);
    assert!(answer.code == 1 && answer.err.contains("has a state already"), "{}", answer.err);
    // 4. It goes on; what was exported since the backup is not played again; the worker did nothing wrong.
    cluster.more = vec!["--take-over".to_string()];
    cluster.restart();
    assert!(exported(&cluster.run()) >= 48, "{}", cluster.run());
    let entries = cluster.json(&["audit"]);
    assert!(entries.to_string().contains("the dataset was ahead of the state"), "{entries}");
    cluster.until_run("the run is done", |run| run["state"] == "done");
    let workers = cluster.ask(&["workers"]).out;
    assert!(workers.contains("one") && !workers.contains("quarantine"), "{workers}");
    drop(worker);
    let told = cluster.run();
    assert_eq!((told["bouts"].as_u64(), told["failed"].as_u64()), (Some(96), Some(0)), "{told}");
    let checked = json(&["verify", "--state", "--data", &data, "--json"]);
    assert!(checked["ok"] == true, "{checked}");
    cluster.finishes_like_an_undisturbed_run(&spec);
}

/// What happened since the backup is in the dataset, and is known again without anybody's word: runs that were handed in,
/// what they came to, and what was voided.
#[test]
fn a_state_from_an_earlier_time_learns_from_its_dataset() {
    let mut cluster = Cluster::start(LEASE);
    let data = cluster.data().to_str().unwrap().to_string();
    let worker = cluster.worker("one");
    let first = cluster.submit(&quick(40));
    cluster.until_run("the run is done", |run| run["state"] == "done");
    let mut backup = agon(&["data", "backup", &cluster.path("backup.sqlite"), "--data", &data]);
    assert_eq!(backup.code, 0, "{}", backup.err);
    // 1. Since then: bouts are voided, a run is played, another is begun and ended early.
    assert_eq!(cluster.json(&["data", "void", &first, "--bouts", "5-9"])["voided"], 5);
    let second = cluster.submit(&quick(41));
    cluster.until_run("the run is done", |run| run["state"] == "done");
    let third = cluster.submit(&quick(4000));
    cluster.until_run("some of it is exported", |run| exported(run) >= 16);
    assert_eq!(cluster.ask(&["cancel", &third]).code, 0);
    let ended = cluster.until_run("all that was played is exported", |run| run["exported"] == run["total"]);
    drop(worker);
    let known: Vec<Value> = [&first, &second].map(|run| cluster.run_of(run)).to_vec();
    // 2. The state is lost and put back, from standard input this time, and started as always.
    cluster.kill();
    destroy(Path::new(&data));
    let bytes = fs::read(cluster.path("backup.sqlite")).unwrap();
    backup = agon_with_input(&["data", "restore", "-", "--data", &data], &bytes);
    assert_eq!(backup.code, 0, "{}", backup.err);
    cluster.restart();
    for before in &known {
        let after = cluster.run_of(before["run"].as_str().unwrap());
        for field in ["state", "bouts", "games", "voided", "exported", "standings"] {
            assert_eq!(after[field], before[field], "{field} of {after}");
        }
    }
    let after = cluster.run_of(&third);
    assert_eq!((&after["state"], &after["games"]), (&ended["state"], &ended["games"]), "{after}");
    // 3. Nothing begins anew that is there, and nothing that was said of it is gone.
    assert_eq!(cluster.submit(&quick(41)), second);
    let worker = cluster.worker("two");
    let last = cluster.submit(&quick(8));
    until("the run is done", || (cluster.run_of(&last)["state"] == "done").then_some(()));
    drop(worker);
    let told = fs::read_to_string(cluster.data().join(format!("runs/{first}.json"))).unwrap();
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["voided"], serde_json::json!([5, 6, 7, 8, 9]));
    cluster.kill();
    let answer = agon(&["verify", "--all", "--data", &data]);
    assert_eq!(answer.code, 0, "{} {}", answer.out, answer.err);
}

/// The state file of a process that was killed, with what SQLite left beside it, is a backup too.
#[test]
fn what_a_killed_process_left_beside_its_state_is_restored_with_it() {
    let mut cluster = Cluster::start(LEASE);
    cluster.submit(&quick(40));
    let worker = cluster.worker("one");
    cluster.until_run("some bouts are there", |run| run["bouts"].as_u64() > Some(5));
    cluster.kill();
    drop(worker);
    let left = cluster.data().join("coordinator.sqlite");
    let count = |file: &Path| -> u64 {
        let state = rusqlite::Connection::open(file).unwrap();
        state.query_row("SELECT count(*) FROM bouts", [], |row| row.get::<_, i64>(0)).unwrap() as u64
    };
    let elsewhere = cluster.path("elsewhere");
    let told = json(&["data", "restore", left.to_str().unwrap(), "--data", &elsewhere, "--json"]);
    let restored = count(&Path::new(&elsewhere).join("coordinator.sqlite"));
    assert_eq!(told["bouts"].as_u64(), Some(restored));
    assert_eq!(restored, count(&left));
}

#[test]
fn what_is_no_backup_is_named_as_that() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let foreign = rusqlite::Connection::open(path("foreign")).unwrap();
    foreign.execute_batch("CREATE TABLE flowers (name TEXT)").unwrap();
    let ancient = rusqlite::Connection::open(path("ancient")).unwrap();
    ancient.execute_batch("CREATE TABLE meta (epoch INTEGER); PRAGMA user_version = 1;").unwrap();
    fs::write(path("text"), "dear mother, this is long enough to be taken for something else than nothing")
        .unwrap();
    for (name, sentence) in [
        ("foreign", "no backup of agon"),
        ("ancient", "never released"),
        ("text", "no backup of agon"),
        ("nowhere", "there is no such file"),
    ] {
        let answer = agon(&["data", "restore", &path(name), "--data", &path("data")]);
        assert!(answer.code != 0 && answer.err.contains(sentence), "{name}: {}", answer.err);
        assert!(!Path::new(&path("data")).join("coordinator.sqlite").exists(), "{name}");
    }
}

/// What a coordinator leaves that dies between the moves of a part and its games: here moves of other bouts.
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
fn a_state_that_is_gone_is_made_from_the_dataset_if_the_operator_says_so() {
    let spec = quick(40);
    let mut cluster = Cluster::start(LEASE);
    let data = cluster.data().to_path_buf();
    cluster.submit(&spec);
    let worker = cluster.worker("one");
    let before = cluster.until_run("some of it is exported", |run| exported(run) >= 16);
    cluster.kill();
    destroy(&data);
    leave_moves_without_games(&data);
    refused(&mut cluster, "--take-over");
    cluster.more = vec!["--take-over".to_string()];
    cluster.restart();
    assert!(exported(&cluster.run()) >= exported(&before));
    // The tally that was made from parts is the one that was made from bouts.
    let done = cluster.until_run("the run is done", |run| run["state"] == "done");
    drop(worker);
    cluster.kill();
    let rated = json(&["ratings", "--data", data.to_str().unwrap(), "--json"]);
    assert_eq!(done["games"], rated["players"][0]["games"], "{done} {rated}");
    cluster.equals_an_undisturbed_run(&spec);
}

#[test]
fn a_check_of_the_state_notices_what_does_not_read_back() {
    let cluster = half_done(&quick(12));
    let data = cluster.data().to_str().unwrap().to_string();
    assert_eq!(agon(&["verify", "--state", "--data", &data]).code, 0);
    let state = rusqlite::Connection::open(cluster.data().join("coordinator.sqlite")).unwrap();
    for (change, sentence) in [
        (
            "UPDATE bouts SET summary = (SELECT summary FROM bouts b WHERE b.bout = 1) WHERE bout = 2",
            "bout 2: what was counted",
        ),
        (
            "UPDATE bouts SET digest = zeroblob(32) WHERE bout = 3",
            "bout 3: its content is not what its digest says",
        ),
        ("UPDATE bouts SET payload = substr(payload, 1, 40) WHERE bout = 4", "bout 4: "),
        ("INSERT INTO parts SELECT id, 0, 11 FROM runs", "a part of bouts 0 to 11 is to be written, and 5"),
        ("UPDATE runs SET exported = 99", "99 bouts are said to be exported, and it has 12"),
        ("UPDATE runs SET exported = 1, folded = '{}'", "the tally of"),
    ] {
        state.execute(change, []).unwrap();
        let answer = agon(&["verify", "--state", "--data", &data]);
        assert!(answer.code == 1 && answer.out.contains(sentence), "{change}: {} {}", answer.out, answer.err);
    }
    let answer = agon(&["verify", "--state=nowhere"]);
    assert!(answer.code == 2 && answer.err.contains("there is no state in nowhere"), "{}", answer.err);
}

#[test]
fn a_state_of_the_version_before_goes_on() {
    let spec = quick(40);
    let mut cluster = Cluster::start(LEASE);
    cluster.submit(&spec);
    let worker = cluster.worker("one");
    cluster.until_run("some of it is exported", |run| exported(run) >= 16);
    cluster.kill();
    // The same state as the program before this one would have left it.
    let file = cluster.data().join("coordinator.sqlite");
    let state = rusqlite::Connection::open(&file).unwrap();
    state
        .execute_batch(
            "ALTER TABLE runs DROP COLUMN build; ALTER TABLE runs DROP COLUMN abandoned; DROP TABLE opinions;
             ALTER TABLE meta DROP COLUMN id; PRAGMA user_version = 2;",
        )
        .unwrap();
    drop(state);
    cluster.restart();
    assert!(cluster.said().contains("brought to the version of this program"), "{}", cluster.said());
    assert!(cluster.data().join("coordinator.sqlite.version-2").is_file());
    cluster.until_run("the run is done", |run| run["state"] == "done");
    drop(worker);
    cluster.finishes_like_an_undisturbed_run(&spec);
}

#[test]
fn a_run_of_a_build_that_searches_otherwise_waits_for_somebodys_word() {
    let spec = quick(20);
    let mut cluster = Cluster::start(LEASE);
    let id = cluster.submit(&spec);
    cluster.kill();
    let state = rusqlite::Connection::open(cluster.data().join("coordinator.sqlite")).unwrap();
    state.execute("UPDATE runs SET signature = '0123456789abcdef'", []).unwrap();
    drop(state);
    cluster.restart();
    let worker = cluster.worker("one");
    assert_eq!(cluster.run()["state"], "paused");
    let entries = cluster.json(&["audit", "--run", &id]);
    assert!(entries.to_string().contains("a build that searches differently"), "{entries}");
    assert_eq!(cluster.ask(&["resume", &id]).code, 0);
    cluster.until_run("the run is done", |run| run["state"] == "done");
    drop(worker);
}
