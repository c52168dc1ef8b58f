//! The central trait and its capabilities.
//!
//! A [`Game`] value is a position. A capability that only some games have is a trait of its own, so that using a
//! missing one is a compile error and never a panic. Capabilities describe the rules; this module does not know the
//! search algorithms that use them.

use std::fmt::{self, Debug};

use crate::random::{Random, below};

/// A player's place at the board. Seat 0 moves first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Seat(pub u8);

impl Seat {
    /// The seat that moves first.
    pub const FIRST: Seat = Seat(0);
    /// The second seat of a duel.
    pub const SECOND: Seat = Seat(1);

    /// Returns the index into arrays by seat.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns the other seat of a duel.
    #[inline]
    pub const fn other(self) -> Seat {
        Seat(self.0 ^ 1)
    }

    /// Returns the next seat in a rotation of `seats`.
    #[inline]
    pub const fn next(self, seats: usize) -> Seat {
        let next = self.0 + 1;
        Seat(if next as usize == seats { 0 } else { next })
    }

    /// Returns all seats of a game, in order.
    pub fn all(seats: usize) -> impl Iterator<Item = Seat> {
        (0..seats as u8).map(Seat)
    }
}

/// The side that decides the next ply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// The player in a seat.
    Player(Seat),
    /// Chance: the moves are outcomes, weighted by [`Chance::weight`].
    Chance,
    /// None: the game is over and has a [`Game::payoff`].
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

/// The range and the sum of the payoffs of a game.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Payoffs {
    /// The lowest payoff of a seat.
    pub min: i32,
    /// The highest payoff of a seat.
    pub max: i32,
    /// The sum over all seats, the same for every ending.
    pub sum: i32,
    /// The difference between an ordinary win and an ordinary loss, which may be less than the range: the scale on
    /// which results of different games compare.
    pub spread: i32,
}

impl Payoffs {
    /// Payoffs of +1 for a win, 0 for a draw, -1 for a loss.
    pub const DUEL: Payoffs = Payoffs { min: -1, max: 1, sum: 0, spread: 2 };

    /// Sixty points shared by the winners; sixty divides evenly among one to six.
    pub const SHARED: Payoffs = Payoffs { min: 0, max: 60, sum: 60, spread: 60 };

    /// Returns [`Payoffs::DUEL`] for two seats, [`Payoffs::SHARED`] for more.
    pub const fn for_seats(seats: usize) -> Payoffs {
        if seats == 2 { Payoffs::DUEL } else { Payoffs::SHARED }
    }

    /// Returns the payoff of `seat` when the seats with the greatest score share the win.
    pub fn of_greatest<const SEATS: usize>(scores: [u32; SEATS], seat: Seat) -> i32 {
        let greatest = scores.iter().max();
        let wins = |seat: &usize| Some(&scores[*seat]) == greatest;
        Payoffs::of_winners(SEATS, (0..SEATS).filter(wins).fold(0, |winners, seat| winners | 1 << seat), seat)
    }

    /// Returns the payoff of `seat` when `winners`, a bit per seat, share the win of a game for `seats`.
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

/// A position of a game: the turn, the legal moves, and the payoffs at the end.
///
/// `Eq` covers everything that the rules depend on, including history for repetition or superko rules.
pub trait Game: Clone + Eq + Debug + Send + Sync + 'static {
    /// A decision or an outcome of chance. Small, plain data.
    type Move: Copy + Eq + Debug + Send + Sync + 'static;

    /// The number of seats.
    const SEATS: usize;
    /// The range and the sum of the payoffs.
    const PAYOFFS: Payoffs;

    /// Returns the side that decides the next ply. Callers must not assume that turns alternate.
    fn turn(&self) -> Turn;

    /// Appends the legal moves, or the outcomes of chance, in an order that is a function of the position.
    /// Appends nothing exactly when the game is over; a forced pass is a move.
    fn moves(&self, out: &mut Vec<Self::Move>);

    /// Plays a move. Precondition: it is one of [`Game::moves`].
    fn play(&mut self, mv: Self::Move);

    /// Returns the payoff of `seat`. Precondition: the game is over.
    fn payoff(&self, seat: Seat) -> i32;

    /// Returns an upper bound on the plies of a whole game, including chance and passes. The bound counts from the
    /// first position and is the same in every position of a game.
    fn ply_bound(&self) -> u32;

    /// Visits the position after `mv`, then restores this one whatever `visit` has done to it.
    ///
    /// Copies by default; games override it where undoing is faster.
    #[inline]
    fn after<R>(&mut self, mv: Self::Move, visit: impl FnOnce(&mut Self) -> R) -> R {
        let mut next = self.clone();
        next.play(mv);
        visit(&mut next)
    }

