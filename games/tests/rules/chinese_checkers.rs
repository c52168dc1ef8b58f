//! Chinese checkers: slow rules on the drawn star, with names of holes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use agon_games::chinese_checkers::ChineseCheckers;
use agon_games::random::seeded;
use agon_games::{Game, Notation, Parameters, Seat, Setup, Turn};

use crate::harness::{Slow, Variant, agree, slow_perft_agrees};

pub const VARIANTS: &[Variant] = &[
    ("chinese-checkers", 8),
    ("chinese-checkers:seats=3", 4),
    ("chinese-checkers:seats=4", 4),
    ("chinese-checkers:seats=6", 4),
];

/// The number of holes of each row of the drawn star.
const WIDTHS: [usize; 17] = [1, 2, 3, 4, 13, 12, 11, 10, 9, 10, 11, 12, 13, 4, 3, 2, 1];

/// Row and column on the drawing: neighbours in a row are two columns apart, rows are shifted by one.
type Spot = (i32, i32);

fn spot(row: usize, index: usize) -> Spot {
    (row as i32, (13 - WIDTHS[row] + 2 * index) as i32)
}

fn star() -> BTreeMap<Spot, String> {
    let mut star = BTreeMap::new();
    for (row, &width) in WIDTHS.iter().enumerate() {
        for index in 0..width {
            star.insert(spot(row, index), format!("{}{}", char::from(b'a' + row as u8), index + 1));
        }
    }
    star
}

const AROUND: [Spot; 6] = [(0, 2), (0, -2), (1, 1), (1, -1), (-1, 1), (-1, -1)];

/// Returns the holes and the tip of a triangle, counted clockwise from the top.
fn triangle(number: usize) -> (BTreeSet<Spot>, Spot) {
    let (rows, tip): ([(usize, usize, usize); 4], Spot) = match number {
        0 => ([(0, 0, 1), (1, 0, 2), (2, 0, 3), (3, 0, 4)], spot(0, 0)),
        1 => ([(4, 9, 4), (5, 9, 3), (6, 9, 2), (7, 9, 1)], spot(4, 12)),
        2 => ([(9, 9, 1), (10, 9, 2), (11, 9, 3), (12, 9, 4)], spot(12, 12)),
        3 => ([(13, 0, 4), (14, 0, 3), (15, 0, 2), (16, 0, 1)], spot(16, 0)),
        4 => ([(9, 0, 1), (10, 0, 2), (11, 0, 3), (12, 0, 4)], spot(12, 0)),
        _ => ([(4, 0, 4), (5, 0, 3), (6, 0, 2), (7, 0, 1)], spot(4, 0)),
    };
    let holes = rows.iter().flat_map(|&(row, first, count)| (first..first + count).map(move |i| spot(row, i)));
    (holes.collect(), tip)
}

/// Returns the steps from every hole to a tip on the empty star.
fn steps_to(tip: Spot) -> BTreeMap<Spot, i32> {
    let star = star();
    let mut steps = BTreeMap::from([(tip, 0)]);
    let mut queue = VecDeque::from([tip]);
    while let Some(at) = queue.pop_front() {
        for (down, right) in AROUND {
            let next = (at.0 + down, at.1 + right);
            if star.contains_key(&next) && !steps.contains_key(&next) {
                steps.insert(next, steps[&at] + 1);
                queue.push_back(next);
            }
        }
    }
    steps
}

/// Pieces by their spot on the drawn star.
#[derive(Clone)]
struct SlowChineseCheckers {
    seats: usize,
    star: BTreeMap<Spot, String>,
    pieces: BTreeMap<Spot, usize>,
    plies: usize,
}

impl SlowChineseCheckers {
    fn new(seats: usize) -> SlowChineseCheckers {
        let mut pieces = BTreeMap::new();
        for seat in 0..seats {
            for hole in triangle(SlowChineseCheckers::homes(seats)[seat]).0 {
                pieces.insert(hole, seat);
            }
        }
        SlowChineseCheckers { seats, star: star(), pieces, plies: 0 }
    }

