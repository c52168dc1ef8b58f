//! A dataset as a reader sees it: its runs, the parts of their tables, the rows of a part.
//!
//! `runs/<id>.json` says what a run is, `<table>/run=<id>/*.parquet` are its parts. Deliberately not here: what the rows
//! mean, and the coordinator's own state, which no reader needs.

use std::io;
use std::path::PathBuf;

use agon_arena::SpecError;
use agon_games::schema::suggest;
use agon_records::{GameRow, MoveRow, PartError, ProbeRow, ReadError, Source, Table};
pub use agon_schedule::RunManifest as Run;
use agon_schedule::run_id;
use agon_storage::layout::{MANIFESTS, manifest_name, manifest_run, part_bouts, part_folder};
use agon_storage::{Location, LocationError};
use bytes::Bytes;

use agon_storage::reader::Reader;

/// Why a dataset, or something in it, cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatasetError {
    /// The place cannot be read by this program.
    #[error(transparent)]
    Location(#[from] LocationError),
    /// There is no such folder.
    #[error(
        "there is no folder {}; make it with a first run (agon run examples/quick-start.toml), or give the one that has \
         your runs with --data",
        .folder.display()
    )]
    NoFolder {
        /// The folder.
        folder: PathBuf,
    },
    /// It is something else.
    #[error("{} is a file and no folder; give the folder that a run was written to with --data", .file.display())]
    NotAFolder {
        /// The file.
        file: PathBuf,
    },
    /// The folder has no runs.
    #[error(
        "{} has no dataset: no run was exported to its folder `runs` yet; give another place with --data",
        .folder.display()
    )]
    NoDataset {
        /// The folder.
        folder: PathBuf,
    },
    /// No run has this id.
    #[error("there is no run `{asked}`{}", instead(.asked, .known))]
    UnknownRun {
        /// What was asked for.
        asked: String,
        /// The runs there are.
        known: Vec<String>,
    },
    /// Several runs begin like this.
    #[error("`{asked}` is the beginning of several runs; write more of one of {}", shown(.candidates))]
    AmbiguousRun {
        /// What was asked for.
        asked: String,
        /// The runs that begin like it.
        candidates: Vec<String>,
    },
    /// The file of a run does not say what it should.
    #[error("{} does not describe a run: {reason}", .file.display())]
    RunFile {
        /// The file.
        file: PathBuf,
        /// Why.
        reason: String,
    },
    /// A part is damaged or no part.
    #[error("{}: {source}", .file.display())]
    Part {
        /// The file.
        file: PathBuf,
        /// What the reader says.
        source: PartError,
    },
    /// A game without all of its moves.
    #[error(
        "bout {bout}, game {game} has {found} of its {plies} moves in the dataset; `agon verify` says what is wrong with it"
    )]
    MissingMoves {
        /// The bout.
        bout: u64,
        /// The game.
        game: u16,
        /// How many moves it has.
        found: usize,
        /// How many it should have.
        plies: u32,
    },
    /// A run's spec is of another program, or damaged.
    #[error("the spec of the run is not understood: {0}")]
    Spec(#[from] SpecError),
    /// Games were asked for, and the run has searches alone.
    #[error("{run} is a probe: it has searches and no games; `agon pruning {run}` says what they tell")]
    Probe {
        /// The run.
        run: String,
    },
    /// Bouts that should be there are not.
    #[error(
        "the dataset of {run} is not whole: {reason}; fetch the missing parts of `games`, and `agon verify {run}` says \
         whether all is there"
    )]
    NotWhole {
        /// The run.
        run: String,
        /// What is missing.
        reason: String,
    },
    /// A bout that cannot be counted.
    #[error("{}: bout {bout}: {reason}; `agon verify` says what else is wrong", .file.display())]
    Bout {
        /// The file.
        file: PathBuf,
        /// The bout.
        bout: u64,
        /// Why.
        reason: String,
    },
    /// A part that should be there is not.
    #[error("{name} is missing; fetch or export it again")]
    MissingPart {
        /// Its path within the data folder.
        name: String,
    },
    /// Bouts that should be there are in no part.
    #[error("no part of {table} has the bouts from {first} to {last}; fetch or export them again")]
    MissingBouts {
        /// The table.
        table: &'static str,
        /// The first of them.
        first: u64,
        /// The last of them.
        last: u64,
    },
    /// The disk.
    #[error("{} cannot be read: {source}", .file.display())]
    Disk {
        /// The file or folder.
        file: PathBuf,
        /// What the disk says.
        source: io::Error,
    },
}

