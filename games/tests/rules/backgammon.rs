//! Backgammon: known numbers of plays, each rule of movement, and slow rules on a signed board.

use std::collections::BTreeMap;

use agon_games::backgammon::Backgammon;
use agon_games::random::{below, seeded};
use agon_games::{Game, Notation, Parameters, Seat, Setup, Turn};

use crate::harness::{self, Slow, Variant};

pub const VARIANTS: &[Variant] = &[("backgammon", 60)];

fn start() -> Backgammon {
    Backgammon::initial(&Parameters::defaults(Backgammon::PARAMETERS)).unwrap()
}

fn position(text: &str) -> Backgammon {
    Backgammon::from_position(&Parameters::defaults(Backgammon::PARAMETERS), text)
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn legal(position: &Backgammon) -> Vec<String> {
    let mut moves = Vec::new();
    position.moves(&mut moves);
    let mut texts: Vec<String> = moves.into_iter().map(|mv| position.move_text(mv)).collect();
    texts.sort_unstable();
    texts
}

#[test]
fn start_has_known_numbers_of_plays() {
    // Later rolls include doubles; the mirrored first position has the same plays.
    for (roll, plays) in [("21", 15), ("31", 16), ("65", 7), ("11", 42), ("66", 11)] {
        let text = format!("24:2,13:5,8:3,6:5 24:2,13:5,8:3,6:5 o {roll} 3");
        assert_eq!(position(&text).count(&mut Vec::new()), plays, "{roll}");
        if roll != "11" && roll != "66" {
            let mut opening = start();
            opening.play(opening.parse_move(roll).unwrap());
            assert_eq!(opening.count(&mut Vec::new()), plays, "{roll}");
        }
    }
}

#[test]
fn rolls_have_known_weights() {
    use agon_games::Chance as _;
    assert_eq!(start().count(&mut Vec::new()), 15);
    assert!(start().parse_move("33").is_none(), "the opening roll is not a double");
    let later = position("24:2,13:5,8:3,6:5 24:2,13:5,8:3,6:5 o - 2");
    assert_eq!(later.count(&mut Vec::new()), 21);
    assert_eq!(later.total_weight(), 36);
    assert_eq!(["33", "61", "16"].map(|roll| later.weight(later.parse_move(roll).unwrap())), [1, 2, 2]);
}

#[test]
fn plays_are_drawn_uniformly() {
    // A position of each kind: in the field, on the bar, bearing off, a double, a single die.
    for text in [
        "24:2,13:5,8:3,6:5 24:2,13:5,8:3,6:5 x 31 5",
        "bar:1,13:5,8:3,6:6 24:2,13:5,8:3,6:5 x 64 5",
        "6:3,5:2,2:1,off:9 4:3,3:3,1:2,off:7 x 54 5",
        "13:1,6:3,5:2,off:9 4:3,3:3,1:2,off:7 x 22 5",
        "24:2,13:5,8:3,6:5 24:2,13:5,8:3,6:5 x 11 5",
    ] {
        let position = position(text);
        let mut moves = Vec::new();
        position.moves(&mut moves);
        let mut seen = vec![0u32; moves.len()];
        let (mut random, mut scratch) = (seeded(5), Vec::new());
        let draws = 2_000 * moves.len() as u32;
        for _ in 0..draws {
            let mv = position.sample(&mut random, &mut scratch);
            seen[moves.iter().position(|&known| known == mv).unwrap()] += 1;
        }
        // Five standard deviations.
        assert!(seen.iter().all(|n| n.abs_diff(2_000) < 5 * 45), "{text}: {seen:?}");
    }
}

#[test]
fn movement_rules() {
    for (text, plays) in [
        // Either die can be played but not both: the larger.
        ("24:1,off:14 8:2,off:13 x 43 5", vec!["24/20"]),
        // Only the smaller can be played.
        ("24:1,off:14 8:2,5:2,off:11 x 43 5", vec!["24/21"]),
        // Both dice can be played in one order only, so they must be.
        ("24:1,off:14 5:2,off:13 x 41 5", vec!["24/23,23/19"]),
        // On the bar against a closed board.
        ("bar:1,off:14 6:2,5:2,4:2,3:2,2:2,1:2,off:3 x 61 5", vec!["pass"]),
        // Two on the bar, of which one can enter.
        ("bar:2,13:1,off:12 6:2,off:13 x 65 5", vec!["bar/20"]),
        // Entering hits on the way: the two orders are two plays.
        (
            "bar:1,off:14 6:1,off:14 x 65 5",
            vec!["bar/19,19/14", "bar/20,20/14"],
        ),
        // The same without a hit is one play, by the larger die first.
        ("bar:1,off:14 1:1,off:14 x 65 5", vec!["bar/19,19/14"]),
        // A higher die bears off from the highest point; the lower die may bear off or move within.
        ("4:1,3:1,off:13 1:2,off:13 x 63 5", vec!["4/1,3/off", "4/off,3/off"]),
        // A higher die does not bear off while a higher point is held.
        ("6:1,2:1,off:13 1:2,off:13 x 53 5", vec!["6/1,2/off", "6/3,3/off"]),
        // The last checker comes home, then the other die bears off.
        ("8:1,5:1,off:13 23:2,off:13 x 62 5", vec!["8/6,6/off"]),
        ("7:1,6:1,off:13 1:2,off:13 x 61 5", vec!["7/1,1/off", "7/1,6/5"]),
        // A double is played as often as possible.
        ("13:1,off:14 24:2,off:13 x 44 5", vec!["13/9,9/5"]),
        ("9:1,off:14 24:2,off:13 x 44 5", vec!["9/5"]),
    ] {
        assert_eq!(legal(&position(text)), plays, "{text}");
    }
}

#[test]
fn reads_other_forms_of_plays() {
    let opening = position("24:2,13:5,8:3,6:5 24:2,13:5,8:3,6:5 x 65 5");
    let read = |position: &Backgammon, text: &str| position.parse_move(text).map(|mv| position.move_text(mv));
    for (text, meant) in [
        ("13/8,24/18", Some("24/18,13/8")),
        ("24/18*,13/8*", Some("24/18,13/8")),
        ("24/13", Some("24/18,18/13")),
        ("24/18/13", Some("24/18,18/13")),
        ("24/12", None),
        ("24/18", None),
        ("24/18,13/8,6/6", None),
        ("24/18,13/14,14/8", None),
        ("pass", None),
        ("024/18,13/8", None),
        ("24/18,13/8,", None),
    ] {
        assert_eq!(read(&opening, text).as_deref(), meant, "{text}");
    }
    // A hit on one of two paths: the path must be given.
    let entry = position("bar:1,off:14 6:1,off:14 x 65 5");
    assert_eq!(read(&entry, "bar/14"), None);
    assert_eq!(read(&entry, "bar/19*/14").as_deref(), Some("bar/19,19/14"));
    assert_eq!(read(&entry, "20/14,bar/20").as_deref(), Some("bar/20,20/14"));
    assert_eq!(read(&position("bar:1,off:14 1:1,off:14 x - 4"), "13").as_deref(), Some("31"));
}

#[test]
fn payoffs_of_wins() {
    for (text, payoff, ending) in [
        ("1:1,off:14 6:14,off:1 x 21 5", 1, "borne off"),
        ("1:1,off:14 7:15 x 21 5", 2, "gammon"),
        ("1:1,off:14 19:1,6:14 x 21 5", 3, "backgammon"),
        ("1:1,off:14 18:1,6:14 x 21 5", 2, "gammon"),
        ("1:1,off:14 bar:1,6:14 x 21 5", 3, "backgammon"),
    ] {
        let mut end = position(text);
        end.play(end.parse_move("1/off").unwrap());
        assert_eq!(end.turn(), Turn::Over, "{text}");
        assert_eq!([end.payoff(Seat::FIRST), end.payoff(Seat::SECOND)], [payoff, -payoff], "{text}");
        assert_eq!(end.ending(), ending, "{text}");
    }
    let mut late = position("24:2,13:5,8:3,6:5 24:2,13:5,8:3,6:5 o 31 1999");
    late.play(late.parse_move("8/5,6/5").unwrap());
    assert_eq!((late.turn(), late.payoff(Seat::FIRST), late.ending()), (Turn::Over, 0, "ply limit"));
}

#[test]
fn rejects_impossible_positions() {
    let start = "24:2,13:5,8:3,6:5";
    for (text, reason) in [
        (format!("{start} {start} x - 1"), "to be rolled"),
        (format!("{start} {start} x 31 0"), "to be rolled"),
        (format!("{start} {start} o - 0"), "do not fit the mover"),
        (format!("{start} {start} x 33 1"), "no double"),
        (format!("{start} {start} x 13 1"), "larger first"),
        (format!("{start} {start} x 71 1"), "larger first"),
        (format!("{start} {start} x - 2001"), "from 0 to 2000"),
        (format!("{start} {start} x - 04"), "from 0 to 2000"),
        (format!("{start} {start} x -"), "4 fields"),
        (format!("{start} {start} x - 4 "), "6 fields"),
        (format!("{start} {start} z - 4"), "x or o"),
        (format!("24:2,13:5,8:3,6:4 {start} x - 4"), "14 checkers"),
        (format!("24:2,13:5,8:3,6:6 {start} x - 4"), "16 checkers"),
        (format!("24:2,13:5,8:3,6:4294967295 {start} x - 4"), "1 to 15"),
        (format!("24:2,13:5,8:3,6:5,5:0 {start} x - 4"), "1 to 15"),
        (format!("24:2,13:5,6:5,8:3 {start} x - 4"), "go down"),
        (format!("24:1,24:1,13:5,8:3,6:5 {start} x - 4"), "go down"),
        (format!("25:2,13:5,8:3,6:5 {start} x - 4"), "not a place"),
        (format!("24:2,13:5,8:3,1:5 {start} x - 4"), "held by both"),
        (format!("24:2,13:5,8:3,5:5 {start} x - 0"), "as at the start"),
        (format!("off:15 {start} x - 4"), "has no turn"),
        (format!("off:15 {start} o 21 3"), "no roll"),
        ("off:15 off:15 x - 4".to_string(), "has no turn"),
        (
            "bar:1,6:2,5:2,4:2,3:2,2:2,1:2,off:2 bar:1,6:2,5:2,4:2,3:2,2:2,1:2,off:2 x - 4".to_string(),
            "shut out",
        ),
    ] {
        let error = Backgammon::from_position(&Parameters::defaults(&[]), &text).unwrap_err().to_string();
        assert!(error.contains(reason), "{text}: {error}");
    }
    assert_eq!(position(&format!("off:15 {start} o - 2")).turn(), Turn::Over);
}

#[test]
fn scrambled_positions_never_panic() {
    let mut random = seeded(3);
    let alphabet = b"0123456789:, xo-offbar";
    let texts = ["bar:1,24:2,13:5,8:3,6:3,off:1 24:2,13:5,8:3,6:5 x 31 5", "off:15 24:2,13:5,8:3,6:5 o - 2"];
    for _ in 0..20_000 {
        let mut text = texts[below(&mut random, 2)].as_bytes().to_vec();
        for _ in 0..=below(&mut random, 3) {
            let place = below(&mut random, text.len());
            match below(&mut random, 3) {
                0 => drop(text.remove(place)),
                1 => text[place] = alphabet[below(&mut random, alphabet.len())],
                _ => text.insert(place, alphabet[below(&mut random, alphabet.len())]),
            }
        }
        let text = String::from_utf8(text).unwrap();
        if let Ok(read) = Backgammon::from_position(&Parameters::defaults(&[]), &text) {
            assert_eq!(read.position(), text);
            legal(&read);
        }
    }
}

#[test]
fn scrambled_moves_are_legal_or_rejected() {
    let mut random = seeded(6);
    let alphabet = b"0123456789/,*bar-off";
    let position = position("bar:1,24:1,13:5,8:3,6:5 24:2,13:5,8:3,6:5 x 51 5");
    let legal = legal(&position);
    let mut read = 0;
    for _ in 0..20_000 {
        let mut text = legal[below(&mut random, legal.len())].clone().into_bytes();
        for _ in 0..=below(&mut random, 2) {
            let place = below(&mut random, text.len());
            text[place] = alphabet[below(&mut random, alphabet.len())];
        }
        if let Some(mv) = position.parse_move(&String::from_utf8(text).unwrap()) {
            assert!(legal.contains(&position.move_text(mv)));
            read += 1;
        }
    }
    assert!(read > 0);
}

/// A board with positive numbers for x's checkers and negative ones for o's, on points of x's numbering.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct SlowBoard {
    points: [i32; 25],
    bar: [i32; 2],
    off: [i32; 2],
}

