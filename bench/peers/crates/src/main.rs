//! Playouts and perft of connect-four, tic-tac-toe and chess, and searches of connect-four: Agon, `minimax`,
//! `board-game`, `cozy-chess`.
//!
//! Each figure is the median of several runs that take turns, so that all sides see the same machine, by the processor time
//! of the one thread. Each side computes a checksum from all of its work, so that the compiler cannot remove any of it.

mod playouts;
mod search;

/// The boards that `minimax` ships as examples.
mod boards {
    include!(concat!(env!("OUT_DIR"), "/boards.rs"));
}

use std::hint::black_box;

use agon_games::{Complete, GameSpec, Parameters, UniformVisitor};
use agon_search::clock::{Clock as _, ThreadClock};
use agon_search::rate::per_second;

/// The perft leaves of the initial positions.
const CONNECT_FOUR_PERFT_9: u64 = 39_394_572;
const TIC_TAC_TOE_PERFT_9: u64 = 127_872;
const CHESS_PERFT_5: u64 = 4_865_609;

/// The number of rounds, in each of which every side runs once.
const ROUNDS: usize = 7;

/// The work of one run.
struct Work {
    /// The counted units.
    units: u64,
    /// A value that depends on all of the work and is the same in every run.
    checksum: u64,
}

impl Work {
    /// Returns the work of a walk that must find this number of leaves.
    fn leaves(found: u64, expected: u64) -> Work {
        assert_eq!(found, expected, "perft counts wrong");
        Work { units: found, checksum: found }
    }
}

/// A contestant: a name, and the work of a run.
type Side<'a> = (&'a str, Box<dyn FnMut() -> Work + 'a>);

/// Runs the sides in turns, and prints the median rate of each with Agon's ratio to it: the median over the rounds, the
/// least and the greatest. Agon is the first. The first argument of the program, if there is one, selects the contests whose
/// titles contain it. Fails if a side repeats its work with another checksum, or faster than any processor.
fn contest(title: &str, unit: &str, mut sides: Vec<Side<'_>>) {
    if std::env::args().nth(1).is_some_and(|part| !title.contains(&part)) {
        return;
    }
    let mut checksums = vec![None; sides.len()];
    let mut rates = vec![[0f64; ROUNDS]; sides.len()];
    for round in 0..ROUNDS {
        for (number, (name, side)) in sides.iter_mut().enumerate() {
            let started = ThreadClock.now();
            let work = black_box(side());
            let elapsed = ThreadClock.now() - started;
            rates[number][round] = per_second(work.units, elapsed)
                .unwrap_or_else(|error| fail(&format!("{title}, {name}: {error}")));
            let checksum = *checksums[number].get_or_insert(work.checksum);
            if checksum != work.checksum {
                fail(&format!(
                    "{title}, {name}: checksum {}, and {checksum} in the first run",
                    work.checksum
                ));
            }
        }
    }
    println!("{title}");
    for (side, (name, _)) in sides.iter().enumerate() {
        let [_, rate, _] = spread(rates[side]);
        let (rate_shown, millions) = if rate < 1e4 { (rate, "") } else { (rate / 1e6, "M ") };
        print!("  {name:<34} {rate_shown:>9.3} {millions}{unit}/s");
        if side > 0 {
            let [low, ratio, high] =
                spread(std::array::from_fn(|round| rates[0][round] / rates[side][round]));
            print!("   agon is {ratio:.2} of it ({low:.2} to {high:.2})");
        }
        println!();
    }
}

/// Returns the least value, the median and the greatest value.
fn spread(mut values: [f64; ROUNDS]) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [values[0], values[ROUNDS / 2], values[ROUNDS - 1]]
}

/// Ends the program with an error.
fn fail(message: &str) -> ! {
    eprintln!("error: {message}");
    std::process::exit(1)
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
    GameSpec::parse(game).expect("a game of Agon").visit_any(Perft(black_box(depth)))
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

    let leaves = CONNECT_FOUR_PERFT_9;
    let minimax_board = |bulk| {
        let found =
            minimax_perft::<connect4::Game>(&mut Default::default(), black_box(9), bulk, &mut Vec::new());
        Work::leaves(found, leaves)
    };
    contest(
        "connect-four, perft 9",
        "leaves",
        vec![
            ("agon", Box::new(|| Work::leaves(agon_perft("connect-four", 9), leaves))),
            ("minimax's board", Box::new(|| minimax_board(false))),
            ("minimax's board, bulk", Box::new(|| minimax_board(true))),
            (
                "board-game, its own perft_naive",
                Box::new(|| Work::leaves(perft_naive(&Connect4::default(), black_box(9)), leaves)),
            ),
        ],
    );
    let leaves = TIC_TAC_TOE_PERFT_9;
    contest(
        "tic-tac-toe, perft 9",
        "leaves",
        vec![
            ("agon", Box::new(|| Work::leaves(agon_perft("tic-tac-toe", 9), leaves))),
            (
                "minimax's board, bulk",
                Box::new(|| {
                    let board = &mut Default::default();
                    Work::leaves(
                        minimax_perft::<ttt::Game>(board, black_box(9), true, &mut Vec::new()),
                        leaves,
                    )
                }),
            ),
            (
                "board-game, its own perft_naive",
                Box::new(|| Work::leaves(perft_naive(&TTTBoard::default(), black_box(9)), leaves)),
            ),
        ],
    );
    let leaves = CHESS_PERFT_5;
    contest(
        "chess, perft 5",
        "leaves",
        vec![
            ("agon", Box::new(|| Work::leaves(agon_perft("chess", 5), leaves))),
            (
                "cozy-chess, bulk",
                Box::new(|| Work::leaves(cozy_perft(&cozy_chess::Board::default(), black_box(5)), leaves)),
            ),
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
