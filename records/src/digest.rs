//! The content digest: whether two bouts are the same in every column that makes two datasets equal.
//!
//! The digest is a promise between builds; its text is fixed by a test, and another order of fields or another framing
//! needs another domain.

use crate::counted::{Columns, game, ply, probe};
use crate::rows::BoutRows;

/// What separates this digest from any other use of BLAKE3, and one version of it from the next.
const DOMAIN: &str = "agon bout content, version 1";

/// The same for bouts that have settings, which others are fed without: their digest is that of builds that know none.
const DOMAIN_WITH_SETTINGS: &str = "agon bout content, version 2";

/// BLAKE3 of the columns that count, in the order of the rows.
///
/// Every number takes eight bytes, little endian; a text or a list follows its length; what may be missing follows a 0
/// or a 1. So two different bouts never feed the same bytes.
pub fn content_digest(bout: &BoutRows) -> [u8; 32] {
    let BoutRows { games, moves, probes } = bout;
    // One piece is hashed many times faster than its fields one by one.
    let settings = games.iter().any(|row| !row.settings.is_empty());
    let bytes = Vec::with_capacity(512 * (1 + moves.len() + probes.len()));
    let mut content = Content { bytes, settings };
    content.rows(games, game);
    content.rows(moves, ply);
    content.rows(probes, probe);
    blake3::derive_key(if settings { DOMAIN_WITH_SETTINGS } else { DOMAIN }, &content.bytes)
}

/// What has been fed so far.
struct Content {
    bytes: Vec<u8>,
    /// Whether settings are fed.
    settings: bool,
}

impl Content {
    fn word(&mut self, number: u64) {
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    fn bytes(&mut self, text: &str) {
        self.word(text.len() as u64);
        self.bytes.extend_from_slice(text.as_bytes());
    }

    fn rows<T>(&mut self, rows: &[T], each: impl Fn(&T, &mut Content)) {
        self.word(rows.len() as u64);
        for row in rows {
            each(row, self);
        }
    }
}

impl Columns for Content {
    fn number(&mut self, _column: &'static str, number: u64) {
        self.word(number);
    }

    fn text(&mut self, _column: &'static str, text: &str) {
        self.bytes(text);
    }

    fn score(&mut self, _column: &'static str, score: f64) {
        self.word(score.to_bits());
    }

    fn texts(&mut self, column: &'static str, texts: &[String]) {
        if column == "settings" && !self.settings {
            return;
        }
        self.rows(texts, |text, content| content.bytes(text));
    }

    fn numbers(&mut self, _column: &'static str, numbers: &[u64]) {
        self.rows(numbers, |number, content| content.word(*number));
    }

    fn payoffs(&mut self, _column: &'static str, payoffs: &[i32]) {
        self.rows(payoffs, |payoff, content| content.word(i64::from(*payoff).cast_unsigned()));
    }

    fn present(&mut self, _column: &'static str, present: bool) {
        self.bytes.push(u8::from(present));
    }
}
