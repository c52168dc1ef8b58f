//! Random trees as games, and the small trees of the textbooks.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use agon_games::random::{Random, below, mix};
use agon_games::{Chance, Deterministic, Duel, Game, Keyed, Noisy, Ordered, Payoffs, Reseat, Seat, Turn};
use agon_search::Score;
use agon_search::evaluate::Evaluate;

/// The shape of a random tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    pub seed: u64,
    /// The maximum number of children.
    pub width: u64,
    /// Whether the two seats strictly alternate; else the next mover is random.
    pub alternate: bool,
    /// Whether different paths meet in the same position.
    pub meets: bool,
    /// One node in `ends` is an end; 0 for none.
    pub ends: u64,
    /// The ply at which every node is an end.
    pub last: u64,
}

impl Shape {
    /// An endless tree without transpositions; the seats of even seeds alternate. The salt tells tests apart.
    pub fn seeded(seed: u64, salt: u64) -> Shape {
        let alternate = seed.is_multiple_of(2);
        Shape { seed: mix(seed, salt), width: 4, alternate, meets: false, ends: 0, last: u64::MAX }
    }
}

/// A node of a random tree. Its properties are functions of its number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RandomTree {
    shape: Shape,
    node: u64,
    ply: u64,
    mover: Seat,
}

impl RandomTree {
    pub fn new(shape: Shape) -> RandomTree {
        RandomTree { shape, node: 0, ply: 0, mover: Seat::FIRST }
    }

    /// Returns a random number for this node and a purpose.
    fn drawn(&self, purpose: u64) -> u64 {
        mix(mix(mix(self.shape.seed, self.node), self.ply), purpose)
    }

    fn width(&self) -> u64 {
        if self.over() { 0 } else { 1 + self.drawn(1) % self.shape.width }
    }

    fn over(&self) -> bool {
        self.ply >= self.shape.last
            || (self.shape.ends > 0 && self.ply > 0 && self.drawn(2).is_multiple_of(self.shape.ends))
    }

    /// Returns the node's value for seat 0, from a small range so that ties are common.
    fn value(&self) -> Score {
        (self.drawn(3) % 41) as Score - 20
    }
}

impl Game for RandomTree {
    type Move = u8;
    const SEATS: usize = 2;
    const PAYOFFS: Payoffs = Payoffs::DUEL;

    fn turn(&self) -> Turn {
        if self.over() { Turn::Over } else { Turn::Player(self.mover) }
    }

    fn moves(&self, out: &mut Vec<u8>) {
        out.extend(0..self.width() as u8);
    }

    fn play(&mut self, mv: u8) {
        // Where paths meet, the order of moves does not matter and each ply has few nodes.
        self.node =
            if self.shape.meets { (self.node + u64::from(mv)) % 64 } else { mix(self.node, u64::from(mv)) };
        self.ply += 1;
        self.mover = if self.shape.alternate { self.mover.other() } else { Seat((self.drawn(4) & 1) as u8) };
    }

    fn payoff(&self, seat: Seat) -> i32 {
        let first = (self.drawn(5) % 3) as i32 - 1;
        if seat == Seat::FIRST { first } else { -first }
    }

    fn ply_bound(&self) -> u32 {
        u32::MAX
    }
}

impl Duel for RandomTree {}
impl Deterministic for RandomTree {}
impl Noisy for RandomTree {}

impl Keyed for RandomTree {
    const KEY_DECIDES: bool = true;

    fn key(&self) -> u64 {
        mix(mix(self.node, self.ply), u64::from(self.mover.0))
    }
}

impl Reseat for RandomTree {
    fn reseat(&self, seat: Seat) -> Option<Self> {
        Some(RandomTree { mover: seat, ..self.clone() })
    }
}

impl Ordered for RandomTree {
    const SLOTS: usize = 256;
    fn slot(&self, mv: u8) -> usize {
        usize::from(mv)
    }
    fn promise(&self, mv: u8) -> i32 {
        (mix(self.node, u64::from(mv)) % 7) as i32
    }
}

/// The node's own value.
#[derive(Clone)]
pub struct NodeValue;

impl Evaluate<RandomTree> for NodeValue {
    fn evaluate(&mut self, position: &RandomTree, seat: Seat) -> Score {
        let value = position.value();
        if seat == Seat::FIRST { value } else { -value }
    }
}

