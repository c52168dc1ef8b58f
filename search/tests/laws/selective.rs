//! Options that may change a search's value (null move, late move reductions, deeper table hits), and what must hold
//! with them: proofs are true, a game searched to its end is solved, and searches are deterministic.

use agon_games::chess::Chess;
use agon_games::schema::Choice;
use agon_games::{DuelGame, GAMES, Game as _, GameSpec, Parameters, Setup, Turn};
use agon_search::deepening::deepen;
use agon_search::duel::{Algorithm, Driver, DuelRules, DuelSearch, Options, TableHits};
use agon_search::evaluate::{Evaluate, Linear};
use agon_search::ordering::{Order, Stage};
use agon_search::value::{Score, proof};
use agon_search::{Limit, Proof, SearchResult, Value};

use crate::duel::{budget, definition, limited, outcome};
use crate::many::positions;
use crate::tree::{NodeValue, RandomTree, Shape};
use crate::{DuelVisitor, Duels};

/// The number of positions in which passing would be better than every move, and the number of all positions.
struct Passing {
    depth: u32,
    positions: u64,
}

impl DuelVisitor for Passing {
    type Output = (u64, u64);
    fn duel<G: DuelGame>(self, parameters: &Parameters) -> (u64, u64) {
        let (mut better, mut all) = (0, 0);
        let start = G::initial(parameters).unwrap();
        for root in positions(&start, self.positions, 60) {
            let Turn::Player(seat) = root.turn() else { continue };
            let Some(passed) = root.reseat(seat.other()) else { continue };
            let mut evaluator = Linear::default_of::<G>();
            let best = definition(&root, seat, self.depth, 0, &mut evaluator);
            let pass = definition(&passed, seat, self.depth - 1, 1, &mut evaluator);
            all += 1;
            better += u64::from(pass > best);
        }
        (better, all)
    }
}

#[test]
fn zugzwang_is_rare_where_passing_hurts() {
    let best = |game: &str, depth, positions| {
        let (better, all) = GameSpec::parse(game).unwrap().visit(Duels(Passing { depth, positions }));
        println!("{game}: passing is best in {better} of {all} positions");
        assert!(all > 50, "{game}");
        better as f64 / all as f64
    };
    assert_eq!(best("tic-tac-toe", 9, 80), 0.0);
    assert!(best("chess", 3, 100) < 0.02);
    assert!(best("chinese-checkers:seats=2", 2, 60) < 0.02);
    for game in ["othello", "kalah", "checkers"] {
        assert!(best(game, 3, 100) > 0.05, "{game}");
    }
    let said = GAMES.iter().filter(|info| info.passing_hurts).map(|info| info.name);
    assert_eq!(said.collect::<Vec<_>>(), ["tic-tac-toe", "chess", "chinese-checkers"]);
}

/// Where every move is worse than passing, null moves do not change the value: with pawns only, and with pieces.
#[test]
fn null_moves_see_zugzwang() {
    let spec = GameSpec::parse("chess").unwrap();
    for (fen, deepest) in [
        ("8/8/8/1pK5/kP6/8/8/8 w - - 0 1", 9),
        ("8/8/p1p5/1p5p/1P5p/8/PPP2K1p/4R1rk w - - 0 1", 6),
        ("7k/5K2/5P1p/3p4/6P1/3p4/8/8 w - - 0 1", 8),
        ("8/8/8/8/8/1k6/p1R5/K7 w - - 0 1", 8),
    ] {
        let root = Chess::from_position(spec.parameters(), fen).unwrap();
        for algorithm in [Algorithm::AlphaBeta, Algorithm::Pvs] {
            let plain = Options { order: Order::new(Stage::ALL), table_mb: 4, ..Options::plain(algorithm) };
            for depth in 4..=deepest {
                let value = |null_move| {
                    let options = Options { null_move, ..plain };
                    limited(&root, Linear::default_of::<Chess>(), options, Limit::Depth(depth)).value.number
                };
                assert_eq!(value(true), value(false), "{fen}, depth {depth}, {algorithm:?}");
            }
        }
    }
}

