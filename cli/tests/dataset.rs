//! `agon verify`, `agon replay` and `agon pruning` as a person or a program meets them: answers and exit codes.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

#[path = "../../analysis/tests/checks/world.rs"]
#[allow(dead_code, reason = "the tests of the library use all of it")]
mod world;

use std::process::Command;

use serde_json::{Value, json};

use world::{PROBE, TOURNAMENT, World};

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
fn pruning_answers_in_words_and_numbers() {
    let world = World::of(PROBE);
    let (code, out, _) = agon(&world, &["pruning"]);
    assert_eq!(code, 0, "{out}");
    assert!(
        out.starts_with("pruned needs 0.") && out.contains(" times the nodes of plain to depth 3 ("),
        "{out}"
    );
    assert!(out.contains("measured: plain searched the same positions"), "{out}");
    let (_, out, _) = agon(&world, &["pruning", "probe", "--by-depth", "--replicas", "0"]);
    assert_eq!(out.lines().filter(|line| line.starts_with("plain ")).count(), 2 + 3 + 3, "{out}");
    assert!(!out.contains("NaN") && !out.contains("inf"), "{out}");
    let (code, told) = json_of(&world, &["pruning", "--json"]);
    assert_eq!((code, &told["complete"], &told["players"][0]["player"]), (0, &json!(true), &json!("plain")));
    assert_eq!(told["players"][0]["vs_minimax"], json!({"value": 1.0, "low": 1.0, "high": 1.0}));
    let ratio = &told["ratios"][2];
    assert_eq!(
        (&ratio["a"], &ratio["b"], &ratio["depth"], &ratio["positions"]),
        (&json!("plain"), &json!("pruned"), &json!(3), &json!(3))
    );
    assert!(ratio["ratio"].as_f64().unwrap() > 1.0 && ratio["low"].is_f64() && ratio["high"].is_f64());
    assert_eq!(told["by_depth"].as_array().unwrap().len(), 6);
    // The same bytes whoever reads.
    let bytes = |threads| agon(&world, &["pruning", "--json", "--threads", threads]).1;
    assert_eq!(bytes("1"), bytes("4"));
}

#[test]
fn pruning_says_what_it_cannot_say() {
    let mut world = World::of(TOURNAMENT);
    let (code, told) = json_of(&world, &["pruning", "--json"]);
    assert_eq!(code, 0);
    let uct = &told["players"][1];
    assert_eq!(
        (&uct["mean_depth"], &uct["ebf"], &uct["vs_minimal"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    assert!(uct["sps"]["value"].as_f64().unwrap() > 0.0);
    assert_eq!(told["players"][0]["vs_minimax"], Value::Null);
    let (_, out, _) = agon(&world, &["pruning"]);
    assert!(out.starts_with("deep searches with an effective branching factor of "), "{out}");
    assert!(
        out.contains("simulations a second by wide") && out.contains("no two players search the same"),
        "{out}"
    );

    world.told["state"] = json!("running");
    world.told["committed"] = json!(2);
    world.write_run();
    let (code, out, _) = agon(&world, &["pruning"]);
    assert!(code == 0 && out.contains("The run goes on: 2 of its 3 bouts were done"), "{out}");
    world.bouts.clear();
    world.write();
    let (code, out, _) = agon(&world, &["pruning"]);
    assert!(code == 0 && out.contains("has no searches in its dataset yet."), "{out}");

    let world = World::of(TOURNAMENT);
    std::fs::write(world.file("moves", 2), "no part").unwrap();
    let (code, out, err) = agon(&world, &["pruning"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(
        err.contains("part-0000000002-0000000003.parquet: this is no Parquet file, or it is damaged"),
        "{err}"
    );
}

#[test]
fn wrong_calls_are_refused_with_a_remedy() {
    let world = World::of(TOURNAMENT);
    for (arguments, sentence) in [
        (&["verify", "nothing"][..], "there is no run `nothing`; there is only small-"),
        (&["verify", "small", "--all"], "cannot be used with"),
        (&["pruning", "nothing"], "there is no run `nothing`; there is only small-"),
        (&["pruning", "--replicas", "-1"], "the number of replicas is a whole number from 0 to 100000"),
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
