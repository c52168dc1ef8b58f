//! Star1 and Star2 return expectiminimax's value to the last bit, and enter fewer nodes.

use agon_games::random::{below, mix, seeded};
use agon_games::{ChanceGame, DuelGame, GAMES, GameSpec, ManyGame, Parameters, Turn, Visitor};
use agon_search::chance::{Algorithm, ChanceRules, ChanceSearch};
use agon_search::deepening::deepen;
use agon_search::evaluate::{Evaluate, Linear};
use agon_search::ordering::{Order, Stage};
use agon_search::{Answer, Limit};

use crate::duel::budget;
use crate::tree::{ChanceTree, NodeValue, RandomTree, Shape};

fn answer<G: ChanceRules, E: Evaluate<G>>(
    root: &G,
    evaluator: E,
    algorithm: Algorithm,
    order: &[Stage],
    depth: u32,
) -> Answer<G::Move> {
    let mut search = ChanceSearch::new(algorithm, Order::new(order), evaluator);
    deepen(&mut search, root, budget(Limit::Depth(depth)), &mut |_| ())
}

/// Searches by all algorithms and returns their nodes.
fn agree<G: ChanceRules, E: Evaluate<G> + Clone>(root: &G, evaluator: &E, depth: u32) -> [u64; 3] {
    let reference = answer(root, evaluator.clone(), Algorithm::Expectiminimax, &[], depth);
    let mut nodes = [reference.counters.nodes, u64::MAX, u64::MAX];
    for (place, algorithm) in [(1, Algorithm::Star1), (2, Algorithm::Star2)] {
        for order in
            [&[][..], &[Stage::Static], &[Stage::Killers, Stage::History], &[Stage::Pv, Stage::Static]]
        {
            let found = answer(root, evaluator.clone(), algorithm, order, depth);
            assert_eq!(
                found.value.number.to_bits(),
                reference.value.number.to_bits(),
                "{root:?}, depth {depth}, {algorithm:?}, {order:?}: {} and {}",
                found.value.number,
                reference.value.number
            );
            nodes[place] = nodes[place].min(found.counters.nodes);
        }
    }
    nodes
}

#[test]
fn on_random_trees() {
    let mut sums = [0u64; 3];
    for seed in 0..200 {
        let shape = Shape {
            seed,
            width: 2 + seed % 4,
            alternate: seed % 2 == 0,
            meets: false,
            ends: [0, 5, 11][(seed % 3) as usize],
            last: u64::MAX,
        };
        for depth in 1..=6 {
            let nodes = agree(&ChanceTree(RandomTree::new(shape)), &NodeValue, depth);
            sums.iter_mut().zip(nodes).for_each(|(sum, nodes)| *sum += nodes);
        }
    }
    println!("nodes of expectiminimax, Star1, Star2 on random trees: {sums:?}");
    assert!(sums[1] < sums[0], "{sums:?}");
}

struct Agree {
    positions: u64,
    depth: u32,
}

impl Visitor for Agree {
    type Output = [u64; 3];
    fn duel<G: DuelGame>(self, _: &Parameters) -> [u64; 3] {
        [0; 3]
    }
    fn many<G: ManyGame>(self, _: &Parameters) -> [u64; 3] {
        [0; 3]
    }
    fn chance<G: ChanceGame>(self, parameters: &Parameters) -> [u64; 3] {
        let start = G::initial(parameters).unwrap();
        let mut sums = [0; 3];
        let mut scratch = Vec::new();
        for seed in 0..self.positions {
            let mut random = seeded(mix(3, seed));
            let mut position = start.clone();
            let plies = below(&mut random, 40);
            for ply in 0.. {
                if matches!(position.turn(), Turn::Player(_)) && ply >= plies {
                    break;
                }
                if position.turn() == Turn::Over {
                    position = start.clone();
                }
                let mv = position.sample(&mut random, &mut scratch);
                position.play(mv);
            }
            let nodes = agree(&position, &Linear::default_of::<G>(), self.depth);
            sums.iter_mut().zip(nodes).for_each(|(sum, nodes)| *sum += nodes);
        }
        sums
    }
}

#[test]
fn on_games() {
    for info in GAMES.iter().filter(|info| info.chance) {
        let (positions, depth) = if info.name == "pig" { (60, 7) } else { (6, 2) };
        let sums = GameSpec::parse(info.name).unwrap().visit(Agree { positions, depth });
        println!("{}: nodes of expectiminimax, Star1, Star2: {sums:?}", info.name);
    }
}
