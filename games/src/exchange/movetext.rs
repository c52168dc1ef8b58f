//! Code shared by the PGN and PDN writers: tags, and wrapped lines of numbered moves with comments.

use super::{ScoreSheet, SearchSummary, tags};

/// The limit that lines stay below (PGN 8.2.1 discourages lines of 80 characters and more).
const COLUMNS: usize = 80;

/// The seats of White and of Black.
pub(super) struct Sides {
    pub(super) white: usize,
    pub(super) black: usize,
}

impl Sides {
    /// Returns the result in PGN's form, White's points first.
    pub(super) fn result(&self, sheet: &ScoreSheet<'_>) -> &'static str {
        match sheet.seats[self.white].payoff.cmp(&sheet.seats[self.black].payoff) {
            std::cmp::Ordering::Greater => "1-0",
            std::cmp::Ordering::Less => "0-1",
            std::cmp::Ordering::Equal => "1/2-1/2",
        }
    }

    /// Writes the seven mandatory tags.
    pub(super) fn roster(&self, sheet: &ScoreSheet<'_>, out: &mut String) {
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

    /// Writes the tags for the length, the time, the limits and the termination.
    pub(super) fn details(&self, sheet: &ScoreSheet<'_>, out: &mut String) {
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
            "crash" => "abandoned",
            "illegal move" => "rules infraction",
            ending if ending == "ply limit" || ending.starts_with("adjudicated") => "adjudication",
            _ => "normal",
        };
        tags::write("Termination", termination, out);
    }
}

/// A writer for the moves of a game.
pub(super) struct MoveText<'a> {
    out: &'a mut String,
    /// The characters of the current line.
    column: usize,
    /// The number of the next ply; even plies are the first of a move number.
    ply: usize,
    numbering: Numbering,
    started: bool,
}

/// The places of move numbers besides those before the first ply of each number and before the first ply of the game.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Numbering {
    /// Before every ply that follows a comment, which is every ply here (PGN 8.2.2.2).
    AfterComments,
    /// Nowhere else, as usual in PDN.
    Sparse,
}

impl<'a> MoveText<'a> {
    /// Starts the moves at a ply, counted from 0.
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

    /// Writes a move with a comment in braces.
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

    /// Writes the result and ends the game.
    pub(super) fn end(mut self, result: &str) {
        self.word(result);
        self.out.push_str("\n\n");
    }
}

/// Returns the comment for a ply in the style of cutechess: value and depth, time, nodes.
pub(super) fn comment(search: Option<SearchSummary>) -> String {
    match search {
        None => "book".to_string(),
        Some(SearchSummary { value, depth, nodes, time, .. }) => {
            format!("{value}/{depth} {:.3}s n={nodes}", time.as_secs_f64())
        }
    }
}
