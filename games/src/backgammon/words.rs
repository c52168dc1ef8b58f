//! Reading and writing moves, boards and positions.

use super::plays::steps;
use super::side::{BAR, BAR_PLACE, HOME, POINTS, Side, mirrored};
use super::{Backgammon, CHECKERS, Move, PLY_LIMIT};
use crate::game::{Game, Notation, Seat, Turn};
use crate::text::{fields, number, read_mover, read_plies};

const SYMBOLS: [char; 2] = ['x', 'o'];

/// The source and the target of a checker's step.
type Part = (u8, u8);

fn place_name(place: u8) -> String {
    match place {
        0 => "off".to_string(),
        25 => "bar".to_string(),
        point => point.to_string(),
    }
}

fn place_named(name: &str) -> Option<u8> {
    match name {
        "off" => Some(0),
        "bar" => Some(25),
        _ => number(name).filter(|point| (1..=24).contains(point)).map(|point| point as u8),
    }
}

/// Returns the change in the number of checkers on each place.
fn balance(parts: &[Part]) -> [i8; 26] {
    let mut balance = [0; 26];
    for &(from, to) in parts {
        balance[usize::from(from)] -= 1;
        balance[usize::from(to)] += 1;
    }
    balance
}

/// Sorts by descending source, then by descending step.
fn sort(parts: &mut [Part]) {
    parts.sort_unstable_by_key(|&(from, to)| (25 - from, to));
}

/// Reads the parts of a play. Combined steps of one checker become several parts.
fn read_parts(text: &str) -> Option<Vec<Part>> {
    let mut parts = Vec::new();
    for way in text.split(',') {
        let places: Vec<u8> = way
            .split('/')
            .map(|name| place_named(name.strip_suffix('*').unwrap_or(name)))
            .collect::<Option<_>>()?;
        // A play has at most four parts.
        if places.len() < 2 || places.len() > 5 || parts.len() > 4 {
            return None;
        }
        parts.extend(places.windows(2).map(|pair| (pair[0], pair[1])));
    }
    if parts.iter().any(|(from, to)| from <= to) {
        return None;
    }
    sort(&mut parts);
    Some(parts)
}

impl Backgammon {
    fn parts(&self, sources: [u8; 4]) -> Vec<Part> {
        let used = sources.into_iter().zip(steps(self.dice)).filter(|&(source, _)| source != 0);
        let mut parts: Vec<Part> = used.map(|(source, die)| (source, source.saturating_sub(die))).collect();
        sort(&mut parts);
        parts
    }

    fn checkers_text(&self, seat: Seat) -> String {
        let side = &self.sides[seat.index()];
        let held: Vec<String> = (0..=25u8)
            .rev()
            .map(|place| (place, side.count(u32::from(place))))
            .filter(|&(_, count)| count > 0)
            .map(|(place, count)| format!("{}:{count}", place_name(place)))
            .collect();
        held.join(",")
    }

    /// Returns the number and the symbol of the checkers on a point, in seat 0's numbering.
    fn on_point(&self, point: u32) -> (u32, char) {
        let [own, other] = [self.sides[0].count(point), self.sides[1].count(25 - point)];
        if own > 0 { (own, SYMBOLS[0]) } else { (other, SYMBOLS[1]) }
    }

    /// Draws a half of the board, five checkers high; higher stacks are written as a number.
    fn half(&self, upper: bool) -> Vec<String> {
        let bar_of = usize::from(upper);
        let column = |index: u32| if upper { 13 + index } else { 12 - index };
        let cell = |(count, symbol): (u32, char), height: u32| match height {
            5 if count > 5 => format!("{count:>2} "),
            _ if count >= height => format!(" {symbol} "),
            _ => "   ".to_string(),
        };
        let row = |height: u32| {
            let points = |range: std::ops::Range<u32>| -> String {
                range.map(|index| cell(self.on_point(column(index)), height)).collect()
            };
            let bar = cell((self.sides[bar_of].count(BAR_PLACE), SYMBOLS[bar_of]), height);
            format!("|{}|{bar}|{}|", points(0..6), points(6..12)).trim_end().to_string()
        };
        let labels = |range: std::ops::Range<u32>| -> String {
            range.map(|index| format!("{:->2}-", column(index))).collect()
        };
        let mut lines = vec![format!("+{}+---+{}+", labels(0..6), labels(6..12))];
        lines.extend((1..=5).map(row));
        if !upper {
            lines.reverse();
        }
        lines
    }
}

