//! UCT finds what full search finds, its solver proves it, and rewards go to the right seats.

use agon_games::random::mix;
use agon_games::{ChanceGame, DuelGame, GameSpec, Keyed, ManyGame, Parameters, Seat, Turn, Visitor};
use agon_search::baseline::{Greedy, RandomPlayer};
use agon_search::deepening::deepen;
use agon_search::duel::{self, DuelSearch};
use agon_search::evaluate::Linear;
use agon_search::sampling::monte_carlo::MonteCarlo;
use agon_search::sampling::uct::{Final, Options, Uct};
use agon_search::sampling::{Playout, Rollout, SamplingRules};
use agon_search::{Answer, Limit, Proof, Searcher};

use crate::duel::budget;
use crate::tree::{ManyTree, NodeValue, RandomTree, Shape};

fn playout() -> Playout {
    Playout { rollout: Rollout::Uniform, plies: 0, scale: 4.0 }
}

fn options() -> Options {
    Options {
        c: 1.0,
        first_play: None,
        playout: playout(),
        choice: Final::Value,
        solver: false,
        keep: true,
        memory_mb: 64,
    }
}

fn uct<G: SamplingRules>(root: &G, options: Options, simulations: u64, seed: u64) -> Answer<G::Move>
where
    NodeValue: agon_search::evaluate::Evaluate<G>,
{
    Uct::new(options, NodeValue).search(root, budget(Limit::Nodes(simulations)), seed, &mut |_| ())
}

/// The payoffs of a finite tree by max-n, straight from the definition, and the best first moves for the mover.
fn max_n<const SEATS: usize>(position: &ManyTree<SEATS>) -> ([i32; SEATS], Vec<u8>) {
    use agon_games::Game;
    let Turn::Player(mover) = position.turn() else {
        return (std::array::from_fn(|seat| position.payoff(Seat(seat as u8))), Vec::new());
    };
    let mut moves = Vec::new();
    position.moves(&mut moves);
    let mut best: Option<[i32; SEATS]> = None;
    let mut choices = Vec::new();
    for mv in moves {
        let mut next = position.clone();
        next.play(mv);
        let (payoffs, _) = max_n(&next);
        let own = payoffs[mover.index()];
        match best {
            Some(known) if own < known[mover.index()] => {}
            Some(known) if own == known[mover.index()] => choices.push(mv),
            _ => {
                best = Some(payoffs);
                choices = vec![mv];
            }
        }
    }
    (best.unwrap(), choices)
}

fn converges<const SEATS: usize>() -> (u32, u32) {
    let (mut right, mut trees) = (0, 0);
    for seed in 0..60 {
        let shape = Shape {
            seed: mix(seed, 1000 + SEATS as u64),
            width: 2 + seed % 3,
            alternate: seed % 2 == 0,
            meets: false,
            ends: 0,
            last: 3,
        };
        let root = ManyTree::<SEATS>(RandomTree::new(shape));
        let (_, choices) = max_n(&root);
        let answer = uct(&root, options(), 20_000, seed);
        trees += 1;
        right += u32::from(choices.contains(&answer.best));
    }
    (right, trees)
}

#[test]
fn converges_to_the_best_move_for_any_number_of_seats() {
    // Where seats are indifferent among their moves max-n itself is not unique; most trees must agree all the same.
    let two = converges::<2>();
    assert_eq!(two.0, two.1, "two seats");
    for (right, trees) in [converges::<3>(), converges::<4>()] {
        println!("{right} of {trees} trees");
        assert!(right * 100 >= trees * 85, "{right} of {trees}");
    }
}

/// The solver against minimax on a small game: the same result, and a move that keeps it.
struct Solve {
    moves: &'static str,
    simulations: u64,
}

impl Visitor for Solve {
    type Output = Option<Proof>;
    fn duel<G: DuelGame>(self, parameters: &Parameters) -> Option<Proof> {
        let mut root = G::initial(parameters).unwrap();
        agon_games::line::follow(&mut root, self.moves).unwrap();
        let options = Options { solver: true, ..options() };
        let mut search = Uct::new(options, Linear::default_of::<G>());
        let answer = search.search(&root, budget(Limit::Nodes(self.simulations)), 1, &mut |_| ());
        let full = |position: &G| {
            let mut search =
                DuelSearch::new(duel::Options::plain(duel::Algorithm::AlphaBeta), Linear::default_of::<G>());
            deepen(&mut search, position, budget(Limit::Depth(40)), &mut |_| ()).value
        };
        let value = full(&root);
        match (answer.value.proof, value.proof) {
            (Some(Proof::Win(_)), Some(Proof::Win(_))) | (Some(Proof::Loss(_)), Some(Proof::Loss(_))) => {}
            (None, None) => assert_eq!(answer.value.number, 0.0, "{}: a proven draw", G::NAME),
            other => panic!("{} after \"{}\": {other:?}", G::NAME, self.moves),
        }
        if let Some(Proof::Win(_)) = value.proof {
            // The move that is played must itself be winning.
            let mut next = root.clone();
            next.play(answer.best);
            if let Turn::Player(_) = next.turn() {
                assert!(matches!(full(&next).proof, Some(Proof::Loss(_))), "{}", root.move_text(answer.best));
            }
        }
        answer.value.proof
    }
    fn many<G: ManyGame>(self, _: &Parameters) -> Option<Proof> {
        None
    }
    fn chance<G: ChanceGame>(self, _: &Parameters) -> Option<Proof> {
        None
    }
}

