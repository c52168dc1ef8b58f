//! Workers that fabricate legal games, which only replication detects; and runs that share workers.

use std::collections::BTreeSet;
use std::time::Duration;

use agon_proto::v1::Outcome;
use serde_json::Value;

use crate::{LONG, quick};
use agon_testing::processes::{Cluster, wait_until};
use agon_testing::scripted_worker::{ScriptedWorker, falsify};

#[test]
fn fabricating_worker_is_quarantined_and_voided() {
    let cluster = Cluster::start(LONG);
    cluster.submit(&quick(400));
    let mut liar = ScriptedWorker::new(&cluster.address(), "liar");
    let fabricate = |liar: &mut ScriptedWorker| {
        let bout = liar.lease_within(Duration::from_millis(300))?;
        let mut rows = liar.play(&bout);
        falsify(&mut rows);
        Some(liar.submit_one(liar.messages(&bout, &rows)).outcome())
    };
    // One bout counts before two honest workers connect.
    assert_eq!(fabricate(&mut liar), Some(Outcome::Committed));
    let mut submitted = 1;
    let _honest = [cluster.worker("one"), cluster.worker("two")];
    while cluster.worker_status("liar")["flag"].is_null() {
        submitted += u64::from(fabricate(&mut liar) == Some(Outcome::Committed));
    }
    println!("the fabricating worker was caught after {submitted} counted bouts");
    let audit = cluster.json(&["audit"]);
    let kinds: BTreeSet<&str> =
        audit["entries"].as_array().unwrap().iter().filter_map(|entry| entry["kind"].as_str()).collect();
    assert!(["disputed", "convicted", "quarantined"].iter().all(|kind| kinds.contains(kind)), "{kinds:?}");
    for honest in ["one", "two"] {
        let known = cluster.worker_status(honest);
        assert!(known["flag"].is_null(), "{honest} is honest: {known}");
    }
    assert_eq!(liar.lease_within(Duration::from_millis(300)), None, "nothing more is granted");

    // Its bouts are voided without an operator.
    let text = wait_until("its bouts are voided", || {
        let audit = cluster.json(&["audit", "--worker", "liar"]);
        let entries = audit["entries"].as_array().unwrap().clone();
        let voided = entries.into_iter().find(|entry| entry["kind"] == "voided")?;
        voided["text"].as_str().map(str::to_string)
    });
    let numbers: Vec<u64> = text.split(' ').filter_map(|word| word.parse().ok()).collect();
    assert_eq!(numbers.iter().sum::<u64>(), submitted, "{text}");
    let answer = cluster.agon(&["data", "void", "latest", "--worker", "liar"]);
    assert!(answer.code != 0 && answer.err.contains("has no such bouts"), "{}", answer.err);
    let run = cluster.wait_for_run("the run is done", |run| run["state"] == "done");
    let voided = run["voided"].as_u64().unwrap();
    assert_eq!(voided, numbers[1], "{text}");
    assert_eq!(run["games"].as_u64(), Some(2 * (400 - voided)), "voided bouts do not count");
    cluster.assert_verifies();
}

/// A bout that waits for its first or second replication still waits after a restart.
#[test]
fn verification_survives_restart() {
    let mut cluster = Cluster::start(LONG);
    cluster.submit(&quick(400));
    let mut liar = ScriptedWorker::new(&cluster.address(), "liar");
    let bout = liar.lease();
    let mut rows = liar.play(&bout);
    falsify(&mut rows);
    assert_eq!(liar.submit_one(liar.messages(&bout, &rows)).outcome(), Outcome::Committed);
    drop(liar);
    for (name, outcome) in [("second", Outcome::Conflict), ("third", Outcome::Duplicate)] {
        cluster.kill();
        cluster.restart();
        let mut honest = ScriptedWorker::new(&cluster.address(), name);
        let again = honest.lease();
        assert_eq!(&again.bout, &bout.bout, "{name}");
        assert_eq!(honest.submit_one(honest.honest_messages(&again)).outcome(), outcome, "{name}");
        // Audit entries are written asynchronously and may be lost with the process.
        wait_until("an audit entry is written", || (!audit_of_liar(&cluster).is_empty()).then_some(()));
    }
    let expected = ["disputed", "convicted", "quarantined", "voided"];
    wait_until("the bout is voided", || (audit_of_liar(&cluster) == expected).then_some(()));
}

/// Returns the kinds of the liar's audit entries.
fn audit_of_liar(cluster: &Cluster) -> Vec<String> {
    let audit = cluster.json(&["audit", "--worker", "liar"]);
    let kind = |entry: &Value| entry["kind"].as_str().map(str::to_string);
    audit["entries"].as_array().unwrap().iter().filter_map(kind).collect()
}

#[test]
fn runs_share_workers_by_priority() {
    let cluster = Cluster::start(LONG);
    let spec = |seed: u64| quick(600).replace("seed = 5", &format!("seed = {seed}"));
    let ids: Vec<String> = [11, 12, 13].into_iter().map(|seed| cluster.submit(&spec(seed))).collect();
    assert_eq!(cluster.agon(&["pause", &ids[2]]).code, 0);
    let _workers = [cluster.worker("one"), cluster.worker("two")];
    let bouts = |id: &str| cluster.run_status(id)["bouts"].as_u64().unwrap();
    let (first, second) = wait_until("two runs are in progress", || {
        let both = (bouts(&ids[0]), bouts(&ids[1]));
        (both.0.min(both.1) > 20).then_some(both)
    });
    assert!(first.abs_diff(second) <= first.max(second) / 2 + 40, "unequal shares: {first} and {second}");
    assert_eq!(bouts(&ids[2]), 0, "a paused run is not played");
    assert_eq!(cluster.agon(&["prioritise", &ids[2], "5"]).code, 0);
    assert_eq!(cluster.agon(&["resume", &ids[2]]).code, 0);
    wait_until("all runs are done", || {
        ids.iter().all(|id| cluster.run_status(id)["state"] == "done").then_some(())
    });
    assert_eq!(cluster.agon(&["pause", &ids[0]]).code, 1, "a finished run cannot be paused");
    cluster.assert_verifies();
}
