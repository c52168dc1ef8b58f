//! Perft: the number of move sequences of a given length.
//!
//! A pass is a ply and an outcome of chance is a ply, unweighted. Games that end earlier are not counted. The last
//! ply is counted by [`Game::count`] and not played.

use crate::game::Game;

/// Counts the sequences of exactly `depth` plies. Restores `moves`, a stack of moves.
pub fn perft<G: Game>(position: &mut G, depth: u32, moves: &mut Vec<G::Move>) -> u64 {
    match depth {
        0 => 1,
        1 => position.count(moves),
        _ => {
            let start = moves.len();
            position.moves(moves);
            let mut leaves = 0;
            for index in start..moves.len() {
                let mv = moves[index];
                leaves += position.after(mv, |next| perft(next, depth - 1, moves));
            }
            moves.truncate(start);
            leaves
        }
    }
}
