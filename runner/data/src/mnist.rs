//! The folder of MNIST: 60,000 images to train on and 10,000 to test on, 28 × 28 bytes.
//!
//! Source: LeCun, Bottou, Bengio, Haffner 1998, "Gradient-based learning applied to document
//! recognition". Sets of the same layout (Fashion-MNIST, KMNIST) work, too.

use std::path::{Path, PathBuf};

use super::array::ArrayFormat;
use super::classes::Classes;
use super::config::ArraysConfig;
use super::dataset::TaskKind;

/// Returns the four files in `folder`, packed (`.gz`) or not.
pub(super) fn files(folder: &Path) -> ArraysConfig {
    let file = |name| packed_or_plain(folder, name);
    ArraysConfig {
        format: ArrayFormat::Idx,
        task: TaskKind::Classification,
        path: file("train-images-idx3-ubyte"),
        label_path: file("train-labels-idx1-ubyte"),
        device_path: None,
        test: Some((
            file("t10k-images-idx3-ubyte"),
            file("t10k-labels-idx1-ubyte"),
        )),
        maximum: None,
        classes: Some(Classes::numbered(10)),
    }
}

/// Returns `name` if it exists, otherwise `name.gz`.
pub(super) fn packed_or_plain(folder: &Path, name: &str) -> PathBuf {
    let plain = folder.join(name);
    if plain.exists() {
        plain
    } else {
        folder.join(format!("{name}.gz"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_file_wins_over_the_packed_one() {
        let folder = tempfile::tempdir().unwrap();
        let name = "train-images-idx3-ubyte";
        assert_eq!(
            files(folder.path()).path,
            folder.path().join(format!("{name}.gz"))
        );
        std::fs::write(folder.path().join(name), "").unwrap();
        assert_eq!(files(folder.path()).path, folder.path().join(name));
    }
}
