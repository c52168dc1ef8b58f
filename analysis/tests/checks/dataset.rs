//! Runs are found by id, by beginning and as the latest; what is not there is named.

use std::fs;

use agon_analysis::{Dataset, DatasetError};
use serde_json::json;

use crate::sample::{SampleDataset, TOURNAMENT, put};

fn refusal(sample: &SampleDataset, asked: &str) -> String {
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
    assert_eq!(refusal(&sample, "x"), format!("there is no run `x`; there is only {first}"));
    assert_eq!(refusal(&sample, ""), format!("there is no run ``; there is only {first}"));

    // A second of the same spec, submitted later; the id of the first is the beginning of its.
    let second = format!("{first}-2");
    sample.manifest["run"] = json!(second);
    sample.manifest["submitted_us"] = json!(2);
    put(&sample.folder().join(format!("runs/{second}.json")), sample.manifest.to_string().as_bytes());
    let dataset = Dataset::open(sample.folder()).unwrap();
    assert_eq!(dataset.ids(), [first.clone(), second.clone()]);
    assert_eq!(dataset.find(&first).unwrap().id, first);
    assert_eq!(dataset.find("latest").unwrap().id, second);
    let several = format!("`small` is the beginning of several runs; write more of one of {first}, {second}");
    assert_eq!(refusal(&sample, "small"), several);
}

#[test]
fn what_is_no_dataset_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("nowhere");
    assert!(matches!(Dataset::open(&missing), Err(DatasetError::NoFolder { .. })));
    assert!(matches!(Dataset::open(folder.path()), Err(DatasetError::NoDataset { .. })));
    let sample = SampleDataset::play(TOURNAMENT);
    let file = sample.folder().join(format!("runs/{}.json", sample.id));
    fs::write(&file, "{\"run\": 3}").unwrap();
    let error = refusal(&sample, "latest");
    assert!(error.starts_with(&format!("{} does not describe a run: ", file.display())), "{error}");
}
