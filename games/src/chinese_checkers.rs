//! Chinese checkers on the star with 121 holes, with ten pieces per seat.
//!
//! Seats are assigned clockwise from the top triangle: two opposite (top, bottom), three alternate (top, lower right,
//! lower left), four in two opposite pairs (top, upper right, bottom, lower left), or all six. A seat's target is the
//! triangle opposite its home.
//!
//! A move takes a piece one step to an empty adjacent hole, or along a chain of jumps, each over exactly one adjacent piece
//! of any seat into the empty hole directly behind it. The moving piece is lifted: it does not block its own chain and
//! cannot be jumped by it. Chains that end in the same hole are one move; no chain ends where it began. A piece may pass
//! through any triangle but may only stay in the hexagon, its home and its target; it may leave its home and its target
//! again. Turns rotate strictly; a seat without a move passes.
//!
//! A seat has won as soon as its target is full and contains at least one of its pieces, regardless of the last mover: a
//! piece left at home does not block the other seat's win. After 150 plies per seat the game ends at its ply limit, and the
//! seats whose pieces have the fewest remaining steps in total (to the tip of the target) share the win. With more than
//! two seats the winners share sixty points; with two the payoffs are +1, 0 and -1.
//!
//! Holes are named by their row, `a` to `q` from the top, and their number in it from the left: `a1`, `e1` to `e13`, `q1`.
//! A move is `d3-e7`; a pass is `pass`. A position is the rows from the top joined by `/`, `A` to `F` for the pieces of
//! seats 0 to 5 and `.` for an empty hole, then the seat to move and the plies played:
//! `A/AA/AAA/AAAA/............./`...`/B A 0`.
//!
//! The playout policy draws uniformly among the moves that bring a piece nearer to the tip of its target, or among all
//! moves if there is none: uniform games hardly ever end before the limit.
//!
//! The board is in `star.rs`: bitboards by parity class, on which jumps are shifts. A position has 120 bytes with two seats
//! and is copied instead of undone.

mod star;

use self::star::{
    Board, CLASSES, HOLES, Jumps, NO_HOLES, PIECES, PLACES, ROWS, STAR, TABLES, TRIANGLES, add, bit,
    class_places, has, intersection, jumps, places, size,
};
use crate::game::{
    Deterministic, Duel, Feature, FeatureSet, Features, Game, Keyed, Noisy, Notation, Ordered, Payoffs,
    Reseat, Seat, Turn, features, fill_margins,
};
use crate::random::{Random, below, zobrist};
use crate::setup::{Domain, Parameter, Parameters, Setup, SetupError, Turns};
use crate::text::{Piece, fields, read_mover, read_plies, read_rows};

/// The ply limit per seat.
const PLIES_A_SEAT: u16 = 150;

/// A key for each seat on each place.
static PIECE_KEYS: [[u64; PLACES]; 6] = {
    let keys = zobrist::<{ 6 * PLACES }>(b"cc piece");
    let mut by_seat = [[0; PLACES]; 6];
    let mut index = 0;
    while index < keys.len() {
        by_seat[index / PLACES][index % PLACES] = keys[index];
        index += 1;
    }
    by_seat
};
/// A key for each seat to move.
static TURN_KEYS: [u64; 6] = zobrist(b"cc turn");

/// A position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChineseCheckers<const SEATS: usize> {
    pieces: [Board; SEATS],
    occupied: Board,
    key: u64,
    /// The total steps of each seat's pieces to the tip of its target.
    distance: [u16; SEATS],
    plies: u16,
    mover: Seat,
    winner: Option<Seat>,
}

/// A move of a piece from one place to another, or a pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Move {
    from: u8,
    to: u8,
}

/// Not a move of a piece, which never ends where it began.
const PASS: Move = Move { from: 0, to: 0 };

impl<const SEATS: usize> ChineseCheckers<SEATS> {
    const PLY_LIMIT: u16 = PLIES_A_SEAT * SEATS as u16;

    /// The home triangle of each seat.
    const HOMES: [usize; SEATS] = {
        let mut homes = [0; SEATS];
        let mut seat = 0;
        while seat < SEATS {
            homes[seat] = match SEATS {
                2 => 3 * seat,
                3 => 2 * seat,
                4 => seat + seat / 2,
                6 => seat,
                _ => panic!("chinese checkers has 2, 3, 4 or 6 seats"),
            };
            seat += 1;
        }
        homes
    };

