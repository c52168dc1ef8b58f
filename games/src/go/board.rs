//! Stones, chains and liberties, updated incrementally.
//!
//! The board is a mailbox with a border: row `r` and column `c` from the bottom left are cell `20 (r + 1) + c + 1` for
//! every size, so that neighbours are at constant distances and cell 0 is not a point. Adjacent stones of one colour form
//! a chain. Its head holds the number of stones and of pseudo-liberties (pairs of a stone and an empty neighbour); a chain
//! without any is captured. Its stones form a ring. When two chains join, the smaller one is relabelled.
//!
//! The empty points are an unordered list for random draws. Changes to cells can be written to a journal; then a move is
//! undone exactly, including the order of that list.

use crate::random::zobrist;

/// The distance between a point and the one above it.
pub(super) const STRIDE: u16 = 20;
/// The number of cells: 421 are used on the largest board; a power of two makes the mask below a bounds check.
const CELLS: usize = 512;
const MASK: usize = CELLS - 1;

/// A cell's number.
pub(super) type Point = u16;

pub(super) const EMPTY: u8 = 0;
pub(super) const BLACK: u8 = 1;
pub(super) const WHITE: u8 = 2;
const BORDER: u8 = 3;

/// Returns the other colour of a stone.
#[inline]
pub(super) const fn opposite(colour: u8) -> u8 {
    3 - colour
}

static KEYS: [[u64; CELLS]; 2] = [zobrist(b"go X"), zobrist(b"go O")];

#[inline]
fn key(colour: u8, point: Point) -> u64 {
    KEYS[usize::from(colour - 1) & 1][usize::from(point) & MASK]
}

/// Returns the point of a row and a column, counted from 0 at the bottom left.
#[inline]
pub(super) const fn point_at(row: usize, column: usize) -> Point {
    STRIDE * (row as u16 + 1) + column as u16 + 1
}

/// Returns the row and the column of a point.
#[inline]
pub(super) const fn row_and_column(point: Point) -> (usize, usize) {
    ((point / STRIDE) as usize - 1, (point % STRIDE) as usize - 1)
}

#[inline]
fn neighbours(point: Point) -> [Point; 4] {
    [point - STRIDE, point - 1, point + 1, point + STRIDE]
}

#[inline]
fn diagonals(point: Point) -> [Point; 4] {
    [point - STRIDE - 1, point - STRIDE + 1, point + STRIDE - 1, point + STRIDE + 1]
}

#[derive(Clone, Copy)]
struct Cell {
    colour: u8,
    /// The colours that have been captured here, as bits.
    captured: u8,
    /// The head of the stone's chain. Empty and border cells are their own heads with meaningless counts, which saves a
    /// branch for neighbours that are no stones.
    chain: Point,
    /// The next stone of the ring; for an empty point its index in the list.
    link: u16,
    /// The number of pseudo-liberties, if this is a head.
    liberties: u16,
    /// The number of stones, if this is a head.
    stones: u16,
}

/// The fields that a move changes besides cells and list.
#[derive(Clone, Copy)]
pub(super) struct Totals {
    /// The Zobrist hash of the stones.
    pub(super) hash: u64,
    /// Black's and White's stones.
    pub(super) stones: [u16; 2],
    vacant: u16,
}

/// The state before a move, for [`Board::undo`].
pub(super) struct Before {
    point: Point,
    journal: usize,
    totals: Totals,
}

/// The stones on the board.
pub(super) struct Board {
    cells: [Cell; CELLS],
    /// The first `totals.vacant` are the empty points.
    empties: [Point; CELLS],
    totals: Totals,
    size: u8,
    /// Earlier cells, to be restored from the end.
    journal: Vec<(Point, Cell)>,
}

impl Clone for Board {
    /// Clones with an empty journal: its entries belong to moves that the original will undo.
    fn clone(&self) -> Self {
        Board { journal: Vec::new(), ..*self }
    }

