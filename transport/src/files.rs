//! Secret files and atomic writes.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use crate::CredentialError;

/// The bytes of the largest file of tokens or certificates.
const MAX_CREDENTIAL_BYTES: u64 = 1 << 20;

/// Atomically writes a file with mode 0600. An existing file keeps its owner, group and mode, because it may be mounted
/// into a container or belong to a service.
pub fn write_secret(path: &Path, text: &str) -> io::Result<()> {
    write_atomic(path, text, 0o600)
}

/// Atomically writes a file: a new one with `mode`, an existing one with its owner, group and mode. Follows links.
pub(crate) fn write_atomic(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let path = match fs::canonicalize(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => path.to_path_buf(),
        found => found?,
    };
    let before = fs::metadata(&path).ok();
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".tmp");
    let temporary = path.with_file_name(name);
    // A leftover may be readable by others.
    let _ = fs::remove_file(&temporary);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, if before.is_some() { 0o600 } else { mode });
    #[cfg(not(unix))]
    let _ = mode;
    let written = options.open(&temporary).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        if let Some(before) = &before {
            copy_ownership(&file, before)?;
        }
        file.sync_all()?;
        fs::rename(&temporary, &path)
    });
    written.inspect_err(|_| drop(fs::remove_file(&temporary)))?;
    // Makes the rename durable; platforms that cannot sync a folder do not need it.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}

/// Copies owner, group and mode of the replaced file.
#[cfg(unix)]
fn copy_ownership(file: &File, before: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, fchown};
    let made = file.metadata()?;
    let (user, group) = (before.uid(), before.gid());
    if (made.uid(), made.gid()) != (user, group) {
        // Without the right to change the owner, the group may still be changed.
        let user = (made.uid() != user).then_some(user);
        fchown(file, user, Some(group)).map_err(|error| {
            let reason = format!(
                "cannot keep its owner, user {} and group {group} ({error}); retry as that user or as root",
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

/// Reads a secret file, with a warning if it is world-readable.
pub fn read_secret(path: &Path, what: &str) -> Result<String, CredentialError> {
    let text = read(path, what)?;
    warn_if_readable(path);
    Ok(text)
}

/// Warns if a secret file is world-readable.
pub(crate) fn warn_if_readable(path: &Path) {
    #[cfg(unix)]
    if let Ok(metadata) = fs::metadata(path)
        && std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o004 != 0
    {
        warn_operator(&format!("{} is world-readable; run chmod 600 on it", path.display()));
    }
    #[cfg(not(unix))]
    let _ = path;
}

/// Warns in the log, or on standard error if the log is disabled or filters warnings.
pub fn warn_operator(message: &str) {
    if tracing::enabled!(tracing::Level::WARN) {
        tracing::warn!("{message}");
    } else {
        let _ = writeln!(io::stderr(), "warning: {message}");
    }
}

/// Reads a text file; `what` names it in the error.
pub(crate) fn read(path: &Path, what: &str) -> Result<String, CredentialError> {
    agon_files::read_text(path, MAX_CREDENTIAL_BYTES)
        .map_err(|error| CredentialError(format!("cannot read {what} {}: {error}", path.display())))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    #[cfg(unix)]
    use std::path::PathBuf;

    use super::*;

    #[cfg(unix)]
    #[test]
    fn secrets_are_regular_files_of_a_bounded_size() {
        let folder = tempfile::tempdir().unwrap();
        let (long, pipe) = (folder.path().join("long"), folder.path().join("pipe"));
        fs::write(&long, vec![b'a'; 1 << 20 | 1]).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for (path, reason) in [
            (&long, "this is larger than 1 MB"),
            (&pipe, "this is a pipe or a device, not a regular file"),
            (&PathBuf::from("/dev/zero"), "this is a pipe or a device, not a regular file"),
        ] {
            let error = read_secret(path, "token file").unwrap_err().0;
            assert_eq!(error, format!("cannot read token file {}: {reason}", path.display()));
        }
    }

    #[cfg(unix)]
    fn mode(path: &Path) -> u32 {
        std::os::unix::fs::PermissionsExt::mode(&fs::metadata(path).unwrap().permissions()) & 0o777
    }

    #[cfg(unix)]
    #[test]
    fn overwriting_keeps_the_mode() {
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
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
    }

    #[cfg(unix)]
    #[test]
    fn overwriting_follows_links() {
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

    /// Needs root.
    #[cfg(unix)]
    #[test]
    fn overwriting_keeps_the_owner() {
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
