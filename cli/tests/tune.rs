//! Tuning runs through the binary: the path follows from the published formulas and does not depend on the schedule.

#![allow(clippy::unwrap_used, reason = "a failing test panics")]

use std::path::Path;

use agon_analysis::dataset::Dataset;
use agon_records::{GameRow, Table};
use agon_testing::binary::{agon, assert_refused, json};
use agon_testing::folder::Folder;
use agon_testing::processes::digests;
use agon_testing::specs::{SPSA, vary};
use serde_json::Value;

/// Tunes a real and an integer parameter.
fn spsa() -> String {
    let second =
        "[[tune.parameter]]\npath = \"search.memory_mb\"\nstart = 8\nmin = 1\nmax = 60\nstep = 6\n[[player]]";
    vary(SPSA).replace("[[player]]", second).replace("\"uct\" }", "\"uct\", solver = true }").text()
}

/// Tunes against two opponents.
fn bayes() -> String {
    let spec = vary(SPSA).name("bayes").set("method", "\"bayes\"").bouts(120).set("pairs", 6);
    let spec = spec.without("window").set("rate", "\nbatch = 5\nopponents = [\"uct\", \"other\"]");
    let spec = spec.replace("rate = \n", "").without("step").player("other", "algorithm = \"uct\"");
    spec.replace("name = \"other\"\n", "name = \"other\"\nlimit = { nodes = 20 }\n").text()
}

fn rows(data: &Path) -> Vec<GameRow> {
    let dataset = Dataset::open(data).unwrap();
    let run = dataset.find("latest").unwrap();
    let parts = dataset.parts(&run, Table::Games).unwrap();
    parts.iter().flat_map(|part| part.games().unwrap()).collect()
}

/// Returns the tuned values of a player in a game.
fn values(row: &GameRow, player: &str) -> Vec<f64> {
    let seat = row.players.iter().position(|name| name == player).unwrap();
    let numbers = row.settings[seat].split(' ').map(|pair| pair.split_once('=').unwrap().1.parse().unwrap());
    numbers.collect()
}