#[derive(Clone)]
struct SlowBackgammon {
    table: SlowBoard,
    seat: usize,
    roll: Option<(i32, i32)>,
    plies: u32,
}

/// One checker's step in the mover's numbering, 25 the bar and 0 off.
type Step = (i32, i32);

impl SlowBoard {
    fn sign(seat: usize) -> i32 {
        if seat == 0 { 1 } else { -1 }
    }

    fn index(seat: usize, point: i32) -> usize {
        (if seat == 0 { point } else { 25 - point }) as usize
    }

    /// Counts the checkers of `seat` on a point of its own numbering; those of the other side are negative.
    fn on(&self, seat: usize, point: i32) -> i32 {
        self.points[SlowBoard::index(seat, point)] * SlowBoard::sign(seat)
    }

    /// Returns the target of a checker of `seat` moved by a die, if that is legal.
    fn step(&self, seat: usize, from: i32, die: i32) -> Option<i32> {
        if from == 25 {
            if self.bar[seat] == 0 {
                return None;
            }
        } else if self.bar[seat] > 0 || self.on(seat, from) <= 0 {
            return None;
        }
        if from > die {
            return (self.on(seat, from - die) >= -1).then_some(from - die);
        }
        let all_home = self.bar[seat] == 0 && (7..=24).all(|point| self.on(seat, point) <= 0);
        let none_higher = (from + 1..=6).all(|point| self.on(seat, point) <= 0);
        (all_home && (from == die || none_higher)).then_some(0)
    }

