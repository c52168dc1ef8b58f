//! Code shared by othello and rolit: the 8 x 8 board and the lines on which pieces are outflanked.
//!
//! A board is a set of squares in 64 bits: a1, at the top left, is bit 0, b1 bit 1, a2 bit 8. Functions take the mover's
//! pieces and the pieces that may be turned; they know nothing of seats.

use crate::random::{Random, below};
use crate::text::{Labels, read_rows, write_rows};

/// The four corners.
pub(crate) const CORNERS: u64 = 0x8100_0000_0000_0081;
/// The squares diagonally adjacent to a corner.
pub(crate) const X_SQUARES: u64 = 0x0042_0000_0000_4200;
/// The squares of the border, including the corners.
pub(crate) const BORDER: u64 = 0xff81_8181_8181_81ff;
/// The four squares in the middle, occupied from the start.
pub(crate) const CENTRE: u64 = 0x0000_0018_1800_0000;

/// Columns b to g: a piece on column a or h ends every line that is not vertical.
const INNER: u64 = 0x7e7e_7e7e_7e7e_7e7e;
const COLUMN_A: u64 = 0x0101_0101_0101_0101;
const COLUMN_H: u64 = COLUMN_A << 7;
const ROW_1: u64 = 0xff;
const ROW_8: u64 = ROW_1 << 56;

/// The lines from each square to higher bits: right, down left, down, down right; then up left, up and up right on the
/// vertically flipped board; last the line to the left, to lower bits.
const LINES: [[u64; 8]; 64] = {
    let steps = [(1, 0), (-1, 1), (0, 1), (1, 1), (-1, 1), (0, 1), (1, 1), (-1, 0)];
    let mut lines = [[0; 8]; 64];
    let mut square = 0;
    while square < 64 {
        let mut step = 0;
        while step < 8 {
            let (right, down) = steps[step];
            let upside_down = 4 <= step && step < 7;
            let start: i32 = if upside_down { square ^ 56 } else { square };
            let (mut column, mut row) = (start % 8 + right, start / 8 + down);
            while 0 <= column && column < 8 && row < 8 {
                lines[square as usize][step] |= 1 << (8 * row + column);
                column += right;
                row += down;
            }
            step += 1;
        }
        square += 1;
    }
    lines
};

/// The squares off each line that goes to greater bits.
const OFF_LINES: [[u64; 8]; 64] = {
    let mut off = LINES;
    let mut square = 0;
    while square < 64 {
        let mut line = 0;
        while line < 8 {
            off[square][line] = !LINES[square][line];
            line += 1;
        }
        square += 1;
    }
    off
};

/// Returns the pieces outflanked along a line of higher bits. Adding 1 carries through everything off the line and
/// through the others' pieces on it. If the carry stops at an own piece, the pieces before it are outflanked.
#[inline(always)]
fn outflanked(line: u64, off_line: u64, own: u64, others: u64) -> u64 {
    let end = (others | off_line).wrapping_add(1) & own & line;
    end.wrapping_sub(u64::from(end != 0)) & line
}

/// Returns the pieces of `others` that a piece of `own`, placed on the empty `square`, turns.
///
/// Carries only run to higher bits. The three upward directions are downward ones on the vertically flipped board,
/// which swaps the bytes; only the direction to the left needs another method.
#[inline]
pub(crate) fn flips(square: u8, own: u64, others: u64) -> u64 {
    let square = usize::from(square & 63);
    let (lines, off) = (&LINES[square], &OFF_LINES[square]);
    let below = outflanked(lines[0], off[0], own, others)
        | outflanked(lines[1], off[1], own, others)
        | outflanked(lines[2], off[2], own, others)
        | outflanked(lines[3], off[3], own, others);

    let (own_turned, others_turned) = (own.swap_bytes(), others.swap_bytes());
    let above = outflanked(lines[4], off[4], own_turned, others_turned)
        | outflanked(lines[5], off[5], own_turned, others_turned)
        | outflanked(lines[6], off[6], own_turned, others_turned);

    // The nearest square to the left without a piece of the others is the highest one: spread all of them down and
    // keep the highest.
    let left = lines[7];
    let mut stops = left & !others;
    stops |= stops >> 1;
    stops |= stops >> 2;
    stops |= stops >> 4;
    let end = stops & !(stops >> 1) & own;
    let beside = left & (end << 1).wrapping_neg();

    below | above.swap_bytes() | beside
}

