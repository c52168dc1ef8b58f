//! The dataset as its one writer sees it: parts that are put once, descriptions that change, and what is read back.
//!
//! A folder and an object store are one interface. What a put says is believed when it says that it worked; whenever it
//! says anything else, or nothing, what is there decides. In a folder a file has its name after its bytes are on disk.
//! Nothing is deleted but moves whose games were never written.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

use agon_arena::Spec;
use agon_records::{BoutColumns, BoutRows, Table, attempt, read_games, read_moves, read_probes};
use bytes::Bytes;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _, PutMode, PutOptions};
use tokio::task::JoinSet;

use crate::adopt::LAST_TABLES;
use crate::export::ExportError;
use crate::owner::{self, Held};
use crate::place::Place;
use crate::standings::Summary;
use crate::store::{Store, late_epoch};

/// How many descriptions are read beside each other.
const AT_ONCE: usize = 16;

/// Where the dataset lies.
pub struct Dataset {
    store: Arc<dyn ObjectStore>,
    hold: Hold,
}

/// What keeps others away.
enum Hold {
    /// The lock on a folder.
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

    /// Puts a part that has never been there, or is there already with the same rows.
    pub(crate) async fn put_part(
        &self,
        table: Table,
        run: &str,
        (first, last): (u64, u64),
        bytes: Vec<u8>,
    ) -> Result<(), ExportError> {
        let name = |table: Table| part_name(table, run, first, last);
        let bytes = Bytes::from(bytes);
        self.is_ours().await?;
        let Err(error) = self.write(&name(table), &bytes, Mode::Create).await else { return Ok(()) };
        match self.read_if_there(&Path::from(name(table))).await {
            Ok(Some(known)) if has_same_rows(table, &known, &bytes) => Ok(()),
            // Moves without their games are nobody's yet: another build put them, or a life of the state that is undone.
            Ok(Some(_))
                if table == Table::Moves
                    && self.read_if_there(&Path::from(name(Table::Games))).await?.is_none() =>
            {
                self.write(&name(table), &bytes, Mode::Replace).await
            }
            Ok(Some(_)) => Err(ExportError::Occupied(name(table))),
            Ok(None) | Err(_) => Err(error),
        }
    }

    /// Puts the description of a run, unless it is there.
    pub(crate) async fn put_description(&self, run: &str, text: String) -> Result<(), ExportError> {
        let (name, bytes) = (description_name(run), Bytes::from(text));
        if self.read_if_there(&Path::from(name.as_str())).await?.is_some_and(|known| known == bytes) {
            return Ok(());
        }
        self.is_ours().await?;
        self.write(&name, &bytes, Mode::Replace).await
    }

    /// Writes an object, and waits until it is durable.
    async fn write(&self, name: &str, bytes: &Bytes, mode: Mode) -> Result<(), ExportError> {
        if let Hold::Folder(folder) = &self.hold {
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

    /// The bytes of an object.
    async fn read(&self, path: &Path) -> Result<Bytes, ExportError> {
        Ok(self.store.get(path).await?.bytes().await?)
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

    /// The runs that the dataset describes, and what it says of them.
    pub(crate) async fn descriptions(&self) -> Result<BTreeMap<String, Bytes>, ExportError> {
        let listed = self.store.list_with_delimiter(Some(&Path::from("runs"))).await?;
        let mut found = BTreeMap::new();
        for some in listed.objects.chunks(AT_ONCE) {
            let mut reading = JoinSet::new();
            for place in some.iter().map(|object| object.location.clone()) {
                let store = Arc::clone(&self.store);
                reading.spawn(async move {
                    let bytes = store.get(&place).await?.bytes().await?;
                    Ok::<_, object_store::Error>((place, bytes))
                });
            }
            for read in reading.join_all().await {
                let (place, bytes) = read?;
                if let Some(run) = place.filename().and_then(|name| name.strip_suffix(".json")) {
                    found.insert(run.to_string(), bytes);
                }
            }
        }
        Ok(found)
    }

    /// The part that a bout must be in.
    async fn part_with(&self, table: Table, run: &str, bout: u64) -> Result<Option<Bytes>, ExportError> {
        let parts = self.parts(table, run).await?;
        match parts.into_iter().find(|(_, first, last)| (*first..=*last).contains(&bout)) {
            Some((place, ..)) => Ok(Some(self.read(&place).await?)),
            None => Ok(None),
        }
    }

    /// The exported bouts of a run that are wanted by their number and by who played them, with what the standings know
    /// of them. Nothing says who played a probe.
    pub(crate) async fn bouts(
        &self,
        spec: &Spec,
        run: &str,
        wanted: impl Fn(u64, &str) -> bool,
    ) -> Result<Vec<(u64, Summary)>, ExportError> {
        let mut found = Vec::new();
        for (first, last) in self.finished_parts(run).await? {
            let mut bouts: BTreeSet<u64> = BTreeSet::new();
            if let Some(bytes) =
                self.read_if_there(&Path::from(part_name(Table::Games, run, first, last))).await?
            {
                let games = attempt(|| read_games(bytes))?;
                bouts.extend(games.iter().filter(|row| wanted(row.bout, &row.worker)).map(|row| row.bout));
            } else {
                bouts.extend((first..=last).filter(|bout| wanted(*bout, "")));
            }
            if bouts.is_empty() {
                continue;
            }
            let rows = self.rows(run, first, last).await?.into_iter();
            let chosen = rows.filter(|(bout, _)| bouts.contains(bout));
            found.extend(chosen.map(|(bout, rows)| (bout, Summary::new(spec, &BoutColumns::from(&rows)))));
        }
        Ok(found)
    }
}

/// Whether something may be there before.
#[derive(Clone, Copy)]
enum Mode {
    Create,
    Replace,
}

/// Writes a file of a folder under another name, and gives it its own once it is on disk: a name never stands for half a
/// file, whatever the power does.
fn write_file(folder: &std::path::Path, name: &str, bytes: &[u8], mode: Mode) -> io::Result<()> {
    let file = folder.join(name);
    let partial = file.with_extension("partial");
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

/// Whether two parts have the same rows. Builds may write them as different bytes.
fn has_same_rows(table: Table, one: &Bytes, other: &Bytes) -> bool {
    fn read<T: PartialEq>(
        one: &Bytes,
        other: &Bytes,
        rows: fn(Bytes) -> Result<Vec<T>, agon_records::ReadError>,
    ) -> bool {
        let read = |bytes: &Bytes| attempt(|| rows(bytes.clone()));
        matches!((read(one), read(other)), (Ok(one), Ok(other)) if one == other)
    }
    one == other
        || match table {
            Table::Games => read(one, other, read_games),
            Table::Moves => read(one, other, read_moves),
            Table::Probes => read(one, other, read_probes),
        }
}

/// The name of the description of a run within the dataset.
fn description_name(run: &str) -> String {
    format!("runs/{run}.json")
}

/// The name of a part within the dataset.
pub(crate) fn part_name(table: Table, run: &str, first: u64, last: u64) -> String {
    format!("{}/run={run}/part-{first:010}-{last:010}.parquet", table.name())
}