#[test]
fn the_solver_proves_small_games() {
    let solve =
        |game: &str, moves, simulations| GameSpec::parse(game).unwrap().visit(Solve { moves, simulations });
    assert_eq!(solve("tic-tac-toe", "", 100_000), None);
    assert!(matches!(solve("tic-tac-toe", "a1 b1", 50_000), Some(Proof::Win(_))));
    for (game, won) in [
        ("nim:heaps=3-4-5", true),
        ("nim:heaps=1-2-3", false),
        ("nim:heaps=2-2", false),
        ("grundy:heaps=7", false),
        ("grundy:heaps=8", true),
        ("grundy:heaps=10", false),
    ] {
        let proof = solve(game, "", 300_000);
        assert_eq!(matches!(proof, Some(Proof::Win(_))), won, "{game}: {proof:?}");
    }
    for moves in ["a1 c3 b1", "b2 b1 a1", "b2 b1", "a1 b2 c3", "b1 c3"] {
        solve("tic-tac-toe", moves, 100_000);
    }
}

#[test]
fn the_same_seed_gives_the_same_answer_and_the_tree_is_bounded() {
    let shape = Shape { seed: 3, width: 5, alternate: true, meets: false, ends: 9, last: 30 };
    let root = ManyTree::<3>(RandomTree::new(shape));
    let once = uct(&root, options(), 3_000, 7);
    let again = uct(&root, options(), 3_000, 7);
    assert_eq!((once.best, once.counters, once.value), (again.best, again.counters, again.value));
    assert_eq!(once.counters.simulations, 3_000);
    let small = uct(&root, Options { memory_mb: 1, ..options() }, 200_000, 7);
    assert!(small.counters.tree_nodes < 20_000, "{}", small.counters.tree_nodes);
    let none = uct(&root, options(), 0, 7);
    assert!(none.counters.simulations == 0 && !none.line.is_empty());
}

#[test]
fn a_tree_that_is_kept_follows_the_game() {
    use agon_games::Game;
    let shape = Shape { seed: 8, width: 4, alternate: true, meets: false, ends: 0, last: 12 };
    let mut position = ManyTree::<2>(RandomTree::new(shape));
    let mut search = Uct::new(options(), NodeValue);
    let first = search.search(&position, budget(Limit::Nodes(5_000)), 1, &mut |_| ());
    let reply = first.line[1];
    for mv in [first.best, reply] {
        search.observe(mv);
        position.play(mv);
    }
    let kept = search.search(&position, budget(Limit::Nodes(10)), 1, &mut |_| ());
    assert!(kept.counters.tree_nodes > 500, "{}", kept.counters.tree_nodes);
    // A position that the game did not lead to starts an empty tree.
    let other = ManyTree::<2>(RandomTree::new(shape));
    let fresh = search.search(&other, budget(Limit::Nodes(10)), 1, &mut |_| ());
    assert!(fresh.counters.tree_nodes < 100, "{}", fresh.counters.tree_nodes);
}

#[test]
fn all_options_play_legal_moves_within_their_limit() {
    use agon_games::Game;
    let shape = Shape { seed: 5, width: 6, alternate: false, meets: false, ends: 7, last: 20 };
    let root = ManyTree::<3>(RandomTree::new(shape));
    let mut legal = Vec::new();
    root.moves(&mut legal);
    let mut searches: Vec<Box<dyn Searcher<ManyTree<3>>>> = vec![
        Box::new(RandomPlayer),
        Box::new(Greedy::new(NodeValue)),
        Box::new(MonteCarlo::new(playout(), NodeValue)),
    ];
    for rollout in [Rollout::Uniform, Rollout::Greedy] {
        for plies in [0, 2] {
            for choice in [Final::Value, Final::Visits] {
                for first_play in [None, Some(0.4)] {
                    let playout = Playout { rollout, plies, scale: 1.0 };
                    let options = Options { playout, choice, first_play, ..options() };
                    searches.push(Box::new(Uct::new(options, NodeValue)));
                }
            }
        }
    }
    for search in &mut searches {
        for limit in [0, 1, 2, 500] {
            search.new_game();
            let answer = search.search(&root, budget(Limit::Nodes(limit)), 11, &mut |_| ());
            assert!(legal.contains(&answer.best));
            assert_eq!(answer.line.first(), Some(&answer.best));
            assert!(answer.counters.simulations <= limit && (-1.0..=1e6).contains(&answer.value.number));
        }
    }
    let _ = root.key();
}
