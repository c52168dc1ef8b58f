//! The arguments for the locations of a coordinator's dataset and state.

use std::path::PathBuf;

use agon_coordinator::Config;
use agon_coordinator::data::Purpose;
use agon_storage::location::Location;
use clap::Args;

use crate::fail::{UsageError, bail_usage};

/// The locations of dataset and state.
#[derive(Args, Clone)]
pub struct Storage {
    /// Data folder (with the state), or an object store as s3://bucket/prefix
    #[arg(long, value_name = "LOCATION", default_value = "agon-data")]
    pub data: Location,
    /// State folder if the dataset is in an object store [default: agon-state]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
}

/// The option `--take-over`.
#[derive(Args, Clone, Default)]
pub struct TakeOver {
    /// Take ownership; use only when no other coordinator runs on this data
    #[arg(long)]
    take_over: bool,
}

impl Storage {
    /// Returns the purpose of the state folder.
    pub fn purpose(&self) -> Purpose {
        match self.data {
            Location::Folder(_) => Purpose::Data,
            Location::Store(_) => Purpose::State,
        }
    }

    /// Returns the state folder.
    pub fn state_folder(&self) -> Result<PathBuf, UsageError> {
        match (&self.data, &self.state) {
            (Location::Folder(folder), None) => Ok(folder.clone()),
            (Location::Folder(folder), Some(_)) => {
                bail_usage!(
                    "the data folder {} holds its state itself; --state goes with a dataset in an object store",
                    folder.display()
                )
            }
            (Location::Store(_), None) => Ok(PathBuf::from(agon_coordinator::STATE_FOLDER)),
            (Location::Store(_), Some(state)) => Ok(state.clone()),
        }
    }

    /// Rejects a location that cannot hold a dataset. Does not contact an object store.
    pub fn check(&self) -> anyhow::Result<()> {
        match &self.data {
            Location::Folder(folder) if folder.is_file() => {
                bail_usage!("{} is a file, not a folder; give a folder with --data", folder.display())
            }
            Location::Folder(_) => Ok(()),
            Location::Store(address) => Ok(address.open().map(|_| ())?),
        }
    }

    /// Returns a coordinator's configuration for the locations.
    pub fn config(&self, take_over: &TakeOver) -> anyhow::Result<Config> {
        self.check()?;
        let mut config = Config::new(&self.data);
        config.state = self.state_folder()?;
        config.take_over = take_over.take_over;
        Ok(config)
    }
}
