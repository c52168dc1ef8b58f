//! The content digest: whether two bouts are the same in every column that makes two datasets equal.
//!
//! The digest is a promise between builds; its text is fixed by a test, and another order of fields or another framing
//! needs another domain.

use agon_search::Counters;

use crate::cells::{Cell, Cells};
use crate::columns::{BoutColumns, Lists, Plies, Searches, Texts};
use crate::rows::{BoutRows, GameRow, ProbeRow};
use crate::schema::UNCOUNTED;

/// What separates this digest from any other use of BLAKE3, and one version of it from the next.
const DOMAIN: &str = "agon bout content, version 3";

/// BLAKE3 of the columns that count; [`BoutColumns::content_digest`] of the rows.
pub fn content_digest(bout: &BoutRows) -> [u8; 32] {
    BoutColumns::from(bout).content_digest()
}

impl BoutColumns {
    /// BLAKE3 of the columns that count.
    ///
    /// Games and probes go in row by row: every number takes eight bytes, little endian; a text or a list follows its
    /// length; what may be missing follows a 0 or a 1. Plies go in column by column, each in the width of its numbers
    /// behind a 1, or as a 0 where all of them are 0; their lengths follow from how many plies and searches there are.
    /// Last come the counters that were added later, each as its name and its column, and only where one is not 0. So two
    /// different bouts never feed the same bytes, and a counter that no search used changes no digest.
    pub fn content_digest(&self) -> [u8; 32] {
        let BoutColumns { games, moves, probes } = self;
        // One piece is hashed many times faster than its fields one by one.
        let mut content = Content(Vec::with_capacity(256 * (1 + moves.len() + 2 * probes.len())));
        content.rows(games, |row: &GameRow, content| content.cells(row.cells()));
        content.plies(moves);
        content.rows(probes, |row: &ProbeRow, content| content.cells(row.cells()));
        content.later_counters(self);
        blake3::derive_key(DOMAIN, &content.0)
    }
}

/// What has been fed so far.
struct Content(Vec<u8>);

impl Content {
    fn word(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn bytes(&mut self, text: &str) {
        self.word(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }

    fn rows<T>(&mut self, rows: &[T], each: impl Fn(&T, &mut Content)) {
        self.word(rows.len() as u64);
        for row in rows {
            each(row, self);
        }
    }

    /// The columns of plies that count.
    fn plies(&mut self, plies: &Plies) {
        let Plies { bout, game, ply, seat, mv, legal, searched, searches } = plies;
        self.word(plies.len() as u64);
        self.column(bout.iter().map(|number| number.to_le_bytes()));
        self.column(game.iter().map(|number| number.to_le_bytes()));
        self.column(ply.iter().map(|number| number.to_le_bytes()));
        // Chance is 0 and the seats are counted from 1, wider than a seat so that all of them fit.
        self.column(seat.iter().map(|seat| seat.map_or(0, |seat| u32::from(seat) + 1).to_le_bytes()));
        self.texts(mv);
        self.column(legal.iter().map(|number| number.to_le_bytes()));
        self.column(searched.iter().map(|&searched| [u8::from(searched)]));
        self.searches(searches);
    }

    fn searches(&mut self, searches: &Searches) {
        let Searches {
            names,
            player,
            depth,
            selective_depth,
            counters,
            depth_nodes,
            depth_time_us: _,
            score,
            pv,
            time_us: _,
            overshoot_us: _,
            limit_kind,
            limit_value,
        } = searches;
        // Names stand in the order in which they first searched, so that the numbers are the same in every build.
        self.rows(names, |name, content| content.bytes(name));
        for column in [player, depth, selective_depth] {
            self.column(column.iter().map(|number| number.to_le_bytes()));
        }
        for column in counters[..Counters::ORIGINAL].iter().chain([limit_value]) {
            self.column(column.iter().map(|number| number.to_le_bytes()));
        }
        self.lists(depth_nodes);
        self.column(score.iter().map(|score| score.to_bits().to_le_bytes()));
        self.texts(pv);
        self.column(limit_kind.iter().map(|kind| [kind.number()]));
    }

    /// A column of numbers.
    fn column<const BYTES: usize>(&mut self, numbers: impl ExactSizeIterator<Item = [u8; BYTES]>) {
        let marker = self.0.len();
        self.0.push(1);
        let first = self.0.len();
        self.0.resize(first + BYTES * numbers.len(), 0);
        let (places, _) = self.0[first..].as_chunks_mut::<BYTES>();
        let mut any = 0;
        for (place, number) in places.iter_mut().zip(numbers) {
            *place = number;
            any |= number.iter().fold(0, |all, byte| all | byte);
        }
        if any == 0 {
            self.0.truncate(marker);
            self.0.push(0);
        }
    }

    fn texts(&mut self, texts: &Texts) {
        let (text, ends) = texts.parts();
        self.column(ends.iter().map(|end| end.to_le_bytes()));
        self.0.extend_from_slice(text.as_bytes());
    }

    fn lists(&mut self, lists: &Lists) {
        let (values, ends) = lists.parts();
        self.column(ends.iter().map(|end| end.to_le_bytes()));
        self.column(values.iter().map(|value| value.to_le_bytes()));
    }

    /// The cells of a row that count. Without a search, everything behind the player is left out.
    fn cells(&mut self, cells: Cells<'_>) {
        let later = &Counters::LIST[Counters::ORIGINAL..];
        for (name, cell) in cells {
            if UNCOUNTED.contains(&name) || later.iter().any(|counter| counter.name == name) {
                continue;
            }
            if matches!(name, "seat" | "player") {
                self.0.push(u8::from(cell != Cell::Null));
            }
            match cell {
                Cell::Null => {}
                Cell::Whole(number) => self.word(number),
                Cell::Decimal(number) => self.word(number.to_bits()),
                Cell::Text(text) => self.bytes(text),
                Cell::Moment(microseconds) => self.word(microseconds.cast_unsigned()),
                Cell::Texts(texts) => self.rows(texts, |text, content| content.bytes(text)),
                Cell::Integers(numbers) => {
                    self.rows(numbers, |number, content| content.word(i64::from(*number).cast_unsigned()));
                }
                Cell::Wholes(numbers) => self.rows(numbers, |number, content| content.word(*number)),
            }
        }
    }

    /// The counters that were added later, of plies and then of probes.
    fn later_counters(&mut self, bout: &BoutColumns) {
        for (index, counter) in Counters::LIST.iter().enumerate().skip(Counters::ORIGINAL) {
            let probes = bout.probes.iter().filter_map(|row| row.decision.search.as_ref());
            let probes = probes.map(|search| search.counters.values()[index]);
            let counts: Vec<u64> =
                bout.moves.searches.counters[index].iter().copied().chain(probes).collect();
            if counts.iter().any(|&count| count > 0) {
                self.bytes(counter.name);
                self.column(counts.iter().map(|count| count.to_le_bytes()));
            }
        }
    }
}
