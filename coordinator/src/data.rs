//! The data folder: created if missing, rejected if foreign, and locked by one process at a time.

use std::fmt;
use std::fs::{self, DirEntry, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agon_storage::write::{Mode, write_file};

/// The version of the folder's layout.
const FORMAT: u64 = 1;
/// The file that identifies a data folder.
const MARKER: &str = "agon.json";
/// Its name while it is written.
const PARTIAL_MARKER: &str = "agon.partial";
const LOCK: &str = "coordinator.lock";
/// The smallest page of SQLite, in bytes.
const MIN_STATE_BYTES: u64 = 512;
/// The state file.
pub const STATE: &str = "coordinator.sqlite";

/// The purpose of a folder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// State and dataset.
    Data,
    /// Only the state: the dataset is in an object store.
    State,
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Purpose::Data => "data",
            Purpose::State => "state",
        })
    }
}

/// An error with a data folder.
#[derive(Debug, thiserror::Error)]
#[error("{}", .problem.message(.folder, *.purpose))]
pub struct DataError {
    /// The folder.
    pub folder: PathBuf,
    /// Its purpose.
    pub purpose: Purpose,
    /// The problem.
    pub problem: Problem,
}

/// A problem with a folder.
#[derive(Debug)]
#[non_exhaustive]
pub enum Problem {
    /// It cannot be created or written.
    Unusable(io::Error),
    /// It contains something else.
    Foreign,
    /// It has runs but no state.
    MissingState,
    /// A newer build wrote it, in this format.
    Newer(u64),
    /// Another process uses it.
    InUse,
    /// It has a state, so that none can be restored.
    HasState,
    /// It, or this file in it, was renamed, replaced or deleted while it was in use.
    Replaced(PathBuf),
}

impl Problem {
    /// Returns the error message.
    fn message(&self, folder: &Path, purpose: Purpose) -> String {
        let folder = folder.display();
        match self {
            Problem::Unusable(reason) => {
                format!(
                    "the {purpose} folder {folder} cannot be used: {reason}; choose another with --{purpose}"
                )
            }
            Problem::Foreign => format!(
                "the folder {folder} is not empty and is no {purpose} folder of agon; choose another with --{purpose}"
            ),
            Problem::MissingState => format!(
                "the {purpose} folder {folder} has runs, but its state file {STATE} is gone or empty; restore it from a \
                 backup (agon data restore), rebuild it from the dataset with --take-over, or start in another folder with \
                 --{purpose}"
            ),
            Problem::Newer(found) => format!(
                "the {purpose} folder {folder} has format {found} and this build supports {FORMAT}; use the build that wrote it"
            ),
            Problem::InUse => format!(
                "another coordinator uses {folder}, perhaps an `agon run`; wait for it to end or stop it, submit the spec to it \
                 with `agon submit` if it is an `agon coordinator`, or choose another folder with --{purpose}"
            ),
            Problem::HasState => format!(
                "the {purpose} folder {folder} has a state already, which is never overwritten; move {STATE} and its companions \
                 (-wal, -shm) away, or choose another folder with --{purpose}"
            ),
            Problem::Replaced(path) => format!(
                "{} was renamed, replaced or deleted while it was in use; nothing more is written. Start again with --{purpose} \
                 naming the folder that has {STATE} now, or restore a backup if it is gone",
                path.display()
            ),
        }
    }
}

/// A data folder, locked while this value lives.
#[derive(Debug)]
pub struct DataFolder {
    /// Its path.
    pub folder: PathBuf,
    purpose: Purpose,
    _lock: File,
}

/// The interval at which a folder in use is checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Files and folders by their paths, with what identifies them in the file system.
#[derive(Clone, Debug)]
pub(crate) struct FileIds(Vec<(PathBuf, FileId)>);

/// Device and inode.
#[cfg(unix)]
type FileId = (u64, u64);
/// Elsewhere a file is only known to exist.
#[cfg(not(unix))]
type FileId = ();

