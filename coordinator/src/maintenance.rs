//! Maintenance of a state: backup, restore and verification.
//!
//! Backups and checks read a snapshot of a state that may be in use, and change nothing. A check reads everything that a
//! coordinator would read, on its own copy.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use agon_proto::{Assembler, Lease, LeasedBout, v1};
use prost::Message as _;
use serde::Serialize;

use crate::data::{DataError, DataFolder, Purpose, STATE};
use crate::dataset::Dataset;
use crate::durable::{Durable, Run};
use crate::export::ExportError;
use crate::recovery::consistency::{check_parts, check_state, missing_bouts};
use crate::standings::decode_checked;
use crate::store::backup::{self, Contents, TemporaryState};
use crate::store::{Reader, Store, StoreError, StoredBout, late_epoch};
use agon_storage::location::Location;
use agon_storage::summarise;

/// An error of a backup, a restore or a check.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MaintenanceError {
    /// There is no state.
    #[error("there is no state in {}; set its location with --data or --state", .0.display())]
    NoState(PathBuf),
    /// The target exists.
    #[error("{} exists, and nothing is overwritten; choose another name", .0.display())]
    Occupied(PathBuf),
    /// The backup is unreadable.
    #[error("the backup {} cannot be read: {reason}", .file.display())]
    NoBackup {
        /// The file.
        file: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The state.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The target folder.
    #[error(transparent)]
    Folder(#[from] DataError),
    /// The dataset.
    #[error(transparent)]
    Dataset(#[from] ExportError),
    /// The disk.
    #[error("{} cannot be written: {reason}", .file.display())]
    Disk {
        /// The file.
        file: PathBuf,
        /// The reason.
        reason: io::Error,
    },
}

/// Returns the state file of a folder, which must exist.
fn state_in(folder: &Path) -> Result<PathBuf, MaintenanceError> {
    let state = folder.join(STATE);
    if state.is_file() { Ok(state) } else { Err(MaintenanceError::NoState(folder.to_path_buf())) }
}

/// Copies the state of a folder, which may be in use, to a temporary file beside it.
pub fn copy(folder: &Path) -> Result<TemporaryState, MaintenanceError> {
    let state = state_in(folder)?;
    let copy = TemporaryState(folder.join(format!("{STATE}.copy-{}", std::process::id())));
    backup::copy_file(&state, &copy.0)?;
    Ok(copy)
}

/// Copies the state of a folder, which may be in use, to a new file. Returns the contents of the copy.
pub fn back_up(folder: &Path, to: &Path) -> Result<Contents, MaintenanceError> {
    let state = state_in(folder)?;
    if to.exists() {
        return Err(MaintenanceError::Occupied(to.to_path_buf()));
    }
    backup::copy_file(&state, to)?;
    Ok(backup::inspect(to)?)
}

/// Restores a backup into a folder without a state. Returns its contents.
pub fn restore(from: &Path, folder: &Path, purpose: Purpose) -> Result<Contents, MaintenanceError> {
    install(from, &DataFolder::open_for_restore(folder, purpose)?, purpose)
}

/// Restores a backup from a stream.
pub fn restore_from(
    source: &mut impl io::Read,
    folder: &Path,
    purpose: Purpose,
) -> Result<Contents, MaintenanceError> {
    let held = DataFolder::open_for_restore(folder, purpose)?;
    let received = TemporaryState(held.folder.join(format!("{STATE}.received")));
    let written = File::create(&received.0).and_then(|mut file| io::copy(source, &mut file));
    written.map_err(|reason| MaintenanceError::Disk { file: received.0.clone(), reason })?;
    install(&received.0, &held, purpose)
}

/// Checks a backup and moves a copy of it into a locked folder.
fn install(from: &Path, held: &DataFolder, purpose: Purpose) -> Result<Contents, MaintenanceError> {
    let unreadable = |reason: String| MaintenanceError::NoBackup { file: from.to_path_buf(), reason };
    if !from.is_file() {
        return Err(unreadable("there is no such file".to_string()));
    }
    let state = held.folder.join(STATE);
    // Copied, as a killed process may have left companions of the file.
    let restored = TemporaryState(held.folder.join(format!("{STATE}.restored")));
    let contents = backup::copy_file(from, &restored.0).and_then(|()| backup::inspect(&restored.0)).map_err(
        |error| match error {
            StoreError::Newer { .. } | StoreError::Older { .. } | StoreError::CopyFailed { .. } => {
                MaintenanceError::Store(error)
            }
            StoreError::Damaged(reason) | StoreError::Failed(reason) => {
                unreadable(format!("it is damaged or no backup of agon ({reason})"))
            }
            error => unreadable(error.to_string()),
        },
    )?;
    // An object store records the epoch of its owner; a folder does not, and workers may hold leases of later epochs than
    // the backup's, which must count as issued.
    backup::set_epoch(&restored.0, if purpose == Purpose::Data { late_epoch() } else { 0 })?;
    // Remove an empty state file and its companions.
    drop(TemporaryState(state.clone()));
    File::open(&restored.0)
        .and_then(|file| file.sync_all())
        .and_then(|()| fs::rename(&restored.0, &state))
        .and_then(|()| File::open(&held.folder)?.sync_all())
        .map_err(|reason| MaintenanceError::Disk { file: state, reason })?;
    Ok(contents)
}

/// The result of a check.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct StateReport {
    /// The version of the tables.
    pub version: i64,
    /// The id.
    pub id: String,
    /// The epoch: how often a coordinator has opened it.
    pub epoch: u64,
    /// The runs.
    pub runs: Vec<RunReport>,
}

/// The result of a check of a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RunReport {
    /// The id.
    pub run: String,
    /// The state.
    pub state: &'static str,
    /// The number of bouts in the state.
    pub bouts: u64,
    /// All bouts below are in the dataset.
    pub exported: u64,
    /// The problems found.
    pub problems: Vec<String>,
}

