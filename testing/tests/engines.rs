//! Engines that misbehave: each fault is a recorded ending that the referee accepts, and the next game has a new process.

#![allow(clippy::unwrap_used, reason = "a failing test panics")]

use std::sync::Arc;

use agon_arena::{Arena, Bout, Environment, Opening, PlayerConfig, Spec, SpecSource};
use agon_records::check::check_bout;
use agon_records::{BoutColumns, BoutRows};
use agon_testing::bouts::play_games;
use agon_worker::Engines;

const MOCK: &str = env!("CARGO_BIN_EXE_mock-engine");

/// Returns a game of each protocol.
fn game(protocol: &str) -> &'static str {
    match protocol {
        "uci" => "chess",
        "gtp" => "go",
        _ => "tic-tac-toe",
    }
}

/// Returns a spec in which an engine with a misbehaviour plays one without. `extra` are further keys of the first.
fn spec(protocol: &str, misbehaviour: &str, extra: &str) -> Spec {
    let limit = |limit: &str| format!("limit = {{ {limit} }}\n");
    let engine = |arguments: &str, extra: &str| {
        format!(
            "engine = {{ protocol = \"{protocol}\", command = {MOCK:?}, args = [\"{protocol}\"{arguments}]{extra} }}\n"
        )
    };
    // GTP has limits of time only; an hour is never reached.
    let patient = if protocol == "gtp" { "ms = 3600000" } else { "nodes = 1" };
    let hasty = if misbehaviour.starts_with("late") || protocol == "gtp" && extra.contains("hang") {
        "ms = 200"
    } else {
        patient
    };
    let words: String = misbehaviour.split(' ').map(|word| format!(", {word:?}")).collect();
    let text = format!(
        "name = \"engines\"\ngame = \"{}\"\n[tournament]\nformat = \"round-robin\"\nbouts = 1\n\
         [[player]]\nname = \"bad\"\n{}{}[[player]]\nname = \"good\"\n{}{}",
        game(protocol),
        limit(hasty),
        engine(&words, extra),
        limit(patient),
        engine("", "")
    );
    Spec::parse(&SpecSource { text, ..SpecSource::default() }).unwrap_or_else(|error| panic!("{error}"))
}

/// Plays both games of a bout, and lets the referee check them.
fn play(spec: &Spec) -> BoutRows {
    let configs: Vec<PlayerConfig> = spec.players.iter().map(|player| player.config.clone()).collect();
    let engines = Arc::new(Engines { any_command: true, ..Engines::default() });
    let environment = Environment { engines, ..Environment::system() };
    let mut arena = Arena::new(&spec.game, &configs, environment).unwrap();
    let bout = Bout { index: 0, players: vec![0, 1], opening: Opening::default(), values: Vec::new() };
    let rows = play_games(spec, &mut arena, &bout, ["worker", "build"], i64::from);
    let referee = Arena::new(&spec.game, &[], Environment::system()).unwrap();
    check_bout(spec, &referee, spec.games(&bout, 1.0), &BoutColumns::from(&rows)).unwrap();
    rows
}

/// Asserts that the engine loses both games by an ending, with a detail.
#[track_caller]
fn assert_loses(protocol: &str, misbehaviour: &str, extra: &str, ending: &str, detail: &str) -> String {
    let rows = play(&spec(protocol, misbehaviour, extra));
    assert_eq!(rows.games.len(), 2);
    for game in &rows.games {
        let seat = game.players.iter().position(|player| player == "bad").unwrap();
        assert_eq!((game.ending.as_str(), game.payoffs[seat]), (ending, -1), "{}", game.detail);
        assert!(game.detail.contains(detail), "{}", game.detail);
        assert_eq!(game.engine_cpu_us.len(), 2);
    }
    rows.games[1].detail.clone()
}

const HANG: &str = ", hang_ms = 1500";

#[test]
fn engines_without_faults_play_to_the_end() {
    for (protocol, ending) in [("uci", "threefold repetition"), ("gtp", "two passes"), ("agon", "")] {
        let rows = play(&spec(protocol, "", ""));
        for game in &rows.games {
            assert!(game.ending == ending || ending.is_empty() && game.plies > 4, "{}", game.ending);
            assert_eq!(game.detail, "");
        }
        let search = rows.moves.iter().find_map(|row| row.search.as_ref()).unwrap();
        match protocol {
            "uci" => {
                assert_eq!((search.depth, search.selective_depth, search.counters.nodes), (1, 2, 20));
                assert_eq!(search.score, 0.13);
            }
            "gtp" => assert_eq!((search.depth, search.score), (0, 0.0)),
            _ => assert_eq!((search.depth, search.counters.nodes, search.score), (3, 7, 0.5)),
        }
    }
}

