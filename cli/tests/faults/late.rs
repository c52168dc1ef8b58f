//! Repeated and late submissions.

use std::time::Duration;

use agon_proto::v1::Outcome;

use crate::{LONG, quick, spec};
use agon_testing::processes::Cluster;
use agon_testing::scripted_worker::{ScriptedWorker, falsify};

/// Returns the numbers of committed and leased bouts.
fn counts(cluster: &Cluster) -> (u64, u64) {
    let run = cluster.last_run();
    (run["bouts"].as_u64().unwrap(), run["leased"].as_u64().unwrap())
}

#[test]
fn repeated_submissions_count_once() {
    let spec = quick(6);
    let mut cluster = Cluster::start(LONG);
    cluster.submit(&spec);
    let mut rogue = ScriptedWorker::new(&cluster.address(), "repeats");
    let bout = rogue.lease();
    let messages = rogue.honest_messages(&bout);
    // 1. On one stream, without waiting.
    let answers = rogue.submit(vec![messages.clone(); 50].concat(), 50);
    let outcomes: Vec<Outcome> = answers.into_iter().map(|answer| answer.unwrap().outcome()).collect();
    let of = |wanted: Outcome| outcomes.iter().filter(|&&outcome| outcome == wanted).count();
    assert_eq!((of(Outcome::Committed), of(Outcome::Duplicate)), (1, 49), "{outcomes:?}");
    assert_eq!(counts(&cluster), (1, 0));
    // 2. With other content: the committed bout stays.
    let mut other = rogue.play(&bout);
    falsify(&mut other);
    let other = rogue.messages(&bout, &other);
    assert_eq!(rogue.submit_one(other.clone()).outcome(), Outcome::Conflict);
    // 3. To a restarted coordinator.
    cluster.restart();
    let mut again = ScriptedWorker::new(&cluster.address(), "repeats");
    assert_eq!(again.submit_one(messages).outcome(), Outcome::Duplicate);
    assert_eq!(again.submit_one(other).outcome(), Outcome::Conflict);
    assert_eq!(counts(&cluster).0, 1);
    assert_eq!(cluster.worker_status("repeats")["flag"].as_str(), None, "a repetition is not an offence");
    drop((rogue, again));
    // The coordinator's wait for earlier workers is as long as its leases.
    cluster = cluster.with_lease(Duration::from_millis(300));
    cluster.restart();
    let _worker = cluster.worker("worker");
    cluster.assert_finishes_undisturbed(&spec);
}

#[test]
fn late_deterministic_bout_is_a_duplicate() {
    let spec = quick(4);
    let mut cluster = Cluster::start(Duration::from_millis(300));
    cluster.submit(&spec);
    let mut rogue = ScriptedWorker::new(&cluster.address(), "late");
    let bout = rogue.lease();
    let messages = rogue.honest_messages(&bout);
    cluster.wait_for_run("the lease has expired", |run| run["leased"] == 0);
    let _worker = cluster.worker("worker");
    cluster.wait_for_run("the run is done", |run| run["state"] == "done");
    assert_eq!(rogue.submit_one(messages).outcome(), Outcome::Duplicate);
    assert_eq!(counts(&cluster), (4, 0));
    cluster.assert_finishes_undisturbed(&spec);
}

#[test]
fn late_deterministic_bout_counts_if_unplayed() {
    let spec = quick(1);
    let mut cluster = Cluster::start(Duration::from_millis(300));
    cluster.submit(&spec);
    let mut rogue = ScriptedWorker::new(&cluster.address(), "late");
    let bout = rogue.lease();
    let messages = rogue.honest_messages(&bout);
    cluster.wait_for_run("the lease has expired", |run| run["leased"] == 0);
    assert_eq!(rogue.submit_one(messages).outcome(), Outcome::Committed);
    cluster.assert_finishes_undisturbed(&spec);
}

/// Accepting whichever bout arrives first would favour short games: the new lease stands.
#[test]
fn late_timed_bout_is_stale_after_regrant() {
    let mut cluster = Cluster::start(Duration::from_secs(2));
    cluster.submit(&spec(1, "ms = 1"));
    let (mut slow, mut next) =
        (ScriptedWorker::new(&cluster.address(), "slow"), ScriptedWorker::new(&cluster.address(), "next"));
    let bout = slow.lease();
    let messages = slow.honest_messages(&bout);
    // Waits until the first lease has expired.
    let regranted = next.lease();
    assert_eq!((regranted.lease.bout, regranted.lease == bout.lease), (bout.lease.bout, false));
    let answer = slow.submit_one(messages);
    assert_eq!(answer.outcome(), Outcome::Stale, "{}", answer.reason);
    assert_eq!(counts(&cluster).0, 0);
    let messages = next.honest_messages(&regranted);
    assert_eq!(next.submit_one(messages).outcome(), Outcome::Committed);
    cluster.wait_for_run("the run is done", |run| run["state"] == "done");
    cluster.kill();
    cluster.assert_verifies();
}
