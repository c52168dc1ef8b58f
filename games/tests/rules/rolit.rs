//! Rolit: slow rules on a map from squares to colours.

use std::collections::BTreeMap;

use agon_games::perft::perft;
use agon_games::random::{below, seeded};
use agon_games::rolit::Rolit;
use agon_games::{Game, Notation, Parameters, Payoffs, Seat, Setup, SetupError, Turn};

use crate::harness::{Slow, Variant, agree, slow_perft_agrees};

pub const VARIANTS: &[Variant] = &[("rolit:seats=2", 40), ("rolit:seats=3", 40), ("rolit:seats=4", 40)];

/// A column and a row, both from 1.
type Place = (i32, i32);

/// The colour of the ball on each place that has one.
#[derive(Clone)]
struct SlowRolit {
    seats: usize,
    plies: usize,
    balls: BTreeMap<Place, char>,
}

const COLOURS: [char; 4] = ['r', 'y', 'g', 'b'];

fn name((column, row): Place) -> String {
    format!("{}{row}", "?abcdefgh".chars().nth(column as usize).unwrap())
}

fn places() -> impl Iterator<Item = Place> {
    (1..=8).flat_map(|column| (1..=8).map(move |row| (column, row)))
}

/// Returns the eight directions.
fn directions() -> impl Iterator<Item = Place> {
    (-1..=1).flat_map(|right| (-1..=1).map(move |down| (right, down))).filter(|way| *way != (0, 0))
}

impl SlowRolit {
    fn new(seats: usize) -> SlowRolit {
        let centre = [(4, 4), (5, 4), (5, 5), (4, 5)];
        let colours = if seats == 2 { ['y', 'r', 'y', 'r'] } else { COLOURS };
        SlowRolit { seats, plies: 0, balls: centre.into_iter().zip(colours).collect() }
    }

    fn colour(&self) -> char {
        COLOURS[self.plies % self.seats]
    }

    /// Returns the balls that a ball of the mover on an empty place turns.
    fn turned(&self, (column, row): Place) -> Vec<Place> {
        let mut turned = Vec::new();
        for (right, down) in directions() {
            let mut run = Vec::new();
            for step in 1.. {
                let place = (column + step * right, row + step * down);
                match self.balls.get(&place) {
                    // An empty place or off the board.
                    None => break,
                    Some(colour) if *colour == self.colour() => {
                        turned.append(&mut run);
                        break;
                    }
                    Some(_) => run.push(place),
                }
            }
        }
        turned
    }
}

impl Slow for SlowRolit {
    fn turn(&self) -> String {
        if self.balls.len() == 64 { "over".to_string() } else { format!("seat {}", self.plies % self.seats) }
    }

    fn legal(&self) -> Vec<String> {
        let empty: Vec<Place> = places().filter(|place| !self.balls.contains_key(place)).collect();
        let mut legal: Vec<Place> =
            empty.iter().copied().filter(|place| !self.turned(*place).is_empty()).collect();
        if legal.is_empty() {
            let touches = |(column, row): &Place| {
                directions().any(|(right, down)| self.balls.contains_key(&(column + right, row + down)))
            };
            legal = empty.into_iter().filter(touches).collect();
        }
        legal.into_iter().map(name).collect()
    }

    fn play(&mut self, text: &str) {
        let colour = self.colour();
        let place = places().find(|place| name(*place) == text).unwrap();
        let turned = self.turned(place);
        self.balls.extend(turned.into_iter().chain([place]).map(|place| (place, colour)));
        self.plies += 1;
    }

    fn payoffs(&self) -> Vec<i32> {
        let counts: Vec<usize> = COLOURS[..self.seats]
            .iter()
            .map(|colour| self.balls.values().filter(|ball| *ball == colour).count())
            .collect();
        let most = *counts.iter().max().unwrap();
        let winners = counts.iter().filter(|count| **count == most).count() as i32;
        let (win, draw, loss) = if self.seats == 2 { (1, 0, -1) } else { (60, 60 / winners, 0) };
        let payoff = |count: usize| match (count == most, winners) {
            (true, 1) => win,
            (true, _) => draw,
            (false, _) => loss,
        };
        counts.into_iter().map(payoff).collect()
    }
}

