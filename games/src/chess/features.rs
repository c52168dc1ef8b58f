//! The features of the linear evaluation.
//!
//! The unit of the weights is the pawn. Each kind of piece is a feature, so that its value can be tuned; `piece_square` and
//! `king_safety` are in hundredths of a pawn. The tables follow the usual advice: knights and bishops to the centre, rooks
//! to the seventh row, the king behind its pawns until few pieces are left and then to the centre.
//!
//! Features are computed from the bitboards on demand, a group at a time, on a board oriented so that the side's pawns move
//! up.

use cozy_chess::{
    BitBoard, Board, Color, Piece, Square, get_bishop_moves, get_king_moves, get_knight_moves, get_rook_moves,
};

use super::{Chess, colour};
use crate::game::{Feature, FeatureSet, Features, Seat, features, sign};

const COUNTS: FeatureSet =
    FeatureSet::NONE.with(PAWNS).with(KNIGHTS).with(BISHOPS).with(ROOKS).with(QUEENS).with(PIECE_SQUARE);
const ATTACKS: FeatureSet = FeatureSet::NONE.with(MOBILITY).with(QUEEN_MOBILITY).with(KING_SAFETY);
const STRUCTURE: FeatureSet = FeatureSet::NONE
    .with(KING_SHELTER)
    .with(DOUBLED_PAWNS)
    .with(ISOLATED_PAWNS)
    .with(PASSED_PAWNS)
    .with(BISHOP_PAIR)
    .with(ROOK_FILES);

features! {
    PAWNS = "pawns", 1.0, "pawns";
    KNIGHTS = "knights", 3.0, "knights";
    BISHOPS = "bishops", 3.2, "bishops";
    ROOKS = "rooks", 5.0, "rooks";
    QUEENS = "queens", 9.5, "queens";
    PIECE_SQUARE = "piece_square", 0.01, "values of the pieces' squares, by tables from opening to endgame, in hundredths of a pawn";
    MOBILITY = "mobility", 0.04, "squares attacked by knights, bishops and rooks, except own pieces and squares guarded by pawns";
    QUEEN_MOBILITY = "queen_mobility", 0.01, "the same for queens";
    KING_SAFETY = "king_safety", 0.01, "attacks on the other king's neighbourhood by two or more pieces, in hundredths of a pawn";
    KING_SHELTER = "king_shelter", 0.04, "pawns in front of the king while the other side has a queen: 2 on the next row, 1 on the one after";
    DOUBLED_PAWNS = "doubled_pawns", -0.12, "pawns behind a pawn of their own side";
    ISOLATED_PAWNS = "isolated_pawns", -0.08, "pawns without an own pawn on adjacent files";
    PASSED_PAWNS = "passed_pawns", 0.03, "rows advanced by passed pawns, squared";
    BISHOP_PAIR = "bishop_pair", 0.35, "1 with bishops on both colours";
    ROOK_FILES = "rook_files", 0.12, "rooks on files without own pawns: 2 on files without any pawns, else 1";
    TEMPO = "tempo", 0.1, "1 for the side to move";
}

impl Features for Chess {
    const FEATURES: &'static [Feature] = FEATURES;

