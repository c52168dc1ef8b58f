//! Export: writes committed bouts to the dataset as immutable parts while the run continues.
//!
//! The bouts of a part are durable in the state before the part is written, and the same bouts give the same bytes under
//! the same name, so that a repetition after a crash changes nothing. The manifest of a run precedes its parts, and the
//! moves of a part precede its games: a reader that sees a game finds its moves.
//!
//! A part is written when it is full, and a smaller one at intervals, at the start and on shutdown, so that a dataset can
//! be analysed at any time. The intervals grow with the age of a run, so that it has few small parts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use agon_arena::SpecSource;
use agon_proto::{Assembler, Lease, LeasedBout, v1};
use agon_records::{BoutColumns, Table};
use agon_schedule::{RunManifest, RunState, Tuning};
use prost::Message as _;
use tracing::warn;

use crate::durable::KeptBout;
use crate::durable::runs::{AssignPart, FinishPart, Move, OPEN};
use crate::leases::BoutKey;
use crate::state::{Coordinator, WriteTarget};
use crate::store::StoreError;
use crate::verification::replication::Digest;
use agon_storage::location::{LocationError, one_line};
use agon_storage::ownership::OwnershipError;

/// The delay before a failed export is retried.
const RETRY: Duration = Duration::from_secs(2);

/// The interval at which the exporter looks for parts that are due.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The part of a run's age that may pass between two exports.
const AGE_SHARE: u32 = 100;

/// When parts are written.
#[derive(Clone, Copy, Debug)]
pub struct ExportSchedule {
    /// Bouts in a full part.
    pub part_bouts: u64,
    /// The time after which a smaller part is written, if this is more than 1 % of the run's age.
    pub interval: Duration,
}

impl Default for ExportSchedule {
    fn default() -> ExportSchedule {
        ExportSchedule { part_bouts: 500, interval: Duration::from_secs(10) }
    }
}

/// An error of an export.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The state.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The storage of the dataset.
    #[error("the dataset cannot be written: {0}")]
    Storage(String),
    /// The address of the dataset.
    #[error(transparent)]
    Address(#[from] LocationError),
    /// The ownership of the dataset.
    #[error(transparent)]
    Owner(#[from] OwnershipError),
    /// The local disk.
    #[error("the dataset cannot be written: {0}")]
    Disk(#[from] std::io::Error),
    /// The folder was renamed or deleted. The coordinator ends soon.
    #[error("the dataset cannot be written: {} was renamed, replaced or deleted", .0.display())]
    Replaced(std::path::PathBuf),
    /// An object with the name of a part has other rows.
    #[error(
        "`{0}` exists with other bytes, and parts are never rewritten; move it away if it does not belong here"
    )]
    Occupied(String),
    /// A stored bout is unreadable.
    #[error("bout {bout} does not read back: {reason}")]
    Unreadable {
        /// The bout.
        bout: u64,
        /// The reason.
        reason: String,
    },
    /// Rows that cannot be encoded.
    #[error(transparent)]
    Records(#[from] agon_records::WriteError),
    /// A part is unreadable.
    #[error("a part does not read back: {0}")]
    Read(#[from] agon_records::PartError),
    /// Bouts assigned to a part are missing in the state.
    #[error("a part of bouts {first} to {last} is due, but the state has only {found} of them")]
    Incomplete {
        /// The first bout.
        first: u64,
        /// The last bout.
        last: u64,
        /// The number of bouts in the state.
        found: u64,
    },
    /// The dataset lacks exported bouts at the start.
    #[error(
        "run {run}: {problem}; bring the files of the dataset back from a backup, or pass --take-over to go on without these \
         bouts"
    )]
    Missing {
        /// The run.
        run: String,
        /// Which bouts are missing.
        problem: String,
    },
}

impl ExportError {
    /// Returns whether the error concerns one run, so that others can continue.
    fn affects_one_run(&self) -> bool {
        matches!(
            self,
            ExportError::Occupied(_)
                | ExportError::Unreadable { .. }
                | ExportError::Records(_)
                | ExportError::Read(_)
                | ExportError::Incomplete { .. }
        )
    }
}

impl From<object_store::Error> for ExportError {
    fn from(error: object_store::Error) -> ExportError {
        ExportError::Storage(one_line(&error))
    }
}

/// Writes parts as bouts are committed, until the coordinator drains; finishes the part being written.
pub(crate) async fn export(coordinator: Arc<Coordinator>, schedule: ExportSchedule) {
    while !coordinator.is_draining() {
        let mut fault = None;
        let mut failed = false;
        for run in open_first(&coordinator) {
            let result = export_run(&coordinator, &run, schedule, false).await;
            failed |= result.is_err();
            match result {
                Ok(()) => coordinator.set_export_fault(&run, None),
                Err(error) if error.affects_one_run() => {
                    coordinator.set_export_fault(&run, Some(error.to_string()));
                }
                Err(error) => {
                    fault = Some(error.to_string());
                    break;
                }
            }
        }
        coordinator.set_write_fault(WriteTarget::Dataset, fault);
        if failed {
            tokio::time::sleep(RETRY).await;
        } else {
            let _ = tokio::time::timeout(CHECK_INTERVAL, coordinator.export.notified()).await;
        }
    }
}

