//! What a chess position is worth, in named terms.
//!
//! The unit of the weights is the pawn. The five kinds of pieces are terms of their own, so that their values can
//! be tuned; `piece_square` and `king_safety` are in hundredths of a pawn. The values of the tables are chosen here
//! by the usual advice: knights and bishops to the centre, rooks to the seventh, the king behind its pawns until
//! few pieces are left and then to the centre.
//!
//! Everything is computed from the bitboards when asked for, a group at a time. A side's terms are computed on a
//! board turned so that its pawns go up.

use cozy_chess::{
    BitBoard, Board, Color, Piece, Square, get_bishop_moves, get_king_moves, get_knight_moves, get_rook_moves,
};

use super::{Chess, colour};
use crate::game::{Feature, FeatureSet, Features, Seat};

/// The features in the order of [`Features::FEATURES`].
#[derive(Clone, Copy)]
enum Term {
    Pawns,
    Knights,
    Bishops,
    Rooks,
    Queens,
    PieceSquare,
    Mobility,
    QueenMobility,
    KingSafety,
    KingShelter,
    DoubledPawns,
    IsolatedPawns,
    PassedPawns,
    BishopPair,
    RookFiles,
    Tempo,
}

const TERMS: usize = Term::Tempo as usize + 1;

const fn terms(of: &[Term]) -> FeatureSet {
    let mut set = FeatureSet::NONE;
    let mut index = 0;
    while index < of.len() {
        set = set.with(of[index] as usize);
        index += 1;
    }
    set
}

const COUNTS: FeatureSet =
    terms(&[Term::Pawns, Term::Knights, Term::Bishops, Term::Rooks, Term::Queens, Term::PieceSquare]);
const ATTACKS: FeatureSet = terms(&[Term::Mobility, Term::QueenMobility, Term::KingSafety]);
const STRUCTURE: FeatureSet = terms(&[
    Term::KingShelter,
    Term::DoubledPawns,
    Term::IsolatedPawns,
    Term::PassedPawns,
    Term::BishopPair,
    Term::RookFiles,
]);

