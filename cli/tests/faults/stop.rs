//! Processes that are asked to end.

use std::time::Duration;

use crate::processes::{Cluster, Process, until};
use crate::{LONG, spec};

#[test]
fn a_worker_that_is_asked_to_stop_gives_back_what_it_has_not_begun() {
    let spec = spec(60, "nodes = 3000");
    // No lease expires here: what is not given back is never played.
    let mut cluster = Cluster::start(LONG);
    cluster.submit(&spec);
    let mut first = cluster.worker("first");
    cluster.until_run("some bouts are committed", |run| run["bouts"].as_u64() > Some(2));
    first.signal("TERM");
    assert_eq!(first.exit_code(), 0, "{}", first.said());
    assert!(first.said().contains("the worker is done"), "{}", first.said());
    let left = cluster.run();
    assert_eq!((left["state"].as_str(), left["leased"].as_u64()), (Some("running"), Some(0)), "{left}");
    let _second = cluster.worker("second");
    cluster.finishes_like_an_undisturbed_run(&spec);
}

#[test]
fn a_coordinator_that_is_asked_to_stop_ends_well_and_its_workers_wait_for_the_next() {
    let spec = spec(60, "nodes = 3000");
    let mut cluster = Cluster::start(Duration::from_millis(900));
    cluster.submit(&spec);
    let mut worker = cluster.worker("worker");
    let before = cluster.until_run("some bouts are committed", |run| run["bouts"].as_u64() > Some(2));
    let watch = ["watch", "latest", "--coordinator", &cluster.address()];
    let mut watcher = Process::start_logged(&watch, cluster.path("watch.log").into());
    until("the watcher sees the run", || watcher.said().contains("bouts").then_some(()));
    let coordinator = cluster.coordinator.as_mut().unwrap();
    coordinator.signal("TERM");
    assert_eq!(coordinator.exit_code(), 0);
    // Whoever waits for the end of the run must not take this for it.
    assert_eq!(watcher.exit_code(), 1, "{}", watcher.said());
    assert!(watcher.said().contains("the run is not over"), "{}", watcher.said());
    until("the worker notices", || worker.said().contains("cannot be reached").then_some(()));
    cluster.restart();
    assert!(cluster.run()["bouts"].as_u64() >= before["bouts"].as_u64());
    assert_eq!(worker.ended(), None);
    cluster.finishes_like_an_undisturbed_run(&spec);
}
