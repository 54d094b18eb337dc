//! The live page of a coordinator, requested by a browser, a supervisor and an attacker.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::Child;

use super::browser::Browser;
use super::device::{Device, send};
use super::{FULL, Place, part_of, provision, serve, wait, wait_until};

const TOKEN: &str = "a-token-of-this-test";

/// A coordinator with long rounds: a stopped device delays each round by the time-out.
struct Show {
    place: Place,
    coordinator: Child,
    address: String,
    devices: Vec<Device>,
}

impl Show {
    fn start(settings: &str) -> Self {
        let place = Place::new();
        provision(
            &place,
            &format!("{settings} --set rounds=500 --budget 1000"),
        );
        place.write("token", TOKEN);
        let private = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(place.path("token"), private).unwrap();
        let devices = Device::start_all(&place, 0..4);
        let http = "--http 127.0.0.1:0 --http-token-file token --grace 0s";
        let arguments = serve("1s", &format!("{settings} --set rounds=500 {http}"));
        let mut coordinator = place.start(&arguments);
        let mut lines = BufReader::new(coordinator.stderr.take().unwrap()).lines();
        let address = lines
            .find_map(|line| {
                let line = line.ok()?;
                let (_, address) = line.split_once("http://")?;
                Some(address.trim_end_matches('/').to_owned())
            })
            .expect("the log has the address");
        // The rest is read, so that the coordinator never waits for its reader.
        std::thread::spawn(move || lines.for_each(drop));
        wait_until(|| part_of(&place, "served", 2).0.len() > 1);
        devices[2].signal("-STOP");
        Self {
            place,
            coordinator,
            address,
            devices,
        }
    }

    /// Returns the response to a request with these header lines.
    fn ask(&self, path: &str, headers: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn end(self) {
        self.devices[2].signal("-CONT");
        send(&self.coordinator, "-TERM");
        // Another thread reads its standard error.
        wait(self.coordinator, "serve").success();
        drop(self.place);
    }
}

/// Returns the status and the text of a response.
fn parts(answer: &str) -> (&str, &str) {
    let status = answer.split(' ').nth(1).unwrap_or_default();
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (status, body)
}

#[test]
fn figures_of_participation_are_for_whoever_has_the_token() {
    // Cohorts are drawn at random. Their members and sizes are secret.
    let sampled = "--set cohort={sampling=\"poisson\",sampling_rate=0.5} --set data.devices=54";
    let show = Show::start(sampled);
    let host = format!("Host: {}\r\n", show.address);
    let token = format!("{host}Authorization: Bearer {TOKEN}\r\n");
    let public = show.ask("/metrics", &host);
    assert_eq!(parts(&public).0, "200", "{public}");
    assert!(public.contains("\nsmolfed_devices 4"), "{public}");
    for secret in [
        "updates",
        "missing",
        "awaited",
        "seconds",
        "cohort",
        "device_frames",
    ] {
        assert!(!parts(&public).1.contains(secret), "{secret}: {public}");
    }
    let private = show.ask("/metrics", &token);
    assert!(
        private.contains("\nsmolfed_updates_expected_total "),
        "{private}"
    );
    let devices = show.ask("/devices", &token);
    assert!(devices.contains("\"device\":3"), "{devices}");

    let wrong = format!("{host}Authorization: Bearer {TOKEN}x\r\n");
    let basic = format!("{host}Authorization: Basic {TOKEN}\r\n");
    for (path, headers, status, sentence) in [
        ("/metrics", wrong.as_str(), "401", "the token is wrong\n"),
        ("/events", &wrong, "401", "the token is wrong\n"),
        ("/devices", &wrong, "401", "the token is wrong\n"),
        (
            "/devices",
            &host,
            "401",
            "devices are shown with the token only\n",
        ),
        (
            "/metrics",
            &basic,
            "401",
            "expected `Authorization: Bearer TOKEN`\n",
        ),
        ("/nothing", &host, "404", "there is nothing here\n"),
    ] {
        let answer = show.ask(path, headers);
        assert_eq!(parts(&answer), (status, sentence), "{answer}");
    }
    // A name that an attacker resolves to this machine.
    let rebound = token.replace(&show.address, "attacker.example");
    for path in ["/", "/metrics", "/devices", "/healthz"] {
        let answer = show.ask(path, &rebound);
        assert_eq!(parts(&answer).0, "421", "{answer}");
        assert!(parts(&answer).1.contains("--http-name"), "{answer}");
    }
    let health = show.ask("/healthz", &host);
    assert_eq!(parts(&health), ("200", "ok\n"));
    let page = show.ask("/", &host);
    assert!(page.contains("content-security-policy: default-src 'none'; script-src 'nonce-"));
    assert!(!page.to_lowercase().contains("access-control-"), "{page}");
    assert!(!parts(&page).1.contains("http://") || parts(&page).1.contains("www.w3.org"));
    show.end();
}

#[test]
fn a_browser_shows_the_run_at_three_widths() {
    let profile = Place::new();
    let Some(mut browser) = Browser::start(&profile.path("profile")) else {
        return;
    };
    let show = Show::start(FULL);
    let url = format!("http://{}/", show.address);
    let text = |id: &str| format!("document.getElementById('{id}').textContent");
    for (width, scheme) in [(360, "light"), (768, "dark"), (1440, "light")] {
        browser.open(&url, width, scheme);
        browser.wait_for(&format!("/^\\d+\\.\\d %$/.test({})", text("quality")));
        browser.wait_for(&format!("/^0\\.\\d+$/.test({})", text("epsilon")));
        browser.wait_for(&format!("{} === 'running'", text("state")));
        browser.wait_for("document.querySelector('#quality-curve .curve').points.length > 1");
        browser.wait_for("document.documentElement.scrollWidth <= innerWidth");
        // All devices are drawn, so counts reveal nothing.
        browser.wait_for(&format!("{}.endsWith('of 4')", text("progress")));
        let background = browser.value("getComputedStyle(document.body).backgroundColor");
        let is_dark = background == "rgb(16, 20, 24)";
        assert_eq!(is_dark, scheme == "dark", "{background}");
        assert_eq!(
            browser.value("document.getElementById('devices-card').hidden"),
            true
        );
    }
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
    let enter = format!(
        "document.getElementById('token').value = '{TOKEN}'; \
         document.getElementById('form').requestSubmit()"
    );
    browser.value(&enter);
    browser.wait_for(&format!("{}.includes('device')", text("devices")));
    browser.wait_for("document.getElementById('devices').querySelectorAll('tr').length === 5");
    // The stopped device is listed first.
    browser.wait_for("document.querySelector('#devices td').textContent === '2'");
    browser.wait_for(&format!(
        "{}.startsWith('4 devices,')",
        text("devices-note")
    ));
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
    show.end();
    browser.wait_for(&format!("{}.startsWith('not connected')", text("state")));
}
