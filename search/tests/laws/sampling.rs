//! UCT converges to the move of full search, its solver proves it, and rewards reach the right seats.

use agon_games::backgammon::Backgammon;
use agon_games::pig::Pig;
use agon_games::{
    Chance, ChanceGame, DuelGame, Game, GameSpec, Keyed, ManyGame, Notation, Ordered, Parameters, Payoffs,
    Seat, Setup, Turn, Visitor,
};
use agon_search::baseline::{Greedy, RandomPlayer};
use agon_search::deepening::deepen;
use agon_search::duel::{self, DuelSearch};
use agon_search::evaluate::{Evaluate, Linear};
use agon_search::sampling::monte_carlo::MonteCarlo;
use agon_search::sampling::uct::{Final, Options, Uct};
use agon_search::sampling::{Estimate, Playout, Rollout, SamplingRules};
use agon_search::{Limit, Proof, SearchResult, Searcher};

use crate::chance::ExactPig;
use crate::duel::budget;
use crate::tree::{ChanceTree, ManyTree, NodeValue, RandomTree, Shape};

fn playout() -> Playout {
    Playout { rollout: Rollout::Uniform, plies: 0, estimate: Estimate::Odds(4.0) }
}

fn options() -> Options {
    Options {
        c: 1.0,
        first_play: None,
        playouts: 1,
        playout: playout(),
        choice: Final::Value,
        solver: false,
        keep: true,
        memory_mb: 64,
    }
}

fn uct<G: SamplingRules>(root: &G, options: Options, simulations: u64, seed: u64) -> SearchResult<G::Move>
where
    NodeValue: Evaluate<G>,
{
    Uct::new(options, NodeValue).search(root, budget(Limit::Nodes(simulations)), seed, &mut |_| ())
}

/// Returns all payoffs that max-n may end with in a finite tree: an indifferent mover may choose any of its equal
/// moves.
fn max_n<const SEATS: usize>(position: &ManyTree<SEATS>) -> Vec<[i32; SEATS]> {
    let Turn::Player(mover) = position.turn() else {
        return vec![std::array::from_fn(|seat| position.payoff(Seat(seat as u8)))];
    };
    let children: Vec<_> = first_moves(position).into_iter().map(|(_, next)| max_n(&next)).collect();
    let (worst, best) = (least(mover), most(mover));
    let sure = children.iter().map(|child| worst(child)).max().unwrap();
    children.into_iter().filter(|child| best(child) >= sure).flatten().collect()
}

fn least<const SEATS: usize>(seat: Seat) -> impl Fn(&[[i32; SEATS]]) -> i32 {
    move |payoffs| payoffs.iter().map(|payoffs| payoffs[seat.index()]).min().unwrap()
}

fn most<const SEATS: usize>(seat: Seat) -> impl Fn(&[[i32; SEATS]]) -> i32 {
    move |payoffs| payoffs.iter().map(|payoffs| payoffs[seat.index()]).max().unwrap()
}

/// Returns the moves of a position with their successors.
fn first_moves<G: Game>(position: &G) -> Vec<(G::Move, G)> {
    let mut moves = Vec::new();
    position.moves(&mut moves);
    let next = |mv| {
        let mut next = position.clone();
        next.play(mv);
        (mv, next)
    };
    moves.into_iter().map(next).collect()
}

/// Returns the number of trees with a clear best move that UCT plays, and the number of such trees.
fn converges<const SEATS: usize>() -> (u32, u32) {
    let (mut right, mut trees) = (0, 0);
    for seed in 0..120 {
        let shape = Shape { width: 2 + seed % 3, last: 3, ..Shape::seeded(seed, 1000 + SEATS as u64) };
        let root = ManyTree::<SEATS>(RandomTree::new(shape));
        let Turn::Player(mover) = root.turn() else { continue };
        let moves: Vec<_> = first_moves(&root).into_iter().map(|(mv, next)| (mv, max_n(&next))).collect();
        // Clear: no other move pays as much, whatever indifferent movers choose.
        let clear = moves.iter().find(|(mv, payoffs)| {
            let others = moves.iter().filter(|(other, _)| other != mv);
            others.map(|(_, others)| most(mover)(others)).all(|other| other < least(mover)(payoffs))
        });
        let Some((best, _)) = clear.filter(|_| moves.len() > 1) else { continue };
        // The solver only works with two seats.
        for (choice, solver) in
            [(Final::Value, false), (Final::Visits, false), (Final::Value, true), (Final::Visits, true)]
        {
            let answer = uct(&root, Options { choice, solver, ..options() }, 20_000, seed);
            trees += 1;
            right += u32::from(answer.best == *best);
        }
    }
    (right, trees)
}

