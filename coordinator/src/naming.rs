//! How runs are called: `<name>-<the first eight digits of the spec's digest>`, and `-2`, `-3` behind it where the same
//! spec is run again.

/// The first part of a run's id, which its spec gave it.
pub fn name_of(id: &str) -> &str {
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

/// The ids that a text may mean: the one that it is, else those of the name that it is, else those that begin with it.
pub fn meant<'a>(ids: &'a [String], text: &str) -> Vec<&'a String> {
    let ways: [&dyn Fn(&str) -> bool; 3] =
        [&|id| id == text, &|id| name_of(id) == text, &|id| !text.is_empty() && id.starts_with(text)];
    let found =
        |way: &&dyn Fn(&str) -> bool| -> Vec<&'a String> { ids.iter().filter(|id| way(id)).collect() };
    ways.iter().map(found).find(|found| !found.is_empty()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_a_name_or_a_beginning_is_enough() {
        let ids =
            ["windows-bf17ef12", "windows-nodes-2a226de5", "a-00000001", "a-00000001-2", "12345678-12345678"];
        let ids = ids.map(String::from).to_vec();
        let meant = |text: &str| meant(&ids, text).into_iter().map(String::as_str).collect::<Vec<_>>();
        assert_eq!(meant("windows"), ["windows-bf17ef12"], "a name is more than a beginning");
        assert_eq!(meant("windows-"), ["windows-bf17ef12", "windows-nodes-2a226de5"]);
        assert_eq!(meant("windows-n"), ["windows-nodes-2a226de5"]);
        assert_eq!(meant("a"), ["a-00000001", "a-00000001-2"]);
        assert_eq!(meant("a-00000001"), ["a-00000001"], "an id is more than a beginning");
        assert_eq!(meant("12345678"), ["12345678-12345678"]);
        assert_eq!(meant("").len() + meant("x").len(), 0);
    }
}
