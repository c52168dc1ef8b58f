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
    split(id).map_or(id, |(name, _)| name)
}

/// Splits a run id into the name and the part of the digest.
fn split(id: &str) -> Option<(&str, &str)> {
    let is_digest = |text: &str| text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let again = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match id.rsplit_once('-') {
        Some((name, last)) if is_digest(last) => Some((name, last)),
        Some((rest, last)) if again(last) => rest.rsplit_once('-').filter(|(_, digest)| is_digest(digest)),
        _ => None,
    }
}

/// A spec that is not that of its run.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "the spec has the digest {found}, and the run id {id} names {}: it was changed after the run was submitted; check the \
     network between both machines, and use TLS",
    .expected.as_deref().unwrap_or("none")
)]
pub struct ChangedSpec {
    /// The run id.
    pub id: String,
    /// The part of the digest in the run id, if it has one.
    pub expected: Option<String>,
    /// The digest of the spec, as much as a run id has of it.
    pub found: String,
}

/// Checks that a spec has the digest in the id of its run.
pub fn check(id: &str, source: &SpecSource) -> Result<(), ChangedSpec> {
    let expected = split(id).map(|(_, digest)| digest.to_string());
    let found = digest(source).map_or("of no TOML text".to_string(), |digest| digest[..8].to_string());
    if expected.as_ref() == Some(&found) {
        return Ok(());
    }
    Err(ChangedSpec { id: id.to_string(), expected, found })
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
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn detects_a_changed_spec() {
        let source = |text: &str| SpecSource { text: text.to_string(), ..SpecSource::default() };
        let spec = source("name = \"race\"\nseed = 1");
        let id = first("race", &spec).unwrap();
        for id in [id.clone(), format!("{id}-2"), format!("{id}-31")] {
            assert_eq!(check(&id, &spec), Ok(()));
            assert_eq!(check(&id, &source("seed=1 # the same\nname='race'")), Ok(()));
            let changed = source("name = \"race\"\nseed = 2");
            let digest = &digest(&changed).unwrap()[..8];
            let error = check(&id, &changed).unwrap_err().to_string();
            let expected =
                format!("the spec has the digest {digest}, and the run id {id} names {}", &id[5..13]);
            assert!(error.starts_with(&expected), "{error}");
            let mut file = spec.clone();
            file.files.insert("book.epd".to_string(), "e4".to_string());
            assert!(check(&id, &file).is_err());
            assert!(check(&id, &source("seed = = 1")).is_err());
        }
        let error = check("race", &spec).unwrap_err().to_string();
        assert!(error.contains("the run id race names none"), "{error}");
    }

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
