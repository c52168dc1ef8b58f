//! The result of a search whose budget ends within an iteration, for every node limit.
//!
//! The rule: the last completed iteration decides; a better move of the unfinished one replaces its move only if that
//! move was searched again. Without a completed iteration the best move so far is played, or the first legal one.

use agon_games::schema::Choice;
use agon_games::{DuelGame, Game, GameSpec, Parameters, Seat, Turn};
use agon_search::chance::{self, ChanceSearch};
use agon_search::deepening::{FixedDepthSearch, deepen};
use agon_search::duel::{Algorithm, Driver, DuelRules, DuelSearch, Options};
use agon_search::evaluate::{Evaluate, Linear};
use agon_search::many::{self, ManySearch, ThreatRule, Values};
use agon_search::ordering::{Order, Stage};
use agon_search::value::{INFINITY, end_score, proof};
use agon_search::{Limit, Score, SearchResult, Value};

use crate::duel::{budget, children};
use crate::tree::{ChanceTree, ManyTree, NodeValue, RandomTree, Shape};
use crate::{DuelVisitor, Duels};

/// A searched root move: its iteration, its value, and the nodes that the whole search had entered by then.
#[derive(Debug)]
struct Done<M> {
    depth: u32,
    mv: M,
    value: Score,
    after: u64,
}

/// A slow alpha-beta (or minimax, if it does not prune) that counts nodes.
struct Counting<'a, E> {
    evaluator: &'a mut E,
    prunes: bool,
    nodes: u64,
    horizon: bool,
}

impl<E> Counting<'_, E> {
    /// Enters a position and returns its value for `seat`.
    fn enter<G: DuelRules>(
        &mut self,
        position: &G,
        seat: Seat,
        depth: u32,
        window: (Score, Score),
        ply: usize,
    ) -> Score
    where
        E: Evaluate<G>,
    {
        self.nodes += 1;
        let Turn::Player(mover) = position.turn() else { return end_score(position.payoff(seat), ply) };
        if depth == 0 {
            self.horizon = true;
            return self.evaluator.evaluate(position, seat);
        }
        let (sign, (alpha, beta)) = if mover == seat { (1, window) } else { (-1, (-window.1, -window.0)) };
        let mut moves = Vec::new();
        position.moves(&mut moves);
        let mut best = -INFINITY;
        for mv in moves {
            let mut next = position.clone();
            next.play(mv);
            best = best.max(self.enter(&next, mover, depth - 1, (alpha.max(best), beta), ply + 1));
            if self.prunes && best >= beta {
                break;
            }
        }
        sign * best
    }

    /// Returns all root moves of a search to the end of the tree, in order.
    fn timeline<G: DuelRules>(&mut self, root: &G) -> Vec<Done<G::Move>>
    where
        E: Evaluate<G>,
    {
        let Turn::Player(seat) = root.turn() else { return Vec::new() };
        let mut moves = Vec::new();
        root.moves(&mut moves);
        let mut timeline = Vec::new();
        for depth in 1.. {
            self.nodes += 1;
            self.horizon = false;
            let mut best = -INFINITY;
            for &mv in &moves {
                let mut next = root.clone();
                next.play(mv);
                let value = self.enter(&next, seat, depth - 1, (best, INFINITY), 1);
                best = best.max(value);
                timeline.push(Done { depth, mv, value, after: self.nodes });
            }
            if proof(best).is_some() || !self.horizon {
                break;
            }
        }
        timeline
    }
}

/// Returns the move, the value and the depth that the rule requires of a search with this node limit.
fn rule<M: Copy + PartialEq>(first: M, timeline: &[Done<M>], nodes: u64) -> (M, Value, u32) {
    let mut answer = (first, Value { number: 0.0, proof: None }, 0);
    for iteration in timeline.chunk_by(|one, other| one.depth == other.depth) {
        let done: Vec<&Done<M>> = iteration.iter().take_while(|done| done.after <= nodes).collect();
        // The first of equal moves.
        let Some(lead) = done.iter().rev().max_by_key(|done| done.value) else { break };
        if done.len() == iteration.len() {
            answer = (lead.mv, Value::from(lead.value), lead.depth);
            continue;
        }
        if answer.2 == 0 || done.iter().any(|done| done.mv == answer.0) {
            answer.0 = lead.mv;
        }
        break;
    }
    answer
}

