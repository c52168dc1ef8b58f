//! Tokens: secrets of 256 random bits. The TOML token file stores their names, roles and hashes.
//!
//! Tokens cannot be guessed, so an unsalted hash suffices; every lookup compares all hashes in constant time. The file is
//! reloaded when it changes; calls made with a removed token end.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::Deserialize;
use tokio_rustls::rustls::crypto::ring::default_provider;

use crate::caller::{Caller, Role};
use crate::files::{read, write_secret};
use crate::{CredentialError, lock};

/// The prefix of every token, by which people and secret scanners recognise one.
pub const PREFIX: &str = "agon_";

/// The maximum length of a token's name.
const MAX_NAME: usize = 64;

/// The stored description of a token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TokenEntry {
    /// The unique name.
    pub name: String,
    /// The role.
    pub role: Role,
    /// The hash of the secret.
    pub hash: blake3::Hash,
    /// The creation time; informational.
    pub created: String,
}

/// The content of a token file.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct TokenFile {
    /// The tokens in order of creation.
    pub entries: Vec<TokenEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    #[serde(default)]
    token: Vec<StoredEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredEntry {
    name: String,
    role: Role,
    hash: String,
    #[serde(default)]
    created: String,
}

impl TokenFile {
    /// Parses the text of a token file.
    pub fn parse(text: &str) -> Result<TokenFile, String> {
        let stored: Stored = toml::from_str(text).map_err(|error| error.message().to_string())?;
        let mut entries: Vec<TokenEntry> = Vec::new();
        for StoredEntry { name, role, hash, created } in stored.token {
            validate_name(&name)?;
            if entries.iter().any(|entry| entry.name == name) {
                return Err(format!("duplicate token name `{name}`"));
            }
            let hash = blake3::Hash::from_hex(&hash)
                .map_err(|_| format!("the hash of token `{name}` is not 64 hexadecimal digits"))?;
            entries.push(TokenEntry { name, role, hash, created });
        }
        Ok(TokenFile { entries })
    }

    /// Reads a token file.
    pub fn read(path: &Path) -> Result<TokenFile, CredentialError> {
        TokenFile::read_with_digest(path).1
    }

    /// Reads a token file. Returns the digest of its text, or of the error, too. Rejects a text without content: a file
    /// that is being written is empty for a moment, and one whose last token was revoked has a comment.
    fn read_with_digest(path: &Path) -> (blake3::Hash, Result<TokenFile, CredentialError>) {
        let text = match read(path, "token file") {
            Ok(text) => text,
            Err(error) => {
                let error = CredentialError(format!("{error}; create it with `agon token create`"));
                return (blake3::hash(error.0.as_bytes()), Err(error));
            }
        };
        let parsed = match text.trim() {
            "" => Err("it is empty; create a token with `agon token create`".to_string()),
            _ => TokenFile::parse(&text),
        };
        let read = parsed
            .map_err(|reason| CredentialError(format!("invalid token file {}: {reason}", path.display())));
        (blake3::hash(text.as_bytes()), read)
    }

    /// Returns the text of the file.
    pub fn to_toml(&self) -> String {
        let mut text = "# Agon token hashes (no secrets); managed by `agon token`.\n".to_string();
        for TokenEntry { name, role, hash, created } in &self.entries {
            let role = role.name();
            text += &format!(
                "\n[[token]]\nname = \"{name}\"\nrole = \"{role}\"\nhash = \"{hash}\"\ncreated = {created:?}\n"
            );
        }
        text
    }

    /// Adds a token and returns its secret, which is not stored.
    pub fn create(&mut self, name: &str, role: Role, created: &str) -> Result<String, String> {
        validate_name(name)?;
        if self.entries.iter().any(|entry| entry.name == name) {
            return Err(format!("token `{name}` already exists; revoke it first, or choose another name"));
        }
        let mut bits = [0; 32];
        default_provider()
            .secure_random
            .fill(&mut bits)
            .map_err(|_| "the operating system provides no random numbers".to_string())?;
        let secret = format!("{PREFIX}{}", blake3::Hash::from_bytes(bits).to_hex());
        let hash = blake3::hash(secret.as_bytes());
        self.entries.push(TokenEntry { name: name.to_string(), role, hash, created: created.to_string() });
        Ok(secret)
    }

