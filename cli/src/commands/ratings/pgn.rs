//! Results from PGN of any size (Edwards 1994, "Portable Game Notation Specification").
//!
//! Reads a file once through one buffer: the tags White, Black and Result, and of the moves only their end. The reader of
//! openings in `agon_games::exchange::pgn` uses the same lexer and plays the moves. Mends common flaws (quotes inside names, Latin-1,
//! a missing Result tag, tags without moves), reports other malformed games, and goes on with the next one.

use std::convert::Infallible;
use std::io::{self, Read};

use agon_games::exchange::pgn_lexer::{Flaw, Lexer, Visitor};
use agon_games::exchange::tags;
use agon_stats::outcome::Outcome;
use memchr::{memchr, memrchr};

/// The size of the buffer in bytes; a longer line is read in pieces.
const BUFFER: usize = 256 * 1024;

/// The longest name, in bytes; the standard has 255 for a whole line.
const LONGEST_NAME: usize = 1000;

/// A game of a file.
pub enum Found<'a> {
    /// A finished game. Names are bytes of the file.
    Game {
        /// The player with the white pieces.
        white: &'a [u8],
        /// The player with the black pieces.
        black: &'a [u8],
        /// The outcome for White.
        outcome: Outcome,
        /// The first line of the game.
        line: u64,
    },
    /// A game without a result.
    Unfinished,
    /// A game that cannot be counted.
    Malformed {
        /// The first line of the game.
        line: u64,
        /// The first flaw.
        reason: String,
    },
}

/// Passes each game of a file to `found`.
pub fn scan(mut source: impl Read, found: &mut dyn FnMut(Found<'_>)) -> io::Result<()> {
    let (mut lexer, mut games) =
        (Lexer::default(), PgnGames { found, header: Header::default(), has_words: false });
    let mut buffer = vec![0; BUFFER];
    let (mut start, mut end) = (0, 0);
    loop {
        if let Some(length) = memchr(b'\n', &buffer[start..end]) {
            let Ok(()) = lexer.piece(&buffer[start..start + length], &mut games);
            lexer.end_line();
            start += length + 1;
            continue;
        }
        if start == 0 && end == buffer.len() {
            // Cut a line longer than the buffer between words.
            start = memrchr(b' ', &buffer[..end]).filter(|&cut| cut > 0).unwrap_or(end);
            let Ok(()) = lexer.piece(&buffer[..start], &mut games);
        }
        buffer.copy_within(start..end, 0);
        (start, end) = (0, end - start);
        match source.read(&mut buffer[end..]) {
            Ok(0) => {
                let Ok(()) = lexer.piece(&buffer[..end], &mut games);
                let Ok(()) = lexer.finish(&mut games);
                games.finish(None);
                return Ok(());
            }
            Ok(count) => end += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
            Err(error) => return Err(error),
        }
    }
}

/// The result in a tag or after the moves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    Finished(Outcome),
    Unfinished,
}

impl Ending {
    fn read(text: &[u8]) -> Option<Self> {
        match text {
            b"1-0" => Some(Ending::Finished(Outcome::Win)),
            b"0-1" => Some(Ending::Finished(Outcome::Loss)),
            b"1/2-1/2" | b"1/2" => Some(Ending::Finished(Outcome::Draw)),
            b"*" => Some(Ending::Unfinished),
            _ => None,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Ending::Finished(Outcome::Win) => "1-0",
            Ending::Finished(Outcome::Loss) => "0-1",
            Ending::Finished(Outcome::Draw) => "1/2-1/2",
            Ending::Unfinished => "*",
        }
    }
}

/// The tags of the current game. Names keep their allocation from game to game.
#[derive(Default)]
struct Header {
    /// The first line of the game; zero before it.
    line: u64,
    white: Vec<u8>,
    black: Vec<u8>,
    has_event: bool,
    has_white: bool,
    has_black: bool,
    result: Option<Ending>,
    /// The first flaw.
    flaw: Option<String>,
}

