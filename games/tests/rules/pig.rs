//! Pig: the value of the game, and slow rules on a list of plies.

use agon_games::pig::Pig;
use agon_games::random::{below, seeded};
use agon_games::{Game, GameSpec, Notation, Parameters, Seat, Setup, SetupError, Turn};

use crate::harness::{self, Slow, Variant};

pub const VARIANTS: &[Variant] = &[("pig", 40), ("pig:target=2", 300), ("pig:target=20", 200)];

#[test]
fn laws_hold_with_largest_target() {
    // Not among the variants, because its playthrough would be long.
    harness::laws(&[("pig:target=1000", 2)]);
}

fn parameters(target: u32) -> Parameters {
    GameSpec::parse(&format!("pig:target={target}")).unwrap().parameters().clone()
}

fn read(target: u32, text: &str) -> Result<Pig, SetupError> {
    Pig::from_position(&parameters(target), text)
}

fn legal(position: &Pig) -> Vec<String> {
    let mut moves = Vec::new();
    position.moves(&mut moves);
    moves.into_iter().map(|mv| position.move_text(mv)).collect()
}

/// The probability that the mover wins under optimal play, by the mover's score, the other's score and the turn's total:
/// value iteration by Neller and Presser (2004), for pairs of scores from the highest down. Independent of the game's
/// code.
struct Solved {
    target: usize,
    chances: Vec<f64>,
}

impl Solved {
    fn new(target: usize) -> Solved {
        let mut solved = Solved { target, chances: vec![0.5; target.pow(3)] };
        for sum in (0..=2 * (target - 1)).rev() {
            for high in sum.div_ceil(2)..=sum.min(target - 1) {
                loop {
                    let mut change = 0.0f64;
                    for (own, other) in [(high, sum - high), (sum - high, high)] {
                        for total in (0..target - own).rev() {
                            let roll = solved.roll(own, other, total);
                            let best =
                                if total == 0 { roll } else { roll.max(solved.hold(own, other, total)) };
                            let place = solved.place(own, other, total);
                            change = change.max((best - solved.chances[place]).abs());
                            solved.chances[place] = best;
                        }
                    }
                    if change < 1e-12 {
                        break;
                    }
                }
            }
        }
        solved
    }

    fn place(&self, own: usize, other: usize, total: usize) -> usize {
        (own * self.target + other) * self.target + total
    }

    fn decide(&self, own: usize, other: usize, total: usize) -> f64 {
        if own + total >= self.target { 1.0 } else { self.chances[self.place(own, other, total)] }
    }

    fn hold(&self, own: usize, other: usize, total: usize) -> f64 {
        if own + total >= self.target { 1.0 } else { 1.0 - self.decide(other, own + total, 0) }
    }

    fn roll(&self, own: usize, other: usize, total: usize) -> f64 {
        let on: f64 = (2..=6).map(|face| self.decide(own, other, total + face)).sum();
        (1.0 - self.decide(other, own, 0) + on) / 6.0
    }

    /// Returns the probability that seat 0 wins, from the text of a position.
    fn first_wins(&self, position: &Pig) -> f64 {
        if position.turn() == Turn::Over {
            return f64::from(position.payoff(Seat::FIRST) + 1) / 2.0;
        }
        let text = position.position();
        let fields: Vec<&str> = text.split(' ').collect();
        let [first, second, total, seat] = [0, 1, 2, 3].map(|field| fields[field].parse::<usize>().unwrap());
        let (own, other) = if seat == 0 { (first, second) } else { (second, first) };
        let chance =
            if fields[4] == "die" { self.roll(own, other, total) } else { self.decide(own, other, total) };
        if seat == 0 { chance } else { 1.0 - chance }
    }
}

#[test]
fn optimal_play_has_published_value() {
    let solved = Solved::new(100);
    let start = Pig::initial(&parameters(100)).unwrap();
    assert!((solved.first_wins(&start) - 0.5306).abs() < 0.000_05, "{}", solved.first_wins(&start));
    // The game's moves satisfy the equations of the values.
    let mut random = seeded(4);
    let check = |position: &Pig| {
        let mut moves = Vec::new();
        position.moves(&mut moves);
        let values = moves.iter().map(|&mv| position.clone().after(mv, |next| solved.first_wins(next)));
        let value = match position.turn() {
            Turn::Chance => values.sum::<f64>() / 6.0,
            Turn::Player(Seat::FIRST) => values.fold(0.0, f64::max),
            _ => values.fold(1.0, f64::min),
        };
        let known = solved.first_wins(position);
        assert!((value - known).abs() < 1e-9, "{}: {value}, {known}", position.position());
    };
    for _ in 0..20_000 {
        // Any scores and totals, late enough to be possible.
        let mut draw = |bound: usize| match below(&mut random, bound) {
            1 => 0,
            number => number,
        };
        let (first, second, seat) = (draw(100), draw(100), draw(4) / 2);
        let total = draw(100 - if seat == 0 { first } else { second });
        for next in ["decide", "die"] {
            check(&read(100, &format!("{first} {second} {total} {seat} {next} 1000")).unwrap());
        }
    }
}

#[test]
fn legal_decisions_depend_on_total_and_target() {
    for (text, moves) in [
        ("0 0 0 0 decide 0", vec!["roll"]),
        ("0 0 0 0 die 1", vec!["1", "2", "3", "4", "5", "6"]),
        ("0 0 6 0 decide 2", vec!["hold", "roll"]),
        ("90 0 9 0 decide 200", vec!["hold", "roll"]),
        ("90 0 10 0 decide 200", vec!["hold"]),
        ("90 0 14 0 decide 200", vec!["hold"]),
        ("104 0 0 1 decide 201", vec![]),
        ("0 0 12 0 die 5000", vec![]),
    ] {
        assert_eq!(legal(&read(100, text).unwrap()), moves, "{text}");
    }
}

