//! Every search of duels returns the value of the definition and plays a move of that value.

use std::sync::Arc;

use agon_games::random::mix;
use agon_games::schema::Choice;
use agon_games::{Deterministic, DuelGame, Game, GameSpec, Parameters, Seat, Turn};
use agon_search::clock::WallClock;
use agon_search::deepening::deepen;
use agon_search::duel::{Algorithm, Driver, DuelRules, DuelSearch, Options};
use agon_search::evaluate::{Evaluate, Linear};
use agon_search::ordering::{Order, Stage};
use agon_search::value::end_score;
use agon_search::{Budget, Limit, Score, SearchResult, Value};

use crate::tree::{NodeValue, RandomTree, Shape, is_legal_line};
use crate::{DuelVisitor, Duels};

pub fn budget(limit: Limit) -> Budget {
    Budget::start(limit, Arc::new(WallClock::start()))
}

fn answer<G: DuelRules, E: Evaluate<G>>(
    root: &G,
    evaluator: E,
    options: Options,
    depth: u32,
) -> SearchResult<G::Move> {
    limited(root, evaluator, options, Limit::Depth(depth))
}

/// Returns the result of a search with fresh state.
pub fn limited<G: DuelRules, E: Evaluate<G>>(
    root: &G,
    evaluator: E,
    options: Options,
    limit: Limit,
) -> SearchResult<G::Move> {
    let mut search = DuelSearch::new(options, evaluator);
    let answer = deepen(&mut search, root, budget(limit), &mut |_| ());
    assert!(is_legal_line(root, &answer.line), "{root:?}, {options:?}: {:?}", answer.line);
    answer
}

/// Returns the value of a position for `seat` by definition: without window or table, sharing no code with the
/// searches.
pub fn definition<G: DuelRules, E: Evaluate<G>>(
    position: &G,
    seat: Seat,
    depth: u32,
    ply: usize,
    evaluator: &mut E,
) -> Score {
    let Turn::Player(mover) = position.turn() else { return end_score(position.payoff(seat), ply) };
    if depth == 0 {
        return evaluator.evaluate(position, seat);
    }
    let values = children(position, seat, depth, ply, evaluator).into_iter().map(|(_, value)| value);
    if mover == seat { values.max().unwrap() } else { values.min().unwrap() }
}

/// Returns the result for `seat` with best play to the end of the game, as 1, 0 or -1.
pub fn outcome<G: Game + Deterministic>(position: &G, seat: Seat) -> i32 {
    let Turn::Player(mover) = position.turn() else { return position.payoff(seat).signum() };
    let mut moves = Vec::new();
    position.moves(&mut moves);
    let mut best = -1;
    for mv in moves {
        let mut next = position.clone();
        next.play(mv);
        best = best.max(outcome(&next, mover));
        if best == 1 {
            break;
        }
    }
    if mover == seat { best } else { -best }
}

/// The moves of a position and their values for `seat`.
pub fn children<G: DuelRules, E: Evaluate<G>>(
    position: &G,
    seat: Seat,
    depth: u32,
    ply: usize,
    evaluator: &mut E,
) -> Vec<(G::Move, Score)> {
    let mut moves = Vec::new();
    position.moves(&mut moves);
    let value = |mv| {
        let mut next = position.clone();
        next.play(mv);
        definition(&next, seat, depth - 1, ply + 1, evaluator)
    };
    let values: Vec<Score> = moves.iter().copied().map(value).collect();
    moves.into_iter().zip(values).collect()
}

/// Checks a position with every search: the value is that of the definition, and the move has it.
fn agree<G: DuelRules, E: Evaluate<G> + Clone>(root: &G, evaluator: &E, ways: &[Options], depth: u32) -> u64 {
    let Turn::Player(seat) = root.turn() else { return 0 };
    let worth = children(root, seat, depth, 0, &mut evaluator.clone());
    let best = worth.iter().map(|(_, value)| *value).max().unwrap();
    for &options in ways {
        let found = answer(root, evaluator.clone(), options, depth);
        assert_eq!(found.value.number, Value::from(best).number, "{root:?}, depth {depth}, {options:?}");
        let chosen = worth.iter().find(|(mv, _)| *mv == found.best).map(|(_, value)| *value);
        assert_eq!(chosen, Some(best), "{root:?}, depth {depth}, {options:?} plays {:?}", found.best);
    }
    ways.len() as u64
}

/// Returns the orders to test: none, each stage alone, all.
fn orders() -> Vec<Order> {
    let all = Stage::ALL;
    let mut orders: Vec<Order> = all.iter().map(|&stage| Order::new(&[stage])).collect();
    orders.push(Order::NONE);
    orders.push(Order::new(all));
    orders
}

/// Returns the options that must agree with minimax, with a table only if positions do not depend on the path.
fn ways(table: bool) -> Vec<Options> {
    let mut ways = vec![Options::plain(Algorithm::Minimax)];
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
fn matches_definition_on_random_trees() {
    let mut checked = 0u64;
    for seed in 0..120 {
        let shape = Shape {
            seed,
            width: 2 + seed % 4,
            meets: seed % 3 == 0,
            ends: [0, 7, 19][(seed / 2 % 3) as usize],
            ..Shape::seeded(seed, 0)
        };
        let root = RandomTree::new(shape);
        if root.turn() == Turn::Over {
            continue;
        }
        for depth in 1..=5 {
            checked += agree(&root, &NodeValue, &ways(true), depth);
        }
    }
    println!("{checked} searches of random trees agree with the definition");
}

/// Checks that the pruned searches agree with each other if all use quiescence.
fn agree_with_quiescence<G: DuelRules>(root: &G, evaluator: &Linear, table: bool, depth: u32) -> u64
where
    Linear: Evaluate<G>,
{
    let quiet = |options: Options| Options { quiescence: true, ..options };
    let depth = depth.saturating_sub(1).max(1);
    let expected = answer(root, evaluator.clone(), quiet(Options::plain(Algorithm::AlphaBeta)), depth).value;
    let ways = ways(table);
    for &options in &ways {
        let found = answer(root, evaluator.clone(), quiet(options), depth).value;
        assert_eq!(found, expected, "{root:?}, depth {depth}, quiescence, {options:?}");
    }
    ways.len() as u64
}

struct Agree {
    depth: u32,
    positions: u64,
}

impl DuelVisitor for Agree {
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
            searches += agree(&root, &evaluator, &ways(!G::PATH_DEPENDENT), self.depth);
            if G::NOISY {
                searches += agree_with_quiescence(&root, &evaluator, !G::PATH_DEPENDENT, self.depth);
            }
        }
        searches
    }
}

/// Every duel with a depth and a number of positions that take a moment.
const GAMES_AND_DEPTHS: &[(&str, u32, u64)] = &[
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
fn laws_cover_every_duel() {
    for info in agon_games::GAMES.iter().filter(|info| !info.chance) {
        let listed = GAMES_AND_DEPTHS.iter().any(|(game, _, _)| game.split(':').next() == Some(info.name));
        assert!(listed, "{} has no line in GAMES_AND_DEPTHS", info.name);
    }
}

#[test]
fn matches_definition_on_games() {
    let mut searches = 0;
    for &(game, depth, positions) in GAMES_AND_DEPTHS {
        searches += GameSpec::parse(game).unwrap().visit(Duels(Agree { depth, positions }));
    }
    println!("{searches} searches of games agree with the definition");
}
