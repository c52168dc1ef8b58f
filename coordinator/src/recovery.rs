//! Recovery: restores the state of an earlier process from the store and the dataset.
//!
//! A state that is older than its dataset first catches up with it, see [`newer_dataset`].

mod newer_dataset;

use std::collections::BTreeSet;
use std::sync::Arc;

use agon_arena::{Spec, SpecSource, known_answers};
use agon_schedule::{RunState, Schedule, run_id};
use tracing::{info, warn};

use crate::audit::{AuditKind, Entry};
use crate::data::{DataFolder, STATE};
use crate::dataset::Dataset;
use crate::durable::runs::{Decide, Move};
use crate::durable::{Durable, Event, Run, stored_totals};
use crate::standings::decode_checked;
use crate::state::{Coordinator, Recovery};
use crate::store::{NewBout, Reader, ReplicaDigest, Store, StoreError, StoredBout, StoredRun};
use crate::{Config, CoordinatorError};

/// Opens store and dataset, and restores the state of an earlier process.
pub(crate) async fn recover(
    config: &Config,
    folder: &DataFolder,
) -> Result<Arc<Coordinator>, CoordinatorError> {
    let mut store = Store::open(&folder.folder.join(STATE))?;
    let (dataset, epoch) = Dataset::open(&config.data, &mut store, config.take_over).await?;
    let mut unreadable = newer_dataset::catch_up(&mut store, &dataset).await?;
    let durable = load(&store.reader()?, &mut unreadable)?;
    let recovery = Recovery {
        durable,
        signature: known_answers().signature,
        epoch,
        unreadable,
        only_requested: config.only_requested,
    };
    let (timing, data) = (config.timing.clone(), config.data.to_string());
    let coordinator = Coordinator::start(store, dataset, timing, data, recovery)?;
    for id in coordinator.run_ids() {
        resume_run(&coordinator, id).await?;
    }
    coordinator.await_workers();
    coordinator.computations.notify_one();
    Ok(coordinator)
}

/// Resumes a run.
async fn resume_run(coordinator: &Coordinator, id: String) -> Result<(), StoreError> {
    let values = coordinator
        .with_run(&id, |run| (run.record().state, run.record().signature.clone(), run.ledger.done()));
    let Some((state, signature, bouts)) = values else { return Ok(()) };
    info!(run = id, bouts, state = state.name(), "run resumed");
    // Games of builds that search differently are only mixed if an operator asks for it.
    if state == RunState::Running && signature != coordinator.signature {
        let reason = format!(
            "started by a build that searches differently (signature {signature}, this build has {}); finish it with that \
             build, cancel it, or resume it to mix both builds in one run",
            coordinator.signature
        );
        warn!(run = id, reason, "run paused");
        let entry = Some(Entry::new(AuditKind::Paused, reason).run(&id));
        let pause = Move { run: id.clone(), from: &[RunState::Running], to: RunState::Paused, entry };
        let _ = coordinator.execute(pause).await?;
    }
    // The earlier process may have stopped between reaching a decision and storing it.
    coordinator.execute(Decide { run: id }).await
}

/// Reads the durable state. Adds the runs that this build cannot read to `unreadable`.
pub(crate) fn load(reader: &Reader, unreadable: &mut BTreeSet<String>) -> Result<Durable, StoreError> {
    let mut durable = Durable::default();
    for stored in reader.runs()? {
        let id = stored.id.clone();
        if let Err(reason) = load_run(reader, &mut durable, stored)? {
            warn!(run = id, reason, "run unreadable");
            unreadable.insert(id);
        }
    }
    for (worker, reason) in reader.quarantined()? {
        durable.apply(&mut Event::Quarantined { worker, reason });
    }
    for worker in reader.holders()? {
        durable.apply(&mut Event::HolderAdded { worker });
    }
    for ReplicaDigest { key, worker, digest } in reader.replica_digests()? {
        if durable.run(&key.run).is_some() {
            durable.replication_mut().restore(key, &worker, digest);
        }
    }
    Ok(durable)
}

/// Reads a run. The inner error is for a spec that this build cannot read.
pub(crate) fn load_run(
    reader: &Reader,
    durable: &mut Durable,
    stored: StoredRun,
) -> Result<Result<(), String>, StoreError> {
    let id = stored.id.clone();
    let files = serde_json::from_str(&stored.files).unwrap_or_default();
    let source = SpecSource { text: stored.text.clone(), files };
    let digest = run_id::digest(&source).unwrap_or_default();
    if stored_totals(&stored).is_none() {
        return Err(StoreError::Damaged(format!("the totals of {id} are unreadable")));
    }
    if digest.is_empty() || !id.contains(&format!("-{}", &digest[..8])) {
        return Err(StoreError::Damaged(format!("the stored spec of {id} does not match its id")));
    }
    let cells = reader.cells(&id)?;
    let voided = reader.voided(&id)?.into_iter().collect();
    let run = Spec::parse(&source)
        .map_err(|error| error.to_string())
        .and_then(|spec| Schedule::resume(spec).map_err(|error| error.to_string()))
        .and_then(|schedule| {
            Run::new(source, schedule, &stored, cells, voided).map_err(|error| error.to_string())
        });
    let run = match run {
        Ok(run) => Some(Box::new(run)),
        Err(reason) => return Ok(Err(reason)),
    };
    durable.apply(&mut Event::RunAdded { stored: Box::new(stored), run });
    for row in reader.bouts(&id)? {
        let bout = row.bout;
        let bout = new_bout(&id, row)
            .ok_or_else(|| StoreError::Damaged(format!("bout {bout} of {id} is unreadable")))?;
        durable.apply(&mut Event::BoutCommitted(Box::new(bout)));
    }
    if let Some((first, last)) = reader.open_part(&id)? {
        durable.apply(&mut Event::PartAssigned { run: id.clone(), first, last });
    }
    if let Some(run) = durable.run_mut(&id) {
        run.begin_session();
    }
    Ok(Ok(()))
}

/// Returns a stored bout as it was committed, without its plies. `None` if it is damaged.
fn new_bout(run: &str, row: StoredBout) -> Option<NewBout> {
    let summary = if row.failed { None } else { Some(decode_checked(&row.summary)?) };
    let StoredBout { bout, worker, digest, .. } = row;
    Some(NewBout { run: run.to_string(), bout, worker, digest, summary, ..NewBout::default() })
}
