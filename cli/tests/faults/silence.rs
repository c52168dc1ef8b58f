//! Workers that hang: they send heartbeats without progress, or they are suspended.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use agon_proto::Progress;

use crate::{quick, spec};
use agon_testing::processes::Cluster;
use agon_testing::scripted_worker::ScriptedWorker;

/// Runs a spec beside a worker that repeats the same progress in every heartbeat.
fn run_beside_hanging_worker(started: bool, spec: &str) -> Cluster {
    let cluster = Cluster::start(Duration::from_millis(450));
    cluster.submit(spec);
    // Bouts are offered to workers in order of their names, so that this one comes first.
    let mut rogue = ScriptedWorker::new(&cluster.address(), "a-rogue");
    let bout = rogue.lease();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let progress = Progress { lease: bout.lease.clone(), started, game: 0, ply: 3, pulse: 0 };
                rogue.heartbeat(2, vec![progress]);
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        let _worker = cluster.worker("worker");
        cluster.wait_for_run("the run is done", |run| run["state"] == "done");
        over.store(true, Ordering::Relaxed);
    });
    cluster
}

#[test]
fn heartbeats_without_progress_lose_the_lease() {
    // Longer than the lease, because the last bouts of a run are lent twice.
    let spec = spec(200, "nodes = 3000");
    let mut cluster = run_beside_hanging_worker(true, &spec);
    assert!(cluster.last_run()["abandoned"].as_u64().unwrap() >= 1);
    cluster.assert_finishes_undisturbed(&spec);
}

#[test]
fn queued_bouts_of_hanging_slots_expire() {
    let spec = quick(6);
    run_beside_hanging_worker(false, &spec).assert_finishes_undisturbed(&spec);
}

#[test]
fn suspended_worker_changes_nothing() {
    let spec = spec(120, "nodes = 1500");
    let mut cluster = Cluster::start(Duration::from_millis(450));
    cluster.submit(&spec);
    let sleeper = cluster.worker("sleeper");
    cluster.wait_for_run("some bouts are committed", |run| run["bouts"].as_u64() > Some(2));
    sleeper.signal("STOP");
    let asleep = cluster.wait_for_run("its leases have expired", |run| run["leased"] == 0);
    assert_eq!(asleep["state"], "running", "the run finished too early");
    let before = asleep["bouts"].as_u64();
    let _worker = cluster.worker("worker");
    cluster.wait_for_run("the other worker plays", |run| run["bouts"].as_u64() > before);
    sleeper.signal("CONT");
    cluster.assert_finishes_undisturbed(&spec);
}