#[test]
fn engine_without_an_answer_loses() {
    assert_loses("agon", "no-answer 1", HANG, "time forfeit", "counts as hanging; its process was ended");
    assert_loses("uci", "no-answer 1", HANG, "time forfeit", "it ignored `stop`");
    assert_loses("gtp", "no-answer 1", HANG, "time forfeit", "its process was ended");
}

#[test]
fn late_engine_loses() {
    assert_loses("agon", "late", "", "time forfeit", "did not answer within 200 ms and a margin of 20 ms");
    assert_loses("uci", "late", "", "time forfeit", "did not answer within 200 ms and a margin of 20 ms");
}

#[test]
fn engine_that_crashes_loses() {
    for protocol in ["uci", "gtp", "agon"] {
        assert_loses(protocol, "crash 1", "", "crash", "it ended (exit code 11); its last lines:");
        assert_loses(
            protocol,
            "crash-at-start",
            "",
            "crash",
            "it ended (exit code 3); its last lines: stderr: no weights file",
        );
    }
    assert_loses("agon", "close", "", "crash", "it closed its output");
}

#[test]
fn illegal_move_loses() {
    for protocol in ["uci", "gtp", "agon"] {
        assert_loses(protocol, "illegal 1", "", "illegal move", "it played `a1a1`, which is not legal");
    }
}

#[test]
fn garbage_and_floods_lose() {
    assert_loses("agon", "garbage", "", "crash", "it did not answer `move` with a `move`");
    assert_loses("gtp", "garbage", "", "crash", "begins with neither `=` nor `?`");
    assert_loses("uci", "garbage", HANG, "time forfeit", "counts as hanging");
    assert_loses("uci", "flood", HANG, "time forfeit", "it ignored `stop`");
    assert_loses("agon", "long-line", "", "crash", "a line of more than 1048576 bytes");
}

#[test]
fn engine_that_does_not_start_loses() {
    assert_loses("uci", "slow-start", ", start_ms = 500", "crash", "it did not send `uciok` in time");
    assert_loses("agon", "slow-start", ", start_ms = 500", "crash", "it did not send `ready` in time");
    assert_loses("agon", "handshake", "", "crash", "it did not answer `hello` with `ready`");
    assert_loses("gtp", "handshake", "", "crash", "it speaks version 7 of GTP");
    assert_loses("uci", "handshake", ", start_ms = 500", "crash", "it did not send `uciok` in time");
}

#[test]
fn unknown_options_are_named_with_the_nearest() {
    for protocol in ["uci", "agon"] {
        let extra = ", options = { Hahs = 16 }";
        assert_loses(protocol, "", extra, "crash", "no option `Hahs`: did you mean `Hash`?");
    }
    let extra = ", options = { Hash = 4096 }";
    assert_loses("uci", "", extra, "crash", "cannot be `4096`; it must be a whole number from 1 to 1024");
    let rows = play(&spec("uci", "", ", options = { hash = 16 }"));
    assert_eq!(rows.games[0].ending, "threefold repetition");
}

#[test]
fn resignation_is_an_ending() {
    assert_loses("gtp", "resign", "", "resigned", "it resigned");
}

#[test]
fn floods_of_errors_and_a_hang_at_the_end_cost_nothing() {
    for misbehaviour in ["stderr-flood", "hang-at-quit"] {
        let rows = play(&spec("agon", misbehaviour, ""));
        assert!(rows.games.iter().all(|game| game.detail.is_empty()), "{misbehaviour}");
    }
}

#[test]
fn children_of_an_engine_end_with_it() {
    let detail = assert_loses("agon", "children", HANG, "time forfeit", "stderr: child ");
    let (_, child) = detail.rsplit_once("child ").unwrap();
    let child: u32 = child.trim().parse().unwrap();
    // Whoever adopts the child may not have reaped it yet.
    let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
    assert!(stat.is_empty() || stat.contains(") Z "), "{stat}");
}
