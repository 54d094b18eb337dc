//! The receiver and a coordinator that loses frames, connections and files.

use rand_chacha::{ChaCha12Rng, rand_core::SeedableRng as _};

use super::*;
use crate::{
    crypto::Key,
    wire::{
        Direction, VERSION,
        cobs::Decoder,
        frame::Frame,
        greeting::{Greeting, Versions, Welcome},
        keys::{Chain as _, ChainKey},
        link::{CoordinatorEnd, Link},
        message::{Delivery, FILE_CHUNK, Message, Refused, WhyRefused},
    },
};

type Device = Receiver<Flash, ChaCha12Rng>;

fn chain() -> ChainKey {
    ChainKey::new(Key::from_secret([5; 32]))
}

fn device(flash: Flash) -> Device {
    let nonces = ChaCha12Rng::seed_from_u64(flash.bytes.len() as u64);
    Receiver::new(9, chain(), nonces, open(flash))
}

/// A coordinator with one file.
struct Coordinator {
    link: Option<Link<CoordinatorEnd>>,
    sessions: u8,
    version: u32,
    file: Vec<u8>,
    /// Versions that the device has named.
    named: Vec<u32>,
    /// Offsets that it has asked for.
    asked: Vec<u32>,
    refuses: bool,
}

impl Coordinator {
    fn new(version: u32, file: Vec<u8>) -> Self {
        Self {
            link: None,
            sessions: 0,
            version,
            file,
            named: Vec::new(),
            asked: Vec::new(),
            refuses: false,
        }
    }

    /// Returns the frames that answer one of the device.
    fn answer(&mut self, raw: &mut [u8]) -> Vec<Vec<u8>> {
        let mut sealed = match Frame::parse(raw).unwrap() {
            Frame::Greeting { kind, body } => {
                let greeting = Greeting::parse(kind, body, Direction::ToCoordinator).unwrap();
                let Greeting::Hello(hello) = greeting else {
                    panic!("{greeting:?}");
                };
                assert!(hello.is_authentic(&chain().greeting()));
                self.sessions += 1;
                let nonce = [self.sessions; 16];
                let session = chain().session(9, &hello.nonce, &nonce);
                self.link = Some(Link::new(session.cipher()));
                let welcome = Welcome::new(&session, nonce, Ok(VERSION));
                let frame = Greeting::Welcome(welcome).encoded();
                return vec![frame.as_slice().to_vec()];
            }
            Frame::Sealed(sealed) => sealed,
        };
        let link = self.link.as_mut().unwrap();
        let (version, message) = link.open(&mut sealed).unwrap();
        let mut out = Vec::new();
        let mut send = |version, message| {
            out.push(link.seal(version, &message).as_slice().to_vec());
        };
        match message {
            Message::Delivery(Delivery::Installed(installed)) => {
                assert_eq!(
                    (installed.shape, installed.recipe),
                    (shape(FEATURES), &[][..])
                );
                self.named.push(installed.version);
                let length = self.file.len() as u32;
                match () {
                    () if self.refuses => send(
                        0,
                        Message::Refused(Refused {
                            reason: WhyRefused::Shape,
                            experiment: &[],
                        }),
                    ),
                    () if installed.version >= self.version => send(0, Message::Wait),
                    () => send(self.version, Message::Delivery(Delivery::Offered(length))),
                }
            }
            Message::Delivery(Delivery::WantFile { offset, count }) => {
                assert_eq!(version, self.version);
                self.asked.push(offset);
                let rest = &self.file[offset as usize..];
                for (i, bytes) in rest.chunks(FILE_CHUNK).take(count.into()).enumerate() {
                    let offset = offset + (i * FILE_CHUNK) as u32;
                    let chunk = Delivery::FileChunk { offset, bytes };
                    send(version, Message::Delivery(chunk));
                }
            }
            message => panic!("{message:?}"),
        }
        out
    }
}

/// Carries frames until both sides are silent, except for those that `loses` names by number.
/// Returns how many were sent to the device.
fn carry(
    device: &mut Device,
    coordinator: &mut Coordinator,
    loses: &mut dyn FnMut(&Device) -> bool,
) -> usize {
    let (mut decoder, mut sent) = (Decoder::new(), 0);
    while !device.outgoing().is_empty() {
        let outgoing = device.outgoing().to_vec();
        device.sent();
        for byte in outgoing {
            let Some(raw) = decoder.push(byte) else {
                continue;
            };
            for frame in coordinator.answer(raw.unwrap()) {
                sent += 1;
                if loses(device) {
                    continue;
                }
                let mut rest = &frame[..];
                while !rest.is_empty() {
                    rest = &rest[device.receive(rest)..];
                }
            }
        }
    }
    sent
}

fn file_of(version: u32) -> Vec<u8> {
    made(version).file()
}

#[test]
fn a_device_fetches_the_offered_version_and_names_it() {
    for window in [1, 2, 16] {
        let mut device = device(blank());
        device.set_window(window);
        let mut coordinator = Coordinator::new(3, file_of(3));
        device.timeout();
        carry(&mut device, &mut coordinator, &mut |_| false);
        assert_eq!((device.phase(), device.version()), (Phase::Idle, 3));
        assert_eq!(coordinator.named, [0, 3]);
        assert_eq!(loaded(device.slots()), Some((3, parameters(3))));
        // A newer version is offered when the device asks.
        coordinator = Coordinator {
            version: 4,
            file: file_of(4),
            ..coordinator
        };
        device.ask();
        carry(&mut device, &mut coordinator, &mut |_| false);
        assert_eq!((device.version(), device.refusals().total()), (4, 0));
    }
}

