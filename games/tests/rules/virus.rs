//! Virus: slow rules on a grid of owners, from the first position and from boards where seats are almost out.

use agon_games::random::{below, mix, seeded};
use agon_games::virus::Virus;
use agon_games::{
    Complete, FeatureSet, Features, Game, GameSpec, Notation, Ordered, Parameters, Reseat, Seat, Setup, Turn, UniformVisitor,
};

use crate::harness::{Slow, Variant, agree, slow_perft_agrees, spec};

pub const VARIANTS: &[Variant] = &[
    ("virus", 16),
    ("virus:pattern=square", 16),
    ("virus:size=4", 120),
    ("virus:size=4,pattern=square", 160),
    ("virus:size=11", 8),
    ("virus:size=11,pattern=square", 8),
    ("virus:seats=3", 12),
    ("virus:seats=3,size=4,pattern=square", 120),
    ("virus:seats=4,size=11", 8),
    ("virus:seats=4,size=4,pattern=square", 120),
    ("virus:seats=5,size=7", 24),
    ("virus:seats=6,size=7,pattern=square", 24),
    ("virus:seats=6", 12),
];

/// The slow rules: the owner of each square, row by row from the bottom.
#[derive(Clone)]
struct SlowVirus {
    rows: Vec<Vec<Option<usize>>>,
    seats: usize,
    mover: usize,
    plies: usize,
    diagonals: bool,
}

impl SlowVirus {
    fn new(text: &str) -> SlowVirus {
        let spec: GameSpec = spec(text);
        let parameters = spec.parameters();
        let (size, seats) = (parameters.integer("size") as usize, parameters.seats());
        let mut rows = vec![vec![None; size]; size];
        let end = size - 1;
        // Of two middle columns seat 4 has the left one and seat 5 the right one.
        let (left_middle, right_middle) = if size % 2 == 1 { (end / 2, end / 2) } else { (size / 2 - 1, size / 2) };
        let starts = [(0, 0), (end, end), (end, 0), (0, end), (left_middle, 0), (right_middle, end)];
        for (seat, (column, row)) in starts.into_iter().enumerate().take(seats) {
            rows[row][column] = Some(seat);
        }
        SlowVirus { rows, seats, mover: 0, plies: 0, diagonals: parameters.value("pattern").to_string() == "square" }
    }

    /// Returns the same variant with another board.
    fn with(&self, rows: Vec<Vec<Option<usize>>>, mover: usize, plies: usize) -> SlowVirus {
        SlowVirus { rows, mover, plies, ..self.clone() }
    }

    fn text(&self) -> String {
        let symbol = |holder: &Option<usize>| holder.map_or(".".to_string(), |seat| seat.to_string());
        let rows: Vec<String> = self.rows.iter().rev().map(|row| row.iter().map(symbol).collect()).collect();
        format!("{} {} {}", rows.join("/"), self.mover, self.plies)
    }

    fn holder(&self, column: i32, row: i32) -> Option<usize> {
        let inside = |number: i32| (0..self.rows.len() as i32).contains(&number);
        if inside(column) && inside(row) { self.rows[row as usize][column as usize] } else { None }
    }

    fn squares_of(&self, seat: usize) -> usize {
        self.rows.iter().flatten().filter(|&&holder| holder == Some(seat)).count()
    }

    fn over(&self) -> bool {
        let size = self.rows.len();
        // Full rounds until there are as many plies as squares.
        let mut limit = 0;
        while limit < size * size {
            limit += self.seats;
        }
        (0..self.seats).filter(|&seat| self.squares_of(seat) > 0).count() == 1 || self.plies >= limit
    }
}

impl Slow for SlowVirus {
    fn turn(&self) -> String {
        if self.over() { "over".to_string() } else { format!("seat {}", self.mover) }
    }

    fn legal(&self) -> Vec<String> {
        let mut legal = Vec::new();
        if self.over() {
            return legal;
        }
        let size = self.rows.len() as i32;
        for (row, column) in (0..size).flat_map(|row| (0..size).map(move |column| (row, column))) {
            let own = |column, row| self.holder(column, row) == Some(self.mover);
            let next_to_own =
                own(column - 1, row) || own(column + 1, row) || own(column, row - 1) || own(column, row + 1);
            if !own(column, row) && next_to_own {
                legal.push(format!("{}{}", char::from(b'a' + column as u8), row + 1));
            }
        }
        legal
    }

