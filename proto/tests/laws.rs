//! A submission arrives as it was sent; changed, missing and reordered messages are rejected with an error.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::sync::Arc;

use agon_arena::spec::Values;
use agon_arena::{Opening, Spec};
use agon_games::random::{Random, below, mix, seeded};
use agon_proto::limits::{MAX_BATCH_MOVES, MAX_COUNT, MAX_LINE, MAX_PLIES};
use agon_proto::v1::submission::Kind;
use agon_proto::v1::{self, Submission};
use agon_proto::{Assembled, Assembler, BoutWriter, CompleteBout, Lease, LeasedBout, WireError};
use agon_records::{BoutRows, LimitKind, MoveRow, ProbeRow, SearchRow, content_digest};
use agon_search::Counters;
use agon_search::bounds::MAX_DURATION_US;
use agon_testing::bouts::play;
use agon_testing::specs::{KALAH, OTHELLO_PROBE, parse};
use prost::Message;

fn bout(opening: Opening) -> LeasedBout {
    let lease = Lease { run: "wire-0123abcd".to_string(), bout: 5, epoch: 3, sequence: 11 };
    LeasedBout::new(lease, vec![1, 0], opening, Vec::new())
}

fn played(spec: &Spec, bout: &LeasedBout) -> BoutRows {
    play(spec, bout, "worker", "build")
}

fn messages(spec: &Arc<Spec>, bout: &LeasedBout, rows: &BoutRows, batch: usize) -> Vec<Submission> {
    agon_testing::bouts::messages(spec, bout, rows, batch, ["worker", "build"]).unwrap()
}

fn assemble(
    spec: &Arc<Spec>,
    bout: &LeasedBout,
    messages: &[Submission],
) -> Result<Option<Assembled>, WireError> {
    let mut assembler = Assembler::new(Arc::clone(spec), bout.clone())?;
    let mut outcome = None;
    for message in messages {
        outcome = assembler.accept(message.clone())?;
    }
    Ok(outcome)
}

fn complete(outcome: Option<Assembled>) -> CompleteBout {
    match outcome {
        Some(Assembled::Complete(bout)) => *bout,
        other => panic!("not complete: {other:?}"),
    }
}

/// Returns a number of random magnitude.
fn any(random: &mut Random) -> u64 {
    let draw = mix(below(random, 1 << 30) as u64, 1);
    if below(random, 8) == 0 { u64::MAX } else { draw >> below(random, 64) }
}

/// Returns a time as long as the wire permits.
fn bounded(time_us: u64) -> u64 {
    time_us.min(MAX_DURATION_US)
}

fn random_search(random: &mut Random, spec: &Spec) -> SearchRow {
    let mut many = |count: usize| (0..count).map(|_| any(random).min(MAX_COUNT)).collect::<Vec<u64>>();
    let (numbers, depths) = (many(3), 3);
    let counters = Counters::from_values(many(Counters::COUNT).try_into().unwrap());
    let (depth_nodes, depth_time_us) = (many(depths), many(depths).into_iter().map(bounded).collect());
    SearchRow {
        player: spec.players[below(random, 2)].name.clone(),
        depth: any(random) as u16,
        selective_depth: any(random) as u16,
        counters,
        depth_nodes,
        depth_time_us,
        score: [0.0, -0.0, f64::MAX, f64::MIN_POSITIVE, -1.5][below(random, 5)],
        pv: ["", "a b c", "ü → x"][below(random, 3)].to_string(),
        time_us: bounded(numbers[0]),
        overshoot_us: bounded(numbers[1]),
        limit_kind: LimitKind::ALL[below(random, 5)],
        limit_value: numbers[2],
    }
}

#[test]
fn submission_preserves_rows_and_digest() {
    let spec = parse(KALAH);
    let bout = bout(Opening { position: None, moves: "1 2".to_string() });
    let played = played(&spec, &bout);
    assert_eq!(played.games.len(), 2);
    let mut random = seeded(1);
    for round in 0..60 {
        let mut rows = played.clone();
        // The first round has the played rows, the others random ones.
        if round > 0 {
            for row in &mut rows.moves {
                row.legal = any(&mut random) as u16;
                row.seat = [None, Some(0), Some(1)][below(&mut random, 3)];
                row.search = (below(&mut random, 4) > 0).then(|| random_search(&mut random, &spec));
            }
            for row in &mut rows.games {
                row.payoffs = vec![1_000_000, -1_000_000];
                row.seed = any(&mut random);
                row.started = (any(&mut random) >> 8) as i64;
                row.duration_us = bounded(any(&mut random));
            }
        }
        let batch = 1 + below(&mut random, 40);
        let messages = messages(&spec, &bout, &rows, batch);
        for message in &messages {
            if let Some(Kind::Moves(batch)) = &message.kind {
                let decoded = v1::MoveBatch::decode(&batch[..]).unwrap();
                assert_eq!(decoded.encode_to_vec(), batch[..], "the encoding is that of agon.proto");
            }
        }
        let complete = complete(assemble(&spec, &bout, &messages).unwrap());
        assert_eq!(BoutRows::from(&complete.bout), rows, "round {round}");
        // Only the digest distinguishes a negative zero.
        assert_eq!(complete.content_digest, content_digest(&rows), "round {round}");
    }
}

