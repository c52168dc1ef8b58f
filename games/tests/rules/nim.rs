//! Nim: theory compared with exhaustive search, and slow rules on a list of heaps.

use std::collections::HashMap;

use agon_games::nim::Nim;
use agon_games::{Game, GameSpec, Keyed, Notation, Ordered, Parameters, Seat, Setup, Turn};

use crate::harness::{Slow, Variant, agree, slow_perft_agrees};

/// The last two have more than 127 stones, for which sampling has a separate path.
pub const VARIANTS: &[Variant] = &[
    ("nim", 400),
    ("nim:heaps=9", 30),
    ("nim:heaps=1-1-1-1-1-1-1-1", 20),
    ("nim:heaps=7-5-3-1", 250),
    ("nim:heaps=63-63-63", 12),
    ("nim:heaps=63-63-63-63-63-63-63-63", 2),
];

fn parameters(heaps: &str) -> Parameters {
    GameSpec::new(Nim::NAME, [("heaps", heaps)]).unwrap().parameters().clone()
}

/// Returns whether the side to move wins, by exhaustive search that stores every position.
fn wins(position: &Nim, known: &mut HashMap<u64, (bool, String)>) -> bool {
    if position.turn() == Turn::Over {
        return false;
    }
    if let Some((wins_here, _)) = known.get(&position.key()) {
        return *wins_here;
    }
    let mut moves = Vec::new();
    position.moves(&mut moves);
    // No early exit: every position must be visited.
    let lost_replies = moves.iter().filter(|&&mv| {
        let mut next = position.clone();
        next.play(mv);
        !wins(&next, known)
    });
    let wins_here = lost_replies.count() > 0;
    known.insert(position.key(), (wins_here, position.position()));
    wins_here
}

#[test]
fn position_is_lost_exactly_if_nim_sum_is_zero() {
    let mut known = HashMap::new();
    wins(&Nim::initial(&parameters("7-6-5-4")).unwrap(), &mut known);
    // Both movers except at the end; one mover where some of the four heaps lost one stone each and no heap lost more.
    assert_eq!(known.len(), 2 * 8 * 7 * 6 * 5 - 2 - 16);
    for (wins_here, text) in known.values() {
        let heaps = text.split(' ').next().unwrap();
        let xor = heaps.split('-').map(|heap| heap.parse::<u32>().unwrap()).fold(0, |sum, heap| sum ^ heap);
        assert_eq!(*wins_here, xor != 0, "{text}");
    }
}

#[test]
fn promise_rates_moves_to_zero_nim_sum() {
    let position = Nim::initial(&parameters("3-4-5")).unwrap();
    let mut moves = Vec::new();
    position.moves(&mut moves);
    let promising: Vec<String> =
        moves.iter().filter(|&&mv| position.promise(mv) > 0).map(|&mv| position.move_text(mv)).collect();
    assert_eq!(promising, ["1-2"]);
}

#[test]
fn note_explains_single_heap() {
    assert!(crate::harness::spec("nim:heaps=9").note().is_some_and(|note| note.contains("`grundy`")));
    assert_eq!(crate::harness::spec("nim:heaps=9-1").note(), None);
    assert!(Nim::SUMMARY.contains("grundy") && Nim::PARAMETERS[0].about.contains("grundy"));
}

/// Heaps as a list of numbers.
#[derive(Clone)]
struct SlowNim {
    heaps: Vec<u32>,
    seat: usize,
}

impl SlowNim {
    fn of(game: &str) -> SlowNim {
        let text = game.split_once('=').map_or("3-4-5", |(_, heaps)| heaps);
        SlowNim { heaps: text.split('-').map(|heap| heap.parse().unwrap()).collect(), seat: 0 }
    }
}

impl Slow for SlowNim {
    fn turn(&self) -> String {
        if self.heaps.iter().all(|&heap| heap == 0) { "over".into() } else { format!("seat {}", self.seat) }
    }

    fn legal(&self) -> Vec<String> {
        let mut moves = Vec::new();
        for (index, &heap) in self.heaps.iter().enumerate() {
            for take in 1..=heap {
                moves.push(format!("{}-{take}", index + 1));
            }
        }
        moves
    }

    fn play(&mut self, text: &str) {
        let (heap, take) = text.split_once('-').unwrap();
        self.heaps[heap.parse::<usize>().unwrap() - 1] -= take.parse::<u32>().unwrap();
        self.seat = 1 - self.seat;
    }

    /// The side to move did not take the last stone.
    fn payoffs(&self) -> Vec<i32> {
        if self.seat == 1 { vec![1, -1] } else { vec![-1, 1] }
    }
}

#[test]
fn agrees_with_slow_rules() {
    for (game, _) in VARIANTS {
        agree(game, &SlowNim::of(game), 5, 15);
    }
    slow_perft_agrees("nim", &SlowNim::of("nim"), 8);
    slow_perft_agrees("nim:heaps=7-5-3-1", &SlowNim::of("=7-5-3-1"), 5);
    slow_perft_agrees("nim:heaps=63-63-63", &SlowNim::of("=63-63-63"), 2);
}

#[test]
fn rejects_invalid_positions() {
    let read = |text: &str| Nim::from_position(&parameters("3-4-5"), text).map_err(|error| error.to_string());
    for (text, reason) in [
        ("3-4-5", "it has 1 field instead of 2"),
        ("3-4 0", "there must be 3 heaps"),
        ("3-4-5-0 0", "there must be 3 heaps"),
        ("3-x-5 0", "a heap is a whole number"),
        ("3-04-5 0", "a heap is a whole number"),
        ("3-4-256 0", "a heap is a whole number"),
        ("3-4-6 0", "a heap is larger than at the start"),
        ("3-4-5 2", "the seat to move is 0 or 1"),
        ("3-4-5 1", "the number of stones taken does not fit the seat to move"),
        ("2-3-4 0", "the number of stones taken does not fit the seat to move"),
        ("3-4-4 0", "the number of stones taken does not fit the seat to move"),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.contains(reason), "{text}: {error}");
    }
    // Two stones of a heap can be taken in one ply or in two.
    assert!(read("1-4-5 0").is_ok() && read("1-4-5 1").is_ok());
    let over = read("0-0-0 1").unwrap();
    assert_eq!((over.turn(), over.payoff(Seat::FIRST)), (Turn::Over, 1));
}