    fn features(&self, seat: Seat, wanted: FeatureSet, values: &mut [i32]) {
        let values = values.first_chunk_mut::<{ FEATURES.len() }>().expect("a value per feature");
        let board = &self.board;
        let (own, other) = (colour(seat), colour(seat.other()));
        if wanted.any(ATTACKS) {
            let guarded = Color::ALL.map(|color| pawn_attacks(board, color));
            let (own, other) =
                (Pieces::of::<true>(board, own, guarded), Pieces::of::<true>(board, other, guarded));
            own.write_placement(&other, values);
            values[MOBILITY] = own.squares.sum() - other.squares.sum();
            values[QUEEN_MOBILITY] = own.queen_squares.sum() - other.queen_squares.sum();
            values[KING_SAFETY] = own.danger() - other.danger();
        } else if wanted.any(COUNTS) {
            let (own, other) =
                (Pieces::of::<false>(board, own, [0; 2]), Pieces::of::<false>(board, other, [0; 2]));
            own.write_placement(&other, values);
        }
        if wanted.any(STRUCTURE) {
            let (own, other) = (Structure::of(board, own), Structure::of(board, other));
            values[KING_SHELTER] = own.shelter - other.shelter;
            values[DOUBLED_PAWNS] = own.doubled - other.doubled;
            values[ISOLATED_PAWNS] = own.isolated - other.isolated;
            values[PASSED_PAWNS] = own.passed - other.passed;
            values[BISHOP_PAIR] = own.bishop_pair - other.bishop_pair;
            values[ROOK_FILES] = own.rook_files - other.rook_files;
        }
        values[TEMPO] = sign(seat == self.mover());
    }
}

/// A piece's value by file, from the edge to the centre, and by row, from its own side's first.
struct Profile {
    files: [i32; 4],
    rows: [i32; 8],
}

const fn profile(files: [i32; 4], rows: [i32; 8]) -> Profile {
    Profile { files, rows }
}

/// Values with all pieces on the board, in hundredths of a pawn.
const OPENING: [Profile; Piece::NUM] = [
    profile([-6, -2, 3, 9], [0, 0, 2, 11, 18, 28, 45, 0]),
    profile([-24, -8, 6, 12], [-20, -8, 6, 12, 18, 14, 0, -20]),
    profile([-8, 3, 4, 6], [-12, 4, 6, 8, 8, 4, 0, -8]),
    profile([-5, 0, 4, 8], [0, -4, -2, 0, 2, 6, 20, 8]),
    profile([-4, 0, 2, 2], [-2, 4, 4, 2, 2, 0, 0, -4]),
    profile([18, 26, -4, -14], [10, -8, -30, -45, -55, -60, -60, -60]),
];

/// Values with only kings and pawns left, in hundredths of a pawn.
const ENDGAME: [Profile; Piece::NUM] = [
    profile([4, 2, 0, -2], [0, 0, 3, 8, 18, 32, 55, 0]),
    profile([-20, -6, 4, 10], [-18, -8, 2, 10, 10, 4, -6, -18]),
    profile([-8, -2, 3, 6], [-8, -2, 3, 6, 6, 3, -2, -8]),
    profile([0, 0, 0, 0], [-4, -4, 0, 2, 6, 8, 12, 8]),
    profile([-14, -2, 6, 12], [-14, -6, 2, 10, 12, 8, 2, -8]),
    profile([-26, -6, 10, 18], [-26, -8, 6, 16, 20, 16, 4, -16]),
];

/// The values of both tables in one number, the endgame's 16 bits higher, so that one addition adds both.
const SQUARE_VALUES: [[i32; 64]; Piece::NUM] = {
    let mut values = [[0; 64]; Piece::NUM];
    let mut piece = 0;
    while piece < Piece::NUM {
        let mut square = 0;
        while square < 64 {
            let (file, row) = (square % 8, square / 8);
            let file = if file < 4 { file } else { 7 - file };
            let opening = OPENING[piece].files[file] + OPENING[piece].rows[row];
            let endgame = ENDGAME[piece].files[file] + ENDGAME[piece].rows[row];
            values[piece][square] = opening + (endgame << 16);
            square += 1;
        }
        piece += 1;
    }
    values
};

/// Returns the mean of a packed pair, with the opening's value weighted by `officers` of 24.
fn tapered(packed: i32, officers: i32) -> i32 {
    let opening = i32::from(packed as i16);
    let endgame = (packed - opening) >> 16;
    (opening * officers + endgame * (24 - officers)) / 24
}

fn pawn_attacks(board: &Board, color: Color) -> u64 {
    let pawns = board.colored_pieces(color, Piece::Pawn).0;
    let beside = beside(pawns);
    if color == Color::White { beside << 8 } else { beside >> 8 }
}