#[test]
fn submission_preserves_probes_and_rejects_another_order() {
    let spec = parse(OTHELLO_PROBE);
    let bout = bout(Opening { position: None, moves: "d3 c3 c4".to_string() });
    let mut random = seeded(2);
    let mut rows = BoutRows::default();
    for (index, &player) in bout.bout.players.iter().enumerate() {
        let search =
            SearchRow { player: spec.players[player].name.clone(), ..random_search(&mut random, &spec) };
        rows.probes.push(ProbeRow {
            position: String::new(),
            moves: bout.bout.opening.moves.clone(),
            decision: MoveRow {
                bout: 5,
                game: index as u16,
                ply: 3,
                seat: Some(1),
                mv: "c5".to_string(),
                legal: 3,
                search: Some(search),
            },
        });
    }
    let messages = messages(&spec, &bout, &rows, 1);
    assert_eq!(BoutRows::from(&complete(assemble(&spec, &bout, &messages).unwrap()).bout), rows);
    let mut swapped = messages.clone();
    swapped.swap(1, 2);
    let error = assemble(&spec, &bout, &swapped).unwrap_err().to_string();
    assert_eq!(error, "received a search of `a`, expected one of `b`");
}

#[test]
fn rejects_incomplete_bouts() {
    let spec = parse(KALAH);
    let bout = bout(Opening::default());
    let messages = messages(&spec, &bout, &played(&spec, &bout), 8);
    for length in 0..messages.len() {
        assert_eq!(assemble(&spec, &bout, &messages[..length]), Ok(None), "the first {length}");
    }
    for missing in 0..messages.len() - 1 {
        let mut messages = messages.clone();
        messages.remove(missing);
        let error = assemble(&spec, &bout, &messages).unwrap_err();
        assert!(!error.to_string().is_empty(), "without message {missing}");
    }
}

#[test]
fn rejects_reordered_and_repeated_messages() {
    let spec = parse(KALAH);
    let bout = bout(Opening::default());
    let messages = messages(&spec, &bout, &played(&spec, &bout), 8);
    for first in 0..messages.len() {
        for second in first + 1..messages.len() {
            let mut swapped = messages.clone();
            swapped.swap(first, second);
            assert!(assemble(&spec, &bout, &swapped).is_err(), "{first} and {second} swapped");
        }
        let mut doubled = messages.clone();
        doubled.insert(first, messages[first].clone());
        assert!(assemble(&spec, &bout, &doubled).is_err(), "message {first} twice");
    }
}

