//! The bot protocol: the bots of `examples/bots`, and Agon as a bot.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use agon_games::random::seeded;
use agon_games::{GameSpec, Turn};
use agon_testing::folder::Folder;
use serde_json::{Value, json};

use crate::session::Session;

/// Games with two, three and more seats, with dice, and with passes.
const GAMES: [&str; 6] =
    ["tic-tac-toe", "othello", "backgammon", "virus:seats=3,size=5", "rolit:seats=4", "chess:ply_limit=60"];

pub fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/bots").join(name)
}

/// Returns whether a program can be called; prints a line if it cannot.
pub fn is_installed(program: &str) -> bool {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let is_there = found.is_ok_and(|status| status.success());
    if !is_there {
        println!("skipped: {program} is not installed");
    }
    is_there
}

/// Plays a game in which one bot has every seat, by the messages of the protocol. Returns its moves and the answers.
fn play_game(bot: &mut Session, game: &str, limit: &Value) -> (Vec<String>, Vec<Value>) {
    let spec = GameSpec::parse(game).unwrap();
    let mut position = spec.start(None).unwrap();
    let parameters = spec.parameters().to_string();
    let parameters: serde_json::Map<String, Value> = parameters
        .split(',')
        .filter_map(|pair| pair.split_once('='))
        .map(|(key, value)| (key.to_string(), serde_json::from_str(value).unwrap_or_else(|_| json!(value))))
        .collect();
    let seats = position.seats();
    let start = json!({"type": "new_game", "game": spec.name(), "parameters": parameters, "seats": seats,
        "seat": 0, "position": null, "of a later version": [1]});
    bot.send(&start.to_string());
    let (mut moves, mut answers) = (Vec::new(), Vec::new());
    let mut random = seeded(7);
    loop {
        match position.turn() {
            Turn::Over => break,
            Turn::Chance => moves.push(position.draw(&mut random)),
            Turn::Player(seat) => {
                // The order of the page, which bots without a parser rely on.
                let (ply, legal) = (moves.len(), json!(position.legal()));
                let (board, text) = (json!(position.board()), json!(position.position()));
                bot.send(&format!(
                    r#"{{"type":"move","ply":{ply},"seat":{},"moves":{},"legal":{legal},"board":{board},"position":{text},"limit":{limit}}}"#,
                    seat.0,
                    json!(moves),
                ));
                let answer: Value = serde_json::from_str(&bot.line()).unwrap();
                assert_eq!(answer["type"], "move", "{game}: {answer}");
                moves.push(position.play(ply + 1, answer["move"].as_str().unwrap()).unwrap());
                answers.push(answer);
            }
        }
    }
    let end = json!({"type": "end", "payoffs": position.payoffs(), "ending": position.ending()});
    bot.send(&end.to_string());
    (moves, answers)
}

