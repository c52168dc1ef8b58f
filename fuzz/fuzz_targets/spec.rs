//! Texts of a spec and a file that it names: accepted, or rejected with a message.

#![no_main]

use agon_arena::{Spec, SpecSource};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    // The text after a line of dashes is a file, under a name of each kind.
    let (text, file) = text.split_once("\n----\n").unwrap_or((text, ""));
    let names = ["book", "book.epd", "games.pgn"];
    let files = names.map(|name| (name.to_string(), file.to_string())).into();
    let source = SpecSource { text: text.to_string(), files };
    match Spec::parse(&source) {
        Ok(spec) => {
            // An accepted spec has a canonical text and is accepted again.
            source.canonical().expect("an accepted spec has a canonical text");
            assert!(Spec::parse(&source).is_ok_and(|again| again.name == spec.name));
        }
        Err(error) => assert!(!error.problems.is_empty()),
    }
});