    /// Removes a token.
    pub fn revoke(&mut self, name: &str) -> Result<(), String> {
        let before = self.entries.len();
        self.entries.retain(|entry| entry.name != name);
        if self.entries.len() < before {
            return Ok(());
        }
        let known: Vec<&str> = self.entries.iter().map(|entry| entry.name.as_str()).collect();
        let known = if known.is_empty() { "none".to_string() } else { known.join(", ") };
        Err(format!("unknown token `{name}`; existing tokens: {known}"))
    }

    /// Updates or creates a file under an exclusive lock.
    pub fn update<T>(
        path: &Path,
        update: impl FnOnce(&mut TokenFile) -> Result<T, String>,
    ) -> Result<T, CredentialError> {
        let path = &std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // Without folder locks, the last of several concurrent updates wins.
        let locked = File::open(folder).ok();
        let _ = locked.as_ref().map(File::lock);
        // An empty file, such as one made for its mode, gets its first token here.
        let is_new = std::fs::metadata(path).map_or(true, |file| file.is_file() && file.len() == 0);
        let mut file = if is_new { TokenFile::default() } else { TokenFile::read(path)? };
        let result = update(&mut file).map_err(CredentialError)?;
        write_secret(path, &file.to_toml()).map_err(|error| {
            CredentialError(format!("cannot write token file {}: {error}", path.display()))
        })?;
        Ok(result)
    }
}

/// Rejects names that are unsafe in files and logs.
pub fn validate_name(name: &str) -> Result<(), String> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(allowed) {
        return Err(format!("invalid name {name:?}; use 1 to {MAX_NAME} letters, digits, `-`, `_` or `.`"));
    }
    Ok(())
}

/// The tokens that a running coordinator accepts.
pub(crate) struct Tokens {
    path: PathBuf,
    /// The digest of the text that was read last, or of why none was read.
    seen: Mutex<blake3::Hash>,
    live: Mutex<Vec<(TokenEntry, Caller)>>,
}

impl Tokens {
    /// Loads a token file.
    pub(crate) fn open(path: &Path) -> Result<Tokens, CredentialError> {
        let (seen, read) = TokenFile::read_with_digest(path);
        let tokens = Tokens { path: path.to_path_buf(), seen: Mutex::new(seen), live: Mutex::default() };
        tokens.replace(read?);
        Ok(tokens)
    }

    pub(crate) fn count(&self) -> usize {
        lock(&self.live).len()
    }

    /// Reloads the file if it changed, and returns whether it did. A file that is unreadable, empty or invalid changes
    /// nothing; each such state is one error.
    pub(crate) fn refresh(&self) -> Result<bool, CredentialError> {
        // One read for the comparison and for the tokens: a second one may fail, and the change would be lost.
        let (digest, read) = TokenFile::read_with_digest(&self.path);
        if std::mem::replace(&mut *lock(&self.seen), digest) == digest {
            return Ok(false);
        }
        self.replace(read?);
        Ok(true)
    }

    /// Replaces the accepted tokens and revokes those that are gone.
    fn replace(&self, file: TokenFile) {
        let mut live = lock(&self.live);
        let mut before = std::mem::take(&mut *live);
        for entry in file.entries {
            // A changed entry is a new token; calls made with the old one end.
            let same = before.iter().position(|(known, _)| {
                (&known.name, known.role, known.hash) == (&entry.name, entry.role, entry.hash)
            });
            let caller = match same {
                Some(index) => before.swap_remove(index).1,
                None => Caller::token(&entry.name),
            };
            live.push((entry, caller));
        }
        for (_, caller) in before {
            caller.revoke();
        }
    }

