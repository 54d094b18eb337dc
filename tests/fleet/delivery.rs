//! `docs/delivery.md`, word for word, with a device as a process.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};

use super::device::{Device, send};
use super::proxy::Proxy;
use crate::program::{Place, program, wait_until};

const PAGE: &str = include_str!("../../docs/delivery.md");

/// Returns the commands of the page up to its firmware, without the shell's quotes.
fn commands() -> Vec<String> {
    let (page, _) = PAGE.split_once("## Firmware").expect("a heading");
    let lines = page.lines().filter(|line| line.starts_with("smolfed "));
    let commands: Vec<String> = lines
        .map(|line| line.trim_end_matches(" &").replace("smolfed ", ""))
        .map(|line| line.replace('\'', ""))
        .collect();
    assert_eq!(commands.len(), 12, "{commands:?}");
    commands
}

/// Returns the experiment of the page.
fn experiment() -> &'static str {
    let (_, text) = PAGE.split_once("```toml\n").expect("an experiment");
    text.split_once("```").expect("its end").0
}

/// Starts a process, and returns it with its standard error.
fn watched(place: &Place, arguments: &str) -> (Device, impl Iterator<Item = String> + use<>) {
    let mut command = place.command(program());
    let child = command
        .args(arguments.split_whitespace())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut child: Child = child.expect("a process starts");
    let lines = BufReader::new(child.stderr.take().expect("its errors")).lines();
    (Device(child), lines.map_while(Result::ok))
}

/// Returns the body of a page.
fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

#[test]
fn the_page_on_delivery_is_true() {
    let place = Place::new();
    place.write("experiment.toml", experiment());
    let (mut address, mut processes) = (String::new(), Vec::new());
    let mut trains = None;
    let mut device = None;
    for command in commands() {
        let here = command
            .replace("tcp:127.0.0.1:7100", "unix:fleet.sock")
            .replace("tcp:127.0.0.1:7200", "unix:shop.sock")
            .replace("127.0.0.1:8080", "127.0.0.1:0");
        if command.starts_with("deliver") {
            let (process, mut lines) = watched(&place, &here);
            let line = lines
                .find(|line| line.contains("http://"))
                .expect("an address");
            let (_, found) = line.split_once("http://").expect("an address");
            address = found.trim_end_matches('/').to_owned();
            // The rest is read, so that the service never waits for its reader.
            std::thread::spawn(move || lines.for_each(drop));
            processes.push(process);
        } else if command.starts_with("device") {
            trains = Some(Device(place.start(&here)));
        } else if command.starts_with("receive") {
            let (process, mut lines) = watched(&place, &here);
            assert!(lines.any(|line| line == "device 1: version 1"));
            processes.push(process);
            device = Some(lines);
        } else {
            place.smolfed(&here).success();
        }
    }
    drop(trains);
    // A roll back has a new number.
    let mut lines = device.expect("a device");
    assert!(lines.any(|line| line == "device 1: version 3"));
    let list = place.smolfed("models list").success();
    let text = list.stdout.clone();
    assert!(
        text.contains("runs/first, rolled back to version 1"),
        "{text}"
    );
    assert!(
        text.contains("accuracy 0.") && text.contains("100 %"),
        "{text}"
    );
    wait_until(|| {
        get(&address, "/metrics").contains("smolfed_delivery_version_devices{version=\"3\"} 1")
    });
    let page = get(&address, "/");
    assert!(
        page.contains("1 of 4 devices have been in contact, 1 are connected"),
        "{page}"
    );
    let figures = get(&address, "/models.json");
    assert!(
        figures.contains("\"devices\":4,\"seen\":1,\"without_model\":0"),
        "{figures}"
    );
    // A file that comes by other means, and a service that ends.
    place.smolfed("models export 2 --out file").success();
    let install = "receive --provision shop/device-2.bin --publisher models/publisher.pub \
                   --preprocessing runs/first/preprocessing.json --install file";
    place.smolfed(install).success();
    place
        .smolfed(install)
        .refused(2, &["file", "this version or a newer one"]);
    place
        .smolfed("models verify file --publisher models/publisher.pub")
        .success();
    send(&processes[0].0, "-TERM");
    assert_eq!(processes[0].0.wait().unwrap().code(), Some(0));
}

