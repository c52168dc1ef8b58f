//! The small messages survive the wire, and values out of bounds are rejected with the name of the field.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::time::Duration;

use agon_arena::spec::Values;
use agon_arena::{Opening, SpecSource};
use agon_proto::limits::{MAX_COUNT, MAX_LEASES, MAX_REASON, MAX_SPEC_BYTES, MAX_SPEC_FILES};
use agon_proto::session::{clean_reason, worker_name};
use agon_proto::{
    Heartbeat, Hello, Lease, LeasedBout, Printable as _, Progress, Returned, Welcome, WireError, v1,
};

fn lease(bout: u64) -> Lease {
    Lease { run: "run-01234567".to_string(), bout, epoch: u64::MAX, sequence: 9 }
}

fn hello() -> Hello {
    Hello {
        protocols: 1..=2,
        worker: "größer".to_string(),
        build: "0.1.0".to_string(),
        slots: 4,
        signature: "00ff".to_string(),
        speed: 1e6,
        held: vec![lease(0), lease(u64::MAX)],
        specs: vec!["run-01234567".to_string()],
        engines: vec!["stockfish".to_string()],
    }
}

#[test]
fn messages_survive_conversion() {
    assert_eq!(Hello::try_from(v1::Hello::from(&hello())), Ok(hello()));
    let welcome = Welcome {
        protocol: *agon_proto::PROTOCOLS.end(),
        epoch: 7,
        heartbeat: Duration::from_millis(250),
        lease: Duration::from_secs(30),
        window_bytes: u64::MAX,
        adopted: vec![lease(1)],
    };
    assert_eq!(Welcome::try_from(v1::Welcome::from(&welcome)), Ok(welcome));
    let progress = |bout, started| Progress { lease: lease(bout), started, game: 1, ply: 60_000, pulse: 9 };
    let heartbeat = Heartbeat {
        room: 3,
        progress: vec![progress(1, true), progress(2, false)],
        unacknowledged_bytes: MAX_COUNT,
        grants_received: 5,
        throttled: true,
        speed: 2.5,
    };
    assert_eq!(Heartbeat::try_from(v1::Heartbeat::from(&heartbeat)), Ok(heartbeat));
    let returned = |reason: &str| Returned { leases: vec![lease(1)], reason: reason.to_string() };
    let two_lines = returned("why\nnot");
    assert_eq!(Returned::try_from(v1::Return::from(&two_lines)), Ok(returned("why not")));
    assert_eq!(Returned::try_from(v1::Revoke::from(&two_lines)), Ok(returned("why not")));
    for position in [None, Some("4k3/8/8/8/8/8/8/4K2R w K - 0 1".to_string())] {
        let opening = Opening { position, moves: "e1g1".to_string() };
        for values in [vec![], vec![(2, Values(vec![-1_250_000, i64::MAX]))]] {
            let bout = LeasedBout::new(lease(1), vec![2, 0], opening.clone(), values);
            assert_eq!(LeasedBout::try_from(v1::Grant::from(&bout)), Ok(bout));
        }
    }
    let files = [("a.openings".to_string(), "d3\n".to_string())].into_iter().collect();
    let source = SpecSource { text: "name = \"x\"".to_string(), files };
    assert_eq!(SpecSource::try_from(v1::Spec::from(&source)), Ok(source));
}

#[test]
fn rejects_hello_out_of_bounds() {
    let rejects = |change: fn(&mut v1::Hello), expected: &str| {
        let mut message = v1::Hello::from(&hello());
        change(&mut message);
        let error = Hello::try_from(message).unwrap_err().to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    };
    rejects(|hello| hello.worker = String::new(), "`worker` is missing");
    rejects(
        |hello| hello.worker = "a\u{7}".to_string(),
        "`worker` has a control, bidirectional or zero-width character",
    );
    rejects(|hello| hello.build = "b".repeat(200), "`build` has 200 bytes, and at most 128");
    rejects(|hello| hello.slots = 0, "`slots` is 0, and it must be from 1 to 4096");
    rejects(|hello| hello.slots = u32::MAX, "`slots` is 4294967295");
    rejects(|hello| hello.speed = f64::NAN, "`speed` is NaN");
    rejects(|hello| hello.speed = -1.0, "`speed` is -1");
    rejects(
        |hello| hello.speed = 1e300,
        "`speed` is 18446744073709551615, and it must be from 0 to 10000000000",
    );
    for hidden in ["\u{9b}", "\u{202e}", "\u{2066}", "\u{200b}", "\u{feff}", "\n", "\u{1b}[2J"] {
        for change in [
            |hello: &mut v1::Hello, hidden: &str| hello.worker.push_str(hidden),
            |hello: &mut v1::Hello, hidden: &str| hello.build.push_str(hidden),
            |hello: &mut v1::Hello, hidden: &str| hello.signature.push_str(hidden),
            |hello: &mut v1::Hello, hidden: &str| hello.specs[0].push_str(hidden),
            |hello: &mut v1::Hello, hidden: &str| hello.held[0].run.push_str(hidden),
        ] {
            let mut message = v1::Hello::from(&hello());
            change(&mut message, hidden);
            let error = Hello::try_from(message).unwrap_err().to_string();
            assert!(
                error.ends_with("has a control, bidirectional or zero-width character; leave it out"),
                "{error}"
            );
        }
    }
    rejects(|hello| hello.protocol_min = 0, "`protocol_min` is 0");
    rejects(|hello| hello.protocol_max = 0, "`protocol_max` is 0, and it must be from 1");
    rejects(|hello| hello.held[0].run = String::new(), "`run` is missing");
    rejects(|hello| hello.held[0].run = "r".repeat(129), "`run` has 129 bytes");
    let held: fn(&mut v1::Hello) = |hello| hello.held = vec![hello.held[0].clone(); MAX_LEASES + 1];
    rejects(held, "`leases` has 100001 entries, and it must have 0 to 100000");
}

