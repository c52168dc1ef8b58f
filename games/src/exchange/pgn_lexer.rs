//! A lexer for PGN: tags and words, without comments and lines for other programs (Edwards 1994, "Portable Game Notation
//! Specification").
//!
//! Works on bytes and on pieces of lines, because PGN files may have any size and any encoding. Deliberately not here: what
//! a game is, and which flaws are errors; a [`Visitor`] decides that.

use memchr::memchr;

use super::tags;

/// A receiver of the parts of PGN text, each with its line, counted from 1.
pub trait Visitor {
    /// An error that ends the reading.
    type Error;

    /// Receives a tag pair. The value is still escaped.
    fn tag(&mut self, line: u64, name: &[u8], value: &[u8]) -> Result<(), Self::Error>;

    /// Receives a word of the moves: a number, a move, an annotation or a result.
    fn word(&mut self, line: u64, word: &[u8], in_variation: bool) -> Result<(), Self::Error>;

    /// Receives a flaw. Reading continues after it unless this returns an error.
    fn flaw(&mut self, line: u64, flaw: Flaw<'_>) -> Result<(), Self::Error>;
}

/// A flaw of PGN text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flaw<'a> {
    /// A tag that is not closed in its line.
    UnclosedTag {
        /// The name of the tag.
        name: &'a [u8],
        /// The rest of the line from the opening bracket.
        text: &'a [u8],
    },
    /// A comment that is not closed before a tag after a blank line, or before the end. Its line is the one that opens it.
    UnclosedComment,
    /// A closing bracket without an opening one.
    UnopenedBracket,
}

/// The state of the lexer between pieces of text.
#[derive(Debug)]
pub struct Lexer {
    line: u64,
    /// The line of the open comment in braces.
    comment: Option<u64>,
    /// The number of open variations.
    variations: u32,
    /// Whether the rest of the line is a comment.
    skip_line: bool,
    /// Whether a piece of the current line was read.
    within_line: bool,
    /// Whether the previous line was blank.
    after_blank: bool,
    /// Whether the current line is blank so far.
    blank: bool,
}

impl Default for Lexer {
    fn default() -> Lexer {
        Lexer {
            line: 1,
            comment: None,
            variations: 0,
            skip_line: false,
            within_line: false,
            after_blank: true,
            blank: true,
        }
    }
}

impl Lexer {
    /// Reads a line without its line feed, or a piece of one that is cut between words.
    pub fn piece<V: Visitor>(&mut self, text: &[u8], visitor: &mut V) -> Result<(), V::Error> {
        let mut rest = text;
        if !std::mem::replace(&mut self.within_line, true) {
            if self.line == 1 {
                rest = rest.strip_prefix(b"\xef\xbb\xbf").unwrap_or(rest);
            }
            // The escape mechanism of the standard: lines for other programs.
            self.skip_line = rest.first() == Some(&b'%') && self.comment.is_none();
            // An unclosed comment must not hide the rest of the file. Commands within comments begin with `[%`.
            if self.after_blank && matches!(rest, [b'[', b'A'..=b'Z', ..]) {
                self.close_comment(visitor)?;
            }
        }
        while !self.skip_line {
            if self.comment.is_some() {
                self.blank &= rest.iter().all(u8::is_ascii_whitespace);
                let Some(end) = memchr(b'}', rest) else { return Ok(()) };
                self.comment = None;
                rest = &rest[end + 1..];
            }
            let Some(start) = rest.iter().position(|byte| !byte.is_ascii_whitespace()) else { return Ok(()) };
            rest = &rest[start..];
            self.blank = false;
            let mut length = 1;
            match rest[0] {
                b'[' => length = self.tag(rest, visitor)?,
                b'{' => self.comment = Some(self.line),
                b';' => self.skip_line = true,
                b'(' => self.variations += 1,
                b')' => self.variations = self.variations.saturating_sub(1),
                b'}' | b']' => visitor.flaw(self.line, Flaw::UnopenedBracket)?,
                _ => {
                    length = rest.iter().position(ends_word).unwrap_or(rest.len());
                    visitor.word(self.line, &rest[..length], self.variations > 0)?;
                }
            }
            rest = &rest[length..];
        }
        Ok(())
    }

    /// Ends the current line.
    pub fn end_line(&mut self) {
        self.line += 1;
        self.after_blank = self.blank;
        (self.blank, self.within_line, self.skip_line) = (true, false, false);
    }

    /// Ends the text.
    pub fn finish<V: Visitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        self.close_comment(visitor)
    }

    fn close_comment<V: Visitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        match self.comment.take() {
            Some(opened) => visitor.flaw(opened, Flaw::UnclosedComment),
            None => Ok(()),
        }
    }

    /// Reads a tag pair, and returns its length. A tag is outside of variations.
    fn tag<V: Visitor>(&mut self, text: &[u8], visitor: &mut V) -> Result<usize, V::Error> {
        self.variations = 0;
        let inner = &text[1..];
        let name = tags::name(inner);
        let end = name.end;
        let name = &inner[name];
        match tags::quoted(&inner[end..]) {
            Some((value, length)) => {
                visitor.tag(self.line, name, value)?;
                Ok(1 + end + length)
            }
            None => {
                visitor.flaw(self.line, Flaw::UnclosedTag { name, text })?;
                Ok(text.len())
            }
        }
    }
}

fn ends_word(byte: &u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, b'{' | b'}' | b'(' | b')' | b';' | b'[' | b']')
}