    fn stepped(&self, seat: usize, (from, to): Step) -> SlowBoard {
        let mut next = self.clone();
        if from == 25 {
            next.bar[seat] -= 1;
        } else {
            next.points[SlowBoard::index(seat, from)] -= SlowBoard::sign(seat);
        }
        if to == 0 {
            next.off[seat] += 1;
        } else {
            if next.on(seat, to) == -1 {
                next.points[SlowBoard::index(seat, to)] = 0;
                next.bar[1 - seat] += 1;
            }
            next.points[SlowBoard::index(seat, to)] += SlowBoard::sign(seat);
        }
        next
    }

    /// Finds all ways to play the dice in the given order until none can be played.
    fn ways(&self, seat: usize, dice: &[i32], so_far: &mut Vec<Step>, all: &mut Vec<(Vec<Step>, SlowBoard)>) {
        all.push((so_far.clone(), self.clone()));
        let Some((&die, rest)) = dice.split_first() else { return };
        for from in 1..=25 {
            if let Some(to) = self.step(seat, from, die) {
                so_far.push((from, to));
                self.stepped(seat, (from, to)).ways(seat, rest, so_far, all);
                so_far.pop();
            }
        }
    }
}

impl SlowBackgammon {
    fn start() -> SlowBackgammon {
        let mut points = [0; 25];
        for (point, count) in [(24, 2), (13, 5), (8, 3), (6, 5)] {
            points[point] = count;
            points[25 - point] = -(count);
        }
        let table = SlowBoard { points, bar: [0; 2], off: [0; 2] };
        SlowBackgammon { table, seat: 0, roll: None, plies: 0 }
    }

