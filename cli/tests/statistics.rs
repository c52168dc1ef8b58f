//! The statistical commands: published values, degenerate input, exit codes.

#![allow(clippy::unwrap_used, reason = "a failing test panics")]

use std::process::{Command, Stdio};
use std::time::Duration;

use agon_testing::binary::{agon, agon_in_terminal, agon_with_input, assert_refused, json};
use agon_testing::folder::Folder;
use agon_testing::processes::Cluster;
use serde_json::Value;

#[track_caller]
fn near(got: &Value, expected: f64, tolerance: f64) {
    let number = got.as_f64().unwrap();
    assert!((number - expected).abs() <= tolerance, "{number} is not {expected}");
}

fn rated(table: &str, arguments: &[&str]) -> Value {
    let call = [&["ratings", "--csv", "-", "--json"], arguments].concat();
    let answer = agon_with_input(&call, table.as_bytes());
    assert_eq!(answer.code, 0, "{}", answer.err);
    serde_json::from_str(&answer.out).unwrap()
}

fn player<'a>(document: &'a Value, name: &str) -> &'a Value {
    document["players"].as_array().unwrap().iter().find(|player| player["name"] == name).unwrap()
}

fn pgn(white: &str, black: &str, result: &str, games: usize) -> String {
    format!("[White \"{white}\"]\n[Black \"{black}\"]\n[Result \"{result}\"]\n\n1. e4 e5 {result}\n\n")
        .repeat(games)
}

/// Outputs of fishtest and fastchess.
#[test]
fn sprt_matches_published_ratios() {
    for (pairs, bounds, model, llr, verdict) in [
        ("365,16618,36229,16974,390", "0,2", "normalised", 2.2504, "continue"),
        ("127,4883,10712,5150,104", "-1.75,0.25", "normalised", 3.0102, "H1"),
        ("223,9863,21279,10037,246", "0.5,2.5", "logistic", -3.0741, "H0"),
        ("379,10170,21828,10640,343", "0,2", "normalised", 2.9455, "H1"),
        ("13,37,50,25,3", "0,4", "normalised", -0.5491, "continue"),
    ] {
        let bounds = format!("--bounds={bounds}");
        let test = json(&["sprt", "--pairs", pairs, &bounds, "--model", model, "--json"]);
        near(&test["llr"], llr, 6e-5);
        assert_eq!(test["verdict"], verdict);
        near(&test["upper"], 2.94444, 5e-6);
    }
    let test = json(&["sprt", "--pairs", "34,54,63,64,75", "--bounds=0,2", "--json"]);
    for (field, expected) in [("elo", 55.58), ("nelo", 57.94)] {
        near(&test[field], expected, 0.006);
    }
    // The published errors are those of a normal distribution.
    for (field, expected) in [("elo_error", 27.65), ("nelo_error", 28.28)] {
        near(&test[field], expected, 0.01 * expected);
    }
}

#[test]
fn sprt_has_the_documented_fields() {
    let fields = [
        "pairs",
        "model",
        "bounds",
        "alpha",
        "beta",
        "llr",
        "lower",
        "upper",
        "verdict",
        "elo",
        "elo_error",
        "low",
        "high",
        "nelo",
        "nelo_error",
        "los",
    ];
    let of_pairs = json(&["sprt", "--pairs", "1,2,3,4,5", "--bounds=0,5", "--json"]);
    let mut keys: Vec<&str> = of_pairs.as_object().unwrap().keys().map(String::as_str).collect();
    let mut expected = fields.to_vec();
    keys.sort_unstable();
    expected.sort_unstable();
    assert_eq!(keys, expected);
    assert_eq!(of_pairs["pairs"], serde_json::json!([1, 2, 3, 4, 5]));
    let of_games = json(&["sprt", "--wdl", "60,30,10", "--bounds=0,5", "--model", "logistic", "--json"]);
    assert!(of_games["pairs"].is_null());
    assert_eq!(of_games["wdl"], serde_json::json!([60, 30, 10]));
}

