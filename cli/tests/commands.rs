//! The commands for games and searches: output, errors, exit codes.

#![allow(clippy::unwrap_used, reason = "a failing test panics")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use agon_search::Counters;
use agon_testing::binary::{agon, agon_in_terminal, agon_with_input, assert_refused, json, path};
use agon_testing::folder::Folder;
use serde_json::Value;

#[test]
fn rejects_wrong_calls_with_a_remedy() {
    assert_refused(
        &["show", "otello"],
        "there is no game `otello`: did you mean `othello`? `agon list-games` lists them",
    );
    assert_refused(&["show", "quidditch"], "there is no game `quidditch`; `agon list-games` lists them");
    assert_refused(
        &["show", "virus:sise=9"],
        "virus has no parameter `sise`: did you mean `size`? it has: seats, size, pattern",
    );
    assert_refused(&["show", "virus:size=999"], "virus: `size` cannot be `999`; it must be");
    assert_refused(&["show", "virus:size"], "`size` is not of the form key=value");
    assert_refused(
        &["show", "tic-tac-toe", "--moves", "a1 a1"],
        "ply 2: `a1` is not a legal move; legal here: b1 c1 a2",
    );
    assert_refused(
        &["show", "tic-tac-toe", "--moves", "a1 b1 a2 b2 a3 b3"],
        "ply 6: `b3` cannot be played, the game is over",
    );
    assert_refused(&["show", "tic-tac-toe", "--position", "x"], "tic-tac-toe: the position is not valid");
    assert_refused(
        &["show", "chess", "--position", "8/8/8/8/8/8/8/8 w - - 0 1"],
        "chess: the position is not valid",
    );
    for depth in ["99", "-1", "two", "1.5", ""] {
        assert_refused(&["perft", "chess", depth], "the depth is a whole number from 0 to 60");
    }
    assert_refused(
        &["perft", "chess", "1", "--threads", "-2"],
        "the number of threads is a whole number from 1 to 1024",
    );
    assert_refused(&["perft", "chess", "1", "--moves", "-"], "standard input is read by `agon show` only");
    assert_refused(
        &["show", "othello", "--moves", "D3"],
        "ply 1: `D3` is not a legal move: did you mean `d3`? legal here: ",
    );
    assert_refused(&["show", "chess", "--position", "8/8 w"], "it has 2 fields instead of 6");
    assert_refused(
        &["show", "chess", "--position", "k7/8/8/8/8/8/8/6RK w - - 0 900"],
        "beyond the limit of 1000 plies; raise the parameter `ply_limit`",
    );
    assert_refused(&["prft", "chess", "2"], "perft");
    assert_refused(&["data", "void", "latest"], "select them with --worker NAME or --bouts FIRST-LAST");
    for address in ["127.0.0.1", "localhost:7400"] {
        assert_refused(
            &["coordinator", "--listen", address],
            "an IP address and a port, such as 127.0.0.1:7400",
        );
    }
    let folder = Folder::new();
    let file = folder.write("file", "");
    for call in [&["ratings"][..], &["coordinator"]] {
        assert_refused(&[call, &["--data", &file]].concat(), "is a file, not a folder; give ");
    }
    assert_refused(&["bench", "games", "otello"], "did you mean `othello`?");
    assert_refused(&["list-games", "otello"], "did you mean `othello`?");
}

/// Exit code 2 is for wrong calls; there is nothing wrong with a call that finds nothing yet.
#[test]
fn nothing_yet_is_not_a_wrong_call() {
    let folder = Folder::new();
    let missing = folder.path("missing");
    for data in [&missing, folder.as_path().to_str().unwrap()] {
        for call in
            ["ratings", "crosstable", "sprt", "pruning", "games", "report", "tune", "verify", "replay"]
        {
            let answer = agon(&[call, "--data", data]);
            assert_eq!((answer.code, answer.out.as_str()), (1, ""), "{call}: {}", answer.err);
            assert!(answer.err.contains("agon run examples/quick-start.toml"), "{call}: {}", answer.err);
        }
        let list = agon(&["list", "--data", data]);
        assert_eq!((list.code, list.err.as_str()), (0, ""));
        assert!(list.out.contains("yet; play one with `agon run examples/quick-start.toml`"), "{}", list.out);
        let document = json(&["list", "--data", data, "--json"]);
        assert_eq!(document, serde_json::json!({ "data": data, "runs": [] }));
    }
}

