//! Recovery: restores the state of an earlier process from the store and the dataset.
//!
//! A state that is older than its dataset first catches up with it, see [`newer_dataset`].

pub(crate) mod consistency;
mod newer_dataset;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use agon_arena::{Spec, SpecSource, known_answers};
use agon_schedule::{RunState, Schedule, run_id};
use tracing::{info, warn};

use crate::audit::{AuditKind, Entry};
use crate::data::{DataFolder, STATE};
use crate::dataset::{Dataset, RunParts};
use crate::durable::runs::{Decide, Move};
use crate::durable::{Durable, Event, Run, stored_totals};
use crate::export::ExportError;
use crate::receipt::NewBout;
use crate::state::{Coordinator, Recovery};
use crate::store::{Reader, ReplicaDigest, Store, StoreError, StoredRun};
use crate::{Config, CoordinatorError};

/// Opens store and dataset, and restores the state of an earlier process.
pub(crate) async fn recover(
    config: &Config,
    folder: &DataFolder,
) -> Result<Arc<Coordinator>, CoordinatorError> {
    restore(config, folder).await.map_err(|error| match error {
        CoordinatorError::Store(StoreError::Full)
        | CoordinatorError::Export(ExportError::Store(StoreError::Full)) => {
            CoordinatorError::NoSpace(folder.folder.clone())
        }
        error => error,
    })
}

async fn restore(config: &Config, folder: &DataFolder) -> Result<Arc<Coordinator>, CoordinatorError> {
    let mut store = Store::open(&folder.folder.join(STATE))?;
    // An inconsistent state is rejected before it changes the dataset.
    let mut unreadable = BTreeSet::new();
    let mut durable = load(&store.reader()?, &mut unreadable)?;
    let (dataset, epoch) = Dataset::open(&config.data, &mut store, config.take_over).await?;
    let parts = dataset.all_parts().await?;
    check_parts(&durable, parts, config.take_over)?;
    if newer_dataset::catch_up(&mut store, &dataset, &mut unreadable).await? {
        durable = load(&store.reader()?, &mut unreadable)?;
    }
    if config.only_requested {
        durable.trust_workers();
    }
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

/// Rejects a dataset that contradicts the state. With `take_over`, exported bouts may be missing.
fn check_parts(
    durable: &Durable,
    mut parts: BTreeMap<String, RunParts>,
    take_over: bool,
) -> Result<(), CoordinatorError> {
    for (id, run) in durable.runs() {
        let parts = parts.remove(id).unwrap_or_default();
        if let Some(problem) = consistency::check_parts(run, &parts) {
            return Err(damaged(id, &problem).into());
        }
        match consistency::missing_bouts(run, &parts) {
            Some(problem) if take_over => warn!(run = id, problem, "dataset incomplete"),
            Some(problem) => return Err(ExportError::Missing { run: id.clone(), problem }.into()),
            None => {}
        }
    }
    Ok(())
}

/// Returns the error for an inconsistent run.
fn damaged(id: &str, problem: &str) -> StoreError {
    StoreError::Damaged(format!("run {id}: {problem}; `agon verify --state` shows all problems"))
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
        match (load_run(reader, &mut durable, stored)?, durable.run(&id)) {
            (Ok(rows), Some(run)) => {
                if let Some(problem) = consistency::check_state(run, rows).first() {
                    return Err(damaged(&id, problem));
                }
            }
            (Ok(_), None) => {}
            (Err(reason), _) => {
                warn!(run = id, reason, "run unreadable");
                unreadable.insert(id);
            }
        }
    }
    for (worker, reason) in reader.quarantined()? {
        durable.apply(&mut Event::Quarantined { worker, reason });
    }
    for (credential, confirmed) in reader.credentials()? {
        durable.restore_credential(&credential, confirmed);
    }
    for (worker, credential) in reader.workers()? {
        durable.apply(&mut Event::WorkerSeen { worker, credential });
    }
    for conviction in reader.convictions()? {
        durable.apply(&mut Event::Convicted(conviction));
    }
    for worker in reader.holders()? {
        durable.apply(&mut Event::LeaseHolderAdded { worker });
    }
    for ReplicaDigest { key, opinion } in reader.replica_digests()? {
        durable.restore_opinion(key, opinion);
    }
    Ok(durable)
}

/// Reads a run. Returns the number of its bouts in the file. The inner error is for a spec that this build cannot read.
pub(crate) fn load_run(
    reader: &Reader,
    durable: &mut Durable,
    stored: StoredRun,
) -> Result<Result<u64, String>, StoreError> {
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
    let rows = reader.bouts(&id)?;
    let count = rows.len() as u64;
    for row in rows {
        let bout = row.bout;
        let bout = NewBout::restored(&id, row)
            .ok_or_else(|| StoreError::Damaged(format!("bout {bout} of {id} is unreadable")))?;
        durable.apply(&mut Event::BoutCommitted(Box::new(bout)));
    }
    if let Some((first, last)) = reader.open_part(&id)? {
        durable.apply(&mut Event::PartAssigned { run: id.clone(), first, last });
    }
    if let Some(run) = durable.run_mut(&id) {
        run.begin_session();
    }
    Ok(Ok(count))
}