/// Returns all combinations of the options, with null moves where the game allows them.
fn ways(table: bool, null: bool) -> Vec<Options> {
    let order = Order::new(Stage::ALL);
    let mut ways = Vec::new();
    for mixture in 1..8 {
        let (reduce, pass, deeper) = (mixture & 1 > 0, mixture & 2 > 0, mixture & 4 > 0);
        if (pass && !null) || (deeper && !table) {
            continue;
        }
        let mut algorithms = vec![Algorithm::AlphaBeta, Algorithm::Pvs];
        if table {
            algorithms.extend([Driver::F, Driver::Sss, Driver::Dual, Driver::Bisection].map(Algorithm::Mtd));
        }
        for algorithm in algorithms {
            let mtd = matches!(algorithm, Algorithm::Mtd(_));
            for order in [Order::NONE, order] {
                ways.push(Options {
                    order,
                    table_mb: usize::from(mtd || deeper),
                    table_hits: if deeper { TableHits::Deeper } else { TableHits::Equal },
                    null_move: pass,
                    late_move_reductions: reduce,
                    ..Options::plain(algorithm)
                });
            }
        }
    }
    ways
}

/// Checks that the counters of a duel search add up, whatever its options.
fn counts_add_up<M>(answer: &SearchResult<M>) {
    let counters = &answer.counters;
    let nodes: u64 = answer.iterations.iter().map(|iteration| iteration.nodes).sum();
    assert!(nodes <= counters.nodes && counters.leaves <= counters.nodes, "{counters:?}");
    assert!(counters.quiescence_nodes <= counters.nodes, "{counters:?}");
    assert!(counters.first_move_cutoffs <= counters.cutoffs, "{counters:?}");
    assert!(counters.cutoffs + counters.leaves <= 2 * counters.nodes, "{counters:?}");
    assert!(counters.table_hits <= counters.table_probes, "{counters:?}");
    assert!(counters.table_stores <= counters.table_probes, "{counters:?}");
    assert_eq!((counters.simulations, counters.tree_nodes, counters.playout_plies), (0, 0, 0));
    let depths: Vec<u32> = answer.iterations.iter().map(|iteration| iteration.depth).collect();
    assert_eq!(depths, (1..=answer.depth).collect::<Vec<_>>());
}

/// Checks that a proof is true: the winner wins with best play, within the stated plies.
fn is_true(said: Proof, by_definition: impl Fn(u32) -> Score, outcome: impl Fn() -> i32) -> bool {
    match said {
        Proof::Win(plies) => matches!(proof(by_definition(plies)), Some(Proof::Win(best)) if best <= plies),
        Proof::Loss(plies) => matches!(proof(by_definition(plies)), Some(Proof::Loss(best)) if best <= plies),
        // At the greatest depth of these tests every line of a drawn tree has ended.
        Proof::Draw(plies) => by_definition(plies) == 0 && outcome() == 0,
        Proof::Exact(_) => false,
    }
}

/// Searches a position with all options, to every depth and with node limits, and returns the number of checked
/// proofs.
fn check_proofs<G: DuelRules, E: Evaluate<G> + Clone>(
    root: &G,
    evaluator: &E,
    ways: &[Options],
    deepest: u32,
) -> u64 {
    let Turn::Player(seat) = root.turn() else { return 0 };
    let mut proofs = 0;
    for &options in ways {
        let search = |limit| limited(root, evaluator.clone(), options, limit);
        for limit in (1..=deepest).map(Limit::Depth).chain([7, 300].map(Limit::Nodes)) {
            let found = search(limit);
            counts_add_up(&found);
            assert_eq!(found.line.first(), Some(&found.best));
            let again = search(limit);
            let untimed = |answer: &SearchResult<G::Move>| (answer.best, answer.value, answer.counters);
            assert_eq!(
                untimed(&found),
                untimed(&again),
                "{root:?}, {options:?}, {limit:?}: not the same again"
            );
            if let Some(said) = found.value.proof {
                let by_definition = |depth| definition(root, seat, depth, 0, &mut evaluator.clone());
                let outcome = || outcome(root, seat);
                assert!(is_true(said, by_definition, outcome), "{root:?}, {options:?}, {limit:?}: {said:?}");
                proofs += 1;
            }
            if let Limit::Nodes(nodes) = limit {
                assert!(found.counters.nodes <= nodes, "{root:?}, {options:?}: {limit:?}");
            }
        }
    }
    proofs
}

