//! The audit log: events that operators can list later.

use agon_transport::Caller;

use crate::durable::{Append, Event};
use crate::leases::BoutKey;
use crate::state::Coordinator;

/// The kind of an audit entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AuditKind {
    Adopted,
    Cancelled,
    Conflict,
    Convicted,
    Decided,
    Departs,
    Disputed,
    Drained,
    Failed,
    Paused,
    Prioritised,
    Quarantined,
    Refused,
    Reopened,
    Resumed,
    Stale,
    Submitted,
    Throttled,
    Trusted,
    Unverified,
    Voided,
    Withdrawn,
}

impl AuditKind {
    /// Returns the name used in the store, on the wire and as a metric label: the variant in lower case.
    pub(crate) fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

/// An audit entry to be written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    pub(crate) kind: AuditKind,
    /// The worker concerned, or empty.
    pub(crate) worker: String,
    /// The run concerned, or empty.
    pub(crate) run: String,
    /// The bout concerned.
    pub(crate) bout: Option<u64>,
    /// What happened.
    pub(crate) text: String,
}

impl Entry {
    pub(crate) fn new(kind: AuditKind, text: impl Into<String>) -> Entry {
        Entry { kind, worker: String::new(), run: String::new(), bout: None, text: text.into() }
    }

    pub(crate) fn worker(mut self, worker: &str) -> Entry {
        self.worker = worker.to_string();
        self
    }

    pub(crate) fn run(mut self, run: &str) -> Entry {
        self.run = run.to_string();
        self
    }

    pub(crate) fn bout(mut self, key: &BoutKey) -> Entry {
        self.bout = Some(key.bout);
        self.run(&key.run)
    }
}

/// Returns how the audit names an operator: by the credential, if there is one.
pub(crate) fn operator_name(caller: &Caller) -> String {
    if caller.is_authenticated() { caller.to_string() } else { "an operator".to_string() }
}

/// Returns how the durable state names a credential; empty for a caller without one.
pub(crate) fn credential_of(caller: &Caller) -> String {
    if caller.is_authenticated() { caller.to_string() } else { String::new() }
}

impl Coordinator {
    /// Writes an entry in the background.
    pub(crate) fn audit(&self, entry: Entry) {
        self.post(Append(vec![Event::Audited(entry)]));
    }

    /// Writes an entry in the background, unless its caller exceeds the rate limit: no caller can fill the disk. Counts it
    /// in any case.
    pub(crate) fn audit_caused_by(&self, entry: Entry, caller: &Caller) {
        if self.audit_limits.check(caller) {
            self.audit(entry);
        } else {
            self.metrics.audited(entry.kind);
        }
    }
}
