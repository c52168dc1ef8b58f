//! The dataset as its one writer sees it: parts that are put once, descriptions that change, and what is read back.
//!
//! A folder and an object store are one interface. What a put says is believed when it says that it worked; whenever it
//! says anything else, or nothing, what is there decides. Nothing is ever deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use agon_arena::Spec;
use agon_records::{BoutColumns, BoutRows, GameRow, Table, attempt, read_games, read_moves, read_probes};
use bytes::Bytes;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _, PutMode, PutOptions};

use crate::adopt::LAST_TABLES;
use crate::export::ExportError;
use crate::owner::{self, Held};
use crate::place::Place;
use crate::standings::Summary;
use crate::store::{Store, late_epoch};

/// Where the dataset lies.
pub struct Dataset {
    store: Arc<dyn ObjectStore>,
    hold: Hold,
}

/// What keeps others away.
enum Hold {
    /// The lock on a folder. What is put there is also synced.
    Folder(PathBuf),
    /// The owner's object in a store.
    Prefix(Held),
    /// Nothing: it is only looked at.
    Nothing,
}

impl Dataset {
    /// Opens the place of a dataset for the state that it belongs to, and begins the state's next life, whose number is
    /// the answer beside it. `take_over` is the operator's word that nobody else works with either.
    pub async fn open(place: &Place, state: &Store, take_over: bool) -> Result<(Dataset, u64), ExportError> {
        match place {
            Place::Folder(folder) => {
                let store = object_store::local::LocalFileSystem::new_with_prefix(folder)?;
                let epoch = state.next_epoch(if take_over { late_epoch() } else { 0 }).await?;
                Ok((Dataset { store: Arc::new(store), hold: Hold::Folder(folder.clone()) }, epoch))
            }
            Place::Store(address) => Dataset::claim(address.open()?, state, take_over).await,
        }
    }

    /// Opens the place of a dataset to look at it.
    pub(crate) fn reading(place: &Place) -> Result<Dataset, ExportError> {
        let store: Arc<dyn ObjectStore> = match place {
            Place::Folder(folder) => Arc::new(object_store::local::LocalFileSystem::new_with_prefix(folder)?),
            Place::Store(address) => address.open()?,
        };
        Ok(Dataset { store, hold: Hold::Nothing })
    }

    /// Claims a prefix of an object store.
    async fn claim(
        store: Arc<dyn ObjectStore>,
        state: &Store,
        take_over: bool,
    ) -> Result<(Dataset, u64), ExportError> {
        let identity = state.identity().await?;
        let found = owner::find(Arc::clone(&store)).await?;
        let above = found.judge(&identity, take_over)?;
        let epoch = state.next_epoch(above).await?;
        owner::try_conditions(&store, &format!("{}-{epoch}", identity.id)).await?;
        let held = found.take(&identity.id, epoch).await?;
        Ok((Dataset { store, hold: Hold::Prefix(held) }, epoch))
    }

    /// Fails where somebody else has taken the dataset over.
    pub(crate) async fn is_ours(&self) -> Result<(), ExportError> {
        match &self.hold {
            Hold::Folder(_) | Hold::Nothing => Ok(()),
            Hold::Prefix(held) => Ok(held.check().await?),
        }
    }

    /// Puts a part that has never been there, or is there already with the same bytes.
    pub(crate) async fn put_once(&self, name: &str, bytes: Vec<u8>) -> Result<(), ExportError> {
        let path = Path::from(name);
        let bytes = Bytes::from(bytes);
        let options = PutOptions::from(PutMode::Create);
        if let Err(error) = self.store.put_opts(&path, bytes.clone().into(), options).await {
            match self.read(&path).await {
                Ok(known) if known == bytes => {}
                Ok(_) => return Err(ExportError::Occupied(name.to_string())),
                Err(_) => return Err(error.into()),
            }
        }
        self.sync(name)
    }

    /// The bytes of an object.
    async fn read(&self, path: &Path) -> Result<Bytes, ExportError> {
        Ok(self.store.get(path).await?.bytes().await?)
    }

    /// Puts something that changes.
    pub(crate) async fn put(&self, name: &str, bytes: Vec<u8>) -> Result<(), ExportError> {
        self.store.put(&Path::from(name), bytes.into()).await?;
        self.sync(name)
    }

    /// The content digest of a bout that has left for the dataset, if it is there.
    pub async fn content(&self, run: &str, bout: u64) -> Result<Option<[u8; 32]>, ExportError> {
        let mut rows = BoutRows::default();
        if let Some(bytes) = self.part_with(Table::Probes, run, bout).await? {
            rows.probes = attempt(|| read_probes(bytes))?;
            rows.probes.retain(|row| row.decision.bout == bout);
        }
        if let Some(bytes) = self.part_with(Table::Games, run, bout).await? {
            rows.games = attempt(|| read_games(bytes))?;
            rows.games.retain(|row| row.bout == bout);
        }
        if let Some(bytes) = self.part_with(Table::Moves, run, bout).await? {
            rows.moves = attempt(|| read_moves(bytes))?;
            rows.moves.retain(|row| row.bout == bout);
        }
        let found = !(rows.games.is_empty() && rows.probes.is_empty());
        Ok(found.then(|| agon_records::content_digest(&rows)))
    }

