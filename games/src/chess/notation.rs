//! Reading and writing moves (UCI and SAN), positions (FEN) and boards.

use std::fmt::Write as _;

use cozy_chess::util::{display_san_move, display_uci_move, parse_san_move, parse_uci_move};
use cozy_chess::{Board, Color, FenParseError, File, Piece, Square, get_king_moves};

use super::{Chess, Draw, Move};
use crate::game::{Game, Notation};
use crate::setup::{Domain, Parameter, Parameters, Setup, SetupError, Turns};
use crate::text::{Labels, fields, grid};

impl Chess {
    /// Returns a move in standard algebraic notation: `Nf3`, `exd5`, `O-O`, `e8=Q+`. Precondition: it is legal.
    pub fn san(&self, mv: Move) -> String {
        display_san_move(&self.board, mv).to_string()
    }

    /// Returns the canonical form of a FEN, with ordered castling rights, or `None` for other texts.
    pub(crate) fn canonical_fen(fen: &str) -> Option<String> {
        Board::from_fen(fen, false).ok().map(|board| board.to_string())
    }

    fn symbol(&self, square: Square) -> char {
        let symbol = self.board.piece_on(square).map_or('.', char::from);
        if self.board.colors(Color::White).has(square) { symbol.to_ascii_uppercase() } else { symbol }
    }

    /// Reads UCI only: the library accepts more, so the canonical text is compared.
    fn parse_uci(&self, text: &str) -> Option<Move> {
        let mv = parse_uci_move(&self.board, text).ok()?;
        (self.board.is_legal(mv) && self.move_text(mv) == text).then_some(mv)
    }

    fn parse_san(&self, text: &str) -> Option<Move> {
        let text = if text.starts_with('0') { &text.replace('0', "O") } else { text };
        let mv = parse_san_move(&self.board, text).ok()?;
        // The library accepts the king's move onto its rook as castling, which SAN does not.
        let castles = self.board.colors(self.board.side_to_move()).has(mv.to);
        (castles == text.starts_with('O')).then_some(mv)
    }
}

impl Notation for Chess {
    const MARKS: &'static [&'static str] = &["White (KQRBNP)", "Black (kqrbnp)"];

    fn write_move(&self, mv: Move, out: &mut String) {
        write!(out, "{}", display_uci_move(&self.board, mv)).expect("a String takes all text");
    }

    /// Reads UCI or SAN.
    fn parse_move(&self, text: &str) -> Option<Move> {
        if self.draw.is_some() {
            return None;
        }
        self.parse_uci(text).or_else(|| self.parse_san(text))
    }

    fn board(&self) -> String {
        grid(8, 8, Labels::BottomUp, |column, row| self.symbol(Square::index(8 * row + column)))
    }

    fn position(&self) -> String {
        let fen = self.board.to_string();
        match (self.board.en_passant(), self.en_passant()) {
            (Some(_), None) => {
                let mut fields: Vec<&str> = fen.split(' ').collect();
                fields[3] = "-";
                fields.join(" ")
            }
            _ => fen,
        }
    }

    fn ending(&self) -> &'static str {
        if self.checkmate() {
            return "checkmate";
        }
        if !self.has_move() {
            return "stalemate";
        }
        match self.draw {
            Some(Draw::InsufficientMaterial) => "insufficient material",
            Some(Draw::FiftyMoves) => "fifty moves",
            Some(Draw::Repetition) => "threefold repetition",
            _ => "ply limit",
        }
    }
}

impl Setup for Chess {
    const NAME: &'static str = "chess";
    const SUMMARY: &'static str =
        "the full rules, with fifty moves, threefold repetition and dead positions drawn";
    const PARAMETERS: &'static [Parameter] = &[Parameter {
        name: "ply_limit",
        default: "1000",
        domain: Domain::Integer { min: 1, max: 10_000 },
        about: "plies after which the game is drawn",
    }];
    const TURNS: Turns = Turns::Rotate;
    const POSITION_FORM: &'static str =
        "a FEN with six fields, as in rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";

    fn initial(parameters: &Parameters) -> Result<Self, SetupError> {
        Ok(Chess::new(Board::startpos(), parameters.integer("ply_limit") as u16))
    }

    /// Reads a FEN. The clocks may contradict each other: composed positions often have `0 1`.
    fn read_position(start: &Self, text: &str) -> Result<Self, String> {
        let _: [&str; 6] = fields(text)?;
        let board = Board::from_fen(text, false).map_err(fen_reason)?;
        if board.to_string() != text {
            return Err(format!("it is not in the canonical form, which would be `{board}`"));
        }
        if let Some(reason) = impossible(&board) {
            return Err(reason.to_string());
        }
        let position = Chess::new(board, start.ply_limit);
        if position.plies() > position.ply_bound() {
            return Err(format!(
                "by its move number it is beyond the limit of {} plies; raise the parameter `ply_limit`",
                position.ply_limit
            ));
        }
        Ok(position)
    }
}

fn fen_reason(error: FenParseError) -> &'static str {
    match error {
        FenParseError::InvalidBoard => {
            "there must be eight rows of eight squares, one king a side, at most 16 pieces and 8 pawns a side, \
             no pawn on the first or last row, and the side that moved must not be in check"
        }
        FenParseError::InvalidSideToMove => "the side to move is w or b",
        FenParseError::InvalidCastlingRights => {
            "the castling rights are some of KQkq or -, and the king and the rook must stand on their first squares"
        }
        FenParseError::InvalidEnPassant => "there was no double step over the en passant square",
        FenParseError::InvalidHalfMoveClock => "the halfmove clock is a whole number from 0 to 100",
        FenParseError::InvalidFullmoveNumber => "the move number is a whole number from 1",
        FenParseError::MissingField | FenParseError::TooManyFields => "it must have six fields",
    }
}

/// Returns the reason why no game can reach a board that the library accepts.
fn impossible(board: &Board) -> Option<&'static str> {
    if get_king_moves(board.king(Color::White)).has(board.king(Color::Black)) {
        return Some("the kings stand next to each other");
    }
    if board.en_passant().is_some() && board.halfmove_clock() != 0 {
        return Some("after a double step the halfmove clock is 0");
    }
    for color in Color::ALL {
        let rights = board.castle_rights(color);
        if (rights.short.is_some() || rights.long.is_some()) && board.king(color).file() != File::E {
            return Some(fen_reason(FenParseError::InvalidCastlingRights));
        }
        let count = |piece| board.colored_pieces(color, piece).len();
        let promoted: u32 = [(Piece::Knight, 2), (Piece::Bishop, 2), (Piece::Rook, 2), (Piece::Queen, 1)]
            .map(|(piece, first)| count(piece).saturating_sub(first))
            .iter()
            .sum();
        if promoted + count(Piece::Pawn) > 8 {
            return Some("a side has more pieces than its pawns could have become");
        }
    }
    None
}
