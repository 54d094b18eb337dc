//! Where tests find the real data sets, which the repository does not hold.

use std::path::PathBuf;

use super::folders::{DataFolders, FOLDER_VARIABLE};

/// The folder with the data sets if it has `set`; otherwise says that the test is skipped, or
/// fails where they must be there (the variable `CI` is set).
pub(super) fn folders(set: &str) -> Option<DataFolders> {
    let folder = match std::env::var_os(FOLDER_VARIABLE) {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/data")),
    };
    if folder.join(set).exists() {
        return Some(DataFolders::new(vec![folder]));
    }
    let place = folder.join(set);
    let place = place.display();
    assert!(
        std::env::var_os("CI").is_none(),
        "in CI the data must be at {place}"
    );
    println!("skipped: no data at {place}; {FOLDER_VARIABLE} names the folder of the data sets");
    None
}
