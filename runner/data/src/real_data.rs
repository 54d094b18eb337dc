//! Where tests find the real data sets, which the repository does not hold.

use std::path::PathBuf;

use super::folders::{DataFolders, FOLDER_VARIABLE};

/// The folder with the data sets if it has `set`; otherwise says that the test is skipped, or
/// fails where they must be there (`SMOLFED_REQUIRE_DATA` is set).
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
