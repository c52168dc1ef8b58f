//! Data folders that are not as they should be: refused with a sentence, or recovered, and never a panic.

use std::fs;
use std::path::Path;
use std::time::Duration;

use agon_games::random::{below, seeded};
use agon_proto::v1::Outcome;

use crate::binary::agon;
use crate::processes::{Cluster, Process, digests, free_port, until};
use crate::scripted_worker::ScriptedWorker;
use crate::{LONG, quick};

/// Calls a coordinator that must not run. It ends with 1 and a sentence.
fn refused(data: &str, listen: &str, sentence: &str) {
    let answer = agon(&["coordinator", "--listen", listen, "--data", data]);
    assert_eq!(answer.code, 1, "{}", answer.err);
    assert!(answer.err.contains("error: ") && answer.err.contains(sentence), "{}", answer.err);
    assert!(!answer.err.contains("panicked"), "{}", answer.err);
}

#[test]
fn a_folder_that_is_taken_foreign_newer_or_unusable_is_refused() {
    let cluster = Cluster::start(LONG);
    let free = format!("127.0.0.1:{}", free_port());
    let data = cluster.data().to_str().unwrap();
    // 1. Somebody works with it, or listens there.
    refused(data, &free, "another coordinator works with");
    let taken = cluster.address().replace("http://", "");
    refused(&cluster.path("elsewhere"), &taken, "cannot be listened on");
    assert_eq!(cluster.ask(&["list"]).code, 0, "the first one does not mind");
    // 2. It cannot be a folder.
    fs::write(cluster.path("file"), "").unwrap();
    refused(&cluster.path("file/data"), &free, "cannot be used");
    refused("/proc/agon-data", &free, "cannot be used");
    // 3. It is somebody else's.
    fs::create_dir(cluster.path("letters")).unwrap();
    fs::write(cluster.path("letters/mother.txt"), "dear").unwrap();
    refused(&cluster.path("letters"), &free, "is no data folder of agon");
    fs::write(cluster.path("letters/agon.json"), "\u{0}not json").unwrap();
    refused(&cluster.path("letters"), &free, "is no data folder of agon");
    // 4. A newer program wrote it.
    fs::write(cluster.path("letters/agon.json"), "{\"format\": 99}").unwrap();
    refused(&cluster.path("letters"), &free, "is of format 99");
    fs::create_dir(cluster.path("newer")).unwrap();
    fs::write(cluster.path("newer/agon.json"), "{\"format\": 1}").unwrap();
    let state = rusqlite::Connection::open(cluster.path("newer/coordinator.sqlite")).unwrap();
    state.pragma_update(None, "user_version", 99).unwrap();
    drop(state);
    refused(&cluster.path("newer"), &free, "the state is of version 99");
}

/// A folder whose coordinator was killed with some bouts acknowledged and none exported.
pub(crate) fn half_done(spec: &str) -> Cluster {
    let mut cluster = Cluster::start(Duration::from_millis(300));
    cluster.submit(spec);
    let mut rogue = ScriptedWorker::new(&cluster.address(), "before");
    for _ in 0..5 {
        let bout = rogue.take();
        let messages = rogue.honest(&bout);
        assert_eq!(rogue.submit_one(messages).outcome(), Outcome::Committed);
    }
    cluster.kill();
    // Everything in one file, so that one file can be damaged.
    let state = rusqlite::Connection::open(cluster.data().join("coordinator.sqlite")).unwrap();
    let busy: i64 = state.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0)).unwrap();
    assert_eq!(busy, 0);
    cluster
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Starts a coordinator on a damaged copy. Either it ends with a sentence, or it says why the run does not go on, or the
/// run ends with the dataset that it must have. Says which.
fn survives(cluster: Cluster, data: &Path, calm: &Path, what: &str) -> (Cluster, &'static str) {
    let mut cluster = cluster.with_data(data);
    cluster.start_again();
    let ended = until("the coordinator answers or ends", || {
        let ended = cluster.coordinator.as_mut().and_then(Process::ended);
        ended.map(Some).or_else(|| (cluster.ask(&["list"]).code == 0).then_some(None))
    });
    if let Some(code) = ended {
        let said = cluster.said();
        assert!(code == 1 && said.contains("error: ") && !said.contains("panicked"), "{what}: {code} {said}");
        return (cluster, "refused");
    }
    let worker = cluster.worker("after");
    let stuck = |run: &serde_json::Value| {
        run["waiting"].as_str().is_some_and(|why| why.contains("does not read back"))
    };
    let run =
        cluster.until_run("the run goes on or says why not", |run| run["state"] == "done" || stuck(run));
    drop(worker);
    let said = cluster.said();
    assert!(!said.contains("panicked"), "{what}: {said}");
    cluster.kill();
    if run["state"] != "done" {
        return (cluster, "stuck");
    }
    cluster.verifies();
    assert_eq!(digests(data), digests(calm), "{what}");
    (cluster, "recovered")
}

#[test]
fn a_state_that_is_damaged_is_refused_or_recovered() {
    let spec = quick(10);
    let mut cluster = half_done(&spec);
    let whole = cluster.data().to_path_buf();
    let (calm, file) = (cluster.path("calm"), cluster.path("calm.toml"));
    fs::write(&file, &spec).unwrap();
    assert_eq!(agon(&["run", &file, "--data", &calm, "--json"]).code, 0);
    let state = fs::read(whole.join("coordinator.sqlite")).unwrap();
    let mut random = seeded(11);
    let mut damages: Vec<(String, Vec<u8>)> = Vec::new();
    for length in [0, 1, 100, 4096, state.len() / 2, state.len() - 1] {
        damages.push((format!("truncated to {length} bytes"), state[..length].to_vec()));
    }
    for _ in 0..14 {
        let (place, bit) = (below(&mut random, state.len()), below(&mut random, 8));
        let mut damaged = state.clone();
        damaged[place] ^= 1 << bit;
        damages.push((format!("bit {bit} of byte {place} flipped"), damaged));
    }
    let mut ends = std::collections::BTreeMap::new();
    for (number, (what, bytes)) in damages.into_iter().enumerate() {
        let data = cluster.path(&format!("copy-{number}"));
        copy(&whole, Path::new(&data));
        fs::write(Path::new(&data).join("coordinator.sqlite"), bytes).unwrap();
        let end;
        (cluster, end) = survives(cluster, Path::new(&data), Path::new(&calm), &what);
        println!("{what}: {end}");
        *ends.entry(end).or_insert(0) += 1;
    }
    assert!(ends["refused"] >= 5, "{ends:?}: states that are cut short are not refused");
    // What was not damaged at all goes on where it was.
    let (_, end) = survives(cluster, &whole, Path::new(&calm), "nothing");
    assert_eq!(end, "recovered");
}

#[test]
fn runs_without_their_state_are_not_played_a_second_time() {
    let spec = quick(4);
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    fs::write(path("spec.toml"), &spec).unwrap();
    assert_eq!(agon(&["run", &path("spec.toml"), "--data", &path("data")]).code, 0);
    for name in fs::read_dir(path("data")).unwrap() {
        let name = name.unwrap().path();
        if name.to_str().unwrap().contains("sqlite") {
            fs::remove_file(name).unwrap();
        }
    }
    refused(&path("data"), "127.0.0.1:0", "its state file coordinator.sqlite is gone or empty");
    assert_eq!(agon(&["verify", "--data", &path("data")]).code, 0, "the dataset is none the worse for it");
}
