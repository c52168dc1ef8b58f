//! `agon config`: what settings are, and where each came from.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::client::Address;
use super::coordinator::Coordinator;
use super::worker::Worker;
use crate::fail::Outcome;
use crate::settings::{Layers, Shown};
use crate::table::{Align, Table, write_json};

/// What is done with settings.
#[derive(Subcommand)]
pub enum Config {
    /// Show every setting with its value and origin
    Show(Show),
}

/// The arguments of `agon config show`.
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

/// The arguments of a process, as if it were called without any.
fn without_flags<T: Args>(config: Option<&PathBuf>) -> anyhow::Result<T> {
    let command = T::augment_args(clap::Command::new("agon"));
    let config = config.into_iter().flat_map(|path| ["--config".into(), path.clone().into_os_string()]);
    let matches =
        command.try_get_matches_from([std::ffi::OsString::from("agon")].into_iter().chain(config))?;
    Ok(T::from_arg_matches(&matches)?)
}

impl Config {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let Config::Show(show) = self;
        let (shown, complaint) = match show.process {
            Some(Process::Coordinator(command)) => {
                of(command.config.clone().as_deref(), |layers| command.look(layers))?
            }
            Some(Process::Worker(command)) => {
                of(command.address.config.clone().as_deref(), |layers| command.look(layers))?
            }
            Some(Process::Client(address)) => {
                of(address.config.clone().as_deref(), |layers| address.connector(layers).map(|_| ()))?
            }
            None => of(show.config.as_deref(), |layers| {
                without_flags::<Coordinator>(show.config.as_ref())?.look(layers)?;
                without_flags::<Worker>(show.config.as_ref())?.look(layers)
            })?,
        };
        let mut out = io::stdout().lock();
        if show.json {
            let setting = |shown: &Shown| {
                let (kind, place) = (shown.origin.kind(), shown.origin.to_string());
                serde_json::json!({ "key": shown.key, "value": shown.value, "from": kind, "place": place })
            };
            let settings: Vec<_> = shown.iter().map(setting).collect();
            write_json(&serde_json::json!({ "settings": settings }), &mut out)?;
        } else {
            let mut table =
                Table::new(&[("setting", Align::Left), ("value", Align::Left), ("from", Align::Left)]);
            for Shown { key, value, origin } in shown {
                let value = value.unwrap_or_else(|| "-".to_string());
                table.row([key.to_string(), value, origin.to_string()]);
            }
            table.write(&mut out)?;
        }
        out.flush()?;
        // What is wrong with them together is said after what they are.
        complaint.map(|()| ExitCode::SUCCESS)
    }
}

/// The settings that were asked for, and what is wrong with them.
type Looked = (Vec<Shown>, anyhow::Result<()>);

fn of(config: Option<&Path>, look: impl FnOnce(&Layers) -> anyhow::Result<()>) -> anyhow::Result<Looked> {
    let layers = Layers::open(config)?;
    let complaint = look(&layers);
    Ok((layers.shown(), complaint))
}
