//! Read access to a dataset: its runs, the parts of their tables and the rows of a part.
//!
//! `runs/<id>.json` is the manifest of a run, `<table>/run=<id>/*.parquet` are its parts. Deliberately not here: the
//! meaning of the rows, and the coordinator's own state.

use std::io;
use std::path::PathBuf;

use agon_arena::SpecError;
use agon_games::schema::suggest;
use agon_records::{GameRow, MoveRow, PartError, ProbeRow, ReadError, Source, Table};
pub use agon_schedule::RunManifest as Run;
use agon_schedule::run_id;
use agon_storage::layout::{MANIFESTS, manifest_name, manifest_run, part_bouts, part_folder};
use agon_storage::reader::{MAX_MANIFEST_BYTES, MAX_PART_BYTES, Reader};
use agon_storage::{Location, LocationError};
use bytes::Bytes;

/// An error while reading a dataset.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatasetError {
    /// The location is not supported by this build.
    #[error(transparent)]
    Location(#[from] LocationError),
    /// The folder does not exist.
    #[error(
        "there is no folder {}; make it with a first run (agon run examples/quick-start.toml), or give the folder with \
         your runs with --data",
        .folder.display()
    )]
    NoFolder {
        /// The folder.
        folder: PathBuf,
    },
    /// The path is a file.
    #[error("{} is a file, not a folder; give the folder that a run was written to with --data", .file.display())]
    NotAFolder {
        /// The file.
        file: PathBuf,
    },
    /// The folder has no runs.
    #[error(
        "{} has no runs yet; play a first one (agon run examples/quick-start.toml), or give the folder with your runs with \
         --data",
        .folder.display()
    )]
    NoDataset {
        /// The folder.
        folder: PathBuf,
    },
    /// No run has this id.
    #[error("there is no run `{asked}`{}", alternatives(.asked, .known))]
    UnknownRun {
        /// The requested id.
        asked: String,
        /// The ids of all runs.
        known: Vec<String>,
    },
    /// Several runs have this prefix.
    #[error("several runs begin with `{asked}`; give a longer prefix of one of {}", listed(.candidates))]
    AmbiguousRun {
        /// The requested prefix.
        asked: String,
        /// The matching ids.
        candidates: Vec<String>,
    },
    /// The manifest of a run is invalid.
    #[error("{} is not a valid run manifest: {reason}", .file.display())]
    Manifest {
        /// The file.
        file: PathBuf,
        /// The parser's error.
        reason: String,
    },
    /// A part is damaged or of another format.
    #[error("{}: {source}", .file.display())]
    Part {
        /// The file.
        file: PathBuf,
        /// The decoder's error.
        source: PartError,
    },
    /// A game lacks some of its moves.
    #[error(
        "bout {bout}, game {game} has {found} of its {plies} moves in the dataset; run `agon verify` for details"
    )]
    MissingMoves {
        /// The bout.
        bout: u64,
        /// The game.
        game: u16,
        /// Moves found.
        found: usize,
        /// Moves expected.
        plies: u32,
    },
    /// The run's spec is damaged or from an incompatible version.
    #[error("cannot parse the spec of the run: {0}")]
    Spec(#[from] SpecError),
    /// The operation needs games, and the run is a probe.
    #[error("{run} is a probe: it has searches and no games; use `agon pruning {run}`")]
    Probe {
        /// The run.
        run: String,
    },
    /// Bouts are missing.
    #[error(
        "the dataset of {run} is not complete: {reason}; fetch the missing parts of `games`, then check with \
         `agon verify {run}`"
    )]
    Incomplete {
        /// The run.
        run: String,
        /// The missing bouts.
        reason: String,
    },
    /// A bout cannot be counted.
    #[error("{}: bout {bout}: {reason}; run `agon verify` for details", .file.display())]
    Bout {
        /// The file.
        file: PathBuf,
        /// The bout.
        bout: u64,
        /// The reason.
        reason: String,
    },
    /// A part is missing.
    #[error("{name} is missing; fetch or export it again")]
    MissingPart {
        /// Path within the dataset.
        name: String,
    },
    /// No part contains some of the bouts.
    #[error("no part of {table} has the bouts from {first} to {last}; fetch or export them again")]
    MissingBouts {
        /// The table.
        table: &'static str,
        /// First missing bout.
        first: u64,
        /// Last missing bout.
        last: u64,
    },
    /// An I/O error.
    #[error("cannot read {}: {source}", .file.display())]
    Disk {
        /// The file or folder.
        file: PathBuf,
        /// The underlying error.
        source: io::Error,
    },
}