#[test]
fn proofs_are_true_and_counts_add_up_on_random_trees() {
    let mut proofs = 0;
    for seed in 0..30 {
        let shape = Shape {
            width: 2 + seed % 5,
            meets: seed % 3 == 0,
            ends: [3, 5, 9][(seed / 2 % 3) as usize],
            last: 7,
            ..Shape::seeded(seed, 77)
        };
        proofs += check_proofs(&RandomTree::new(shape), &NodeValue, &ways(true, true), 5);
    }
    println!("{proofs} proofs are true");
    assert!(proofs > 1000);
}

/// A position that is won even after passing is not proven won, because passing is no move. In small trees passing is
/// often better than every move.
#[test]
fn null_moves_make_no_proofs() {
    let mut proofs = 0;
    for seed in 0..600 {
        let shape =
            Shape { width: 2, ends: [3, 4, 6][(seed % 3) as usize], last: 9, ..Shape::seeded(seed, 80) };
        let null = ways(false, true).into_iter().filter(|options| options.null_move);
        proofs += check_proofs(&RandomTree::new(shape), &NodeValue, &null.collect::<Vec<_>>(), 7);
    }
    println!("{proofs} proofs are true in spite of null moves");
    assert!(proofs > 1000);
}

struct Hold {
    depth: u32,
    positions: u64,
    plies: usize,
}

impl DuelVisitor for Hold {
    type Output = u64;
    fn duel<G: DuelGame>(self, parameters: &Parameters) -> u64 {
        let start = G::initial(parameters).unwrap();
        let ways = ways(!G::PATH_DEPENDENT, G::PASSING_HURTS);
        let roots = positions(&start, self.positions, self.plies);
        roots.iter().map(|root| check_proofs(root, &Linear::default_of::<G>(), &ways, self.depth)).sum()
    }
}

#[test]
fn proofs_are_true_and_counts_add_up_on_games() {
    let mut proofs = 0;
    for (game, depth, positions, plies) in [
        ("tic-tac-toe", 6, 12, 7),
        ("nim", 5, 6, 6),
        ("connect-four", 5, 5, 36),
        ("othello", 3, 3, 50),
        ("kalah:holes=4,seeds=2", 5, 6, 20),
        ("checkers", 4, 4, 60),
        ("chess", 3, 3, 80),
        ("chinese-checkers:seats=2", 2, 2, 40),
    ] {
        let found = GameSpec::parse(game).unwrap().visit(Duels(Hold { depth, positions, plies }));
        println!("{game}: {found} proofs are true");
        proofs += found;
    }
    assert!(proofs > 100);
}

/// Returns a search's result without its time.
fn untimed<M: Copy>(answer: &SearchResult<M>) -> (M, agon_search::Value, agon_search::Counters) {
    (answer.best, answer.value, answer.counters)
}

#[test]
fn inapplicable_options_change_nothing() {
    for seed in 0..60 {
        let shape = Shape {
            width: 2 + seed % 7,
            meets: seed % 3 == 0,
            ends: [0, 7][(seed % 2) as usize],
            ..Shape::seeded(seed, 78)
        };
        let root = RandomTree::new(shape);
        for algorithm in [Algorithm::AlphaBeta, Algorithm::Pvs, Algorithm::Mtd(Driver::F)] {
            let plain = Options { table_mb: 1, ..Options::plain(algorithm) };
            let same = |options: Options, depth| {
                let found = limited(&root, NodeValue, options, Limit::Depth(depth));
                let expected = limited(&root, NodeValue, plain, Limit::Depth(depth));
                assert_eq!(untimed(&found), untimed(&expected), "{root:?}, depth {depth}, {options:?}");
            };
            // Neither applies at this depth.
            same(Options { late_move_reductions: true, ..plain }, 2);
            same(Options { null_move: true, ..plain }, 3);
            // In these trees a position occurs at one ply only, so no entry is deeper than required.
            same(Options { table_hits: TableHits::Deeper, ..plain }, 5);
        }
    }
}

/// The nodes of two searches, the second two plies later on the expected line, without options and with each of them.
struct Nodes {
    depth: u32,
}

