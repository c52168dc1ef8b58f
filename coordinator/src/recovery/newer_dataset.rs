//! Catching up with a newer dataset: a state restored from a backup takes over what the dataset has beyond it.
//!
//! Bouts in the dataset are final and not replayed. Parts are exported in bout order, so bouts below the end of a part
//! that have no rows failed or, in a run that ended early, were never played. Bouts committed after the backup and not
//! exported are lost and replayed; moves of such bouts whose games were not written yet are removed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use agon_arena::Spec;
use agon_records::{BoutColumns, BoutRows};
use agon_schedule::{RunManifest, RunState};
use agon_storage::summarise;
use tracing::warn;

use crate::audit::{AuditKind, Entry};
use crate::dataset::Dataset;
use crate::durable::runs::{FoldRules, fold, stored_cells, unfold};
use crate::durable::{Event, stored_totals};
use crate::export::ExportError;
use crate::store::{Reader, Store, StoredRun};

/// Adds to the store what only the dataset has, and returns whether that is anything. Adds the runs that this build cannot
/// read to `unreadable`; their ids stay taken.
pub(super) async fn catch_up(
    store: &mut Store,
    dataset: &Dataset,
    unreadable: &mut BTreeSet<String>,
) -> Result<bool, ExportError> {
    let reader = store.reader()?;
    let stored = reader.runs()?;
    let mut known: BTreeMap<String, StoredRun> =
        stored.into_iter().map(|run| (run.id.clone(), run)).collect();
    let mut is_newer = false;
    for (id, text) in dataset.read_manifests().await? {
        let stored = known.remove(&id);
        match read_manifest(&text) {
            Ok((manifest, spec)) => {
                let events = catch_up_run(&reader, dataset, &id, stored, &manifest, &spec).await?;
                is_newer |= !events.is_empty();
                store.write(&events)?;
            }
            Err(reason) => {
                warn!(run = id, reason, "manifest unreadable");
                if stored.is_none() {
                    unreadable.insert(id);
                }
            }
        }
    }
    Ok(is_newer)
}

/// Reads the manifest of a run and its spec.
fn read_manifest(text: &[u8]) -> Result<(RunManifest, Arc<Spec>), String> {
    let manifest: RunManifest = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    let spec = manifest.spec().map_err(|error| error.to_string())?;
    Ok((manifest, Arc::new(spec)))
}