impl DatasetError {
    /// Returns whether the request was wrong, rather than the dataset damaged or still empty.
    pub fn is_usage_error(&self) -> bool {
        use DatasetError::{AmbiguousRun, Location, NotAFolder, Probe, UnknownRun};
        matches!(
            self,
            Location(_) | NotAFolder { .. } | UnknownRun { .. } | AmbiguousRun { .. } | Probe { .. }
        )
    }
}

/// Maximum number of runs listed in an error.
const LISTED: usize = 8;

/// Suggests the most similar run, or lists the runs.
fn alternatives(asked: &str, known: &[String]) -> String {
    // Compare with the name alone too: the digest at the end is often left out.
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
        _ => format!("; there are {}", listed(known)),
    }
}

fn listed(candidates: &[String]) -> String {
    match candidates.len() {
        count if count > LISTED => format!("{} and {} more", candidates[..LISTED].join(", "), count - LISTED),
        _ => candidates.join(", "),
    }
}

/// An open dataset.
#[derive(Clone, Debug)]
pub struct Dataset {
    reader: Reader,
    /// Sorted run ids.
    ids: Vec<String>,
}

/// A Parquet file of a table.
#[derive(Clone, Debug)]
pub struct Part {
    /// The table.
    pub table: Table,
    /// Path or object URL for messages.
    pub file: PathBuf,
    /// Path within the dataset.
    pub name: String,
    /// First and last bout by the file name, if it has them.
    pub bouts: Option<(u64, u64)>,
    reader: Reader,
}

