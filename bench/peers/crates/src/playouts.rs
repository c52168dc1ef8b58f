//! Random games by each crate's own means.

use agon_games::random::seeded;
use agon_games::{Complete, GameSpec, Parameters, Turn, UniformVisitor};
use rand_08::SeedableRng as _;
use rand_09::{Rng as _, SeedableRng as _};

struct Play(u64);

impl UniformVisitor for Play {
    type Output = u64;
    fn visit<G: Complete>(self, parameters: &Parameters) -> u64 {
        let start = G::initial(parameters).expect("the defaults go together");
        let mut random = seeded(1);
        let mut scratch = Vec::new();
        let mut position = start.clone();
        for _ in 0..self.0 {
            position.clone_from(&start);
            while position.turn() != Turn::Over {
                let mv = position.sample(&mut random, &mut scratch);
                position.play(mv);
            }
        }
        self.0
    }
}

/// Agon's own.
pub fn agon(game: &str, games: u64) -> u64 {
    GameSpec::parse(game).expect("a game of Agon").visit_any(Play(games))
}

/// `minimax`: generate, choose, apply, as its own rollouts do.
pub fn minimax<G: minimax::Game>(games: u64) -> u64
where
    G::S: Default,
{
    let mut random = rand_09::rngs::SmallRng::seed_from_u64(1);
    let mut moves = Vec::new();
    for _ in 0..games {
        let mut state = G::S::default();
        loop {
            moves.clear();
            if G::generate_moves(&state, &mut moves).is_some() {
                break;
            }
            let mv = moves[random.random_range(0..moves.len())];
            if let Some(next) = G::apply(&mut state, mv) {
                state = next;
            }
        }
    }
    games
}

/// `board-game`: its own random move.
pub fn board_game<B: board_game::board::Board + Default>(games: u64) -> u64 {
    let mut random = rand_08::rngs::SmallRng::seed_from_u64(1);
    for _ in 0..games {
        let mut board = B::default();
        while board.play_random_available_move(&mut random).is_ok() {}
    }
    games
}

/// `cozy-chess`: list, choose, play, until checkmate, stalemate, fifty moves or 600 plies; no repetition.
pub fn cozy(games: u64) -> u64 {
    let mut random = rand_09::rngs::SmallRng::seed_from_u64(1);
    let mut moves = Vec::new();
    for _ in 0..games {
        let mut board = cozy_chess::Board::default();
        for _ in 0..600 {
            moves.clear();
            board.generate_moves(|set| {
                moves.extend(set);
                false
            });
            if moves.is_empty() || board.halfmove_clock() >= 100 {
                break;
            }
            board.play_unchecked(moves[random.random_range(0..moves.len())]);
        }
    }
    games
}
