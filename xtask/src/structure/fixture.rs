//! A crate in a temporary folder, for tests of module checks.

use std::path::Path;

use super::finding::Finding;
use super::modules::Modules;
use super::sources::Sources;

/// Returns the findings of `check` in a crate with these files, whose root is `lib.rs`.
pub fn findings(
    check: fn(&Path, &[Modules<'_>]) -> Vec<Finding>,
    files: &[(&str, &str)],
) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    for (file, text) in files {
        let file = root.join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    let library = root.join("lib.rs");
    let sources = Sources::read(std::slice::from_ref(&library)).unwrap();
    let found = check(&root, &[Modules::of(&library, &sources).unwrap()]);
    found.iter().map(Finding::to_string).collect()
}
