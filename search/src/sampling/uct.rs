//! UCT (Kocsis and Szepesvari 2006): Monte Carlo tree search that selects the child with the greatest `mean + c
//! sqrt(ln N / n)`.
//!
//! Each mover maximises its own rewards, with any number of seats; chance is sampled. The solver (Winands, Björnsson
//! and Saito 2008) backs proofs up in duels without chance. The tree is reused from move to move and bounded in
//! memory: when it is full, playouts start at its leaves. Deliberately not here: threads, and domain knowledge other
//! than the game's playout policy and evaluation.

use std::sync::OnceLock;

use agon_games::random::{Random, below, seeded};
use agon_games::{Seat, Turn};

use super::tree::{Node, Status, Tree};
use super::{Playout, Rewards, SamplingRules, end_rewards, mean_payoff};
use crate::budget::Budget;
use crate::counters::Counters;
use crate::evaluate::Evaluate;
use crate::report::{Iteration, SearchResult};
use crate::searcher::Searcher;
use crate::value::{MAX_SEATS, Value};

/// The choice of the root's child to play.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Final {
    /// The best mean.
    Value,
    /// The most visits.
    Visits,
}

agon_games::choices!(Final { Value = "value", Visits = "visits" });

/// The options of a UCT search.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Options {
    /// The exploration constant, in differences between an ordinary win and an ordinary loss.
    pub c: f64,
    /// The value of an unvisited child; without it every child is visited once before any is selected again.
    pub first_play: Option<f64>,
    /// The number of playouts at each new leaf, at least 1.
    pub playouts: u64,
    /// The settings of playouts.
    pub playout: Playout,
    /// The choice of the root's child to play.
    pub choice: Final,
    /// Whether ends are proven and backed up.
    pub solver: bool,
    /// Whether the tree is kept from move to move.
    pub keep: bool,
    /// The memory limit of the tree in MiB.
    pub memory_mb: usize,
}

/// A UCT search of one game.
pub struct Uct<G: SamplingRules, E> {
    options: Options,
    evaluator: E,
    tree: Tree<G::Move>,
    /// The position at the root of the kept tree.
    root: Option<G>,
    path: Vec<Step>,
    moves: Vec<G::Move>,
    scratch: Vec<G::Move>,
    /// The leaf from which several playouts start.
    leaf: Option<G>,
}

/// A node on the path of a simulation and the seat that moved to it; `None` for chance.
#[derive(Clone, Copy)]
struct Step {
    node: u32,
    seat: Option<Seat>,
}

