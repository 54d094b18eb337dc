use super::*;

fn record(round: u32, devices: &[u32]) -> AnswerRecord {
    let devices = devices.iter().map(|device| (*device, [round as u8; 8]));
    AnswerRecord {
        round,
        devices: devices.collect(),
    }
}

fn digests(keys: &[(u32, u8)]) -> Vec<(u32, KeyDigest)> {
    let keys = keys.iter();
    keys.map(|(n, key)| (*n, KeyDigest::of(&[*key; 32])))
        .collect()
}

fn open(path: &Path) -> Opened {
    if !path.exists() {
        std::fs::write(path, []).unwrap();
    }
    HelperLedger::open(path).unwrap()
}

#[test]
fn a_new_ledger_knows_the_keys_and_a_missing_one_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger");
    let error = HelperLedger::open(&path).unwrap_err().to_string();
    assert!(error.contains("ledger is missing"), "{error}");
    let keys = digests(&[(0, 1), (1, 2)]);
    std::fs::write(&path, HelperLedger::begin(keys.clone().into_iter())).unwrap();
    let mut ledger = open(&path).ledger;
    let before = ledger.length;
    assert!(ledger.has_keys(keys.into_iter()).unwrap().is_empty());
    assert_eq!(ledger.length, before);
}

#[test]
fn what_was_recorded_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger");
    let mut ledger = open(&path).ledger;
    let keys = digests(&[(0, 1), (1, 2), (2, 3)]);
    assert!(
        ledger
            .has_keys(keys.clone().into_iter())
            .unwrap()
            .is_empty()
    );
    ledger.answered(&record(3, &[0, 1])).unwrap();
    ledger.answered(&record(5, &[1, 2])).unwrap();
    let Opened {
        mut ledger,
        records,
        was_torn,
    } = open(&path);
    assert_eq!(records, [record(3, &[0, 1]), record(5, &[1, 2])]);
    assert!(!was_torn);
    // Nothing new, then a new device and another key.
    let length = ledger.length;
    assert!(ledger.has_keys(keys.into_iter()).unwrap().is_empty());
    assert_eq!(ledger.length, length);
    let changed = digests(&[(1, 9), (7, 8)]).into_iter();
    assert_eq!(ledger.has_keys(changed).unwrap(), [1]);
    ledger.answered(&record(6, &[1])).unwrap();
    let records = open(&path).records;
    assert_eq!(records, [record(3, &[0]), record(5, &[2]), record(6, &[1])]);
}

/// A crash loses unsynced data. Earlier records stay, since an answer may have left.
#[test]
fn a_record_is_on_the_disk_when_it_returns() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger");
    let mut ledger = open(&path).ledger;
    let disk = ledger.over_forgetful();
    let keys = digests(&[(0, 1), (1, 2)]);
    assert!(
        ledger
            .has_keys(keys.clone().into_iter())
            .unwrap()
            .is_empty()
    );
    ledger.answered(&record(3, &[0, 1])).unwrap();
    disk.crash().unwrap();
    let Opened {
        mut ledger,
        records,
        was_torn,
    } = open(&path);
    assert_eq!((records, was_torn), (vec![record(3, &[0, 1])], false));
    let length = ledger.length;
    let disk = ledger.over_forgetful();
    assert!(ledger.has_keys(keys.into_iter()).unwrap().is_empty());
    assert_eq!(ledger.length, length, "the keys were recorded");
    // Another key: earlier records do not apply to this device.
    let changed = digests(&[(1, 9)]);
    assert_eq!(ledger.has_keys(changed.into_iter()).unwrap(), [1]);
    disk.crash().unwrap();
    assert_eq!(open(&path).records, [record(3, &[0])]);
}

/// A power loss leaves a line of any length, with or without zeros behind it.
#[test]
fn an_unfinished_line_is_cut_off() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger");
    let mut ledger = open(&path).ledger;
    ledger.answered(&record(0, &[0])).unwrap();
    let first = std::fs::read(&path).unwrap();
    ledger.answered(&record(1, &[0])).unwrap();
    let both = std::fs::read(&path).unwrap();
    for length in first.len()..both.len() {
        for zeros in [0, 100] {
            let torn = [&both[..length], &vec![0; zeros]].concat();
            std::fs::write(&path, &torn).unwrap();
            let mut opened = open(&path);
            assert_eq!(opened.records, [record(0, &[0])]);
            assert_eq!(opened.was_torn, torn.len() > first.len());
            opened.ledger.answered(&record(1, &[0])).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), both);
        }
    }
}

#[test]
fn a_changed_line_is_refused_and_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger");
    let mut ledger = open(&path).ledger;
    for round in 0..3 {
        ledger.answered(&record(round, &[0, 1])).unwrap();
    }
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let without = |line: usize| {
        let kept = lines.iter().enumerate().filter(|(index, _)| *index != line);
        kept.map(|(_, line)| format!("{line}\n"))
            .collect::<String>()
    };
    for (wrong, line) in [
        (without(0), 1),
        (without(1), 2),
        (text.replace("\"round\":1", "\"round\":7"), 2),
        (text.replacen('\n', "\n\n", 1), 2),
        (text.clone() + "x\n", 4),
    ] {
        std::fs::write(&path, wrong).unwrap();
        let error = HelperLedger::open(&path).unwrap_err().to_string();
        assert!(error.contains(&format!("ledger, line {line}:")), "{error}");
    }
}

/// The device file that is always full.
#[test]
fn a_full_disk_names_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger");
    let mut ledger = open(&path).ledger;
    ledger.fill_up();
    let error = ledger.answered(&record(0, &[0])).unwrap_err().to_string();
    assert!(
        error.contains("ledger") && error.contains("space"),
        "{error}"
    );
    // The contents of the disk are unknown, so nothing is answered any more.
    let error = ledger.answered(&record(0, &[0])).unwrap_err().to_string();
    assert!(error.contains("start the helper again"), "{error}");
}
