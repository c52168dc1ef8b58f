//! The tag pairs of PGN and PDN: `[Name "value"]` (Edwards 1994, "Portable Game Notation Specification", 8.1).
//!
//! Bytes, since real files are of any encoding. What is read is what was meant where there is no doubt: quotes inside of
//! names, spaces around them.

use std::fmt::Write as _;

use memchr::memchr;

/// The text between quotes in what follows a tag's name, and the length up to and with the closing bracket. A quote that no
/// bracket follows belongs to the text, as does one behind a backslash.
#[inline]
pub fn quoted(text: &[u8]) -> Option<(&[u8], usize)> {
    let start =
        text.iter().position(|byte| !byte.is_ascii_whitespace()).filter(|&start| text[start] == b'"')? + 1;
    let mut from = start;
    loop {
        let quote = from + memchr(b'"', &text[from..])?;
        from = quote + 1;
        let behind = text[from..].iter().position(|byte| !byte.is_ascii_whitespace());
        // An escaped quote before a bracket is the end after all if no other quote follows in the line.
        let escaped = text[start..quote].iter().rev().take_while(|&&byte| byte == b'\\').count() % 2 == 1;
        let last = || memchr(b'"', &text[from..]).is_none();
        if let Some(behind) = behind
            && text[from + behind] == b']'
            && (!escaped || last())
        {
            return Some((&text[start..quote], from + behind + 1));
        }
    }
}

/// Where a tag's name stands in what follows its opening bracket.
#[inline]
pub fn name(inner: &[u8]) -> std::ops::Range<usize> {
    let start = inner.iter().position(|&byte| byte != b' ').unwrap_or(inner.len());
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let length = inner[start..].iter().position(|byte| !is_name(byte)).unwrap_or(0);
    start..start + length
}

/// Replaces what `value` was with a tag's text, without spaces around it and backslashes before quotes and backslashes.
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
        let escapes = byte == b'\\' && matches!(bytes.peek(), Some(b'"' | b'\\'));
        value.push(if escapes { bytes.next().unwrap_or(byte) } else { byte });
    }
}

/// Appends a tag pair in a line of its own.
pub(super) fn write(name: &str, value: &str, out: &mut String) {
    let escaped = value.replace('\\', "\\\\").replace('"', "\\\"");
    writeln!(out, "[{name} \"{escaped}\"]").expect("a String takes all text");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
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
