//! Results that come again, or too late.

use std::time::Duration;

use agon_proto::v1::Outcome;

use crate::processes::Cluster;
use crate::scripted_worker::ScriptedWorker;
use crate::{LONG, quick, spec};

/// Bouts are committed and lent as the coordinator tells it.
fn counts(cluster: &Cluster) -> (u64, u64) {
    let run = cluster.run();
    (run["bouts"].as_u64().unwrap(), run["leased"].as_u64().unwrap())
}

#[test]
fn what_is_sent_fifty_times_counts_once_even_after_a_restart() {
    let spec = quick(6);
    let mut cluster = Cluster::start(LONG);
    cluster.submit(&spec);
    let mut rogue = ScriptedWorker::new(&cluster.address(), "repeats");
    let bout = rogue.take();
    let messages = rogue.honest(&bout);
    // 1. On one stream, one after the other without waiting.
    let answers = rogue.submit(vec![messages.clone(); 50].concat(), 50);
    let outcomes: Vec<Outcome> = answers.into_iter().map(|answer| answer.unwrap().outcome()).collect();
    let of = |wanted: Outcome| outcomes.iter().filter(|&&outcome| outcome == wanted).count();
    assert_eq!((of(Outcome::Committed), of(Outcome::Duplicate)), (1, 49), "{outcomes:?}");
    assert_eq!(counts(&cluster), (1, 0));
    // 2. With another content: what is there stays.
    let mut other = rogue.play(&bout);
    other
        .moves
        .iter_mut()
        .filter_map(|row| row.search.as_mut())
        .for_each(|search| search.counters.cutoffs += 1);
    let other = rogue.messages(&bout, &other);
    assert_eq!(rogue.submit_one(other.clone()).outcome(), Outcome::Conflict);
    // 3. To a coordinator that never lent it.
    cluster.restart();
    let mut again = ScriptedWorker::new(&cluster.address(), "repeats");
    assert_eq!(again.submit_one(messages).outcome(), Outcome::Duplicate);
    assert_eq!(again.submit_one(other).outcome(), Outcome::Conflict);
    assert_eq!(counts(&cluster).0, 1);
    assert_eq!(cluster.worker_status("repeats")["flag"].as_str(), None, "to repeat oneself is no lie");
    drop((rogue, again));
    // The settling time of the new coordinator is as long as its leases.
    cluster = cluster.with_lease(Duration::from_millis(300));
    cluster.restart();
    let _worker = cluster.worker("worker");
    cluster.finishes_like_an_undisturbed_run(&spec);
}

#[test]
fn what_comes_late_is_a_duplicate_if_it_can_be_repeated() {
    let spec = quick(4);
    let mut cluster = Cluster::start(Duration::from_millis(300));
    cluster.submit(&spec);
    let mut rogue = ScriptedWorker::new(&cluster.address(), "late");
    let bout = rogue.take();
    let messages = rogue.honest(&bout);
    cluster.until_run("the lease has expired", |run| run["leased"] == 0);
    let _worker = cluster.worker("worker");
    cluster.until_run("the run is done", |run| run["state"] == "done");
    assert_eq!(rogue.submit_one(messages).outcome(), Outcome::Duplicate);
    assert_eq!(counts(&cluster), (4, 0));
    cluster.finishes_like_an_undisturbed_run(&spec);
}

#[test]
fn what_comes_late_and_is_not_yet_played_counts_if_it_can_be_repeated() {
    let spec = quick(1);
    let mut cluster = Cluster::start(Duration::from_millis(300));
    cluster.submit(&spec);
    let mut rogue = ScriptedWorker::new(&cluster.address(), "late");
    let bout = rogue.take();
    let messages = rogue.honest(&bout);
    cluster.until_run("the lease has expired", |run| run["leased"] == 0);
    assert_eq!(rogue.submit_one(messages).outcome(), Outcome::Committed);
    cluster.finishes_like_an_undisturbed_run(&spec);
}

/// Whoever finishes first would mostly be who has the shortest game: the new loan stands.
#[test]
fn what_comes_late_in_a_timed_run_is_stale_once_it_is_lent_anew() {
    let mut cluster = Cluster::start(Duration::from_secs(2));
    cluster.submit(&spec(1, "ms = 1"));
    let (mut slow, mut next) =
        (ScriptedWorker::new(&cluster.address(), "slow"), ScriptedWorker::new(&cluster.address(), "next"));
    let bout = slow.take();
    let messages = slow.honest(&bout);
    // It waits until the first lease has expired.
    let anew = next.take();
    assert_eq!((anew.lease.bout, anew.lease == bout.lease), (bout.lease.bout, false));
    let answer = slow.submit_one(messages);
    assert_eq!(answer.outcome(), Outcome::Stale, "{}", answer.reason);
    assert_eq!(counts(&cluster).0, 0);
    let messages = next.honest(&anew);
    assert_eq!(next.submit_one(messages).outcome(), Outcome::Committed);
    cluster.until_run("the run is done", |run| run["state"] == "done");
    cluster.kill();
    cluster.verifies();
}
