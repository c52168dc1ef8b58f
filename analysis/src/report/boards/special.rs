//! Boards without squares in rows: stacks, a star, pits, points with dice, heaps and scores.

use super::{Picture, WIDTH};
use crate::report::drawing::{Anchor, Drawing, LETTER, SMALL};

const LETTERS: &str = "ABCDEF";
/// Lengths of the rows of the board of Focus and of the star of Chinese checkers.
const FOCUS: [usize; 8] = [4, 6, 8, 8, 8, 8, 6, 4];
const STAR: [usize; 17] = [1, 2, 3, 4, 13, 12, 11, 10, 9, 10, 11, 12, 13, 4, 3, 2, 1];
/// Most heaps that are drawn.
const HEAPS: usize = 30;
/// The angle between neighbouring seeds of a spiral.
const GOLDEN_ANGLE: f64 = 2.399_963;

/// The pips of a die, as columns and rows from -1 to 1.
const PIPS: [&[(f64, f64)]; 6] = [
    &[(0.0, 0.0)],
    &[(-1.0, -1.0), (1.0, 1.0)],
    &[(-1.0, -1.0), (0.0, 0.0), (1.0, 1.0)],
    &[(-1.0, -1.0), (1.0, -1.0), (-1.0, 1.0), (1.0, 1.0)],
    &[(-1.0, -1.0), (1.0, -1.0), (0.0, 0.0), (-1.0, 1.0), (1.0, 1.0)],
    &[(-1.0, -1.0), (1.0, -1.0), (-1.0, 0.0), (1.0, 0.0), (-1.0, 1.0), (1.0, 1.0)],
];

/// Draws a die around a point.
fn die(drawing: &mut Drawing, face: char, (x, y): (f64, f64)) {
    let Some(pips) = face.to_digit(10).and_then(|face| PIPS.get((face as usize).wrapping_sub(1))) else {
        return;
    };
    drawing.rect("die", (x - 12.0, y - 12.0), (24.0, 24.0));
    for (column, row) in *pips {
        drawing.dot("pip", (x + 7.0 * column, y + 7.0 * row), 2.3);
    }
}

