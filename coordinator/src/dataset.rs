//! Access to the dataset for its only writer: immutable parts and mutable manifests.
//!
//! Folders and object stores share one interface. If a put does not report success, a read decides whether it
//! succeeded. In a folder, a file is renamed into place after it is synced. Only moves without games are ever deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use agon_arena::Spec;
use agon_records::{BoutColumns, BoutRows, Table, catch_panics, read_games, read_moves, read_probes};
use bytes::Bytes;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _, PutMode, PutOptions};
use tokio::task::JoinSet;

use crate::export::ExportError;
use crate::store::{Store, late_epoch};
use agon_schedule::Summary;
use agon_storage::layout::{
    LAST_TABLES, MANIFESTS, manifest_name, manifest_run, part_bouts, part_folder, part_name,
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
}

/// The ownership of a dataset.
enum Ownership {
    /// The lock on a folder.
    Folder(PathBuf),
    /// The owner object in a store.
    Prefix(OwnedPrefix),
    /// None: read-only access.
    ReadOnly,
}

impl Dataset {
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
                Ok((Dataset { store: Arc::new(store), ownership: Ownership::Folder(folder.clone()) }, epoch))
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
        Ok(Dataset { store, ownership: Ownership::ReadOnly })
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
        Ok((Dataset { store, ownership: Ownership::Prefix(held) }, epoch))
    }

    /// Fails if another coordinator has taken over the dataset.
    pub(crate) async fn check_ownership(&self) -> Result<(), ExportError> {
        match &self.ownership {
            Ownership::Folder(_) | Ownership::ReadOnly => Ok(()),
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
        let Err(error) = self.write(&name(table), &bytes, Mode::Create).await else { return Ok(()) };
        match self.read_if_exists(&Path::from(name(table))).await {
            Ok(Some(known)) if has_same_rows(table, &known, &bytes) => Ok(()),
            // Moves without games are replaceable: another build or a discarded epoch wrote them.
            Ok(Some(_))
                if table == Table::Moves
                    && self.read_if_exists(&Path::from(name(Table::Games))).await?.is_none() =>
            {
                self.write(&name(table), &bytes, Mode::Replace).await
            }
            Ok(Some(_)) => Err(ExportError::Occupied(name(table))),
            Ok(None) | Err(_) => Err(error),
        }
    }

    /// Writes the manifest of a run, unless it is unchanged.
    pub(crate) async fn put_manifest(&self, run: &str, text: String) -> Result<(), ExportError> {
        let (name, bytes) = (manifest_name(run), Bytes::from(text));
        if self.read_if_exists(&Path::from(name.as_str())).await?.is_some_and(|known| known == bytes) {
            return Ok(());
        }
        self.check_ownership().await?;
        self.write(&name, &bytes, Mode::Replace).await
    }

    /// Writes an object durably.
    async fn write(&self, name: &str, bytes: &Bytes, mode: Mode) -> Result<(), ExportError> {
        if let Ownership::Folder(folder) = &self.ownership {
            let (folder, name, bytes) = (folder.clone(), name.to_string(), bytes.clone());
            let written = tokio::task::spawn_blocking(move || write_file(&folder, &name, &bytes, mode)).await;
            return Ok(written.map_err(io::Error::other)??);
        }
        let mode = match mode {
            Mode::Create => PutMode::Create,
            Mode::Replace => PutMode::Overwrite,
        };
        self.store.put_opts(&Path::from(name), bytes.clone().into(), PutOptions::from(mode)).await?;
        Ok(())
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
        let (mut games, mut moves, mut probes) = (Vec::new(), Vec::new(), Vec::new());
        if let Some(bytes) = self.read_if_exists(&path(Table::Games)).await? {
            games = catch_panics(|| read_games(bytes))?;
            let bytes = self.read(&path(Table::Moves)).await?;
            moves = catch_panics(|| read_moves(bytes))?;
        }
        if let Some(bytes) = self.read_if_exists(&path(Table::Probes)).await? {
            probes = catch_panics(|| read_probes(bytes))?;
        }
        Ok(BoutRows::by_bout(games, moves, probes))
    }

    /// Reads an object if it exists.
    async fn read_if_exists(&self, path: &Path) -> Result<Option<Bytes>, ExportError> {
        match self.store.get(path).await {
            Ok(found) => Ok(Some(found.bytes().await?)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads the manifests of all runs.
    pub(crate) async fn manifests(&self) -> Result<BTreeMap<String, Bytes>, ExportError> {
        let listed = self.store.list_with_delimiter(Some(&Path::from(MANIFESTS))).await?;
        let mut found = BTreeMap::new();
        for chunk in listed.objects.chunks(CONCURRENT_READS) {
            let mut reading = JoinSet::new();
            for path in chunk.iter().map(|object| object.location.clone()) {
                let store = Arc::clone(&self.store);
                reading.spawn(async move {
                    let bytes = store.get(&path).await?.bytes().await?;
                    Ok::<_, object_store::Error>((path, bytes))
                });
            }
            for read in reading.join_all().await {
                let (path, bytes) = read?;
                if let Some(run) = path.filename().and_then(manifest_run) {
                    found.insert(run.to_string(), bytes);
                }
            }
        }
        Ok(found)
    }

    /// Returns the summaries of the exported bouts selected by number and worker. Probes have no worker.
    pub(crate) async fn bouts(
        &self,
        spec: &Spec,
        run: &str,
        selected: impl Fn(u64, &str) -> bool,
    ) -> Result<Vec<(u64, Summary)>, ExportError> {
        let mut found = Vec::new();
        for (first, last) in self.finished_parts(run).await? {
            let mut bouts: BTreeSet<u64> = BTreeSet::new();
            if let Some(bytes) =
                self.read_if_exists(&Path::from(part_name(Table::Games, run, first, last))).await?
            {
                let games = catch_panics(|| read_games(bytes))?;
                bouts.extend(games.iter().filter(|row| selected(row.bout, &row.worker)).map(|row| row.bout));
            } else {
                bouts.extend((first..=last).filter(|bout| selected(*bout, "")));
            }
            if bouts.is_empty() {
                continue;
            }
            let rows = self.rows(run, first, last).await?.into_iter();
            let chosen = rows.filter(|(bout, _)| bouts.contains(bout));
            found.extend(chosen.map(|(bout, rows)| (bout, summarise(spec, &BoutColumns::from(&rows)))));
        }
        Ok(found)
    }
}

/// Returns whether two parts have the same rows; builds may encode them differently.
fn has_same_rows(table: Table, one: &Bytes, other: &Bytes) -> bool {
    fn read<T: PartialEq>(
        one: &Bytes,
        other: &Bytes,
        rows: fn(Bytes) -> Result<Vec<T>, agon_records::ReadError>,
    ) -> bool {
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
