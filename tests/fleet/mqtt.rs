//! The coordinator and devices over a real broker, mosquitto. The model is the same as over any
//! other transport, even if the broker is killed.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use super::device::Device;
use super::masked::Helper;
use super::tls::{device_with_log, free_port, log, model};
use super::{FULL, assert_is_the_simulation, lines, part_of, provision, wait, wait_until};
use crate::program::Place;

/// Debian's install location, which is not in users' path.
const MOSQUITTO: [&str; 2] = ["/usr/sbin/mosquitto", "/usr/local/sbin/mosquitto"];

/// Returns the broker's program. Without one, the test is skipped, but in CI it fails.
pub(super) fn mosquitto() -> Option<PathBuf> {
    let found = MOSQUITTO.map(PathBuf::from);
    let found = found.into_iter().find(|path| path.is_file());
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none(), "no mosquitto");
        eprintln!("SKIPPED: no mosquitto (apt-get install mosquitto)");
    }
    found
}

/// A broker started by the test.
pub(super) struct Broker {
    child: Child,
    program: PathBuf,
    config: PathBuf,
    port: u16,
}

impl Broker {
    /// Starts a broker with additional configuration lines.
    pub(super) fn start(place: &Place, program: PathBuf, options: &str) -> Self {
        let port = free_port();
        place.write(
            "mosquitto.conf",
            format!("listener {port} 127.0.0.1\nuser root\n{options}\n"),
        );
        let config = place.path("mosquitto.conf");
        let child = Self::spawn(&program, &config);
        let broker = Self {
            child,
            program,
            config,
            port,
        };
        broker.wait_until_it_listens();
        broker
    }

    fn spawn(program: &PathBuf, config: &PathBuf) -> Child {
        let mut command = Command::new(program);
        let command = command.arg("-c").arg(config).stdin(Stdio::null());
        let command = command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("mosquitto starts")
    }

    fn wait_until_it_listens(&self) {
        wait_until(|| std::net::TcpStream::connect(("127.0.0.1", self.port)).is_ok());
    }

    pub(super) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Restarts the broker as a new process without any state.
    pub(super) fn restart(&mut self) {
        self.child = Self::spawn(&self.program, &self.config);
        self.wait_until_it_listens();
    }

    pub(super) fn address(&self) -> String {
        format!("mqtt:127.0.0.1:{}/tests", self.port)
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.kill();
    }
}

fn serve(listen: &str, out: &str, rounds: u32) -> String {
    format!(
        "serve --keys fleet/keys.toml --listen {listen} --simulated 50 --seed 7 --timeout 30s \
         --out {out} --json {FULL} --set rounds={rounds}"
    )
}

pub(super) const OPEN: &str = "allow_anonymous true";

#[test]
fn a_round_by_way_of_a_broker_has_the_bits_of_one_over_a_socket() {
    let Some(mosquitto) = mosquitto() else {
        return;
    };
    let mut models = Vec::new();
    let room = Place::new();
    let log = room.path("broker.log");
    let options = format!("{OPEN}\nlog_type all\nlog_dest file {}", log.display());
    let broker = Broker::start(&room, mosquitto, &options);
    for address in [broker.address(), "unix:fleet.sock".to_owned()] {
        let place = Place::new();
        provision(&place, &format!("{FULL} --set rounds=3 --hide-number"));
        let arguments = serve(&address, "served", 3);
        let coordinator = place.start(&arguments);
        let connect = format!("--connect {address}");
        let _devices: Vec<Device> = (0..4)
            .map(|number| Device::start_at(&place, number, &connect))
            .collect();
        let outcome = wait(coordinator, &arguments).success();
        for device in 0..4 {
            assert_eq!(part_of(&place, "served", device).0, [0, 1, 2], "{outcome}");
        }
        assert_is_the_simulation(&place, "served");
        models.push(model(&place, "served"));
    }
    assert!(models[0] == models[1], "the bits differ");
    assert_names_tell_nothing(&std::fs::read_to_string(log).unwrap());
}

/// Asserts that the broker sees clients and topics only under random names, each used once.
fn assert_names_tell_nothing(log: &str) {
    let is_random = |name: &&str| name.len() == 16 && name.bytes().all(|b| b.is_ascii_hexdigit());
    let mut clients = Vec::new();
    for line in log
        .lines()
        .filter(|line| line.contains("New client connected"))
    {
        let name = line.split(" as ").nth(1).unwrap();
        clients.push(name.split(' ').next().unwrap());
    }
    // The coordinator and four devices.
    assert!(
        clients.len() >= 5 && clients.iter().all(is_random),
        "{clients:?}"
    );
    let mut different = clients.clone();
    different.sort_unstable();
    different.dedup();
    assert_eq!(different.len(), clients.len(), "{clients:?}");
    let published = log.lines().filter(|line| line.contains("Received PUBLISH"));
    let mut topics: Vec<&str> = published
        .map(|line| line.split('\'').nth(1).unwrap())
        .collect();
    topics.sort_unstable();
    topics.dedup();
    for topic in topics {
        let parts: Vec<&str> = topic.split('/').collect();
        let is_plain = match parts.as_slice() {
            ["tests", "call"] => true,
            ["tests", name, "up" | "down"] => clients.contains(name),
            _ => false,
        };
        assert!(is_plain, "{topic}");
    }
}