impl Notation for Backgammon {
    const MARKS: &'static [&'static str] = &["x", "o"];

    fn write_move(&self, mv: Move, out: &mut String) {
        match mv {
            Move::Roll([larger, smaller]) => out.push_str(&format!("{larger}{smaller}")),
            Move::Play([0, 0, ..]) => out.push_str("pass"),
            Move::Play(sources) => {
                let parts = self.parts(sources).into_iter();
                let texts: Vec<String> =
                    parts.map(|(from, to)| format!("{}/{}", place_name(from), place_name(to))).collect();
                out.push_str(&texts.join(","));
            }
        }
    }

    fn parse_move(&self, text: &str) -> Option<Move> {
        let mut moves = Vec::new();
        self.moves(&mut moves);
        if self.turn() == Turn::Chance {
            let [one, two] = <[u8; 2]>::try_from(text.as_bytes()).ok()?.map(|byte| byte.wrapping_sub(b'0'));
            let roll = Move::Roll([one.max(two), one.min(two)]);
            return moves.into_iter().find(|&mv| mv == roll);
        }
        let parts = if text == "pass" { Vec::new() } else { read_parts(text)? };
        let wanted = balance(&parts);
        let of = |mv: &Move| match *mv {
            Move::Play(sources) => self.parts(sources),
            Move::Roll(_) => Vec::new(),
        };
        moves.retain(|mv| balance(&of(mv)) == wanted);
        match moves[..] {
            [only] => Some(only),
            // They differ in the hits on the way, so all parts are needed.
            _ => moves.into_iter().find(|mv| of(mv) == parts),
        }
    }

    fn board(&self) -> String {
        let mut lines = self.half(true);
        lines.push(format!("|{:18}|bar|{:18}|", "", ""));
        lines.extend(self.half(false));
        let [x, o] = [Seat::FIRST, Seat::SECOND].map(|seat| {
            let side = &self.sides[seat.index()];
            format!("{}: {} off, {} pips", SYMBOLS[seat.index()], side.off(), side.pips())
        });
        let mover = SYMBOLS[self.mover().index()];
        let next = match self.turn() {
            Turn::Over => "over".to_string(),
            Turn::Chance if self.plies == 0 => "x to roll, the opening".to_string(),
            Turn::Chance => format!("{mover} to roll"),
            Turn::Player(_) => format!("{mover} to play {}{}", self.dice[0], self.dice[1]),
        };
        lines.push(format!("{x}; {o}; {next}"));
        lines.join("\n")
    }

    fn position(&self) -> String {
        let [x, o] = [Seat::FIRST, Seat::SECOND].map(|seat| self.checkers_text(seat));
        let roll = match self.dice {
            [0, _] => "-".to_string(),
            [larger, smaller] => format!("{larger}{smaller}"),
        };
        format!("{x} {o} {} {roll} {}", SYMBOLS[self.mover().index()], self.plies)
    }

    fn ending(&self) -> &'static str {
        match self.payoff(Seat::FIRST).abs() {
            0 => "ply limit",
            1 => "borne off",
            2 => "gammon",
            _ => "backgammon",
        }
    }
}

fn read_side(name: &str, text: &str) -> Result<Side, String> {
    let mut side = Side::NONE;
    let mut last = 26;
    let mut sum = 0;
    for held in text.split(',') {
        let (place, count) = held
            .split_once(':')
            .and_then(|(place, count)| Some((place_named(place)?, number(count)?)))
            .ok_or_else(|| format!("`{held}` is not a place (bar, 24 to 1, off) and a number as in 13:5"))?;
        if place >= last {
            return Err(format!("the places of {name} must go down from the bar to off, each once"));
        }
        last = place;
        if count == 0 || count > CHECKERS {
            return Err(format!("`{held}`: a named place holds 1 to {CHECKERS} checkers"));
        }
        sum += count;
        for _ in 0..count {
            side.add(1 << place);
        }
    }
    if sum == CHECKERS { Ok(side) } else { Err(format!("{name} has {sum} checkers instead of {CHECKERS}")) }
}

/// Reads the text of [`Notation::position`].
pub fn read_position(text: &str) -> Result<Backgammon, String> {
    let [x, o, mover, roll, plies] = fields(text)?;
    let sides = [read_side("x", x)?, read_side("o", o)?];
    if mirrored(sides[0].occupied()) & sides[1].occupied() != 0 {
        return Err("a point is held by both sides".to_string());
    }
    let mover = read_mover(mover, &SYMBOLS)?;
    let plies = read_plies(plies, PLY_LIMIT)?;
    let dice = match *roll.as_bytes() {
        [b'-'] => [0; 2],
        [larger @ b'1'..=b'6', smaller @ b'1'..=b'6'] if larger >= smaller => [larger - b'0', smaller - b'0'],
        _ => return Err("the roll is - or two dice, the larger first".to_string()),
    };
    let position = Backgammon { sides, plies, dice };
    if position.mover() != mover {
        return Err("the plies do not fit the mover: x has plies 0 and 1 of each four".to_string());
    }
    if (plies % 2 == 1) != (dice != [0; 2]) {
        return Err("the dice are to be rolled after an even number of plies, and rolled after an odd one"
            .to_string());
    }
    if plies < 2 && sides != [Side::START; 2] {
        return Err("before the first play the checkers must be placed as at the start".to_string());
    }
    if plies == 1 && dice[0] == dice[1] {
        return Err("the opening roll is no double".to_string());
    }
    if position.own().all_off() {
        return Err("a side that has borne off all checkers has no turn".to_string());
    }
    if position.other().all_off() && dice != [0; 2] {
        return Err("the game is over, so there is no roll".to_string());
    }
    let shut_out =
        |seat: usize| sides[seat].occupied() & BAR != 0 && sides[seat ^ 1].points() & HOME == HOME & POINTS;
    if shut_out(0) && shut_out(1) {
        return Err("both sides are shut out, which no play leads to".to_string());
    }
    Ok(position)
}
