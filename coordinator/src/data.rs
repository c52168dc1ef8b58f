//! The data folder: made where there is none, refused where it is somebody else's, held by one coordinator at a time.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// The version of the folder's layout.
const FORMAT: u64 = 1;
const MARK: &str = "agon.json";
const LOCK: &str = "coordinator.lock";
/// The least that SQLite writes, in bytes.
const SMALLEST_PAGE: u64 = 512;
/// The state file.
pub const STATE: &str = "coordinator.sqlite";

/// Why a folder cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// It cannot be made or written.
    #[error("the data folder {} cannot be used: {reason}; give another with --data", .folder.display())]
    Unusable {
        /// The folder.
        folder: PathBuf,
        /// Why.
        reason: io::Error,
    },
    /// It has something else in it.
    #[error(
        "the folder {} has something in it and is no data folder of agon; give another with --data",
        .folder.display()
    )]
    Foreign {
        /// The folder.
        folder: PathBuf,
    },
    /// It has runs and no state.
    #[error(
        "the data folder {} has runs, but its state file {STATE} is gone or empty; restore it from a copy, or begin anew in \
         another folder with --data",
        .folder.display()
    )]
    Stateless {
        /// The folder.
        folder: PathBuf,
    },
    /// A newer program made it.
    #[error(
        "the data folder {} is of format {found} and this program knows {FORMAT}; use the program that made it",
        .folder.display()
    )]
    Newer {
        /// The folder.
        folder: PathBuf,
        /// The format.
        found: u64,
    },
    /// Somebody else works with it.
    #[error(
        "another coordinator works with {}; stop it, use it (agon submit), or give another folder with --data",
        .folder.display()
    )]
    Taken {
        /// The folder.
        folder: PathBuf,
    },
}

/// A data folder that is held as long as this lives.
#[derive(Debug)]
pub struct DataFolder {
    /// Where it is.
    pub folder: PathBuf,
    _lock: File,
}

impl DataFolder {
    /// Takes hold of a folder.
    pub fn open(folder: &Path) -> Result<DataFolder, DataError> {
        let unusable = |reason: io::Error| DataError::Unusable { folder: folder.to_path_buf(), reason };
        fs::create_dir_all(folder).map_err(unusable)?;
        let mark = folder.join(MARK);
        match fs::read_to_string(&mark) {
            Ok(text) => {
                let told: Option<serde_json::Value> = serde_json::from_str(&text).ok();
                let found = told.and_then(|told| told["format"].as_u64());
                match found {
                    Some(FORMAT) => {}
                    Some(found) => return Err(DataError::Newer { folder: folder.to_path_buf(), found }),
                    None => return Err(DataError::Foreign { folder: folder.to_path_buf() }),
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if fs::read_dir(folder).map_err(unusable)?.next().is_some() {
                    return Err(DataError::Foreign { folder: folder.to_path_buf() });
                }
                let mut file = File::create(&mark).map_err(unusable)?;
                writeln!(file, "{{\"format\": {FORMAT}}}").map_err(unusable)?;
                file.sync_all().map_err(unusable)?;
            }
            Err(error) => return Err(unusable(error)),
        }
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(folder.join(LOCK))
            .map_err(unusable)?;
        match lock.try_lock() {
            Ok(()) if is_stateless(folder) => Err(DataError::Stateless { folder: folder.to_path_buf() }),
            Ok(()) => Ok(DataFolder { folder: folder.to_path_buf(), _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(DataError::Taken { folder: folder.to_path_buf() }),
            Err(TryLockError::Error(error)) => Err(unusable(error)),
        }
    }
}

/// Whether there are runs of which the state knows nothing: to begin anew here would play them a second time.
fn is_stateless(folder: &Path) -> bool {
    // SQLite takes what is shorter than its smallest page for a file that is yet to be written.
    let has_state = fs::metadata(folder.join(STATE)).is_ok_and(|state| state.len() >= SMALLEST_PAGE);
    folder.join("runs").is_dir() && !has_state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_held_once_and_only_if_it_is_ours() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("a/b");
        let held = DataFolder::open(&folder).unwrap();
        assert!(matches!(DataFolder::open(&folder), Err(DataError::Taken { .. })));
        drop(held);
        drop(DataFolder::open(&folder).unwrap());
        fs::write(folder.join(MARK), "{\"format\": 7}").unwrap();
        assert!(matches!(DataFolder::open(&folder), Err(DataError::Newer { found: 7, .. })));
        fs::write(folder.join(MARK), "{\"format\": 1}").unwrap();
        fs::create_dir(folder.join("runs")).unwrap();
        assert!(matches!(DataFolder::open(&folder), Err(DataError::Stateless { .. })));
        fs::write(folder.join(STATE), "short").unwrap();
        assert!(matches!(DataFolder::open(&folder), Err(DataError::Stateless { .. })));
        fs::write(folder.join(STATE), [b'x'; 512]).unwrap();
        drop(DataFolder::open(&folder).unwrap());
        fs::remove_file(folder.join(MARK)).unwrap();
        assert!(matches!(DataFolder::open(&folder), Err(DataError::Foreign { .. })));
        let file = parent.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(matches!(DataFolder::open(&file), Err(DataError::Unusable { .. })));
    }
}
