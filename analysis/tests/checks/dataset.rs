//! Runs are found by id, by prefix and by `latest`; unknown runs are reported.

use std::fs;

use agon_analysis::{Dataset, DatasetError};
use serde_json::json;

use agon_testing::sample::{SampleDataset, write_file};
use agon_testing::specs::TOURNAMENT;

fn find_error(sample: &SampleDataset, asked: &str) -> String {
    Dataset::open(sample.folder()).unwrap().find(asked).unwrap_err().to_string()
}

#[test]
fn runs_are_found() {
    let mut sample = SampleDataset::play(TOURNAMENT);
    let first = sample.id.clone();
    let dataset = Dataset::open(sample.folder()).unwrap();
    for asked in [&first, "small", "s", "latest"] {
        assert_eq!(dataset.find(asked).unwrap().id, first, "{asked}");
    }
    assert_eq!(find_error(&sample, "x"), format!("there is no run `x`; there is only {first}"));
    assert_eq!(find_error(&sample, ""), format!("there is no run ``; there is only {first}"));

    // A second run of the same spec, whose id has the first id as a prefix.
    let second = format!("{first}-2");
    sample.manifest["run"] = json!(second);
    sample.manifest["submitted_us"] = json!(2);
    write_file(&sample.folder().join(format!("runs/{second}.json")), sample.manifest.to_string().as_bytes());
    let dataset = Dataset::open(sample.folder()).unwrap();
    assert_eq!(dataset.ids(), [first.clone(), second.clone()]);
    assert_eq!(dataset.find(&first).unwrap().id, first);
    assert_eq!(dataset.find("latest").unwrap().id, second);
    let several =
        format!("several runs begin with `small`; give a longer prefix of one of {first}, {second}");
    assert_eq!(find_error(&sample, "small"), several);
}

#[test]
fn invalid_datasets_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("nowhere");
    assert!(matches!(Dataset::open(&missing), Err(DatasetError::NoFolder { .. })));
    assert!(matches!(Dataset::open(folder.path()), Err(DatasetError::NoDataset { .. })));
    let sample = SampleDataset::play(TOURNAMENT);
    let file = sample.folder().join(format!("runs/{}.json", sample.id));
    fs::write(&file, "{\"run\": 3}").unwrap();
    let error = find_error(&sample, "latest");
    assert!(error.starts_with(&format!("{} is not a valid run manifest: ", file.display())), "{error}");
}