/// Recomputes SPSA from the dataset by the published formulas.
#[test]
fn tuning_path_follows_from_the_dataset() {
    let folder = Folder::new();
    folder.write("spec.toml", spsa());
    let document =
        json(&["run", &folder.path("spec.toml"), "--data", &folder.path("data"), "--json", "--slots", "3"]);
    assert_eq!((document["state"].as_str(), document["tune"]["step"].as_u64()), (Some("done"), Some(60)));
    let tuned = json(&["tune", "--data", &folder.path("data"), "--json"]);
    let steps = tuned["path"].as_array().unwrap();
    assert_eq!(steps.len(), 60);

    let rows = rows(Path::new(&folder.path("data")));
    let (iterations, window, pairs) = (60_usize, 5_usize, 3_usize);
    let (alpha, gamma, stability) = (0.602, 0.101, 6.0);
    let (ends, rate) = ([1.4_f64.ln(), 6.0], 0.3);
    let bounds: [(f64, f64); 2] = [(0.1, 8.0), (1.0, 60.0)];
    let mut theta = vec![[4.0, 8.0]];
    let mut moves: Vec<[f64; 2]> = Vec::new();
    for k in 0..iterations {
        let own: Vec<&GameRow> = rows.iter().filter(|row| row.bout as usize / pairs == k).collect();
        assert_eq!(own.len(), 2 * pairs);
        let (plus, minus) = (values(own[0], "uct+"), values(own[0], "uct-"));
        let wins: i32 = own
            .iter()
            .map(|row| {
                let seat = row.players.iter().position(|name| name == "uct+").unwrap();
                assert_eq!((values(row, "uct+"), values(row, "uct-")), (plus.clone(), minus.clone()));
                row.payoffs[seat].signum()
            })
            .sum();
        let from = theta[(k + 1).saturating_sub(window)];
        let mut next = *theta.last().unwrap();
        moves.push([0.0; 2]);
        for index in 0..2 {
            let c = ends[index] * (iterations as f64).powf(gamma) / (k as f64 + 1.0).powf(gamma);
            let a = rate * ends[index] * ends[index] * (stability + iterations as f64).powf(alpha);
            let r = a / (stability + k as f64 + 1.0).powf(alpha) / (c * c);
            let delta = (plus[index] - minus[index]).signum();
            let (low, high) = bounds[index];
            let to = |value: f64| if index == 0 { value.ln() } else { value };
            let back = |value: f64| if index == 0 { value.exp() } else { value }.clamp(low, high);
            for (sign, played) in [(1.0, plus[index]), (-1.0, minus[index])] {
                let expected = back(to(from[index]) + sign * delta * c);
                let tolerance = if index == 0 { 1e-6 } else { 1.0 };
                assert!((played - expected).abs() <= tolerance, "iteration {k}: {played} and not {expected}");
                assert!(index == 0 || played.fract() == 0.0);
            }
            moves[k][index] = f64::from(wins) * delta;
            next[index] = back(to(next[index]) + r * c * f64::from(wins) * delta);
            let found = steps[k]["values"][index].as_f64().unwrap();
            assert!((found - next[index]).abs() < 1e-9, "iteration {k}: {found} and not {}", next[index]);
        }
        theta.push(next);
    }
    // The validation plays the answer against the start, over separate openings.
    // The answer is the mean of the last half, quarter or eighth, if chance explains its drift.
    let converged = [30, 15, 7].into_iter().find(|&count| {
        let tail = &moves[iterations - count..];
        let squares: f64 = tail.iter().map(|both| both[0] * both[0]).sum();
        let drift = [0, 1].map(|index| tail.iter().map(|both| both[index]).sum::<f64>());
        // The quantile of chi-square with two degrees of freedom at 84.1 %, by the normal approximation of its cube root.
        squares == 0.0 || drift.iter().map(|sum| sum * sum).sum::<f64>() / squares <= 3.651_578
    });
    let tail = &theta[theta.len() - converged.unwrap_or(1)..];
    let mean = |of: &dyn Fn(&[f64; 2]) -> f64| tail.iter().map(of).sum::<f64>() / tail.len() as f64;
    let answer = [mean(&|values| values[0].ln()).exp(), mean(&|values| values[1])];
    let validation: Vec<&GameRow> = rows.iter().filter(|row| row.bout >= 180).collect();
    assert_eq!(validation.len(), 40);
    for row in &validation {
        assert!(row.players.iter().all(|name| name == "uct" || name == "uct-tuned"));
        let played = values(row, "uct-tuned");
        assert!((played[0] - answer[0]).abs() <= 1e-6 && played[1] == answer[1].round());
        assert!(rows.iter().all(|other| other.bout >= 180 || other.opening != row.opening));
    }
    assert_eq!(tuned["validation"]["bouts"], 20);
    let rated = json(&["ratings", "--data", &folder.path("data"), "--json"]);
    assert_eq!(rated["players"].as_array().unwrap().len(), 2);
    assert_eq!(rated["players"][0]["games"], 40);
}

/// Asserts that a spec gives the same dataset and answer with one slot and with three, and that it verifies and replays.
fn tune_with_both_slot_counts(spec: &str) -> Value {
    let folder = Folder::new();
    folder.write("spec.toml", spec);
    for (data, slots) in [("one", "1"), ("three", "3")] {
        json(&["run", &folder.path("spec.toml"), "--data", &folder.path(data), "--json", "--slots", slots]);
    }
    assert_eq!(digests(Path::new(&folder.path("one"))), digests(Path::new(&folder.path("three"))));
    for command in [&["verify"][..], &["replay", "latest", "--games", "12"]] {
        let answer = agon(&[command, &["--data", &folder.path("one")]].concat());
        assert_eq!(answer.code, 0, "{} {}", answer.out, answer.err);
    }
    let [one, three] = ["one", "three"].map(|data| json(&["tune", "--json", "--data", &folder.path(data)]));
    assert_eq!(one, three);
    one
}

