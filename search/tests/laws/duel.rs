//! Every pruned search of duels returns minimax's value.

use std::sync::Arc;

use agon_games::random::mix;
use agon_games::{DuelGame, GameSpec, Parameters, Turn, Visitor};
use agon_search::clock::WallClock;
use agon_search::deepening::deepen;
use agon_search::duel::{Algorithm, Driver, DuelRules, DuelSearch, Options};
use agon_search::evaluate::{Evaluate, Linear};
use agon_search::ordering::{Order, Stage};
use agon_search::{Answer, Budget, Limit};

use crate::tree::{NodeValue, RandomTree, Shape};

pub fn budget(limit: Limit) -> Budget {
    Budget::start(limit, Arc::new(WallClock::start()))
}

fn answer<G: DuelRules, E: Evaluate<G>>(
    root: &G,
    evaluator: E,
    options: Options,
    depth: u32,
) -> Answer<G::Move> {
    let limit = Limit::Depth(depth);
    let mut search = DuelSearch::new(options, evaluator);
    deepen(&mut search, root, budget(limit), &mut |_| ())
}

/// The orders that are tried: none, each stage alone, all.
fn orders() -> Vec<Order> {
    let all = Stage::ALL.map(|(stage, _)| stage);
    let mut orders: Vec<Order> = all.iter().map(|&stage| Order::new(&[stage])).collect();
    orders.push(Order::NONE);
    orders.push(Order::new(&all));
    orders
}

/// Every way to search that must agree with minimax; with a table only where positions do not depend on the path.
fn ways(table: bool) -> Vec<Options> {
    let mut ways = Vec::new();
    for order in orders() {
        for table_mb in if table { vec![0, 1] } else { vec![0] } {
            for algorithm in [Algorithm::AlphaBeta, Algorithm::Pvs] {
                for aspiration in [None, Some(3), Some(1500)] {
                    ways.push(Options { order, table_mb, aspiration, ..Options::plain(algorithm) });
                }
            }
            if table_mb > 0 {
                for driver in [Driver::F, Driver::Sss, Driver::Dual, Driver::Bisection] {
                    ways.push(Options { order, table_mb, ..Options::plain(Algorithm::Mtd(driver)) });
                }
            }
        }
    }
    ways
}

#[test]
fn on_random_trees() {
    let mut checked = 0u64;
    for seed in 0..120 {
        let shape = Shape {
            seed,
            width: 2 + seed % 4,
            alternate: seed % 2 == 0,
            meets: seed % 3 == 0,
            ends: [0, 7, 19][(seed / 2 % 3) as usize],
            last: u64::MAX,
        };
        let root = RandomTree::new(shape);
        if root.turn() == Turn::Over {
            continue;
        }
        for depth in 1..=5 {
            let reference = answer(&root, NodeValue, Options::plain(Algorithm::Minimax), depth);
            for options in ways(true) {
                let found = answer(&root, NodeValue, options, depth);
                assert_eq!(found.value, reference.value, "{shape:?}, depth {depth}, {options:?}");
                assert_eq!(found.depth, reference.depth, "{shape:?}, depth {depth}, {options:?}");
                checked += 1;
            }
        }
    }
    println!("{checked} searches of random trees agree with minimax");
}

use agon_games::Game as _;

struct Agree {
    depth: u32,
    positions: u64,
}

impl Visitor for Agree {
    type Output = u64;

    fn duel<G: DuelGame>(self, parameters: &Parameters) -> u64 {
        let start = G::initial(parameters).unwrap();
        let mut searches = 0;
        for seed in 0..self.positions {
            // A position somewhere in a random game.
            let mut random = agon_games::random::seeded(mix(5, seed));
            let mut scratch = Vec::new();
            let mut root = start.clone();
            for _ in 0..agon_games::random::below(&mut random, 30) {
                let mut next = root.clone();
                let mv = next.sample(&mut random, &mut scratch);
                next.play(mv);
                if next.turn() == Turn::Over {
                    break;
                }
                root = next;
            }
            let evaluator = Linear::default_of::<G>();
            let reference = answer(&root, evaluator.clone(), Options::plain(Algorithm::Minimax), self.depth);
            for options in ways(!G::PATH_DEPENDENT) {
                let found = answer(&root, evaluator.clone(), options, self.depth);
                assert_eq!(found.value, reference.value, "{} {}, {options:?}", G::NAME, root.position());
                searches += 1;
            }
        }
        searches
    }

    fn many<G: agon_games::ManyGame>(self, _: &Parameters) -> u64 {
        unreachable!("a duel was asked for")
    }

    fn chance<G: agon_games::ChanceGame>(self, _: &Parameters) -> u64 {
        unreachable!("a duel was asked for")
    }
}

/// Every duel with a depth and a number of positions that take a moment.
const GAMES_AND_DEPTHS: [(&str, u32, u64); 13] = [
    ("tic-tac-toe", 4, 10),
    ("nim", 4, 8),
    ("grundy", 4, 8),
    ("connect-four", 4, 10),
    ("othello", 3, 6),
    ("kalah", 4, 10),
    ("checkers", 4, 8),
    ("chess", 2, 4),
    ("go:size=5", 2, 4),
    ("virus:seats=2,size=5", 2, 4),
    ("rolit:seats=2", 3, 4),
    ("focus:seats=2", 2, 2),
    ("chinese-checkers:seats=2", 2, 3),
];

#[test]
fn no_duel_is_left_out() {
    for info in agon_games::GAMES.iter().filter(|info| !info.chance) {
        let listed = GAMES_AND_DEPTHS.iter().any(|(game, _, _)| game.split(':').next() == Some(info.name));
        assert!(listed, "{} has no line in GAMES_AND_DEPTHS", info.name);
    }
}

#[test]
fn on_games() {
    let mut searches = 0;
    for (game, depth, positions) in GAMES_AND_DEPTHS {
        searches += GameSpec::parse(game).unwrap().visit(Agree { depth, positions });
    }
    println!("{searches} searches of games agree with minimax");
}
