//! Chess, by the laws of FIDE, with draws that need no claim.
//!
//! White is seat 0. The crate `cozy-chess` implements the movement; this module adds the ends of a game. In this order of
//! precedence a game ends by
//!
//! - checkmate, or stalemate (a draw);
//! - insufficient material (a draw): bare kings, a single knight or bishop, or any bishops on squares of one colour (as
//!   defined by python-chess: two knights, or a bishop against a knight, play on);
//! - the fifty-move rule (a draw): 100 plies without a capture or a pawn move;
//! - threefold repetition (a draw): the same pieces on the same squares, the same side to move, the same castling rights
//!   and the same en passant captures. A double step without a legal en passant capture makes no difference (FIDE 9.2);
//! - the ply limit (a draw): the parameter `ply_limit`, 1000 by default, more than engine games last.
//!
//! Moves are UCI: `e2e4`, `e7e8q`, castling as the king's move `e1g1`. The parser also reads SAN (`Nf3`, `exd5`, `O-O`,
//! `e8=Q`), which [`Chess::san`] writes. A position is its FEN with both clocks. The plies for the ply limit follow from
//! the full move number: `... w - - 0 1` is ply 0, `... b - - 0 1` ply 1. The en passant square is written, and kept when
//! read, only if a capture is legal.
//!
//! The board is a few bitboards and is restored from a copy. The keys of earlier positions are a stack that
//! [`Game::after`] pushes to and truncates, so that a search does not allocate. The relevant keys are the topmost ones, as
//! many as the halfmove clock. Draws are detected once, when a move is played.

mod features;
mod notation;
mod polyglot;

use cozy_chess::{
    BitBoard, Board, Color, File, Piece, PieceMoves, Rank, Square, get_king_moves, get_pawn_attacks,
};

use crate::game::{Deterministic, Duel, Game, Keyed, Noisy, Ordered, Payoffs, Reseat, Seat, Turn};
use crate::random::{Random, below};

/// A move. Castling is the king's move onto its own rook; [`Chess::san`] and the notation write the usual form.
pub use cozy_chess::Move;

/// A position with the keys of earlier ones.
#[derive(Debug)]
pub struct Chess {
    board: Board,
    /// The keys of earlier positions, the latest last, at least those since the last irreversible move. Irreversible
    /// moves push no key, because nothing before them can be repeated.
    history: Vec<u64>,
    /// The draw of this position, other than stalemate. Checkmate takes precedence.
    draw: Option<Draw>,
    ply_limit: u16,
}

/// The draws that do not depend on the legal moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Draw {
    InsufficientMaterial,
    FiftyMoves,
    Repetition,
    PlyLimit,
}

/// The plies without a capture or a pawn move that end the game.
const FIFTY_MOVES: u8 = 100;
/// The fewest reversible plies before a third occurrence.
const SHORTEST_REPETITION: u8 = 8;
/// The initial capacity of the history, so that it seldom grows.
const HISTORY_ROOM: usize = 64;

impl Chess {
    fn new(board: Board, ply_limit: u16) -> Chess {
        let mut position = Chess { board, history: Vec::new(), draw: None, ply_limit };
        position.draw =
            position.insufficient_material().then_some(Draw::InsufficientMaterial).or(position.find_draw());
        position
    }

    /// Returns the known keys of the positions since the last irreversible move.
    #[inline]
    fn repeatable(&self) -> &[u64] {
        let reversible = usize::from(self.board.halfmove_clock());
        &self.history[self.history.len().saturating_sub(reversible)..]
    }

    /// Returns the plies since the start, by the full move number.
    #[inline]
    pub(crate) fn plies(&self) -> u32 {
        2 * (u32::from(self.board.fullmove_number()) - 1) + u32::from(self.mover().0)
    }

    #[inline]
    fn mover(&self) -> Seat {
        Seat(self.board.side_to_move() as u8)
    }

    #[inline]
    fn has_move(&self) -> bool {
        self.board.generate_moves(|_| true)
    }

    #[inline]
    fn over(&self) -> bool {
        self.draw.is_some() || !self.has_move()
    }

    fn checkmate(&self) -> bool {
        !self.board.checkers().is_empty() && !self.has_move()
    }

