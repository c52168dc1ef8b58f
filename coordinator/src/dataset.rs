//! Access to the dataset for its only writer: immutable parts and mutable manifests.
//!
//! Folders and object stores share one interface. If a put does not report success, a read decides whether it
//! succeeded. In a folder, a file is renamed into place after it is synced. Only moves without games are ever deleted.
//!
//! In an object store, objects are created if absent or replaced in a known version: an owner that was paused while another
//! took over replaces nothing that the other wrote. It may still create one part, if the other has not written that name.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agon_arena::Spec;
use agon_records::{
    BoutColumns, BoutRows, ReadError, Table, catch_panics, read_games, read_moves, read_probes,
};
use bytes::Bytes;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, UpdateVersion};
use tokio::task::JoinSet;
use tokio_stream::StreamExt as _;

use crate::data::FileIds;
use crate::export::ExportError;
use crate::store::{Store, late_epoch};
use agon_schedule::Summary;
use agon_storage::layout::{
    LAST_TABLES, MANIFESTS, manifest_name, manifest_run, named_part, part_bouts, part_folder, part_name,
};
use agon_storage::location::Location;
use agon_storage::ownership::{self, OwnedPrefix};
use agon_storage::summarise;
use agon_storage::write::{Mode, write_file};

/// Manifests read concurrently.
const CONCURRENT_READS: usize = 16;

/// A dataset opened for writing or reading.
pub struct Dataset {
    store: Arc<dyn ObjectStore>,
    ownership: Ownership,
    /// The manifests as this process last read or wrote them.
    manifests: Mutex<BTreeMap<String, KnownManifest>>,
}

/// A manifest in the dataset.
#[derive(Clone)]
struct KnownManifest {
    digest: blake3::Hash,
    version: UpdateVersion,
}

/// The parts of a run, each by its first and last bout.
#[derive(Default)]
pub(crate) struct RunParts {
    /// Those whose last table is written.
    pub(crate) finished: BTreeSet<(u64, u64)>,
    /// Those of games whose moves were removed.
    pub(crate) without_moves: BTreeSet<(u64, u64)>,
}

/// The ownership of a dataset.
enum Ownership {
    /// The lock on a folder, which must stay where it is.
    Folder(PathBuf, FileIds),
    /// The owner object in a store.
    Prefix(OwnedPrefix),
    /// None: read-only access.
    ReadOnly,
}

impl Dataset {
    fn new(store: Arc<dyn ObjectStore>, ownership: Ownership) -> Dataset {
        Dataset { store, ownership, manifests: Mutex::default() }
    }

    /// Opens a dataset for its state and starts the next epoch, which is returned too. `take_over` skips the check for
    /// another owner.
    pub async fn open(
        location: &Location,
        state: &mut Store,
        take_over: bool,
    ) -> Result<(Dataset, u64), ExportError> {
        match location {
            Location::Folder(folder) => {
                let store = object_store::local::LocalFileSystem::new_with_prefix(folder)?;
                let epoch = state.next_epoch(if take_over { late_epoch() } else { 0 })?;
                let ownership = Ownership::Folder(folder.clone(), FileIds::of([folder.clone()])?);
                Ok((Dataset::new(Arc::new(store), ownership), epoch))
            }
            Location::Store(address) => Dataset::claim(address.open()?, state, take_over).await,
        }
    }

    /// Opens a dataset for reading.
    pub(crate) fn open_read_only(location: &Location) -> Result<Dataset, ExportError> {
        let store: Arc<dyn ObjectStore> = match location {
            Location::Folder(folder) => {
                Arc::new(object_store::local::LocalFileSystem::new_with_prefix(folder)?)
            }
            Location::Store(address) => address.open()?,
        };
        Ok(Dataset::new(store, Ownership::ReadOnly))
    }