/// The line may still read the frame that waits.
#[test]
fn asking_does_not_replace_a_frame_that_waits() {
    let mut device = device(blank());
    let mut coordinator = Coordinator::new(3, file_of(3));
    device.timeout();
    carry(&mut device, &mut coordinator, &mut |_| false);
    device.ask();
    let waiting = device.outgoing().to_vec();
    assert!(!waiting.is_empty());
    device.ask();
    assert_eq!(device.outgoing(), waiting);
}

#[test]
fn each_lost_frame_and_each_lost_session_is_made_up_for() {
    let frames = {
        let (mut device, mut coordinator) = (device(blank()), Coordinator::new(1, file_of(1)));
        device.timeout();
        carry(&mut device, &mut coordinator, &mut |_| false)
    };
    for lost in 0..frames {
        for ends_session in [false, true] {
            let (mut device, mut coordinator) = (device(blank()), Coordinator::new(1, file_of(1)));
            let mut number = 0;
            let mut loses = |_: &Device| {
                number += 1;
                number == lost + 1
            };
            device.timeout();
            for _ in 0..30 {
                carry(&mut device, &mut coordinator, &mut loses);
                if ends_session && device.version() == 0 && device.phase() != Phase::Greeting {
                    // The coordinator restarts, and calls.
                    for _ in 0..=crate::session::REPETITIONS {
                        device.timeout();
                        device.sent();
                    }
                }
                device.timeout();
            }
            assert_eq!(
                (device.version(), device.phase()),
                (1, Phase::Idle),
                "frame {lost}"
            );
            // No byte that has arrived is fetched again, except after a lost request.
            let mut offsets = coordinator.asked.clone();
            offsets.dedup();
            assert!(offsets.is_sorted(), "{offsets:?}");
        }
    }
}

#[test]
fn a_refused_file_is_not_fetched_twice() {
    let mut other = made(2);
    other.seed = 2;
    let mut device = device(blank());
    device.slots().install(&file_of(1)).unwrap();
    let mut coordinator = Coordinator::new(2, other.file());
    device.timeout();
    carry(&mut device, &mut coordinator, &mut |_| false);
    let refused = Some((2, DeliveryError::Signature));
    assert_eq!((device.refused(), device.phase()), (refused, Phase::Idle));
    let asked = coordinator.asked.len();
    device.ask();
    carry(&mut device, &mut coordinator, &mut |_| false);
    assert_eq!((coordinator.asked.len(), device.version()), (asked, 1));
    assert_eq!(loaded(device.slots()), Some((1, parameters(1))));
    // The next version is another file.
    coordinator = Coordinator {
        version: 3,
        file: file_of(3),
        ..coordinator
    };
    device.ask();
    carry(&mut device, &mut coordinator, &mut |_| false);
    assert_eq!((device.version(), device.refused()), (3, None));
}

#[test]
fn an_old_or_impossible_offer_changes_nothing() {
    for (version, length, refused) in [
        (1, made(1).file().len(), None),
        (2, 7, Some((2, DeliveryError::Length))),
        (2, u32::MAX as usize, Some((2, DeliveryError::Length))),
    ] {
        let mut device = device(blank());
        device.slots().install(&file_of(1)).unwrap();
        let mut coordinator = Coordinator::new(2, file_of(2));
        device.timeout();
        let mut greeted = |device: &Device| device.phase() == Phase::Ready;
        carry(&mut device, &mut coordinator, &mut greeted);
        let link = coordinator.link.as_mut().unwrap();
        let offer = Message::Delivery(Delivery::Offered(length as u32));
        device.receive(link.seal(version, &offer).as_slice());
        assert_eq!((device.version(), device.refused()), (1, refused));
        assert_eq!((device.phase(), device.outgoing()), (Phase::Idle, &[][..]));
    }
}

#[test]
fn a_device_with_another_model_is_refused_and_keeps_its_model() {
    let mut device = device(blank());
    device.slots().install(&file_of(1)).unwrap();
    let mut coordinator = Coordinator::new(2, file_of(2));
    coordinator.refuses = true;
    device.timeout();
    carry(&mut device, &mut coordinator, &mut |_| false);
    assert_eq!(device.phase(), Phase::Refused(WhyRefused::Shape));
    assert_eq!(loaded(device.slots()), Some((1, parameters(1))));
    // It greets again when it is called.
    coordinator.refuses = false;
    device.receive(Greeting::Call.encoded().as_slice());
    carry(&mut device, &mut coordinator, &mut |_| false);
    assert_eq!(device.version(), 2);
}

#[test]
fn nobody_without_the_key_opens_a_session() {
    let mut device = device(blank());
    device.timeout();
    device.sent();
    let other = ChainKey::new(Key::from_secret([6; 32]));
    let session = other.session(9, &[0; 16], &[1; 16]);
    let versions = Versions::OURS;
    for offer in [Ok(VERSION), Err(versions)] {
        let welcome = Greeting::Welcome(Welcome::new(&session, [1; 16], offer));
        device.receive(welcome.encoded().as_slice());
    }
    assert_eq!(
        (device.phase(), device.refusals().total()),
        (Phase::Greeting, 2)
    );
}