impl DatasetError {
    /// Whether something else should have been asked for; otherwise what was asked for is broken.
    pub fn is_wrong_call(&self) -> bool {
        use DatasetError::{AmbiguousRun, Location, NoDataset, NoFolder, NotAFolder, Probe, UnknownRun};
        matches!(
            self,
            Location(_)
                | NoFolder { .. }
                | NotAFolder { .. }
                | NoDataset { .. }
                | UnknownRun { .. }
                | AmbiguousRun { .. }
                | Probe { .. }
        )
    }
}

/// The most runs that a sentence lists.
const LISTED: usize = 8;

/// What may have been meant, or what there is.
fn instead(asked: &str, known: &[String]) -> String {
    // People type the name and leave the digest out.
    let name = |id: &'_ str| id.rsplit_once('-').map_or(id, |(name, _)| name).to_string();
    let names: Vec<String> = known.iter().map(|id| name(id)).collect();
    let near = suggest(asked, known.iter().chain(&names).map(String::as_str));
    let near = near.and_then(|near| known.iter().find(|id| id.starts_with(near)));
    if let Some(near) = near.filter(|_| !asked.is_empty()) {
        return format!("; did you mean {near}?");
    }
    match known {
        [] => "; there is none".to_string(),
        [one] => format!("; there is only {one}"),
        _ => format!("; there are {}", shown(known)),
    }
}

/// A list of runs that a sentence can hold.
fn shown(candidates: &[String]) -> String {
    match candidates.len() {
        count if count > LISTED => format!("{} and {} more", candidates[..LISTED].join(", "), count - LISTED),
        _ => candidates.join(", "),
    }
}

/// A dataset in its place.
#[derive(Clone, Debug)]
pub struct Dataset {
    reader: Reader,
    /// The ids of its runs, in their order.
    ids: Vec<String>,
}

/// A file of a table.
#[derive(Clone, Debug)]
pub struct Part {
    /// The table.
    pub table: Table,
    /// Where it is, for people: a path, or the address of an object.
    pub file: PathBuf,
    /// Its path within the dataset.
    pub name: String,
    /// The first and the last bout that it may have, where its name says so.
    pub bouts: Option<(u64, u64)>,
    reader: Reader,
}

impl Dataset {
    /// Opens a folder or a prefix of an object store and lists its runs.
    pub fn open(place: impl Into<Location>) -> Result<Dataset, DatasetError> {
        let place = place.into();
        if let Location::Folder(folder) = &place
            && !folder.is_dir()
        {
            let folder = folder.clone();
            return Err(match folder.exists() {
                true => DatasetError::NotAFolder { file: folder },
                false => DatasetError::NoFolder { folder },
            });
        }
        let reader = Reader::new(place)?;
        let mut ids: Vec<String> = file_names(&reader, MANIFESTS)?
            .into_iter()
            .filter_map(|name| manifest_run(&name).map(str::to_string))
            .collect();
        ids.sort_unstable();
        if ids.is_empty() {
            return Err(DatasetError::NoDataset { folder: reader.location() });
        }
        Ok(Dataset { reader, ids })
    }

    /// The ids of all runs, in their order.
    pub fn ids(&self) -> &[String] {
        &self.ids
    }

    /// Ids of runs that have parts but no file that describes them.
    pub fn undescribed(&self) -> Result<Vec<String>, DatasetError> {
        let mut ids = Vec::new();
        for table in Table::ALL {
            for name in file_names(&self.reader, table.name())? {
                if let Some(id) = name.strip_prefix("run=")
                    && self.ids.binary_search_by(|known| known.as_str().cmp(id)).is_err()
                    && !ids.iter().any(|known| known == id)
                {
                    ids.push(id.to_string());
                }
            }
        }
        Ok(ids)
    }

    /// The run with this id, or with the only id that begins like this, or `latest`: the one submitted last.
    pub fn find(&self, asked: &str) -> Result<Run, DatasetError> {
        self.run(&self.find_id(asked)?)
    }

    /// The id of that run, whose own file is not read: it may be what is wrong.
    pub fn find_id(&self, asked: &str) -> Result<String, DatasetError> {
        if asked == "latest" && !self.ids.iter().any(|id| id == asked) {
            let runs = self.ids.iter().map(|id| self.run(id)).collect::<Result<Vec<_>, _>>()?;
            let latest = runs.into_iter().max_by_key(|run| run.submitted_us);
            return Ok(latest.expect("a dataset that is open has a run").id);
        }
        let candidates: Vec<String> = run_id::matching(&self.ids, asked).into_iter().cloned().collect();
        let asked = asked.to_string();
        match &candidates[..] {
            [id] => Ok(id.clone()),
            [] => Err(DatasetError::UnknownRun { asked, known: self.ids.clone() }),
            _ => Err(DatasetError::AmbiguousRun { asked, candidates }),
        }
    }

