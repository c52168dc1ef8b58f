//! Othello: published counts, the shortest game, and slow rules on a grid of characters. Random games cover passes and
//! ends, which perft from the start hardly reaches.

use agon_games::othello::Othello;
use agon_games::perft::perft;
use agon_games::random::{below, seeded};
use agon_games::{Game, Keyed, Noisy, Notation, Parameters, Seat, Setup, SetupError, Turn};

use crate::harness::{Slow, Variant, agree, slow_perft_agrees};

pub const VARIANTS: &[Variant] = &[("othello", 120)];

fn start() -> Othello {
    Othello::initial(&Parameters::defaults(Othello::PARAMETERS)).unwrap()
}

fn read(text: &str) -> Result<Othello, SetupError> {
    Othello::from_position(&Parameters::defaults(Othello::PARAMETERS), text)
}

fn legal(position: &Othello) -> Vec<String> {
    let mut moves = Vec::new();
    position.moves(&mut moves);
    moves.into_iter().map(|mv| position.move_text(mv)).collect()
}

#[test]
fn shortest_game_takes_nine_plies() {
    let mut position = start();
    assert_eq!(legal(&position), ["d3", "c4", "f5", "e6"]);
    for text in "e6 f4 e3 f6 g5 d6 e7 f5 c5".split(' ') {
        assert_ne!(position.turn(), Turn::Over);
        position.play(position.parse_move(text).unwrap());
    }
    assert_eq!((position.turn(), position.ending()), (Turn::Over, "neither can move"));
    assert_eq!((position.payoff(Seat::FIRST), position.payoff(Seat::SECOND)), (1, -1));
}

/// Published tables also count games that ended earlier: 24,571,284 at depth 10.
#[test]
fn games_over_within_nine_plies_match_published_count() {
    fn ended(position: &mut Othello, depth: u32) -> u64 {
        if position.turn() == Turn::Over {
            return 1;
        }
        let mut moves = Vec::new();
        if depth > 0 {
            position.moves(&mut moves);
        }
        moves.into_iter().map(|mv| position.after(mv, |next| ended(next, depth - 1))).sum()
    }
    assert_eq!(ended(&mut start(), 9), 24_571_284 - 24_571_056);
}

#[test]
fn side_without_placement_passes() {
    // Black's only disc is adjacent to h8, and no line from h8 ends at another.
    let mut position = read("oooooooo/oooooooo/oooooooo/oooooooo/oooooooo/oooooooo/oooooooo/oooooox. x").unwrap();
    assert_eq!((legal(&position), position.turn()), (vec!["pass".to_string()], Turn::Player(Seat::FIRST)));
    assert_eq!(position.count(&mut Vec::new()), 1);
    position.play(position.parse_move("pass").unwrap());
    assert_eq!((legal(&position), position.turn()), (vec!["h8".to_string()], Turn::Player(Seat::SECOND)));
    // The corner is the only placement, so the mover may not stand pat.
    let mut noisy = Vec::new();
    position.noisy_moves(&mut noisy);
    assert_eq!((noisy.len(), position.may_stand_pat()), (1, false));
    position.play(noisy[0]);
    assert_eq!((position.turn(), position.ending()), (Turn::Over, "board full"));
    assert_eq!(position.payoff(Seat::SECOND), 1);
}

/// The boards are stored from the mover's view, so these positions differ only in the mover.
#[test]
fn exchanged_colours_have_another_key() {
    let black = read("......../......../......../...xxx../...xo.../......../......../........ o").unwrap();
    let white = read("......../......../......../...ooo../...ox.../......../......../........ x").unwrap();
    assert_ne!(black.key(), white.key());
}

#[test]
fn rejects_invalid_positions() {
    for (text, reason) in [
        ("", "it has 1 field instead of 2"),
        ("......../......../......../...ox.../...xo.../......../........ x", "8 rows of 8 squares"),
        ("......../......../......../...ox.../...xo.../......../......../....... x", "8 rows of 8 squares"),
        ("......../......../......../...ox.../...xz.../......../......../........ x", "`z` is not a square"),
        ("......../......../......../...ox.../...x..../......../......../........ x", "never empty"),
        ("x......./......../......../...ox.../...xo.../......../......../........ x", "not connected"),
        ("......../......../......../...ox.../...xo.../......../......../........ X", "the seat to move is x or o"),
        ("......../......../......../...ox.../...xo.../......../......../........ x x", "it has 3 fields instead of 2"),
    ] {
        let error = read(text).unwrap_err().to_string();
        assert!(error.contains(reason), "{text}: {error}");
    }
}

