//! `agon games` as a person or a program meets it: lists, one game, files for other programs, and openings out of them.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use agon_testing::sample;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use sample::{SampleDataset, TOURNAMENT};

/// Six games of chess, two of which are played twice over each opening of three plies.
const CHESS: &str = r#"
name = "knights"
game = { name = "chess", ply_limit = 40 }
seed = 3
limit = { nodes = 80 }
openings = { random_plies = 3 }
[tournament]
format = "round-robin"
bouts = 3
[[player]]
name = "deep"
search = { algorithm = "pvs" }
[[player]]
name = "wide"
search = { algorithm = "uct", rollout_plies = 4 }
"#;

fn small(game: &str) -> String {
    TOURNAMENT.replace("connect-four", game).replace("bouts = 3", "bouts = 1")
}

/// The exit code, and what was printed to standard output and to standard error, without the name of the latest run.
fn agon(sample: &SampleDataset, arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_agon"))
        .arg("games")
        .args(arguments)
        .arg("--data")
        .arg(sample.folder())
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let err = text(output.stderr);
    let note = format!("run: {} (latest)\n", sample.id);
    (output.status.code().unwrap(), text(output.stdout), err.strip_prefix(&note).unwrap_or(&err).to_string())
}

/// Standard output of a call that succeeds.
fn answer(sample: &SampleDataset, arguments: &[&str]) -> String {
    let (code, out, err) = agon(sample, arguments);
    assert_eq!(code, 0, "{arguments:?}: {err}");
    out
}

fn document(sample: &SampleDataset, arguments: &[&str]) -> Value {
    serde_json::from_str(&answer(sample, arguments)).unwrap()
}

/// The games of a list, as `bout.game`.
fn places(sample: &SampleDataset, arguments: &[&str]) -> Vec<String> {
    let arguments: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
    let told = document(sample, &arguments);
    assert_eq!(told["run"], sample.id);
    let games = told["games"].as_array().unwrap();
    games.iter().map(|game| format!("{}.{}", game["bout"], game["game"])).collect()
}

#[test]
fn a_list_has_every_game_in_order() {
    let sample = SampleDataset::play(TOURNAMENT);
    let all = ["0.0", "0.1", "1.0", "1.1", "2.0", "2.1"];
    assert_eq!(places(&sample, &[]), all);
    assert_eq!(places(&sample, &["latest", "--limit", "2"]), all[..2]);
    let row = &sample.bouts[&1].games[1];
    let told = &document(&sample, &["small", "--json"])["games"][3];
    assert_eq!(
        *told,
        json!({
            "bout": 1, "game": 1, "rules": "connect-four", "variant": row.variant, "opening": row.opening,
            "players": row.players, "payoffs": row.payoffs, "plies": row.plies, "ending": row.ending,
            "seed": row.seed, "worker": "sample", "build": "1",
            "started": "1970-01-01T00:00:00.000005Z", "duration_us": row.duration_us,
            "speed_factor": 1.0, "settings": [],
        })
    );
    let out = answer(&sample, &["--limit", "4"]);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines.len(), 6, "{out}");
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{out}");
    assert!(lines[0].contains("seat 0") && lines[1].trim_start().starts_with("0.0  "), "{out}");
    assert_eq!(lines[5], "and 2 more games; --limit 6 lists them all");
}

