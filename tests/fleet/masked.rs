//! A coordinator, a helper and devices as processes, none of which sees another's update. The model
//! equals a simulation of the same participation.

use std::process::Child;

use super::device::{Device, send};
use super::{FULL, Place, assert_is_the_simulation, lines, part_of, provision, wait, wait_until};
use crate::program::{Outcome, TIMEOUT};

pub(crate) const MASKED: &str = "--set privacy.trust=distributed";

/// A helper that is killed at the end of the test.
pub(crate) struct Helper {
    child: Child,
    number: u8,
    options: String,
}

impl Helper {
    /// Starts helper `number` at `helper-<number>.sock`.
    pub(crate) fn start(place: &Place, number: u8) -> Self {
        Self::start_with(place, number, "")
    }

    fn start_with(place: &Place, number: u8, options: &str) -> Self {
        Self {
            child: Self::spawn(place, number, options),
            number,
            options: options.to_owned(),
        }
    }

    fn spawn(place: &Place, number: u8, options: &str) -> Child {
        place.start(&format!(
            "helper fleet/helper-{number}.toml --listen unix:helper-{number}.sock {options}"
        ))
    }

    pub(super) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Kills the helper and starts it again.
    pub(super) fn restart(&mut self, place: &Place) {
        self.kill();
        self.child = Self::spawn(place, self.number, &self.options);
    }

    /// Stops like a supervisor. Returns the output.
    fn stop(mut self) -> Outcome {
        send(&self.child, "-TERM");
        let child = std::mem::replace(&mut self.child, nobody());
        wait(child, "helper")
    }
}

/// Returns a process that has exited, or is about to.
fn nobody() -> Child {
    std::process::Command::new("true").spawn().unwrap()
}

