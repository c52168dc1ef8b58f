//! The Python package, and python-chess as a client of Agon. `AGON_PYTHON` names another interpreter than `python3`.

use std::path::Path;
use std::process::{Command, Output};

use agon_testing::binary;
use agon_testing::sample::SampleDataset;

use crate::bots::is_installed;

fn python() -> String {
    std::env::var("AGON_PYTHON").unwrap_or_else(|_| "python3".to_string())
}

fn text(output: &Output) -> String {
    let [out, err] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    out + &err
}

#[test]
fn package_passes_its_tests() {
    if !is_installed(&python()) {
        return;
    }
    let sample = SampleDataset::three_players();
    let output = Command::new(python())
        .args(["-m", "unittest", "discover", "--verbose", "tests"])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../python"))
        .env("AGON_DATA", sample.folder())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let text = text(&output);
    assert!(output.status.success(), "{text}");
    text.lines().filter(|line| line.contains("skipped")).for_each(|line| println!("{line}"));
}

/// A whole game, with the info lines of every move checked by another implementation of the protocol and of the rules.
#[test]
fn python_chess_plays_a_game() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/engine/python_chess.py");
    if !is_installed(&python()) {
        return;
    }
    let import = Command::new(python()).args(["-c", "import chess.engine"]).output().unwrap();
    if !import.status.success() {
        println!("skipped: python-chess is not installed; pip install chess");
        return;
    }
    let output = Command::new(python()).arg(script).arg(binary::path()).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    print!("{}", text(&output));
}