#[test]
fn a_broker_that_is_killed_costs_time_and_no_update() {
    let Some(mosquitto) = mosquitto() else {
        return;
    };
    let place = Place::new();
    provision(&place, &format!("{FULL} --set rounds=40 --budget 100"));
    let mut broker = Broker::start(&place, mosquitto, OPEN);
    let arguments = serve(&broker.address(), "served", 40);
    let coordinator = place.start(&arguments);
    let connect = format!("--connect {}", broker.address());
    let devices: Vec<Device> = (0..4)
        .map(|number| Device::start_at(&place, number, &connect))
        .collect();
    for rounds in [3, 15] {
        wait_until(|| lines(&place.path("served/metrics.jsonl")).len() > rounds);
        broker.kill();
        std::thread::sleep(std::time::Duration::from_millis(500));
        broker.restart();
    }
    // The will of a killed device ends its stream, and another process continues.
    devices[1].signal("-KILL");
    let _again = Device::start_at(&place, 1, &connect);
    let outcome = wait(coordinator, &arguments).success();
    assert_eq!(outcome.json()["rounds"], 40, "{outcome}");
    assert!(outcome.stderr.contains("; retrying"), "{outcome}");
    for device in [0, 2, 3] {
        assert_eq!(part_of(&place, "served", device).0.len(), 40, "{outcome}");
    }
    let (answered, missing) = part_of(&place, "served", 1);
    assert!(answered.contains(&39) && missing.len() <= 2, "{missing:?}");
    assert_is_the_simulation(&place, "served");
}

/// A killed device cannot report it: the broker does, with the device's will, and the coordinator's
/// own will withdraws its call.
#[test]
fn the_broker_tells_who_is_gone() {
    let Some(mosquitto) = mosquitto() else {
        return;
    };
    let place = Place::new();
    provision(&place, &format!("{FULL} --set rounds=1"));
    let broker_log = place.path("broker.log");
    let options = format!(
        "{OPEN}\nlog_type all\nlog_dest file {}",
        broker_log.display()
    );
    let broker = Broker::start(&place, mosquitto, &options);
    let connect = format!("--connect {}", broker.address());
    // One device is enough for a round.
    let arguments = serve(&broker.address(), "served", 1).replace("30s", "600s");
    let arguments = format!("{arguments} --min-devices 1");
    let coordinator = Device(place.start(&arguments));
    let device = Device(device_with_log(&place, 0, &connect, "device-0.log"));
    wait_until(|| log(&place, "device-0.log").contains("participation 1"));
    let sent = |topic: &str| {
        let text = std::fs::read_to_string(&broker_log).unwrap_or_default();
        let mut lines = text.lines().filter(|line| line.contains("Sending PUBLISH"));
        lines.any(|line| line.contains(topic) && line.contains("(0 bytes)"))
    };
    assert!(!sent("/up'"));
    device.signal("-KILL");
    wait_until(|| sent("/up'"));
    let other = Device(device_with_log(&place, 1, &connect, "device-1.log"));
    wait_until(|| log(&place, "device-1.log").contains("participation 1"));
    assert!(!sent("'tests/call'"));
    coordinator.signal("-KILL");
    wait_until(|| sent("'tests/call'"));
    drop(other);
}

/// A gateway has no keys and only forwards the messages of the device and the coordinator.
#[test]
fn a_gateway_carries_a_device_that_reaches_no_broker() {
    let Some(mosquitto) = mosquitto() else {
        return;
    };
    let place = Place::new();
    provision(&place, &format!("{FULL} --set rounds=12 --budget 100"));
    let mut broker = Broker::start(&place, mosquitto, OPEN);
    let address = broker.address();
    let gateway = format!("gateway --to {address} --device unix:zero.sock --device unix:one.sock");
    let gateway = Device(place.start(&gateway));
    let arguments = serve(&address, "served", 12);
    let coordinator = place.start(&arguments);
    let _devices = [
        Device::start_at(&place, 0, "--listen unix:zero.sock"),
        Device::start_at(&place, 1, "--listen unix:one.sock"),
        Device::start_at(&place, 2, &format!("--connect {address}")),
        Device::start_at(&place, 3, &format!("--connect {address}")),
    ];
    wait_until(|| lines(&place.path("served/metrics.jsonl")).len() > 3);
    broker.kill();
    broker.restart();
    let outcome = wait(coordinator, &arguments).success();
    for device in 0..4 {
        assert_eq!(part_of(&place, "served", device).0.len(), 12, "{outcome}");
    }
    assert_is_the_simulation(&place, "served");
    gateway.signal("-INT");
    let mut gateway = gateway;
    assert_eq!(gateway.0.wait().unwrap().code(), Some(0));
}

