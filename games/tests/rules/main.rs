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