    /// The names and bouts of the parts of a run.
    async fn parts(&self, table: Table, run: &str) -> Result<Vec<(Path, u64, u64)>, ExportError> {
        let folder = Path::from(format!("{}/run={run}", table.name()));
        let listed = self.store.list_with_delimiter(Some(&folder)).await?;
        let part = |place: Path| {
            let name = place.filename()?.strip_prefix("part-")?.strip_suffix(".parquet")?;
            let (first, last) = name.split_once('-')?;
            Some((place.clone(), first.parse().ok()?, last.parse().ok()?))
        };
        Ok(listed.objects.into_iter().filter_map(|object| part(object.location)).collect())
    }

    /// The bouts of every part of a run whose rows are all there, in their order.
    pub(crate) async fn finished_parts(&self, run: &str) -> Result<BTreeSet<(u64, u64)>, ExportError> {
        let mut found = BTreeSet::new();
        for table in LAST_TABLES {
            found.extend(self.parts(table, run).await?.into_iter().map(|(_, first, last)| (first, last)));
        }
        Ok(found)
    }

    /// Removes the moves behind the last finished part whose games were never written, but for those of the part that is
    /// under way: the state that assigned them is gone, nobody reads moves without their games, and whoever plays their
    /// bouts anew writes other bytes. How many parts that were.
    pub(crate) async fn drop_unfinished(
        &self,
        run: &str,
        under_way: Option<(u64, u64)>,
    ) -> Result<usize, ExportError> {
        let finished = self.finished_parts(run).await?.last().map_or(0, |(_, last)| last + 1);
        let mut dropped = 0;
        for (place, first, last) in self.parts(Table::Moves, run).await? {
            if first >= finished && Some((first, last)) != under_way {
                self.is_ours().await?;
                self.store.delete(&place).await?;
                dropped += 1;
            }
        }
        Ok(dropped)
    }

    /// The rows of the bouts of a part.
    pub(crate) async fn rows(
        &self,
        run: &str,
        first: u64,
        last: u64,
    ) -> Result<BTreeMap<u64, BoutRows>, ExportError> {
        let place = |table: Table| Path::from(part_name(table, run, first, last));
        let (mut games, mut moves, mut probes) = (Vec::new(), Vec::new(), Vec::new());
        if let Some(bytes) = self.read_if_there(&place(Table::Games)).await? {
            games = attempt(|| read_games(bytes))?;
            let bytes = self.read(&place(Table::Moves)).await?;
            moves = attempt(|| read_moves(bytes))?;
        }
        if let Some(bytes) = self.read_if_there(&place(Table::Probes)).await? {
            probes = attempt(|| read_probes(bytes))?;
        }
        Ok(BoutRows::by_bout(games, moves, probes))
    }

    /// The bytes of an object, where there is one.
    async fn read_if_there(&self, path: &Path) -> Result<Option<Bytes>, ExportError> {
        match self.store.get(path).await {
            Ok(found) => Ok(Some(found.bytes().await?)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The runs that the dataset describes.
    pub(crate) async fn described(&self) -> Result<Vec<String>, ExportError> {
        let listed = self.store.list_with_delimiter(Some(&Path::from("runs"))).await?;
        let names = listed.objects.iter().filter_map(|object| object.location.filename());
        Ok(names.filter_map(|name| name.strip_suffix(".json")).map(str::to_string).collect())
    }

    /// What the dataset says of a run.
    pub(crate) async fn description(&self, run: &str) -> Result<Bytes, ExportError> {
        self.read(&Path::from(format!("runs/{run}.json"))).await
    }

    /// The part that a bout must be in.
    async fn part_with(&self, table: Table, run: &str, bout: u64) -> Result<Option<Bytes>, ExportError> {
        let parts = self.parts(table, run).await?;
        match parts.into_iter().find(|(_, first, last)| (*first..=*last).contains(&bout)) {
            Some((place, ..)) => Ok(Some(self.read(&place).await?)),
            None => Ok(None),
        }
    }

    /// Every exported bout of a run that `wanted` says of its first game, with what the standings know of it.
    pub(crate) async fn bouts(
        &self,
        spec: &Spec,
        run: &str,
        wanted: impl Fn(&GameRow) -> bool,
    ) -> Result<Vec<(u64, Summary)>, ExportError> {
        let mut found = Vec::new();
        for (place, first, last) in self.parts(Table::Games, run).await? {
            let bytes = self.read(&place).await?;
            let games = attempt(|| read_games(bytes))?;
            let mut bouts: BTreeSet<u64> = BTreeSet::new();
            bouts.extend(games.iter().filter(|row| wanted(row)).map(|row| row.bout));
            if bouts.is_empty() {
                continue;
            }
            let moves = Path::from(part_name(Table::Moves, run, first, last));
            let bytes = self.read(&moves).await?;
            let moves = attempt(|| read_moves(bytes))?;
            let chosen = BoutRows::by_bout(games, moves, []).into_iter();
            let chosen = chosen.filter(|(bout, _)| bouts.contains(bout));
            found.extend(chosen.map(|(bout, rows)| (bout, Summary::new(spec, &BoutColumns::from(&rows)))));
        }
        Ok(found)
    }

    /// Waits until a local file and its name are on disk.
    fn sync(&self, name: &str) -> Result<(), ExportError> {
        if let Hold::Folder(folder) = &self.hold {
            let file = folder.join(name);
            std::fs::File::open(&file)?.sync_all()?;
            for above in file.ancestors().skip(1) {
                std::fs::File::open(above)?.sync_all()?;
                if above == folder {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// The name of a part within the dataset.
pub(crate) fn part_name(table: Table, run: &str, first: u64, last: u64) -> String {
    format!("{}/run={run}/part-{first:010}-{last:010}.parquet", table.name())
}