impl Drop for Helper {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns arguments of a coordinator that uses the helper at `helper-0.sock`.
fn serve(settings: &str) -> String {
    super::serve("20s", &format!("{settings} --helper unix:helper-0.sock"))
}

/// Returns the rounds answered by a helper.
fn answers(place: &Place, helper: u8) -> Vec<u64> {
    let path = place.path(format!("fleet/helper-{helper}.toml.ledger"));
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    let parsed = lines.map(|(_, line)| serde_json::from_str(line).unwrap());
    let parsed: Vec<serde_json::Value> = parsed.collect();
    let answers = parsed
        .iter()
        .filter_map(|line| line["answer"]["round"].as_u64());
    answers.collect()
}

pub(crate) fn burned(place: &Place, out: &str) -> usize {
    let rounds = lines(&place.path(out).join("metrics.jsonl"));
    rounds
        .iter()
        .filter(|round| round["burned"] == true)
        .count()
}

#[test]
fn a_helper_gives_the_model_of_the_simulation() {
    let place = Place::new();
    let settings = format!("{FULL} {MASKED} --set rounds=4");
    provision(&place, &settings);
    let helper = Helper::start(&place, 0);
    let devices = Device::start_all(&place, 0..4);
    let arguments = serve(&settings);
    let outcome = wait(place.start(&arguments), &arguments).success();
    assert_eq!(outcome.json()["rounds"], 4, "{outcome}");
    assert_eq!(burned(&place, "served"), 0, "{outcome}");
    for device in 0..4 {
        assert_eq!(
            part_of(&place, "served", device).0,
            [0, 1, 2, 3],
            "{outcome}"
        );
    }
    assert_eq!(answers(&place, 0), [0, 1, 2, 3]);
    assert_is_the_simulation(&place, "served");
    // The helper's output names no device.
    let said = helper.stop();
    assert_eq!(said.code, Some(0), "{said}");
    assert!(said.stderr.contains("round 3: answered"), "{said}");
    assert!(!said.stderr.contains("device 1"), "{said}");
    // An experiment without masks gets no update from these devices.
    let central = format!("{FULL} --set rounds=1");
    let central = super::serve("20s", &central).replace("served", "central");
    wait(place.start(&central), &central).success();
    for device in 0..4 {
        let (answered, missing) = part_of(&place, "central", device);
        assert!(
            answered.is_empty() && missing[0].contains("helper"),
            "{missing:?}"
        );
    }
    drop(devices);
}

#[test]
fn two_helpers_over_tcp_and_correlated_noise_give_the_model_of_the_simulation() {
    let place = Place::new();
    let settings = format!(
        "{FULL} --set rounds=6 --set privacy.trust=distributed=2 --set privacy.mechanism=correlated"
    );
    provision(&place, &settings);
    let ports = [super::tls::free_port(), super::tls::free_port()];
    let _helpers = [0, 1].map(|helper| {
        let options = format!("--listen tcp:127.0.0.1:{}", ports[usize::from(helper)]);
        Helper::start_with(&place, helper, &options)
    });
    let _devices = Device::start_all(&place, 0..4);
    let [first, second] = ports;
    let arguments = super::serve(
        "20s",
        &format!("{settings} --helper tcp:127.0.0.1:{first} --helper tcp:127.0.0.1:{second}"),
    );
    let outcome = wait(place.start(&arguments), &arguments).success();
    assert_eq!(burned(&place, "served"), 0, "{outcome}");
    assert_eq!(answers(&place, 0), [0, 1, 2, 3, 4, 5]);
    assert_eq!(answers(&place, 1), [0, 1, 2, 3, 4, 5]);
    assert_is_the_simulation(&place, "served");
}

/// Whenever it is killed, it answers once per round, and the run continues.
#[test]
fn a_helper_that_is_killed_again_and_again_answers_once_a_round() {
    let place = Place::new();
    // More rounds than five kills take, and few enough for a slow disk.
    const ROUNDS: u64 = 60;
    let settings = format!("{FULL} {MASKED} --set rounds={ROUNDS}");
    provision(&place, &settings);
    let mut helper = Helper::start(&place, 0);
    let _devices = Device::start_all(&place, 0..4);
    let arguments = serve(&settings);
    let coordinator = place.start(&arguments);
    let mut kills = 0;
    for kill in 1..6 {
        let (begun, last) = (answers(&place, 0).len() + 1, Some(ROUNDS - 1));
        let is_over = || answers(&place, 0).last().copied() == last;
        wait_until(|| answers(&place, 0).len() > begun || is_over());
        if is_over() {
            break;
        }
        // Later each time, so that the kills hit different moments of a round.
        std::thread::sleep(std::time::Duration::from_millis(kill));
        helper.restart(&place);
        kills += 1;
    }
    // If this test is slow, rounds pass between two kills, but never all of them.
    assert!(kills > 1, "{kills}");
    let outcome = wait(coordinator, &arguments).success();
    assert_eq!(outcome.json()["rounds"], ROUNDS, "{outcome}");
    let answered = answers(&place, 0);
    assert!(answered.is_sorted_by(|a, b| a < b), "{answered:?}");
    let lost = burned(&place, "served");
    assert!(lost <= kills, "{outcome}");
    // A lost round was recorded, and its answer was not received.
    assert!(
        (answered.len() + lost) as u64 >= ROUNDS,
        "{answered:?} {outcome}"
    );
    assert_is_the_simulation(&place, "served");
}

#[test]
fn a_coordinator_waits_for_its_helper_or_stops_and_burns_no_round() {
    let place = Place::new();
    let settings = format!("{FULL} {MASKED} --set rounds=3");
    provision(&place, &settings);
    let _devices = Device::start_all(&place, 0..4);
    let stopping = format!("{} --helper-missing stop", serve(&settings));
    let outcome = wait(place.start(&stopping), &stopping);
    outcome.refused(1, &["helper 0 does not answer", "unix:helper-0.sock"]);
    let resume = "serve --resume served --helper-missing wait --json";
    let coordinator = place.start(resume);
    std::thread::sleep(std::time::Duration::from_millis(1500));
    assert!(
        lines(&place.path("served/ledger.jsonl")).is_empty(),
        "nothing was charged"
    );
    let _helper = Helper::start(&place, 0);
    let outcome = wait(coordinator, resume).success();
    assert!(
        outcome.stderr.contains("no round begins until it does"),
        "{outcome}"
    );
    assert!(outcome.stderr.contains("all helpers answer"), "{outcome}");
    assert_eq!(burned(&place, "served"), 0, "{outcome}");
    assert_is_the_simulation(&place, "served");
}

#[test]
fn a_second_coordinator_is_refused_with_a_sentence() {
    let place = Place::new();
    let settings = format!("{FULL} {MASKED} --set rounds=3");
    provision(&place, &settings);
    let _helper = Helper::start(&place, 0);
    // Without devices, the first round of the first coordinator lasts until its time-out.
    let first = place.start(&serve(&settings).replace("20s", "600s"));
    let mut first = Device(first);
    wait_until(|| place.path("served/ledger.jsonl").exists());
    std::fs::create_dir(place.path("copy")).unwrap();
    std::fs::copy(place.path("fleet/keys.toml"), place.path("copy/keys.toml")).unwrap();
    let second = serve(&settings)
        .replace("fleet/keys.toml", "copy/keys.toml")
        .replace("fleet.sock", "other.sock")
        .replace("--out served", "--out second --helper-missing stop");
    let outcome = wait(place.start(&second), &second);
    outcome.refused(1, &["another coordinator is connected to it"]);
    assert!(
        first.0.try_wait().unwrap().is_none(),
        "the first one goes on"
    );
}

/// If a helper has answered another request, or has other keys, the round is burned and reported.
/// After three such rounds the run stops.
#[test]
fn a_helper_that_refuses_costs_rounds_and_three_in_a_row_end_the_run() {
    let place = Place::new();
    let settings = format!("{FULL} {MASKED} --set rounds=5");
    provision(&place, &settings);
    let revoked = place
        .smolfed("keys revoke 1 --keys fleet/helper-0.toml")
        .success();
    assert!(revoked.stdout.contains("revoked: 1"), "{revoked}");
    let helper = Helper::start(&place, 0);
    let _devices = Device::start_all(&place, 0..4);
    let arguments = serve(&settings);
    let outcome = wait(place.start(&arguments), &arguments);
    assert_eq!(outcome.code, Some(1), "{outcome}");
    for expected in ["round 0 is lost", "3 rounds in a row were lost"] {
        assert!(outcome.stderr.contains(expected), "{outcome}");
    }
    // Standard error does not name the device.
    assert!(outcome.stderr.contains("a device was revoked"), "{outcome}");
    assert_eq!(answers(&place, 0), [0u64; 0]);
    assert_eq!(burned(&place, "served"), 3);
    let said = helper.stop();
    assert!(said.stderr.contains("round 0: refused (revoked)"), "{said}");
}

/// A device with a wrong tag, here because the helper has another key for it, costs one round and
/// is not invited again.
#[test]
fn a_device_with_a_wrong_tag_costs_one_round() {
    let place = Place::new();
    let settings = format!("{FULL} {MASKED} --set rounds=4");
    provision(&place, &settings);
    let file = place.path("fleet/helper-0.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let key = text.match_indices("mask = \"").nth(1).unwrap().0 + "mask = \"".len();
    let other = if &text[key..=key] == "0" { "1" } else { "0" };
    let text = format!("{}{other}{}", &text[..key], &text[key + 1..]);
    place.write("fleet/helper-0.toml", text);
    let helper = Helper::start(&place, 0);
    let _devices = Device::start_all(&place, 0..4);
    let arguments = serve(&settings);
    let outcome = wait(place.start(&arguments), &arguments).success();
    assert_eq!(burned(&place, "served"), 1, "{outcome}");
    assert_eq!(answers(&place, 0), [1, 2, 3]);
    let (answered, missing) = part_of(&place, "served", 1);
    assert!(answered.is_empty() || answered == [0], "{answered:?}");
    assert!(missing.ends_with(&["in quarantine".into(), "in quarantine".into()]));
    let why = std::fs::read_to_string(place.path("fleet/keys.toml.quarantine")).unwrap();
    for expected in ["number = 1", "since = 1", "the tag of a device is wrong"] {
        assert!(why.contains(expected), "{why}");
    }
    let said = helper.stop();
    assert!(said.stderr.contains("round 0: refused (tag)"), "{said}");
}

#[test]
fn no_file_has_mask_keys_and_device_keys() {
    let place = Place::new();
    let settings = format!("{FULL} --set privacy.trust=distributed=2 --set rounds=4");
    place
        .smolfed(&format!("provision --devices 0..4 --out fleet {settings}"))
        .success();
    let keys = |file: &str, name: &str| -> Vec<Vec<u8>> {
        let text = std::fs::read_to_string(place.path("fleet").join(file)).unwrap();
        let begin = format!("{name} = \"");
        let values = text.lines().filter_map(|line| line.strip_prefix(&begin));
        let keys: Vec<Vec<u8>> = values
            .map(|value| bytes_of(value.trim_end_matches('"')))
            .collect();
        assert_eq!(
            keys.len(),
            if name == "link" { keys.len() } else { 4 },
            "{file}"
        );
        keys
    };
    let devices = keys("keys.toml", "key");
    let masks = [keys("helper-0.toml", "mask"), keys("helper-1.toml", "mask")];
    assert_eq!(keys("keys.toml", "link").len(), 2);
    let has_any = |bytes: &[u8], keys: &[Vec<u8>]| {
        let contains = |key: &[u8]| bytes.windows(key.len()).any(|window| window == key);
        let digits = |key: &[u8]| key.iter().map(|x| format!("{x:02x}")).collect::<String>();
        keys.iter()
            .any(|key| contains(key) || contains(digits(key).as_bytes()))
    };
    let mut with_masks = 0;
    for entry in std::fs::read_dir(place.path("fleet")).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        let of = [
            has_any(&bytes, &devices),
            has_any(&bytes, &masks[0]),
            has_any(&bytes, &masks[1]),
        ];
        let count = of.iter().filter(|has| **has).count();
        assert!(count <= 1, "{} has keys of {of:?}", path.display());
        with_masks += usize::from(of[1] || of[2]);
    }
    assert_eq!(with_masks, 2, "each helper's file");
}