impl Dataset {
    /// Opens a folder or a prefix of an object store and lists its runs.
    pub fn open(location: impl Into<Location>) -> Result<Dataset, DatasetError> {
        let location = location.into();
        if let Location::Folder(folder) = &location
            && !folder.is_dir()
        {
            let folder = folder.clone();
            return Err(match folder.exists() {
                true => DatasetError::NotAFolder { file: folder },
                false => DatasetError::NoFolder { folder },
            });
        }
        let reader = Reader::new(location)?;
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

    /// Returns the sorted ids of all runs.
    pub fn ids(&self) -> &[String] {
        &self.ids
    }

    /// Returns the ids of runs that have parts but no manifest.
    pub fn orphaned_runs(&self) -> Result<Vec<String>, DatasetError> {
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

    /// Finds a run by its id, by a unique prefix of it, or by `latest`, the run submitted last.
    pub fn find(&self, asked: &str) -> Result<Run, DatasetError> {
        self.run(&self.find_id(asked)?)
    }

    /// Finds the id of a run like [`Dataset::find`], without reading its manifest, which may be damaged.
    pub fn find_id(&self, asked: &str) -> Result<String, DatasetError> {
        if asked == "latest" && !self.ids.iter().any(|id| id == asked) {
            let runs = self.ids.iter().map(|id| self.run(id)).collect::<Result<Vec<_>, _>>()?;
            let latest = runs.into_iter().max_by_key(|run| run.submitted_us);
            return Ok(latest.expect("an open dataset has a run").id);
        }
        let candidates: Vec<String> = run_id::matching(&self.ids, asked).into_iter().cloned().collect();
        let asked = asked.to_string();
        match &candidates[..] {
            [id] => Ok(id.clone()),
            [] => Err(DatasetError::UnknownRun { asked, known: self.ids.clone() }),
            _ => Err(DatasetError::AmbiguousRun { asked, candidates }),
        }
    }

    /// Reads the manifest of the run with exactly this id.
    pub fn run(&self, id: &str) -> Result<Run, DatasetError> {
        let name = manifest_name(id);
        let file = self.reader.locate(&name);
        let text = self
            .reader
            .bytes(&name, MAX_MANIFEST_BYTES)
            .map_err(|source| DatasetError::Disk { file: file.clone(), source })?;
        let invalid = |reason: String| DatasetError::Manifest { file: file.clone(), reason };
        let run: Run = serde_json::from_slice(&text).map_err(|error| invalid(error.to_string()))?;
        if run.id != id {
            return Err(invalid(format!("it describes the run `{}`", run.id)));
        }
        Ok(run)
    }

    /// Lists the parts of a table of a run, sorted by name.
    pub fn parts(&self, run: &Run, table: Table) -> Result<Vec<Part>, DatasetError> {
        let folder = part_folder(table, &run.id);
        let mut names = file_names(&self.reader, &folder)?;
        names.retain(|name| name.ends_with(".parquet"));
        names.sort_unstable();
        let part = |file_name: String| {
            let name = format!("{folder}/{file_name}");
            let file = self.reader.locate(&name);
            Part { table, file, bouts: part_bouts(&file_name), name, reader: self.reader.clone() }
        };
        Ok(names.into_iter().map(part).collect())
    }
}

/// Lists the names in a folder; a missing folder is empty.
fn file_names(reader: &Reader, folder: &str) -> Result<Vec<String>, DatasetError> {
    reader.names(folder).map_err(|source| DatasetError::Disk { file: reader.locate(folder), source })
}

impl Part {
    /// Returns the file name, which the parts of all tables with the same bouts share.
    pub fn file_name(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or(&self.name)
    }

    /// Returns whether the part may contain a bout, judging by its name.
    pub fn may_contain(&self, bout: u64) -> bool {
        self.bouts.is_none_or(|(first, last)| (first..=last).contains(&bout))
    }

    /// Reads the whole file.
    pub fn bytes(&self) -> Result<Bytes, DatasetError> {
        self.reader.bytes(&self.name, MAX_PART_BYTES).map_err(|source| self.unreadable(source))
    }

    /// Returns the file size in bytes.
    pub fn size(&self) -> Result<u64, DatasetError> {
        self.reader.size(&self.name).map_err(|source| self.unreadable(source))
    }

    fn unreadable(&self, source: io::Error) -> DatasetError {
        DatasetError::Disk { file: self.file.clone(), source }
    }

    /// Opens the file.
    pub(crate) fn open(&self) -> Result<Source, DatasetError> {
        self.reader.open(&self.name).map_err(|source| self.unreadable(source))
    }

    /// Opens the file for another thread.
    pub(crate) fn reopen(&self, opened: &Source) -> Result<Source, DatasetError> {
        match opened {
            // Cloned file handles share one offset, so every thread opens its own.
            Source::File(_) => self.open(),
            Source::Bytes(bytes) => Ok(Source::Bytes(bytes.clone())),
        }
    }

    /// Runs a decoder and attaches the file to its error or panic.
    pub(crate) fn decode<T>(
        &self,
        decoder: impl FnOnce() -> Result<T, ReadError>,
    ) -> Result<T, DatasetError> {
        agon_records::catch_panics(decoder)
            .map_err(|source| DatasetError::Part { file: self.file.clone(), source })
    }

    /// Reads the whole file and decodes it.
    pub(crate) fn read<T>(
        &self,
        decoder: impl FnOnce(Bytes) -> Result<T, ReadError>,
    ) -> Result<T, DatasetError> {
        let bytes = self.bytes()?;
        self.decode(|| decoder(bytes))
    }

    /// Reads the rows of a part of `games`.
    pub fn games(&self) -> Result<Vec<GameRow>, DatasetError> {
        self.read(agon_records::read_games)
    }

    /// Reads the rows of a part of `moves`.
    pub fn moves(&self) -> Result<Vec<MoveRow>, DatasetError> {
        self.read(agon_records::read_moves)
    }

    /// Reads the rows of a part of `probes`.
    pub fn probes(&self) -> Result<Vec<ProbeRow>, DatasetError> {
        self.read(agon_records::read_probes)
    }

    /// Counts the rows, reading only the key column.
    pub fn rows(&self) -> Result<u64, DatasetError> {
        self.read(|bytes| {
            let mut rows = 0;
            for batch in agon_records::read_batches(bytes, self.table, &["bout"])? {
                rows += batch?.num_rows() as u64;
            }
            Ok(rows)
        })
    }
}
