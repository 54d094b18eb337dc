//! Plain, gzipped and zipped files: recognised by their first bytes, and unpacked up to a limit.
//! Spreadsheets (Excel, LibreOffice) are refused.
//!
//! The code trusts no size in a header: the output grows as the input is decoded, and stops at
//! [`MAX_UNPACKED_BYTES`].

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Cursor, Read};

use flate2::read::MultiGzDecoder;
use zip::ZipArchive;
use zip::result::ZipError;

/// Maximum unpacked size of a packed file: 2 GiB, eight times the largest set in use, so that a
/// decompression bomb causes an error and does not exhaust the machine.
pub const MAX_UNPACKED_BYTES: u64 = 1 << 31;

const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];
const ZIP_MAGIC: &[u8] = b"PK\x03\x04";
/// An archive without members has only its end record.
const EMPTY_ZIP_MAGIC: &[u8] = b"PK\x05\x06";

/// Members that identify files of Excel and LibreOffice.
const SPREADSHEETS: [&str; 2] = ["xl/workbook.xml", "content.xml"];

/// Errors in a packed file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// The packed stream ends too early.
    #[error("the compressed data end early: the file may be truncated")]
    Truncated,
    /// The packed stream does not match its header.
    #[error("the compressed data are corrupt ({0}): copy the file again")]
    Corrupt(String),
    /// Unpacking would exceed the limit.
    #[error("unpacks to more than {limit} bytes; if that is intended, unpack it first")]
    TooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// The zip file has no member of this name.
    #[error("the archive does not contain {name}, but {names}")]
    NoSuchMember {
        /// The wanted member.
        name: String,
        /// The members of the file.
        names: String,
    },
    /// The zip file belongs to another program.
    #[error("is a spreadsheet: save it as CSV")]
    Spreadsheet,
    /// The zip file has no member of the wanted kind.
    #[error("the zip archive does not contain a .{extension} file")]
    NoMember {
        /// The wanted extension of a member's name.
        extension: &'static str,
    },
}

/// Returns the contents of `bytes`: each member that ends in `.extension` of a zip file (in the
/// order of their names, without hidden files and resource forks), or the content of a gzip or
/// plain file.
///
/// # Errors
/// [`ArchiveError`] if the data are truncated, corrupt or larger than [`MAX_UNPACKED_BYTES`] when
/// unpacked, or if the zip file has no such member.
pub fn unpack<'a>(
    bytes: &'a [u8],
    extension: &'static str,
) -> Result<Vec<Cow<'a, [u8]>>, ArchiveError> {
    unpack_up_to(bytes, extension, MAX_UNPACKED_BYTES)
}

/// Returns the content of a plain or gzipped file as a stream of any length. A zip archive stays
/// packed.
///
/// # Errors
/// Any error of the operating system.
pub fn stream(mut file: Box<dyn BufRead>) -> io::Result<Box<dyn BufRead>> {
    Ok(match file.fill_buf()?.starts_with(GZIP_MAGIC) {
        true => Box::new(BufReader::new(MultiGzDecoder::new(file))),
        false => file,
    })
}

fn unpack_up_to<'a>(
    bytes: &'a [u8],
    extension: &'static str,
    limit: u64,
) -> Result<Vec<Cow<'a, [u8]>>, ArchiveError> {
    if bytes.starts_with(GZIP_MAGIC) {
        let content = read_up_to(MultiGzDecoder::new(bytes), limit)?;
        Ok(vec![Cow::Owned(content)])
    } else if bytes.starts_with(ZIP_MAGIC) || bytes.starts_with(EMPTY_ZIP_MAGIC) {
        unzip(bytes, extension, limit)
    } else {
        Ok(vec![Cow::Borrowed(bytes)])
    }
}

fn unzip<'a>(
    bytes: &[u8],
    extension: &'static str,
    limit: u64,
) -> Result<Vec<Cow<'a, [u8]>>, ArchiveError> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(from_zip)?;
    let mut names = Vec::new();
    for name in archive.file_names() {
        let name = name.map_err(from_zip)?;
        if is_member(&name, extension) {
            names.push(name.into_owned());
        }
    }
    names.sort_unstable();
    let mut contents = Vec::new();
    let mut left = limit;
    for name in names {
        let member = archive.by_name(&name).map_err(from_zip)?;
        let content = read_up_to(member, left)?;
        left -= content.len() as u64;
        contents.push(Cow::Owned(content));
    }
    if !contents.is_empty() {
        Ok(contents)
    } else if SPREADSHEETS
        .iter()
        .any(|name| archive.by_name(name).is_ok())
    {
        Err(ArchiveError::Spreadsheet)
    } else {
        Err(ArchiveError::NoMember { extension })
    }
}

/// Returns the names of the members of a zip file that end in `.extension`, in order and without
/// it.
///
/// # Errors
/// [`ArchiveError`] if the archive is malformed.
pub fn member_names(bytes: &[u8], extension: &str) -> Result<Vec<String>, ArchiveError> {
    let archive = ZipArchive::new(Cursor::new(bytes)).map_err(from_zip)?;
    let names = archive.file_names().filter_map(Result::ok);
    let names = names.filter(|name| is_member(name, extension));
    let mut names: Vec<String> = names
        .map(|name| name[..name.len() - extension.len() - 1].to_owned())
        .collect();
    names.sort_unstable();
    Ok(names)
}

