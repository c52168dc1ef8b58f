//! Temporary folders whose paths are strings, as command lines need them, and copies of folders.

use std::fs;
use std::path::Path;

/// A folder that is removed when the value is dropped.
pub struct Folder(tempfile::TempDir);

impl Folder {
    #[expect(clippy::new_without_default, reason = "a new folder is no default")]
    pub fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    pub fn as_path(&self) -> &Path {
        self.0.path()
    }

    /// Returns the path of a file in the folder.
    pub fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_string()
    }

    /// Writes a file and returns its path.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path
    }
}

/// Copies a folder and everything in it.
pub fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
