//! Searches of connect-four from its start: Agon, `minimax`, `board-game` and a loop written for this one purpose.
//!
//! Everybody evaluates a horizon as 0, counts ends, and takes the columns from left to right. A node is a position
//! entered, the root included.

use std::cell::Cell;
use std::cmp::Ordering;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use agon_games::schema::Choice;
use agon_games::{DuelGame, GameSpec, Parameters, Seat, Visitor};
use agon_search::clock::WallClock;
use agon_search::deepening::{FixedDepthSearch, deepen};
use agon_search::duel::{Algorithm, DuelSearch, Options};
use agon_search::evaluate::Evaluate;
use agon_search::ordering::{Order, Stage};
use agon_search::sampling::uct::{Final, Options as UctOptions, Uct};
use agon_search::sampling::{Estimate, Playout, Rollout};
use agon_search::value::{INFINITY, Score, end_score};
use agon_search::{Budget, Counters, Limit, Searcher};
use board_game::ai::mcts::mcts_build_tree;
use board_game::ai::minimax::{Heuristic, minimax_value};
use board_game::board::{Board as _, Outcome};
use board_game::games::connect4::Connect4;
use minimax::{IterativeOptions, IterativeSearch, Negamax, Strategy as _};
use rand_08::SeedableRng as _;

use crate::Work;
use crate::boards::connect4;

/// An evaluation that knows only the rules.
#[derive(Clone, Debug, Default)]
struct Nothing;

impl<G> Evaluate<G> for Nothing {
    fn evaluate(&mut self, _position: &G, _seat: Seat) -> Score {
        0
    }
}

/// Something to do with Agon's connect-four.
enum Task {
    AlphaBeta(u32),
    Pvs(u32),
    Uct(u64),
}

impl Visitor for Task {
    type Output = Counters;

    fn duel<G: DuelGame>(self, parameters: &Parameters) -> Counters {
        let start = G::initial(parameters).expect("the defaults go together");
        let budget = |limit| Budget::start(limit, Arc::new(WallClock::start()));
        match self {
            Task::AlphaBeta(depth) => {
                let mut search = DuelSearch::new(Options::plain(Algorithm::AlphaBeta), Nothing);
                search.start(&start, budget(Limit::Depth(depth)));
                let value = search.search_window(&mut start.clone(), depth, -INFINITY, INFINITY);
                assert_eq!(value, Ok(0));
                search.effort().counters
            }
            Task::Pvs(depth) => {
                let order = Order::new(Stage::ALL);
                let options = Options { order, table_mb: 64, ..Options::plain(Algorithm::Pvs) };
                let mut search = DuelSearch::new(options, Nothing);
                let answer = deepen(&mut search, &start, budget(Limit::Depth(depth)), &mut |_| ());
                assert_eq!((answer.depth, answer.value.number), (depth, 0.0));
                answer.counters
            }
            Task::Uct(simulations) => {
                let options = UctOptions {
                    c: f64::from(EXPLORATION),
                    first_play: None,
                    playouts: 1,
                    playout: Playout { rollout: Rollout::Uniform, plies: 0, estimate: Estimate::Odds(1.0) },
                    choice: Final::Visits,
                    solver: false,
                    keep: false,
                    memory_mb: 512,
                };
                let mut search = Uct::new(options, Nothing);
                search.search(&start, budget(Limit::Nodes(simulations)), 1, &mut |_| ()).counters
            }
        }
    }

    fn many<G: agon_games::ManyGame>(self, _: &Parameters) -> Counters {
        unreachable!("connect-four is a duel")
    }

    fn chance<G: agon_games::ChanceGame>(self, _: &Parameters) -> Counters {
        unreachable!("connect-four is a duel")
    }
}

fn agon(task: Task) -> Counters {
    GameSpec::parse("connect-four").expect("a game of Agon").visit(task)
}

/// The weight of exploration of both tree searches.
const EXPLORATION: f32 = 1.0;

/// Agon's plain alpha-beta, counters and budget on: nodes.
pub fn agon_alpha_beta(depth: u32) -> Work {
    let nodes = agon(Task::AlphaBeta(black_box(depth))).nodes;
    Work { units: nodes, checksum: nodes }
}

/// Agon's PVS with every stage of ordering and a table of 64 MB, by deepening: one search.
pub fn agon_deepening(depth: u32) -> Work {
    Work { units: 1, checksum: agon(Task::Pvs(black_box(depth))).nodes }
}

/// Agon's UCT without its solver: simulations.
pub fn agon_uct(simulations: u64) -> Work {
    let counters = agon(Task::Uct(black_box(simulations)));
    Work { units: counters.simulations, checksum: counters.playout_plies }
}

/// The connect-four that `minimax` ships, counting positions. `Negamax` shuffles the moves of the root, so that no two
/// of its runs have the same nodes and they must be counted in the run that is timed: one load, addition and store.
/// It asks each position exactly one of the two questions.
struct Counted;

static ENTERED: AtomicU64 = AtomicU64::new(0);

fn count() {
    ENTERED.store(ENTERED.load(Relaxed) + 1, Relaxed);
}

