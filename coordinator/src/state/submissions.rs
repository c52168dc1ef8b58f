//! Bouts arrive: what becomes of them, and what follows from it.

use std::sync::{Arc, Mutex};

use agon_arena::{Arena, Spec};
use agon_proto::{Bout as LeasedBout, Lease as WireLease};
use agon_stats::sprt::Decision;
use agon_transport::Caller;
use tonic::Status;
use tracing::warn;

use super::run::Outlier;
use super::{Coordinator, key_of, leased_bout};
use crate::audit::{AuditKind, Entry};
use crate::leases::Token;
use crate::store::Opinion;
use crate::verification::replication::{Digest, Finding};
use agon_schedule::Summary;

/// What becomes of a bout that arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrival {
    /// It should be stored.
    Store,
    /// It was asked for to check another worker, and is counted already.
    Check,
    /// It is too late: somebody else plays it anew, and the run is timed.
    Stale,
    /// Its run takes no more.
    NotWanted,
}

impl Coordinator {
    /// What a worker needs to send a bout, if the run is known and has it.
    pub(crate) fn leased_bout(
        &self,
        lease: &WireLease,
    ) -> Option<(Arc<Spec>, LeasedBout, Arc<Mutex<Arena>>)> {
        self.with_run(&lease.run, |run| {
            if lease.bout >= run.ledger.total() {
                return None;
            }
            let bout = run.schedule.bout(lease.bout).ok()?;
            let token = Token { epoch: lease.epoch, sequence: lease.sequence };
            Some((Arc::clone(&run.spec), leased_bout(&lease.run, &bout, token), Arc::clone(&run.referee)))
        })?
    }

    /// Why a caller may not send what is played under this name, or of this lease where there is no name yet.
    pub(crate) fn authorise(
        &self,
        lease: &WireLease,
        worker: Option<&str>,
        caller: &Caller,
    ) -> Option<Status> {
        let (key, token) = key_of(lease);
        let state = self.lock();
        let holder = state
            .leases
            .lease(&key)
            .filter(|leased| leased.token == token)
            .map(|leased| leased.worker.as_str());
        let name = worker.or(holder)?;
        if let Some(owner) = state.owned_by_another(name, caller) {
            return Some(Status::permission_denied(format!(
                "{lease} is played by `{name}`, which came with {owner}, and this is {caller}"
            )));
        }
        // A worker that comes back says hello again, and sends its bouts after that.
        let known = state.workers.get(name).is_some_and(|known| known.caller == *caller);
        (!known).then(|| {
            Status::aborted(format!(
                "no worker called `{name}` has said hello here with {caller}; a session comes first"
            ))
        })
    }

    /// Why a worker cannot have been leased what it sends, where that is certain.
    pub(crate) fn lease_fault(&self, lease: &WireLease, worker: &str) -> Option<String> {
        let (key, token) = key_of(lease);
        let state = self.lock();
        let total = state.runs.get(&key.run)?.ledger.total();
        if key.bout >= total {
            return Some(format!("{lease} cannot be: the run has the bouts 0 to {}", total - 1));
        }
        match state.leases.lease(&key).filter(|leased| leased.token == token) {
            Some(leased) if leased.worker != worker => Some(format!("{lease} was leased to another worker")),
            None if !state.leases.may_have_given(token) => Some(format!("{lease} was never leased")),
            _ => None,
        }
    }

    /// What to do with a bout that arrived whole and sound.
    pub(crate) fn arrival(&self, lease: &WireLease) -> Arrival {
        let (key, token) = key_of(lease);
        let state = self.lock();
        let Some(run) = state.runs.get(&key.run) else { return Arrival::NotWanted };
        let held = state.leases.lease(&key);
        if run.ledger.is_done(key.bout) {
            let asked = state.checks.has(&key) && held.is_some_and(|held| held.token == token);
            // What nobody asked for is compared with what is stored.
            return if asked { Arrival::Check } else { Arrival::Store };
        }
        if !run.state.is_open() {
            return Arrival::NotWanted;
        }
        let lent_anew = held.is_some_and(|held| held.token != token);
        if lent_anew && !run.spec.is_repeatable() { Arrival::Stale } else { Arrival::Store }
    }

    /// A bout that was asked for to check another worker. Whether it agrees.
    pub(crate) fn checked(&self, lease: &WireLease, worker: &str, digest: Digest) -> bool {
        let (key, _) = key_of(lease);
        let mut guard = self.lock();
        let state = &mut *guard;
        state.leases.release(&key);
        let finding = state.checks.answer(&key, worker, digest);
        match &finding {
            Finding::Unasked => {}
            Finding::Disputed { .. } => {
                self.store.note_opinion(Opinion { key: key.clone(), worker: worker.to_string(), digest });
            }
            Finding::Agrees { .. } | Finding::Outvoted { .. } | Finding::Inconclusive => {
                self.store.forget_opinions(&key);
            }
        }
        let Some(run) = state.runs.get_mut(&key.run) else { return true };
        run.checked += 1;
        match &finding {
            Finding::Unasked | Finding::Agrees { .. } => true,
            Finding::Disputed { first } => {
                run.disputed += 1;
                let text = format!(
                    "{worker} played it again and it differs from what {first} brought; a third decides"
                );
                self.audit(Entry::new(AuditKind::Disputed, text).worker(first).bout(&key));
                self.grant_all(state);
                false
            }
            Finding::Outvoted { worker: outvoted, counted } => {
                let text = if *counted {
                    format!(
                        "two other workers agree on another content; its bouts should be voided: agon data void {} --worker {outvoted}",
                        key.run
                    )
                } else {
                    "it said that a bout differs, and two other workers agree that it does not".to_string()
                };
                self.audit(Entry::new(AuditKind::Convicted, text.as_str()).worker(outvoted).bout(&key));
                self.quarantine(state, outvoted, &format!("bout {} of {}: {text}", key.bout, key.run));
                *outvoted != worker
            }
            Finding::Inconclusive => {
                let text = "three workers submitted three different contents";
                self.audit(Entry::new(AuditKind::Disputed, text).worker(worker).bout(&key));
                false
            }
        }
    }

