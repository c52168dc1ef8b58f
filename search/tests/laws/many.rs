//! Searches of many seats against slow ones by definition, and against alpha-beta where two seats make them equal.

use agon_games::random::{below, mix, seeded};
use agon_games::{ChanceGame, DuelGame, GAMES, GameSpec, ManyGame, Parameters, Seat, Turn, Turns, Visitor};
use agon_search::deepening::deepen;
use agon_search::duel::{self, DuelSearch};
use agon_search::evaluate::{Evaluate, Linear};
use agon_search::many::{Algorithm, ManyRules, ManySearch, ThreatRule, Values};
use agon_search::ordering::{Order, Stage};
use agon_search::value::{INFINITY, WIN, shared_end_score};
use agon_search::{Limit, Proof, Score, SearchResult, Value};

use crate::duel::budget;
use crate::tree::{ManyTree, NodeValue, RandomTree, Shape, is_legal_line};

const RULES: [ThreatRule; 3] = [ThreatRule::None, ThreatRule::MoveToFront, ThreatRule::Transpose];
const PRUNED: Values = Values::Shares { pruning: true };
const FULL: Values = Values::Shares { pruning: false };

fn answer<G: ManyRules, E: Evaluate<G>>(
    root: &G,
    evaluator: E,
    algorithm: Algorithm,
    order: &[Stage],
    depth: u32,
) -> SearchResult<G::Move> {
    let mut search = ManySearch::new(algorithm, Order::new(order), evaluator);
    let answer = deepen(&mut search, root, budget(Limit::Depth(depth)), &mut |_| ());
    if !matches!(algorithm, Algorithm::BestReply(_)) {
        // Best-reply search leaves the turn order; the lines of the others can be played.
        assert!(is_legal_line(root, &answer.line), "{root:?}, {algorithm:?}: {:?}", answer.line);
    }
    answer
}

/// The hero's value by definition, without window or order. `best_reply` lets one opponent move between two moves of
/// the hero.
struct Slow<'a, E> {
    evaluator: &'a mut E,
    hero: Seat,
    best_reply: bool,
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

    fn value<G: ManyRules>(&mut self, position: &G, depth: u32, ply: usize) -> Score
    where
        E: Evaluate<G>,
    {
        let Turn::Player(mover) = position.turn() else { return self.leaf(position, ply) };
        if depth == 0 {
            return self.leaf(position, ply);
        }
        if !self.best_reply {
            let children = self.children(position, depth, ply);
            return if mover == self.hero { children.max() } else { children.min() };
        }
        // The layers alternate: the hero at even plies, any one opponent at odd ones.
        if ply.is_multiple_of(2) {
            return match position.reseat(self.hero) {
                Some(there) => self.children(&there, depth, ply).max(),
                None => ply as Score - WIN,
            };
        }
        let mut worst = INFINITY;
        let hero = self.hero;
        for seat in Seat::all(G::SEATS).filter(|&seat| seat != hero) {
            if let Some(there) = position.reseat(seat) {
                worst = worst.min(self.children(&there, depth, ply).min());
            }
        }
        if worst == INFINITY { self.leaf(position, ply) } else { worst }
    }

    fn children<G: ManyRules>(&mut self, position: &G, depth: u32, ply: usize) -> Extremes
    where
        E: Evaluate<G>,
    {
        let mut moves = Vec::new();
        position.moves(&mut moves);
        let values = moves.into_iter().map(|mv| {
            let mut next = position.clone();
            next.play(mv);
            self.value(&next, depth - 1, ply + 1)
        });
        Extremes(values.collect())
    }
}

struct Extremes(Vec<Score>);

impl Extremes {
    fn max(&self) -> Score {
        *self.0.iter().max().unwrap()
    }
    fn min(&self) -> Score {
        *self.0.iter().min().unwrap()
    }
}

