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

use agon_proto::{Assembler, Lease, v1};
use agon_records::{BoutColumns, Table};
use agon_schedule::{RunManifest, RunState, Summary, Tuning, run_id};
use prost::Message as _;
use tracing::{info, warn};

use crate::leases::BoutKey;
use crate::standings::{RunTotals, encode_checked, read_summary};
use crate::state::{Coordinator, OPEN, WriteTarget};
use crate::store::{BoutSummary, StoreError, StoredCell};
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
        for run in coordinator.run_ids() {
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

/// Writes everything that can be exported, after the last bout of this process was committed.
pub(crate) async fn flush(coordinator: &Coordinator, schedule: ExportSchedule) {
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
    manifest_written: bool,
    /// The age of the run, and the time since its last part, in this process.
    age: Duration,
    since_export: Option<Duration>,
}

impl RunSnapshot {
    /// Copies the values, if the run exists.
    fn take(coordinator: &Coordinator, id: &str) -> Option<RunSnapshot> {
        coordinator.with_run(id, |run| RunSnapshot {
            state: run.state,
            prefix: run.ledger.prefix(),
            total: run.ledger.total(),
            exported: run.exported,
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
/// while the coordinator drains.
async fn export_run(
    coordinator: &Coordinator,
    id: &str,
    schedule: ExportSchedule,
    flush: bool,
) -> Result<(), ExportError> {
    let _guard = coordinator.export_lock.lock().await;
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
    finish_part(coordinator, id).await?;
    while (flush || !coordinator.is_draining())
        && let Some((first, last)) = next_part(coordinator, id, schedule, flush).await?
    {
        coordinator.store.assign_part(id.to_string(), first, last).await?;
        write_part(coordinator, id, first, last).await?;
    }
    // 3. The end of the run.
    let Some(snapshot) = RunSnapshot::take(coordinator, id) else { return Ok(()) };
    if snapshot.state.is_open() && snapshot.exported == snapshot.total {
        let _change = coordinator.change_lock.write().await;
        let before = coordinator.store.move_state(id.to_string(), OPEN, RunState::Done, None).await?;
        if before.is_some_and(RunState::is_open) {
            coordinator.end_run(id, RunState::Done, None, "the run is done");
            info!(run = id, "run done");
        }
    } else if !snapshot.state.is_open() {
        // Bouts that were never played count as exported.
        mark_exported(coordinator, id, snapshot.total, &[]).await?;
    }
    if snapshot.exported > before || !snapshot.state.is_open() || snapshot.exported == snapshot.total {
        write_run(coordinator, id).await?;
        coordinator.changed();
    }
    Ok(())
}

/// Writes the part that is assigned but not marked as written, if any.
pub(crate) async fn finish_part(coordinator: &Coordinator, id: &str) -> Result<(), ExportError> {
    match coordinator.store.open_part(id.to_string()).await? {
        Some((first, last)) => write_part(coordinator, id, first, last).await,
        None => Ok(()),
    }
}

/// Returns the first and last bout of the next part, if one is due.
async fn next_part(
    coordinator: &Coordinator,
    id: &str,
    ExportSchedule { part_bouts, interval }: ExportSchedule,
    flush: bool,
) -> Result<Option<(u64, u64)>, ExportError> {
    let Some(snapshot) = RunSnapshot::take(coordinator, id) else { return Ok(None) };
    let RunSnapshot { state, prefix, total, exported, .. } = snapshot;
    if state.is_open() {
        let ready = prefix - exported;
        let due = ready >= part_bouts || prefix == total || flush || snapshot.is_interval_over(interval);
        return Ok((due && ready > 0).then(|| (exported, exported + ready.min(part_bouts) - 1)));
    }
    // A run that has ended gets no more bouts: the rest goes into parts.
    let left = coordinator.store.summaries(id.to_string(), exported, u64::MAX).await?;
    let part = &left[..left.len().min(part_bouts as usize)];
    Ok(part.first().zip(part.last()).map(|(first, last)| (first.bout, last.bout)))
}

/// Writes the tables of a part and marks its bouts as exported.
async fn write_part(coordinator: &Coordinator, id: &str, first: u64, last: u64) -> Result<(), ExportError> {
    let started = Instant::now();
    let bouts = coordinator.store.summaries(id.to_string(), first, last).await?;
    let found = bouts.len() as u64;
    // Only a run that ended early has bouts that were never played.
    if RunSnapshot::take(coordinator, id).is_some_and(|snapshot| snapshot.state.is_open())
        && found != last - first + 1
    {
        return Err(ExportError::Incomplete { first, last, found });
    }
    let played = played(coordinator, id, &bouts).await?;
    let put = |table: Table, bytes| coordinator.dataset.put_part(table, id, (first, last), bytes);
    let probes: Vec<_> = played.iter().flat_map(|bout| &bout.probes).collect();
    if !probes.is_empty() {
        put(Table::Probes, agon_records::write_probes(probes)?).await?;
    }
    let games: Vec<_> = played.iter().flat_map(|bout| &bout.games).collect();
    if !games.is_empty() {
        put(Table::Moves, agon_records::write_plies(played.iter().map(|bout| &bout.moves))?).await?;
        put(Table::Games, agon_records::write_games(games)?).await?;
    }
    mark_exported(coordinator, id, last + 1, &bouts).await?;
    coordinator.metrics.part_written(started);
    Ok(())
}

/// Outcomes by worker and pairing.
pub(crate) type Cells = BTreeMap<(String, u64), [u64; 3]>;

/// How bouts of a run are totals into its totals.
pub(crate) struct FoldRules {
    /// The first rated bout; earlier ones are tuning bouts.
    pub(crate) rated_from: u64,
    /// The bout that decided the sequential test.
    pub(crate) decided: Option<u64>,
}

/// Adds a bout to the totals of the exported bouts; a failed bout has no summary.
pub(crate) fn fold(
    totals: &mut RunTotals,
    cells: &mut Cells,
    how: &FoldRules,
    bout: u64,
    worker: &str,
    summary: Option<&Summary>,
) {
    match summary {
        Some(summary) => totals.add(summary, bout >= how.rated_from),
        None => totals.add_failed(),
    }
    if bout < how.rated_from {
        totals.add_score(bout, summary.and_then(Summary::half_points));
        return;
    }
    if how.decided.is_none_or(|decided| bout <= decided) {
        totals.add_pair(summary);
    }
    if let Some((pairing, outcome)) = summary.and_then(Summary::pairing_outcome) {
        cells.entry((worker.to_string(), pairing)).or_default()[outcome] += 1;
    }
}

/// Removes a voided bout from the totals of the exported bouts.
pub(crate) fn unfold(totals: &mut RunTotals, how: &FoldRules, bout: u64, summary: &Summary) {
    totals.subtract(summary);
    if bout >= how.rated_from && how.decided.is_none_or(|decided| bout <= decided) {
        totals.subtract_pair(summary);
    }
}

/// Converts cells to rows of the store.
pub(crate) fn stored_cells(cells: Cells) -> Vec<StoredCell> {
    let stored = |((worker, pairing), outcomes)| StoredCell { worker, pairing, outcomes };
    cells.into_iter().map(stored).collect()
}

/// Replaces exported bouts in the state by their totals.
async fn mark_exported(
    coordinator: &Coordinator,
    id: &str,
    exported: u64,
    bouts: &[BoutSummary],
) -> Result<(), ExportError> {
    let snapshot = coordinator.with_run(id, |run| {
        (run.exported_totals.clone(), run.standings.deciding_bout(), run.spec.first_rated_bout())
    });
    let Some((mut totals, decided, rated_from)) = snapshot else { return Ok(()) };
    let mut cells = Cells::default();
    for row in bouts {
        let how = FoldRules { rated_from, decided };
        fold(&mut totals, &mut cells, &how, row.bout, &row.worker, read_summary(row).as_ref());
    }
    let cells = stored_cells(cells);
    coordinator.store.part_written(id.to_string(), exported, encode_checked(&totals), cells).await?;
    coordinator.with_run(id, |run| {
        run.exported = exported;
        run.exported_totals = totals;
        run.last_export = Some(Instant::now());
    });
    Ok(())
}

/// Returns the played bouts in order, from memory or else from the state.
async fn played(
    coordinator: &Coordinator,
    id: &str,
    bouts: &[BoutSummary],
) -> Result<Vec<BoutColumns>, ExportError> {
    let mut played = Vec::with_capacity(bouts.len());
    for row in bouts.iter().filter(|row| !row.failed) {
        let key = BoutKey { run: id.to_string(), bout: row.bout };
        played.push(match coordinator.recent.take(&key) {
            Some(bout) => bout,
            None => read_back(coordinator, id, row.bout).await?,
        });
    }
    Ok(played)
}

/// Decodes a bout from its stored messages, with the same checks as on receipt.
async fn read_back(coordinator: &Coordinator, id: &str, bout: u64) -> Result<BoutColumns, ExportError> {
    let unreadable = |reason: String| ExportError::Unreadable { bout, reason };
    let payload = coordinator.store.payload(id.to_string(), bout).await?;
    let message = v1::Submission::decode_length_delimited(&payload[..]);
    let lease = message.map_err(|error| unreadable(error.to_string()))?.lease;
    let lease = Lease::required(lease).map_err(|error| unreadable(error.to_string()))?;
    let leased =
        coordinator.leased_bout(&lease).ok_or_else(|| unreadable("its run does not exist".to_string()))?;
    Assembler::read(leased.0, leased.1, &payload).map_err(|error| unreadable(error.to_string()))
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
    let manifest = coordinator.with_run(id, |run| {
        // An open run counts everything committed; a run that has ended, everything exported.
        let committed = if run.state.is_open() { run.standings.totals() } else { &run.exported_totals };
        RunManifest {
            id: id.to_string(),
            source: run.source.clone(),
            digest: run_id::digest(&run.source).unwrap_or_default(),
            build: run.build.clone(),
            signature: coordinator.signature.clone(),
            game: run.spec.game.to_string(),
            players: run.spec.players.iter().map(|player| player.name.clone()).collect(),
            seed: run.spec.seed,
            bouts: run.ledger.total(),
            committed: committed.bouts,
            failed: committed.failed,
            games: committed.games,
            state: run.state,
            submitted_us: run.submitted_us,
            abandoned: run.abandoned,
            deciding_bout: run.decided,
            priority: run.priority,
            voided: run.voided.iter().copied().collect(),
            tune: run.schedule.tuning().map(Tuning::manifest),
        }
    });
    if let Some(manifest) = manifest {
        let text = serde_json::to_string_pretty(&manifest).expect("a manifest is plain data");
        coordinator.dataset.put_manifest(id, text + "\n").await?;
    }
    Ok(())
}