#[test]
fn bare_command_prints_first_steps() {
    let answer = agon(&[]);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    assert_eq!(answer.out.lines().filter(|line| line.starts_with("  agon ")).count(), 3, "{}", answer.out);
    assert!(agon(&["--help"]).out.contains("Usage: agon"));
}

#[test]
fn list_games_has_the_documented_fields() {
    let document = json(&["list-games", "--json"]);
    let games = document["games"].as_array().unwrap();
    assert_eq!(games.len(), agon_games::GAMES.len());
    for game in games {
        assert!(
            game["name"].is_string() && game["seats"][0].is_u64() && game["kind"][0].is_string(),
            "{game}"
        );
        for parameter in game["parameters"].as_array().unwrap() {
            for field in ["name", "default", "min", "max"] {
                assert!(parameter.get(field).is_some(), "{game}: {field}");
            }
        }
        for feature in game["features"].as_array().unwrap() {
            assert!(feature["name"].is_string() && feature["weight"].is_number(), "{game}");
        }
    }
}

#[test]
fn descriptions_fit_the_terminal() {
    let games = agon_games::GAMES.iter().flat_map(|game| [["list-games", game.name], ["show", game.name]]);
    let algorithms = agon_arena::ALGORITHMS.iter().map(|info| ["list-algorithms", info.name]);
    let calls: Vec<Vec<&str>> = games.chain(algorithms).map(|call| call.to_vec()).collect();
    for call in calls.iter().chain(&[vec!["list-games"], vec!["list-algorithms"], vec!["config", "show"]]) {
        let columns = if call.len() == 2 { 80 } else { 60 };
        for line in agon_in_terminal(columns, call).lines().filter(|line| !line.starts_with("position: ")) {
            assert!(line.chars().count() <= columns, "{call:?}: {line}");
        }
    }
}

#[test]
fn show_has_the_documented_fields() {
    let sight = json(&["show", "tic-tac-toe", "--moves", "b2 a1", "--json"]);
    assert_eq!(sight["game"], "tic-tac-toe");
    assert_eq!(sight["plies"], 2);
    assert_eq!(sight["turn"], "seat 0");
    assert_eq!(sight["legal"].as_array().unwrap().len(), 7);
    assert_eq!(sight["chance"], serde_json::json!([]));
    assert_eq!(sight["payoffs"], Value::Null);
    assert_eq!(sight["position"], ".../.x./o.. x");
    assert!(sight["board"].as_str().unwrap().contains('\n'));
    let over = json(&["show", "tic-tac-toe", "--moves", "a1 b1 a2 b2 a3", "--json"]);
    assert_eq!((&over["turn"], &over["payoffs"]), (&"over".into(), &serde_json::json!([1, -1])));
    let roll = json(&["show", "backgammon", "--json"]);
    assert_eq!(roll["turn"], "chance");
    assert_eq!(roll["chance"].as_array().unwrap().len(), 15);
    assert!(roll["chance"][0]["move"].is_string() && roll["chance"][0]["weight"].is_u64());
}

#[test]
fn show_continues_after_an_invalid_line() {
    let answer = agon_with_input(&["show", "tic-tac-toe", "--moves", "-"], b"b2\na1 zz\n\n\xff\nb2 a1");
    assert_eq!(answer.code, 1);
    let lines: Vec<Value> = answer.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 5);
    assert_eq!(lines[0]["plies"], 1);
    assert_eq!((&lines[1]["ply"], &lines[1]["move"]), (&2.into(), &"zz".into()));
    assert!(lines[1]["error"].as_str().unwrap().contains("not a legal move"));
    assert_eq!(lines[1]["legal"].as_array().unwrap().len(), 8);
    assert_eq!(lines[2]["plies"], 0);
    assert_eq!(lines[3]["ply"], 1);
    assert_eq!(lines[4]["plies"], 2);
    assert_eq!(agon_with_input(&["show", "tic-tac-toe", "--moves", "-"], b"b2\n").code, 0);
}

