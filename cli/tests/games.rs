//! `agon games`: lists, single games, and exports, which can serve as openings.

#![allow(clippy::unwrap_used, reason = "a failing test panics")]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use agon_testing::binary::{self, agon_on};
use agon_testing::folder::Folder;
use agon_testing::sample::SampleDataset;
use agon_testing::specs::{TOURNAMENT, vary};
use serde_json::{Value, json};

/// Three bouts of chess.
static CHESS: LazyLock<String> = LazyLock::new(|| {
    let spec = vary(TOURNAMENT).name("knights").set("game", "{ name = \"chess\", ply_limit = 40 }").seed(3);
    spec.limit("nodes = 80").replace("\"uct\" }", "\"uct\", rollout_plies = 4 }").text()
});

fn one_bout(game: &str) -> String {
    vary(TOURNAMENT).set("game", format!("{game:?}")).bouts(1).text()
}

/// Calls `agon games` on a sample dataset.
fn agon(sample: &SampleDataset, arguments: &[&str]) -> (i32, String, String) {
    agon_on(sample, &[&["games"], arguments].concat())
}

/// Returns the standard output of a successful call.
fn answer(sample: &SampleDataset, arguments: &[&str]) -> String {
    let (code, out, err) = agon(sample, arguments);
    assert_eq!(code, 0, "{arguments:?}: {err}");
    out
}

fn games_json(sample: &SampleDataset, arguments: &[&str]) -> Value {
    serde_json::from_str(&answer(sample, arguments)).unwrap()
}

/// Returns the listed games as `bout.game`.
fn listed_games(sample: &SampleDataset, arguments: &[&str]) -> Vec<String> {
    let arguments: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
    let document = games_json(sample, &arguments);
    assert_eq!(document["run"], sample.id);
    let games = document["games"].as_array().unwrap();
    games.iter().map(|game| format!("{}.{}", game["bout"], game["game"])).collect()
}

