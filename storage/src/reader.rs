//! Synchronous reading of a dataset from a folder or an object store.
//!
//! Objects are fetched whole, one at a time: parts are small enough for that. The meaning of names and bytes is not
//! decided here.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::location::{Address, Location, LocationError, one_line};
use agon_records::Source;
use bytes::Bytes;
use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt as _};
use tokio::runtime::Runtime;

/// The bytes of the largest part that is read whole.
pub const MAX_PART_BYTES: u64 = 4 << 30;
/// The bytes of the largest manifest, which contains the spec with its files.
pub const MAX_MANIFEST_BYTES: u64 = 256 << 20;

/// A source of files.
#[derive(Clone, Debug)]
pub enum Reader {
    /// A folder on this machine.
    Folder(PathBuf),
    /// A prefix of an object store.
    Store(Arc<RemoteStore>),
}

/// A prefix of an object store, with its client and the runtime for it.
#[derive(Debug)]
pub struct RemoteStore {
    address: Address,
    store: Arc<dyn ObjectStore>,
    runtime: Runtime,
}

impl RemoteStore {
    fn wait<T>(&self, answer: impl Future<Output = object_store::Result<T>>) -> io::Result<T> {
        self.runtime.block_on(answer).map_err(|error| io_error(&error))
    }
}

impl Reader {
    /// Opens a location, which may be empty.
    pub fn new(location: Location) -> Result<Reader, LocationError> {
        match location {
            Location::Folder(folder) => Ok(Reader::Folder(folder)),
            Location::Store(address) => {
                let store = address.open()?;
                let runtime =
                    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
                let runtime = runtime.map_err(|error| LocationError::Invalid {
                    location: address.clone(),
                    reason: format!("cannot start a thread for requests: {error}"),
                })?;
                Ok(Reader::Store(Arc::new(RemoteStore { address, store, runtime })))
            }
        }
    }

    /// Returns the path of a file or the address of an object, for messages.
    pub fn locate(&self, name: &str) -> PathBuf {
        self.location().join(name)
    }

    /// Returns the path or the address of the location, for messages.
    pub fn location(&self) -> PathBuf {
        match self {
            Reader::Folder(folder) => folder.clone(),
            Reader::Store(remote) => PathBuf::from(remote.address.to_string()),
        }
    }

    /// Lists the names in a folder; a missing folder has none.
    pub fn names(&self, folder: &str) -> io::Result<Vec<String>> {
        match self {
            Reader::Folder(above) => local_names(&above.join(folder)),
            Reader::Store(remote) => {
                let folder = Key::from(folder);
                let listed = remote.wait(remote.store.list_with_delimiter(Some(&folder)))?;
                let objects = listed.objects.iter().map(|object| &object.location);
                let names = objects.chain(&listed.common_prefixes).filter_map(|path| path.filename());
                Ok(names.map(str::to_string).collect())
            }
        }
    }

    /// Reads a file of at most `limit` bytes.
    pub fn bytes(&self, name: &str, limit: u64) -> io::Result<Bytes> {
        match self {
            Reader::Folder(folder) => agon_files::read(&folder.join(name), limit).map(Bytes::from),
            Reader::Store(remote) => {
                let object = remote.wait(remote.store.get(&Key::from(name)))?;
                if object.meta.size > limit {
                    return Err(agon_files::too_large(limit));
                }
                remote.wait(object.bytes())
            }
        }
    }

    /// Opens a file.
    pub fn open(&self, name: &str) -> io::Result<Source> {
        match self {
            Reader::Folder(folder) => agon_files::open(&folder.join(name)).map(Source::File),
            Reader::Store(_) => self.bytes(name, MAX_PART_BYTES).map(Source::Bytes),
        }
    }

    /// Returns the size of a file in bytes.
    pub fn size(&self, name: &str) -> io::Result<u64> {
        match self {
            Reader::Folder(folder) => fs::metadata(folder.join(name)).map(|file| file.len()),
            Reader::Store(remote) => {
                let name = Key::from(name);
                remote.wait(remote.store.head(&name)).map(|object| object.size)
            }
        }
    }
}

/// Converts an error of a store to an I/O error.
fn io_error(error: &object_store::Error) -> io::Error {
    let kind = match error {
        object_store::Error::NotFound { .. } => io::ErrorKind::NotFound,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, one_line(error))
}

fn local_names(folder: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in entries {
        // All files of a dataset have UTF-8 names.
        names.extend(entry?.file_name().into_string());
    }
    Ok(names)
}
