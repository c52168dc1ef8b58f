//! Support for tests, used only as a dev-dependency.
//!
//! [`binary`] calls the `agon` binary, [`processes`] runs a cluster of real processes, [`sample`] plays and writes a small
//! dataset, and [`scripted_worker`] is a worker whose every message a test chooses.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]
#![allow(missing_docs, reason = "names of test support explain themselves")]

pub mod binary;
pub mod processes;
pub mod sample;
pub mod scripted_worker;
