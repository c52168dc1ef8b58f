//! Move ordering and the features of the linear evaluation.
//!
//! The unit of the weights is the man. They are a rounded logistic regression of results on features over several
//! thousand self-play games of a shallow search.

use super::{Board, Checkers, FAR_ROWS, Move, SQUARES, board_of, by_seat, number, row};
use crate::game::{Feature, FeatureSet, Features, Ordered, Seat, features, sign};

impl Ordered for Checkers {
    /// One slot per pair of squares.
    const SLOTS: usize = 32 * 32;

    #[inline]
    fn slot(&self, mv: Move) -> usize {
        (number(mv.from()) * 32 + number(mv.to()) - 33) as usize
    }

    /// Prefers the most captures, then new kings, then steps to the centre; steps off the back row and into a jump are
    /// last.
    fn promise(&self, mv: Move) -> i32 {
        let board = &self.board;
        let captured = mv.captured();
        if captured != 0 {
            return 10 * ones(captured) + 5 * ones(captured & board.kings);
        }
        let (from, to) = (1u64 << mv.from(), 1u64 << mv.to());
        let man = board.kings & from == 0;
        let stepped = Board { own: board.own & !from | to, ..*board }.turned();
        8 * i32::from(man && to & FAR_ROWS != 0) + 2 * i32::from(to & CENTRE != 0)
            - 2 * i32::from(man && from & HOME[board.mover.index()] != 0)
            - 6 * i32::from(stepped.reach() & to != 0)
    }
}

/// The eight squares in the middle.
const CENTRE: u64 = board_of(&[10, 11, 14, 15, 18, 19, 22, 23]);
/// The back row of each seat, where men of the other side become kings.
const HOME: [u64; 2] = by_seat(row(0));
/// The two squares of the back row that together stop single men.
const BRIDGE: [u64; 2] = by_seat(board_of(&[1, 3]));
/// The rows by each binary digit of their distance from the seat's side.
const DIGITS: [[u64; 2]; 3] = [
    by_seat(row(1) | row(3) | row(5) | row(7)),
    by_seat(row(2) | row(3) | row(6) | row(7)),
    by_seat(row(4) | row(5) | row(6) | row(7)),
];

impl Board {
    /// Returns the squares, occupied or not, where the mover could jump a piece of the other side.
    #[inline]
    fn reach(&self) -> u64 {
        let (down, up) = self.walkers();
        let empty = self.empty();
        down << 4 & empty >> 4 | down << 5 & empty >> 5 | up >> 4 & empty << 4 | up >> 5 & empty << 5
    }

    /// Returns the empty squares where the mover's pieces could not be jumped.
    #[inline]
    fn safe(&self) -> u64 {
        self.empty() & !self.turned().reach()
    }

    /// Returns the mover's kings that can neither jump nor step to a safe square.
    fn trapped_kings(&self) -> u64 {
        let safe = self.safe();
        let near = safe >> 4 | safe >> 5 | safe << 4 | safe << 5;
        self.own & self.kings & !near & !self.jumpers()
    }

    /// Returns the mover's men without a piece of the other side on any path to the far row.
    fn runaways(&self) -> u64 {
        let mut barred = self.other;
        for _ in 0..7 {
            let behind = match self.mover {
                Seat::FIRST => barred >> 4 | barred >> 5,
                _ => barred << 4 | barred << 5,
            };
            barred |= behind & SQUARES;
        }
        self.men() & !barred
    }

    /// Returns whether the mover has "the move" (the opposition): the number of pieces on every second row, counted from
    /// the mover's side, is odd.
    fn has_the_move(&self) -> bool {
        let system = SQUARES & !DIGITS[0][self.mover.index()];
        ((self.own | self.other) & system).count_ones() % 2 == 1
    }
}

features! {
    MEN = "men", 1.0, "men";
    KINGS = "kings", 1.6, "kings";
    TRADE_DOWN = "trade_down", 0.03, "the lead in pieces times the pieces off the board";
    ADVANCEMENT = "advancement", 0.04, "rows that men have advanced";
    BACK_ROW = "back_row", 0.2, "men on the own back row";
    BRIDGES = "bridge", 0.25, "1 with men on 1 and 3, for White on 32 and 30";
    CENTRE_KINGS = "centre_kings", 0.1, "kings on the eight squares in the middle";
    MOBILITY = "mobility", 0.05, "steps to squares where the piece cannot be jumped";
    EXPOSED = "exposed", -0.4, "pieces that the other side can jump";
    TRAPPED_KINGS = "trapped_kings", -0.3, "kings that cannot move without being jumped";
    RUNAWAYS = "runaways", 0.3, "men without a piece of the other side in front of them";
    THE_MOVE = "the_move", 0.1, "1 for having the move, while both sides have equal numbers of pieces";
}

impl Features for Checkers {
    const FEATURES: &'static [Feature] = FEATURES;

    fn features(&self, seat: Seat, wanted: FeatureSet, values: &mut [i32]) {
        let own = if seat == self.board.mover { self.board } else { self.board.turned() };
        let views = [own, own.turned()];
        // A term that is the difference of both sides, each viewed as the mover.
        let mut set = |index: usize, value: fn(&Board) -> i32| {
            if wanted.has(index) {
                let [own, other] = [&views[0], &views[1]].map(value);
                values[index] = own - other;
            }
        };
        set(MEN, |board| ones(board.men()));
        set(KINGS, |board| ones(board.own & board.kings));
        set(ADVANCEMENT, |board| {
            let digit = |rows: [u64; 2]| ones(board.men() & rows[board.mover.index()]);
            digit(DIGITS[0]) + 2 * digit(DIGITS[1]) + 4 * digit(DIGITS[2])
        });
        set(BACK_ROW, |board| ones(board.men() & HOME[board.mover.index()]));
        set(BRIDGES, |board| {
            let bridge = BRIDGE[board.mover.index()];
            i32::from(board.men() & bridge == bridge)
        });
        set(CENTRE_KINGS, |board| ones(board.own & board.kings & CENTRE));
        set(MOBILITY, |board| {
            let (down, up) = board.steps_to(board.safe());
            ones(down) + ones(up)
        });
        set(EXPOSED, |board| ones(board.own & board.turned().reach()));
        set(TRAPPED_KINGS, |board| ones(board.trapped_kings()));
        set(RUNAWAYS, |board| ones(board.runaways()));
        let lead = ones(own.own) - ones(own.other);
        wanted.fill(values, TRADE_DOWN, || lead * (24 - ones(own.own | own.other)));
        wanted.fill(values, THE_MOVE, || {
            let holds_it = self.board.has_the_move() == (seat == self.board.mover);
            if lead == 0 { sign(holds_it) } else { 0 }
        });
    }
}

/// Counts the squares of a board.
#[inline]
const fn ones(board: u64) -> i32 {
    board.count_ones() as i32
}
