//! Reader and writer for chess as PGN (Edwards 1994, "Portable Game Notation Specification").
//!
//! The writer uses the export format, with comments in the style of cutechess and fastchess: `{+0.35/12 0.250s n=12345}` is
//! the value in pawns from the mover's view, the depth, the time, and the nodes; a mate is `+M5` or `-M4`, in plies. Opening
//! moves are `{book}`, and the last comment has the reason for the end. The reader returns the tag FEN and the moves up to a
//! ply; it skips comments, variations and annotations. Deliberately not here: results, which `agon ratings` reads without
//! the moves.

use super::movetext::{MoveText, Numbering, Sides, comment};
use super::{ReadError, ScoreSheet, Start, WriteError, epd, first, legal, tags};
use crate::chess::Chess;
use crate::game::{Game, Notation};
use crate::line::MoveError;
use crate::setup::{Parameters, Setup};

const SIDES: Sides = Sides { white: 0, black: 1 };

pub(super) fn write(
    parameters: &Parameters,
    sheet: &ScoreSheet<'_>,
    out: &mut String,
) -> Result<(), WriteError> {
    let mut position = first::<Chess>(parameters, sheet)?;
    SIDES.roster(sheet, out);
    if let Some(fen) = sheet.position {
        tags::write("SetUp", "1", out);
        tags::write("FEN", fen, out);
    }
    SIDES.details(sheet, out);
    let mut text = MoveText::new(position.plies() as usize, Numbering::AfterComments, out);
    for (index, ply) in sheet.plies.iter().enumerate() {
        let mv = legal(&position, index, ply)?;
        let mut comment = comment(ply.search);
        if index + 1 == sheet.plies.len() {
            comment.push_str(", ");
            comment.push_str(sheet.ending);
        }
        text.play(&position.san(mv), &comment);
        position.play(mv);
    }
    text.end(SIDES.result(sheet));
    Ok(())
}

/// Reads the games of a text as openings: all moves of each game, or only the first `plies`.
pub fn starts<'a>(
    parameters: &'a Parameters,
    text: &'a str,
    plies: Option<usize>,
) -> impl Iterator<Item = Result<Start, ReadError>> + 'a {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    Reader { parameters, rest: text, line: 1, at_line_start: true, plies: plies.unwrap_or(usize::MAX) }
}

struct Reader<'a> {
    parameters: &'a Parameters,
    rest: &'a str,
    line: usize,
    at_line_start: bool,
    plies: usize,
}

struct Tag<'a> {
    name: &'a str,
    value: &'a [u8],
}

/// A partly read game.
#[derive(Default)]
struct PartialGame<'a> {
    start: Start,
    /// The position after the moves so far; `None` before the first move of the game's first position.
    position: Option<Chess>,
    plies: usize,
    tags: Vec<&'a str>,
    /// Whether a move was read; then a tag begins the next game.
    moves: bool,
}

impl Iterator for Reader<'_> {
    type Item = Result<Start, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let game = self.game();
        if game.is_err() {
            // The text after an error is not reliable.
            self.rest = "";
        }
        game.transpose()
    }
}

impl<'a> Reader<'a> {
    /// Reads the next game, if there is one.
    fn game(&mut self) -> Result<Option<Start>, ReadError> {
        let mut partial = PartialGame::default();
        let mut variations = 0_usize;
        loop {
            self.skip_space();
            let Some(first) = self.rest.bytes().next() else { break };
            if partial.start.line == 0 && !matches!(first, b'{' | b';' | b'%') {
                partial.start.line = self.line;
            }
            match first {
                b'{' => self.comment()?,
                b';' => self.skip_line(),
                b'%' if self.at_line_start => self.skip_line(),
                b'(' => {
                    variations += 1;
                    self.take(1);
                }
                b')' => {
                    variations = variations.saturating_sub(1);
                    self.take(1);
                }
                b'}' | b']' => return Err(self.wrong("a bracket is closed that was not opened; remove it")),
                b'[' => {
                    let before = self.rest;
                    let tag = self.tag()?;
                    if partial.moves || partial.tags.contains(&tag.name) {
                        self.rest = before;
                        break;
                    }
                    self.apply_tag(&mut partial, &tag)?;
                }
                _ => {
                    let word = self.word();
                    if variations > 0 {
                        continue;
                    }
                    partial.moves = true;
                    if matches!(word, "1-0" | "0-1" | "1/2-1/2" | "1/2" | "*") {
                        break;
                    }
                    self.play(&mut partial, word)?;
                }
            }
        }
        Ok((partial.start.line > 0).then_some(partial.start))
    }

