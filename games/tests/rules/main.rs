//! Tests of every game's rules: laws along random games, perft tables, recorded playthroughs, and for games without a
//! published table a slow second implementation that shares no code with the fast one.
//!
//! There is a module per game with the variants to check and the tests that are special to the game.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod harness;
mod suite;

/// Defines the tests that all games share.
macro_rules! games {
    ($($game:ident),* $(,)?) => {
        $(mod $game;)*

        mod laws {
            $(#[test]
            fn $game() {
                crate::harness::laws(crate::$game::VARIANTS);
            })*
        }

        mod perft {
            $(#[test]
            fn $game() {
                crate::harness::perft_table(crate::$game::VARIANTS);
            })*
        }

        mod playthroughs {
            $(#[test]
            fn $game() {
                crate::harness::playthrough(crate::$game::VARIANTS);
            })*
        }

        mod sampling {
            $(#[test]
            fn $game() {
                crate::harness::sampling(crate::$game::VARIANTS);
            })*
        }

        #[test]
        fn every_game_has_tests() {
            let tested = [$(stringify!($game).replace('_', "-")),*];
            for info in agon_games::GAMES {
                assert!(tested.iter().any(|name| name == info.name), "{} has no line in main.rs", info.name);
            }
        }
    };
}

games! {
    backgammon,
    checkers,
    chess,
    chinese_checkers,
    connect_four,
    focus,
    go,
    grundy,
    kalah,
    nim,
    othello,
    pig,
    rolit,
    tic_tac_toe,
    virus,
}

/// The board shows the mark that a person playing a seat is given.
#[test]
fn boards_show_the_marks_of_all_seats() {
    use agon_games::random::{below, seeded};
    use agon_games::{GAMES, Seat, Turn};

    for info in GAMES {
        for seats in info.seats {
            let text = if info.seats.len() > 1 {
                format!("{}:seats={seats}", info.name)
            } else {
                info.name.to_string()
            };
            let start = harness::spec(&text).start(None).unwrap();
            let mut position = start.copy();
            let mut boards = position.board();
            let mut random = seeded(1);
            while position.turn() != Turn::Over {
                let moves = position.legal();
                position.play(0, &moves[below(&mut random, moves.len())]).unwrap();
                boards.push_str(&position.board());
            }
            let symbols: Vec<&str> =
                boards.split_whitespace().filter(|word| word.chars().count() == 1).collect();
            let is_shown = |word: &str| word.chars().all(|symbol| symbols.contains(&&*symbol.to_string()));
            for mark in Seat::all(start.seats()).map(|seat| start.mark(seat)) {
                let mut words =
                    mark.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
                assert!(
                    mark.starts_with("seat ") || words.any(is_shown),
                    "{text} does not show {mark}:\n{boards}"
                );
            }
        }
    }
}
