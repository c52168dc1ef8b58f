//! Quarantine and drain of workers, by their behaviour or by an operator.

use agon_proto::v1::{self, coordinator_message::Kind};
use agon_transport::Caller;
use tracing::warn;

use crate::audit::{AuditKind, Entry, operator_name};
use crate::leases::BoutKey;
use crate::state::{Coordinator, State, lease_ref};
use crate::verification::reputation::Reputation;

/// The maximum length of a worker's reasons; further ones are dropped.
const MAX_REASONS_BYTES: usize = 2000;

impl Coordinator {
    /// Updates the reputation of a worker and quarantines it if it exceeds a limit.
    pub(crate) fn update_reputation(
        &self,
        state: &mut State,
        worker: &str,
        add: impl FnOnce(&mut Reputation),
    ) {
        let Some(known) = state.workers.get_mut(worker) else { return };
        add(&mut known.reputation);
        if let Some(fault) = known.reputation.fault() {
            self.quarantine(state, worker, &fault);
        }
    }

    /// Stops grants to a worker, also after a restart, until an operator trusts it again. A further reason is added to those
    /// known.
    pub(crate) fn quarantine(&self, state: &mut State, worker: &str, reason: &str) {
        let reasons = match state.quarantine.get(worker) {
            Some(known) if known.contains(reason) || known.len() + reason.len() > MAX_REASONS_BYTES => return,
            Some(known) => format!("{known}; {reason}"),
            None => reason.to_string(),
        };
        warn!(worker, reason, "worker quarantined");
        self.store.set_quarantine(worker, Some(&reasons));
        state.quarantine.insert(worker.to_string(), reasons);
        self.audit(Entry::new(AuditKind::Quarantined, reason).worker(worker));
        let keys: Vec<BoutKey> = state.leases.of_worker(worker).map(|(key, _)| key.clone()).collect();
        let mut revoked = Vec::new();
        for key in keys {
            if let Some(lease) = state.leases.lease(&key) {
                let token = lease.token;
                state.reclaim(&key, token);
                revoked.push(lease_ref(&key, token));
            }
        }
        let revoke = v1::Revoke { leases: revoked, reason: format!("worker quarantined: {reason}") };
        state.send(worker, Kind::Revoke(revoke));
        self.grant_all(state);
        self.changed();
    }

    /// Quarantines a worker for `reason`, or trusts it again, on behalf of an operator.
    pub(crate) fn set_quarantine(
        &self,
        worker: &str,
        reason: Option<&str>,
        operator: &Caller,
    ) -> Result<(), String> {
        let mut guard = self.lock();
        let state = &mut *guard;
        if !state.workers.contains_key(worker) && !state.quarantine.contains_key(worker) {
            return Err(format!("no worker is called `{worker}`; `agon workers` lists them"));
        }
        match reason {
            Some(reason) => {
                let by = format!("quarantined by {}", operator_name(operator));
                let reason = if reason.is_empty() { by } else { format!("{by}: {reason}") };
                self.quarantine(state, worker, &reason);
            }
            None => {
                if state.quarantine.remove(worker).is_none() {
                    return Err(format!("`{worker}` is not in quarantine"));
                }
                if let Some(known) = state.workers.get_mut(worker) {
                    known.reputation.pardon();
                }
                self.store.set_quarantine(worker, None);
                let text = format!("trusted by {}", operator_name(operator));
                self.audit(Entry::new(AuditKind::Trusted, text).worker(worker));
                self.grant_all(state);
                self.changed();
            }
        }
        Ok(())
    }

    /// Asks a worker to finish its bouts and exit.
    pub(crate) fn drain_worker(&self, worker: &str, operator: &Caller) -> Result<(), String> {
        let mut guard = self.lock();
        match guard.workers.get_mut(worker) {
            Some(known) if known.queue.is_some() => known.room = 0,
            Some(_) => return Err(format!("`{worker}` is not connected")),
            None => return Err(format!("no worker is called `{worker}`; `agon workers` lists them")),
        }
        let drain = v1::Drain { reason: format!("drained by {}", operator_name(operator)) };
        guard.send(worker, Kind::Drain(drain));
        Ok(())
    }
}