#[test]
fn rejects_every_flipped_bit() {
    let spec = parse(KALAH);
    let bout = bout(Opening::default());
    let messages = messages(&spec, &bout, &played(&spec, &bout), 32);
    let mut random = seeded(3);
    let mut decoded = 0;
    for _ in 0..4000 {
        let mut messages = messages.clone();
        let victim = below(&mut random, messages.len());
        let mut bytes = messages[victim].encode_to_vec();
        let bit = below(&mut random, bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
        let Ok(message) = Submission::decode(&bytes[..]) else { continue };
        decoded += 1;
        // Decoding drops an unknown field, so that a field is missing.
        messages[victim] = message;
        let outcome = assemble(&spec, &bout, &messages);
        let Err(error) = outcome else { panic!("bit {bit} of message {victim}: {outcome:?}") };
        assert!(error.to_string().len() > 10);
    }
    assert!(decoded > 1000, "only {decoded} could be decoded at all");
}

/// Changes the first message that `change` applies to.
fn changed(messages: &[Submission], change: impl Fn(&mut Kind) -> bool) -> Vec<Submission> {
    let mut messages = messages.to_vec();
    let hit = messages.iter_mut().any(|message| message.kind.as_mut().is_some_and(&change));
    assert!(hit, "no message was changed");
    messages
}

#[test]
fn every_limit_has_its_error() {
    let spec = parse(KALAH);
    let bout = bout(Opening::default());
    let good = messages(&spec, &bout, &played(&spec, &bout), 32);
    let batch = |change: fn(&mut v1::MoveBatch)| {
        changed(&good, |kind| {
            let Kind::Moves(moves) = kind else { return false };
            let mut batch = v1::MoveBatch::decode(&moves[..]).unwrap();
            change(&mut batch);
            *moves = batch.encode_to_vec().into();
            true
        })
    };
    let bytes = |change: fn(&[u8]) -> Vec<u8>| {
        changed(&good, |kind| {
            let Kind::Moves(moves) = kind else { return false };
            *moves = change(moves).into();
            true
        })
    };
    let end = |change: fn(&mut v1::GameEnd)| {
        changed(&good, |kind| {
            let Kind::GameEnd(end) = kind else { return false };
            change(end);
            true
        })
    };
    let head = |change: fn(&mut v1::BoutHead)| {
        changed(&good, |kind| {
            let Kind::Head(head) = kind else { return false };
            change(head);
            true
        })
    };
    let mut foreign = good.clone();
    foreign[1].lease.as_mut().unwrap().sequence += 1;
    let mut without_lease = good.clone();
    without_lease[1].lease = None;
    let cases = [
        (batch(|b| b.score[0] = f64::NAN), "`score` is NaN, and it must be a finite number"),
        (batch(|b| b.score[0] = f64::INFINITY), "`score` is inf"),
        (batch(|b| b.player[0] = 2), "`player` is 2, and it must be from 0 to 1"),
        (batch(|b| b.depth[0] = 70_000), "`depth` is 70000, and it must be from 0 to 65535"),
        (batch(|b| b.limit_kind[0] = 99), "`limit_kind` has the value 99, which this build does not know"),
        (batch(|b| b.limit_kind[0] = 0), "`limit_kind` has the value 0"),
        (batch(|b| b.limit_kind.clear()), "`limit_kind` has the value 0"),
        (batch(|b| b.depth_nodes.push(1)), "`depth_nodes` has"),
        (batch(|b| b.depths[0] += 1), "`depth_nodes` has"),
        (batch(|b| b.depths[0] = u32::MAX), "`depths` is 4294967295, and it must be from 0 to 250"),
        (batch(|b| b.nodes[0] = MAX_COUNT + 1), "`nodes` is 9007199254740993, and it must be from 0 to"),
        (batch(|b| b.later_counters = vec![1]), "`later_counters` has 1 entries, and it must have"),
        (batch(|b| b.nodes.push(1)), "`nodes` has 30 entries, and it must have 29 to 29"),
        (batch(|b| b.searched[3] = false), "`player` has 29 entries, and it must have 28 to 28"),
        (
            batch(|b| b.pv = format!("{}{}", "x".repeat(MAX_LINE + 1), b.pv)),
            "bytes, and at most 32768 are allowed",
        ),
        (batch(|b| b.pv.push('\n')), "`pv` has 30 entries, and it must have 29 to 29"),
        (batch(|b| b.pv.push('\t')), "`pv` has a control, bidirectional or zero-width character"),
        (batch(|b| b.pv.push('\u{85}')), "`pv` has a control, bidirectional or zero-width character"),
        (batch(|b| b.text.insert(0, '\n')), "`text` is missing"),
        (batch(|b| b.text.clear()), "`text` is missing"),
        (batch(|b| b.text = vec!["a"; MAX_BATCH_MOVES + 1].join("\n")), "`moves` has 257 entries, and it"),
        (batch(|b| b.legal[0] = u32::MAX), "`legal` is 4294967295"),
        (batch(|b| b.seat[0] = 65), "`seat` is 65"),
        (batch(|b| b.game = 1), "received plies of game 1, expected plies or the end of game 0"),
        (bytes(|b| b[..b.len() - 1].to_vec()), "`moves` cannot be decoded: a field is longer than"),
        (bytes(|b| [b, &[8, 0, 8, 0]].concat()), "`moves` cannot be decoded: a field occurs twice"),
        (end(|e| e.payoffs.push(0)), "`payoffs` has 3 entries, and it must have 2 to 2"),
        (end(|e| e.payoffs[0] = i32::MIN), "`payoffs` is -2147483648"),
        (end(|e| e.ending = "x".repeat(200)), "`ending` has 200 bytes"),
        (end(|e| e.started_us = -1), "`started_us` is -1"),
        (end(|e| e.duration_us = u64::MAX), "`duration_us` is 18446744073709551615"),
        (end(|e| e.game = 1), "received the end of game 1, expected plies or the end of game 0"),
        (head(|h| h.worker = String::new()), "`worker` is missing"),
        (head(|h| h.build = "b".repeat(1000)), "`build` has 1000 bytes"),
        (foreign, "the message belongs to bout 5 of wire-0123abcd (lease 3.12), not to bout 5"),
        (without_lease, "`lease` is missing"),
        // Within every limit, but not what was sent.
        (batch(|b| b.nodes[0] += 1), "the digest of the bout's messages does not match"),
        // An unknown field is ignored, and the digest does not match.
        (bytes(|b| [b, &[0xa2, 6, 1, 0]].concat()), "the digest of the bout's messages does not match"),
    ];
    for (messages, expected) in cases {
        let error = assemble(&spec, &bout, &messages).unwrap_err();
        assert!(error.to_string().contains(expected), "{expected}: {error}");
        let status = tonic::Status::from(error);
        assert_eq!(status.code(), tonic::Code::InvalidArgument);
    }
}

#[test]
fn rejects_more_plies_than_the_column_can_number() {
    let spec = parse(KALAH);
    let bout = bout(Opening::default());
    let mut writer = BoutWriter::new(Arc::clone(&spec), bout.clone()).unwrap();
    writer.head("worker", "build").unwrap();
    let row =
        MoveRow { bout: 5, game: 0, ply: 0, seat: Some(0), mv: "a".to_string(), legal: 1, search: None };
    let batch = vec![row; MAX_BATCH_MOVES];
    for _ in 0..MAX_PLIES / MAX_BATCH_MOVES {
        writer.moves(0, &batch).unwrap();
    }
    let error = writer.moves(0, &batch[..1]).unwrap_err().to_string();
    assert_eq!(error, "`plies` has 65537 entries, and it must have 1 to 65536");
}

#[test]
fn a_failure_ends_a_bout_after_any_message() {
    let spec = parse(KALAH);
    let bout = bout(Opening::default());
    let messages = messages(&spec, &bout, &played(&spec, &bout), 32);
    let failure = agon_proto::write::failure(&bout.lease, &"ü".repeat(10_000));
    for length in 0..messages.len() - 1 {
        let mut messages = messages[..length].to_vec();
        messages.push(failure.clone());
        let outcome = assemble(&spec, &bout, &messages).unwrap();
        let Some(Assembled::Failed { reason }) = outcome else { panic!("{outcome:?}") };
        assert_eq!(reason.len(), 4096, "the reason is truncated");
        messages.push(failure.clone());
        let error = assemble(&spec, &bout, &messages).unwrap_err().to_string();
        assert_eq!(error, "received a failure, expected no more messages");
    }
}

#[test]
fn rejects_bouts_that_contradict_their_spec() {
    let spec = parse(KALAH);
    for (players, expected) in [
        (vec![0], "`players` has 1 entries, and it must have 2 to 2"),
        (vec![0, 1, 0], "`players` has 3 entries"),
        (vec![0, 2], "`players` is 2, and it must be from 0 to 1"),
    ] {
        let mut leased = bout(Opening::default());
        leased.bout.players = players;
        let error = Assembler::new(Arc::clone(&spec), leased).err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
    }
    // Values need a tuning run, a player of the bout, and must lie within the bounds.
    let tune = KALAH.split("[tournament]").next().unwrap().to_string()
        + "openings = { random_plies = 2 }\n[tune]\nplayer = \"a\"\nmethod = \"bayes\"\nbouts = 16\nvalidation = { bouts = 1 }\n"
        + "[[tune.parameter]]\npath = \"search.c\"\nstart = 1\nmin = 0.5\nmax = 2\n"
        + "[[player]]\nname = \"a\"\nsearch = { algorithm = \"uct\" }\n";
    let tune = parse(&tune);
    let with = |players: [usize; 2], values: Vec<(usize, Values)>| {
        LeasedBout::new(bout(Opening::default()).lease, players.to_vec(), Opening::default(), values)
    };
    let value = |player, value: i64| vec![(player, Values(vec![value]))];
    assert!(with([1, 0], value(1, 700_000)).check(&tune).is_ok());
    for wrong in [
        with([1, 0], value(1, 400_000)),
        with([1, 0], value(2, 700_000)),
        with([1, 0], vec![(1, Values(vec![700_000; 2]))]),
    ] {
        assert_eq!(wrong.check(&tune), Err(WireError::Values));
    }
    assert_eq!(with([1, 0], value(1, 700_000)).check(&spec), Err(WireError::Values));
}
