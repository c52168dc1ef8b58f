//! Valid tokens that act under another worker's name.

use agon_proto::Progress;
use agon_proto::v1::{Outcome, Submission, submission};
use agon_proto::write::failure;
use agon_transport::Role;
use tonic::Code;

use crate::secured_cluster::SecuredCluster;
use agon_testing::processes::wait_until;
use agon_testing::scripted_worker::ScriptedWorker;

#[test]
fn worker_name_belongs_to_its_token() {
    let secured = SecuredCluster::start(&[]);
    secured.create_token("thief", Role::Worker);
    wait_until("the token is valid", || {
        ScriptedWorker::connect(&secured.connector("thief"), "thief").ok().map(drop)
    });
    let mut honest = ScriptedWorker::connect(&secured.connector("plays"), "honest").unwrap();
    let bout = honest.lease();
    let messages = honest.honest_messages(&bout);
    let mut thief = ScriptedWorker::connect(&secured.connector("thief"), "thief").unwrap();
    let before = secured.state();

    // A session under the other worker's name.
    let status = ScriptedWorker::connect(&secured.connector("thief"), "honest").map(|_| ()).unwrap_err();
    assert_eq!(status.code(), Code::PermissionDenied, "{status}");
    assert!(status.message().contains("the worker name `honest` belongs to token `plays`"), "{status}");
    println!("a hello under another's name | {:?}: {}", status.code(), status.message());

    // A failure of its bout, and invalid bouts under its name, which would quarantine it.
    for (what, sent) in
        [("another's lease", vec![failure(&bout.lease, "I say so")]), ("another's name", messages.clone())]
    {
        let status = thief.submit(sent, 1).remove(0).unwrap_err();
        assert_eq!(status.code(), Code::PermissionDenied, "{what}: {status}");
        assert!(status.message().contains("belongs to `honest`, a worker of token `plays`"), "{status}");
        println!("{what} | {:?}: {}", status.code(), status.message());
    }

    // A name without a session: nothing is stored, however often it submits.
    let unknown = renamed(&messages, "unknown");
    for _ in 0..20 {
        let status = thief.submit(unknown.clone(), 1).remove(0).unwrap_err();
        assert_eq!(status.code(), Code::Aborted, "{status}");
        assert!(status.message().contains("worker `unknown` has no session with token `thief`"));
    }
    assert_eq!(secured.state(), before);

    // Returning its bout, or renewing its lease, is ignored.
    thief.return_leases(std::slice::from_ref(&bout.lease));
    let progress = Progress { lease: bout.lease.clone(), started: true, game: 0, ply: 9, pulse: 9 };
    thief.heartbeat(0, vec![progress]);
    let other = thief.lease();
    assert_ne!(other.lease.bout, bout.lease.bout, "the bout is still leased");

    let answer = honest.submit_one(messages);
    assert_eq!(answer.outcome(), Outcome::Committed, "{}", answer.reason);

    // Revoking the token frees its names.
    drop(honest);
    secured.revoke("plays");
    wait_until("the name is free", || {
        ScriptedWorker::connect(&secured.connector("thief"), "honest").ok().map(drop)
    });
}

/// Returns the messages with another worker name.
fn renamed(messages: &[Submission], name: &str) -> Vec<Submission> {
    let mut messages = messages.to_vec();
    for message in &mut messages {
        if let Some(submission::Kind::Head(head)) = &mut message.kind {
            head.worker = name.to_string();
        }
    }
    messages
}

#[test]
fn rejected_submissions_do_not_fill_the_disk() {
    let secured = SecuredCluster::start(&[]);
    let mut liar = ScriptedWorker::connect(&secured.connector("plays"), "liar").unwrap();
    let bout = liar.lease();
    let mut never = bout.clone();
    never.lease.sequence += 1000;
    let messages: Vec<_> = liar.honest_messages(&never);
    for _ in 0..20 {
        let answer = liar.submit_one(messages.clone());
        assert_eq!(answer.outcome(), Outcome::Refused, "{}", answer.reason);
    }
    let audit = secured.cluster.json(&["audit"]);
    let kinds: Vec<&str> =
        audit["entries"].as_array().unwrap().iter().map(|entry| entry["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == "refused").count(), 1, "{kinds:?}");
    assert_eq!(kinds.iter().filter(|kind| **kind == "quarantined").count(), 1, "{kinds:?}");

    // Nor does a worker that changes its name each time.
    for number in 1..100 {
        let name = format!("liar-{number}");
        let mut again = ScriptedWorker::connect(&secured.connector("plays"), &name).unwrap();
        assert_eq!(again.submit_one(renamed(&messages, &name)).outcome(), Outcome::Refused);
    }
    let status = ScriptedWorker::connect(&secured.connector("plays"), "liar-100").map(|_| ()).unwrap_err();
    assert!(status.message().contains("100 workers of token `plays` are in quarantine"), "{status}");
    println!("the 101st name of a lying worker | {:?}: {}", status.code(), status.message());
    assert!(
        ScriptedWorker::connect(&secured.connector("plays"), "liar").is_ok(),
        "a known worker may return"
    );
    secured.create_token("other", Role::Worker);
    wait_until("another token connects", || {
        ScriptedWorker::connect(&secured.connector("other"), "other").ok().map(drop)
    });
}

#[test]
fn verification_needs_another_token() {
    let secured = SecuredCluster::start(&[]);
    secured.create_token("other", Role::Worker);
    let mut other = wait_until("the token is valid", || {
        ScriptedWorker::connect(&secured.connector("other"), "other").ok()
    });
    let [mut first, mut friend] =
        ["first", "friend"].map(|name| ScriptedWorker::connect(&secured.connector("plays"), name).unwrap());
    let bout = first.lease();
    let messages = first.honest_messages(&bout);
    assert_eq!(first.submit_one(messages).outcome(), Outcome::Committed);
    assert_ne!(friend.lease().lease.bout, bout.lease.bout, "a worker with the same token does not verify");
    assert_eq!(other.lease().lease.bout, bout.lease.bout);
}

/// Three names of one token cannot end a bout that a worker with another token could play.
#[test]
fn names_of_one_token_are_one_witness() {
    let secured = SecuredCluster::start(&[]);
    secured.create_token("other", Role::Worker);
    let mut other = wait_until("the token is valid", || {
        ScriptedWorker::connect(&secured.connector("other"), "other").ok()
    });
    let mut liars = Vec::new();
    for name in ["one", "two", "three", "four"] {
        let mut liar = ScriptedWorker::connect(&secured.connector("plays"), name).unwrap();
        let bout = liar.lease();
        assert_eq!(bout.lease.bout, liars.len() as u64, "{name}: others get a failed bout first");
        let answer = liar.submit_one(vec![failure(&bout.lease, "I say so")]);
        assert_eq!(answer.outcome(), Outcome::FailureNoted, "{}", answer.reason);
        liars.push(liar);
    }
    let bout = other.lease();
    assert_eq!(bout.lease.bout, 0);
    let messages = other.honest_messages(&bout);
    assert_eq!(other.submit_one(messages).outcome(), Outcome::Committed);
}
