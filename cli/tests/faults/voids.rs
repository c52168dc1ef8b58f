//! Voided bouts, repeated runs, and parts that cannot be written.

use std::fs;

use serde_json::Value;

use crate::LONG;
use crate::{quick, spec};
use agon_testing::binary::agon;
use agon_testing::processes::{Cluster, wait_until};

/// Returns the manifest of a run.
fn manifest(cluster: &Cluster, run: &str) -> Value {
    let text = fs::read_to_string(cluster.data().join(format!("runs/{run}.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn voiding_waits_for_the_export() {
    let spec = quick(40);
    let mut cluster = Cluster::start(LONG);
    // 1. A file blocks the folder of the games: the first part is assigned, but cannot be written.
    let games = cluster.data().join("games");
    fs::write(&games, "in the way").unwrap();
    let id = cluster.submit(&spec);
    let worker = cluster.worker("one");
    let is_blocked = |run: &Value| {
        run["waiting"].as_str().is_some_and(|why| why.contains("cannot be written")) && run["leased"] == 0
    };
    cluster.wait_for_run("the export fails", is_blocked);
    drop(worker);
    let before = cluster.last_run();
    let answer = cluster.agon(&["data", "void", &id, "--bouts", "0-3"]);
    assert!(
        answer.code == 1 && answer.err.contains("are being exported and cannot be voided"),
        "{}",
        answer.err
    );
    assert_eq!(cluster.last_run()["bouts"], before["bouts"], "nothing changed");
    // 2. After the export the bouts can be voided; bouts that are not exported are played again.
    fs::remove_file(&games).unwrap();
    cluster.wait_for_run("a part is exported", |run| run["exported"].as_u64() >= Some(16));
    let document = cluster.json(&["data", "void", &id, "--bouts", "2-17"]);
    let (requeued, voided) = (document["requeued"].as_u64().unwrap(), document["voided"].as_u64().unwrap());
    assert!(voided >= 14 && requeued + voided <= 16, "{document}");
    // 3. Unknown bouts are not voided, and leave no audit entry.
    for (nothing, reason) in [
        (["--bouts", "2-3"], "are void already"),
        (["--bouts", "500-600"], "has no such bouts"),
        (["--worker", "unknown"], "has no such bouts"),
    ] {
        let answer = cluster.agon(&[&["data", "void", &id][..], &nothing].concat());
        assert!(answer.code != 0 && answer.err.contains(reason), "{nothing:?}: {}", answer.err);
    }
    let entries = cluster.json(&["audit", "--run", &id]).to_string();
    assert_eq!(entries.matches("\"voided\"").count(), 1, "{entries}");
    let _worker = cluster.worker("two");
    cluster.wait_for_run("the run is done", |run| run["state"] == "done");
    assert_eq!(manifest(&cluster, &id)["voided"].as_array().map(Vec::len), Some(voided as usize));
    cluster.kill();
    cluster.assert_undisturbed(&spec);
}

/// A bout that is committed while a run is replaced must be in the new one.
#[test]
fn voiding_during_play_loses_no_bout() {
    let spec = spec(5000, "nodes = 1");
    let mut cluster = Cluster::new(LONG);
    cluster.part_bouts = "100000".to_string();
    cluster.restart();
    let id = cluster.submit(&spec);
    let _workers = ["one", "two"].map(|name| cluster.worker(name));
    for least in 1..=20 {
        // Reading many bouts takes long enough for others to be committed meanwhile.
        cluster.wait_for_run("bouts are committed", |run| run["bouts"].as_u64() > Some(2000 + 50 * least));
        let answer = cluster.agon(&["data", "void", &id, "--bouts", &least.to_string()]);
        assert_eq!(answer.code, 0, "{}", answer.err);
    }
    cluster.assert_finishes_undisturbed(&spec);
}

#[test]
fn failed_export_does_not_stop_other_runs() {
    let mut cluster = Cluster::start(LONG);
    let [first, second] = [quick(32), spec(32, "nodes = 61")];
    let stuck = cluster.submit(&first);
    let name = "part-0000000000-0000000015.parquet";
    let file = cluster.data().join(format!("games/run={stuck}/{name}"));
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "foreign").unwrap();
    let worker = cluster.worker("one");
    let waits = |run: &Value| run["waiting"].as_str().is_some_and(|why| why.contains("with other bytes"));
    cluster.wait_for_run("the run reports the reason", waits);
    let other = cluster.submit(&second);
    wait_until("the other run is done", || (cluster.run_status(&other)["state"] == "done").then_some(()));
    assert!(waits(&cluster.run_status(&stuck)), "{}", cluster.run_status(&stuck));
    assert_eq!(fs::read_to_string(&file).unwrap(), "foreign");
    // The export is retried.
    fs::remove_file(&file).unwrap();
    wait_until("the run is done", || (cluster.run_status(&stuck)["state"] == "done").then_some(()));
    drop(worker);
    cluster.kill();
    cluster.assert_verifies();
}

/// After an upgrade between the two files of a part, the moves file has other bytes.
#[test]
fn orphaned_moves_part_is_rewritten() {
    let spec = quick(32);
    let mut cluster = Cluster::start(LONG);
    let id = cluster.submit(&spec);
    let file = cluster.data().join(format!("moves/run={id}/part-0000000000-0000000015.parquet"));
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "as another build writes them").unwrap();
    let _worker = cluster.worker("one");
    cluster.assert_finishes_undisturbed(&spec);
}

#[test]
fn run_status_survives_restart() {
    let mut cluster = Cluster::start(LONG);
    let id = cluster.submit(&quick(8));
    let worker = cluster.worker("one");
    cluster.wait_for_run("the run is done", |run| run["state"] == "done");
    drop(worker);
    cluster.kill();
    let state = rusqlite::Connection::open(cluster.data().join("coordinator.sqlite")).unwrap();
    state.execute("UPDATE runs SET build = '0.0.9', abandoned = 7", []).unwrap();
    drop(state);
    for _ in 0..2 {
        cluster.restart();
        let matches = |run: Value| (run["build"] == "0.0.9" && run["abandoned"] == 7).then_some(());
        wait_until("the manifest is written", || matches(manifest(&cluster, &id)));
    }
    assert_eq!(cluster.last_run()["abandoned"], 7);
}

#[test]
fn repeated_run_resumes() {
    let cluster = Cluster::start(LONG);
    let id = cluster.submit(&quick(8));
    let again = || {
        let document = cluster.json(&["submit", &cluster.path("spec.toml"), "--again"]);
        document["run"].as_str().unwrap().to_string()
    };
    assert_eq!([again(), again()], [format!("{id}-2"), format!("{id}-2")]);
    assert_eq!(cluster.agon(&["cancel", &format!("{id}-2")]).code, 0);
    assert_eq!([again(), again()], [format!("{id}-3"), format!("{id}-3")]);
}

#[test]
fn local_run_leaves_other_runs_unfinished() {
    let mut cluster = Cluster::start(LONG);
    let other = cluster.submit(&quick(400));
    cluster.kill();
    let (file, data) = (cluster.path("own.toml"), cluster.data().to_str().unwrap().to_string());
    fs::write(&file, spec(20, "nodes = 61")).unwrap();
    let answer = agon(&["run", &file, "--data", &data]);
    assert!(answer.code == 0 && answer.out.contains(": done"), "{} {}", answer.out, answer.err);
    assert!(
        answer.err.contains("waiting until they are run again") && answer.err.contains(&other),
        "{}",
        answer.err
    );
    let state = rusqlite::Connection::open(cluster.data().join("coordinator.sqlite")).unwrap();
    let played: i64 = state.query_row("SELECT count(*) FROM bouts", [], |row| row.get(0)).unwrap();
    assert_eq!(played, 0, "bouts of {other} were played");
    // It resumes on request.
    let resumed = agon(&["run", &cluster.path("spec.toml"), "--data", &data, "--json"]);
    assert_eq!(resumed.code, 0, "{}", resumed.err);
    assert!(resumed.out.contains("\"done\""), "{}", resumed.out);
}
