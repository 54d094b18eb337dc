//! `tests/vectors/wire.json`: what an independent reading of `docs/protocol.md` puts on the line.

use serde_json::Value;
use std::{format, string::String, vec::Vec};

use super::*;
use crate::{
    bit::BitRequest,
    model::{self, Layer, ModelKind, Sequential},
    stream::Root,
    wire::{
        link::End,
        message::{Abort, Decline, Invitation, PackedInvitation, Shape, WhyRefused},
    },
};

fn hex(value: &Value) -> Vec<u8> {
    let text = value.as_str().unwrap();
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

fn array<const N: usize>(value: &Value) -> [u8; N] {
    hex(value).try_into().unwrap()
}

fn file() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/vectors/wire.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn session(file: &Value) -> Key {
    let device = u32::try_from(file["device"].as_u64().unwrap()).unwrap();
    let nonce = |name: &str| array::<16>(&file[name]);
    Key::from_secret(array(&file["device_key"])).session(
        device,
        &nonce("device_nonce"),
        &nonce("coordinator_nonce"),
    )
}

#[test]
fn frames_agree_with_an_independent_reading() {
    let file = file();
    let session = session(&file);
    assert_eq!(session, Key::from_secret(array(&file["session_key"])));
    let mut kinds = Vec::new();
    for case in file["cases"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let direction = match case["direction"].as_u64() {
            Some(1) => Direction::ToDevice,
            _ => Direction::ToCoordinator,
        };
        let line = hex(&case["frame"]);
        let raw = frames(&line).remove(0).unwrap();
        let frame = Frame::parse(&raw).unwrap();
        let message = Message::parse(frame.header.kind, frame.body, direction).unwrap();
        check(name, &message);
        let key = match message {
            Message::Call => Key::from_secret([0; 32]),
            Message::Hello(_) => Key::from_secret(array(&file["device_key"])),
            _ => session.clone(),
        };
        assert!(frame.is_authentic(&key, direction), "{name}");
        // The other way: what this crate says is the same bytes.
        let ours = match direction {
            Direction::ToDevice => sealed::<CoordinatorEnd>(&frame, &message, key),
            Direction::ToCoordinator => sealed::<DeviceEnd>(&frame, &message, key),
        };
        assert_eq!(ours.as_slice(), line, "{name}");
        kinds.push(message.kind());
    }
    kinds.dedup();
    assert_eq!(kinds, [1, 2, 3, 4, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25]);
}

/// The message in a frame like the one that it came in.
fn sealed<E: End>(frame: &Frame<'_>, message: &Message<'_>, key: Key) -> Encoded {
    if message::is_greeting(message.kind()) {
        return greet::<E>(message, &key);
    }
    let mut link = Link::<E>::new(key);
    link.skip_to(frame.header.sequence - 1);
    link.seal(frame.header.round, message)
}

/// That the fields are where they belong, and not only as many bytes.
fn check(name: &str, message: &Message<'_>) {
    match message {
        Message::Call | Message::Done | Message::Wait => {}
        Message::Ready(ledger) => {
            let file = file();
            let key = Key::from_secret(array(&file["device_key"]));
            let nonce = array(&file["ledger_nonce"]);
            assert_eq!(*ledger, key.ledger_fingerprint(42, &nonce));
        }
        Message::Hello(hello) => {
            assert_eq!(hello.device, 42);
            assert_eq!(hello.nonce[0], 100);
            assert_eq!(hello.common_version(), Some(3));
            let is_network = name.ends_with("network");
            let (kind, parameters) = match is_network {
                true => (ModelKind::Sequential, 1_023),
                false => (ModelKind::Softmax, 650),
            };
            assert_eq!(hello.shape.kind, kind);
            assert_eq!(hello.shape.parameters(), parameters);
            assert_eq!(hello.needs_local_noise, !is_network);
        }
        Message::Welcome(welcome) => assert_eq!((welcome.version, welcome.nonce[15]), (3, 215)),
        Message::Refused(refused) => {
            assert_eq!((refused.lowest_version, refused.highest_version), (3, 4));
            assert_eq!(refused.reason, WhyRefused::Version);
        }
        Message::Invitation(packed) => {
            let invitation = packed.unpack().unwrap();
            assert_eq!(PackedInvitation::from(&invitation), *packed);
            check_invitation(name, &invitation);
        }
        Message::WantModel(index) => assert_eq!(*index, 2),
        Message::ModelChunk { index, values } => {
            let mut copied = [9.0; 3];
            values.copy_to(&mut copied).unwrap();
            assert_eq!((*index, copied), (2, [1.0, -0.5, 0.0]));
            assert_eq!(values.copy_to(&mut [0.0; 2]), None);
        }
        Message::UpdateChunk(chunk) if name.ends_with("bit") => {
            let (width, mut bit) = (BitRequest { noise: None }.width(20), [0]);
            chunk.packed.unpack(width, &mut bit).unwrap();
            assert_eq!((chunk.index, chunk.negated, bit), (4, true, [1 << 20]));
        }
        Message::UpdateChunk(chunk) => {
            let mut values = [0; 6];
            chunk.packed.unpack(21, &mut values).unwrap();
            assert_eq!(values, [1, -1, 0, (1 << 20) - 1, -(1 << 20), 12_345]);
            assert_eq!((chunk.index, chunk.negated), (3, false));
        }
        Message::WantUpdate(index) => assert_eq!(*index, 4),
        Message::Decline(reason) => {
            let expected = match name {
                "decline" => Decline::Budget,
                "decline, settings" => Decline::Settings,
                "decline, too soon" => Decline::TooSoon,
                _ => Decline::TooFar,
            };
            assert_eq!(*reason, expected);
        }
        Message::Abort(reason) => assert_eq!(*reason, Abort::OutOfBound),
    }
}

fn check_invitation(name: &str, invitation: &Invitation) {
    let shape = name.contains("network").then(|| Shape::of(&convolutions()));
    let shape = shape
        .flatten()
        .map_or((650, None), |shape| (1_023, shape.network));
    let found = invitation.shape;
    assert_eq!((found.parameters(), found.network), shape, "{name}");
    let training = invitation.training();
    if name.ends_with("local trust") {
        assert_eq!((training.epochs, training.batch_size.get()), (5, 10));
        assert_eq!(training.gradient_smoothing.unwrap().sigma(), 2.0);
        assert_eq!(invitation.grid.clip_norm().get(), 0.5);
        assert_eq!(invitation.grid.bits(), 20);
        assert_eq!(invitation.noise.unwrap().sigma(), (11 << 20, 10));
        assert_eq!(training.clipping, crate::train::Clipping::Final);
        assert_eq!(training.learning_rate.get(), 0.125);
    } else {
        assert!(invitation.noise.is_none() && training.gradient_smoothing.is_none());
        assert_eq!(training.weight_decay.get(), 0.25);
        assert_eq!(training.proximal.get(), 1.0);
        assert_eq!(invitation.width(), 9);
    }
    let bit = invitation
        .bit
        .map(|bit| bit.noise.map(|noise| noise.sigma()));
    let (expected, width) = match (name.contains("adaptive"), invitation.noise) {
        (false, _) => (None, None),
        (true, None) => (Some(None), Some(10)),
        (true, Some(_)) => (Some(Some((9 << 20, 4))), Some(26)),
    };
    assert_eq!((bit, invitation.bit_width()), (expected, width), "{name}");
}

/// The network that a device names in `wire.py`.
fn convolutions() -> Sequential {
    let along_time = |channels| Layer::Convolution {
        channels,
        kernel: [1, 5],
        stride: [1, 1],
        padding: [0, 0],
    };
    let window = model::Shape::Image {
        channels: 6,
        height: 1,
        width: 50,
    };
    let layers = [
        along_time(8),
        Layer::Relu,
        Layer::MaxPool {
            size: [1, 2],
            stride: [1, 2],
        },
        along_time(16),
        Layer::Relu,
        Layer::GlobalAverage,
        Layer::Dense { outputs: 7 },
    ];
    Sequential::new(window, &layers).unwrap()
}

#[test]
fn digests_of_networks_agree_with_an_independent_reading() {
    let text = model::Shape::Sequence {
        length: 40,
        width: 1,
    };
    let layers = [
        Layer::Embedding {
            vocabulary: 80,
            width: 8,
        },
        Layer::Lstm { hidden: 64 },
        Layer::Last,
        Layer::Dense { outputs: 80 },
    ];
    let recurrent = Sequential::new(text, &layers).unwrap();
    let vector = model::Shape::Vector { length: 9 };
    let flat = Sequential::new(vector, &[Layer::Dense { outputs: 3 }]).unwrap();
    let file = file();
    for (name, network) in [
        ("convolutions", convolutions()),
        ("recurrent", recurrent),
        ("flat", flat),
    ] {
        assert_eq!(network.digest(), array(&file["networks"][name]), "{name}");
    }
}

#[test]
fn widths_with_noise_agree_with_an_independent_reading() {
    for case in file()["noisy_widths"].as_array().unwrap() {
        let number = |value: &Value| value.as_u64().unwrap();
        let sigma = &case["sigma"];
        let noise = DiscreteGaussian::new(number(&sigma[0]), number(&sigma[1])).unwrap();
        let found = pack::width(number(&case["bits"]) as u32, Some(&noise));
        assert_eq!(u64::from(found), number(&case["width"]));
    }
}

/// A bit that has noise beside an update without, or none beside one with noise, or another flag.
#[test]
fn an_invitation_to_a_bit_that_does_not_fit_its_update_is_malformed() {
    let file = file();
    let body = |name: &str| {
        let cases = file["cases"].as_array().unwrap();
        let case = cases.iter().find(|case| case["name"] == name).unwrap();
        let raw = frames(&hex(&case["frame"])).remove(0).unwrap();
        Frame::parse(&raw).unwrap().body.to_vec()
    };
    let unpacks = |body: &[u8]| {
        let message = Message::parse(17, body, Direction::ToDevice);
        match message.unwrap() {
            Message::Invitation(packed) => packed.unpack().is_some(),
            _ => false,
        }
    };
    let [local, central] = ["local", "central"].map(|trust| {
        let body = body(&format!("invitation, adaptive, {trust} trust"));
        assert!(unpacks(&body));
        body
    });
    let bit = local.len() - 17..;
    let mixed =
        |update: &[u8], of_bit: &[u8]| [&update[..bit.start], &of_bit[bit.clone()]].concat();
    assert!(!unpacks(&mixed(&local, &central)));
    assert!(!unpacks(&mixed(&central, &local)));
    for flag in [0, 2] {
        let mut body = local.clone();
        body[bit.start] = flag;
        assert!(!unpacks(&body), "{flag}");
    }
}

#[test]
fn reasons_that_are_unknown_keep_their_number() {
    assert_eq!(Decline::from_code(200), Decline::Other(200));
    assert_eq!(Abort::from_code(1).code(), 1);
    let names: std::collections::BTreeSet<String> = (1..=12)
        .map(|code| format!("{}", Decline::from_code(code)))
        .collect();
    assert_eq!(names.len(), 12);
    assert_eq!(
        format!("{}", WhyRefused::from_code(9)),
        "a reason that this version does not know"
    );
}

#[test]
fn roots_of_streams_agree_with_an_independent_reading() {
    let file = file();
    let mut identity = crate::session::Identity {
        device: 42,
        key: Key::from_secret([0; 32]),
        root: Root::from_secret(array(&file["root"])),
    };
    identity.bind(&array(&file["ledger_nonce"]));
    let expected: [u8; 32] = array(&file["root_of_streams"]);
    assert_eq!(*identity.root.secret(), expected);
}
