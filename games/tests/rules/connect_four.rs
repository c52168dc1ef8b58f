//! Connect four: published counts, values of small boards, and slow rules for sizes without a table.

use std::collections::HashMap;

use agon_games::connect_four::ConnectFour;
use agon_games::{
    GameSpec,
    FeatureSet, Features, Game, Keyed, Noisy, Notation, Ordered, Parameters, Reseat, Seat, Setup, Turn,
};

use crate::harness::{Slow, Variant, agree, slow_perft_agrees};

/// The usual board, small boards, an odd height, and boards that fill 64 bits or nearly.
pub const VARIANTS: &[Variant] = &[
    ("connect-four", 250),
    ("connect-four:width=4,height=4", 60),
    ("connect-four:width=5,height=5", 60),
    ("connect-four:width=4,height=9", 60),
    ("connect-four:width=8,height=7", 60),
    ("connect-four:width=9,height=6", 60),
];

fn parameters(width: &str, height: &str) -> Parameters {
    GameSpec::new(ConnectFour::NAME, [("width", width), ("height", height)]).unwrap().parameters().clone()
}

fn start() -> ConnectFour {
    ConnectFour::initial(&parameters("7", "6")).unwrap()
}

fn after(moves: &str) -> ConnectFour {
    let mut position = start();
    for column in moves.chars() {
        let mv = position.parse_move(&column.to_string()).unwrap_or_else(|| panic!("{column} of {moves}"));
        position.play(mv);
    }
    position
}

#[test]
fn distinct_positions_by_ply_match_published_counts() {
    let mut level = vec![start()];
    let mut counts = Vec::new();
    loop {
        counts.push(level.len());
        if counts.len() == 10 {
            break;
        }
        let (mut next, mut moves) = (Vec::new(), Vec::new());
        for position in &level {
            moves.clear();
            position.moves(&mut moves);
            for &mv in &moves {
                let mut child = position.clone();
                child.play(mv);
                next.push(child);
            }
        }
        next.sort_by_cached_key(Keyed::key);
        next.dedup_by_key(|position| position.key());
        level = next;
    }
    assert_eq!(counts, [1, 7, 49, 238, 1120, 4263, 16_422, 54_859, 184_275, 558_186]);
}

/// Returns whether `seat` can force a win, by memoised search.
fn wins(seat: Seat, position: &ConnectFour, known: &mut HashMap<u64, bool>) -> bool {
    let Turn::Player(mover) = position.turn() else { return position.payoff(seat) == 1 };
    if let Some(&wins_here) = known.get(&position.key()) {
        return wins_here;
    }
    let mut moves = Vec::new();
    position.moves(&mut moves);
    moves.sort_by_key(|&mv| -position.promise(mv));
    let mut reaches = |wanted: bool| {
        moves.iter().any(|&mv| {
            let mut next = position.clone();
            next.play(mv);
            wins(seat, &next, known) == wanted
        })
    };
    let wins_here = if mover == seat { reaches(true) } else { !reaches(false) };
    known.insert(position.key(), wins_here);
    wins_here
}

/// Tromp's table of solved sizes (tromp.github.io/c4/c4.html): draws, and a win of the second seat on 6 x 4.
#[test]
fn small_boards_have_known_values() {
    for (width, height, winner) in [("4", "4", None), ("5", "4", None), ("6", "4", Some(Seat::SECOND))] {
        let start = ConnectFour::initial(&parameters(width, height)).unwrap();
        let found = Seat::all(2).find(|&seat| wins(seat, &start, &mut HashMap::new()));
        assert_eq!(found, winner, "{width} x {height}");
    }
}

/// Columns as strings, with lines found from every square.
#[derive(Clone)]
struct SlowConnectFour {
    columns: Vec<String>,
    height: usize,
    plies: usize,
}

impl SlowConnectFour {
    fn new(width: usize, height: usize) -> SlowConnectFour {
        SlowConnectFour { columns: vec![String::new(); width], height, plies: 0 }
    }

    fn at(&self, column: i32, row: i32) -> Option<char> {
        let column = self.columns.get(usize::try_from(column).ok()?)?;
        column.chars().nth(usize::try_from(row).ok()?)
    }

    fn winner(&self) -> Option<char> {
        for column in 0..self.columns.len() as i32 {
            for row in 0..self.height as i32 {
                for (right, up) in [(1, 0), (0, 1), (1, 1), (1, -1)] {
                    let line: Vec<_> = (0..4).map(|n| self.at(column + n * right, row + n * up)).collect();
                    if line[0].is_some() && line.iter().all(|stone| *stone == line[0]) {
                        return line[0];
                    }
                }
            }
        }
        None
    }
}

impl Slow for SlowConnectFour {
    fn turn(&self) -> String {
        if self.legal().is_empty() { "over".to_string() } else { format!("seat {}", self.plies % 2) }
    }

    fn legal(&self) -> Vec<String> {
        if self.winner().is_some() {
            return Vec::new();
        }
        let open = |column: &usize| self.columns[column - 1].len() < self.height;
        (1..=self.columns.len()).filter(open).map(|column| column.to_string()).collect()
    }