    /// The target triangle of each seat.
    const TARGETS: [usize; SEATS] = {
        let mut targets = [0; SEATS];
        let mut seat = 0;
        while seat < SEATS {
            targets[seat] = (Self::HOMES[seat] + 3) % TRIANGLES;
            seat += 1;
        }
        targets
    };

    /// The holes in which each seat's pieces may stay.
    const STAYS: [Board; SEATS] = {
        let mut stays = [STAR.holes; SEATS];
        let mut seat = 0;
        while seat < SEATS {
            let mut triangle = 0;
            while triangle < TRIANGLES {
                let mut class = 0;
                while class < CLASSES && triangle != Self::HOMES[seat] && triangle != Self::TARGETS[seat] {
                    stays[seat][class] &= !STAR.triangles[triangle][class];
                    class += 1;
                }
                triangle += 1;
            }
            seat += 1;
        }
        stays
    };

    /// Returns the opposite seat, if there is one.
    fn opposite(seat: Seat) -> Option<Seat> {
        (SEATS != 3).then(|| Seat((seat.0 + SEATS as u8 / 2) % SEATS as u8))
    }

    /// Creates a position and computes its incremental fields.
    fn with_pieces(pieces: [Board; SEATS], mover: Seat, plies: u16) -> Self {
        let mut position = ChineseCheckers {
            pieces: [NO_HOLES; SEATS],
            occupied: NO_HOLES,
            key: TURN_KEYS[mover.index()],
            distance: [0; SEATS],
            plies,
            mover,
            winner: None,
        };
        for seat in Seat::all(SEATS) {
            for place in places(&pieces[seat.index()]) {
                position.toggle(seat, place);
                position.distance[seat.index()] += Self::steps_left(seat, place);
            }
        }
        position.winner = Seat::all(SEATS).find(|&seat| position.is_home(seat));
        position
    }

    /// Adds or removes a piece. The caller updates the distance.
    #[inline]
    fn toggle(&mut self, seat: Seat, place: u8) {
        let class = usize::from(place / 64);
        self.pieces[seat.index()][class] ^= bit(place);
        self.occupied[class] ^= bit(place);
        self.key ^= PIECE_KEYS[seat.index()][usize::from(place)];
    }

    /// Returns the steps from a place to the tip of the seat's target.
    #[inline]
    fn steps_left(seat: Seat, place: u8) -> u16 {
        u16::from(TABLES.distances[Self::TARGETS[seat.index()]][usize::from(place)])
    }

    /// Returns whether the seat's target is full and contains a piece of the seat.
    fn is_home(&self, seat: Seat) -> bool {
        let target = &TABLES.triangles[Self::TARGETS[seat.index()]];
        intersection(&self.occupied, target) == *target
            && intersection(&self.pieces[seat.index()], target) != NO_HOLES
    }

    #[inline]
    fn over(&self) -> bool {
        self.winner.is_some() || self.plies >= Self::PLY_LIMIT
    }

    /// Returns the empty holes in which a seat's pieces may stay.
    #[inline]
    fn open(&self, seat: Seat) -> Board {
        let stays = &Self::STAYS[seat.index()];
        intersection(stays, &self.occupied.map(|word| !word))
    }

    /// Returns the pieces of a seat with the holes that each can jump to and stay in.
    #[inline]
    fn jumps(&self, seat: Seat) -> Jumps {
        let mut jumps = jumps(&self.pieces[seat.index()], &self.occupied);
        let stays = &Self::STAYS[seat.index()];
        for (&from, to) in jumps.from.iter().zip(&mut jumps.to) {
            *to &= stays[usize::from(from / 64)];
        }
        jumps
    }

    /// Returns a seat's jumps that bring the piece nearer to the tip of its target.
    #[inline]
    fn forward_jumps(&self, seat: Seat) -> Jumps {
        let mut jumps = self.jumps(seat);
        let nearer = &TABLES.nearer[Self::TARGETS[seat.index()]];
        for (&from, to) in jumps.from.iter().zip(&mut jumps.to) {
            *to &= nearer[usize::from(Self::steps_left(seat, from))][usize::from(from / 64)];
        }
        jumps
    }

    #[inline]
    fn is_forward(&self, mv: Move) -> bool {
        Self::steps_left(self.mover, mv.to) < Self::steps_left(self.mover, mv.from)
    }

