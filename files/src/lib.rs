//! Reading files that users name. A pipe may never end and a device may have no end, so that a reader needs a regular file,
//! a limit, or both.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::Path;

/// Opens a regular file. Rejects pipes, devices and sockets, without waiting for their other end.
pub fn open(path: &Path) -> io::Result<File> {
    // Opening a pipe waits for a writer.
    check_regular(&fs::metadata(path)?)?;
    let file = File::open(path)?;
    check_regular(&file.metadata()?)?;
    Ok(file)
}

fn check_regular(metadata: &Metadata) -> io::Result<()> {
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !metadata.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "this is a pipe or a device, not a regular file",
        ));
    }
    Ok(())
}

/// Reads a regular file of at most `limit` bytes.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_bounded(open(path)?, limit)
}

/// Reads a regular text file of at most `limit` bytes.
pub fn read_text(path: &Path, limit: u64) -> io::Result<String> {
    let bytes = read(path, limit)?;
    String::from_utf8(bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "this is not text (UTF-8)"))
}

/// Reads a file of any kind to its end: at most `limit` bytes, which bounds a device. Waits for the writer of a pipe.
pub fn read_any(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_bounded(File::open(path)?, limit)
}

fn read_bounded(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(too_large(limit));
    }
    Ok(bytes)
}

/// Returns the error for something larger than `limit` bytes.
pub fn too_large(limit: u64) -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, format!("this is larger than {}", size(limit)))
}

fn size(bytes: u64) -> String {
    if bytes >= 1 << 20 { format!("{} MB", bytes >> 20) } else { format!("{bytes} bytes") }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "in a test a panic is the report")]
mod tests {
    use super::*;

    fn error<T>(result: io::Result<T>) -> String {
        result.err().unwrap().to_string()
    }

    #[test]
    fn reads_up_to_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text");
        fs::write(&path, "four").unwrap();
        assert_eq!(read_text(&path, 4).unwrap(), "four");
        assert_eq!(error(read(&path, 3)), "this is larger than 3 bytes");
        assert_eq!(error(read_any(&path, 3)), "this is larger than 3 bytes");
        fs::write(&path, [0xff]).unwrap();
        assert_eq!(error(read_text(&path, 4)), "this is not text (UTF-8)");
        assert_eq!(read(folder.path(), 4).err().unwrap().kind(), io::ErrorKind::IsADirectory);
        assert_eq!(read(&folder.path().join("gone"), 4).err().unwrap().kind(), io::ErrorKind::NotFound);
    }

    #[cfg(unix)]
    #[test]
    fn neither_waits_for_a_pipe_nor_reads_a_device() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for path in [&pipe, Path::new("/dev/zero")] {
            assert_eq!(error(open(path)), "this is a pipe or a device, not a regular file");
            assert_eq!(error(read(path, 4)), "this is a pipe or a device, not a regular file");
        }
        assert_eq!(error(read_any(Path::new("/dev/zero"), 4)), "this is larger than 4 bytes");
        // A pipe is read to its end.
        let writer = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::write(pipe, "spec").unwrap()
        });
        assert_eq!(read_any(&pipe, 4).unwrap(), b"spec");
        writer.join().unwrap();
    }
}
