//! UCT (Kocsis and Szepesvari 2006): Monte Carlo tree search that chooses the child with the greatest
//! `mean + c sqrt(ln N / n)`.
//!
//! Any number of seats: each mover looks at its own rewards. Chance is sampled. With the solver (Winands, Björnsson and
//! Saito 2008) ends are proven upwards in duels without chance. The tree follows the game from move to move and is
//! bounded in memory: when it is full, playouts start where it ends. Deliberately not here: threads, domain knowledge
//! other than the game's own playout policy and evaluation.

use std::sync::OnceLock;

use agon_games::random::{Random, below, seeded};
use agon_games::{Seat, Turn};

use super::tree::{Node, Status, Tree};
use super::{Playout, Rewards, SamplingRules, end_rewards, reported};
use crate::budget::Budget;
use crate::counters::Counters;
use crate::evaluate::Evaluate;
use crate::report::{Answer, Iteration};
use crate::searcher::Searcher;
use crate::value::{MAX_SEATS, Value};

/// Which child of the root is played in the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Final {
    /// The one with the best mean.
    Value,
    /// The one visited most.
    Visits,
}

agon_games::choices!(Final { Value = "value", Visits = "visits" });

/// The options of a UCT search.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Options {
    /// The weight of exploration.
    pub c: f64,
    /// The value of a child not visited yet; without one every child is visited before any is chosen again.
    pub first_play: Option<f64>,
    /// How playouts are made.
    pub playout: Playout,
    /// Which child is played.
    pub choice: Final,
    /// Whether ends are proven upwards.
    pub solver: bool,
    /// Whether the tree is kept from move to move.
    pub keep: bool,
    /// The most memory for the tree.
    pub memory_mb: usize,
}

/// A UCT search of one game.
pub struct Uct<G: SamplingRules, E> {
    options: Options,
    evaluator: E,
    tree: Tree<G::Move>,
    /// The position at the root of the tree that is kept.
    root: Option<G>,
    path: Vec<Step>,
    moves: Vec<G::Move>,
    scratch: Vec<G::Move>,
}

/// A node on the path of a simulation and the seat that moved to it; chance has none.
#[derive(Clone, Copy)]
struct Step {
    node: u32,
    seat: Option<Seat>,
}