#[test]
fn rejects_impossible_positions() {
    for (text, reason) in [
        ("0 0 0 0 decide", "5 fields"),
        ("0 0 0 0 decide 0 ", "7 fields"),
        ("0 0 0 2 decide 0", "0 or 1"),
        ("0 0 0 0 roll 0", "decide or die"),
        ("1 0 0 0 decide 50", "cannot be 1"),
        ("0 0 1 0 decide 50", "cannot be 1"),
        ("-1 0 0 0 decide 50", "not a number"),
        ("00 0 0 0 decide 50", "not a number"),
        ("70000 0 0 0 decide 50", "not a number"),
        ("65535 0 0 0 decide 50", "beyond"),
        ("106 0 0 1 decide 200", "beyond"),
        ("100 0 0 0 decide 200", "has no turn"),
        ("100 100 0 0 decide 200", "has no turn"),
        ("100 0 2 1 decide 200", "is over"),
        ("100 0 0 1 die 200", "is over"),
        ("90 0 16 0 decide 200", "beyond"),
        ("90 0 10 0 die 200", "is not rolled"),
        ("0 0 0 0 decide 5001", "from 0 to 5000"),
        ("0 0 0 0 die 0", "too few"),
        ("0 0 0 1 decide 1", "too few"),
        ("60 0 0 1 decide 20", "too few"),
        ("0 0 12 0 decide 3", "too few"),
    ] {
        let error = read(100, text).map(|position| position.position()).unwrap_err().to_string();
        assert!(error.contains(reason), "{text}: {error}");
    }
}

#[test]
fn scrambled_positions_never_panic() {
    let mut random = seeded(8);
    let alphabet = b"0123456789 decidie-";
    for _ in 0..20_000 {
        let mut text = b"57 32 11 0 decide 140".to_vec();
        for _ in 0..=below(&mut random, 3) {
            let place = below(&mut random, text.len());
            text[place] = alphabet[below(&mut random, alphabet.len())];
        }
        let text = String::from_utf8(text).unwrap();
        if let Ok(read) = read(100, &text) {
            assert_eq!(read.position(), text);
            legal(&read);
        }
    }
}

/// The list of all plies, from which everything is recomputed.
#[derive(Clone)]
struct SlowPig {
    target: usize,
    story: Vec<String>,
}

/// The state after all plies.
struct Now {
    scores: Vec<usize>,
    seat: usize,
    /// The numbers rolled this turn.
    rolled: Vec<usize>,
    in_the_air: bool,
}

impl SlowPig {
    fn now(&self) -> Now {
        let mut now = Now { scores: vec![0, 0], seat: 0, rolled: Vec::new(), in_the_air: false };
        for told in &self.story {
            match told.as_str() {
                "roll" => now.in_the_air = true,
                "hold" => {
                    now.scores[now.seat] += now.rolled.iter().sum::<usize>();
                    now.rolled.clear();
                    now.seat = (now.seat + 1) % 2;
                }
                "1" => {
                    now.in_the_air = false;
                    now.rolled.clear();
                    now.seat = (now.seat + 1) % 2;
                }
                number => {
                    now.in_the_air = false;
                    now.rolled.push(number.parse().unwrap());
                }
            }
        }
        now
    }
}

impl Slow for SlowPig {
    fn turn(&self) -> String {
        let now = self.now();
        if now.scores.iter().any(|&score| score >= self.target) || self.story.len() == 50 * self.target {
            "over".to_string()
        } else if now.in_the_air {
            "chance".to_string()
        } else {
            format!("seat {}", now.seat)
        }
    }

    fn legal(&self) -> Vec<String> {
        let now = self.now();
        let reached = now.scores[now.seat] + now.rolled.iter().sum::<usize>() >= self.target;
        let texts = match self.turn().as_str() {
            "over" => vec![],
            "chance" => vec!["1", "2", "3", "4", "5", "6"],
            _ if now.rolled.is_empty() => vec!["roll"],
            _ if reached => vec!["hold"],
            _ => vec!["roll", "hold"],
        };
        texts.into_iter().map(String::from).collect()
    }

    fn play(&mut self, text: &str) {
        self.story.push(text.to_string());
    }

    fn payoffs(&self) -> Vec<i32> {
        match self.now().scores.iter().position(|&score| score >= self.target) {
            Some(0) => vec![1, -1],
            Some(_) => vec![-1, 1],
            None => vec![0, 0],
        }
    }
}

#[test]
fn agrees_with_slow_rules() {
    for (target, games, depth) in [(100, 40, 10), (2, 200, 10), (20, 100, 10), (1000, 1, 0)] {
        let game = format!("pig:target={target}");
        let slow = SlowPig { target, story: Vec::new() };
        harness::agree(&game, &slow, 31, games);
        harness::slow_perft_agrees(&game, &slow, depth);
    }
}

#[test]
fn ply_limit_is_a_draw() {
    let mut position = read(2, "0 0 0 0 die 99").unwrap();
    position.play(position.parse_move("1").unwrap());
    assert_eq!((position.turn(), position.payoff(Seat::FIRST), position.ending()), (Turn::Over, 0, "ply limit"));
    assert_eq!(position.ply_bound(), 100);
}
