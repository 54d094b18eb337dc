//! The folder of the real data sets for tests (`SMOLFED_DATA`), which the repository does not
//! contain. Tests are skipped without it, or fail if `SMOLFED_REQUIRE_DATA` is set.

use std::path::PathBuf;

use super::folders::{DataFolders, FOLDER_VARIABLE};

/// Returns the folder with the data sets if it contains `set`. Otherwise the test is skipped with a
/// message, or fails if the sets are required (`SMOLFED_REQUIRE_DATA` is set).
pub(super) fn folders(set: &str) -> Option<DataFolders> {
    let folder = std::env::var_os(FOLDER_VARIABLE).map(PathBuf::from);
    if let Some(folder) = folder.filter(|folder| folder.join(set).exists()) {
        return Some(DataFolders::new(vec![folder]));
    }
    assert!(
        std::env::var_os("SMOLFED_REQUIRE_DATA").is_none(),
        "{FOLDER_VARIABLE} must name a folder with {set}"
    );
    println!("skipped: {FOLDER_VARIABLE} names no folder with {set}");
    None
}
