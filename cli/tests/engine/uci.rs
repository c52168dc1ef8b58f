//! `agon engine serve --protocol uci`.

use agon_arena::algorithms::ALGORITHMS;
use agon_games::schema::Domain;

use crate::session::Session;

const SHUFFLE: &str = "g1f3 g8f6 f3g1 f6g8";

fn uci(arguments: &[&str]) -> Session {
    Session::serve(&[&["--protocol", "uci"], arguments].concat())
}

/// Returns the number after a word of an info line.
fn number(line: &str, word: &str) -> i64 {
    let mut words = line.split(' ').skip_while(|found| *found != word);
    words.nth(1).unwrap_or_else(|| panic!("{line} has no {word}")).parse().unwrap()
}

fn best_move(lines: &[String]) -> &str {
    lines.last().unwrap().strip_prefix("bestmove ").unwrap()
}

#[test]
fn declares_every_option_of_the_algorithm() {
    for name in ["pvs", "uct"] {
        let mut engine = uci(&["--player", name]);
        engine.send("uci");
        let lines = engine.until("uciok");
        assert!(lines[0].starts_with("id name Agon ") && lines[0].contains(name), "{lines:?}");
        let algorithm = ALGORITHMS.iter().find(|algorithm| algorithm.name == name).unwrap();
        for key in algorithm.options {
            let shown = if ["table_mb", "memory_mb"].contains(&key.name) { "Hash" } else { key.name };
            let kind = match key.domain {
                Domain::Integer { .. } => "spin",
                Domain::Flag => "check",
                Domain::Choice(_) => "combo",
                _ => "string",
            };
            let start = format!("option name {shown} type {kind} default ");
            assert!(lines.iter().any(|line| line.starts_with(&start)), "{start}: {lines:?}");
        }
        assert!(lines.iter().all(|line| !line.contains("_mb")), "{lines:?}");
    }
}

