//! The durable state in memory: what the state file says, and nothing else.
//!
//! A [`Command`] is judged against it by a pure function, which returns events and an answer. The owner of the state
//! (`owner.rs`) writes the events of a group of commands in one transaction, and only then applies them:
//! [`Durable::apply`] is the only code that changes this state, also at the start, so that a restart gives the same state.
//! Sessions and leases are elsewhere: they are lost with the process.

pub(crate) mod bouts;
mod event;
pub mod ledger;
mod run;
pub(crate) mod runs;
#[cfg(test)]
mod tests;
pub(crate) mod workers;

use std::collections::{BTreeMap, BTreeSet};

pub(crate) use self::event::{Confirmation, Event};
pub(crate) use self::run::{KeptBout, Run, stored_totals};
use crate::leases::BoutKey;
use crate::verification::replication::{Opinion, Replication};

/// A change of the durable state, which its owner makes or rejects.
pub(crate) trait Command: Send + 'static {
    /// What the caller gets when the events are on disk.
    type Answer: Send + 'static;

    /// Returns what the command reads and changes.
    fn scope(&self) -> Scope;

    /// Judges the command. Without events nothing changes.
    fn decide(self, durable: &Durable) -> (Vec<Event>, Self::Answer);
}

/// Writes events whatever the state is. Without events it changes nothing, and its answer follows all earlier commands.
pub(crate) struct Append(pub(crate) Vec<Event>);

impl Command for Append {
    type Answer = ();

    fn scope(&self) -> Scope {
        Scope::Addition
    }

    fn decide(self, _durable: &Durable) -> (Vec<Event>, ()) {
        (self.0, ())
    }
}

/// What a command reads and changes. Commands whose scopes overlap are in different groups, so that each is judged by the
/// state that the other left.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Scope {
    /// Only adds something, in any order.
    Addition,
    /// One bout.
    Bout(BoutKey),
    /// A run with all its bouts.
    Run(String),
    /// A worker.
    Worker(String),
    /// Everything.
    Everything,
}

/// The durable state.
#[derive(Default)]
pub(crate) struct Durable {
    runs: BTreeMap<String, Run>,
    /// Run ids in order of submission.
    order: Vec<String>,
    /// The ids of the open runs, in the same order.
    open: Vec<String>,
    /// Quarantined workers and the reasons.
    quarantine: BTreeMap<String, String>,
    /// Workers that may hold leases.
    holders: BTreeSet<String>,
    replication: Replication,
    /// The names of workers by credential.
    names: BTreeMap<String, BTreeSet<String>>,
    /// Convicted workers whose bouts are not voided yet.
    convictions: BTreeSet<Conviction>,
    /// Whether verdicts wait for no replica: all workers are the operator's own.
    trusts_workers: bool,
}

/// A worker whose committed bout two others contradicted.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Conviction {
    pub(crate) worker: String,
    /// Its credential; empty if it has none.
    pub(crate) credential: String,
}

impl Durable {
    /// Applies an event that is on disk.
    pub(crate) fn apply(&mut self, event: &mut Event) {
        match event {
            Event::RunAdded { stored, run } => {
                if let Some(run) = run.take() {
                    self.order.push(stored.id.clone());
                    if run.record().state.is_open() {
                        self.open.push(stored.id.clone());
                    }
                    self.runs.insert(stored.id.clone(), *run);
                }
            }
            Event::BoutCommitted(bout) => {
                let Some(run) = self.runs.get_mut(&bout.run) else { return };
                let kept = KeptBout {
                    worker: bout.worker.clone(),
                    digest: bout.digest,
                    summary: bout.summary.clone(),
                };
                run.keep(bout.bout, kept);
                if let Some(opinion) = bout.opinion().filter(|_| bout.needs_replica) {
                    let key = BoutKey { run: bout.run.clone(), bout: bout.bout };
                    self.replication.add(key, opinion, run.is_verified_test());
                }
            }
            Event::ReplicaReceived { replica, disputed } => {
                if let Some(run) = self.runs.get_mut(&replica.key.run) {
                    run.count_replica(*disputed);
                }
                if *disputed {
                    self.replication.dispute(&replica.key, replica.opinion.clone());
                }
            }
            Event::ReplicationClosed { key, confirmed } => {
                self.replication.close(key);
                if let Some(Confirmation { worker, credential }) = confirmed {
                    self.replication.confirm(worker, credential.as_deref());
                }
            }
            Event::Quarantined { worker, reason } => match self.quarantine.get_mut(worker) {
                Some(known) => {
                    known.push_str("; ");
                    known.push_str(reason);
                }
                None => drop(self.quarantine.insert(worker.clone(), reason.clone())),
            },
            Event::QuarantineLifted { worker } => drop(self.quarantine.remove(worker)),
            Event::LeaseHolderAdded { worker } => drop(self.holders.insert(worker.clone())),
            Event::LeaseHolderRemoved { worker } => drop(self.holders.remove(worker)),
            Event::WorkerSeen { worker, credential } => {
                self.replication.add_credential(credential, 0);
                self.names.entry(credential.clone()).or_default().insert(worker.clone());
            }
            Event::WorkersForgotten { credential, workers } => {
                if let Some(names) = self.names.get_mut(credential) {
                    names.retain(|name| !workers.contains(name));
                }
            }
            Event::ConfirmationsVoided { credential } => self.replication.distrust(credential),
            Event::Convicted(conviction) => drop(self.convictions.insert(conviction.clone())),
            Event::ConvictionClosed(conviction) => drop(self.convictions.remove(conviction)),
            Event::Voided { run, replayed, voided, .. } => {
                for &bout in replayed.iter().chain(&*voided) {
                    self.replication.close(&BoutKey { run: run.clone(), bout });
                }
                self.apply_to_run(event);
            }
            Event::RunStateChanged { run, to, .. } => {
                let is_listed = self.open.contains(run);
                if to.is_open() && !is_listed {
                    self.open.push(run.clone());
                } else if !to.is_open() {
                    self.open.retain(|id| id != run);
                }
                self.apply_to_run(event);
            }
            Event::Audited(_) => {}
            _ => self.apply_to_run(event),
        }
    }