#[test]
fn tuning_is_independent_of_slots() {
    let tuned = tune_with_both_slot_counts(&spsa());
    assert_eq!(tuned["path"].as_array().unwrap().len(), 60);
    let against = spsa().replace("bouts = 180", "opponents = [\"uct\"]\nbouts = 180");
    assert_eq!(tune_with_both_slot_counts(&against)["path"].as_array().unwrap().len(), 30);
    let tuned = tune_with_both_slot_counts(&bayes());
    let trials = tuned["path"].as_array().unwrap();
    assert_eq!(trials.len(), 20);
    let answer = tuned["parameters"][0]["value"].as_f64().unwrap();
    let luckiest = trials.iter().max_by_key(|trial| (trial["score"].as_f64().unwrap() * 1e6) as i64).unwrap();
    assert_ne!(luckiest["candidates"][0][0].as_f64(), Some(answer), "the answer is no trial");
    assert!(tuned["expected"]["low"].as_f64() < tuned["expected"]["high"].as_f64());
    // The table is a valid part of a spec.
    let table = tuned["table"].as_str().unwrap();
    let spec = format!(
        "name = \"again\"\ngame = \"connect-four\"\nlimit = {{ nodes = 10 }}\nopenings = {{ random_plies = 4 }}\n\
         [tournament]\nformat = \"round-robin\"\nbouts = 2\n{table}\n[[player]]\nname = \"b\"\n\
         search = {{ algorithm = \"random\" }}\n"
    );
    let folder = Folder::new();
    let file = folder.write("again.toml", spec);
    assert_eq!(json(&["check", &file, "--json"])["bouts"], 2);
}

/// Three repeats that end early, two opponents of the validation, and a pool.
#[test]
fn repeats_pool_and_early_end_are_independent_of_slots() {
    let spec = bayes().replace("bouts = 120", "repeats = 3\nprecision = 150\nbouts = 120");
    let spec = spec.replace("{ bouts = 20 }", "{ bouts = 10, against = [\"other\"] }");
    let tuned = tune_with_both_slot_counts(&spec);
    let (trials, repeats) = (tuned["path"].as_array().unwrap(), tuned["repeats"].as_array().unwrap());
    assert!(trials.len() < 60 && repeats.len() == 3, "{} trials", trials.len());
    let matches = tuned["matches"].as_array().unwrap();
    let names: Vec<String> =
        matches.iter().map(|found| format!("{} {}", found["tuned"], found["opponent"])).collect();
    let expected: Vec<String> = ["1", "2", "3"]
        .iter()
        .flat_map(|repeat| ["uct", "other"].map(|other| format!("\"uct-tuned-{repeat}\" \"{other}\"")))
        .collect();
    assert_eq!(names, expected);
    assert!(matches.iter().all(|found| found["bouts"] == 10));
    // The iterations of SPSA meet each other and a named opponent.
    let spec = spsa().replace("bouts = 180", "repeats = 2\nopponents = [\"self\", \"uct\"]\nbouts = 90");
    let tuned = tune_with_both_slot_counts(&spec.replace("pairs = 3", "pairs = 2"));
    assert_eq!(tuned["path"].as_array().unwrap().len(), 60);
}