#[test]
fn show_answers_line_by_line() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_agon"))
        .args(["show", "tic-tac-toe", "--moves", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    for (line, plies) in [("b2\n", 1), ("b2 a1\n", 2), ("\n", 0), ("b2 a1 c3\n", 3)] {
        stdin.write_all(line.as_bytes()).unwrap();
        let mut answer = String::new();
        stdout.read_line(&mut answer).unwrap();
        let sight: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(sight["plies"], plies, "{line:?}");
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn perft_is_independent_of_threads() {
    for threads in ["1", "2", "7"] {
        let count = json(&["perft", "othello", "6", "--threads", threads, "--divide", "--json"]);
        assert_eq!((&count["leaves"], &count["depth"]), (&8200.into(), &6.into()));
        let divided = count["divide"].as_array().unwrap();
        assert_eq!(divided.len(), 4);
        assert_eq!(divided.iter().map(|part| part["leaves"].as_u64().unwrap()).sum::<u64>(), 8200);
    }
    assert_eq!(json(&["perft", "chess", "0", "--json"])["leaves"], 1);
    assert_eq!(json(&["perft", "tic-tac-toe", "10", "--json"])["leaves"], 0);
    let kiwipete = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1";
    assert_eq!(json(&["perft", "chess", "3", "--position", kiwipete, "--json"])["leaves"], 97_862);
}

#[test]
fn closed_pipe_is_not_an_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_agon"))
        .args(["show", "go", "--moves", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    for _ in 0..2_000 {
        if stdin.write_all(b"C3 D4\n").is_err() {
            break;
        }
    }
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    assert_eq!(output.status.code(), Some(0));
}

/// A reader that has seen enough is no failure, and a full disk is one, in every command that prints.
#[test]
fn closed_pipe_and_full_disk_differ() {
    for call in [
        &["--help"][..],
        &["list-games"],
        &["list-algorithms", "pvs"],
        &["show", "chess", "--json"],
        &["perft", "chess", "2", "--divide"],
        &["search", "nim", "--limit", "nodes=50"],
        &["play", "nim"],
        &["elo", "--score", "0.75"],
        &["config", "show"],
        &["completions", "bash"],
        &["man"],
    ] {
        let to = |stdout: Stdio| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_agon"));
            command.args(call).stdin(Stdio::null()).stdout(stdout).stderr(Stdio::piped());
            command.spawn().unwrap()
        };
        let mut child = to(Stdio::piped());
        drop(child.stdout.take());
        let closed = child.wait_with_output().unwrap();
        assert_eq!((closed.status.code(), &*closed.stderr), (Some(0), &b""[..]), "{call:?}");
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let full = to(full.into()).wait_with_output().unwrap();
        let err = String::from_utf8(full.stderr).unwrap();
        assert!(!err.contains("panicked"), "{call:?}: {err}");
        // The library that prints help ignores errors.
        let is_reported = full.status.code() == Some(1) && err.contains("No space left");
        assert!(is_reported || call == ["--help"], "{call:?}: {err}");
    }
}

#[test]
fn bench_games_measures_the_named_games() {
    let document =
        json(&["bench", "games", "tic-tac-toe", "nim:heaps=1-2", "--runs", "1", "--ms", "5", "--json"]);
    let games = document["games"].as_array().unwrap();
    assert_eq!(games.len(), 2);
    assert_eq!(games[1]["game"], "nim:heaps=1-2");
    assert!(games.iter().all(|game| game["games_per_second"].as_f64().unwrap() > 0.0));
}

#[test]
fn generates_manual_pages_and_completions() {
    let temporary = Folder::new();
    let folder = temporary.as_path().join("made/here");
    let written = agon(&["man", folder.to_str().unwrap()]);
    assert_eq!((written.code, written.out.as_str()), (0, ""));
    let pages = std::fs::read_dir(&folder).unwrap().count();
    assert_eq!(written.err, format!("wrote {pages} manual pages to {}\n", folder.display()));
    assert!(folder.join("agon-perft.1").is_file());
    let first = agon(&["man"]);
    assert_eq!((first.code, first.err.as_str()), (0, ""));
    assert_eq!(first.out, std::fs::read_to_string(folder.join("agon.1")).unwrap());
    let answer = agon(&["man", folder.join("agon.1").to_str().unwrap()]);
    assert_eq!(answer.code, 1);
    assert!(answer.err.contains("name a folder you can write to"), "{}", answer.err);
    assert!(agon(&["completions", "bash"]).out.contains("list-games"));
}

#[test]
fn list_games_applies_parameters() {
    let algorithms = |game: &str| {
        let document = json(&["list-games", game, "--json"]);
        let names = document["games"][0]["algorithms"].as_array().unwrap().clone();
        names.iter().map(|name| name.as_str().unwrap().to_string()).collect::<Vec<_>>()
    };
    let (two, four) = (algorithms("virus:seats=2"), algorithms("virus:seats=4"));
    assert!(two.iter().any(|name| name == "pvs") && !four.iter().any(|name| name == "pvs"));
    assert!(four.iter().any(|name| name == "max-n"));
    assert!(agon(&["list-games", "virus:seats=4"]).out.contains("algorithms for 4 seats: "));
    assert_refused(&["list-games", "virus:seats=6,size=4"], "virus: ");
}

#[test]
fn show_and_perft_print_readable_text() {
    assert!(agon(&["show", "pig", "--moves", "roll"]).out.contains(" after 1 ply: chance decides"));
    assert!(agon(&["perft", "chess", "0"]).out.contains(": 1 leaf in "));
}

#[test]
fn list_algorithms_has_the_documented_fields() {
    let document = json(&["list-algorithms", "--json"]);
    let algorithms = document["algorithms"].as_array().unwrap();
    assert!(algorithms.len() > 10);
    for algorithm in algorithms {
        assert!(
            algorithm["name"].is_string()
                && algorithm["about"].is_string()
                && algorithm["fits"][0].is_string(),
            "{algorithm}"
        );
        for option in algorithm["options"].as_array().unwrap() {
            for field in ["name", "default", "allowed", "about"] {
                assert!(option[field].is_string(), "{algorithm}: {field}");
            }
        }
    }
    assert_refused(&["list-algorithms", "pvz"], "did you mean `pvs`?");
}

/// Removes the measured times from a document.
fn without_times(mut document: Value) -> Value {
    let fields = document.as_object_mut().unwrap();
    fields.remove("time_us").unwrap();
    fields.remove("overshoot_us").unwrap();
    for iteration in fields["iterations"].as_array_mut().unwrap() {
        iteration.as_object_mut().unwrap().remove("time_us").unwrap();
    }
    document
}

#[test]
fn search_is_deterministic_with_documented_fields() {
    for player in ["pvs", "uct"] {
        let call = ["search", "othello", "--player", player, "--limit", "nodes=2000", "--json"];
        let document = json(&call);
        assert!(document["move"].is_string() && document["value"].is_number(), "{document}");
        assert!(document.get("proven").is_some() && document["pv"][0].is_string(), "{document}");
        let counters = Counters::LIST.iter().map(|counter| counter.name);
        for count in ["depth", "selective_depth", "time_us", "overshoot_us"].into_iter().chain(counters) {
            assert!(document[count].is_u64(), "{count}: {document}");
        }
        for iteration in document["iterations"].as_array().unwrap() {
            assert!(
                ["depth", "nodes", "time_us"].iter().all(|count| iteration[count].is_u64()),
                "{iteration}"
            );
            assert!(iteration["move"].is_string() && iteration["value"].is_number(), "{iteration}");
        }
        assert_eq!(without_times(document), without_times(json(&call)));
    }
    let won = json(&[
        "search",
        "tic-tac-toe",
        "--moves",
        "a1 b1 a2 b2",
        "--player",
        "alpha-beta",
        "--limit",
        "depth=3",
        "--json",
    ]);
    assert_eq!((&won["move"], &won["proven"]), (&"a3".into(), &serde_json::json!({"win": 1})));
    assert!(!won["iterations"].as_array().unwrap().is_empty());
}

#[test]
fn rejects_invalid_searches() {
    let player = |game: &str, player: &str, message: &str| {
        assert_refused(&["search", game, "--player", player, "--limit", "nodes=10"], message);
    };
    player("othello", "pvz", "pvz");
    player("othello", r#"search = { algorithm = "pvs", colour = 1 }"#, "colour");
    player("othello", "search = { algorithm = \"pvs\" }\nevaluation = { glory = 1.0 }", "glory");
    player(
        "othello",
        r#"search = { algorithm = "pvs", order = ["luck"] }"#,
        "`order` must be a list of any of",
    );
    player("othello", "star1", "star1");
    player("virus:seats=3", "pvs", "pvs");
    assert_refused(&["search", "othello", "--player", "uct", "--limit", "depth=3"], "depth");
    let over = "a1 b1 a2 b2 a3";
    assert_refused(
        &["search", "tic-tac-toe", "--moves", over, "--limit", "nodes=10"],
        "the game is over; leave",
    );
    assert_refused(&["search", "backgammon", "--limit", "nodes=10"], "chance");
    assert_refused(&["search", "othello", "--limit", "nodes=none"], "--limit: ");
    assert_refused(&["search", "othello", "--seed", "-1"], "the seed is a whole number from 0 to");
}

#[test]
fn duel_counts_every_player() {
    let call =
        ["duel", "tic-tac-toe", "--players", "random,pvs", "--games", "10", "--limit", "nodes=500", "--json"];
    let document = json(&call);
    assert_eq!(document["games"], 10);
    let players = document["players"].as_array().unwrap();
    assert_eq!((&players[0]["name"], &players[1]["name"]), (&"random".into(), &"pvs".into()));
    for player in players {
        let count = |field: &str| player[field].as_u64().unwrap();
        assert_eq!(count("games"), 10);
        assert_eq!(count("wins") + count("draws") + count("losses"), 10);
        assert!(player["score"].is_number() && player["mean_payoff"].is_number(), "{player}");
    }
    assert_eq!(players[0]["wins"], players[1]["losses"]);
    // Two players in three seats: all 2^3 - 2 ways to fill them over each opening.
    let filled = json(&[
        "duel",
        "rolit:seats=3",
        "--players",
        "random,greedy",
        "--games",
        "12",
        "--limit",
        "nodes=9",
        "--json",
    ]);
    assert_eq!((&filled["games"], filled["players"][0]["games"].as_u64()), (&12.into(), Some(18)));
    assert_refused(&["duel", "tic-tac-toe", "--players", "pvs"], "a duel needs two players or more");
}

#[test]
fn person_plays_and_quits() {
    let call = ["play", "tic-tac-toe", "--against", "pvs", "--limit", "nodes=100", "--seed", "1"];
    let answer = agon_with_input(&call, b"moves\nzz\nb2\nundo\na1\nquit\n");
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    assert!(answer.out.contains("`zz` is not a legal move"), "{}", answer.out);
    assert!(answer.out.contains("a1 b1 c1 a2") && answer.out.contains("\no plays "), "{}", answer.out);
    // The board after `undo` is the first one again.
    assert_eq!(answer.out.matches(" 3  . . .\n 2  . . .\n 1  . . .\n").count(), 2, "{}", answer.out);
    assert_eq!(agon_with_input(&call, b"b2\n").code, 0, "the end of the input is a way to leave");
    let answer = agon_with_input(&call, b"\xff\nhlep\nundo\nb2\nquit\n");
    for words in ["did you mean `help`?", "You have not moved yet.", "o plays "] {
        assert!(answer.code == 0 && answer.out.contains(words), "{words}: {} {}", answer.out, answer.err);
    }
    let long = agon_with_input(&["play", "chess", "--seed", "123456", "--against", "monte-carlo"], b"quit\n");
    assert!(long.out.lines().all(|line| line.chars().count() <= 80), "{}", long.out);
    assert_refused(&["play", "tic-tac-toe", "--seat", "2"], "there is no such seat; give 0 or x, 1 or o");
    assert!(
        agon_with_input(&["play", "othello", "--seat", "o"], b"").out.contains("You are o; pvs plays x.")
    );
}

/// A person sees which pieces are theirs, and a hint is a move that can be played.
#[test]
fn person_is_helped_in_every_game() {
    let variants = ["virus:seats=3", "focus:seats=4", "rolit:seats=4", "chinese-checkers:seats=6"];
    let games: Vec<&str> = agon_games::GAMES.iter().map(|game| game.name).chain(variants).collect();
    for game in games {
        let call = ["play", game, "--limit", "nodes=20", "--seed", "7", "--against", "monte-carlo"];
        let asked = agon_with_input(&call, b"help\nboard\nmoves\nhint\n");
        assert_eq!((asked.code, asked.err.as_str()), (0, ""), "{game}");
        let spec = agon_games::GameSpec::parse(game).unwrap();
        let mark = spec.start(None).unwrap().mark(agon_games::Seat(0));
        let words = asked.out.replace('\n', " ");
        assert!(words.contains(&format!("You are {mark}; ")), "{game}: {}", asked.out);
        assert!(asked.out.contains("undo   take back your last move"), "{game}: {}", asked.out);
        let hinted = asked.out.lines().rev().find_map(|line| line.strip_suffix(')')?.split_once(" ("));
        let (hinted, _) = hinted.unwrap_or_else(|| panic!("{game}: {}", asked.out));
        let played = agon_with_input(&call, format!("{hinted}\n").as_bytes());
        assert!(!played.out.contains("is not a legal move"), "{game}: {}", played.out);
        let next = played.out.matches("your move: ").count();
        assert!(next == 2 || played.out.contains("Game over: "), "{game}: {}", played.out);
    }
}

/// Too few for a session and a submission connection.
#[cfg(unix)]
#[test]
fn worker_rejects_a_low_limit_of_open_files() {
    let line = "ulimit -n 24; exec \"$0\" worker --coordinator http://127.0.0.1:1";
    let mut shell = Command::new("sh");
    let output = shell.arg("-c").arg(line).arg(path()).stdin(Stdio::null()).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("error: the open-file limit is 24, and this worker needs "), "{error}");
}

#[cfg(not(feature = "cloud"))]
#[test]
fn object_store_address_needs_the_cloud_feature() {
    for command in ["verify", "ratings", "games", "pruning", "coordinator", "report"] {
        assert_refused(&[command, "--data", "s3://bucket/prefix"], "build with --features cloud");
    }
}

/// A spec may come from a pipe, but not from something without an end.
#[cfg(unix)]
#[test]
fn spec_is_read_from_a_pipe_up_to_a_limit() {
    let message = "/dev/zero is too large; the limit for a spec and its files is 16 MB";
    assert_refused(&["check", "/dev/zero"], message);
    let folder = Folder::new();
    let pipe = folder.path("spec.toml");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let writer = std::thread::spawn({
        let pipe = pipe.clone();
        let spec = std::fs::read("../examples/quick-start.toml").unwrap();
        move || std::fs::write(pipe, spec).unwrap()
    });
    let answer = agon(&["check", &pipe]);
    writer.join().unwrap();
    assert_eq!(answer.code, 0, "{}", answer.err);
}
