//! States restored from a checkpoint, and refusals.

use super::*;

fn state(round: u32, device: u32) -> Vec<f32> {
    vec![round as f32, device as f32, 0.5]
}

fn path() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("personal.states");
    (folder, path)
}

#[test]
fn only_devices_that_were_selected_have_a_state() {
    let mut states = States::temporary(3).unwrap();
    states.reserve(&[7, 3]).unwrap();
    assert_eq!(states.read(7).unwrap(), None);
    states.write(7, 0, &state(0, 7));
    assert_eq!(states.read(7).unwrap(), Some(state(0, 7)));
    assert_eq!(
        (states.read(3).unwrap(), states.read(99).unwrap()),
        (None, None)
    );
    assert_eq!(states.device_count(), 2);
    // Without a row nothing is written, and never into another device's row.
    states.write(99, 0, &state(0, 99));
    assert_eq!(states.read(99).unwrap(), None);
    assert!(states.failure().is_none());
}

/// Whatever happens after a checkpoint, it finds its own states.
#[test]
fn a_checkpoint_finds_its_own_states() {
    let (_folder, path) = path();
    let mut states = States::create(&path, 3, "run").unwrap();
    states.reserve(&[1, 2, 3]).unwrap();
    for round in 0..4 {
        states.write(1, round, &state(round, 1));
    }
    states.write(2, 1, &state(1, 2));
    states.sync("run").unwrap();
    let digest = Some(states.digest());
    states.committed(4);
    // Lost rounds: more than there are slots, a first selection, a new device.
    states.reserve(&[4]).unwrap();
    for round in 4..9 {
        for device in 1..5 {
            states.write(device, round, &state(round, device));
        }
    }
    assert_eq!(states.read(1).unwrap(), Some(state(8, 1)));
    drop(states);

    let mut states = States::open(&path, 3, "run", 4, digest).unwrap();
    assert_eq!(states.read(1).unwrap(), Some(state(3, 1)));
    assert_eq!(states.read(2).unwrap(), Some(state(1, 2)));
    assert_eq!(
        (states.read(3).unwrap(), states.read(4).unwrap()),
        (None, None)
    );
    states.reserve(&[4, 5]).unwrap();
    states.write(4, 4, &state(4, 4));
    states.write(1, 4, &state(4, 1));
    assert_eq!(states.read(4).unwrap(), Some(state(4, 4)));
    states.sync("run").unwrap();
    let newer = Some(states.digest());
    drop(states);
    // The states of an earlier checkpoint do not match a later one, nor the other way round.
    assert!(States::open(&path, 3, "run", 5, digest).is_err());
    let states = States::open(&path, 3, "run", 5, newer).unwrap();
    assert_eq!(
        (states.read(1).unwrap(), states.read(2).unwrap()),
        (Some(state(4, 1)), Some(state(1, 2)))
    );
}

#[test]
fn files_that_are_cut_changed_or_foreign_are_refused() {
    let (_folder, path) = path();
    let mut states = States::create(&path, 3, "run").unwrap();
    states.reserve(&[1, 2]).unwrap();
    states.write(1, 0, &state(0, 1));
    states.write(2, 0, &state(0, 2));
    states.sync("run").unwrap();
    let digest = Some(states.digest());
    drop(states);
    let refusal = |length, name: &str| {
        States::open(&path, length, name, 1, digest)
            .unwrap_err()
            .to_string()
    };
    assert!(refusal(3, "other").contains("another run"));
    assert!(refusal(4, "run").contains("another run"));

    let whole = std::fs::read(&path).unwrap();
    for length in 0..whole.len() {
        std::fs::write(&path, &whole[..length]).unwrap();
        assert!(refusal(3, "run").contains("damaged"), "{length}");
    }
    // With any changed byte, no wrong state is returned, and none is missing.
    for place in 0..whole.len() {
        let mut changed = whole.clone();
        changed[place] ^= 1;
        std::fs::write(&path, &changed).unwrap();
        let Ok(states) = States::open(&path, 3, "run", 1, digest) else {
            continue;
        };
        for device in [1, 2] {
            let found = states.read(device).unwrap();
            assert_eq!(found, Some(state(0, device)), "{place}");
        }
    }
}

/// A reader that knows only the rounds of the checkpoint.
#[test]
fn a_reader_finds_the_states_of_the_checkpoint_and_writes_nothing() {
    let (_folder, path) = path();
    let mut states = States::create(&path, 3, "run").unwrap();
    states.reserve(&[5, 1, 2]).unwrap();
    states.write(5, 0, &state(0, 5));
    states.write(1, 1, &state(1, 1));
    states.sync("run").unwrap();
    states.committed(2);
    // Written after the checkpoint, so the reader must not see it.
    states.write(5, 2, &state(2, 5));
    states.write(2, 2, &state(2, 2));
    let bytes = std::fs::read(&path).unwrap();
    let found = States::inspect(&path, 2).unwrap();
    let mut devices = found.devices();
    devices.sort_unstable();
    assert_eq!(devices, [1, 5]);
    assert_eq!(found.read(5).unwrap(), Some(state(0, 5)));
    assert_eq!(found.read(2).unwrap(), None);
    assert_eq!(std::fs::read(&path).unwrap(), bytes);

    std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let error = States::inspect(&path, 2).unwrap_err().to_string();
    assert!(error.contains("shorter"), "{error}");
    std::fs::write(&path, "no such file").unwrap();
    assert!(States::inspect(&path, 2).is_err());
}