    fn homes(seats: usize) -> &'static [usize] {
        match seats {
            2 => &[0, 3],
            3 => &[0, 2, 4],
            4 => &[0, 1, 3, 4],
            _ => &[0, 1, 2, 3, 4, 5],
        }
    }

    fn target(&self, seat: usize) -> (BTreeSet<Spot>, Spot) {
        triangle((SlowChineseCheckers::homes(self.seats)[seat] + 3) % 6)
    }

    fn mover(&self) -> usize {
        self.plies % self.seats
    }

    fn winner(&self) -> Option<usize> {
        (0..self.seats).find(|&seat| {
            let target = self.target(seat).0;
            target.iter().all(|hole| self.pieces.contains_key(hole))
                && target.iter().any(|hole| self.pieces[hole] == seat)
        })
    }

    fn ends_from(&self, from: Spot) -> BTreeSet<Spot> {
        let mut others = self.pieces.clone();
        others.remove(&from);
        let free = |spot: &Spot| self.star.contains_key(spot) && !others.contains_key(spot);
        let mut ends = BTreeSet::new();
        let mut jumped = vec![from];
        while let Some(at) = jumped.pop() {
            for (down, right) in AROUND {
                let next = (at.0 + down, at.1 + right);
                let landing = (at.0 + 2 * down, at.1 + 2 * right);
                if others.contains_key(&next) && free(&landing) && ends.insert(landing) {
                    jumped.push(landing);
                }
            }
        }
        for (down, right) in AROUND {
            let next = (from.0 + down, from.1 + right);
            if free(&next) {
                ends.insert(next);
            }
        }
        ends.remove(&from);
        let seat = self.pieces[&from];
        let home = SlowChineseCheckers::homes(self.seats)[seat];
        for foreign in (0..6).filter(|&other| other != home && other != (home + 3) % 6) {
            for hole in triangle(foreign).0 {
                ends.remove(&hole);
            }
        }
        ends
    }
}

impl Slow for SlowChineseCheckers {
    fn turn(&self) -> String {
        if self.winner().is_some() || self.plies == 150 * self.seats {
            "over".to_string()
        } else {
            format!("seat {}", self.mover())
        }
    }

    fn legal(&self) -> Vec<String> {
        if self.turn() == "over" {
            return Vec::new();
        }
        let mut legal = Vec::new();
        for (&from, _) in self.pieces.iter().filter(|(_, seat)| **seat == self.mover()) {
            for to in self.ends_from(from) {
                legal.push(format!("{}-{}", self.star[&from], self.star[&to]));
            }
        }
        if legal.is_empty() { vec!["pass".to_string()] } else { legal }
    }

    fn play(&mut self, text: &str) {
        if let Some((from, to)) = text.split_once('-') {
            let named = |name: &str| *self.star.iter().find(|(_, known)| *known == name).unwrap().0;
            let (from, to) = (named(from), named(to));
            let seat = self.pieces.remove(&from).unwrap();
            self.pieces.insert(to, seat);
        }
        self.plies += 1;
    }

    fn payoffs(&self) -> Vec<i32> {
        let left = |seat: usize| {
            let steps = steps_to(self.target(seat).1);
            self.pieces.iter().filter(|(_, owner)| **owner == seat).map(|(hole, _)| steps[hole]).sum::<i32>()
        };
        let winners: Vec<usize> = match self.winner() {
            Some(seat) => vec![seat],
            None => {
                let least = (0..self.seats).map(left).min().unwrap();
                (0..self.seats).filter(|&seat| left(seat) == least).collect()
            }
        };
        let share = |seat: usize| match (self.seats, winners.contains(&seat)) {
            (2, _) if winners.len() == 2 => 0,
            (2, true) => 1,
            (2, false) => -1,
            (_, true) => 60 / winners.len() as i32,
            (_, false) => 0,
        };
        (0..self.seats).map(share).collect()
    }
}

#[test]
fn agrees_with_slow_rules() {
    agree("chinese-checkers", &SlowChineseCheckers::new(2), 1, 4);
    agree("chinese-checkers:seats=3", &SlowChineseCheckers::new(3), 2, 2);
    agree("chinese-checkers:seats=4", &SlowChineseCheckers::new(4), 3, 2);
    agree("chinese-checkers:seats=6", &SlowChineseCheckers::new(6), 4, 1);
}