/// Plays some games and ends the bot.
fn play_games(command: &mut Command, games: &[&str]) {
    let mut bot = Session::start(command);
    bot.send(r#"{"type":"hello","protocol":1}"#);
    let ready: Value = serde_json::from_str(&bot.line()).unwrap();
    assert_eq!(ready["type"], "ready");
    for game in games {
        play_game(&mut bot, game, &json!({"nodes": 50}));
    }
    bot.send(r#"{"type":"quit"}"#);
    assert_eq!(bot.finish(), (0, Vec::new()));
}

#[test]
fn example_bots_have_at_most_twenty_lines() {
    for name in ["bot.py", "bot.c", "bot.sh"] {
        let text = std::fs::read_to_string(example(name)).unwrap();
        assert!(text.lines().count() <= 20, "{name}");
    }
}

#[test]
fn page_shows_the_example_bot() {
    let page = std::fs::read_to_string(example("../../docs/reference/bot-protocol.md")).unwrap();
    let bot = std::fs::read_to_string(example("bot.py")).unwrap();
    let code = bot.split_once("\n\n").unwrap().1;
    assert!(page.contains(code), "docs/reference/bot-protocol.md does not show examples/bots/bot.py");
}

#[test]
fn shell_bot_plays_every_game() {
    play_games(Command::new("sh").arg(example("bot.sh")), &GAMES);
}

#[test]
fn python_bot_plays_every_game() {
    if is_installed("python3") {
        play_games(Command::new("python3").arg(example("bot.py")), &GAMES);
    }
}

#[test]
fn c_bot_plays_every_game() {
    if !is_installed("cc") {
        return;
    }
    let folder = Folder::new();
    let program = folder.path("bot");
    let status = Command::new("cc").args(["-Wall", "-Werror", "-o", &program]).arg(example("bot.c")).status();
    assert!(status.unwrap().success());
    play_games(&mut Command::new(program), &GAMES);
}

#[test]
fn agon_plays_every_game_as_a_bot() {
    let mut bot = Session::serve(&["--protocol", "agon"]);
    bot.send(r#"{"type":"hello","protocol":1,"later":true}"#);
    let ready: Value = serde_json::from_str(&bot.line()).unwrap();
    assert!(ready["options"].is_null(), "without a game the algorithm is not known: {ready}");
    for game in GAMES {
        let (_, answers) = play_game(&mut bot, game, &json!({"nodes": 200}));
        assert!(answers.iter().all(|answer| answer["pv"][0] == answer["move"]), "{game}");
        let effort = |answer: &Value| match answer["simulations"].as_u64() {
            Some(0) => answer["nodes"].as_u64(),
            simulations => simulations,
        };
        assert!(answers.iter().all(|answer| effort(answer) <= Some(200)), "{game}");
    }
    for limit in [json!({"ms": 1}), json!({"cpu_ms": 1}), json!({"clock_ms": [100, 0.5], "increment_ms": 1})]
    {
        play_game(&mut bot, "connect-four", &limit);
    }
    assert_eq!(bot.finish(), (0, Vec::new()));
}

#[test]
fn agon_bot_takes_options_and_its_moves_are_reproducible() {
    let play = |values: Value| {
        let mut bot = Session::serve(&["--protocol", "agon", "--game", "connect-four", "--player", "uct"]);
        bot.send(r#"{"type":"hello","protocol":1}"#);
        let ready: Value = serde_json::from_str(&bot.line()).unwrap();
        assert!(ready["options"].as_array().unwrap().contains(&json!("memory_mb")), "{ready}");
        bot.send(&json!({"type": "options", "values": values}).to_string());
        play_game(&mut bot, "connect-four", &json!({"nodes": 300}))
    };
    let first = play(json!({"c": 0.5}));
    assert_eq!(play(json!({"c": 0.5})), first);
    assert_ne!(play(json!({"c": 2.5, "final": "visits"})).1, first.1);
}

#[test]
fn agon_bot_reports_what_it_cannot_play() {
    let start =
        r#"{"type":"new_game","game":"connect-four","parameters":{},"seats":2,"seat":0,"position":null}"#;
    let mv = r#"{"type":"move","ply":0,"seat":0,"moves":[],"legal":["a"],"board":"","limit":{"ms":1}}"#;
    let (no_limit, unknown) = (mv.replace("ms\":1", "s\":1"), start.replace("{},", "{\"size\":3},"));
    for (arguments, lines, reason) in [
        (&[][..], &[r#"{"type":"hello","protocol":2}"#][..], "version 2"),
        (&[], &["hello"], "this is no message: hello"),
        (&[], &[mv], "`new_game` comes first"),
        (&[], &[start, no_limit.as_str()], "this has no limit"),
        (&["--game", "go"], &[start], "the other side plays connect-four"),
        (&[], &[unknown.as_str()], "no parameter `size`"),
        (
            &["--game", "connect-four", "--player", "uct"],
            &[r#"{"type":"options","values":{"d":1}}"#, start],
            "no option `d`",
        ),
    ] {
        let mut call = vec!["engine", "serve", "--protocol", "agon"];
        call.extend(arguments);
        let answer = agon_testing::binary::agon_with_input(&call, (lines.join("\n") + "\n").as_bytes());
        assert_ne!(answer.code, 0, "{lines:?}");
        assert!(answer.err.contains(reason), "{lines:?}: {}", answer.err);
    }
}
