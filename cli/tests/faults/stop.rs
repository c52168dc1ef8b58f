//! Processes that are stopped by a signal.

use std::time::Duration;

use crate::{LONG, spec};
use agon_testing::processes::{Cluster, Process, wait_until};

#[test]
fn stopping_worker_returns_unstarted_bouts() {
    let spec = spec(60, "nodes = 3000");
    // No lease expires: a bout that is not returned is never played.
    let mut cluster = Cluster::start(LONG);
    cluster.submit(&spec);
    let mut first = cluster.worker("first");
    cluster.wait_for_run("some bouts are committed", |run| run["bouts"].as_u64() > Some(2));
    first.signal("TERM");
    assert_eq!(first.wait(), 0, "{}", first.log());
    assert!(first.log().contains("worker stopped"), "{}", first.log());
    let left = cluster.last_run();
    assert_eq!((left["state"].as_str(), left["leased"].as_u64()), (Some("running"), Some(0)), "{left}");
    let _second = cluster.worker("second");
    cluster.assert_finishes_undisturbed(&spec);
}

#[test]
fn workers_wait_out_a_coordinator_shutdown() {
    let spec = spec(60, "nodes = 3000");
    let mut cluster = Cluster::start(Duration::from_millis(900));
    cluster.submit(&spec);
    let mut worker = cluster.worker("worker");
    let before = cluster.wait_for_run("some bouts are committed", |run| run["bouts"].as_u64() > Some(2));
    let watch = ["watch", "latest", "--coordinator", &cluster.address()];
    let mut watcher = Process::start_logged(&watch, cluster.path("watch.log").into());
    wait_until("the watcher sees the run", || watcher.log().contains("bouts").then_some(()));
    let coordinator = cluster.coordinator.as_mut().unwrap();
    coordinator.signal("TERM");
    assert_eq!(coordinator.wait(), 0);
    // The watcher must not take the shutdown for the end of the run.
    assert_eq!(watcher.wait(), 1, "{}", watcher.log());
    assert!(watcher.log().contains("the run is not over"), "{}", watcher.log());
    wait_until("the worker is disconnected", || {
        worker.log().contains("coordinator unreachable").then_some(())
    });
    cluster.restart();
    assert!(cluster.last_run()["bouts"].as_u64() >= before["bouts"].as_u64());
    assert_eq!(worker.try_exit_code(), None);
    cluster.assert_finishes_undisturbed(&spec);
}

#[test]
fn cancelled_run_shows_the_bouts_that_it_has() {
    let mut cluster = Cluster::start(LONG);
    let id = cluster.submit(&spec(400, "nodes = 300"));
    let worker = cluster.worker("one");
    cluster.wait_for_run("some bouts are committed", |run| run["bouts"].as_u64() > Some(20));
    assert_eq!(cluster.agon(&["cancel", &id]).code, 0);
    // The command returns when everything is exported.
    cluster.agon(&["watch", &id]);
    let run = cluster.last_run();
    assert!(run["exported"] == run["bouts"] && run["bouts"].as_u64() < Some(400), "{run}");
    drop(worker);
    cluster.restart();
    assert_eq!(cluster.last_run()["exported"], run["exported"]);
}