    /// Claims a prefix of an object store.
    async fn claim(
        store: Arc<dyn ObjectStore>,
        state: &mut Store,
        take_over: bool,
    ) -> Result<(Dataset, u64), ExportError> {
        let identity = state.identity()?;
        let found = ownership::inspect(Arc::clone(&store)).await?;
        let above = found.check_owner(&identity, take_over)?;
        let epoch = state.next_epoch(above)?;
        ownership::check_conditional_writes(&store, &format!("{}-{epoch}", identity.id)).await?;
        let held = found.take(&identity.id, epoch).await?;
        Ok((Dataset::new(store, Ownership::Prefix(held)), epoch))
    }

    /// Fails if another coordinator has taken over the dataset, or if its folder was renamed or replaced.
    pub(crate) async fn check_ownership(&self) -> Result<(), ExportError> {
        match &self.ownership {
            Ownership::Folder(_, ids) => match ids.replaced() {
                Some(folder) => Err(ExportError::Replaced(folder.to_path_buf())),
                None => Ok(()),
            },
            Ownership::ReadOnly => Ok(()),
            Ownership::Prefix(held) => Ok(held.check().await?),
        }
    }

    /// Writes a part, or verifies that it exists with the same rows.
    pub(crate) async fn put_part(
        &self,
        table: Table,
        run: &str,
        (first, last): (u64, u64),
        bytes: Vec<u8>,
    ) -> Result<(), ExportError> {
        let name = |table: Table| part_name(table, run, first, last);
        let bytes = Bytes::from(bytes);
        self.check_ownership().await?;
        let Err(error) = self.write(&name(table), &bytes, None).await else { return Ok(()) };
        match self.read_version(&name(table)).await {
            Ok(Some((known, _))) if are_same_rows(table, known.clone(), bytes.clone()).await? => Ok(()),
            // Moves without games are replaceable: another build or a discarded epoch wrote them.
            Ok(Some((_, version)))
                if table == Table::Moves && self.read_version(&name(Table::Games)).await?.is_none() =>
            {
                self.write(&name(table), &bytes, Some(version)).await.map(drop)
            }
            Ok(Some(_)) => Err(ExportError::Occupied(name(table))),
            Ok(None) | Err(_) => Err(error),
        }
    }

    /// Writes the manifest of a run, unless it is unchanged since this process last read or wrote it.
    pub(crate) async fn put_manifest(&self, run: &str, text: String) -> Result<(), ExportError> {
        let (name, bytes) = (manifest_name(run), Bytes::from(text));
        let digest = blake3::hash(&bytes);
        let known = self.manifests().get(run).cloned();
        if known.as_ref().is_some_and(|known| known.digest == digest) {
            return Ok(());
        }
        self.check_ownership().await?;
        let written = match self.write(&name, &bytes, known.map(|known| known.version)).await {
            Ok(version) => Ok(version),
            // The write may have succeeded without an answer; otherwise the version is not the known one.
            Err(error) => match self.read_version(&name).await? {
                Some((found, version)) if found == bytes => Ok(version),
                Some((found, version)) => {
                    self.remember(run, &found, version.clone());
                    self.check_ownership().await?;
                    self.write(&name, &bytes, Some(version)).await
                }
                None => {
                    self.manifests().remove(run);
                    Err(error)
                }
            },
        };
        self.remember(run, &bytes, written?);
        Ok(())
    }