    /// Returns the draw caused by the last move. Only an irreversible move can make the material insufficient.
    #[inline]
    fn find_draw(&self) -> Option<Draw> {
        let clock = self.board.halfmove_clock();
        if clock == 0 {
            if self.insufficient_material() {
                return Some(Draw::InsufficientMaterial);
            }
        } else if clock >= FIFTY_MOVES {
            return Some(Draw::FiftyMoves);
        } else if clock >= SHORTEST_REPETITION && self.third_occurrence() {
            return Some(Draw::Repetition);
        }
        (self.plies() >= u32::from(self.ply_limit)).then_some(Draw::PlyLimit)
    }

    fn insufficient_material(&self) -> bool {
        let board = &self.board;
        let mating = board.pieces(Piece::Pawn) | board.pieces(Piece::Rook) | board.pieces(Piece::Queen);
        if !mating.is_empty() {
            return false;
        }
        let bishops = board.pieces(Piece::Bishop);
        let one_colour =
            bishops.is_subset(BitBoard::DARK_SQUARES) || bishops.is_subset(BitBoard::LIGHT_SQUARES);
        board.occupied().len() <= 3 || board.pieces(Piece::Knight).is_empty() && one_colour
    }

    /// Compares every second position: those with the same side to move.
    fn third_occurrence(&self) -> bool {
        let key = self.key();
        self.repeatable().rchunks_exact(2).filter(|pair| pair[0] == key).count() >= 2
    }

    /// Returns the en passant square if a capture there is legal.
    fn en_passant(&self) -> Option<Square> {
        self.board.en_passant().and_then(|file| self.en_passant_on(file))
    }

    #[cold]
    fn en_passant_on(&self, file: File) -> Option<Square> {
        let mover = self.board.side_to_move();
        let to = Square::new(file, Rank::Sixth.relative_to(mover));
        let pawns = get_pawn_attacks(to, !mover) & self.board.colored_pieces(mover, Piece::Pawn);
        let mut captures = pawns.into_iter().map(|from| Move { from, to, promotion: None });
        captures.any(|mv| self.board.is_legal(mv)).then_some(to)
    }

    /// Returns whether the boards are equal by FIDE 9.2. The library's comparison treats every piece that can move to the
    /// en passant square as a pawn.
    fn same_board(&self, other: &Chess) -> bool {
        let (a, b) = (&self.board, &other.board);
        a.side_to_move() == b.side_to_move()
            && Piece::ALL.iter().all(|&piece| a.pieces(piece) == b.pieces(piece))
            && Color::ALL.iter().all(|&color| {
                a.colors(color) == b.colors(color) && a.castle_rights(color) == b.castle_rights(color)
            })
            && self.en_passant() == other.en_passant()
    }

    /// Plays a move and pushes the key of the previous position, if it can be repeated.
    #[inline]
    fn advance(&mut self, mv: Move) {
        let key = self.key();
        self.board.play_unchecked(mv);
        if self.board.halfmove_clock() != 0 {
            self.history.push(key);
        }
        self.draw = self.find_draw();
    }

    /// Gives the turn to the other seat, if the result is legal and not over. Fails if there is an en passant capture,
    /// because the right would be lost and giving the turn back would not restore the position.
    fn pass(&mut self) -> bool {
        if self.en_passant().is_some() {
            return false;
        }
        let Some(board) = self.board.null_move() else { return false };
        self.history.push(self.key());
        self.board = board;
        self.draw = self.find_draw();
        !self.over()
    }

    /// Calls `act`, then restores this position.
    #[inline]
    fn restoring<R>(&mut self, act: impl FnOnce(&mut Chess) -> R) -> R {
        let (board, keys, draw) = (self.board.clone(), self.history.len(), self.draw);
        let result = act(self);
        self.board = board;
        self.history.truncate(keys);
        self.draw = draw;
        result
    }
}

/// Copies only the keys of positions that can be repeated.
impl Clone for Chess {
    fn clone(&self) -> Chess {
        let mut history = Vec::with_capacity(HISTORY_ROOM.max(self.repeatable().len()));
        history.extend_from_slice(self.repeatable());
        Chess { board: self.board.clone(), history, draw: self.draw, ply_limit: self.ply_limit }
    }