    fn wrong(&self, reason: impl Into<String>) -> ReadError {
        ReadError { line: self.line, reason: reason.into() }
    }

    /// Takes a number of bytes without a line end.
    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        self.at_line_start = false;
        taken
    }

    fn skip_space(&mut self) {
        let text = self.rest.trim_start();
        let space = &self.rest[..self.rest.len() - text.len()];
        if !space.is_empty() {
            self.line += space.bytes().filter(|&byte| byte == b'\n').count();
            self.at_line_start = space.ends_with('\n');
            self.rest = text;
        }
    }

    fn skip_line(&mut self) {
        let end = self.rest.find('\n').unwrap_or(self.rest.len());
        self.take(end);
    }

    fn comment(&mut self) -> Result<(), ReadError> {
        let end = self.rest.find('}').ok_or_else(|| self.wrong("the comment is not closed; add a `}`"))?;
        let comment = self.take(end + 1);
        self.line += comment.bytes().filter(|&byte| byte == b'\n').count();
        Ok(())
    }

    /// Reads a tag, which is on one line.
    fn tag(&mut self) -> Result<Tag<'a>, ReadError> {
        let end = self.rest.find('\n').unwrap_or(self.rest.len());
        let inner = &self.rest[1..end];
        let name = tags::name(inner.as_bytes());
        let Some((value, length)) = tags::quoted(&inner.as_bytes()[name.end..]) else {
            return Err(self.wrong("the tag is not closed; write it as [Name \"value\"] in one line"));
        };
        self.take(1 + name.end + length);
        Ok(Tag { name: &inner[name], value })
    }

    /// Applies a tag that concerns the first position.
    fn apply_tag(&self, game: &mut PartialGame<'a>, tag: &Tag<'a>) -> Result<(), ReadError> {
        let Tag { name, value } = *tag;
        game.tags.push(name);
        let mut text = Vec::new();
        tags::unescape(value, &mut text);
        let text = String::from_utf8_lossy(&text);
        match name {
            "FEN" => {
                let position = epd::position(self.parameters, &text).map_err(|reason| self.wrong(reason))?;
                game.start.position = Some(position.position());
                game.position = Some(position);
            }
            "Variant" if !is_standard(&text) => {
                return Err(self
                    .wrong(format!("the variant `{text}` has other rules; remove its games from the file")));
            }
            _ => {}
        }
        Ok(())
    }

    /// Reads a word of the moves, up to a space or a bracket.
    fn word(&mut self) -> &'a str {
        let ends = |c: char| c.is_whitespace() || matches!(c, '{' | '}' | '(' | ')' | ';' | '[' | ']');
        let end = self.rest.find(ends).unwrap_or(self.rest.len());
        self.take(end)
    }

    /// Plays the move of a word, if it has one within the wanted plies.
    fn play(&self, game: &mut PartialGame<'a>, word: &str) -> Result<(), ReadError> {
        let Some(mv) = move_of(word).filter(|_| game.plies < self.plies) else { return Ok(()) };
        let position = match &mut game.position {
            Some(position) => position,
            None => {
                let initial =
                    Chess::initial(self.parameters).map_err(|error| self.wrong(error.to_string()))?;
                game.position.insert(initial)
            }
        };
        let Some(mv) = position.parse_move(mv) else {
            return Err(self.wrong(MoveError::new(position, game.plies + 1, mv).to_string()));
        };
        if game.plies > 0 {
            game.start.moves.push(' ');
        }
        position.write_move(mv, &mut game.start.moves);
        position.play(mv);
        game.plies += 1;
        Ok(())
    }
}

fn is_standard(variant: &str) -> bool {
    ["standard", "chess", "normal", "from position"].iter().any(|known| variant.eq_ignore_ascii_case(known))
}

/// Returns the move in a word, without its number and annotation marks; `None` for numbers and annotations.
fn move_of(word: &str) -> Option<&str> {
    let unnumbered = word.trim_start_matches(|c: char| c.is_ascii_digit());
    let unnumbered = if unnumbered.is_empty() || unnumbered.starts_with('.') {
        unnumbered.trim_start_matches('.')
    } else {
        word
    };
    let mv = unnumbered.trim_end_matches(['+', '#', '!', '?']);
    (!mv.is_empty() && !mv.starts_with('$') && mv != "e.p.").then_some(mv)
}
