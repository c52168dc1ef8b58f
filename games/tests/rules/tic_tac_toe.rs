//! Tic-tac-toe: an exhaustive search of the game.

use std::collections::HashSet;

use agon_games::tic_tac_toe::TicTacToe;
use agon_games::{FeatureSet, Features, Game, Keyed, Notation, Parameters, Seat, Setup, Turn};

use crate::harness::Variant;

pub const VARIANTS: &[Variant] = &[("tic-tac-toe", 500)];

fn start() -> TicTacToe {
    TicTacToe::initial(&Parameters::defaults(TicTacToe::PARAMETERS)).unwrap()
}

/// Counts the nodes and games below a position and returns its minimax value for the first seat.
fn walk(position: &mut TicTacToe, nodes: &mut u64, games: &mut u64, keys: &mut HashSet<u64>) -> i32 {
    *nodes += 1;
    keys.insert(position.key());
    let Turn::Player(seat) = position.turn() else {
        *games += 1;
        return position.payoff(Seat::FIRST);
    };
    let mut moves = Vec::new();
    position.moves(&mut moves);
    let values = moves.into_iter().map(|mv| position.after(mv, |next| walk(next, nodes, games, keys)));
    let best = if seat == Seat::FIRST { values.max() } else { values.min() };
    best.expect("a position that is not over has a move")
}

#[test]
fn full_tree_has_known_size_and_value() {
    let (mut nodes, mut games, mut keys) = (0, 0, HashSet::new());
    let value = walk(&mut start(), &mut nodes, &mut games, &mut keys);
    assert_eq!((nodes, games, keys.len(), value), (549_946, 255_168, 5_478, 0));
}

#[test]
fn two_ply_values_of_open_lines() {
    let value = |first: &str| {
        let mut position = start();
        position.play(position.parse_move(first).unwrap());
        let mut replies = Vec::new();
        position.moves(&mut replies);
        let values = replies.into_iter().map(|reply| {
            position.after(reply, |next| {
                let mut values = [0; 3];
                next.features(Seat::FIRST, FeatureSet::ALL, &mut values);
                values[0]
            })
        });
        values.min().unwrap()
    };
    assert_eq!(["b2", "a1", "b1"].map(value), [1, -1, -2]);
}
