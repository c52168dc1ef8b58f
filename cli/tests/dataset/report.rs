//! `agon report`: the written page, its location and the printed summary.

use std::fs;

use agon_testing::sample::SampleDataset;
use agon_testing::specs::{PROBE, TOURNAMENT};

use crate::{agon, json_of};

#[test]
fn report_is_written_completely() {
    let sample = SampleDataset::play(TOURNAMENT);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("page.html");
    let (code, out, err) = agon(&sample, &["report", "--replicas", "50", "--output", file.to_str().unwrap()]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.contains(&format!("The page is in {}", file.display())), "{out}");
    let page = fs::read_to_string(&file).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n") && page.contains(&sample.id));
    let (code, same, _) = agon(&sample, &["report", "small", "--replicas", "50", "--output", "-"]);
    assert!(code == 0 && same == page, "standard output has the same page");
    // No temporary file is left.
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// The targets are links, so that a report that replaced its target would leave the device alone.
#[test]
fn report_writes_through_links_and_devices() {
    let sample = SampleDataset::play(TOURNAMENT);
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    fs::write(&page, "old").unwrap();
    for target in [std::path::Path::new("/dev/null"), &page] {
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(target, &link).unwrap();
        let (code, _, err) =
            agon(&sample, &["report", "--replicas", "50", "--output", link.to_str().unwrap()]);
        assert_eq!((code, err.as_str()), (0, ""));
        assert_eq!(fs::read_link(&link).unwrap(), target);
        fs::remove_file(link).unwrap();
    }
    assert!(fs::read_to_string(&page).unwrap().contains(&sample.id));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn report_file_is_named_after_run() {
    let sample = SampleDataset::play(PROBE);
    let folder = tempfile::tempdir().unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_agon"))
        .args(["report", "--replicas", "50", "--data"])
        .arg(sample.folder())
        .current_dir(folder.path())
        .output()
        .unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && out.starts_with("pruned needs the fewest nodes to depth 3"), "{out}");
    let page = fs::read_to_string(folder.path().join(format!("{}.html", sample.id))).unwrap();
    assert!(page.contains("needs the fewest nodes"));
}

#[test]
fn report_json_matches_the_page() {
    let sample = SampleDataset::play(TOURNAMENT);
    let (code, document) = json_of(&sample, &["report", "--replicas", "50", "--json"]);
    assert_eq!(
        (code, &document["run"], &document["counted"]),
        (0, &serde_json::json!(sample.id), &serde_json::json!(3))
    );
    assert!(document["answer"].as_str().is_some_and(|answer| !answer.is_empty()));
}

#[test]
fn unwritable_output_fails_before_the_work() {
    let sample = SampleDataset::play(TOURNAMENT);
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("nowhere/page.html");
    for (arguments, message) in [
        (&["report", "nothing"][..], "there is no run `nothing`"),
        (&["report", "--output", nowhere.to_str().unwrap()], "to write to; create it first"),
        (&["report", "--output", folder.path().to_str().unwrap()], "is a folder; give a file to --output"),
        (&["report", "--json", "--output", "-"], "cannot be used with"),
        (&["report", "--replicas", "0"], "the number of replicas is a whole number from 1"),
    ] {
        let (code, out, err) = agon(&sample, arguments);
        let expected = if message.contains("write to") || message.contains("is a folder") { 1 } else { 2 };
        assert_eq!((code, out.as_str()), (expected, ""), "{arguments:?}: {err}");
        assert!(err.starts_with("error: ") && err.contains(message), "{err}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn missing_part_leaves_no_report() {
    let sample = SampleDataset::play(TOURNAMENT);
    fs::remove_file(sample.part_file("moves", 2)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("page.html");
    let (code, out, err) = agon(&sample, &["report", "--replicas", "50", "--output", file.to_str().unwrap()]);
    assert_eq!((code, out.as_str()), (1, ""), "{err}");
    assert!(err.contains(&sample.part_name("moves", 2)), "{err}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