    /// Draws uniformly among the given jumps and the steps into empty holes that satisfy `wanted`.
    ///
    /// Draws a piece and a direction, and repeats the whole draw if that is not a step, which is cheaper on average than
    /// counting. Gives up after some attempts, when there are few moves.
    #[inline]
    fn guess(&self, jumps: &Jumps, random: &mut Random, wanted: impl Fn(Move) -> bool) -> Option<Move> {
        const STEPS: usize = PIECES * 6;
        let slots = STEPS + jumps.count();
        let open = self.open(self.mover);
        for _ in 0..16 {
            let slot = below(random, slots);
            if slot >= STEPS {
                return jumps.nth(slot - STEPS).map(|(from, to)| Move { from, to });
            }
            let from = jumps.from[slot / 6];
            let mv = Move { from, to: TABLES.neighbours[usize::from(from)][slot % 6] };
            if has(&open, mv.to) && wanted(mv) {
                return Some(mv);
            }
        }
        None
    }

    /// Returns the seats that share the win once the game is over, a bit each.
    fn winners(&self) -> u32 {
        if let Some(seat) = self.winner {
            return 1 << seat.0;
        }
        let least = self.distance.iter().min();
        Seat::all(SEATS)
            .filter(|seat| Some(&self.distance[seat.index()]) == least)
            .fold(0, |winners, seat| winners | 1 << seat.0)
    }
}

impl<const SEATS: usize> Game for ChineseCheckers<SEATS> {
    type Move = Move;
    const SEATS: usize = SEATS;
    const PAYOFFS: Payoffs = Payoffs::for_seats(SEATS);

    #[inline]
    fn turn(&self) -> Turn {
        if self.over() { Turn::Over } else { Turn::Player(self.mover) }
    }

    fn moves(&self, out: &mut Vec<Move>) {
        if self.over() {
            return;
        }
        let start = out.len();
        let open = self.open(self.mover);
        let jumps = self.jumps(self.mover);
        for (&from, &to) in jumps.from.iter().zip(&jumps.to) {
            let neighbours = &TABLES.neighbours[usize::from(from)][..6];
            let steps = neighbours.iter().copied().filter(|&to| has(&open, to));
            out.extend(steps.chain(class_places(from / 64, to)).map(|to| Move { from, to }));
        }
        if out.len() == start {
            out.push(PASS);
        }
    }

    #[inline]
    fn play(&mut self, mv: Move) {
        let mover = self.mover;
        if mv != PASS {
            self.toggle(mover, mv.from);
            self.toggle(mover, mv.to);
            let distance = &mut self.distance[mover.index()];
            *distance = *distance + Self::steps_left(mover, mv.to) - Self::steps_left(mover, mv.from);
            // A move completes at most one triangle: the mover's target, or its home for the opposite seat.
            let target = &TABLES.triangles[Self::TARGETS[mover.index()]];
            let home = &TABLES.triangles[Self::HOMES[mover.index()]];
            if has(target, mv.to) || has(home, mv.to) {
                let candidates = [Some(mover), Self::opposite(mover)];
                self.winner = candidates.into_iter().flatten().find(|&seat| self.is_home(seat));
            }
        }
        self.plies += 1;
        self.mover = mover.next(SEATS);
        self.key ^= TURN_KEYS[mover.index()] ^ TURN_KEYS[self.mover.index()];
    }

    fn payoff(&self, seat: Seat) -> i32 {
        Payoffs::of_winners(SEATS, self.winners(), seat)
    }

    fn ply_bound(&self) -> u32 {
        u32::from(Self::PLY_LIMIT)
    }

    fn count(&self, _scratch: &mut Vec<Move>) -> u64 {
        if self.over() {
            return 0;
        }
        let open = self.open(self.mover);
        let steps = places(&self.pieces[self.mover.index()]).map(|from| {
            let neighbours = &TABLES.neighbours[usize::from(from)][..6];
            neighbours.iter().map(|&to| usize::from(has(&open, to))).sum::<usize>()
        });
        let count = steps.sum::<usize>() + self.jumps(self.mover).count();
        count.max(1) as u64
    }

    fn sample(&self, random: &mut Random, scratch: &mut Vec<Move>) -> Move {
        let guess = self.guess(&self.jumps(self.mover), random, |_| true);
        guess.unwrap_or_else(|| {
            scratch.clear();
            self.moves(scratch);
            scratch[below(random, scratch.len())]
        })
    }

