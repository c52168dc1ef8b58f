//! The binary as a person or a program meets it: answers, errors, exit codes.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use serde_json::Value;

struct Answer {
    code: i32,
    out: String,
    err: String,
}

fn agon_with_input(arguments: &[&str], input: &[u8]) -> Answer {
    let mut child = Command::new(env!("CARGO_BIN_EXE_agon"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input).is_ok());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    Answer {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn agon(arguments: &[&str]) -> Answer {
    agon_with_input(arguments, b"")
}

fn json(arguments: &[&str]) -> Value {
    let answer = agon(arguments);
    assert_eq!(answer.code, 0, "{}", answer.err);
    serde_json::from_str(&answer.out).unwrap()
}

/// A wrong call: exit code 2, nothing on standard output, one sentence on standard error, no trace of a panic.
fn refused(arguments: &[&str], sentence: &str) {
    let answer = agon(arguments);
    assert_eq!(answer.code, 2, "{arguments:?}: {}", answer.err);
    assert_eq!(answer.out, "", "{arguments:?}");
    assert!(!answer.err.contains("panicked") && !answer.err.contains("RUST_BACKTRACE"), "{}", answer.err);
    assert!(
        answer.err.starts_with("error: ") && answer.err.contains(sentence),
        "{arguments:?}: {}",
        answer.err
    );
}

#[test]
fn wrong_calls_are_refused_with_a_remedy() {
    refused(
        &["show", "otello"],
        "there is no game `otello`: did you mean `othello`? `agon list-games` lists them",
    );
    refused(&["show", "quidditch"], "there is no game `quidditch`; `agon list-games` lists them");
    refused(
        &["show", "virus:sise=9"],
        "virus has no parameter `sise`: did you mean `size`? it has: seats, size, pattern",
    );
    refused(&["show", "virus:size=999"], "virus: `size` cannot be `999`; it must be");
    refused(&["show", "virus:size"], "`size` is not of the form key=value");
    refused(
        &["show", "tic-tac-toe", "--moves", "a1 a1"],
        "ply 2: `a1` is not a legal move; legal here: b1 c1 a2",
    );
    refused(
        &["show", "tic-tac-toe", "--moves", "a1 b1 a2 b2 a3 b3"],
        "ply 6: `b3` cannot be played, the game is over",
    );
    refused(&["show", "tic-tac-toe", "--position", "x"], "tic-tac-toe: the position is not valid");
    refused(
        &["show", "chess", "--position", "8/8/8/8/8/8/8/8 w - - 0 1"],
        "chess: the position is not valid",
    );
    refused(&["perft", "chess", "99"], "99 is not in 0..=60");
    refused(&["perft", "chess", "-1"], "-1");
    refused(&["perft", "chess", "two"], "two");
    refused(&["prft", "chess", "2"], "perft");
    refused(&["bench", "games", "otello"], "did you mean `othello`?");
    refused(&["list-games", "otello"], "did you mean `othello`?");
}

#[test]
fn a_call_without_words_gets_help() {
    let answer = agon(&[]);
    assert_eq!(answer.code, 2);
    assert!(answer.err.contains("Usage: agon") && answer.err.contains("list-games"));
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
fn tables_fit_eighty_columns() {
    let names = json(&["list-games", "--json"]);
    let mut calls = vec![vec!["list-games".to_string()]];
    for game in names["games"].as_array().unwrap() {
        let name = game["name"].as_str().unwrap();
        calls.push(vec!["list-games".to_string(), name.to_string()]);
        calls.push(vec!["show".to_string(), name.to_string()]);
    }
    for call in calls {
        let words: Vec<&str> = call.iter().map(String::as_str).collect();
        for line in agon(&words).out.lines().filter(|line| !line.starts_with("position: ")) {
            assert!(line.chars().count() <= 80, "{call:?}: {line}");
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
fn show_reads_lines_and_goes_on_after_a_bad_one() {
    let answer = agon_with_input(&["show", "tic-tac-toe", "--moves", "-"], b"b2\na1 zz\n\n\xff\nb2 a1");
    assert_eq!(answer.code, 1);
    let lines: Vec<Value> = answer.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 5);
    assert_eq!(lines[0]["plies"], 1);
    assert_eq!((&lines[1]["ply"], &lines[1]["move"]), (&2.into(), &"zz".into()));
    assert!(lines[1]["error"].as_str().unwrap().contains("not a legal move"));
    assert_eq!(lines[2]["plies"], 0);
    assert_eq!(lines[3]["ply"], 1);
    assert_eq!(lines[4]["plies"], 2);
    assert_eq!(agon_with_input(&["show", "tic-tac-toe", "--moves", "-"], b"b2\n").code, 0);
}

#[test]
fn show_answers_each_line_before_the_next_is_written() {
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
fn perft_is_the_same_for_any_number_of_threads() {
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
fn a_closed_pipe_is_no_failure() {
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

#[test]
fn bench_games_measures_what_is_asked() {
    let document =
        json(&["bench", "games", "tic-tac-toe", "nim:heaps=1-2", "--runs", "1", "--ms", "5", "--json"]);
    let games = document["games"].as_array().unwrap();
    assert_eq!(games.len(), 2);
    assert_eq!(games[1]["game"], "nim:heaps=1-2");
    assert!(games.iter().all(|game| game["games_per_second"].as_f64().unwrap() > 0.0));
}

#[test]
fn manual_pages_and_completions_are_made() {
    let folder = std::env::temp_dir().join(format!("agon-man-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    assert_eq!(agon(&["man", folder.to_str().unwrap()]).code, 0);
    assert!(folder.join("agon-perft.1").is_file());
    std::fs::remove_dir_all(&folder).unwrap();
    let answer = agon(&["man", folder.to_str().unwrap()]);
    assert_eq!(answer.code, 1);
    assert!(answer.err.contains("name a folder you can write to"), "{}", answer.err);
    assert!(agon(&["completions", "bash"]).out.contains("list-games"));
}