/// Connections that send nothing take the places of each other, and not those of devices. A device
/// runs once.
#[test]
fn idle_connections_do_not_keep_devices_out() {
    let place = Place::new();
    place.smolfed("run --set rounds=2 --out run").success();
    place.smolfed("models publish run").success();
    place
        .smolfed("provision --infer --devices 0..1 --out shop")
        .success();
    let serve = "deliver --keys shop/keys.toml --listen unix:shop.sock --max-connections 3";
    let _service = Device(place.start(serve));
    wait_until(|| place.path("shop.sock").exists());
    let idle = || UnixStream::connect(place.path("shop.sock")).unwrap();
    let held: Vec<UnixStream> = (0..8).map(|_| idle()).collect();
    let proxy = Proxy::start(&place, "proxy.sock", "shop.sock", true);
    let receive = "receive --provision shop --publisher models/publisher.pub \
                   --preprocessing run/preprocessing.json --connect unix:proxy.sock";
    let (_device, mut lines) = watched(&place, receive);
    assert!(lines.any(|line| line == "device 0: version 1"));
    place
        .smolfed(receive)
        .refused(2, &["shop", "another process runs this device"]);
    let alone = receive.replace("--provision shop", "--provision shop/device-0.bin");
    place
        .smolfed(&alone)
        .refused(2, &["shop", "another process runs this device"]);
    // The session keeps its place, also when many others come.
    let more: Vec<UnixStream> = (0..8).map(|_| idle()).collect();
    place.smolfed("models publish run").success();
    assert!(lines.any(|line| line == "device 0: version 2"));
    assert_eq!(proxy.recorded().len(), 1, "the device had to connect again");
    drop((held, more));
}

/// The service keeps nothing: devices continue with the next one, and revoked ones do not.
#[test]
fn devices_continue_after_the_service_was_killed() {
    let place = Place::new();
    place.smolfed("run --set rounds=2 --out run").success();
    place.smolfed("models publish run").success();
    place
        .smolfed("provision --infer --devices 0..3 --out shop")
        .success();
    let serve = "deliver --keys shop/keys.toml --listen unix:shop.sock";
    let mut service = place.start(serve);
    let receive = "receive --provision shop --publisher models/publisher.pub \
                   --preprocessing run/preprocessing.json --connect unix:shop.sock";
    let (_devices, mut lines) = watched(&place, receive);
    let mut wait_for = |devices: usize, version: u32| {
        let end = format!(": version {version}");
        let found = lines.by_ref().filter(|line| line.ends_with(&end));
        assert_eq!(found.take(devices).count(), devices);
    };
    wait_for(3, 1);
    service.kill().unwrap();
    service.wait().unwrap();
    place.smolfed("models publish run --places 12").success();
    let service = Device(place.start(serve));
    wait_for(3, 2);
    place
        .smolfed("keys revoke 1 --keys shop/keys.toml")
        .success();
    place.smolfed("models publish run").success();
    wait_for(2, 3);
    drop(service);
    // Keys and records have a role.
    let train = "device --model softmax:64x10 --provision shop/device-0.bin --ledger x \
                 --connect unix:shop.sock";
    place.smolfed(train).refused(2, &["only infers"]);
    let rotate = "keys rotate 0 --keys shop/keys.toml --out new";
    place
        .smolfed(rotate)
        .refused(2, &["only infer", "`smolfed keys add`"]);
    let serve = "serve --keys shop/keys.toml --listen unix:other.sock";
    place
        .smolfed(serve)
        .refused(2, &["`smolfed deliver` sends them models"]);
}