impl Header {
    fn clear(&mut self) {
        self.white.clear();
        self.black.clear();
        self.line = 0;
        (self.has_event, self.has_white, self.has_black) = (false, false, false);
        (self.result, self.flaw) = (None, None);
    }

    fn flaw(&mut self, reason: impl FnOnce() -> String) {
        self.flaw.get_or_insert_with(reason);
    }
}

/// The games of a file, collected from its tags and words.
struct PgnGames<'f> {
    found: &'f mut dyn FnMut(Found<'_>),
    header: Header,
    /// Whether a move, a comment or a result was read: then a tag begins the next game.
    has_words: bool,
}

impl Visitor for PgnGames<'_> {
    type Error = Infallible;

    #[inline]
    fn tag(&mut self, line: u64, name: &[u8], value: &[u8]) -> Result<(), Infallible> {
        self.begin_tag(line, name);
        let header = &mut self.header;
        match name {
            b"Event" => header.has_event = true,
            b"White" => {
                header.has_white = true;
                tags::unescape(value, &mut header.white);
            }
            b"Black" => {
                header.has_black = true;
                tags::unescape(value, &mut header.black);
            }
            b"Result" => {
                header.result = Ending::read(value);
                if header.result.is_none() && !matches!(value, b"" | b"?") {
                    let text = String::from_utf8_lossy(&value[..value.len().min(40)]).into_owned();
                    header.flaw(|| format!("the result `{text}` is not 1-0, 0-1, 1/2-1/2 or *"));
                }
            }
            _ => (),
        }
        Ok(())
    }

    #[inline]
    fn word(&mut self, line: u64, word: &[u8], in_variation: bool) -> Result<(), Infallible> {
        if self.header.line == 0 {
            self.header.line = line;
        }
        self.has_words = true;
        if !in_variation && let Some(ending) = Ending::read(word) {
            self.finish(Some(ending));
        }
        Ok(())
    }

    fn flaw(&mut self, line: u64, flaw: Flaw<'_>) -> Result<(), Infallible> {
        match flaw {
            Flaw::UnclosedTag { name, text } => {
                self.begin_tag(line, name);
                self.header.flaw(|| {
                    let shown = String::from_utf8_lossy(&text[..text.len().min(40)]).trim_end().to_string();
                    format!("the tag `{shown}` is not closed")
                });
            }
            Flaw::UnclosedComment => {
                self.has_words = true;
                self.header.flaw(|| format!("the comment opened in line {line} is not closed"));
            }
            Flaw::UnopenedBracket => (),
        }
        Ok(())
    }
}

