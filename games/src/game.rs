//! The central trait and its capabilities.
//!
//! A [`Game`] value is a position. What some games can do and others cannot is a trait of its own, so that
//! asking for a missing capability is a compile error and never a panic. Nothing here knows of search: a
//! capability says what is true of the rules, and the algorithms make of it what they like.

use std::fmt::{self, Debug};

use crate::random::{Random, below};

/// A place at the board. Seat 0 moves first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Seat(pub u8);

impl Seat {
    /// The seat that moves first.
    pub const FIRST: Seat = Seat(0);
    /// The second seat of a duel.
    pub const SECOND: Seat = Seat(1);

    /// The seat as an index into arrays by seat.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The other seat of a duel.
    #[inline]
    pub const fn other(self) -> Seat {
        Seat(self.0 ^ 1)
    }

    /// The seat that follows in a rotation of `seats`.
    #[inline]
    pub const fn next(self, seats: usize) -> Seat {
        let next = self.0 + 1;
        Seat(if next as usize == seats { 0 } else { next })
    }

    /// All seats of a game, in order.
    pub fn all(seats: usize) -> impl Iterator<Item = Seat> {
        (0..seats as u8).map(Seat)
    }
}

/// Who decides the next ply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// The player in this seat.
    Player(Seat),
    /// Chance: the moves are outcomes, see [`Chance::weight`].
    Chance,
    /// Nobody: the game is over and [`Game::payoff`] may be asked.
    Over,
}

impl fmt::Display for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Turn::Player(seat) => write!(f, "seat {}", seat.0),
            Turn::Chance => write!(f, "chance"),
            Turn::Over => write!(f, "over"),
        }
    }
}

/// The range of a payoff and what the payoffs of all seats add up to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Payoffs {
    /// The worst a seat can get.
    pub min: i32,
    /// The best a seat can get.
    pub max: i32,
    /// The sum over all seats, the same at every end.
    pub sum: i32,
}

impl Payoffs {
    /// A win is +1, a draw 0, a loss -1.
    pub const DUEL: Payoffs = Payoffs { min: -1, max: 1, sum: 0 };

    /// Sixty points that the winners share: sixty divides evenly among one to six of them.
    pub const SHARED: Payoffs = Payoffs { min: 0, max: 60, sum: 60 };

    /// [`Payoffs::DUEL`] for two seats, [`Payoffs::SHARED`] for more.
    pub const fn for_seats(seats: usize) -> Payoffs {
        if seats == 2 { Payoffs::DUEL } else { Payoffs::SHARED }
    }

    /// What `seat` gets when the seats of `winners` (a bit each) share the win of a game of `seats`.
    pub const fn of_winners(seats: usize, winners: u32, seat: Seat) -> i32 {
        let count = winners.count_ones() as i32;
        let won = winners & (1 << seat.0) != 0;
        if seats == 2 {
            if count == 2 {
                0
            } else if won {
                1
            } else {
                -1
            }
        } else if won {
            Payoffs::SHARED.sum / count
        } else {
            0
        }
    }
}

