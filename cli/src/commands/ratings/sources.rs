//! Reads PGN files and result tables, and names skipped games on standard error.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::PathBuf;

use super::csv;
use super::pgn::{Found, scan};
use super::results::ResultCounts;
use crate::fail::{UsageError, bail_usage, note};
use crate::progress::Progress;

/// The number of malformed games that are named; all are counted.
const NAMED: u64 = 10;

/// The results of files, and the numbers of skipped games.
#[derive(Default)]
pub struct Reading {
    /// The results of finished games.
    pub counts: ResultCounts,
    /// Games without a result.
    pub unfinished: u64,
    /// Games that cannot be counted.
    pub malformed: u64,
}

/// The format of a file.
#[derive(Clone, Copy)]
enum Format {
    Pgn,
    Csv,
}

/// Reads all files; `-` is standard input.
pub fn read(pgn: &[PathBuf], csv: &[PathBuf]) -> anyhow::Result<Reading> {
    let sources: Vec<(&PathBuf, Format)> = (pgn.iter().map(|path| (path, Format::Pgn)))
        .chain(csv.iter().map(|path| (path, Format::Csv)))
        .collect();
    check_distinct(&sources)?;
    let mut reading = Reading::default();
    let progress = Progress::default();
    for (path, format) in sources {
        let name = path.display().to_string();
        let (source, name): (Box<dyn Read>, String) = if name == "-" {
            (Box::new(io::stdin().lock()), "standard input".to_string())
        } else {
            let file =
                File::open(path).map_err(|error| UsageError(format!("cannot read {name}: {error}")))?;
            (Box::new(file), name)
        };
        let cannot = |error: io::Error| UsageError(format!("cannot read {name}: {error}"));
        match format {
            Format::Pgn => reading.pgn(source, &name, &progress).map_err(cannot)?,
            Format::Csv => {
                csv::read(BufReader::new(source), &name, &mut reading.counts).map_err(|error| match error
                    .downcast::<io::Error>(
                ) {
                    Ok(error) => cannot(error).into(),
                    Err(error) => error,
                })?;
            }
        }
    }
    progress.clear();
    if reading.malformed > NAMED {
        note(&format!("and {} more malformed games", reading.malformed - NAMED));
    }
    Ok(reading)
}

/// Rejects a file that is given twice: its games would count twice.
fn check_distinct(sources: &[(&PathBuf, Format)]) -> Result<(), UsageError> {
    let mut seen = Vec::new();
    for (path, _) in sources {
        let resolved = path.canonicalize().unwrap_or_else(|_| (*path).clone());
        if seen.contains(&resolved) {
            bail_usage!("{} is given twice; its games would count twice", path.display());
        }
        seen.push(resolved);
    }
    Ok(())
}

impl Reading {
    /// Counts the games of a PGN file; `name` is its name in messages.
    pub fn pgn(&mut self, source: impl Read, name: &str, progress: &Progress) -> io::Result<()> {
        let mut games = 0_u64;
        scan(source, &mut |found| {
            games += 1;
            if games.is_multiple_of(4096) {
                progress.show(|| format!("{name}: {games} games"));
            }
            match found {
                Found::Game { white, black, outcome, line } => {
                    let (white, black) = (self.counts.player(white), self.counts.player(black));
                    if white == black {
                        let reason = format!("`{}` is on both sides", self.counts.name(white));
                        self.skip(name, line, &reason, progress);
                    } else {
                        self.counts.add(white, black, outcome, 1);
                    }
                }
                Found::Unfinished => self.unfinished += 1,
                Found::Malformed { line, reason } => self.skip(name, line, &reason, progress),
            }
        })
    }

    fn skip(&mut self, name: &str, line: u64, reason: &str, progress: &Progress) {
        self.malformed += 1;
        if self.malformed <= NAMED {
            progress.clear();
            note(&format!("{name}:{line}: game skipped: {reason}"));
        }
    }
}
