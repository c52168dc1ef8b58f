//! Committing bouts: first copies, duplicates, replicas and failures.

use super::workers::quarantine_events;
use super::{Command, Durable, Event, Scope};
use crate::audit::{AuditKind, Entry};
use crate::leases::BoutKey;
use crate::store::{NewBout, ReplicaDigest};
use crate::verification::replication::{Digest, ReplicaVerdict};

/// Commits a bout that the referee has checked, or one that was abandoned.
pub(crate) struct Commit {
    pub(crate) bout: Box<NewBout>,
    /// Whether the worker was asked to replicate this bout.
    pub(crate) is_replica: bool,
    /// Whether the bout is leased again, to be played in place of this one.
    pub(crate) is_leased_again: bool,
    /// The secret for sampling bouts to replicate.
    pub(crate) secret: u64,
}

impl Commit {
    /// Commits a bout that no worker could play.
    pub(crate) fn abandoned(bout: NewBout) -> Commit {
        Commit { bout: Box::new(bout), is_replica: false, is_leased_again: false, secret: 0 }
    }
}

/// What became of a submitted bout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// It is durable and counts.
    Committed,
    /// A bout with the same content counts.
    Duplicate,
    /// A bout with other content counts.
    Conflict,
    /// The dataset has the bout; its content was not compared.
    Exported,
    /// The run accepts no more bouts.
    RunClosed,
    /// The run is timed, and the bout is played again.
    Stale,
    /// It was compared as a replica, and this worker is right, as far as known.
    Replicated,
    /// It was compared as a replica, and it differs.
    ReplicaDiffers,
}

impl Command for Commit {
    type Answer = Outcome;

    fn scope(&self) -> Scope {
        Scope::Bout(BoutKey { run: self.bout.run.clone(), bout: self.bout.bout })
    }

    fn decide(self, durable: &Durable) -> (Vec<Event>, Outcome) {
        let Commit { mut bout, is_replica, is_leased_again, secret } = self;
        let Some(run) = durable.run(&bout.run) else { return (Vec::new(), Outcome::RunClosed) };
        let record = run.record();
        let key = BoutKey { run: bout.run.clone(), bout: bout.bout };
        let kept = record.kept.get(&bout.bout);
        if kept.is_some() || bout.bout < record.exported {
            if let Some(digest) = bout.digest.filter(|_| is_replica && durable.replication.has(&key)) {
                return compare_replica(durable, &ReplicaDigest { key, worker: bout.worker, digest });
            }
            let outcome = match kept {
                Some(kept) if kept.digest == bout.digest => Outcome::Duplicate,
                Some(_) => Outcome::Conflict,
                None => Outcome::Exported,
            };
            return (Vec::new(), outcome);
        }
        if !record.state.is_open() {
            return (Vec::new(), Outcome::RunClosed);
        }
        if is_leased_again && !run.spec.is_repeatable() {
            return (Vec::new(), Outcome::Stale);
        }
        let sampled = |digest: Digest| durable.replication.is_sampled(&bout.worker, &key, &digest, secret);
        bout.needs_replica = run.spec.is_repeatable() && bout.digest.is_some_and(sampled);
        let dropped = if bout.needs_replica { durable.replication.overflow(&bout.worker) } else { None };
        let dropped = dropped.map(|key| Event::ReplicationClosed { key, confirmed: None });
        (dropped.into_iter().chain([Event::BoutCommitted(bout)]).collect(), Outcome::Committed)
    }
}

/// Compares a replica with the committed bout and earlier replicas.
fn compare_replica(durable: &Durable, replica: &ReplicaDigest) -> (Vec<Event>, Outcome) {
    let ReplicaDigest { key, worker, digest } = replica.clone();
    let close = |confirmed| Event::ReplicationClosed { key: key.clone(), confirmed };
    let received = |disputed| Event::ReplicaReceived { replica: replica.clone(), disputed };
    let entry =
        |kind, text: &str, worker: &str| Event::Audited(Entry::new(kind, text).worker(worker).bout(&key));
    match durable.replication.judge(&key, &worker, &digest) {
        ReplicaVerdict::Unrequested => (vec![received(false)], Outcome::Replicated),
        ReplicaVerdict::Confirmed { first } => {
            (vec![received(false), close(Some(first))], Outcome::Replicated)
        }
        ReplicaVerdict::Disputed { first } => {
            let text =
                format!("the replica of {worker} differs from the bout of {first}; a third worker decides");
            let audited = entry(AuditKind::Disputed, &text, &first);
            (vec![received(true), audited], Outcome::ReplicaDiffers)
        }
        ReplicaVerdict::Outvoted { worker: outvoted, counted } => {
            let text = if counted {
                format!(
                    "two other workers agree on different content; void its bouts: agon data void {} --worker {outvoted}",
                    key.run
                )
            } else {
                "its replica differs from the content that two other workers agree on".to_string()
            };
            let mut events =
                vec![received(false), close(None), entry(AuditKind::Convicted, &text, &outvoted)];
            let reason = format!("bout {} of {}: {text}", key.bout, key.run);
            events.extend(quarantine_events(durable, &outvoted, &reason));
            let outcome = if outvoted == worker { Outcome::ReplicaDiffers } else { Outcome::Replicated };
            (events, outcome)
        }
        ReplicaVerdict::Inconclusive => {
            let text = "three workers submitted three different contents";
            let audited = entry(AuditKind::Disputed, text, &worker);
            (vec![received(false), close(None), audited], Outcome::ReplicaDiffers)
        }
    }
}
