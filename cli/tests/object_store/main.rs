//! Datasets in object stores: the same as in a folder, whatever the store does, or refused with a sentence.
//!
//! `server` is the store. The oracle is that of all fault tests: every bout once, by the rules, with the content of a run
//! that nothing happened to.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use agon_testing::{binary, processes};

mod dialect;
mod server;

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::binary::{Answer, agon, json};
use crate::processes::{Cluster, Process, agon_with, digests, until};
use crate::server::{Fault, Lie, Server};

const LEASE: Duration = Duration::from_millis(2000);
const PLACE: &str = "s3://shelf/group/agon";
/// The same shelf by each of the kinds of stores.
const PLACES: [&str; 3] = [PLACE, "gs://shelf/group/agon", "az://shelf/group/agon"];

/// A tournament of so many bouts that is played quickly.
fn quick(bouts: u64) -> String {
    format!(
        r#"
name = "shelves"
game = "connect-four"
seed = 5
limit = {{ nodes = 60 }}
openings = {{ random_plies = 4 }}
[tournament]
format = "round-robin"
bouts = {bouts}
[[player]]
name = "pvs"
search = {{ algorithm = "pvs", table_mb = 1 }}
[[player]]
name = "uct"
search = {{ algorithm = "uct" }}
"#
    )
}

/// The folder of a test, and paths in it.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_string()
    }
}

#[test]
fn a_dataset_in_a_store_is_the_dataset_in_a_folder() {
    for place in PLACES {
        is_as_in_a_folder(place);
    }
}

fn is_as_in_a_folder(place: &str) {
    let (folder, server) = (Folder::new(), Server::start());
    let variables = server.variables();
    fs::write(folder.path("spec.toml"), quick(12)).unwrap();
    // 1. Played to a store, and played to a disk.
    let far = ["run", &folder.path("spec.toml"), "--data", place, "--state", &folder.path("state"), "--json"];
    let answer = agon_with(&far, &variables);
    assert_eq!(answer.code, 0, "{}", answer.err);
    json(&["run", &folder.path("spec.toml"), "--data", &folder.path("near"), "--json"]);
    server.save("shelf/group/agon", Path::new(&folder.path("copy")));
    assert_eq!(digests(Path::new(&folder.path("copy"))), digests(Path::new(&folder.path("near"))));
    assert!(server.names().iter().all(|name| !name.contains("probe/")), "{:?}", server.names());
    // 2. Every question has the same answer there and on a copy of it.
    let questions: [&[&str]; 9] = [
        &["verify"],
        &["ratings", "--json"],
        &["crosstable", "--json"],
        &["pruning", "--json"],
        &["games", "--json"],
        &["games", "--show", "3.1"],
        &["replay", "latest", "--games", "4"],
        &["compare", "latest", "latest"],
        &["verify", "--all", "--json"],
    ];
    for question in questions {
        let near = agon(&[question, &["--data", &folder.path("copy")]].concat());
        let far = agon_with(&[question, &["--data", place]].concat(), &variables);
        assert_eq!((far.code, &far.out), (near.code, &near.out), "{question:?}: {}", far.err);
        assert!(!near.out.is_empty() || near.code == 2, "{question:?} says nothing");
    }
    let report = ["report", "--data", place, "--output", &folder.path("page.html")];
    assert_eq!(agon_with(&report, &variables).code, 0);
    // 3. What was played is known: it is shown, not played again.
    let objects = server.names();
    let answer = agon_with(&far, &variables);
    assert!(answer.code == 0 && answer.out.contains("\"done\""), "{} {}", answer.out, answer.err);
    assert_eq!(server.names(), objects);
    // 4. Where there is nothing, or no answer, a sentence says so.
    let elsewhere = place.replace("group", "elsewhere");
    let answer = agon_with(&["verify", "--data", &elsewhere], &variables);
    assert!(
        answer.code == 2 && answer.err.contains(&format!("{elsewhere} has no dataset")),
        "{}",
        answer.err
    );
    let answer = agon_with(&["verify", "--data", "ftp://shelf/agon"], &variables);
    assert!(answer.code == 2 && answer.err.contains("`ftp` is no kind of store"), "{}", answer.err);
    let near = ["run", &folder.path("spec.toml"), "--data", &folder.path("near"), "--state", "x"];
    let answer = agon(&near);
    assert!(answer.code == 2 && answer.err.contains("holds its state itself"), "{}", answer.err);
}

/// Plays to a store that misbehaves, with a coordinator that is killed on the way.
fn survives(place: &str, one_in: usize, seed: u64) -> std::collections::BTreeMap<Fault, u64> {
    let server = Server::start();
    let mut cluster = Cluster::prepare(LEASE).with_store(place, server.variables());
    cluster.restart();
    let spec = quick(48);
    cluster.submit(&spec);
    server.misbehave(one_in, seed);
    let workers = [cluster.worker("one"), cluster.worker("two")];
    for share in [8, 24] {
        cluster.until_run("some of it is exported", |run| run["exported"].as_u64().unwrap() >= share);
        // A start that meets a fault at every try is refused; whoever looks after the service starts it again.
        until("it starts", || {
            cluster.start_again();
            let answers = until("it answers or ends", || {
                let ended = cluster.coordinator.as_mut().and_then(Process::ended);
                ended.map(|_| false).or_else(|| (cluster.ask(&["list"]).code == 0).then_some(true))
            });
            assert!(!cluster.said().contains("panicked"), "{}", cluster.said());
            answers.then_some(())
        });
    }
    cluster.until_run("the run is done", |run| run["state"] == "done");
    drop(workers);
    server.misbehave(0, 0);
    cluster.kill();
    // The oracle: the copy of the store is the dataset of a calm run.
    let copy = cluster.path("copy");
    server.save("shelf/group/agon", Path::new(&copy));
    let answer = agon(&["verify", "--data", &copy]);
    assert_eq!(answer.code, 0, "{} {}", answer.out, answer.err);
    let (file, calm) = (cluster.path("calm.toml"), cluster.path("calm"));
    fs::write(&file, &spec).unwrap();
    json(&["run", &file, "--data", &calm, "--json"]);
    let found = digests(Path::new(&copy));
    assert_eq!(found.keys().copied().collect::<Vec<_>>(), (0..48).collect::<Vec<_>>());
    assert_eq!(found, digests(Path::new(&calm)));
    server.faults()
}

