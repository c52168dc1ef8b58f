//! The binary, called as a person or a program calls it.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

/// The outcome of a call.
pub struct Answer {
    /// The exit code.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

/// Returns the path of the binary, which Cargo builds beside the folder of the test that runs.
pub fn path() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent()
        .and_then(std::path::Path::parent)
        .unwrap()
        .join(format!("agon{}", std::env::consts::EXE_SUFFIX))
}

/// Calls the binary with standard input.
pub fn agon_with_input(arguments: &[&str], input: &[u8]) -> Answer {
    call(arguments, &[], input)
}

/// Calls the binary with environment variables and standard input.
pub fn call(arguments: &[&str], variables: &[(String, String)], input: &[u8]) -> Answer {
    let mut child = Command::new(path())
        .args(arguments)
        .envs(variables.iter().cloned())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input).is_ok());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    Answer {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Calls the binary.
pub fn agon(arguments: &[&str]) -> Answer {
    agon_with_input(arguments, b"")
}

/// Returns the JSON that a successful call prints.
pub fn json(arguments: &[&str]) -> Value {
    let answer = agon(arguments);
    assert_eq!(answer.code, 0, "{}", answer.err);
    serde_json::from_str(&answer.out).unwrap()
}

/// Checks that a wrong call exits with 2, prints nothing to standard output, and one error without a panic.
pub fn refused(arguments: &[&str], sentence: &str) {
    let answer = agon(arguments);
    assert_eq!(answer.code, 2, "{arguments:?}: {}", answer.err);
    assert_eq!(answer.out, "", "{arguments:?}");
    assert!(!answer.err.contains("panicked") && !answer.err.contains("RUST_BACKTRACE"), "{}", answer.err);
    // The name of the latest run may stand before the error.
    let note = answer.err.split_once(" (latest)\n").filter(|(note, _)| note.starts_with("run: "));
    let err = note.map_or(answer.err.as_str(), |(_, err)| err);
    assert!(err.starts_with("error: ") && err.contains(sentence), "{arguments:?}: {err}");
}
