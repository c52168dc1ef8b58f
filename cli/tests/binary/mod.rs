//! The binary, called as a person or a program calls it.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

/// What the binary said.
pub struct Answer {
    /// The exit code.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

/// Calls the binary with something to read.
pub fn agon_with_input(arguments: &[&str], input: &[u8]) -> Answer {
    call(arguments, &[], input)
}

/// Calls the binary with some variables and something to read.
pub fn call(arguments: &[&str], variables: &[(String, String)], input: &[u8]) -> Answer {
    let mut child = Command::new(env!("CARGO_BIN_EXE_agon"))
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

/// The JSON of a call that succeeds.
pub fn json(arguments: &[&str]) -> Value {
    let answer = agon(arguments);
    assert_eq!(answer.code, 0, "{}", answer.err);
    serde_json::from_str(&answer.out).unwrap()
}

/// A wrong call: exit code 2, nothing on standard output, one sentence on standard error, no trace of a panic.
pub fn refused(arguments: &[&str], sentence: &str) {
    let answer = agon(arguments);
    assert_eq!(answer.code, 2, "{arguments:?}: {}", answer.err);
    assert_eq!(answer.out, "", "{arguments:?}");
    assert!(!answer.err.contains("panicked") && !answer.err.contains("RUST_BACKTRACE"), "{}", answer.err);
    assert!(
        answer.err.starts_with("error: ") && answer.err.contains(sentence),
        "{arguments:?}: {}",
        answer.err
    );
}
