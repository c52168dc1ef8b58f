//! Datasets in object stores, which must equal those in a folder despite faults of the store. `server` is the store.

#![allow(clippy::unwrap_used, reason = "a failing test panics")]

use agon_testing::folder::{Folder, copy_folder};
use agon_testing::specs::{PVS_VS_UCT, vary};

mod dialect;
mod server;

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::server::{Fault, Lie, Server};
use agon_testing::binary::{Answer, agon, agon_with, json};
use agon_testing::processes::{Cluster, Process, digests, free_port, wait_until};

const LEASE: Duration = Duration::from_millis(2000);
const ADDRESS: &str = "s3://bucket/group/agon";
/// The same prefix in each kind of store.
const ADDRESSES: [&str; 3] = [ADDRESS, "gs://bucket/group/agon", "az://bucket/group/agon"];

/// Returns a tournament that is played quickly.
fn quick(bouts: u64) -> String {
    vary(PVS_VS_UCT).name("object-store").bouts(bouts).text()
}

#[test]
fn dataset_in_store_equals_dataset_in_folder() {
    for address in ADDRESSES {
        assert_equals_folder(address);
    }
}

fn assert_equals_folder(address: &str) {
    let (folder, server) = (Folder::new(), Server::start());
    let variables = server.variables();
    fs::write(folder.path("spec.toml"), quick(12)).unwrap();
    // 1. The same run in a store and in a folder.
    let far =
        ["run", &folder.path("spec.toml"), "--data", address, "--state", &folder.path("state"), "--json"];
    let answer = agon_with(&far, &variables);
    assert_eq!(answer.code, 0, "{}", answer.err);
    json(&["run", &folder.path("spec.toml"), "--data", &folder.path("near"), "--json"]);
    server.save("bucket/group/agon", Path::new(&folder.path("copy")));
    assert_eq!(digests(Path::new(&folder.path("copy"))), digests(Path::new(&folder.path("near"))));
    assert!(server.names().iter().all(|name| !name.contains("probe/")), "{:?}", server.names());
    // 2. Commands print the same for the store and for a copy of it.
    let commands: [&[&str]; 9] = [
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
    for command in commands {
        let near = agon(&[command, &["--data", &folder.path("copy")]].concat());
        let far = agon_with(&[command, &["--data", address]].concat(), &variables);
        assert_eq!((far.code, &far.out), (near.code, &near.out), "{command:?}: {}", far.err);
        assert!(!near.out.is_empty() || near.code == 2, "{command:?} prints nothing");
    }
    let report = ["report", "--data", address, "--output", &folder.path("page.html")];
    assert_eq!(agon_with(&report, &variables).code, 0);
    // 3. A finished run is not played again.
    let objects = server.names();
    let answer = agon_with(&far, &variables);
    assert!(answer.code == 0 && answer.out.contains("\"done\""), "{} {}", answer.out, answer.err);
    assert_eq!(server.names(), objects);
    // 4. Errors name the missing dataset or the unsupported address.
    let elsewhere = address.replace("group", "elsewhere");
    let answer = agon_with(&["verify", "--data", &elsewhere], &variables);
    assert!(
        answer.code == 1 && answer.err.contains(&format!("{elsewhere} has no runs yet")),
        "{}",
        answer.err
    );
    let answer = agon_with(&["verify", "--data", "ftp://host/agon"], &variables);
    assert!(answer.code == 2 && answer.err.contains("`ftp` is not a supported store"), "{}", answer.err);
    let near = ["run", &folder.path("spec.toml"), "--data", &folder.path("near"), "--state", "x"];
    let answer = agon(&near);
    assert!(answer.code == 2 && answer.err.contains("holds its state itself"), "{}", answer.err);
}

/// Plays a run to a faulty store while the coordinator is killed repeatedly, and returns the faults that happened.
fn run_with_faults(address: &str, one_in: usize, seed: u64) -> std::collections::BTreeMap<Fault, u64> {
    let server = Server::start();
    let mut cluster = Cluster::new(LEASE).with_object_store(address, server.variables());
    cluster.restart();
    let spec = quick(48);
    cluster.submit(&spec);
    server.misbehave(one_in, seed);
    let workers = [cluster.worker("one"), cluster.worker("two")];
    for share in [8, 24] {
        cluster.wait_for_run("a part is exported", |run| run["exported"].as_u64().unwrap() >= share);
        // A start fails after too many faults; a service manager would repeat it.
        wait_until("the coordinator starts", || {
            cluster.spawn_coordinator();
            let answers = wait_until("the coordinator answers or exits", || {
                let code = cluster.coordinator.as_mut().and_then(Process::try_exit_code);
                code.map(|_| false).or_else(|| (cluster.agon(&["list"]).code == 0).then_some(true))
            });
            assert!(!cluster.log().contains("panicked"), "{}", cluster.log());
            answers.then_some(())
        });
    }
    cluster.wait_for_run("the run is done", |run| run["state"] == "done");
    drop(workers);
    server.misbehave(0, 0);
    cluster.kill();
    // The store has the dataset of an undisturbed run.
    let copy = cluster.path("copy");
    server.save("bucket/group/agon", Path::new(&copy));
    let answer = agon(&["verify", "--data", &copy]);
    assert_eq!(answer.code, 0, "{} {}", answer.out, answer.err);
    let (file, undisturbed) = (cluster.path("undisturbed.toml"), cluster.path("undisturbed"));
    fs::write(&file, &spec).unwrap();
    json(&["run", &file, "--data", &undisturbed, "--json"]);
    let found = digests(Path::new(&copy));
    assert_eq!(found.keys().copied().collect::<Vec<_>>(), (0..48).collect::<Vec<_>>());
    assert_eq!(found, digests(Path::new(&undisturbed)));
    server.faults()
}

#[test]
fn store_faults_change_no_bout() {
    for (address, seed) in ADDRESSES.into_iter().zip(1..) {
        let faults = run_with_faults(address, 3, seed);
        println!("{address}: {faults:?}");
        for fault in Fault::ALL {
            assert!(faults.contains_key(&fault), "{fault:?} did not happen: {faults:?}");
        }
    }
}

/// Calls a coordinator that exits at its start.
fn coordinator(address: &str, variables: &[(String, String)]) -> Answer {
    let folder = Folder::new();
    let call =
        ["coordinator", "--listen", "127.0.0.1:0", "--data", address, "--state", &folder.path("state")];
    agon_with(&call, variables)
}

#[test]
fn rejects_store_without_conditional_writes() {
    for (lie, message) in [
        (Lie::Overwrites, "the store does not support conditional writes"),
        (Lie::Races, "each was acknowledged as the first"),
        (Lie::Changes, "an update with an outdated version succeeded"),
    ] {
        for address in ADDRESSES {
            let server = Server::lying(lie);
            let answer = coordinator(address, &server.variables());
            assert!(answer.code == 1 && answer.err.contains(message), "{lie:?} at {address}: {}", answer.err);
            assert_eq!(server.names(), Vec::<String>::new(), "{lie:?} at {address}");
        }
    }
    // If the store does not answer, the message names the setting to check.
    for (address, setting) in ADDRESSES.into_iter().zip(["AWS_ENDPOINT_URL", "GOOGLE_", "AZURE_"]) {
        let answer = coordinator(address, &server::variables(free_port()));
        assert!(answer.code == 1 && answer.err.contains(setting), "{address}: {}", answer.err);
    }
}

#[test]
fn prefix_has_one_owner() {
    let server = Server::start();
    let mut first = Cluster::new(LEASE).with_object_store(ADDRESS, server.variables());
    first.restart();
    first.submit(&quick(8));
    let worker = first.worker("one");
    first.wait_for_run("the run is done", |run| run["state"] == "done");
    drop(worker);
    // 1. Another state is rejected, whether the owner runs or not.
    let mut second = Cluster::new(LEASE).with_object_store(ADDRESS, server.variables());
    let assert_refused = |cluster: &mut Cluster, message: &str| {
        cluster.spawn_coordinator();
        let code = cluster.coordinator.as_mut().unwrap().wait();
        assert!(code == 1 && cluster.log().contains(message), "{}", cluster.log());
    };
    assert_refused(&mut second, "belongs to another coordinator");
    first.kill();
    assert_refused(&mut second, "belongs to another coordinator");
    // 2. A restored backup of the owner's current epoch is rejected too.
    let backup = |arguments: &[&str]| {
        let answer = agon_with(arguments, &server.variables());
        assert_eq!(answer.code, 0, "{}", answer.err);
    };
    let (file, restored) = (first.path("backup"), first.path("restored"));
    backup(&["data", "backup", &file, "--data", ADDRESS, "--state", &first.path("state")]);
    backup(&["data", "restore", &file, "--data", ADDRESS, "--state", &restored]);
    second.flags = vec!["--state".to_string(), restored];
    assert_refused(&mut second, "older than the dataset");
    // 3. The owner resumes; an earlier copy of its state is rejected.
    let copy = first.path("earlier");
    copy_folder(Path::new(&first.path("state")), Path::new(&copy));
    first.restart();
    let mut third = Cluster::new(LEASE).with_object_store(ADDRESS, server.variables());
    third.flags = vec!["--state".to_string(), copy];
    assert_refused(&mut third, "older than the dataset");
    // 4. With --take-over it becomes the owner; the previous owner writes nothing more and reports the reason.
    third.flags.push("--take-over".to_string());
    third.restart();
    first.submit(&quick(9));
    let worker = first.worker("one");
    let why = |run: &serde_json::Value| {
        run["waiting"].as_str().is_some_and(|why| why.contains("taken over by another coordinator"))
    };
    first.wait_for_run("the previous owner stops", why);
    drop(worker);
    let runs = server.names().iter().filter(|name| name.contains("/runs/")).count();
    assert_eq!(runs, 1, "{:?}", server.names());
    first.kill();
    assert_refused(&mut first, "older than the dataset");
    third.submit(&quick(10));
    let worker = third.worker("two");
    third.wait_for_run("the run is done", |run| run["state"] == "done");
    drop(worker);
}
