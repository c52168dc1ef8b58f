//! Laws of a submission: rows become messages and the same rows again, and whatever happens to the messages on the way
//! is refused with a sentence.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::sync::Arc;

use agon_arena::spec::Values;
use agon_arena::{Arena, Environment, Opening, PlayerConfig, Spec, SpecSource};
use agon_games::random::{Random, below, mix, seeded};
use agon_proto::limits::{MAX_BATCH_MOVES, MAX_COUNT, MAX_LINE, MAX_PLIES};
use agon_proto::v1::submission::Kind;
use agon_proto::v1::{self, Submission};
use agon_proto::{Assembled, Assembler, Bout, BoutWriter, Lease, WholeBout, WireError};
use agon_records::{BoutRows, GameHead, LimitKind, MoveRow, ProbeRow, SearchRow, content_digest};
use agon_search::Counters;
use prost::Message;

const TOURNAMENT: &str = r#"
name = "wire"
game = "kalah"
seed = 7
limit = { nodes = 300 }
[tournament]
format = "round-robin"
bouts = 1
[[player]]
name = "größer"
search = { algorithm = "pvs" }
[[player]]
name = "uct"
limit = { nodes = 20 }
search = { algorithm = "uct" }
"#;

const PROBE: &str = r#"
name = "wire"
game = "othello"
seed = 7
limit = { depth = 2 }
[probe]
positions = { random = 3, plies = [4, 8] }
[[player]]
name = "a"
search = { algorithm = "alpha-beta" }
[[player]]
name = "b"
search = { algorithm = "pvs" }
"#;

fn spec(text: &str) -> Arc<Spec> {
    Arc::new(Spec::parse(&SpecSource { text: text.to_string(), ..SpecSource::default() }).unwrap())
}

fn bout(opening: Opening) -> Bout {
    let lease = Lease { run: "wire-0123abcd".to_string(), bout: 5, epoch: 3, sequence: 11 };
    Bout { lease, players: vec![1, 0], opening, values: Vec::new() }
}

/// The rows of a bout that the arena plays, made by the dataset's own constructors.
fn played(spec: &Spec, bout: &Bout) -> BoutRows {
    let configs: Vec<PlayerConfig> = spec.players.iter().map(|player| player.config.clone()).collect();
    let names: Vec<String> = spec.players.iter().map(|player| player.name.clone()).collect();
    let mut arena = Arena::new(&spec.game, &configs, Environment::system()).unwrap();
    let mut rows = BoutRows::default();
    for (index, request) in bout.request(spec).games().enumerate() {
        let record = arena.play(&request, &mut |_| ()).unwrap();
        let head = GameHead {
            game: &spec.game,
            names: &names,
            opening: &bout.opening,
            bout: bout.lease.bout,
            index: index as u16,
            worker: "worker",
            build: "build",
            started: 1_700_000_000_000_000 + index as i64,
            speed_factor: 1.0,
            settings: &[],
        };
        rows.add_game(&head, &record).unwrap();
    }
    rows
}

fn messages(spec: &Arc<Spec>, bout: &Bout, rows: &BoutRows, batch: usize) -> Vec<Submission> {
    let mut writer = BoutWriter::new(Arc::clone(spec), bout.clone()).unwrap();
    let mut messages = vec![writer.head("worker", "build").unwrap()];
    for game in &rows.games {
        let moves: Vec<MoveRow> = rows.moves.iter().filter(|row| row.game == game.game).cloned().collect();
        for batch in moves.chunks(batch) {
            messages.push(writer.moves(game.game, batch).unwrap());
        }
        messages.push(writer.game_end(game).unwrap());
    }
    for probe in &rows.probes {
        messages.push(writer.probes([probe]).unwrap());
    }
    messages.push(writer.end().unwrap());
    messages
}

fn assemble(spec: &Arc<Spec>, bout: &Bout, messages: &[Submission]) -> Result<Option<Assembled>, WireError> {
    let mut assembler = Assembler::new(Arc::clone(spec), bout.clone())?;
    let mut outcome = None;
    for message in messages {
        outcome = assembler.accept(message.clone())?;
    }
    Ok(outcome)
}

fn whole(outcome: Option<Assembled>) -> WholeBout {
    match outcome {
        Some(Assembled::Whole(whole)) => *whole,
        other => panic!("not whole: {other:?}"),
    }
}

/// Numbers of every size, the largest among them.
fn any(random: &mut Random) -> u64 {
    let draw = mix(below(random, 1 << 30) as u64, 1);
    if below(random, 8) == 0 { u64::MAX } else { draw >> below(random, 64) }
}

