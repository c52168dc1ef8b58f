//! Kalah: solved small boards, and slow rules on a ring of pits.

use std::collections::HashMap;

use agon_games::kalah::Kalah;
use agon_games::{Game, GameSpec, Keyed, Notation, Ordered, Seat, Setup, Turn};

use crate::harness::{Slow, Variant, agree, slow_perft_agrees, spec};

pub const VARIANTS: &[Variant] = &[
    ("kalah", 150),
    ("kalah:empty_capture=true", 60),
    ("kalah:seeds=6", 40),
    ("kalah:holes=1,seeds=12", 20),
    ("kalah:holes=2,seeds=9", 100),
    ("kalah:holes=3,seeds=12,empty_capture=true", 60),
    ("kalah:holes=5,seeds=2", 80),
    ("kalah:holes=7,seeds=12", 30),
    ("kalah:holes=7,seeds=1,empty_capture=true", 30),
];

fn start(text: &str) -> Kalah {
    Kalah::initial(spec(text).parameters()).unwrap()
}

/// The slow rules: a list of pits in the order of sowing, one seed at a time.
#[derive(Clone)]
struct SlowKalah {
    /// Seat 0's pits from its left, its store, seat 1's pits from its left, its store.
    cups: Vec<u32>,
    mover: usize,
    empty_capture: bool,
}

impl SlowKalah {
    fn new(text: &str) -> SlowKalah {
        let spec: GameSpec = spec(text);
        let parameters = spec.parameters();
        let (holes, seeds) = (parameters.integer("holes") as usize, parameters.integer("seeds") as u32);
        let mut cups = vec![seeds; 2 * holes + 2];
        cups[holes] = 0;
        cups[2 * holes + 1] = 0;
        SlowKalah { cups, mover: 0, empty_capture: parameters.flag("empty_capture") }
    }

    fn holes(&self) -> usize {
        self.cups.len() / 2 - 1
    }

    fn pits_of(&self, seat: usize) -> std::ops::Range<usize> {
        let left = seat * (self.holes() + 1);
        left..left + self.holes()
    }

    fn store_of(&self, seat: usize) -> usize {
        self.pits_of(seat).end
    }

    fn seeds_of(&self, seat: usize) -> u32 {
        self.cups[self.pits_of(seat)].iter().sum()
    }
}

impl Slow for SlowKalah {
    fn turn(&self) -> String {
        if self.seeds_of(0) == 0 && self.seeds_of(1) == 0 {
            "over".to_string()
        } else {
            format!("seat {}", self.mover)
        }
    }

    fn legal(&self) -> Vec<String> {
        let pits = self.pits_of(self.mover);
        let left = pits.start;
        pits.filter(|&pit| self.cups[pit] > 0).map(|pit| (pit - left + 1).to_string()).collect()
    }

    fn play(&mut self, text: &str) {
        let other = 1 - self.mover;
        let mut cup = self.pits_of(self.mover).start + text.parse::<usize>().unwrap() - 1;
        let mut hand = std::mem::take(&mut self.cups[cup]);
        while hand > 0 {
            cup = (cup + 1) % self.cups.len();
            if cup != self.store_of(other) {
                self.cups[cup] += 1;
                hand -= 1;
            }
        }
        let store = self.store_of(self.mover);
        if self.pits_of(self.mover).contains(&cup) && self.cups[cup] == 1 {
            // The pit opposite is as far before the last pit of the ring as this one is after the first.
            let opposite = 2 * self.holes() - cup;
            if self.cups[opposite] > 0 || self.empty_capture {
                self.cups[store] += self.cups[opposite] + 1;
                self.cups[opposite] = 0;
                self.cups[cup] = 0;
            }
        }
        if self.seeds_of(0) == 0 || self.seeds_of(1) == 0 {
            for seat in 0..2 {
                let (seeds, pits, store) = (self.seeds_of(seat), self.pits_of(seat), self.store_of(seat));
                self.cups[pits].fill(0);
                self.cups[store] += seeds;
            }
        }
        if cup != store {
            self.mover = other;
        }
    }

    fn payoffs(&self) -> Vec<i32> {
        let [first, second] = [0, 1].map(|seat| self.cups[self.store_of(seat)]);
        let payoff = i32::from(first > second) - i32::from(first < second);
        vec![payoff, -payoff]
    }
}

