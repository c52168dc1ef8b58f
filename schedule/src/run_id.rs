//! Run ids: `<name>-<first eight digits of the spec's digest>`, then `-2`, `-3`, ... where the same spec runs again.

use agon_arena::{SpecError, SpecSource};

/// Returns the digest of a spec, in hexadecimal.
pub fn digest(source: &SpecSource) -> Result<String, SpecError> {
    Ok(blake3::hash(source.canonical()?.as_bytes()).to_hex().to_string())
}

/// Returns the id of the first run of a spec.
pub fn first(name: &str, source: &SpecSource) -> Result<String, SpecError> {
    Ok(format!("{name}-{}", &digest(source)?[..8]))
}

/// Returns the name in a run id.
pub fn name(id: &str) -> &str {
    let is_digest = |text: &str| text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let again = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match id.rsplit_once('-') {
        Some((name, last)) if is_digest(last) => name,
        Some((rest, last)) if again(last) => match rest.rsplit_once('-') {
            Some((name, digest)) if is_digest(digest) => name,
            _ => id,
        },
        _ => id,
    }
}

/// Returns the ids that `text` may stand for: the equal one, else those with this name, else those with this prefix.
pub fn matching<'a>(ids: &'a [String], text: &str) -> Vec<&'a String> {
    let ways: [&dyn Fn(&str) -> bool; 3] =
        [&|id| id == text, &|id| name(id) == text, &|id| !text.is_empty() && id.starts_with(text)];
    let found =
        |way: &&dyn Fn(&str) -> bool| -> Vec<&'a String> { ids.iter().filter(|id| way(id)).collect() };
    ways.iter().map(found).find(|found| !found.is_empty()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_id_then_name_then_prefix() {
        let ids =
            ["windows-bf17ef12", "windows-nodes-2a226de5", "a-00000001", "a-00000001-2", "12345678-12345678"];
        let ids = ids.map(String::from).to_vec();
        let matching = |text: &str| matching(&ids, text).into_iter().map(String::as_str).collect::<Vec<_>>();
        assert_eq!(matching("windows"), ["windows-bf17ef12"], "a name precedes a prefix");
        assert_eq!(matching("windows-"), ["windows-bf17ef12", "windows-nodes-2a226de5"]);
        assert_eq!(matching("windows-n"), ["windows-nodes-2a226de5"]);
        assert_eq!(matching("a"), ["a-00000001", "a-00000001-2"]);
        assert_eq!(matching("a-00000001"), ["a-00000001"], "an id precedes a prefix");
        assert_eq!(matching("12345678"), ["12345678-12345678"]);
        assert_eq!(matching("").len() + matching("x").len(), 0);
    }
}