/// Returns all runs, those first that play: after a start, the others only compare their manifests.
fn open_first(coordinator: &Coordinator) -> Vec<String> {
    let state = coordinator.lock();
    let is_open = |id: &&String| state.durable.run(id).is_some_and(|run| run.record().state.is_open());
    let (open, ended): (Vec<&String>, Vec<&String>) = state.durable.order().iter().partition(is_open);
    open.into_iter().chain(ended).cloned().collect()
}

/// Writes everything that can be exported, after the last bout of this process was committed.
pub(crate) async fn flush(coordinator: &Arc<Coordinator>, schedule: ExportSchedule) {
    for run in coordinator.run_ids() {
        // The next process repeats what fails.
        if let Err(error) = export_run(coordinator, &run, schedule, true).await {
            warn!(run, %error, "export incomplete");
        }
    }
}

/// A copy of the values of a run that the export needs.
struct RunSnapshot {
    state: RunState,
    prefix: u64,
    total: u64,
    exported: u64,
    open_part: Option<(u64, u64)>,
    manifest_written: bool,
    /// The age of the run, and the time since its last part, in this process.
    age: Duration,
    since_export: Option<Duration>,
}

impl RunSnapshot {
    /// Copies the values, if the run exists.
    fn take(coordinator: &Coordinator, id: &str) -> Option<RunSnapshot> {
        coordinator.with_run(id, |run| RunSnapshot {
            state: run.record().state,
            prefix: run.ledger.prefix(),
            total: run.ledger.total(),
            exported: run.record().exported,
            open_part: run.record().open_part,
            manifest_written: run.manifest_written,
            age: run.since.elapsed(),
            since_export: run.last_export.map(|last| last.elapsed()),
        })
    }

    /// Returns whether a part that is not full is due.
    fn is_interval_over(&self, interval: Duration) -> bool {
        self.since_export.is_none_or(|since| since >= interval.max(self.age / AGE_SHARE))
    }
}

/// Writes the due parts of a run, and ends the run after the last one. `flush` writes all bouts that can be exported, also
/// while the coordinator drains. Only the exporter calls this.
async fn export_run(
    coordinator: &Arc<Coordinator>,
    id: &str,
    schedule: ExportSchedule,
    flush: bool,
) -> Result<(), ExportError> {
    let Some(snapshot) = RunSnapshot::take(coordinator, id) else { return Ok(()) };
    if snapshot.exported == snapshot.total && !snapshot.state.is_open() && snapshot.manifest_written {
        return Ok(());
    }
    let before = snapshot.exported;
    // 1. The manifest, so that a lost state can be recovered.
    if !snapshot.manifest_written {
        write_run(coordinator, id).await?;
        coordinator.with_run(id, |run| run.manifest_written = true);
    }
    // 2. The assigned part, then those that are due.
    if let Some((first, last)) = snapshot.open_part {
        write_part(coordinator, id, first, last).await?;
    }
    while (flush || !coordinator.is_draining())
        && let Some((first, last)) = next_part(coordinator, id, schedule, flush)
        && coordinator.execute(AssignPart { run: id.to_string(), first, last }).await?
    {
        write_part(coordinator, id, first, last).await?;
    }
    // 3. The end of the run.
    let Some(snapshot) = RunSnapshot::take(coordinator, id) else { return Ok(()) };
    if snapshot.open_part.is_none() && snapshot.state.is_open() && snapshot.exported == snapshot.total {
        let done = Move { run: id.to_string(), from: OPEN, to: RunState::Done, entry: None };
        let _ = coordinator.execute(done).await?;
    } else if !snapshot.state.is_open() && has_no_kept_bouts(coordinator, id) {
        // Bouts that were never played count as exported.
        coordinator.execute(FinishPart { run: id.to_string(), exported: snapshot.total }).await?;
    }
    if snapshot.exported > before || !snapshot.state.is_open() || snapshot.exported == snapshot.total {
        write_run(coordinator, id).await?;
        coordinator.changed();
    }
    Ok(())
}

/// Returns whether all committed bouts of a run are exported.
fn has_no_kept_bouts(coordinator: &Coordinator, id: &str) -> bool {
    coordinator.with_run(id, |run| run.record().kept.is_empty()).unwrap_or(false)
}

/// Keeps the exporter from beginning another part of a run.
pub(crate) struct ExportHold<'a> {
    coordinator: &'a Coordinator,
    run: String,
}

