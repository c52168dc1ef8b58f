//! `agon report`: a run as one self-contained HTML page, or as JSON.

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use agon_analysis::report::{Question, Report as RunReport, Settings};
use agon_storage::location::Location;
use anyhow::bail;
use clap::Args;

use super::runs;
use crate::fail::Outcome;
use crate::number::{cores, whole};
use crate::output::{is_stdout, write_output};
use crate::progress::Progress;
use crate::table::{stdout, write_json};

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
    #[arg(long, value_name = "LOCATION", default_value = "agon-data")]
    data: Location,
    /// Bootstrap replicas for each interval
    #[arg(long, value_name = "N", default_value = "1000", value_parser = whole::<usize>("the number of replicas", 1, 1_000_000), allow_negative_numbers = true)]
    replicas: usize,
    /// Seed of the resampling
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
}

impl Report {
    pub fn run(self) -> Outcome {
        let (dataset, run) = runs::open_started(&self.data, &self.run)?;
        let settings = Settings {
            replicas: NonZeroUsize::new(self.replicas).unwrap_or(NonZeroUsize::MIN),
            seed: self.seed,
            threads: cores(),
        };
        let target = self.output.unwrap_or_else(|| PathBuf::from(format!("{}.html", run.id)));
        let to_stdout = is_stdout(&target);
        // Report a target that cannot be written before the long work.
        if !self.json && !to_stdout {
            check_target(&target)?;
        }
        let progress = Progress::default();
        let report = RunReport::read(&dataset, &run, &settings, &|what| {
            progress.show(|| format!("reading {}: {what}", run.id));
        })?;
        drop(progress);
        let games = report.lengths.as_ref().map_or(0, |lengths| lengths.games);
        if report.counted == 0 || (games == 0 && report.question != Question::Probe) {
            bail!(runs::nothing_rated(&run, &run.spec()?, report.counted));
        }
        let mut out = stdout();
        if self.json {
            write_json(&report, &mut out)?;
        } else {
            let page = report.page();
            write_output(&target, |file| Ok(file.write_all(page.as_bytes())?))?;
            if !to_stdout {
                writeln!(out, "{}", report.answer)?;
                writeln!(out, "The page is in {} ({} kB)", target.display(), page.len().div_ceil(1000))?;
            }
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
        bail!("there is no folder {} to write to; create it first", folder.display());
    }
    Ok(())
}

fn folder_of(target: &Path) -> &Path {
    match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}