#[test]
fn info_lines_follow_the_iterations() {
    let mut engine = uci(&["--player", r#"search = { algorithm = "pvs", quiescence = true }"#]);
    engine.send("position startpos moves e2e4 e7e5");
    engine.send("go depth 4");
    let lines = engine.until("bestmove");
    let infos: Vec<&String> = lines.iter().filter(|line| line.starts_with("info depth")).collect();
    let depths: Vec<i64> = infos.iter().map(|line| number(line, "depth")).collect();
    assert_eq!(depths, [1, 2, 3, 4, 4], "one for each iteration and one for the search");
    for pair in infos.windows(2) {
        assert!(number(pair[0], "nodes") <= number(pair[1], "nodes"), "{pair:?}");
        assert!(number(pair[0], "time") <= number(pair[1], "time"), "{pair:?}");
    }
    for line in &infos {
        assert!(number(line, "seldepth") >= number(line, "depth"), "{line}");
        number(line, "nps");
        number(line, "cp");
    }
    assert!(infos.iter().any(|line| number(line, "seldepth") > number(line, "depth")), "{infos:?}");
    let line = infos.last().unwrap().split(" pv ").nth(1).unwrap();
    assert_eq!(line.split(' ').next(), Some(best_move(&lines)));
}

#[test]
fn limits_are_kept_together() {
    let mut engine = uci(&["--player", "pvs"]);
    engine.send("go nodes 1000");
    let lines = engine.until("bestmove");
    assert_eq!(number(&lines[lines.len() - 2], "nodes"), 1000);
    for limits in
        ["depth 2 nodes 1000000", "movetime 60000 depth 2", "depth 2 wtime 600000 btime 1 movestogo 3"]
    {
        engine.send(&format!("go {limits}"));
        let lines = engine.until("bestmove");
        assert_eq!(number(&lines[lines.len() - 2], "depth"), 2, "{limits}: {lines:?}");
    }
    for limits in ["wtime 20 btime 1 winc 0 binc 0", "wtime -5 btime 9", "nodes 100000000 movetime 30"] {
        engine.send(&format!("go {limits}"));
        engine.until("bestmove");
    }
}

#[test]
fn reads_while_it_searches() {
    let mut engine = uci(&[]);
    engine.send("go infinite");
    engine.send("isready");
    assert!(!engine.until("readyok").iter().any(|line| line.starts_with("bestmove")));
    engine.send("stop");
    engine.until("bestmove");
    engine.send("go infinite");
    engine.send("quit");
    let (code, rest) = engine.finish();
    assert_eq!(code, 0);
    assert_eq!(rest.iter().filter(|line| line.starts_with("bestmove")).count(), 1, "{rest:?}");

    // The end of the input quits too.
    let mut engine = uci(&[]);
    engine.send("go infinite");
    assert_eq!(engine.finish().0, 0);
}

#[test]
fn infinite_search_waits_for_stop_after_a_proof() {
    let mut engine = uci(&[]);
    engine.send("position fen 6k1/5ppp/8/8/8/8/8/R6K w - - 0 1");
    engine.send("go infinite");
    engine.until("info depth 1 ");
    engine.send("isready");
    engine.send("go depth 1");
    let lines = engine.until("readyok");
    assert!(!lines.iter().any(|line| line.starts_with("bestmove")), "{lines:?}");
    engine.send("stop");
    assert_eq!(best_move(&engine.until("bestmove")), "a1a8");
    // The call that waited comes next.
    engine.until("bestmove");
}

#[test]
fn mates_are_counted_in_moves() {
    let mut engine = uci(&["--player", "pvs"]);
    for (fen, score) in [
        ("6k1/5ppp/8/8/8/8/8/R6K w - - 0 1", "score mate 1 "),
        ("6k1/8/6K1/8/8/8/8/R7 w - - 0 1", "score mate 1 "),
        ("7k/8/5K2/8/8/8/8/6R1 w - - 0 1", "score mate 2 "),
        ("7k/R7/6K1/8/8/8/8/8 b - - 0 1", "score mate -1 "),
        ("R5k1/5ppp/8/8/8/8/8/7K b - - 0 1", "score mate 0"),
    ] {
        engine.send(&format!("position fen {fen}"));
        engine.send("go depth 6");
        let lines = engine.until("bestmove");
        assert!(lines[lines.len() - 2].contains(score), "{fen}: {lines:?}");
    }
    assert_eq!(engine.finish().0, 0);
}

#[test]
fn plays_on_after_draws_that_others_only_claim() {
    let mut engine = uci(&["--player", "pvs"]);
    let repeated = [SHUFFLE; 3].join(" ");
    for position in [
        format!("startpos moves {repeated}"),
        format!("startpos moves {repeated} e2e4 {}", "e7e5"),
        "fen 4k3/8/8/8/8/8/8/4K2R w - - 100 80".to_string(),
        "fen 4k3/8/8/8/8/8/8/4K2R w - - 99 80 moves h1h2 e8e7".to_string(),
        "fen 4k3/8/8/8/8/8/8/4K2R w K -".to_string(),
        "fen r3k2r/8/8/8/8/8/8/R3K2R w kqKQ - 0 1 moves e1g1".to_string(),
    ] {
        engine.send(&format!("position {position}"));
        engine.send("go nodes 100");
        let lines = engine.until("bestmove");
        assert_ne!(best_move(&lines), "(none)", "{position}: {lines:?}");
        assert!(!lines.iter().any(|line| line.contains("error")), "{position}: {lines:?}");
    }
}

#[test]
fn answers_without_a_move_where_there_is_none() {
    let mut engine = uci(&[]);
    for (fen, score) in [
        ("R5k1/5ppp/8/8/8/8/8/7K b - - 0 1", "info depth 0 score mate 0"),
        ("7k/5Q2/8/8/8/8/8/K7 b - - 0 1", "info depth 0 score cp 0"),
    ] {
        engine.send(&format!("position fen {fen}"));
        engine.send("go movetime 10");
        assert_eq!(engine.until("bestmove"), [score, "bestmove (none)"]);
    }
}

#[test]
fn rejects_what_it_does_not_understand_and_plays_on() {
    let mut engine = uci(&["--player", "uct"]);
    for (line, reason) in [
        ("setoption name playout value 3", "did you mean `playouts`?"),
        ("setoption name Hash value 0", "`Hash` cannot be `0`; it must be a whole number from 1 to 65536"),
        ("setoption name c", "`c` cannot be ``"),
        ("position startpos moves e2e5", "`e2e5` is not a legal move"),
        ("position nowhere", "position startpos"),
        ("jump", "there is no command `jump`"),
    ] {
        engine.send(line);
        let answer = engine.line();
        assert!(answer.starts_with("info string error: ") && answer.contains(reason), "{line}: {answer}");
    }
    engine.send("setoption name hash value 2");
    engine.send("setoption name c value 0.7");
    // Two options that only make sense together, in the wrong order.
    engine.send("setoption name rollout_scale value 2.5");
    engine.send("setoption name rollout_plies value 4");
    engine.send("go nodes 50");
    let lines = engine.until("bestmove");
    assert!(!lines.iter().any(|line| line.contains("error")), "{lines:?}");
    assert_eq!(number(&lines[0], "nodes"), 50, "simulations");
    engine.send("setoption name rollout_plies value 0");
    engine.send("isready");
    let lines = engine.until("readyok");
    assert!(lines[0].contains("give `rollout_plies` beside `rollout_scale`"), "{lines:?}");
    engine.send("go depth 3");
    assert!(engine.line().contains("`uct` has no depth to limit"));
    engine.send("stop");
    engine.until("bestmove");
}

#[test]
fn hash_is_the_memory_of_the_table() {
    let mut engine = uci(&["--player", "pvs"]);
    let nodes = |engine: &mut Session| {
        engine.send("ucinewgame");
        engine.send("position startpos moves e2e4");
        engine.send("go depth 6");
        let lines = engine.until("bestmove");
        number(&lines[lines.len() - 2], "nodes")
    };
    let first = nodes(&mut engine);
    assert_eq!(nodes(&mut engine), first, "a new game knows nothing of the one before");
    engine.send("position startpos moves e2e4");
    engine.send("go depth 6");
    let lines = engine.until("bestmove");
    assert!(number(&lines[lines.len() - 2], "nodes") < first, "without a new game the table stays");
    engine.send("setoption name Hash value 0");
    assert!(nodes(&mut engine) > first);
}