    fn play(&mut self, text: &str) {
        let column = i32::from(text.as_bytes()[0] - b'a');
        let row: i32 = text[1..].parse::<i32>().unwrap() - 1;
        for (other_row, holders) in (0..).zip(&mut self.rows) {
            for (other_column, holder) in (0..).zip(holders) {
                let (across, along) = (i32::abs(other_column - column), i32::abs(other_row - row));
                let near = if self.diagonals { across.max(along) <= 1 } else { across + along <= 1 };
                if near {
                    *holder = Some(self.mover);
                }
            }
        }
        self.plies += 1;
        loop {
            self.mover = (self.mover + 1) % self.seats;
            if self.squares_of(self.mover) > 0 {
                break;
            }
        }
    }

    fn payoffs(&self) -> Vec<i32> {
        let held: Vec<usize> = (0..self.seats).map(|seat| self.squares_of(seat)).collect();
        let most = *held.iter().max().unwrap();
        let winners = held.iter().filter(|&&squares| squares == most).count();
        let payoff = |squares: usize| match (self.seats, squares == most) {
            (2, true) => 2 - winners as i32,
            (2, false) => -1,
            (_, true) => 60 / winners as i32,
            (_, false) => 0,
        };
        held.into_iter().map(payoff).collect()
    }
}

#[test]
fn agrees_with_slow_rules() {
    for &(text, games) in VARIANTS {
        agree(text, &SlowVirus::new(text), 3, games);
    }
}

#[test]
fn perft_agrees_with_slow_rules() {
    for (text, depth) in [
        ("virus", 7),
        ("virus:size=4,pattern=square", 7),
        ("virus:seats=3,size=5", 7),
        ("virus:seats=4,size=11,pattern=square", 6),
        ("virus:seats=6,size=7", 8),
    ] {
        slow_perft_agrees(text, &SlowVirus::new(text), depth);
    }
}

/// Compares the rules along random games from sparse random boards. Returns how often a seat went out.
struct Sparse<'a>(&'a SlowVirus, u64);

impl UniformVisitor for Sparse<'_> {
    type Output = u32;
    fn visit<G: Complete>(self, parameters: &Parameters) -> u32 {
        let (size, mut legal, mut went_out) = (self.0.rows.len(), Vec::new(), 0);
        for game in 0..self.1 {
            let mut random = seeded(mix(17, game));
            let mut rows = vec![vec![None; size]; size];
            for seat in 0..G::SEATS {
                // One or two squares each; a later seat may overwrite an earlier one's only square.
                for _ in 0..=below(&mut random, 2) {
                    rows[below(&mut random, size)][below(&mut random, size)] = Some(seat);
                }
            }
            let plies = below(&mut random, 3);
            let mut slow = self.0.with(rows, G::SEATS - 1, plies);
            let mut fast = G::from_position(parameters, &slow.text()).unwrap_or_else(|error| panic!("{error}"));
            for _ in 0..20 {
                assert_eq!(fast.position(), slow.text());
                let over = fast.turn() == Turn::Over;
                assert_eq!(over, slow.turn() == "over", "{}", slow.text());
                if over {
                    let payoffs: Vec<i32> = Seat::all(G::SEATS).map(|seat| fast.payoff(seat)).collect();
                    assert_eq!(payoffs, slow.payoffs(), "{}", slow.text());
                    break;
                }
                legal.clear();
                fast.moves(&mut legal);
                let mut texts: Vec<String> = legal.iter().map(|&mv| fast.move_text(mv)).collect();
                let mut expected = slow.legal();
                texts.sort_unstable();
                expected.sort_unstable();
                assert_eq!(texts, expected, "{}", slow.text());
                let standing = |slow: &SlowVirus| (0..G::SEATS).filter(|&seat| slow.squares_of(seat) > 0).count();
                let before = standing(&slow);
                let mv = legal[below(&mut random, legal.len())];
                slow.play(&fast.move_text(mv));
                fast.play(mv);
                went_out += (before - standing(&slow)) as u32;
            }
        }
        went_out
    }
}

#[test]
fn agrees_with_slow_rules_when_seats_go_out() {
    let went_out: Vec<u32> = ["virus:size=5", "virus:seats=3,size=4", "virus:seats=4,size=5,pattern=square"]
        .into_iter()
        .chain(["virus:seats=5,size=7", "virus:seats=6,size=11", "virus:seats=6,size=7,pattern=square"])
        .map(|text| spec(text).visit_any(Sparse(&SlowVirus::new(text), 200)))
        .collect();
    assert!(went_out.iter().all(|&seats| seats > 10), "{went_out:?}");
}

fn read<const SEATS: usize>(text: &str, position: &str) -> Result<Virus<SEATS>, String> {
    let spec = spec(text);
    assert_eq!(spec.parameters().seats(), SEATS);
    Virus::from_position(spec.parameters(), position).map_err(|error| error.to_string())
}

