//! What is asked of a dataset as a person or a program meets it: `agon verify`, `replay`, `ratings`, `crosstable`, `sprt`,
//! `compare`, `pruning` and `report`, their answers, refusals and exit codes.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use agon_testing::sample;

mod refusals;
mod report;

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use sample::{PROBE, SampleDataset, TOURNAMENT};

/// The exit code, and what was printed to standard output and to standard error, without the name of the latest run.
fn agon(sample: &SampleDataset, arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_agon"))
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

fn json_of(sample: &SampleDataset, arguments: &[&str]) -> (i32, Value) {
    let (code, out, _) = agon(sample, arguments);
    (code, serde_json::from_str(&out).unwrap())
}

#[test]
fn verify_says_yes_or_no() {
    let mut sample = SampleDataset::play(TOURNAMENT);
    let (code, out, _) = agon(&sample, &["verify"]);
    assert_eq!(code, 0, "{out}");
    assert!(out.contains("problems") && out.contains(&sample.id), "{out}");
    let (code, told) = json_of(&sample, &["verify", "--all", "--json"]);
    assert_eq!((code, &told["ok"], &told["runs"][0]["bouts"]), (0, &json!(true), &json!(3)));

    sample.bout(1).moves[3].mv = "z".to_string();
    sample.write();
    let line =
        format!("{}: {}: bout 1: game 0: ply 3: `z` is not legal\n", sample.id, sample.name("moves", 0));
    let (code, out, _) = agon(&sample, &["verify", "small"]);
    assert_eq!(code, 1);
    assert!(out.ends_with(&line), "{out}");
    let (code, told) = json_of(&sample, &["verify", "--json"]);
    assert_eq!((code, &told["ok"]), (1, &json!(false)));
    let problem = json!({
        "file": sample.name("moves", 0), "bout": 1, "game": 0, "reason": "ply 3: `z` is not legal",
    });
    assert_eq!(told["runs"][0]["problems"], json!([problem]));
}

#[test]
fn replay_says_yes_or_no() {
    let mut sample = SampleDataset::play(TOURNAMENT);
    let (code, out, _) = agon(&sample, &["replay"]);
    assert_eq!(code, 0, "{out}");
    assert!(out.contains(": 6 of 6 games and "), "{out}");
    let (code, told) = json_of(&sample, &["replay", "latest", "1.1", "--json"]);
    assert_eq!((code, &told["identical_games"], &told["difference"]), (0, &json!(1), &Value::Null));

    let leaves = sample.search(1, 0).counters.leaves;
    sample.search(1, 0).counters.leaves += 1;
    sample.write();
    let (code, out, _) = agon(&sample, &["replay", "latest", "1"]);
    assert_eq!(code, 1);
    let said = format!(
        "first difference: bout 1, game 0, ply 3: `leaves`\n  recorded {}\n  replayed {leaves}\n",
        leaves + 1
    );
    assert!(out.contains(": 1 of 2 games and ") && out.ends_with(&said), "{out}");
}

#[test]
fn pruning_answers_in_words_and_numbers() {
    let sample = SampleDataset::play(PROBE);
    let (code, out, _) = agon(&sample, &["pruning"]);
    assert_eq!(code, 0, "{out}");
    assert!(
        out.starts_with("pruned needs 0.") && out.contains(" times the nodes of plain to depth 3 ("),
        "{out}"
    );
    assert!(out.contains("measured: plain searched the same positions"), "{out}");
    let (_, out, _) = agon(&sample, &["pruning", "probe", "--by-depth", "--replicas", "0"]);
    assert_eq!(out.lines().filter(|line| line.starts_with("plain ")).count(), 2 + 3 + 3, "{out}");
    assert!(!out.contains("NaN") && !out.contains("inf"), "{out}");
    let (code, told) = json_of(&sample, &["pruning", "--json"]);
    assert_eq!((code, &told["complete"], &told["players"][0]["player"]), (0, &json!(true), &json!("plain")));
    assert_eq!(told["players"][0]["vs_minimax"], json!({"value": 1.0, "low": 1.0, "high": 1.0}));
    let ratio = &told["ratios"][2];
    assert_eq!(
        (&ratio["a"], &ratio["b"], &ratio["depth"], &ratio["positions"]),
        (&json!("plain"), &json!("pruned"), &json!(3), &json!(3))
    );
    assert!(ratio["ratio"].as_f64().unwrap() > 1.0 && ratio["low"].is_f64() && ratio["high"].is_f64());
    assert_eq!(told["by_depth"].as_array().unwrap().len(), 6);
    // The same bytes whoever reads.
    let bytes = |threads| agon(&sample, &["pruning", "--json", "--threads", threads]).1;
    assert_eq!(bytes("1"), bytes("4"));
}

#[test]
fn pruning_says_what_it_cannot_say() {
    let mut sample = SampleDataset::play(TOURNAMENT);
    let (code, told) = json_of(&sample, &["pruning", "--json"]);
    assert_eq!(code, 0);
    let uct = &told["players"][1];
    assert_eq!(
        (&uct["mean_depth"], &uct["ebf"], &uct["vs_minimal"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    assert!(uct["sps"]["value"].as_f64().unwrap() > 0.0);
    assert_eq!(told["players"][0]["vs_minimax"], Value::Null);
    let (_, out, _) = agon(&sample, &["pruning"]);
    assert!(out.starts_with("deep searches with an effective branching factor of "), "{out}");
    assert!(
        out.contains("simulations a second by wide") && out.contains("no two players search the same"),
        "{out}"
    );

    sample.manifest["state"] = json!("running");
    sample.manifest["committed"] = json!(2);
    sample.write_run();
    let (code, out, _) = agon(&sample, &["pruning"]);
    assert!(code == 0 && out.contains("The run goes on: 2 of its 3 bouts were done"), "{out}");
    sample.bouts.clear();
    sample.write();
    let (code, out, _) = agon(&sample, &["pruning"]);
    assert!(code == 0 && out.contains("has no searches in its dataset yet."), "{out}");

    let sample = SampleDataset::play(TOURNAMENT);
    std::fs::write(sample.file("moves", 2), "no part").unwrap();
    let (code, out, err) = agon(&sample, &["pruning"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(
        err.contains("part-0000000002-0000000003.parquet: this is no part of a dataset of agon"),
        "{err}"
    );
}

#[test]
fn wrong_calls_are_refused_with_a_remedy() {
    let sample = SampleDataset::play(TOURNAMENT);
    for (arguments, sentence) in [
        (&["verify", "nothing"][..], "there is no run `nothing`; there is only small-"),
        (&["verify", "small", "--all"], "cannot be used with"),
        (&["pruning", "nothing"], "there is no run `nothing`; there is only small-"),
        (&["pruning", "--replicas", "-1"], "the number of replicas is a whole number from 0 to 100000"),
        (
            &["replay", "latest", "x"],
            "`x` is no bout; write its number as in 12, or one game of it as in 12.1",
        ),
        (&["replay", "latest", "99"], "bout 99 is not in the dataset of the run"),
        (&["replay", "latest", "1", "--games", "3"], "cannot be used with"),
    ] {
        let (code, out, err) = agon(&sample, arguments);
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}: {err}");
        assert!(err.starts_with("error: ") && err.contains(sentence), "{err}");
    }
}

// ------------------------------------------------------------------------------------------------------ results

/// Twenty bouts of two players.
fn duel() -> SampleDataset {
    SampleDataset::play(&TOURNAMENT.replace("bouts = 3", "bouts = 20"))
}

/// Three players of a game of three seats.
const THREE_SEATS: &str = r#"
name = "three"
game = { name = "virus", seats = 3, size = 5 }
seed = 7
limit = { nodes = 40 }
openings = { random_plies = 3 }
[tournament]
format = "round-robin"
bouts = 8
[[player]]
name = "a"
search = { algorithm = "paranoid" }
[[player]]
name = "b"
search = { algorithm = "max-n" }
[[player]]
name = "c"
search = { algorithm = "greedy" }
"#;

/// Puts the dataset of another sample beside this one's.
fn adopt(sample: &SampleDataset, other: &SampleDataset) {
    fn copy(from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            let target = to.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                copy(&entry.path(), &target);
            } else {
                fs::copy(entry.path(), target).unwrap();
            }
        }
    }
    copy(other.folder(), sample.folder());
}

/// The answer for people: within eighty columns, and no number that is none.
fn words(sample: &SampleDataset, arguments: &[&str]) -> String {
    let (code, out, err) = agon(sample, arguments);
    assert_eq!((code, err.as_str()), (0, ""), "{arguments:?}");
    for line in out.lines() {
        assert!(line.chars().count() <= 80 && !line.ends_with(' '), "{line}");
        assert!(!line.contains("NaN") && !line.split_whitespace().any(|word| word == "inf"), "{line}");
    }
    out
}

fn refused(sample: &SampleDataset, arguments: &[&str], code: i32, sentence: &str) {
    let (found, out, err) = agon(sample, arguments);
    assert_eq!((found, out.as_str()), (code, ""), "{arguments:?}: {err}");
    assert!(err.starts_with("error: ") && err.contains(sentence) && !err.contains("panicked"), "{err}");
}

/// Games won, drawn and lost by a player, from the rows.
fn record(sample: &SampleDataset, name: &str) -> [u64; 3] {
    let mut record = [0; 3];
    for row in sample.bouts.values().flat_map(|rows| &rows.games) {
        let best = row.payoffs.iter().max();
        let shared = row.payoffs.iter().filter(|payoff| Some(*payoff) == best).count();
        for (_, payoff) in row.players.iter().zip(&row.payoffs).filter(|(player, _)| *player == name) {
            record[if Some(payoff) != best { 2 } else { usize::from(shared > 1) }] += 1;
        }
    }
    record
}

#[test]
fn runs_are_rated_by_bouts() {
    for (sample, names, replicas) in
        [(duel(), &["deep", "wide"][..], "100"), (SampleDataset::play(THREE_SEATS), &["a", "b", "c"], "60")]
    {
        let (code, told) =
            json_of(&sample, &["ratings", "--replicas", replicas, "--crosstable", "--los", "--json"]);
        assert_eq!(code, 0);
        assert_eq!(
            (&told["run"], &told["complete"], &told["unit"]),
            (&json!(sample.id), &json!(true), &json!("bout"))
        );
        assert_eq!(told["games"], sample.bouts.values().map(|rows| rows.games.len()).sum::<usize>());
        let players = told["players"].as_array().unwrap();
        assert_eq!(players.len(), names.len());
        for player in players {
            let [wins, draws, losses] = record(&sample, player["name"].as_str().unwrap());
            assert_eq!(
                (&player["wins"], &player["draws"], &player["losses"]),
                (&json!(wins), &json!(draws), &json!(losses))
            );
            assert!(player["elo"].is_number() && player["score"].is_number(), "{player}");
        }
        let (_, again) = json_of(
            &sample,
            &[
                "ratings",
                &sample.id,
                "--replicas",
                replicas,
                "--crosstable",
                "--los",
                "--json",
                "--threads",
                "5",
            ],
        );
        assert_eq!(again, told);
        let out = words(&sample, &["ratings", "--crosstable", "--los", "--residuals"]);
        assert!(out.contains("the unit of evidence is the bout") && out.contains(&sample.id), "{out}");
        let out = words(&sample, &["ratings", "--replicas", "0", "--anchor", names[0]]);
        assert!(out.contains(&format!("the rating of {} is given", names[0])), "{out}");
    }
    let (_, told) = json_of(&SampleDataset::play(THREE_SEATS), &["ratings", "--replicas", "60", "--json"]);
    assert_eq!(told["seat_effects"].as_array().unwrap().len(), 3);
    assert!(told["seat_advantage"].is_null() && told["draw_rate"].is_null(), "{told}");
    refused(
        &SampleDataset::play(THREE_SEATS),
        &["ratings", "--prior", "1"],
        2,
        "a prior is for games of two seats",
    );
}

#[test]
fn runs_of_one_game_are_rated_together() {
    let sample = duel();
    let other = SampleDataset::play(
        &TOURNAMENT
            .replace("\"wide\"", "\"greedy\"")
            .replace("\"uct\"", "\"greedy\"")
            .replace("seed = 7", "seed = 8"),
    );
    adopt(&sample, &other);
    let (_, told) = json_of(&sample, &["ratings", &sample.id, &other.id, "--json"]);
    assert_eq!((&told["run"], told["runs"].as_array().unwrap().len()), (&Value::Null, 2));
    assert_eq!((told["players"].as_array().unwrap().len(), &told["games"]), (3, &json!(46)));
    refused(&sample, &["ratings", &sample.id, &sample.id], 2, "is given twice; its bouts would count twice");
    // The same name, another player.
    let changed = SampleDataset::play(&TOURNAMENT.replace("nodes = 60", "nodes = 61"));
    adopt(&sample, &changed);
    let out = words(&sample, &["ratings", &sample.id, &changed.id]);
    assert!(out.replace('\n', " ").contains("`deep` is not configured in"), "{out}");

    let seats = SampleDataset::play(THREE_SEATS);
    adopt(&sample, &seats);
    refused(
        &sample,
        &["ratings", &sample.id, "three"],
        2,
        "ratings of different games do not compare; --by game",
    );
    let (_, told) =
        json_of(&sample, &["ratings", &sample.id, "three", "--by", "game", "--json", "--replicas", "20"]);
    let games: Vec<&Value> = told["games"].as_array().unwrap().iter().map(|game| &game["run"]).collect();
    assert_eq!(games, [&sample.id, &seats.id]);
}

#[test]
fn unfinished_runs_are_answered_with_what_there_is() {
    let mut sample = duel();
    sample.bouts.retain(|bout, _| *bout < 12);
    sample.manifest["state"] = json!("running");
    sample.manifest["committed"] = json!(13);
    sample.write();
    let (_, told) = json_of(&sample, &["ratings", "--json"]);
    assert_eq!((&told["complete"], &told["runs"][0]["bouts"]), (&json!(false), &json!(12)));
    for call in [&["ratings"][..], &["crosstable"], &["sprt", "--bounds=0,5"]] {
        let out = words(&sample, call);
        assert!(out.contains("unfinished: 12 of 20 bouts"), "{out}");
    }
    assert!(words(&sample, &["games"]).ends_with("The run goes on: more games may come.\n"));
    assert_eq!(json_of(&sample, &["games", "--json"]).1["complete"], json!(false));
    sample.bouts.clear();
    sample.write();
    let sentence = "has nothing in its dataset yet (unfinished: 0 of 20 bouts are in the dataset); bouts reach it in \
                    parts";
    let other = SampleDataset::play(TOURNAMENT);
    adopt(&sample, &other);
    for call in [
        &["ratings", &sample.id][..],
        &["crosstable", &sample.id],
        &["compare", &sample.id, &other.id],
        &["report", &sample.id],
    ] {
        refused(&sample, call, 2, sentence);
    }
    assert!(words(&sample, &["sprt", &sample.id, "--bounds=0,5"]).contains("none yet: nothing can be said"));
}

#[test]
fn crosstables_have_games_and_pairs() {
    let sample = duel();
    let (code, told) = json_of(&sample, &["crosstable", "--json"]);
    assert_eq!((code, &told["run"], &told["complete"]), (0, &json!(sample.id), &json!(true)));
    let first = told["players"][0].as_str().unwrap();
    let [wins, draws, losses] = record(&sample, first);
    let none = Value::Null;
    assert_eq!(told["crosstable"][0], json!([none, { "wins": wins, "draws": draws, "losses": losses }]));
    let pairs: Vec<u64> = serde_json::from_value(told["pairs"][0][1].clone()).unwrap();
    assert_eq!(pairs.iter().sum::<u64>(), 20);
    assert_eq!(pairs.iter().zip(0..).map(|(count, points)| count * points).sum::<u64>(), 2 * wins + draws);
    let out = words(&sample, &["crosstable"]);
    assert!(out.contains(&format!("{wins}-{draws}-{losses}")) && out.contains("score of the row"), "{out}");
    let out = words(&SampleDataset::play(THREE_SEATS), &["crosstable", "three"]);
    assert!(out.contains("before-level-behind"), "{out}");
}

#[test]
fn tests_of_a_run_fold_over_its_schedule() {
    let sample = duel();
    let (_, told) = json_of(&sample, &["sprt", "--bounds=0,5", "--model", "logistic", "--json"]);
    assert_eq!((&told["run"], &told["players"]), (&json!(sample.id), &json!(["deep", "wide"])));
    assert_eq!((&told["prefix"], &told["deciding_bout"]), (&json!(20), &Value::Null));
    // The pairs are those of the crosstable, and what they say is what they say when they are typed.
    let (_, table) = json_of(&sample, &["crosstable", "--json"]);
    let row = usize::from(table["players"][0] != "deep");
    assert_eq!(told["pairs"], table["pairs"][row][1 - row]);
    let pairs: Vec<String> = told["pairs"].as_array().unwrap().iter().map(ToString::to_string).collect();
    let output = Command::new(env!("CARGO_BIN_EXE_agon"))
        .args(["sprt", "--pairs", &pairs.join(","), "--bounds=0,5", "--model", "logistic", "--json"])
        .output()
        .unwrap();
    let typed: Value = serde_json::from_slice(&output.stdout).unwrap();
    for field in ["llr", "verdict", "elo", "nelo", "los", "lower"] {
        assert_eq!(told[field], typed[field], "{field}");
    }
    refused(&sample, &["sprt"], 2, "say which differences to test, the smaller first, such as --bounds=0,5");

    // A test of its own brings its bounds, and stops at the bout that decides.
    let spec = TOURNAMENT.replace(
        "format = \"round-robin\"\nbouts = 3",
        "format = \"sprt\"\nbounds = [0, 150]\nmax_bouts = 40",
    );
    let sample = SampleDataset::play(&spec);
    let (_, told) = json_of(&sample, &["sprt", "--json"]);
    assert_eq!((&told["bounds"], &told["model"]), (&json!([0.0, 150.0]), &json!("normalised")));
    let decided = told["deciding_bout"].as_u64().expect("forty bouts decide between 0 and 150");
    assert_eq!((told["prefix"].as_u64().unwrap(), told["verdict"] == "continue"), (decided + 1, false));
    let out = words(&sample, &["sprt"]);
    assert!(out.contains(&format!("bout {decided} decided")), "{out}");
    assert!(words(&sample, &["sprt", "--bounds=0,1"]).contains("0 against 1 nElo"));
}

#[test]
fn runs_are_compared_over_common_players() {
    let third = "[[player]]\nname = \"greedy\"\nsearch = { algorithm = \"greedy\" }\n";
    let text = TOURNAMENT.replace("bouts = 3", "bouts = 10") + third;
    let sample = SampleDataset::play(&text);
    let other =
        SampleDataset::play(&text.replace("seed = 7", "seed = 8").replace("\"uct\"", "\"uct\", c = 0.3"));
    adopt(&sample, &other);
    let (code, told) = json_of(&sample, &["compare", &sample.id, &other.id, "--json"]);
    assert_eq!(code, 0);
    let players = told["players"].as_array().unwrap();
    assert_eq!(players.len(), 3);
    let rated: Vec<&Value> = players.iter().filter(|player| player["change"].is_number()).collect();
    let changes: f64 = rated.iter().map(|player| player["change"].as_f64().unwrap()).sum();
    assert!(rated.len() >= 2 && changes.abs() < 1e-6, "{told}");
    for player in rated {
        let number = |field: &str| player[field].as_f64().unwrap();
        assert!(number("low") < number("change") && number("change") < number("high"), "{player}");
    }
    let differences: Vec<&str> =
        told["differences"].as_array().unwrap().iter().map(|found| found["what"].as_str().unwrap()).collect();
    assert_eq!(differences, ["seed", "c of wide"]);
    assert!(words(&sample, &["compare", &sample.id, &other.id]).contains("c of wide: "));
    // The spec has not changed, but how the program searches has.
    let same = SampleDataset::play(&text);
    let mut again = same.manifest.clone();
    again["run"] = json!(format!("{}-2", same.id));
    again["signature"] = json!("another");
    sample::put(&sample.folder().join(format!("runs/{}-2.json", same.id)), again.to_string().as_bytes());
    for table in ["games", "moves"] {
        let from = sample.folder().join(format!("{table}/run={}", same.id));
        let to = sample.folder().join(format!("{table}/run={}-2", same.id));
        fs::create_dir_all(&to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
    let (_, told) = json_of(&sample, &["compare", &sample.id, &format!("{}-2", sample.id), "--json"]);
    assert!(
        told["players"]
            .as_array()
            .unwrap()
            .iter()
            .all(|player| { player["change"].as_f64().is_none_or(|change| change.abs() < 1e-9) })
    );
    assert_eq!(told["differences"], json!([]));
    // With the same program as well the games are the same.
    again["signature"] = json!("");
    sample::put(&sample.folder().join(format!("runs/{}-2.json", same.id)), again.to_string().as_bytes());
    for command in ["compare", "ratings"] {
        refused(
            &sample,
            &[command, &sample.id, &format!("{}-2", sample.id)],
            2,
            "have the same games: their spec",
        );
    }
    let seats = SampleDataset::play(THREE_SEATS);
    adopt(&sample, &seats);
    refused(&sample, &["compare", &sample.id, "three"], 2, "the runs have fewer than two players in common");
}

/// Two players that play alike share every bout, and nothing tells how sure that is.
#[test]
fn where_nothing_varies_there_is_no_interval() {
    let spec = TOURNAMENT
        .replace("search = { algorithm = \"uct\" }", "search = { algorithm = \"pvs\", table_mb = 0 }");
    let sample = SampleDataset::play(&spec.replace("bouts = 3", "bouts = 6"));
    let (_, told) = json_of(&sample, &["ratings", "--json"]);
    for player in told["players"].as_array().unwrap() {
        assert_eq!((&player["elo"], &player["score"]), (&json!(0.0), &json!(0.5)), "{told}");
        assert_eq!(
            (&player["low"], &player["high"], &player["bound"]),
            (&Value::Null, &Value::Null, &Value::Null)
        );
    }
    for call in [&["ratings"][..], &["ratings", "--replicas", "0"]] {
        let out = words(&sample, call).replace('\n', " ");
        assert!(
            out.contains("does not tell how sure a rating is") || out.contains("Every game was drawn"),
            "{out}"
        );
    }
    let (_, told) = json_of(&sample, &["report", "--json"]);
    let answer = told["answer"].as_str().unwrap();
    assert!(answer.contains("are level") || answer.contains("every game was drawn"), "{answer}");
}

/// Everything that can be wrong with what is asked about.
#[test]
fn bad_input_is_named() {
    let mut sample = duel();
    for call in [
        &["ratings", "nothing"][..],
        &["crosstable", "nothing"],
        &["sprt", "nothing"],
        &["compare", "nothing", "latest"],
    ] {
        refused(&sample, call, 2, "there is no run `nothing`; there is only small-");
    }
    let probe = SampleDataset::play(PROBE);
    for call in [&["ratings"][..], &["crosstable"], &["sprt"]] {
        refused(
            &probe,
            call,
            2,
            &format!("{} is a probe: it has searches and no games; `agon pruning", probe.id),
        );
    }
    refused(
        &SampleDataset::play(THREE_SEATS),
        &["sprt", "--bounds=0,5"],
        2,
        "between two players of a game of two seats",
    );

    // Only draws.
    for row in sample.bouts.values_mut().flat_map(|rows| &mut rows.games) {
        row.payoffs = vec![0, 0];
    }
    sample.write();
    let out = words(&sample, &["ratings"]);
    assert!(out.contains("Every game was drawn"), "{out}");
    words(&sample, &["ratings", "--replicas", "0"]);
    words(&sample, &["crosstable"]);
    let out = words(&sample, &["sprt", "--bounds=0,5"]);
    assert!(out.contains("All bouts scored the same"), "{out}");

    // Pairings that nothing connects.
    let apart = SampleDataset::play(&TOURNAMENT.replace("\"deep\"", "\"x\"").replace("\"wide\"", "\"y\""));
    adopt(&sample, &apart);
    let out = words(&sample, &["ratings", &sample.id, &apart.id]);
    assert!(out.starts_with("No results connect these 2 groups of players."), "{out}");
    refused(&sample, &["ratings", &apart.id, "--min-games", "100"], 2, "nobody has 100 games");

    // A part of a newer program, a damaged one, and one that is missing.
    let file = sample.file("games", 4);
    let bytes = fs::read(&file).unwrap();
    let key = b"agon.schema";
    let place = bytes.windows(key.len()).rposition(|window| window == key).unwrap() + key.len() + 2;
    let mut newer = bytes.clone();
    assert_eq!(newer[place], b'1');
    newer[place] = b'2';
    fs::write(&file, agon_records::sealed(newer).unwrap()).unwrap();
    let named = sample.name("games", 4);
    for call in
        [&["ratings", &sample.id][..], &["crosstable", &sample.id], &["sprt", &sample.id, "--bounds=0,5"]]
    {
        refused(&sample, call, 1, "the file has version 2 of the columns, and this program knows up to 1");
        refused(&sample, call, 1, &named);
    }
    fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    for call in
        [&["ratings", &sample.id][..], &["crosstable", &sample.id], &["sprt", &sample.id, "--bounds=0,5"]]
    {
        refused(&sample, call, 1, &named);
    }
    fs::remove_file(&file).unwrap();
    let test = ["sprt", &sample.id, "--bounds=0,5"];
    for call in [
        &["ratings", &sample.id][..],
        &["crosstable", &sample.id],
        &["compare", &sample.id, &apart.id],
        &test,
    ] {
        refused(
            &sample,
            call,
            1,
            "is not whole: 2 bouts are missing (4-5), and 0 failed; fetch the missing parts",
        );
    }
}
