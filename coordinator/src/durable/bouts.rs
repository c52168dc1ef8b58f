//! Committing bouts: first copies, duplicates, replicas and failures.

use super::workers::quarantine_events;
use super::{Command, Confirmation, Conviction, Durable, Event, Run, Scope};
use crate::audit::{AuditKind, Entry};
use crate::leases::BoutKey;
use crate::receipt::NewBout;
use crate::store::ReplicaDigest;
use crate::verification::replication::{Opinion, ReplicaVerdict};
use agon_schedule::RunState;

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
    /// Commits a bout that no worker could play, as failed.
    pub(crate) fn abandoned(key: &BoutKey, reason: String) -> Commit {
        let bout = Box::new(NewBout::abandoned(key, reason));
        Commit { bout, is_replica: false, is_leased_again: false, secret: 0 }
    }
}

/// What became of a submitted bout: it is durable and counts, or why it was not committed.
pub(crate) type Outcome = Result<(), Uncommitted>;

/// Why a submitted bout was not committed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Uncommitted {
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
        match self.bout.failure {
            // It may pause the run.
            Some(_) => Scope::Run(self.bout.run.clone()),
            None => Scope::Bout(BoutKey { run: self.bout.run.clone(), bout: self.bout.bout }),
        }
    }

    fn decide(self, durable: &Durable) -> (Vec<Event>, Outcome) {
        let Commit { mut bout, is_replica, is_leased_again, secret } = self;
        let Some(run) = durable.run(&bout.run) else { return (Vec::new(), Err(Uncommitted::RunClosed)) };
        let record = run.record();
        let key = BoutKey { run: bout.run.clone(), bout: bout.bout };
        let kept = record.kept.get(&bout.bout);
        if kept.is_some() || bout.bout < record.exported {
            if let Some(opinion) = bout.opinion().filter(|_| is_replica && durable.replication.has(&key)) {
                return compare_replica(durable, &ReplicaDigest { key, opinion });
            }
            let outcome = match kept {
                Some(kept) if kept.digest == bout.digest => Err(Uncommitted::Duplicate),
                Some(_) => Err(Uncommitted::Conflict),
                None => Err(Uncommitted::Exported),
            };
            return (Vec::new(), outcome);
        }
        if !record.state.is_open() {
            return (Vec::new(), Err(Uncommitted::RunClosed));
        }
        if is_leased_again && !run.spec.is_repeatable() {
            return (Vec::new(), Err(Uncommitted::Stale));
        }
        let is_sampled =
            |author| durable.replication.is_sampled(&key, &author, run.is_verified_test(), secret);
        bout.needs_replica = run.spec.is_repeatable() && bout.opinion().is_some_and(is_sampled);
        let pause = bout.failure.as_deref().map_or_else(Vec::new, |reason| pause_failing(run, &key, reason));
        let seen = durable.is_forgotten(&bout.worker, &bout.credential).then(|| {
            let (worker, credential) = (bout.worker.clone(), bout.credential.clone());
            Event::WorkerSeen { worker, credential }
        });
        (seen.into_iter().chain([Event::BoutCommitted(bout)]).chain(pause).collect(), Ok(()))
    }
}

/// The number of failed bouts that a run may always have, and the share of its bouts, one in this many.
const FAILED_BOUTS: u64 = 10;
const FAILED_SHARE: u64 = 10;

/// Returns the events that pause a run with one more failed bout, when these begin to exceed their share.
fn pause_failing(run: &Run, key: &BoutKey, reason: &str) -> Vec<Event> {
    let (done, before) = (run.ledger.done() + 1, run.record().standings.totals().failed);
    let is_excessive = |failed: u64| failed > FAILED_BOUTS.max(done / FAILED_SHARE);
    let failed = before + 1;
    if run.record().state != RunState::Running || !is_excessive(failed) || is_excessive(before) {
        return Vec::new();
    }
    let text = format!(
        "{failed} of {done} bouts failed, the last one because: {reason}; mend the cause, repeat the bouts with \
         `agon data void {id} --bouts FIRST-LAST` and continue with `agon resume {id}`, or resume to accept the failures",
        id = key.run
    );
    let entry = Entry::new(AuditKind::Paused, text).bout(key);
    vec![
        Event::RunStateChanged { run: key.run.clone(), to: RunState::Paused, decided: None },
        Event::Audited(entry),
    ]
}

/// Compares a replica with the committed bout and earlier replicas.
fn compare_replica(durable: &Durable, replica: &ReplicaDigest) -> (Vec<Event>, Outcome) {
    let (key, worker) = (&replica.key, &replica.opinion.worker);
    let close = |confirmed| Event::ReplicationClosed { key: key.clone(), confirmed };
    let received = |disputed| Event::ReplicaReceived { replica: replica.clone(), disputed };
    let entry =
        |kind, text: &str, worker: &str| Event::Audited(Entry::new(kind, text).worker(worker).bout(key));
    match durable.replication.judge(key, &replica.opinion) {
        ReplicaVerdict::Unrequested => (vec![received(false)], Err(Uncommitted::Replicated)),
        ReplicaVerdict::Confirmed { first, credential } => {
            let confirmed = Confirmation { worker: first, credential };
            (vec![received(false), close(Some(confirmed))], Err(Uncommitted::Replicated))
        }
        ReplicaVerdict::Disputed { first } => {
            let text =
                format!("the replica of {worker} differs from the bout of {first}; a further worker decides");
            let audited = entry(AuditKind::Disputed, &text, &first);
            (vec![received(true), audited], Err(Uncommitted::ReplicaDiffers))
        }
        ReplicaVerdict::Outvoted { outvoted, counted, independent } => {
            let mut events = vec![received(false), close(None)];
            for (index, Opinion { worker, credential, .. }) in outvoted.into_iter().enumerate() {
                let is_counted = counted && index == 0;
                let text = match (is_counted, independent) {
                    (true, true) => {
                        "two other workers agree on different content; its bouts are voided".to_string()
                    }
                    (true, false) => format!(
                        "two other workers, both of one credential, agree on different content; if you trust these, void its \
                         bouts: agon data void {} --worker {worker}",
                        key.run
                    ),
                    (false, _) => {
                        "its replica differs from the content that two other workers agree on".to_string()
                    }
                };
                events.push(entry(AuditKind::Convicted, &text, &worker));
                let reason = format!("bout {} of {}: {text}", key.bout, key.run);
                events.extend(quarantine_events(durable, &worker, &reason));
                if !credential.is_empty() {
                    events.push(Event::ConfirmationsVoided { credential: credential.clone() });
                }
                if is_counted && independent {
                    events.push(Event::Convicted(Conviction { worker, credential }));
                }
            }
            (events, Err(Uncommitted::Replicated))
        }
        ReplicaVerdict::Inconclusive => {
            let text = "three workers submitted three different contents";
            let audited = entry(AuditKind::Disputed, text, worker);
            (vec![received(false), close(None), audited], Err(Uncommitted::ReplicaDiffers))
        }
    }
}
