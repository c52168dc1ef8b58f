//! `agon data backup` and `agon data restore`: back up a coordinator's state while it runs, and restore it.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use agon_coordinator::data::Purpose;
use agon_coordinator::maintenance;
use agon_coordinator::store::backup::Contents;
use anyhow::Context as _;
use clap::Args;
use serde::Serialize;

use super::storage::Storage;
use crate::fail::{Outcome, bail_usage};
use crate::output::open_stream;
use crate::table::print;

#[derive(Args)]
pub struct Backup {
    /// New file to write, a device or pipe, or - for standard output
    file: PathBuf,
    #[command(flatten)]
    storage: Storage,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

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

/// A backup and its contents.
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

    fn contents(&self) -> String {
        let runs = if self.runs == 1 { "1 run".to_string() } else { format!("{} runs", self.runs) };
        format!("{runs} and {} bouts that are not exported yet", self.bouts)
    }
}

impl Backup {
    pub fn run(self) -> Outcome {
        let state = self.storage.state_folder()?;
        if let Some(mut out) = open_stream(&self.file)? {
            if self.json {
                bail_usage!("--json needs a regular file: the backup is written as a stream");
            }
            let copy = maintenance::copy(&state)?;
            let mut file = File::open(&copy.0).context("cannot read the backup")?;
            io::copy(&mut file, &mut out).context("cannot write the backup")?;
            out.flush()?;
            return Ok(ExitCode::SUCCESS);
        }
        let contents = maintenance::back_up(&state, &self.file)?;
        let document = Document::new(&self.file, &state, contents);
        print(self.json, &document, |out| {
            writeln!(out, "{} has {}", document.file, document.contents())?;
            writeln!(out, "It does not contain the dataset: keep {} too", self.storage.data)
        })
    }
}

impl Restore {
    pub fn run(self) -> Outcome {
        let state = self.storage.state_folder()?;
        // Reject an unusable location before writing.
        self.storage.check()?;
        let contents = if self.file == Path::new("-") {
            maintenance::restore_from(&mut io::stdin().lock(), &state, self.storage.purpose())?
        } else {
            maintenance::restore(&self.file, &state, self.storage.purpose())?
        };
        let document = Document::new(&self.file, &state, contents);
        print(self.json, &document, |out| {
            writeln!(out, "{} has {} again", document.state, document.contents())?;
            let location = match self.storage.purpose() {
                Purpose::Data => format!("--data {}", self.storage.data),
                Purpose::State => format!("--data {} --state {}", self.storage.data, document.state),
            };
            writeln!(out, "Later bouts are taken from the dataset. Start the coordinator with")?;
            writeln!(out, "agon coordinator {location} --take-over")
        })
    }
}
