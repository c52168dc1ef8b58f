//! Those who have a token and act in the name of another.

use agon_proto::Progress;
use agon_proto::v1::{Outcome, Submission, submission};
use agon_proto::write::failure;
use agon_transport::Role;
use tonic::Code;

use crate::processes::until;
use crate::scripted_worker::ScriptedWorker;
use crate::secured_cluster::SecuredCluster;

#[test]
fn nobody_acts_in_the_name_of_another() {
    let secured = SecuredCluster::open(&[]);
    secured.token("thief", Role::Worker);
    until("the token counts", || ScriptedWorker::with(&secured.connector("thief"), "thief").ok().map(drop));
    let mut honest = ScriptedWorker::with(&secured.connector("plays"), "honest").unwrap();
    let bout = honest.take();
    let messages = honest.honest(&bout);
    let mut thief = ScriptedWorker::with(&secured.connector("thief"), "thief").unwrap();
    let before = secured.state();

    // A session under its name.
    let status = ScriptedWorker::with(&secured.connector("thief"), "honest").map(|_| ()).unwrap_err();
    assert_eq!(status.code(), Code::PermissionDenied, "{status}");
    assert!(
        status.message().contains("a worker called `honest` has come with the token `plays` before"),
        "{status}"
    );
    println!("a hello under another's name | {:?}: {}", status.code(), status.message());

    // A failure of its bout, and lies under its name, which would bring it into quarantine.
    for (what, sent) in
        [("another's lease", vec![failure(&bout.lease, "I say so")]), ("another's name", messages.clone())]
    {
        let status = thief.submit(sent, 1).remove(0).unwrap_err();
        assert_eq!(status.code(), Code::PermissionDenied, "{what}: {status}");
        assert!(
            status.message().contains("is played by `honest`, which came with the token `plays`"),
            "{status}"
        );
        println!("{what} | {:?}: {}", status.code(), status.message());
    }

    // A name that has never said hello: nothing is written down of it, however often.
    let nameless = renamed(&messages, "nobody");
    for _ in 0..20 {
        let status = thief.submit(nameless.clone(), 1).remove(0).unwrap_err();
        assert_eq!(status.code(), Code::Aborted, "{status}");
        assert!(
            status.message().contains("no worker called `nobody` has said hello here with the token `thief`")
        );
    }
    assert_eq!(secured.state(), before);

    // Its bout given back, and kept from expiring; nobody answers, and nothing happens.
    thief.give_back(std::slice::from_ref(&bout.lease));
    let progress = Progress { lease: bout.lease.clone(), started: true, game: 0, ply: 9, pulse: 9 };
    thief.heartbeat(0, vec![progress]);
    let other = thief.take();
    assert_ne!(other.lease.bout, bout.lease.bout, "what was given back by another is still lent");

    let answer = honest.submit_one(messages);
    assert_eq!(answer.outcome(), Outcome::Committed, "{}", answer.reason);

    // A name is free once the token that it came with is gone.
    drop(honest);
    secured.revoke("plays");
    until("the name is free", || ScriptedWorker::with(&secured.connector("thief"), "honest").ok().map(drop));
}

/// The messages under another name.
fn renamed(messages: &[Submission], name: &str) -> Vec<Submission> {
    let mut messages = messages.to_vec();
    for message in &mut messages {
        if let Some(submission::Kind::Head(head)) = &mut message.kind {
            head.worker = name.to_string();
        }
    }
    messages
}

/// Who lies once is set aside; what it says afterwards is answered, and not written down again.
#[test]
fn a_liar_fills_no_disk() {
    let secured = SecuredCluster::open(&[]);
    let mut liar = ScriptedWorker::with(&secured.connector("plays"), "liar").unwrap();
    let bout = liar.take();
    let mut never = bout.clone();
    never.lease.sequence += 1000;
    let messages: Vec<_> = liar.honest(&never);
    for _ in 0..20 {
        let answer = liar.submit_one(messages.clone());
        assert_eq!(answer.outcome(), Outcome::Refused, "{}", answer.reason);
    }
    let audit = secured.cluster.json(&["audit"]);
    let kinds: Vec<&str> =
        audit["entries"].as_array().unwrap().iter().map(|entry| entry["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == "refused").count(), 1, "{kinds:?}");
    assert_eq!(kinds.iter().filter(|kind| **kind == "quarantined").count(), 1, "{kinds:?}");

    // Nor does one that comes under name after name.
    for number in 1..100 {
        let name = format!("liar-{number}");
        let mut again = ScriptedWorker::with(&secured.connector("plays"), &name).unwrap();
        assert_eq!(again.submit_one(renamed(&messages, &name)).outcome(), Outcome::Refused);
    }
    let status = ScriptedWorker::with(&secured.connector("plays"), "liar-100").map(|_| ()).unwrap_err();
    assert!(
        status.message().contains("100 workers that came with the token `plays` are in quarantine"),
        "{status}"
    );
    println!("a hundred names that lied, and one more | {:?}: {}", status.code(), status.message());
    assert!(ScriptedWorker::with(&secured.connector("plays"), "liar").is_ok(), "who was here may come back");
    secured.token("other", Role::Worker);
    until("others come in", || ScriptedWorker::with(&secured.connector("other"), "other").ok().map(drop));
}

/// Where there are workers with another token, it is one of them who is asked for a second opinion.
#[test]
fn a_second_opinion_is_anothers() {
    let secured = SecuredCluster::open(&[]);
    secured.token("other", Role::Worker);
    let mut other =
        until("the token counts", || ScriptedWorker::with(&secured.connector("other"), "other").ok());
    let [mut first, mut friend] =
        ["first", "friend"].map(|name| ScriptedWorker::with(&secured.connector("plays"), name).unwrap());
    let bout = first.take();
    let messages = first.honest(&bout);
    assert_eq!(first.submit_one(messages).outcome(), Outcome::Committed);
    assert_ne!(friend.take().lease.bout, bout.lease.bout, "a worker with the same token is not asked");
    assert_eq!(other.take().lease.bout, bout.lease.bout);
}