const FILE_A: u64 = 0x0101_0101_0101_0101;
const FILE_H: u64 = FILE_A << 7;

/// Returns the squares to the left and to the right.
const fn beside(squares: u64) -> u64 {
    (squares & !FILE_A) >> 1 | (squares & !FILE_H) << 1
}

/// The total size of up to 31 sets, a byte per row. Without a population count instruction, which not all supported
/// processors have, this takes two thirds of the steps of counting each set.
#[derive(Clone, Copy, Default)]
struct BitCount(u64);

impl BitCount {
    #[inline]
    fn add(&mut self, set: u64) {
        let pairs = set - (set >> 1 & 0x5555_5555_5555_5555);
        let nibbles = (pairs & 0x3333_3333_3333_3333) + (pairs >> 2 & 0x3333_3333_3333_3333);
        self.0 += (nibbles + (nibbles >> 4)) & 0x0f0f_0f0f_0f0f_0f0f;
    }

    #[inline]
    fn sum(self) -> i32 {
        // Add rows in pairs first, since the sum may exceed a byte.
        let pairs = (self.0 & 0x00ff_00ff_00ff_00ff) + (self.0 >> 8 & 0x00ff_00ff_00ff_00ff);
        (pairs.wrapping_mul(0x0001_0001_0001_0001) >> 48) as i32
    }
}

/// The pieces of a side, their squares and their attacks.
#[derive(Default)]
struct Pieces {
    counts: [i32; Piece::NUM],
    square_values: i32,
    squares: BitCount,
    queen_squares: BitCount,
    zone_squares: BitCount,
    attackers: i32,
    attacker_units: i32,
}

impl Pieces {
    /// Scans the pieces of a side. `guarded` are the squares attacked by pawns, by colour. Computes attacks only with
    /// `ATTACKS`.
    #[inline]
    fn of<const ATTACKS: bool>(board: &Board, color: Color, guarded: [u64; 2]) -> Pieces {
        let occupied = board.occupied();
        let free = !(board.colors(color).0 | guarded[!color as usize]);
        let king = board.king(!color);
        let zone = (get_king_moves(king) | king.bitboard()).0;
        let bishop = |square| get_bishop_moves(square, occupied);
        let rook = |square| get_rook_moves(square, occupied);

        let mut pieces = Pieces::default();
        pieces.place(board, color, Piece::Pawn, |_, _| {});
        pieces.place(board, color, Piece::King, |_, _| {});
        if !ATTACKS {
            for piece in [Piece::Knight, Piece::Bishop, Piece::Rook, Piece::Queen] {
                pieces.place(board, color, piece, |_, _| {});
            }
            return pieces;
        }
        pieces.place(board, color, Piece::Knight, |pieces, square| {
            pieces.attack(get_knight_moves(square).0, free, zone, 2);
        });
        pieces.place(board, color, Piece::Bishop, |pieces, square| {
            pieces.attack(bishop(square).0, free, zone, 2);
        });
        pieces.place(board, color, Piece::Rook, |pieces, square| {
            pieces.attack(rook(square).0, free, zone, 3);
        });
        let others = pieces.squares;
        pieces.squares = BitCount::default();
        pieces.place(board, color, Piece::Queen, |pieces, square| {
            pieces.attack((bishop(square) | rook(square)).0, free, zone, 5);
        });
        pieces.queen_squares = std::mem::replace(&mut pieces.squares, others);
        pieces
    }

    /// Counts the pieces of a kind, adds their squares' values and calls `each`.
    #[inline(always)]
    fn place(&mut self, board: &Board, color: Color, piece: Piece, each: impl Fn(&mut Pieces, Square)) {
        // Flips the board for Black.
        let turn = if color == Color::White { 0 } else { 56 };
        let table = &SQUARE_VALUES[piece as usize];
        for square in board.colored_pieces(color, piece) {
            self.counts[piece as usize] += 1;
            self.square_values += table[square as usize ^ turn];
            each(self, square);
        }
    }

