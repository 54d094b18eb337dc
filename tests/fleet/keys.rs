//! Keys of a fleet over its life: revoked, added, exchanged and encrypted, and a fleet that is
//! provisioned into an archive or as text.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};

use serde_json::Value;
use smolfed_core::provision::{KEY, MAGIC, Record, text};

use crate::program::{Outcome, Place, program, wait_until};
use crate::runs::full_disk::with_small_files;

const DEVICES: &str = "--set data.devices=54";

fn fleet(options: &str) -> Place {
    let place = Place::new();
    let call = format!("provision --devices 0..4 --out fleet --with-data {DEVICES} {options}");
    place.smolfed(&call).success();
    place
}

fn private(place: &Place, name: &str, content: impl AsRef<[u8]>) {
    place.write(name, content);
    fs::set_permissions(place.path(name), Permissions::from_mode(0o600)).unwrap();
}

fn list(place: &Place, options: &str) -> Value {
    let call = format!("keys list --keys fleet/keys.toml --json {options}");
    place.smolfed(&call).success().json()
}

fn numbers(list: &Value, of: &str) -> Vec<u64> {
    let entries = list[of].as_array().unwrap().iter();
    entries
        .map(|entry| entry["number"].as_u64().unwrap())
        .collect()
}

/// Starts a device that takes part until the coordinator is gone.
fn device(place: &Place, folder: &str, number: u32) -> Child {
    let call = format!(
        "device --model softmax:64x10 --provision {folder}/device-{number}.bin --ledger \
         {folder}/device-{number}.ledger --connect unix:fleet.sock --once"
    );
    place.start(&call)
}

