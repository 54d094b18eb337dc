//! A board that only infers: it predicts with the right version after each step of a delivery, and
//! after resets at any time.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::{Duration, Instant};

use super::Running;
use super::monitor::{Words, predictions, watched};
use crate::boards::{Board, CORTEX_M4F, firmware_with, named};
use crate::program::{Place, TIMEOUT};

const EXPERIMENT: &str = "method = \"dp-fed-ls\"\nrounds = 4\n\
    [data]\nsource = \"digits\"\ndevices = 54\nscale = { mean = 0, std = 1 }\n\
    [train]\nlearning_rate = 0.5\n[cohort]\nsampling = \"full\"\n\
    [privacy]\nepsilon = 20.0\nquestions = 0.1\nclip_norm = 1.0\n\
    [[questions]]\nkind = \"evaluate\"\nevery = 2\n";

const RESETS: usize = 25;

/// A line about a window.
#[derive(Debug)]
struct Window {
    number: usize,
    class: u16,
    bits: u32,
    version: u32,
}

impl Window {
    fn parse(line: &str) -> Option<Self> {
        let (number, rest) = line.strip_prefix("window ")?.split_once(": class ")?;
        let (class, rest) = rest.split_once(", ")?;
        let (bits, version) = rest.split_once('(')?.1.split_once("), version ")?;
        Some(Self {
            number: number.parse().ok()?,
            class: class.parse().ok()?,
            bits: u32::from_str_radix(bits, 16).ok()?,
            version: version.parse().ok()?,
        })
    }
}

struct Device {
    running: Running,
    lines: Receiver<String>,
}

impl Device {
    fn start(place: &Place, board: &Board, program: &Path) -> Self {
        let (running, lines) = watched(place, "shop", board, program);
        Self { running, lines }
    }

    /// Waits for the first window that a version predicts.
    fn until(&self, version: u32) -> Window {
        let begun = Instant::now();
        while begun.elapsed() < TIMEOUT {
            let line = self.lines.recv_timeout(TIMEOUT).expect("a line");
            if let Some(window) = Window::parse(&line) {
                assert!(window.version <= version, "{window:?}");
                if window.version == version {
                    return window;
                }
            }
        }
        panic!("version {version} did not come");
    }

    /// Returns the version in flash at the start.
    fn loaded(&self) -> u32 {
        let line = self.lines.recv_timeout(TIMEOUT).expect("a line");
        match line.strip_prefix("loaded version ") {
            Some(version) => version.parse().expect("a version"),
            None => panic!("{line}"),
        }
    }

    /// Asserts that the next windows are those of a run, by its version.
    fn predicts(&self, version: u32, expected: &[(u16, u32)]) {
        let mut seen = 0;
        while seen < 3 {
            let Window {
                number,
                class,
                bits,
                ..
            } = self.until(version);
            if let Some(expected) = expected.get(number) {
                assert_eq!(
                    (class, bits),
                    *expected,
                    "window {number} of version {version}"
                );
            }
            seen += 1;
        }
    }
}

/// Writes the secret key for which the firmware was built, and nobody else's.
fn write_publisher(place: &Place) {
    std::fs::create_dir(place.path("models")).unwrap();
    place.write("models/publisher.key", "01".repeat(32));
    let private = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(place.path("models/publisher.key"), private).unwrap();
}

#[test]
fn a_board_predicts_with_the_right_version_after_each_step_and_after_resets() {
    let board = named(CORTEX_M4F);
    let Some((program, _)) = firmware_with(Some("delivery"), board, "infer") else {
        return;
    };
    let place = Place::new();
    place.write("experiment.toml", EXPERIMENT);
    write_publisher(&place);
    let smolfed = |arguments: &str| place.smolfed(arguments).success();
    smolfed("provision experiment.toml --devices 0..1 --with-data --answers all --out fleet");
    let trains = "device --model softmax:64x10 --provision fleet --connect unix:fleet.sock";
    let trains = Running::of(place.start(trains));
    smolfed(
        "serve experiment.toml --keys fleet/keys.toml --listen unix:fleet.sock --simulated 53 \
         --out first",
    );
    drop(trains);
    smolfed("run experiment.toml --set rounds=8 --out second");
    let [first, second] = ["first", "second"].map(|run| predictions(&place, run, 400));
    assert_ne!(first, second);
    smolfed("models publish first");
    smolfed("provision --infer --devices 0..1 --out shop");
    let _service = Running::of(place.start("deliver --keys shop/keys.toml --device unix:line-0"));
    let mut device = Device::start(&place, board, &program);
    device.predicts(1, &first);
    // The device is among the 99.999 % of the older version, and then of the newer one.
    smolfed("models publish second --share 0.001 --places 12");
    thread::sleep(Duration::from_secs(2));
    device.predicts(1, &first);
    smolfed("models split 1=0.001 2=99.999");
    device.until(2);
    // A roll back has the parameters of version 1 again.
    smolfed("models roll-back");
    device.until(3);
    device.predicts(3, &first);

    let (mut pauses, mut newest) = (Words(2_026), 3);
    for reset in 0..RESETS {
        // Every fifth reset comes with a new version, which is on its way.
        if reset % 5 == 0 {
            smolfed("models publish second");
            // The service looks for it within a second.
            thread::sleep(Duration::from_millis(600));
        }
        thread::sleep(Duration::from_micros((pauses.next() >> 12).into()));
        device.running.kill();
        device = Device::start(&place, board, &program);
        let loaded = device.loaded();
        assert!(loaded >= newest, "{reset}: {loaded} after {newest}");
        newest = loaded;
    }
    device.predicts(8, &second);
    let list = smolfed("models list --json").json();
    assert_eq!(list["shares"][0]["version"], 8);
    let answers = &list["versions"][0]["answers"][1][0];
    assert_eq!(answers["estimates"][0]["name"], "accuracy");
}
