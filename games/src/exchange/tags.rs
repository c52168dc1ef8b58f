//! The tag pairs of PGN and PDN: `[Name "value"]` (Edwards 1994, "Portable Game Notation Specification", 8.1).
//!
//! The reader works on bytes, because PGN files occur in any encoding. It tolerates unescaped quotes and surrounding spaces.

use std::fmt::Write as _;

use memchr::memchr;

/// Reads a tag's value from the text after its name. Returns the text between the quotes, still escaped, and the length up
/// to and including the closing bracket. A quote that is escaped or not followed by a bracket is part of the text.
#[inline]
pub fn quoted(text: &[u8]) -> Option<(&[u8], usize)> {
    let start =
        text.iter().position(|byte| !byte.is_ascii_whitespace()).filter(|&start| text[start] == b'"')? + 1;
    let mut from = start;
    loop {
        let quote = from + memchr(b'"', &text[from..])?;
        from = quote + 1;
        let next = text[from..].iter().position(|byte| !byte.is_ascii_whitespace());
        // An escaped quote before a bracket is still the end if no other quote follows on the line.
        let escaped = text[start..quote].iter().rev().take_while(|&&byte| byte == b'\\').count() % 2 == 1;
        let is_last = || memchr(b'"', &text[from..]).is_none();
        if let Some(next) = next
            && text[from + next] == b']'
            && (!escaped || is_last())
        {
            return Some((&text[start..quote], from + next + 1));
        }
    }
}

/// Returns the range of a tag's name in `inner`, the text after the opening bracket.
#[inline]
pub fn name(inner: &[u8]) -> std::ops::Range<usize> {
    let start = inner.iter().position(|&byte| byte != b' ').unwrap_or(inner.len());
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let length = inner[start..].iter().position(|byte| !is_name(byte)).unwrap_or(0);
    start..start + length
}

/// Writes the text of a tag to `value`, trimmed and with `\"` and `\\` unescaped. Replaces the earlier content.
#[inline]
pub fn unescape(text: &[u8], value: &mut Vec<u8>) {
    value.clear();
    let text = text.trim_ascii();
    if memchr(b'\\', text).is_none() {
        value.extend_from_slice(text);
        return;
    }
    let mut bytes = text.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        let is_escape = byte == b'\\' && matches!(bytes.peek(), Some(b'"' | b'\\'));
        value.push(if is_escape { bytes.next().unwrap_or(byte) } else { byte });
    }
}

/// Appends a tag pair and a line break, escaping quotes and backslashes.
pub(super) fn write(name: &str, value: &str, out: &mut String) {
    let escaped = value.replace('\\', "\\\\").replace('"', "\\\"");
    writeln!(out, "[{name} \"{escaped}\"]").expect("a String takes all text");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_tags_read_back() {
        for value in ["plain", "", "Tal \"Misha\"", "back\\slash", "ends with \\", "[a] \"]b"] {
            let mut tag = String::new();
            write("White", value, &mut tag);
            let inner = &tag.as_bytes()[1..];
            let name = name(inner);
            assert_eq!(&inner[name.clone()], b"White");
            let (text, length) = quoted(&inner[name.end..]).unwrap();
            assert_eq!(1 + name.end + length + 1, tag.len(), "{tag}");
            let mut read = Vec::new();
            unescape(text, &mut read);
            assert_eq!(String::from_utf8(read).unwrap(), value);
        }
    }
}