    /// Counts the moves that [`Game::moves`] would append. Leaves `scratch` unchanged.
    #[inline]
    fn count(&self, scratch: &mut Vec<Self::Move>) -> u64 {
        let start = scratch.len();
        self.moves(scratch);
        let count = scratch.len() - start;
        scratch.truncate(start);
        count as u64
    }

    /// Draws a legal move uniformly, or an outcome of chance by its weight. Overwrites `scratch`. Precondition: the
    /// game is not over.
    ///
    /// The default draws uniformly: a game with unequal weights must override it.
    #[inline]
    fn sample(&self, random: &mut Random, scratch: &mut Vec<Self::Move>) -> Self::Move {
        scratch.clear();
        self.moves(scratch);
        scratch[below(random, scratch.len())]
    }

    /// Draws a move by the game's light playout policy: [`Game::sample`] unless the game's header states another
    /// (a playout of go does not fill its own eyes).
    #[inline]
    fn rollout(&self, random: &mut Random, scratch: &mut Vec<Self::Move>) -> Self::Move {
        self.sample(random, scratch)
    }
}

/// A zero-sum game for two seats.
pub trait Duel: Game {}

/// A game without [`Turn::Chance`].
pub trait Deterministic: Game {}

/// A game in which chance decides some plies.
pub trait Chance: Game {
    /// Returns the sum of the weights of all outcomes. Precondition: the turn is [`Turn::Chance`].
    fn total_weight(&self) -> u32;

    /// Returns the weight of an outcome. Precondition: it is one of [`Game::moves`] and the turn is
    /// [`Turn::Chance`].
    fn weight(&self, outcome: Self::Move) -> u32;
}

/// A 64-bit key for transposition tables and for comparing openings.
pub trait Keyed: Game {
    /// Whether the rules depend on how a position was reached (repetition, superko). Then positions with equal keys
    /// may have different continuations.
    const PATH_DEPENDENT: bool = false;

    /// Whether positions with equal keys have the same future: no rule depends on a clock, a ply limit or the past.
    /// Then what is proven for one holds for all.
    const KEY_DECIDES: bool = false;

    /// Returns the key of pieces, turn and rights, without clocks, ply counts and history. Equal positions have equal
    /// keys.
    fn key(&self) -> u64;
}

/// A game in which the turn can be given to another seat.
pub trait Reseat: Game {
    /// Whether passing, if it were allowed, would hardly ever be better than the best move. False where zugzwang is
    /// common (connect-four, checkers, nim), where low mobility can be good (othello, kalah), and where a pass is a
    /// legal move (go).
    const PASSING_HURTS: bool = false;

    /// Returns whether the same holds in this very position: not where zugzwang is common, as in endings of pawns.
    fn passing_hurts(&self) -> bool {
        Self::PASSING_HURTS
    }

    /// Returns this position with `seat` to move, or `None` where that is illegal (the seat is out or has no move, or
    /// a king would be left in check). Never returns `None` for the seat to move. Precondition: a player is to move.
    fn reseat(&self, seat: Seat) -> Option<Self>;

    /// Visits the position of [`Reseat::reseat`], if there is one, then restores this one. Copies by default; games
    /// with large positions override it.
    #[inline]
    fn after_reseat<R>(&mut self, seat: Seat, visit: impl FnOnce(&mut Self) -> R) -> Option<R> {
        self.reseat(seat).map(|mut position| visit(&mut position))
    }
}

/// The moves that quiescence search examines. The defaults are for games without noisy moves.
pub trait Noisy: Game {
    /// Whether the game has noisy moves.
    const NOISY: bool = false;

    /// Appends the noisy moves: those that change the evaluation so much that it is unreliable before they are
    /// resolved. Appends all legal moves where [`Noisy::may_stand_pat`] is false.
    fn noisy_moves(&self, _out: &mut Vec<Self::Move>) {}

    /// Returns whether the mover may decline every noisy move: not in check and not where capture is compulsory.
    fn may_stand_pat(&self) -> bool {
        true
    }
}

/// Hints for move ordering.
pub trait Ordered: Game {
    /// The number of slots of a history table. Each seat has its own table.
    const SLOTS: usize;

    /// Returns the move's slot, below [`Ordered::SLOTS`]. Equivalent moves of similar positions share a slot.
    fn slot(&self, mv: Self::Move) -> usize;

    /// Rates the move by rules of thumb: greater is better, 0 is unremarkable.
    fn promise(&self, mv: Self::Move) -> i32;

    /// Calls `each` with the index and the [`Ordered::promise`] of every move. Games override it to share work between
    /// the moves.
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
    /// The default weight.
    pub weight: f64,
    /// What the feature counts, in one line.
    pub about: &'static str,
}

/// A set of requested features.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FeatureSet(u64);