#[test]
fn filters_are_those_of_the_rows() {
    let mut sample = SampleDataset::play(TOURNAMENT);
    // Results and endings of all kinds, whoever really won.
    for (bout, rows) in &mut sample.bouts {
        for row in &mut rows.games {
            let payoff = *bout as i32 - 1;
            row.payoffs = if row.game == 0 { vec![payoff, -payoff] } else { vec![-payoff, payoff] };
            row.ending = if *bout == 1 { "Board Full" } else { "four in a row" }.to_string();
        }
    }
    sample.write();
    let listed = |arguments: &[&str]| places(&sample, arguments);
    // The first player of a bout's first game has lost bout 0, drawn bout 1 and won bout 2.
    let first = sample.bouts[&0].games[0].players[0].clone();
    let other = sample.bouts[&0].games[0].players[1].clone();
    assert_eq!(sample.bouts[&2].games[0].players[0], first);
    assert_eq!(listed(&["--player", &first, "--player", &other]).len(), 6);
    assert_eq!(listed(&["--winner", &first]), ["2.0", "2.1"]);
    assert_eq!(listed(&["--winner", &other]), ["0.0", "0.1"]);
    assert_eq!(listed(&["--player", &first, "--result", "draw"]), ["1.0", "1.1"]);
    assert_eq!(listed(&["--player", &first, "--result", "loss"]), ["0.0", "0.1"]);
    assert_eq!(listed(&["--player", &other, "--player", &first, "--result", "win"]), ["0.0", "0.1"]);
    assert_eq!(listed(&["--ending", "FULL"]), ["1.0", "1.1"]);
    assert_eq!(listed(&["--bout", "1"]), ["1.0", "1.1"]);
    assert_eq!(listed(&["--bout", "1-9", "--winner", &first]), ["2.0", "2.1"]);
    let plies = |from: u32, to: u32| -> Vec<String> {
        let rows = sample.bouts.values().flat_map(|rows| &rows.games);
        let found = rows.filter(|row| (from..=to).contains(&row.plies));
        found.map(|row| format!("{}.{}", row.bout, row.game)).collect()
    };
    let middle = sample.bouts[&1].games[0].plies;
    let text = middle.to_string();
    assert_eq!(listed(&["--min-plies", &text]), plies(middle, u32::MAX));
    assert_eq!(listed(&["--max-plies", &text]), plies(0, middle));
    assert_eq!(listed(&["--min-plies", &text, "--max-plies", &text]), plies(middle, middle));
    assert_eq!(answer(&sample, &["--min-plies", "1000"]), format!("{} has no such game\n", sample.id));
    sample.manifest["voided"] = json!([1]);
    sample.write_run();
    assert_eq!(places(&sample, &["--bout", "0-1"]), ["0.0", "0.1"]);
}

#[test]
fn a_game_is_shown_ply_by_ply() {
    let sample = SampleDataset::play(TOURNAMENT);
    let rows = &sample.bouts[&1];
    let told = document(&sample, &["--show", "1.1", "--json"]);
    assert_eq!((&told["run"], &told["game"]["bout"]), (&json!(sample.id), &json!(1)));
    let moves: Vec<_> = rows.moves.iter().filter(|row| row.game == 1).collect();
    assert_eq!(told["moves"].as_array().unwrap().len(), moves.len());
    for (step, row) in told["moves"].as_array().unwrap().iter().zip(&moves) {
        assert_eq!(
            (&step["ply"], &step["move"], &step["seat"]),
            (&json!(row.ply), &json!(row.mv), &json!(row.seat))
        );
        assert_eq!(step["nodes"], json!(row.search.as_ref().map(|search| search.counters.nodes)));
        assert_eq!(step["played"], true);
    }
    // The boards are those of `agon show`.
    let line: Vec<&str> = moves.iter().map(|row| row.mv.as_str()).collect();
    let output = Command::new(env!("CARGO_BIN_EXE_agon"))
        .args(["show", "connect-four", "--moves", &line[..5].join(" "), "--json"])
        .output()
        .unwrap();
    let sight: Value = serde_json::from_slice(&output.stdout).unwrap();
    let (after, part) =
        (&told["moves"][4], document(&sample, &["--show", "1.1", "--plies", "4-5", "--json"]));
    assert_eq!((&after["board"], &after["position"]), (&sight["board"], &sight["position"]));
    assert_eq!(part["moves"].as_array().unwrap().len(), 2);
    assert_eq!((&part["moves"][0], &part["start"]["board"]), (after, &told["moves"][3]["board"]));

    let out = answer(&sample, &["--show", "1.1", "--plies", "2-3"]);
    assert!(out.lines().all(|line| line.chars().count() <= 80), "{out}");
    assert!(out.starts_with(&format!("{}, bout 1, game 1: connect-four", sample.id)), "{out}");
    let player = &rows.games[1].players[usize::from(moves[3].seat.unwrap())];
    let said = format!("ply 3: seat {}, {player}: {}\n", moves[3].seat.unwrap(), moves[3].mv);
    assert!(out.contains("ply 2: ") && out.contains("\nopening\n") && out.contains(&said), "{out}");
    assert!(
        !out.contains("ply 4: ") && out.contains(sight["board"].as_str().unwrap().lines().next().unwrap())
    );
}