/// A move that failed high stands when the budget ends before its value is known.
#[test]
fn move_that_failed_high_is_kept() {
    let mut kept = 0;
    for seed in 0..150 {
        let shape = Shape { width: 2 + seed % 4, ..Shape::seeded(seed, 95) };
        let root = RandomTree::new(shape);
        let Turn::Player(seat) = root.turn() else { continue };
        let width = 2;
        let drivers = [Driver::F, Driver::Dual].map(Algorithm::Mtd);
        for algorithm in [Algorithm::AlphaBeta, Algorithm::Pvs].into_iter().chain(drivers) {
            let mtd = matches!(algorithm, Algorithm::Mtd(_));
            let options = Options {
                // The previous best move is searched first.
                order: Order::new(&[Stage::Pv]),
                aspiration: (!mtd).then_some(width),
                table_mb: usize::from(mtd),
                ..Options::plain(algorithm)
            };
            let search = |limit| {
                let mut search = DuelSearch::new(options, NodeValue);
                deepen(&mut search, &root, budget(limit), &mut |_| ())
            };
            for depth in 2..=4 {
                let before = search(Limit::Depth(depth - 1));
                let after = search(Limit::Depth(depth));
                if before.value.proof.is_some() || after.depth < depth {
                    break;
                }
                // 1. Within an iteration whose value is far above the last one's, the first pass fails high.
                let score = |value: Value| (value.number * 10_000.0).round() as Score;
                let (old, new) = (score(before.value), score(after.value));
                if new <= old + width {
                    continue;
                }
                let worth = children(&root, seat, depth, 0, &mut NodeValue);
                let value = |mv| worth.iter().find(|(other, _)| *other == mv).unwrap().1;
                for nodes in before.counters.nodes..after.counters.nodes {
                    let found = search(Limit::Nodes(nodes));
                    assert_eq!(found.depth, depth - 1);
                    // 2. From the second pass on, the move is one of those that caused it.
                    let again = found.counters.researches > before.counters.researches;
                    // PVS repeats searches within a pass too.
                    if again && algorithm == Algorithm::AlphaBeta {
                        assert!(value(found.best) >= old + width, "{root:?}, {algorithm:?}, {nodes} nodes");
                        kept += u32::from(found.best != before.best);
                    }
                    // 3. No move is replaced by a worse one.
                    assert!(
                        value(found.best) >= value(before.best),
                        "{root:?}, {algorithm:?}, depth {depth}, {nodes} nodes"
                    );
                }
            }
        }
    }
    println!("{kept} interrupted searches play a move that failed high");
    assert!(kept > 100);
}

/// Checks the rule for every node limit and returns the number of limits at which the unfinished iteration decided.
fn follows_the_rule<G: DuelRules, E: Evaluate<G> + Clone>(root: &G, evaluator: &E) -> u64 {
    let mut unfinished = 0;
    for algorithm in [Algorithm::Minimax, Algorithm::AlphaBeta] {
        let prunes = algorithm == Algorithm::AlphaBeta;
        let mut counting = Counting { evaluator: &mut evaluator.clone(), prunes, nodes: 0, horizon: false };
        let timeline = counting.timeline(root);
        let all = counting.nodes;
        let finished = |depth| {
            timeline
                .iter()
                .filter(|done| done.depth == depth)
                .max_by_key(|done| (done.value, -(done.after as i64)))
        };
        for nodes in 0..=all + 2 {
            let mut search = DuelSearch::new(Options::plain(algorithm), evaluator.clone());
            let found = deepen(&mut search, root, budget(Limit::Nodes(nodes)), &mut |_| ());
            let mut moves = Vec::new();
            root.moves(&mut moves);
            let expected = rule(moves[0], &timeline, nodes);
            assert_eq!(
                (found.best, found.value.number, found.depth),
                (expected.0, expected.1.number, expected.2),
                "{root:?}, {algorithm:?}, {nodes} of {all} nodes"
            );
            assert_eq!(found.counters.nodes, nodes.min(all), "{root:?}, {algorithm:?}");
            assert_eq!(found.line.first(), Some(&found.best));
            unfinished += u64::from(finished(found.depth).is_some_and(|done| done.mv != found.best));
        }
    }
    unfinished
}

struct Follow;

impl DuelVisitor for Follow {
    type Output = u64;
    fn duel<G: DuelGame>(self, parameters: &Parameters) -> u64 {
        follows_the_rule(&G::initial(parameters).unwrap(), &Linear::default_of::<G>())
    }
}

#[test]
fn every_node_limit_follows_the_rule() {
    let mut unfinished = 0;
    for seed in 0..60 {
        let shape = Shape {
            width: 2 + seed % 3,
            ends: [0, 9][(seed % 2) as usize],
            last: 4 + seed % 2,
            ..Shape::seeded(seed, 500)
        };
        unfinished += follows_the_rule(&RandomTree::new(shape), &NodeValue);
    }
    for game in ["nim:heaps=1-2-3", "grundy:heaps=8", "kalah:holes=2,seeds=2"] {
        unfinished += GameSpec::parse(game).unwrap().visit(Duels(Follow));
    }
    println!("{unfinished} answers were those of an unfinished iteration");
    assert!(unfinished > 100);
}