/// Checks a position with all algorithms and returns the number of searches.
fn agree<G: ManyRules, E: Evaluate<G> + Clone>(root: &G, evaluator: &E, depth: u32) -> u64 {
    let Turn::Player(hero) = root.turn() else { return 0 };
    let mut searches = 0;
    let orders = [&[][..], &[Stage::Static], &[Stage::Pv, Stage::Values, Stage::Killers, Stage::History]];
    let slow = |best_reply| {
        let value = Slow { evaluator: &mut evaluator.clone(), hero, best_reply }.value(root, depth, 0);
        Value::from(value)
    };
    let (paranoid, best_reply) = (slow(false), slow(true));
    for order in orders {
        let mut check = |algorithm, expected: Value| {
            let found = answer(root, evaluator.clone(), algorithm, order, depth);
            // Against several opponents only a win over all of them is a proof.
            let sure = |proof: &Proof| {
                G::SEATS == 2 || (algorithm == Algorithm::Paranoid && matches!(proof, Proof::Win(_)))
            };
            assert_eq!(
                found.value.number, expected.number,
                "{root:?}, depth {depth}, {algorithm:?}, {order:?}"
            );
            // Draws are proven by whole trees, and best-reply search proves nothing out of turn.
            if !matches!(found.value.proof, None | Some(Proof::Draw(_))) {
                let proof = expected.proof.filter(sure);
                assert_eq!(found.value.proof, proof, "{root:?}, depth {depth}, {algorithm:?}, {order:?}");
            }
            assert!(G::SEATS == 2 || !matches!(found.value.proof, Some(Proof::Draw(_))));
            searches += 1;
        };
        check(Algorithm::Paranoid, paranoid);
        for rule in RULES {
            check(Algorithm::BestReply(rule), best_reply);
        }
    }
    for order in [&[][..], &[Stage::Static]] {
        let full = answer(root, evaluator.clone(), Algorithm::MaxN(FULL), order, depth);
        let pruned = answer(root, evaluator.clone(), Algorithm::MaxN(PRUNED), order, depth);
        assert_eq!(pruned.value.number, full.value.number, "{root:?}, depth {depth}, max-n, {order:?}");
        assert!(pruned.counters.nodes <= full.counters.nodes);
        searches += 2;
    }
    searches
}

fn on_trees<const SEATS: usize>() -> u64 {
    let mut searches = 0;
    for seed in 0..60 {
        let shape = Shape {
            width: 1 + seed % 4,
            ends: [0, 6, 13][(seed % 3) as usize],
            ..Shape::seeded(seed, SEATS as u64)
        };
        for depth in 1..=5 {
            searches += agree(&ManyTree::<SEATS>(RandomTree::new(shape)), &NodeValue, depth);
        }
    }
    searches
}

#[test]
fn matches_definition_on_random_trees() {
    let searches = on_trees::<2>() + on_trees::<3>() + on_trees::<4>() + on_trees::<6>();
    println!("{searches} searches of random trees agree with the definitions");
}

struct Agree {
    positions: u64,
}

/// Returns positions from random games.
pub fn positions<G: agon_games::Complete>(start: &G, count: u64, plies: usize) -> Vec<G> {
    let mut scratch = Vec::new();
    (0..count)
        .map(|seed| {
            let mut random = seeded(mix(17, seed));
            let mut position = start.clone();
            for _ in 0..below(&mut random, plies) {
                let mut next = position.clone();
                let mv = next.sample(&mut random, &mut scratch);
                next.play(mv);
                if next.turn() == Turn::Over {
                    break;
                }
                position = next;
            }
            position
        })
        .collect()
}

impl Visitor for Agree {
    type Output = u64;

    fn duel<G: DuelGame>(self, parameters: &Parameters) -> u64 {
        let start = G::initial(parameters).unwrap();
        let evaluator = Linear::default_of::<G>();
        let mut searches = 0;
        for root in positions(&start, self.positions, 40) {
            let options = duel::Options::plain(duel::Algorithm::AlphaBeta);
            let mut search = DuelSearch::new(options, evaluator.clone());
            let expected = deepen(&mut search, &root, budget(Limit::Depth(3)), &mut |_| ());
            let mut algorithms = vec![Algorithm::Paranoid];
            // Giving the turn to the seat that has it changes nothing, unless the rules depend on history.
            if G::TURNS == Turns::Rotate && !G::PATH_DEPENDENT {
                algorithms.extend(RULES.map(Algorithm::BestReply));
            }
            for algorithm in algorithms {
                let found = answer(&root, evaluator.clone(), algorithm, &[Stage::Static], 3);
                assert_eq!(found.value, expected.value, "{} {}, {algorithm:?}", G::NAME, root.position());
                searches += 1;
            }
        }
        searches
    }

    fn many<G: ManyGame>(self, parameters: &Parameters) -> u64 {
        let start = G::initial(parameters).unwrap();
        let roots = positions(&start, self.positions, 60);
        roots.iter().map(|root| agree(root, &Linear::default_of::<G>(), 2)).sum()
    }

    fn chance<G: ChanceGame>(self, _: &Parameters) -> u64 {
        0
    }
}

#[test]
fn matches_definition_on_games() {
    let mut searches = 0;
    for info in GAMES {
        for seats in info.seats {
            let name = if info.seats.len() > 1 {
                format!("{}:seats={seats}", info.name)
            } else {
                info.name.to_string()
            };
            searches += GameSpec::parse(&name).unwrap().visit(Agree { positions: 12 });
        }
    }
    println!("{searches} searches of games agree with the definitions and with alpha-beta");
}
