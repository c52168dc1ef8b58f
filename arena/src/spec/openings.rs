//! Where games start: nowhere in particular, after random plies, or in lines of a file.

use crate::arena::Opening;

/// The most lines that a file of openings may have.
pub const LARGEST_BOOK: usize = 1_000_000;

/// Where the games of a run start.
#[derive(Clone, PartialEq, Debug)]
pub enum Openings {
    /// Every game starts in the game's first position.
    None,
    /// After so many random plies, another line for each opening.
    Random {
        /// How many.
        plies: u32,
    },
    /// The lines of a file, in its order.
    Lines(Vec<Opening>),
}

/// Reads a file of openings: a line each, of moves, with a position in brackets before them where they do not start in
/// the game's first. Empty lines and those that start with `#` are skipped. An error is the line and what is wrong.
pub(super) fn read_lines(text: &str) -> Result<Vec<Opening>, (usize, String)> {
    let mut openings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let opening = match line.strip_prefix('[') {
            None => Opening { position: None, moves: line.to_string() },
            Some(rest) => {
                let (position, moves) = rest
                    .split_once(']')
                    .ok_or_else(|| (index + 1, "a position in `[` needs a `]` after it".to_string()))?;
                Opening { position: Some(position.trim().to_string()), moves: moves.trim().to_string() }
            }
        };
        openings.push(opening);
        if openings.len() > LARGEST_BOOK {
            return Err((index + 1, format!("more than {LARGEST_BOOK} lines are too many; leave some out")));
        }
    }
    if openings.is_empty() {
        return Err((1, "there is no line in it; write one opening a line, as moves".to_string()));
    }
    Ok(openings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_and_without_positions() {
        let lines = read_lines("# two\n\nd3 c5\n [4k3/8/8/8/8/8/8/4K2R w K - 0 1] e1g1 \n[x]\n").unwrap();
        let opening = |position: Option<&str>, moves: &str| Opening {
            position: position.map(str::to_string),
            moves: moves.to_string(),
        };
        let expected = [
            opening(None, "d3 c5"),
            opening(Some("4k3/8/8/8/8/8/8/4K2R w K - 0 1"), "e1g1"),
            opening(Some("x"), ""),
        ];
        assert_eq!(lines, expected);
        assert_eq!(read_lines("d3\n[x d4").unwrap_err().0, 2);
        assert_eq!(read_lines("# nothing\n").unwrap_err().0, 1);
    }
}
