//! Workers that hang: they are heard from and do nothing, or they are stopped in their tracks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use agon_proto::Progress;

use crate::processes::Cluster;
use crate::scripted_worker::ScriptedWorker;
use crate::{quick, spec};

/// A worker that says again and again how far it is, and never gets further.
fn hangs_while(started: bool, spec: &str) -> Cluster {
    let cluster = Cluster::start(Duration::from_millis(450));
    cluster.submit(spec);
    // Its name comes first: whatever is free is offered to it before it is offered to others.
    let mut rogue = ScriptedWorker::new(&cluster.address(), "a-rogue");
    let bout = rogue.take();
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
        cluster.until_run("the run is done", |run| run["state"] == "done");
        over.store(true, Ordering::Relaxed);
    });
    cluster
}

#[test]
fn heartbeats_without_progress_keep_no_bout() {
    let spec = quick(6);
    let mut cluster = hangs_while(true, &spec);
    assert!(cluster.run()["abandoned"].as_u64().unwrap() >= 1);
    cluster.finishes_like_an_undisturbed_run(&spec);
}

#[test]
fn bouts_that_wait_for_slots_that_hang_do_not_wait_for_ever() {
    let spec = quick(6);
    hangs_while(false, &spec).finishes_like_an_undisturbed_run(&spec);
}

#[test]
fn a_worker_that_sleeps_longer_than_its_lease_changes_nothing() {
    let spec = spec(120, "nodes = 1500");
    let mut cluster = Cluster::start(Duration::from_millis(450));
    cluster.submit(&spec);
    let sleeper = cluster.worker("sleeper");
    cluster.until_run("some bouts are committed", |run| run["bouts"].as_u64() > Some(2));
    sleeper.signal("STOP");
    let asleep = cluster.until_run("its leases have expired", |run| run["leased"] == 0);
    assert_eq!(asleep["state"], "running", "it was too quick to be stopped");
    let before = asleep["bouts"].as_u64();
    let _worker = cluster.worker("worker");
    cluster.until_run("the other gets on", |run| run["bouts"].as_u64() > before);
    sleeper.signal("CONT");
    cluster.finishes_like_an_undisturbed_run(&spec);
}