/// 60 wins, 30 draws and 10 losses give the same difference in every command and input format.
#[test]
fn commands_agree_on_a_score() {
    near(&json(&["elo", "--score", "0.75", "--json"])["elo"], 190.85, 0.002);
    near(&json(&["elo", "--wdl", "60,30,10", "--json"])["elo"], 190.85, 0.002);
    near(&json(&["sprt", "--wdl", "60,30,10", "--bounds=0,5", "--json"])["elo"], 190.85, 0.002);
    near(&json(&["elo", "--difference", "190.85", "--json"])["score"], 0.75, 1e-5);
    let table = rated("a,b,60,30,10\n", &["--anchor", "b"]);
    near(&player(&table, "a")["elo"], 190.85, 0.002);
    let folder = Folder::new();
    let games = [pgn("a", "b", "1-0", 60), pgn("a", "b", "1/2-1/2", 30), pgn("a", "b", "0-1", 10)].concat();
    let file = folder.write("three-quarters.pgn", games);
    let table = json(&["ratings", "--pgn", &file, "--anchor", "b", "--json"]);
    near(&player(&table, "a")["elo"], 190.85, 0.002);
    let words = agon(&["elo", "--wdl", "60,30,10"]).out;
    assert!(words.contains("Elo    +190.85 +- 6"), "{words}");
}

/// Every command shows the same difference, interval and likelihood of superiority, for tiny and lopsided results too,
/// and none of them contradicts another.
#[test]
fn commands_agree_on_certainty() {
    for counts in ["1,1,0", "4,0,0", "115,0,5", "0,3,9", "7,0,1", "60,30,10"] {
        let elo = json(&["elo", "--wdl", counts, "--json"]);
        let sprt = json(&["sprt", "--wdl", counts, "--bounds=0,5", "--json"]);
        let table = rated(&format!("a,b,{counts}\n"), &["--anchor", "b", "--los"]);
        let a = player(&table, "a");
        let rank = a["rank"].as_u64().unwrap() as usize;
        for field in ["elo", "low", "high", "los"] {
            assert_eq!(elo[field], sprt[field], "{counts} {field}");
            let rated = if field == "los" { &table["los"][rank - 1][2 - rank] } else { &a[field] };
            assert_eq!(rated.is_null(), elo[field].is_null(), "{counts} {field}");
            if !rated.is_null() {
                near(rated, elo[field].as_f64().unwrap(), 1e-4);
            }
        }
        let (value, los) = (elo["elo"].as_f64().unwrap(), elo["los"].as_f64().unwrap());
        assert_eq!(los >= 0.975, elo["low"].as_f64().is_some_and(|low| low >= 0.0), "{counts}");
        assert!(value * (los - 0.5) >= 0.0 && value.abs() < 1200.0, "{counts}");
        assert_eq!(player(&table, "a")["rank"] == 1, value > 0.0, "{counts}: the winner is first");
    }
    let one_and_a_half = json(&["elo", "--pairs", "0,0,0,1,0", "--json"]);
    assert!(one_and_a_half["los"].as_f64().unwrap() < 0.8, "one bout proves nothing");
    let words = agon(&["elo", "--wdl", "4,0,0"]).out.replace('\n', " ");
    assert!(
        words.contains("The games are too few: even if one player won all, the other might be stronger."),
        "{words}"
    );
    // A seat that never lost neither diverges nor drags the ratings along.
    let seats = rated("a,b,5,0,0\nb,a,2,0,3\n", &[]);
    near(&player(&seats, "a")["elo"], 240.82, 0.01);
    assert!(seats["seat_advantage"].as_f64().unwrap().abs() < 500.0);
}

/// Two players of whom the first wins all four games.
const SWEEP: &str = r#"
name = "sweep"
game = "othello"
seed = 3
openings = { random_plies = 2 }
[tournament]
format = "round-robin"
bouts = 2
[[player]]
name = "a"
search = { algorithm = "pvs" }
limit = { nodes = 20000 }
[[player]]
name = "b"
search = { algorithm = "pvs" }
limit = { nodes = 2 }
"#;