impl FeatureSet {
    /// No feature.
    pub const NONE: FeatureSet = FeatureSet(0);
    /// Every feature.
    pub const ALL: FeatureSet = FeatureSet(u64::MAX);

    /// Returns this set with a feature added, by its index in [`Features::FEATURES`].
    pub const fn with(self, index: usize) -> FeatureSet {
        FeatureSet(self.0 | 1 << index)
    }

    /// Returns whether the set contains a feature.
    #[inline]
    pub const fn has(self, index: usize) -> bool {
        self.0 >> index & 1 != 0
    }

    /// Returns whether the set contains any feature of `other`.
    #[inline]
    pub const fn any(self, other: FeatureSet) -> bool {
        self.0 & other.0 != 0
    }

    /// Computes a feature and writes its value if the set contains it.
    #[inline(always)]
    pub(crate) fn fill(self, values: &mut [i32], index: usize, value: impl FnOnce() -> i32) {
        if self.has(index) {
            values[index] = value();
        }
    }
}

/// Named features for a linear evaluation: `e(s) = sum of weight * value`.
pub trait Features: Game {
    /// The features with their default weights, at least one and at most 64.
    const FEATURES: &'static [Feature];

    /// Writes the features' values from the view of `seat`, in the order of [`Features::FEATURES`].
    ///
    /// Features not in `wanted` need not be computed; their values are ignored. In a duel the values for one seat are
    /// the negated values for the other. Precondition: the game is not over, and `values` has an item per feature.
    fn features(&self, seat: Seat, wanted: FeatureSet, values: &mut [i32]);
}

/// Declares the table `FEATURES` of a game: for each feature, optionally, a constant for its index (or `_`), then its
/// name, default weight and meaning.
macro_rules! features {
    ($($index:tt = $name:literal, $weight:expr, $about:literal;)*) => {
        crate::game::features! { @index 0; $($index)* }
        crate::game::features! { $($name, $weight, $about;)* }
    };
    (@index $at:expr; $index:tt $($rest:tt)*) => {
        const $index: usize = $at;
        crate::game::features! { @index $at + 1; $($rest)* }
    };
    (@index $at:expr;) => {};
    ($($name:literal, $weight:expr, $about:literal;)*) => {
        const FEATURES: &[crate::game::Feature] =
            &[$(crate::game::Feature { name: $name, weight: $weight, about: $about }),*];
    };
}
pub(crate) use features;

/// Returns 1 if `positive`, otherwise -1.
#[inline]
pub(crate) const fn sign(positive: bool) -> i32 {
    if positive { 1 } else { -1 }
}

/// Writes the feature values of a duel, given for the side to move. The other side has the negated values.
#[inline]
pub(crate) fn write_for_mover<const N: usize>(values: &mut [i32], is_mover: bool, for_mover: [i32; N]) {
    for (value, for_mover) in values.iter_mut().zip(for_mover) {
        *value = sign(is_mover) * for_mover;
    }
}

/// Returns the sum of the differences between the value of `seat` and each other seat's value.
#[inline]
pub(crate) fn margin<const SEATS: usize>(seat: Seat, values: [i32; SEATS]) -> i32 {
    SEATS as i32 * values[seat.index()] - values.iter().sum::<i32>()
}

/// Writes the [`margin`] of each wanted feature, given a seat's own value by index and seat.
#[inline]
pub(crate) fn fill_margins<const SEATS: usize>(
    seat: Seat,
    wanted: FeatureSet,
    values: &mut [i32],
    own: impl Fn(usize, Seat) -> i32,
) {
    for index in 0..values.len() {
        wanted.fill(values, index, || {
            margin::<SEATS>(seat, std::array::from_fn(|seat| own(index, Seat(seat as u8))))
        });
    }
}

/// The text of moves and positions.
pub trait Notation: Game {
    /// What [`Notation::board`] shows for each seat, with an explanation in brackets where it needs one. Empty if the board
    /// shows nothing of the seats.
    const MARKS: &'static [&'static str] = &[];

    /// Appends the text of a legal move. It has no spaces and is unique in the position.
    fn write_move(&self, mv: Self::Move, out: &mut String);

    /// Returns the legal move that `text` names, if any. Reads at least the texts of [`Notation::write_move`].
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

    /// Returns the text of a legal move.
    fn move_text(&self, mv: Self::Move) -> String {
        let mut text = String::new();
        self.write_move(mv, &mut text);
        text
    }

    /// Draws the board for a terminal: several lines without colour and without a trailing newline.
    fn board(&self) -> String;

    /// Returns the position in one line, with clocks and without history. [`Setup::from_position`] reads it.
    ///
    /// [`Setup::from_position`]: crate::setup::Setup::from_position
    fn position(&self) -> String;

    /// Returns the reason for the end (`"checkmate"`, `"ply limit"`). Precondition: the game is over.
    fn ending(&self) -> &'static str;
}