#[test]
fn converges_to_best_move_for_any_number_of_seats() {
    for (seats, (right, trees)) in
        [(2, converges::<2>()), (3, converges::<3>()), (4, converges::<4>()), (6, converges::<6>())]
    {
        println!("{seats} seats: {right} of {trees} clear decisions");
        assert!(trees >= 40, "{seats} seats: {trees}");
        assert_eq!(right, trees, "{seats} seats");
    }
}

/// Checks the counters of a sampling search: one leaf per simulation, and every entered position is in the tree or in
/// a playout.
fn counts_add_up<M>(answer: &SearchResult<M>, limit: u64) {
    let counters = &answer.counters;
    assert_eq!((counters.simulations, counters.leaves), (limit, limit), "{counters:?}");
    let in_tree = counters.nodes - 1 - counters.playout_plies;
    assert!(in_tree >= limit && in_tree <= limit * u64::from(answer.selective_depth), "{counters:?}");
    assert_eq!((counters.cutoffs, counters.table_probes, counters.researches), (0, 0, 0));
}

/// Returns the expected payoff of a finite position for a seat, by definition.
pub fn expected<G: Game + Chance>(position: &G, seat: Seat) -> f64 {
    let values = || first_moves(position).into_iter().map(|(_, next)| expected(&next, seat));
    match position.turn() {
        Turn::Over => f64::from(position.payoff(seat)),
        Turn::Player(mover) if mover == seat => values().fold(f64::NEG_INFINITY, f64::max),
        Turn::Player(_) => values().fold(f64::INFINITY, f64::min),
        Turn::Chance => {
            let weighed = first_moves(position)
                .into_iter()
                .map(|(outcome, next)| f64::from(position.weight(outcome)) * expected(&next, seat));
            weighed.sum::<f64>() / f64::from(position.total_weight())
        }
    }
}

/// Returns whether UCT plays the best move of a position, by value, by visits and with the solver, and makes only
/// true proofs; `None` if the best move does not lead by `margin`.
fn decides<G: SamplingRules + Chance, E: Evaluate<G> + Clone>(
    root: &G,
    evaluator: &E,
    simulations: u64,
    margin: f64,
) -> Option<bool> {
    let Turn::Player(seat) = root.turn() else { return None };
    let mut moves: Vec<_> =
        first_moves(root).into_iter().map(|(mv, next)| (expected(&next, seat), mv)).collect();
    moves.sort_by(|one, other| other.0.total_cmp(&one.0));
    if moves.len() < 2 || moves[0].0 - moves[1].0 < margin {
        return None;
    }
    let ways = [(Final::Visits, false), (Final::Value, false), (Final::Visits, true)];
    Some(ways.into_iter().all(|(choice, solver)| {
        let mut search = Uct::new(Options { choice, solver, ..options() }, evaluator.clone());
        let answer = search.search(root, budget(Limit::Nodes(simulations)), 1, &mut |_| ());
        if !solver {
            counts_add_up(&answer, simulations);
        }
        // A proof must be true.
        match answer.value.proof {
            Some(Proof::Win(_)) => assert!(moves[0].0 > 0.0 && expected_sign(root, seat) == 1, "{root:?}"),
            Some(Proof::Loss(_)) => assert!(expected_sign(root, seat) == -1, "{root:?}"),
            Some(Proof::Draw(_)) => assert!(expected(root, seat) == 0.0, "{root:?}"),
            Some(Proof::Exact(_)) => panic!("{root:?}: sampling is never exact"),
            None => {}
        }
        answer.best == moves[0].1
    }))
}