    fn rollout(&self, random: &mut Random, scratch: &mut Vec<Move>) -> Move {
        let guess = self.guess(&self.forward_jumps(self.mover), random, |mv| self.is_forward(mv));
        guess.unwrap_or_else(|| {
            scratch.clear();
            self.moves(scratch);
            let forward = scratch.iter().filter(|&&mv| self.is_forward(mv)).count();
            if forward > 0 {
                scratch.retain(|&mv| self.is_forward(mv));
            }
            scratch[below(random, scratch.len())]
        })
    }
}

impl Duel for ChineseCheckers<2> {}
impl Noisy for ChineseCheckers<2> {}
impl<const SEATS: usize> Deterministic for ChineseCheckers<SEATS> {}

impl<const SEATS: usize> Keyed for ChineseCheckers<SEATS> {
    fn key(&self) -> u64 {
        self.key
    }
}

impl<const SEATS: usize> Reseat for ChineseCheckers<SEATS> {
    /// The game is a race.
    const PASSING_HURTS: bool = true;

    fn reseat(&self, seat: Seat) -> Option<Self> {
        let key = self.key ^ TURN_KEYS[self.mover.index()] ^ TURN_KEYS[seat.index()];
        (!self.over()).then(|| ChineseCheckers { mover: seat, key, ..self.clone() })
    }
}

impl<const SEATS: usize> Ordered for ChineseCheckers<SEATS> {
    const SLOTS: usize = HOLES * HOLES;

    fn slot(&self, mv: Move) -> usize {
        // A pass has the slot from the first hole to itself.
        let ordinal = |place: u8| usize::from(TABLES.ordinals[usize::from(place)]);
        ordinal(mv.from) * HOLES + ordinal(mv.to)
    }

    /// Orders moves by the steps gained towards the tip of the target, then by the distance of the piece to it.
    fn promise(&self, mv: Move) -> i32 {
        if mv == PASS {
            return 0;
        }
        let left = |place: u8| i32::from(Self::steps_left(self.mover, place));
        let (from, to) = (left(mv.from), left(mv.to));
        32 * (from - to) + from
    }
}

features! {
    PROGRESS = "progress", 1.0, "steps of all pieces towards the tip of the target";
    ARRIVED = "arrived", 0.1, "pieces in the target";
    STRAGGLER = "straggler", 1.0, "steps of the rearmost piece towards the tip";
    AT_HOME = "at_home", -0.5, "pieces still in their home";
    OFF_CENTRE = "off_centre", -0.15, "half steps of all pieces away from the line between the tips";
    _ = "jumps", 0.3, "holes nearer to the tip that pieces reach by jumps";
}

impl<const SEATS: usize> Features for ChineseCheckers<SEATS> {
    /// Every value is the sum of the differences to the other seats.
    const FEATURES: &'static [Feature] = FEATURES;

    fn features(&self, seat: Seat, wanted: FeatureSet, values: &mut [i32]) {
        fill_margins::<SEATS>(seat, wanted, values, |index, seat| self.feature(index, seat));
    }
}

impl<const SEATS: usize> ChineseCheckers<SEATS> {
    /// Returns a seat's own value of a feature.
    #[inline]
    fn feature(&self, index: usize, seat: Seat) -> i32 {
        let place = seat.index();
        let (pieces, home, target) = (&self.pieces[place], Self::HOMES[place], Self::TARGETS[place]);
        match index {
            PROGRESS => -i32::from(self.distance[place]),
            ARRIVED => size(&intersection(pieces, &TABLES.triangles[target])) as i32,
            STRAGGLER => {
                -places(pieces).map(|place| i32::from(Self::steps_left(seat, place))).max().unwrap_or(0)
            }
            AT_HOME => size(&intersection(pieces, &TABLES.triangles[home])) as i32,
            OFF_CENTRE => {
                let offsets = &TABLES.offsets[target % 3];
                places(pieces).map(|place| i32::from(offsets[usize::from(place)])).sum()
            }
            _ => self.forward_jumps(seat).count() as i32,
        }
    }
}

const SYMBOLS: [char; 6] = ['A', 'B', 'C', 'D', 'E', 'F'];

impl<const SEATS: usize> ChineseCheckers<SEATS> {
    /// Returns the symbol of a hole, counted from the top left.
    fn symbol(&self, ordinal: usize) -> char {
        let held = |seat: &Seat| has(&self.pieces[seat.index()], TABLES.places[ordinal]);
        Seat::all(SEATS).find(held).map_or('.', |seat| SYMBOLS[seat.index()])
    }

