//! Grundy's game: theory compared with exhaustive search, and slow rules on an unordered list of heaps.

use std::collections::{BTreeSet, HashMap, HashSet};

use agon_games::grundy::Grundy;
use agon_games::{FeatureSet, Features, Game, GameSpec, Keyed, Notation, Ordered, Parameters, Seat, Setup, Turn};

use crate::harness::{Slow, Variant, agree, slow_perft_agrees};

pub const VARIANTS: &[Variant] = &[
    ("grundy", 400),
    ("grundy:heaps=2", 1),
    ("grundy:heaps=7", 30),
    ("grundy:heaps=9-4-9-3", 200),
    ("grundy:heaps=50", 40),
    ("grundy:heaps=63-63-63-63", 2),
];

fn start(heaps: &str) -> Grundy {
    Grundy::initial(&parameters(heaps)).unwrap()
}

fn parameters(heaps: &str) -> Parameters {
    GameSpec::new(Grundy::NAME, [("heaps", heaps)]).unwrap().parameters().clone()
}

/// Returns whether the side to move wins, by memoised search.
fn wins(position: &Grundy, known: &mut HashMap<u64, bool>) -> bool {
    if let Some(&wins_here) = known.get(&position.key()) {
        return wins_here;
    }
    let mut moves = Vec::new();
    position.moves(&mut moves);
    moves.sort_by_key(|&mv| -position.promise(mv));
    let wins_here = moves.into_iter().any(|mv| {
        let mut next = position.clone();
        next.play(mv);
        !wins(&next, known)
    });
    known.insert(position.key(), wins_here);
    wins_here
}

/// Computes the Grundy values of heaps 0 to `largest`.
fn values(largest: usize) -> Vec<usize> {
    let mut values: Vec<usize> = Vec::new();
    for heap in 0..=largest {
        let splits = (1..heap).filter(|part| 2 * part != heap);
        let reached: HashSet<usize> = splits.map(|part| values[part] ^ values[heap - part]).collect();
        values.push((0..).find(|value| !reached.contains(value)).unwrap());
    }
    values
}

/// Returns the feature `grundy_sum` for the first seat, which is to move.
fn sum_feature(position: &Grundy) -> i32 {
    let mut features = [0; Grundy::FEATURES.len()];
    position.features(Seat::FIRST, FeatureSet::ALL, &mut features);
    features[0]
}

#[test]
fn lost_single_heaps_are_the_known_ones() {
    const LOST: [usize; 10] = [1, 2, 4, 7, 10, 20, 23, 26, 50, 53];
    let mut known = HashMap::new();
    for heap in 1..=38 {
        assert_eq!(wins(&start(&heap.to_string()), &mut known), !LOST.contains(&heap), "{heap}");
    }
    // Larger heaps by their values, those of the test and those of the evaluation.
    let values = values(63);
    for (heap, &value) in values.iter().enumerate().skip(1) {
        let won = !LOST.contains(&heap);
        assert_eq!(value != 0, won, "{heap}");
        assert_eq!(sum_feature(&start(&heap.to_string())), if won { 1 } else { -1 }, "{heap}");
    }
}

#[test]
fn several_heaps_are_lost_exactly_if_value_xor_is_zero() {
    let values = values(63);
    let mut known = HashMap::new();
    for (a, b) in (1..=16).flat_map(|a| (1..=a).map(move |b| (a, b))) {
        let sum = values[a] ^ values[b];
        assert_eq!(wins(&start(&format!("{a}-{b}")), &mut known), sum != 0, "{a}-{b}");
        let c = (a * b) % 7 + 3;
        let position = start(&format!("{a}-{b}-{c}"));
        assert_eq!(wins(&position, &mut known), sum ^ values[c] != 0, "{a}-{b}-{c}");
        assert_eq!(sum_feature(&position), if sum ^ values[c] == 0 { -1 } else { 1 });
    }
}

#[test]
fn default_heap_has_one_winning_split() {
    let position = start("13");
    let mut moves = Vec::new();
    position.moves(&mut moves);
    let mut winning = Vec::new();
    for mv in moves {
        let mut next = position.clone();
        next.play(mv);
        let wins_here = !wins(&next, &mut HashMap::new());
        assert_eq!(wins_here, position.promise(mv) > 0);
        winning.extend(wins_here.then(|| position.move_text(mv)));
    }
    assert_eq!(winning, ["13:5+8"]);
}