#[test]
fn perft_agrees_with_slow_rules() {
    slow_perft_agrees("chinese-checkers", &SlowChineseCheckers::new(2), 3);
    slow_perft_agrees("chinese-checkers:seats=3", &SlowChineseCheckers::new(3), 3);
    slow_perft_agrees("chinese-checkers:seats=4", &SlowChineseCheckers::new(4), 3);
    slow_perft_agrees("chinese-checkers:seats=6", &SlowChineseCheckers::new(6), 3);
}

fn parameters() -> Parameters {
    Parameters::defaults(ChineseCheckers::<2>::PARAMETERS)
}

fn legal<const SEATS: usize>(position: &ChineseCheckers<SEATS>) -> Vec<String> {
    let mut moves = Vec::new();
    position.moves(&mut moves);
    moves.into_iter().map(|mv| position.move_text(mv)).collect()
}

/// Returns the position text for the names of each seat's pieces.
fn text(pieces: &[&str], mover: char, plies: u32) -> String {
    let rows = WIDTHS.iter().enumerate().map(|(row, &width)| {
        let symbol = |index: usize| {
            let name = format!("{}{}", char::from(b'a' + row as u8), index + 1);
            let seat = pieces.iter().position(|names| names.split(' ').any(|known| known == name));
            seat.map_or('.', |seat| char::from(b'A' + seat as u8))
        };
        (0..width).map(symbol).collect::<String>()
    });
    format!("{} {mover} {plies}", rows.collect::<Vec<_>>().join("/"))
}

fn set<const SEATS: usize>(pieces: &[&str; SEATS], mover: char, plies: u32) -> ChineseCheckers<SEATS> {
    ChineseCheckers::from_position(&parameters(), &text(pieces, mover, plies)).unwrap()
}

#[test]
fn fourteen_first_moves_for_every_number_of_seats() {
    fn first<const SEATS: usize>() -> usize {
        legal(&ChineseCheckers::<SEATS>::initial(&parameters()).unwrap()).len()
    }
    assert_eq!([first::<2>(), first::<3>(), first::<4>(), first::<6>()], [14; 4]);
}

/// Follows playouts with both implementations: unlike uniform games, they end with a full target.
#[test]
fn playouts_agree_with_slow_rules() {
    fn playouts<const SEATS: usize>(games: u64) {
        for seed in 0..games {
            let mut position = ChineseCheckers::<SEATS>::initial(&parameters()).unwrap();
            let mut paper = SlowChineseCheckers::new(SEATS);
            let mut random = seeded(seed);
            let mut scratch = Vec::new();
            while position.turn() != Turn::Over {
                let mv = position.rollout(&mut random, &mut scratch);
                let text = position.move_text(mv);
                position.play(mv);
                paper.play(&text);
                assert_eq!(paper.turn() == "over", position.turn() == Turn::Over);
            }
            assert_eq!(position.ending(), "target full");
            let payoffs: Vec<i32> = Seat::all(SEATS).map(|seat| position.payoff(seat)).collect();
            assert_eq!(payoffs, paper.payoffs());
        }
    }
    playouts::<2>(20);
    playouts::<3>(5);
    playouts::<4>(5);
    playouts::<6>(3);
}

#[test]
fn piece_left_at_home_does_not_block_a_win() {
    let ours = "m5 e7 n2 n3 n4 o1 o2 o3 p1 p2";
    let theirs = "q1 e5 e6 f5 f6 f7 g5 g6 g7 g8";
    let mut position = set(&[ours, theirs], 'A', 100);
    assert_eq!(position.turn(), Turn::Player(Seat::FIRST));
    position.play(position.parse_move("m5-n1").unwrap());
    assert_eq!((position.turn(), position.ending()), (Turn::Over, "target full"));
    assert_eq!([0, 1].map(|seat| position.payoff(Seat(seat))), [1, -1]);

    // A piece that returns home and fills the last hole completes the other seat's win.
    let mut position = set(&["k5 e7 n2 n3 n4 o1 o2 o3 p1 p2", "q1 m5 e6 f5 f6 f7 g5 g6 g7 g8"], 'B', 101);
    position.play(position.parse_move("m5-n1").unwrap());
    assert_eq!((position.turn(), position.ending()), (Turn::Over, "target full"));
    assert_eq!([0, 1].map(|seat| position.payoff(Seat(seat))), [1, -1]);
}

