//! The binary files of CIFAR-10: one byte for the class and 3,072 for an image, its red, green and
//! blue values, 32 × 32 each.
//!
//! Source: Krizhevsky 2009, "Learning multiple layers of features from tiny images". A folder has
//! any number of such files (`data_batch_1.bin`, ..), packed (`.gz`) or not. Files with `test` in
//! their name are the test part.

use std::io;
use std::path::{Path, PathBuf};

use super::dataset::{Dataset, DatasetError, Features, Names, Targets};

const AXES: [usize; 3] = [3, 32, 32];
const PIXELS: usize = AXES[0] * AXES[1] * AXES[2];
/// Bytes of a record: the class, then the pixels.
const RECORD: usize = 1 + PIXELS;

/// The classes, by number.
const CLASSES: [&str; 10] = [
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
];

/// Errors in a file of CIFAR-10.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CifarError {
    /// There is no file to train on, or none to test on.
    #[error(
        "has no CIFAR-10 file {part}: give files such as data_batch_1.bin, and one with test in \
         its name, such as test_batch.bin, plain or .gz"
    )]
    NoFile {
        /// The missing part.
        part: &'static str,
    },
    /// The bytes are not a whole number of records.
    #[error(
        "has {found} bytes, not a whole number of CIFAR-10 images of {RECORD} bytes (a class and 3 \
         x 32 x 32 pixels); restore it from a copy"
    )]
    Length {
        /// Bytes of the file.
        found: usize,
    },
    /// A class is beyond the tenth.
    #[error("image {image} has the class {class}, but CIFAR-10 has 10; restore it from a copy")]
    Class {
        /// The image, counted from 1.
        image: usize,
        /// Its class.
        class: u8,
    },
    /// The samples cannot be learned from.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
}

/// The files of a folder, each part in the order of names.
#[derive(Debug, Default)]
pub(super) struct Files {
    pub(super) train: Vec<PathBuf>,
    pub(super) test: Vec<PathBuf>,
}

/// Returns the files of `folder` whose names end in `.bin` or `.bin.gz`.
///
/// # Errors
/// Any error of the operating system.
pub(super) fn files(folder: &Path) -> io::Result<Files> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        paths.push(entry?.path());
    }
    paths.sort_unstable();
    let mut files = Files::default();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(".bin") || name.ends_with(".bin.gz") {
            match name.contains("test") {
                true => files.test.push(path),
                false => files.train.push(path),
            }
        }
    }
    Ok(files)
}

/// Images and their classes.
#[derive(Default)]
pub(super) struct Images {
    pixels: Vec<u8>,
    labels: Vec<u32>,
}

impl Images {
    /// Appends the images of an unpacked file, and returns their number.
    ///
    /// # Errors
    /// [`CifarError`].
    pub(super) fn append(&mut self, records: &[u8]) -> Result<usize, CifarError> {
        let found = records.len();
        if found == 0 || !found.is_multiple_of(RECORD) {
            return Err(CifarError::Length { found });
        }
        self.pixels.reserve(found);
        for (at, record) in records.chunks_exact(RECORD).enumerate() {
            let class = record[0];
            if usize::from(class) >= CLASSES.len() {
                let image = at + 1;
                return Err(CifarError::Class { image, class });
            }
            self.labels.push(class.into());
            self.pixels.extend_from_slice(&record[1..]);
        }
        Ok(found / RECORD)
    }

    /// Creates the data set. Pixels stay bytes.
    ///
    /// # Errors
    /// [`CifarError`].
    pub(super) fn into_dataset(self) -> Result<Dataset, CifarError> {
        let targets = Targets::classes(&self.labels, CLASSES.len())?;
        let names = Names {
            classes: CLASSES.map(str::to_owned).to_vec(),
            ..Names::default()
        };
        let data = Dataset::new(Features::of_bytes(self.pixels), PIXELS, targets)?;
        let data = data.with_axes(AXES.to_vec())?.with_names(names);
        Ok(data.with_maximum(Some(f32::from(u8::MAX))))
    }
}

impl Files {
    /// Checks that both parts have files.
    ///
    /// # Errors
    /// [`CifarError::NoFile`].
    pub(super) fn checked(self) -> Result<Self, CifarError> {
        for (files, part) in [(&self.train, "to train on"), (&self.test, "to test on")] {
            if files.is_empty() {
                return Err(CifarError::NoFile { part });
            }
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(class: u8, pixel: u8) -> Vec<u8> {
        let mut record = vec![pixel; RECORD];
        record[0] = class;
        record
    }

    #[test]
    fn planes_are_channels_and_stay_bytes() {
        let mut bytes = [record(3, 0), record(9, 7)].concat();
        bytes[RECORD + 1 + 1024] = 200;
        let mut images = Images::default();
        assert_eq!(images.append(&bytes), Ok(2));
        assert_eq!(images.append(&record(0, 1)), Ok(1));
        let data = images.into_dataset().unwrap();
        assert_eq!((data.len(), data.axes()), (3, &AXES[..]));
        assert_eq!(data.row(1).nth(1024), Some(200.0));
        assert!(data.features().numbers().is_none());
        assert_eq!(data.maximum(), Some(255.0));
        assert_eq!(data.names().classes[3], "cat");
    }

    #[test]
    fn damaged_files_are_refused() {
        let mut images = Images::default();
        for length in [0, RECORD - 1, RECORD + 1] {
            let error = images.append(&vec![0; length]);
            assert_eq!(error, Err(CifarError::Length { found: length }));
        }
        let bytes = [record(0, 0), record(10, 0)].concat();
        let error = CifarError::Class {
            image: 2,
            class: 10,
        };
        assert_eq!(images.append(&bytes), Err(error));
    }

    #[test]
    fn files_with_test_in_their_names_are_the_test_part() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str| std::fs::write(folder.path().join(name), "").unwrap();
        let error = |part| CifarError::NoFile { part };
        let found = || files(folder.path()).unwrap().checked();
        assert_eq!(found().unwrap_err(), error("to train on"));
        for name in ["data_batch_2.bin", "data_batch_1.bin.gz", "readme.txt"] {
            write(name);
        }
        assert_eq!(found().unwrap_err(), error("to test on"));
        write("test_batch.bin");
        let found = found().unwrap();
        assert_eq!((found.train.len(), found.test.len()), (2, 1));
        assert!(found.train[0].ends_with("data_batch_1.bin.gz"));
    }
}