/// Checks every deepening search under node limits: its completed iterations are those of an unlimited search, it
/// spends the whole limit, and its move is legal. Returns the results.
fn completes_part_of_whole<G: Game, S: FixedDepthSearch<G>>(
    root: &G,
    search: impl Fn() -> S,
    depth: u32,
) -> Vec<SearchResult<G::Move>> {
    let whole = deepen(&mut search(), root, budget(Limit::Depth(depth)), &mut |_| ());
    let all = whole.counters.nodes;
    let mut legal = Vec::new();
    root.moves(&mut legal);
    let mut answers: Vec<SearchResult<G::Move>> = Vec::new();
    // Every limit if there are few; else a hundred, and the ends of all iterations.
    let mut limits: Vec<u64> = (0..all).step_by(1 + all as usize / 100).chain([all]).collect();
    let ends = whole.iterations.iter().scan(0, |sum, iteration| {
        *sum += iteration.nodes;
        Some(*sum)
    });
    limits.extend(ends.clone());
    limits.sort_unstable();
    for nodes in limits {
        let found = deepen(&mut search(), root, budget(Limit::Nodes(nodes)), &mut |_| ());
        assert!(legal.contains(&found.best) && found.line.first() == Some(&found.best), "{root:?}, {nodes}");
        assert_eq!(found.counters.nodes, nodes, "{root:?}");
        assert_eq!(
            found.depth as usize,
            ends.clone().filter(|&end| end <= nodes).count(),
            "{root:?}, {nodes}"
        );
        for (part, same) in found.iterations.iter().zip(&whole.iterations) {
            let untimed = |iteration: &agon_search::Iteration<G::Move>| {
                (iteration.depth, iteration.nodes, iteration.line.clone(), iteration.value)
            };
            assert_eq!(untimed(part), untimed(same), "{root:?}, {nodes}");
        }
        match found.iterations.last() {
            None => assert_eq!(found.value, Value { number: 0.0, proof: None }, "{root:?}, {nodes}"),
            Some(last) => {
                assert_eq!(found.value, last.value, "{root:?}, {nodes}");
                if ends.clone().any(|end| end == nodes) {
                    assert_eq!(found.best, last.line[0], "{root:?}: nothing of the next iteration is known");
                }
            }
        }
        answers.push(found);
    }
    answers
}

/// Checks that a move which replaced that of the last completed iteration is no worse one ply deeper. Returns the
/// number of such moves.
fn replaced_by_better<G: DuelRules, E: Evaluate<G> + Clone>(
    root: &G,
    evaluator: &E,
    answers: &[SearchResult<G::Move>],
) -> u64 {
    let Turn::Player(seat) = root.turn() else { return 0 };
    let mut replaced = 0;
    for answer in answers {
        let Some(last) = answer.iterations.last().filter(|last| last.line[0] != answer.best) else {
            continue;
        };
        let worth = children(root, seat, answer.depth + 1, 0, &mut evaluator.clone());
        let value = |mv| worth.iter().find(|(known, _)| *known == mv).map(|(_, value)| *value);
        assert!(value(answer.best) >= value(last.line[0]), "{root:?}: {:?}", answer.best);
        replaced += 1;
    }
    replaced
}

#[test]
fn every_search_keeps_completed_iterations() {
    let all = Order::new(Stage::ALL);
    let mut replaced = 0;
    for seed in 0..30 {
        let shape =
            Shape { width: 2 + seed % 4, ends: [0, 9][(seed % 2) as usize], ..Shape::seeded(seed, 501) };
        let tree = RandomTree::new(shape);
        for order in [Order::NONE, all] {
            for (algorithm, table_mb, aspiration) in [
                (Algorithm::AlphaBeta, 0, None),
                (Algorithm::AlphaBeta, 1, Some(4)),
                (Algorithm::Pvs, 0, None),
                (Algorithm::Pvs, 1, Some(4)),
                (Algorithm::Mtd(Driver::F), 1, None),
                (Algorithm::Mtd(Driver::Bisection), 1, None),
            ] {
                let options = Options { order, table_mb, aspiration, ..Options::plain(algorithm) };
                let answers = completes_part_of_whole(&tree, || DuelSearch::new(options, NodeValue), 4);
                replaced += replaced_by_better(&tree, &NodeValue, &answers);
            }
            for algorithm in [
                many::Algorithm::Paranoid,
                many::Algorithm::MaxN(Values::Raw),
                many::Algorithm::BestReply(ThreatRule::MoveToFront),
            ] {
                let root = ManyTree::<3>(tree.clone());
                completes_part_of_whole(&root, || ManySearch::new(algorithm, order, NodeValue), 4);
            }
            for algorithm in
                [chance::Algorithm::Expectiminimax, chance::Algorithm::Star1, chance::Algorithm::Star2]
            {
                let root = ChanceTree(tree.clone());
                completes_part_of_whole(&root, || ChanceSearch::new(algorithm, order, NodeValue), 4);
            }
        }
    }
    println!("{replaced} answers replaced that of the last completed iteration");
    assert!(replaced > 100);
}
