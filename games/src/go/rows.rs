//! The board as rows of bits, computed on demand for the final area and for features that depend on all points.

use super::board::{BLACK, Board, WHITE, point_at};

/// A set of points: a word per row, with an empty row on both sides.
#[derive(Clone, Copy)]
pub(super) struct Rows([u32; 21]);

impl Rows {
    const NONE: Rows = Rows([0; 21]);

    pub(super) fn count(&self) -> i32 {
        self.0.iter().map(|row| row.count_ones() as i32).sum()
    }

    /// Counts the points on the outermost line of a board of this size.
    pub(super) fn count_on_edge(&self, size: usize) -> i32 {
        let sides = 1 | 1 << (size - 1);
        let inner = self.0[2..size].iter().map(|row| (row & sides).count_ones());
        (self.0[1].count_ones() + self.0[size].count_ones() + inner.sum::<u32>()) as i32
    }

    /// Iterates over the rows and columns of the set's points.
    pub(super) fn points(&self) -> impl Iterator<Item = (usize, usize)> {
        self.0[1..20].iter().enumerate().flat_map(|(row, &bits)| {
            let mut bits = bits;
            std::iter::from_fn(move || {
                let column = (bits != 0).then_some(bits.trailing_zeros() as usize)?;
                bits &= bits - 1;
                Some((row, column))
            })
        })
    }

    /// Combines two sets row by row.
    fn zip(&self, other: &Rows, join: impl Fn(u32, u32) -> u32) -> Rows {
        Rows(std::array::from_fn(|row| join(self.0[row], other.0[row])))
    }

    /// Returns the points of `self` that are not in `other`.
    pub(super) fn without(&self, other: &Rows) -> Rows {
        self.zip(other, |one, other| one & !other)
    }

    fn and(&self, other: &Rows) -> Rows {
        self.zip(other, |one, other| one & other)
    }

    fn or(&self, other: &Rows) -> Rows {
        self.zip(other, |one, other| one | other)
    }

    /// Returns the points of `field` adjacent to a point of this set.
    pub(super) fn neighbours_in(&self, field: &Rows) -> Rows {
        let mut next = Rows::NONE;
        for row in 1..20 {
            let bits = self.0[row];
            next.0[row] = (bits << 1 | bits >> 1 | self.0[row - 1] | self.0[row + 1]) & field.0[row];
        }
        next
    }

    /// Returns the points of `field` connected to this subset of it.
    fn flood(mut self, field: &Rows) -> Rows {
        loop {
            let mut grown = false;
            let mut sweep = |row: usize, reached: &mut Rows| {
                let room = field.0[row];
                let mut bits = (reached.0[row] | reached.0[row - 1] | reached.0[row + 1]) & room;
                loop {
                    let wider = (bits | bits << 1 | bits >> 1) & room;
                    if wider == bits {
                        break;
                    }
                    bits = wider;
                }
                grown |= bits != reached.0[row];
                reached.0[row] = bits;
            };
            for row in 1..20 {
                sweep(row, &mut self);
            }
            for row in (1..20).rev() {
                sweep(row, &mut self);
            }
            if !grown {
                return self;
            }
        }
    }
}

/// The points by content.
pub(super) struct Field {
    /// The stones of Black and of White.
    pub(super) stones: [Rows; 2],
    pub(super) empty: Rows,
}

impl Field {
    pub(super) fn of(board: &Board) -> Field {
        let mut rows = [Rows::NONE; 4];
        let size = board.size();
        for row in 0..size {
            let mut bits = [0; 4];
            for column in 0..size {
                bits[usize::from(board.colour(point_at(row, column))) & 3] |= 1 << column;
            }
            for (rows, bits) in rows.iter_mut().zip(bits) {
                rows.0[row + 1] = bits;
            }
        }
        let [empty, black, white, _] = rows;
        Field { stones: [black, white], empty }
    }

    /// Returns the territories of Black and of White: the empty regions that touch stones of that colour only.
    pub(super) fn territory(&self) -> [Rows; 2] {
        let [black, white] = self.stones.map(|stones| stones.neighbours_in(&self.empty).flood(&self.empty));
        [black.without(&white), white.without(&black)]
    }

    /// Returns the empty points that Black reaches over empty points in fewer steps than White, and vice versa, up to
    /// `steps`.
    pub(super) fn reached_first(&self, steps: u32) -> [Rows; 2] {
        let [mut black, mut white] = self.stones;
        let mut open = self.empty;
        for _ in 0..steps {
            let (more_black, more_white) = (black.neighbours_in(&open), white.neighbours_in(&open));
            // Points reached simultaneously belong to neither, but both continue from them.
            open = open.without(&more_black.or(&more_white));
            black = black.or(&more_black);
            white = white.or(&more_white);
        }
        let both = black.and(&white);
        [black.and(&self.empty).without(&both), white.and(&self.empty).without(&both)]
    }
}

/// Returns the areas of Black and of White: stones and territory.
pub(super) fn area(board: &Board) -> [i32; 2] {
    let territory = Field::of(board).territory();
    let stones = board.totals().stones;
    [BLACK, WHITE].map(|colour| {
        let side = usize::from(colour - 1);
        i32::from(stones[side]) + territory[side].count()
    })
}