    fn manifests(&self) -> MutexGuard<'_, BTreeMap<String, KnownManifest>> {
        self.manifests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, run: &str, manifest: &Bytes, version: UpdateVersion) {
        self.manifests().insert(run.to_string(), KnownManifest { digest: blake3::hash(manifest), version });
    }

    /// Writes an object durably and returns its version. Replaces the version `before` only, or creates the object; a folder
    /// has one writer and no versions.
    async fn write(
        &self,
        name: &str,
        bytes: &Bytes,
        before: Option<UpdateVersion>,
    ) -> Result<UpdateVersion, ExportError> {
        if let Ownership::Folder(folder, _) = &self.ownership {
            let mode = if before.is_some() { Mode::Replace } else { Mode::Create };
            let (folder, name, bytes) = (folder.clone(), name.to_string(), bytes.clone());
            let written = tokio::task::spawn_blocking(move || write_file(&folder, &name, &bytes, mode)).await;
            written.map_err(io::Error::other)??;
            return Ok(UpdateVersion { e_tag: None, version: None });
        }
        let mode = before.map_or(PutMode::Create, PutMode::Update);
        let put =
            self.store.put_opts(&Path::from(name), bytes.clone().into(), PutOptions::from(mode)).await?;
        Ok(UpdateVersion { e_tag: put.e_tag, version: put.version })
    }

    /// Reads an object and its version, if it exists.
    async fn read_version(&self, name: &str) -> Result<Option<(Bytes, UpdateVersion)>, ExportError> {
        match self.store.get(&Path::from(name)).await {
            Ok(found) => {
                let version = version(&found.meta);
                Ok(Some((found.bytes().await?, version)))
            }
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads an object.
    async fn read(&self, path: &Path) -> Result<Bytes, ExportError> {
        Ok(self.store.get(path).await?.bytes().await?)
    }

    /// Returns the content digest of an exported bout, if present.
    pub async fn content(&self, run: &str, bout: u64) -> Result<Option<[u8; 32]>, ExportError> {
        let parts = self.finished_parts(run).await?;
        let part = parts.into_iter().find(|(first, last)| (*first..=*last).contains(&bout));
        let Some((first, last)) = part else { return Ok(None) };
        Ok(self.rows(run, first, last).await?.get(&bout).map(agon_records::content_digest))
    }

    /// Returns the names and bout ranges of a run's parts.
    async fn parts(&self, table: Table, run: &str) -> Result<Vec<(Path, u64, u64)>, ExportError> {
        let folder = Path::from(part_folder(table, run));
        let listed = self.store.list_with_delimiter(Some(&folder)).await?;
        let part = |path: Path| {
            let (first, last) = part_bouts(path.filename()?)?;
            Some((path, first, last))
        };
        Ok(listed.objects.into_iter().filter_map(|object| part(object.location)).collect())
    }

    /// Returns the bout ranges of a run's complete parts, in order.
    pub(crate) async fn finished_parts(&self, run: &str) -> Result<BTreeSet<(u64, u64)>, ExportError> {
        let mut found = BTreeSet::new();
        for table in LAST_TABLES {
            found.extend(self.parts(table, run).await?.into_iter().map(|(_, first, last)| (first, last)));
        }
        Ok(found)
    }

    /// Returns the parts of all runs, with few requests.
    pub(crate) async fn all_parts(&self) -> Result<BTreeMap<String, RunParts>, ExportError> {
        let mut found: BTreeMap<String, RunParts> = BTreeMap::new();
        for table in [Table::Games, Table::Moves, Table::Probes] {
            let mut listed = self.store.list(Some(&Path::from(table.name())));
            while let Some(object) = listed.next().await {
                let object = object?;
                let Some((run, part)) = named_part(table, object.location.as_ref()) else { continue };
                let parts = found.entry(run.to_string()).or_default();
                match table {
                    Table::Games => {
                        parts.finished.insert(part);
                        parts.without_moves.insert(part);
                    }
                    Table::Moves => drop(parts.without_moves.remove(&part)),
                    Table::Probes => drop(parts.finished.insert(part)),
                }
            }
        }
        Ok(found)
    }

    /// Removes moves after the last complete part whose games were never written, except those of the part being
    /// written. The state that assigned them is gone, and replaying their bouts writes other bytes. Returns the number
    /// of parts removed.
    pub(crate) async fn drop_unfinished(
        &self,
        run: &str,
        unfinished: Option<(u64, u64)>,
    ) -> Result<usize, ExportError> {
        let finished = self.finished_parts(run).await?.last().map_or(0, |(_, last)| last + 1);
        let mut dropped = 0;
        for (path, first, last) in self.parts(Table::Moves, run).await? {
            if first >= finished && Some((first, last)) != unfinished {
                self.check_ownership().await?;
                self.store.delete(&path).await?;
                dropped += 1;
            }
        }
        Ok(dropped)
    }

    /// Reads the rows of a part's bouts.
    pub(crate) async fn rows(
        &self,
        run: &str,
        first: u64,
        last: u64,
    ) -> Result<BTreeMap<u64, BoutRows>, ExportError> {
        let path = |table: Table| Path::from(part_name(table, run, first, last));
        let games = match self.read_if_exists(&path(Table::Games)).await? {
            Some(games) => Some((games, self.read(&path(Table::Moves)).await?)),
            None => None,
        };
        let probes = self.read_if_exists(&path(Table::Probes)).await?;
        decode(move || {
            let (games, moves) = match games {
                Some((games, moves)) => (read_games(games)?, read_moves(moves)?),
                None => (Vec::new(), Vec::new()),
            };
            let probes = probes.map(read_probes).transpose()?.unwrap_or_default();
            Ok(BoutRows::by_bout(games, moves, probes))
        })
        .await
    }

    /// Reads an object if it exists.
    async fn read_if_exists(&self, path: &Path) -> Result<Option<Bytes>, ExportError> {
        Ok(self.read_version(path.as_ref()).await?.map(|(bytes, _)| bytes))
    }

    /// Reads the manifests of all runs.
    pub(crate) async fn read_manifests(&self) -> Result<BTreeMap<String, Bytes>, ExportError> {
        let listed = self.store.list_with_delimiter(Some(&Path::from(MANIFESTS))).await?;
        let mut found = BTreeMap::new();
        for chunk in listed.objects.chunks(CONCURRENT_READS) {
            let mut reading = JoinSet::new();
            for path in chunk.iter().map(|object| object.location.clone()) {
                let store = Arc::clone(&self.store);
                reading.spawn(async move {
                    let read = store.get(&path).await?;
                    let version = version(&read.meta);
                    Ok::<_, object_store::Error>((path, read.bytes().await?, version))
                });
            }
            for read in reading.join_all().await {
                let (path, bytes, version) = read?;
                if let Some(run) = path.filename().and_then(manifest_run) {
                    self.remember(run, &bytes, version);
                    found.insert(run.to_string(), bytes);
                }
            }
        }
        Ok(found)
    }

    /// Returns the summaries of the exported bouts selected by number and worker. Probes have no worker.
    pub(crate) async fn bouts(
        &self,
        spec: &Arc<Spec>,
        run: &str,
        selected: impl Fn(u64, &str) -> bool,
    ) -> Result<Vec<(u64, Summary)>, ExportError> {
        let mut found = Vec::new();
        for (first, last) in self.finished_parts(run).await? {
            let mut bouts: BTreeSet<u64> = BTreeSet::new();
            if let Some(bytes) =
                self.read_if_exists(&Path::from(part_name(Table::Games, run, first, last))).await?
            {
                let games = decode(move || read_games(bytes)).await?;
                bouts.extend(games.iter().filter(|row| selected(row.bout, &row.worker)).map(|row| row.bout));
            } else {
                bouts.extend((first..=last).filter(|bout| selected(*bout, "")));
            }
            if bouts.is_empty() {
                continue;
            }
            let (spec, rows) = (Arc::clone(spec), self.rows(run, first, last).await?);
            let summaries = move || {
                let chosen = rows.into_iter().filter(|(bout, _)| bouts.contains(bout));
                Ok(chosen.map(|(bout, rows)| (bout, summarise(&spec, &BoutColumns::from(&rows)))).collect())
            };
            found.extend(decode::<Vec<_>>(summaries).await?);
        }
        Ok(found)
    }
}

/// Returns the version of an object.
fn version(object: &ObjectMeta) -> UpdateVersion {
    UpdateVersion { e_tag: object.e_tag.clone(), version: object.version.clone() }
}

/// Decodes a part, which takes long, beside the runtime.
async fn decode<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, ReadError> + Send + 'static,
) -> Result<T, ExportError> {
    let decoded = tokio::task::spawn_blocking(move || catch_panics(read)).await;
    Ok(decoded.map_err(io::Error::other)??)
}