impl<'a> ExportHold<'a> {
    /// Holds the export of a run until the result is dropped.
    pub(crate) fn new(coordinator: &'a Coordinator, run: &str) -> ExportHold<'a> {
        coordinator.with_run(run, |run| run.export_holds += 1);
        ExportHold { coordinator, run: run.to_string() }
    }
}

impl Drop for ExportHold<'_> {
    fn drop(&mut self) {
        self.coordinator.with_run(&self.run, |run| run.export_holds -= 1);
        self.coordinator.export.notify_one();
    }
}

/// Waits until no part of a run is being written. Returns the end of the exported bouts, or why the part cannot be written.
pub(crate) async fn await_open_part(coordinator: &Coordinator, id: &str) -> Result<u64, String> {
    let mut changes = coordinator.watch();
    loop {
        changes.mark_unchanged();
        let Some(snapshot) = RunSnapshot::take(coordinator, id) else { return Ok(0) };
        if snapshot.open_part.is_none() {
            return Ok(snapshot.exported);
        }
        if let Some(reason) = coordinator.export_fault(id) {
            return Err(reason);
        }
        coordinator.export.notify_one();
        let _ = tokio::time::timeout(CHECK_INTERVAL, changes.changed()).await;
    }
}

/// Returns the first and last bout of the next part, if one is due.
fn next_part(
    coordinator: &Coordinator,
    id: &str,
    ExportSchedule { part_bouts, interval }: ExportSchedule,
    flush: bool,
) -> Option<(u64, u64)> {
    let snapshot = RunSnapshot::take(coordinator, id)?;
    let RunSnapshot { state, prefix, total, exported, .. } = snapshot;
    if state.is_open() {
        let ready = prefix - exported;
        let due = ready >= part_bouts || prefix == total || flush || snapshot.is_interval_over(interval);
        return (due && ready > 0).then(|| (exported, exported + ready.min(part_bouts) - 1));
    }
    // A run that has ended gets no more bouts: the rest goes into parts.
    coordinator.with_run(id, |run| {
        let mut part = run.record().kept.keys().take(part_bouts as usize).copied();
        let first = part.next()?;
        Some((first, part.last().unwrap_or(first)))
    })?
}

/// Writes the tables of a part and marks its bouts as exported.
async fn write_part(
    coordinator: &Arc<Coordinator>,
    id: &str,
    first: u64,
    last: u64,
) -> Result<(), ExportError> {
    let started = Instant::now();
    let digest = |(bout, kept): (&u64, &KeptBout)| (*bout, kept.digest);
    let snapshot = coordinator.with_run(id, |run| {
        let bouts: Vec<_> = run.record().kept.range(first..=last).map(digest).collect();
        (bouts, run.record().state.is_open())
    });
    let Some((bouts, is_open)) = snapshot else { return Ok(()) };
    let found = bouts.len() as u64;
    // Only a run that ended early has bouts that were never played.
    if is_open && found != last - first + 1 {
        return Err(ExportError::Incomplete { first, last, found });
    }
    let played = played(coordinator, id, &bouts).await?;
    let encoded =
        tokio::task::spawn_blocking(move || encode(&played)).await.map_err(std::io::Error::other)??;
    for (table, bytes) in encoded {
        coordinator.dataset.put_part(table, id, (first, last), bytes).await?;
    }
    coordinator.execute(FinishPart { run: id.to_string(), exported: last + 1 }).await?;
    coordinator.metrics.part_written(started);
    Ok(())
}

/// Returns the tables of a part in the order in which they are written, without those that have no rows.
fn encode(played: &[BoutColumns]) -> Result<Vec<(Table, Vec<u8>)>, agon_records::WriteError> {
    let mut tables = Vec::new();
    let probes: Vec<_> = played.iter().flat_map(|bout| &bout.probes).collect();
    if !probes.is_empty() {
        tables.push((Table::Probes, agon_records::write_probes(probes)?));
    }
    let games: Vec<_> = played.iter().flat_map(|bout| &bout.games).collect();
    if !games.is_empty() {
        tables.push((Table::Moves, agon_records::write_plies(played.iter().map(|bout| &bout.moves))?));
        tables.push((Table::Games, agon_records::write_games(games)?));
    }
    Ok(tables)
}

/// Returns the played bouts in order, from memory or else from the state.
async fn played(
    coordinator: &Arc<Coordinator>,
    id: &str,
    bouts: &[(u64, Option<Digest>)],
) -> Result<Vec<BoutColumns>, ExportError> {
    let mut played = Vec::with_capacity(bouts.len());
    for &(bout, digest) in bouts {
        let Some(digest) = digest else { continue };
        let key = BoutKey { run: id.to_string(), bout };
        played.push(match coordinator.recent.take(&key) {
            Some(bout) => bout,
            None => read_back(coordinator, key, digest).await?,
        });
    }
    Ok(played)
}