/// Returns the runs of `through` adjacent to `start`, `step` bits apart, to higher bits: a parallel-prefix fill (Kogge
/// and Stone 1973) of up to six squares, the most between two others.
#[inline(always)]
fn runs_up(start: u64, through: u64, step: u32) -> u64 {
    let mut run = through & (start << step);
    run |= through & (run << step);
    let pairs = through & (through << step);
    run |= pairs & (run << (2 * step));
    run | (pairs & (run << (2 * step)))
}

/// Returns the same runs to lower bits.
#[inline(always)]
fn runs_down(start: u64, through: u64, step: u32) -> u64 {
    let mut run = through & (start >> step);
    run |= through & (run >> step);
    let pairs = through & (through >> step);
    run |= pairs & (run >> (2 * step));
    run | (pairs & (run >> (2 * step)))
}

/// Returns the squares behind runs of `others` adjacent to `own`, to higher bits.
#[inline(always)]
fn behind(own: u64, others: u64, step: u32) -> u64 {
    runs_up(own, others, step) << step
}

/// Results for three directions, alternating between the board and the flipped board.
#[repr(align(16))]
struct Lanes([u64; 6]);

/// Calls [`behind`] in the three directions that leave the row, on both boards.
///
/// Not inlined, with words in and memory out: in this shape the compiler keeps both boards in one vector register, which
/// makes perft 10 % faster.
#[inline(never)]
fn behind_both(own: u64, own_turned: u64, others: u64, others_turned: u64) -> Lanes {
    let (inner, inner_turned) = (others & INNER, others_turned & INNER);
    Lanes([
        behind(own, inner, 7),
        behind(own_turned, inner_turned, 7),
        behind(own, others, 8),
        behind(own_turned, others_turned, 8),
        behind(own, inner, 9),
        behind(own_turned, inner_turned, 9),
    ])
}

/// Returns the empty squares where a piece of `own` would turn at least one of `others`.
#[inline]
pub(crate) fn captures(own: u64, others: u64) -> u64 {
    let lanes = behind_both(own, own.swap_bytes(), others, others.swap_bytes());
    let [a, a_turned, b, b_turned, c, c_turned] = lanes.0;

    let inner = others & INNER;
    // To the right a carry runs through each run of the others adjacent to an own piece.
    let right = inner + (inner & (own << 1));
    let left = runs_down(own, inner, 1) >> 1;

    (right | left | a | b | c | (a_turned | b_turned | c_turned).swap_bytes()) & !(own | others)
}

/// Returns the squares of `others` that some placement of `own` on `empty` would turn: those on runs between an own piece
/// and an empty square.
pub(crate) fn capturable(own: u64, others: u64, empty: u64) -> u64 {
    let inner = others & INNER;
    [(1, inner), (7, inner), (8, others), (9, inner)].iter().fold(0, |found, &(step, through)| {
        let up = runs_up(own, through, step) & runs_down(empty, through, step);
        let down = runs_down(own, through, step) & runs_up(empty, through, step);
        found | up | down
    })
}

/// Returns the squares adjacent to `squares` in any of eight directions.
#[inline]
pub(crate) fn neighbours(squares: u64) -> u64 {
    let sideways = (squares & !COLUMN_H) << 1 | (squares & !COLUMN_A) >> 1;
    let row = squares | sideways;
    sideways | row << 8 | row >> 8
}

