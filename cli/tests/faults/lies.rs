//! Workers that send what cannot be.

use agon_proto::Bout;
use agon_proto::v1::submission::Kind;
use agon_proto::v1::{LimitKind, MoveBatch, Outcome, Submission};
use agon_records::BoutRows;
use prost::Message as _;

use crate::processes::Cluster;
use crate::scripted_worker::ScriptedWorker;
use crate::{LONG, quick};

/// Makes the messages of a lie, given the worker and what it was lent.
type Lie = fn(&ScriptedWorker, Bout) -> Vec<Submission>;

/// A bout whose rows are changed after it was played, with digests that fit.
fn told(rogue: &ScriptedWorker, bout: &Bout, change: impl FnOnce(&mut BoutRows)) -> Vec<Submission> {
    let mut rows = rogue.play(bout);
    change(&mut rows);
    rogue.messages(bout, &rows)
}

/// A bout of which one batch of plies is changed on the wire.
fn searched(rogue: &ScriptedWorker, bout: &Bout, change: impl FnOnce(&mut MoveBatch)) -> Vec<Submission> {
    let mut messages = rogue.honest(bout);
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

/// A bout whose every message names another lease.
fn renamed(rogue: &ScriptedWorker, mut bout: Bout, change: impl FnOnce(&mut Bout)) -> Vec<Submission> {
    let mut messages = rogue.honest(&bout);
    change(&mut bout);
    for message in &mut messages {
        message.lease = Some((&bout.lease).into());
    }
    messages
}

/// Every lie with a part of the sentence that refuses it.
const LIES: [(&str, Lie, &str); 16] = [
    (
        "illegal-move",
        |rogue, bout| told(rogue, &bout, |rows| rows.moves[5].mv = "9".into()),
        "ply 5: `9` is not legal",
    ),
    (
        "another-opening",
        |rogue, bout| {
            told(rogue, &bout, |rows| {
                let other = if rows.moves[0].mv == "1" { "2" } else { "1" };
                rows.moves[0].mv = other.into();
            })
        },
        "ply 0: the opening plays",
    ),
    (
        "payoff",
        |rogue, bout| {
            told(rogue, &bout, |rows| {
                rows.games[1].payoffs.iter_mut().for_each(|payoff| *payoff = 1 - *payoff);
            })
        },
        "the payoffs are",
    ),
    (
        "ending",
        |rogue, bout| told(rogue, &bout, |rows| rows.games[0].ending = "boredom".into()),
        "not by boredom",
    ),
    ("seed", |rogue, bout| told(rogue, &bout, |rows| rows.games[0].seed ^= 1), "the seed is"),
    (
        "missing-end",
        |rogue, bout| {
            told(rogue, &bout, |rows| {
                let last = rows.moves.iter().rposition(|row| row.game == 0).unwrap();
                rows.moves.remove(last);
            })
        },
        "it is not over",
    ),
    (
        "too-many-nodes",
        |rogue, bout| {
            told(rogue, &bout, |rows| {
                let mut searches = rows.moves.iter_mut().filter_map(|row| row.search.as_mut());
                searches.find(|search| search.counters.simulations == 0).unwrap().counters.nodes = 61;
            })
        },
        "61 nodes are more than the limit of 60",
    ),
    (
        "another-limit",
        |rogue, bout| {
            told(rogue, &bout, |rows| {
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
            let mut messages = rogue.honest(&bout);
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
            let mut messages = rogue.honest(&bout);
            messages.remove(1);
            messages
        },
        "digest of the bout's messages",
    ),
    (
        "not-a-number",
        |rogue, bout| searched(rogue, &bout, |batch| batch.score[0] = f64::NAN),
        "`score` is NaN",
    ),
    (
        "all-the-nodes",
        |rogue, bout| searched(rogue, &bout, |batch| batch.cutoffs[0] = u64::MAX),
        "`cutoffs` is 18446744073709551615, and it must be",
    ),
    (
        "unknown-word",
        |rogue, bout| searched(rogue, &bout, |batch| batch.limit_kind[0] = LimitKind::ClockMs as i32 + 9),
        "`limit_kind` has the value 14",
    ),
    ("long-line", |rogue, bout| searched(rogue, &bout, |batch| batch.pv = "1 ".repeat(1 << 19)), "`pv` has"),
    (
        "odd-bout",
        |rogue, bout| renamed(rogue, bout, |bout| bout.lease.bout = u64::MAX),
        "cannot be: the run has the bouts 0 to 15",
    ),
    (
        "never-lent",
        |rogue, bout| renamed(rogue, bout, |bout| bout.lease.sequence += 1000),
        "was never leased",
    ),
];

#[test]
fn a_worker_that_lies_is_refused_and_given_no_more_and_others_play_its_bout() {
    let spec = quick(16);
    let mut cluster = Cluster::start(LONG);
    cluster.submit(&spec);
    let mut rogues = Vec::new();
    for (name, lie, sentence) in LIES {
        let mut rogue = ScriptedWorker::new(&cluster.address(), name);
        let bout = rogue.take();
        let messages = lie(&rogue, bout);
        let answer = rogue.submit_one(messages);
        assert_eq!(answer.outcome(), Outcome::Refused, "{name}: {}", answer.reason);
        assert!(answer.reason.contains(sentence), "{name}: {}", answer.reason);
        // Whatever room it says it has, it is given no more.
        rogue.heartbeat(8, Vec::new());
        let known = cluster.worker_status(name);
        assert_eq!(
            (known["refused"].as_u64(), known["flag"].as_str()),
            (Some(1), Some(answer.reason.as_str()))
        );
        rogues.push(rogue);
    }
    let run = cluster.run();
    assert_eq!((run["bouts"].as_u64(), run["leased"].as_u64()), (Some(0), Some(0)), "{run}");
    assert_eq!(
        run["waiting"].as_str(),
        Some("every connected worker is in quarantine: `agon workers` says why")
    );

    let _honest = cluster.worker("honest");
    cluster.until_run("the run is done", |run| run["state"] == "done");
    let honest = cluster.worker_status("honest");
    assert_eq!((honest["committed"].as_u64(), honest["flag"].as_str()), (Some(16), None));
    cluster.finishes_like_an_undisturbed_run(&spec);
}

#[test]
fn a_message_that_is_too_long_to_be_read_ends_its_stream_with_a_sentence() {
    let spec = quick(1);
    let mut cluster = Cluster::start(LONG);
    cluster.submit(&spec);
    let mut rogue = ScriptedWorker::new(&cluster.address(), "rogue");
    let bout = rogue.take();
    let messages = searched(&rogue, &bout, |search| search.pv = "1 ".repeat(2 << 20));
    let status = rogue.submit(messages, 1).remove(0).unwrap_err();
    assert!(status.message().contains("too large"), "{status}");
    assert!(status.message().contains("the limit is: 2097152 bytes"), "{status}");
    // The connection is another one; what it was lent is still welcome.
    let messages = rogue.honest(&bout);
    assert_eq!(rogue.submit_one(messages).outcome(), Outcome::Committed);
    cluster.finishes_like_an_undisturbed_run(&spec);
}

#[test]
fn another_workers_lease_is_not_ones_own() {
    let spec = quick(2);
    let mut cluster = Cluster::start(LONG);
    cluster.submit(&spec);
    let (mut owner, mut thief) =
        (ScriptedWorker::new(&cluster.address(), "owner"), ScriptedWorker::new(&cluster.address(), "thief"));
    let (owned, other) = (owner.take(), thief.take());
    let messages = renamed(&thief, other, |bout| bout.lease = owned.lease.clone());
    let answer = thief.submit_one(messages);
    assert_eq!(answer.outcome(), Outcome::Refused, "{}", answer.reason);
    assert!(answer.reason.contains("was leased to another worker"), "{}", answer.reason);
    assert_eq!(cluster.worker_status("owner")["flag"].as_str(), None);
    for bout in [owned, owner.take()] {
        let messages = owner.honest(&bout);
        assert_eq!(owner.submit_one(messages).outcome(), Outcome::Committed);
    }
    cluster.finishes_like_an_undisturbed_run(&spec);
}