#[test]
fn equal_heaps_are_interchangeable() {
    let mut position = start("5-5");
    let texts = |position: &Grundy| {
        let mut moves = Vec::new();
        position.moves(&mut moves);
        moves.into_iter().map(|mv| position.move_text(mv)).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(texts(&position), "5:1+4 5:2+3");
    position.play(position.parse_move("5:2+3").unwrap());
    assert_eq!(texts(&position), "3:1+2 5:1+4 5:2+3");
    assert_eq!(position.position(), "2-3-5 1");
}

/// Heaps in order of creation.
#[derive(Clone)]
struct SlowGrundy {
    heaps: Vec<usize>,
    seat: usize,
}

impl SlowGrundy {
    fn of(game: &str) -> SlowGrundy {
        let text = game.split_once('=').map_or("13", |(_, heaps)| heaps);
        SlowGrundy { heaps: text.split('-').map(|heap| heap.parse().unwrap()).collect(), seat: 0 }
    }
}

impl Slow for SlowGrundy {
    fn turn(&self) -> String {
        if self.legal().is_empty() { "over".into() } else { format!("seat {}", self.seat) }
    }

    fn legal(&self) -> Vec<String> {
        let mut moves = BTreeSet::new();
        for &heap in &self.heaps {
            for (a, b) in (1..heap).map(|a| (a, heap - a)).filter(|(a, b)| a < b) {
                moves.insert(format!("{heap}:{a}+{b}"));
            }
        }
        moves.into_iter().collect()
    }

    fn play(&mut self, text: &str) {
        let numbers: Vec<usize> = text.split([':', '+']).map(|number| number.parse().unwrap()).collect();
        let index = self.heaps.iter().position(|&heap| heap == numbers[0]).unwrap();
        self.heaps.remove(index);
        self.heaps.extend(&numbers[1..]);
        self.seat = 1 - self.seat;
    }

    /// The side to move did not make the last split.
    fn payoffs(&self) -> Vec<i32> {
        if self.seat == 1 { vec![1, -1] } else { vec![-1, 1] }
    }
}

#[test]
fn agrees_with_slow_rules() {
    for (game, _) in VARIANTS {
        agree(game, &SlowGrundy::of(game), 5, 30);
    }
    slow_perft_agrees("grundy", &SlowGrundy::of("grundy"), 11);
    slow_perft_agrees("grundy:heaps=9-4-9-3", &SlowGrundy::of("=9-4-9-3"), 6);
    slow_perft_agrees("grundy:heaps=50", &SlowGrundy::of("=50"), 3);
}

#[test]
fn rejects_invalid_positions() {
    let read = |heaps: &str, text: &str| {
        Grundy::from_position(&parameters(heaps), text).map_err(|error| error.to_string())
    };
    for (heaps, text, reason) in [
        ("7", "7", "it has 1 field instead of 2"),
        ("7", "2-x 1", "a heap is a whole number from 1 to 63"),
        ("7", "0-7 1", "a heap is a whole number from 1 to 63"),
        ("7", "+7 0", "a heap is a whole number from 1 to 63"),
        ("7", "-7 1", "a heap is a whole number from 1 to 63"),
        ("7", "5-2 1", "the heaps must be in ascending order"),
        ("7", "2-6 1", "the heaps must add up to 7"),
        ("6", "3-3 1", "the first heaps cannot lead to these"),
        ("6", "2-2-2 0", "the first heaps cannot lead to these"),
        ("3-4", "7 1", "the first heaps cannot lead to these"),
        ("3-4", "2-5 0", "the first heaps cannot lead to these"),
        ("7", "2-5 2", "the seat to move is 0 or 1"),
        ("7", "2-5 0", "the number of heaps does not fit the seat to move"),
    ] {
        let error = read(heaps, text).unwrap_err();
        assert!(error.contains(reason), "{heaps}, {text}: {error}");
    }
    assert_eq!(read("3-3", "3-3 0").unwrap(), start("3-3"));
    assert_eq!(read("2", "2 0").unwrap().turn(), Turn::Over);
}

#[test]
fn longest_game_splits_off_ones() {
    let mut position = start("9-4");
    let mut plies = 0;
    while position.turn() != Turn::Over {
        let mut moves = Vec::new();
        position.moves(&mut moves);
        let ones_off = moves.into_iter().find(|&mv| position.move_text(mv).contains(":1+")).unwrap();
        position.play(ones_off);
        plies += 1;
    }
    assert_eq!((plies, position.ply_bound()), (9, 9));
}
