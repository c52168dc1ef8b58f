//! What is done to a state from outside: copying it, putting a copy back, and checking it.
//!
//! Copies and checks look at one moment of a state that somebody may be writing to, and change nothing. A check goes through
//! everything that a coordinator would read, on a copy of its own.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use agon_proto::{Assembler, Bout, Lease, v1};
use prost::Message as _;
use serde::Serialize;

use crate::data::{DataError, DataFolder, Purpose, STATE};
use crate::dataset::Dataset;
use crate::export::ExportError;
use crate::standings::read_summary;
use crate::state::Run;
use crate::store::backup::{self, Contents, Temporary};
use crate::store::{BoutSummary, Store, StoreError, late_epoch};
use agon_storage::location::Location;
use agon_storage::summarise;

/// Why a state cannot be copied, put back or checked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MaintenanceError {
    /// There is no state.
    #[error("there is no state in {}; say where it is with --data, or with --state", .0.display())]
    NoState(PathBuf),
    /// Something is there already.
    #[error("{} is there already, and nothing is written over; give another name", .0.display())]
    Occupied(PathBuf),
    /// There is no backup.
    #[error("the backup {} cannot be read: {reason}", .file.display())]
    NoBackup {
        /// The file.
        file: PathBuf,
        /// Why.
        reason: String,
    },
    /// The state itself.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The folder it is to be put in.
    #[error(transparent)]
    Folder(#[from] DataError),
    /// The dataset beside it.
    #[error(transparent)]
    Dataset(#[from] ExportError),
    /// The disk.
    #[error("{} cannot be written: {reason}", .file.display())]
    Disk {
        /// The file.
        file: PathBuf,
        /// Why.
        reason: io::Error,
    },
}

/// The state file in a folder, which must be there.
fn state_in(folder: &Path) -> Result<PathBuf, MaintenanceError> {
    let state = folder.join(STATE);
    if state.is_file() { Ok(state) } else { Err(MaintenanceError::NoState(folder.to_path_buf())) }
}

/// Copies the state of a folder, which may be in use, beside it, to be passed on.
pub fn copy(folder: &Path) -> Result<Temporary, MaintenanceError> {
    let state = state_in(folder)?;
    let copy = Temporary(folder.join(format!("{STATE}.copy-{}", std::process::id())));
    backup::copy_file(&state, &copy.0)?;
    Ok(copy)
}

/// Copies the state of a folder, which may be in use, to a file that must not be there. What the copy holds is the answer.
pub fn back_up(folder: &Path, to: &Path) -> Result<Contents, MaintenanceError> {
    let state = state_in(folder)?;
    if to.exists() {
        return Err(MaintenanceError::Occupied(to.to_path_buf()));
    }
    backup::copy_file(&state, to)?;
    Ok(backup::inspect(to)?)
}

/// Puts a backup into a folder that has no state. What the state holds is the answer.
pub fn restore(from: &Path, folder: &Path, purpose: Purpose) -> Result<Contents, MaintenanceError> {
    put_back(from, &DataFolder::open_for_restore(folder, purpose)?, purpose)
}

/// The same of a backup that comes as bytes.
pub fn restore_from(
    source: &mut impl io::Read,
    folder: &Path,
    purpose: Purpose,
) -> Result<Contents, MaintenanceError> {
    let held = DataFolder::open_for_restore(folder, purpose)?;
    let received = Temporary(held.folder.join(format!("{STATE}.received")));
    let written = File::create(&received.0).and_then(|mut file| io::copy(source, &mut file));
    written.map_err(|reason| MaintenanceError::Disk { file: received.0.clone(), reason })?;
    put_back(&received.0, &held, purpose)
}

fn put_back(from: &Path, held: &DataFolder, purpose: Purpose) -> Result<Contents, MaintenanceError> {
    let unreadable = |reason: String| MaintenanceError::NoBackup { file: from.to_path_buf(), reason };
    if !from.is_file() {
        return Err(unreadable("there is no such file".to_string()));
    }
    let state = held.folder.join(STATE);
    // One moment of the file, with what a process that was killed has left beside it.
    let restored = Temporary(held.folder.join(format!("{STATE}.restored")));
    let contents = backup::copy_file(from, &restored.0).and_then(|()| backup::inspect(&restored.0)).map_err(
        |error| match error {
            StoreError::Newer { .. } | StoreError::Older { .. } | StoreError::Uncopied { .. } => {
                MaintenanceError::Store(error)
            }
            StoreError::Damaged(reason) | StoreError::Failed(reason) => {
                unreadable(format!("it is damaged, or no backup of agon ({reason})"))
            }
            error => unreadable(error.to_string()),
        },
    )?;
    // A dataset far away knows how far its state had come, and lets no earlier one in without the operator's word. A folder
    // does not, and workers that hold leases of a later time must not look like liars.
    backup::set_epoch(&restored.0, if purpose == Purpose::Data { late_epoch() } else { 0 })?;
    // A state that is shorter than one may be there, with companions that are not of this backup.
    drop(Temporary(state.clone()));
    File::open(&restored.0)
        .and_then(|file| file.sync_all())
        .and_then(|()| fs::rename(&restored.0, &state))
        .and_then(|()| File::open(&held.folder)?.sync_all())
        .map_err(|reason| MaintenanceError::Disk { file: state, reason })?;
    Ok(contents)
}

/// What a check found.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct StateReport {
    /// The version of its tables.
    pub version: i64,
    /// Its id.
    pub id: String,
    /// How often it has been opened to be worked with.
    pub epoch: u64,
    /// Its runs.
    pub runs: Vec<RunReport>,
}