/// Returns who wins a position whatever chance does: 1 for `seat`, -1 for the other, 0 if that is uncertain.
fn expected_sign<G: Game + Chance>(position: &G, seat: Seat) -> i32 {
    let certain = |wanted: i32, seat| certainly(position, seat).then_some(wanted);
    certain(1, seat).or_else(|| certain(-1, seat.other())).unwrap_or(0)
}

/// Returns whether `seat` wins against any play and any outcome.
fn certainly<G: Game + Chance>(position: &G, seat: Seat) -> bool {
    let mut children = first_moves(position).into_iter().map(|(_, next)| next);
    match position.turn() {
        Turn::Over => position.payoff(seat) > 0,
        Turn::Player(mover) if mover == seat => children.any(|next| certainly(&next, seat)),
        _ => children.all(|next| certainly(&next, seat)),
    }
}

#[test]
fn converges_to_best_move_with_chance() {
    let (mut right, mut trees) = (0, 0);
    for seed in 0..200 {
        let shape = Shape {
            width: 2 + seed % 3,
            ends: [0, 6][(seed % 2) as usize],
            last: 4,
            ..Shape::seeded(seed, 2000)
        };
        // A tenth of the range of payoffs.
        let Some(found) = decides(&ChanceTree(RandomTree::new(shape)), &NodeValue, 10_000, 0.6) else {
            continue;
        };
        trees += 1;
        right += u32::from(found);
    }
    println!("{right} of {trees} clear decisions of random trees");
    assert!(trees > 60);
    assert_eq!(right, trees);
}

#[test]
fn pig_converges_to_exact_solution() {
    let exact = ExactPig::solve(12);
    let spec = GameSpec::parse("pig:target=12").unwrap();
    let (mut right, mut decisions) = (0, 0);
    for own in (0..12).step_by(2) {
        for other in (0..12).step_by(2) {
            for total in 2..12 - own {
                let text = format!("{own} {other} {total} 0 decide 60");
                let Ok(root) = Pig::from_position(spec.parameters(), &text) else { continue };
                let (roll, hold) = (exact.roll(own, other, total), exact.hold(own, other, total));
                if (roll - hold).abs() < 0.1 {
                    continue;
                }
                let best = if roll > hold { "roll" } else { "hold" };
                let mut search =
                    Uct::new(Options { choice: Final::Visits, ..options() }, Linear::default_of::<Pig>());
                let answer = search.search(&root, budget(Limit::Nodes(5_000)), 1, &mut |_| ());
                counts_add_up(&answer, 5_000);
                decisions += 1;
                right += u32::from(root.move_text(answer.best) == best);
            }
        }
    }
    println!("{right} of {decisions} clear decisions of pig");
    assert!(decisions > 50);
    assert_eq!(right, decisions);
}

