//! Who is given no more, by what it did or by an operator's word.

use agon_proto::v1::{self, coordinator_message::Kind};
use tracing::warn;

use super::{Hall, State, reference};
use crate::conduct::Conduct;
use crate::leases::BoutKey;

impl Hall {
    /// Adds to what is known of a worker, and sets it aside where that is enough.
    pub(super) fn judge(&self, state: &mut State, worker: &str, add: impl FnOnce(&mut Conduct)) {
        let Some(known) = state.workers.get_mut(worker) else { return };
        add(&mut known.conduct);
        if let Some(fault) = known.conduct.fault() {
            self.quarantine(state, worker, &fault);
        }
    }

    /// Gives a worker nothing more, from now on and through restarts, until somebody trusts it again.
    pub(super) fn quarantine(&self, state: &mut State, worker: &str, reason: &str) {
        if state.quarantine.contains_key(worker) {
            return;
        }
        warn!(worker, reason, "a worker is set aside");
        state.quarantine.insert(worker.to_string(), reason.to_string());
        self.store.note_quarantine(worker, Some(reason));
        self.note("quarantined", worker, None, reason);
        let keys: Vec<BoutKey> = state.leases.of_worker(worker).map(|(key, _)| key.clone()).collect();
        let mut revoked = Vec::new();
        for key in keys {
            if let Some(lease) = state.leases.lease(&key) {
                let token = lease.token;
                state.take_back(&key, token);
                revoked.push(reference(&key, token));
            }
        }
        let revoke = v1::Revoke { leases: revoked, reason: format!("the worker is set aside: {reason}") };
        state.send(worker, Kind::Revoke(revoke));
        self.grant_all(state);
        self.changed();
    }

    /// An operator sets a worker aside, or trusts it again.
    pub(crate) fn set_quarantine(&self, worker: &str, reason: Option<&str>) -> Result<(), String> {
        let mut guard = self.lock();
        let state = &mut *guard;
        if !state.workers.contains_key(worker) && !state.quarantine.contains_key(worker) {
            return Err(format!("no worker is called `{worker}`; `agon workers` lists them"));
        }
        match reason {
            Some(reason) => self.quarantine(state, worker, reason),
            None => {
                if state.quarantine.remove(worker).is_none() {
                    return Err(format!("`{worker}` is not in quarantine"));
                }
                if let Some(known) = state.workers.get_mut(worker) {
                    known.conduct = Conduct::default();
                }
                self.store.note_quarantine(worker, None);
                self.note("trusted", worker, None, "an operator trusts it again");
                self.grant_all(state);
                self.changed();
            }
        }
        Ok(())
    }

    /// Asks a worker to finish and end.
    pub(crate) fn drain_worker(&self, worker: &str) -> Result<(), String> {
        let mut guard = self.lock();
        match guard.workers.get_mut(worker) {
            Some(known) if known.out.is_some() => known.room = 0,
            Some(_) => return Err(format!("`{worker}` is not connected")),
            None => return Err(format!("no worker is called `{worker}`; `agon workers` lists them")),
        }
        let drain = v1::Drain { reason: "an operator asked it to end".to_string() };
        guard.send(worker, Kind::Drain(drain));
        Ok(())
    }
}
