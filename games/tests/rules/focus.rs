//! Focus: slow rules with stacks as strings.

use std::collections::BTreeMap;

use agon_games::focus::Focus;
use agon_games::random::seeded;
use agon_games::{Game, Noisy, Notation, Parameters, Reseat, Seat, Setup, Turn};

use crate::harness::{Slow, Variant, agree, slow_perft_agrees};

pub const VARIANTS: &[Variant] = &[("focus", 20), ("focus:seats=3", 10), ("focus:seats=4", 10)];

/// Stacks of letters from bottom to top by square name; empty squares have empty strings.
#[derive(Clone)]
struct SlowFocus {
    seats: usize,
    stacks: BTreeMap<String, String>,
    reserves: Vec<u32>,
    out: Vec<bool>,
    mover: usize,
    plies: usize,
}

const COLUMNS: &str = "abcdefgh";

fn letter(seat: usize) -> char {
    "ABCD".chars().nth(seat).unwrap()
}

impl SlowFocus {
    /// Creates a first position from eight lines from the top, with blanks for missing squares.
    fn new(seats: usize, lines: [&str; 8]) -> SlowFocus {
        let mut stacks = BTreeMap::new();
        for (line, row) in lines.iter().zip((1..=8).rev()) {
            for (symbol, column) in line.chars().zip(COLUMNS.chars()).filter(|(symbol, _)| *symbol != ' ') {
                let stack = if symbol == '.' { String::new() } else { symbol.to_string() };
                stacks.insert(format!("{column}{row}"), stack);
            }
        }
        assert_eq!(stacks.len(), 52);
        SlowFocus { seats, stacks, reserves: vec![0; seats], out: vec![false; seats], mover: 0, plies: 0 }
    }

    fn two() -> SlowFocus {
        SlowFocus::new(
            2,
            [
                "  ....  ", " AABBAA ", ".BBAABB.", ".AABBAA.", ".BBAABB.", ".AABBAA.", " BBAABB ", "  ....  ",
            ],
        )
    }

    fn three() -> SlowFocus {
        SlowFocus::new(
            3,
            [
                "  ....  ", " AABBCC ", ".BBCCAA.", ".CCAABB.", ".AABBCC.", ".BBCCAA.", " CCAABB ", "  ....  ",
            ],
        )
    }

    fn four() -> SlowFocus {
        SlowFocus::new(
            4,
            [
                "  AACB  ", " BBBCBC ", "AAAACBCB", "BBBBCBCB", "DADADDDD", "DADACCCC", " ADADDD ", "  DACC  ",
            ],
        )
    }

    fn controlled(&self, seat: usize) -> Vec<&String> {
        self.stacks.iter().filter(|(_, stack)| stack.ends_with(letter(seat))).map(|(square, _)| square).collect()
    }

    fn can_move(&self, seat: usize) -> bool {
        self.reserves[seat] > 0 || !self.controlled(seat).is_empty()
    }

    /// Returns the square at a distance, if there is one.
    fn away(&self, square: &str, columns: i32, rows: i32) -> Option<String> {
        let column = COLUMNS.find(&square[..1])? as i32 + columns;
        let row: i32 = square[1..].parse::<i32>().ok()? + rows;
        let name = format!("{}{row}", COLUMNS.chars().nth(usize::try_from(column).ok()?)?);
        self.stacks.contains_key(&name).then_some(name)
    }
}

impl Slow for SlowFocus {
    fn turn(&self) -> String {
        let left = self.out.iter().filter(|out| !**out).count();
        if left == 1 || self.plies == 100 * self.seats { "over".to_string() } else { format!("seat {}", self.mover) }
    }

    fn legal(&self) -> Vec<String> {
        let mut legal = Vec::new();
        if self.turn() == "over" {
            return legal;
        }
        for from in self.controlled(self.mover) {
            for taken in 1..=self.stacks[from].len() as i32 {
                for (columns, rows) in [(taken, 0), (-taken, 0), (0, taken), (0, -taken)] {
                    legal.extend(self.away(from, columns, rows).map(|to| format!("{from}-{to}")));
                }
            }
        }
        if self.reserves[self.mover] > 0 {
            legal.extend(self.stacks.keys().map(|square| format!("@{square}")));
        }
        legal
    }