#[test]
fn agrees_with_slow_rules() {
    for seats in 2..=4 {
        agree(&format!("rolit:seats={seats}"), &SlowRolit::new(seats), 3, 30);
    }
}

#[test]
fn perft_agrees_with_slow_rules() {
    for seats in 2..=4 {
        slow_perft_agrees(&format!("rolit:seats={seats}"), &SlowRolit::new(seats), 6);
    }
}

fn read<const SEATS: usize>(text: &str) -> Result<Rolit<SEATS>, SetupError> {
    Rolit::from_position(&Parameters::defaults(Rolit::<SEATS>::PARAMETERS), text)
}

#[test]
fn rejects_invalid_positions() {
    let refused = |seats: usize, text: &str, reason: &str| {
        let error = match seats {
            2 => read::<2>(text).unwrap_err().to_string(),
            3 => read::<3>(text).unwrap_err().to_string(),
            _ => read::<4>(text).unwrap_err().to_string(),
        };
        assert!(error.contains(reason), "{text}: {error}");
    };
    let start = "......../......../......../...ry.../...bg.../......../......../........";
    refused(4, start, "it has 1 field instead of 2");
    refused(4, &format!("{start} y"), "it is the turn of `r`, not of `y`");
    refused(4, &format!("{start} "), "it is the turn of `r`, not of ``");
    refused(4, &format!("{} r", &start[1..]), "8 rows of 8 squares");
    refused(4, &format!("{} r", start.replace('b', "x")), "`x` is not a square");
    refused(4, &format!("{} r", start.replace('b', ".")), "never empty");
    refused(4, &format!("r{} y", &start[1..]), "not connected");
    refused(3, "......../......../......../...bb.../...ry.../......../......../........ r", "no player can have placed");
    refused(2, &format!("{start} r"), "no player can have placed the ball `g`");
}

#[test]
fn damaged_positions_never_panic() {
    let mut random = seeded(17);
    let mut accepted = 0;
    for _ in 0..3000 {
        let sound = "..g...../..gyy.../..rbrb../...rrr../...bgy../..gb.y../..y...../........ g";
        let mut text: Vec<char> = sound.chars().collect();
        for _ in 0..=below(&mut random, 3) {
            let at = below(&mut random, text.len());
            let with = ['r', 'y', 'g', 'b', '.', '/', ' ', '\u{e9}'][below(&mut random, 8)];
            match below(&mut random, 3) {
                0 => text[at] = with,
                1 => text.insert(at, with),
                _ => drop(text.remove(at)),
            }
        }
        let text: String = text.into_iter().collect();
        let _ = (read::<2>(&text), read::<3>(&text));
        if let Ok(mut position) = read::<4>(&text) {
            accepted += 1;
            assert_eq!(position.position(), text);
            perft(&mut position, 2, &mut Vec::new());
        }
    }
    assert!(accepted > 50, "{accepted}");
}

/// Two rows per seat, then with single balls of other seats.
#[test]
fn tied_seats_share_the_win() {
    let rows = |last: &str| format!("rrrrrrrr/rrrrrrrr/yyyyyyyy/yyyyyyyy/gggggggg/gggggggg/bbbbbbbb/{last} r");
    let payoffs = |last: &str| {
        let position = read::<4>(&rows(last)).unwrap();
        assert_eq!(position.turn(), Turn::Over);
        Seat::all(4).map(|seat| position.payoff(seat)).collect::<Vec<_>>()
    };
    assert_eq!(payoffs("bbbbbbbb"), [15; 4]);
    assert_eq!(payoffs("rybbbbbb"), [30, 30, 0, 0]);
    assert_eq!(payoffs("bbbbbbbr"), [Payoffs::SHARED.max, 0, 0, 0]);
}

/// A seat without balls may place on any square adjacent to a ball.
#[test]
fn seat_without_balls_places_next_to_any_ball() {
    let position = read::<4>("......../......../......../..yyyb../..yyyb../......../......../........ r").unwrap();
    let mut moves = Vec::new();
    position.moves(&mut moves);
    assert_eq!(moves.len(), 16);
    let mut next = position.clone();
    next.play(position.parse_move("b3").unwrap());
    assert!(next.position().starts_with("......../......../.r....../..yyyb../..yyyb../"), "{}", next.position());
}