    /// Returns the symbols of each row, from the top.
    fn symbol_rows(&self) -> impl Iterator<Item = Vec<char>> {
        let starts = TABLES.starts.map(usize::from);
        (0..ROWS).map(move |row| (starts[row]..starts[row + 1]).map(|hole| self.symbol(hole)).collect())
    }
}

fn write_place(place: u8, out: &mut String) {
    let ordinal = TABLES.ordinals[usize::from(place)];
    let row = TABLES.starts.iter().rposition(|&start| start <= ordinal).unwrap_or(0);
    out.push(char::from(b'a' + row as u8));
    out.push_str(&(ordinal - TABLES.starts[row] + 1).to_string());
}

impl<const SEATS: usize> Notation for ChineseCheckers<SEATS> {
    const MARKS: &'static [&'static str] = &["A", "B", "C", "D", "E", "F"];

    fn write_move(&self, mv: Move, out: &mut String) {
        if mv == PASS {
            out.push_str("pass");
            return;
        }
        write_place(mv.from, out);
        out.push('-');
        write_place(mv.to, out);
    }

    fn board(&self) -> String {
        let mut text = String::new();
        for (row, symbols) in self.symbol_rows().enumerate() {
            text.push(char::from(b'a' + row as u8));
            // A hole is two characters wide, so half a hole is one.
            text.extend(std::iter::repeat_n(' ', 1 + 13 - symbols.len()));
            for symbol in symbols {
                text.push(' ');
                text.push(symbol);
            }
            text.push('\n');
        }
        match self.turn() {
            Turn::Player(seat) => text.push_str(&format!("{} to move", SYMBOLS[seat.index()])),
            _ => text.push_str("over"),
        }
        text
    }

    fn position(&self) -> String {
        let rows: Vec<String> = self.symbol_rows().map(|row| row.into_iter().collect()).collect();
        format!("{} {} {}", rows.join("/"), SYMBOLS[self.mover.index()], self.plies)
    }

    fn ending(&self) -> &'static str {
        if self.winner.is_some() { "target full" } else { "ply limit" }
    }
}

impl<const SEATS: usize> Setup for ChineseCheckers<SEATS> {
    const NAME: &'static str = "chinese-checkers";
    const SUMMARY: &'static str = "across the star by steps and chains of jumps; first home wins";
    const PARAMETERS: &'static [Parameter] = &[Parameter {
        name: "seats",
        default: "2",
        domain: Domain::OneOf(&[2, 3, 4, 6]),
        about: "the number of seats",
    }];
    const TURNS: Turns = Turns::Rotate;
    const POSITION_FORM: &'static str =
        "17 rows from the top joined by /, the seat to move and the plies played, as in A/AA/AAA/.../B A 0";

    fn initial(_parameters: &Parameters) -> Result<Self, SetupError> {
        Ok(Self::with_pieces(Self::HOMES.map(|home| TABLES.triangles[home]), Seat::FIRST, 0))
    }

    fn read_position(_start: &Self, text: &str) -> Result<Self, String> {
        let [rows, mover, plies] = fields(text)?;
        let widths: Vec<usize> =
            TABLES.starts.windows(2).map(|ends| usize::from(ends[1] - ends[0])).collect();
        let mut pieces = [NO_HOLES; SEATS];
        for Piece { line, column, symbol } in read_rows(rows, &widths, &SYMBOLS[..SEATS])? {
            let hole = TABLES.places[usize::from(TABLES.starts[line]) + column];
            add(&mut pieces[symbol], usize::from(hole));
        }
        for seat in 0..SEATS {
            let symbol = SYMBOLS[seat];
            if size(&pieces[seat]) as usize != PIECES {
                return Err(format!("{symbol} must have ten pieces"));
            }
            if intersection(&pieces[seat], &Self::STAYS[seat]) != pieces[seat] {
                return Err(format!("a piece of {symbol} stays in a triangle of other seats"));
            }
        }
        let mover = read_mover(mover, &SYMBOLS[..SEATS])?;
        let plies = read_plies(plies, Self::PLY_LIMIT)?;
        // Turns rotate strictly from seat 0, and a pass is a ply.
        if usize::from(plies) % SEATS != mover.index() {
            return Err("the plies do not fit the seat to move".to_string());
        }
        let position = Self::with_pieces(pieces, mover, plies);
        if Seat::all(SEATS).filter(|&seat| position.is_home(seat)).count() > 1 {
            return Err("more than one seat has won".to_string());
        }
        Ok(position)
    }
}
