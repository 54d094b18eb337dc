use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::edit::Edit;
use super::vault::Cost;
use super::*;

const DATE: &str = "2026-11-23T19:00:00Z";

fn secret(byte: u8) -> file::Secret {
    zeroize::Zeroizing::new([byte; 32])
}

fn two() -> String {
    let file = KeyFile {
        keys: BTreeMap::from([(0, secret(7)), (9, secret(0xab))]),
        device_seed: Some(5),
        ..KeyFile::default()
    };
    file.to_toml().to_string()
}

/// A folder with the keys of two devices.
fn fleet() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("keys.toml");
    fs::write(&path, two()).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    (dir, path)
}

fn open(path: &Path) -> Result<FleetKeys, KeysError> {
    FleetKeys::open(path, PassphraseSource::Nowhere)
}

fn edit(path: &Path) -> Edit {
    Edit::begin(path, &PassphraseSource::Nowhere).unwrap()
}

fn numbers(keys: &FleetKeys) -> Vec<u32> {
    keys.keys().keys().copied().collect()
}

#[test]
fn what_is_written_is_read() {
    let (_dir, path) = fleet();
    let keys = open(&path).unwrap();
    assert_eq!(numbers(&keys), [0, 9]);
    assert_eq!((keys.next_round(), keys.device_seed()), (0, Some(5)));
}

#[test]
fn round_numbers_only_go_up_and_survive() {
    let (_dir, path) = fleet();
    let mut keys = open(&path).unwrap();
    keys.use_round(4).unwrap();
    keys.use_round(2).unwrap();
    drop(keys);
    let mut keys = open(&path).unwrap();
    assert_eq!(keys.next_round(), 5);
    let error = keys.use_round(u32::MAX).unwrap_err();
    assert!(matches!(error, KeysError::NoMoreRounds { .. }));
}

#[test]
fn one_coordinator_at_a_time_whatever_becomes_of_the_file() {
    let (dir, path) = fleet();
    let link = dir.path().join("link.toml");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let _first = open(&path).unwrap();
    edit(&path).store().unwrap();
    for path in [&path, &link] {
        let error = open(path).unwrap_err();
        assert!(matches!(error, KeysError::InUse { .. }), "{error}");
    }
    fs::hard_link(&path, dir.path().join("other.toml")).unwrap();
    let error = open(&dir.path().join("other.toml")).unwrap_err();
    assert!(error.to_string().contains("hard links"), "{error}");
}

#[test]
fn keys_that_others_can_read_are_refused() {
    let (_dir, path) = fleet();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let error = open(&path).unwrap_err().to_string();
    assert!(error.contains("chmod 600"), "{error}");
}

#[test]
fn a_coordinator_takes_over_what_was_changed_and_keeps_its_devices() {
    let (_dir, path) = fleet();
    let mut keys = open(&path).unwrap();
    assert_eq!(keys.reload().unwrap(), KeyChanges::default());
    let mut change = edit(&path);
    change.revoke(9, DATE, Some("lost")).unwrap();
    change
        .add(&BTreeMap::from([(4, secret(4))]), &BTreeSet::new())
        .unwrap();
    change.store().unwrap();
    let changes = keys.reload().unwrap();
    assert_eq!((changes.added, changes.removed), (vec![4], vec![9]));
    assert_eq!(numbers(&keys), [0, 4]);
    assert_eq!(*keys.vacant(), BTreeSet::from([9]));
    assert_eq!(*keys.members(), BTreeSet::from([0, 9]));
    // It gets another key, and device 0 does as well.
    let mut change = edit(&path);
    change
        .add(&BTreeMap::from([(9, secret(90))]), &BTreeSet::new())
        .unwrap();
    change.revoke(0, DATE, None).unwrap();
    change
        .add(&BTreeMap::from([(0, secret(1))]), &BTreeSet::new())
        .unwrap();
    change.store().unwrap();
    let changes = keys.reload().unwrap();
    assert_eq!((changes.added, changes.replaced), (vec![9], vec![0]));
    assert!(changes.removed.is_empty() && keys.vacant().is_empty());
    // The same secret in a secure element derives other keys.
    let text = fs::read_to_string(&path).unwrap();
    fs::write(
        &path,
        text.replace("number = 4\n", "number = 4\nelement = true\n"),
    )
    .unwrap();
    assert_eq!(keys.reload().unwrap().replaced, [4]);
    assert_eq!(keys.reload().unwrap(), KeyChanges::default());
    drop(keys);
    assert_eq!(*open(&path).unwrap().members(), BTreeSet::from([0, 4, 9]));
}

