//! The star: bitboards of its holes, tables, and jumps.
//!
//! A jump keeps the parity of both coordinates of a piece, so the holes form four classes of 37, 28, 28 and 28 that jumps
//! never leave and steps always leave. A bitboard is a word per class, laid out so that a jump along an axis is the same
//! shift everywhere and the jumped pieces are a shifted word of another class. All jumps of a class, and each round of the
//! flood fill for chains, take a few operations. Steps and jumps never coincide, and a piece never blocks its own chains,
//! because the pieces that it jumps over are of other classes.

/// The number of holes of the star.
pub(super) const HOLES: usize = 121;
/// The number of places of a bitboard: four classes of 64, most of them unused.
pub(super) const PLACES: usize = 256;
/// The number of pieces of a seat.
pub(super) const PIECES: usize = 10;
/// The number of rows of the star.
pub(super) const ROWS: usize = 17;
/// The number of triangles, clockwise from the top; the opposite one is three further.
pub(super) const TRIANGLES: usize = 6;
/// The number of parity classes; bit 0 is the parity of x, bit 1 that of the row.
pub(super) const CLASSES: usize = 4;

/// The axes as changes of (x, row): to the right, down to the right, down to the left.
const AXES: [(i32, i32); 3] = [(1, 0), (1, 1), (0, 1)];
/// The change of the place within a class by a jump along each axis; a row of a class has seven places.
const SHIFTS: [usize; 3] = [1, 8, 7];
/// The change of the class by a step along each axis.
const CROSSES: [usize; 3] = [1, 3, 2];

/// A set of holes: a word per class.
pub(super) type Board = [u64; CLASSES];

pub(super) const NO_HOLES: Board = [0; CLASSES];

/// The tables of the star.
pub(super) struct Star {
    pub(super) holes: Board,
    /// The place of each hole, counted from the top left.
    pub(super) places: [u8; HOLES],
    /// The hole at each place, counted from the top left.
    pub(super) ordinals: [u8; PLACES],
    /// The first hole of each row, counted from the top left, and the number of holes.
    pub(super) starts: [u8; ROWS + 1],
    /// The neighbours of each place along and against each axis; the place itself if there is none.
    pub(super) neighbours: [[u8; 8]; PLACES],
    /// The holes of each class from which a jump along each axis ends in the star.
    jumpers: [[u64; 3]; CLASSES],
    /// The holes of each triangle.
    pub(super) triangles: [Board; TRIANGLES],
    /// The steps from each hole to the tip of each triangle.
    pub(super) distances: [[u8; PLACES]; TRIANGLES],
    /// The holes with fewer steps to the tip of each triangle than the index.
    pub(super) nearer: [[Board; 18]; TRIANGLES],
    /// The distance of each hole to the line between the tips of opposite triangles, in half steps.
    pub(super) offsets: [[u8; PLACES]; 3],
}

/// Returns whether coordinates are in the star, which is two overlapping triangles of side 13. Cube coordinates (x, y, z)
/// add up to 0 (Patel, "Hexagonal grids"): x grows to the right along a row, z is 8 at the top and -8 at the bottom row.
const fn in_star(x: i32, row: i32) -> bool {
    let z = 8 - row;
    let y = -x - z;
    (x >= -4 && y >= -4 && z >= -4) || (x <= 4 && y <= 4 && z <= 4)
}

/// Returns the place of a hole: its class, and seven places per row of the class. Wide rows use unused places of other
/// rows, without collisions.
const fn place_of(x: i32, row: i32) -> usize {
    let class = x & 1 | (row & 1) << 1;
    (64 * class + x.div_euclid(2) + 7 * (row / 2) + 2) as usize
}

/// Returns the steps between two holes: the largest difference of cube coordinates.
const fn steps_between(dx: i32, drow: i32) -> i32 {
    let (a, b, c) = (dx.abs(), drow.abs(), (drow - dx).abs());
    if a >= b && a >= c {
        a
    } else if b >= c {
        b
    } else {
        c
    }
}

/// Adds a place to a set.
pub(super) const fn add(board: &mut Board, place: usize) {
    board[place / 64] |= 1 << (place % 64);
}

