//! Each file in Rust, C or Python begins with a sentence on its purpose, which `cargo xtask find`
//! shows. Tests and fuzz targets, which are named after the code under test, are exempt.

use std::error::Error;
use std::path::Path;

use super::finding::Finding;
use super::repository::Repository;
use crate::introduction;

/// Finds files without a purpose.
///
/// # Errors
/// A file cannot be read.
pub fn check(repository: &Repository) -> Result<Vec<Finding>, Box<dyn Error>> {
    let mut findings = Vec::new();
    for extension in ["rs", "c", "h", "py"] {
        for file in repository.with_extension(extension) {
            let text = repository.read(file)?;
            if !is_exempt(file) && introduction::of(file, &text).is_empty() {
                findings.push(Finding {
                    file: file.to_path_buf(),
                    line: 1,
                    message: "begin with a comment on the purpose of the file".to_owned(),
                });
            }
        }
    }
    Ok(findings)
}

fn is_exempt(file: &Path) -> bool {
    let exempt = ["tests", "tests.rs", "fuzz_targets"];
    file.iter()
        .any(|part| exempt.iter().any(|name| part == *name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_purpose_is_found() {
        let root = tempfile::tempdir().unwrap();
        for (file, text) in [
            ("a.rs", "//! Adds.\n"),
            ("b.rs", "use std;\n"),
            ("c.py", "import a\n"),
            ("tests.rs", "#[test]\n"),
        ] {
            std::fs::write(root.path().join(file), text).unwrap();
        }
        let repository = Repository::open(root.path()).unwrap();
        let found = check(&repository).unwrap();
        let files = found.iter().map(|found| found.file.to_str());
        assert!(files.eq([Some("b.rs"), Some("c.py")]));
    }
}
