//! Tokens: secrets of 256 random bits, of which a file keeps names, roles and hashes.
//!
//! A token is too random to be guessed, so that a plain hash is enough; hashes are compared in constant time, and all of
//! them for every token that is shown. The file is TOML, one table a token, and is read again when it changes: a token that is not in
//! it any more counts no more, and the calls that were made with it end.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::Deserialize;
use tokio_rustls::rustls::crypto::ring::default_provider;

use crate::CredentialError;
use crate::caller::{Caller, Role};
use crate::files::{WatchedFiles, read, write_secret};

/// What every token begins with, so that people and programs know one when they see it.
pub const PREFIX: &str = "agon_";

/// The longest name of a token.
const MAX_NAME: usize = 64;

/// What is kept of a token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// What it allows.
    pub role: Role,
    /// The hash of its text.
    pub hash: blake3::Hash,
    /// When it was made, for people.
    pub created: String,
}

/// The tokens of a coordinator, as they stand in their file.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct TokenFile {
    /// In the order in which they were made.
    pub entries: Vec<Entry>,
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
    /// Reads the text of a file.
    pub fn parse(text: &str) -> Result<TokenFile, String> {
        let stored: Stored = toml::from_str(text).map_err(|error| error.message().to_string())?;
        let mut entries: Vec<Entry> = Vec::new();
        for StoredEntry { name, role, hash, created } in stored.token {
            check_name(&name)?;
            if entries.iter().any(|entry| entry.name == name) {
                return Err(format!("two tokens are called `{name}`"));
            }
            let hash = blake3::Hash::from_hex(&hash)
                .map_err(|_| format!("the hash of `{name}` is not 64 hexadecimal digits"))?;
            entries.push(Entry { name, role, hash, created });
        }
        Ok(TokenFile { entries })
    }

    /// Reads a file.
    pub fn read(path: &Path) -> Result<TokenFile, CredentialError> {
        let remedy =
            |error: CredentialError| CredentialError(format!("{error}; `agon token create` makes it"));
        let text = read(path, "the tokens file").map_err(remedy)?;
        TokenFile::parse(&text).map_err(|reason| {
            CredentialError(format!("the tokens file {} makes no sense: {reason}", path.display()))
        })
    }

    /// Its text.
    pub fn text(&self) -> String {
        let mut text =
            "# Tokens of an Agon coordinator: hashes, no secrets. `agon token` writes it.\n".to_string();
        for Entry { name, role, hash, created } in &self.entries {
            let role = role.name();
            text += &format!(
                "\n[[token]]\nname = \"{name}\"\nrole = \"{role}\"\nhash = \"{hash}\"\ncreated = {created:?}\n"
            );
        }
        text
    }

    /// Adds a token and returns its secret, which is nowhere else.
    pub fn create(&mut self, name: &str, role: Role, created: &str) -> Result<String, String> {
        check_name(name)?;
        if self.entries.iter().any(|entry| entry.name == name) {
            return Err(format!("there is a token called `{name}`; revoke it first, or choose another name"));
        }
        let mut bits = [0; 32];
        default_provider()
            .secure_random
            .fill(&mut bits)
            .map_err(|_| "the operating system gives no random numbers".to_string())?;
        let secret = format!("{PREFIX}{}", blake3::Hash::from_bytes(bits).to_hex());
        let hash = blake3::hash(secret.as_bytes());
        self.entries.push(Entry { name: name.to_string(), role, hash, created: created.to_string() });
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
        let known = if known.is_empty() { "there is none".to_string() } else { known.join(", ") };
        Err(format!("no token is called `{name}`; {known}"))
    }

    /// Changes a file, or makes it. Whoever else changes it meanwhile waits.
    pub fn change<T>(
        path: &Path,
        change: impl FnOnce(&mut TokenFile) -> Result<T, String>,
    ) -> Result<T, CredentialError> {
        let path = &std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // Where folders cannot be locked two changes at the same moment are one change; nothing worse.
        let alone = File::open(folder).ok();
        let _ = alone.as_ref().map(File::lock);
        let mut file = if path.exists() { TokenFile::read(path)? } else { TokenFile::default() };
        let done = change(&mut file).map_err(CredentialError)?;
        write_secret(path, &file.text()).map_err(|error| {
            CredentialError(format!("the tokens file {} cannot be written: {error}", path.display()))
        })?;
        Ok(done)
    }
}

/// Whether something can be called so: the name is safe in files, logs and sentences.
pub fn check_name(name: &str) -> Result<(), String> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(allowed) {
        return Err(format!("a name has 1 to {MAX_NAME} letters, digits and any of `-_.`, not {name:?}"));
    }
    Ok(())
}

/// The tokens of a coordinator while it runs.
pub struct Tokens {
    path: PathBuf,
    watched: Mutex<WatchedFiles>,
    live: Mutex<Vec<(Entry, Caller)>>,
}