pub(super) const STAR: Star = {
    let mut star = Star {
        holes: NO_HOLES,
        places: [0; HOLES],
        ordinals: [0; PLACES],
        starts: [0; ROWS + 1],
        neighbours: [[0; 8]; PLACES],
        jumpers: [[0; 3]; CLASSES],
        triangles: [NO_HOLES; TRIANGLES],
        distances: [[0; PLACES]; TRIANGLES],
        nearer: [[NO_HOLES; 18]; TRIANGLES],
        offsets: [[0; PLACES]; 3],
    };
    // The tips of the triangles (x, row).
    let tips: [(i32, i32); TRIANGLES] = [(-4, 0), (4, 4), (8, 12), (4, 16), (-4, 12), (-8, 4)];
    let mut ordinal = 0;
    let mut row = 0;
    while row < ROWS as i32 {
        star.starts[row as usize] = ordinal as u8;
        let mut x = -8;
        while x <= 8 {
            if in_star(x, row) {
                let place = place_of(x, row);
                assert!(star.holes[place / 64] >> (place % 64) & 1 == 0, "no two holes have the same place");
                add(&mut star.holes, place);
                star.places[ordinal] = place as u8;
                star.ordinals[place] = ordinal as u8;
                ordinal += 1;

                let mut axis = 0;
                while axis < 3 {
                    let (dx, dr) = AXES[axis];
                    let next = if in_star(x + dx, row + dr) { place_of(x + dx, row + dr) } else { place };
                    let last = if in_star(x - dx, row - dr) { place_of(x - dx, row - dr) } else { place };
                    star.neighbours[place][2 * axis] = next as u8;
                    star.neighbours[place][2 * axis + 1] = last as u8;
                    if in_star(x + 2 * dx, row + 2 * dr) {
                        assert!(
                            place_of(x + 2 * dx, row + 2 * dr) == place + SHIFTS[axis],
                            "a jump is a shift"
                        );
                        assert!(next / 64 == (place / 64) ^ CROSSES[axis], "a step changes the class");
                        assert!(next % 64 == place % 64 + middle_shift(place / 64, axis), "so is a step");
                        star.jumpers[place / 64][axis] |= 1 << (place % 64);
                    }
                    axis += 1;
                }

                let z = 8 - row;
                let y = -x - z;
                let sides = [z, -y, x, -z, y, -x];
                let mut triangle = 0;
                while triangle < TRIANGLES {
                    if sides[triangle] > 4 {
                        add(&mut star.triangles[triangle], place);
                    }
                    let steps = steps_between(tips[triangle].0 - x, tips[triangle].1 - row);
                    star.distances[triangle][place] = steps as u8;
                    let mut limit = steps as usize + 1;
                    while limit < 18 {
                        add(&mut star.nearer[triangle][limit], place);
                        limit += 1;
                    }
                    triangle += 1;
                }
                star.offsets[0][place] = (x - y).unsigned_abs() as u8;
                star.offsets[1][place] = (z - x).unsigned_abs() as u8;
                star.offsets[2][place] = (y - z).unsigned_abs() as u8;
            }
            x += 1;
        }
        row += 1;
    }
    star.starts[ROWS] = ordinal as u8;
    assert!(ordinal == HOLES, "the star has 121 holes");
    star
};

/// Returns the change of the place within a class by a step from a class along an axis.
const fn middle_shift(class: usize, axis: usize) -> usize {
    let carries = class & CROSSES[axis];
    (carries & 1) + 7 * (carries >> 1)
}

/// The tables as a static, so that indexing at run time does not copy them.
pub(super) static TABLES: Star = STAR;

/// Returns the bit of a place in the word of its class.
#[inline]
pub(super) const fn bit(place: u8) -> u64 {
    1 << (place % 64)
}

#[inline]
pub(super) fn has(board: &Board, place: u8) -> bool {
    board[usize::from(place / 64)] & bit(place) != 0
}

#[inline]
pub(super) fn intersection(one: &Board, other: &Board) -> Board {
    [one[0] & other[0], one[1] & other[1], one[2] & other[2], one[3] & other[3]]
}