impl Picture<'_> {
    /// Draws a board that is not made of rows of squares.
    pub(super) fn special(&self, fields: &[&str], before: &[&str]) -> Option<String> {
        match self.game {
            "focus" => self.focus(fields, before),
            "chinese-checkers" => self.star(fields, before),
            "kalah" => self.pits(fields, before),
            "backgammon" => self.points(fields, before),
            "nim" | "grundy" => self.heaps(fields, before),
            "pig" => self.scores(fields),
            _ => None,
        }
    }

    /// Draws a piece of a seat.
    fn man(&self, drawing: &mut Drawing, seat: usize, at: (f64, f64), radius: f64) {
        drawing.dot(&format!("man {}", self.own(seat)), at, radius);
    }

    fn focus(&self, fields: &[&str], before: &[&str]) -> Option<String> {
        let [board, _, reserves, ..] = fields else { return None };
        let stacks = |text: &str| -> Vec<Vec<String>> {
            text.split('/').map(|row| row.split(',').map(String::from).collect()).collect()
        };
        let (rows, old) = (stacks(board), stacks(before.first().copied().unwrap_or_default()));
        if rows.iter().map(Vec::len).ne(FOCUS) {
            return None;
        }
        let (left, side) = (24.0, 36.0);
        let height = 8.0 * side + 40.0;
        let mut drawing = self.canvas(height);
        for (row, stacks) in rows.iter().enumerate() {
            for (index, stack) in stacks.iter().enumerate() {
                let column = index + (8 - stacks.len()) / 2;
                let at = (left + side * column as f64, 4.0 + side * row as f64);
                drawing.rect("ground sheet cell", at, (side, side));
                if old.get(row).and_then(|old| old.get(index)).is_some_and(|old| old != stack) {
                    drawing.rect("mark", at, (side, side));
                }
                let pieces = stack.chars().filter_map(|letter| LETTERS.find(letter));
                for (level, seat) in pieces.enumerate() {
                    let y = at.1 + side * 0.66 - 4.0 * level as f64;
                    self.man(&mut drawing, seat, (at.0 + side / 2.0, y), side * 0.3);
                }
            }
            let at = (left - 6.0, 4.0 + side * (row as f64 + 0.5));
            drawing.text("quiet", at, Anchor::End, SMALL, &(8 - row).to_string());
        }
        for column in 0..8_u8 {
            let at = (left + side * (f64::from(column) + 0.5), 8.0 * side + 13.0);
            drawing.text("quiet", at, Anchor::Middle, SMALL, &char::from(b'a' + column).to_string());
        }
        let reserves = format!("reserves: {}", reserves.replace(',', ", "));
        drawing.text("quiet", (left, 8.0 * side + 30.0), Anchor::Start, SMALL, &reserves);
        self.legend(&mut drawing, height, &|drawing, seat, at| self.man(drawing, seat, at, 7.0));
        Some(self.finish(drawing))
    }

    fn star(&self, fields: &[&str], before: &[&str]) -> Option<String> {
        let holes =
            |text: &str| -> Vec<Vec<char>> { text.split('/').map(|row| row.chars().collect()).collect() };
        let (rows, old) = (holes(fields[0]), holes(before.first().copied().unwrap_or_default()));
        if rows.iter().map(Vec::len).ne(STAR) {
            return None;
        }
        let (across, down) = (22.0, 19.0);
        let height = 16.0 * down + 28.0;
        let mut drawing = self.canvas(height);
        for (row, holes) in rows.iter().enumerate() {
            let y = 13.0 + down * row as f64;
            let start = WIDTH / 2.0 + 8.0 - across * (holes.len() as f64 - 1.0) / 2.0;
            for (index, &hole) in holes.iter().enumerate() {
                let at = (start + across * index as f64, y);
                if old.get(row).and_then(|old| old.get(index)).is_some_and(|&old| old != hole) {
                    drawing.dot("mark", at, 11.0);
                }
                match LETTERS.find(hole) {
                    Some(seat) => self.man(&mut drawing, seat, at, 8.0),
                    None => drawing.dot("hollow", at, 4.0),
                }
            }
            let name = char::from(b'a' + row as u8).to_string();
            drawing.text("quiet", (4.0, y), Anchor::Start, SMALL, &name);
        }
        self.legend(&mut drawing, height, &|drawing, seat, at| self.man(drawing, seat, at, 7.0));
        Some(self.finish(drawing))
    }

    fn pits(&self, fields: &[&str], before: &[&str]) -> Option<String> {
        /// Reads pits and the store after them.
        fn side(text: &str) -> Option<Vec<u32>> {
            let (pits, store) = text.split_once(':')?;
            pits.split(',').chain([store]).map(|seeds| seeds.parse().ok()).collect()
        }
        let [first, second, _] = fields else { return None };
        let sides = [side(first)?, side(second)?];
        let old = [0, 1].map(|seat| before.get(seat).and_then(|text| side(text)).unwrap_or_default());
        let holes = sides[0].len() - 1;
        let radius = ((WIDTH - 8.0) / (holes as f64 + 2.0) / 2.0).min(24.0);
        let width = 2.0 * radius * (holes as f64 + 2.0);
        let left = (WIDTH - width) / 2.0 + radius;
        let (middle, height) = (2.0 * radius + 10.0, 4.0 * radius + 50.0);
        let mut drawing = self.canvas(height);
        let ground = ((WIDTH - width) / 2.0, middle - 2.0 * radius - 6.0 + 14.0);
        drawing.rect("ground wood", ground, (width, 4.0 * radius + 12.0));
        for (seat, pits) in sides.iter().enumerate() {
            // The first seat is below and sows to the right; the second is above and sows to the left.
            let down = if seat == 0 { 1.0 } else { -1.0 };
            for (index, &seeds) in pits.iter().enumerate() {
                let store = index == holes;
                let column = if seat == 0 { index + 1 } else { holes - index };
                let x = left + 2.0 * radius * column as f64;
                let y = middle + 14.0 + if store { 0.0 } else { down * (radius + 1.0) };
                let changed = old[seat].get(index).is_some_and(|old| *old != seeds);
                let class = if changed { "mark pit" } else { "pit" };
                drawing.dot(class, (x, y), radius * 0.9);
                for seed in 0..seeds.min(40) {
                    let (turn, out) = (f64::from(seed) * GOLDEN_ANGLE, (f64::from(seed) + 0.3).sqrt());
                    let reach = radius * 0.13 * out.min(5.2);
                    drawing.dot("seed", (x + reach * turn.cos(), y + reach * turn.sin()), 1.9);
                }
                let (class, above) =
                    if store { ("plain", radius + 8.0) } else { ("name", (radius + 12.0) * down) };
                drawing.text(class, (x, y + above), Anchor::Middle, SMALL, &seeds.to_string());
            }
        }
        let symbol = |drawing: &mut Drawing, seat: usize, (x, y): (f64, f64)| {
            drawing.text("name", (x, y), Anchor::Middle, LETTER, ["▼", "▲"][seat % 2]);
        };
        self.legend(&mut drawing, height, &symbol);
        Some(self.finish(drawing))
    }

    fn points(&self, fields: &[&str], before: &[&str]) -> Option<String> {
        /// Reads the checkers of a side by place: off is 0 and the bar is 25.
        fn side(text: &str) -> Option<[u32; 26]> {
            let mut places = [0; 26];
            for held in text.split(',') {
                let (place, count) = held.split_once(':')?;
                let place = match place {
                    "bar" => 25,
                    "off" => 0,
                    place => place.parse().ok()?,
                };
                *places.get_mut(place)? = count.parse().ok()?;
            }
            Some(places)
        }
        let [x, o, _, roll, _] = fields else { return None };
        let sides = [side(x)?, side(o)?];
        let old = [0, 1].map(|seat| before.get(seat).and_then(|text| side(text)));
        let classes = ["man black", "man white"];
        let (wide, radius, top, bottom) = (22.0, 10.0, 20.0, 262.0);
        let height = bottom + 20.0;
        let mut drawing = self.canvas(height);
        // Six points, the bar, six points and the tray.
        let column = |index: usize| 2.0 + wide * (index as f64 + if index >= 6 { 1.1 } else { 0.0 });
        drawing.rect("ground wood", (2.0, top), (wide * 14.2, bottom - top));
        drawing.rect("dark", (column(6) - wide * 1.1, top), (wide * 1.1, bottom - top));
        drawing.rect("dark", (column(12), top), (wide * 1.1, bottom - top));
        // Draws a stack from an edge; above five checkers, their number.
        let stack = |drawing: &mut Drawing, seat: usize, count: u32, x: f64, upper: bool| {
            for level in 0..count.min(5) {
                let out = radius + 1.0 + 2.0 * radius * f64::from(level);
                let y = if upper { top + out } else { bottom - out };
                drawing.dot(classes[seat], (x, y), radius);
                if level == 4 && count > 5 {
                    let class = ["on-black", "on-white"][seat];
                    drawing.text(class, (x, y), Anchor::Middle, SMALL, &count.to_string());
                }
            }
        };
        for place in 1..=24 {
            let upper = place > 12;
            let index = if upper { place - 13 } else { 12 - place };
            let x = column(index);
            let (base, tip) = if upper { (top, top + 100.0) } else { (bottom, bottom - 100.0) };
            let own = |places: &[u32; 26], seat: usize| places[if seat == 0 { place } else { 25 - place }];
            let changed = (0..2)
                .any(|seat| old[seat].as_ref().is_some_and(|old| own(old, seat) != own(&sides[seat], seat)));
            let class = match changed {
                true => "mark",
                false if place % 2 == 0 => "point odd",
                false => "point",
            };
            drawing.path(class, [(x + 1.0, base), (x + wide - 1.0, base), (x + wide / 2.0, tip)], true);
            for (seat, places) in sides.iter().enumerate() {
                stack(&mut drawing, seat, own(places, seat), x + wide / 2.0, upper);
            }
            let y = if upper { top - 9.0 } else { bottom + 9.0 };
            if place % 6 < 2 {
                drawing.text("quiet", (x + wide / 2.0, y), Anchor::Middle, SMALL, &place.to_string());
            }
        }
        for (seat, places) in sides.iter().enumerate() {
            let upper = seat == 1;
            stack(&mut drawing, seat, places[25], column(6) - wide * 0.55, !upper);
            stack(&mut drawing, seat, places[0], column(12) + wide * 0.55, upper);
        }
        // The roll that was played is in the position before.
        let roll = if *roll == "-" { before.get(3).copied().unwrap_or("-") } else { roll };
        for (index, face) in roll.chars().enumerate() {
            die(&mut drawing, face, (column(8) + 30.0 * index as f64, f64::midpoint(top, bottom)));
        }
        self.legend(&mut drawing, height, &|drawing, seat, at| drawing.dot(classes[seat % 2], at, 7.0));
        Some(self.finish(drawing))
    }

    fn heaps(&self, fields: &[&str], before: &[&str]) -> Option<String> {
        let read =
            |text: &str| -> Option<Vec<usize>> { text.split('-').map(|heap| heap.parse().ok()).collect() };
        let heaps = read(fields[0])?;
        let old = before.first().and_then(|text| read(text)).unwrap_or_default();
        let most = heaps.iter().chain(&old).max().copied().unwrap_or(0).max(1);
        if heaps.len() > HEAPS {
            return None;
        }
        let row = 22.0;
        let height = row * heaps.len() as f64 + 8.0;
        let step = ((WIDTH - 40.0) / most as f64).min(row - 4.0);
        let mut drawing = self.canvas(height);
        // The heaps of grundy are sorted: those that were not there before are new.
        let mut left = old.clone();
        for (index, &heap) in heaps.iter().enumerate() {
            let y = 4.0 + row * (index as f64 + 0.5);
            let known = left.iter().position(|old| *old == heap).map(|place| left.swap_remove(place));
            let (changed, gone) = match self.game {
                "nim" => {
                    let old = old.get(index).copied().unwrap_or(heap);
                    (old != heap, old.saturating_sub(heap))
                }
                _ => (known.is_none() && !old.is_empty(), 0),
            };
            if changed {
                drawing.rect("mark", (0.0, y - row / 2.0 + 1.0), (WIDTH, row - 2.0));
            }
            let class = if changed { "plain" } else { "name" };
            drawing.text(class, (24.0, y), Anchor::End, LETTER, &heap.to_string());
            for stone in 0..heap + gone {
                let at = (34.0 + step * (stone as f64 + 0.5), y);
                drawing.dot(if stone < heap { "man black" } else { "hollow" }, at, step * 0.4);
            }
        }
        self.legend(&mut drawing, height, &|drawing, seat, at| {
            drawing.text("name", at, Anchor::Middle, LETTER, &seat.to_string());
        });
        Some(self.finish(drawing))
    }

    /// Draws the scores of a game of dice, the total of the turn and the die.
    fn scores(&self, fields: &[&str]) -> Option<String> {
        let [first, second, total, mover, ..] = fields else { return None };
        let height = 84.0;
        let mut drawing = self.canvas(height);
        for (seat, score) in [first, second].into_iter().enumerate() {
            let x = 2.0 + (WIDTH / 2.0) * seat as f64;
            let turn = *mover == seat.to_string();
            let (at, size) = ((x, 4.0), (WIDTH / 2.0 - 8.0, height - 8.0));
            drawing.rect("ground sheet", at, size);
            if turn {
                drawing.rect("mark", at, size);
            }
            drawing.text("score", (x + 40.0, 34.0), Anchor::Middle, 2.0 * LETTER, score);
            if turn {
                let text = format!("+{total} this turn");
                drawing.text("plain", (x + 12.0, 66.0), Anchor::Start, LETTER, &text);
                match self.mv {
                    mv if mv.len() == 1 => die(&mut drawing, mv.chars().next()?, (x + 115.0, 32.0)),
                    mv => drawing.text("plain", (x + 115.0, 32.0), Anchor::Middle, LETTER, mv),
                }
            }
        }
        self.legend(&mut drawing, height, &|drawing, seat, at| {
            drawing.text("name", at, Anchor::Middle, LETTER, &seat.to_string());
        });
        Some(self.finish(drawing))
    }
}