/// A longer tune begins with the trials of a finished one, and with those of a tournament.
#[test]
fn tune_imports_the_trials_of_runs() {
    let folder = Folder::new();
    let file = folder.write("spec.toml", bayes());
    let data = folder.path("data");
    json(&["run", &file, "--data", &data, "--json"]);
    let trials = agon(&["tune", "--trials", "--data", &data]).out;
    assert_eq!(trials.lines().count(), 21);
    assert!(trials.starts_with("search.c,bouts,score,variance\n"), "{trials}");
    folder.write("trials.csv", trials);
    let longer = bayes().replace("bouts = 120", "import = \"trials.csv\"\nbouts = 30");
    let longer = folder.write("longer.toml", longer);
    let plan = agon(&["check", &longer]).out;
    assert!(plan.contains("20 trials of 120 bouts are imported"), "{plan}");
    json(&["run", &longer, "--data", &folder.path("more"), "--json"]);
    let answer = agon(&["verify", "--data", &folder.path("more")]);
    assert_eq!(answer.code, 0, "{} {}", answer.out, answer.err);
    let tournament = "name = \"sweep\"\ngame = \"connect-four\"\nlimit = { nodes = 30 }\n\
        openings = { random_plies = 4 }\n[tournament]\nformat = \"gauntlet\"\nhero = \"a\"\nbouts = 5\n\
        [[player]]\nname = \"a\"\nsearch = { algorithm = \"uct\" }\n\
        [[player]]\nname = \"b\"\nsearch = { algorithm = \"uct\", c = 0.5 }\n\
        [[player]]\nname = \"c\"\nsearch = { algorithm = \"uct\", c = 3 }\n";
    let file = folder.write("sweep.toml", tournament);
    json(&["run", &file, "--data", &data, "--json"]);
    let call = ["tune", "sweep", "--trials", "--against", "a", "--parameters", "search.c", "--data", &data];
    let trials = agon(&call).out;
    let rows: Vec<&str> = trials.lines().collect();
    assert!(rows.len() == 3 && rows[1].starts_with("0.5,5,") && rows[2].starts_with("3,5,"), "{trials}");
    assert_refused(
        &["tune", "sweep", "--trials", "--against", "x", "--parameters", "search.c", "--data", &data],
        "there is no player `x`",
    );
}

/// A candidate takes one seat of four, and its score is its share of the wins.
#[test]
fn tunes_in_games_of_many_seats_and_of_chance() {
    let spec = "name = \"many\"\ngame = { name = \"virus\", seats = 3, size = 5 }\nlimit = { nodes = 20 }\n\
        openings = { random_plies = 3 }\n[tune]\nplayer = \"uct\"\nmethod = \"METHOD\"\nbouts = 24\npairs = 3\n\
        validation = { bouts = 6 }\n[[tune.parameter]]\npath = \"search.c\"\nstart = 2\nmin = 0.1\nmax = 8\n\
        scale = \"log\"\n[[player]]\nname = \"uct\"\nsearch = { algorithm = \"uct\" }\n";
    for method in ["spsa", "bayes"] {
        let spec = spec.replace("METHOD", method);
        let tuned = tune_with_both_slot_counts(&spec);
        assert_eq!(tuned["validation"]["bouts"], 6, "{tuned}");
        assert!(tuned["validation"].get("pairs").is_none());
        let pig = spec.replace("{ name = \"virus\", seats = 3, size = 5 }", "\"pig\"");
        let tuned = tune_with_both_slot_counts(&pig.replace("random_plies = 3", "random_plies = 12"));
        assert_eq!(tuned["validation"]["bouts"], 6, "{tuned}");
    }
}

#[test]
fn fits_weights_to_records() {
    let folder = Folder::new();
    let spec = "name = \"records\"\ngame = \"othello\"\nlimit = { nodes = 20 }\nopenings = { random_plies = 6 }\n\
        [tournament]\nformat = \"round-robin\"\nbouts = 60\n[[player]]\nname = \"a\"\n\
        search = { algorithm = \"pvs\", table_mb = 1 }\nevaluation = { discs = 1, mobility = 1, corners = 1 }\n\
        [[player]]\nname = \"b\"\nsearch = { algorithm = \"random\" }\n";
    folder.write("spec.toml", spec);
    json(&["run", &folder.path("spec.toml"), "--data", &folder.path("data"), "--json"]);
    let call = [
        "tune",
        "--from",
        "records",
        "--features",
        "mobility,corners",
        "--data",
        &folder.path("data"),
        "--json",
    ];
    let fitted = json(&call);
    assert_eq!(fitted, json(&call), "the same data gives the same weights");
    assert_eq!(fitted["games"], 120);
    assert!(fitted["held_loss"].as_f64().unwrap() < fitted["held_loss_blind"].as_f64().unwrap());
    // Corners correlate with winning.
    assert!(fitted["weights"][1]["weight"].as_f64().unwrap() > 0.0);
    let table = fitted["table"].as_str().unwrap();
    assert!(table.contains("algorithm = \"pvs\"") && table.contains("corners"), "{table}");
    assert_refused(
        &["tune", "--from", "records", "--features", "nothing", "--data", &folder.path("data")],
        "no feature `nothing`",
    );
    assert_refused(&["tune", "records", "--data", &folder.path("data")], "is not a tune");
}