#[test]
fn rejects_heartbeats_out_of_bounds() {
    let rejects = |change: fn(&mut v1::Heartbeat), expected: &str| {
        let progress = Progress { lease: lease(1), started: true, game: 1, ply: 2, pulse: 3 };
        let mut message =
            v1::Heartbeat::from(&Heartbeat { progress: vec![progress], ..Heartbeat::default() });
        assert!(Heartbeat::try_from(message.clone()).is_ok());
        change(&mut message);
        let error = Heartbeat::try_from(message).unwrap_err().to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    };
    rejects(|beat| beat.room = u32::MAX, "`room` is 4294967295, and it must be from 0 to 100000");
    rejects(|beat| beat.speed = 1e11, "`speed` is 100000000000, and it must be from 0 to 10000000000");
    rejects(|beat| beat.grants_received = u64::MAX, "`grants_received` is 18446744073709551615");
    rejects(|beat| beat.unacknowledged_bytes = u64::MAX, "`unacknowledged_bytes` is 18446744073709551615");
    rejects(|beat| beat.progress[0].game = 1001, "`game` is 1001, and it must be from 0 to 1000");
    rejects(|beat| beat.progress[0].ply = 70_000, "`ply` is 70000, and it must be from 0 to 65536");
    rejects(|beat| beat.progress[0].pulse = u64::MAX, "`pulse` is 18446744073709551615");
}

#[test]
fn reasons_become_printable_lines() {
    let raw = "no\u{1b}[2J\n2026-11-18 quarantined honest\u{202e}\u{200b}";
    let clean = "no\u{fffd}[2J 2026-11-18 quarantined honest\u{fffd}\u{fffd}";
    let returned = v1::Return { leases: Vec::new(), reason: raw.to_string() };
    assert_eq!(Returned::try_from(returned).unwrap().reason, clean);
    let revoked = v1::Revoke { leases: Vec::new(), reason: raw.to_string() };
    assert_eq!(Returned::try_from(revoked).unwrap().reason, clean);
    let sent = Returned { leases: Vec::new(), reason: raw.to_string() };
    assert_eq!(v1::Return::from(&sent).reason, clean);
    assert_eq!(clean_reason(&"\u{1b}".repeat(MAX_REASON)).len(), MAX_REASON / 3 * 3);
    assert_eq!(worker_name("honest".to_string()), Ok("honest".to_string()));
    assert!(worker_name("hon\u{200b}est".to_string()).is_err());
}

#[test]
fn answers_to_operators_are_printable() {
    let raw = || "a\u{1b}[2J\nb\u{202e}".to_string();
    let clean = "a\u{fffd}[2J b\u{fffd}";
    let entry = v1::AuditEntry { text: raw(), worker: raw(), ..v1::AuditEntry::default() };
    let audit = v1::ListAuditResponse { entries: vec![entry] }.printable();
    assert_eq!((audit.entries[0].text.as_str(), audit.entries[0].worker.as_str()), (clean, clean));
    let worker = v1::WorkerStatus { build: raw(), flag: raw(), ..v1::WorkerStatus::default() };
    let workers = v1::ListWorkersResponse { workers: vec![worker] }.printable();
    assert_eq!((workers.workers[0].build.as_str(), workers.workers[0].flag.as_str()), (clean, clean));
    let standing = v1::Standing { player: raw(), ..v1::Standing::default() };
    let verdict = Some(raw());
    let run =
        v1::RunStatus { waiting: raw(), verdict, standings: vec![standing], ..v1::RunStatus::default() };
    let runs = v1::ListRunsResponse { runs: vec![run] }.printable();
    assert_eq!((runs.runs[0].waiting.as_str(), runs.runs[0].standings[0].player.as_str()), (clean, clean));
    assert_eq!(runs.runs[0].verdict.as_deref(), Some(clean));
}

#[test]
fn rejects_specs_and_grants_out_of_bounds() {
    let files = (0..=MAX_SPEC_FILES).map(|file| (file.to_string(), String::new())).collect();
    let error = SpecSource::try_from(v1::Spec { text: String::new(), files }).unwrap_err();
    assert_eq!(error.to_string(), "`files` has 17 entries, and it must have 0 to 16");
    let files = [("a".to_string(), "x".repeat(MAX_SPEC_BYTES))].into_iter().collect();
    let error = SpecSource::try_from(v1::Spec { text: "x".to_string(), files }).unwrap_err();
    assert_eq!(error, WireError::TooLong { field: "spec", found: MAX_SPEC_BYTES + 1, most: MAX_SPEC_BYTES });
    let grant = |players| v1::Grant {
        lease: Some((&lease(1)).into()),
        players,
        opening: Some(v1::Opening::default()),
        values: Vec::new(),
    };
    let values = |count| vec![v1::PlayerValues { player: 0, millionths: vec![1; count] }];
    for (message, expected) in [
        (v1::Grant { values: values(0), ..grant(vec![0]) }, "`millionths` has 0 entries"),
        (v1::Grant { values: values(65), ..grant(vec![0]) }, "`millionths` has 65 entries"),
        (v1::Grant { values: [values(1), values(1)].concat(), ..grant(vec![0]) }, "`values` has 2 entries"),
        (grant(vec![]), "`players` has 0 entries"),
        (grant(vec![u32::MAX]), "`players` is 4294967295"),
        (v1::Grant { lease: None, ..grant(vec![0]) }, "`lease` is missing"),
        (v1::Grant { opening: None, ..grant(vec![0]) }, "`opening` is missing"),
    ] {
        let error = LeasedBout::try_from(message).unwrap_err().to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    }
}
