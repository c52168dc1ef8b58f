//! Files and standard input, read into tallies one after the other; what cannot be counted is named on standard error.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::PathBuf;

use super::csv;
use super::pgn::{Found, scan};
use super::results::Tallies;
use crate::fail::WrongCall;
use crate::progress::Progress;

/// How many malformed games are named; all are counted.
const NAMED: u64 = 10;

/// What was read, and what was left out.
#[derive(Default)]
pub struct Reading {
    /// The finished games.
    pub tallies: Tallies,
    /// Games without a result.
    pub unfinished: u64,
    /// Games that cannot be counted.
    pub malformed: u64,
}

/// What a file holds.
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
    refuse_twice(&sources)?;
    let mut reading = Reading::default();
    let progress = Progress::default();
    for (path, format) in sources {
        let name = path.display().to_string();
        let (source, name): (Box<dyn Read>, String) = if name == "-" {
            (Box::new(io::stdin().lock()), "standard input".to_string())
        } else {
            let file = File::open(path).map_err(|error| WrongCall(format!("cannot read {name}: {error}")))?;
            (Box::new(file), name)
        };
        let cannot = |error: io::Error| WrongCall(format!("cannot read {name}: {error}"));
        match format {
            Format::Pgn => reading.pgn(source, &name, &progress).map_err(cannot)?,
            Format::Csv => {
                csv::read(BufReader::new(source), &name, &mut reading.tallies).map_err(|error| {
                    match error.downcast::<io::Error>() {
                        Ok(error) => cannot(error).into(),
                        Err(error) => error,
                    }
                })?;
            }
        }
    }
    progress.clear();
    if reading.malformed > NAMED {
        let _ = writeln!(io::stderr(), "and {} malformed games more", reading.malformed - NAMED);
    }
    Ok(reading)
}

/// The same file twice counts every game twice, and makes everything look surer than it is.
fn refuse_twice(sources: &[(&PathBuf, Format)]) -> Result<(), WrongCall> {
    let mut seen = Vec::new();
    for (path, _) in sources {
        let place = path.canonicalize().unwrap_or_else(|_| (*path).clone());
        if seen.contains(&place) {
            return Err(WrongCall(format!("{} is given twice; its games would count twice", path.display())));
        }
        seen.push(place);
    }
    Ok(())
}

impl Reading {
    /// Counts the games of one PGN file; `name` is what messages call it.
    pub fn pgn(&mut self, source: impl Read, name: &str, progress: &Progress) -> io::Result<()> {
        let mut games = 0_u64;
        scan(source, &mut |found| {
            games += 1;
            if games.is_multiple_of(4096) {
                progress.show(|| format!("{name}: {games} games"));
            }
            match found {
                Found::Game { white, black, outcome, line } => {
                    let (white, black) = (self.tallies.player(white), self.tallies.player(black));
                    if white == black {
                        let reason = format!("`{}` is on both sides", self.tallies.name(white));
                        self.leave_out(name, line, &reason, progress);
                    } else {
                        self.tallies.add(white, black, outcome, 1);
                    }
                }
                Found::Unfinished => self.unfinished += 1,
                Found::Malformed { line, reason } => self.leave_out(name, line, &reason, progress),
            }
        })
    }

    fn leave_out(&mut self, name: &str, line: u64, reason: &str, progress: &Progress) {
        self.malformed += 1;
        if self.malformed <= NAMED {
            progress.clear();
            // Where standard error cannot be written, the count in the answer still tells.
            let _ = writeln!(io::stderr(), "{name}:{line}: a game is left out: {reason}");
        }
    }
}