/// Serves three rounds with all devices. Returns the answering devices and the others' reasons.
fn serve(place: &Place, out: &str, real: &mut [Child], options: &str) -> Vec<Value> {
    let call = format!(
        "serve --keys fleet/keys.toml --listen unix:fleet.sock --simulated 50 --timeout 5s --out \
         {out} --set cohort={{sampling=\"full\"}} --set rounds=3 --json {options}"
    );
    let outcome = place.smolfed(&call);
    for device in real {
        let _ = device.kill();
        let _ = device.wait();
    }
    outcome.success();
    let text = fs::read_to_string(place.path(out).join("participation.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.collect()
}

#[test]
fn a_revoked_device_is_missing_and_its_successor_takes_part() {
    let place = fleet("");
    let revoke = "keys revoke 3 --keys fleet/keys.toml --reason stolen";
    let outcome = place.smolfed(revoke).success();
    assert!(outcome.stdout.contains("Devices with keys: 3"), "{outcome}");
    place
        .smolfed(revoke)
        .refused(2, &["device 3 was revoked on 20"]);
    // Its files still have the old key: no device answers for it, and none is simulated.
    let mut real: Vec<_> = (0..4)
        .map(|number| device(&place, "fleet", number))
        .collect();
    for round in serve(&place, "first", &mut real, "") {
        assert_eq!(round["missing"]["3"], "its key was revoked", "{round}");
        let answered = round["answered"].as_array().unwrap();
        assert!(answered.iter().all(|number| *number != 3), "{round}");
        assert_eq!(round["cohort"].as_array().unwrap().len(), 54);
    }
    place.smolfed("account --verify first").success();

    let rotate =
        format!("keys rotate 3 --keys fleet/keys.toml --out new --with-data --budget 2 {DEVICES}");
    let outcome = place.smolfed(&rotate).success();
    assert!(
        outcome.stdout.contains("0 of 2 participations"),
        "{outcome}"
    );
    let mut real = [device(&place, "new", 3)];
    let rounds = serve(&place, "second", &mut real, "--min-devices 1");
    let answered = rounds.iter().filter(|round| {
        let answered = round["answered"].as_array().unwrap();
        answered.iter().any(|number| *number == 3)
    });
    assert!((1..=2).contains(&answered.count()), "{rounds:?}");
    let list = list(&place, "");
    assert_eq!(numbers(&list, "devices"), [0, 1, 2, 3]);
    assert_eq!(numbers(&list, "revoked"), [3]);
    assert_eq!(list["revoked"][0]["reason"], "stolen");
}

#[test]
fn keys_change_while_a_coordinator_runs_and_a_second_one_is_refused() {
    let place = fleet("");
    let serve = format!(
        "serve --keys fleet/keys.toml --listen unix:fleet.sock --simulated 50 --timeout 60s \
         --out served --set cohort={{sampling=\"full\"}} {DEVICES}"
    );
    let mut coordinator = place.start(&serve);
    wait_until(|| place.path("fleet.sock").exists());
    assert_eq!(list(&place, "")["in_use"], true);
    // From now on, it can be notified of changes.
    wait_until(|| {
        let lock = fs::read_to_string(place.path("fleet/keys.toml.lock"));
        lock.is_ok_and(|lock| lock.ends_with('\n'))
    });
    let outcome = place
        .smolfed("keys revoke 1 --keys fleet/keys.toml")
        .success();
    assert!(
        outcome
            .stdout
            .contains("The running coordinator was notified"),
        "{outcome}"
    );
    let again = serve.replace("served", "again");
    place
        .smolfed(&again)
        .refused(2, &["fleet/keys.toml is in use by another coordinator"]);
    // The change is kept, and did not stop the coordinator.
    assert!(coordinator.try_wait().unwrap().is_none());
    coordinator.kill().unwrap();
    coordinator.wait().unwrap();
    let list = list(&place, "");
    assert_eq!(
        (&list["in_use"], numbers(&list, "revoked")),
        (&Value::Bool(false), vec![1])
    );
}

#[test]
fn fleets_grow_by_other_keys_and_no_key_comes_back() {
    let place = fleet("");
    private(
        &place,
        "backup.toml",
        fs::read(place.path("fleet/keys.toml")).unwrap(),
    );
    let more = "provision --devices 4..6 --out more --set data.devices=6";
    place.smolfed(more).success();
    let add = |from: &str| place.smolfed(&format!("keys add {from} --keys fleet/keys.toml"));
    let outcome = add("more/keys.toml").success();
    assert!(
        outcome
            .stdout
            .contains("added: 4, 5. The fleet has 6 devices"),
        "{outcome}"
    );
    add("more/keys.toml").refused(2, &["device 4 has a key already", "keys rotate 4"]);
    for number in 0..4 {
        let call = format!("keys revoke {number} --keys fleet/keys.toml");
        place.smolfed(&call).success();
    }
    let before = fs::read(place.path("fleet/keys.toml")).unwrap();
    add("backup.toml").refused(2, &["device 0 was revoked on 20"]);
    assert_eq!(fs::read(place.path("fleet/keys.toml")).unwrap(), before);
    let list = list(&place, "");
    assert_eq!(numbers(&list, "devices"), [4, 5]);
    assert_eq!(list["without_key"].as_array().unwrap().len(), 4);
    let text = place
        .smolfed("keys list --keys fleet/keys.toml")
        .success()
        .stdout;
    assert!(
        text.contains("devices with keys: 2 (4, 5)\ndevices without keys: 4 (0 to 3)\n"),
        "{text}"
    );
    let key = String::from_utf8(before).unwrap();
    let key = key
        .lines()
        .find_map(|line| line.strip_prefix("key = "))
        .unwrap();
    assert!(!text.contains(key.trim_matches('"')));
}

#[test]
fn encrypted_keys_need_their_passphrase_everywhere() {
    let place = Place::new();
    private(&place, "first", "correct horse battery\n");
    private(&place, "second", "staple\tstaple staple");
    let call = format!("provision --devices 0..2 --out fleet {DEVICES} --passphrase-file first");
    place.smolfed(&call).success();
    let stored = || fs::read(place.path("fleet/keys.toml")).unwrap();
    assert!(stored().starts_with(b"smolfed keys, encrypted: argon2id m=65536 t=3 p=4 salt="));
    let keys = "--keys fleet/keys.toml";
    place
        .smolfed(&format!("keys list {keys}"))
        .refused(2, &["is encrypted", "--passphrase-file"]);
    let wrong = place.smolfed(&format!("keys revoke 1 {keys} --passphrase-file second"));
    wrong.refused(
        2,
        &["fleet/keys.toml: does not open: the passphrase is wrong"],
    );
    assert_eq!(
        numbers(&list(&place, "--passphrase-file first"), "devices"),
        [0, 1]
    );
    place
        .smolfed(&format!("keys revoke 1 {keys} --passphrase-file first"))
        .success();
    let change = format!("keys encrypt {keys} --passphrase-file first");
    place
        .smolfed(&change)
        .refused(2, &["is encrypted already", "--new-passphrase-file"]);
    place
        .smolfed(&format!("{change} --new-passphrase-file second"))
        .success();
    // From the environment, and from a systemd unit's credentials.
    fs::create_dir(place.path("credentials")).unwrap();
    fs::copy(
        place.path("second"),
        place.path("credentials/smolfed-keys-passphrase"),
    )
    .unwrap();
    for (variable, value) in [
        ("SMOLFED_KEYS_PASSPHRASE_FILE", "second"),
        ("CREDENTIALS_DIRECTORY", "credentials"),
    ] {
        let mut command = place.command(program());
        command
            .args(["keys", "list", "--keys", "fleet/keys.toml"])
            .env(variable, value);
        let outcome = Outcome::of(command.output().unwrap(), "keys list").success();
        assert!(
            outcome
                .stdout
                .contains("toml, encrypted\ndevices with keys: 1 (0)"),
            "{outcome}"
        );
    }
    let mode = fs::metadata(place.path("fleet/keys.toml"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    for cut in [10, 100, stored().len() - 1] {
        private(&place, "cut.toml", &stored()[..cut]);
        let outcome = place.smolfed("keys list --keys cut.toml --passphrase-file second");
        outcome.refused(2, &["cut.toml: "]);
    }
    place
        .smolfed(&format!("keys decrypt {keys} --passphrase-file second"))
        .success();
    assert!(stored().starts_with(b"# The keys of a fleet."));
    place
        .smolfed(&format!("keys decrypt {keys}"))
        .refused(2, &["is not encrypted"]);
}

#[test]
fn an_archive_has_the_files_of_the_folder_and_a_line_of_text_is_a_record() {
    let place = Place::new();
    let call = format!(
        "provision --devices 0..3 --out fleet {DEVICES} --archive devices.zip --records records.txt"
    );
    place.smolfed(&call).success();
    assert_eq!(place.names(), ["devices.zip", "fleet", "records.txt"]);
    let file = fs::File::open(place.path("devices.zip")).unwrap();
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let mut archive = zip::ZipArchive::new(file).unwrap();
    assert_eq!(archive.len(), 6);
    archive.extract(place.path("taken")).unwrap();
    assert_eq!(
        fs::metadata(place.path("taken/device-2.ledger"))
            .unwrap()
            .len(),
        256
    );
    assert_eq!(
        fs::metadata(place.path("taken/device-2.bin"))
            .unwrap()
            .len(),
        128
    );
    let records = fs::read_to_string(place.path("records.txt")).unwrap();
    let lines: Vec<_> = records.lines().collect();
    let is_qr = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == ':';
    assert!(
        lines
            .iter()
            .all(|line| line.len() == 215 && line.chars().all(is_qr)),
        "{records}"
    );
    // A device with its line gets as far as a device with its file: its samples are missing.
    private(&place, "one.txt", lines[1]);
    let device = |provision: &str| {
        let call = format!(
            "device --model softmax:64x10 --provision {provision} --ledger taken/device-1.ledger \
             --connect unix:fleet.sock --once"
        );
        place.smolfed(&call)
    };
    device("taken/device-1.bin").refused(2, &["has no samples: give `--data FILE"]);
    device("one.txt").refused(2, &["one.txt has no samples: give `--data FILE"]);
    device("records.txt").refused(2, &["records.txt: has 3 records: give one"]);
    device("devices.zip").refused(2, &["devices.zip: is an archive: take a device out of it"]);
    place.write(
        "devices.zip",
        &fs::read(place.path("devices.zip")).unwrap()[..500],
    );
    device("devices.zip").refused(2, &["devices.zip: is an archive"]);
    private(&place, "changed.txt", lines[1].replace(":1:", ":2:"));
    device("changed.txt").refused(2, &["changed.txt: the number before the record"]);
    private(&place, "cut.txt", &lines[1][..150]);
    device("cut.txt").refused(2, &["cut.txt: "]);
    let again = call.replace("--out fleet", "--out again");
    place
        .smolfed(&again)
        .refused(2, &["devices.zip already exists"]);
    assert!(!place.path("again").exists());
}

/// With a line on standard input, a device takes part with its own new ledger.
#[test]
fn a_device_is_provisioned_from_standard_input() {
    let place = Place::new();
    let call = format!("provision --devices 0..1 --out fleet {DEVICES} --records records.txt");
    place.smolfed(&call).success();
    place.smolfed("init --help").success();
    let columns: Vec<String> = (0..64).map(|i| format!("x{i}")).collect();
    let row = |class: u32| format!("{}{class}\n", "0.5,".repeat(64));
    place.write(
        "own.csv",
        format!("{},class\n{}{}", columns.join(","), row(1), row(2)),
    );
    let options = "--model softmax:64x10 --data own.csv --label class --connect unix:fleet.sock \
                   --once";
    let start = |more: &str| {
        let call = format!("device --provision - --ledger own.ledger {options} {more}");
        let mut command = place.command(program());
        command
            .args(call.split_whitespace())
            .stdin(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let line = fs::read(place.path("records.txt")).unwrap();
        child.stdin.take().unwrap().write_all(&line).unwrap();
        child
    };
    let missing = Outcome::of(start("").wait_with_output().unwrap(), "device");
    missing.refused(2, &["own.ledger: there is no ledger"]);
    let mut child = start("--new-ledger");
    wait_until(|| place.path("own.ledger").exists());
    let _ = child.kill();
    let _ = child.wait();
    let again = Outcome::of(start("--new-ledger").wait_with_output().unwrap(), "device");
    again.refused(2, &["own.ledger: already exists"]);

    // From a file with the line, which then contains the record without its first key.
    let line = fs::read(place.path("records.txt")).unwrap();
    let start = |more: &str| {
        let call = format!("device --provision records.txt --ledger second.ledger {options}");
        place.start(&format!("{call} {more}"))
    };
    let mut first = start("--new-ledger");
    wait_until(|| {
        fs::read(place.path("records.txt"))
            .unwrap()
            .starts_with(&MAGIC)
    });
    let _ = first.kill();
    let _ = first.wait();
    let bytes = fs::read(place.path("records.txt")).unwrap();
    let record = Record::read(&bytes).unwrap();
    assert!(record.key.is_none() && record.identity.device == 0);
    let mut page = vec![0; line.len()];
    let length = text::read(&line, &mut page).unwrap();
    page[KEY].fill(0);
    assert_eq!(bytes, page[..length], "nothing else is changed");
    let mut second = start("");
    let mut said = BufReader::new(second.stderr.take().unwrap()).lines();
    let sentence = said.next().unwrap().unwrap();
    assert!(sentence.contains("nobody listens there yet"), "{sentence}");
    let _ = second.kill();
    let _ = second.wait();
}

#[test]
fn what_cannot_be_written_is_named_and_nothing_is_left() {
    let place = Place::new();
    place.write("file", "");
    for (what, call) in [
        ("file/keys", "--out file/keys"),
        ("file/devices.zip", "--out new --archive file/devices.zip"),
        ("file/records", "--out new --records file/records"),
    ] {
        let outcome = place.smolfed(&format!("provision --devices 0..2 {call}"));
        outcome.refused(1, &["cannot write", what]);
    }
    let many = "provision --devices 0..50 --set data.devices=60 --out full";
    let outcome = with_small_files(&place, 1, many);
    outcome.refused(1, &["cannot write full/"]);
    let outcome = with_small_files(&place, 8, &format!("{many} --archive devices.zip"));
    outcome.refused(1, &["cannot write devices.zip"]);
    let outcome = with_small_files(&place, 8, &format!("{many} --records records.txt"));
    outcome.refused(1, &["cannot write records.txt"]);
    assert_eq!(fs::read_dir(place.path("full")).unwrap().count(), 0);
    assert!(!place.path("devices.zip").exists() && !place.path("records.txt").exists());

    place.smolfed(many).success();
    let before = fs::read(place.path("full/keys.toml")).unwrap();
    for command in ["revoke 3", "rotate 3 --out rotated --set data.devices=60"] {
        let call = format!("keys {command} --keys full/keys.toml");
        let outcome = with_small_files(&place, 1, &call);
        outcome.refused(1, &["cannot write full/keys.toml"]);
        assert_eq!(fs::read(place.path("full/keys.toml")).unwrap(), before);
        assert!(!place.path("full/keys.toml.partial").exists());
    }
    assert!(!place.path("rotated/device-3.bin").exists());
}

/// Its session ends at once, and the run continues without it.
#[test]
fn a_key_that_is_revoked_in_a_round_ends_the_session() {
    let place = fleet("");
    let mut real = [0, 1, 2].map(|number| device(&place, "fleet", number));
    // Device 3 never connects: each round lasts until its time-out.
    let serve = format!(
        "serve --keys fleet/keys.toml --listen unix:fleet.sock --simulated 50 --timeout 4s \
         --out served --json --set cohort={{sampling=\"full\"}} --set rounds=2 {DEVICES}"
    );
    let coordinator = place.start(&serve);
    wait_until(|| {
        let ledger = fs::read(place.path("fleet/device-1.ledger")).unwrap_or_default();
        ledger.get(128..132) == Some(b"sfL3")
    });
    place
        .smolfed("keys revoke 1 --keys fleet/keys.toml")
        .success();
    let output = coordinator.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = fs::read_to_string(place.path("served/participation.jsonl")).unwrap();
    for line in text.lines() {
        let round: Value = serde_json::from_str(line).unwrap();
        assert_eq!(round["missing"]["1"], "its key was revoked", "{round}");
        assert_eq!(round["answered"], serde_json::json!([0, 2]), "{round}");
    }
    for device in &mut real {
        let _ = device.kill();
        let _ = device.wait();
    }
}

/// The secrets are in one file each, for the element only, and stay there when they are exchanged.
#[test]
fn secrets_for_an_element_are_in_no_other_file_of_a_device() {
    let place = fleet("--element");
    let read = |name: &str| fs::read(place.path(name)).unwrap();
    let has = |bytes: &[u8], secret: &[u8]| bytes.windows(32).any(|window| window == secret);
    let in_element = |list: &Value| -> Vec<bool> {
        let devices = list["devices"].as_array().unwrap().iter();
        devices.map(|entry| entry["element"] == true).collect()
    };
    let rotate = format!("keys rotate 3 --keys fleet/keys.toml --out new --budget 2 {DEVICES}");
    let rotated = place.smolfed(&rotate).success();
    assert!(rotated.stdout.contains("new/device-3.element"), "{rotated}");
    for name in ["fleet/device-0", "fleet/device-3", "new/device-3"] {
        let secrets = read(&format!("{name}.element"));
        assert_eq!(secrets.len(), 64);
        for other in ["bin", "ledger"] {
            let bytes = read(&format!("{name}.{other}"));
            let (root, key) = secrets.split_at(32);
            assert!(!has(&bytes, root) && !has(&bytes, key), "{name}.{other}");
        }
    }
    assert_eq!(in_element(&list(&place, "")), [true; 4]);
    // Also after a revocation.
    place
        .smolfed("keys revoke 2 --keys fleet/keys.toml")
        .success();
    assert_eq!(in_element(&list(&place, "")), [true; 3]);
    let rotate = format!("keys rotate 2 --keys fleet/keys.toml --out two --budget 2 {DEVICES}");
    place.smolfed(&rotate).success();
    assert!(place.path("two/device-2.element").exists());
    assert_eq!(in_element(&list(&place, "")), [true; 4]);
    let again = format!("provision --devices 0..4 --out fleet --element {DEVICES}");
    place
        .smolfed(&again)
        .refused(2, &["already exists and is not overwritten"]);
    let call = "device --model softmax:64x10 --provision fleet/device-0.bin --ledger \
                fleet/device-0.ledger --connect unix:fleet.sock";
    let expected = ["for a device with a secure element", "without `--element`"];
    place.smolfed(call).refused(2, &expected);
}
