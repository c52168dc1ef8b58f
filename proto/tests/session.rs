//! The small messages survive the wire, and values out of bounds are rejected with the name of the field.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::time::Duration;

use agon_arena::spec::Values;
use agon_arena::{Opening, SpecSource};
use agon_proto::limits::{MAX_LEASES, MAX_SPEC_BYTES, MAX_SPEC_FILES};
use agon_proto::{Heartbeat, Hello, Lease, LeasedBout, Progress, Returned, Welcome, WireError, v1};

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
    let progress = |bout, started| Progress { lease: lease(bout), started, game: 1, ply: 70_000, pulse: 9 };
    let heartbeat = Heartbeat {
        room: 3,
        progress: vec![progress(1, true), progress(2, false)],
        unacknowledged_bytes: u64::MAX,
        grants_received: 5,
        throttled: true,
        speed: 2.5,
    };
    assert_eq!(Heartbeat::try_from(v1::Heartbeat::from(&heartbeat)), Ok(heartbeat));
    let returned = Returned { leases: vec![lease(1)], reason: "why\nnot".to_string() };
    assert_eq!(Returned::try_from(v1::Return::from(&returned)), Ok(returned.clone()));
    assert_eq!(Returned::try_from(v1::Revoke::from(&returned)), Ok(returned));
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
    rejects(|hello| hello.worker = "a\u{7}".to_string(), "`worker` has a control character");
    rejects(|hello| hello.build = "b".repeat(200), "`build` has 200 bytes, and at most 128");
    rejects(|hello| hello.slots = 0, "`slots` is 0, and it must be from 1 to 4096");
    rejects(|hello| hello.slots = u32::MAX, "`slots` is 4294967295");
    rejects(|hello| hello.speed = f64::NAN, "`speed` is NaN");
    rejects(|hello| hello.speed = -1.0, "`speed` is -1");
    rejects(|hello| hello.protocol_min = 0, "`protocol_min` is 0");
    rejects(|hello| hello.protocol_max = 0, "`protocol_max` is 0, and it must be from 1");
    rejects(|hello| hello.held[0].run = String::new(), "`run` is missing");
    rejects(|hello| hello.held[0].run = "r".repeat(129), "`run` has 129 bytes");
    let held: fn(&mut v1::Hello) = |hello| hello.held = vec![hello.held[0].clone(); MAX_LEASES + 1];
    rejects(held, "`leases` has 100001 entries, and it must have 0 to 100000");
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
