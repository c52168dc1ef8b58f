//! Grants after a restart: no test waits for the grace period, which is longer than a test.

use std::time::Duration;

use crate::spec;
use agon_testing::processes::{Cluster, wait_until};

/// A lease, and a grace period after a restart, that do not end within a test.
const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn grants_resume_when_all_workers_are_back() {
    let spec = spec(60, "nodes = 3000");
    let mut cluster = Cluster::start(HOUR);
    cluster.submit(&spec);
    let _workers = ["a", "b"].map(|name| cluster.worker(name));
    for least in [2, 20] {
        cluster.wait_for_run("bouts are committed", |run| run["bouts"].as_u64() > Some(least));
        cluster.restart();
    }
    cluster.assert_finishes_undisturbed(&spec);
}

#[test]
fn missing_worker_delays_only_bouts_that_it_may_hold() {
    // Long enough that workers are not granted many bouts in advance.
    let spec = spec(300, "nodes = 1500");
    let mut cluster = Cluster::start(HOUR);
    let id = cluster.submit(&spec);
    let worker = cluster.worker("stays");
    let leaves = cluster.worker("leaves");
    cluster.wait_for_run("bouts are committed", |run| run["bouts"].as_u64() > Some(20));
    cluster.kill();
    drop((worker, leaves));
    // 1. The bouts that were certainly never granted are played without the second worker.
    cluster.restart();
    let _stays = cluster.worker("stays");
    let waits = |run: &serde_json::Value| {
        run["waiting"].as_str().is_some_and(|why| why.contains("for workers to return earlier bouts"))
    };
    let is_left_to_the_other = |run: &serde_json::Value| waits(run) && run["bouts"].as_u64() > Some(180);
    cluster.wait_for_run("only bouts that the missing worker may hold are left", is_left_to_the_other);
    assert_eq!(cluster.run_status(&id)["state"], "running");
    // 2. The rest follows when it is back, although it has lost its bouts.
    let _leaves = cluster.worker("leaves");
    cluster.assert_finishes_undisturbed(&spec);
}

#[test]
fn worker_that_left_in_order_is_not_awaited() {
    let spec = spec(60, "nodes = 3000");
    let mut cluster = Cluster::start(HOUR);
    cluster.submit(&spec);
    let mut leaves = cluster.worker("leaves");
    cluster.wait_for_run("bouts are committed", |run| run["bouts"].as_u64() > Some(2));
    leaves.signal("TERM");
    assert_eq!(leaves.wait(), 0, "{}", leaves.log());
    wait_until("the worker is disconnected", || {
        (cluster.worker_status("leaves")["connected"] == false).then_some(())
    });
    cluster.restart();
    let _other = cluster.worker("other");
    cluster.assert_finishes_undisturbed(&spec);
}
