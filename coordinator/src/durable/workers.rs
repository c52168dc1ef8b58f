//! Changes that concern workers, and audit entries.

use std::collections::BTreeSet;

use super::{Command, Conviction, Durable, Event, Scope};
use crate::audit::{AuditKind, Entry};

/// The maximum length of a worker's reasons; further ones are dropped.
const MAX_REASONS_BYTES: usize = 2000;

/// Quarantines a worker, also after a restart, until an operator trusts it again. A further reason is added to those known.
pub(crate) struct Quarantine {
    pub(crate) worker: String,
    pub(crate) reason: String,
}

impl Command for Quarantine {
    type Answer = ();

    fn scope(&self) -> Scope {
        Scope::Worker(self.worker.clone())
    }

    fn decide(self, durable: &Durable) -> (Vec<Event>, ()) {
        (quarantine_events(durable, &self.worker, &self.reason), ())
    }
}

/// Returns the events that quarantine a worker for a reason, unless that is known.
pub(super) fn quarantine_events(durable: &Durable, worker: &str, reason: &str) -> Vec<Event> {
    match durable.quarantine.get(worker) {
        Some(known) if known.contains(reason) || known.len() + reason.len() > MAX_REASONS_BYTES => Vec::new(),
        _ => vec![
            Event::Quarantined { worker: worker.to_string(), reason: reason.to_string() },
            Event::Audited(Entry::new(AuditKind::Quarantined, reason).worker(worker)),
        ],
    }
}

/// Ends the quarantine of a worker. Answers whether it was in quarantine.
pub(crate) struct Trust {
    pub(crate) worker: String,
    /// Who ended it.
    pub(crate) operator: String,
}

impl Command for Trust {
    type Answer = bool;

    fn scope(&self) -> Scope {
        Scope::Worker(self.worker.clone())
    }

    fn decide(self, durable: &Durable) -> (Vec<Event>, bool) {
        let Trust { worker, operator } = self;
        if !durable.quarantine.contains_key(&worker) {
            return (Vec::new(), false);
        }
        let text = format!("trusted by {operator}");
        let entry = Entry::new(AuditKind::Trusted, text).worker(&worker);
        (vec![Event::QuarantineLifted { worker }, Event::Audited(entry)], true)
    }
}

/// Records whether a worker may hold leases.
pub(crate) struct Hold {
    pub(crate) worker: String,
    pub(crate) holds: bool,
}

impl Command for Hold {
    type Answer = ();

    fn scope(&self) -> Scope {
        Scope::Worker(self.worker.clone())
    }

    fn decide(self, durable: &Durable) -> (Vec<Event>, ()) {
        let Hold { worker, holds } = self;
        let events = match (durable.holders.contains(&worker), holds) {
            (false, true) => vec![Event::LeaseHolderAdded { worker }],
            (true, false) => vec![Event::LeaseHolderRemoved { worker }],
            _ => Vec::new(),
        };
        (events, ())
    }
}

/// Records that a worker opened a session with a credential.
pub(crate) struct Register {
    pub(crate) worker: String,
    /// The credential; empty if it has none.
    pub(crate) credential: String,
}

impl Command for Register {
    type Answer = ();

    fn scope(&self) -> Scope {
        Scope::Worker(self.worker.clone())
    }

    fn decide(self, durable: &Durable) -> (Vec<Event>, ()) {
        let Register { worker, credential } = self;
        // A worker in quarantine replicates nothing.
        let is_new = !credential.is_empty()
            && !durable.quarantine.contains_key(&worker)
            && !durable.names(&credential).any(|name| *name == worker);
        (is_new.then_some(Event::WorkerSeen { worker, credential }).into_iter().collect(), ())
    }
}

/// The number of names of a credential at which, and at each multiple, those are forgotten that nothing needs.
pub(crate) const NAMES_OF_CREDENTIAL: usize = 1024;

/// Forgets the names of a credential that no conviction needs: workers that hold no leases and played no bouts of an
/// undecided test. A bout of a forgotten worker brings its name back.
pub(crate) struct Forget {
    pub(crate) credential: String,
}

impl Command for Forget {
    type Answer = ();

    fn scope(&self) -> Scope {
        Scope::Everything
    }

    fn decide(self, durable: &Durable) -> (Vec<Event>, ()) {
        let Forget { credential } = self;
        let tests = durable.open_runs().filter(|(_, run)| run.is_verified_test());
        let needed: BTreeSet<&String> = tests.flat_map(|(_, run)| run.workers()).collect();
        let is_needed = |name: &&String| durable.holders.contains(*name) || needed.contains(*name);
        let workers: Vec<String> =
            durable.names(&credential).filter(|name| !is_needed(name)).cloned().collect();
        let events = if workers.is_empty() {
            Vec::new()
        } else {
            vec![Event::WorkersForgotten { credential, workers }]
        };
        (events, ())
    }
}

/// Records that the bouts of a convicted worker are voided.
pub(crate) struct CloseConviction(pub(crate) Conviction);

impl Command for CloseConviction {
    type Answer = ();

    fn scope(&self) -> Scope {
        Scope::Worker(self.0.worker.clone())
    }

    fn decide(self, durable: &Durable) -> (Vec<Event>, ()) {
        let is_open = durable.convictions.contains(&self.0);
        (is_open.then_some(Event::ConvictionClosed(self.0)).into_iter().collect(), ())
    }
}