impl minimax::Game for Counted {
    type S = connect4::Board;
    type M = connect4::Place;

    fn generate_moves(board: &Self::S, moves: &mut Vec<Self::M>) -> Option<minimax::Winner> {
        count();
        connect4::Game::generate_moves(board, moves)
    }

    fn get_winner(board: &Self::S) -> Option<minimax::Winner> {
        count();
        connect4::Game::get_winner(board)
    }

    fn apply(board: &mut Self::S, place: Self::M) -> Option<Self::S> {
        connect4::Game::apply(board, place)
    }
}

impl minimax::Evaluator for Nothing {
    type G = Counted;

    fn evaluate(&self, _: &connect4::Board) -> minimax::Evaluation {
        0
    }
}

/// `minimax`'s `Negamax`: nodes.
pub fn minimax_alpha_beta(depth: u32) -> Work {
    let before = ENTERED.load(Relaxed);
    let mut search = Negamax::new(Nothing, black_box(depth) as u8);
    assert!(search.choose_move(&connect4::Board::default()).is_some());
    Work { units: ENTERED.load(Relaxed) - before, checksum: u64::from(search.root_value().unsigned_abs()) }
}

/// `minimax`'s `IterativeSearch`, configured as its own example is, the aspiration window aside: every leaf is worth
/// the same. `double` deepens by two plies at a time. One search.
pub fn minimax_deepening(depth: u32, double: bool) -> Work {
    let mut options = IterativeOptions::new().with_table_byte_size(64 << 20);
    if double {
        options = options.with_double_step_increment();
    }
    let mut search = IterativeSearch::new(connect4::DumbEvaluator, options);
    search.set_max_depth(black_box(depth) as u8);
    assert!(search.choose_move(&connect4::Board::default()).is_some());
    Work { units: 1, checksum: u64::from(search.root_value().unsigned_abs()) }
}

/// Ends by distance for `board-game`'s minimax, which asks this once for every position that it enters.
#[derive(Debug, Default)]
struct Ends {
    asked: Cell<u64>,
}

impl Heuristic<Connect4> for Ends {
    type V = Score;

    fn value(&self, board: &Connect4, depth: u32) -> Score {
        self.asked.set(self.asked.get() + 1);
        match board.outcome() {
            Some(Outcome::WonBy(player)) => {
                end_score(if player == board.next_player() { 1 } else { -1 }, depth as usize)
            }
            Some(Outcome::Draw) | None => 0,
        }
    }

    fn merge(old: Score, new: Score) -> (Score, Ordering) {
        (old.max(new), new.cmp(&old))
    }
}

/// `board-game`'s minimax, which is alpha-beta: nodes.
pub fn board_game_alpha_beta(depth: u32) -> Work {
    let ends = Ends::default();
    assert_eq!(minimax_value(&Connect4::default(), &ends, black_box(depth)), 0);
    Work { units: ends.asked.get(), checksum: ends.asked.get() }
}

/// `board-game`'s tree search: simulations. Its solver cannot be switched off.
pub fn board_game_uct(simulations: u64) -> Work {
    let mut random = rand_08::rngs::SmallRng::seed_from_u64(1);
    let tree = mcts_build_tree(&Connect4::default(), black_box(simulations), EXPLORATION, &mut random);
    Work { units: tree[0].visits as u64, checksum: tree.nodes.len() as u64 }
}

/// The least that alpha-beta on this one game can be: two bitboards by value, no lists, no trait, no budget, no line.
struct ByHand {
    nodes: u64,
}

/// The highest squares of all columns.
const TOPS: u64 = 0x0000_8102_0408_1020;

impl ByHand {
    /// The value for the owner of `own`, who moves; `stones` are everybody's. The position is not over.
    fn search(
        &mut self,
        own: u64,
        stones: u64,
        depth: u32,
        mut alpha: Score,
        beta: Score,
        ply: usize,
    ) -> Score {
        let mut best = -INFINITY;
        for column in 0..7 {
            let bottom = 1u64 << (7 * column);
            if stones & bottom << 5 != 0 {
                continue;
            }
            self.nodes += 1;
            let next = stones | (stones + bottom);
            let moved = own | (next ^ stones);
            let line = |step: u32| {
                let pairs = moved & moved >> step;
                pairs & pairs >> (2 * step)
            };
            let value = if line(1) | line(6) | line(7) | line(8) != 0 {
                end_score(1, ply + 1)
            } else if depth == 1 || next & TOPS == TOPS {
                0
            } else {
                -self.search(next ^ moved, next, depth - 1, -beta, -alpha, ply + 1)
            };
            best = best.max(value);
            alpha = alpha.max(value);
            if value >= beta {
                break;
            }
        }
        best
    }
}

/// The loop written for this one purpose: nodes.
pub fn hand_alpha_beta(depth: u32) -> Work {
    let mut search = ByHand { nodes: 1 };
    assert_eq!(search.search(0, 0, black_box(depth), -INFINITY, INFINITY, 0), 0);
    Work { units: search.nodes, checksum: search.nodes }
}