    fn clone_from(&mut self, source: &Chess) {
        self.board.clone_from(&source.board);
        self.history.clear();
        self.history.extend_from_slice(source.repeatable());
        (self.draw, self.ply_limit) = (source.draw, source.ply_limit);
    }
}

/// Compares positions by FIDE 9.2, clocks, and earlier positions that can be repeated.
impl PartialEq for Chess {
    fn eq(&self, other: &Chess) -> bool {
        self.same_board(other)
            && self.board.halfmove_clock() == other.board.halfmove_clock()
            && self.board.fullmove_number() == other.board.fullmove_number()
            && self.repeatable() == other.repeatable()
            && self.ply_limit == other.ply_limit
    }
}

impl Eq for Chess {}

impl Game for Chess {
    type Move = Move;
    const SEATS: usize = 2;
    const PAYOFFS: Payoffs = Payoffs::DUEL;

    #[inline]
    fn turn(&self) -> Turn {
        if self.over() { Turn::Over } else { Turn::Player(self.mover()) }
    }

    #[inline]
    fn moves(&self, out: &mut Vec<Move>) {
        if self.draw.is_some() {
            return;
        }
        self.board.generate_moves(|moves| {
            if promotes(moves) {
                out.extend(moves);
            } else {
                for to in moves.to {
                    out.push(Move { from: moves.from, to, promotion: None });
                }
            }
            false
        });
    }

    #[inline]
    fn play(&mut self, mv: Move) {
        self.advance(mv);
    }

    fn payoff(&self, seat: Seat) -> i32 {
        match self.checkmate() {
            true if seat == self.mover() => -1,
            true => 1,
            false => 0,
        }
    }

    fn ply_bound(&self) -> u32 {
        u32::from(self.ply_limit)
    }

    #[inline]
    fn after<R>(&mut self, mv: Move, visit: impl FnOnce(&mut Self) -> R) -> R {
        self.restoring(|position| {
            position.advance(mv);
            visit(position)
        })
    }

    #[inline]
    fn count(&self, _scratch: &mut Vec<Move>) -> u64 {
        if self.draw.is_some() {
            return 0;
        }
        let mut count = 0;
        self.board.generate_moves(|moves| {
            count += moves.len();
            false
        });
        count as u64
    }

    /// Stores the moves piece by piece and unpacks only the drawn one.
    #[inline]
    fn sample(&self, random: &mut Random, _scratch: &mut Vec<Move>) -> Move {
        let nothing = PieceMoves { piece: Piece::King, from: Square::A1, to: BitBoard::EMPTY };
        // Sixteen pieces, and two additional entries for en passant captures.
        let mut pieces = [nothing; 18];
        let (mut count, mut used) = (0, 0);
        self.board.generate_moves(|moves| {
            pieces[used] = moves;
            used += 1;
            count += moves.len();
            false
        });
        let mut index = below(random, count);
        for moves in &pieces[..used] {
            if index < moves.len() {
                return nth_move(*moves, index);
            }
            index -= moves.len();
        }
        unreachable!("the index is below the sum of the counts")
    }
}

const LAST_RANKS: BitBoard = BitBoard(Rank::First.bitboard().0 | Rank::Eighth.bitboard().0);
const PROMOTIONS: [Piece; 4] = [Piece::Knight, Piece::Bishop, Piece::Rook, Piece::Queen];

/// Returns whether a piece's moves are promotions. A pawn's moves are all promotions or none.
#[inline]
fn promotes(moves: PieceMoves) -> bool {
    moves.piece == Piece::Pawn && !(moves.to & LAST_RANKS).is_empty()
}

/// Returns a piece's move by its index. Precondition: it exists.
#[inline]
fn nth_move(moves: PieceMoves, index: usize) -> Move {
    let (skip, promotion) =
        if promotes(moves) { (index / 4, Some(PROMOTIONS[index % 4])) } else { (index, None) };
    let mut to = moves.to.0;
    for _ in 0..skip {
        to &= to - 1;
    }
    Move { from: moves.from, to: Square::index(to.trailing_zeros() as usize), promotion }
}

impl Duel for Chess {}
impl Deterministic for Chess {}

impl Keyed for Chess {
    const PATH_DEPENDENT: bool = true;

    #[inline]
    fn key(&self) -> u64 {
        // The library's key includes every double step.
        match self.board.en_passant() {
            Some(file) if self.en_passant_on(file).is_none() => self.board.hash_without_ep(),
            _ => self.board.hash(),
        }
    }
}

