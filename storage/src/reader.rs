//! Where a dataset is read from: names in a folder and the bytes behind them, on this machine or far away.
//!
//! Readers here do not wait for several things at once, so that what is far away is fetched whole and one object at a
//! time: a part is made to be read whole. Deliberately not here: what the names and bytes mean.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::location::{Address, Location, LocationError, in_a_line};
use agon_records::Source;
use bytes::Bytes;
use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt as _};
use tokio::runtime::Runtime;

/// A place to read from.
#[derive(Clone, Debug)]
pub enum Reader {
    /// A folder on this machine.
    Folder(PathBuf),
    /// A prefix of an object store.
    Store(Arc<Far>),
}

/// A prefix of an object store, and what talks to it.
#[derive(Debug)]
pub struct Far {
    address: Address,
    store: Arc<dyn ObjectStore>,
    runtime: Runtime,
}

impl Reader {
    /// The place, which may have nothing.
    pub fn new(place: Location) -> Result<Reader, LocationError> {
        match place {
            Location::Folder(folder) => Ok(Reader::Folder(folder)),
            Location::Store(address) => {
                let store = address.open()?;
                let runtime =
                    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
                let runtime = runtime.map_err(|error| LocationError::Wrong {
                    location: address.clone(),
                    reason: format!("no thread to talk to it can be had: {error}"),
                })?;
                Ok(Reader::Store(Arc::new(Far { address, store, runtime })))
            }
        }
    }

    /// Where something is, for people: the path of a file, or the address of an object.
    pub fn locate(&self, name: &str) -> PathBuf {
        self.location().join(name)
    }

    /// The place itself, for people.
    pub fn location(&self) -> PathBuf {
        match self {
            Reader::Folder(folder) => folder.clone(),
            Reader::Store(far) => PathBuf::from(far.address.to_string()),
        }
    }

    /// The names in a folder; a folder that is not there has none.
    pub fn names(&self, folder: &str) -> io::Result<Vec<String>> {
        match self {
            Reader::Folder(above) => local_names(&above.join(folder)),
            Reader::Store(far) => {
                let folder = Key::from(folder);
                let listed = far
                    .runtime
                    .block_on(far.store.list_with_delimiter(Some(&folder)))
                    .map_err(|error| told(&error))?;
                let objects = listed.objects.iter().map(|object| &object.location);
                let names = objects.chain(&listed.common_prefixes).filter_map(|place| place.filename());
                Ok(names.map(str::to_string).collect())
            }
        }
    }

    /// All bytes of a file.
    pub fn bytes(&self, name: &str) -> io::Result<Bytes> {
        match self {
            Reader::Folder(folder) => fs::read(folder.join(name)).map(Bytes::from),
            Reader::Store(far) => {
                let fetch = async { far.store.get(&Key::from(name)).await?.bytes().await };
                far.runtime.block_on(fetch).map_err(|error| told(&error))
            }
        }
    }

    /// A file, open.
    pub fn open(&self, name: &str) -> io::Result<Source> {
        match self {
            Reader::Folder(folder) => fs::File::open(folder.join(name)).map(Source::File),
            Reader::Store(_) => self.bytes(name).map(Source::Bytes),
        }
    }

    /// How many bytes a file has.
    pub fn size(&self, name: &str) -> io::Result<u64> {
        match self {
            Reader::Folder(folder) => fs::metadata(folder.join(name)).map(|file| file.len()),
            Reader::Store(far) => {
                let name = Key::from(name);
                far.runtime
                    .block_on(far.store.head(&name))
                    .map(|object| object.size)
                    .map_err(|error| told(&error))
            }
        }
    }
}

/// What a store says, as a disk would say it.
fn told(error: &object_store::Error) -> io::Error {
    let kind = match error {
        object_store::Error::NotFound { .. } => io::ErrorKind::NotFound,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, in_a_line(error))
}

fn local_names(folder: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in entries {
        // No file of ours has a name that is not UTF-8.
        names.extend(entry?.file_name().into_string());
    }
    Ok(names)
}
