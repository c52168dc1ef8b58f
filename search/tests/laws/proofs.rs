//! A search that has seen the whole tree proves its value, and what any search proves is the value of the whole tree.

use agon_games::chess::Chess;
use agon_games::random::mix;
use agon_games::schema::Choice;
use agon_games::{DuelGame, Game, GameSpec, Parameters, Setup, Turn};
use agon_search::baseline::Greedy;
use agon_search::chance::{self, ChanceSearch};
use agon_search::deepening::deepen;
use agon_search::duel::{Algorithm, Driver, DuelRules, DuelSearch, Options, TableHits};
use agon_search::evaluate::{Evaluate, Linear};
use agon_search::many::{self, ManySearch, ThreatRule, Values};
use agon_search::ordering::{Order, Stage};
use agon_search::{Limit, Proof, Searcher, Value};

use crate::duel::{budget, outcome};
use crate::many::positions;
use crate::sampling::expected;
use crate::tree::{ChanceTree, ManyTree, NodeValue, RandomTree, Shape};
use crate::{DuelVisitor, Duels};

/// Returns the result that a proof states for the mover, as 1, 0 or -1.
fn stated(value: Value) -> Option<i32> {
    value.proof.map(|proof| match proof {
        Proof::Win(_) => 1,
        Proof::Loss(_) => -1,
        Proof::Draw(_) => 0,
        Proof::Exact(_) => panic!("an exact value of a duel is a win, a loss or a draw"),
    })
}

/// Returns searches of duels, each with whether it proves what it has seen to the end.
fn ways(null: bool, quiet: bool) -> Vec<(Options, bool)> {
    let order = Order::new(Stage::ALL);
    let mut ways = vec![(Options::plain(Algorithm::Minimax), true)];
    let drivers = [Driver::F, Driver::Sss, Driver::Bisection].map(Algorithm::Mtd);
    for algorithm in [Algorithm::AlphaBeta, Algorithm::Pvs].into_iter().chain(drivers) {
        let plain = Options::plain(algorithm);
        let table = Options { order, table_mb: 1, ..plain };
        ways.push((table, true));
        ways.push((Options { table_hits: TableHits::Deeper, ..table }, false));
        ways.push((Options { late_move_reductions: true, ..table }, false));
        ways.push((Options { null_move: null, ..table }, !null));
        ways.push((Options { quiescence: quiet, ..table }, true));
        if !matches!(algorithm, Algorithm::Mtd(_)) {
            ways.push((plain, true));
            ways.push((Options { aspiration: Some(3), ..table }, true));
        }
    }
    ways
}

/// Checks every way of searching a position, at every depth to `deepest` and with node limits. The state of a search is
/// kept from limit to limit. Returns the number of proofs of a win, a draw and a loss.
fn check<G: DuelRules, E: Evaluate<G> + Clone>(
    root: &G,
    evaluator: &E,
    ways: &[(Options, bool)],
    deepest: u32,
    ends: bool,
) -> [u64; 3] {
    let mut proofs = [0; 3];
    let Turn::Player(seat) = root.turn() else { return proofs };
    let mut truth = None;
    for &(options, complete) in ways {
        let mut search = DuelSearch::new(options, evaluator.clone());
        for limit in [Limit::Nodes(60)].into_iter().chain((1..=deepest).map(Limit::Depth)) {
            let found = deepen(&mut search, root, budget(limit), &mut |_| ());
            if let Some(said) = stated(found.value) {
                let truth = *truth.get_or_insert_with(|| outcome(root, seat));
                assert_eq!(said, truth, "{root:?}, {options:?}, {limit:?}: {:?}", found.value);
                assert_eq!(u64::from(found.value.proof.unwrap().plies()), found.counters.proven_plies);
                proofs[(1 - said) as usize] += 1;
            } else {
                let whole = ends && limit == Limit::Depth(deepest);
                assert!(!(whole && complete), "{root:?}, {options:?}: no proof at depth {deepest}");
            }
        }
    }
    proofs
}

#[test]
fn duel_proofs_on_random_trees() {
    let mut proofs = [0; 3];
    for seed in 0..120 {
        let shape = Shape {
            width: 1 + seed % 4,
            meets: seed % 3 == 0,
            ends: [0, 3, 5][(seed / 2 % 3) as usize],
            last: 3 + seed % 4,
            ..Shape::seeded(seed, 90)
        };
        let found = check(&RandomTree::new(shape), &NodeValue, &ways(true, false), 7, true);
        proofs.iter_mut().zip(found).for_each(|(sum, found)| *sum += found);
    }
    println!("wins, draws and losses proven on random trees: {proofs:?}");
    assert!(proofs.iter().all(|&proofs| proofs > 1000));
}

struct Proofs {
    positions: u64,
    plies: usize,
    deepest: u32,
    ends: bool,
}

impl DuelVisitor for Proofs {
    type Output = [u64; 3];
    fn duel<G: DuelGame>(self, parameters: &Parameters) -> [u64; 3] {
        let mut proofs = [0; 3];
        for root in positions(&G::initial(parameters).unwrap(), self.positions, self.plies) {
            let ways = ways(G::PASSING_HURTS, G::NOISY);
            let found = check(&root, &Linear::default_of::<G>(), &ways, self.deepest, self.ends);
            proofs.iter_mut().zip(found).for_each(|(sum, found)| *sum += found);
        }
        proofs
    }
}

