//! Workers whose games are legal and made up: only playing them again tells, and two against one. And runs that share.

use std::collections::BTreeSet;
use std::time::Duration;

use agon_proto::v1::Outcome;
use serde_json::Value;

use crate::processes::{Cluster, until};
use crate::scripted_worker::ScriptedWorker;
use crate::{LONG, quick};

/// A worker that claims searches which it did not make is convicted by two others while it is on probation, and what it
/// brought is taken out of the count.
#[test]
fn a_worker_that_makes_results_up_is_convicted_and_its_bouts_are_voided() {
    let cluster = Cluster::start(LONG);
    cluster.submit(&quick(400));
    let mut liar = ScriptedWorker::new(&cluster.address(), "liar");
    let made_up = |liar: &mut ScriptedWorker| {
        let bout = liar.take_within(Duration::from_millis(300))?;
        let mut rows = liar.play(&bout);
        for search in rows.moves.iter_mut().filter_map(|row| row.search.as_mut()) {
            search.score += 0.25;
        }
        Some(liar.submit_one(liar.messages(&bout, &rows)).outcome())
    };
    // One is counted before anybody else is there; then two come who play by the book.
    assert_eq!(made_up(&mut liar), Some(Outcome::Committed));
    let mut brought = 1;
    let _honest = [cluster.worker("one"), cluster.worker("two")];
    while cluster.worker_status("liar")["flag"].is_null() {
        brought += u64::from(made_up(&mut liar) == Some(Outcome::Committed));
    }
    println!("the fabricating worker was caught after {brought} counted bouts");
    let audit = cluster.json(&["audit"]);
    let kinds: BTreeSet<&str> =
        audit["entries"].as_array().unwrap().iter().filter_map(|entry| entry["kind"].as_str()).collect();
    assert!(["disputed", "convicted", "quarantined"].iter().all(|kind| kinds.contains(kind)), "{kinds:?}");
    for honest in ["one", "two"] {
        let known = cluster.worker_status(honest);
        assert!(known["flag"].is_null(), "{honest} is honest: {known}");
    }
    assert_eq!(liar.take_within(Duration::from_millis(300)), None, "it is given nothing more");

    let told =
        cluster.json(&["data", "void", "latest", "--worker", "liar", "--reason", "it makes results up"]);
    let (requeued, voided) = (told["requeued"].as_u64().unwrap(), told["voided"].as_u64().unwrap());
    assert_eq!(requeued + voided, brought, "{told}");
    let run = cluster.until_run("the run is done", |run| run["state"] == "done");
    assert_eq!(run["voided"].as_u64(), Some(voided));
    assert_eq!(run["games"].as_u64(), Some(2 * (400 - voided)), "what is void does not count");
    cluster.verifies();
}

/// A bout that waits for a second opinion still waits for it after a restart, and so does one that waits for a third.
#[test]
fn second_opinions_survive_a_restart() {
    // Nothing is lent anew for the time of a lease after a start.
    let mut cluster = Cluster::start(Duration::from_secs(2));
    cluster.submit(&quick(400));
    let mut liar = ScriptedWorker::new(&cluster.address(), "liar");
    let bout = liar.take();
    let mut rows = liar.play(&bout);
    rows.moves.iter_mut().filter_map(|row| row.search.as_mut()).for_each(|search| search.score += 0.25);
    assert_eq!(liar.submit_one(liar.messages(&bout, &rows)).outcome(), Outcome::Committed);
    drop(liar);
    for (name, outcome) in [("second", Outcome::Conflict), ("third", Outcome::Duplicate)] {
        cluster.kill();
        cluster.restart();
        let mut honest = ScriptedWorker::new(&cluster.address(), name);
        let again = honest.take();
        assert_eq!((again.lease.bout, &again.opening), (bout.lease.bout, &bout.opening), "{name}");
        assert_eq!(honest.submit_one(honest.honest(&again)).outcome(), outcome, "{name}");
        // What is written down for operators is not waited for: it may be lost with the process.
        until("it is written down", || (!noted(&cluster).is_empty()).then_some(()));
    }
    assert_eq!(noted(&cluster), ["disputed", "convicted", "quarantined"]);
}

/// What was written down of the liar.
fn noted(cluster: &Cluster) -> Vec<String> {
    let audit = cluster.json(&["audit", "--worker", "liar"]);
    let kind = |entry: &Value| entry["kind"].as_str().map(str::to_string);
    audit["entries"].as_array().unwrap().iter().filter_map(kind).collect()
}

/// Runs share workers evenly, one with a greater priority goes first, and one that is paused waits.
#[test]
fn runs_share_the_workers() {
    let cluster = Cluster::start(LONG);
    let spec = |seed: u64| quick(600).replace("seed = 5", &format!("seed = {seed}"));
    let ids: Vec<String> = [11, 12, 13].into_iter().map(|seed| cluster.submit(&spec(seed))).collect();
    assert_eq!(cluster.ask(&["pause", &ids[2]]).code, 0);
    let _workers = [cluster.worker("one"), cluster.worker("two")];
    let done = |id: &str| cluster.run_of(id)["bouts"].as_u64().unwrap();
    let (first, second) = until("two runs are under way", || {
        let both = (done(&ids[0]), done(&ids[1]));
        (both.0.min(both.1) > 20).then_some(both)
    });
    assert!(first.abs_diff(second) <= first.max(second) / 2 + 40, "{first} and {second} are no equal shares");
    assert_eq!(done(&ids[2]), 0, "a paused run is not played");
    assert_eq!(cluster.ask(&["prioritise", &ids[2], "5"]).code, 0);
    assert_eq!(cluster.ask(&["resume", &ids[2]]).code, 0);
    until("everything is done", || ids.iter().all(|id| cluster.run_of(id)["state"] == "done").then_some(()));
    assert_eq!(cluster.ask(&["pause", &ids[0]]).code, 2, "what is done cannot be paused");
    cluster.verifies();
}