/// The validation of two bouts has the difference, the likelihood and the words of the other commands.
#[test]
fn validation_agrees_with_the_other_commands() {
    let folder = Folder::new();
    folder.write("spec.toml", vary(SPSA).bouts(12).set("validation", "{ bouts = 2 }").text());
    let data = folder.path("data");
    let run = json(&["run", &folder.path("spec.toml"), "--data", &data, "--json"]);
    let tuned = json(&["tune", "--data", &data, "--json"]);
    let validation = &tuned["validation"];
    let pairs: Vec<String> =
        validation["pairs"].as_array().unwrap().iter().map(ToString::to_string).collect();
    let elo = json(&["elo", "--pairs", &pairs.join(","), "--json"]);
    for field in ["elo", "low", "high", "los"] {
        assert_eq!(validation[field], elo[field], "{field}: {tuned}");
    }
    // The standings begin with the better one of the tuned player and its start.
    let los = |document: &Value| document["los"].as_f64().map(|los| los.max(1.0 - los)).unwrap();
    assert!((los(&run) - los(&elo)).abs() < 1e-6, "{run}");
    assert_eq!(validation["verdict"], "too few results to call the tuned player or its start stronger");
    assert_eq!(run["caution"], validation["caution"]);
    let words = agon(&["tune", "--data", &data]).out.replace('\n', " ");
    assert!(
        words.contains("Too few results to call the tuned player or its start stronger (LOS "),
        "{words}"
    );
    assert!(words.contains("The bouts are too few: even if one player won all"), "{words}");
}

/// The message for a run without rated bouts does not claim that its dataset is empty.
#[test]
fn unrated_and_empty_tuning_runs_are_told_apart() {
    let folder = Folder::new();
    folder.write("spec.toml", vary(SPSA).bouts(30).text());
    let data = folder.path("data");
    let run = json(&["run", &folder.path("spec.toml"), "--data", &data, "--json"]);
    let (id, bouts) = (run["run"].as_str().unwrap(), run["bouts"].as_u64().unwrap());
    let file = folder.path(&format!("data/runs/{id}.json"));
    let mut manifest: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    manifest["state"] = "running".into();
    manifest["voided"] = (30..bouts).collect::<Vec<u64>>().into();
    std::fs::write(&file, manifest.to_string()).unwrap();
    let refusal = |command: &str| {
        let answer = agon(&[command, id, "--data", &data]);
        assert_eq!((answer.code, answer.out.as_str()), (1, ""), "{command}: {}", answer.err);
        answer.err
    };
    for command in ["ratings", "crosstable"] {
        let error = refusal(command);
        assert!(
            error.contains(&format!("has no rated bouts yet (unfinished: {bouts} of {bouts} bouts")),
            "{error}"
        );
        assert!(error.contains("only the validation of a tuning run is rated"), "{error}");
    }
    for table in ["games", "moves"] {
        std::fs::remove_dir_all(folder.path(&format!("data/{table}"))).unwrap();
    }
    (manifest["committed"], manifest["exported"], manifest["voided"]) =
        (0.into(), 0.into(), Value::Array(Vec::new()));
    std::fs::write(&file, manifest.to_string()).unwrap();
    for command in ["ratings", "crosstable", "tune", "games", "pruning", "report"] {
        let error = refusal(command);
        assert!(
            error.contains(&format!("has nothing in its dataset yet (unfinished: 0 of {bouts} bouts")),
            "{error}"
        );
    }
}
