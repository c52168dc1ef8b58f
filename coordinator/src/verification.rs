//! Verification of workers: replicated bouts, behaviour counters and quarantine.

pub(crate) mod convictions;
mod quarantine;
pub(crate) mod replication;
pub(crate) mod reputation;