/// A position of a game: whose turn it is, what may be played, and what it pays at the end.
///
/// `Eq` covers everything the rules look at, history included where they do (repetition, superko).
pub trait Game: Clone + Eq + Debug + Send + Sync + 'static {
    /// One decision or one outcome of chance. Small, plain data.
    type Move: Copy + Eq + Debug + Send + Sync + 'static;

    /// How many seats there are.
    const SEATS: usize;
    /// The range and the sum of the payoffs.
    const PAYOFFS: Payoffs;

    /// Who decides the next ply. Asked of the position, never assumed to alternate.
    fn turn(&self) -> Turn;

    /// Appends the legal moves, or the outcomes of chance, in an order that is a function of the position.
    /// Appends nothing exactly when the game is over; a seat that must pass has a move for it.
    fn moves(&self, out: &mut Vec<Self::Move>);

    /// Plays a move. Precondition: it is one of [`Game::moves`].
    fn play(&mut self, mv: Self::Move);

    /// What `seat` gets. Precondition: the game is over.
    fn payoff(&self, seat: Seat) -> i32;

    /// A bound on the number of plies of a whole game, chance and passes included: the same number in every
    /// position of a game, counted from the first and not from this one.
    fn ply_bound(&self) -> u32;

    /// Visits the position after `mv` and leaves this one as it was, whatever `visit` does with what it is given.
    ///
    /// Copies by default; games override it where undoing is faster.
    #[inline]
    fn after<R>(&mut self, mv: Self::Move, visit: impl FnOnce(&mut Self) -> R) -> R {
        let mut next = self.clone();
        next.play(mv);
        visit(&mut next)
    }

    /// How many moves [`Game::moves`] would append. `scratch` comes back as it was.
    #[inline]
    fn count(&self, scratch: &mut Vec<Self::Move>) -> u64 {
        let start = scratch.len();
        self.moves(scratch);
        let count = scratch.len() - start;
        scratch.truncate(start);
        count as u64
    }

    /// Draws one legal move uniformly, or one outcome of chance by its weight. Precondition: not over.
    /// `scratch` is room to list moves in; its content is lost.
    ///
    /// The default lists the moves and knows no weights: a game whose outcomes of chance differ in weight must
    /// override it.
    #[inline]
    fn sample(&self, random: &mut Random, scratch: &mut Vec<Self::Move>) -> Self::Move {
        scratch.clear();
        self.moves(scratch);
        scratch[below(random, scratch.len())]
    }

    /// Draws one move as the game's own light playout policy does: [`Game::sample`] unless the game's header
    /// says otherwise (in go a playout does not fill its own eyes).
    #[inline]
    fn rollout(&self, random: &mut Random, scratch: &mut Vec<Self::Move>) -> Self::Move {
        self.sample(random, scratch)
    }
}

/// Two seats, and what one wins the other loses.
pub trait Duel: Game {}

/// No position's turn is [`Turn::Chance`].
pub trait Deterministic: Game {}

/// Some positions are decided by chance.
pub trait Chance: Game {
    /// The sum of the weights of all outcomes of this position. Precondition: the turn is chance's.
    fn total_weight(&self) -> u32;

    /// The integer weight of an outcome. Precondition: it is one of [`Game::moves`] and the turn is chance's.
    fn weight(&self, outcome: Self::Move) -> u32;
}

/// A 64-bit key for transposition tables and for telling openings apart.
pub trait Keyed: Game {
    /// Whether the rules look at how a position was reached (repetition, superko). Then positions with equal
    /// keys may differ in their futures.
    const PATH_DEPENDENT: bool = false;

    /// The key of everything that the board shows: pieces, turn, rights. Clocks, ply counts and history are
    /// left out. Equal positions have equal keys.
    fn key(&self) -> u64;
}

/// A position with the turn given to any seat, the one that has it included.
pub trait Reseat: Game {
    /// Whether to pass, were it allowed, would hardly ever be better than the best move. Not so where zugzwang is common
    /// (connect-four, checkers, nim), where few moves are worth more than many (othello, kalah), or where a pass is a
    /// move of the rules (go).
    const PASSING_HURTS: bool = false;

    /// This position with `seat` to move, or nothing where that makes no sense (the seat is out or has no move,
    /// a king would be left in check); never nothing for the seat whose turn it is. Precondition: the turn is a
    /// player's.
    fn reseat(&self, seat: Seat) -> Option<Self>;

    /// Visits [`Reseat::reseat`]'s position, if there is one, and leaves this one as it was. Copies by default;
    /// games whose positions are dear to copy override it.
    #[inline]
    fn after_reseat<R>(&mut self, seat: Seat, visit: impl FnOnce(&mut Self) -> R) -> Option<R> {
        self.reseat(seat).map(|mut position| visit(&mut position))
    }
}

/// Which moves quiescence search looks at. The defaults are those of a game without noisy moves.
pub trait Noisy: Game {
    /// Whether the game has noisy moves at all.
    const NOISY: bool = false;

    /// Appends the noisy moves: those that change the evaluation so much that it cannot be trusted before them.
    /// Where [`Noisy::may_stand_pat`] is false these are all legal moves.
    fn noisy_moves(&self, _out: &mut Vec<Self::Move>) {}

