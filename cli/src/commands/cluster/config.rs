//! `agon config`: shows settings and their origins.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::client::Address;
use super::coordinator::Coordinator;
use super::worker::Worker;
use crate::fail::Outcome;
use crate::settings::{Layers, Shown};
use crate::table::{Align, Table, print};

/// The commands of `agon config`.
#[derive(Subcommand)]
pub enum Config {
    /// Show every setting with its value and origin
    Show(Show),
}

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Show {
    /// Configuration file [env: AGON_CONFIG]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long, global = true)]
    json: bool,
    /// Process whose settings to show [default: all]
    #[command(subcommand)]
    process: Option<Process>,
}

#[derive(Subcommand)]
enum Process {
    /// Settings of `agon coordinator` with these flags
    Coordinator(Box<Coordinator>),
    /// Settings of `agon worker` with these flags
    Worker(Box<Worker>),
    /// Settings of the commands that connect to a coordinator
    Client(Box<Address>),
}

/// Returns the arguments of a process called without flags.
fn without_flags<T: Args>(config: Option<&PathBuf>) -> anyhow::Result<T> {
    let command = T::augment_args(clap::Command::new("agon"));
    let config = config.into_iter().flat_map(|path| ["--config".into(), path.clone().into_os_string()]);
    let matches =
        command.try_get_matches_from([std::ffi::OsString::from("agon")].into_iter().chain(config))?;
    Ok(T::from_arg_matches(&matches)?)
}

impl Config {
    pub fn run(self) -> Outcome {
        let Config::Show(show) = self;
        let (shown, problem) = match show.process {
            Some(Process::Coordinator(command)) => {
                recorded(command.config.clone().as_deref(), |layers| command.record(layers))?
            }
            Some(Process::Worker(command)) => {
                recorded(command.address.config.clone().as_deref(), |layers| command.record(layers))?
            }
            Some(Process::Client(address)) => {
                recorded(address.config.clone().as_deref(), |layers| address.connector(layers).map(|_| ()))?
            }
            None => recorded(show.config.as_deref(), |layers| {
                without_flags::<Coordinator>(show.config.as_ref())?.record(layers)?;
                without_flags::<Worker>(show.config.as_ref())?.record(layers)
            })?,
        };
        let setting = |shown: &Shown| {
            let (kind, place) = (shown.origin.kind(), shown.origin.to_string());
            serde_json::json!({ "key": shown.key, "value": shown.value, "from": kind, "place": place })
        };
        let document = serde_json::json!({ "settings": shown.iter().map(setting).collect::<Vec<_>>() });
        let printed = print(show.json, &document, |out| {
            let mut table =
                Table::new(&[("setting", Align::Fixed), ("value", Align::Left), ("from", Align::Left)]);
            for Shown { key, value, origin } in shown {
                let value = value.unwrap_or_else(|| "-".to_string());
                table.row([key.to_string(), value, origin.to_string()]);
            }
            table.write(out)
        })?;
        // Show the settings before the error in them.
        problem.map(|()| printed)
    }
}

/// The recorded settings, and the error in them if there is one.
type Recorded = (Vec<Shown>, anyhow::Result<()>);

fn recorded(
    config: Option<&Path>,
    record: impl FnOnce(&Layers) -> anyhow::Result<()>,
) -> anyhow::Result<Recorded> {
    let layers = Layers::open(config)?;
    let problem = record(&layers);
    Ok((layers.shown(), problem))
}
