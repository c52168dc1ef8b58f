//! Disks without room: real file systems in memory, a few megabytes large. Where mounting is not allowed these tests say
//! so and do nothing.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::processes::Cluster;
use crate::quick;

/// A file system of its own, gone when this is dropped.
struct Disk(PathBuf);

impl Disk {
    /// Mounts a file system of so many kilobytes; none where that is not allowed.
    fn mount(folder: &Path, kilobytes: u64) -> Option<Disk> {
        fs::create_dir_all(folder).unwrap();
        let size = format!("size={kilobytes}k");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(folder).output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(Disk(folder.to_path_buf()));
        }
        println!("skipped: file systems cannot be mounted here (that takes root)");
        None
    }

    /// Takes all room that is left.
    fn fill(&self) -> PathBuf {
        let path = self.0.join("filler");
        let mut file = File::create(&path).unwrap();
        for size in [1 << 16, 1 << 12, 1] {
            while file.write_all(&vec![7; size]).is_ok() {}
        }
        path
    }

    /// Gives it another size.
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

/// Waits until a run stands still for one of these reasons, and looks whether it really does.
fn stands_still(cluster: &Cluster, why: &[&str]) -> Value {
    let said = |text: &str| why.iter().any(|reason| text.contains(reason));
    let waits = |run: &Value| run["waiting"].as_str().is_some_and(said);
    cluster.until_run("the run says what it waits for", waits);
    // What was lent before comes in or expires; then nothing changes any more.
    let quiet = cluster.until_run("nothing is lent", |run| run["leased"] == 0);
    std::thread::sleep(Duration::from_millis(1500));
    let later = cluster.run();
    assert_eq!((&later["bouts"], &later["leased"]), (&quiet["bouts"], &quiet["leased"]), "{later}");
    assert!(waits(&later), "{later}");
    let watched = cluster.ask(&["watch", "--once"]);
    assert!(said(&watched.out), "{}", watched.out);
    let listed = cluster.ask(&["list"]);
    assert!(said(&listed.out), "{}", listed.out);
    later
}

#[test]
fn a_disk_without_room_for_the_state_stops_the_run_and_nothing_else() {
    let spec = quick(900);
    let mut cluster = Cluster::prepare(Duration::from_millis(600));
    let Some(disk) = Disk::mount(Path::new(&cluster.path("disk")), 24 << 10) else { return };
    cluster = cluster.with_data(&disk.0.join("data"));
    cluster.restart();
    cluster.submit(&spec);
    let _worker = cluster.worker("worker");
    // 1. No room, and room again.
    cluster.until_run("some bouts are committed", |run| run["bouts"].as_u64() > Some(40));
    let filler = disk.fill();
    // State and dataset lie on one disk: either may be the first to find it full, and then nothing is granted.
    let no_room = ["the disk is full", "the dataset cannot be written"];
    let still = stands_still(&cluster, &no_room);
    assert_eq!(still["state"], "running", "it was too quick to be stopped");
    fs::remove_file(filler).unwrap();
    let before = still["bouts"].as_u64();
    cluster.until_run("the run goes on", |run| run["bouts"].as_u64() > before);
    // 2. Killed while there is no room: what it had counted is there.
    let filler = disk.fill();
    let still = stands_still(&cluster, &no_room);
    cluster.kill();
    fs::remove_file(filler).unwrap();
    cluster.restart();
    assert!(cluster.run()["bouts"].as_u64() >= still["bouts"].as_u64());
    cluster.finishes_like_an_undisturbed_run(&spec);
}

#[test]
fn a_disk_without_room_for_the_dataset_stops_the_run_and_nothing_else() {
    let spec = quick(120);
    let mut cluster = Cluster::start(Duration::from_millis(600));
    // The place of the moves is a disk of its own that has room for no part.
    let moves = cluster.data().join("moves");
    let Some(disk) = Disk::mount(&moves, 8) else { return };
    cluster.submit(&spec);
    let _worker = cluster.worker("worker");
    let still = stands_still(&cluster, &["the dataset cannot be written"]);
    assert_eq!(still["exported"], 0);
    let left: Vec<_> = fs::read_dir(cluster.data().join("games")).into_iter().flatten().collect();
    assert!(left.is_empty(), "there are games without moves: {left:?}");
    disk.resize(8 << 10);
    cluster.finishes_like_an_undisturbed_run(&spec);
}
