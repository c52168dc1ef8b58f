//! Where a coordinator keeps what it must not lose, as its commands take it.

use std::path::PathBuf;

use agon_coordinator::Config;
use agon_coordinator::data::Purpose;
use agon_storage::location::Location;
use clap::Args;

use crate::fail::WrongCall;

/// Where dataset and state lie.
#[derive(Args, Clone)]
pub struct Storage {
    /// Data folder (with the state), or an object store as s3://bucket/prefix
    #[arg(long, value_name = "PLACE", default_value = "agon-data")]
    pub data: Location,
    /// State folder if the dataset is in an object store [default: agon-state]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
}

/// The operator's word.
#[derive(Args, Clone)]
pub struct TakeOver {
    /// Take ownership; use only when no other coordinator runs on this data
    #[arg(long)]
    take_over: bool,
}

impl Storage {
    /// What the folder of the state is for.
    pub fn purpose(&self) -> Purpose {
        match self.data {
            Location::Folder(_) => Purpose::Data,
            Location::Store(_) => Purpose::State,
        }
    }

    /// The folder of the state.
    pub fn state_folder(&self) -> Result<PathBuf, WrongCall> {
        match (&self.data, &self.state) {
            (Location::Folder(folder), None) => Ok(folder.clone()),
            (Location::Folder(folder), Some(_)) => {
                let told = format!(
                    "the data folder {} holds its state itself; --state goes with a dataset in an object store",
                    folder.display()
                );
                Err(WrongCall(told))
            }
            (Location::Store(_), None) => Ok(PathBuf::from(agon_coordinator::STATE_FOLDER)),
            (Location::Store(_), Some(state)) => Ok(state.clone()),
        }
    }

    /// Whether the place can be one at all. Nothing is asked of a store yet.
    pub fn check(&self) -> anyhow::Result<()> {
        match &self.data {
            Location::Folder(folder) if folder.is_file() => {
                let told = format!("{} is a file and no folder; give a folder with --data", folder.display());
                Err(WrongCall(told).into())
            }
            Location::Folder(_) => Ok(()),
            Location::Store(address) => Ok(address.open().map(|_| ())?),
        }
    }

    /// A coordinator's configuration over them.
    pub fn config(&self, take_over: &TakeOver) -> anyhow::Result<Config> {
        self.check()?;
        let mut config = Config::new(&self.data);
        config.state = self.state_folder()?;
        config.take_over = take_over.take_over;
        Ok(config)
    }
}