impl Tokens {
    /// The tokens of a file.
    pub fn open(path: &Path) -> Result<Tokens, CredentialError> {
        let watched = Mutex::new(WatchedFiles::new(vec![path.to_path_buf()]));
        let tokens = Tokens { path: path.to_path_buf(), watched, live: Mutex::default() };
        tokens.take(TokenFile::read(path)?);
        Ok(tokens)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.live.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Reads the file again if it has changed. Whether it has; one that makes no sense leaves everything as it was.
    pub(crate) fn refresh(&self) -> Result<bool, CredentialError> {
        if !self.watched.lock().unwrap_or_else(PoisonError::into_inner).changed() {
            return Ok(false);
        }
        self.take(TokenFile::read(&self.path)?);
        Ok(true)
    }

    fn take(&self, file: TokenFile) {
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        let mut before = std::mem::take(&mut *live);
        for entry in file.entries {
            // What was changed in any way is another token: calls that were made with the one before end.
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

    /// Whose a token is.
    pub(crate) fn find(&self, secret: &str) -> Option<(Role, Caller)> {
        let hash = blake3::hash(secret.as_bytes());
        let live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = None;
        for (entry, caller) in live.iter() {
            // Equality of hashes takes the same time whatever they are, and the search goes on to the end.
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
    fn a_file_reads_back_and_has_no_secret() {
        let mut file = TokenFile::default();
        let secrets = [("a", Role::Worker), ("b.c-d_e", Role::Operator), ("v", Role::Viewer)]
            .map(|(name, role)| file.create(name, role, NOW).unwrap());
        let text = file.text();
        assert_eq!(TokenFile::parse(&text).unwrap(), file);
        for secret in &secrets {
            assert!(secret.starts_with(PREFIX) && secret.len() == PREFIX.len() + 64, "{secret}");
            assert!(!text.contains(&secret[PREFIX.len()..]));
        }
        assert_ne!(secrets[0], secrets[1]);
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_a_sentence() {
        let entry = |name: &str, role: &str, hash: &str| {
            format!("[[token]]\nname = {name:?}\nrole = {role:?}\nhash = {hash:?}\ncreated = \"\"\n")
        };
        let hash = "0".repeat(64);
        for (text, sentence) in [
            (entry("a", "worker", "00"), "the hash of `a` is not 64 hexadecimal digits"),
            (entry("a", "king", &hash), "unknown variant `king`"),
            (entry("", "worker", &hash), "a name has 1 to 64 letters"),
            (entry("a", "worker", &hash).repeat(2), "two tokens are called `a`"),
            ("[[tokens]]".to_string(), "unknown field `tokens`"),
            (entry("a", "worker", &hash) + "admin = true\n", "unknown field `admin`"),
        ] {
            let reason = TokenFile::parse(&text).unwrap_err();
            assert!(reason.contains(sentence), "{reason}");
        }
        let mut file = TokenFile::default();
        file.create("a", Role::Worker, NOW).unwrap();
        assert!(file.create("a", Role::Viewer, NOW).unwrap_err().contains("there is a token called `a`"));
        assert!(file.create("a b", Role::Viewer, NOW).is_err());
        assert!(file.revoke("b").unwrap_err().contains("no token is called `b`; a"));
    }

    #[test]
    fn what_is_revoked_counts_no_more_and_the_rest_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.toml");
        let make = |name: &str, role| TokenFile::change(&path, |file| file.create(name, role, NOW)).unwrap();
        let (stays, goes) = (make("stays", Role::Operator), make("goes", Role::Worker));
        let tokens = Tokens::open(&path).unwrap();
        let (role, staying) = tokens.find(&stays).unwrap();
        let (_, going) = tokens.find(&goes).unwrap();
        assert_eq!((role, tokens.count()), (Role::Operator, 2));
        assert!(tokens.find("agon_").is_none() && tokens.find(&stays[1..]).is_none());
        assert!(!tokens.refresh().unwrap());

        TokenFile::change(&path, |file| file.revoke("goes")).unwrap();
        assert!(tokens.refresh().unwrap());
        assert!(tokens.find(&goes).is_none());
        assert!(!going.is_valid() && staying.is_valid());
        assert!(tokens.find(&stays).unwrap().1.is_valid());

        // The same name with another secret is another token.
        let again = make("goes", Role::Worker);
        assert!(tokens.refresh().unwrap());
        assert!(tokens.find(&again).unwrap().1 == going, "by its name it is the same caller");
        assert!(!going.is_valid(), "and what the old one opened stays closed");

        // A file that makes no sense changes nothing.
        std::fs::write(&path, "[[token]]").unwrap();
        assert!(tokens.refresh().is_err());
        assert!(tokens.find(&stays).is_some());
    }

    #[test]
    fn changes_at_the_same_time_are_all_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.toml");
        std::thread::scope(|scope| {
            for number in 0..16 {
                let path = &path;
                scope.spawn(move || {
                    let name = format!("t{number}");
                    TokenFile::change(path, |file| file.create(&name, Role::Viewer, NOW)).unwrap();
                });
            }
        });
        assert_eq!(TokenFile::read(&path).unwrap().entries.len(), 16);
    }
}