/// Returns pieces of `own` that can never be turned again: on each of its four lines such a piece is at the border or
/// adjacent to another stable piece, or the line is full. This finds a subset of all stable pieces.
pub(crate) fn stable(own: u64, occupied: u64) -> u64 {
    let empty = !occupied;
    let full = [
        !spread(empty, 1, [!COLUMN_A, !(COLUMN_A * 0x03), !(COLUMN_A * 0x0f)]),
        !spread(empty, 7, [!COLUMN_H, !(COLUMN_A * 0xc0), !(COLUMN_A * 0xf0)]),
        !spread(empty, 8, [!0; 3]),
        !spread(empty, 9, [!COLUMN_A, !(COLUMN_A * 0x03), !(COLUMN_A * 0x0f)]),
    ];
    let safe = [full[0] | COLUMN_A | COLUMN_H, full[1] | BORDER, full[2] | ROW_1 | ROW_8, full[3] | BORDER];
    let mut stable = 0;
    loop {
        // Shifts that wrap around the board reach its side, where that line is safe anyway.
        let protected = [1, 7, 8, 9]
            .iter()
            .zip(safe)
            .fold(own, |pieces, (&step, safe)| pieces & (stable << step | stable >> step | safe));
        if protected == stable {
            return stable;
        }
        stable = protected;
    }
}

/// Spreads `squares` along their lines in both directions. `masks` holds the squares that 1, 2 and 4 steps of `step` bits
/// to higher bits can reach without wrapping around.
fn spread(squares: u64, step: u32, masks: [u64; 3]) -> u64 {
    let (mut up, mut down) = (squares, squares);
    for (doubling, mask) in masks.into_iter().enumerate() {
        let distance = step << doubling;
        up |= up << distance & mask;
        down |= (down & mask) >> distance;
    }
    up | down
}

/// Draws a square of a set that is not empty.
///
/// Computes the number of squares up to each row in one word (the byte sums of a population count), compares all of them
/// at once to find the row, as in Vigna's broadword selection (2008), and looks the square up in a table. Branch-free.
#[inline]
pub(crate) fn pick(squares: u64, random: &mut Random) -> u8 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x80 * ONES;
    let pairs = squares - ((squares >> 1) & (0x55 * ONES));
    let nibbles = (pairs & (0x33 * ONES)) + ((pairs >> 2) & (0x33 * ONES));
    let rows = (nibbles + (nibbles >> 4)) & (0x0f * ONES);
    let up_to = rows.wrapping_mul(ONES);
    let rank = below(random, (up_to >> 56) as usize) as u64;
    // A byte keeps its high bit if there are at most `rank` squares up to its row.
    let passed = (((rank * ONES) | HIGHS) - up_to) & HIGHS;
    let shift = ((passed >> 7).wrapping_mul(ONES) >> 56) * 8;
    let rank_in_row = rank - (up_to << 8 >> shift & 0xff);
    let row = squares >> shift & 0xff;
    shift as u8 + NTH_OF_ROW[(row << 3 | rank_in_row) as usize & 0x7ff]
}

/// The column of the n-th square of a row, at `row << 3 | n`.
static NTH_OF_ROW: [u8; 2048] = {
    let mut table = [0; 2048];
    let mut row = 0;
    while row < 256 {
        let (mut column, mut rank) = (0, 0);
        while column < 8 {
            if row >> column & 1 == 1 {
                table[row << 3 | rank] = column;
                rank += 1;
            }
            column += 1;
        }
        row += 1;
    }
    table
};

/// Iterates over the squares of a set in ascending order.
pub(crate) fn squares(mut set: u64) -> impl Iterator<Item = u8> {
    std::iter::from_fn(move || {
        let square = (set != 0).then(|| set.trailing_zeros() as u8);
        set &= set.wrapping_sub(1);
        square
    })
}

/// Appends the name of a square.
pub(crate) fn write_square(square: u8, out: &mut String) {
    out.push(Labels::TopDown.column(usize::from(square % 8)));
    out.push(char::from(b'1' + square / 8));
}

/// Writes eight rows from the top, joined by `/`.
pub(crate) fn write_board(symbol: impl Fn(usize) -> char) -> String {
    write_rows(8, 8, |column, line| symbol(8 * line + column))
}

