//! Tunes through the binary: the path is what the formulas say of the dataset, and the same however it is played.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use agon_testing::{binary, processes};
use std::path::Path;

use agon_analysis::dataset::Dataset;
use agon_records::{GameRow, Table};
use binary::{agon, json, refused};
use processes::digests;
use serde_json::Value;

const SPSA: &str = r#"name = "spsa"
game = "connect-four"
seed = 5
limit = { nodes = 30 }
openings = { random_plies = 4 }
[tune]
player = "uct"
method = "spsa"
bouts = 180
pairs = 3
window = 5
rate = 0.3
validation = { bouts = 20 }
[[tune.parameter]]
path = "search.c"
start = 4
min = 0.1
max = 8
scale = "log"
step = 1.4
[[tune.parameter]]
path = "search.memory_mb"
start = 8
min = 1
max = 60
step = 6
[[player]]
name = "uct"
search = { algorithm = "uct", solver = true }
"#;

const BAYES: &str = r#"name = "bayes"
game = "connect-four"
seed = 5
limit = { nodes = 30 }
openings = { random_plies = 4 }
[tune]
player = "uct"
method = "bayes"
bouts = 120
pairs = 6
batch = 5
opponents = ["uct", "other"]
validation = { bouts = 20 }
[[tune.parameter]]
path = "search.c"
start = 4
min = 0.1
max = 8
scale = "log"
[[player]]
name = "uct"
search = { algorithm = "uct" }
[[player]]
name = "other"
limit = { nodes = 20 }
search = { algorithm = "uct" }
"#;

fn rows(data: &Path) -> Vec<GameRow> {
    let dataset = Dataset::open(data).unwrap();
    let run = dataset.find("latest").unwrap();
    let parts = dataset.parts(&run, Table::Games).unwrap();
    parts.iter().flat_map(|part| part.games().unwrap()).collect()
}

/// The values in a row's settings for the player of this name.
fn values(row: &GameRow, player: &str) -> Vec<f64> {
    let seat = row.players.iter().position(|name| name == player).unwrap();
    let numbers = row.settings[seat].split(' ').map(|pair| pair.split_once('=').unwrap().1.parse().unwrap());
    numbers.collect()
}

/// SPSA once more, slowly, from the dataset and the published formulas alone.
#[test]
fn the_path_is_what_the_formulas_make_of_the_dataset() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    std::fs::write(path("spec.toml"), SPSA).unwrap();
    let told = json(&["run", &path("spec.toml"), "--data", &path("data"), "--json", "--slots", "3"]);
    assert_eq!((told["state"].as_str(), told["tune"]["step"].as_u64()), (Some("done"), Some(60)));
    let tuned = json(&["tune", "--data", &path("data"), "--json"]);
    let steps = tuned["path"].as_array().unwrap();
    assert_eq!(steps.len(), 60);

    let rows = rows(Path::new(&path("data")));
    let (iterations, window, pairs) = (60_usize, 5_usize, 3_usize);
    let (alpha, gamma, stability) = (0.602, 0.101, 6.0);
    let (ends, rate) = ([1.4_f64.ln(), 6.0], 0.3);
    let bounds: [(f64, f64); 2] = [(0.1, 8.0), (1.0, 60.0)];
    let mut theta = vec![[4.0, 8.0]];
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
        for index in 0..2 {
            let c = ends[index] * (iterations as f64).powf(gamma) / (k as f64 + 1.0).powf(gamma);
            let a = rate * ends[index] * ends[index] * (stability + iterations as f64).powf(alpha);
            let r = a / (stability + k as f64 + 1.0).powf(alpha) / (c * c);
            let delta = (plus[index] - minus[index]).signum();
            let (low, high) = bounds[index];
            let to = |value: f64| if index == 0 { value.ln() } else { value };
            let back = |value: f64| if index == 0 { value.exp() } else { value }.clamp(low, high);
            for (sign, played) in [(1.0, plus[index]), (-1.0, minus[index])] {
                let meant = back(to(from[index]) + sign * delta * c);
                let near = if index == 0 { 1e-6 } else { 1.0 };
                assert!((played - meant).abs() <= near, "iteration {k}: {played} and not {meant}");
                assert!(index == 0 || played.fract() == 0.0);
            }
            next[index] = back(to(next[index]) + r * c * f64::from(wins) * delta);
            let found = steps[k]["values"][index].as_f64().unwrap();
            assert!((found - next[index]).abs() < 1e-9, "iteration {k}: {found} and not {}", next[index]);
        }
        theta.push(next);
    }
    // The proof is between the answer and the start, over openings of its own.
    let answer = theta.last().unwrap();
    let proof: Vec<&GameRow> = rows.iter().filter(|row| row.bout >= 180).collect();
    assert_eq!(proof.len(), 40);
    for row in &proof {
        assert!(row.players.iter().all(|name| name == "uct" || name == "uct-tuned"));
        let played = values(row, "uct-tuned");
        assert!((played[0] - answer[0]).abs() <= 1e-6 && played[1] == answer[1].round());
        assert!(rows.iter().all(|other| other.bout >= 180 || other.opening != row.opening));
    }
    assert_eq!(tuned["validation"]["bouts"], 20);
    let rated = json(&["ratings", "--data", &path("data"), "--json"]);
    assert_eq!(rated["players"].as_array().unwrap().len(), 2);
    assert_eq!(rated["players"][0]["games"], 40);
}