/// Decodes hexadecimal digits.
pub(super) fn bytes_of(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks(2);
    let pairs = pairs.map(|pair| std::str::from_utf8(pair).unwrap());
    pairs
        .map(|pair| u8::from_str_radix(pair, 16).unwrap())
        .collect()
}

/// The HTTP port of a helper serves `/healthz` and `/metrics`.
#[test]
fn a_helper_shows_its_figures_and_says_that_it_is_well() {
    let place = Place::new();
    provision(&place, &format!("{FULL} {MASKED} --set rounds=2"));
    let port = super::tls::free_port();
    let _helper = Helper::start_with(&place, 0, &format!("--http 127.0.0.1:{port}"));
    let get = |path: &str| -> Option<String> {
        use std::io::{Read, Write};
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).ok()?;
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).ok()?;
        stream.set_read_timeout(Some(TIMEOUT)).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer)
    };
    wait_until(|| get("/healthz").is_some_and(|answer| answer.ends_with("ok\n")));
    let metrics = get("/metrics").unwrap();
    for expected in [
        "smolfed_helper_connected 0",
        "smolfed_helper_devices 4",
        "smolfed_helper_rounds_left 2",
        "smolfed_helper_answers_total 0",
    ] {
        assert!(metrics.contains(expected), "{expected}: {metrics}");
    }
    assert!(get("/").unwrap().contains("404"));
}
