//! Reader for chess positions, one per line: EPD (Edwards 1994, 16.2) or FEN.
//!
//! EPD has four fields and operations. The reader uses `hmvc` (the halfmove clock) and `fmvn` (the move number) and ignores
//! all others. It also accepts the six fields of a FEN, which many EPD files contain.

use super::{ReadError, Start};
use crate::chess::Chess;
use crate::game::Notation;
use crate::setup::{Parameters, Setup, SetupError};

/// Reads the positions of a text. Skips empty lines and lines that start with `#`.
pub fn starts<'a>(
    parameters: &'a Parameters,
    text: &'a str,
) -> impl Iterator<Item = Result<Start, ReadError>> + 'a {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).map(|(line, content)| {
        let position = fen(content).and_then(|fen| position(parameters, &fen));
        let position = position.map_err(|reason| ReadError { line, reason })?;
        Ok(Start { line, position: Some(position.position()), moves: String::new() })
    })
}

/// Converts a line of EPD to the six fields of a FEN.
fn fen(line: &str) -> Result<String, String> {
    let mut rest = line;
    let mut fields = Vec::new();
    for _ in 0..4 {
        let (field, behind) = next_word(rest);
        if field.is_empty() {
            return Err(format!(
                "the position has {} fields instead of 4; write board, side to move, castling and en passant, as in \
                 `rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - hmvc 0; fmvn 1;`",
                fields.len()
            ));
        }
        fields.push(field);
        rest = behind;
    }
    let (mut clock, mut number) = ("0", "1");
    let (fifth, behind) = next_word(rest);
    if fifth.bytes().next().is_some_and(|byte| byte.is_ascii_digit()) {
        (clock, (number, rest)) = (fifth, next_word(behind));
    }
    for operation in operations(rest) {
        match next_word(operation) {
            ("hmvc", value) => clock = value,
            ("fmvn", value) => number = value,
            _ => {}
        }
    }
    Ok(format!("{} {clock} {number}", fields.join(" ")))
}

/// Splits a text after its first word.
fn next_word(text: &str) -> (&str, &str) {
    let text = text.trim();
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim_start())
}

/// Splits the operations of a line at `;`, except within quotes.
fn operations(text: &str) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    text.split(move |c: char| {
        quoted ^= c == '"';
        c == ';' && !quoted
    })
    .map(str::trim)
}

/// Reads a FEN with castling rights in any order and fields separated by any spaces.
pub(super) fn position(parameters: &Parameters, fen: &str) -> Result<Chess, String> {
    let text = fen.split_whitespace().collect::<Vec<_>>().join(" ");
    let canonical = Chess::canonical_fen(&text);
    Chess::from_position(parameters, canonical.as_deref().unwrap_or(&text)).map_err(|error| match error {
        SetupError::Position { reason, .. } => format!("the position is not valid: {reason}"),
        error => error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<(usize, String)>, String> {
        let parameters = Parameters::defaults(Chess::PARAMETERS);
        let start = |start: Start| (start.line, start.position.expect("EPD has positions"));
        let starts = starts(&parameters, text).map(|found| found.map(start));
        starts.collect::<Result<_, _>>().map_err(|error| error.to_string())
    }

    #[test]
    fn reads_clocks_from_operations_or_fields() {
        let text = "# three\r\n\r\n4k3/8/8/8/8/8/8/4K2R w K -\r\n\
                    4k3/8/8/8/8/8/8/4K2R w K - hmvc 12; id \"a; fmvn 3\"; bm Rf1; fmvn 40;\n\
                    4k3/8/8/8/8/8/8/4K2R  w K -  7 9\n";
        let read = read(text).unwrap();
        assert_eq!(
            read,
            [
                (3, "4k3/8/8/8/8/8/8/4K2R w K - 0 1".to_string()),
                (4, "4k3/8/8/8/8/8/8/4K2R w K - 12 40".to_string()),
                (5, "4k3/8/8/8/8/8/8/4K2R w K - 7 9".to_string()),
            ]
        );
    }

    #[test]
    fn reads_non_canonical_forms() {
        let read = read("r3k2r/8/8/3pP3/8/8/8/R3K2R b qkQK -\n4k3/8/8/3p4/8/8/8/4K3 w - d6").unwrap();
        assert_eq!(read[0].1, "r3k2r/8/8/3pP3/8/8/8/R3K2R b KQkq - 0 1");
        // No pawn can capture there.
        assert_eq!(read[1].1, "4k3/8/8/3p4/8/8/8/4K3 w - - 0 1");
    }

    #[test]
    fn errors_name_the_line() {
        for (text, message) in [
            ("4k3/8/8/8/8/8/8/4K2R w K -\n\nx w", "line 3: the position has 2 fields instead of 4; "),
            ("4k3/8/8/8/8/8/8/4K2R w Q - ", "line 1: the position is not valid: the castling rights "),
            ("4k3/8/8/8/8/8/8/4K2R w K - hmvc x;", "line 1: the position is not valid: the halfmove clock "),
            ("4k3/8/8/8/8/8/8/4K2R w K - fmvn 0;", "line 1: the position is not valid: the move number "),
            (
                "4k3/8/8/8/8/8/8/4K2R w K - fmvn 600;",
                "line 1: the position is not valid: by its move number ",
            ),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
