//! Keys and moves of Polyglot opening books (Van den Bergh, "Polyglot book format").
//!
//! A key is the exclusive or of a number for each piece on its square, each castling right, the file of a pawn that can be
//! captured en passant, and White to move. The reader of books is `exchange/polyglot.rs`.

mod numbers;

use cozy_chess::{Color, File, Move, Piece, Rank, Square, get_pawn_attacks};

use super::Chess;
use numbers::NUMBERS;

const CASTLING: usize = 768;
const EN_PASSANT: usize = 772;
const WHITE_TO_MOVE: usize = 780;

impl Chess {
    /// Returns the key of the position in Polyglot books.
    pub fn polyglot_key(&self) -> u64 {
        let board = &self.board;
        let mut key = 0;
        for color in Color::ALL {
            for piece in Piece::ALL {
                let kind = 2 * piece as usize + usize::from(color == Color::White);
                for square in board.colored_pieces(color, piece) {
                    key ^= NUMBERS[64 * kind + square as usize];
                }
            }
            let rights = board.castle_rights(color);
            for (offset, right) in [(0, rights.short), (1, rights.long)] {
                if right.is_some() {
                    key ^= NUMBERS[CASTLING + 2 * color as usize + offset];
                }
            }
        }
        if let Some(file) = board.en_passant().filter(|file| self.has_pawn_beside(*file)) {
            key ^= NUMBERS[EN_PASSANT + file as usize];
        }
        if board.side_to_move() == Color::White {
            key ^= NUMBERS[WHITE_TO_MOVE];
        }
        key
    }

    /// Returns whether the mover has a pawn beside the one that made a double step, even if it must not capture.
    fn has_pawn_beside(&self, file: File) -> bool {
        let mover = self.board.side_to_move();
        let to = Square::new(file, Rank::Sixth.relative_to(mover));
        let pawns = self.board.colored_pieces(mover, Piece::Pawn);
        !(get_pawn_attacks(to, !mover) & pawns).is_empty()
    }

    /// Returns the legal move with this number in Polyglot books, which write castling as the king's move onto its rook.
    pub fn polyglot_move(&self, number: u16) -> Option<Move> {
        let square = |shift: u32| Square::index(usize::from(number >> shift) & 63);
        let promotion = match number >> 12 {
            0 => None,
            1 => Some(Piece::Knight),
            2 => Some(Piece::Bishop),
            3 => Some(Piece::Rook),
            4 => Some(Piece::Queen),
            _ => return None,
        };
        let mv = Move { from: square(6), to: square(0), promotion };
        self.board.is_legal(mv).then_some(mv)
    }
}