/// Plays a spec with one slot and with three: everything is the same, sound, and can be played again.
fn slots_change_nothing(spec: &str) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    std::fs::write(path("spec.toml"), spec).unwrap();
    for (data, slots) in [("one", "1"), ("three", "3")] {
        json(&["run", &path("spec.toml"), "--data", &path(data), "--json", "--slots", slots]);
    }
    assert_eq!(digests(Path::new(&path("one"))), digests(Path::new(&path("three"))));
    for command in [&["verify"][..], &["replay", "latest", "--games", "12"]] {
        let answer = agon(&[command, &["--data", &path("one")]].concat());
        assert_eq!(answer.code, 0, "{} {}", answer.out, answer.err);
    }
    let told = |data: &str| json(&["tune", "--json", "--data", &path(data)]);
    assert_eq!(told("one"), told("three"));
    told("one")
}

#[test]
fn the_number_of_slots_changes_nothing() {
    let tuned = slots_change_nothing(SPSA);
    assert_eq!(tuned["path"].as_array().unwrap().len(), 60);
    let against = SPSA.replace("bouts = 180", "opponents = [\"uct\"]\nbouts = 180");
    assert_eq!(slots_change_nothing(&against)["path"].as_array().unwrap().len(), 30);
    let tuned = slots_change_nothing(BAYES);
    let trials = tuned["path"].as_array().unwrap();
    assert_eq!(trials.len(), 20);
    let answer = tuned["parameters"][0]["value"].as_f64().unwrap();
    let luckiest = trials.iter().max_by_key(|trial| (trial["score"].as_f64().unwrap() * 1e6) as i64).unwrap();
    assert_ne!(luckiest["candidates"][0][0].as_f64(), Some(answer), "the answer is no trial");
    assert!(tuned["expected"]["low"].as_f64() < tuned["expected"]["high"].as_f64());
    // The table can be put into a spec.
    let table = tuned["table"].as_str().unwrap();
    let spec = format!(
        "name = \"again\"\ngame = \"connect-four\"\nlimit = {{ nodes = 10 }}\nopenings = {{ random_plies = 4 }}\n\
         [tournament]\nformat = \"round-robin\"\nbouts = 2\n{table}\n[[player]]\nname = \"b\"\n\
         search = {{ algorithm = \"random\" }}\n"
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("again.toml");
    std::fs::write(&file, spec).unwrap();
    assert_eq!(json(&["check", file.to_str().unwrap(), "--json"])["bouts"], 2);
}

#[test]
fn weights_are_fitted_to_records() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let spec = "name = \"records\"\ngame = \"othello\"\nlimit = { nodes = 20 }\nopenings = { random_plies = 6 }\n\
        [tournament]\nformat = \"round-robin\"\nbouts = 60\n[[player]]\nname = \"a\"\n\
        search = { algorithm = \"pvs\", table_mb = 1 }\nevaluation = { discs = 1, mobility = 1, corners = 1 }\n\
        [[player]]\nname = \"b\"\nsearch = { algorithm = \"random\" }\n";
    std::fs::write(path("spec.toml"), spec).unwrap();
    json(&["run", &path("spec.toml"), "--data", &path("data"), "--json"]);
    let call =
        ["tune", "--from", "records", "--features", "mobility,corners", "--data", &path("data"), "--json"];
    let fitted = json(&call);
    assert_eq!(fitted, json(&call), "the same data gives the same weights");
    assert_eq!(fitted["games"], 120);
    assert!(fitted["held_loss"].as_f64().unwrap() < fitted["held_loss_blind"].as_f64().unwrap());
    // Who is ahead in corners wins more often than not.
    assert!(fitted["weights"][1]["weight"].as_f64().unwrap() > 0.0);
    let table = fitted["table"].as_str().unwrap();
    assert!(table.contains("algorithm = \"pvs\"") && table.contains("corners"), "{table}");
    refused(
        &["tune", "--from", "records", "--features", "nothing", "--data", &path("data")],
        "no feature `nothing`",
    );
    refused(&["tune", "records", "--data", &path("data")], "is no tune");
}
