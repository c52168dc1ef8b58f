//! Files with secrets, and files that are read again when they change.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::CredentialError;

/// Writes a file that its owner alone may read, whole or not at all: whoever reads it meanwhile sees the one before. Where
/// there was one before, whoever could read that can read this: it may be mounted for a container, or belong to a service.
pub fn write_secret(path: &Path, text: &str) -> io::Result<()> {
    write_atomic(path, text, 0o600)
}

/// Writes a file, whole or not at all: a new one with this mode, else with the owner, the group and the mode of the one
/// before. Behind a link it is the file that changes and not the link.
pub(crate) fn write_atomic(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let path = match fs::canonicalize(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => path.to_path_buf(),
        found => found?,
    };
    let before = fs::metadata(&path).ok();
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".tmp");
    let beside = path.with_file_name(name);
    // One that was left behind may be open to others.
    let _ = fs::remove_file(&beside);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, if before.is_some() { 0o600 } else { mode });
    #[cfg(not(unix))]
    let _ = mode;
    let written = options.open(&beside).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        if let Some(before) = &before {
            copy_ownership(&file, before)?;
        }
        file.sync_all()?;
        fs::rename(&beside, &path)
    });
    written.inspect_err(|_| drop(fs::remove_file(&beside)))?;
    // The name is as durable as the content. Where folders cannot be synced they need not be.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}

/// Gives a file to whom the one before belongs.
#[cfg(unix)]
fn copy_ownership(file: &File, before: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, fchown};
    let made = file.metadata()?;
    let (user, group) = (before.uid(), before.gid());
    if (made.uid(), made.gid()) != (user, group) {
        // Whoever may not give it away may still share a group with whom it belongs to.
        let user = (made.uid() != user).then_some(user);
        fchown(file, user, Some(group)).map_err(|error| {
            let reason = format!(
                "it belongs to user {} and group {group}, to whom a new one cannot be given ({error}); do this as \
                 that user or as root",
                before.uid()
            );
            io::Error::new(error.kind(), reason)
        })?;
    }
    file.set_permissions(before.permissions())
}

#[cfg(not(unix))]
fn copy_ownership(_: &File, _: &Metadata) -> io::Result<()> {
    Ok(())
}

/// Reads a file with a secret, and warns where others than its owner can read it.
pub fn read_secret(path: &Path, what: &str) -> Result<String, CredentialError> {
    let text = read(path, what)?;
    #[cfg(unix)]
    if let Ok(metadata) = fs::metadata(path)
        && std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o004 != 0
    {
        warn_operator(&format!("{} can be read by everybody on this machine; chmod 600 it", path.display()));
    }
    Ok(text)
}

/// Says something that people must see: in the log, or where there is none or it is silent, on standard error.
pub fn warn_operator(sentence: &str) {
    if tracing::enabled!(tracing::Level::WARN) {
        tracing::warn!("{sentence}");
    } else {
        let _ = writeln!(io::stderr(), "warning: {sentence}");
    }
}

/// Reads a file of text.
pub(crate) fn read(path: &Path, what: &str) -> Result<String, CredentialError> {
    fs::read_to_string(path)
        .map_err(|error| CredentialError(format!("{what} {} cannot be read: {error}", path.display())))
}

/// Files that belong together, by the content that was last looked at.
pub(crate) struct WatchedFiles {
    paths: Vec<PathBuf>,
    seen: blake3::Hash,
}

impl WatchedFiles {
    /// Files as they are now.
    pub(crate) fn new(paths: Vec<PathBuf>) -> WatchedFiles {
        let seen = digest(&paths);
        WatchedFiles { paths, seen }
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
        let mut watched = WatchedFiles::new(vec![one.clone(), two.clone()]);
        assert!(!watched.changed());
        write_secret(&two, "").unwrap();
        assert!(!watched.changed(), "a file that is empty says as much as one that is not there");
        write_secret(&one, "").unwrap();
        write_secret(&two, "a").unwrap();
        assert!(watched.changed(), "the same bytes in another file are another content");
        assert!(!watched.changed());
    }

    #[cfg(unix)]
    fn mode(path: &Path) -> u32 {
        std::os::unix::fs::PermissionsExt::mode(&fs::metadata(path).unwrap().permissions()) & 0o777
    }

    #[cfg(unix)]
    #[test]
    fn whoever_could_read_the_one_before_can_read_this_and_nobody_else() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        write_secret(&path, "new").unwrap();
        assert_eq!(mode(&path), 0o600);
        for open in [0o600, 0o640, 0o644] {
            fs::set_permissions(&path, fs::Permissions::from_mode(open)).unwrap();
            write_secret(&path, "another").unwrap();
            assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode(&path)), ("another", open));
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing lies about");
    }

    #[cfg(unix)]
    #[test]
    fn behind_a_link_the_file_changes_and_the_link_stays() {
        let folder = tempfile::tempdir().unwrap();
        let [path, link, nowhere] = ["real/tokens", "link", "nowhere"].map(|name| folder.path().join(name));
        fs::create_dir(folder.path().join("real")).unwrap();
        fs::write(&path, "before").unwrap();
        std::os::unix::fs::symlink("real/tokens", &link).unwrap();
        write_secret(&link, "after").unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&path).unwrap(), "after");
        std::os::unix::fs::symlink("gone", &nowhere).unwrap();
        assert!(write_secret(&nowhere, "x").is_err() && nowhere.is_symlink());
    }

    /// Only root can give files away: others are told, and nothing changes.
    #[cfg(unix)]
    #[test]
    fn a_file_stays_with_whom_it_belongs_to() {
        use std::os::unix::fs::{MetadataExt as _, chown};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        fs::write(&path, "before").unwrap();
        let own = fs::metadata(&path).unwrap();
        if chown(&path, Some(65_534), Some(65_534)).is_err() {
            return;
        }
        write_secret(&path, "after").unwrap();
        let now = fs::metadata(&path).unwrap();
        assert_eq!((now.uid(), now.gid(), now.mode()), (65_534, 65_534, own.mode()));
        assert_eq!(fs::read_to_string(&path).unwrap(), "after");
    }
}