    #[inline(always)]
    fn attack(&mut self, attacked: u64, free: u64, zone: u64, units: i32) {
        self.squares.add(attacked & free);
        let bears = i32::from(attacked & zone != 0);
        self.attackers += bears;
        self.attacker_units += bears * units;
        self.zone_squares.add(attacked & zone);
    }

    /// Returns the strength of the attack on the other king; a single piece does not count.
    fn danger(&self) -> i32 {
        let units = if self.attackers < 2 { 0 } else { self.attacker_units + self.zone_squares.sum() };
        units * units / 6
    }

    fn write_placement(&self, other: &Pieces, values: &mut [i32; FEATURES.len()]) {
        for (value, (own, other)) in values.iter_mut().zip(self.counts.iter().zip(&other.counts)).take(5) {
            *value = own - other;
        }
        // The weight of the opening's table.
        let officers = (self.officers() + other.officers()).min(24);
        values[PIECE_SQUARE] = tapered(self.square_values - other.square_values, officers);
    }

    /// Returns the game phase: 1 for knights and bishops, 2 for rooks, 4 for queens; twelve per side at the start.
    fn officers(&self) -> i32 {
        let [_, knights, bishops, rooks, queens, _] = self.counts;
        knights + bishops + 2 * rooks + 4 * queens
    }
}

/// The pawn structure of a side.
struct Structure {
    shelter: i32,
    doubled: i32,
    isolated: i32,
    passed: i32,
    bishop_pair: i32,
    rook_files: i32,
}

impl Structure {
    #[inline]
    fn of(board: &Board, color: Color) -> Structure {
        let up = |squares: BitBoard| if color == Color::White { squares.0 } else { squares.0.swap_bytes() };
        let own = up(board.colored_pieces(color, Piece::Pawn));
        let theirs = up(board.colored_pieces(!color, Piece::Pawn));
        let (own_below, their_below) = (below(own), below(theirs));
        let (own_files, their_files) = (own | own_below | above(own), theirs | their_below | above(theirs));

        let doubled = own & own_below;
        let isolated = own & !beside(own_files);
        let passed = own & !own_below & !(their_below | beside(their_below));

        let king = up(board.colored_pieces(color, Piece::King));
        let queens = board.colored_pieces(!color, Piece::Queen);
        let before = (king | beside(king)) << 8;
        let shelter = 2 * count(before & own) + count(before << 8 & own);

        let bishops = board.colored_pieces(color, Piece::Bishop);
        let pair =
            !bishops.is_disjoint(BitBoard::LIGHT_SQUARES) && !bishops.is_disjoint(BitBoard::DARK_SQUARES);
        let rooks = up(board.colored_pieces(color, Piece::Rook)) & !own_files;
        Structure {
            shelter: if queens.is_empty() { 0 } else { shelter },
            doubled: count(doubled),
            isolated: count(isolated),
            passed: BitBoard(passed).into_iter().map(|square| (square.rank() as i32).pow(2)).sum(),
            bishop_pair: i32::from(pair),
            rook_files: count(rooks) + count(rooks & !their_files),
        }
    }
}

/// Counts bits, in a step per bit.
#[inline]
fn count(mut squares: u64) -> i32 {
    let mut count = 0;
    while squares != 0 {
        squares &= squares - 1;
        count += 1;
    }
    count
}

/// Returns all squares below these on their files.
#[inline]
const fn below(squares: u64) -> u64 {
    let mut filled = squares >> 8;
    filled |= filled >> 8;
    filled |= filled >> 16;
    filled | filled >> 32
}

/// Returns all squares above these on their files.
#[inline]
const fn above(squares: u64) -> u64 {
    below(squares.swap_bytes()).swap_bytes()
}