    fn clone_from(&mut self, source: &Self) {
        self.cells = source.cells;
        self.empties = source.empties;
        self.totals = source.totals;
        self.size = source.size;
        self.journal.clear();
    }
}

impl PartialEq for Board {
    /// Compares the stones: everything else follows from them or is the order of a list.
    fn eq(&self, other: &Self) -> bool {
        self.size == other.size
            && self.totals.hash == other.totals.hash
            && self.points().all(|point| self.colour(point) == other.colour(point))
    }
}

impl Eq for Board {}

impl Board {
    /// Creates a board with the stones of `colour(row, column)`, or returns `None` if a chain has no liberty.
    pub(super) fn new(size: usize, colour: impl Fn(usize, usize) -> u8) -> Option<Board> {
        let border = |index| Cell {
            colour: BORDER,
            captured: 0,
            chain: index as Point,
            link: 0,
            liberties: 0,
            stones: 0,
        };
        let mut board = Board {
            cells: std::array::from_fn(border),
            empties: [0; CELLS],
            totals: Totals { hash: 0, stones: [0; 2], vacant: 0 },
            size: size as u8,
            journal: Vec::new(),
        };
        for point in board.points() {
            let (row, column) = row_and_column(point);
            let colour = colour(row, column);
            let cell = board.edit::<false>(point);
            cell.colour = colour;
            if colour == EMPTY {
                board.list(point);
            } else {
                cell.link = point;
                cell.stones = 1;
                board.totals.stones[usize::from(colour - 1)] += 1;
                board.totals.hash ^= key(colour, point);
            }
        }
        for point in board.points().filter(|&point| board.colour(point) != EMPTY).collect::<Vec<_>>() {
            let empty = neighbours(point).into_iter().filter(|&next| board.colour(next) == EMPTY).count();
            board.edit::<false>(point).liberties = empty as u16;
        }
        for point in board.points().filter(|&point| board.colour(point) != EMPTY).collect::<Vec<_>>() {
            for next in neighbours(point) {
                if board.colour(next) == board.colour(point) {
                    board.join::<false>(board.cell(point).chain, board.cell(next).chain);
                }
            }
        }
        let alive = |point| board.colour(point) == EMPTY || board.head(point).liberties > 0;
        board.points().all(alive).then_some(board)
    }

    #[inline]
    fn cell(&self, point: Point) -> &Cell {
        &self.cells[usize::from(point) & MASK]
    }

    /// Returns the head of the point's chain.
    #[inline]
    fn head(&self, point: Point) -> &Cell {
        self.cell(self.cell(point).chain)
    }

    /// Returns a cell for a change, and records it if `JOURNAL` is set.
    #[inline]
    fn edit<const JOURNAL: bool>(&mut self, point: Point) -> &mut Cell {
        let cell = &mut self.cells[usize::from(point) & MASK];
        if JOURNAL {
            self.journal.push((point, *cell));
        }
        cell
    }

    /// Appends an empty point to the list.
    #[inline]
    fn list(&mut self, point: Point) {
        let place = self.totals.vacant;
        self.empties[usize::from(place) & MASK] = point;
        self.cells[usize::from(point) & MASK].link = place;
        self.totals.vacant += 1;
    }

    /// Returns the number of rows.
    #[inline]
    pub(super) fn size(&self) -> usize {
        usize::from(self.size)
    }

    #[inline]
    pub(super) fn totals(&self) -> &Totals {
        &self.totals
    }

    #[inline]
    pub(super) fn colour(&self, point: Point) -> u8 {
        self.cell(point).colour
    }

    /// Iterates over all points, row by row from the bottom.
    #[inline]
    pub(super) fn points(&self) -> impl Iterator<Item = Point> + use<> {
        let size = u16::from(self.size);
        (1..=size).flat_map(move |row| (row * STRIDE + 1)..(row * STRIDE + 1 + size))
    }

    /// Returns the empty points, unordered.
    #[inline]
    pub(super) fn empties(&self) -> &[Point] {
        &self.empties[..usize::from(self.totals.vacant) & MASK]
    }

