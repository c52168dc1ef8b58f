//! `agon verify`, `agon replay` and `agon report` as a person or a program meets them: answers and exit codes.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

#[path = "../../analysis/tests/checks/world.rs"]
#[allow(dead_code, reason = "the tests of the library use all of it")]
mod world;

#[path = "dataset/report.rs"]
mod report;

use std::process::Command;

use serde_json::{Value, json};

use world::{TOURNAMENT, World};

/// The exit code, and what was printed to standard output and to standard error.
fn agon(world: &World, arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_agon"))
        .args(arguments)
        .arg("--data")
        .arg(world.folder())
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn json_of(world: &World, arguments: &[&str]) -> (i32, Value) {
    let (code, out, _) = agon(world, arguments);
    (code, serde_json::from_str(&out).unwrap())
}

#[test]
fn verify_says_yes_or_no() {
    let mut world = World::of(TOURNAMENT);
    let (code, out, _) = agon(&world, &["verify"]);
    assert_eq!(code, 0, "{out}");
    assert!(out.contains("problems") && out.contains(&world.id), "{out}");
    let (code, told) = json_of(&world, &["verify", "--all", "--json"]);
    assert_eq!((code, &told["ok"], &told["runs"][0]["bouts"]), (0, &json!(true), &json!(3)));

    world.bout(1).moves[3].mv = "z".to_string();
    world.write();
    let line = format!("{}: {}: bout 1: game 0: ply 3: `z` is not legal\n", world.id, world.name("moves", 0));
    let (code, out, _) = agon(&world, &["verify", "small"]);
    assert_eq!(code, 1);
    assert!(out.ends_with(&line), "{out}");
    let (code, told) = json_of(&world, &["verify", "--json"]);
    assert_eq!((code, &told["ok"]), (1, &json!(false)));
    let problem = json!({
        "file": world.name("moves", 0), "bout": 1, "game": 0, "reason": "ply 3: `z` is not legal",
    });
    assert_eq!(told["runs"][0]["problems"], json!([problem]));
}

#[test]
fn replay_says_yes_or_no() {
    let mut world = World::of(TOURNAMENT);
    let (code, out, _) = agon(&world, &["replay", "latest"]);
    assert_eq!(code, 0, "{out}");
    assert!(out.contains(": 6 of 6 games and "), "{out}");
    let (code, told) = json_of(&world, &["replay", "latest", "1/1", "--json"]);
    assert_eq!((code, &told["identical_games"], &told["difference"]), (0, &json!(1), &Value::Null));

    let leaves = world.search(1, 0).leaves;
    world.search(1, 0).leaves += 1;
    world.write();
    let (code, out, _) = agon(&world, &["replay", "latest", "1"]);
    assert_eq!(code, 1);
    let said = format!(
        "first difference: bout 1, game 0, ply 3: `leaves`\n  recorded {}\n  replayed {leaves}\n",
        leaves + 1
    );
    assert!(out.contains(": 1 of 2 games and ") && out.ends_with(&said), "{out}");
}

#[test]
fn wrong_calls_are_refused_with_a_remedy() {
    let world = World::of(TOURNAMENT);
    for (arguments, sentence) in [
        (&["verify", "nothing"][..], "there is no run `nothing`; there is only small-"),
        (&["verify", "small", "--all"], "cannot be used with"),
        (
            &["replay", "latest", "x"],
            "`x` is no bout; write its number as in 12, or one game of it as in 12/1",
        ),
        (&["replay", "latest", "99"], "bout 99 is not in the dataset of the run"),
        (&["replay", "latest", "1", "--games", "3"], "cannot be used with"),
    ] {
        let (code, out, err) = agon(&world, arguments);
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}: {err}");
        assert!(err.starts_with("error: ") && err.contains(sentence), "{err}");
    }
}
