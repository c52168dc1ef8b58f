//! What is taken out of the count, and parts that cannot be written: whatever happens to them, no bout is there twice, and
//! no run suffers for another.

use std::fs;

use serde_json::Value;

use crate::LONG;
use crate::binary::agon;
use crate::processes::{Cluster, until};
use crate::{quick, spec};

/// What the dataset says of a run.
fn described(cluster: &Cluster, run: &str) -> Value {
    let text = fs::read_to_string(cluster.data().join(format!("runs/{run}.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn bouts_on_their_way_into_the_dataset_are_not_voided_before_they_are_there() {
    let spec = quick(40);
    let mut cluster = Cluster::start(LONG);
    // 1. Where games should go there is something else: the first part is assigned, and cannot be written.
    let games = cluster.data().join("games");
    fs::write(&games, "in the way").unwrap();
    let id = cluster.submit(&spec);
    let worker = cluster.worker("one");
    let stands = |run: &Value| {
        run["waiting"].as_str().is_some_and(|why| why.contains("cannot be written")) && run["leased"] == 0
    };
    cluster.until_run("it cannot be written", stands);
    drop(worker);
    let before = cluster.run();
    let answer = cluster.ask(&["data", "void", &id, "--bouts", "0-3"]);
    assert!(answer.code == 1 && answer.err.contains("on their way into the dataset"), "{}", answer.err);
    assert_eq!(cluster.run()["bouts"], before["bouts"], "nothing changed");
    // 2. When they are there they can be voided, as all that is there; and so can others, which are played anew.
    fs::remove_file(&games).unwrap();
    cluster.until_run("it is written", |run| run["exported"].as_u64() >= Some(16));
    let told = cluster.json(&["data", "void", &id, "--bouts", "2-17"]);
    let (requeued, voided) = (told["requeued"].as_u64().unwrap(), told["voided"].as_u64().unwrap());
    assert!(voided >= 14 && requeued + voided <= 16, "{told}");
    // 3. What is not there is not voided, and nobody reads that it was.
    for nothing in [["--bouts", "2-3"], ["--bouts", "500-600"], ["--worker", "nobody"]] {
        let answer = cluster.ask(&[&["data", "void", &id][..], &nothing].concat());
        assert!(answer.code != 0 && answer.err.contains("has no such bouts"), "{nothing:?}: {}", answer.err);
    }
    let entries = cluster.json(&["audit", "--run", &id]).to_string();
    assert_eq!(entries.matches("\"voided\"").count(), 1, "{entries}");
    let _worker = cluster.worker("two");
    cluster.until_run("the run is done", |run| run["state"] == "done");
    assert_eq!(described(&cluster, &id)["voided"].as_array().map(Vec::len), Some(voided as usize));
    cluster.kill();
    cluster.equals_an_undisturbed_run(&spec);
}

#[test]
fn a_run_that_cannot_be_exported_stops_no_other() {
    let mut cluster = Cluster::start(LONG);
    let [first, second] = [quick(32), spec(32, "nodes = 61")];
    let stuck = cluster.submit(&first);
    let name = "part-0000000000-0000000015.parquet";
    let file = cluster.data().join(format!("games/run={stuck}/{name}"));
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "somebody else's").unwrap();
    let worker = cluster.worker("one");
    let waits = |run: &Value| run["waiting"].as_str().is_some_and(|why| why.contains("with other bytes"));
    cluster.until_run("it says what it waits for", waits);
    let other = cluster.submit(&second);
    until("the other is done", || (cluster.run_of(&other)["state"] == "done").then_some(()));
    assert!(waits(&cluster.run_of(&stuck)), "{}", cluster.run_of(&stuck));
    assert_eq!(fs::read_to_string(&file).unwrap(), "somebody else's");
    // It goes on by itself.
    fs::remove_file(&file).unwrap();
    until("it is done", || (cluster.run_of(&stuck)["state"] == "done").then_some(()));
    drop(worker);
    cluster.kill();
    cluster.verifies();
}

/// An upgrade between the moves of a part and its games: other bytes of the same moves stand under the name.
#[test]
fn moves_of_another_build_without_their_games_are_written_anew() {
    let spec = quick(32);
    let mut cluster = Cluster::start(LONG);
    let id = cluster.submit(&spec);
    let file = cluster.data().join(format!("moves/run={id}/part-0000000000-0000000015.parquet"));
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "as another build writes them").unwrap();
    let _worker = cluster.worker("one");
    cluster.finishes_like_an_undisturbed_run(&spec);
}

#[test]
fn what_is_told_of_a_run_survives_a_start() {
    let mut cluster = Cluster::start(LONG);
    let id = cluster.submit(&quick(8));
    let worker = cluster.worker("one");
    cluster.until_run("the run is done", |run| run["state"] == "done");
    drop(worker);
    cluster.kill();
    let state = rusqlite::Connection::open(cluster.data().join("coordinator.sqlite")).unwrap();
    state.execute("UPDATE runs SET build = '0.0.9', abandoned = 7", []).unwrap();
    drop(state);
    for _ in 0..2 {
        cluster.restart();
        let so = |told: Value| (told["build"] == "0.0.9" && told["abandoned"] == 7).then_some(());
        until("it is told", || so(described(&cluster, &id)));
    }
    assert_eq!(cluster.run()["abandoned"], 7);
}

#[test]
fn one_more_run_goes_on_where_it_stopped() {
    let cluster = Cluster::start(LONG);
    let id = cluster.submit(&quick(8));
    let again = || {
        let told = cluster.json(&["submit", &cluster.path("spec.toml"), "--again"]);
        told["run"].as_str().unwrap().to_string()
    };
    assert_eq!([again(), again()], [format!("{id}-2"), format!("{id}-2")]);
    assert_eq!(cluster.ask(&["cancel", &format!("{id}-2")]).code, 0);
    assert_eq!([again(), again()], [format!("{id}-3"), format!("{id}-3")]);
}

#[test]
fn a_run_by_itself_leaves_what_else_is_unfinished_alone() {
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
    // Asked for, it goes on.
    let calm = agon(&["run", &cluster.path("spec.toml"), "--data", &data, "--json"]);
    assert_eq!(calm.code, 0, "{}", calm.err);
    assert!(calm.out.contains("\"done\""), "{}", calm.out);
}
