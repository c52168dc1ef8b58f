//! The text of a spec, and of a file that it names: understood, or refused with a sentence.

#![no_main]

use agon_arena::{Spec, SpecSource};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    // What stands behind a line of dashes is a file, under each of the names by which its kind is told.
    let (text, file) = text.split_once("\n----\n").unwrap_or((text, ""));
    let names = ["book", "book.epd", "games.pgn"];
    let files = names.map(|name| (name.to_string(), file.to_string())).into();
    let source = SpecSource { text: text.to_string(), files };
    match Spec::parse(&source) {
        Ok(spec) => {
            // What is understood has a digest, and is understood again.
            source.canonical().expect("a spec that was read");
            assert!(Spec::parse(&source).is_ok_and(|again| again.name == spec.name));
        }
        Err(error) => assert!(!error.problems.is_empty()),
    }
});
