//! The tree of a sampling search: one growing array in which siblings are adjacent.

use agon_games::Seat;

use crate::memory::reserve;
use crate::value::Proof;

/// A node's proven result for the seat that moved to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Status {
    Open,
    Win,
    Draw,
    Loss,
}

impl Status {
    /// Returns the status for the other seat of a duel.
    pub(super) fn turned(self) -> Status {
        match self {
            Status::Win => Status::Loss,
            Status::Loss => Status::Win,
            other => other,
        }
    }

    /// Returns the proven reward.
    pub(super) fn reward(self) -> f64 {
        match self {
            Status::Win => 1.0,
            Status::Loss => 0.0,
            Status::Open | Status::Draw => 0.5,
        }
    }
}

/// A position of the tree, with the move that led to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node<M> {
    /// The sum of rewards for the seat that moved to it.
    pub(super) total: f64,
    pub(super) visits: u32,
    /// The mean reward and the inverse root of the visits, cached because a node is read far more often than it is
    /// visited.
    pub(super) value: f32,
    pub(super) spread: f32,
    /// The index of the first child; 0 if there are none, because the root is no child.
    pub(super) first: u32,
    pub(super) count: u16,
    /// The number of visited children; they are the first ones.
    pub(super) tried: u16,
    /// Plies to the proven end.
    pub(super) distance: u16,
    pub(super) status: Status,
    /// Whether a child is a proven draw.
    pub(super) has_draw: bool,
    pub(super) mv: M,
}

impl<M> Node<M> {
    pub(super) fn new(mv: M) -> Node<M> {
        Node {
            total: 0.0,
            visits: 0,
            value: 0.0,
            spread: 1.0,
            first: 0,
            count: 0,
            tried: 0,
            distance: 0,
            status: Status::Open,
            has_draw: false,
            mv,
        }
    }

    /// Counts a visit with the reward of the seat that moved here; `None` after a chance outcome.
    #[inline]
    pub(super) fn visit(&mut self, reward: Option<f64>) {
        self.visits += 1;
        if let Some(reward) = reward {
            self.total += reward;
            let visits = f64::from(self.visits);
            self.value = (self.total / visits) as f32;
            self.spread = 1.0 / (visits as f32).sqrt();
        }
    }

    /// Returns the mean reward of the seat that moved here, or the proven reward.
    pub(super) fn mean(&self) -> f64 {
        match self.status {
            Status::Open => self.total / f64::from(self.visits.max(1)),
            proven => proven.reward(),
        }
    }
}

/// The nodes, root first, and their maximum number.
pub(super) struct Tree<M> {
    pub(super) nodes: Vec<Node<M>>,
    most: usize,
    /// Space for copying a subtree.
    spare: Vec<Node<M>>,
}

/// Makes room for more nodes: at least twice as many as there are, so that the nodes are rarely moved. Panics if there is no
/// memory for them.
fn make_room<M>(nodes: &mut Vec<Node<M>>, additional: usize, most: usize) {
    if nodes.capacity() - nodes.len() < additional {
        let room = additional.max(nodes.len().min(most - nodes.len()));
        let wanted = nodes.len() + additional;
        reserve(nodes, room, || format!("a tree of {wanted} nodes"));
    }
}

impl<M: Copy + Eq> Tree<M> {
    /// Creates a tree of at most `megabytes` MiB, including the space to copy a subtree.
    pub(super) fn new(megabytes: usize) -> Tree<M> {
        let most = ((megabytes << 20) / (2 * size_of::<Node<M>>())).clamp(1, u32::MAX as usize - 1);
        Tree { nodes: Vec::new(), most, spare: Vec::new() }
    }

    /// Resets the tree to a root; `mv` is any move.
    pub(super) fn plant(&mut self, mv: M) {
        self.nodes.clear();
        self.nodes.push(Node::new(mv));
    }

    /// Adds the children of a node. Returns whether there was room.
    pub(super) fn expand(&mut self, node: usize, moves: &[M]) -> bool {
        if self.nodes.len() + moves.len() > self.most || moves.len() > usize::from(u16::MAX) {
            return false;
        }
        self.nodes[node].first = self.nodes.len() as u32;
        self.nodes[node].count = moves.len() as u16;
        make_room(&mut self.nodes, moves.len(), self.most);
        self.nodes.extend(moves.iter().map(|&mv| Node::new(mv)));
        true
    }

    /// Returns the indices of a node's children.
    pub(super) fn children(&self, node: usize) -> std::ops::Range<usize> {
        let Node { first, count, .. } = self.nodes[node];
        first as usize..first as usize + usize::from(count)
    }

    /// Makes a child of the root the new root and drops all other nodes. Returns whether the child was found.
    pub(super) fn descend(&mut self, mv: M) -> bool {
        if self.nodes.is_empty() {
            return false;
        }
        let Some(child) = self.children(0).find(|&child| self.nodes[child].mv == mv) else { return false };
        // Copy breadth first; a copied node's `first` is its old index until its children are copied.
        self.spare.clear();
        self.spare.push(self.nodes[child]);
        let mut index = 0;
        while index < self.spare.len() {
            let Node { first, count, .. } = self.spare[index];
            if count > 0 {
                self.spare[index].first = self.spare.len() as u32;
                make_room(&mut self.spare, usize::from(count), self.most);
                self.spare
                    .extend_from_slice(&self.nodes[first as usize..first as usize + usize::from(count)]);
            }
            index += 1;
        }
        std::mem::swap(&mut self.nodes, &mut self.spare);
        true
    }

    /// Derives a node's status from its children's. `mover` is the seat that chooses among them, `entered` the one
    /// that moved to the node. Returns whether it is proven now.
    pub(super) fn prove(&mut self, node: usize, mover: Seat, entered: Seat) -> bool {
        let children = &self.nodes[self.children(node)];
        let mut best = Status::Loss;
        let (mut shortest, mut longest) = (u16::MAX, 0);
        for child in children {
            match child.status {
                Status::Win => {
                    best = Status::Win;
                    shortest = shortest.min(child.distance);
                }
                Status::Open if best != Status::Win => best = Status::Open,
                Status::Draw if best == Status::Loss => best = Status::Draw,
                _ => {}
            }
            longest = longest.max(child.distance);
        }
        if best == Status::Open || children.is_empty() {
            return false;
        }
        let distance = 1 + if best == Status::Win { shortest } else { longest };
        let node = &mut self.nodes[node];
        node.status = if mover == entered { best } else { best.turned() };
        node.distance = distance;
        true
    }

    /// Returns the proof for the seat to move at the root.
    pub(super) fn proof(&self) -> Option<Proof> {
        let best = self.nodes[self.children(0)].iter();
        let root = &self.nodes[0];
        match root.status {
            Status::Win => {
                let shortest =
                    best.filter(|child| child.status == Status::Win).map(|child| child.distance).min();
                Some(Proof::Win(u32::from(shortest.unwrap_or(0)) + 1))
            }
            Status::Loss => Some(Proof::Loss(u32::from(root.distance))),
            Status::Draw => Some(Proof::Draw(u32::from(root.distance))),
            Status::Open => None,
        }
    }
}