/// Returns the content of the member of a zip file with this name.
///
/// # Errors
/// [`ArchiveError`] if the archive is malformed or has no such member.
pub fn member(bytes: &[u8], name: &str) -> Result<Vec<u8>, ArchiveError> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(from_zip)?;
    let found = archive.by_name(name);
    if matches!(found, Err(ZipError::FileNotFound)) {
        drop(found);
        let names = archive.file_names().filter_map(Result::ok);
        return Err(ArchiveError::NoSuchMember {
            name: name.to_owned(),
            names: names.collect::<Vec<_>>().join(", "),
        });
    }
    read_up_to(found.map_err(from_zip)?, MAX_UNPACKED_BYTES)
}

fn is_member(name: &str, extension: &str) -> bool {
    let base = name.rsplit('/').next().unwrap_or(name);
    !name.starts_with("__MACOSX/")
        && !base.starts_with('.')
        && base
            .rsplit_once('.')
            .is_some_and(|(_, end)| end.eq_ignore_ascii_case(extension))
}

fn read_up_to(reader: impl Read, limit: u64) -> Result<Vec<u8>, ArchiveError> {
    let mut content = Vec::new();
    reader
        .take(limit.saturating_add(1))
        .read_to_end(&mut content)
        .map_err(from_io)?;
    if content.len() as u64 > limit {
        return Err(ArchiveError::TooLarge {
            limit: MAX_UNPACKED_BYTES,
        });
    }
    Ok(content)
}

fn from_io(error: io::Error) -> ArchiveError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => ArchiveError::Truncated,
        _ => ArchiveError::Corrupt(error.to_string()),
    }
}

fn from_zip(error: ZipError) -> ArchiveError {
    match error {
        ZipError::Io(error) => from_io(error),
        other => ArchiveError::Corrupt(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;
    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    fn zip(members: &[(&str, &[u8])]) -> Vec<u8> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, content) in members {
            writer
                .start_file(*name, SimpleFileOptions::default())
                .unwrap();
            writer.write_all(content).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    #[test]
    fn plain_bytes_are_borrowed_as_they_are() {
        assert_eq!(unpack(b"a,b\n1,2\n", "csv").unwrap(), [&b"a,b\n1,2\n"[..]]);
        assert_eq!(unpack(b"", "csv").unwrap(), [&b""[..]]);
    }

    #[test]
    fn gzip_is_unpacked_whatever_its_name() {
        assert_eq!(unpack(&gzip(b"hello"), "csv").unwrap(), [&b"hello"[..]]);
    }

    #[test]
    fn gzip_cut_short_is_named_so() {
        let packed = gzip(&[7; 1000]);
        for length in 2..packed.len() {
            let error = unpack(&packed[..length], "csv").unwrap_err();
            assert!(
                matches!(error, ArchiveError::Truncated),
                "{length}: {error}"
            );
        }
    }

    #[test]
    fn corrupt_gzip_is_refused_by_its_checksum() {
        let mut packed = gzip(b"some content to damage");
        let checksum = packed.len() - 8;
        packed[checksum] ^= 1;
        assert!(matches!(
            unpack(&packed, "csv").unwrap_err(),
            ArchiveError::Corrupt(_)
        ));
    }

    #[test]
    fn bomb_ends_at_the_limit() {
        let bomb = gzip(&vec![0; 1 << 20]);
        let error = unpack_up_to(&bomb, "csv", 1 << 10).unwrap_err();
        assert!(matches!(error, ArchiveError::TooLarge { .. }));
        let bomb = zip(&[("a.json", &[0; 600]), ("b.json", &[0; 600])]);
        let error = unpack_up_to(&bomb, "json", 1 << 10).unwrap_err();
        assert!(
            matches!(error, ArchiveError::TooLarge { .. }),
            "the sum of members counts"
        );
    }

    #[test]
    fn zip_members_come_in_order_without_hidden_files() {
        let packed = zip(&[
            ("data/b.json", b"B"),
            ("__MACOSX/data/a.json", b"x"),
            ("data/.c.json", b"x"),
            ("readme.txt", b"x"),
            ("data/a.JSON", b"A"),
        ]);
        assert_eq!(unpack(&packed, "json").unwrap(), [&b"A"[..], &b"B"[..]]);
    }

    #[test]
    fn zip_without_the_wanted_member_is_refused() {
        for packed in [zip(&[]), zip(&[("readme.txt", b"x")])] {
            let error = unpack(&packed, "json").unwrap_err();
            assert!(
                matches!(error, ArchiveError::NoMember { extension: "json" }),
                "{error}"
            );
        }
    }

    #[test]
    fn zip_cut_short_is_refused() {
        let packed = zip(&[("a.json", b"some content")]);
        for length in 4..packed.len() {
            assert!(unpack(&packed[..length], "json").is_err(), "{length}");
        }
    }

    proptest! {
        /// Damage anywhere causes an error or changed content, never a panic.
        #[test]
        fn damaged_archives_do_not_panic(position in 0usize..1000, bit in 0u8..8) {
            for packed in [gzip(b"some content"), zip(&[("a.json", b"some content")])] {
                let mut damaged = packed;
                let position = position % damaged.len();
                damaged[position] ^= 1 << bit;
                let _ = unpack(&damaged, "json");
            }
        }
    }
}
