//! Rolit: followed square by square by a second implementation on a map from squares to colours.

use std::collections::BTreeMap;

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

/// The eight directions.
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

    /// The balls that one of the mover on an empty place turns.
    fn turned(&self, (column, row): Place) -> Vec<Place> {
        let mut turned = Vec::new();
        for (right, down) in directions() {
            let mut run = Vec::new();
            for step in 1.. {
                let place = (column + step * right, row + step * down);
                match self.balls.get(&place) {
                    // An empty place, or beyond the board.
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
fn the_slow_rules_agree() {
    for seats in 2..=4 {
        agree(&format!("rolit:seats={seats}"), &SlowRolit::new(seats), 3, 30);
    }
}

#[test]
fn the_slow_perft_agrees() {
    for seats in 2..=4 {
        slow_perft_agrees(&format!("rolit:seats={seats}"), &SlowRolit::new(seats), 6);
    }
}