/// Every command that shows a clean sweep of two bouts shows the same whole difference, interval, likelihood and verdict.
#[test]
fn commands_agree_on_a_clean_sweep() {
    let folder = Folder::new();
    let (spec, data) = (folder.write("sweep.toml", SWEEP), folder.path("data"));
    let elo = json(&["elo", "--pairs", "0,0,0,0,2", "--json"]);
    let check = |what: &str, row: &Value, los: &Value| {
        for field in ["elo", "low", "high"] {
            assert_eq!(row[field].is_null(), elo[field].is_null(), "{what} {field}: {row}");
            if !row[field].is_null() {
                near(&row[field], elo[field].as_f64().unwrap(), 1e-3);
            }
        }
        near(los, elo["los"].as_f64().unwrap(), 1e-6);
    };
    let verdict = "too few results to call a or b stronger";
    let run = json(&["run", &spec, "--data", &data, "--json"]);
    check("run", &run["standings"][0], &run["los"]);
    assert_eq!((&run["verdict"], &run["standings"][1]["elo"]), (&verdict.into(), &0.0.into()));
    let ratings = json(&["ratings", "--data", &data, "--json"]);
    check("ratings", &ratings["players"][0], &ratings["players"][0]["los_next"]);
    check("ratings", &ratings["difference"], &ratings["difference"]["los"]);
    assert_eq!((&ratings["verdict"], &ratings["anchor"]), (&verdict.into(), &"b".into()));
    let sprt = json(&["sprt", "--data", &data, "--bounds=0,5", "--json"]);
    check("sprt", &sprt, &sprt["los"]);
    let report = json(&["report", "--data", &data, "--json"]);
    check("report", &report["ratings"]["players"][0], &report["ratings"]["los"]);
    assert_eq!(report["ratings"]["verdict"], verdict);

    let mut cluster = Cluster::new(Duration::from_secs(60)).with_data(data.as_ref());
    cluster.restart();
    let watch = cluster.json(&["watch", "--once"]);
    check("watch", &watch["standings"][0], &watch["los"]);
    let names = "too few results to call a or b stronger";
    assert!(agon(&["sprt", "--data", &data, "--bounds=0,5"]).out.contains(names), "players are named");
    let texts = [
        agon(&["run", &spec, "--quiet", "--data", &folder.path("again")]).out,
        cluster.agon(&["watch", "--once"]).out,
        agon(&["ratings", "--data", &data]).out,
        agon(&["sprt", "--data", &data, "--bounds=0,5"]).out,
        agon(&["elo", "--pairs", "0,0,0,0,2"]).out,
    ];
    for text in texts {
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
        assert!(words.contains("75.3 %") && words.contains("too few results to call"), "{text}");
        assert!(words.contains("the bouts are too few: even if one player won all"), "{text}");
        assert!(!words.contains("a is stronger"), "{text}");
    }
}

#[test]
fn pools_of_more_players_have_a_verdict() {
    let few = rated("a,b,3,1,1\nb,c,2,1,2\na,c,2,0,1\n", &[]);
    let sentence = few["verdict"].as_str().unwrap();
    assert!(
        sentence.contains("the strongest of 3 players") || sentence.contains("may be as strong"),
        "{few}"
    );
    let table = "a,b,300,0,100\nb,c,220,0,180\na,c,300,0,100\n";
    assert_eq!(rated(table, &[])["verdict"], "a is the strongest of 3 players");
    let text = agon_with_input(&["ratings", "--csv", "-"], table.as_bytes()).out;
    assert!(text.contains("verdict       a is the strongest of 3 players (LOS > 99.9 %)\n"), "{text}");
}

#[test]
fn elo_conversion_splits_draws() {
    let split = json(&["elo", "--score", "0.76", "--draw-rate", "0.3", "--json"]);
    near(&split["draw"], 0.23845, 5e-6);
    near(&split["win"], 0.64078, 5e-6);
    near(&split["loss"], 0.12078, 5e-6);
    assert_eq!(agon(&["elo", "--score", "1"]).out, "Elo    > 1199.8\nscore  100.00 %\n");
    assert_eq!(agon(&["elo", "--difference", "0"]).out, "Elo    0.00\nscore  50.00 %\n");
}