#[test]
fn what_a_store_does_wrong_changes_no_bout() {
    for (place, seed) in PLACES.into_iter().zip(1..) {
        let faults = survives(place, 3, seed);
        println!("{place}: {faults:?}");
        for fault in Fault::ALL {
            assert!(faults.contains_key(&fault), "{fault:?} did not happen: {faults:?}");
        }
    }
}

/// What a coordinator says that does not get as far as serving.
fn coordinator(place: &str, variables: &[(String, String)]) -> Answer {
    let folder = Folder::new();
    let call = ["coordinator", "--listen", "127.0.0.1:0", "--data", place, "--state", &folder.path("state")];
    agon_with(&call, variables)
}

#[test]
fn a_store_that_breaks_its_promises_is_refused() {
    for (lie, sentence) in [
        (Lie::Overwrites, "the store does not keep its promise"),
        (Lie::Races, "each told that it was the first"),
        (Lie::Changes, "a put whose condition did not hold any more"),
    ] {
        for place in PLACES {
            let server = Server::lying(lie);
            let answer = coordinator(place, &server.variables());
            assert!(answer.code == 1 && answer.err.contains(sentence), "{lie:?} at {place}: {}", answer.err);
            assert_eq!(server.names(), Vec::<String>::new(), "{lie:?} at {place}");
        }
    }
    // One that does not answer has not lied; the sentence says where to look.
    for (place, where_to_look) in PLACES.into_iter().zip(["AWS_ENDPOINT_URL", "GOOGLE_", "AZURE_"]) {
        let answer = coordinator(place, &server::variables(processes::free_port()));
        assert!(answer.code == 1 && answer.err.contains(where_to_look), "{place}: {}", answer.err);
    }
}

#[test]
fn a_prefix_has_one_owner() {
    let server = Server::start();
    let mut first = Cluster::prepare(LEASE).with_store(PLACE, server.variables());
    first.restart();
    first.submit(&quick(8));
    let worker = first.worker("one");
    first.until_run("the run is done", |run| run["state"] == "done");
    drop(worker);
    // 1. Another state is refused, whether the owner lives or not.
    let mut second = Cluster::prepare(LEASE).with_store(PLACE, server.variables());
    let refused = |cluster: &mut Cluster, sentence: &str| {
        cluster.start_again();
        let code = cluster.coordinator.as_mut().unwrap().exit_code();
        assert!(code == 1 && cluster.said().contains(sentence), "{}", cluster.said());
    };
    refused(&mut second, "belongs to another coordinator");
    first.kill();
    refused(&mut second, "belongs to another coordinator");
    // 2. A backup of the life that the owner is in is refused too, wherever it is put back.
    let backup = |arguments: &[&str]| {
        let answer = agon_with(arguments, &server.variables());
        assert_eq!(answer.code, 0, "{}", answer.err);
    };
    let (file, put_back) = (first.path("backup"), first.path("put-back"));
    backup(&["data", "backup", &file, "--data", PLACE, "--state", &first.path("state")]);
    backup(&["data", "restore", &file, "--data", PLACE, "--state", &put_back]);
    second.more = vec!["--state".to_string(), put_back];
    refused(&mut second, "older than the dataset");
    // 3. The owner goes on; a copy of its state from before is refused.
    let copy = first.path("earlier");
    fs::create_dir(&copy).unwrap();
    for name in fs::read_dir(first.path("state")).unwrap() {
        let name = name.unwrap();
        fs::copy(name.path(), Path::new(&copy).join(name.file_name())).unwrap();
    }
    first.restart();
    let mut third = Cluster::prepare(LEASE).with_store(PLACE, server.variables());
    third.more = vec!["--state".to_string(), copy];
    refused(&mut third, "older than the dataset");
    // 4. With the operator's word it takes over, and whoever had it before writes nothing more and says why.
    third.more.push("--take-over".to_string());
    third.restart();
    first.submit(&quick(9));
    let worker = first.worker("one");
    let why = |run: &serde_json::Value| {
        run["waiting"].as_str().is_some_and(|why| why.contains("taken over by another coordinator"))
    };
    first.until_run("it notices", why);
    drop(worker);
    let runs = server.names().iter().filter(|name| name.contains("/runs/")).count();
    assert_eq!(runs, 1, "{:?}", server.names());
    first.kill();
    refused(&mut first, "older than the dataset");
    third.submit(&quick(10));
    let worker = third.worker("two");
    third.until_run("the run is done", |run| run["state"] == "done");
    drop(worker);
}
