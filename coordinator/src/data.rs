//! The data folder: made where there is none, refused where it is somebody else's, held by one coordinator at a time.

use std::fmt;
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

/// What a folder is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// State and dataset.
    Data,
    /// The state alone: the dataset is in an object store.
    State,
}

impl Purpose {
    /// The option that chooses it.
    fn option(self) -> &'static str {
        match self {
            Purpose::Data => "--data",
            Purpose::State => "--state",
        }
    }
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Purpose::Data => "data",
            Purpose::State => "state",
        })
    }
}

/// Why a folder cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}", .problem.sentence(.folder, *.purpose))]
pub struct DataError {
    /// The folder.
    pub folder: PathBuf,
    /// What it was to be used for.
    pub purpose: Purpose,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a folder.
#[derive(Debug)]
#[non_exhaustive]
pub enum Problem {
    /// It cannot be made or written.
    Unusable(io::Error),
    /// It has something else in it.
    Foreign,
    /// It has runs and no state.
    Stateless,
    /// A newer program made it, of this format.
    Newer(u64),
    /// Somebody else works with it.
    Taken,
    /// It has a state where one was to be put.
    HasState,
}

impl Problem {
    fn sentence(&self, folder: &Path, purpose: Purpose) -> String {
        let (folder, option) = (folder.display(), purpose.option());
        match self {
            Problem::Unusable(reason) => {
                format!("the {purpose} folder {folder} cannot be used: {reason}; give another with {option}")
            }
            Problem::Foreign => format!(
                "the folder {folder} has something in it and is no {purpose} folder of agon; give another with {option}"
            ),
            Problem::Stateless => format!(
                "the {purpose} folder {folder} has runs, but its state file {STATE} is gone or empty; restore it from a \
                 backup (agon data restore), say --take-over to go on with what the dataset knows, or begin anew in another \
                 folder with {option}"
            ),
            Problem::Newer(found) => format!(
                "the {purpose} folder {folder} is of format {found} and this program knows {FORMAT}; use the program that \
                 made it"
            ),
            Problem::Taken => format!(
                "another coordinator works with {folder}, perhaps that of an `agon run`; wait for its end or stop it, hand the \
                 spec to it with `agon submit` where it is an `agon coordinator`, or give another folder with {option}"
            ),
            Problem::HasState => format!(
                "the {purpose} folder {folder} has a state already, and nothing is ever written over one; move {STATE} away \
                 with its companions (-wal, -shm), or give another folder with {option}"
            ),
        }
    }
}

/// A data folder that is held as long as this lives.
#[derive(Debug)]
pub struct DataFolder {
    /// Where it is.
    pub folder: PathBuf,
    _lock: File,
}

impl DataFolder {
    /// Takes hold of a folder to work with the state in it. Runs whose state is gone are a mistake, unless the operator
    /// says otherwise.
    pub fn open(folder: &Path, purpose: Purpose, take_over: bool) -> Result<DataFolder, DataError> {
        let held = DataFolder::hold(folder, purpose)?;
        if !take_over && folder.join("runs").is_dir() && !has_state(folder) {
            return Err(DataError { folder: folder.to_path_buf(), purpose, problem: Problem::Stateless });
        }
        Ok(held)
    }

    /// Takes hold of a folder that must have no state, to put one there.
    pub fn open_for_restore(folder: &Path, purpose: Purpose) -> Result<DataFolder, DataError> {
        let held = DataFolder::hold(folder, purpose)?;
        if has_state(folder) {
            return Err(DataError { folder: folder.to_path_buf(), purpose, problem: Problem::HasState });
        }
        Ok(held)
    }

    fn hold(folder: &Path, purpose: Purpose) -> Result<DataFolder, DataError> {
        let wrong = |problem: Problem| DataError { folder: folder.to_path_buf(), purpose, problem };
        let unusable = |reason: io::Error| wrong(Problem::Unusable(reason));
        fs::create_dir_all(folder).map_err(unusable)?;
        let mark = folder.join(MARK);
        match fs::read_to_string(&mark) {
            Ok(text) => {
                let manifest: Option<serde_json::Value> = serde_json::from_str(&text).ok();
                let found = manifest.and_then(|manifest| manifest["format"].as_u64());
                match found {
                    Some(FORMAT) => {}
                    Some(found) => return Err(wrong(Problem::Newer(found))),
                    None => return Err(wrong(Problem::Foreign)),
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if fs::read_dir(folder).map_err(unusable)?.next().is_some() {
                    return Err(wrong(Problem::Foreign));
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
            Ok(()) => Ok(DataFolder { folder: folder.to_path_buf(), _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(wrong(Problem::Taken)),
            Err(TryLockError::Error(error)) => Err(unusable(error)),
        }
    }
}

/// Whether a folder has a state. Runs without one must not be begun anew: they would be played a second time.
fn has_state(folder: &Path) -> bool {
    // SQLite takes what is shorter than its smallest page for a file that is yet to be written.
    fs::metadata(folder.join(STATE)).is_ok_and(|state| state.len() >= SMALLEST_PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_held_once_and_only_if_it_is_ours() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("a/b");
        let open = |folder: &Path| DataFolder::open(folder, Purpose::Data, false);
        let problem = |folder: &Path| open(folder).unwrap_err().problem;
        let held = open(&folder).unwrap();
        assert!(matches!(problem(&folder), Problem::Taken));
        drop(held);
        drop(open(&folder).unwrap());
        fs::write(folder.join(MARK), "{\"format\": 7}").unwrap();
        assert!(matches!(problem(&folder), Problem::Newer(7)));
        fs::write(folder.join(MARK), "{\"format\": 1}").unwrap();
        fs::create_dir(folder.join("runs")).unwrap();
        assert!(matches!(problem(&folder), Problem::Stateless));
        fs::write(folder.join(STATE), "short").unwrap();
        assert!(matches!(problem(&folder), Problem::Stateless));
        drop(DataFolder::open(&folder, Purpose::Data, true).unwrap());
        drop(DataFolder::open_for_restore(&folder, Purpose::Data).unwrap());
        fs::write(folder.join(STATE), [b'x'; 512]).unwrap();
        drop(open(&folder).unwrap());
        let restore = DataFolder::open_for_restore(&folder, Purpose::State).unwrap_err();
        assert!(matches!(restore.problem, Problem::HasState));
        assert!(restore.to_string().ends_with("give another folder with --state"), "{restore}");
        fs::remove_file(folder.join(MARK)).unwrap();
        assert!(matches!(problem(&folder), Problem::Foreign));
        let file = parent.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(matches!(problem(&file), Problem::Unusable(_)));
    }
}