#[test]
fn fewest_steps_win_at_ply_limit() {
    let home = "a1 b1 b2 c1 c2 c3 d1 d2 d3 d4";
    let away = "q1 p1 p2 o1 o2 o3 n1 n2 n3 n4";
    let mut level = set(&[home, away], 'A', 298);
    for text in ["d1-e5", "n1-m5"] {
        level.play(level.parse_move(text).unwrap());
    }
    assert_eq!((level.turn(), level.ending(), level.payoff(Seat::FIRST)), (Turn::Over, "ply limit", 0));
    let mut ahead = set(&[home, away], 'B', 299);
    ahead.play(ahead.parse_move("n1-m5").unwrap());
    assert_eq!((ahead.turn(), ahead.payoff(Seat::SECOND)), (Turn::Over, 1));
}

#[test]
fn blocked_seat_passes() {
    let walled = "a1 b1 b2 c1 c2 c3 d1 d2 d3 d4";
    let wall = "e5 e6 e7 e8 e9 f4 f5 f6 f7 f8";
    let rest = "f9 m1 m2 m3 m4 l1 l2 l3 k1 k2";
    let mut position = set(&[walled, wall, rest], 'A', 30);
    assert_eq!(legal(&position), ["pass"]);
    position.play(position.parse_move("pass").unwrap());
    assert_eq!(position.turn(), Turn::Player(Seat(1)));
    assert!(legal(&position).len() > 1);
}

#[test]
fn foreign_triangles_allow_passing_but_not_staying() {
    // From e6 over e5 into the upper left triangle at e4, and on over f4 out of it to g4.
    let position = set(&["e6 f4 b1 b2 c1 c2 c3 d1 d2 d3", "e5 p2 p1 n1 n2 n3 n4 o1 o2 o3"], 'A', 10);
    let moves = legal(&position);
    assert!(moves.contains(&"e6-g4".to_string()), "{moves:?}");
    assert!(!moves.contains(&"e6-e4".to_string()), "{moves:?}");
}

#[test]
fn moves_are_drawn_uniformly() {
    let mut position = ChineseCheckers::<2>::initial(&parameters()).unwrap();
    let mut random = seeded(3);
    let mut scratch = Vec::new();
    for _ in 0..41 {
        let mv = position.sample(&mut random, &mut scratch);
        position.play(mv);
    }
    let mut moves = Vec::new();
    position.moves(&mut moves);
    let mut seen = vec![0u32; moves.len()];
    let draws = 2000 * moves.len();
    for _ in 0..draws {
        let drawn = position.sample(&mut random, &mut scratch);
        seen[moves.iter().position(|&mv| mv == drawn).unwrap()] += 1;
    }
    // Five standard deviations of a count of mean 2000.
    assert!(seen.iter().all(|&count| count.abs_diff(2000) < 224), "{seen:?}");
}

#[test]
fn rejects_impossible_positions() {
    let good = ChineseCheckers::<2>::initial(&parameters()).unwrap().position();
    let refused = |text: &str| {
        let error = ChineseCheckers::<2>::from_position(&parameters(), text).unwrap_err().to_string();
        assert!(error.contains("chinese-checkers: the position is not valid"), "{error}");
    };
    refused(&good.replace(" A 0", " C 0"));
    refused(&good.replace(" A 0", " A 301"));
    refused(&good.replace(" A 0", " B 0"));
    refused(&good.replace(" A 0", " A 1"));
    refused(&good.replace(" A 0", " A 00"));
    refused(&good.replace(" A 0", " A -1"));
    refused(&good.replace(" A 0", " A +1"));
    refused(&good.replace(" A 0", " A"));
    refused(&good.replace(" A 0", "  A 0"));
    refused(&good.replacen("A/AA", "B/AA", 1));
    refused(&good.replacen("A/AA", "./AA", 1));
    refused(&good.replacen("A/AA", "A/AAA", 1));
    refused(&good.replacen('A', "\u{1f600}", 1));
    refused(&good.replacen("A/AA/AAA/AAAA/.", "./AA/AAA/AAAA/A", 1));
    for cut in 0..good.len() {
        refused(&good[..cut]);
    }
}