impl DuelVisitor for Nodes {
    type Output = [[u64; 2]; 4];
    fn duel<G: DuelGame>(self, parameters: &Parameters) -> [[u64; 2]; 4] {
        let start = G::initial(parameters).unwrap();
        let order = Order::new(Stage::ALL);
        let plain = Options { order, table_mb: 1, ..Options::plain(Algorithm::Pvs) };
        let ways = [
            plain,
            Options { late_move_reductions: true, ..plain },
            Options { null_move: true, ..plain },
            Options { table_hits: TableHits::Deeper, ..plain },
        ];
        ways.map(|options| {
            let mut nodes = [0; 2];
            for mut root in positions(&start, 8, 40) {
                let mut search = DuelSearch::new(options, Linear::default_of::<G>());
                // The second one is less deep than the table's entries.
                for (sum, depth) in nodes.iter_mut().zip([self.depth, self.depth - 3]) {
                    let found = deepen(&mut search, &root, budget(Limit::Depth(depth)), &mut |_| ());
                    *sum += found.counters.nodes;
                    found.line.iter().take(2).for_each(|&mv| root.play(mv));
                    if root.turn() == Turn::Over {
                        break;
                    }
                }
            }
            nodes
        })
    }
}

#[test]
fn options_save_nodes() {
    let nodes = GameSpec::parse("chess").unwrap().visit(Duels(Nodes { depth: 5 }));
    println!("chess: nodes without, with reductions, null moves, deeper hits: {nodes:?}");
    let [plain, reduced, null, deeper] = nodes;
    assert!(reduced[0] < plain[0] && null[0] < plain[0] && deeper[1] < plain[1]);
}

/// A search that needs no more depth has met no horizon: its value is that of the whole tree.
#[test]
fn early_stop_has_exact_value() {
    let mut whole = 0;
    for seed in 0..60 {
        let shape = Shape { width: 2 + seed % 5, last: 4, ..Shape::seeded(seed, 79) };
        let root = RandomTree::new(shape);
        let Turn::Player(seat) = root.turn() else { continue };
        let worth = definition(&root, seat, 4, 0, &mut NodeValue);
        for options in ways(true, true) {
            let found = limited(&root, NodeValue, options, Limit::Depth(20));
            assert!(found.depth == 20 || found.value.proof.is_some(), "{root:?}, {options:?}");
            if let Some(Proof::Draw(_)) = found.value.proof {
                assert_eq!(found.value.number, Value::from(worth).number, "{root:?}, {options:?}");
                whole += 1;
            }
        }
    }
    println!("{whole} searches ended because they had seen everything");
    assert!(whole > 100);
}

/// The winner with best play from the start, as 1, 0 or -1, for each search to the end.
struct Solved;

impl DuelVisitor for Solved {
    type Output = Vec<i32>;
    fn duel<G: DuelGame>(self, parameters: &Parameters) -> Vec<i32> {
        let root = G::initial(parameters).unwrap();
        let worth = |options| {
            let nothing = Linear::new(&vec![0.0; G::FEATURES.len()]);
            match limited(&root, nothing, options, Limit::Depth(200)).value.proof {
                Some(Proof::Win(_)) => 1,
                Some(Proof::Loss(_)) => -1,
                Some(Proof::Draw(_)) => 0,
                // The tree behind a null move is not the whole tree.
                _ => {
                    assert!(options.null_move || options.late_move_reductions, "{}: {options:?}", G::NAME);
                    0
                }
            }
        };
        let mut values: Vec<i32> = ways(true, G::PASSING_HURTS).into_iter().map(worth).collect();
        values.dedup();
        values
    }
}

/// A reduction is one ply, so that enough depth reaches the end of every line.
#[test]
fn solved_games_stay_solved() {
    for (game, value) in [
        ("tic-tac-toe", 0),
        ("nim:heaps=3-4-5", 1),
        ("nim:heaps=1-2-3", -1),
        ("grundy:heaps=10", -1),
        ("grundy:heaps=13", 1),
        ("kalah:holes=2,seeds=2", -1),
        ("kalah:holes=3,seeds=1", 0),
    ] {
        assert_eq!(GameSpec::parse(game).unwrap().visit(Duels(Solved)), [value], "{game}");
    }
}