    fn over(&self) -> bool {
        self.table.off.contains(&15) || self.plies >= 2000
    }

    /// Returns the results of the legal plays with their texts.
    fn plays(&self) -> BTreeMap<SlowBoard, String> {
        let (larger, smaller) = self.roll.unwrap();
        let orders = if larger == smaller {
            vec![vec![larger; 4]]
        } else {
            vec![vec![larger, smaller], vec![smaller, larger]]
        };
        let mut ways: Vec<(Vec<i32>, Vec<Step>, SlowBoard)> = Vec::new();
        for order in orders {
            let mut found = Vec::new();
            self.table.ways(self.seat, &order, &mut Vec::new(), &mut found);
            ways.extend(found.into_iter().map(|(steps, table)| (order.clone(), steps, table)));
        }
        let most = ways.iter().map(|(_, steps, _)| steps.len()).max().unwrap();
        ways.retain(|(_, steps, _)| steps.len() == most);
        if most == 1 && ways.iter().any(|(order, ..)| order[0] == larger) {
            ways.retain(|(order, ..)| order[0] == larger);
        }
        let mut written: BTreeMap<SlowBoard, Vec<Step>> = BTreeMap::new();
        for (_, mut steps, table) in ways {
            let order = |steps: &[Step]| steps.iter().map(|&(from, to)| (-from, to)).collect::<Vec<_>>();
            steps.sort_by_key(|&(from, to)| (-from, to));
            let known = written.entry(table).or_insert_with(|| steps.clone());
            if order(&steps) < order(known) {
                *known = steps;
            }
        }
        let name = |place: i32| match place {
            0 => "off".to_string(),
            25 => "bar".to_string(),
            point => point.to_string(),
        };
        let text = |steps: Vec<Step>| {
            let parts: Vec<String> =
                steps.iter().map(|&(from, to)| format!("{}/{}", name(from), name(to))).collect();
            if parts.is_empty() { "pass".to_string() } else { parts.join(",") }
        };
        written.into_iter().map(|(table, steps)| (table, text(steps))).collect()
    }
}

