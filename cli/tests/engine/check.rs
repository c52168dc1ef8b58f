//! `agon engine check`, and runs of the example bots.

use std::path::{Path, PathBuf};
use std::process::Command;

use agon_testing::binary::{self, Answer, agon_with_input};
use agon_testing::folder::Folder;
use serde_json::Value;

use crate::bots::{example, is_installed};

fn check(command: &str, arguments: &[&str]) -> Answer {
    // The margin makes the verdicts independent of the load of the machine.
    let few = ["--games", "2", "--limit", "ms=20", "--grace-ms", "60000"];
    agon_with_input(&[&["engine", "check", command], arguments, &few].concat(), b"")
}

/// Returns the names of the checks with this verdict.
fn verdicts<'a>(answer: &'a Answer, word: &str) -> Vec<&'a str> {
    let lines = answer.out.lines().filter_map(|line| line.strip_prefix(word)?.strip_prefix("  "));
    lines.map(|line| line.trim_start()[..12].trim_end()).collect()
}

fn serve(arguments: &str) -> String {
    format!("{} engine serve {arguments}", binary::path().display())
}

fn script(folder: &Folder, text: &str) -> String {
    format!("sh {}", folder.write("bot.sh", text))
}

#[test]
fn agon_passes_its_own_check() {
    let all = [
        "start",
        "games",
        "position",
        "time",
        "clock",
        "nodes",
        "depth",
        "unknown",
        "stop",
        "quit",
        "end of input",
    ];
    for (command, arguments, left_out) in [
        ("--protocol uci --player pvs", &["--protocol", "uci", "--game", "chess:ply_limit=30"][..], &[][..]),
        (
            "--protocol gtp --game go:size=5 --limit nodes=30",
            &["--protocol", "gtp", "--game", "go:size=5"],
            &["position", "nodes", "depth", "stop"],
        ),
        (
            "--protocol agon --player greedy",
            &["--protocol", "agon", "--game", "virus:seats=3,size=5"],
            &["stop"],
        ),
    ] {
        let answer = check(&serve(command), arguments);
        assert_eq!(answer.code, 0, "{}{}", answer.out, answer.err);
        let expected: Vec<&str> = all.into_iter().filter(|name| !left_out.contains(name)).collect();
        assert_eq!(verdicts(&answer, "ok"), expected, "{}", answer.out);
        assert!(answer.out.ends_with("the engine passes\n"), "{}", answer.out);
    }
}

#[test]
fn example_bots_pass() {
    let shell = format!("sh {}", example("bot.sh").display());
    let python = format!("python3 {}", example("bot.py").display());
    for (program, command) in [("sh", shell), ("python3", python)] {
        if program == "python3" && !is_installed(program) {
            continue;
        }
        let answer = check(&command, &["--protocol", "agon", "--game", "backgammon"]);
        assert_eq!(answer.code, 0, "{}{}", answer.out, answer.err);
    }
}

#[test]
fn faults_have_a_verdict_each() {
    let folder = Folder::new();
    let bot = std::fs::read_to_string(example("bot.sh")).unwrap();
    for (change, failing, reason) in [
        (
            ("${legal%%\\\"*}", "nonsense"),
            &["games", "position", "time", "clock", "nodes", "depth"][..],
            "illegal move",
        ),
        (("exit ;;", "sleep 100 ;;"), &["unknown", "quit"], "it still ran"),
        (
            ("*'\"type\":\"quit\"'*", "*agon_asks_nonsense*) exit 3 ;; *never*"),
            &["unknown", "quit"],
            "exit status: 3",
        ),
        (("done", "done; sleep 100"), &["end of input"], "it still ran"),
        (("ready", "steady"), &["start"], "hello"),
    ] {
        let text = bot.replace(change.0, change.1);
        assert_ne!(text, bot, "{change:?}");
        let answer = check(&script(&folder, &text), &["--protocol", "agon", "--game", "tic-tac-toe"]);
        assert_eq!(answer.code, 1, "{}{}", answer.out, answer.err);
        assert_eq!(verdicts(&answer, "FAIL"), failing, "{change:?}: {}", answer.out);
        assert!(answer.out.contains(reason), "{reason}: {}", answer.out);
    }
    let answer = check("/no/such/engine", &["--protocol", "uci"]);
    assert_eq!((answer.code, verdicts(&answer, "FAIL")), (1, vec!["start"]), "{}", answer.out);
}

#[test]
fn rejects_wrong_calls() {
    for (command, arguments, reason) in [
        ("'sh", &["--protocol", "agon"][..], "an open quote"),
        ("sh", &["--protocol", "uci", "--game", "go"], "the protocol uci is for chess"),
        ("sh", &["--protocol", "xboard"], "xboard"),
    ] {
        let answer = check(command, arguments);
        assert_eq!(answer.code, 2, "{command}: {}", answer.err);
        assert!(answer.err.contains(reason), "{command}: {}", answer.err);
    }
    let answer = agon_with_input(&["engine", "check", "sh", "--protocol", "gtp", "--limit", "nodes=5"], b"");
    assert_eq!(answer.code, 2, "{}", answer.err);
}

/// The bots of all languages in one run, as a spec of a user has them.
#[test]
fn example_bots_play_a_run() {
    if !is_installed("cc") || !is_installed("python3") {
        return;
    }
    let folder = Folder::new();
    let program = folder.path("bot");
    let status = Command::new("cc").args(["-o", &program]).arg(example("bot.c")).status();
    assert!(status.unwrap().success());
    let player = |name: &str, command: &str, path: &Path| {
        format!(
            "[[player]]\nname = \"{name}\"\nengine = {{ protocol = \"agon\", command = \"{command}\", args = [{:?}] }}\n",
            path.to_str().unwrap()
        )
    };
    let spec = format!(
        "name = \"bots\"\ngame = {{ name = \"virus\", seats = 3, size = 5 }}\nlimit = {{ ms = 1000 }}\n\
         [tournament]\nformat = \"round-robin\"\nbouts = 2\n{}{}{}",
        player("python", "python3", &example("bot.py")),
        player("shell", "sh", &example("bot.sh")),
        player("c", &program, &PathBuf::from("unused")),
    );
    let spec = folder.write("bots.toml", spec);
    let data = folder.path("data");
    let answer = agon_with_input(&["run", &spec, "--data", &data, "--slots", "1", "--quiet"], b"");
    assert_eq!(answer.code, 0, "{}{}", answer.out, answer.err);
    let answer = agon_with_input(&["games", "--data", &data, "--json"], b"");
    let document: Value = serde_json::from_str(&answer.out).unwrap();
    let games = document["games"].as_array().unwrap();
    assert_eq!(games.len(), 6, "{document}");
    for game in games {
        let ending = game["ending"].as_str().unwrap();
        assert!(!["crash", "time forfeit", "illegal move"].contains(&ending), "{game}");
    }
}
