//! Recovery: restores the state of an earlier process from the store and the dataset.
//!
//! A state that is older than its dataset first catches up with it, see [`newer_dataset`].

mod newer_dataset;

use std::sync::Arc;

use agon_arena::{Spec, SpecSource};
use agon_schedule::{RunState, Schedule, run_id};
use tracing::{info, warn};

use crate::audit::{AuditKind, Entry};
use crate::data::{DataFolder, STATE};
use crate::dataset::Dataset;
use crate::standings::read_summary;
use crate::state::{Coordinator, OPEN, PersistedRun, Recovery, Run, stored_totals};
use crate::store::{Store, StoreError, StoredRun};
use crate::{Config, CoordinatorError};

/// Opens store and dataset, and restores the state of an earlier process.
pub(crate) async fn recover(
    config: &Config,
    folder: &DataFolder,
) -> Result<Arc<Coordinator>, CoordinatorError> {
    let store = Store::open(&folder.folder.join(STATE))?;
    let (dataset, epoch) = Dataset::open(&config.data, &store, config.take_over).await?;
    let quarantine = store.quarantined().await?.into_iter().collect();
    let recovery = Recovery { epoch, quarantine, only_requested: config.only_requested };
    let mut coordinator =
        Coordinator::new(store, dataset, config.timing.clone(), config.data.to_string(), recovery);
    coordinator.unreadable = newer_dataset::catch_up(&coordinator).await?;
    let stored = coordinator.store.runs().await?;
    let coordinator = Arc::new(coordinator);
    for run in stored {
        resume_run(&coordinator, run).await?;
    }
    coordinator.await_workers(coordinator.store.holders().await?);
    coordinator.restore_replicas(coordinator.store.replica_digests().await?);
    Ok(coordinator)
}

/// Resumes a stored run.
async fn resume_run(coordinator: &Arc<Coordinator>, stored: StoredRun) -> Result<(), CoordinatorError> {
    let (id, mut state) = (stored.id.clone(), stored.state);
    let mut run = match load_run(&coordinator.store, stored).await? {
        Ok(run) => run,
        Err(reason) => {
            warn!(run = id, reason, "run unreadable");
            return Ok(());
        }
    };
    let decided = run.decided;
    // Games of builds that search differently are only mixed if an operator asks for it.
    if state == RunState::Running && run.signature != coordinator.signature {
        state = RunState::Paused;
        run.state = state;
        coordinator.store.move_state(id.clone(), &[RunState::Running], state, None).await?;
        let reason = format!(
            "started by a build that searches differently (signature {}, this build has {}); finish it with that build, \
             cancel it, or resume it to mix both builds in one run",
            run.signature, coordinator.signature
        );
        warn!(run = id, reason, "run paused");
        coordinator.audit(Entry::new(AuditKind::Paused, reason).run(&id));
    }
    info!(run = id, bouts = run.ledger.done(), state = state.name(), "run resumed");
    coordinator.add_run(&id, run);
    coordinator.spawn_proposal(&id);
    // The earlier process stopped between reaching this decision and storing it.
    if let (true, Some(bout)) = (state.is_open(), decided) {
        coordinator.store.move_state(id.clone(), OPEN, RunState::Decided, Some(bout)).await?;
        coordinator.end_run(&id, RunState::Decided, Some(bout), "the test has decided");
    }
    Ok(())
}

/// Reads a run from the store. The inner error is for a spec that this build cannot read.
pub(crate) async fn load_run(store: &Store, stored: StoredRun) -> Result<Result<Run, String>, StoreError> {
    let id = stored.id.clone();
    let damaged = |bout| StoreError::Damaged(format!("bout {bout} of {id} is unreadable"));
    let mut bouts = Vec::new();
    for row in store.summaries(id.clone(), 0, u64::MAX).await? {
        let summary = read_summary(&row);
        if summary.is_none() && !row.failed {
            return Err(damaged(row.bout));
        }
        bouts.push((row.bout, row.worker, summary));
    }
    let cells = store.cells(id.clone()).await?;
    let voided = store.voided(id.clone()).await?.into_iter().collect();
    let files = serde_json::from_str(&stored.files).unwrap_or_default();
    let source = SpecSource { text: stored.text.clone(), files };
    let digest = run_id::digest(&source).unwrap_or_default();
    if stored_totals(&stored).is_none() {
        return Err(StoreError::Damaged(format!("the totals of {id} are unreadable")));
    }
    if digest.is_empty() || !id.contains(&format!("-{}", &digest[..8])) {
        return Err(StoreError::Damaged(format!("the stored spec of {id} does not match its id")));
    }
    let persisted = PersistedRun { stored, bouts, cells, voided };
    let run = Spec::parse(&source)
        .map_err(|error| error.to_string())
        .and_then(|spec| Schedule::resume(spec).map_err(|error| error.to_string()))
        .and_then(|schedule| Run::new(source, schedule, persisted).map_err(|error| error.to_string()));
    Ok(run)
}