/// Returns the events that add to a run what only the dataset has.
async fn catch_up_run(
    reader: &Reader,
    dataset: &Dataset,
    id: &str,
    stored: Option<StoredRun>,
    manifest: &RunManifest,
    spec: &Arc<Spec>,
) -> Result<Vec<Event>, ExportError> {
    let is_new = stored.is_none();
    let run = stored.unwrap_or_else(|| StoredRun {
        id: id.to_string(),
        text: manifest.source.text.clone(),
        files: serde_json::to_string(&manifest.source.files).expect("a map of strings is valid JSON"),
        state: Some(manifest.state).filter(|state| state.is_open()).unwrap_or_default(),
        submitted_us: manifest.submitted_us,
        signature: manifest.signature.clone(),
        priority: manifest.priority,
        build: manifest.build.clone(),
        ..StoredRun::default()
    });
    // A verdict may have been withdrawn since.
    let may_end = |state: RunState| {
        run.state.is_open() || (run.state == RunState::Decided && state == RunState::Cancelled)
    };
    let ended = Some(manifest.state).filter(|state| !state.is_open() && may_end(*state));
    let known: BTreeSet<u64> = reader.voided(id)?.into_iter().collect();
    let voided: BTreeSet<u64> =
        manifest.voided.iter().copied().filter(|bout| !known.contains(bout)).collect();
    // A run that has ended and is exported can only have new voids.
    let parts = if run.state.is_open() || run.exported < manifest.bouts {
        newer_parts(reader, dataset, &run).await?
    } else {
        Vec::new()
    };
    if !is_new && ended.is_none() && voided.is_empty() && parts.is_empty() {
        return Ok(Vec::new());
    }
    let mut events = Vec::new();
    if is_new {
        events.push(Event::RunAdded { stored: Box::new(run.clone()), run: None });
    }
    if let Some(bouts) = manifest.abandoned.checked_sub(run.abandoned) {
        events.push(Event::LeasesExpired { run: id.to_string(), bouts });
    }
    let mut totals = stored_totals(&run).unwrap_or_default();
    let before = totals.bouts;
    let decided = manifest.deciding_bout.or(run.decided);
    let how = FoldRules { spec, decided };
    let mut exported = run.exported;
    // 1. Fold the parts that the state does not know.
    for (first, last) in parts {
        let rows = dataset.rows(id, first, last).await?;
        let mut cells = BTreeMap::new();
        for bout in exported..=last {
            match rows.get(&bout) {
                Some(rows) => {
                    let summary = summarise(spec, &BoutColumns::from(rows));
                    fold(&mut totals, &mut cells, &how, bout, &worker(rows), Some(&summary));
                }
                None if ended.unwrap_or(run.state).has_no_holes() => {
                    fold(&mut totals, &mut cells, &how, bout, "", None);
                }
                None => {}
            }
        }
        exported = last + 1;
        let (totals, cells) = (totals.clone(), stored_cells(cells));
        events.push(Event::PartWritten { run: id.to_string(), exported, totals, cells });
    }
    let taken = totals.bouts.saturating_sub(before);
    // 2. Remove the voided bouts.
    let mut void = Vec::new();
    for (bout, summary) in
        dataset.bouts(spec, id, |bout, _| bout < exported && voided.contains(&bout)).await?
    {
        unfold(&mut totals, &how, bout, &summary);
        void.push(bout);
    }
    let voids = void.len();
    events.push(Event::Voided {
        run: id.to_string(),
        worker: String::new(),
        replayed: Vec::new(),
        voided: void,
        totals: totals.clone(),
    });
    // 3. End the run. If it ended early, only the number of its failed bouts is known. A run whose last parts are
    // missing is not done: their bouts are played again.
    let failed = manifest.failed.saturating_sub(totals.failed);
    let done = totals.bouts + failed + (known.len() + voids) as u64;
    if let Some(state) = ended.filter(|state| !state.has_no_holes() || done == manifest.bouts) {
        for _ in 0..failed {
            totals.add_failed();
        }
        if state.has_no_holes() {
            exported = manifest.bouts;
        }
        events.push(Event::PartWritten { run: id.to_string(), exported, totals, cells: Vec::new() });
        events.push(Event::RunStateChanged {
            run: id.to_string(),
            to: state,
            decided: manifest.deciding_bout,
        });
    }
    let text = format!(
        "the dataset was ahead of the state: {taken} bouts were taken from it, and {voids} of its bouts are void"
    );
    warn!(run = id, bouts = taken, voided = voids, "run caught up with dataset");
    events.push(Event::Audited(Entry::new(AuditKind::Adopted, text).run(id)));
    Ok(events)
}

/// Returns the parts that the state does not know, after removing moves whose games were never written.
async fn newer_parts(
    reader: &Reader,
    dataset: &Dataset,
    run: &StoredRun,
) -> Result<Vec<(u64, u64)>, ExportError> {
    let unfinished = reader.open_part(&run.id)?;
    let dropped = dataset.drop_unfinished(&run.id, unfinished).await?;
    if dropped > 0 {
        warn!(run = run.id, parts = dropped, "removed moves without games; their bouts are replayed");
    }
    let finished = dataset.finished_parts(&run.id).await?.into_iter();
    let newer: Vec<(u64, u64)> = finished.filter(|(first, _)| *first >= run.exported).collect();
    // The exporter finishes a part that the earlier process was writing.
    Ok(if newer[..] == *unfinished.as_slice() { Vec::new() } else { newer })
}

/// Returns the worker that played a bout.
fn worker(rows: &BoutRows) -> String {
    rows.games.first().map(|game| game.worker.clone()).unwrap_or_default()
}