fn random_search(random: &mut Random, spec: &Spec) -> SearchRow {
    let mut many = |count: usize| (0..count).map(|_| any(random).min(MAX_COUNT)).collect::<Vec<u64>>();
    let (numbers, depths) = (many(3), 3);
    let counters = Counters::from_values(many(Counters::COUNT).try_into().unwrap());
    let (depth_nodes, depth_time_us) = (many(depths), many(depths));
    SearchRow {
        player: spec.players[below(random, 2)].name.clone(),
        depth: any(random) as u16,
        selective_depth: any(random) as u16,
        counters,
        depth_nodes,
        depth_time_us,
        score: [0.0, -0.0, f64::MAX, f64::MIN_POSITIVE, -1.5][below(random, 5)],
        pv: ["", "a b c", "ü → x"][below(random, 3)].to_string(),
        time_us: numbers[0],
        overshoot_us: numbers[1],
        limit_kind: LimitKind::ALL[below(random, 5)],
        limit_value: numbers[2],
    }
}

#[test]
fn rows_become_messages_and_the_same_rows_again() {
    let spec = spec(TOURNAMENT);
    let bout = bout(Opening { position: None, moves: "1 2".to_string() });
    let played = played(&spec, &bout);
    assert_eq!(played.games.len(), 2);
    let mut random = seeded(1);
    for round in 0..60 {
        let mut rows = played.clone();
        // The first round as it was played, the others with every column drawn anew.
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
                row.duration_us = any(&mut random) >> 8;
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
        let whole = whole(assemble(&spec, &bout, &messages).unwrap());
        assert_eq!(BoutRows::from(&whole.bout), rows, "round {round}");
        // The digest sees a negative zero, which rows take for a zero.
        assert_eq!(whole.content_digest, content_digest(&rows), "round {round}");
    }
}