/// What a check found of a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RunReport {
    /// Its id.
    pub run: String,
    /// Its state.
    pub state: &'static str,
    /// Bouts that are in the state.
    pub bouts: u64,
    /// Every bout below is in the dataset.
    pub exported: u64,
    /// What is wrong.
    pub problems: Vec<String>,
}

/// Reads everything in the state of a folder, which may be in use, and looks whether the dataset has what it says.
pub async fn check(folder: &Path, data: &Location) -> Result<StateReport, MaintenanceError> {
    let state = state_in(folder)?;
    let copy = Temporary(std::env::temp_dir().join(format!("agon-check-{}", std::process::id())));
    backup::copy_file(&state, &copy.0)?;
    let Contents { version, id, epoch, .. } = backup::inspect(&copy.0)?;
    let dataset = Dataset::reading(data)?;
    let store = Store::open(&copy.0)?;
    let mut runs = Vec::new();
    for stored in store.runs().await? {
        let (run, state, exported) = (stored.id.clone(), stored.state.name(), stored.exported);
        let bouts = store.summaries(run.clone(), 0, u64::MAX).await?;
        let mut problems = Vec::new();
        match crate::load(&store, stored).await {
            Err(error) => problems.push(error.to_string()),
            Ok(Err(reason)) => problems.push(format!("this program does not understand it: {reason}")),
            Ok(Ok(mut loaded)) => {
                for bout in &bouts {
                    if let Err(reason) = check_bout(&store, &mut loaded, &run, bout).await? {
                        problems.push(format!("bout {}: {reason}", bout.bout));
                    }
                }
                problems.extend(misplaced(&store, &run, &loaded, &bouts).await?);
                problems.extend(missing(&dataset, &run, &loaded).await?);
            }
        }
        runs.push(RunReport { run, state, bouts: bouts.len() as u64, exported, problems });
    }
    Ok(StateReport { version, id, epoch, runs })
}

/// Whether a bout reads back as what was counted. The inner error says why not.
async fn check_bout(
    store: &Store,
    run: &mut Run,
    id: &str,
    bout: &BoutSummary,
) -> Result<Result<(), String>, StoreError> {
    if bout.failed {
        return Ok(Ok(()));
    }
    let payload = store.payload(id.to_string(), bout.bout).await?;
    let digest = store.digest(id.to_string(), bout.bout).await?;
    let mut check = || {
        let message =
            v1::Submission::decode_length_delimited(&payload[..]).map_err(|error| error.to_string())?;
        let lease = Lease::required(message.lease).map_err(|error| error.to_string())?;
        let planned = run.schedule.bout(bout.bout).map_err(|error| error.to_string())?;
        let (players, opening, values) = (planned.players, planned.opening, planned.values);
        let leased = Bout { lease, players, opening, values };
        let columns =
            Assembler::read(run.spec.clone(), leased, &payload).map_err(|error| error.to_string())?;
        if digest.as_deref() != Some(&columns.content_digest()[..]) {
            return Err("its content is not what its digest says".to_string());
        }
        if read_summary(bout) != Some(summarise(&run.spec, &columns)) {
            return Err("what was counted of it is not what it says".to_string());
        }
        Ok(())
    };
    Ok(check())
}

/// What cannot be of the bouts that are to be exported next.
async fn misplaced(
    store: &Store,
    id: &str,
    run: &Run,
    bouts: &[BoutSummary],
) -> Result<Option<String>, StoreError> {
    let total = run.ledger.total();
    if run.exported > total {
        return Ok(Some(format!("{} bouts are said to be exported, and it has {total}", run.exported)));
    }
    let Some((first, last)) = store.open_part(id.to_string()).await? else { return Ok(None) };
    let found = bouts.iter().filter(|row| (first..=last).contains(&row.bout)).count() as u64;
    let fits = first == run.exported && last < total && (found == last - first + 1 || !run.state.is_open());
    Ok((!fits).then(|| {
        format!("a part of bouts {first} to {last} is to be written, and {found} of them are there")
    }))
}

/// What the state says is in the dataset and is not.
async fn missing(dataset: &Dataset, id: &str, run: &Run) -> Result<Option<String>, ExportError> {
    let exported = run.exported.min(run.ledger.total());
    let named: u64 = dataset
        .finished_parts(id)
        .await?
        .into_iter()
        .filter(|(first, _)| *first < exported)
        .map(|(first, last)| last.min(exported - 1) - first + 1)
        .sum();
    // Bouts that failed have no rows; of a run that was ended early most were never played.
    let counted = run.folded.bouts - run.folded.failed.min(run.folded.bouts);
    Ok((named < counted).then(|| {
        format!("{counted} of its bouts are said to be exported, and the parts of the dataset have room for {named}")
    }))
}
