//! `agon engine serve --protocol gtp`.

use std::path::Path;
use std::process::Command;

use agon_testing::binary::agon_with_input;

use crate::session::Session;

/// Debian keeps its games outside of the search path.
const GNU_GO: &str = "/usr/games/gnugo";

/// A session whose answers end with an empty line.
struct Gtp(Session);

impl Gtp {
    fn start(arguments: &[&str]) -> Gtp {
        Gtp(Session::serve(&[&["--protocol", "gtp", "--limit", "nodes=30"], arguments].concat()))
    }

    fn ask(&mut self, command: &str) -> String {
        self.0.send(command);
        let mut lines = Vec::new();
        loop {
            match self.0.line() {
                line if line.is_empty() => return lines.join("\n"),
                line => lines.push(line),
            }
        }
    }

    fn expect(&mut self, answers: &[(&str, &str)]) {
        for (command, answer) in answers {
            assert_eq!(self.ask(command), *answer, "{command}");
        }
    }
}

#[test]
fn answers_the_administrative_commands() {
    let mut go = Gtp::start(&[]);
    go.expect(&[
        ("protocol_version", "= 2"),
        ("name", "= Agon (uct)"),
        ("7 known_command genmove", "=7 true"),
        ("8 known_command loadsgf", "=8 false"),
        ("9 loadsgf x", "?9 unknown command"),
        ("boardsize 5", "= "),
        ("boardsize 40", "? unacceptable size"),
        ("boardsize five", "? unacceptable size"),
        ("komi", "? syntax error"),
        ("komi 6.50", "= "),
        ("komi 0.3", "? unacceptable komi"),
        ("play black a1 # a comment", "= "),
        ("quit", "= "),
    ]);
    let listed = Gtp::start(&[]).ask("list_commands");
    for command in ["boardsize", "komi", "clear_board", "genmove", "undo", "time_settings", "time_left"] {
        assert!(listed.lines().any(|line| line.trim_start_matches("= ") == command), "{listed}");
    }
    assert_eq!(go.0.finish(), (0, Vec::new()));
}

#[test]
fn plays_by_the_rules_and_takes_back() {
    let mut go = Gtp::start(&["--game", "go:size=5,komi=0.5"]);
    go.expect(&[
        ("play b C3", "= "),
        ("play b c3", "? illegal move"),
        ("play w c3", "? illegal move"),
        ("play w Z9", "? illegal move"),
        ("final_score", "= B+24.5"),
        // Out of turn: the other side passes.
        ("play b D3", "= "),
        ("play w E1", "= "),
        ("undo", "= "),
        ("undo", "= "),
        ("undo", "= "),
        ("undo", "= "),
        ("undo", "? cannot undo"),
        ("final_score", "= W+0.5"),
        ("komi 0", "= "),
        ("final_score", "= 0"),
    ]);
    let board = go.ask("showboard");
    assert!(board.starts_with("= \n") && board.contains("A B C D E"), "{board}");
}

#[test]
fn plays_a_whole_game() {
    for (arguments, colours) in
        [(&["--game", "go:size=5"][..], ["b", "w"]), (&["--game", "othello"], ["black", "W"])]
    {
        let mut engine = Gtp::start(arguments);
        let mut passes = 0;
        for ply in 0..200 {
            let before = engine.ask("showboard");
            let proposed = engine.ask(&format!("reg_genmove {}", colours[ply % 2]));
            assert_eq!(engine.ask("showboard"), before, "reg_genmove does not play");
            let answer = engine.ask(&format!("genmove {}", colours[ply % 2]));
            let mv = answer.strip_prefix("= ").unwrap_or_else(|| panic!("{answer}"));
            assert!(mv == "pass" || mv.len() == 2, "{answer} {proposed}");
            passes = if mv == "pass" { passes + 1 } else { 0 };
            if passes == 2 {
                break;
            }
        }
        assert_eq!(passes, 2, "after the end of the game both sides pass");
        let score = engine.ask("final_score");
        assert!(["= B+", "= W+", "= 0"].iter().any(|start| score.starts_with(start)), "{score}");
    }
}

