//! Real engines, where they are installed: stockfish, gnuchess, gnugo and grhino from Debian's packages.

#![allow(clippy::unwrap_used, reason = "a failing test panics")]

use std::fmt::Write as _;
use std::path::Path;

use agon_testing::binary::agon;
use agon_testing::folder::Folder;

/// Returns the path of a program in Debian's folder of games, or prints that the test is skipped.
fn installed(name: &str) -> Option<String> {
    let path = Path::new("/usr/games").join(name);
    if !path.exists() {
        println!("skipped: {} is not installed", path.display());
    }
    path.exists().then(|| path.display().to_string())
}

/// Plays engines, as the lines of their tables and limits, against a built-in player. No game may end by a fault.
fn play(game: &str, built_in: &str, engines: &[String]) {
    if engines.is_empty() {
        return;
    }
    let mut text = format!(
        "name = \"engines\"\ngame = {game}\nseed = 1\nopenings = {{ random_plies = 4 }}\n\
         [tournament]\nformat = \"gauntlet\"\nhero = \"built-in\"\nbouts = 1\n\
         [[player]]\nname = \"built-in\"\n{built_in}\n"
    );
    for (number, engine) in engines.iter().enumerate() {
        let _ = writeln!(text, "[[player]]\nname = \"engine-{number}\"\n{engine}");
    }
    let folder = Folder::new();
    let (spec, data) = (folder.path("spec.toml"), folder.path("data"));
    std::fs::write(&spec, text).unwrap();
    let (spec, data) = (spec.as_str(), data.as_str());
    let answer = agon(&["run", spec, "--data", data, "--quiet"]);
    assert_eq!(answer.code, 0, "{}", answer.err);
    let answer = agon(&["games", "--data", data, "--json"]);
    let games: serde_json::Value = serde_json::from_str(&answer.out).unwrap();
    let games = games["games"].as_array().unwrap();
    assert_eq!(games.len(), 2 * engines.len());
    for game in games {
        assert_eq!(game["detail"], "", "{game}");
    }
    assert_eq!(agon(&["verify", "--data", data]).code, 0);
}

#[test]
fn chess_engines_play_whole_games() {
    let stockfish = installed("stockfish").map(|path| {
        [1, 10, 100].map(|nodes| {
            format!(
                "engine = {{ protocol = \"uci\", command = {path:?}, options = {{ Hash = 1, Threads = 1 }} }}\n\
                 limit = {{ nodes = {nodes} }}"
            )
        })
    });
    let gnuchess = installed("gnuchess").map(|path| {
        format!(
            "engine = {{ protocol = \"uci\", command = {path:?}, args = [\"--uci\"], grace_ms = 20000 }}\n\
             limit = {{ ms = 5 }}"
        )
    });
    let engines: Vec<String> = stockfish.into_iter().flatten().chain(gnuchess).collect();
    play("\"chess\"", "search = { algorithm = \"pvs\" }\nlimit = { nodes = 200 }", &engines);
}

#[test]
fn gnugo_plays_whole_games() {
    let engine = installed("gnugo").map(|path| {
        format!(
            "engine = {{ protocol = \"gtp\", command = {path:?}, args = [\"--mode\", \"gtp\", \"--level\", \"1\", \
             \"--chinese-rules\", \"--positional-superko\", \"--never-resign\"] }}\nlimit = {{ ms = 60000 }}"
        )
    });
    let engines: Vec<String> = engine.into_iter().collect();
    play("{ name = \"go\", size = 9 }", "search = { algorithm = \"uct\" }\nlimit = { nodes = 20 }", &engines);
}

#[test]
fn grhino_plays_whole_games() {
    let engine = installed("gtp-rhino").map(|path| {
        format!("engine = {{ protocol = \"gtp\", command = {path:?} }}\nlimit = {{ ms = 60000 }}")
    });
    let engines: Vec<String> = engine.into_iter().collect();
    play("\"othello\"", "search = { algorithm = \"pvs\" }\nlimit = { nodes = 200 }", &engines);
}
