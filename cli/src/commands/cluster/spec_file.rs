//! A spec and the files that it names, from the disk.

use std::path::{Path, PathBuf};

use agon_arena::{Spec, SpecError, SpecSource};

use crate::fail::WrongCall;

/// A spec that was read and understood.
pub struct SpecFile {
    /// Its text and the files it names.
    pub source: SpecSource,
    /// What it says.
    pub spec: Spec,
}

impl SpecFile {
    /// Reads a spec. An error names the file, the line and the remedy.
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
    let bytes = std::fs::read(path).map_err(|error| WrongCall(format!("{}: {error}", path.display())))?;
    let text = String::from_utf8(bytes);
    Ok(text.map_err(|_| WrongCall(format!("{}: this is not text (UTF-8)", path.display())))?)
}

fn wrong(path: &Path, error: &SpecError) -> WrongCall {
    let file = match &error.file {
        Some(name) => path.parent().unwrap_or(Path::new("")).join(name),
        None => PathBuf::from(path),
    };
    let line = error.line.map(|line| format!(":{line}")).unwrap_or_default();
    WrongCall(format!("{}{line}: {}", file.display(), error.reason))
}