#[test]
fn agrees_with_slow_rules() {
    for &(text, games) in VARIANTS {
        agree(text, &SlowKalah::new(text), 3, 4 * games);
    }
}

#[test]
fn perft_agrees_with_slow_rules() {
    for (text, depth) in [
        ("kalah", 7),
        ("kalah:empty_capture=true", 6),
        ("kalah:seeds=6", 6),
        ("kalah:holes=2,seeds=9", 12),
        ("kalah:holes=3,seeds=12,empty_capture=true", 10),
        ("kalah:holes=7,seeds=12", 5),
    ] {
        slow_perft_agrees(text, &SlowKalah::new(text), depth);
    }
}

/// Returns whether seat 0 can win by at least `margin`.
fn wins_by(position: &mut Kalah, margin: i32, known: &mut HashMap<u64, bool>) -> bool {
    let stores = |seat| position.store(seat) as i32;
    let (first, second) = (stores(Seat::FIRST), stores(Seat::SECOND));
    let in_pits: u32 = Seat::all(2).flat_map(|seat| position.pits(seat)).sum();
    let lead = first - second;
    if lead - in_pits as i32 >= margin {
        return true;
    }
    if lead + (in_pits as i32) < margin {
        return false;
    }
    let Turn::Player(seat) = position.turn() else { unreachable!("nothing in the pits decides it") };
    if let Some(&answer) = known.get(&position.key()) {
        return answer;
    }
    let mut moves = Vec::new();
    position.moves(&mut moves);
    moves.sort_by_key(|&mv| -position.promise(mv));
    let mut reaches = |mv: agon_games::kalah::Pit| position.after(mv, |next| wins_by(next, margin, known));
    let answer =
        if seat == Seat::FIRST { moves.into_iter().any(reaches) } else { moves.into_iter().all(&mut reaches) };
    known.insert(position.key(), answer);
    answer
}

fn first_player_wins_by(text: &str, margin: i32) -> bool {
    wins_by(&mut start(text), margin, &mut HashMap::new())
}

/// The table of Irving, Donkers and Uiterwijk (2000), which holds for both capture rules.
#[test]
fn small_boards_have_published_values() {
    for (holes, results) in [(1, "DLWLWD"), (2, "WLLLWW"), (3, "DWWWWL")] {
        for (seeds, result) in (1..).zip(results.chars()) {
            for empty_capture in [false, true] {
                let text = format!("kalah:holes={holes},seeds={seeds},empty_capture={empty_capture}");
                let found = match (first_player_wins_by(&text, 1), first_player_wins_by(&text, 0)) {
                    (true, _) => 'W',
                    (_, true) => 'D',
                    _ => 'L',
                };
                assert_eq!(found, result, "{text}");
            }
        }
    }
}

#[test]
fn five_holes_of_two_distinguish_capture_rules() {
    let margin_is = |text: &str, margin| {
        assert!(first_player_wins_by(text, margin) && !first_player_wins_by(text, margin + 1), "{text}");
    };
    margin_is("kalah:holes=5,seeds=2,empty_capture=true", 0);
    margin_is("kalah:holes=5,seeds=2", 2);
}

fn read(text: &str, position: &str) -> Result<Kalah, String> {
    Kalah::from_position(spec(text).parameters(), position).map_err(|error| error.to_string())
}

/// Plays pits from a position and returns the resulting position.
fn played(text: &str, position: &str, pits: &[&str]) -> String {
    let mut kalah = read(text, position).unwrap();
    for pit in pits {
        kalah.play(kalah.parse_move(pit).unwrap());
    }
    kalah.position()
}

