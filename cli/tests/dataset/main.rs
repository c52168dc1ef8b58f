//! Commands on a dataset: `agon verify`, `replay`, `ratings`, `crosstable`, `sprt`, `compare`, `pruning` and `report`.

#![allow(clippy::unwrap_used, reason = "a failing test panics")]

mod lists;
mod refusals;
mod report;

use std::fs;

use agon_testing::binary::{agon_on as agon, json as agon_json};
use agon_testing::folder::copy_folder;
use agon_testing::sample::{SampleDataset, write_file};
use agon_testing::specs::{PROBE, THREE_SEATS, TOURNAMENT, vary};
use serde_json::{Value, json};

fn json_of(sample: &SampleDataset, arguments: &[&str]) -> (i32, Value) {
    let (code, out, _) = agon(sample, arguments);
    (code, serde_json::from_str(&out).unwrap())
}

#[test]
fn verify_reports_soundness() {
    let mut sample = SampleDataset::play(TOURNAMENT);
    let (code, out, _) = agon(&sample, &["verify"]);
    assert_eq!(code, 0, "{out}");
    assert!(out.contains("problems") && out.contains(&sample.id), "{out}");
    let (code, document) = json_of(&sample, &["verify", "--all", "--json"]);
    assert_eq!((code, &document["ok"], &document["runs"][0]["bouts"]), (0, &json!(true), &json!(3)));

    sample.bout(1).moves[3].mv = "z".to_string();
    sample.write();
    let line =
        format!("{}: {}: bout 1: game 0: ply 3: `z` is not legal\n", sample.id, sample.part_name("moves", 0));
    let (code, out, _) = agon(&sample, &["verify", "small"]);
    assert_eq!(code, 1);
    assert!(out.ends_with(&line), "{out}");
    let (code, document) = json_of(&sample, &["verify", "--json"]);
    assert_eq!((code, &document["ok"]), (1, &json!(false)));
    let problem = json!({
        "file": sample.part_name("moves", 0), "bout": 1, "game": 0, "reason": "ply 3: `z` is not legal",
    });
    assert_eq!(document["runs"][0]["problems"], json!([problem]));
}

#[test]
fn replay_reports_first_difference() {
    let mut sample = SampleDataset::play(TOURNAMENT);
    let (code, out, _) = agon(&sample, &["replay"]);
    assert_eq!(code, 0, "{out}");
    assert!(out.contains(": 6 of 6 games and "), "{out}");
    let (code, document) = json_of(&sample, &["replay", "latest", "1.1", "--json"]);
    assert_eq!((code, &document["identical_games"], &document["difference"]), (0, &json!(1), &Value::Null));

    let leaves = sample.first_search(1, 0).counters.leaves;
    sample.first_search(1, 0).counters.leaves += 1;
    sample.write();
    let (code, out, _) = agon(&sample, &["replay", "latest", "1"]);
    assert_eq!(code, 1);
    let difference = format!(
        "first difference: bout 1, game 0, ply 3: `leaves`\n  recorded {}\n  replayed {leaves}\n",
        leaves + 1
    );
    assert!(out.contains(": 1 of 2 games and ") && out.ends_with(&difference), "{out}");
}

#[test]
fn pruning_prints_text_and_json() {
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
    let (code, document) = json_of(&sample, &["pruning", "--json"]);
    assert_eq!(
        (code, &document["complete"], &document["players"][0]["player"]),
        (0, &json!(true), &json!("plain"))
    );
    assert_eq!(document["players"][0]["vs_minimax"], json!({"value": 1.0, "low": 1.0, "high": 1.0}));
    let ratio = &document["ratios"][2];
    assert_eq!(
        (&ratio["a"], &ratio["b"], &ratio["depth"], &ratio["positions"]),
        (&json!("plain"), &json!("pruned"), &json!(3), &json!(3))
    );
    assert!(ratio["ratio"].as_f64().unwrap() > 1.0 && ratio["low"].is_f64() && ratio["high"].is_f64());
    assert_eq!(document["by_depth"].as_array().unwrap().len(), 6);
    // The number of threads does not change the output.
    let bytes = |threads| agon(&sample, &["pruning", "--json", "--threads", threads]).1;
    assert_eq!(bytes("1"), bytes("4"));
}