#[test]
fn damaged_positions_never_panic() {
    let mut random = seeded(13);
    let mut accepted = 0;
    for _ in 0..3000 {
        let mut text: Vec<char> = "..o...../..oxx.../..xoxo../...xxo../...xox../..oo.x../..o...../........ o".chars().collect();
        for _ in 0..=below(&mut random, 3) {
            let at = below(&mut random, text.len());
            let with = ['x', 'o', '.', '/', ' ', '\t', '8', '\u{e9}'][below(&mut random, 8)];
            match below(&mut random, 3) {
                0 => text[at] = with,
                1 => text.insert(at, with),
                _ => drop(text.remove(at)),
            }
        }
        let text: String = text.into_iter().collect();
        if let Ok(mut position) = read(&text) {
            accepted += 1;
            assert_eq!(position.position(), text);
            perft(&mut position, 2, &mut Vec::new());
        }
    }
    assert!(accepted > 50, "{accepted}");
}

#[derive(Clone)]
struct SlowOthello {
    grid: [[char; 8]; 8],
    plies: usize,
}

impl SlowOthello {
    fn new() -> SlowOthello {
        let mut grid = [['.'; 8]; 8];
        (grid[3][3], grid[3][4], grid[4][3], grid[4][4]) = ('o', 'x', 'x', 'o');
        SlowOthello { grid, plies: 0 }
    }

    fn mover(&self) -> char {
        ['x', 'o'][self.plies % 2]
    }

    fn at(&self, row: i32, column: i32) -> char {
        let inside = (0..8).contains(&row) && (0..8).contains(&column);
        if inside { self.grid[row as usize][column as usize] } else { '.' }
    }

    /// Returns the discs that a disc of `side` would turn.
    fn turned(&self, side: char, row: i32, column: i32) -> Vec<(i32, i32)> {
        let mut turned = Vec::new();
        if self.at(row, column) != '.' {
            return turned;
        }
        for (down, right) in [(-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1)] {
            let mut steps = 1;
            while !['.', side].contains(&self.at(row + steps * down, column + steps * right)) {
                steps += 1;
            }
            if self.at(row + steps * down, column + steps * right) == side {
                turned.extend((1..steps).map(|step| (row + step * down, column + step * right)));
            }
        }
        turned
    }

    fn placements(&self, side: char) -> Vec<String> {
        let squares = (0..8).flat_map(|row| (0..8).map(move |column| (row, column)));
        squares
            .filter(|&(row, column)| !self.turned(side, row, column).is_empty())
            .map(|(row, column)| format!("{}{}", char::from(b'a' + column as u8), row + 1))
            .collect()
    }
}

impl Slow for SlowOthello {
    fn turn(&self) -> String {
        let over = self.placements('x').is_empty() && self.placements('o').is_empty();
        if over { "over".to_string() } else { format!("seat {}", self.plies % 2) }
    }

    fn legal(&self) -> Vec<String> {
        let placements = self.placements(self.mover());
        let pass = placements.is_empty() && self.turn() != "over";
        if pass { vec!["pass".to_string()] } else { placements }
    }

    fn play(&mut self, text: &str) {
        if text != "pass" {
            let (column, row) = (i32::from(text.as_bytes()[0] - b'a'), i32::from(text.as_bytes()[1] - b'1'));
            for (row, column) in self.turned(self.mover(), row, column).into_iter().chain([(row, column)]) {
                self.grid[row as usize][column as usize] = self.mover();
            }
        }
        self.plies += 1;
    }

    fn payoffs(&self) -> Vec<i32> {
        let count = |side| self.grid.iter().flatten().filter(|square| **square == side).count();
        let sign = count('x').cmp(&count('o')) as i32;
        vec![sign, -sign]
    }
}

#[test]
fn agrees_with_slow_rules() {
    agree("othello", &SlowOthello::new(), 3, 150);
    slow_perft_agrees("othello", &SlowOthello::new(), 6);
}