impl Reseat for Chess {
    /// Except in endings with few pieces, where zugzwang is possible.
    const PASSING_HURTS: bool = true;

    /// The mover has a piece besides pawns.
    #[inline]
    fn passing_hurts(&self) -> bool {
        let (board, mover) = (&self.board, self.board.side_to_move());
        let pawns = board.pieces(Piece::Pawn) | board.pieces(Piece::King);
        !(board.colors(mover) & !pawns).is_empty()
    }

    fn reseat(&self, seat: Seat) -> Option<Self> {
        let mut position = self.clone();
        (seat == self.mover() || position.pass()).then_some(position)
    }

    fn after_reseat<R>(&mut self, seat: Seat, visit: impl FnOnce(&mut Self) -> R) -> Option<R> {
        self.restoring(|position| (seat == position.mover() || position.pass()).then(|| visit(position)))
    }
}

/// Captures and promotions to a queen; in check all evasions.
impl Noisy for Chess {
    const NOISY: bool = true;

    fn noisy_moves(&self, out: &mut Vec<Move>) {
        if !self.may_stand_pat() {
            return self.moves(out);
        }
        if self.draw.is_some() {
            return;
        }
        let board = &self.board;
        let mover = board.side_to_move();
        let enemies = board.colors(!mover);
        let en_passant = board
            .en_passant()
            .map_or(BitBoard::EMPTY, |file| Square::new(file, Rank::Sixth.relative_to(mover)).bitboard());
        // King moves are the most expensive to generate: skip them if the king has nothing to capture.
        let king = board.king(mover);
        let idle = if get_king_moves(king).is_disjoint(enemies) { king.bitboard() } else { BitBoard::EMPTY };
        board.generate_moves_for(!idle, |moves| {
            let from = moves.from;
            if moves.piece != Piece::Pawn {
                let captures = moves.to & enemies;
                out.extend(captures.into_iter().map(|to| Move { from, to, promotion: None }));
                return false;
            }
            let noisy = moves.to & (enemies | en_passant | LAST_RANKS);
            out.extend(noisy.into_iter().map(|to| {
                let promotion = LAST_RANKS.has(to).then_some(Piece::Queen);
                Move { from, to, promotion }
            }));
            false
        });
    }

    #[inline]
    fn may_stand_pat(&self) -> bool {
        self.board.checkers().is_empty()
    }
}

impl Ordered for Chess {
    /// One slot per source and target, as in the butterfly boards of Schaeffer (1989).
    const SLOTS: usize = 64 * 64;

    #[inline]
    fn slot(&self, mv: Move) -> usize {
        mv.from as usize * 64 + mv.to as usize
    }

    /// Orders captures by the most valuable victim, then the least valuable attacker, and promotions by their gain; castling
    /// is before other quiet moves, underpromotions are after them.
    #[inline]
    fn promise(&self, mv: Move) -> i32 {
        let board = &self.board;
        let mover = board.side_to_move();
        let castling = board.colors(mover).has(mv.to);
        let mut promise = i32::from(castling);
        if board.colors(!mover).has(mv.to) {
            let kind = |square| board.piece_on(square).map_or(0, |piece| piece as usize);
            promise += 16 * PIECE_VALUES[kind(mv.to)] - kind(mv.from) as i32;
        } else if board.en_passant() == Some(mv.to.file())
            && mv.to.rank() == Rank::Sixth.relative_to(mover)
            && board.colored_pieces(mover, Piece::Pawn).has(mv.from)
        {
            promise += 16 * PIECE_VALUES[Piece::Pawn as usize];
        }
        match mv.promotion {
            None => promise,
            Some(Piece::Queen) => {
                promise + 16 * (PIECE_VALUES[Piece::Queen as usize] - PIECE_VALUES[Piece::Pawn as usize])
            }
            Some(_) => promise - 16,
        }
    }
}

/// The usual value of a piece in pawns, for ordering only.
const PIECE_VALUES: [i32; Piece::NUM] = [1, 3, 3, 5, 9, 0];

/// Returns the colour of a seat.
const fn colour(seat: Seat) -> Color {
    if seat.0 == 0 { Color::White } else { Color::Black }
}