#[test]
fn probes_too() {
    let spec = spec(PROBE);
    let bout = bout(Opening { position: None, moves: "d3 c3 c4".to_string() });
    let mut random = seeded(2);
    let mut rows = BoutRows::default();
    for (index, &player) in bout.players.iter().enumerate() {
        let search =
            SearchRow { player: spec.players[player].name.clone(), ..random_search(&mut random, &spec) };
        rows.probes.push(ProbeRow {
            position: String::new(),
            moves: bout.opening.moves.clone(),
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
    assert_eq!(BoutRows::from(&whole(assemble(&spec, &bout, &messages).unwrap()).bout), rows);
    let mut swapped = messages.clone();
    swapped.swap(1, 2);
    let error = assemble(&spec, &bout, &swapped).unwrap_err().to_string();
    assert_eq!(error, "a search of `a` came where one of `b` must come");
}

#[test]
fn a_part_of_a_bout_is_no_bout() {
    let spec = spec(TOURNAMENT);
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
fn another_order_is_refused() {
    let spec = spec(TOURNAMENT);
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

/// Every single flipped bit either breaks the encoding, or is refused; none gives other rows and none panics.
#[test]
fn a_flipped_bit_is_refused() {
    let spec = spec(TOURNAMENT);
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
        // A field number that nobody knows is dropped: then something is missing.
        messages[victim] = message;
        let outcome = assemble(&spec, &bout, &messages);
        let Err(error) = outcome else { panic!("bit {bit} of message {victim}: {outcome:?}") };
        assert!(error.to_string().len() > 10);
    }
    assert!(decoded > 1000, "only {decoded} could be decoded at all");
}

/// The first message of a kind, changed.
fn changed(messages: &[Submission], change: impl Fn(&mut Kind) -> bool) -> Vec<Submission> {
    let mut messages = messages.to_vec();
    let hit = messages.iter_mut().any(|message| message.kind.as_mut().is_some_and(&change));
    assert!(hit, "no message was changed");
    messages
}

#[test]
fn every_limit_has_its_sentence() {
    let spec = spec(TOURNAMENT);
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
    let mut nobody = good.clone();
    nobody[1].lease = None;
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
        (batch(|b| b.depths[0] = u32::MAX), "`depths` is 4294967295, and it must be from 0 to 1024"),
        (batch(|b| b.nodes[0] = MAX_COUNT + 1), "`nodes` is 9007199254740993, and it must be from 0 to"),
        (batch(|b| b.later_counters.push(1)), "`later_counters` has 1 entries, and it must have"),
        (batch(|b| b.nodes.push(1)), "`nodes` has 30 entries, and it must have 29 to 29"),
        (batch(|b| b.searched[3] = false), "`player` has 29 entries, and it must have 28 to 28"),
        (
            batch(|b| b.pv = format!("{}{}", "x".repeat(MAX_LINE + 1), b.pv)),
            "bytes, and at most 32768 are allowed",
        ),
        (batch(|b| b.pv.push('\n')), "`pv` has 30 entries, and it must have 29 to 29"),
        (batch(|b| b.pv.push('\t')), "`pv` has a control character"),
        (batch(|b| b.pv.push('\u{85}')), "`pv` has a control character"),
        (batch(|b| b.text.insert(0, '\n')), "`text` is missing"),
        (batch(|b| b.text.clear()), "`text` is missing"),
        (batch(|b| b.text = vec!["a"; MAX_BATCH_MOVES + 1].join("\n")), "`moves` has 257 entries, and it"),
        (batch(|b| b.legal[0] = u32::MAX), "`legal` is 4294967295"),
        (batch(|b| b.seat[0] = 65), "`seat` is 65"),
        (batch(|b| b.game = 1), "plies of game 1 came where plies or the end of game 0 must come"),
        (bytes(|b| b[..b.len() - 1].to_vec()), "`moves` cannot be decoded: a field is longer than"),
        (bytes(|b| [b, &[8, 0, 8, 0]].concat()), "`moves` cannot be decoded: a field is there twice"),
        (end(|e| e.payoffs.push(0)), "`payoffs` has 3 entries, and it must have 2 to 2"),
        (end(|e| e.payoffs[0] = i32::MIN), "`payoffs` is -2147483648"),
        (end(|e| e.ending = "x".repeat(200)), "`ending` has 200 bytes"),
        (end(|e| e.started_us = -1), "`started_us` is -1"),
        (end(|e| e.duration_us = u64::MAX), "`duration_us` is 18446744073709551615"),
        (end(|e| e.game = 1), "the end of game 1 came where plies or the end of game 0 must come"),
        (head(|h| h.worker = String::new()), "`worker` is missing"),
        (head(|h| h.build = "b".repeat(1000)), "`build` has 1000 bytes"),
        (foreign, "the message belongs to bout 5 of wire-0123abcd (lease 3.12), not to bout 5"),
        (nobody, "`lease` is missing"),
        // What is within every limit but is not what was sent.
        (batch(|b| b.nodes[0] += 1), "the digest of the bout's messages does not fit"),
        // A field that a later version may have is left out, and what came is not what was sent.
        (bytes(|b| [b, &[0xa2, 6, 1, 0]].concat()), "the digest of the bout's messages does not fit"),
    ];
    for (messages, said) in cases {
        let error = assemble(&spec, &bout, &messages).unwrap_err();
        assert!(error.to_string().contains(said), "{said}: {error}");
        let status = tonic::Status::from(error);
        assert_eq!(status.code(), tonic::Code::InvalidArgument);
    }
}

#[test]
fn a_game_has_no_more_plies_than_its_column_can_number() {
    let spec = spec(TOURNAMENT);
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
fn a_failure_ends_a_bout_at_any_time() {
    let spec = spec(TOURNAMENT);
    let bout = bout(Opening::default());
    let messages = messages(&spec, &bout, &played(&spec, &bout), 32);
    let failure = agon_proto::write::failure(&bout.lease, &"ü".repeat(10_000));
    for length in 0..messages.len() - 1 {
        let mut messages = messages[..length].to_vec();
        messages.push(failure.clone());
        let outcome = assemble(&spec, &bout, &messages).unwrap();
        let Some(Assembled::Failed { reason }) = outcome else { panic!("{outcome:?}") };
        assert_eq!(reason.len(), 4096, "cut to what is allowed");
        messages.push(failure.clone());
        let error = assemble(&spec, &bout, &messages).unwrap_err().to_string();
        assert_eq!(error, "a failure came where nothing more must come");
    }
}

#[test]
fn bouts_that_do_not_fit_their_spec_are_refused() {
    let spec = spec(TOURNAMENT);
    for (players, said) in [
        (vec![0], "`players` has 1 entries, and it must have 2 to 2"),
        (vec![0, 1, 0], "`players` has 3 entries"),
        (vec![0, 2], "`players` is 2, and it must be from 0 to 1"),
    ] {
        let bout = Bout { players, ..bout(Opening::default()) };
        let error = Assembler::new(Arc::clone(&spec), bout).err().unwrap().to_string();
        assert!(error.contains(said), "{error}");
    }
    // Values belong to a tune, to a player of the bout, and within the bounds of the tune.
    let tune = TOURNAMENT.split("[tournament]").next().unwrap().to_string()
        + "openings = { random_plies = 2 }\n[tune]\nplayer = \"a\"\nmethod = \"bayes\"\nbouts = 16\nvalidation = { bouts = 1 }\n"
        + "[[tune.parameter]]\npath = \"search.c\"\nstart = 1\nmin = 0.5\nmax = 2\n"
        + "[[player]]\nname = \"a\"\nsearch = { algorithm = \"uct\" }\n";
    let tune = self::spec(&tune);
    let with = |players: [usize; 2], values: Vec<(usize, Values)>| Bout {
        players: players.to_vec(),
        values,
        ..bout(Opening::default())
    };
    let value = |player, value: i64| vec![(player, Values(vec![value]))];
    assert!(with([1, 0], value(1, 700_000)).fits(&tune).is_ok());
    for wrong in [
        with([1, 0], value(1, 400_000)),
        with([1, 0], value(2, 700_000)),
        with([1, 0], vec![(1, Values(vec![700_000; 2]))]),
    ] {
        assert_eq!(wrong.fits(&tune), Err(WireError::Values));
    }
    assert_eq!(with([1, 0], value(1, 700_000)).fits(&spec), Err(WireError::Values));
}