#[test]
fn seats_that_are_out_are_skipped() {
    // Seat 0 takes the last square of seat 1, and seat 2 is next.
    let mut virus: Virus<3> = read("virus:seats=3,size=4", "...2/..../1.../.0.. 0 0").unwrap();
    virus.play(virus.parse_move("a1").unwrap());
    assert_eq!((virus.turn(), virus.position().as_str()), (Turn::Player(Seat(2)), "...2/..../0.../00.. 2 1"));
    assert!(virus.reseat(Seat(1)).is_none() && virus.reseat(Seat(0)).is_some());
}

#[test]
fn last_seat_left_wins_immediately() {
    let mut virus: Virus<3> = read("virus:seats=3,size=4", "..../..../12../.0.. 0 5").unwrap();
    virus.play(virus.parse_move("b2").unwrap());
    assert_eq!((virus.turn(), virus.ending()), (Turn::Over, "last one in"));
    assert_eq!([0, 1, 2].map(|seat| virus.payoff(Seat(seat))), [60, 0, 0]);
    let mut virus: Virus<2> = read("virus:size=4", "..../..../1.../.0.. 0 5").unwrap();
    virus.play(virus.parse_move("a1").unwrap());
    assert_eq!((virus.turn(), [0, 1].map(|seat| virus.payoff(Seat(seat)))), (Turn::Over, [1, -1]));
}

#[test]
fn most_squares_win_at_ply_limit() {
    let payoffs = |position: &str| {
        let virus: Virus<3> = read("virus:seats=3,size=4", position).unwrap();
        assert_eq!((virus.turn(), virus.ending(), virus.ply_bound()), (Turn::Over, "ply limit", 18));
        [0, 1, 2].map(|seat| virus.payoff(Seat(seat)))
    };
    assert_eq!(payoffs("..11/...1/2.../000. 0 18"), [30, 30, 0]);
    assert_eq!(payoffs("..11/..../22../00.. 0 18"), [20, 20, 20]);
    assert_eq!(payoffs("..11/...1/22../0... 0 18"), [0, 60, 0]);
    let draw: Virus<2> = read("virus:size=4", "..11/..../..../00.. 0 16").unwrap();
    assert_eq!((draw.turn(), draw.payoff(Seat::FIRST)), (Turn::Over, 0));
}

struct FirstMoves;

impl UniformVisitor for FirstMoves {
    type Output = ();
    fn visit<G: Complete>(self, parameters: &Parameters) {
        // All first moves: no seat may be out before it has moved.
        let mut next = vec![G::initial(parameters).unwrap()];
        for seat in Seat::all(G::SEATS) {
            let mut random = seeded(u64::from(seat.0));
            let mut moves = Vec::new();
            let after: Vec<G> = next
                .iter()
                .flat_map(|position| {
                    assert_eq!(position.turn(), Turn::Player(seat), "{}", position.position());
                    moves.clear();
                    position.moves(&mut moves);
                    moves.iter().map(|&mv| (position.clone(), mv)).collect::<Vec<_>>()
                })
                .map(|(mut position, mv)| {
                    position.play(mv);
                    position
                })
                .collect();
            next = (0..200).map(|_| after[below(&mut random, after.len())].clone()).collect();
        }
    }
}

#[test]
fn no_seat_is_out_before_its_first_turn() {
    for (seats, size) in (2..=6).flat_map(|seats| (4..=11).map(move |size| (seats, size))) {
        for pattern in ["plus", "square"] {
            let game = spec(&format!("virus:seats={seats},size={size},pattern={pattern}"));
            if seats <= 4 || size >= 7 {
                game.visit_any(FirstMoves);
            } else {
                let error = match seats {
                    5 => Virus::<5>::initial(game.parameters()).unwrap_err(),
                    _ => Virus::<6>::initial(game.parameters()).unwrap_err(),
                };
                let reason = format!(
                    "virus: {seats} seats are too many for a board of size {size}; \
                     give a size of 7 or more, or at most 4 seats"
                );
                assert_eq!(error.to_string(), reason);
            }
        }
    }
}

/// The claim of the module header that justifies the short ply limit.
#[test]
fn plus_duel_reaches_ply_limit() {
    for size in 4..=7 {
        let text = format!("virus:size={size}");
        for seed in 0..100 {
            let start = Virus::<2>::initial(spec(&text).parameters()).unwrap();
            let (moves, end) = crate::harness::random_game(&start, seed);
            assert_eq!((moves.len() as u32, end.ending()), (start.ply_bound(), "ply limit"));
        }
    }
}