#[test]
fn a_file_that_is_wrong_changes_nothing() {
    let (_dir, path) = fleet();
    let mut keys = open(&path).unwrap();
    for (text, expected) in [
        (two().replace("ab", "07"), "have the same key"),
        (two().replace("seed = 5", "seed = 6"), "next start"),
        (two() + "nonsense", "line "),
    ] {
        fs::write(&path, text).unwrap();
        let error = keys.reload().unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(numbers(&keys), [0, 9]);
    }
    fs::remove_file(&path).unwrap();
    assert!(keys.reload().is_err());
    assert_eq!(numbers(&keys), [0, 9]);
}

#[test]
fn a_revoked_key_does_not_come_back() {
    let (_dir, path) = fleet();
    let mut change = edit(&path);
    change.revoke(9, DATE, Some("lost")).unwrap();
    change.store().unwrap();
    for number in [9, 3] {
        let error = edit(&path).add(&BTreeMap::from([(number, secret(0xab))]), &BTreeSet::new());
        let error = error.unwrap_err().to_string();
        assert!(error.contains("was revoked on 2026-11-23"), "{error}");
    }
    let again = edit(&path).revoke(9, DATE, None).unwrap_err().to_string();
    assert!(
        again.contains("revoked on 2026-11-23T19:00:00Z already"),
        "{again}"
    );
    // Editing by hand does not help either.
    let text = fs::read_to_string(&path).unwrap();
    let by_hand = two().replace("device_seed = 5", "");
    fs::write(&path, text.replace("number = 0", "number = 5") + &by_hand).unwrap();
    let error = open(&path).unwrap_err().to_string();
    assert!(
        error.contains("the key of device") || error.contains("same key"),
        "{error}"
    );
}

#[test]
fn additions_are_checked_and_made_whole_or_not_at_all() {
    let (_dir, path) = fleet();
    let before = fs::read(&path).unwrap();
    for (number, byte, expected) in [
        (9, 1, "device 9 has a key already"),
        (3, 7, "the key offered for device 3 belongs to device 0"),
    ] {
        let mut change = edit(&path);
        let new = BTreeMap::from([(2, secret(2)), (number, secret(byte))]);
        let error = change.add(&new, &BTreeSet::new()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(change.keys().keys.len(), 2);
    }
    let error = edit(&path).revoke(5, DATE, None).unwrap_err().to_string();
    assert!(error.contains("there is no device 5"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn edits_at_the_same_time_are_all_made() {
    let (_dir, path) = fleet();
    let _coordinator = open(&path).unwrap();
    // Some wait for a file that others have meanwhile replaced.
    let add = &|number: u8| {
        let mut change = edit(&path);
        let new = BTreeMap::from([(number.into(), secret(number))]);
        change.add(&new, &BTreeSet::new()).unwrap();
        change.store().unwrap();
    };
    std::thread::scope(|scope| {
        for thread in 0..6 {
            scope.spawn(move || (20..40).for_each(|number| add(thread * 20 + number)));
        }
    });
    assert_eq!(edit(&path).keys().keys.len(), 122);
}

#[test]
fn a_coordinator_reads_encrypted_keys_again_without_the_passphrase() {
    let (dir, path) = fleet();
    let passphrase = dir.path().join("passphrase");
    fs::write(&passphrase, "six random words\n").unwrap();
    fs::set_permissions(&passphrase, fs::Permissions::from_mode(0o600)).unwrap();
    let source = PassphraseSource::File(passphrase.clone());
    let mut change = edit(&path);
    change.seal_with(Some(
        Vault::with_cost(b"six random words", Cost::TEST).unwrap(),
    ));
    change.store().unwrap();
    assert!(
        !fs::read(&path)
            .unwrap()
            .windows(6)
            .any(|text| text == b"abab")
    );
    let error = open(&path).unwrap_err().to_string();
    assert!(error.contains("is encrypted"), "{error}");
    let mut keys = FleetKeys::open(&path, source.clone()).unwrap();
    let mut change = Edit::begin(&path, &source).unwrap();
    change.revoke(9, DATE, None).unwrap();
    change.store().unwrap();
    fs::remove_file(&passphrase).unwrap();
    assert_eq!(keys.reload().unwrap().removed, [9]);
    fs::write(&passphrase, "another one\n").unwrap();
    fs::set_permissions(&passphrase, fs::Permissions::from_mode(0o600)).unwrap();
    let error = Edit::begin(&path, &source).unwrap_err().to_string();
    assert!(error.contains("the passphrase is wrong"), "{error}");
}

/// A prompt would stop the round in progress.
#[test]
fn a_running_coordinator_asks_nobody_for_a_passphrase() {
    let (_dir, path) = fleet();
    let mut keys = FleetKeys::open(&path, PassphraseSource::Terminal).unwrap();
    let mut change = edit(&path);
    change.seal_with(Some(
        Vault::with_cost(b"six random words", Cost::TEST).unwrap(),
    ));
    change.store().unwrap();
    let error = keys.reload().unwrap_err().to_string();
    assert!(error.contains("--passphrase-file"), "{error}");
    assert_eq!(numbers(&keys), [0, 9]);
}
