//! Atomic writes to a folder.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

/// Whether a write may replace a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Fails where the file exists.
    Create,
    /// Replaces the file where it exists.
    Replace,
}

/// Writes a file in a folder atomically: under a temporary name, synced, then renamed. A crash or a power failure leaves
/// the whole file or none. The folder must exist: one that was renamed is not made anew.
pub fn write_file(folder: &Path, name: &str, bytes: &[u8], mode: Mode) -> io::Result<()> {
    let file = folder.join(name);
    let partial = file.with_extension("partial");
    fs::metadata(folder)?;
    if let Some(above) = file.parent() {
        fs::create_dir_all(above)?;
    }
    let mut writer = File::create(&partial)?;
    writer.write_all(bytes)?;
    writer.sync_all()?;
    match mode {
        Mode::Replace => fs::rename(&partial, &file)?,
        Mode::Create => {
            let linked = fs::hard_link(&partial, &file);
            fs::remove_file(&partial)?;
            linked?;
        }
    }
    for above in file.ancestors().skip(1) {
        File::open(above)?.sync_all()?;
        if above == folder {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn missing_folder_is_not_made_anew() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("data");
        let write = |bytes: &[u8], mode| write_file(&folder, "games/part", bytes, mode);
        assert_eq!(write(b"a", Mode::Create).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(!folder.exists());
        fs::create_dir(&folder).unwrap();
        write(b"a", Mode::Create).unwrap();
        assert_eq!(write(b"b", Mode::Create).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        write(b"b", Mode::Replace).unwrap();
        assert_eq!(fs::read(folder.join("games/part")).unwrap(), b"b");
        assert_eq!(fs::read_dir(folder.join("games")).unwrap().count(), 1);
    }
}