impl Slow for SlowBackgammon {
    fn turn(&self) -> String {
        match self.roll {
            _ if self.over() => "over".to_string(),
            None => "chance".to_string(),
            Some(_) => format!("seat {}", self.seat),
        }
    }

    fn legal(&self) -> Vec<String> {
        if self.over() {
            Vec::new()
        } else if self.roll.is_some() {
            self.plays().into_values().collect()
        } else {
            let dice = (1..=6).flat_map(|one| (1..=6).map(move |two| (one, two)));
            dice.filter(|(one, two)| one > two || one == two && self.plies > 0)
                .map(|(one, two)| format!("{one}{two}"))
                .collect()
        }
    }

    fn play(&mut self, text: &str) {
        if self.roll.is_some() {
            self.table = self.plays().into_iter().find(|(_, known)| known == text).unwrap().0;
            self.roll = None;
            self.seat = 1 - self.seat;
        } else {
            let dice: i32 = text.parse().unwrap();
            self.roll = Some((dice / 10, dice % 10));
        }
        self.plies += 1;
    }

    fn payoffs(&self) -> Vec<i32> {
        let Some(winner) = (0..2).find(|&seat| self.table.off[seat] == 15) else { return vec![0, 0] };
        let loser = 1 - winner;
        let in_winners_home = (1..=6).any(|point| self.table.on(winner, point) < 0);
        let won = match self.table.off[loser] {
            0 if self.table.bar[loser] > 0 || in_winners_home => 3,
            0 => 2,
            _ => 1,
        };
        if winner == 0 { vec![won, -won] } else { vec![-won, won] }
    }
}

#[test]
fn agrees_with_slow_rules() {
    harness::agree("backgammon", &SlowBackgammon::start(), 21, 60);
    harness::slow_perft_agrees("backgammon", &SlowBackgammon::start(), 3);
}

/// Places a side's checkers at random, none on points of `taken`, most of them on `0..=top` of its numbering.
fn scattered(random: &mut agon_games::random::Random, top: usize, taken: &[u32; 26]) -> [u32; 26] {
    let mut checkers = [0; 26];
    let mut left = 15;
    while left > 0 {
        let place = if below(random, 10) == 0 { below(random, 26) } else { below(random, top + 1) };
        if place == 0 || place == 25 || taken[25 - place] == 0 {
            checkers[place] += 1;
            left -= 1;
        }
    }
    checkers
}

fn side_text(checkers: &[u32; 26]) -> String {
    let name = |place: usize| match place {
        0 => "off".to_string(),
        25 => "bar".to_string(),
        point => point.to_string(),
    };
    let held = (0..26).rev().filter(|&place| checkers[place] > 0);
    held.map(|place| format!("{}:{}", name(place), checkers[place])).collect::<Vec<_>>().join(",")
}

/// Positions that random games rarely reach: bearing off under contact, several checkers on the bar, single checkers.
#[test]
fn scattered_positions_agree_with_slow_rules() {
    let mut random = seeded(12);
    let mut compared = 0;
    for _ in 0..600 {
        let tops = [3, 6, 6, 8, 12, 25];
        let mut top = || tops[below(&mut random, tops.len())];
        let (own_top, other_top) = (top(), top());
        let own = scattered(&mut random, own_top, &[0; 26]);
        let other = scattered(&mut random, other_top, &own);
        let double = 1 + below(&mut random, 6) as i32;
        let rolls = (1..=6).flat_map(|one| (1..one).map(move |two| (one, two))).chain([(double, double)]);
        for (larger, smaller) in rolls {
            let text = format!("{} {} x {larger}{smaller} 5", side_text(&own), side_text(&other));
            let Ok(fast) = Backgammon::from_position(&Parameters::defaults(&[]), &text) else { continue };
            let mut slow = SlowBackgammon::start();
            slow.roll = Some((larger, smaller));
            slow.plies = 5;
            for point in 1..=24 {
                slow.table.points[point] = own[point] as i32 - other[25 - point] as i32;
            }
            slow.table.bar = [own[25] as i32, other[25] as i32];
            slow.table.off = [own[0] as i32, other[0] as i32];
            let mut expected = slow.legal();
            expected.sort_unstable();
            assert_eq!(legal(&fast), expected, "{text}");
            compared += expected.len();
        }
    }
    assert!(compared > 50_000, "{compared}");
}
