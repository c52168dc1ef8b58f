//! `agon list` on a dataset, and the width of tables.

use agon_testing::binary::{agon, agon_in_terminal};
use agon_testing::folder::copy_folder;
use agon_testing::sample::{SampleDataset, write_file};
use agon_testing::specs::{PROBE, TOURNAMENT, vary};
use serde_json::json;

use super::json_of;

#[test]
fn lists_the_runs_of_a_dataset_newest_first() {
    let mut sample = SampleDataset::play(TOURNAMENT);
    let mut other = SampleDataset::play(PROBE);
    other.manifest["submitted_us"] = json!(1_000_000);
    other.manifest["state"] = json!("running");
    other.manifest["committed"] = json!(2);
    other.write_manifest();
    copy_folder(other.folder(), sample.folder());
    let (code, document) = json_of(&sample, &["list", "--json"]);
    let runs = document["runs"].as_array().unwrap();
    assert_eq!((code, runs.len()), (0, 2));
    let facts = |index: usize| ["run", "state", "bouts", "total"].map(|key| runs[index][key].clone());
    assert_eq!(facts(0), [json!(other.id), json!("unfinished"), json!(2), other.manifest["bouts"].clone()]);
    assert_eq!(facts(1)[..2], [json!(sample.id), json!("done")]);
    let (_, out, _) = super::agon(&sample, &["list"]);
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines[0].starts_with("run ") && lines[0].ends_with("players"), "{out}");
    assert!(lines[1].starts_with(&other.id) && lines[2].starts_with(&sample.id), "{out}");
    // Other runs are listed beside a damaged manifest.
    sample.manifest["bouts"] = json!("many");
    sample.write_manifest();
    let (code, out, err) = super::agon(&sample, &["list"]);
    assert_eq!((code, out.lines().count()), (1, 2), "{out}");
    assert!(err.contains("is not a valid run manifest"), "{err}");
}

#[test]
fn list_falls_back_to_the_data_folder() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("agon.toml");
    write_file(&config, b"[client]\n");
    let listed = std::process::Command::new(agon_testing::binary::path())
        .args(["list", "--config", "agon.toml"])
        .current_dir(folder.path())
        .env_remove("AGON_COORDINATOR")
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8(listed.stdout).unwrap(), String::from_utf8(listed.stderr).unwrap());
    // A coordinator of this machine may answer at the default address.
    let fell_back = err.contains("no coordinator answers; runs of agon-data:");
    assert!(!fell_back || out.contains("no runs in agon-data yet"), "{out}{err}");
    let named = agon(&["list", "--coordinator", "http://127.0.0.1:9"]);
    assert!(named.code == 1 && named.err.contains("no coordinator answers at"), "{}", named.err);
}

#[test]
fn tables_fit_the_terminal() {
    let long = "a-player-with-a-name-of-some-forty-letters";
    let spec = vary(TOURNAMENT).player(long, "algorithm = \"greedy\"");
    let sample = SampleDataset::play(&spec);
    let data = sample.folder().to_str().unwrap();
    for columns in [60, 80] {
        for call in [
            &["ratings", "--crosstable", "--los", "--residuals"][..],
            &["crosstable"],
            &["games"],
            &["pruning", "--by-depth"],
            &["list"],
            &["verify"],
        ] {
            let shown = agon_in_terminal(columns, &[call, &["--data", data]].concat());
            assert!(shown.lines().count() > 3 || call == ["list"] || call == ["verify"], "{call:?}: {shown}");
            for line in shown.lines().filter(|line| !line.contains("content ")) {
                // What follows the progress, which is cleared.
                let line = line.rsplit("\x1b[2K").next().unwrap();
                assert!(line.chars().count() <= columns, "{columns} {call:?}: {line}\n{shown}");
            }
        }
    }
    // A pipe gets everything.
    let (_, out, _) = super::agon(&sample, &["ratings"]);
    assert!(out.contains(long) && out.contains("LOS"), "{out}");
}