impl<G: SamplingRules, E: Evaluate<G>> Uct<G, E> {
    /// Creates a search.
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
            leaf: None,
        }
    }

    /// Runs one simulation from `position`, the root, which is left at the playout's end. Returns the distance from
    /// the root to the last tree node.
    fn simulate(
        &mut self,
        position: &mut G,
        random: &mut Random,
        counters: &mut Counters,
        budget: &mut Budget,
    ) -> u32 {
        // 1. Selection: descend to a node without children.
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
                    // 3. Playouts.
                    break self.play_out(position, random, counters, budget);
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

    /// Plays out from a leaf, as often as the options ask and the budget allows, and returns the mean rewards. All but
    /// the first playout are counted as simulations here.
    fn play_out(
        &mut self,
        position: &mut G,
        random: &mut Random,
        counters: &mut Counters,
        budget: &mut Budget,
    ) -> Rewards {
        let Options { playout, playouts, .. } = self.options;
        if playouts > 1 {
            self.leaf = Some(position.clone());
        }
        let mut sums = [0.0; MAX_SEATS];
        let mut done = 0;
        loop {
            let (rewards, plies) = playout.run(position, &mut self.evaluator, random, &mut self.scratch);
            counters.playout_plies += u64::from(plies);
            counters.nodes += u64::from(plies);
            counters.leaves += 1;
            if playouts == 1 {
                return rewards;
            }
            sums.iter_mut().zip(rewards).for_each(|(sum, reward)| *sum += reward);
            done += 1;
            let more = done < playouts && budget.simulate(counters.simulations + 1, counters.nodes).is_ok();
            let Some(leaf) = self.leaf.as_ref().filter(|_| more) else { break };
            position.clone_from(leaf);
            counters.simulations += 1;
        }
        sums.map(|sum| sum / done as f64)
    }

    /// Adds the children of a node in random order, so that the game's order favours none.
    fn expand(&mut self, position: &G, node: usize, random: &mut Random) -> bool {
        self.moves.clear();
        position.moves(&mut self.moves);
        for index in (1..self.moves.len()).rev() {
            self.moves.swap(index, below(random, index + 1));
        }
        self.tree.expand(node, &self.moves)
    }

    /// Returns the child to follow: an unvisited one, else the one with the greatest upper bound. Proven children are
    /// skipped while others are open.
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
                // Proven children need no more visits; `back_up` accounts for them.
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

    /// Returns the child of a sampled chance outcome.
    fn sample(&mut self, position: &G, node: usize, random: &mut Random) -> usize {
        let outcome = position.sample(random, &mut self.scratch);
        let found = self.tree.children(node).find(|&child| self.tree.nodes[child].mv == outcome);
        found.expect("a drawn outcome is one of those listed")
    }

    /// 4. Backs the rewards up: each node on the path gets the reward of the seat that moved to it.
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

    /// Backs rewards and proofs up from the leaf: a mover with a proven draw would take it rather than a worse child,
    /// and proofs rise as long as each node is proven by its children.
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

    /// Returns whether the solver applies: one seat's win must be the other's loss.
    fn solves(&self) -> bool {
        self.options.solver && G::SEATS == 2
    }

    /// Marks an end that the tree has reached as proven, unless the path contains a chance outcome: nobody chooses
    /// it, so no proof rises through it.
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

    /// Returns the rewards of a proven node. The solver is only used in duels.
    fn proven_rewards(&self, node: usize) -> Rewards {
        let mut rewards = [0.0; MAX_SEATS];
        if let Some(Step { seat: Some(seat), .. }) = self.path.last() {
            let reward = self.tree.nodes[node].status.reward();
            rewards[seat.index()] = reward;
            rewards[seat.other().index()] = 1.0 - reward;
        }
        rewards
    }

    /// Returns the root's child to play: a proven win, else the best by mean or visits, an unvisited one only if
    /// there is no other. A proven draw gets no more visits; by visits it is played unless an open child is better.
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

    /// Returns the line of most visited children from the best one.
    fn line(&self, best: usize) -> Vec<G::Move> {
        let mut line = vec![self.tree.nodes[best].mv];
        let mut node = best;
        while let Some(child) =
            self.tree.children(node).filter(|&child| self.tree.nodes[child].visits > 0).max_by_key(|&child| {
                // The first among equals.
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
    ) -> SearchResult<G::Move> {
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
        // A kept node was proven for the seat that moved to it; the new root must be searched again.
        self.tree.nodes[0].status = Status::Open;

        while self.tree.nodes[0].status == Status::Open
            && budget.simulate(counters.simulations, counters.nodes).is_ok()
        {
            position.clone_from(root);
            let depth = self.simulate(&mut position, &mut random, &mut counters, &mut budget);
            selective_depth = selective_depth.max(depth);
        }
        if self.tree.nodes[0].count == 0 {
            // Without any simulation the children are still needed to have a move.
            let expanded = self.expand(root, 0, &mut random);
            debug_assert!(expanded, "a tree of one node has room for the children of its root");
        }
        let best = self.best_child();
        let child = &self.tree.nodes[best];
        let number = if child.visits == 0 { 0.0 } else { mean_payoff::<G>(child.mean()) };
        counters.tree_nodes = self.tree.nodes.len() as u64;
        let value = Value { number, proof: self.tree.proof() };
        let line = self.line(best);
        SearchResult {
            selective_depth,
            line,
            ..SearchResult::without_iterations(child.mv, value, counters, &budget)
        }
    }
}

/// Returns the natural logarithm of a number of visits, from a table for small numbers, which are the most frequent.
#[inline]
fn logarithm(visits: u32) -> f64 {
    const SMALL: usize = 1 << 14;
    static TABLE: OnceLock<Vec<f64>> = OnceLock::new();
    let table = TABLE.get_or_init(|| (0..SMALL).map(|number| libm::log(number.max(1) as f64)).collect());
    table.get(visits as usize).copied().unwrap_or_else(|| libm::log(f64::from(visits)))
}
