//! `agon duel` between players: it is a run with a record, continued by the same call, and its PGN is read by python-chess.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::process::Command;

use agon_testing::binary::{agon, assert_refused, json};
use agon_testing::folder::Folder;
use expect_test::expect;

#[test]
fn the_same_call_continues_the_run() {
    let folder = Folder::new();
    let data = folder.path("data");
    let call = |games| {
        let words = "duel pvs greedy --game tic-tac-toe --nodes 50 --random-plies 2 --quiet --json --games";
        let words: Vec<&str> = words.split(' ').chain([games, "--data", &data]).collect();
        json(&words)
    };
    let first = call("6");
    assert_eq!((&first["state"], &first["bouts"], &first["games"]), (&"done".into(), &3.into(), &6.into()));
    assert!(first["run"].as_str().unwrap().starts_with("pvs-vs-greedy-"));
    assert_eq!(call("6")["run"], first["run"]);
    assert_ne!(call("8")["run"], first["run"]);
    assert_eq!(agon(&["verify", first["run"].as_str().unwrap(), "--data", &data]).code, 0);
}

#[test]
fn options_become_a_spec() {
    let printed = |words: &str| {
        let words: Vec<&str> = words.split(' ').collect();
        let answer = agon(&[&["duel"], &words[..], &["--print-spec"]].concat());
        assert_eq!(answer.code, 0, "{}", answer.err);
        answer.out
    };
    expect![[r#"
        name = "sf-vs-pvs-vs-pvs-2"
        game = "chess"
        seed = 7
        limit = { clock_ms = 68000, increment_ms = 80 }
        openings = { random_plies = 6 }

        [tournament]
        format = "round-robin"
        bouts = 5

        [adjudication]
        resign = { score = 6.5, moves = 4, both = true }
        draw = { score = 0.1, moves = 8, after = 80 }
        max_plies = 300

        [[player]]
        name = "sf"
        engine = { protocol = "uci", command = "stockfish", options = { "Hash" = 16, "Threads" = 1, "Book" = "a b" } }

        [[player]]
        name = "pvs"
        search = { algorithm = "pvs" }

        [[player]]
        name = "pvs-2"
        search = { algorithm = "pvs" }
    "#]]
    .assert_eq(&printed(
        "sf pvs pvs --engine sf=stockfish --option Hash=16 --option sf.Threads=1 --option Book=a\u{a0}b --tc 1:8+0.08 \
         --games 9 --seed 7 --random-plies 6 --resign score=6.5,moves=4,both=true --draw score=0.1,moves=8,after=80 \
         --max-plies 300 --recover",
    )
    .replace('\u{a0}', " "));
    expect![[r#"
        name = "a-vs-random"
        game = "othello"
        seed = 1
        limit = { ms = 100 }
        openings = { random_plies = 4 }

        [tournament]
        format = "sprt"
        bounds = [-1.5, 5.0]
        alpha = 0.1
        beta = 0.1
        max_bouts = 50

        [[player]]
        name = "a"
        engine = { protocol = "agon", command = "./bot", args = ["x"] }

        [[player]]
        name = "random"
        search = { algorithm = "random" }
    "#]]
    .assert_eq(&printed(
        "a random --game othello --protocol agon --engine a=./bot\u{a0}x --st 0.1 --sprt=-1.5,5,0.1,0.1 --games 100",
    ));
}

#[test]
fn rejects_options_that_have_no_effect() {
    for (words, message) in [
        ("othello --players pvs,uct --nodes 5", "--nodes is for a recorded run between players"),
        ("pvs uct --players greedy", "give the players of a recorded run as arguments"),
        ("pvs uct --threads 2", "a recorded run has --concurrency"),
        ("pvs uct --engine sf=stockfish", "the engine `sf` does not play"),
        ("sf uct --engine sf", "give a name and a command"),
        ("pvs uct --option Hash=4", "no engine of this duel has that name"),
        ("pvs uct --tc 40/60", "a clock has no number of moves"),
        ("pvs uct --tc 8 --nodes 5", "cannot be used with"),
        ("pvs uct --sprt 5", "give two differences"),
        ("pvs uct --sprt 5,0", "`bounds` of [tournament] must be two numbers of Elo"),
        ("pvs uct --resign 600", "give keys and values"),
        ("pvs pvs --resign score=6,moved=3", "did you mean `moves`?"),
        ("pvs uct --game othello --pgn x.pgn", "othello is not written as pgn"),
        ("pvs uct --book-plies 4", "--book <FILE>"),
        ("pvs pvss", "did you mean `pvs`?"),
    ] {
        let words: Vec<&str> = ["duel"].into_iter().chain(words.split(' ')).collect();
        assert_refused(&words, message);
    }
}

/// A Polyglot book with the lines 1. e4 e5 and 1. d4.
fn book() -> Vec<u8> {
    let entry = |key: u64, mv: [u8; 2]| [&key.to_be_bytes()[..], &mv, &[0, 1, 0, 0, 0, 0]].concat();
    let initial = 0x463b_9618_1691_fc9c;
    [entry(initial, [0x03, 0x1c]), entry(initial, [0x02, 0xdb]), entry(0x823c_9b50_fd11_4196, [0x0d, 0x24])]
        .concat()
}

#[test]
fn books_are_openings_and_check_counts_them() {
    let folder = Folder::new();
    let book_file = folder.write("book.bin", book());
    let words =
        ["duel", "pvs", "greedy", "--depth", "1", "--games", "4", "--book", &book_file, "--book-plies"];
    let spec = agon(&[&words[..], &["2", "--book-order", "random", "--print-spec"]].concat());
    assert!(
        spec.out.contains("openings = { file = \"book.bin\", plies = 2, order = \"random\" }"),
        "{}",
        spec.out
    );
    let spec = folder.write("spec.toml", spec.out);
    let answer = agon(&["check", &spec]);
    assert!(
        answer.out.contains("2 openings in the file, 2 of them distinct"),
        "{}{}",
        answer.out,
        answer.err
    );
}

/// Prints result, termination, plies and the last comment of each game, after reading all of its moves.
const PYTHON: &str = r#"
import sys
import chess.pgn
with open(sys.argv[1]) as file:
    while game := chess.pgn.read_game(file):
        assert not game.errors, game.errors
        comments = [" ".join(node.comment.split()) for node in game.mainline()]
        scored = [comment for comment in comments if comment.split(",")[0] != "book"]
        assert all("/" in comment and "s n=" in comment for comment in scored), comments
        print(game.headers["Result"], game.headers["Termination"], len(comments), comments[-1].split(", ")[-1], sep=";")
"#;

#[test]
fn python_chess_reads_the_pgn_of_a_duel() {
    let probe = Command::new("python3").args(["-c", "import chess.pgn"]).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        println!("skipped: python3 with the package `chess` is not installed");
        return;
    }
    let folder = Folder::new();
    let (data, pgn) = (folder.path("data"), folder.path("games.pgn"));
    let book_file = folder.write("book.bin", book());
    let rules = ["--resign", "score=2,moves=2", "--max-plies", "40"];
    let words = [
        "duel",
        "pvs",
        "greedy",
        "--nodes",
        "300",
        "--games",
        "4",
        "--book",
        &book_file,
        "--book-plies",
        "2",
    ];
    let end = ["--pgn", &pgn, "--data", &data, "--quiet", "--json"];
    let run = json(&[&words[..], &rules, &end].concat());
    let output = Command::new("python3").args(["-c", PYTHON, &pgn]).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    let read = String::from_utf8(output.stdout).unwrap();
    let games = json(&["games", run["run"].as_str().unwrap(), "--json", "--data", &data]);
    let expected: Vec<String> = games["games"]
        .as_array()
        .unwrap()
        .iter()
        .map(|game| {
            let result = match game["payoffs"][0].as_i64().unwrap() {
                1 => "1-0",
                0 => "1/2-1/2",
                _ => "0-1",
            };
            let ending = game["ending"].as_str().unwrap();
            let termination = if ending.starts_with("adjudicated") { "adjudication" } else { "normal" };
            format!("{result};{termination};{};{ending}", game["plies"])
        })
        .collect();
    assert_eq!(
        (read.lines().collect::<Vec<_>>(), &*err),
        (expected.iter().map(String::as_str).collect(), "")
    );
    assert!(read.contains("adjudication;"), "{read}");
    println!("python-chess reads {} games", expected.len());
}