#[test]
fn sows_moves_again_and_captures() {
    let start = "4,4,4,4,4,4:0 4,4,4,4,4,4:0 0";
    // The third pit reaches the store and moves again.
    assert_eq!(played("kalah", start, &["3"]), "4,4,0,5,5,5:1 4,4,4,4,4,4:0 0");
    assert_eq!(played("kalah", start, &["3", "6"]), "4,4,0,5,5,0:2 5,5,5,5,4,4:0 1");
    // The last seed in the own empty third pit captures the four opposite.
    let before = "2,1,0,4,4,4:9 0,0,0,4,4,4:12 0";
    assert_eq!(played("kalah", before, &["2"]), "2,0,0,4,4,4:14 0,0,0,0,4,4:12 1");
    // The last seed in the own empty fifth pit, with nothing opposite, counts only with empty capture.
    let before = "2,1,0,1,0,4:16 0,0,4,4,4,0:12 0";
    assert_eq!(played("kalah", before, &["4"]), "2,1,0,0,1,4:16 0,0,4,4,4,0:12 1");
    assert_eq!(played("kalah:empty_capture=true", before, &["4"]), "2,1,0,0,0,4:17 0,0,4,4,4,0:12 1");
    // Thirteen seeds return to their pit and capture the seed that they have just sown opposite.
    let before = "13,1,1,1,1,1:10 1,1,1,1,1,0:15 0";
    assert_eq!(played("kalah", before, &["1"]), "0,2,2,2,2,2:13 2,2,2,2,2,0:15 1");
    // The other side's store is skipped.
    let before = "0,0,0,0,0,10:10 1,1,1,1,1,1:22 0";
    assert_eq!(played("kalah", before, &["6"]), "1,1,0,0,0,0:14 2,2,2,0,2,2:22 1");
}

#[test]
fn game_ends_when_either_side_is_empty() {
    // The last own seed would move again; the other side keeps its seeds.
    let end = "0,0,0,0,0,0:21 0,0,0,0,0,0:27 0";
    assert_eq!(played("kalah", "0,0,0,0,0,1:20 0,5,0,0,0,0:22 0", &["6"]), end);
    // A capture empties the other side.
    let end = "0,0,0,0,0,0:28 0,0,0,0,0,0:20 1";
    assert_eq!(played("kalah", "1,0,0,0,1,0:20 0,0,0,0,6,0:20 0", &["1"]), end);
    let over = read("kalah", end).unwrap();
    assert_eq!((over.turn(), over.payoff(Seat::FIRST), over.payoff(Seat::SECOND)), (Turn::Over, 1, -1));
}

#[test]
fn rejects_invalid_positions() {
    for (text, reason) in [
        ("4,4,4,4,4,4:0 4,4,4,4,4,4:0", "it has 2 fields instead of 3"),
        ("4,4,4,4,4,4:0 4,4,4,4,4,4:0 2", "the seat to move is 0 or 1"),
        ("4,4,4,4,4,4:0 4,4,4,4,4,4:0  0", "it has 4 fields instead of 3"),
        ("4,4,4,4,4:4 4,4,4,4,4,4:0 0", "a side has 6 pits"),
        ("4,4,4,4,4,4,0:0 4,4,4,4,4,4:0 0", "a side has 6 pits"),
        ("4,4,4,4,4,4 4,4,4,4,4,4:0 0", "a side is its pits"),
        ("4,4,4,4,4,5:0 4,4,4,4,4,4:0 0", "48 seeds in all, not 49"),
        ("4,4,4,4,4,-4:0 4,4,4,4,4,4:0 0", "`-4` is not a number of seeds up to 48"),
        ("4,4,4,4,4,+4:0 4,4,4,4,4,4:0 0", "`+4` is not a number"),
        ("4,4,4,4,4,:4 4,4,4,4,4,4:0 0", "`` is not a number"),
        ("4,4,4,4,4,300:0 4,4,4,4,4,4:0 0", "`300` is not a number"),
        ("99999999999999999999,4,4,4,4,4:0 4,4,4,4,4,4:0 0", "is not a number"),
        ("0,0,0,0,0,0:24 4,4,4,4,4,4:0 0", "one side is empty"),
    ] {
        let error = read("kalah", text).unwrap_err();
        assert!(error.contains(reason), "{text}: {error}");
    }
}

/// Every text one edit away from a valid one is rejected or is a position that round-trips.
#[test]
fn edited_positions_never_panic() {
    let text = "4,4,0,5,5,0:2 5,5,5,5,4,4:0 1";
    for at in 0..=text.len() {
        for with in ["", " ", ",", ":", "0", "9", "-", "\u{e9}"] {
            for cut in 0..=2.min(text.len() - at) {
                let edited = format!("{}{with}{}", &text[..at], &text[at + cut..]);
                if let Ok(position) = read("kalah", &edited) {
                    assert_eq!(read("kalah", &position.position()).as_ref(), Ok(&position), "{edited}");
                }
            }
        }
    }
}
