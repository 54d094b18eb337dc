//! The coordinator over TLS: the model is the same as over any other transport, and each mismatch
//! gives a one-line error.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use super::device::{Device, send};
use super::{FULL, assert_is_the_simulation, lines, part_of, provision, wait, wait_until};
use crate::program::{Outcome, Place, program};

type Authority = CertifiedIssuer<'static, KeyPair>;

/// Creates an authority and writes its certificate to `file`.
fn authority(place: &Place, file: &str) -> Authority {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    place.write(file, authority.pem());
    authority
}

/// Writes `site.pem` and `site.key`, for `host`.
fn issue(place: &Place, authority: &Authority, host: &str) {
    let params = CertificateParams::new([host.to_owned()]).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, authority).unwrap();
    place.write("site.pem", certificate.pem());
    place.write("site.key", key.serialize_pem());
}

/// Returns a free port of this machine.
pub(super) fn free_port() -> u16 {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    socket.local_addr().unwrap().port()
}

/// Starts a device whose standard error goes to `log`.
pub(super) fn device_with_log(place: &Place, number: u32, options: &str, log: &str) -> Child {
    let arguments = format!(
        "device --model softmax:64x10 --provision fleet/device-{number}.bin \
         --ledger fleet/device-{number}.ledger {options}"
    );
    let log = std::fs::File::create(place.path(log)).unwrap();
    let mut command: Command = place.command(program());
    let command = command.args(arguments.split_whitespace());
    command.stdout(Stdio::null()).stderr(log).spawn().unwrap()
}

pub(super) fn log(place: &Place, name: &str) -> String {
    std::fs::read_to_string(place.path(name)).unwrap_or_default()
}

/// Returns the model of a run over `--listen ADDRESS`.
pub(super) fn model(place: &Place, out: &str) -> Vec<u8> {
    std::fs::read(place.path(Path::new(out).join("model.safetensors"))).unwrap()
}

fn serve(listen: &str, out: &str, rounds: u32) -> String {
    format!(
        "serve --keys fleet/keys.toml {listen} --simulated 50 --seed 7 --timeout 20s --out {out} \
         --json {FULL} --set rounds={rounds}"
    )
}

#[test]
fn a_round_over_tls_has_the_bits_of_one_over_tcp() {
    let mut models = Vec::new();
    for scheme in ["tcp", "tls"] {
        let place = Place::new();
        provision(&place, &format!("{FULL} --set rounds=3"));
        let authority = authority(&place, "ca.pem");
        issue(&place, &authority, "localhost");
        let port = free_port();
        let (server, client) = match scheme {
            "tls" => (
                "--tls-certificate site.pem --tls-key site.key",
                "--tls-ca ca.pem",
            ),
            _ => ("", ""),
        };
        let listen = format!("--listen {scheme}:127.0.0.1:{port} {server}");
        let arguments = serve(&listen, "served", 3);
        let coordinator = place.start(&arguments);
        // Three connections that never make a handshake.
        wait_until(|| TcpStream::connect(("127.0.0.1", port)).is_ok());
        let silent = || TcpStream::connect(("127.0.0.1", port)).unwrap();
        let _silent = [silent(), silent(), silent()];
        let connect = format!("--connect {scheme}:localhost:{port} {client}");
        let _devices: Vec<Device> = (0..4)
            .map(|number| Device::start_at(&place, number, &connect))
            .collect();
        wait(coordinator, &arguments).success();
        for device in 0..4 {
            assert_eq!(part_of(&place, "served", device).0, [0, 1, 2], "{scheme}");
        }
        assert_is_the_simulation(&place, "served");
        models.push(model(&place, "served"));
    }
    assert!(models[0] == models[1], "the bits differ");
}

/// Each error is one line. The certificate is read again at SIGHUP.
#[test]
fn what_does_not_fit_is_told_and_a_renewed_certificate_is_used() {
    let place = Place::new();
    provision(&place, &format!("{FULL} --set rounds=1"));
    let authority = authority(&place, "ca.pem");
    self::authority(&place, "other-ca.pem");
    issue(&place, &authority, "old.example");
    let port = free_port();
    let listen =
        format!("--listen tls:127.0.0.1:{port} --tls-certificate site.pem --tls-key site.key");
    let arguments = serve(&listen, "served", 1).replace("20s", "600s");
    let arguments = format!("{arguments} --min-devices 1 --log-file serve.log --grace 0s");
    let coordinator = place.start(&arguments);
    wait_until(|| TcpStream::connect(("127.0.0.1", port)).is_ok());
    let mut devices = Vec::new();
    for (number, options, sentence) in [
        (
            0,
            format!("--connect tls:localhost:{port} --tls-ca ca.pem"),
            format!(
                "tls:localhost:{port}: its certificate is for old.example, and not for localhost; \
                 retrying"
            ),
        ),
        (
            1,
            format!("--connect tls:localhost:{port} --tls-ca other-ca.pem"),
            "its certificate is signed by no authority in other-ca.pem; retrying".to_owned(),
        ),
        (
            2,
            format!("--connect tcp:localhost:{port}"),
            "if the coordinator listens at a tls: address, connect with tls:".to_owned(),
        ),
    ] {
        let name = format!("device-{number}.log");
        let child = device_with_log(&place, number, &options, &name);
        devices.push(Device(child));
        wait_until(|| log(&place, &name).contains(&sentence));
        assert_eq!(
            log(&place, &name).lines().count(),
            1,
            "{}",
            log(&place, &name)
        );
    }
    wait_until(|| log(&place, "serve.log").contains("does not speak TLS"));

    issue(&place, &authority, "localhost");
    // The first signal may arrive before anything can be reloaded.
    wait_until(|| {
        send(&coordinator, "-HUP");
        std::thread::sleep(std::time::Duration::from_millis(300));
        log(&place, "device-0.log").contains("device 0: connected")
    });
    // A round is charged once it has a device.
    wait_until(|| !lines(&place.path("served/ledger.jsonl")).is_empty());
    send(&coordinator, "-TERM");
    let outcome: Outcome = wait(coordinator, &arguments);
    assert_eq!(outcome.code, Some(0), "{outcome}");
    assert!(
        outcome.stderr.contains("the certificate was read again"),
        "{outcome}"
    );
    // Refused devices did not take part.
    assert_eq!(part_of(&place, "served", 1).1, ["not connected"]);
}