    fn play(&mut self, text: &str) {
        let (to, moved) = if let Some(square) = text.strip_prefix('@') {
            self.reserves[self.mover] -= 1;
            (square, letter(self.mover).to_string())
        } else {
            let (from, to) = text.split_once('-').unwrap();
            let place = |square: &str| {
                (COLUMNS.find(&square[..1]).unwrap() as i32, square[1..].parse::<i32>().unwrap())
            };
            let ((c, r), (d, s)) = (place(from), place(to));
            let squares = ((c - d).abs() + (r - s).abs()) as usize;
            let stack = self.stacks.get_mut(from).unwrap();
            let moved = stack.split_off(stack.len() - squares);
            (to, moved)
        };
        let stack = self.stacks.get_mut(to).unwrap();
        stack.push_str(&moved);
        while stack.len() > 5 {
            if stack.remove(0) == letter(self.mover) {
                self.reserves[self.mover] += 1;
            }
        }
        self.plies += 1;
        let mover = self.mover;
        for further in 1..=self.seats {
            let next = (mover + further) % self.seats;
            if next == mover || !self.out[next] && self.can_move(next) {
                self.mover = next;
                break;
            }
            self.out[next] = true;
        }
    }

    fn payoffs(&self) -> Vec<i32> {
        let holdings = |seat: usize| self.controlled(seat).len() + self.reserves[seat] as usize;
        let most = (0..self.seats).filter(|&seat| !self.out[seat]).map(holdings).max().unwrap();
        let won = |seat: usize| !self.out[seat] && holdings(seat) == most;
        let winners = (0..self.seats).filter(|&seat| won(seat)).count() as i32;
        let share = |seat: usize| match (self.seats, won(seat)) {
            (2, _) if winners == 2 => 0,
            (2, true) => 1,
            (2, false) => -1,
            (_, true) => 60 / winners,
            (_, false) => 0,
        };
        (0..self.seats).map(share).collect()
    }
}

#[test]
fn agrees_with_slow_rules() {
    agree("focus", &SlowFocus::two(), 1, 40);
    agree("focus:seats=3", &SlowFocus::three(), 2, 30);
    agree("focus:seats=4", &SlowFocus::four(), 3, 20);
}

/// Follows playouts with both implementations: unlike uniform games, they eliminate seats.
#[test]
fn playouts_agree_with_slow_rules() {
    fn playouts<const SEATS: usize>(start: &SlowFocus, games: u64) {
        let mut ended_early = 0;
        for seed in 0..games {
            let mut position = Focus::<SEATS>::initial(&parameters()).unwrap();
            let mut paper = start.clone();
            let mut random = seeded(seed);
            let mut scratch = Vec::new();
            while let Turn::Player(seat) = position.turn() {
                assert_eq!(paper.turn(), format!("seat {}", seat.0));
                assert_eq!(paper.legal().len() as u64, position.count(&mut scratch));
                let mv = position.rollout(&mut random, &mut scratch);
                let text = position.move_text(mv);
                position.play(mv);
                paper.play(&text);
            }
            assert_eq!(paper.turn(), "over");
            ended_early += u32::from(position.ending() == "all others out");
            let payoffs: Vec<i32> = Seat::all(SEATS).map(|seat| position.payoff(seat)).collect();
            assert_eq!(payoffs, paper.payoffs());
        }
        assert!(SEATS == 2 || ended_early > 0);
    }
    playouts::<2>(&SlowFocus::two(), 40);
    playouts::<3>(&SlowFocus::three(), 30);
    playouts::<4>(&SlowFocus::four(), 20);
}

#[test]
fn perft_agrees_with_slow_rules() {
    slow_perft_agrees("focus", &SlowFocus::two(), 3);
    slow_perft_agrees("focus:seats=3", &SlowFocus::three(), 3);
    slow_perft_agrees("focus:seats=4", &SlowFocus::four(), 3);
}

fn parameters() -> Parameters {
    Parameters::defaults(Focus::<2>::PARAMETERS)
}