impl FileIds {
    /// Identifies what exists at these paths.
    pub(crate) fn of(paths: impl IntoIterator<Item = PathBuf>) -> io::Result<FileIds> {
        paths
            .into_iter()
            .map(|path| Ok((path.clone(), file_id(&path)?)))
            .collect::<io::Result<_>>()
            .map(FileIds)
    }

    /// Returns a path that leads to something else or to nothing now.
    pub(crate) fn replaced(&self) -> Option<&Path> {
        let is_replaced = |(path, id): &&(PathBuf, FileId)| match file_id(path) {
            Ok(now) => now != *id,
            // Other errors, of a network for example, may pass.
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        self.0.iter().find(is_replaced).map(|(path, _)| path.as_path())
    }
}

#[cfg(unix)]
fn file_id(path: &Path) -> io::Result<FileId> {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata(path).map(|file| (file.dev(), file.ino()))
}

#[cfg(not(unix))]
fn file_id(path: &Path) -> io::Result<FileId> {
    fs::metadata(path).map(|_| ())
}

impl DataFolder {
    /// Locks a folder to use its state. Rejects a folder with runs but no state, unless `take_over` is set.
    pub fn open(folder: &Path, purpose: Purpose, take_over: bool) -> Result<DataFolder, DataError> {
        let locked = DataFolder::lock(folder, purpose)?;
        if !take_over && folder.join("runs").is_dir() && !has_state(folder) {
            return Err(DataError { folder: folder.to_path_buf(), purpose, problem: Problem::MissingState });
        }
        Ok(locked)
    }

    /// Waits until the folder, its lock or its state is renamed, replaced or deleted, and returns the error: what is written
    /// would be lost, or two coordinators would write to one folder.
    pub(crate) async fn replacement(&self) -> DataError {
        let paths = [self.folder.clone(), self.folder.join(LOCK), self.folder.join(STATE)];
        let reject =
            |problem: Problem| DataError { folder: self.folder.clone(), purpose: self.purpose, problem };
        let ids = match FileIds::of(paths) {
            Ok(ids) => ids,
            Err(error) => return reject(Problem::Unusable(error)),
        };
        // Some file systems give a folder another inode when nobody has it open.
        let _open = File::open(&self.folder);
        loop {
            tokio::time::sleep(CHECK_INTERVAL).await;
            // A disk that does not answer blocks the thread.
            let known = ids.clone();
            let check = tokio::task::spawn_blocking(move || known.replaced().map(Path::to_path_buf));
            if let Ok(Some(path)) = check.await {
                return reject(Problem::Replaced(path));
            }
        }
    }

    /// Locks a folder without a state, to restore one.
    pub fn open_for_restore(folder: &Path, purpose: Purpose) -> Result<DataFolder, DataError> {
        let locked = DataFolder::lock(folder, purpose)?;
        if has_state(folder) {
            return Err(DataError { folder: folder.to_path_buf(), purpose, problem: Problem::HasState });
        }
        Ok(locked)
    }

