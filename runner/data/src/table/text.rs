//! Decoding of files as text: UTF-8 and UTF-16, otherwise Latin-1 in the form of Windows.
//!
//! A byte order mark determines the encoding. Without one, valid UTF-8 is UTF-8, and a zero in
//! every second byte means UTF-16. Everything else is decoded as Windows-1252, a superset of
//! Latin-1: every byte has a meaning there, so only the zeros of binary files are refused.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

use super::error::TableError;

/// Number of bytes that are searched for the zeros of UTF-16 and of binary files.
const HEAD: usize = 1024;

/// The first bytes of a Parquet file.
pub(super) const PARQUET: &[u8] = b"PAR1";

const PICKLE: &str = "is a Python pickle, which is not read, as it can run any program: write the \
                      table as CSV or Parquet (`pandas.read_pickle(..).to_parquet(..)`), or the \
                      array with `numpy.save`";

const OF_R: &str = "is an R file (RDS or RData), which is not read: write its table as CSV \
                    (`write.csv`)";

/// Files that are often mistaken for tables, by their first bytes, with advice for each.
const BINARY: [(&[u8], &str); 17] = [
    (
        PARQUET,
        "is a Parquet file: set `data.source = \"parquet\"`",
    ),
    (
        b"\x93NUMPY",
        "is a NumPy array: set `data.source = \"npy\"`",
    ),
    (
        b"PK\x03\x04",
        "is a zip archive: a spreadsheet must be saved as CSV, and the arrays of a .npz file are \
         read by `data.source = \"npy\"`",
    ),
    (
        b"\xd0\xcf\x11\xe0",
        "is an Excel spreadsheet: save it as CSV",
    ),
    (
        b"ARROW1\0\0",
        "is a Feather or Arrow file, which is not read: write it as Parquet or CSV \
         (`pandas.read_feather(..).to_parquet(..)`)",
    ),
    (
        b"FEA1\0",
        "is a Feather file, which is not read: write it as Parquet or CSV",
    ),
    (b"\x80\x02", PICKLE),
    (b"\x80\x03", PICKLE),
    (b"\x80\x04", PICKLE),
    (b"\x80\x05", PICKLE),
    (
        b"\x89HDF",
        "is an HDF5 file, which is not read: write its table as CSV or Parquet, or its array with \
         `numpy.save`",
    ),
    (
        b"SQLite format 3",
        "is a SQLite database, which is not read: write its table as CSV",
    ),
    (b"RDX2\n", OF_R),
    (b"RDX3\n", OF_R),
    (b"X\n\0", OF_R),
    (b"\x89PNG", "is an image: see `data.source = \"images\"`"),
    (
        b"\xff\xd8\xff",
        "is an image: see `data.source = \"images\"`",
    ),
];

/// Returns the text of a file, without a byte order mark, and the name of its encoding.
///
/// # Errors
/// [`TableError::Binary`] for files that are not text.
pub(super) fn decode(bytes: &[u8]) -> Result<(Cow<'_, str>, &'static str), TableError> {
    let magic = BINARY.iter().find(|(magic, _)| bytes.starts_with(magic));
    if let Some((_, advice)) = magic {
        return Err(TableError::Binary { advice });
    }
    let encoding = match Encoding::for_bom(bytes) {
        Some((encoding, _)) => encoding,
        None => guess(bytes)?,
    };
    // Removes a byte order mark. Malformed UTF-16 becomes U+FFFD, which is not a number.
    let (text, encoding, _) = encoding.decode(bytes);
    Ok((text, encoding.name()))
}

fn guess(bytes: &[u8]) -> Result<&'static Encoding, TableError> {
    let head = &bytes[..bytes.len().min(HEAD)];
    let zeros = |offset: usize| {
        let places = head.iter().skip(offset).step_by(2);
        places.filter(|byte| **byte == 0).count()
    };
    let (even, odd) = (zeros(0), zeros(1));
    // Text of mostly Latin letters and digits has one zero per character in UTF-16.
    let most = head.len().div_ceil(2) * 3 / 4;
    match (even, odd) {
        (0, 0) if std::str::from_utf8(bytes).is_ok() => Ok(UTF_8),
        (0, 0) => Ok(WINDOWS_1252),
        (0, odd) if odd >= most => Ok(UTF_16LE),
        (even, 0) if even >= most => Ok(UTF_16BE),
        _ => Err(TableError::Binary {
            advice: "is not text: it contains zero bytes",
        }),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn utf_16(text: &str, bytes_of: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(bytes_of).collect()
    }

    fn read(bytes: &[u8]) -> (String, &'static str) {
        let (text, name) = decode(bytes).unwrap();
        (text.into_owned(), name)
    }

    #[test]
    fn encodings_are_told_apart_and_marks_removed() {
        let text = "größe;y\n1;0\n";
        let of = |name| (text.to_owned(), name);
        assert_eq!(read(text.as_bytes()), of("UTF-8"));
        assert_eq!(read(format!("\u{feff}{text}").as_bytes()), of("UTF-8"));
        for mark in ["", "\u{feff}"] {
            let text = format!("{mark}{text}");
            assert_eq!(read(&utf_16(&text, u16::to_le_bytes)), of("UTF-16LE"));
            assert_eq!(read(&utf_16(&text, u16::to_be_bytes)), of("UTF-16BE"));
        }
        let latin_1: Vec<u8> = text.chars().map(|c| c as u8).collect();
        assert_eq!(read(&latin_1), of("windows-1252"));
    }

    #[test]
    fn binary_files_are_refused_with_advice() {
        for (bytes, words) in [
            (&b"PAR1...."[..], "parquet"),
            (b"\x93NUMPY\x01\0", "npy"),
            (b"PK\x03\x04", "spreadsheet"),
            (b"ARROW1\0\0", "Feather or Arrow"),
            (b"\x80\x04\x95", "pickle"),
            (b"\x89HDF\r\n", "HDF5"),
            (b"X\n\0\0\0\x03", "RDS"),
            (b"\0\x01\x02a,b\0", "zero bytes"),
        ] {
            let error = decode(bytes).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    proptest! {
        #[test]
        fn utf_8_keeps_its_text(text in "[^\0\u{feff}]{0,40}") {
            prop_assume!(BINARY.iter().all(|(magic, _)| !text.as_bytes().starts_with(magic)));
            prop_assert_eq!(decode(text.as_bytes()).unwrap().0, text.as_str());
        }
    }
}
