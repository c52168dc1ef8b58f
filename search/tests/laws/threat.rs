//! The Threat-ADS list of best-reply search: accessed as Polk and Oommen (2013) define it, kept across iterations,
//! reset by the next search. It may change the nodes of a search but never its value.

use agon_games::{ChanceGame, DuelGame, GameSpec, ManyGame, Parameters, Seat, Turn, Visitor};
use agon_search::deepening::FixedDepthSearch;
use agon_search::evaluate::{Evaluate, Linear};
use agon_search::many::{Algorithm, ManyRules, ManySearch, ThreatRule};
use agon_search::ordering::Order;
use agon_search::value::{INFINITY, WIN, shared_end_score};
use agon_search::{Limit, Score, Value};

use crate::duel::budget;
use crate::many::positions;
use crate::tree::{ManyTree, NodeValue, RandomTree, Shape};

const RULES: [ThreatRule; 3] = [ThreatRule::None, ThreatRule::MoveToFront, ThreatRule::Transpose];

/// Best-reply search by definition, with the list as a plain sequence.
struct Slow<'a, E> {
    evaluator: &'a mut E,
    hero: Seat,
    rule: ThreatRule,
    list: Vec<Seat>,
    nodes: u64,
}

impl<E> Slow<'_, E> {
    fn leaf<G: ManyRules>(&mut self, position: &G, ply: usize) -> Score
    where
        E: Evaluate<G>,
    {
        match position.turn() {
            Turn::Over => shared_end_score(G::PAYOFFS, position.payoff(self.hero), ply),
            _ => self.evaluator.evaluate(position, self.hero),
        }
    }

    /// Returns the hero's value of an entered position; with `replies` an opponent is to move.
    fn value<G: ManyRules>(
        &mut self,
        position: &G,
        depth: u32,
        (mut alpha, mut beta): (Score, Score),
        ply: usize,
        replies: bool,
    ) -> Score
    where
        E: Evaluate<G>,
    {
        self.nodes += 1;
        if depth == 0 || position.turn() == Turn::Over {
            return self.leaf(position, ply);
        }
        // 1. The movers: the hero, or all opponents in the current order of the list.
        let seats = if replies { self.list.clone() } else { vec![self.hero] };
        let mut children = Vec::new();
        for seat in seats {
            let Some(there) = position.reseat(seat) else { continue };
            let mut moves = Vec::new();
            there.moves(&mut moves);
            children.extend(moves.into_iter().map(|mv| {
                let mut next = there.clone();
                next.play(mv);
                (seat, next)
            }));
        }
        if children.is_empty() {
            return if replies { self.leaf(position, ply) } else { ply as Score - WIN };
        }
        // 2. The worst reply or the hero's best move, with cutoffs.
        let mut best: Option<(Seat, Score)> = None;
        for (seat, next) in children {
            let value = self.value(&next, depth - 1, (alpha, beta), ply + 1, !replies);
            if best.is_none_or(|(_, best)| if replies { value < best } else { value > best }) {
                best = Some((seat, value));
            }
            if replies {
                beta = beta.min(value);
            } else {
                alpha = alpha.max(value);
            }
            if beta <= alpha {
                break;
            }
        }
        let (seat, value) = best.unwrap();
        // 3. Access the opponent with the worst reply.
        if replies {
            let place = self.list.iter().position(|&other| other == seat).unwrap();
            let target = match self.rule {
                ThreatRule::None => place,
                ThreatRule::MoveToFront => 0,
                ThreatRule::Transpose => place.saturating_sub(1),
            };
            let seat = self.list.remove(place);
            self.list.insert(target, seat);
        }
        value
    }
}

/// Returns the opponents in turn order.
fn in_turn<G: ManyRules>(hero: Seat) -> Vec<Seat> {
    (1..G::SEATS).map(|step| Seat(((hero.index() + step) % G::SEATS) as u8)).collect()
}

