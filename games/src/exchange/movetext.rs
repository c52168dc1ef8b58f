//! What the games of PGN and PDN share: the first tags, the moves with their numbers and comments, lines that fit.

use super::{Sheet, Thought, tags};

/// Lines are shorter than this (PGN 8.2.1 avoids lines of 80 characters and more).
const COLUMNS: usize = 80;

/// The colours of the seats: the sheet's seat of White and that of Black.
pub(super) struct Sides {
    pub(super) white: usize,
    pub(super) black: usize,
}

impl Sides {
    /// The result as PGN has it: White's points first.
    pub(super) fn result(&self, sheet: &Sheet<'_>) -> &'static str {
        match sheet.seats[self.white].payoff.cmp(&sheet.seats[self.black].payoff) {
            std::cmp::Ordering::Greater => "1-0",
            std::cmp::Ordering::Less => "0-1",
            std::cmp::Ordering::Equal => "1/2-1/2",
        }
    }

    /// The seven tags that every game has.
    pub(super) fn roster(&self, sheet: &Sheet<'_>, out: &mut String) {
        let started = sheet.started;
        let date = format!("{:04}.{:02}.{:02}", started.year, started.month, started.day);
        for (name, value) in [
            ("Event", sheet.event),
            ("Site", "?"),
            ("Date", date.as_str()),
            ("Round", sheet.round),
            ("White", sheet.seats[self.white].player),
            ("Black", sheet.seats[self.black].player),
            ("Result", self.result(sheet)),
        ] {
            tags::write(name, value, out);
        }
    }

    /// When it was played, how long, within what, and how it ended.
    pub(super) fn circumstances(&self, sheet: &Sheet<'_>, out: &mut String) {
        let (white, black) = (&sheet.seats[self.white], &sheet.seats[self.black]);
        let started = sheet.started;
        tags::write("PlyCount", &sheet.plies.len().to_string(), out);
        let date = format!("{:04}.{:02}.{:02}", started.year, started.month, started.day);
        tags::write("UTCDate", &date, out);
        let time = format!("{:02}:{:02}:{:02}", started.hour, started.minute, started.second);
        tags::write("UTCTime", &time, out);
        if white.time_control == black.time_control {
            tags::write("TimeControl", white.time_control, out);
        } else {
            tags::write("WhiteTimeControl", white.time_control, out);
            tags::write("BlackTimeControl", black.time_control, out);
        }
        tags::write("WhiteLimit", white.limit, out);
        tags::write("BlackLimit", black.limit, out);
        let termination = match sheet.ending {
            _ if sheet.forfeit => "time forfeit",
            "ply limit" => "adjudication",
            _ => "normal",
        };
        tags::write("Termination", termination, out);
    }
}

/// The moves as they are written down.
pub(super) struct MoveText<'a> {
    out: &'a mut String,
    /// Characters of the line that is being written.
    column: usize,
    /// Plies before the next one, counted so that even ones are the first of a number.
    ply: usize,
    /// Whether the number is given before the second move of it as well.
    numbering: Numbering,
    started: bool,
}

/// Where numbers stand before moves, beside the first move of each number and the first of all.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Numbering {
    /// Before every move that a comment separates from the one before, which is every move here (PGN 8.2.2.2).
    AfterComments,
    /// Nowhere else, as is the habit in PDN.
    Sparse,
}

impl<'a> MoveText<'a> {
    /// Moves from a position so many plies after the start of a game.
    pub(super) fn new(ply: usize, numbering: Numbering, out: &'a mut String) -> MoveText<'a> {
        out.push('\n');
        MoveText { out, column: 0, ply, numbering, started: false }
    }

    fn word(&mut self, word: &str) {
        if self.column > 0 && self.column + 1 + word.len() >= COLUMNS {
            self.out.push('\n');
            self.column = 0;
        } else if self.column > 0 {
            self.out.push(' ');
            self.column += 1;
        }
        self.out.push_str(word);
        self.column += word.len();
    }

    /// A move, with a comment in braces.
    pub(super) fn play(&mut self, mv: &str, comment: &str) {
        let number = self.ply / 2 + 1;
        match self.ply % 2 {
            0 => self.word(&format!("{number}.")),
            _ if !self.started || self.numbering == Numbering::AfterComments => {
                self.word(&format!("{number}..."));
            }
            _ => {}
        }
        self.word(mv);
        let comment = format!("{{{comment}}}");
        for word in comment.split(' ') {
            self.word(word);
        }
        self.started = true;
        self.ply += 1;
    }

    /// Ends the game.
    pub(super) fn end(mut self, result: &str) {
        self.word(result);
        self.out.push_str("\n\n");
    }
}

/// The comment of a ply, as the users of cutechess know it: value and depth, time, nodes.
pub(super) fn comment(thought: Option<Thought>) -> String {
    match thought {
        None => "book".to_string(),
        Some(Thought { value, depth, nodes, time, .. }) => {
            format!("{value}/{depth} {:.3}s n={nodes}", time.as_secs_f64())
        }
    }
}
