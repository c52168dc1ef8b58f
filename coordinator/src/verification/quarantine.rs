//! Quarantine and drain of workers on behalf of an operator.

use agon_proto::v1::{self, coordinator_message::Kind};
use agon_transport::Caller;
use tonic::Status;

use crate::audit::{AuditKind, Entry, operator_name};
use crate::durable::workers::{Quarantine, Trust};
use crate::state::Coordinator;

impl Coordinator {
    /// Quarantines a worker for `reason`.
    pub(crate) async fn quarantine_by_operator(
        &self,
        worker: &str,
        reason: &str,
        operator: &Caller,
    ) -> Result<(), Status> {
        {
            let state = self.lock();
            if !state.workers.contains_key(worker) && !state.durable.quarantine().contains_key(worker) {
                return Err(unknown_worker(worker));
            }
        }
        let by = format!("by {}", operator_name(operator));
        let reason = if reason.is_empty() { by } else { format!("{by}: {reason}") };
        let command = Quarantine { worker: worker.to_string(), reason };
        self.execute(command).await.map_err(|error| Status::unavailable(error.to_string()))
    }

    /// Ends the quarantine of a worker.
    pub(crate) async fn trust_by_operator(&self, worker: &str, operator: &Caller) -> Result<(), Status> {
        let command = Trust { worker: worker.to_string(), operator: operator_name(operator) };
        match self.execute(command).await {
            Ok(true) => Ok(()),
            Ok(false) if !self.lock().workers.contains_key(worker) => Err(unknown_worker(worker)),
            Ok(false) => Err(Status::failed_precondition(format!("`{worker}` is not in quarantine"))),
            Err(error) => Err(Status::unavailable(error.to_string())),
        }
    }

    /// Asks a worker to finish its bouts and exit.
    pub(crate) fn drain_worker(&self, worker: &str, operator: &Caller) -> Result<(), String> {
        let mut guard = self.lock();
        match guard.workers.get_mut(worker) {
            Some(known) if known.queue.is_some() => known.room = 0,
            Some(_) => return Err(format!("`{worker}` is not connected")),
            None => return Err(format!("no worker is called `{worker}`; `agon workers` lists them")),
        }
        let reason = format!("drained by {}", operator_name(operator));
        guard.send(worker, Kind::Drain(v1::Drain { reason: reason.clone() }));
        drop(guard);
        self.audit(Entry::new(AuditKind::Drained, reason).worker(worker));
        Ok(())
    }
}

fn unknown_worker(worker: &str) -> Status {
    Status::failed_precondition(format!("no worker is called `{worker}`; `agon workers` lists them"))
}
