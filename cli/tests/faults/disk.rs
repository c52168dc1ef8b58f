//! Full disks: file systems in memory of a few megabytes. Without the right to mount, these tests are skipped.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::quick;
use agon_testing::processes::{Cluster, Process};

/// A mounted file system, unmounted on drop.
struct Disk(PathBuf);

impl Disk {
    /// Mounts a file system of this size; `None` without the right to mount.
    fn mount(folder: &Path, kilobytes: u64) -> Option<Disk> {
        fs::create_dir_all(folder).unwrap();
        let size = format!("size={kilobytes}k");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(folder).output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(Disk(folder.to_path_buf()));
        }
        println!("skipped: mounting a file system requires root");
        None
    }

    /// Fills the free space.
    fn fill(&self) -> PathBuf {
        let path = self.0.join("filler");
        let mut file = File::create(&path).unwrap();
        for size in [1 << 16, 1 << 12, 1] {
            while file.write_all(&vec![7; size]).is_ok() {}
        }
        path
    }

    /// Changes the size.
    fn resize(&self, kilobytes: u64) {
        let size = format!("remount,size={kilobytes}k");
        assert!(Command::new("mount").args(["-o", &size]).arg(&self.0).status().unwrap().success());
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Waits until a run is waiting for one of these reasons, and asserts that its numbers stop changing.
fn wait_until_blocked(cluster: &Cluster, why: &[&str]) -> Value {
    let has_reason = |text: &str| why.iter().any(|reason| text.contains(reason));
    let waits = |run: &Value| run["waiting"].as_str().is_some_and(has_reason);
    cluster.wait_for_run("the run reports the reason", waits);
    // Earlier leases end first.
    let quiet = cluster.wait_for_run("nothing is leased", |run| run["leased"] == 0);
    std::thread::sleep(Duration::from_millis(1500));
    let later = cluster.last_run();
    assert_eq!((&later["bouts"], &later["leased"]), (&quiet["bouts"], &quiet["leased"]), "{later}");
    assert!(waits(&later), "{later}");
    let watched = cluster.agon(&["watch", "--once"]);
    assert!(has_reason(&watched.out), "{}", watched.out);
    let listed = cluster.agon(&["list"]);
    assert!(has_reason(&listed.out), "{}", listed.out);
    later
}

#[test]
fn full_disk_for_state_only_pauses_the_run() {
    let spec = quick(900);
    let mut cluster = Cluster::new(Duration::from_millis(600));
    let Some(disk) = Disk::mount(Path::new(&cluster.path("disk")), 24 << 10) else { return };
    cluster = cluster.with_data(&disk.0.join("data"));
    cluster.restart();
    cluster.submit(&spec);
    let _worker = cluster.worker("worker");
    // 1. The disk fills and is freed.
    cluster.wait_for_run("some bouts are committed", |run| run["bouts"].as_u64() > Some(40));
    let filler = disk.fill();
    // State and dataset share the disk: either may fail first, and then nothing is granted.
    let disk_full = ["the disk is full", "the dataset cannot be written"];
    let blocked = wait_until_blocked(&cluster, &disk_full);
    assert_eq!(blocked["state"], "running", "the run finished too early");
    fs::remove_file(filler).unwrap();
    let before = blocked["bouts"].as_u64();
    cluster.wait_for_run("the run goes on", |run| run["bouts"].as_u64() > before);
    // 2. The coordinator is killed while the disk is full: no counted bout is lost.
    let filler = disk.fill();
    let blocked = wait_until_blocked(&cluster, &disk_full);
    cluster.kill();
    fs::remove_file(filler).unwrap();
    cluster.restart();
    assert!(cluster.last_run()["bouts"].as_u64() >= blocked["bouts"].as_u64());
    cluster.assert_finishes_undisturbed(&spec);
}

#[test]
fn full_disk_for_dataset_only_pauses_the_run() {
    let spec = quick(120);
    let mut cluster = Cluster::start(Duration::from_millis(600));
    // The folder of the moves is a disk that is too small for a part.
    let moves = cluster.data().join("moves");
    let Some(disk) = Disk::mount(&moves, 8) else { return };
    cluster.submit(&spec);
    let _worker = cluster.worker("worker");
    let blocked = wait_until_blocked(&cluster, &["the dataset cannot be written"]);
    assert_eq!(blocked["exported"], 0);
    let left: Vec<_> = fs::read_dir(cluster.data().join("games")).into_iter().flatten().collect();
    assert!(left.is_empty(), "games were exported without moves: {left:?}");
    disk.resize(8 << 10);
    cluster.assert_finishes_undisturbed(&spec);
}

#[test]
fn full_disk_at_the_start_is_an_error() {
    let mut cluster = Cluster::new(Duration::from_millis(600));
    let Some(disk) = Disk::mount(Path::new(&cluster.path("disk")), 4 << 10) else { return };
    cluster = cluster.with_data(&disk.0.join("data"));
    cluster.restart();
    cluster.submit(&quick(20));
    cluster.kill();
    let filler = disk.fill();
    cluster.spawn_coordinator();
    let code = cluster.coordinator.as_mut().map(Process::wait);
    let (log, folder) = (cluster.log(), cluster.data().display().to_string());
    assert_eq!(code, Some(1), "{log}");
    assert!(
        log.contains(&format!("no space to open the state in {folder}; free some and start again")),
        "{log}"
    );
    fs::remove_file(filler).unwrap();
    cluster.restart();
    assert_eq!(cluster.last_run()["state"], "running");
}