/// Reads everything in the state of a folder, which may be in use, and checks that the dataset has the exported bouts.
pub async fn check(folder: &Path, data: &Location) -> Result<StateReport, MaintenanceError> {
    let state = state_in(folder)?;
    let copy = TemporaryState(std::env::temp_dir().join(format!("agon-check-{}", std::process::id())));
    backup::copy_file(&state, &copy.0)?;
    let Contents { version, id, epoch, .. } = backup::inspect(&copy.0)?;
    let dataset = Dataset::open_read_only(data)?;
    let mut parts = dataset.all_parts().await?;
    let reader = Store::open(&copy.0)?.reader()?;
    let mut runs = Vec::new();
    for stored in reader.runs()? {
        let (run, state, exported) = (stored.id.clone(), stored.state.name(), stored.exported);
        let bouts = reader.bouts(&run)?;
        let mut problems = Vec::new();
        let mut durable = Durable::default();
        match crate::recovery::load_run(&reader, &mut durable, stored) {
            Err(error) => problems.push(error.to_string()),
            Ok(Err(reason)) => problems.push(format!("this build cannot read it: {reason}")),
            Ok(Ok(rows)) => {
                if let Some(loaded) = durable.run_mut(&run) {
                    for bout in &bouts {
                        if let Err(reason) = check_bout(&reader, loaded, &run, bout)? {
                            problems.push(format!("bout {}: {reason}", bout.bout));
                        }
                    }
                    let parts = parts.remove(&run).unwrap_or_default();
                    problems.extend(check_state(loaded, rows));
                    problems.extend(check_parts(loaded, &parts));
                    problems.extend(missing_bouts(loaded, &parts));
                }
            }
        }
        runs.push(RunReport { run, state, bouts: bouts.len() as u64, exported, problems });
    }
    Ok(StateReport { version, id, epoch, runs })
}

/// Checks that the messages of a bout match its digest and summary. The inner error is a problem with the bout.
fn check_bout(
    reader: &Reader,
    run: &mut Run,
    id: &str,
    bout: &StoredBout,
) -> Result<Result<(), String>, StoreError> {
    if bout.failed {
        return Ok(Ok(()));
    }
    let payload = reader.payload(id, bout.bout)?;
    let mut check = || {
        let message =
            v1::Submission::decode_length_delimited(&payload[..]).map_err(|error| error.to_string())?;
        let lease = Lease::required(message.lease).map_err(|error| error.to_string())?;
        let planned = run.schedule.draw_bout(bout.bout).map_err(|error| error.to_string())?;
        let leased = LeasedBout { lease, bout: planned };
        let columns =
            Assembler::read(run.spec.clone(), leased, &payload).map_err(|error| error.to_string())?;
        if bout.digest != Some(columns.content_digest()) {
            return Err("its content does not match its digest".to_string());
        }
        if decode_checked(&bout.summary) != Some(summarise(&run.spec, &columns)) {
            return Err("its content does not match its summary".to_string());
        }
        Ok(())
    };
    Ok(check())
}
