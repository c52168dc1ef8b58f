//! Texts from outside, made safe to show: on one line of a terminal or a log, and on a page.
//!
//! Messages of other machines, names in files and reasons of failures pass through here before they are stored, and once
//! more before they are shown.

use std::borrow::Cow;

/// Returns whether a character may change more than its own place, or is invisible: control characters, line separators,
/// bidirectional controls, zero-width characters and tags.
pub fn is_unprintable(c: char) -> bool {
    // All others are above the soft hyphen.
    c.is_control()
        || c >= '\u{ad}'
            && matches!(
                c,
                '\u{ad}'
                    | '\u{34f}'
                    | '\u{61c}'
                    | '\u{115f}'..='\u{1160}'
                    | '\u{17b4}'..='\u{17b5}'
                    | '\u{180b}'..='\u{180f}'
                    | '\u{200b}'..='\u{200f}'
                    | '\u{2028}'..='\u{202e}'
                    | '\u{2060}'..='\u{206f}'
                    | '\u{3164}'
                    | '\u{fe00}'..='\u{fe0f}'
                    | '\u{feff}'
                    | '\u{ffa0}'
                    | '\u{fff0}'..='\u{fffb}'
                    | '\u{1bca0}'..='\u{1bca3}'
                    | '\u{1d173}'..='\u{1d17a}'
                    | '\u{e0000}'..='\u{e0fff}'
            )
}

/// Returns whether a text has no unprintable characters.
pub fn is_printable(text: &str) -> bool {
    // ASCII texts, the most frequent, are scanned many bytes at a time.
    if text.is_ascii() {
        text.bytes().all(|byte| !byte.is_ascii_control())
    } else {
        !text.contains(is_unprintable)
    }
}

/// Returns a text as one line: replaces tabs and line breaks by spaces, other unprintable characters by U+FFFD.
pub fn printable(text: &str) -> Cow<'_, str> {
    if is_printable(text) {
        return Cow::Borrowed(text);
    }
    let replacement = |c: char| match c {
        '\t' | '\n' | '\r' => ' ',
        c if is_unprintable(c) => char::REPLACEMENT_CHARACTER,
        c => c,
    };
    Cow::Owned(text.trim_end().chars().map(replacement).collect())
}

/// Returns a text of several lines, each of them [printable].
pub fn printable_lines(text: &str) -> String {
    text.lines().map(printable).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_what_could_change_a_terminal() {
        for (text, expected) in [
            ("e2e4 ♟ käse 棋 🎲", "e2e4 ♟ käse 棋 🎲"),
            ("\u{1b}[2J\u{1b}]0;title\u{7}", "\u{fffd}[2J\u{fffd}]0;title\u{fffd}"),
            ("broken\r\n2026-11-18 quarantined honest\n", "broken  2026-11-18 quarantined honest"),
            ("\u{9b}31m \u{7f} \0", "\u{fffd}31m \u{fffd} \u{fffd}"),
            ("user\u{202e}nimda\u{2066}x\u{200e}", "user\u{fffd}nimda\u{fffd}x\u{fffd}"),
            ("ho\u{200b}nest\u{feff}\u{2060}\u{ad}", "ho\u{fffd}nest\u{fffd}\u{fffd}\u{fffd}"),
            ("a\u{2028}b\u{e0041}", "a\u{fffd}b\u{fffd}"),
        ] {
            assert_eq!(printable(text), expected);
            assert_eq!(is_printable(text), text == expected);
            assert!(is_printable(&printable(text)));
        }
        assert_eq!(printable_lines("one\r\n\u{1b}two\n"), "one\n\u{fffd}two");
    }
}