impl Features for Chess {
    const FEATURES: &'static [Feature] = &[
        Feature { name: "pawns", weight: 1.0, about: "pawns" },
        Feature { name: "knights", weight: 3.0, about: "knights" },
        Feature { name: "bishops", weight: 3.2, about: "bishops" },
        Feature { name: "rooks", weight: 5.0, about: "rooks" },
        Feature { name: "queens", weight: 9.5, about: "queens" },
        Feature {
            name: "piece_square",
            weight: 0.01,
            about: "where pieces stand, by tables from opening to endgame, in hundredths of a pawn",
        },
        Feature {
            name: "mobility",
            weight: 0.04,
            about: "squares that knights, bishops and rooks attack, without those own pieces hold or pawns guard",
        },
        Feature { name: "queen_mobility", weight: 0.01, about: "the same for queens" },
        Feature {
            name: "king_safety",
            weight: 0.01,
            about: "two or more pieces that bear on the other king's neighbourhood, in hundredths of a pawn",
        },
        Feature {
            name: "king_shelter",
            weight: 0.04,
            about: "pawns before the king while the other side has a queen: 2 on the next row, 1 on the one after",
        },
        Feature { name: "doubled_pawns", weight: -0.12, about: "pawns behind a pawn of their own side" },
        Feature {
            name: "isolated_pawns",
            weight: -0.08,
            about: "pawns without a neighbour on the files beside",
        },
        Feature { name: "passed_pawns", weight: 0.03, about: "steps made by passed pawns, squared" },
        Feature { name: "bishop_pair", weight: 0.35, about: "1 with bishops on both colours" },
        Feature {
            name: "rook_files",
            weight: 0.12,
            about: "rooks on files without own pawns: 2 where there are no pawns at all, else 1",
        },
        Feature { name: "tempo", weight: 0.1, about: "1 for the side to move" },
    ];

    fn features(&self, seat: Seat, wanted: FeatureSet, values: &mut [i32]) {
        let values = values.first_chunk_mut::<TERMS>().expect("a place for each feature");
        let board = &self.board;
        let (own, other) = (colour(seat), colour(seat.other()));
        if wanted.any(ATTACKS) {
            let guarded = Color::ALL.map(|color| pawn_attacks(board, color));
            let (own, other) =
                (Pieces::of::<true>(board, own, guarded), Pieces::of::<true>(board, other, guarded));
            own.write_standing(&other, values);
            values[Term::Mobility as usize] = own.squares.sum() - other.squares.sum();
            values[Term::QueenMobility as usize] = own.queen_squares.sum() - other.queen_squares.sum();
            values[Term::KingSafety as usize] = own.danger() - other.danger();
        } else if wanted.any(COUNTS) {
            let (own, other) =
                (Pieces::of::<false>(board, own, [0; 2]), Pieces::of::<false>(board, other, [0; 2]));
            own.write_standing(&other, values);
        }
        if wanted.any(STRUCTURE) {
            let (own, other) = (Structure::of(board, own), Structure::of(board, other));
            values[Term::KingShelter as usize] = own.shelter - other.shelter;
            values[Term::DoubledPawns as usize] = own.doubled - other.doubled;
            values[Term::IsolatedPawns as usize] = own.isolated - other.isolated;
            values[Term::PassedPawns as usize] = own.passed - other.passed;
            values[Term::BishopPair as usize] = own.bishop_pair - other.bishop_pair;
            values[Term::RookFiles as usize] = own.rook_files - other.rook_files;
        }
        values[Term::Tempo as usize] = if seat == self.mover() { 1 } else { -1 };
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

/// Hundredths of a pawn with all pieces on the board.
const OPENING: [Profile; Piece::NUM] = [
    profile([-6, -2, 3, 9], [0, 0, 2, 11, 18, 28, 45, 0]),
    profile([-24, -8, 6, 12], [-20, -8, 6, 12, 18, 14, 0, -20]),
    profile([-8, 3, 4, 6], [-12, 4, 6, 8, 8, 4, 0, -8]),
    profile([-5, 0, 4, 8], [0, -4, -2, 0, 2, 6, 20, 8]),
    profile([-4, 0, 2, 2], [-2, 4, 4, 2, 2, 0, 0, -4]),
    profile([18, 26, -4, -14], [10, -8, -30, -45, -55, -60, -60, -60]),
];

/// Hundredths of a pawn when only kings and pawns are left.
const ENDGAME: [Profile; Piece::NUM] = [
    profile([4, 2, 0, -2], [0, 0, 3, 8, 18, 32, 55, 0]),
    profile([-20, -6, 4, 10], [-18, -8, 2, 10, 10, 4, -6, -18]),
    profile([-8, -2, 3, 6], [-8, -2, 3, 6, 6, 3, -2, -8]),
    profile([0, 0, 0, 0], [-4, -4, 0, 2, 6, 8, 12, 8]),
    profile([-14, -2, 6, 12], [-14, -6, 2, 10, 12, 8, 2, -8]),
    profile([-26, -6, 10, 18], [-26, -8, 6, 16, 20, 16, 4, -16]),
];

/// The two tables' values in one number, the endgame's 16 bits higher: a sum of such numbers sums both.
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

/// The mean of a packed pair, the opening's value weighed by `officers` of 24.
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

/// The squares to the left and to the right.
const fn beside(squares: u64) -> u64 {
    (squares & !FILE_A) >> 1 | (squares & !FILE_H) << 1
}

/// The sizes of up to 31 sets together, a byte a row. Processors that lack an instruction for it must be provided
/// for, and this takes two thirds of the steps of counting each set by itself.
#[derive(Clone, Copy, Default)]
struct Tally(u64);

impl Tally {
    #[inline]
    fn add(&mut self, set: u64) {
        let pairs = set - (set >> 1 & 0x5555_5555_5555_5555);
        let nibbles = (pairs & 0x3333_3333_3333_3333) + (pairs >> 2 & 0x3333_3333_3333_3333);
        self.0 += (nibbles + (nibbles >> 4)) & 0x0f0f_0f0f_0f0f_0f0f;
    }

    #[inline]
    fn sum(self) -> i32 {
        // Rows in pairs first, since the sum may pass a byte.
        let pairs = (self.0 & 0x00ff_00ff_00ff_00ff) + (self.0 >> 8 & 0x00ff_00ff_00ff_00ff);
        (pairs.wrapping_mul(0x0001_0001_0001_0001) >> 48) as i32
    }
}

/// What a side has, where, and what its pieces attack.
#[derive(Default)]
struct Pieces {
    counts: [i32; Piece::NUM],
    square_values: i32,
    squares: Tally,
    queen_squares: Tally,
    zone_squares: Tally,
    attackers: i32,
    attacker_units: i32,
}

impl Pieces {
    /// One pass over the pieces of a side. `guarded` are the squares that pawns attack, by colour; without `ATTACKS`
    /// only what stands where is looked at.
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
        pieces.squares = Tally::default();
        pieces.place(board, color, Piece::Queen, |pieces, square| {
            pieces.attack((bishop(square) | rook(square)).0, free, zone, 5);
        });
        pieces.queen_squares = std::mem::replace(&mut pieces.squares, others);
        pieces
    }

    /// Counts the pieces of a kind and their squares' values.
    #[inline(always)]
    fn place(&mut self, board: &Board, color: Color, piece: Piece, each: impl Fn(&mut Pieces, Square)) {
        // Turns the board of the side whose pawns go down.
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

    /// How hard the other king is attacked; one piece alone makes no attack.
    fn danger(&self) -> i32 {
        let units = if self.attackers < 2 { 0 } else { self.attacker_units + self.zone_squares.sum() };
        units * units / 6
    }

    fn write_standing(&self, other: &Pieces, values: &mut [i32; TERMS]) {
        for (value, (own, other)) in values.iter_mut().zip(self.counts.iter().zip(&other.counts)).take(5) {
            *value = own - other;
        }
        // How much of the opening's table counts.
        let officers = (self.officers() + other.officers()).min(24);
        values[Term::PieceSquare as usize] = tapered(self.square_values - other.square_values, officers);
    }

    /// Knights and bishops 1, rooks 2, queens 4: twelve a side at the start.
    fn officers(&self) -> i32 {
        let [_, knights, bishops, rooks, queens, _] = self.counts;
        knights + bishops + 2 * rooks + 4 * queens
    }
}

/// What a side's pawns and the pieces around them make.
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

/// Counts few bits: one step each.
#[inline]
fn count(mut squares: u64) -> i32 {
    let mut count = 0;
    while squares != 0 {
        squares &= squares - 1;
        count += 1;
    }
    count
}

/// All squares below these on their files.
#[inline]
const fn below(squares: u64) -> u64 {
    let mut filled = squares >> 8;
    filled |= filled >> 8;
    filled |= filled >> 16;
    filled | filled >> 32
}

/// All squares above these on their files.
#[inline]
const fn above(squares: u64) -> u64 {
    below(squares.swap_bytes()).swap_bytes()
}