/// Creates a position from a few stacks.
fn set<const SEATS: usize>(stacks: &[(&str, &str)], rest: &str) -> Focus<SEATS> {
    let rows = (1..=8).rev().map(|row| {
        let columns = match row {
            1 | 8 => "cdef",
            2 | 7 => "bcdefg",
            _ => COLUMNS,
        };
        let cell = |column: char| {
            let name = format!("{column}{row}");
            stacks.iter().find(|(square, _)| *square == name).map_or(".", |(_, stack)| stack)
        };
        columns.chars().map(cell).collect::<Vec<_>>().join(",")
    });
    let text = format!("{} {rest}", rows.collect::<Vec<_>>().join("/"));
    Focus::from_position(&parameters(), &text).unwrap_or_else(|error| panic!("{error}"))
}

fn play<const SEATS: usize>(position: &mut Focus<SEATS>, text: &str) {
    position.play(position.parse_move(text).unwrap_or_else(|| panic!("{text} is not legal")));
}

/// Checks the stacks and the rest of a position text.
fn stack<const SEATS: usize>(position: &Focus<SEATS>, stacks: &[(&str, &str)], rest: &str) {
    assert_eq!(position.position(), set::<SEATS>(stacks, rest).position());
}

#[test]
fn high_stack_loses_its_bottom() {
    let mut position = set::<2>(&[("d3", "BAA"), ("d5", "ABAB"), ("h3", "B")], "A 0,0 - 10");
    let mut noisy = Vec::new();
    position.noisy_moves(&mut noisy);
    assert_eq!(noisy.len(), 0);
    play(&mut position, "d3-d5");
    stack(&position, &[("d3", "B"), ("d5", "BABAA"), ("h3", "B")], "B 1,0 - 11");
    play(&mut position, "h3-g3");
    // A placed piece also pushes one out, here one of the other side.
    let mut noisy = Vec::new();
    position.noisy_moves(&mut noisy);
    let noisy: Vec<String> = noisy.into_iter().map(|mv| position.move_text(mv)).collect();
    assert_eq!(noisy, ["@d5"]);
    play(&mut position, "@d5");
    stack(&position, &[("d3", "B"), ("d5", "ABAAA"), ("g3", "B")], "B 0,0 - 13");
}

#[test]
fn duel_ends_when_other_side_cannot_move() {
    let mut position = set::<2>(&[("d3", "A"), ("d4", "B")], "A 0,0 - 7");
    play(&mut position, "d3-d4");
    assert_eq!((position.turn(), position.ending()), (Turn::Over, "all others out"));
    assert_eq!([0, 1].map(|seat| position.payoff(Seat(seat))), [1, -1]);
    assert!(position.position().ends_with(" A 0,0 B 8"));
}

#[test]
fn seat_that_is_out_stays_out() {
    // A covers B's only stack, so B is skipped and out. C uncovers it, but B stays out.
    let mut position = set::<3>(&[("d3", "A"), ("d4", "B"), ("h4", "C"), ("a4", "A")], "A 0,0,0 - 0");
    play(&mut position, "d3-d4");
    assert_eq!(position.turn(), Turn::Player(Seat(2)));
    assert!(position.position().ends_with(" C 0,0,0 B 1"));
    assert_eq!(position.reseat(Seat(1)), None);
    play(&mut position, "h4-h5");
    play(&mut position, "d4-d5");
    assert_eq!(position.turn(), Turn::Player(Seat(2)));
    play(&mut position, "h5-h4");
    assert_eq!(position.turn(), Turn::Player(Seat(0)));
    assert_eq!(position.reseat(Seat(1)), None);
}

#[test]
fn seat_with_recovered_stack_is_not_out() {
    // B has no stack after A's move of d3, but C uncovers one before B's turn.
    let mut position = set::<3>(&[("d3", "A"), ("d4", "B"), ("f6", "BC")], "C 0,0,0 - 2");
    play(&mut position, "f6-f5");
    assert_eq!(position.turn(), Turn::Player(Seat(0)));
    play(&mut position, "d3-d4");
    assert_eq!(position.turn(), Turn::Player(Seat(1)));
}

