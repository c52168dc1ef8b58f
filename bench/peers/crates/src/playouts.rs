//! Random games by each crate's own means.
//!
//! The checksum of a side depends on the length and the end of each of its games.

use std::hint::black_box;

use agon_games::random::seeded;
use agon_games::{Complete, GameSpec, Parameters, Seat, Turn, UniformVisitor};
use board_game::board::Outcome;
use rand_08::SeedableRng as _;
use rand_09::{Rng as _, SeedableRng as _};

use crate::Work;

/// Plays games, each of which returns its plies and its end, and returns the work.
fn play(games: u64, mut game: impl FnMut() -> (u64, u64)) -> Work {
    let mut checksum = 0u64;
    for _ in 0..black_box(games) {
        let (plies, end) = game();
        checksum = checksum.wrapping_mul(31).wrapping_add(plies).wrapping_mul(31).wrapping_add(end);
    }
    Work { units: games, checksum }
}

struct Play(u64);

impl UniformVisitor for Play {
    type Output = Work;
    fn visit<G: Complete>(self, parameters: &Parameters) -> Work {
        let start = G::initial(parameters).expect("the defaults go together");
        let mut random = seeded(1);
        let mut scratch = Vec::new();
        let mut position = start.clone();
        play(self.0, || {
            position.clone_from(&start);
            let mut plies = 0;
            while position.turn() != Turn::Over {
                let mv = position.sample(&mut random, &mut scratch);
                position.play(mv);
                plies += 1;
            }
            (plies, position.payoff(Seat::FIRST) as u64)
        })
    }
}

/// Agon's own.
pub fn agon(game: &str, games: u64) -> Work {
    GameSpec::parse(game).expect("a game of Agon").visit_any(Play(games))
}

/// `minimax`: generate, choose, apply, as its own rollouts do.
pub fn minimax<G: minimax::Game>(games: u64) -> Work
where
    G::S: Default,
{
    let mut random = rand_09::rngs::SmallRng::seed_from_u64(1);
    let mut moves = Vec::new();
    play(games, || {
        let mut state = G::S::default();
        let mut plies = 0;
        loop {
            moves.clear();
            if let Some(winner) = G::generate_moves(&state, &mut moves) {
                return (plies, winner as u64);
            }
            let mv = moves[random.random_range(0..moves.len())];
            if let Some(next) = G::apply(&mut state, mv) {
                state = next;
            }
            plies += 1;
        }
    })
}

/// `board-game`: its own random move.
pub fn board_game<B: board_game::board::Board + Default>(games: u64) -> Work {
    let mut random = rand_08::rngs::SmallRng::seed_from_u64(1);
    play(games, || {
        let mut board = B::default();
        let mut plies = 0;
        while board.play_random_available_move(&mut random).is_ok() {
            plies += 1;
        }
        (plies, u64::from(board.outcome() == Some(Outcome::Draw)))
    })
}

/// `cozy-chess`: list, choose, play, until checkmate, stalemate, fifty moves or 600 plies; no repetition.
pub fn cozy(games: u64) -> Work {
    let mut random = rand_09::rngs::SmallRng::seed_from_u64(1);
    let mut moves = Vec::new();
    play(games, || {
        let mut board = cozy_chess::Board::default();
        for plies in 0..600 {
            moves.clear();
            board.generate_moves(|set| {
                moves.extend(set);
                false
            });
            if moves.is_empty() || board.halfmove_clock() >= 100 {
                return (plies, board.hash());
            }
            board.play_unchecked(moves[random.random_range(0..moves.len())]);
        }
        (600, board.hash())
    })
}
