//! Text that is safe inside HTML and SVG, and how wide it will be.

/// The text with everything that means something in markup, or nothing on a page, taken out of the way.
pub(super) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\n' | '\t' => safe.push(c),
            c if c.is_control() => safe.push('\u{fffd}'),
            // Marks that turn the direction of what follows would reach beyond the text itself.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

/// Names of more letters may be broken to fit.
pub(super) const LONG_NAME: usize = 16;

/// The text as it stands in large letters: no line ends at a hyphen within a name, unless the name is long.
pub(super) fn heading(text: &str) -> String {
    let word = |word: &str| match word.contains('-') && word.chars().count() <= LONG_NAME + 1 {
        true => format!("<span class=\"name\">{}</span>", escape(word)),
        false => escape(word),
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// About how wide a text is at a size of one, on the large side for the usual fonts without serifs.
pub(super) fn text_width(text: &str) -> f64 {
    let width = |c: char| match c {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ' => 0.36,
        'f' | 't' | 'r' | '-' | '(' | ')' | '/' => 0.46,
        'm' | 'w' | 'M' | 'W' | '@' | '%' => 0.98,
        'A'..='Z' | '+' | '=' | '<' | '>' | '~' | '#' => 0.84,
        c if c.is_ascii() => 0.66,
        _ => 1.05,
    };
    text.chars().map(width).sum()
}

/// The text, or as much of its beginning as fits with two dots behind it.
pub(super) fn fitted(text: &str, width: f64) -> String {
    if text_width(text) <= width {
        return text.to_string();
    }
    let mut room = text.chars().count();
    loop {
        let cut = crate::format::shortened(text, room);
        if room <= 3 || text_width(&cut) <= width {
            return cut;
        }
        room -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_text_is_markup() {
        let hostile = "<script>alert(\"x\")</script>&amp; 'a'\u{0}\u{202e}";
        let safe = escape(hostile);
        assert!(!safe.contains(['<', '>', '"', '\'', '\u{0}', '\u{202e}']), "{safe}");
        assert_eq!(safe.matches("&amp;amp;").count(), 1);
        assert_eq!(escape("plain-name 1"), "plain-name 1");
    }

    #[test]
    fn names_in_headings_are_not_broken() {
        let long = "a-name-that-is-rather-long";
        assert_eq!(
            heading(&format!("p-1, {long} & all")),
            format!("<span class=\"name\">p-1,</span> {long} &amp; all")
        );
    }

    #[test]
    fn what_is_cut_fits() {
        for text in ["", "a", "depth-12", "WWWWWWWWWWWWWWWWWWWWW", "ひらがなひらがな"] {
            let cut = fitted(text, 6.0);
            assert!(text_width(&cut) <= 6.0, "{cut}");
        }
        assert_eq!(fitted("depth-5", 10.0), "depth-5");
    }
}
