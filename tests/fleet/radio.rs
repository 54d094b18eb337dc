//! A radio between a device and its coordinator. It carries packets slowly, with losses, and can
//! require an uplink packet for each downlink packet, as LoRaWAN's class A does.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::device::Device;
use super::tls::free_port;
use super::{FULL, assert_is_the_simulation, part_of, provision, wait};
use crate::program::Place;

/// Properties of a radio link.
#[derive(Clone, Copy)]
pub(crate) struct Air {
    /// Maximum bytes per packet.
    pub(crate) size: usize,
    /// Time on air of a packet, during which the radio cannot carry another one.
    pub(crate) slot: Duration,
    /// One-way delay.
    pub(crate) delay: Duration,
    /// Whether a downlink packet needs an uplink packet before it. The device's radio sends an
    /// empty one if it knows that packets wait (LoRaWAN's frame-pending bit), and otherwise after
    /// this many slots of silence.
    pub(crate) heartbeat: Option<u32>,
    /// One packet in this many is lost, repeated, or overtaken by the next ones. 0 means none.
    pub(crate) lost: usize,
    pub(crate) repeated: usize,
    pub(crate) late: usize,
}

/// A radio that stops at the end of the test.
pub(crate) struct Radio {
    /// Port for the device's packets.
    pub(crate) device_port: u16,
    /// Port for the packets of a coordinator that dials.
    pub(crate) coordinator_port: u16,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    is_over: AtomicBool,
    carried: AtomicUsize,
    lost: AtomicUsize,
    too_long: AtomicUsize,
}

/// Packets on the air: their arrival, their number, and whether they go down.
type OnAir = BinaryHeap<Reverse<(Instant, usize, bool, Vec<u8>)>>;

/// One end of the link.
struct Side {
    socket: UdpSocket,
    peer: Option<SocketAddr>,
    waiting: VecDeque<Vec<u8>>,
}

impl Side {
    fn new(peer: Option<SocketAddr>) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        Self {
            socket,
            peer,
            waiting: VecDeque::new(),
        }
    }

    fn port(&self) -> u16 {
        self.socket.local_addr().unwrap().port()
    }

    /// Takes the received packets.
    fn receive(&mut self, air: &Air, counts: &Counts) {
        let mut packet = [0; 300];
        loop {
            match self.socket.recv_from(&mut packet) {
                Ok((length, from)) => {
                    self.peer = Some(from);
                    if length > air.size {
                        counts.too_long.fetch_add(1, Ordering::Relaxed);
                    }
                    self.waiting.push_back(packet[..length].to_vec());
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // Nobody listens there yet.
                Err(_) => {}
            }
        }
    }
}

impl Radio {
    /// Starts a radio. `listening` is the port of a coordinator that listens. Without it, it dials.
    pub(crate) fn start(air: Air, listening: Option<u16>) -> Self {
        let coordinator = listening.map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        let mut sides = [Side::new(coordinator), Side::new(None)];
        let counts = Arc::new(Counts::default());
        let radio = Self {
            device_port: sides[1].port(),
            coordinator_port: sides[0].port(),
            counts: Arc::clone(&counts),
        };
        thread::spawn(move || {
            let (mut on_air, mut silent, mut is_told) = (OnAir::new(), 0, false);
            while !counts.is_over.load(Ordering::Relaxed) {
                let slot = Instant::now() + air.slot;
                for side in &mut sides {
                    side.receive(&air, &counts);
                }
                let [coordinator, device] = &mut sides;
                let up = device.waiting.pop_front();
                let may_answer = air
                    .heartbeat
                    .is_none_or(|slots| up.is_some() || is_told || silent >= slots);
                let down = may_answer
                    .then(|| coordinator.waiting.pop_front())
                    .flatten();
                // A downlink packet tells the device whether more packets wait.
                is_told = down.is_some() && !coordinator.waiting.is_empty();
                silent = if may_answer { 0 } else { silent + 1 };
                for (is_down, packet) in [(false, up), (true, down)] {
                    if let Some(packet) = packet {
                        air.send(packet, is_down, &mut on_air, &counts);
                    }
                }
                deliver(&mut on_air, &sides, slot);
            }
        });
        radio
    }

    /// Asserts that packets were lost, and that none was too long for the link.
    pub(crate) fn assert_was_used(&self) {
        let count = |of: &AtomicUsize| of.load(Ordering::Relaxed);
        let counts = &self.counts;
        assert_eq!(count(&counts.too_long), 0, "of {}", count(&counts.carried));
        assert!(count(&counts.lost) > 0, "of {}", count(&counts.carried));
    }
}

impl Drop for Radio {
    fn drop(&mut self) {
        self.counts.is_over.store(true, Ordering::Relaxed);
    }
}

impl Air {
    /// Sends a packet, or loses it.
    fn send(&self, packet: Vec<u8>, is_down: bool, on_air: &mut OnAir, counts: &Counts) {
        let number = counts.carried.fetch_add(1, Ordering::Relaxed) + 1;
        let is = |every: usize| number.is_multiple_of(every);
        if is(self.lost) {
            counts.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let late = if is(self.late) {
            3 * self.slot
        } else {
            Duration::ZERO
        };
        let arrival = Instant::now() + self.delay + late;
        if is(self.repeated) {
            on_air.push(Reverse((
                arrival + self.slot,
                number,
                is_down,
                packet.clone(),
            )));
        }
        on_air.push(Reverse((arrival, number, is_down, packet)));
    }
}

/// Delivers the packets that arrive until the slot ends.
fn deliver(on_air: &mut OnAir, sides: &[Side; 2], slot: Instant) {
    while let Some(Reverse((arrival, ..))) = on_air.peek()
        && *arrival <= slot
    {
        let Some(Reverse((arrival, _, is_down, packet))) = on_air.pop() else {
            return;
        };
        thread::sleep(arrival.saturating_duration_since(Instant::now()));
        let side = &sides[usize::from(is_down)];
        if let Some(peer) = side.peer {
            // Without a listener, it is lost.
            let _ = side.socket.send_to(&packet, peer);
        }
    }
    thread::sleep(slot.saturating_duration_since(Instant::now()));
}

/// BLE's smallest packets. Each device has a radio that loses, repeats and reorders them.
#[test]
fn packets_that_get_lost_or_overtake_each_other_cost_no_participation() {
    let place = Place::new();
    provision(&place, &format!("{FULL} --set rounds=4"));
    let port = free_port();
    let arguments = format!(
        "serve --keys fleet/keys.toml --listen udp:127.0.0.1:{port}/20 --simulated 50 --seed 7 \
         --timeout 60s --out served --json {FULL} --set rounds=4"
    );
    let coordinator = place.start(&arguments);
    let air = Air {
        size: 20,
        slot: Duration::from_millis(1),
        delay: Duration::from_millis(5),
        heartbeat: None,
        lost: 601,
        repeated: 7,
        late: 5,
    };
    let radios: Vec<Radio> = (0..4).map(|_| Radio::start(air, Some(port))).collect();
    let _devices: Vec<Device> = (0..)
        .zip(&radios)
        .map(|(number, radio)| {
            let address = format!("--connect udp:127.0.0.1:{}/20", radio.device_port);
            Device::start_at(&place, number, &address)
        })
        .collect();
    let outcome = wait(coordinator, &arguments).success();
    for (device, radio) in (0..).zip(&radios) {
        radio.assert_was_used();
        let (answered, missing) = part_of(&place, "served", device);
        assert_eq!(
            answered,
            [0, 1, 2, 3],
            "device {device}: {missing:?} {outcome}"
        );
    }
    assert_is_the_simulation(&place, "served");
}
