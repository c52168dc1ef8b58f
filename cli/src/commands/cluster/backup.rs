//! `agon data backup` and `agon data restore`: back up a coordinator's state while it runs, and restore it.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use agon_coordinator::data::Purpose;
use agon_coordinator::maintenance;
use agon_coordinator::store::backup::Contents;
use anyhow::Context as _;
use clap::Args;
use serde::Serialize;

use super::storage::Storage;
use crate::fail::{Outcome, WrongCall};
use crate::table::write_json;

/// The arguments of `agon data backup`.
#[derive(Args)]
pub struct Backup {
    /// New file to write, or - for standard output
    file: PathBuf,
    #[command(flatten)]
    storage: Storage,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// The arguments of `agon data restore`.
#[derive(Args)]
pub struct Restore {
    /// Backup file, or - for standard input
    file: PathBuf,
    #[command(flatten)]
    storage: Storage,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// A copy, as it is told.
#[derive(Serialize)]
struct Document {
    file: String,
    state: String,
    version: i64,
    id: String,
    epoch: u64,
    runs: u64,
    bouts: u64,
}

impl Document {
    fn new(file: &Path, state: &Path, contents: Contents) -> Document {
        let Contents { version, id, epoch, runs, bouts } = contents;
        let (file, state) = (file.display().to_string(), state.display().to_string());
        Document { file, state, version, id, epoch, runs, bouts }
    }

    fn holds(&self) -> String {
        let runs = if self.runs == 1 { "1 run".to_string() } else { format!("{} runs", self.runs) };
        format!("{runs} and {} bouts that were not exported yet", self.bouts)
    }
}

impl Backup {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let state = self.storage.state_folder()?;
        if self.file == Path::new("-") {
            if self.json {
                return Err(
                    WrongCall("standard output has the copy; --json goes with a file".to_string()).into()
                );
            }
            let copy = maintenance::copy(&state)?;
            let mut file = File::open(&copy.0).context("the copy cannot be read")?;
            let mut out = io::stdout().lock();
            io::copy(&mut file, &mut out).context("the copy cannot be passed on")?;
            out.flush()?;
            return Ok(ExitCode::SUCCESS);
        }
        let contents = maintenance::back_up(&state, &self.file)?;
        let document = Document::new(&self.file, &state, contents);
        let mut out = io::stdout().lock();
        if self.json {
            write_json(&document, &mut out)?;
        } else {
            writeln!(out, "{} has {}", document.file, document.holds())?;
            writeln!(out, "The dataset is not in it: keep {} too", self.storage.data)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Restore {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let state = self.storage.state_folder()?;
        // An address that leads nowhere is noticed before anything is written.
        self.storage.check()?;
        let contents = if self.file == Path::new("-") {
            maintenance::restore_from(&mut io::stdin().lock(), &state, self.storage.purpose())?
        } else {
            maintenance::restore(&self.file, &state, self.storage.purpose())?
        };
        let document = Document::new(&self.file, &state, contents);
        let mut out = io::stdout().lock();
        if self.json {
            write_json(&document, &mut out)?;
        } else {
            writeln!(out, "{} has {} again", document.state, document.holds())?;
            let place = match self.storage.purpose() {
                Purpose::Data => format!("--data {}", self.storage.data),
                Purpose::State => format!("--data {} --state {}", self.storage.data, document.state),
            };
            writeln!(out, "What was exported since is taken from the dataset; start with")?;
            writeln!(out, "agon coordinator {place} --take-over")?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