#[test]
fn rejects_wrong_calls() {
    let pairs = "pairs are five whole numbers from 0 to 1000000000000";
    for counts in ["1,2,3", "-1,2,3,4,5", "1,2,3,4,NaN", "1,2,3,4,1e3", "1,2,3,4,99999999999999999999", ""] {
        assert_refused(&["sprt", "--pairs", counts, "--bounds=0,2"], pairs);
    }
    assert_refused(&["elo", "--wdl", "60,30,-10"], "games are three whole numbers");
    let test = |bounds: &'static str| ["sprt", "--wdl", "6,3,1", "--bounds", bounds];
    assert_refused(&test("2,0"), "the bounds 2 and 0 are reversed: the smaller comes first");
    assert_refused(&test("2,2"), "both bounds are 2");
    assert_refused(&test("nan,2"), "the bound NaN is not a number between -200 and 200");
    assert_refused(&test("0,1e9"), "the bound 1000000000 is not a number");
    assert_refused(&test("0"), "bounds are two numbers, the smaller first");
    assert_refused(&["sprt", "--wdl", "6,3,1"], "give the differences to test");
    assert_refused(
        &["sprt", "--wdl", "6,3,1", "--bounds=0,2", "--alpha", "0.7"],
        "alpha is 0.7; an error rate lies between",
    );
    assert_refused(
        &["sprt", "--wdl", "6,3,1", "--bounds=0,2", "--beta", "NaN"],
        "beta is a number from 0 to 1",
    );
    assert_refused(&["elo", "--score", "1.5"], "the score is a number from 0 to 1");
    assert_refused(&["elo", "--difference", "inf"], "the difference is a number from -10000 to 10000");
    assert_refused(&["elo"], "give one of --score 0.75");
    assert_refused(&["elo", "--score", "0.5", "--difference", "3"], "give one of --score 0.75");
    let nowhere = agon(&["ratings", "--data", "/nonexistent"]);
    assert_eq!((nowhere.code, nowhere.out.as_str()), (1, ""), "there is merely nothing yet");
    assert!(
        nowhere.err.contains("there is no folder /nonexistent; make it with a first run"),
        "{}",
        nowhere.err
    );
    assert_refused(&["ratings", "latest", "--pgn", "-"], "cannot be used with");
    assert_refused(
        &["ratings", "--pgn", "/nonexistent/a.pgn"],
        "cannot read /nonexistent/a.pgn: No such file",
    );
    assert_refused(&["ratings", "--pgn", "/"], "cannot read /: Is a directory");
    assert_refused(&["ratings", "--pgn", "-"], "there is nothing to rate: no games were found");
    assert_refused(&["ratings", "--replicas", "-3"], "the number of replicas is a whole number");
    assert_refused(&["ratings", "--csv", "-", "--replicas", "3"], "cannot be used with");
}

#[test]
fn rejects_unratable_input() {
    let wrong = |table: &str, arguments: &[&str], message: &str| {
        let folder = Folder::new();
        let file = folder.write("wrong.csv", table);
        assert_refused(&[&["ratings", "--csv", &file], arguments].concat(), message);
    };
    wrong("", &[], "there is nothing to rate: no games were found");
    wrong("a,b,-1,0,0\n", &[], "csv:1: wins is `-1`; it is a whole number");
    wrong("a,b,1,0,nan\n", &[], "csv:1: losses is `nan`");
    wrong("a,a,1,0,0\n", &[], "csv:1: `a` is on both sides");
    wrong("a,b,1,0,0\n", &["--min-games", "5"], "there is nothing to rate: no player has 5 games");
    wrong("a,b,1,0,3\n", &["--anchor", "z"], "the anchor `z` is not among the players: a, b");
    wrong("a,b,1,0,3\n", &["--prior", "-1"], "the prior is a number from 0 to 1000000");
    let folder = Folder::new();
    let file = folder.write("twice.pgn", pgn("a", "b", "1-0", 2));
    assert_refused(&["ratings", "--pgn", &file, &file], "is given twice; its games would count twice");
    let alone = folder.write("alone.pgn", pgn("a", "a", "1-0", 2));
    let answer = agon(&["ratings", "--pgn", &alone]);
    assert_eq!((answer.code, answer.out.as_str()), (2, ""));
    assert!(answer.err.contains(":1: game skipped: `a` is on both sides"), "{}", answer.err);
    assert!(
        answer.err.ends_with("error: there is nothing to rate: 2 games are malformed and 0 unfinished\n")
    );
}

