//! Positions of chess, one a line: EPD (Edwards 1994, 16.2), or FEN.
//!
//! Four fields and operations, of which `hmvc` (the halfmove clock) and `fmvn` (the number of the move) are heeded and all
//! others passed over; or the six fields of a FEN, as many files that are called EPD have them.

use super::{ReadError, Start};
use crate::chess::Chess;
use crate::game::Notation;
use crate::setup::{Parameters, Setup, SetupError};

/// The positions of a text, in its order. Empty lines and those that start with `#` are skipped.
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

/// The six fields of a FEN that a line of EPD stands for.
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

/// The first word of a text, and what follows it.
fn next_word(text: &str) -> (&str, &str) {
    let text = text.trim();
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim_start())
}

/// The operations of a line: `;` ends one, but not between quotes.
fn operations(text: &str) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    text.split(move |c: char| {
        quoted ^= c == '"';
        c == ';' && !quoted
    })
    .map(str::trim)
}

/// The position of a FEN whose castling rights may stand in any order and whose fields may have any spaces between.
pub(super) fn position(parameters: &Parameters, fen: &str) -> Result<Chess, String> {
    let text = fen.split_whitespace().collect::<Vec<_>>().join(" ");
    let usual = Chess::usual_form(&text);
    Chess::from_position(parameters, usual.as_deref().unwrap_or(&text)).map_err(|error| match error {
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
    fn clocks_come_from_operations_or_fields() {
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
    fn what_differs_in_form_alone_is_read() {
        let read = read("r3k2r/8/8/3pP3/8/8/8/R3K2R b qkQK -\n4k3/8/8/3p4/8/8/8/4K3 w - d6").unwrap();
        assert_eq!(read[0].1, "r3k2r/8/8/3pP3/8/8/8/R3K2R b KQkq - 0 1");
        // Nobody can capture there.
        assert_eq!(read[1].1, "4k3/8/8/3p4/8/8/8/4K3 w - - 0 1");
    }

    #[test]
    fn errors_name_the_line() {
        for (text, said) in [
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
            assert!(error.starts_with(said), "{error}");
        }
    }
}