#[test]
fn lists_games_in_order() {
    let sample = SampleDataset::play(TOURNAMENT);
    let all = ["0.0", "0.1", "1.0", "1.1", "2.0", "2.1"];
    assert_eq!(listed_games(&sample, &[]), all);
    assert_eq!(listed_games(&sample, &["latest", "--limit", "2"]), all[..2]);
    let row = &sample.bouts[&1].games[1];
    let document = &games_json(&sample, &["small", "--json"])["games"][3];
    assert_eq!(
        *document,
        json!({
            "bout": 1, "game": 1, "rules": "connect-four", "variant": row.variant, "opening": row.opening,
            "players": row.players, "payoffs": row.payoffs, "plies": row.plies, "ending": row.ending,
            "detail": "", "engine_cpu_us": [], "seed": row.seed, "worker": "sample", "build": "1",
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
fn filters_match_the_rows() {
    let mut sample = SampleDataset::play(TOURNAMENT);
    // Results and endings of all kinds, regardless of the moves.
    for (bout, rows) in &mut sample.bouts {
        for row in &mut rows.games {
            let payoff = *bout as i32 - 1;
            row.payoffs = if row.game == 0 { vec![payoff, -payoff] } else { vec![-payoff, payoff] };
            row.ending = if *bout == 1 { "Board Full" } else { "four in a row" }.to_string();
        }
    }
    sample.write();
    let listed = |arguments: &[&str]| listed_games(&sample, arguments);
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
    sample.write_manifest();
    assert_eq!(listed_games(&sample, &["--bout", "0-1"]), ["0.0", "0.1"]);
}

#[test]
fn shows_a_game_ply_by_ply() {
    let sample = SampleDataset::play(TOURNAMENT);
    let rows = &sample.bouts[&1];
    let document = games_json(&sample, &["--show", "1.1", "--json"]);
    assert_eq!((&document["run"], &document["game"]["bout"]), (&json!(sample.id), &json!(1)));
    let moves: Vec<_> = rows.moves.iter().filter(|row| row.game == 1).collect();
    assert_eq!(document["moves"].as_array().unwrap().len(), moves.len());
    for (step, row) in document["moves"].as_array().unwrap().iter().zip(&moves) {
        assert_eq!(
            (&step["ply"], &step["move"], &step["seat"]),
            (&json!(row.ply), &json!(row.mv), &json!(row.seat))
        );
        assert_eq!(step["nodes"], json!(row.search.as_ref().map(|search| search.counters.nodes)));
        assert_eq!(step["played"], true);
    }
    // The boards equal those of `agon show`.
    let line: Vec<&str> = moves.iter().map(|row| row.mv.as_str()).collect();
    let sight = binary::json(&["show", "connect-four", "--moves", &line[..5].join(" "), "--json"]);
    let (after, part) =
        (&document["moves"][4], games_json(&sample, &["--show", "1.1", "--plies", "4-5", "--json"]));
    assert_eq!((&after["board"], &after["position"]), (&sight["board"], &sight["position"]));
    assert_eq!(part["moves"].as_array().unwrap().len(), 2);
    assert_eq!((&part["moves"][0], &part["start"]["board"]), (after, &document["moves"][3]["board"]));

    let out = answer(&sample, &["--show", "1.1", "--plies", "2-3"]);
    assert!(out.lines().all(|line| line.chars().count() <= 80), "{out}");
    assert!(out.starts_with(&format!("{}, bout 1, game 1: connect-four", sample.id)), "{out}");
    let player = &rows.games[1].players[usize::from(moves[3].seat.unwrap())];
    let text = format!("ply 3: seat {}, {player}: {}\n", moves[3].seat.unwrap(), moves[3].mv);
    assert!(out.contains("ply 2: ") && out.contains("\nopening\n") && out.contains(&text), "{out}");
    assert!(
        !out.contains("ply 4: ") && out.contains(sight["board"].as_str().unwrap().lines().next().unwrap())
    );
}

#[test]
fn exported_pgn_reads_back_as_openings() {
    let sample = SampleDataset::play(&CHESS);
    let pgn = answer(&sample, &["--export", "pgn"]);
    assert_eq!(pgn.matches("[Event ").count(), 6);
    for line in ["[Round \"2.1\"]", "[WhiteLimit \"nodes=80\"]", "[TimeControl \"-\"]"] {
        assert!(pgn.lines().any(|found| found == line), "{line}: {pgn}");
    }
    let file = sample.folder().join("out.pgn");
    let (code, out, err) = agon(&sample, &["--export", "pgn", "--output", file.to_str().unwrap()]);
    assert_eq!((code, out.as_str(), err), (0, "", format!("6 games in {}\n", file.display())));
    assert_eq!(fs::read_to_string(&file).unwrap(), pgn);
    let (code, out, err) = agon(&sample, &["--export", "pgn", "--output", "-"]);
    assert_eq!((code, out, err.as_str()), (0, pgn.clone(), ""), "- is standard output");

    // Another run uses the first twenty plies of every game as openings.
    let book = Folder::new();
    book.write("games.pgn", &pgn);
    let spec = vary(&CHESS).set("openings", "{ file = \"games.pgn\", plies = 20 }");
    let (spec, data) = (book.write("spec.toml", &*spec), book.path("data"));
    binary::json(&["run", &spec, "--json", "--data", &data]);
    let document = binary::json(&["games", "--json", "--data", &data]);
    let used: Vec<&str> =
        document["games"].as_array().unwrap().iter().map(|game| game["opening"].as_str().unwrap()).collect();
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
fn exports_sgf_pdn_and_text() {
    let go = SampleDataset::play(&one_bout("go:size=5"));
    let sgf = answer(&go, &["--export", "sgf"]);
    assert_eq!(sgf.matches("(;FF[4]GM[1]").count(), 2);
    assert!(sgf.contains("SZ[5]KM[7.5]") && sgf.contains("C[book]") && sgf.contains("simulations"), "{sgf}");
    let checkers = SampleDataset::play(&one_bout("checkers"));
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
fn move_after_time_forfeit_is_not_played() {
    let mut sample = SampleDataset::play(TOURNAMENT);
    let rows = sample.bout(0);
    let last = rows.moves.iter().rfind(|row| row.game == 0).unwrap().mv.clone();
    rows.games[0].ending = "time forfeit".to_string();
    sample.write();
    let document = games_json(&sample, &["--show", "0.0", "--json"]);
    let moves = document["moves"].as_array().unwrap();
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
fn closed_pipe_ends_export_quietly() {
    let sample = SampleDataset::play(&CHESS);
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
fn missing_moves_are_an_error() {
    let mut sample = SampleDataset::play(&CHESS);
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
    assert!(err.starts_with("error: bout 0, game 0 cannot be played: ") && err.contains("e9e9"), "{err}");
}

#[test]
fn rejects_wrong_calls_with_a_remedy() {
    let sample = SampleDataset::play(TOURNAMENT);
    for (arguments, message) in [
        (&["nothing"][..], "there is no run `nothing`; there is only small-"),
        (&["--player", "deeq"], "the run has no player `deeq`: did you mean `deep`? it has: deep, wide"),
        (&["--winner", "nobody"], "the run has no player `nobody`; it has: deep, wide"),
        (&["--result", "win"], "--player"),
        (
            &["--bout", "9-3"],
            "`9-3` is not a range of bouts; write a number as in 12, or a range as in 10-19",
        ),
        (&["--min-plies", "9", "--max-plies", "3"], "--min-plies 9 is larger than --max-plies 3"),
        (&["--limit", "0"], "the number of games is a whole number from 1"),
        (&["--show", "1"], "`1` is not a game; write its bout and its number, as in 12.1"),
        (&["--show", "1.7"], "bout 1, game 7 is not in the dataset of small-"),
        (&["--show", "99.0"], "bout 99, game 0 is not in the dataset of small-"),
        (&["--show", "1.1", "--plies", "900"], "the game has no ply 900; its last is "),
        (&["--show", "1.1", "--plies", "x"], "`x` is not a range of plies; "),
        (&["--show", "1.1", "--winner", "deep"], "cannot be used with"),
        (&["--plies", "1"], "--show"),
        (&["--export", "pgn"], "connect-four is not written as pgn; it has: text"),
        (&["--export", "png"], "there is no format `png`; connect-four has: text"),
        (&["--export", "text", "--json"], "cannot be used with"),
        (&["--output", "x"], "--export"),
    ] {
        let (code, out, err) = agon(&sample, arguments);
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}: {err}");
        assert!(err.starts_with("error: ") && err.contains(message), "{err}");
    }
    let file = sample.folder().join("none.pgn");
    let (code, ..) = agon(&sample, &["--export", "pgn", "--output", file.to_str().unwrap()]);
    assert_eq!((code, file.exists()), (2, false));
}
