//! Verification of workers: replicated bouts, behaviour counters and quarantine.

mod quarantine;
pub(crate) mod replication;
pub(crate) mod reputation;
