//! Texts of games, positions and moves, in three lines, for every game.

#![no_main]

use agon_games::registry::GameSpec;
use libfuzzer_sys::fuzz_target;

/// The most words of a line that are played, to bound the time of an input.
const MOST: usize = 200;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut lines = text.splitn(3, '\n');
    let (game, position) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let moves = lines.next().unwrap_or_default();
    let Ok(spec) = GameSpec::parse(game).inspect_err(|error| assert!(!error.to_string().is_empty())) else {
        return;
    };
    // 1. A game's text round-trips.
    assert!(GameSpec::parse(&spec.to_string()).is_ok_and(|again| again.to_string() == spec.to_string()));
    let start = spec.start((!position.is_empty()).then_some(position));
    let Ok(mut board) = start.inspect_err(|error| assert!(!error.to_string().is_empty())) else { return };
    // 2. Every word is a legal move or rejected.
    for (ply, word) in moves.split_ascii_whitespace().take(MOST).enumerate() {
        let legal = board.legal();
        match board.play(ply + 1, word) {
            Ok(played) => assert!(legal.contains(&played), "{played} was played and is not legal"),
            Err(error) => {
                assert!(!error.to_string().is_empty());
                break;
            }
        }
    }
    // 3. A position's text round-trips.
    let text = board.position();
    let again = spec.start(Some(&text)).expect("a reached position is valid");
    assert_eq!(again.position(), text);
    assert_eq!(again.board(), board.board());
});
