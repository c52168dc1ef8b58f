//! Faults of workers, disks and states, with real processes. In every case each bout counts exactly once, an acknowledged
//! bout is never lost, and invalid input is rejected with an error. Kills are in `cluster.rs`.

#![allow(clippy::unwrap_used, reason = "a failing test panics")]

use agon_testing::specs::{PVS_VS_UCT, vary};

mod builds;
mod disk;
mod fabrication;
mod folder;
mod late;
mod lies;
mod restart;
mod restore;
mod silence;
mod start;
mod stop;
mod voids;

use std::time::Duration;

/// A lease that does not expire within a test.
const LONG: Duration = Duration::from_secs(60);

/// Returns a tournament that is played quickly.
fn quick(bouts: u64) -> String {
    spec(bouts, "nodes = 60")
}

/// Returns a tournament with this limit.
fn spec(bouts: u64, limit: &str) -> String {
    vary(PVS_VS_UCT).name("faults").limit(limit).bouts(bouts).text()
}
