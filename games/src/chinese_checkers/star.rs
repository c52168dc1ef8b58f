//! The star: its holes as bitboards, its tables, and all jumps.
//!
//! A jump keeps the parity of both coordinates of a piece, so the holes fall into four classes of 37, 28, 28 and 28 that
//! jumps never leave, and a step always does. A bitboard is a word a class, laid out so that a jump along an axis is the
//! same shift everywhere and the pieces jumped over are a shifted word of another class: all jumps of a class are a few
//! operations, and so is each round of the flood that finds a piece's chains. Steps and jumps never coincide, and a
//! piece is never in the way of its own chains, because the holes that it would be jumped from are of other classes.

/// Holes of the star.
pub(super) const HOLES: usize = 121;
/// Places in a bitboard: four classes of 64, most of them unused.
pub(super) const PLACES: usize = 256;
/// Pieces of a seat.
pub(super) const PIECES: usize = 10;
/// Rows of the star.
pub(super) const ROWS: usize = 17;
/// The triangles, clockwise from the top; the one opposite is three further.
pub(super) const TRIANGLES: usize = 6;
/// The parity classes: bit 0 is that of x, bit 1 that of the row.
pub(super) const CLASSES: usize = 4;

/// The axes as changes of (x, row): to the right, down to the right, down to the left.
const AXES: [(i32, i32); 3] = [(1, 0), (1, 1), (0, 1)];
/// How a jump along each axis changes the place within a class: a row of a class has seven places.
const SHIFTS: [usize; 3] = [1, 8, 7];
/// How a step along each axis changes the class.
const CROSSES: [usize; 3] = [1, 3, 2];

/// A set of holes, a word a class.
pub(super) type Board = [u64; CLASSES];

pub(super) const NO_HOLES: Board = [0; CLASSES];

/// Everything about the star that the rules ask for.
pub(super) struct Star {
    pub(super) holes: Board,
    /// The place of each hole, counted from the top left.
    pub(super) places: [u8; HOLES],
    /// The hole at each place, counted from the top left.
    pub(super) ordinals: [u8; PLACES],
    /// The first hole of each row, counted from the top left, and last the number of holes.
    pub(super) starts: [u8; ROWS + 1],
    /// The neighbours of each place along and against each axis; the place itself where there is none.
    pub(super) neighbours: [[u8; 8]; PLACES],
    /// The holes of each class from which a jump along each axis ends in the star.
    jumpers: [[u64; 3]; CLASSES],
    /// The holes of each triangle.
    pub(super) triangles: [Board; TRIANGLES],
    /// The steps from each hole to the tip of each triangle.
    pub(super) distances: [[u8; PLACES]; TRIANGLES],
    /// The holes with fewer steps than so many to the tip of each triangle.
    pub(super) nearer: [[Board; 18]; TRIANGLES],
    /// How far each hole lies off the line between the tips of a triangle and its opposite, in half steps.
    pub(super) offsets: [[u8; PLACES]; 3],
}

/// Cube coordinates (x, y, z) of a hole add up to 0 (Patel, "Hexagonal grids"): x grows to the right along a row,
/// z is 8 at the top row and -8 at the bottom row. The star is two overlapping triangles of side 13.
const fn in_star(x: i32, row: i32) -> bool {
    let z = 8 - row;
    let y = -x - z;
    (x >= -4 && y >= -4 && z >= -4) || (x <= 4 && y <= 4 && z <= 4)
}

/// The place of a hole: its class, and in it seven places a row of the class. Wide rows run into each other's unused
/// places, but no two holes meet.
const fn place_of(x: i32, row: i32) -> usize {
    let class = x & 1 | (row & 1) << 1;
    (64 * class + x.div_euclid(2) + 7 * (row / 2) + 2) as usize
}

/// The largest of the three differences of cube coordinates: the steps between two holes.
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

/// How a step from a class along an axis changes the place within the class.
const fn middle_shift(class: usize, axis: usize) -> usize {
    let carries = class & CROSSES[axis];
    (carries & 1) + 7 * (carries >> 1)
}

/// The same as a static, so that tables indexed at run time are not copied to where they are used.
pub(super) static TABLES: Star = STAR;

/// The bit of a place in the word of its class.
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

/// The places of a set, in ascending order.
#[inline]
pub(super) fn places(board: &Board) -> impl Iterator<Item = u8> {
    (0..CLASSES as u8).zip(board).flat_map(|(class, &word)| class_places(class, word))
}

/// The places of a class's word.
#[inline]
pub(super) fn class_places(class: u8, mut word: u64) -> impl Iterator<Item = u8> {
    std::iter::from_fn(move || {
        let bit = word.trailing_zeros() as u8;
        word &= word.wrapping_sub(1);
        (bit < 64).then(|| 64 * class + bit)
    })
}

/// The pieces of a seat, and where each can jump to.
pub(super) struct Jumps {
    pub(super) from: [u8; PIECES],
    /// In the piece's own class.
    pub(super) to: [u64; PIECES],
}

impl Jumps {
    pub(super) fn count(&self) -> usize {
        self.to.iter().map(|to| to.count_ones() as usize).sum()
    }

    /// The `nth` of all jumps, if there are that many.
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

/// Where each piece can jump to, whether it may stay there or not.
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

/// Fills in the pieces of one class; as a constant it makes all shifts constant.
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
    // The holes from which a jump along each axis has a piece to cross, and of these the ones with both ends empty.
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
        // All chains: follow links until nothing is new.
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

/// The ends of all jumps along and against an axis; `ways` are the holes from which one goes along it.
#[inline]
fn along(from: u64, axis: usize, ways: u64) -> u64 {
    (from & ways) << SHIFTS[axis] | from >> SHIFTS[axis] & ways
}