#[test]
fn most_stacks_and_reserves_win_at_ply_limit() {
    let mut position = set::<3>(&[("d3", "A"), ("d5", "B"), ("f6", "C"), ("f5", "C")], "A 2,2,0 - 299");
    play(&mut position, "d3-c3");
    assert_eq!((position.turn(), position.ending()), (Turn::Over, "ply limit"));
    assert_eq!([0, 1, 2].map(|seat| position.payoff(Seat(seat))), [30, 30, 0]);
}

#[test]
fn first_positions_have_documented_symmetry() {
    // A quarter turn clockwise takes d8 to h5, and seat 0 to seat 1.
    let four = SlowFocus::four();
    for (square, stack) in &four.stacks {
        let (column, row) = (COLUMNS.find(&square[..1]).unwrap(), square[1..].parse::<usize>().unwrap());
        let turned = format!("{}{}", &COLUMNS[row - 1..row], 8 - column);
        let next = "BCDA".chars().nth("ABCD".find(stack.as_str()).unwrap()).unwrap();
        assert_eq!(four.stacks[&turned], next.to_string(), "{square}");
    }
    let three = SlowFocus::three();
    for (square, stack) in &three.stacks {
        let (column, row) = (COLUMNS.find(&square[..1]).unwrap(), square[1..].parse::<usize>().unwrap());
        let turned = format!("{}{}", &COLUMNS[7 - column..8 - column], 9 - row);
        let next = stack.replace('A', "a").replace('B', "A").replace('a', "B");
        assert_eq!(three.stacks[&turned], next, "{square}");
    }
}

#[test]
fn moves_are_drawn_uniformly() {
    let position = set::<2>(&[("d3", "BAA"), ("d5", "ABABA"), ("a3", "A")], "A 1,0 - 10");
    let (mut moves, mut scratch, mut random) = (Vec::new(), Vec::new(), seeded(5));
    position.moves(&mut moves);
    let mut seen = vec![0u32; moves.len()];
    for _ in 0..2000 * moves.len() {
        let drawn = position.sample(&mut random, &mut scratch);
        seen[moves.iter().position(|&mv| mv == drawn).unwrap()] += 1;
    }
    // Five standard deviations of a count of mean 2000.
    assert!(seen.iter().all(|&count| count.abs_diff(2000) < 224), "{seen:?}");
}

#[test]
fn rejects_impossible_positions() {
    let good = Focus::<2>::initial(&parameters()).unwrap().position();
    let refused = |text: &str| {
        let error = Focus::<2>::from_position(&parameters(), text).unwrap_err().to_string();
        assert!(error.contains("focus: the position is not valid"), "{error}");
    };
    for (part, bad) in [
        (" A 0,0", " C 0,0"),
        (" A 0,0", " AB 0,0"),
        (" A 0,0", " A 0"),
        (" A 0,0", " A 1,0"),
        (" A 0,0", " A 0,0,0"),
        (" A 0,0", " A 00,0"),
        (" A 0,0", " A 0,99999999999"),
        (" - 0", " A 0"),
        (" - 0", " C 0"),
        (" - 0", " BB 0"),
        (" - 0", " -B 0"),
        (" - 0", "  0"),
        (" - 0", " - 201"),
        (" - 0", " - -1"),
        (" - 0", " - +1"),
        ("A,A,B,B,A,A", "A,A,B,B,A"),
        ("A,A,B,B,A,A", "A,A,B,B,A,"),
        ("A,A,B,B,A,A", "A,A,B,B,A,C"),
        ("A,A,B,B,A,A", "A,A,B,B,A,\u{1f600}"),
        ("A,A,B,B,A,A", "A,A,B,B,A,BBBBBB"),
        ("A,A,B,B,A,A", "A,A,B,B,A,AA"),
        (".,.,.,./", "/"),
    ] {
        refused(&good.replacen(part, bad, 1));
    }
    for cut in 0..good.len() {
        refused(&good[..cut]);
    }
    // No seat has a move; far too many pieces.
    refused(".,.,.,./.,.,.,.,.,./.,.,.,.,.,.,.,./.,.,.,.,.,.,.,./.,.,.,.,.,.,.,./.,.,.,.,.,.,.,./.,.,.,.,.,./.,.,.,. A 0,0 - 0");
    refused(&good.replace('.', "AAAAA"));
}
