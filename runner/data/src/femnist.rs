//! The folder of FEMNIST-206: 6,237 characters of 206 writers, 28 × 28 bytes, dark on white.
//!
//! Sources: Caldas et al. 2018 (LEAF), arXiv:1812.01097, and Cohen et al. 2017 (EMNIST),
//! arXiv:1702.05373. This is a sample of FEMNIST: its accuracies are not comparable with accuracies
//! on the full set.

use std::path::Path;

use super::array::ArrayFormat;
use super::classes::Classes;
use super::config::ArraysConfig;
use super::dataset::TaskKind;
use super::mnist::packed_or_plain;

/// Returns the names of the classes: digits, capital letters, small letters.
pub(super) fn class_names() -> Vec<String> {
    ('0'..='9')
        .chain('A'..='Z')
        .chain('a'..='z')
        .map(String::from)
        .collect()
}

/// Returns the three files in `folder`, packed (`.gz`) or not. Writers are the natural devices.
pub(super) fn files(folder: &Path) -> ArraysConfig {
    let file = |name| packed_or_plain(folder, name);
    ArraysConfig {
        format: ArrayFormat::Idx,
        task: TaskKind::Classification,
        path: file("femnist206-images-idx3-ubyte"),
        label_path: file("femnist206-labels-idx1-ubyte"),
        device_path: Some(file("femnist206-writers-idx1-ubyte")),
        test: None,
        maximum: None,
        classes: Some(Classes::numbered(62)),
    }
}