/// Reads the text of [`write_board`] into a board per symbol. Rejects boards that no game can reach: the centre is never
/// empty, and every other piece was placed adjacent to another.
pub(crate) fn read_board<const N: usize>(text: &str, symbols: [char; N]) -> Result<[u64; N], String> {
    let mut pieces = [0u64; N];
    for piece in read_rows(text, &[8; 8], &symbols)? {
        pieces[piece.symbol] |= 1 << (8 * piece.line + piece.column);
    }
    let occupied = pieces.iter().fold(0, |all, pieces| all | pieces);
    if occupied & CENTRE != CENTRE {
        return Err("the four squares of the centre are never empty".to_string());
    }
    let mut reached = CENTRE;
    loop {
        let more = reached | neighbours(reached) & occupied;
        if more == reached {
            break;
        }
        reached = more;
    }
    if reached != occupied {
        return Err("some pieces are not connected with the centre".to_string());
    }
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::seeded;
    use rand::Rng as _;

    /// Finds turned pieces square by square.
    fn walked_flips(square: i32, own: u64, others: u64) -> u64 {
        let mut flips = 0;
        for (right, down) in [(1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1)] {
            let (mut column, mut row) = (square % 8 + right, square / 8 + down);
            let mut run = 0u64;
            while (0..8).contains(&column) && (0..8).contains(&row) {
                let bit = 1 << (8 * row + column);
                if own & bit != 0 {
                    flips |= run;
                }
                if others & bit == 0 {
                    break;
                }
                run |= bit;
                column += right;
                row += down;
            }
        }
        flips
    }

    /// Returns random boards of several densities.
    fn boards() -> impl Iterator<Item = (u64, u64)> {
        let mut random = seeded(3);
        (0..3000).map(move |index| {
            let [a, b, c] = [random.next_u64(), random.next_u64(), random.next_u64()];
            match index % 3 {
                0 => (a & b, c & !(a & b)),
                1 => (a, b & !a),
                _ => (a & b & c, !(a & b & c) & (a | b)),
            }
        })
    }

    #[test]
    fn flips_and_captures_agree_with_square_by_square_search() {
        for (own, others) in boards() {
            let (mut expected, mut turned) = (0u64, 0u64);
            for square in squares(!(own | others)) {
                let walked = walked_flips(i32::from(square), own, others);
                assert_eq!(flips(square, own, others), walked, "{own:x} {others:x} {square}");
                expected |= u64::from(walked != 0) << square;
                turned |= walked;
            }
            assert_eq!(captures(own, others), expected, "{own:x} {others:x}");
            assert_eq!(capturable(own, others, !(own | others)), turned, "{own:x} {others:x}");
        }
    }

    #[test]
    fn stable_pieces_outlast_every_placement() {
        // No placement of the others turns a stable piece, and stable pieces stay stable after it.
        let mut found = 0;
        for (own, others) in boards() {
            let safe = stable(own, own | others);
            found += safe.count_ones();
            for square in squares(captures(others, own)) {
                let turned = flips(square, others, own);
                assert_eq!(turned & safe, 0, "{own:x} {others:x} {square}");
                let left = stable(own & !turned, own | others | 1 << square);
                assert_eq!(left & safe, safe, "{own:x} {others:x} {square}");
            }
        }
        assert!(found > 1000, "{found}");
        assert_eq!(stable(u64::MAX, u64::MAX), u64::MAX);
        // a1, b1 and a2 are connected to the corner; b2 is open on one diagonal until c1 is taken.
        assert_eq!(stable(0x0303, 0x0303), 0x0103);
        assert_eq!(stable(0x0307, 0x0307), 0x0307);
    }

    #[test]
    fn neighbours_do_not_wrap_around() {
        assert_eq!(neighbours(1), 0x0302);
        assert_eq!(neighbours(1 << 63), 0x40c0_0000_0000_0000);
        assert_eq!(neighbours(CENTRE), 0x0000_3c3c_3c3c_0000);
    }

    #[test]
    fn pick_is_uniform() {
        let mut random = seeded(5);
        for set in [1, 1 << 63, u64::MAX, CORNERS, 0x00f0_0000_0100_8003] {
            let mut seen = [0u32; 64];
            let draws = 1000 * set.count_ones();
            for _ in 0..draws {
                seen[usize::from(pick(set, &mut random))] += 1;
            }
            for (square, seen) in seen.iter().enumerate() {
                let expected = if set >> square & 1 == 1 { 850..1150 } else { 0..1 };
                assert!(expected.contains(seen), "{set:x} {square}: {seen}");
            }
            assert_eq!(seen.iter().sum::<u32>(), draws);
        }
    }
}
