//! The content digest of a bout, over all columns except those of [`NOT_IN_DIGEST`].
//!
//! Builds compare digests with each other and with stored ones, so a test pins their values. A change of the encoded bytes
//! needs a new `DOMAIN`.

use agon_search::Counters;

use crate::cells::{Cell, Cells};
use crate::columns::{BoutColumns, ListColumn, Plies, Searches, TextColumn};
use crate::rows::{BoutRows, GameRow, ProbeRow};
use crate::schema::NOT_IN_DIGEST;

/// The context string of BLAKE3, with the version of the encoding. Raise the version whenever digests of existing rows change.
const DOMAIN: &str = "agon bout content, version 3";

/// Computes [`BoutColumns::content_digest`] of rows.
pub fn content_digest(bout: &BoutRows) -> [u8; 32] {
    BoutColumns::from(bout).content_digest()
}

impl BoutColumns {
    /// Computes the BLAKE3 digest of the content.
    ///
    /// Games and probes are encoded by row: a number as eight bytes, little endian; a text or a list after its length; an
    /// optional value after a 0 or a 1. Plies are encoded by column: a 1 and the numbers in their own width, or a 0 if all
    /// are 0; the lengths follow from the numbers of plies and searches. Counters that were added later are last, each as
    /// its name and its column, and only if one is not 0. The encoding is injective, and a counter that no search used
    /// changes no digest.
    pub fn content_digest(&self) -> [u8; 32] {
        let BoutColumns { games, moves, probes } = self;
        // Hashing one buffer is many times faster than hashing field by field.
        let mut content = Content(Vec::with_capacity(256 * (1 + moves.len() + 2 * probes.len())));
        content.rows(games, |row: &GameRow, content| content.cells(row.cells()));
        content.plies(moves);
        content.rows(probes, |row: &ProbeRow, content| content.cells(row.cells()));
        content.later_counters(self);
        blake3::derive_key(DOMAIN, &content.0)
    }
}

/// The encoded content.
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

    /// Encodes the columns of plies.
    fn plies(&mut self, plies: &Plies) {
        let Plies { bout, game, ply, seat, mv, legal, searched, searches } = plies;
        self.word(plies.len() as u64);
        self.column(bout.iter().map(|number| number.to_le_bytes()));
        self.column(game.iter().map(|number| number.to_le_bytes()));
        self.column(ply.iter().map(|number| number.to_le_bytes()));
        // Chance is 0 and seats count from 1, in a wider type so that all fit.
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
        // Names are in the order of their first searches, so that the indices are the same in every build.
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

    /// Encodes a column of numbers.
    fn column<const BYTES: usize>(&mut self, numbers: impl ExactSizeIterator<Item = [u8; BYTES]>) {
        let marker = self.0.len();
        self.0.push(1);
        let first = self.0.len();
        self.0.resize(first + BYTES * numbers.len(), 0);
        let (chunks, _) = self.0[first..].as_chunks_mut::<BYTES>();
        let mut any = 0;
        for (chunk, number) in chunks.iter_mut().zip(numbers) {
            *chunk = number;
            any |= number.iter().fold(0, |all, byte| all | byte);
        }
        if any == 0 {
            self.0.truncate(marker);
            self.0.push(0);
        }
    }

    fn texts(&mut self, texts: &TextColumn) {
        let (text, ends) = texts.parts();
        self.column(ends.iter().map(|end| end.to_le_bytes()));
        self.0.extend_from_slice(text.as_bytes());
    }

    fn lists(&mut self, lists: &ListColumn) {
        let (values, ends) = lists.parts();
        self.column(ends.iter().map(|end| end.to_le_bytes()));
        self.column(values.iter().map(|value| value.to_le_bytes()));
    }

    /// Encodes the cells of a row. Without a search, leaves out all cells after the player.
    fn cells(&mut self, cells: Cells<'_>) {
        let later = &Counters::LIST[Counters::ORIGINAL..];
        for (name, cell) in cells {
            if NOT_IN_DIGEST.contains(&name) || later.iter().any(|counter| counter.name == name) {
                continue;
            }
            if matches!(name, "seat" | "player") {
                self.0.push(u8::from(cell != Cell::Null));
            }
            match cell {
                Cell::Null => {}
                Cell::Unsigned(number) => self.word(number),
                Cell::Float(number) => self.word(number.to_bits()),
                Cell::Text(text) => self.bytes(text),
                Cell::Timestamp(microseconds) => self.word(microseconds.cast_unsigned()),
                Cell::TextList(texts) => self.rows(texts, |text, content| content.bytes(text)),
                Cell::I32List(numbers) => {
                    self.rows(numbers, |number, content| content.word(i64::from(*number).cast_unsigned()));
                }
                Cell::U64List(numbers) => self.rows(numbers, |number, content| content.word(*number)),
            }
        }
    }

    /// Encodes the counters that were added later, of plies and then of probes.
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