pub(super) fn size(board: &Board) -> u32 {
    board.iter().map(|word| word.count_ones()).sum()
}

/// Iterates over the places of a set, in ascending order.
#[inline]
pub(super) fn places(board: &Board) -> impl Iterator<Item = u8> {
    (0..CLASSES as u8).zip(board).flat_map(|(class, &word)| class_places(class, word))
}

/// Iterates over the places of a class's word.
#[inline]
pub(super) fn class_places(class: u8, mut word: u64) -> impl Iterator<Item = u8> {
    std::iter::from_fn(move || {
        let bit = word.trailing_zeros() as u8;
        word &= word.wrapping_sub(1);
        (bit < 64).then(|| 64 * class + bit)
    })
}

/// The pieces of a seat and the holes that each can jump to.
pub(super) struct Jumps {
    pub(super) from: [u8; PIECES],
    /// The targets, in the piece's own class.
    pub(super) to: [u64; PIECES],
}

impl Jumps {
    pub(super) fn count(&self) -> usize {
        self.to.iter().map(|to| to.count_ones() as usize).sum()
    }

    /// Returns the `nth` jump, counted from 0, if it exists.
    #[inline]
    pub(super) fn nth(&self, mut nth: usize) -> Option<(u8, u8)> {
        for (&from, &to) in self.from.iter().zip(&self.to) {
            let count = to.count_ones() as usize;
            if nth < count {
                return class_places(from / 64, to).nth(nth).map(|to| (from, to));
            }
            nth -= count;
        }
        None
    }
}

/// Finds the holes that each piece can jump to, including those in which it may not stay.
#[inline]
pub(super) fn jumps(pieces: &Board, occupied: &Board) -> Jumps {
    let mut jumps = Jumps { from: [0; PIECES], to: [0; PIECES] };
    let mut ways = jumps.from.iter_mut().zip(&mut jumps.to);
    class_jumps::<0>(pieces, occupied, &mut ways);
    class_jumps::<1>(pieces, occupied, &mut ways);
    class_jumps::<2>(pieces, occupied, &mut ways);
    class_jumps::<3>(pieces, occupied, &mut ways);
    jumps
}

/// Finds the jumps of one class. The const parameter makes all shifts constant.
#[inline]
fn class_jumps<'a, const CLASS: usize>(
    pieces: &Board,
    occupied: &Board,
    ways: &mut impl Iterator<Item = (&'a mut u8, &'a mut u64)>,
) {
    if pieces[CLASS] == 0 {
        return;
    }
    let empty = STAR.holes[CLASS] & !occupied[CLASS];
    // The start holes of jumps along each axis with a piece to cross, and those with both ends empty.
    let mut crossings = [0; 3];
    let mut links = [0; 3];
    for axis in 0..3 {
        let crossed = occupied[CLASS ^ CROSSES[axis]] >> middle_shift(CLASS, axis);
        crossings[axis] = crossed & STAR.jumpers[CLASS][axis];
        links[axis] = crossings[axis] & empty & empty >> SHIFTS[axis];
    }
    let mut linked = 0;
    for (axis, &ways) in links.iter().enumerate() {
        linked |= ways | ways << SHIFTS[axis];
    }
    let mut left = pieces[CLASS];
    while left != 0 {
        let Some((from, to)) = ways.next() else { return };
        let piece = left & left.wrapping_neg();
        *from = (64 * CLASS) as u8 + left.trailing_zeros() as u8;
        left ^= piece;
        let mut reached = 0;
        for (axis, &ways) in crossings.iter().enumerate() {
            reached |= along(piece, axis, ways) & empty;
        }
        // Follow links until no hole is new.
        let mut new = reached & linked;
        while new != 0 {
            let before = reached;
            for (axis, &ways) in links.iter().enumerate() {
                reached |= along(reached, axis, ways);
            }
            new = reached & !before;
        }
        *to = reached;
    }
}

/// Returns the ends of all jumps along and against an axis; `ways` are the start holes of jumps along it.
#[inline]
fn along(from: u64, axis: usize, ways: u64) -> u64 {
    (from & ways) << SHIFTS[axis] | from >> SHIFTS[axis] & ways
}