    /// Returns the role and the caller of a secret.
    pub(crate) fn find(&self, secret: &str) -> Option<(Role, Caller)> {
        let hash = blake3::hash(secret.as_bytes());
        let live = lock(&self.live);
        let mut found = None;
        for (entry, caller) in live.iter() {
            // `Hash::eq` takes constant time; a match does not end the loop.
            if entry.hash == hash {
                found = Some((entry.role, caller.clone()));
            }
        }
        found
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    const NOW: &str = "2026-01-02T03:04:05Z";

    #[test]
    fn file_round_trips_without_secrets() {
        let mut file = TokenFile::default();
        let secrets = [("a", Role::Worker), ("b.c-d_e", Role::Operator), ("v", Role::Viewer)]
            .map(|(name, role)| file.create(name, role, NOW).unwrap());
        let text = file.to_toml();
        assert_eq!(TokenFile::parse(&text).unwrap(), file);
        for secret in &secrets {
            assert!(secret.starts_with(PREFIX) && secret.len() == PREFIX.len() + 64, "{secret}");
            assert!(!text.contains(&secret[PREFIX.len()..]));
        }
        assert_ne!(secrets[0], secrets[1]);
    }

    #[test]
    fn rejects_invalid_files_and_names() {
        let entry = |name: &str, role: &str, hash: &str| {
            format!("[[token]]\nname = {name:?}\nrole = {role:?}\nhash = {hash:?}\ncreated = \"\"\n")
        };
        let hash = "0".repeat(64);
        for (text, message) in [
            (entry("a", "worker", "00"), "the hash of token `a` is not 64 hexadecimal digits"),
            (entry("a", "king", &hash), "unknown variant `king`"),
            (entry("", "worker", &hash), "use 1 to 64 letters"),
            (entry("a", "worker", &hash).repeat(2), "duplicate token name `a`"),
            ("[[tokens]]".to_string(), "unknown field `tokens`"),
            (entry("a", "worker", &hash) + "admin = true\n", "unknown field `admin`"),
        ] {
            let reason = TokenFile::parse(&text).unwrap_err();
            assert!(reason.contains(message), "{reason}");
        }
        let mut file = TokenFile::default();
        file.create("a", Role::Worker, NOW).unwrap();
        assert!(file.create("a", Role::Viewer, NOW).unwrap_err().contains("token `a` already exists"));
        assert!(file.create("a b", Role::Viewer, NOW).is_err());
        assert!(file.revoke("b").unwrap_err().contains("unknown token `b`; existing tokens: a"));
    }

    #[test]
    fn reload_revokes_only_removed_tokens() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.toml");
        let make = |name: &str, role| TokenFile::update(&path, |file| file.create(name, role, NOW)).unwrap();
        let (stays, goes) = (make("stays", Role::Operator), make("goes", Role::Worker));
        let tokens = Tokens::open(&path).unwrap();
        let (role, staying) = tokens.find(&stays).unwrap();
        let (_, going) = tokens.find(&goes).unwrap();
        assert_eq!((role, tokens.count()), (Role::Operator, 2));
        assert!(tokens.find("agon_").is_none() && tokens.find(&stays[1..]).is_none());
        assert!(!tokens.refresh().unwrap());

        TokenFile::update(&path, |file| file.revoke("goes")).unwrap();
        assert!(tokens.refresh().unwrap());
        assert!(tokens.find(&goes).is_none());
        assert!(!going.is_valid() && staying.is_valid());
        assert!(tokens.find(&stays).unwrap().1.is_valid());

        // The same name with a new secret is another token.
        let again = make("goes", Role::Worker);
        assert!(tokens.refresh().unwrap());
        assert!(tokens.find(&again).unwrap().1 == going, "callers are compared by name");
        assert!(!going.is_valid(), "the old credential stays revoked");

        // A file that is invalid, empty or gone changes nothing, and is reported once.
        let text = std::fs::read_to_string(&path).unwrap();
        for broken in [Some("[[token]]"), Some(""), Some(" \n"), None] {
            match broken {
                Some(text) => std::fs::write(&path, text).unwrap(),
                None => std::fs::remove_file(&path).unwrap(),
            }
            assert!(tokens.refresh().is_err(), "{broken:?}");
            assert!(!tokens.refresh().unwrap(), "{broken:?}");
            assert!(tokens.find(&stays).is_some() && staying.is_valid(), "{broken:?}");
        }
        std::fs::write(&path, &text).unwrap();
        assert!(tokens.refresh().unwrap());
        assert!(staying.is_valid());

        // Revoking the last token leaves a file without tokens, which is not empty.
        TokenFile::update(&path, |file| file.revoke("stays").and_then(|()| file.revoke("goes"))).unwrap();
        assert!(tokens.refresh().unwrap());
        assert_eq!((tokens.count(), staying.is_valid()), (0, false));
    }

    #[test]
    fn first_token_goes_into_an_empty_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.toml");
        std::fs::write(&path, "").unwrap();
        assert!(Tokens::open(&path).err().unwrap().0.contains("it is empty; create a token"));
        TokenFile::update(&path, |file| file.create("first", Role::Worker, NOW)).unwrap();
        assert_eq!(Tokens::open(&path).unwrap().count(), 1);
    }

    #[test]
    fn concurrent_updates_are_all_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.toml");
        std::thread::scope(|scope| {
            for number in 0..16 {
                let path = &path;
                scope.spawn(move || {
                    let name = format!("t{number}");
                    TokenFile::update(path, |file| file.create(&name, Role::Viewer, NOW)).unwrap();
                });
            }
        });
        assert_eq!(TokenFile::read(&path).unwrap().entries.len(), 16);
    }
}