    /// Whether another worker is to play a bout again that is about to be stored.
    pub(crate) fn is_to_check(&self, lease: &WireLease, worker: &str, digest: &Digest) -> bool {
        let (key, _) = key_of(lease);
        let state = self.lock();
        let repeatable = state.runs.get(&key.run).is_some_and(|run| run.spec.is_repeatable());
        repeatable && state.checks.wants(worker, &key, digest, self.secret)
    }

    /// Counts a bout that is stored; where there is a digest with its summary, another worker is to play it again, and the
    /// store knows. Of a test, whether it has decided.
    pub(crate) fn committed(
        &self,
        lease: &WireLease,
        worker: &str,
        counted: Option<(&Summary, Option<Digest>)>,
    ) -> Option<Decision> {
        let (key, _) = key_of(lease);
        let mut guard = self.lock();
        let state = &mut *guard;
        state.leases.release(&key);
        let run = state.runs.get_mut(&key.run)?;
        let blamed: Vec<String> = run.ledger.failed_at(key.bout).map(str::to_string).collect();
        if !run.ledger.finish(key.bout) {
            return None;
        }
        let decision = match counted {
            Some((summary, _)) => run.add(key.bout, worker, summary),
            None => run.add_failed(key.bout),
        };
        let more = run.open();
        let departing = run.compare_workers();
        if let Some((summary, to_check)) = counted {
            for name in &blamed {
                self.judge(state, name, |reputation| reputation.crashes += 1);
            }
            let (overshoot_us, moves) = summary.overshoot();
            self.metrics.committed(summary.games.len() as u64, moves);
            self.judge(state, worker, |reputation| {
                reputation.bouts += 1;
                reputation.games += summary.games.len() as u64;
                reputation.forfeits += summary.forfeits;
                reputation.overshoot_us += overshoot_us;
                reputation.moves += moves;
            });
            if let Some(digest) = to_check
                && let Some(let_go) = state.checks.add(key.clone(), worker, digest)
            {
                self.store.forget_opinions(&let_go);
            }
        }
        for Outlier { worker, reason, certain } in departing {
            let reason = format!("in {}: {reason}", key.run);
            if certain {
                self.quarantine(state, &worker, &reason);
            } else {
                // Chance does such things now and then; where bouts can be repeated, others tell.
                self.audit(Entry::new(AuditKind::Departs, reason).worker(&worker).bout(&key));
                state.checks.suspect(&worker);
            }
        }
        if more {
            self.grant_all(state);
        }
        drop(guard);
        self.export.notify_one();
        self.changed();
        decision
    }

    /// A worker could not play a bout. Whether enough have failed at it to give it up.
    pub(crate) fn failed(&self, lease: &WireLease, worker: &str, reason: &str) -> bool {
        warn!(run = lease.run, bout = lease.bout, worker, reason, "a bout failed");
        let (key, token) = key_of(lease);
        let mut guard = self.lock();
        let state = &mut *guard;
        // A failure of somebody who has it no more says nothing of the bout: whoever has it now may succeed.
        let Some(leased) = state.leases.lease(&key).filter(|leased| leased.token == token).cloned() else {
            return false;
        };
        let worker = leased.worker.as_str();
        let caller = state.workers.get(worker).map_or_else(Caller::anonymous, |known| known.caller.clone());
        self.audit(Entry::new(AuditKind::Failed, reason).worker(worker).bout(&key).caused_by(&caller));
        state.reclaim(&key, token);
        // A fleet with fewer workers than it takes to give a bout up gives it up when all of them have failed.
        let workers = state.workers.values().filter(|worker| worker.out.is_some()).count();
        let Some(run) = state.runs.get_mut(&key.run) else { return false };
        if run.ledger.is_done(key.bout) {
            // It was to check another, who could play it.
            self.judge(state, worker, |reputation| reputation.crashes += 1);
            return false;
        }
        let enough = run.ledger.fail(key.bout, worker) || run.ledger.failures(key.bout) >= workers;
        if enough {
            run.ledger.claim(key.bout);
        } else {
            self.grant_all(state);
        }
        enough
    }

    /// A worker sent what cannot be: what it holds goes to others, and it is given no more. Returns the whole sentence.
    pub(crate) fn reject(&self, lease: &WireLease, worker: &str, reason: &str) -> String {
        let (key, _) = key_of(lease);
        let mut guard = self.lock();
        let state = &mut *guard;
        let whole = format!("bout {} of {}: {reason}", key.bout, key.run);
        // Whoever names itself badly, or nobody that was ever here, cannot be set aside; and once is enough.
        if let Some(known) = state.workers.get_mut(worker) {
            known.refused += 1;
            if !state.quarantine.contains_key(worker) {
                let entry = Entry::new(AuditKind::Refused, reason).worker(worker).bout(&key);
                self.audit(entry.caused_by(&known.caller));
                self.quarantine(state, worker, &whole);
            }
        }
        whole
    }
}
