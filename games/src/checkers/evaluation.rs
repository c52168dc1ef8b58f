//! What makes a position of checkers good: move ordering and features.
//!
//! The default weights are rounded from a logistic regression of results on features over some thousands of games of
//! a shallow search against itself, a man being 1.

use super::{Board, Checkers, FAR_ROWS, Move, SQUARES, board_of, by_seat, number, row};
use crate::game::{Feature, FeatureSet, Features, Ordered, Seat};

impl Ordered for Checkers {
    /// A slot for each pair of squares.
    const SLOTS: usize = 32 * 32;

    #[inline]
    fn slot(&self, mv: Move) -> usize {
        (number(mv.from()) * 32 + number(mv.to()) - 33) as usize
    }

    /// The most captured first, then new kings, then steps to the centre; steps off the back row and into a jump
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
/// The row that the other side's men want to reach.
const HOME: [u64; 2] = by_seat(row(0));
/// The two squares of it that together keep single men from passing.
const BRIDGE: [u64; 2] = by_seat(board_of(&[1, 3]));
/// Rows by a binary digit of their distance from the seat's own side.
const DIGITS: [[u64; 2]; 3] = [
    by_seat(row(1) | row(3) | row(5) | row(7)),
    by_seat(row(2) | row(3) | row(6) | row(7)),
    by_seat(row(4) | row(5) | row(6) | row(7)),
];

impl Board {
    /// The squares, empty or not, where a piece of the other side could be jumped by the mover.
    #[inline]
    fn reach(&self) -> u64 {
        let (down, up) = self.walkers();
        let empty = self.empty();
        down << 4 & empty >> 4 | down << 5 & empty >> 5 | up >> 4 & empty << 4 | up >> 5 & empty << 5
    }

    /// The empty squares where the mover's pieces could not be jumped.
    #[inline]
    fn safe(&self) -> u64 {
        self.empty() & !self.turned().reach()
    }

    /// The mover's kings that can neither jump nor step to where they could not be jumped.
    fn trapped_kings(&self) -> u64 {
        let safe = self.safe();
        let near = safe >> 4 | safe >> 5 | safe << 4 | safe << 5;
        self.own & self.kings & !near & !self.jumpers()
    }

    /// The mover's men that have no piece of the other side before them, however they turn.
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

    /// Whether the mover has "the move", the last word when men walk up to each other: the pieces on every second
    /// row, counted from the mover's side, are odd in number.
    fn has_the_move(&self) -> bool {
        let system = SQUARES & !DIGITS[0][self.mover.index()];
        ((self.own | self.other) & system).count_ones() % 2 == 1
    }
}

const MEN: usize = 0;
const KINGS: usize = 1;
const TRADE_DOWN: usize = 2;
const ADVANCEMENT: usize = 3;
const BACK_ROW: usize = 4;
const BRIDGES: usize = 5;
const CENTRE_KINGS: usize = 6;
const MOBILITY: usize = 7;
const EXPOSED: usize = 8;
const TRAPPED_KINGS: usize = 9;
const RUNAWAYS: usize = 10;
const THE_MOVE: usize = 11;

impl Features for Checkers {
    const FEATURES: &'static [Feature] = &[
        Feature { name: "men", weight: 1.0, about: "men" },
        Feature { name: "kings", weight: 1.6, about: "kings" },
        Feature {
            name: "trade_down",
            weight: 0.03,
            about: "the lead in pieces times the pieces off the board",
        },
        Feature { name: "advancement", weight: 0.04, about: "rows that men have advanced" },
        Feature { name: "back_row", weight: 0.2, about: "men on the own back row" },
        Feature { name: "bridge", weight: 0.25, about: "1 with men on 1 and 3, for White on 32 and 30" },
        Feature { name: "centre_kings", weight: 0.1, about: "kings on the eight squares in the middle" },
        Feature {
            name: "mobility",
            weight: 0.05,
            about: "steps to squares where the piece could not be jumped",
        },
        Feature { name: "exposed", weight: -0.4, about: "pieces that the other side could jump" },
        Feature { name: "trapped_kings", weight: -0.3, about: "kings that cannot move without being jumped" },
        Feature { name: "runaways", weight: 0.3, about: "men with nothing of the other side before them" },
        Feature {
            name: "the_move",
            weight: 0.1,
            about: "1 for having the move, while both sides have as many pieces",
        },
    ];

    fn features(&self, seat: Seat, wanted: FeatureSet, values: &mut [i32]) {
        let own = if seat == self.board.mover { self.board } else { self.board.turned() };
        let views = [own, own.turned()];
        // A term of both sides, each seen as the side to move.
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
        if wanted.has(TRADE_DOWN) {
            values[TRADE_DOWN] = lead * (24 - ones(own.own | own.other));
        }
        if wanted.has(THE_MOVE) {
            let side = if seat == self.board.mover { 1 } else { -1 };
            let sign = if self.board.has_the_move() { side } else { -side };
            values[THE_MOVE] = if lead == 0 { sign } else { 0 };
        }
    }
}

/// The number of squares on a board.
#[inline]
const fn ones(board: u64) -> i32 {
    board.count_ones() as i32
}
