//! `agon report`: a run as one page that needs nothing else, or the same as JSON.

use std::fs;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;

use agon_analysis::Dataset;
use agon_analysis::report::{Question, Report as Gathered, Settings};
use agon_storage::location::Location;
use anyhow::{Context as _, bail};
use clap::Args;

use super::runs;
use crate::fail::{Outcome, WrongCall};
use crate::number::whole;
use crate::progress::Progress;

/// The arguments of `agon report`.
#[derive(Args)]
pub struct Report {
    /// Run id, name or unique prefix, or `latest`
    #[arg(value_name = "RUN", default_value = "latest")]
    run: String,
    /// Page to write, or - for standard output [default: RUN.html]
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    output: Option<PathBuf>,
    /// Print the content as one JSON document instead of writing a page
    #[arg(long)]
    json: bool,
    /// Data folder, or an object store as s3://bucket/prefix
    #[arg(long, value_name = "PLACE", default_value = "agon-data")]
    data: Location,
    /// Bootstrap replicas for each interval
    #[arg(long, value_name = "N", default_value = "1000", value_parser = whole::<usize>("the number of replicas", 1, 1_000_000), allow_negative_numbers = true)]
    replicas: usize,
    /// Seed of the resampling
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
}

impl Report {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let dataset = Dataset::open(&self.data)?;
        let run = runs::find(&dataset, &self.run)?;
        let settings = Settings {
            replicas: NonZeroUsize::new(self.replicas).unwrap_or(NonZeroUsize::MIN),
            seed: self.seed,
            threads: thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
        };
        let target = self.output.unwrap_or_else(|| PathBuf::from(format!("{}.html", run.id)));
        let standard = target.as_os_str() == "-";
        // What cannot be written is better said before the work than after it.
        if !self.json && !standard {
            check_target(&target)?;
        }
        let progress = Progress::default();
        let report = Gathered::read(&dataset, &run, &settings, &|what| {
            progress.show(|| format!("reading {}: {what}", run.id));
        })?;
        drop(progress);
        let games = report.lengths.as_ref().map_or(0, |lengths| lengths.games);
        if report.counted == 0 || (games == 0 && report.question != Question::Probe) {
            let reason = runs::empty(&run, 0);
            return Err(WrongCall(format!("there is nothing to report: {reason}")).into());
        }
        let mut out = io::stdout().lock();
        if self.json {
            serde_json::to_writer(&mut out, &report)?;
            writeln!(out)?;
        } else if standard {
            out.write_all(report.page().as_bytes())?;
        } else {
            let page = report.page();
            write_whole(&target, page.as_bytes())?;
            writeln!(out, "{}", report.answer)?;
            writeln!(out, "The page is in {} ({} kB)", target.display(), page.len().div_ceil(1000))?;
        }
        out.flush()?;
        Ok(ExitCode::SUCCESS)
    }
}

fn check_target(target: &Path) -> anyhow::Result<()> {
    if target.is_dir() {
        bail!("{} is a folder; give a file to --output", target.display());
    }
    let folder = folder_of(target);
    if !folder.is_dir() {
        bail!("there is no folder {} to write to; make it first", folder.display());
    }
    Ok(())
}

fn folder_of(target: &Path) -> &Path {
    match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Writes a file as a whole or not at all: beside its place first, then moved there.
fn write_whole(target: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let beside = folder_of(target).join(format!(".{name}.{}", std::process::id()));
    let written = fs::write(&beside, bytes).and_then(|()| fs::rename(&beside, target));
    if written.is_err() {
        // Nothing half-written stays; where even that fails, the sentence below is what there is to say.
        let _ = fs::remove_file(&beside);
    }
    written.with_context(|| format!("{} cannot be written", target.display()))
}