#[test]
fn chess_leaves_as_pgn_and_comes_back_as_openings() {
    let sample = SampleDataset::play(CHESS);
    let pgn = answer(&sample, &["--export", "pgn"]);
    assert_eq!(pgn.matches("[Event ").count(), 6);
    for line in ["[Round \"2.1\"]", "[WhiteLimit \"nodes=80\"]", "[TimeControl \"-\"]"] {
        assert!(pgn.lines().any(|found| found == line), "{line}: {pgn}");
    }
    let file = sample.folder().join("out.pgn");
    let (code, out, err) = agon(&sample, &["--export", "pgn", "--output", file.to_str().unwrap()]);
    assert_eq!((code, out.as_str(), err), (0, "", format!("6 games in {}\n", file.display())));
    assert_eq!(fs::read_to_string(&file).unwrap(), pgn);

    // The first twenty plies of every game are an opening of another run, with the same moves.
    let book = tempfile::tempdir().unwrap();
    fs::copy(&file, book.path().join("games.pgn")).unwrap();
    let spec = CHESS.replace("{ random_plies = 3 }", "{ file = \"games.pgn\", plies = 20 }");
    fs::write(book.path().join("spec.toml"), spec).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_agon"))
        .args(["run", book.path().join("spec.toml").to_str().unwrap(), "--json", "--data"])
        .arg(book.path().join("data"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let output = Command::new(env!("CARGO_BIN_EXE_agon"))
        .args(["games", "--json", "--data"])
        .arg(book.path().join("data"))
        .output()
        .unwrap();
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let used: Vec<&str> =
        told["games"].as_array().unwrap().iter().map(|game| game["opening"].as_str().unwrap()).collect();
    let lines: Vec<String> = sample
        .bouts
        .values()
        .flat_map(|rows| {
            [0, 1].map(|game| {
                let moves = rows.moves.iter().filter(|row| row.game == game).take(20);
                moves.map(|row| row.mv.as_str()).collect::<Vec<_>>().join(" ")
            })
        })
        .collect();
    assert_eq!(used.len(), 6);
    assert!(used.iter().all(|opening| lines.iter().any(|line| line == opening)), "{used:?}\n{lines:?}");
}

#[test]
fn other_games_have_their_formats() {
    let go = SampleDataset::play(&small("go:size=5"));
    let sgf = answer(&go, &["--export", "sgf"]);
    assert_eq!(sgf.matches("(;FF[4]GM[1]").count(), 2);
    assert!(sgf.contains("SZ[5]KM[7.5]") && sgf.contains("C[book]") && sgf.contains("simulations"), "{sgf}");
    let checkers = SampleDataset::play(&small("checkers"));
    let pdn = answer(&checkers, &["--export", "pdn", "--limit", "1"]);
    assert_eq!(pdn.matches("[GameType \"21\"]").count(), 1);
    let text = answer(&checkers, &["--export", "text"]);
    let row = &checkers.bouts[&0].games[1];
    let moves: Vec<&str> =
        checkers.bouts[&0].moves.iter().filter(|row| row.game == 1).map(|row| row.mv.as_str()).collect();
    let line = format!(
        "0.1\t{}\t{} {}\t{}\t{}\t{}",
        row.players.join(" "),
        row.payoffs[0],
        row.payoffs[1],
        row.ending,
        row.plies,
        moves.join(" ")
    );
    assert_eq!(text.lines().nth(1), Some(line.as_str()));
}

#[test]
fn a_move_that_came_too_late_is_not_played() {
    let mut sample = SampleDataset::play(TOURNAMENT);
    let rows = sample.bout(0);
    let last = rows.moves.iter().rfind(|row| row.game == 0).unwrap().mv.clone();
    rows.games[0].ending = "time forfeit".to_string();
    sample.write();
    let told = document(&sample, &["--show", "0.0", "--json"]);
    let moves = told["moves"].as_array().unwrap();
    let (late, before) = (&moves[moves.len() - 1], &moves[moves.len() - 2]);
    assert_eq!(
        (&late["move"], &late["played"], &late["board"]),
        (&json!(last), &json!(false), &before["board"])
    );
    assert!(answer(&sample, &["--show", "0.0"]).contains("(not played: the clock had run out)"));
    let text = answer(&sample, &["--export", "text", "--limit", "1"]);
    let fields: Vec<&str> = text.trim_end().split('\t').collect();
    assert_eq!(fields[4], (moves.len() - 1).to_string());
    assert_eq!(fields[5].split(' ').count(), moves.len() - 1);
}

#[test]
fn a_pipe_that_closes_ends_it_quietly() {
    let sample = SampleDataset::play(CHESS);
    let mut child = Command::new(env!("CARGO_BIN_EXE_agon"))
        .args(["games", "--export", "pgn", "--data"])
        .arg(sample.folder())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::with_capacity(64, child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("[Event "));
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(err, format!("run: {} (latest)\n", sample.id));
}

#[test]
fn a_dataset_that_lacks_moves_is_a_failure() {
    let mut sample = SampleDataset::play(CHESS);
    sample.bout(2).moves.pop();
    sample.write();
    let (code, out, err) = agon(&sample, &["--export", "text"]);
    assert_eq!((code, out.lines().count()), (1, 5), "{err}");
    assert!(err.starts_with("error: bout 2, game 1 has ") && err.contains("`agon verify`"), "{err}");
    let illegal = &mut sample.bout(0).moves[5].mv;
    *illegal = "e9e9".to_string();
    sample.write();
    let (code, _, err) = agon(&sample, &["--export", "pgn"]);
    assert_eq!(code, 1);
    assert!(err.starts_with("error: bout 0, game 0 cannot be written; ") && err.contains("e9e9"), "{err}");
    let (code, _, err) = agon(&sample, &["--show", "0.0"]);
    assert_eq!(code, 1);
    assert!(err.starts_with("error: bout 0, game 0 cannot be played; ") && err.contains("e9e9"), "{err}");
}

#[test]
fn wrong_calls_are_refused_with_a_remedy() {
    let sample = SampleDataset::play(TOURNAMENT);
    for (arguments, sentence) in [
        (&["nothing"][..], "there is no run `nothing`; there is only small-"),
        (&["--player", "deeq"], "the run has no player `deeq`: did you mean `deep`? it has: deep, wide"),
        (&["--winner", "nobody"], "the run has no player `nobody`; it has: deep, wide"),
        (&["--result", "win"], "--player"),
        (&["--bout", "9-3"], "`9-3` are no bouts; write a number as in 12, or a range as in 10-19"),
        (&["--min-plies", "9", "--max-plies", "3"], "give the smaller number to --min-plies"),
        (&["--limit", "0"], "the number of games is a whole number from 1"),
        (&["--show", "1"], "`1` is no game; write its bout and its number, as in 12.1"),
        (&["--show", "1.7"], "bout 1, game 7 is not in the dataset of small-"),
        (&["--show", "99.0"], "bout 99, game 0 is not in the dataset of small-"),
        (&["--show", "1.1", "--plies", "900"], "the game has no ply 900; its last is "),
        (&["--show", "1.1", "--plies", "x"], "`x` are no plies; "),
        (&["--show", "1.1", "--winner", "deep"], "cannot be used with"),
        (&["--plies", "1"], "--show"),
        (&["--export", "pgn"], "connect-four is not written as pgn; it has: text"),
        (&["--export", "png"], "there is no format `png`; connect-four has: text"),
        (&["--export", "text", "--json"], "cannot be used with"),
        (&["--output", "x"], "--export"),
    ] {
        let (code, out, err) = agon(&sample, arguments);
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}: {err}");
        assert!(err.starts_with("error: ") && err.contains(sentence), "{err}");
    }
    let file = sample.folder().join("none.pgn");
    let (code, ..) = agon(&sample, &["--export", "pgn", "--output", file.to_str().unwrap()]);
    assert_eq!((code, file.exists()), (2, false));
}
