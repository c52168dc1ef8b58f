//! The text of a game, of a position and of moves, for every game: three lines.

#![no_main]

use agon_games::registry::GameSpec;
use libfuzzer_sys::fuzz_target;

/// Words of a line that are followed; boards of a game with many words are dear.
const MOST: usize = 200;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut lines = text.splitn(3, '\n');
    let (game, position) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let moves = lines.next().unwrap_or_default();
    let Ok(spec) = GameSpec::parse(game).inspect_err(|error| assert!(!error.to_string().is_empty())) else {
        return;
    };
    // 1. A game's text is read again as the same game.
    assert!(GameSpec::parse(&spec.to_string()).is_ok_and(|again| again.to_string() == spec.to_string()));
    let begun = spec.start((!position.is_empty()).then_some(position));
    let Ok(mut board) = begun.inspect_err(|error| assert!(!error.to_string().is_empty())) else { return };
    // 2. Every word is a legal move or refused; what is played is one of the legal moves.
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
    // 3. A position's text is read again as the same position, as far as a text can say it.
    let told = board.position();
    let again = spec.start(Some(&told)).expect("a position that was reached");
    assert_eq!(again.position(), told);
    assert_eq!(again.board(), board.board());
});
