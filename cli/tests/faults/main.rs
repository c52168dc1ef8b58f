//! What must hold when something dies, hangs, repeats or lies, shown with real processes: every bout is counted exactly
//! once, what was acknowledged is never lost, and what is wrong is refused with a sentence.
//!
//! `lies` has workers that send what cannot be, `late` results that come again or too late, `silence` workers that hang,
//! `stop` those that are asked to end, `builds` those that do not fit, `folder` data folders that are not as they should
//! be, `disk` disks without room, `fabrication` workers whose games are legal and made up,
//! `restore` states that are lost and put back, `voids` bouts that are taken back and parts that cannot be written. `rogue` is the worker that a test holds in its hand. Kills are in `cluster.rs`.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use agon_testing::{binary, processes, scripted_worker};

mod builds;
mod disk;
mod fabrication;
mod folder;
mod late;
mod lies;
mod restore;
mod silence;
mod stop;
mod voids;

use std::time::Duration;

/// A lease that does not expire within a test.
const LONG: Duration = Duration::from_secs(60);

/// A tournament of so many bouts that is played quickly.
fn quick(bouts: u64) -> String {
    spec(bouts, "nodes = 60")
}

/// The same with another limit.
fn spec(bouts: u64, limit: &str) -> String {
    format!(
        r#"
name = "faults"
game = "connect-four"
seed = 5
limit = {{ {limit} }}
openings = {{ random_plies = 4 }}
[tournament]
format = "round-robin"
bouts = {bouts}
[[player]]
name = "pvs"
search = {{ algorithm = "pvs", table_mb = 1 }}
[[player]]
name = "uct"
search = {{ algorithm = "uct" }}
"#
    )
}