#[test]
fn pruning_reports_missing_measures() {
    let mut sample = SampleDataset::play(TOURNAMENT);
    let (code, document) = json_of(&sample, &["pruning", "--json"]);
    assert_eq!(code, 0);
    let uct = &document["players"][1];
    assert_eq!(
        (&uct["mean_depth"], &uct["ebf"], &uct["vs_minimal"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    assert!(uct["sps"]["value"].as_f64().unwrap() > 0.0);
    assert_eq!(document["players"][0]["vs_minimax"], Value::Null);
    let (_, out, _) = agon(&sample, &["pruning"]);
    assert!(out.starts_with("deep searches with an effective branching factor of "), "{out}");
    assert!(
        out.contains("simulations/s by wide")
            && out.contains("the players of a tournament search different positions"),
        "{out}"
    );

    sample.manifest["state"] = json!("running");
    sample.manifest["committed"] = json!(2);
    sample.write_manifest();
    let (code, out, _) = agon(&sample, &["pruning"]);
    assert!(code == 0 && out.contains("The run is not over: 3 of its 3 bouts are in the dataset."), "{out}");

    let sample = SampleDataset::play(TOURNAMENT);
    std::fs::write(sample.part_file("moves", 2), "no part").unwrap();
    let (code, out, err) = agon(&sample, &["pruning"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(
        err.contains("part-0000000002-0000000003.parquet: this is not a part of an agon dataset"),
        "{err}"
    );
}

#[test]
fn rejects_wrong_calls_with_a_remedy() {
    let sample = SampleDataset::play(TOURNAMENT);
    for (arguments, message) in [
        (&["verify", "nothing"][..], "there is no run `nothing`; there is only small-"),
        (&["verify", "small", "--all"], "cannot be used with"),
        (&["pruning", "nothing"], "there is no run `nothing`; there is only small-"),
        (&["pruning", "--replicas", "-1"], "the number of replicas is a whole number from 0 to 100000"),
        (
            &["replay", "latest", "x"],
            "`x` is not a bout; give a bout such as `12`, or one of its games such as `12.1`",
        ),
        (&["replay", "latest", "99"], "bout 99 is not in the dataset of the run"),
        (&["replay", "latest", "1", "--games", "3"], "cannot be used with"),
    ] {
        let (code, out, err) = agon(&sample, arguments);
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}: {err}");
        assert!(err.starts_with("error: ") && err.contains(message), "{err}");
    }
}

/// Twenty bouts of two players.
fn duel() -> SampleDataset {
    SampleDataset::play(&vary(TOURNAMENT).bouts(20))
}

/// Returns the text of a successful call, and checks that it fits into 80 columns and shows only finite numbers.
fn text(sample: &SampleDataset, arguments: &[&str]) -> String {
    let (code, out, err) = agon(sample, arguments);
    assert_eq!((code, err.as_str()), (0, ""), "{arguments:?}");
    for line in out.lines() {
        assert!(line.chars().count() <= 80 && !line.ends_with(' '), "{line}");
        assert!(!line.contains("NaN") && !line.split_whitespace().any(|word| word == "inf"), "{line}");
    }
    out
}

fn assert_refused(sample: &SampleDataset, arguments: &[&str], code: i32, message: &str) {
    let (found, out, err) = agon(sample, arguments);
    assert_eq!((found, out.as_str()), (code, ""), "{arguments:?}: {err}");
    assert!(err.starts_with("error: ") && err.contains(message) && !err.contains("panicked"), "{err}");
}

/// Returns the games won, drawn and lost by a player, from the rows.
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
fn ratings_use_bouts_as_evidence() {
    for (sample, names, replicas) in [
        (duel(), &["deep", "wide"][..], &[][..]),
        (SampleDataset::play(THREE_SEATS), &["a", "b", "c"], &["--replicas", "60"]),
    ] {
        let call = [&["ratings", &sample.id, "--crosstable", "--los", "--json"], replicas].concat();
        let (code, document) = json_of(&sample, &call);
        assert_eq!(code, 0);
        assert_eq!(
            (&document["run"], &document["complete"], &document["unit"]),
            (&json!(sample.id), &json!(true), &json!("bout"))
        );
        assert_eq!(document["games"], sample.bouts.values().map(|rows| rows.games.len()).sum::<usize>());
        let players = document["players"].as_array().unwrap();
        assert_eq!(players.len(), names.len());
        for player in players {
            let [wins, draws, losses] = record(&sample, player["name"].as_str().unwrap());
            assert_eq!(
                (&player["wins"], &player["draws"], &player["losses"]),
                (&json!(wins), &json!(draws), &json!(losses))
            );
            assert!(player["elo"].is_number() && player["score"].is_number(), "{player}");
        }
        let (_, again) = json_of(&sample, &[&call[..], &["--threads", "5"]].concat());
        assert_eq!(again, document);
        let out = text(&sample, &["ratings", "--crosstable", "--los", "--residuals"]);
        assert!(out.contains("the unit of evidence is the bout") && out.contains(&sample.id), "{out}");
        let out = text(&sample, &["ratings", "--anchor", names[0]]);
        assert!(out.contains(&format!("the rating of {} is fixed", names[0])), "{out}");
    }
    let (_, document) =
        json_of(&SampleDataset::play(THREE_SEATS), &["ratings", "--replicas", "60", "--json"]);
    assert_eq!(document["seat_effects"].as_array().unwrap().len(), 3);
    assert!(document["seat_advantage"].is_null() && document["draw_rate"].is_null(), "{document}");
    assert_refused(
        &duel(),
        &["ratings", "--replicas", "5"],
        2,
        "--replicas is for games of more than two seats",
    );
    assert_refused(
        &SampleDataset::play(THREE_SEATS),
        &["ratings", "--prior", "1"],
        2,
        "a prior is for games of two seats",
    );
}

#[test]
fn rates_several_runs_of_one_game() {
    let sample = duel();
    let spec = vary(TOURNAMENT).seed(8).replace("\"wide\"", "\"greedy\"").replace("\"uct\"", "\"greedy\"");
    let other = SampleDataset::play(&spec);
    copy_folder(other.folder(), sample.folder());
    let (_, document) = json_of(&sample, &["ratings", &sample.id, &other.id, "--json"]);
    assert_eq!((&document["run"], document["runs"].as_array().unwrap().len()), (&Value::Null, 2));
    assert_eq!((document["players"].as_array().unwrap().len(), &document["games"]), (3, &json!(46)));
    assert_refused(
        &sample,
        &["ratings", &sample.id, &sample.id],
        2,
        "is given twice; its bouts would count twice",
    );
    // The same name with another configuration.
    let changed = SampleDataset::play(&vary(TOURNAMENT).limit("nodes = 61"));
    copy_folder(changed.folder(), sample.folder());
    let out = text(&sample, &["ratings", &sample.id, &changed.id]);
    assert!(out.replace('\n', " ").contains("`deep` is configured differently in"), "{out}");

    let seats = SampleDataset::play(THREE_SEATS);
    copy_folder(seats.folder(), sample.folder());
    assert_refused(
        &sample,
        &["ratings", &sample.id, "three"],
        2,
        "ratings of different games are not comparable; --by game",
    );
    let (_, document) =
        json_of(&sample, &["ratings", &sample.id, "three", "--by", "game", "--json", "--replicas", "20"]);
    let games: Vec<&Value> = document["games"].as_array().unwrap().iter().map(|game| &game["run"]).collect();
    assert_eq!(games, [&sample.id, &seats.id]);
}

#[test]
fn unfinished_runs_have_partial_answers() {
    let mut sample = duel();
    sample.bouts.retain(|bout, _| *bout < 12);
    sample.manifest["state"] = json!("running");
    sample.manifest["committed"] = json!(13);
    sample.write();
    let (_, document) = json_of(&sample, &["ratings", "--json"]);
    assert_eq!((&document["complete"], &document["runs"][0]["bouts"]), (&json!(false), &json!(12)));
    for call in [&["ratings"][..], &["crosstable"], &["sprt", "--bounds=0,5"]] {
        let out = text(&sample, call);
        assert!(out.contains("unfinished: 12 of 20 bouts"), "{out}");
    }
    // The manifest counts 13 committed bouts, and the dataset has 12.
    for call in ["games", "pruning"] {
        let out = text(&sample, &[call]);
        assert!(out.contains("The run is not over: 12 of its 20 bouts are in the dataset.\n"), "{out}");
    }
    assert_eq!(json_of(&sample, &["pruning", "--replicas", "0", "--json"]).1["bouts"], 12);
    assert_eq!(json_of(&sample, &["games", "--json"]).1["complete"], json!(false));
    sample.bouts.clear();
    sample.write();
    let message = "has nothing in its dataset yet (unfinished: 0 of 20 bouts are in the dataset, 13 to follow); \
                    bouts are exported every few seconds";
    let other = SampleDataset::play(TOURNAMENT);
    copy_folder(other.folder(), sample.folder());
    for call in [
        &["ratings", &sample.id][..],
        &["crosstable", &sample.id],
        &["compare", &sample.id, &other.id],
        &["report", &sample.id],
        &["games", &sample.id],
        &["pruning", &sample.id],
        &["sprt", &sample.id, "--bounds=0,5"],
    ] {
        assert_refused(&sample, call, 1, message);
    }
}

#[test]
fn crosstable_shows_games_and_pairs() {
    let sample = duel();
    let (code, document) = json_of(&sample, &["crosstable", "--json"]);
    assert_eq!((code, &document["run"], &document["complete"]), (0, &json!(sample.id), &json!(true)));
    let first = document["players"][0].as_str().unwrap();
    let [wins, draws, losses] = record(&sample, first);
    let none = Value::Null;
    assert_eq!(document["crosstable"][0], json!([none, { "wins": wins, "draws": draws, "losses": losses }]));
    let pairs: Vec<u64> = serde_json::from_value(document["pairs"][0][1].clone()).unwrap();
    assert_eq!(pairs.iter().sum::<u64>(), 20);
    assert_eq!(pairs.iter().zip(0..).map(|(count, points)| count * points).sum::<u64>(), 2 * wins + draws);
    let out = text(&sample, &["crosstable"]);
    assert!(out.contains(&format!("{wins}-{draws}-{losses}")) && out.contains("score of the row"), "{out}");
    let out = text(&SampleDataset::play(THREE_SEATS), &["crosstable", "three"]);
    assert!(out.contains("ahead-level-behind"), "{out}");
}

#[test]
fn sprt_folds_over_the_schedule() {
    let sample = duel();
    let (_, document) = json_of(&sample, &["sprt", "--bounds=0,5", "--model", "logistic", "--json"]);
    assert_eq!((&document["run"], &document["players"]), (&json!(sample.id), &json!(["deep", "wide"])));
    assert_eq!((&document["prefix"], &document["deciding_bout"]), (&json!(20), &Value::Null));
    // The pairs equal those of the crosstable, and give the same result on the command line.
    let (_, table) = json_of(&sample, &["crosstable", "--json"]);
    let row = usize::from(table["players"][0] != "deep");
    assert_eq!(document["pairs"], table["pairs"][row][1 - row]);
    let pairs: Vec<String> = document["pairs"].as_array().unwrap().iter().map(ToString::to_string).collect();
    let pairs = pairs.join(",");
    let typed = agon_json(&["sprt", "--pairs", &pairs, "--bounds=0,5", "--model", "logistic", "--json"]);
    for field in ["llr", "elo", "nelo", "los", "lower"] {
        assert_eq!(document[field], typed[field], "{field}");
    }
    // The run has no bouts left; counts may grow.
    assert_eq!((&document["verdict"], &typed["verdict"]), (&json!("undecided"), &json!("continue")));
    assert_refused(
        &sample,
        &["sprt"],
        2,
        "give the differences to test, the smaller first, such as --bounds=0,5",
    );

    // A run with the format `sprt` has its own bounds, and stops at the deciding bout.
    let spec = vary(TOURNAMENT).set("format", "\"sprt\"").set("bouts", "40");
    let spec = spec.replace("bouts =", "bounds = [0, 150]\nmax_bouts =");
    let sample = SampleDataset::play(&spec);
    let (_, document) = json_of(&sample, &["sprt", "--json"]);
    assert_eq!((&document["bounds"], &document["model"]), (&json!([0.0, 150.0]), &json!("normalised")));
    let decided = document["deciding_bout"].as_u64().expect("forty bouts decide between 0 and 150");
    assert_eq!(
        (document["prefix"].as_u64().unwrap(), document["verdict"] == "continue"),
        (decided + 1, false)
    );
    let out = text(&sample, &["sprt"]);
    assert!(out.contains(&format!("bout {decided} decided")), "{out}");
    assert!(text(&sample, &["sprt", "--bounds=0,1"]).contains("0 against 1 nElo"));
}

/// A test that used up its bouts is undecided; with more bouts it continues.
#[test]
fn sprt_without_bouts_left_is_undecided() {
    let spec = vary(TOURNAMENT).set("format", "\"sprt\"").set("bouts", "4");
    let mut sample = SampleDataset::play(&spec.replace("bouts =", "bounds = [0, 5]\nmax_bouts ="));
    let (_, document) = json_of(&sample, &["sprt", "--json"]);
    assert_eq!((&document["verdict"], &document["prefix"]), (&json!("undecided"), &json!(4)));
    assert!(text(&sample, &["sprt"]).contains("undecided: neither hypothesis is accepted, and"));
    assert!(text(&sample, &["list"]).contains("  undecided    4/4"));
    assert_eq!(json_of(&sample, &["report", "--json"]).1["test"]["verdict"], json!("undecided"));
    sample.manifest["state"] = json!("running");
    sample.write_manifest();
    assert_eq!(json_of(&sample, &["sprt", "--json"]).1["verdict"], json!("continue"));
}

#[test]
fn compare_uses_common_players() {
    let spec = vary(TOURNAMENT).bouts(10).player("greedy", "algorithm = \"greedy\"");
    let sample = SampleDataset::play(&spec);
    let other = SampleDataset::play(&spec.clone().seed(8).replace("\"uct\"", "\"uct\", c = 0.3"));
    copy_folder(other.folder(), sample.folder());
    let (code, document) = json_of(&sample, &["compare", &sample.id, &other.id, "--json"]);
    assert_eq!(code, 0);
    let players = document["players"].as_array().unwrap();
    assert_eq!(players.len(), 3);
    let rated: Vec<&Value> = players.iter().filter(|player| player["change"].is_number()).collect();
    let changes: f64 = rated.iter().map(|player| player["change"].as_f64().unwrap()).sum();
    assert!(rated.len() >= 2 && changes.abs() < 1e-6, "{document}");
    for player in rated {
        let number = |field: &str| player[field].as_f64().unwrap();
        assert!(number("low") < number("change") && number("change") < number("high"), "{player}");
    }
    let differences: Vec<&str> = document["differences"]
        .as_array()
        .unwrap()
        .iter()
        .map(|found| found["what"].as_str().unwrap())
        .collect();
    assert_eq!(differences, ["seed", "c of wide"]);
    assert!(text(&sample, &["compare", &sample.id, &other.id]).contains("c of wide: "));
    // The same spec, played by a build that searches differently.
    let same = SampleDataset::play(&spec);
    let mut again = same.manifest.clone();
    again["run"] = json!(format!("{}-2", same.id));
    again["signature"] = json!("another");
    write_file(&sample.folder().join(format!("runs/{}-2.json", same.id)), again.to_string().as_bytes());
    for table in ["games", "moves"] {
        let from = sample.folder().join(format!("{table}/run={}", same.id));
        let to = sample.folder().join(format!("{table}/run={}-2", same.id));
        copy_folder(&from, &to);
    }
    let (_, document) = json_of(&sample, &["compare", &sample.id, &format!("{}-2", sample.id), "--json"]);
    assert!(
        document["players"]
            .as_array()
            .unwrap()
            .iter()
            .all(|player| { player["change"].as_f64().is_none_or(|change| change.abs() < 1e-9) })
    );
    assert_eq!(document["differences"], json!([]));
    // The same spec and build give the same games.
    again["signature"] = json!("");
    write_file(&sample.folder().join(format!("runs/{}-2.json", same.id)), again.to_string().as_bytes());
    for command in ["compare", "ratings"] {
        assert_refused(
            &sample,
            &[command, &sample.id, &format!("{}-2", sample.id)],
            2,
            "have the same games: they share a spec",
        );
    }
    let seats = SampleDataset::play(THREE_SEATS);
    copy_folder(seats.folder(), sample.folder());
    assert_refused(&sample, &["compare", &sample.id, "three"], 2, "the runs share fewer than two players");
}

/// Two identical players share every bout: they are equal, within an interval.
#[test]
fn equal_players_have_interval() {
    let spec = vary(TOURNAMENT).bouts(6).replace("algorithm = \"uct\"", "algorithm = \"pvs\", table_mb = 0");
    let sample = SampleDataset::play(&spec);
    let (_, document) = json_of(&sample, &["ratings", "--json"]);
    for player in document["players"].as_array().unwrap() {
        assert_eq!((&player["elo"], &player["score"]), (&json!(0.0), &json!(0.5)), "{document}");
        assert!(player["bound"].is_null(), "{player}");
    }
    assert!(document["players"][0]["low"].as_f64().unwrap() < -10.0, "{document}");
    let out = text(&sample, &["ratings"]).replace('\n', " ");
    assert!(out.contains("LOS 50.0 %"), "{out}");
    let (_, document) = json_of(&sample, &["report", "--json"]);
    let answer = document["answer"].as_str().unwrap();
    assert!(answer.contains("may be stronger") || answer.contains("every game was drawn"), "{answer}");
}

#[test]
fn errors_name_the_invalid_input() {
    let mut sample = duel();
    for call in [
        &["ratings", "nothing"][..],
        &["crosstable", "nothing"],
        &["sprt", "nothing"],
        &["compare", "nothing", "latest"],
    ] {
        assert_refused(&sample, call, 2, "there is no run `nothing`; there is only small-");
    }
    let probe = SampleDataset::play(PROBE);
    for call in [&["ratings"][..], &["crosstable"], &["sprt"]] {
        assert_refused(
            &probe,
            call,
            2,
            &format!("{} is a probe: it has searches and no games; use `agon pruning", probe.id),
        );
    }
    assert_refused(
        &SampleDataset::play(THREE_SEATS),
        &["sprt", "--bounds=0,5"],
        2,
        "takes two players of a game of two seats",
    );

    // Only draws.
    for row in sample.bouts.values_mut().flat_map(|rows| &mut rows.games) {
        row.payoffs = vec![0, 0];
    }
    sample.write();
    let out = text(&sample, &["ratings"]);
    assert!(out.contains("Every game was drawn"), "{out}");
    text(&sample, &["crosstable"]);
    let out = text(&sample, &["sprt", "--bounds=0,5"]);
    assert!(out.contains("not estimable: all scored the same"), "{out}");

    // Groups without common opponents.
    let apart =
        SampleDataset::play(&vary(TOURNAMENT).replace("\"deep\"", "\"x\"").replace("\"wide\"", "\"y\""));
    copy_folder(apart.folder(), sample.folder());
    let out = text(&sample, &["ratings", &sample.id, &apart.id]);
    assert!(out.starts_with("No results connect these 2 groups of players."), "{out}");
    assert_refused(&sample, &["ratings", &apart.id, "--min-games", "100"], 2, "no player has 100 games");

    // A part of a newer version, a damaged part and a missing part.
    let file = sample.part_file("games", 4);
    let bytes = fs::read(&file).unwrap();
    let key = b"agon.schema";
    let position = bytes.windows(key.len()).rposition(|window| window == key).unwrap() + key.len() + 2;
    let mut newer = bytes.clone();
    assert_eq!(newer[position], b'1');
    newer[position] = b'2';
    fs::write(&file, agon_records::sealed(newer).unwrap()).unwrap();
    let named = sample.part_name("games", 4);
    for call in
        [&["ratings", &sample.id][..], &["crosstable", &sample.id], &["sprt", &sample.id, "--bounds=0,5"]]
    {
        assert_refused(&sample, call, 1, "the file has schema version 2, and this program supports up to 1");
        assert_refused(&sample, call, 1, &named);
    }
    fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    for call in
        [&["ratings", &sample.id][..], &["crosstable", &sample.id], &["sprt", &sample.id, "--bounds=0,5"]]
    {
        assert_refused(&sample, call, 1, &named);
    }
    fs::remove_file(&file).unwrap();
    let test = ["sprt", &sample.id, "--bounds=0,5"];
    for call in [
        &["ratings", &sample.id][..],
        &["crosstable", &sample.id],
        &["compare", &sample.id, &apart.id],
        &test,
    ] {
        assert_refused(
            &sample,
            call,
            1,
            "is not complete: 2 bouts are missing (4-5), and 0 failed; fetch the missing parts",
        );
    }
}
