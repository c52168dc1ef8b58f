//! A spec and the files that it names, from the disk.

use std::path::{Path, PathBuf};

use agon_arena::{Spec, SpecError, SpecProblem, SpecSource};
use agon_proto::limits::MAX_SPEC_BYTES;

use crate::fail::WrongCall;

/// A spec that was read and understood.
pub struct SpecFile {
    /// Its text and the files it names.
    pub source: SpecSource,
    /// What it says.
    pub spec: Spec,
}

impl SpecFile {
    /// Reads a spec. The error lists every problem with its file, its line and the remedy.
    pub fn read(path: &Path) -> anyhow::Result<SpecFile> {
        let text = read_text(path)?;
        let names = SpecSource::needed_files(&text).map_err(|error| wrong(path, &error))?;
        let mut source = SpecSource { text, ..SpecSource::default() };
        for name in names {
            let file = path.parent().unwrap_or(Path::new("")).join(&name);
            source.files.insert(name, read_text(&file)?);
        }
        let spec = Spec::parse(&source).map_err(|error| wrong(path, &error))?;
        Ok(SpecFile { source, spec })
    }
}

fn read_text(path: &Path) -> anyhow::Result<String> {
    let unreadable = |error: std::io::Error| WrongCall(format!("{}: {error}", path.display()));
    let size = std::fs::metadata(path).map_err(unreadable)?.len();
    if size > MAX_SPEC_BYTES as u64 {
        let (size, most) = (size >> 20, MAX_SPEC_BYTES >> 20);
        return Err(WrongCall(format!(
            "{}: {size} MB are too many; a spec and its files have at most {most} MB together: leave some out",
            path.display()
        ))
        .into());
    }
    let bytes = std::fs::read(path).map_err(unreadable)?;
    let is_pgn = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("pgn"));
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text),
        // PGN is Latin-1 by its standard, whose bytes are the first characters of Unicode.
        Err(error) if is_pgn => Ok(error.as_bytes().iter().copied().map(char::from).collect()),
        Err(_) => Err(WrongCall(format!("{}: this is not text (UTF-8)", path.display())).into()),
    }
}

/// Lists every problem with its file and line.
fn wrong(path: &Path, error: &SpecError) -> WrongCall {
    let problem = |problem: &SpecProblem| {
        let file = match &problem.file {
            Some(name) => path.parent().unwrap_or(Path::new("")).join(name),
            None => PathBuf::from(path),
        };
        let line = problem.line.map(|line| format!(":{line}")).unwrap_or_default();
        format!("{}{line}: {}", file.display(), problem.reason)
    };
    WrongCall(error.problems.iter().map(problem).collect::<Vec<_>>().join("\n"))
}
