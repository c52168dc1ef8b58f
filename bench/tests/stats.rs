//! `agon-bench stats`: JSON and text output.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::process::Command;

use serde_json::Value;

/// Returns the output of a successful call.
fn output(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_agon-bench")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn simulates_the_requested_statistics() {
    let words = output(&["stats", "pairs", "sprt", "workers", "--simulations", "20", "--json"]);
    let document: Value = serde_json::from_str(&words).unwrap();
    let coverage = document["coverage"].as_array().unwrap();
    assert_eq!(coverage.len(), 12);
    assert!(coverage.iter().all(|row| row["coverage"].as_f64().unwrap() > 0.5));
    assert_eq!(document["sprt"].as_array().unwrap().len(), 12);
    assert_eq!(document["sprt"][0]["tests"], 20);
    assert_eq!(document["rankings"].as_array().unwrap().len(), 0);
    let words = output(&["stats", "workers", "--simulations", "5"]);
    assert!(words.starts_with("detection of one fabricating worker among honest ones, "), "{words}");
}