    /// Reads the file of the run with exactly this id.
    pub fn run(&self, id: &str) -> Result<Run, DatasetError> {
        let name = manifest_name(id);
        let file = self.reader.locate(&name);
        let text =
            self.reader.bytes(&name).map_err(|source| DatasetError::Disk { file: file.clone(), source })?;
        let wrong = |reason: String| DatasetError::RunFile { file: file.clone(), reason };
        let run: Run = serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
        if run.id != id {
            return Err(wrong(format!("it is about the run `{}`", run.id)));
        }
        Ok(run)
    }

    /// The parts of a table of a run, in the order of their names. Where it has none, there is none.
    pub fn parts(&self, run: &Run, table: Table) -> Result<Vec<Part>, DatasetError> {
        let place = part_folder(table, &run.id);
        let mut names = file_names(&self.reader, &place)?;
        names.retain(|name| name.ends_with(".parquet"));
        names.sort_unstable();
        let part = |file_name: String| {
            let name = format!("{place}/{file_name}");
            let file = self.reader.locate(&name);
            Part { table, file, bouts: part_bouts(&file_name), name, reader: self.reader.clone() }
        };
        Ok(names.into_iter().map(part).collect())
    }
}

/// The names in a folder of a dataset; a folder that is not there has none.
fn file_names(reader: &Reader, folder: &str) -> Result<Vec<String>, DatasetError> {
    reader.names(folder).map_err(|source| DatasetError::Disk { file: reader.locate(folder), source })
}

impl Part {
    /// The name of the file without its folder, which is the same for all tables of the same bouts.
    pub fn file_name(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or(&self.name)
    }

    /// Whether the bout may be in it.
    pub fn may_have(&self, bout: u64) -> bool {
        self.bouts.is_none_or(|(first, last)| (first..=last).contains(&bout))
    }

    /// The bytes of the file.
    pub fn bytes(&self) -> Result<Bytes, DatasetError> {
        self.reader.bytes(&self.name).map_err(|source| self.unreadable(source))
    }

    /// How many bytes the file has.
    pub fn size(&self) -> Result<u64, DatasetError> {
        self.reader.size(&self.name).map_err(|source| self.unreadable(source))
    }

    fn unreadable(&self, source: io::Error) -> DatasetError {
        DatasetError::Disk { file: self.file.clone(), source }
    }

    /// What `read` makes of the bytes of the file.
    pub(crate) fn read<T>(
        &self,
        bytes: Bytes,
        read: impl FnOnce(Bytes) -> Result<T, ReadError>,
    ) -> Result<T, DatasetError> {
        self.attempt(|| read(bytes))
    }

    /// The file, open.
    pub(crate) fn open(&self) -> Result<Source, DatasetError> {
        self.reader.open(&self.name).map_err(|source| self.unreadable(source))
    }

    /// The file, which somebody else has open, for another thread.
    pub(crate) fn open_again(&self, opened: &Source) -> Result<Source, DatasetError> {
        match opened {
            // Handles that are clones of each other share one place in the file: every thread opens its own.
            Source::File(_) => self.open(),
            Source::Bytes(bytes) => Ok(Source::Bytes(bytes.clone())),
        }
    }

    /// What `read` makes of the file, or of a reader of it.
    pub(crate) fn attempt<T>(&self, read: impl FnOnce() -> Result<T, ReadError>) -> Result<T, DatasetError> {
        agon_records::attempt(read).map_err(|source| DatasetError::Part { file: self.file.clone(), source })
    }

    /// The rows of a part of `games`.
    pub fn games(&self) -> Result<Vec<GameRow>, DatasetError> {
        self.read(self.bytes()?, agon_records::read_games)
    }

    /// The rows of a part of `moves`.
    pub fn moves(&self) -> Result<Vec<MoveRow>, DatasetError> {
        self.read(self.bytes()?, agon_records::read_moves)
    }

    /// The rows of a part of `probes`.
    pub fn probes(&self) -> Result<Vec<ProbeRow>, DatasetError> {
        self.read(self.bytes()?, agon_records::read_probes)
    }

    /// How many rows it has. Only the key is read.
    pub fn rows(&self) -> Result<u64, DatasetError> {
        self.read(self.bytes()?, |bytes| {
            let mut rows = 0;
            for batch in agon_records::read_batches(bytes, self.table, &["bout"])? {
                rows += batch?.num_rows() as u64;
            }
            Ok(rows)
        })
    }
}