#[test]
fn duel_proofs_on_games() {
    for (game, positions, plies, deepest, ends) in [
        ("tic-tac-toe", 30, 8, 9, true),
        ("nim:heaps=2-3", 10, 3, 5, true),
        ("grundy:heaps=9", 10, 3, 6, true),
        ("kalah:holes=2,seeds=2", 20, 6, 20, true),
        ("connect-four:width=4,height=4", 20, 13, 8, false),
    ] {
        let proofs = GameSpec::parse(game).unwrap().visit(Duels(Proofs { positions, plies, deepest, ends }));
        println!("{game}: wins, draws and losses proven: {proofs:?}");
        assert!(proofs.iter().sum::<u64>() > 0, "{game}");
    }
}

/// With a table whose keys leave the clock out, a draw by the fifty-move rule must not be taken for a draw of the board.
#[test]
fn draws_of_a_clock_prove_nothing_without_it() {
    let spec = GameSpec::parse("chess").unwrap();
    let position = |clock| {
        let fen = format!("7k/8/8/8/8/8/2Q5/K7 w - - {clock} 80");
        Chess::from_position(spec.parameters(), &fen).unwrap()
    };
    for table_mb in [0, 1] {
        let options = Options { table_mb, ..Options::plain(Algorithm::Pvs) };
        let mut search = DuelSearch::new(options, Linear::default_of::<Chess>());
        let mut find = |clock, depth| {
            let found = deepen(&mut search, &position(clock), budget(Limit::Depth(depth)), &mut |_| ());
            stated(found.value)
        };
        assert_eq!(find(99, 3), Some(0), "every move reaches the hundredth ply");
        for depth in 1..=3 {
            assert_eq!(find(0, depth), None, "with {table_mb} MiB at depth {depth}");
        }
    }
}

#[test]
fn two_seat_proofs_of_searches_for_many_seats() {
    let (mut draws, mut whole) = (0, 0);
    for seed in 0..150 {
        let shape = Shape {
            width: 2 + seed % 3,
            ends: [0, 3, 5][(seed / 2 % 3) as usize],
            last: 5,
            ..Shape::seeded(seed, 91)
        };
        let root = ManyTree::<2>(RandomTree::new(shape));
        let Turn::Player(seat) = root.turn() else { continue };
        let truth = outcome(&root, seat);
        for algorithm in [
            many::Algorithm::Paranoid,
            many::Algorithm::MaxN(Values::Raw),
            many::Algorithm::BestReply(ThreatRule::None),
        ] {
            for depth in 1..=5 {
                let mut search = ManySearch::new(algorithm, Order::NONE, NodeValue);
                let found = deepen(&mut search, &root, budget(Limit::Depth(depth)), &mut |_| ());
                match stated(found.value) {
                    Some(said) => {
                        assert_eq!(said, truth, "{root:?}, {algorithm:?}, depth {depth}");
                        draws += u32::from(said == 0);
                        whole += 1;
                    }
                    None => {
                        let replies = matches!(algorithm, many::Algorithm::BestReply(_));
                        assert!(depth < 5 || (replies && !shape.alternate), "{root:?}, {algorithm:?}");
                    }
                }
            }
        }
    }
    println!("{whole} proofs, {draws} of draws");
    assert!(draws > 100);
}

#[test]
fn exact_values_of_trees_with_chance() {
    let mut proofs = 0;
    for seed in 0..100 {
        let shape = Shape {
            width: 2 + seed % 3,
            ends: [0, 3][(seed % 2) as usize],
            last: 5,
            ..Shape::seeded(seed, 92)
        };
        let root = ChanceTree(RandomTree::new(shape));
        let Turn::Player(seat) = root.turn() else { continue };
        let truth = expected(&root, seat);
        for algorithm in
            [chance::Algorithm::Expectiminimax, chance::Algorithm::Star1, chance::Algorithm::Star2]
        {
            for depth in 1..=5 {
                let mut search = ChanceSearch::new(algorithm, Order::NONE, NodeValue);
                let found = deepen(&mut search, &root, budget(Limit::Depth(depth)), &mut |_| ());
                if let Some(proof) = found.value.proof {
                    assert_eq!(proof, Proof::Exact(found.depth));
                    let difference = (found.value.number - truth).abs();
                    assert!(difference < 1e-9, "{root:?}, {algorithm:?}, depth {depth}: {truth}");
                    proofs += 1;
                }
                assert!(depth < 5 || found.value.proof.is_some(), "{root:?}, {algorithm:?}");
            }
        }
    }
    println!("{proofs} exact values");
    assert!(proofs > 300);
}

/// A greedy player that has not looked at all moves cannot know that all lose.
#[test]
fn unfinished_greedy_search_proves_no_loss() {
    let mut losses = 0;
    for seed in 0..300 {
        let shape = Shape { seed: mix(seed, 93), width: 4, alternate: true, meets: false, ends: 2, last: 3 };
        let root = RandomTree::new(shape);
        let Turn::Player(seat) = root.turn() else { continue };
        for nodes in 1..=5 {
            let mut greedy = Greedy::new(NodeValue);
            let found = greedy.search(&root, budget(Limit::Nodes(nodes)), 1, &mut |_| ());
            if let Some(said) = stated(found.value) {
                assert_eq!(said, outcome(&root, seat), "{root:?}, {nodes} nodes");
                losses += u32::from(said < 0);
            }
        }
    }
    assert!(losses > 10, "{losses}");
}
