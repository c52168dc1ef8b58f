//! Files with secrets, and files that are read again when they change.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::DoorError;

/// Writes a file that its owner alone may read, whole or not at all: whoever reads it meanwhile sees the one before. Where
/// the one before was for its group too, and for nobody else, so is this: it may be mounted for a container.
pub fn write_secret(path: &Path, text: &str) -> io::Result<()> {
    write_whole(path, text, if is_for_group(path) { 0o640 } else { 0o600 })
}

#[cfg(unix)]
fn is_for_group(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(path).is_ok_and(|there| there.permissions().mode() & 0o044 == 0o040)
}

#[cfg(not(unix))]
fn is_for_group(_path: &Path) -> bool {
    false
}

/// Writes a file with this mode, whole or not at all.
pub(crate) fn write_whole(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".tmp");
    let beside = path.with_file_name(name);
    // One that was left behind may be open to others.
    let _ = fs::remove_file(&beside);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    let written = options.open(&beside).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    written.and_then(|()| fs::rename(&beside, path)).inspect_err(|_| drop(fs::remove_file(&beside)))
}

/// Reads a file with a secret, and warns where others than its owner can read it.
pub fn read_secret(path: &Path, what: &str) -> Result<String, DoorError> {
    let text = read(path, what)?;
    #[cfg(unix)]
    if let Ok(metadata) = fs::metadata(path)
        && std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o004 != 0
    {
        tracing::warn!("{} can be read by everybody on this machine; chmod 600 it", path.display());
    }
    Ok(text)
}

/// Reads a file of text.
pub(crate) fn read(path: &Path, what: &str) -> Result<String, DoorError> {
    fs::read_to_string(path)
        .map_err(|error| DoorError(format!("{what} {} cannot be read: {error}", path.display())))
}

/// Files that belong together, by the content that was last looked at.
pub(crate) struct Watched {
    paths: Vec<PathBuf>,
    seen: blake3::Hash,
}

impl Watched {
    /// Files as they are now.
    pub(crate) fn new(paths: Vec<PathBuf>) -> Watched {
        let seen = digest(&paths);
        Watched { paths, seen }
    }

    /// Whether any of them is another than the last time. Content is compared and not times: a mounted secret changes
    /// behind a link.
    pub(crate) fn changed(&mut self) -> bool {
        let now = digest(&self.paths);
        let changed = now != self.seen;
        self.seen = now;
        changed
    }
}

fn digest(paths: &[PathBuf]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    for path in paths {
        let content = fs::read(path).unwrap_or_default();
        hasher.update(&(content.len() as u64).to_le_bytes()).update(&content);
    }
    hasher.finalize()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_seen_once() {
        let folder = tempfile::tempdir().unwrap();
        let [one, two] = ["one", "two"].map(|name| folder.path().join(name));
        write_secret(&one, "a").unwrap();
        let mut watched = Watched::new(vec![one.clone(), two.clone()]);
        assert!(!watched.changed());
        write_secret(&two, "").unwrap();
        assert!(!watched.changed(), "a file that is empty says as much as one that is not there");
        write_secret(&one, "").unwrap();
        write_secret(&two, "a").unwrap();
        assert!(watched.changed(), "the same bytes in another file are another content");
        assert!(!watched.changed());
    }

    #[cfg(unix)]
    #[test]
    fn secrets_are_for_their_owner_even_over_an_open_file() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        fs::write(&path, "open").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        write_secret(&path, "closed").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "closed");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing lies about");
        // What a group may read, and nobody else, it may go on reading.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        write_secret(&path, "for a container").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    }
}