    /// Returns whether a stone of this colour has ever been captured here.
    #[inline]
    pub(super) fn was_captured(&self, point: Point, colour: u8) -> bool {
        self.cell(point).captured & colour != 0
    }

    /// Returns whether a stone of `colour` on this empty point would have a liberty after captures.
    #[inline]
    pub(super) fn has_liberty_after(&self, point: Point, colour: u8) -> bool {
        let around = neighbours(point).map(|next| self.cell(next));
        // Here and below all four are examined: stopping at the first costs unpredictable branches.
        if around.iter().fold(false, |found, cell| found | (cell.colour == EMPTY)) {
            return true;
        }
        // An own chain must have a liberty elsewhere; a chain of the other side must have none.
        around.iter().fold(false, |found, cell| {
            let fits = self.has_liberty_elsewhere(around, cell.chain) == (cell.colour == colour);
            found | (fits & (cell.colour != BORDER))
        })
    }

    /// Returns whether the chain has a pseudo-liberty besides the point surrounded by these cells.
    #[inline]
    fn has_liberty_elsewhere(&self, around: [&Cell; 4], chain: Point) -> bool {
        let here: u16 = around.iter().map(|cell| u16::from(cell.chain == chain)).sum();
        self.cell(chain).liberties > here
    }

    /// Returns the heads of the chains of `colour` whose only liberty is this empty point, padded with 0.
    #[inline]
    pub(super) fn chains_in_atari(&self, point: Point, colour: u8) -> [Point; 4] {
        let around = neighbours(point).map(|next| self.cell(next));
        let mut chains = [0; 4];
        for (index, cell) in around.iter().enumerate() {
            if cell.colour == colour
                && !chains.contains(&cell.chain)
                && !self.has_liberty_elsewhere(around, cell.chain)
            {
                chains[index] = cell.chain;
            }
        }
        chains
    }

    /// Counts the stones of `colour` in chains whose only liberty is this empty point.
    #[inline]
    pub(super) fn stones_in_atari(&self, point: Point, colour: u8) -> u16 {
        // Cell 0 belongs to the border and its count is 0.
        self.chains_in_atari(point, colour).iter().map(|&chain| self.cell(chain).stones).sum()
    }

    /// Returns the hash of the board after a stone of `colour` on this empty point.
    pub(super) fn hash_after(&self, point: Point, colour: u8) -> u64 {
        let mut hash = self.totals.hash ^ key(colour, point);
        for chain in self.chains_in_atari(point, opposite(colour)) {
            if chain != 0 {
                let mut stone = chain;
                loop {
                    hash ^= key(opposite(colour), stone);
                    stone = self.cell(stone).link;
                    if stone == chain {
                        break;
                    }
                }
            }
        }
        hash
    }

    /// Returns whether this empty point is a single-point eye of `colour`: own stones or border on its four sides, and at
    /// most one diagonal stone of the other side, none if the eye is at the edge.
    #[inline]
    pub(super) fn is_eye(&self, point: Point, colour: u8) -> bool {
        let around = neighbours(point).map(|next| self.colour(next));
        // The border's bits are those of both colours.
        if around.iter().fold(colour, |all, held| all & held) == 0 {
            return false;
        }
        let edge = around.iter().fold(0, |any, held| any | held) == BORDER;
        let taken = diagonals(point).iter().filter(|&&next| self.colour(next) == opposite(colour)).count();
        taken + usize::from(edge) < 2
    }

    /// Returns whether the point is the head of its chain.
    #[inline]
    pub(super) fn is_head(&self, point: Point) -> bool {
        self.cell(point).chain == point
    }

    /// Counts the adjacent stones of `colour` and the adjacent empty points.
    #[inline]
    pub(super) fn next_to(&self, point: Point, colour: u8) -> (usize, usize) {
        let around = neighbours(point).map(|next| self.colour(next));
        let count = |sought| around.iter().filter(|&&held| held == sought).count();
        (count(colour), count(EMPTY))
    }