/// All pools get finite ratings, in text of at most 80 columns and in JSON.
#[test]
fn degenerate_pools_have_finite_ratings() {
    let folder = Folder::new();
    let results = folder.path("results.csv");
    let mut many = String::new();
    for player in 0..30 {
        many.push_str(&format!(
            "somebody with a long name {player},someone else {},{player},7,3\n",
            player % 7
        ));
    }
    for table in [
        "a,b,0,10,0\n",
        "a,b,10,0,0\n",
        "a,b,1,0,0\n",
        "a,b,3,3,3\nc,d,1,0,0\n",
        "a,b,5,0,0\nb,c,5,0,0\nc,d,5,0,0\n",
        "a,b,5,0,0\nb,c,5,0,0\nc,a,5,0,0\n",
        "a,b,1000000000000,0,1\n",
        "a,b,1000000000000,1000000000000,1000000000000\nb,c,1,0,1\n",
        "a,b,0,0,0\nc,d,1,1,1\n",
        many.as_str(),
    ] {
        let all = ["--los", "--crosstable", "--residuals"];
        folder.write("results.csv", table);
        let shown = agon_in_terminal(80, &[&["ratings", "--csv", &results][..], &all].concat());
        assert!(shown.lines().count() > 3, "{shown}");
        for line in shown.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        for arguments in [vec![], vec!["--prior", "1"], vec!["--no-seat-advantage"]] {
            let call = [&["ratings", "--csv", "-"][..], &all, &arguments].concat();
            let answer = agon_with_input(&call, table.as_bytes());
            assert_eq!((answer.code, answer.err.as_str()), (0, ""), "{table} {arguments:?}");
            for line in answer.out.lines() {
                assert!(!line.ends_with(' ') && !line.contains("NaN") && !line.contains("inf"), "{line}");
            }
            for player in rated(table, &arguments)["players"].as_array().unwrap() {
                assert!(player["elo"].as_f64().unwrap().abs() < 20_000.0, "{player}");
                let ends = [&player["low"], &player["high"]].map(Value::is_number);
                // The second of two players is the zero of the scale.
                if ends[0] && player["low"] == player["high"] {
                    assert_eq!(player["elo"], 0.0, "{table} {player}");
                    continue;
                }
                match player["bound"].as_str() {
                    // Too few games have no intervals.
                    None => assert!(
                        ends[0] == ends[1] || player["elo"].as_f64().unwrap().abs() > 599.0,
                        "{table} {player}"
                    ),
                    Some("at_least") => assert!(!ends[1], "{table} {player}"),
                    Some(_) => assert!(!ends[0], "{table} {player}"),
                }
            }
        }
    }
    for counts in ["0,0,0", "7,0,0", "0,7,0", "0,0,7", "1000000000000,1000000000000,1000000000000"] {
        for call in [&["elo", "--wdl", counts][..], &["sprt", "--wdl", counts, "--bounds=0,5"]] {
            let answer = agon(call);
            assert_eq!((answer.code, answer.err.as_str()), (0, ""), "{call:?}");
            assert!(!answer.out.contains("NaN") && !answer.out.contains("inf"), "{}", answer.out);
        }
    }
}

#[test]
fn ratings_have_the_documented_fields() {
    let table = rated("a,b,60,30,10\nb,a,20,30,50\nc,a,9,0,0\n", &["--los", "--crosstable", "--residuals"]);
    for field in ["run", "complete", "players", "seat_advantage", "draw_rate", "components"] {
        assert!(table.get(field).is_some(), "{field}");
    }
    assert!(table["run"].is_null());
    assert_eq!(
        (&table["complete"], &table["unit"], &table["games"]),
        (&true.into(), &"game".into(), &209.into())
    );
    assert_eq!(table["components"], serde_json::json!([["c", "a", "b"]]));
    for field in [
        "rank", "name", "elo", "low", "high", "bound", "games", "wins", "draws", "losses", "score",
        "los_next",
    ] {
        assert!(player(&table, "a").get(field).is_some(), "{field}");
    }
    assert_eq!(player(&table, "c")["bound"], "at_least");
    assert_eq!(table["crosstable"][1][2], serde_json::json!({ "wins": 110, "draws": 60, "losses": 30 }));
    assert!(table["los"][1][2].as_f64().unwrap() > 0.99);
    assert_eq!(table["residuals"][0]["games"], 200);
}

