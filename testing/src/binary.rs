//! Calls of the `agon` binary.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::sample::SampleDataset;

/// The result of a call.
pub struct Answer {
    pub code: i32,
    pub out: String,
    pub err: String,
}

/// Returns the path of the binary, which is in the folder of this program or, for a test, in the folder above.
pub fn path() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let folder = program.parent().unwrap();
    let folder = if folder.ends_with("deps") { folder.parent().unwrap() } else { folder };
    let binary = folder.join(format!("agon{}", std::env::consts::EXE_SUFFIX));
    assert!(binary.exists(), "{} does not exist; run `cargo build --release`", binary.display());
    binary
}

/// Calls the binary with standard input.
pub fn agon_with_input(arguments: &[&str], input: &[u8]) -> Answer {
    call(arguments, &[], input)
}

/// Calls the binary with environment variables.
pub fn agon_with(arguments: &[&str], variables: &[(String, String)]) -> Answer {
    call(arguments, variables, b"")
}

fn call(arguments: &[&str], variables: &[(String, String)], input: &[u8]) -> Answer {
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

/// Calls the binary in a terminal of this width, as `script` provides it, and returns what the terminal shows.
pub fn agon_in_terminal(columns: usize, arguments: &[&str]) -> String {
    let quoted = |word: &str| format!("'{}'", word.replace('\'', "'\\''"));
    let words: Vec<String> =
        [path().to_str().unwrap()].iter().chain(arguments).map(|word| quoted(word)).collect();
    let line = format!("stty cols {columns} rows 50; {}", words.join(" "));
    let mut script = Command::new("script");
    let output = script.args(["-qec", &line, "/dev/null"]).stdin(Stdio::null()).output().unwrap();
    String::from_utf8(output.stdout).unwrap().replace("\r\n", "\n")
}

/// Calls the binary without standard input.
pub fn agon(arguments: &[&str]) -> Answer {
    agon_with_input(arguments, b"")
}

/// Returns the JSON that a successful call prints.
pub fn json(arguments: &[&str]) -> Value {
    let answer = agon(arguments);
    assert_eq!(answer.code, 0, "{}", answer.err);
    serde_json::from_str(&answer.out).unwrap()
}

/// Asserts that a call is a usage error: exit code 2, empty standard output, and this message without a panic.
#[track_caller]
pub fn assert_refused(arguments: &[&str], message: &str) {
    let answer = agon(arguments);
    assert_eq!(answer.code, 2, "{arguments:?}: {}", answer.err);
    assert_eq!(answer.out, "", "{arguments:?}");
    assert!(!answer.err.contains("panicked") && !answer.err.contains("RUST_BACKTRACE"), "{}", answer.err);
    // The name of the latest run may precede the error.
    let note = answer.err.split_once(" (latest)\n").filter(|(note, _)| note.starts_with("run: "));
    let err = note.map_or(answer.err.as_str(), |(_, err)| err);
    assert!(err.starts_with("error: ") && err.contains(message), "{arguments:?}: {err}");
}

/// Calls the binary on a sample dataset and returns its exit code, standard output and standard error, the latter
/// without the name of the latest run.
pub fn agon_on(sample: &SampleDataset, arguments: &[&str]) -> (i32, String, String) {
    let data = sample.folder().to_str().unwrap();
    let Answer { code, out, err } = agon(&[arguments, &["--data", data]].concat());
    let note = format!("run: {} (latest)\n", sample.id);
    (code, out, err.strip_prefix(&note).unwrap_or(&err).to_string())
}
