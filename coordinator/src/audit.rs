//! The audit log: events that operators can list later.

use agon_transport::Caller;

use crate::leases::BoutKey;
use crate::state::{Coordinator, now_us};
use crate::store::Audit;

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
    Failed,
    Paused,
    Prioritised,
    Quarantined,
    Refused,
    Resumed,
    Stale,
    Throttled,
    Trusted,
    Voided,
}

impl AuditKind {
    /// Returns the name used in the store, on the wire and as a metric label: the variant in lower case.
    pub(crate) fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

/// An audit entry to be written.
pub(crate) struct Entry<'a> {
    kind: AuditKind,
    row: Audit,
    caller: Option<&'a Caller>,
}

impl<'a> Entry<'a> {
    pub(crate) fn new(kind: AuditKind, text: impl Into<String>) -> Entry<'a> {
        let row = Audit { kind: kind.name(), text: text.into(), ..Audit::default() };
        Entry { kind, row, caller: None }
    }

    pub(crate) fn worker(mut self, worker: &str) -> Entry<'a> {
        self.row.worker = worker.to_string();
        self
    }

    pub(crate) fn run(mut self, run: &str) -> Entry<'a> {
        self.row.run = run.to_string();
        self
    }

    pub(crate) fn bout(mut self, key: &BoutKey) -> Entry<'a> {
        self.row.bout = Some(key.bout);
        self.run(&key.run)
    }

    /// Counts the entry against the caller's rate limit, so that no caller can fill the disk.
    pub(crate) fn caused_by(mut self, caller: &'a Caller) -> Entry<'a> {
        self.caller = Some(caller);
        self
    }
}

/// Returns how the audit names an operator: by the credential, if there is one.
pub(crate) fn operator_name(caller: &Caller) -> String {
    if caller.is_authenticated() { caller.to_string() } else { "an operator".to_string() }
}

impl Coordinator {
    /// Counts an entry and writes it in the background, unless its caller exceeds the rate limit.
    pub(crate) fn audit(&self, entry: Entry<'_>) {
        self.metrics.audited(entry.kind);
        if entry.caller.is_none_or(|caller| self.audit_limits.check(caller)) {
            self.store.audit(Audit { at_us: now_us(), ..entry.row });
        }
    }
}