/// Decodes a bout from its stored messages, with the same checks as on receipt.
async fn read_back(
    coordinator: &Arc<Coordinator>,
    key: BoutKey,
    digest: Digest,
) -> Result<BoutColumns, ExportError> {
    let bout = key.bout;
    let unreadable = move |reason: String| ExportError::Unreadable { bout, reason };
    let unknown = Lease { run: key.run.clone(), bout, epoch: 0, sequence: 0 };
    let planned = coordinator.planned_bout(&unknown).await;
    let (spec, planned) = planned.ok_or_else(|| unreadable("its run does not exist".to_string()))?;
    let coordinator = Arc::clone(coordinator);
    let decode = move || {
        let payload = coordinator.reader.payload(&key.run, bout)?;
        let message = v1::Submission::decode_length_delimited(&payload[..]);
        let lease = message.map_err(|error| unreadable(error.to_string()))?.lease;
        let lease = Lease::required(lease).map_err(|error| unreadable(error.to_string()))?;
        if (&lease.run, lease.bout) != (&key.run, bout) {
            return Err(unreadable(format!("its messages are those of {lease}")));
        }
        let planned = LeasedBout { lease, ..planned };
        let columns =
            Assembler::read(spec, planned, &payload).map_err(|error| unreadable(error.to_string()))?;
        if columns.content_digest() != digest {
            return Err(unreadable("its content does not match its digest".to_string()));
        }
        Ok(columns)
    };
    tokio::task::spawn_blocking(decode).await.map_err(std::io::Error::other)?
}

/// A cache of committed bouts that are not yet exported.
#[derive(Default)]
pub(crate) struct RecentBouts(Mutex<(BTreeMap<BoutKey, BoutColumns>, usize)>);

/// The maximum number of plies and searches in the cache.
const MAX_RECENT_ROWS: usize = 400_000;

impl RecentBouts {
    /// Inserts a bout, if there is room.
    pub(crate) fn insert(&self, key: BoutKey, bout: BoutColumns) {
        let mut guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (bouts, count) = &mut *guard;
        let more = bout.moves.len() + bout.probes.len();
        if *count + more <= MAX_RECENT_ROWS {
            *count += more;
            bouts.insert(key, bout);
        }
    }

    /// Removes a bout.
    fn take(&self, key: &BoutKey) -> Option<BoutColumns> {
        let mut guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (bouts, count) = &mut *guard;
        let bout = bouts.remove(key)?;
        *count -= bout.moves.len() + bout.probes.len();
        Some(bout)
    }

    /// Removes the bouts of a run.
    pub(crate) fn remove_run(&self, run: &str) {
        let mut guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (bouts, count) = &mut *guard;
        bouts.retain(|key, _| key.run != run);
        *count = bouts.values().map(|bout| bout.moves.len() + bout.probes.len()).sum();
    }
}

/// Writes the manifest of a run.
pub(crate) async fn write_run(coordinator: &Coordinator, id: &str) -> Result<(), ExportError> {
    // A later manifest is never replaced by an earlier one.
    let _guard = coordinator.manifest_lock.lock().await;
    let values = coordinator.with_run(id, |run| {
        let record = run.record();
        // An open run counts everything committed; a run that has ended, everything exported.
        let committed =
            if record.state.is_open() { record.standings.totals() } else { &record.exported_totals };
        let manifest = RunManifest {
            id: id.to_string(),
            digest: run.digest.clone(),
            build: record.build.clone(),
            signature: coordinator.signature.clone(),
            game: run.spec.game.to_string(),
            players: run.spec.players.iter().map(|player| player.name.clone()).collect(),
            seed: run.spec.seed,
            bouts: run.ledger.total(),
            committed: committed.bouts,
            exported: run.exported_bouts(),
            failed: committed.failed,
            games: committed.games,
            state: record.state,
            submitted_us: record.submitted_us,
            abandoned: record.abandoned,
            deciding_bout: record.decided,
            priority: record.priority,
            voided: record.voided.iter().copied().collect(),
            tune: run.schedule.tuning().map(Tuning::manifest),
            ..RunManifest::default()
        };
        (manifest, Arc::clone(&run.source))
    });
    let Some((manifest, source)) = values else { return Ok(()) };
    // A spec may have many megabytes: they are copied without the lock, and not on a thread of the runtime.
    let encode = move || {
        let manifest = RunManifest { source: SpecSource::clone(&source), ..manifest };
        serde_json::to_string_pretty(&manifest).expect("a manifest is plain data") + "\n"
    };
    let text = tokio::task::spawn_blocking(encode).await.map_err(std::io::Error::other)?;
    coordinator.dataset.put_manifest(id, text).await
}
