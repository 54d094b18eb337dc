//! Reading of files and streams, unpacked if they are gzipped, and of arrays in archives.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use super::archive::{self, MAX_UNPACKED_BYTES};
use super::array::ArrayFormat;
use super::error::DataError;
use super::folders::archive_of;

/// Returns the bytes of a file, unchanged.
///
/// # Errors
/// [`DataError::Read`].
pub fn read(path: &Path) -> Result<Vec<u8>, DataError> {
    std::fs::read(path).map_err(refuse(path))
}

/// Returns the bytes of a file, unpacked if it is gzipped, or of an array in an archive:
/// `data.npz/x`.
///
/// # Errors
/// [`DataError`] if it cannot be read or has more than [`MAX_UNPACKED_BYTES`], or if the archive
/// has no such array.
pub fn read_unpacked(path: &Path) -> Result<Vec<u8>, DataError> {
    match array_in_archive(path, ArrayFormat::Npy) {
        Some(array) => array,
        None => {
            let file = std::fs::File::open(path).map_err(refuse(path))?;
            read_stream(Box::new(BufReader::new(file)), path)
        }
    }
}

/// Returns the bytes of a stream, unpacked if it is gzipped. `path` names it in errors.
///
/// # Errors
/// The errors of [`read_unpacked`].
pub fn read_stream(stream: Box<dyn BufRead>, path: &Path) -> Result<Vec<u8>, DataError> {
    let stream = archive::stream(stream).map_err(refuse(path))?;
    let mut bytes = Vec::new();
    let read = stream.take(MAX_UNPACKED_BYTES + 1).read_to_end(&mut bytes);
    if read.map_err(refuse(path))? as u64 > MAX_UNPACKED_BYTES {
        let reason = std::io::Error::other("it is larger than 2 GiB: split it");
        return Err(refuse(path)(reason));
    }
    Ok(bytes)
}

/// Returns the array that a path into an archive names, if it is one.
pub(super) fn array_in_archive(
    path: &Path,
    format: ArrayFormat,
) -> Option<Result<Vec<u8>, DataError>> {
    let archive = archive_of(path)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let array = |bytes: Vec<u8>| {
        let array = archive::member(&bytes, &format!("{name}.{}", format.name()));
        array.map_err(DataError::at(&path.display().to_string()))
    };
    Some(read(archive).and_then(array))
}

fn refuse(path: &Path) -> impl Fn(std::io::Error) -> DataError {
    move |reason| DataError::Read {
        path: path.to_path_buf(),
        reason,
    }
}
