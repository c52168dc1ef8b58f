//! `agon data`: backs up and restores the state of a coordinator, and voids bouts.

use clap::Subcommand;

use super::backup::{Backup, Restore};
use super::void::Void;
use crate::fail::Outcome;

/// The commands of `agon data`.
#[derive(Subcommand)]
pub enum Data {
    /// Copy a coordinator's state while it runs
    Backup(Backup),
    /// Restore a coordinator's state from a backup
    Restore(Restore),
    /// Exclude bouts from the results; replay those not exported yet
    Void(Void),
}

impl Data {
    pub fn run(self) -> Outcome {
        match self {
            Data::Backup(command) => command.run(),
            Data::Restore(command) => command.run(),
            Data::Void(command) => command.run(),
        }
    }
}