/// Searches a position with each rule, iteration by iteration, and returns the nodes of each.
fn as_defined<G: ManyRules, E: Evaluate<G> + Clone>(root: &G, evaluator: &E, depth: u32) -> [u64; 3] {
    let Turn::Player(hero) = root.turn() else { return [0; 3] };
    let mut values = Vec::new();
    let nodes = RULES.map(|rule| {
        let mut slow =
            Slow { evaluator: &mut evaluator.clone(), hero, rule, list: in_turn::<G>(hero), nodes: 0 };
        let mut search = ManySearch::new(Algorithm::BestReply(rule), Order::NONE, evaluator.clone());
        // Twice: a second search is independent of the first.
        for _ in 0..2 {
            search.start(root, budget(Limit::Depth(depth)));
            assert_eq!(search.threats().seats(), in_turn::<G>(hero), "{root:?}: a search starts afresh");
            (slow.list, slow.nodes) = (in_turn::<G>(hero), 0);
            for depth in 1..=depth {
                let found = search.iterate(&mut root.clone(), depth).unwrap();
                let expected = slow.value(root, depth, (-INFINITY, INFINITY), 0, false);
                assert_eq!(found.number, Value::from(expected).number, "{root:?}, {rule:?}, depth {depth}");
                assert_eq!(search.threats().seats(), slow.list, "{root:?}, {rule:?}, depth {depth}");
                assert_eq!(search.effort().counters.nodes, slow.nodes, "{root:?}, {rule:?}, depth {depth}");
                values.push((depth, found.number.to_bits()));
            }
        }
        slow.nodes
    });
    values.sort_unstable();
    values.dedup();
    assert_eq!(values.len(), depth as usize, "{root:?}: a rule changed a value");
    nodes
}

/// The number of searches in which the list of each rule changed the nodes.
#[derive(Default, Debug)]
struct Changes {
    searches: u64,
    sums: [u64; 3],
    changed: [u64; 3],
}

impl Changes {
    fn count(&mut self, nodes: [u64; 3]) {
        self.searches += 1;
        for (place, nodes_of) in nodes.into_iter().enumerate() {
            self.sums[place] += nodes_of;
            self.changed[place] += u64::from(nodes_of != nodes[0]);
        }
    }
}

fn on_trees<const SEATS: usize>(changes: &mut Changes) {
    for seed in 0..40 {
        let shape = Shape {
            width: 2 + seed % 3,
            ends: [0, 9][(seed % 2) as usize],
            ..Shape::seeded(seed, 900 + SEATS as u64)
        };
        changes.count(as_defined(&ManyTree::<SEATS>(RandomTree::new(shape)), &NodeValue, 4));
    }
}

#[test]
fn threat_list_matches_definition_on_random_trees() {
    let mut changes = Changes::default();
    on_trees::<3>(&mut changes);
    on_trees::<4>(&mut changes);
    on_trees::<6>(&mut changes);
    println!("random trees: {changes:?}");
    assert!(changes.changed[1] > changes.searches / 4 && changes.changed[2] > changes.searches / 4);
}

struct Defined {
    positions: u64,
    depth: u32,
}

impl Visitor for Defined {
    type Output = Changes;
    fn duel<G: DuelGame>(self, _: &Parameters) -> Changes {
        unreachable!("the game has many seats")
    }
    fn many<G: ManyGame>(self, parameters: &Parameters) -> Changes {
        let start = G::initial(parameters).unwrap();
        let mut changes = Changes::default();
        for root in positions(&start, self.positions, 60) {
            changes.count(as_defined(&root, &Linear::default_of::<G>(), self.depth));
        }
        changes
    }
    fn chance<G: ChanceGame>(self, _: &Parameters) -> Changes {
        unreachable!("the game has many seats")
    }
}

#[test]
fn threat_list_matches_definition_on_games() {
    for (game, positions, depth) in [
        ("virus:seats=4,size=6", 10, 3),
        ("rolit:seats=4", 10, 3),
        ("focus:seats=4", 4, 2),
        ("chinese-checkers:seats=3", 4, 3),
    ] {
        let changes = GameSpec::parse(game).unwrap().visit(Defined { positions, depth });
        println!("{game}: {changes:?}");
        assert!(changes.changed[1] > 0 && changes.changed[2] > 0, "{game}: {changes:?}");
    }
}