/// Returns whether two parts have the same rows; builds may encode them differently. An unreadable one has other rows.
async fn are_same_rows(table: Table, one: Bytes, other: Bytes) -> Result<bool, ExportError> {
    decode(move || Ok(has_same_rows(table, &one, &other))).await
}

fn has_same_rows(table: Table, one: &Bytes, other: &Bytes) -> bool {
    fn read<T: PartialEq>(one: &Bytes, other: &Bytes, rows: fn(Bytes) -> Result<Vec<T>, ReadError>) -> bool {
        let read = |bytes: &Bytes| catch_panics(|| rows(bytes.clone()));
        matches!((read(one), read(other)), (Ok(one), Ok(other)) if one == other)
    }
    one == other
        || match table {
            Table::Games => read(one, other, read_games),
            Table::Moves => read(one, other, read_moves),
            Table::Probes => read(one, other, read_probes),
        }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use object_store::memory::InMemory;

    use super::*;

    /// Claims a dataset in an object store with a new state.
    async fn claim(store: &Arc<dyn ObjectStore>, take_over: bool) -> Dataset {
        let folder = tempfile::tempdir().unwrap();
        let mut state = Store::open(&folder.path().join("state")).unwrap();
        Dataset::claim(Arc::clone(store), &mut state, take_over).await.unwrap().0
    }

    #[tokio::test]
    async fn paused_owner_overwrites_nothing_after_a_take_over() {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let first = claim(&store, false).await;
        first.put_manifest("r", "of the first".to_string()).await.unwrap();
        let known = first.manifests()["r"].version.clone();
        // The other takes over and writes while the first is paused after its check of the ownership.
        let second = claim(&store, true).await;
        assert_eq!(second.read_manifests().await.unwrap()["r"], "of the first");
        second.put_manifest("r", "of the second".to_string()).await.unwrap();
        let name = manifest_name("r");
        let late = Bytes::from("late");
        first.write(&name, &late, Some(known)).await.unwrap_err();
        first.write(&name, &late, None).await.unwrap_err();
        let error = first.put_manifest("r", "late".to_string()).await.unwrap_err();
        assert!(matches!(error, ExportError::Owner(ownership::OwnershipError::Lost(_))), "{error}");
        assert_eq!(second.read_version(&name).await.unwrap().unwrap().0, "of the second");
    }

    #[tokio::test]
    async fn unchanged_manifests_are_not_written_again() {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let name = Path::from(manifest_name("r"));
        claim(&store, false).await.put_manifest("r", "text".to_string()).await.unwrap();
        let before = store.head(&name).await.unwrap().e_tag;
        let dataset = claim(&store, true).await;
        dataset.read_manifests().await.unwrap();
        dataset.put_manifest("r", "text".to_string()).await.unwrap();
        assert_eq!(store.head(&name).await.unwrap().e_tag, before);
        // Another hand changed it: the version that is found is replaced, because the owner is the same.
        store.put(&name, "foreign".into()).await.unwrap();
        dataset.put_manifest("r", "newer".to_string()).await.unwrap();
        assert_eq!(dataset.read_version(name.as_ref()).await.unwrap().unwrap().0, "newer");
        // An unknown manifest is replaced too.
        dataset.manifests().clear();
        dataset.put_manifest("r", "newest".to_string()).await.unwrap();
        assert_eq!(dataset.read_version(name.as_ref()).await.unwrap().unwrap().0, "newest");
    }
}
