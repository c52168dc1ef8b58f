//! Support for tests, used only as a dev-dependency and by the benchmarks.
//!
//! [`specs`] has the specs that tests share, [`bouts`] plays bouts and encodes them for the wire, and [`sample`] writes
//! small datasets. With the feature `cluster`, [`binary`] calls the `agon` binary, [`processes`] runs a cluster of real
//! processes, and [`scripted_worker`] is a worker whose messages the test chooses.

#![allow(clippy::unwrap_used, reason = "a failing test panics")]
#![allow(missing_docs, reason = "names of test support explain themselves")]

#[cfg(feature = "cluster")]
pub mod binary;
pub mod bouts;
pub mod folder;
#[cfg(feature = "cluster")]
pub mod processes;
pub mod sample;
#[cfg(feature = "cluster")]
pub mod scripted_worker;
pub mod specs;