impl PgnGames<'_> {
    /// Ends the current game if this tag begins the next one.
    fn begin_tag(&mut self, line: u64, name: &[u8]) {
        let header = &self.header;
        let repeated = match name {
            b"Event" => header.line > 0 && (header.has_event || header.has_white || header.has_black),
            b"White" => header.has_white,
            b"Black" => header.has_black,
            b"Result" => header.result.is_some(),
            _ => false,
        };
        if self.has_words || repeated {
            self.finish(None);
        }
        if self.header.line == 0 {
            self.header.line = line;
        }
    }

    /// Ends the current game, if there is one; `word` is the result after its moves.
    fn finish(&mut self, word: Option<Ending>) {
        self.has_words = false;
        let header = &mut self.header;
        if header.line == 0 {
            return;
        }
        let line = header.line;
        if let (Some(tag), Some(word)) = (header.result, word)
            && tag != word
        {
            header
                .flaw(|| format!("the tag Result is {}, but the moves end with {}", tag.text(), word.text()));
        }
        for (side, name) in [("White", &header.white), ("Black", &header.black)] {
            if matches!(&name[..], b"" | b"?") {
                header.flaw.get_or_insert_with(|| format!("the tag {side} has no name"));
            } else if name.len() > LONGEST_NAME {
                header
                    .flaw
                    .get_or_insert_with(|| format!("the name of {side} is longer than {LONGEST_NAME} bytes"));
            }
        }
        let found = match (header.flaw.take(), header.result.or(word)) {
            (Some(reason), _) => Found::Malformed { line, reason },
            (None, None) => Found::Malformed {
                line,
                reason: "it has no result, neither as a tag nor after its moves".into(),
            },
            (None, Some(Ending::Unfinished)) => Found::Unfinished,
            (None, Some(Ending::Finished(outcome))) => {
                Found::Game { white: &header.white, black: &header.black, outcome, line }
            }
        };
        (self.found)(found);
        self.header.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the games as `a-b=1` with White's half points, `*`, or `!line reason`. Checks that pieces of any size give the
    /// same games.
    fn read(text: &[u8]) -> Vec<String> {
        struct Slow<'a>(&'a [u8], usize);
        impl Read for Slow<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let size = self.1.min(buffer.len());
                self.0.read(&mut buffer[..size])
            }
        }
        let all = |size: usize| {
            let mut list = Vec::new();
            scan(Slow(text, size), &mut |found| {
                list.push(match found {
                    Found::Game { white, black, outcome, .. } => format!(
                        "{}-{}={}",
                        String::from_utf8_lossy(white),
                        String::from_utf8_lossy(black),
                        outcome.half_points()
                    ),
                    Found::Unfinished => "*".to_string(),
                    Found::Malformed { line, reason } => format!("!{line} {reason}"),
                });
            })
            .unwrap();
            list
        };
        let at_once = all(usize::MAX);
        assert!([1, 2, 3, 7].into_iter().all(|size| all(size) == at_once));
        at_once
    }

    const GAME: &str = "[White \"a\"]\n[Black \"b\"]\n";

    #[test]
    fn reads_well_formed_games() {
        let text = "[Event \"x\"]\n[White \"a\"]\n[Black \"b\"]\n[Result \"1-0\"]\n\n1. e4 e5 2. Nf3 1-0\n\n\
                    [Event \"y\"]\n[White \"b\"]\n[Black \"c d\"]\n[Result \"1/2-1/2\"]\n\n1. d4 1/2-1/2\n\n\
                    [Event \"z\"]\n[White \"c\"]\n[Black \"a\"]\n[Result \"0-1\"]\n\n0-1\n\
                    [Event \"z\"]\n[White \"c\"]\n[Black \"a\"]\n[Result \"*\"]\n\n1. c4 *\n";
        let expected = ["a-b=2", "b-c d=1", "c-a=0", "*"];
        assert_eq!(read(text.as_bytes()), expected);
        assert_eq!(read(text.replace('\n', "\r\n").as_bytes()), expected);
        assert_eq!(read(format!("\u{feff}{text}").as_bytes()), expected);
        assert_eq!(read(text.trim_end().as_bytes()), expected);
        assert!(read(b"").is_empty() && read(b"\n\n  \n").is_empty());
    }

    #[test]
    fn skips_moves_comments_and_variations() {
        for moves in [
            "1. e4 {1-0 [White \"x\"] (} e5 1-0",
            "1. e4 {over\n\n[%clk 1]\n lines 0-1} 1-0",
            "1. e4 ; 0-1 to the end of the line {\n 1-0",
            "1. e4 (1. d4 0-1 (1. c4 *) 0-1) 1-0",
            "1. e4\n% 0-1 {\n1-0",
            "1. e4 1-0 {White won} ; indeed",
            "1. e4!! $1 e5 1-0",
            "1-0",
        ] {
            let text = format!("{GAME}[Result \"1-0\"]\n\n{moves}\n\n{GAME}[Result \"0-1\"]\n\n0-1\n");
            assert_eq!(read(text.as_bytes()), ["a-b=2", "a-b=0"], "{moves}");
        }
    }

    #[test]
    fn finds_results_in_tags_and_after_moves() {
        assert_eq!(read(format!("{GAME}\n1. e4 0-1\n\n{GAME}\n1. d4 1-0").as_bytes()), ["a-b=0", "a-b=2"]);
        // Tags alone, with and without an empty line between the games, and with the players first.
        assert_eq!(read(format!("{GAME}[Result \"1/2\"]\n").repeat(3).as_bytes()), ["a-b=1"; 3]);
        assert_eq!(read(format!("[Result \"1-0\"]\n{GAME}\n").repeat(3).as_bytes()), ["a-b=2"; 3]);
        assert_eq!(
            read(format!("[Event \"x\"]\n[Result \"1-0\"]\n{GAME}\n").repeat(3).as_bytes()),
            ["a-b=2"; 3]
        );
        assert_eq!(
            read(b"[White \"a\"] [Black \"b\"] [Result \"1-0\"] 1. e4 1-0 [White \"c\"][Black \"d\"]*"),
            ["a-b=2", "*"]
        );
    }

    #[test]
    fn mends_quotes_and_encodings_of_names() {
        let name = |value: &str| read(format!("[White \"{value}\"]\n[Black \"b\"]\n1-0\n").as_bytes());
        assert_eq!(name("Fischer, Robert J."), ["Fischer, Robert J.-b=2"]);
        assert_eq!(name("  a ] b "), ["a ] b-b=2"]);
        assert_eq!(name(r#"a \"quoted\" name"#), [r#"a "quoted" name-b=2"#]);
        assert_eq!(name(r#"a "careless" name"#), [r#"a "careless" name-b=2"#]);
        assert_eq!(name(r"back\\slash"), [r"back\slash-b=2"]);
        assert_eq!(name(r"C:\engines\"), [r"C:\engines\-b=2"]);
        let mut white = Vec::new();
        let latin = b"[White \"M\xfcller\"]\n[Black \"b\"]\n1-0";
        scan(&latin[..], &mut |found| {
            if let Found::Game { white: name, .. } = found {
                white = name.to_vec();
            }
        })
        .unwrap();
        assert_eq!(white, b"M\xfcller");
    }

    #[test]
    fn reports_malformed_games_and_reads_the_next() {
        let after = format!("{GAME}[Result \"1-0\"]\n\n1-0\n");
        let flaw = |text: &str| {
            let found = read(format!("\n{text}\n{after}").as_bytes());
            assert_eq!(found.len(), 2, "{text}: {found:?}");
            assert_eq!(found[1], "a-b=2", "{text}");
            found[0].clone()
        };
        assert_eq!(flaw("[White \"a\"]\n[Result \"1-0\"]\n\n1-0"), "!2 the tag Black has no name");
        assert_eq!(flaw("[White \"?\"]\n[Black \"b\"]\n\n1-0"), "!2 the tag White has no name");
        assert_eq!(
            flaw(&format!("{GAME}\n1. e4 e5")),
            "!2 it has no result, neither as a tag nor after its moves"
        );
        assert_eq!(
            flaw(&format!("{GAME}[Result \"1-0\"]\n\n0-1")),
            "!2 the tag Result is 1-0, but the moves end with 0-1"
        );
        assert_eq!(
            flaw(&format!("{GAME}[Result \"2-0\"]\n\n1. e4 *")),
            "!2 the result `2-0` is not 1-0, 0-1, 1/2-1/2 or *"
        );
        assert_eq!(flaw("[White \"a\n[Black \"b\"]\n1-0"), "!2 the tag `[White \"a` is not closed");
        assert_eq!(
            flaw(&format!("{GAME}[Result \"1-0\"]\n\n1. e4 {{a comment\n1-0\n")),
            "!2 the comment opened in line 6 is not closed"
        );
        assert_eq!(flaw("some text"), "!2 the tag White has no name");
        let long = "x".repeat(LONGEST_NAME + 1);
        assert!(flaw(&format!("[White \"{long}\"]\n[Black \"b\"]\n1-0")).contains("longer than 1000 bytes"));
    }

    #[test]
    fn reads_lines_longer_than_the_buffer() {
        let moves = "Nf3 ".repeat(BUFFER);
        let text =
            format!("{GAME}\n{moves} ({moves} 1-0) {{{moves}}} 0-1\n{GAME}\n1-0\n{GAME};{moves}0-1\n1-0");
        let mut found = Vec::new();
        scan(text.as_bytes(), &mut |game| {
            if let Found::Game { outcome, .. } = game {
                found.push(outcome.half_points());
            }
        })
        .unwrap();
        assert_eq!(found, [0, 2, 2]);
    }
}