    /// Creates or checks a folder and locks it.
    fn lock(folder: &Path, purpose: Purpose) -> Result<DataFolder, DataError> {
        let reject = |problem: Problem| DataError { folder: folder.to_path_buf(), purpose, problem };
        let unusable = |reason: io::Error| reject(Problem::Unusable(reason));
        fs::create_dir_all(folder).map_err(unusable)?;
        let marker = folder.join(MARKER);
        match fs::read_to_string(&marker) {
            Ok(text) => {
                let manifest: Option<serde_json::Value> = serde_json::from_str(&text).ok();
                let found = manifest.and_then(|manifest| manifest["format"].as_u64());
                match found {
                    Some(FORMAT) => {}
                    Some(found) => return Err(reject(Problem::Newer(found))),
                    None => return Err(reject(Problem::Foreign)),
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // A start on a full disk leaves a partial marker.
                let is_own = |entry: &io::Result<DirEntry>| {
                    entry.as_ref().is_ok_and(|entry| entry.file_name() == PARTIAL_MARKER)
                };
                if fs::read_dir(folder).map_err(unusable)?.any(|entry| !is_own(&entry)) {
                    return Err(reject(Problem::Foreign));
                }
                let text = format!("{{\"format\": {FORMAT}}}\n");
                write_file(folder, MARKER, text.as_bytes(), Mode::Replace).map_err(unusable)?;
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
            Ok(()) => Ok(DataFolder { folder: folder.to_path_buf(), purpose, _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(reject(Problem::InUse)),
            Err(TryLockError::Error(error)) => Err(unusable(error)),
        }
    }
}

/// Returns whether a folder has a state. Runs without one must not be restarted: they would be played twice.
fn has_state(folder: &Path) -> bool {
    // SQLite treats a shorter file as empty.
    fs::metadata(folder.join(STATE)).is_ok_and(|state| state.len() >= MIN_STATE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_data_folders_and_rejects_foreign_ones() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("a/b");
        let open = |folder: &Path| DataFolder::open(folder, Purpose::Data, false);
        let problem = |folder: &Path| open(folder).unwrap_err().problem;
        let held = open(&folder).unwrap();
        assert!(matches!(problem(&folder), Problem::InUse));
        drop(held);
        drop(open(&folder).unwrap());
        fs::write(folder.join(MARKER), "{\"format\": 7}").unwrap();
        assert!(matches!(problem(&folder), Problem::Newer(7)));
        fs::write(folder.join(MARKER), "{\"format\": 1}").unwrap();
        fs::create_dir(folder.join("runs")).unwrap();
        assert!(matches!(problem(&folder), Problem::MissingState));
        fs::write(folder.join(STATE), "short").unwrap();
        assert!(matches!(problem(&folder), Problem::MissingState));
        drop(DataFolder::open(&folder, Purpose::Data, true).unwrap());
        drop(DataFolder::open_for_restore(&folder, Purpose::Data).unwrap());
        fs::write(folder.join(STATE), [b'x'; 512]).unwrap();
        drop(open(&folder).unwrap());
        let restore = DataFolder::open_for_restore(&folder, Purpose::State).unwrap_err();
        assert!(matches!(restore.problem, Problem::HasState));
        assert!(restore.to_string().ends_with("choose another folder with --state"), "{restore}");
        fs::remove_file(folder.join(MARKER)).unwrap();
        assert!(matches!(problem(&folder), Problem::Foreign));
        // A first start on a full disk.
        let full = parent.path().join("full");
        fs::create_dir(&full).unwrap();
        fs::write(full.join(PARTIAL_MARKER), "").unwrap();
        drop(open(&full).unwrap());
        assert!(!full.join(PARTIAL_MARKER).exists());
        let file = parent.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(matches!(problem(&file), Problem::Unusable(_)));
    }

    #[tokio::test]
    async fn replaced_folder_is_detected() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("data");
        for replace in [
            (|folder| fs::rename(folder, folder.with_extension("old")).unwrap()) as fn(&Path),
            |folder| fs::remove_dir_all(folder).unwrap(),
            |folder| {
                fs::rename(folder, folder.with_extension("older")).unwrap();
                drop(DataFolder::open(folder, Purpose::Data, false).unwrap());
            },
            |folder| fs::remove_file(folder.join(STATE)).unwrap(),
            |folder| fs::remove_file(folder.join(LOCK)).unwrap(),
        ] {
            let held = DataFolder::open(&folder, Purpose::Data, false).unwrap();
            fs::write(folder.join(STATE), [b'x'; 512]).unwrap();
            let replacement = held.replacement();
            let mut replacement = std::pin::pin!(replacement);
            let early = tokio::time::timeout(Duration::from_millis(10), &mut replacement).await;
            assert!(early.is_err());
            replace(&folder);
            let error = replacement.await.to_string();
            assert!(error.contains("was renamed, replaced or deleted while it was in use"), "{error}");
            let _ = fs::remove_dir_all(&folder);
        }
    }
}
