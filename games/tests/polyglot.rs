//! Polyglot books: keys as published and as python-chess computes them, and the lines through a book.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::io::Write as _;
use std::process::{Command, Stdio};

use agon_games::chess::Chess;
use agon_games::exchange::{Start, polyglot};
use agon_games::line::follow;
use agon_games::random::seeded;
use agon_games::{Game, Notation, Parameters, Setup, Turn};

fn parameters() -> Parameters {
    Parameters::defaults(Chess::PARAMETERS)
}

fn after(moves: &str) -> Chess {
    let mut position = Chess::initial(&parameters()).unwrap();
    follow(&mut position, moves).unwrap();
    position
}

#[test]
fn keys_are_those_of_the_published_description() {
    for (moves, key) in [
        ("", 0x463b_9618_1691_fc9c),
        ("e2e4", 0x823c_9b50_fd11_4196),
        ("e2e4 d7d5", 0x0756_b944_61c5_0fb0),
        ("e2e4 d7d5 e4e5", 0x662f_afb9_65db_29d4),
        ("e2e4 d7d5 e4e5 f7f5", 0x22a4_8b5a_8e47_ff78),
        ("e2e4 d7d5 e4e5 f7f5 e1e2", 0x652a_607c_a3f2_42c1),
        ("e2e4 d7d5 e4e5 f7f5 e1e2 e8f7", 0x00fd_d303_c946_bdd9),
        ("a2a4 b7b5 h2h4 b5b4 c2c4", 0x3c81_23ea_7b06_7637_u64),
        ("a2a4 b7b5 h2h4 b5b4 c2c4 b4c3 a1a3", 0x5c3f_9b82_9b27_9560),
    ] {
        assert_eq!(after(moves).polyglot_key(), key, "{moves}");
    }
}

/// Prints the key of each position that it reads.
const PYTHON: &str = r#"
import sys
import chess, chess.polyglot
for line in sys.stdin:
    board = chess.Board()
    for move in line.split():
        board.push_uci(move)
    print(f"{chess.polyglot.zobrist_hash(board):016x}")
"#;

#[test]
fn keys_are_those_of_python_chess() {
    let probe = Command::new("python3").args(["-c", "import chess.polyglot"]).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        println!("skipped: python3 with the package `chess` is not installed");
        return;
    }
    let (mut lines, mut keys) = (String::new(), Vec::new());
    let mut random = seeded(5);
    for _ in 0..20 {
        let mut position = after("");
        let mut moves = String::new();
        while position.turn() != Turn::Over && keys.len() % 120 != 119 {
            let mv = position.sample(&mut random, &mut Vec::new());
            moves.push_str(&position.move_text(mv));
            moves.push(' ');
            position.play(mv);
            lines.push_str(&moves);
            lines.push('\n');
            keys.push(format!("{:016x}", position.polyglot_key()));
        }
        lines.push('\n');
        keys.push(format!("{:016x}", after("").polyglot_key()));
    }
    let mut python = Command::new("python3")
        .args(["-c", PYTHON])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = python.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = python.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let answers = String::from_utf8(output.stdout).unwrap();
    let wrong = answers.lines().zip(&keys).filter(|(answer, key)| answer != key).count();
    assert_eq!((answers.lines().count(), wrong), (keys.len(), 0));
    println!("{} keys are equal", keys.len());
}

/// Returns a book, with a character for each byte, of positions after moves: the number of a move and its weight.
fn book(entries: &[(&str, u16, u16)]) -> String {
    let mut bytes = Vec::new();
    for (moves, mv, weight) in entries {
        bytes.extend(after(moves).polyglot_key().to_be_bytes());
        bytes.extend(mv.to_be_bytes());
        bytes.extend(weight.to_be_bytes());
        bytes.extend([0; 4]);
    }
    bytes.into_iter().map(char::from).collect()
}

/// Returns the number of a move, with files and rows counted from 0.
const fn number(from: [u16; 2], to: [u16; 2]) -> u16 {
    from[1] << 9 | from[0] << 6 | to[1] << 3 | to[0]
}

const E4: u16 = number([4, 1], [4, 3]);
const D4: u16 = number([3, 1], [3, 3]);
const E5: u16 = number([4, 6], [4, 4]);
const D5: u16 = number([3, 6], [3, 4]);
const NF3: u16 = number([6, 0], [5, 2]);
const NF6: u16 = number([6, 7], [5, 5]);

fn lines(book: &str, plies: usize) -> Vec<String> {
    let starts = polyglot::starts(&parameters(), book, plies).unwrap();
    starts.into_iter().map(|Start { moves, .. }| moves).collect()
}

#[test]
fn lines_follow_the_weights_and_end_with_the_book() {
    let book = book(&[
        ("", D4, 7),
        ("", E4, 9),
        ("", NF3, 0),
        ("e2e4", E5, 1),
        ("e2e4", D5, 1),
        // Not legal there.
        ("e2e4", D4, 100),
        ("d2d4", NF6, 3),
        ("d2d4 g8f6", NF3, 3),
    ]);
    assert_eq!(lines(&book, 1), ["e2e4", "d2d4"]);
    assert_eq!(lines(&book, 2), ["e2e4 d7d5", "e2e4 e7e5", "d2d4 g8f6"]);
    assert_eq!(lines(&book, 9), ["e2e4 d7d5", "e2e4 e7e5", "d2d4 g8f6 g1f3"]);
}

#[test]
fn transpositions_count_once() {
    let book = book(&[
        ("", D4, 2),
        ("", NF3, 1),
        ("d2d4", NF6, 1),
        ("g1f3", NF6, 1),
        ("d2d4 g8f6", NF3, 1),
        ("g1f3 g8f6", D4, 1),
    ]);
    assert_eq!(lines(&book, 3), ["d2d4 g8f6 g1f3"]);
}

#[test]
fn castling_is_the_move_onto_the_rook() {
    let moves = "e2e4 e7e5 g1f3 g8f6 f1c4 f8c5";
    let position = after(moves);
    let castling = position.polyglot_move(number([4, 0], [7, 0])).unwrap();
    assert_eq!(position.move_text(castling), "e1g1");
    assert_eq!(position.polyglot_move(number([4, 0], [6, 0])), None);
    let mut promoting = after("h2h4 g7g5 h4g5 h7h6 g5h6 f8g7 h6g7 a7a6");
    let [knight, queen] = [1, 4].map(|piece: u16| number([6, 6], [7, 7]) | piece << 12);
    assert_eq!(promoting.move_text(promoting.polyglot_move(queen).unwrap()), "g7h8q");
    promoting.play(promoting.polyglot_move(knight).unwrap());
    assert_eq!(promoting.polyglot_move(0), None);
}

#[test]
fn rejects_what_is_no_book() {
    for (text, expected) in [
        ("", "this is not a Polyglot book"),
        ("0123456789abcde", "entries of 16 bytes"),
        ("0123456789abcdeß", "no move for the initial position"),
        ("0123456789abcdeα", "this is not a Polyglot book"),
    ] {
        let error = polyglot::starts(&parameters(), text, 4).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}
