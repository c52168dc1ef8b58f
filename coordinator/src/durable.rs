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

pub(crate) use self::event::Event;
pub(crate) use self::run::{KeptBout, Run, stored_totals};
use crate::leases::BoutKey;
use crate::verification::replication::Replication;

/// A change of the durable state, which its owner makes or rejects.
pub(crate) trait Command: Send + 'static {
    /// What the caller gets when the events are on disk.
    type Answer: Send + 'static;

    /// Returns what the command reads and changes.
    fn scope(&self) -> Scope;

    /// Judges the command. Without events nothing changes.
    fn decide(self, durable: &Durable) -> (Vec<Event>, Self::Answer);
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
}

/// The durable state.
#[derive(Default)]
pub(crate) struct Durable {
    runs: BTreeMap<String, Run>,
    /// Run ids in order of submission.
    order: Vec<String>,
    /// Quarantined workers and the reasons.
    quarantine: BTreeMap<String, String>,
    /// Workers that may hold leases.
    holders: BTreeSet<String>,
    replication: Replication,
}

impl Durable {
    /// Applies an event that is on disk.
    pub(crate) fn apply(&mut self, event: &mut Event) {
        match event {
            Event::RunAdded { stored, run } => {
                if let Some(run) = run.take() {
                    self.order.push(stored.id.clone());
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
                if let Some(digest) = bout.digest.filter(|_| bout.needs_replica) {
                    let key = BoutKey { run: bout.run.clone(), bout: bout.bout };
                    self.replication.add(key, &bout.worker, digest);
                }
            }
            Event::ReplicaReceived { replica, disputed } => {
                if let Some(run) = self.runs.get_mut(&replica.key.run) {
                    run.count_replica(*disputed);
                }
                if *disputed {
                    self.replication.dispute(&replica.key, &replica.worker, replica.digest);
                }
            }
            Event::ReplicationClosed { key, confirmed } => {
                self.replication.close(key);
                if let Some(worker) = confirmed {
                    self.replication.confirm(worker);
                }
            }
            Event::Quarantined { worker, reason } => match self.quarantine.get_mut(worker) {
                Some(known) => {
                    known.push_str("; ");
                    known.push_str(reason);
                }
                None => drop(self.quarantine.insert(worker.clone(), reason.clone())),
            },
            Event::Trusted { worker } => drop(self.quarantine.remove(worker)),
            Event::HolderAdded { worker } => drop(self.holders.insert(worker.clone())),
            Event::HolderRemoved { worker } => drop(self.holders.remove(worker)),
            Event::Voided { run, replayed, voided, .. } => {
                for &bout in replayed.iter().chain(&*voided) {
                    self.replication.close(&BoutKey { run: run.clone(), bout });
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

    /// Returns the open replications, which are leased like bouts.
    pub(crate) fn replication_mut(&mut self) -> &mut Replication {
        &mut self.replication
    }
}
