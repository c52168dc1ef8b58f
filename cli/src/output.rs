//! Outputs that a command writes: files, devices and pipes, and standard output as `-`.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::Context as _;

/// Returns whether an output is standard output.
pub fn is_stdout(target: &Path) -> bool {
    target.as_os_str() == "-"
}

/// Opens an output that cannot be replaced: standard output, or an existing target that is not a regular file, such as a pipe
/// or `/dev/null`. `None` for the other ones.
pub fn open_stream(target: &Path) -> anyhow::Result<Option<Box<dyn Write>>> {
    if is_stdout(target) {
        return Ok(Some(Box::new(io::stdout().lock())));
    }
    if fs::metadata(target).map_or(true, |existing| existing.is_file()) {
        return Ok(None);
    }
    let opened = File::options().write(true).open(target);
    Ok(Some(Box::new(opened.with_context(|| cannot_write(target))?)))
}

/// Writes an output. A regular file is written under a temporary name in the same folder and then renamed, so that it is never
/// there in part; a link keeps pointing to it.
pub fn write_output<T>(
    target: &Path,
    write: impl FnOnce(&mut dyn Write) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let written = |file: Box<dyn Write>| -> anyhow::Result<T> {
        let mut out = BufWriter::with_capacity(1 << 16, file);
        let answer = write(&mut out)?;
        out.flush()?;
        Ok(answer)
    };
    if let Some(stream) = open_stream(target)? {
        return written(stream);
    }
    let target = fs::canonicalize(target).unwrap_or_else(|_| target.to_path_buf());
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let temporary = target.with_file_name(format!(".{name}.{}", std::process::id()));
    let file = File::create(&temporary).with_context(|| cannot_write(&target))?;
    let answer = written(Box::new(file)).and_then(|answer| {
        fs::rename(&temporary, &target).with_context(|| cannot_write(&target))?;
        Ok(answer)
    });
    if answer.is_err() {
        // The error of the write matters more than that of the removal.
        let _ = fs::remove_file(&temporary);
    }
    answer
}

fn cannot_write(target: &Path) -> String {
    format!("{} cannot be written", target.display())
}