impl<G: SamplingRules, E: Evaluate<G>> Uct<G, E> {
    /// A search with these options.
    pub fn new(options: Options, evaluator: E) -> Uct<G, E> {
        const { assert!(G::SEATS <= MAX_SEATS, "more seats than the searches make room for") };
        Uct {
            options,
            evaluator,
            tree: Tree::new(options.memory_mb),
            root: None,
            path: Vec::new(),
            moves: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// Simulates once from `position`, which is at the root and is left wherever the playout ends. Returns the distance
    /// from the root to the last node of the tree.
    fn simulate(&mut self, position: &mut G, random: &mut Random, counters: &mut Counters) -> u32 {
        // 1. Selection: down the tree to a node that has no children yet.
        self.path.clear();
        self.path.push(Step { node: 0, seat: None });
        let mut node = 0;
        let rewards = loop {
            let turn = position.turn();
            if turn == Turn::Over {
                counters.leaves += 1;
                self.prove_end(position, node);
                break end_rewards(position);
            }
            let Node { count, visits, status, .. } = self.tree.nodes[node];
            if status != Status::Open && node != 0 {
                break self.proven_rewards(node);
            }
            if count == 0 {
                // 2. Expansion, on the second visit.
                let expanded = (visits > 0 || node == 0) && self.expand(position, node, random);
                if !expanded {
                    // 3. Playout.
                    let playout = self.options.playout;
                    let (rewards, plies) =
                        playout.run(position, &mut self.evaluator, random, &mut self.scratch);
                    counters.playout_plies += u64::from(plies);
                    counters.nodes += u64::from(plies);
                    counters.leaves += 1;
                    break rewards;
                }
            }
            node = match turn {
                Turn::Player(seat) => {
                    let child = self.select(node);
                    self.path.push(Step { node: child as u32, seat: Some(seat) });
                    child
                }
                _ => {
                    let child = self.sample(position, node, random);
                    self.path.push(Step { node: child as u32, seat: None });
                    child
                }
            };
            position.play(self.tree.nodes[node].mv);
            counters.nodes += 1;
        };
        counters.simulations += 1;
        self.back_up(rewards);
        self.path.len() as u32 - 1
    }

    /// Adds the children of a node in a random order, so that none is favoured by where the game lists it.
    fn expand(&mut self, position: &G, node: usize, random: &mut Random) -> bool {
        self.moves.clear();
        position.moves(&mut self.moves);
        for index in (1..self.moves.len()).rev() {
            self.moves.swap(index, below(random, index + 1));
        }
        self.tree.expand(node, &self.moves)
    }

    /// The child to follow: one not visited yet, else the one with the greatest upper bound. Children that are proven are
    /// left alone while others are open.
    #[inline]
    fn select(&mut self, node: usize) -> usize {
        let Node { first, count, tried, visits, .. } = self.tree.nodes[node];
        let first = first as usize;
        let untried = tried < count;
        if untried && self.options.first_play.is_none() {
            self.tree.nodes[node].tried += 1;
            return first + usize::from(tried);
        }
        let width = (self.options.c * logarithm(visits.max(1)).sqrt()) as f32;
        let children = &self.tree.nodes[first..first + usize::from(tried)];
        let mut best = (f32::NEG_INFINITY, 0);
        for (index, child) in children.iter().enumerate() {
            let bound = match child.status {
                Status::Open => child.value + width * child.spread,
                Status::Win => return first + index,
                // Nothing is left to learn of these; `back_up` knows that the mover has them.
                Status::Draw => -1.0,
                Status::Loss => -2.0,
            };
            if bound > best.0 {
                best = (bound, index);
            }
        }
        if untried && self.options.first_play.is_some_and(|value| value as f32 >= best.0) {
            self.tree.nodes[node].tried += 1;
            return first + usize::from(tried);
        }
        first + best.1
    }

    /// The child of an outcome that chance draws.
    fn sample(&mut self, position: &G, node: usize, random: &mut Random) -> usize {
        let outcome = position.sample(random, &mut self.scratch);
        let found = self.tree.children(node).find(|&child| self.tree.nodes[child].mv == outcome);
        found.expect("a drawn outcome is one of those listed")
    }

    /// 4. Back-up: each node on the path gets the reward of the seat that moved to it.
    #[inline]
    fn back_up(&mut self, mut rewards: Rewards) {
        if self.solves() {
            self.back_up_proofs(&mut rewards);
            return;
        }
        for step in &self.path {
            let reward = step.seat.map(|seat| rewards[seat.index()]);
            self.tree.nodes[step.node as usize].visit(reward);
        }
    }

    /// The same with the solver: from the end upwards, because a mover who has a proven draw would have taken it
    /// rather than a child that looks worse, and proofs rise as long as each node is proven by its children.
    fn back_up_proofs(&mut self, rewards: &mut Rewards) {
        let mut rising = true;
        for index in (0..self.path.len()).rev() {
            let step = self.path[index];
            let node = &mut self.tree.nodes[step.node as usize];
            node.visit(step.seat.map(|seat| rewards[seat.index()]));
            let (Some(mover), Some(above)) = (step.seat, index.checked_sub(1)) else { continue };
            let (status, mean) = (node.status, node.mean());
            let above = self.path[above];
            let parent = &mut self.tree.nodes[above.node as usize];
            parent.has_draw |= status == Status::Draw;
            if parent.has_draw && mean < 0.5 {
                *rewards = [0.5; MAX_SEATS];
            }
            rising = rising
                && status != Status::Open
                && self.tree.prove(above.node as usize, mover, above.seat.unwrap_or(mover));
        }
    }

    /// Whether proofs are made: what one seat wins the other must lose.
    fn solves(&self) -> bool {
        self.options.solver && G::SEATS == 2
    }

    /// An end that the tree has reached is proven, unless chance had a part in it: nobody chooses its outcomes, so that
    /// no proof rises through them.
    fn prove_end(&mut self, position: &G, node: usize) {
        let Some(Step { seat: Some(seat), .. }) = self.path.last().copied() else { return };
        if self.solves() && self.path[1..].iter().all(|step| step.seat.is_some()) {
            self.tree.nodes[node].status = match position.payoff(seat).signum() {
                1 => Status::Win,
                0 => Status::Draw,
                _ => Status::Loss,
            };
        }
    }

    /// The rewards of a node that is proven. The solver is on only in duels.
    fn proven_rewards(&self, node: usize) -> Rewards {
        let mut rewards = [0.0; MAX_SEATS];
        if let Some(Step { seat: Some(seat), .. }) = self.path.last() {
            let reward = self.tree.nodes[node].status.reward();
            rewards[seat.index()] = reward;
            rewards[seat.other().index()] = 1.0 - reward;
        }
        rewards
    }

    /// The child of the root to play: a proven win at once, else by mean or by visits, never one without a visit if
    /// there is another. A proven draw is visited no more: by visits it is played unless one that is better is open.
    fn best_child(&self) -> usize {
        let has_draw = self.tree.nodes[0].has_draw;
        let worth = |node: &Node<G::Move>| {
            let visited = f64::from(u8::from(node.visits > 0));
            let (mean, visits) = (node.mean(), f64::from(node.visits));
            match (node.status, self.options.choice) {
                (Status::Win, _) => (3.0, -f64::from(node.distance)),
                (Status::Loss, _) => (-1.0, f64::from(node.distance)),
                (_, Final::Value) => (visited * (1.0 + mean), visits),
                (Status::Draw, Final::Visits) => (1.5, 0.0),
                (Status::Open, Final::Visits) if has_draw && mean > Status::Draw.reward() => {
                    (2.0 * visited, visits)
                }
                (Status::Open, Final::Visits) => (visited, visits + mean / 2.0),
            }
        };
        let children = self.tree.children(0);
        let better = |best: usize, child: usize| {
            if worth(&self.tree.nodes[child]) > worth(&self.tree.nodes[best]) { child } else { best }
        };
        children.clone().fold(children.start, better)
    }

    /// The line of the most visited children from the best one.
    fn line(&self, best: usize) -> Vec<G::Move> {
        let mut line = vec![self.tree.nodes[best].mv];
        let mut node = best;
        while let Some(child) =
            self.tree.children(node).filter(|&child| self.tree.nodes[child].visits > 0).max_by_key(|&child| {
                // Of equally visited ones the first.
                (self.tree.nodes[child].visits, std::cmp::Reverse(child))
            })
        {
            line.push(self.tree.nodes[child].mv);
            node = child;
        }
        line
    }
}

impl<G: SamplingRules, E: Evaluate<G>> Searcher<G> for Uct<G, E> {
    fn new_game(&mut self) {
        self.root = None;
    }

    fn observe(&mut self, mv: G::Move) {
        if let Some(root) = &mut self.root {
            root.play(mv);
            if !self.options.keep || !self.tree.descend(mv) {
                self.root = None;
            }
        }
    }

    fn search(
        &mut self,
        root: &G,
        mut budget: Budget,
        seed: u64,
        _report: &mut dyn FnMut(&Iteration<G::Move>),
    ) -> Answer<G::Move> {
        let mut random = seeded(seed);
        let mut counters = Counters { nodes: 1, ..Counters::default() };
        let mut selective_depth = 0;
        let mut position = root.clone();
        if self.root.as_ref() != Some(root) {
            self.moves.clear();
            root.moves(&mut self.moves);
            self.tree.plant(self.moves[0]);
        }
        self.root = self.options.keep.then(|| root.clone());
        // What was proven of a node kept from the last search was proven for the seat that moved to it; the root asks
        // its children again.
        self.tree.nodes[0].status = Status::Open;

        while self.tree.nodes[0].status == Status::Open
            && budget.simulate(counters.simulations, counters.nodes).is_ok()
        {
            position.clone_from(root);
            let depth = self.simulate(&mut position, &mut random, &mut counters);
            selective_depth = selective_depth.max(depth);
        }
        if self.tree.nodes[0].count == 0 {
            // Not one simulation: the children are still needed, to have a move.
            let expanded = self.expand(root, 0, &mut random);
            debug_assert!(expanded, "a tree of one node has room for the children of its root");
        }
        let best = self.best_child();
        let child = &self.tree.nodes[best];
        let number = if child.visits == 0 { 0.0 } else { reported::<G>(child.mean()) };
        counters.tree_nodes = self.tree.nodes.len() as u64;
        Answer {
            best: child.mv,
            value: Value { number, proof: self.tree.proof() },
            depth: 0,
            selective_depth,
            counters,
            line: self.line(best),
            iterations: Vec::new(),
            time: budget.elapsed(),
            overshoot: budget.overshoot(),
        }
    }
}

/// The natural logarithm of a number of visits, from a table where the number is small: most nodes have few visits.
#[inline]
fn logarithm(visits: u32) -> f64 {
    const SMALL: usize = 1 << 14;
    static TABLE: OnceLock<Vec<f64>> = OnceLock::new();
    let table = TABLE.get_or_init(|| (0..SMALL).map(|number| libm::log(number.max(1) as f64)).collect());
    table.get(visits as usize).copied().unwrap_or_else(|| libm::log(f64::from(visits)))
}