/// A tree with the same number of children at each node of a ply and given leaves, max at the root, seats
/// alternating.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Uniform {
    widths: Vec<usize>,
    path: Vec<u8>,
}

impl Uniform {
    pub fn new(widths: &[usize]) -> Uniform {
        Uniform { widths: widths.to_vec(), path: Vec::new() }
    }

    /// The number of the leaf that the path leads to.
    fn leaf(&self) -> usize {
        self.path.iter().zip(&self.widths).fold(0, |number, (&mv, width)| number * width + usize::from(mv))
    }
}

impl Game for Uniform {
    type Move = u8;
    const SEATS: usize = 2;
    const PAYOFFS: Payoffs = Payoffs::DUEL;

    fn turn(&self) -> Turn {
        Turn::Player(Seat((self.path.len() & 1) as u8))
    }

    fn moves(&self, out: &mut Vec<u8>) {
        let width = self.widths.get(self.path.len()).copied().unwrap_or(0);
        out.extend(0..width as u8);
    }

    fn play(&mut self, mv: u8) {
        self.path.push(mv);
    }

    fn payoff(&self, _seat: Seat) -> i32 {
        0
    }

    fn ply_bound(&self) -> u32 {
        self.widths.len() as u32
    }
}

impl Duel for Uniform {}
impl Deterministic for Uniform {}
impl Noisy for Uniform {}

impl Keyed for Uniform {
    fn key(&self) -> u64 {
        self.path.iter().fold(self.path.len() as u64, |key, &mv| mix(key, u64::from(mv)))
    }
}

impl Reseat for Uniform {
    fn reseat(&self, _seat: Seat) -> Option<Self> {
        None
    }
}

impl Ordered for Uniform {
    const SLOTS: usize = 256;
    fn slot(&self, mv: u8) -> usize {
        usize::from(mv)
    }
    fn promise(&self, _mv: u8) -> i32 {
        0
    }
}

/// The evaluated leaves, and the number of evaluations.
#[derive(Default, Debug)]
pub struct Seen {
    pub times: usize,
    pub leaves: BTreeSet<usize>,
}

/// Leaf values for seat 0 from a list, with a record of evaluations.
pub struct Listed {
    pub values: Vec<Score>,
    pub seen: Arc<Mutex<Seen>>,
}

impl Evaluate<Uniform> for Listed {
    fn evaluate(&mut self, position: &Uniform, seat: Seat) -> Score {
        let leaf = position.leaf();
        let mut seen = self.seen.lock().unwrap();
        seen.times += 1;
        seen.leaves.insert(leaf);
        let value = self.values[leaf];
        if seat == Seat::FIRST { value } else { -value }
    }
}

/// A random tree in which some nodes belong to chance.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChanceTree(pub RandomTree);

impl ChanceTree {
    fn by_chance(&self) -> bool {
        self.0.ply > 0 && self.0.drawn(6).is_multiple_of(2)
    }
}

impl Game for ChanceTree {
    type Move = u8;
    const SEATS: usize = 2;
    const PAYOFFS: Payoffs = Payoffs { min: -3, max: 3, sum: 0, spread: 6 };

    fn turn(&self) -> Turn {
        if !self.0.over() && self.by_chance() { Turn::Chance } else { self.0.turn() }
    }

    fn moves(&self, out: &mut Vec<u8>) {
        self.0.moves(out);
    }

    fn play(&mut self, mv: u8) {
        self.0.play(mv);
    }

    fn payoff(&self, seat: Seat) -> i32 {
        3 * self.0.payoff(seat)
    }

    /// Draws outcomes by weight.
    fn sample(&self, random: &mut Random, scratch: &mut Vec<u8>) -> u8 {
        scratch.clear();
        self.moves(scratch);
        if self.turn() != Turn::Chance {
            return scratch[below(random, scratch.len())];
        }
        let mut drawn = below(random, self.total_weight() as usize) as u32;
        *scratch
            .iter()
            .find(|&&outcome| {
                let weight = self.weight(outcome);
                let found = drawn < weight;
                drawn = drawn.saturating_sub(weight);
                found
            })
            .unwrap()
    }