    /// Applies an event that concerns one run only.
    fn apply_to_run(&mut self, event: &Event) {
        if let Some(run) = event.run().and_then(|id| self.runs.get_mut(id)) {
            run.apply(event);
        }
    }

    /// Returns a run.
    pub(crate) fn run(&self, id: &str) -> Option<&Run> {
        self.runs.get(id)
    }

    /// Returns a run whose volatile part may change.
    pub(crate) fn run_mut(&mut self, id: &str) -> Option<&mut Run> {
        self.runs.get_mut(id)
    }

    /// Returns all runs.
    pub(crate) fn runs(&self) -> impl Iterator<Item = (&String, &Run)> {
        self.runs.iter()
    }

    /// Returns the open runs in order of submission.
    pub(crate) fn open_runs(&self) -> impl Iterator<Item = (&String, &Run)> {
        self.open.iter().filter_map(|id| Some((id, self.runs.get(id)?)))
    }

    /// Returns all runs, whose volatile parts may change.
    pub(crate) fn runs_mut(&mut self) -> impl Iterator<Item = (&String, &mut Run)> {
        self.runs.iter_mut()
    }

    /// Returns the runs, and the open replications, which are leased like bouts.
    pub(crate) fn runs_and_replication(&mut self) -> (&BTreeMap<String, Run>, &mut Replication) {
        (&self.runs, &mut self.replication)
    }

    /// Returns a run and the quarantined workers.
    pub(crate) fn run_and_quarantine(&mut self, id: &str) -> Option<(&mut Run, &BTreeMap<String, String>)> {
        Some((self.runs.get_mut(id)?, &self.quarantine))
    }

    /// Returns the bout that decided the sequential test of an open run, when the verdict may become durable: not while a
    /// replica can still change it.
    pub(crate) fn due_verdict(&self, id: &str) -> Option<u64> {
        let run = self.runs.get(id)?;
        let bout = run.pending_verdict()?;
        let is_contested =
            run.is_verified_test() && (!self.convictions.is_empty() || self.replication.holds_up(id, bout));
        (self.trusts_workers || !is_contested).then_some(bout)
    }

    /// Returns whether new bouts of a run wait for the replicas of earlier ones.
    pub(crate) fn awaits_replicas(&self, id: &str) -> bool {
        let is_pending = self.runs.get(id).is_some_and(|run| run.pending_verdict().is_some());
        is_pending || (!self.trusts_workers && self.replication.is_backlogged(id))
    }

    /// Lets verdicts wait for no replica, as all workers are the operator's own.
    pub(crate) fn trust_workers(&mut self) {
        self.trusts_workers = true;
    }

    /// Restores a persisted opinion on a bout; call in the order in which they were recorded.
    pub(crate) fn restore_opinion(&mut self, key: BoutKey, opinion: Opinion) {
        if let Some(run) = self.runs.get(&key.run) {
            self.replication.restore(key, opinion, run.is_verified_test());
        }
    }

    /// Restores the confirmations of a credential.
    pub(crate) fn restore_credential(&mut self, credential: &str, confirmed: u64) {
        self.replication.add_credential(credential, confirmed);
        self.names.entry(credential.to_string()).or_default();
    }

    /// Returns the convicted workers whose bouts are not voided yet.
    pub(crate) fn convictions(&self) -> &BTreeSet<Conviction> {
        &self.convictions
    }

    /// Returns the names of the workers that have used a credential, but for those that were forgotten.
    pub(crate) fn names(&self, credential: &str) -> impl ExactSizeIterator<Item = &String> {
        const NONE: &BTreeSet<String> = &BTreeSet::new();
        self.names.get(credential).unwrap_or(NONE).iter()
    }

    /// Returns whether the name of a worker with a known credential was forgotten.
    fn is_forgotten(&self, worker: &str, credential: &str) -> bool {
        self.names.get(credential).is_some_and(|names| !names.contains(worker))
    }

    /// Returns the run ids in order of submission.
    pub(crate) fn order(&self) -> &[String] {
        &self.order
    }

    /// Returns the quarantined workers and the reasons.
    pub(crate) fn quarantine(&self) -> &BTreeMap<String, String> {
        &self.quarantine
    }

    /// Returns the workers that may hold leases.
    pub(crate) fn holders(&self) -> &BTreeSet<String> {
        &self.holders
    }

    /// Returns the open replications.
    pub(crate) fn replication(&self) -> &Replication {
        &self.replication
    }

    /// Makes a leased replica available again.
    pub(crate) fn give_back_replica(&mut self, key: &BoutKey) {
        self.replication.give_back(key);
    }

    /// Marks a replica as leased.
    pub(crate) fn claim_replica(&mut self, key: &BoutKey) {
        self.replication.claim(key);
    }

    /// Forgets what memory has of a worker that left long ago.
    pub(crate) fn forget_worker(&mut self, worker: &str) {
        self.replication.forget(worker);
    }

    /// Puts a worker on probation again.
    pub(crate) fn suspect(&mut self, worker: &str) {
        self.replication.suspect(worker);
    }
}