/// Starts a broker with one user, and writes a correct and a wrong login of that user.
fn with_passwords(place: &Place, mosquitto: PathBuf) -> Broker {
    let passwords = place.path("passwords");
    std::fs::write(&passwords, "").unwrap();
    let mut command = Command::new("mosquitto_passwd");
    let command = command.arg("-b").arg(&passwords).args(["fleet", "right"]);
    assert!(
        command
            .status()
            .expect("mosquitto_passwd is there")
            .success()
    );
    for password in ["right", "wrong"] {
        let name = format!("{password}.login");
        place.write(&name, format!("fleet\n{password}\n"));
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(place.path(&name), private).unwrap();
    }
    let passwords = passwords.display();
    let options = format!("allow_anonymous false\npassword_file {passwords}");
    Broker::start(place, mosquitto, &options)
}

#[test]
fn a_broker_that_is_not_there_or_refuses_is_told_in_a_line() {
    let Some(mosquitto) = mosquitto() else {
        return;
    };
    let place = Place::new();
    provision(&place, &format!("{FULL} --set rounds=1"));
    let broker = with_passwords(&place, mosquitto);
    let address = broker.address();
    let refused = "the broker refuses the login: `--mqtt-login FILE` has";
    for (number, connect, expected) in [
        (
            0,
            format!("mqtt:127.0.0.1:{}", free_port()),
            "/smolfed: no broker listens there: connection refused; retrying",
        ),
        (1, address.clone(), refused),
        (2, format!("{address} --mqtt-login wrong.login"), refused),
        (
            3,
            format!("{address} --mqtt-login right.login"),
            "/tests: no coordinator listens there: nothing is retained at tests/call",
        ),
    ] {
        let name = format!("device-{number}.log");
        let connect = format!("--connect {connect}");
        let _device = Device(device_with_log(&place, number, &connect, &name));
        wait_until(|| log(&place, &name).contains(expected));
        let logged = log(&place, &name);
        assert_eq!(logged.lines().count(), 1, "{logged}");
    }
    // The coordinator reports it as well, and takes part once it has the right login.
    let wrong = serve(&address, "wrong", 1).replace("30s", "1s");
    let wrong = format!("{wrong} --mqtt-login wrong.login --give-up-after 2s");
    let outcome = wait(place.start(&wrong), &wrong);
    assert_eq!(outcome.code, Some(1), "{outcome}");
    assert!(outcome.stderr.contains(refused), "{outcome}");
    let right = format!("{} --mqtt-login right.login", serve(&address, "right", 1));
    let coordinator = place.start(&right);
    let connect = format!("--connect {address} --mqtt-login right.login");
    let _devices: Vec<Device> = (0..4)
        .map(|number| Device::start_at(&place, number, &connect))
        .collect();
    wait(coordinator, &right).success();
    assert_eq!(part_of(&place, "right", 3).0, [0]);
    // The run directory stores the location of the password, not the password.
    let stored = std::fs::read_to_string(place.path("right/fleet.toml")).unwrap();
    let says = |word: &str| stored.contains(word);
    assert!(says("right.login") && !says("password"), "{stored}");
}

/// Helpers do not depend on the devices' line.
#[test]
fn masked_updates_by_way_of_a_broker_give_the_model_of_the_simulation() {
    let Some(mosquitto) = mosquitto() else {
        return;
    };
    let place = Place::new();
    let broker = Broker::start(&place, mosquitto, OPEN);
    let settings = format!("{FULL} --set rounds=3 --set privacy.trust=distributed");
    provision(&place, &format!("{settings} --hide-number"));
    let _helper = Helper::start(&place, 0);
    let arguments = serve(&broker.address(), "served", 3)
        + " --helper unix:helper-0.sock --set privacy.trust=distributed";
    let coordinator = place.start(&arguments);
    let connect = format!("--connect {}", broker.address());
    let _devices: Vec<Device> = (0..4)
        .map(|number| Device::start_at(&place, number, &connect))
        .collect();
    let outcome = wait(coordinator, &arguments).success();
    for device in 0..4 {
        assert_eq!(part_of(&place, "served", device).0, [0, 1, 2], "{outcome}");
    }
    assert_is_the_simulation(&place, "served");
}