#[test]
fn ratings_print_readable_text() {
    let table =
        "Anna,Bert,6,3,1\nBert,Clara,5,0,5\nClara,Anna,2,4,4\nAnna,Clara,5,4,1\nDora,Anna,4,0,0\nx,y,1,0,1\n";
    let answer = agon_with_input(&["ratings", "--csv", "-", "--average", "1500"], table.as_bytes());
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    let lines: Vec<&str> = answer.out.lines().collect();
    assert_eq!(lines[0], "No results connect these 2 groups of players. Each group is rated separately:");
    assert_eq!(lines[1], "ratings of different groups are not comparable.");
    assert_eq!(lines[3], "group 1");
    assert!(lines[4].starts_with("#  player") && lines[4].ends_with("LOS"), "{}", lines[4]);
    assert!(
        lines[5].starts_with("1  Dora    ") && lines[5].contains("  4   4   0   0  100.0 %"),
        "{}",
        lines[5]
    );
    assert!(lines[6].starts_with("2  Anna    ") && lines[6].contains("  15"), "{}", lines[6]);
    assert!(
        answer.out.contains("A player who won or lost everything has an estimate, but no bound on one side.")
    );
    assert!(answer.out.contains("scale         the mean rating is 1500"));
}

#[test]
fn ratings_use_the_requested_scale() {
    let table = "a,b,60,30,10\nb,a,20,30,50\nb=1,a,1,2,3\n";
    let elo =
        |arguments: &[&str], name: &str| player(&rated(table, arguments), name)["elo"].as_f64().unwrap();
    let gap = elo(&[], "a") - elo(&[], "b");
    let same = |got: f64, expected: f64| assert!((got - expected).abs() < 1e-6, "{got} is not {expected}");
    same(elo(&[], "a") + elo(&[], "b") + elo(&[], "b=1"), 0.0);
    same(elo(&["--average", "2300"], "a") - elo(&[], "a"), 2300.0);
    same(elo(&["--anchor", "b"], "a"), gap);
    same(elo(&["--anchor", "b=2000"], "a"), 2000.0 + gap);
    // A player's name may contain an equals sign; existing names take precedence.
    same(elo(&["--anchor", "b=1"], "b=1"), 0.0);
    same(elo(&["--anchor", "b=1=-50.5"], "b=1"), -50.5);
}

#[test]
fn ratings_are_independent_of_source_and_threads() {
    let folder = Folder::new();
    let one = folder.write("one.pgn", [pgn("a", "b", "1-0", 30), pgn("b", "c", "1/2-1/2", 20)].concat());
    let two = folder.write("two.pgn", [pgn("c", "a", "0-1", 10), pgn("b", "a", "1-0", 15)].concat());
    let rest = folder.write("rest.csv", "b,c,5,0,9\nc,a,7,0,0\n");
    let files = |order: [&str; 2], threads: &str| {
        let sources = ["--pgn", order[0], order[1], "--csv", &rest];
        json(&[&["ratings", "--json", "--threads", threads][..], &sources].concat())
    };
    let first = files([&one, &two], "1");
    assert_eq!(first, files([&two, &one], "3"));
    assert_eq!(first, rated("a,b,30,0,0\nb,a,15,0,0\nb,c,5,20,9\nc,a,7,0,10\n", &[]));
}

#[test]
fn reports_malformed_games() {
    let bad = "[White \"a\"]\n[Result \"1-0\"]\n\n1-0\n\n".repeat(12);
    let text = [bad, pgn("a", "b", "1-0", 3), pgn("a", "b", "*", 2), pgn("b", "a", "1-0", 2)].concat();
    let answer = agon_with_input(&["ratings", "--pgn", "-", "--json"], text.as_bytes());
    assert_eq!(answer.code, 0);
    let lines: Vec<&str> = answer.err.lines().collect();
    assert_eq!(lines.len(), 11);
    assert_eq!(lines[1], "standard input:6: game skipped: the tag Black has no name");
    assert_eq!(lines[10], "and 2 more malformed games");
    let table: Value = serde_json::from_str(&answer.out).unwrap();
    assert_eq!(table["games"], 5);
    assert_eq!(table["skipped"], serde_json::json!({ "unfinished": 2, "malformed": 12, "players": 0 }));
    let words = agon_with_input(&["ratings", "--pgn", "-"], text.as_bytes()).out;
    assert!(words.contains("left out      12 malformed games, 2 unfinished games"), "{words}");
}

#[test]
fn closed_pipe_is_not_an_error() {
    let mut table = String::new();
    for player in 0..150 {
        table.push_str(&format!("a{player},b,3,2,1\n"));
    }
    let folder = Folder::new();
    let file = folder.write("pipe.csv", table);
    let mut child = Command::new(env!("CARGO_BIN_EXE_agon"))
        .args(["ratings", "--los", "--crosstable", "--csv", &file])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    assert_eq!(output.status.code(), Some(0));
}