    fn ply_bound(&self) -> u32 {
        u32::MAX
    }
}

impl Duel for ChanceTree {}

impl Chance for ChanceTree {
    fn total_weight(&self) -> u32 {
        let mut outcomes = Vec::new();
        self.moves(&mut outcomes);
        outcomes.into_iter().map(|outcome| self.weight(outcome)).sum()
    }

    fn weight(&self, outcome: u8) -> u32 {
        1 + (mix(self.0.node, u64::from(outcome)) % 5) as u32
    }
}

impl Keyed for ChanceTree {
    fn key(&self) -> u64 {
        self.0.key()
    }
}

impl Ordered for ChanceTree {
    const SLOTS: usize = 256;
    fn slot(&self, mv: u8) -> usize {
        usize::from(mv)
    }
    fn promise(&self, mv: u8) -> i32 {
        self.0.promise(mv)
    }
}

impl Evaluate<ChanceTree> for NodeValue {
    fn evaluate(&mut self, position: &ChanceTree, seat: Seat) -> Score {
        // Twentieths of a unit up to one, now and then three times as far: some lie beyond the payoffs.
        let value = position.0.value() * 150;
        if seat == Seat::FIRST { value } else { -value }
    }
}

/// A random tree for several seats, in rotation or with a random next mover.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ManyTree<const SEATS: usize>(pub RandomTree);

impl<const SEATS: usize> Game for ManyTree<SEATS> {
    type Move = u8;
    const SEATS: usize = SEATS;
    const PAYOFFS: Payoffs = Payoffs::for_seats(SEATS);

    fn turn(&self) -> Turn {
        self.0.turn()
    }

    fn moves(&self, out: &mut Vec<u8>) {
        self.0.moves(out);
    }

    fn play(&mut self, mv: u8) {
        let mover = self.0.mover;
        // The successor depends on the mover, whom best-reply search chooses.
        self.0.node = mix(self.0.node, u64::from(mover.0));
        self.0.play(mv);
        self.0.mover = if self.0.shape.alternate {
            mover.next(SEATS)
        } else {
            Seat((self.0.drawn(4) % SEATS as u64) as u8)
        };
    }

    fn payoff(&self, seat: Seat) -> i32 {
        let winners = 1 + self.0.drawn(7) % ((1 << SEATS) - 1);
        Payoffs::of_winners(SEATS, winners as u32, seat)
    }

    fn ply_bound(&self) -> u32 {
        u32::MAX
    }
}

impl<const SEATS: usize> Deterministic for ManyTree<SEATS> {}
impl Duel for ManyTree<2> {}
impl Noisy for ManyTree<2> {}

impl<const SEATS: usize> Keyed for ManyTree<SEATS> {
    fn key(&self) -> u64 {
        self.0.key()
    }
}

impl<const SEATS: usize> Reseat for ManyTree<SEATS> {
    fn reseat(&self, seat: Seat) -> Option<Self> {
        self.0.reseat(seat).map(ManyTree)
    }
}

impl<const SEATS: usize> Ordered for ManyTree<SEATS> {
    const SLOTS: usize = 256;
    fn slot(&self, mv: u8) -> usize {
        usize::from(mv)
    }
    fn promise(&self, mv: u8) -> i32 {
        self.0.promise(mv)
    }
}

impl<const SEATS: usize> Evaluate<ManyTree<SEATS>> for NodeValue {
    fn evaluate(&mut self, position: &ManyTree<SEATS>, seat: Seat) -> Score {
        // Only the board is evaluated, not the turn, because best-reply search passes it.
        let value = |seat: u64| (mix(mix(position.0.node, position.0.ply), seat) % 2001) as Score - 1000;
        match (SEATS, seat) {
            (2, Seat::FIRST) => value(0),
            (2, _) => -value(0),
            _ => value(u64::from(seat.0)),
        }
    }
}

/// Whether a line can be played from a position.
pub fn is_legal_line<G: Game>(root: &G, line: &[G::Move]) -> bool {
    let mut position = root.clone();
    let mut legal = Vec::new();
    line.iter().all(|&mv| {
        legal.clear();
        position.moves(&mut legal);
        let found = legal.contains(&mv);
        if found {
            position.play(mv);
        }
        found
    })
}
