//! Workers that submit invalid bouts.

use agon_proto::LeasedBout;
use agon_proto::v1::submission::Kind;
use agon_proto::v1::{LimitKind, MoveBatch, Outcome, Submission};
use agon_records::BoutRows;
use prost::Message as _;

use crate::{LONG, quick};
use agon_testing::processes::Cluster;
use agon_testing::scripted_worker::ScriptedWorker;

/// Returns the messages of an invalid bout, given the worker and its leased bout.
type Lie = fn(&ScriptedWorker, LeasedBout) -> Vec<Submission>;

/// Changes the rows of a played bout and encodes them with matching digests.
fn changed_rows(
    rogue: &ScriptedWorker,
    bout: &LeasedBout,
    change: impl FnOnce(&mut BoutRows),
) -> Vec<Submission> {
    let mut rows = rogue.play(bout);
    change(&mut rows);
    rogue.messages(bout, &rows)
}

/// Changes an encoded batch of moves.
fn changed_batch(
    rogue: &ScriptedWorker,
    bout: &LeasedBout,
    change: impl FnOnce(&mut MoveBatch),
) -> Vec<Submission> {
    let mut messages = rogue.honest_messages(bout);
    let moves = messages.iter_mut().find_map(|message| match &mut message.kind {
        Some(Kind::Moves(moves)) => Some(moves),
        _ => None,
    });
    let moves = moves.unwrap();
    let mut batch = MoveBatch::decode(&moves[..]).unwrap();
    change(&mut batch);
    *moves = batch.encode_to_vec().into();
    messages
}

/// Changes the lease in every message.
fn changed_lease(
    rogue: &ScriptedWorker,
    mut bout: LeasedBout,
    change: impl FnOnce(&mut LeasedBout),
) -> Vec<Submission> {
    let mut messages = rogue.honest_messages(&bout);
    change(&mut bout);
    for message in &mut messages {
        message.lease = Some((&bout.lease).into());
    }
    messages
}

/// Each invalid bout with a part of the coordinator's message.
const LIES: [(&str, Lie, &str); 16] = [
    (
        "illegal-move",
        |rogue, bout| changed_rows(rogue, &bout, |rows| rows.moves[5].mv = "9".into()),
        "ply 5: `9` is not legal",
    ),
    (
        "another-opening",
        |rogue, bout| {
            changed_rows(rogue, &bout, |rows| {
                let other = if rows.moves[0].mv == "1" { "2" } else { "1" };
                rows.moves[0].mv = other.into();
            })
        },
        "ply 0: the opening plays",
    ),
    (
        "payoff",
        |rogue, bout| {
            changed_rows(rogue, &bout, |rows| {
                rows.games[1].payoffs.iter_mut().for_each(|payoff| *payoff = 1 - *payoff);
            })
        },
        "the payoffs are",
    ),
    (
        "ending",
        |rogue, bout| changed_rows(rogue, &bout, |rows| rows.games[0].ending = "boredom".into()),
        "not by boredom",
    ),
    ("seed", |rogue, bout| changed_rows(rogue, &bout, |rows| rows.games[0].seed ^= 1), "the seed is"),
    (
        "missing-end",
        |rogue, bout| {
            changed_rows(rogue, &bout, |rows| {
                let last = rows.moves.iter().rposition(|row| row.game == 0).unwrap();
                rows.moves.remove(last);
            })
        },
        "it is not over",
    ),
    (
        "too-many-nodes",
        |rogue, bout| {
            changed_rows(rogue, &bout, |rows| {
                let mut searches = rows.moves.iter_mut().filter_map(|row| row.search.as_mut());
                searches.find(|search| search.counters.simulations == 0).unwrap().counters.nodes = 61;
            })
        },
        "`nodes` is 61, and it must be at most 60: the node limit",
    ),
    (
        "another-limit",
        |rogue, bout| {
            changed_rows(rogue, &bout, |rows| {
                rows.moves
                    .iter_mut()
                    .filter_map(|row| row.search.as_mut())
                    .for_each(|search| search.limit_value = 61);
            })
        },
        "the limit is nodes 61, not nodes 60",
    ),
    (
        "content-digest",
        |rogue, bout| {
            let mut messages = rogue.honest_messages(&bout);
            let Some(Kind::End(end)) = messages.last_mut().and_then(|last| last.kind.as_mut()) else {
                panic!()
            };
            end.content_digest[7] ^= 1;
            messages
        },
        "the digest of the bout's content",
    ),
    (
        "message-lost",
        |rogue, bout| {
            let mut messages = rogue.honest_messages(&bout);
            messages.remove(1);
            messages
        },
        "digest of the bout's messages",
    ),
    (
        "not-a-number",
        |rogue, bout| changed_batch(rogue, &bout, |batch| batch.score[0] = f64::NAN),
        "`score` is NaN",
    ),
    (
        "all-the-nodes",
        |rogue, bout| changed_batch(rogue, &bout, |batch| batch.cutoffs[0] = u64::MAX),
        "`cutoffs` is 18446744073709551615, and it must be",
    ),
    (
        "unknown-word",
        |rogue, bout| {
            changed_batch(rogue, &bout, |batch| batch.limit_kind[0] = LimitKind::ClockMs as i32 + 9)
        },
        "`limit_kind` has the value 14",
    ),
    (
        "long-line",
        |rogue, bout| changed_batch(rogue, &bout, |batch| batch.pv = "1 ".repeat(1 << 19)),
        "`pv` has",
    ),
    (
        "odd-bout",
        |rogue, bout| changed_lease(rogue, bout, |bout| bout.lease.bout = u64::MAX),
        "does not exist: the run has bouts 0 to 15",
    ),
    (
        "never-leased",
        |rogue, bout| changed_lease(rogue, bout, |bout| bout.lease.sequence += 1000),
        "was never leased",
    ),
];