#[test]
fn rejects_invalid_positions() {
    for (text, reason) in [
        ("...1/..../..../0...", "it has 1 field instead of 3"),
        ("...1/..../..../0... 0", "it has 2 fields instead of 3"),
        ("...1/..../..../0... 0 0 0", "it has 4 fields instead of 3"),
        ("...1/..../0... 0 0", "4 rows of 4 squares"),
        ("...1/...../..../0... 0 0", "4 rows of 4 squares"),
        ("...1/..../..../0..2 0 0", "a square is 0, 1 or ."),
        ("...1/..../..../0..\u{e9} 0 0", "a square is 0, 1 or ."),
        ("...1/..../..../0... 2 0", "the seat to move is 0 or 1"),
        ("...1/..../..../0... +1 0", "the seat to move is 0 or 1"),
        ("...1/..../..../.... 0 0", "seat 0 is to move but has no square"),
        ("..../..../..../.... 0 0", "seat 0 is to move but has no square"),
        ("...1/..../..../0... 0 17", "a whole number from 0 to 16"),
        ("...1/..../..../0... 0 -1", "a whole number from 0 to 16"),
        ("...1/..../..../0... 0 +1", "a whole number from 0 to 16"),
        ("...1/..../..../0... 0 99999999999", "a whole number from 0 to 16"),
        ("...1/..../..../0... 0 ", "a whole number from 0 to 16"),
    ] {
        let error = read::<2>("virus:size=4", text).unwrap_err();
        assert!(error.contains(reason), "{text}: {error}");
    }
}

/// Every text one edit away from a valid one is rejected or is a position that round-trips.
#[test]
fn edited_positions_never_panic() {
    let text = "..11/.2.1/.20./0000 2 7";
    for at in 0..=text.len() {
        for with in ["", " ", "/", ".", "0", "3", "9", "-", "\u{e9}"] {
            for cut in 0..=2.min(text.len() - at) {
                let edited = format!("{}{with}{}", &text[..at], &text[at + cut..]);
                if let Ok(position) = read::<3>("virus:seats=3,size=4", &edited) {
                    let again = read::<3>("virus:seats=3,size=4", &position.position());
                    assert_eq!(again.as_ref(), Ok(&position), "{edited}");
                }
            }
        }
    }
}

/// Returns the drawn board by square.
fn squares<G: Notation>(position: &G) -> Vec<char> {
    position.position().split(' ').next().unwrap().chars().filter(|&symbol| symbol != '/').collect()
}

/// Computes the safe squares and the best strike by playing every move of every seat.
fn brute_features<const SEATS: usize>(position: &Virus<SEATS>) -> (Vec<i32>, Vec<i32>) {
    let before = squares(position);
    let symbol = |seat: Seat| char::from(b'0' + seat.0);
    let mut safe: Vec<Vec<bool>> = Seat::all(SEATS)
        .map(|seat| before.iter().map(|&holder| holder == symbol(seat)).collect())
        .collect();
    let mut strikes = vec![0; SEATS];
    for seat in Seat::all(SEATS) {
        let Some(mut reseated) = position.reseat(seat) else { continue };
        let mut moves = Vec::new();
        reseated.moves(&mut moves);
        for mv in moves {
            let promise = reseated.promise(mv);
            let after = reseated.after(mv, |next| squares(next));
            let worth = |(from, to): (&char, &char)| match *from {
                _ if from == to => 0,
                '.' => 1,
                _ => 2,
            };
            let won: i32 = before.iter().zip(&after).map(worth).sum();
            assert_eq!(won, promise);
            strikes[seat.index()] = won.max(strikes[seat.index()]);
            for safe in &mut safe {
                for (square, safe) in safe.iter_mut().enumerate() {
                    *safe &= before[square] == after[square];
                }
            }
        }
    }
    let contrast = |numbers: Vec<i32>| {
        let sum: i32 = numbers.iter().sum();
        numbers.into_iter().map(|own| SEATS as i32 * own - sum).collect()
    };
    let safe = safe.into_iter().map(|safe| safe.into_iter().filter(|&safe| safe).count() as i32).collect();
    (contrast(safe), contrast(strikes))
}

fn features_agree<const SEATS: usize>(text: &str) {
    let mut position = Virus::<SEATS>::initial(spec(text).parameters()).unwrap();
    let (mut random, mut scratch) = (seeded(5), Vec::new());
    while position.turn() != Turn::Over {
        let (safe, strikes) = brute_features(&position);
        for seat in Seat::all(SEATS) {
            let mut values = [0; 5];
            position.features(seat, FeatureSet::ALL, &mut values);
            assert_eq!(values[1..3], [safe[seat.index()], strikes[seat.index()]], "{}", position.position());
        }
        let mv = position.sample(&mut random, &mut scratch);
        position.play(mv);
    }
}

#[test]
fn features_agree_with_playing_every_move() {
    features_agree::<2>("virus:size=11");
    features_agree::<2>("virus:size=11,pattern=square");
    features_agree::<3>("virus:seats=3,size=8");
    features_agree::<6>("virus:seats=6,size=7,pattern=square");
}