    /// Places a stone on an empty point and removes captured chains. Precondition: the stone has a liberty afterwards.
    #[inline]
    pub(super) fn place<const JOURNAL: bool>(&mut self, point: Point, colour: u8) {
        // The last point of the list replaces this one.
        let place = self.cell(point).link;
        self.totals.vacant -= 1;
        let last = self.empties[usize::from(self.totals.vacant) & MASK];
        self.empties[usize::from(place) & MASK] = last;
        self.edit::<JOURNAL>(last).link = place;

        let around = neighbours(point);
        let mut liberties = 0;
        for next in around {
            let &Cell { colour, chain, .. } = self.cell(next);
            liberties += u16::from(colour == EMPTY);
            let head = self.edit::<JOURNAL>(chain);
            head.liberties = head.liberties.wrapping_sub(1);
        }
        let cell = self.edit::<JOURNAL>(point);
        *cell = Cell { colour, captured: cell.captured, chain: point, link: point, liberties, stones: 1 };
        self.totals.stones[usize::from(colour - 1) & 1] += 1;
        self.totals.hash ^= key(colour, point);

        for next in around {
            let &Cell { colour: held, chain, .. } = self.cell(next);
            if held == colour {
                self.join::<JOURNAL>(self.cell(point).chain, chain);
            } else if (held == opposite(colour)) & (self.cell(chain).liberties == 0) {
                self.capture::<JOURNAL>(chain, held);
            }
        }
    }

    /// Joins two chains, unless they are the same.
    #[inline]
    fn join<const JOURNAL: bool>(&mut self, one: Point, other: Point) {
        if one == other {
            return;
        }
        let (large, small) =
            if self.cell(one).stones >= self.cell(other).stones { (one, other) } else { (other, one) };
        let mut stone = small;
        loop {
            let cell = self.edit::<JOURNAL>(stone);
            cell.chain = large;
            stone = cell.link;
            if stone == small {
                break;
            }
        }
        let Cell { link, liberties, stones, .. } = *self.cell(small);
        let head = self.edit::<JOURNAL>(large);
        head.liberties += liberties;
        head.stones += stones;
        let onward = std::mem::replace(&mut head.link, link);
        // The loop above has already recorded this cell.
        self.edit::<false>(small).link = onward;
    }

    /// Removes a chain from the board.
    fn capture<const JOURNAL: bool>(&mut self, chain: Point, colour: u8) {
        let mut stone = chain;
        loop {
            let onward = self.cell(stone).link;
            for next in neighbours(stone) {
                let head = self.edit::<JOURNAL>(self.cell(next).chain);
                head.liberties = head.liberties.wrapping_add(1);
            }
            let cell = self.edit::<JOURNAL>(stone);
            cell.colour = EMPTY;
            cell.captured |= colour;
            cell.chain = stone;
            self.list(stone);
            self.totals.stones[usize::from(colour - 1) & 1] -= 1;
            self.totals.hash ^= key(colour, stone);
            stone = onward;
            if stone == chain {
                break;
            }
        }
    }

    /// Places a stone as [`Board::place`] does, with the data to undo it.
    #[inline]
    pub(super) fn place_with_undo(&mut self, point: Point, colour: u8) -> Before {
        let before = Before { point, journal: self.journal.len(), totals: self.totals };
        self.place::<true>(point, colour);
        before
    }

    /// Undoes the last stone that has not been undone.
    #[inline]
    pub(super) fn undo(&mut self, before: &Before) {
        for &(point, cell) in self.journal[before.journal..].iter().rev() {
            self.cells[usize::from(point) & MASK] = cell;
        }
        self.journal.truncate(before.journal);
        self.totals = before.totals;
        // Captured points were appended; the point that was last before the move took the place of the stone's point.
        let place = usize::from(self.cell(before.point).link) & MASK;
        let last = usize::from(self.totals.vacant - 1) & MASK;
        self.empties[last] = self.empties[place];
        self.empties[place] = before.point;
    }
}