#[test]
fn lying_worker_is_rejected_and_its_bout_reassigned() {
    let spec = quick(16);
    let mut cluster = Cluster::start(LONG);
    cluster.submit(&spec);
    let mut rogues = Vec::new();
    for (name, lie, message) in LIES {
        let mut rogue = ScriptedWorker::new(&cluster.address(), name);
        let bout = rogue.lease();
        let messages = lie(&rogue, bout);
        let answer = rogue.submit_one(messages);
        assert_eq!(answer.outcome(), Outcome::Refused, "{name}: {}", answer.reason);
        assert!(answer.reason.contains(message), "{name}: {}", answer.reason);
        // Free slots do not help: nothing more is granted.
        rogue.heartbeat(8, Vec::new());
        let known = cluster.worker_status(name);
        assert_eq!(
            (known["refused"].as_u64(), known["flag"].as_str()),
            (Some(1), Some(answer.reason.as_str()))
        );
        rogues.push(rogue);
    }
    let run = cluster.last_run();
    assert_eq!((run["bouts"].as_u64(), run["leased"].as_u64()), (Some(0), Some(0)), "{run}");
    assert_eq!(
        run["waiting"].as_str(),
        Some("every connected worker is in quarantine: `agon workers` shows why")
    );

    let _honest = cluster.worker("honest");
    cluster.wait_for_run("the run is done", |run| run["state"] == "done");
    let honest = cluster.worker_status("honest");
    assert_eq!((honest["committed"].as_u64(), honest["flag"].as_str()), (Some(16), None));
    cluster.assert_finishes_undisturbed(&spec);
}

#[test]
fn rejects_oversized_message() {
    let spec = quick(1);
    let mut cluster = Cluster::start(LONG);
    cluster.submit(&spec);
    let mut rogue = ScriptedWorker::new(&cluster.address(), "rogue");
    let bout = rogue.lease();
    let messages = changed_batch(&rogue, &bout, |search| search.pv = "1 ".repeat(2 << 20));
    let status = rogue.submit(messages, 1).remove(0).unwrap_err();
    assert!(status.message().contains("too large"), "{status}");
    assert!(status.message().contains("the limit is: 2097152 bytes"), "{status}");
    // On a new connection the bout is accepted.
    let messages = rogue.honest_messages(&bout);
    assert_eq!(rogue.submit_one(messages).outcome(), Outcome::Committed);
    cluster.assert_finishes_undisturbed(&spec);
}

#[test]
fn rejects_lease_of_another_worker() {
    let spec = quick(2);
    let mut cluster = Cluster::start(LONG);
    cluster.submit(&spec);
    let (mut owner, mut thief) =
        (ScriptedWorker::new(&cluster.address(), "owner"), ScriptedWorker::new(&cluster.address(), "thief"));
    let (owned, other) = (owner.lease(), thief.lease());
    let messages = changed_lease(&thief, other, |bout| bout.lease = owned.lease.clone());
    let answer = thief.submit_one(messages);
    assert_eq!(answer.outcome(), Outcome::Refused, "{}", answer.reason);
    assert!(answer.reason.contains("was leased to another worker"), "{}", answer.reason);
    assert_eq!(cluster.worker_status("owner")["flag"].as_str(), None);
    for bout in [owned, owner.lease()] {
        let messages = owner.honest_messages(&bout);
        assert_eq!(owner.submit_one(messages).outcome(), Outcome::Committed);
    }
    cluster.assert_finishes_undisturbed(&spec);
}
