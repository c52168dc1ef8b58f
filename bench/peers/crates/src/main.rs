//! Playouts and perft of connect-four, tic-tac-toe and chess, and searches of connect-four: Agon, `minimax`,
//! `board-game`, `cozy-chess`.
//!
//! Each figure is the best of several runs that take turns, so that all sides see the same machine; one thread.

mod playouts;
mod search;

/// The boards that `minimax` ships as examples.
mod boards {
    include!(concat!(env!("OUT_DIR"), "/boards.rs"));
}

use std::hint::black_box;
use std::time::Instant;

use agon_games::{Complete, GameSpec, Parameters, UniformVisitor};

/// Runs that take turns; the best of each counts.
const RUNS: usize = 7;

/// A contestant: a name and something that counts what it did.
type Side<'a> = (&'a str, Box<dyn FnMut() -> u64 + 'a>);

/// Runs the sides in turns and prints the best rate of each and Agon's ratio to it. Agon is the first. The first
/// argument of the program, if there is one, chooses the contests whose titles contain it.
fn contest(title: &str, unit: &str, mut sides: Vec<Side<'_>>) {
    if std::env::args().nth(1).is_some_and(|part| !title.contains(&part)) {
        return;
    }
    let mut best = vec![0f64; sides.len()];
    for _ in 0..RUNS {
        for (rate, (_, side)) in best.iter_mut().zip(&mut sides) {
            let clock = Instant::now();
            let count = black_box(side());
            *rate = rate.max(count as f64 / clock.elapsed().as_secs_f64());
        }
    }
    println!("{title}");
    for (rate, (name, _)) in best.iter().zip(&sides) {
        let (rate_shown, millions) = if *rate < 1e4 { (*rate, "") } else { (rate / 1e6, "M ") };
        println!("  {name:<34} {rate_shown:>9.3} {millions}{unit}/s   agon is {:.2} of it", best[0] / rate);
    }
}

struct Perft(u32);

impl UniformVisitor for Perft {
    type Output = u64;
    fn visit<G: Complete>(self, parameters: &Parameters) -> u64 {
        let mut start = G::initial(parameters).expect("the defaults go together");
        agon_games::perft::perft(&mut start, self.0, &mut Vec::new())
    }
}

fn agon_perft(game: &str, depth: u32) -> u64 {
    GameSpec::parse(game).expect("a game of Agon").visit_any(Perft(depth))
}

/// Perft over `minimax`'s trait; `bulk` counts the last ply without playing it.
fn minimax_perft<G: minimax::Game>(
    state: &mut G::S,
    depth: u32,
    bulk: bool,
    pool: &mut Vec<Vec<G::M>>,
) -> u64 {
    let mut moves = pool.pop().unwrap_or_default();
    let over = G::generate_moves(state, &mut moves).is_some();
    let mut leaves = 0;
    if !over && depth == 1 && bulk {
        leaves = moves.len() as u64;
    } else if !over {
        for &mv in &moves {
            let next = G::apply(state, mv);
            let in_place = next.is_none();
            let mut next = next;
            let child = next.as_mut().unwrap_or(state);
            leaves += if depth == 1 { 1 } else { minimax_perft::<G>(child, depth - 1, bulk, pool) };
            if in_place {
                G::undo(state, mv);
            }
        }
    }
    moves.clear();
    pool.push(moves);
    leaves
}

fn cozy_perft(board: &cozy_chess::Board, depth: u32) -> u64 {
    let mut leaves = 0;
    if depth == 1 {
        board.generate_moves(|moves| {
            leaves += moves.len() as u64;
            false
        });
    } else {
        board.generate_moves(|moves| {
            for mv in moves {
                let mut next = board.clone();
                next.play_unchecked(mv);
                leaves += cozy_perft(&next, depth - 1);
            }
            false
        });
    }
    leaves
}

fn main() {
    use board_game::games::{connect4::Connect4, ttt::TTTBoard};
    use board_game::util::game_stats::perft_naive;
    use boards::{connect4, ttt};

    contest(
        "connect-four, perft 9",
        "leaves",
        vec![
            ("agon", Box::new(|| agon_perft("connect-four", 9))),
            (
                "minimax's board",
                Box::new(|| {
                    minimax_perft::<connect4::Game>(&mut Default::default(), 9, false, &mut Vec::new())
                }),
            ),
            (
                "minimax's board, bulk",
                Box::new(|| {
                    minimax_perft::<connect4::Game>(&mut Default::default(), 9, true, &mut Vec::new())
                }),
            ),
            ("board-game, its own perft_naive", Box::new(|| perft_naive(&Connect4::default(), 9))),
        ],
    );
    contest(
        "tic-tac-toe, perft 9",
        "leaves",
        vec![
            ("agon", Box::new(|| agon_perft("tic-tac-toe", 9))),
            (
                "minimax's board, bulk",
                Box::new(|| minimax_perft::<ttt::Game>(&mut Default::default(), 9, true, &mut Vec::new())),
            ),
            ("board-game, its own perft_naive", Box::new(|| perft_naive(&TTTBoard::default(), 9))),
        ],
    );
    contest(
        "chess, perft 5",
        "leaves",
        vec![
            ("agon", Box::new(|| agon_perft("chess", 5))),
            ("cozy-chess, bulk", Box::new(|| cozy_perft(&cozy_chess::Board::default(), 5))),
        ],
    );

    contest(
        "connect-four, random games",
        "games",
        vec![
            ("agon", Box::new(|| playouts::agon("connect-four", 400_000))),
            ("minimax's board", Box::new(|| playouts::minimax::<connect4::Game>(400_000))),
            ("board-game", Box::new(|| playouts::board_game::<Connect4>(400_000))),
        ],
    );
    contest(
        "tic-tac-toe, random games",
        "games",
        vec![
            ("agon", Box::new(|| playouts::agon("tic-tac-toe", 400_000))),
            ("minimax's board", Box::new(|| playouts::minimax::<ttt::Game>(400_000))),
            ("board-game", Box::new(|| playouts::board_game::<TTTBoard>(400_000))),
        ],
    );
    contest(
        "chess, random games",
        "games",
        vec![
            ("agon", Box::new(|| playouts::agon("chess", 1_000))),
            ("cozy-chess, plain loop", Box::new(|| playouts::cozy(1_000))),
            ("board-game", Box::new(|| playouts::board_game::<board_game::games::chess::ChessBoard>(100))),
        ],
    );

    let depth = 13;
    contest(
        "connect-four, plain alpha-beta",
        "nodes",
        vec![
            ("agon", Box::new(move || search::agon_alpha_beta(depth))),
            ("minimax, Negamax", Box::new(move || search::minimax_alpha_beta(depth))),
            ("board-game, minimax", Box::new(move || search::board_game_alpha_beta(depth))),
            ("a loop by hand", Box::new(move || search::hand_alpha_beta(depth))),
        ],
    );
    contest(
        "connect-four, UCT",
        "simulations",
        vec![
            ("agon", Box::new(|| search::agon_uct(200_000))),
            ("board-game, mcts_build_tree", Box::new(|| search::board_game_uct(200_000))),
        ],
    );
    contest(
        "connect-four, depth 16 with a table of 64 MB",
        "searches",
        vec![
            ("agon, pvs", Box::new(|| search::agon_deepening(16))),
            ("minimax, IterativeSearch", Box::new(|| search::minimax_deepening(16, false))),
            ("minimax, IterativeSearch, by twos", Box::new(|| search::minimax_deepening(16, true))),
        ],
    );
}
