//! Reads a spec and the files that it names.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use agon_arena::{Spec, SpecError, SpecProblem, SpecSource};
use agon_proto::limits::MAX_SPEC_BYTES;

use crate::fail::UsageError;

/// A parsed spec with its source.
pub struct SpecFile {
    /// The text of the spec and of the files that it names.
    pub source: SpecSource,
    /// The parsed spec.
    pub spec: Spec,
}

impl SpecFile {
    /// Reads a spec. The error lists every problem with its file, its line and the remedy.
    pub fn read(path: &Path) -> anyhow::Result<SpecFile> {
        let text = read_text(path)?;
        let names = SpecSource::needed_files(&text).map_err(|error| invalid(path, &error))?;
        let mut source = SpecSource { text, ..SpecSource::default() };
        for name in names {
            let file = path.parent().unwrap_or(Path::new("")).join(&name);
            source.files.insert(name, read_text(&file)?);
        }
        let spec = Spec::parse(&source).map_err(|error| invalid(path, &error))?;
        Ok(SpecFile { source, spec })
    }
}

/// Reads a file that a spec names.
pub fn read_text(path: &Path) -> anyhow::Result<String> {
    // A spec may come from a pipe, as in `agon run <(generate)`.
    let bytes = agon_files::read_any(path, MAX_SPEC_BYTES as u64).map_err(|error| match error.kind() {
        ErrorKind::FileTooLarge => UsageError(format!(
            "{} is too large; the limit for a spec and its files is {} MB",
            path.display(),
            MAX_SPEC_BYTES >> 20
        )),
        _ => UsageError(format!("cannot read {}: {error}", path.display())),
    })?;
    let has_extension =
        |known: &str| path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case(known));
    // A Polyglot book is not text. Each of its bytes is sent as a character, as in Latin-1.
    let latin1 = |bytes: &[u8]| bytes.iter().copied().map(char::from).collect();
    if has_extension("bin") {
        return Ok(latin1(&bytes));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text),
        // The standard encoding of PGN is Latin-1, whose bytes are the first characters of Unicode.
        Err(error) if has_extension("pgn") => Ok(latin1(error.as_bytes())),
        Err(_) => Err(UsageError(format!("{}: this is not text (UTF-8)", path.display())).into()),
    }
}

/// Lists every problem with its file and line.
fn invalid(path: &Path, error: &SpecError) -> UsageError {
    let problem = |problem: &SpecProblem| {
        let file = match &problem.file {
            Some(name) => path.parent().unwrap_or(Path::new("")).join(name),
            None => PathBuf::from(path),
        };
        let line = problem.line.map(|line| format!(":{line}")).unwrap_or_default();
        format!("{}{line}: {}", file.display(), problem.reason)
    };
    UsageError(error.problems.iter().map(problem).collect::<Vec<_>>().join("\n"))
}