    /// Whether declining every noisy move is a real choice here: not where capture is compulsory, not in check.
    fn may_stand_pat(&self) -> bool {
        true
    }
}

/// What move ordering may know of a move before it is played.
pub trait Ordered: Game {
    /// The number of slots of a history table; each seat has a table of its own.
    const SLOTS: usize;

    /// The move's slot, below [`Ordered::SLOTS`]: moves that mean the same in neighbouring positions share it.
    fn slot(&self, mv: Self::Move) -> usize;

    /// How promising the move looks by the rules of thumb of the game; greater is better, 0 is unremarkable.
    fn promise(&self, mv: Self::Move) -> i32;

    /// Tells `each` the index and the promise of every one of these moves. The same numbers as [`Ordered::promise`],
    /// where what they have in common is worth computing once.
    #[inline]
    fn promises(&self, moves: &[Self::Move], mut each: impl FnMut(usize, i32)) {
        for (index, &mv) in moves.iter().enumerate() {
            each(index, self.promise(mv));
        }
    }
}

/// A named term of the linear evaluation.
#[derive(Clone, Copy, Debug)]
pub struct Feature {
    /// The name used in configurations.
    pub name: &'static str,
    /// The weight used where the configuration says nothing.
    pub weight: f64,
    /// What it counts, in a line.
    pub about: &'static str,
}

/// Which of a game's features are asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FeatureSet(u64);

impl FeatureSet {
    /// No feature.
    pub const NONE: FeatureSet = FeatureSet(0);
    /// Every feature.
    pub const ALL: FeatureSet = FeatureSet(u64::MAX);

    /// This set with one more feature, by its index in [`Features::FEATURES`].
    pub const fn with(self, index: usize) -> FeatureSet {
        FeatureSet(self.0 | 1 << index)
    }

    /// Whether the feature is asked for.
    #[inline]
    pub const fn has(self, index: usize) -> bool {
        self.0 >> index & 1 != 0
    }

    /// Whether any feature of `other` is asked for.
    #[inline]
    pub const fn any(self, other: FeatureSet) -> bool {
        self.0 & other.0 != 0
    }
}

/// Named features for a linear evaluation: `e(s) = sum of weight * value`.
pub trait Features: Game {
    /// The features with their default weights, at least one and at most 64.
    const FEATURES: &'static [Feature];

    /// Writes the features' values from the view of `seat`, in the order of [`Features::FEATURES`].
    ///
    /// `values` has a place for each. Features not in `wanted` need not be computed; whatever is written for
    /// them is ignored, so that an evaluation does not pay for what it does not use. In a duel the values for
    /// one seat are the negated values for the other. Precondition: the game is not over.
    fn features(&self, seat: Seat, wanted: FeatureSet, values: &mut [i32]);
}

/// Text for people and for other programs.
pub trait Notation: Game {
    /// Appends the text of a legal move: no spaces, and different for different moves of one position.
    fn write_move(&self, mv: Self::Move, out: &mut String);

    /// The legal move that `text` names, if there is one. Understands at least what
    /// [`Notation::write_move`] writes.
    fn parse_move(&self, text: &str) -> Option<Self::Move> {
        let mut moves = Vec::new();
        self.moves(&mut moves);
        let mut written = String::new();
        moves.into_iter().find(|&mv| {
            written.clear();
            self.write_move(mv, &mut written);
            written == text
        })
    }

    /// The text of a legal move.
    fn move_text(&self, mv: Self::Move) -> String {
        let mut text = String::new();
        self.write_move(mv, &mut text);
        text
    }

    /// A board that reads well in a terminal: several lines without colour, no trailing newline.
    fn board(&self) -> String;

    /// The position in one line, clocks included, history left out: [`Setup::from_position`] reads it.
    ///
    /// [`Setup::from_position`]: crate::setup::Setup::from_position
    fn position(&self) -> String;

    /// Why the game is over, in a word or two (`"checkmate"`, `"ply limit"`). Precondition: it is over.
    fn ending(&self) -> &'static str;
}