    fn play(&mut self, text: &str) {
        let column: usize = text.parse().unwrap();
        self.columns[column - 1].push(['x', 'o'][self.plies % 2]);
        self.plies += 1;
    }

    fn payoffs(&self) -> Vec<i32> {
        match self.winner() {
            Some('x') => vec![1, -1],
            Some(_) => vec![-1, 1],
            None => vec![0, 0],
        }
    }
}

#[test]
fn agrees_with_slow_rules() {
    for (width, height) in [(7, 6), (4, 4), (5, 5), (4, 9), (8, 7), (9, 6), (6, 9), (9, 4)] {
        let game = format!("connect-four:width={width},height={height}");
        agree(&game, &SlowConnectFour::new(width, height), 3, 60);
    }
    slow_perft_agrees("connect-four", &SlowConnectFour::new(7, 6), 5);
    slow_perft_agrees("connect-four:width=4,height=4", &SlowConnectFour::new(4, 4), 8);
    slow_perft_agrees("connect-four:width=5,height=5", &SlowConnectFour::new(5, 5), 7);
}

fn values(position: &ConnectFour, seat: Seat) -> HashMap<&'static str, i32> {
    let mut values = vec![0; ConnectFour::FEATURES.len()];
    position.features(seat, FeatureSet::ALL, &mut values);
    ConnectFour::FEATURES.iter().map(|feature| feature.name).zip(values).collect()
}

#[test]
fn features_of_positions_counted_by_hand() {
    // 69 lines of four; a stone in the lower corner is on three, one at the bottom of the centre on seven.
    assert_eq!(values(&after("1"), Seat::FIRST)["open_lines"], 3);
    assert_eq!(values(&after("4"), Seat::FIRST)["open_lines"], 7);
    assert_eq!(values(&after("4"), Seat::FIRST)["centre"], 3);
    // Three crosses on the bottom row between two empty squares: two threats, which one stone does not stop.
    let three = values(&after("33445"), Seat::FIRST);
    assert_eq!((three["threats"], three["zugzwang_threats"], three["tactics"]), (2, 2, 1));
    assert_eq!(values(&after("33445"), Seat::SECOND)["tactics"], -1);
    // Noughts on the second row above the crosses: two threats each, on the rows that suit each side; those of the
    // noughts are not reachable yet.
    let above = values(&after("3344557"), Seat::SECOND);
    assert_eq!((above["zugzwang_threats"], above["threats"], above["tactics"]), (0, 0, -1), "{above:?}");
    // A column of three crosses is a threat on its fourth, even square.
    let column = values(&after("31313"), Seat::FIRST);
    assert_eq!((column["threats"], column["zugzwang_threats"], column["twos"]), (1, 0, 0), "{column:?}");
}

#[test]
fn noisy_moves_win_or_answer_threats() {
    let noisy = |moves: &str| {
        let position = after(moves);
        let mut noisy = Vec::new();
        position.noisy_moves(&mut noisy);
        let texts: Vec<String> = noisy.into_iter().map(|mv| position.move_text(mv)).collect();
        (texts.join(""), position.may_stand_pat())
    };
    assert_eq!(noisy("4455"), (String::new(), true));
    assert_eq!(noisy("44553"), ("1234567".to_string(), false));
    assert_eq!(noisy("445537"), ("26".to_string(), true));
}

#[test]
fn line_after_reseat_wins_for_its_owner() {
    let mut position = after("142434").reseat(Seat::SECOND).unwrap();
    position.play(position.parse_move("4").unwrap());
    assert_eq!((position.turn(), position.payoff(Seat::SECOND)), (Turn::Over, 1));
}

#[test]
fn rejects_impossible_positions() {
    for (text, reason) in [
        ("..../..../.x../.... o", "a stone hangs in the air"),
        ("..../..../..../.x.. x", "the number of stones does not fit the seat to move"),
        ("..../..../..../xxx. x", "the number of stones does not fit the seat to move"),
        ("..../..../.... x", "there must be 4 rows of 4 squares"),
        ("..../..../..../..... x", "there must be 4 rows of 4 squares"),
        ("..../..../..../....", "it has 1 field instead of 2"),
        ("..../..../..../...y x", "`y` is not a square; a square is x, o or ."),
        ("..../..../..../.x.. 1", "the seat to move is x or o"),
        ("..../..../oooo/xxxx x", "the side to move already has four in a line"),
        ("..../ooo./oooo/xxxx o", "the number of stones does not fit the seat to move"),
        ("oooo/xxxx/ooo./xxxx o", "a stone hangs in the air"),
        ("..../o.../oxoo/xxxx o", "no last stone can have completed all lines of four"),
    ] {
        let error = ConnectFour::from_position(&parameters("4", "4"), text).unwrap_err().to_string();
        assert!(error.contains(reason), "{text}: {error}");
    }
    let error = ConnectFour::initial(&parameters("9", "9")).unwrap_err().to_string();
    assert!(error.contains("width * (height + 1) must be at most 64"), "{error}");
}