#[test]
fn bearing_off_converges_to_exact_solution() {
    let spec = GameSpec::parse("backgammon").unwrap();
    let evaluator = Linear::default_of::<Backgammon>();
    let (mut right, mut decisions) = (0, 0);
    for far in 2..=6 {
        for near in 2..=far {
            for roll in ["21", "31", "32", "41", "43", "52"] {
                // The other side bears off its last checkers with its next roll, or almost.
                for other in ["1:1,off:14", "4:1,1:1,off:13"] {
                    let own = if far == near { format!("{far}:2") } else { format!("{far}:1,{near}:1") };
                    let text = format!("{own},1:1,off:12 {other} x {roll} 97");
                    let root = Backgammon::from_position(spec.parameters(), &text).unwrap();
                    let Some(found) = decides(&root, &evaluator, 10_000, 0.1) else { continue };
                    decisions += 1;
                    right += u32::from(found);
                }
            }
        }
    }
    println!("{right} of {decisions} clear decisions of bearing off");
    assert!(decisions > 10);
    assert_eq!(right, decisions);
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
            (Some(Proof::Draw(_)), Some(Proof::Draw(_))) => assert_eq!(answer.value.number, 0.0),
            other => panic!("{} after \"{}\": {other:?}", G::NAME, self.moves),
        }
        if let Some(Proof::Win(_)) = value.proof {
            // The move must win.
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
fn solver_proves_small_games() {
    let solve =
        |game: &str, moves, simulations| GameSpec::parse(game).unwrap().visit(Solve { moves, simulations });
    assert!(matches!(solve("tic-tac-toe", "", 100_000), Some(Proof::Draw(9))));
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

/// Searches a position by UCT and by Monte Carlo and returns both values.
fn sampled<G: SamplingRules, E: Evaluate<G> + Clone>(root: &G, evaluator: &E, playout: Playout) -> [f64; 2] {
    let limit = || budget(Limit::Nodes(400));
    let options = Options { playout, ..options() };
    let tree = Uct::new(options, evaluator.clone()).search(root, limit(), 1, &mut |_| ());
    let flat = MonteCarlo::new(None, playout, evaluator.clone()).search(root, limit(), 1, &mut |_| ());
    [tree.value.number, flat.value.number]
}

/// Checks trees with a single line: every playout has the payoff of its end.
fn reports_payoff_of_line<const SEATS: usize>() {
    for seed in 0..20 {
        let shape = Shape { seed, width: 1, alternate: false, meets: false, ends: 0, last: 4 };
        let root = ManyTree::<SEATS>(RandomTree::new(shape));
        let Turn::Player(seat) = root.turn() else { continue };
        let mut end = root.clone();
        while end.turn() != Turn::Over {
            end.play(0);
        }
        let payoff = f64::from(end.payoff(seat));
        let values = sampled(&root, &NodeValue, playout());
        // The mean of equal thirds is a third up to rounding.
        assert!(
            values.iter().all(|value| (value - payoff).abs() < 1e-9),
            "{SEATS} seats: {values:?}, {payoff}"
        );
    }
}

#[test]
fn values_are_mean_payoffs_in_the_games_units() {
    reports_payoff_of_line::<2>();
    reports_payoff_of_line::<3>();
    reports_payoff_of_line::<6>();
    let spec = GameSpec::parse("backgammon").unwrap();
    let value = |text: &str| {
        let root = Backgammon::from_position(spec.parameters(), text).unwrap();
        sampled(&root, &Linear::default_of::<Backgammon>(), playout())
    };
    // The last checker is borne off with every move: a single win, and a gammon of an opponent with none off.
    assert_eq!(value("1:1,off:14 1:1,off:14 x 21 97"), [1.0; 2]);
    assert_eq!(value("1:1,off:14 6:15 x 21 97"), [2.0; 2]);
}

/// The evaluation of a game with chance is an expected payoff and is taken as such where playouts are cut off.
#[test]
fn cut_playouts_with_chance_report_expected_payoffs() {
    #[derive(Clone)]
    struct Half;
    impl Evaluate<Pig> for Half {
        fn evaluate(&mut self, _: &Pig, seat: Seat) -> agon_search::Score {
            if seat == Seat::FIRST { 5_000 } else { -5_000 }
        }
    }
    let spec = GameSpec::parse("pig").unwrap();
    let root = Pig::initial(spec.parameters()).unwrap();
    let cut = Playout { plies: 1, estimate: Estimate::Payoff, ..playout() };
    assert_eq!(sampled(&root, &Half, cut), [0.5; 2]);
}

/// A random tree that pays twice as much.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Doubled(RandomTree);

impl Game for Doubled {
    type Move = u8;
    const SEATS: usize = 2;
    const PAYOFFS: Payoffs = Payoffs { min: -2, max: 2, sum: 0, spread: 4 };
    fn turn(&self) -> Turn {
        self.0.turn()
    }
    fn moves(&self, out: &mut Vec<u8>) {
        self.0.moves(out);
    }
    fn play(&mut self, mv: u8) {
        self.0.play(mv);
    }
    fn payoff(&self, seat: Seat) -> i32 {
        2 * self.0.payoff(seat)
    }
    fn ply_bound(&self) -> u32 {
        self.0.ply_bound()
    }
}

impl Ordered for Doubled {
    const SLOTS: usize = RandomTree::SLOTS;
    fn slot(&self, mv: u8) -> usize {
        self.0.slot(mv)
    }
    fn promise(&self, mv: u8) -> i32 {
        self.0.promise(mv)
    }
}

impl Evaluate<Doubled> for NodeValue {
    fn evaluate(&mut self, position: &Doubled, seat: Seat) -> agon_search::Score {
        self.evaluate(&position.0, seat)
    }
}

#[test]
fn exploration_does_not_depend_on_the_unit_of_payoffs() {
    for seed in 0..10 {
        let shape = Shape { seed, width: 4, alternate: true, meets: false, ends: 6, last: 12 };
        let root = RandomTree::new(shape);
        let single = uct(&root, options(), 2_000, seed);
        let double = uct(&Doubled(root), options(), 2_000, seed);
        assert_eq!((single.best, single.line, single.counters), (double.best, double.line, double.counters));
        assert_eq!(2.0 * single.value.number, double.value.number);
    }
}

#[test]
fn playouts_are_counted_and_end_with_their_number_or_the_limit() {
    let shape = Shape { seed: 5, width: 6, alternate: false, meets: false, ends: 0, last: 20 };
    let root = ManyTree::<3>(RandomTree::new(shape));
    let mut moves = Vec::new();
    root.moves(&mut moves);
    let flat = |per_move, limit| {
        let mut search = MonteCarlo::new(Some(per_move), playout(), NodeValue);
        search.search(&root, budget(Limit::Nodes(limit)), 1, &mut |_| ()).counters.simulations
    };
    assert_eq!(flat(50, 1_000_000), 50 * moves.len() as u64);
    assert_eq!(flat(50, 7), 7);
    for (playouts, limit) in [(1, 100), (8, 100), (8, 96), (200, 100)] {
        let answer = uct(&root, Options { playouts, ..options() }, limit, 3);
        assert_eq!((answer.counters.simulations, answer.counters.leaves), (limit, limit));
        let descents = limit.div_ceil(playouts);
        assert!(answer.counters.tree_nodes <= 1 + 6 * descents, "{playouts} playouts at a leaf");
    }
}

#[test]
fn same_seed_gives_same_result_in_bounded_tree() {
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
fn kept_tree_follows_game() {
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
    // A position outside the game starts an empty tree.
    let other = ManyTree::<2>(RandomTree::new(shape));
    let fresh = search.search(&other, budget(Limit::Nodes(10)), 1, &mut |_| ());
    assert!(fresh.counters.tree_nodes < 100, "{}", fresh.counters.tree_nodes);
}

#[test]
fn all_options_play_legal_moves_within_limit() {
    let shape = Shape { seed: 5, width: 6, alternate: false, meets: false, ends: 7, last: 20 };
    let root = ManyTree::<3>(RandomTree::new(shape));
    let mut legal = Vec::new();
    root.moves(&mut legal);
    let mut searches: Vec<Box<dyn Searcher<ManyTree<3>>>> = vec![
        Box::new(RandomPlayer),
        Box::new(Greedy::new(NodeValue)),
        Box::new(MonteCarlo::new(None, playout(), NodeValue)),
        Box::new(MonteCarlo::new(Some(7), playout(), NodeValue)),
    ];
    for rollout in [Rollout::Uniform, Rollout::Greedy] {
        for plies in [0, 2] {
            for choice in [Final::Value, Final::Visits] {
                for first_play in [None, Some(0.4)] {
                    let playout = Playout { rollout, plies, estimate: Estimate::Odds(1.0) };
                    for playouts in [1, 3] {
                        let options = Options { playouts, playout, choice, first_play, ..options() };
                        searches.push(Box::new(Uct::new(options, NodeValue)));
                    }
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