#[test]
fn othello_has_its_own_coordinates_and_no_komi() {
    let mut othello = Gtp::start(&["--game", "othello"]);
    othello.expect(&[
        ("boardsize 8", "= "),
        ("boardsize 10", "? unacceptable size"),
        ("komi 6.5", "? unknown command"),
        ("play b D3", "= "),
        ("play b C5", "? illegal move"),
        ("play w c5", "= "),
        ("final_score", "= 0"),
    ]);
}

#[test]
fn clocks_of_the_other_side_limit_moves() {
    let mut go = Gtp(Session::serve(&["--protocol", "gtp", "--game", "go:size=5"]));
    go.expect(&[("time_settings 60 5 10", "= "), ("time_left b 0 0", "= "), ("time_left w 1 9", "= ")]);
    for colour in ["b", "w", "b"] {
        assert!(go.ask(&format!("genmove {colour}")).starts_with("= "));
    }
    go.expect(&[
        ("time_settings 0 0 0", "= "),
        ("time_left b -2 0", "= "),
        ("time_settings 1 x 0", "? syntax error"),
    ]);
    assert!(go.ask("genmove w").starts_with("= "));
}

#[test]
fn rejects_wrong_calls() {
    for (arguments, reason) in [
        (&["--protocol", "gtp", "--game", "chess"][..], "the protocol gtp is for go and othello"),
        (&["--protocol", "uci", "--game", "go"], "the protocol uci is for chess"),
        (&["--protocol", "uci", "--limit", "ms=5"], "leave it out"),
        (&["--protocol", "gtp", "--limit", "clock_ms=5"], "the other side keeps the clock"),
        (&["--protocol", "gtp", "--limit", "depth=5"], "no depth to limit"),
        (&["--protocol", "agon", "--game", "chess", "--player", "pvss"], "did you mean `pvs`?"),
    ] {
        let answer = agon_with_input(&[&["engine", "serve"], arguments].concat(), b"");
        assert_eq!(answer.code, 2, "{arguments:?}: {}", answer.err);
        assert!(answer.err.contains(reason), "{arguments:?}: {}", answer.err);
    }
}

/// GNU Go accepts every move of Agon, and Agon every move of GNU Go.
#[test]
fn plays_gnu_go_by_the_same_rules() {
    if !Path::new(GNU_GO).exists() {
        println!("skipped: {GNU_GO} is not installed");
        return;
    }
    let mut agon = Gtp::start(&["--game", "go:size=7,komi=6.5"]);
    let rules =
        ["--mode", "gtp", "--chinese-rules", "--positional-superko", "--never-resign", "--level", "1"];
    let mut gnu = Gtp(Session::start(Command::new(GNU_GO).args(rules).args(["--seed", "1"])));
    for side in [&mut agon, &mut gnu] {
        side.expect(&[("boardsize 7", "= "), ("clear_board", "= "), ("komi 6.5", "= ")]);
    }
    let mut passes = 0;
    for ply in 0..98 {
        let colour = ["black", "white"][ply % 2];
        let (mover, other) = if ply % 2 == 0 { (&mut agon, &mut gnu) } else { (&mut gnu, &mut agon) };
        let answer = mover.ask(&format!("genmove {colour}"));
        let vertex = answer.strip_prefix("= ").unwrap_or_else(|| panic!("{answer}")).to_string();
        other.expect(&[(&format!("play {colour} {vertex}"), "= ")]);
        passes = if vertex.eq_ignore_ascii_case("pass") { passes + 1 } else { 0 };
        if passes == 2 {
            break;
        }
    }
    println!("Agon: {}, GNU Go: {}", agon.ask("final_score"), gnu.ask("final_score"));
    assert_eq!(gnu.0.finish().0, 0);
}
