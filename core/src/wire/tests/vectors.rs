//! `tests/vectors/wire.json`: bytes from an independent implementation of `docs/protocol.md`.

use core::num::NonZeroU32;

use serde_json::Value;
use std::{format, string::String, vec::Vec};

use super::*;
#[cfg(feature = "delivery")]
use crate::wire::message::Delivery;
#[cfg(feature = "short")]
use crate::wire::message::{ModelGrid, Values};
use crate::{
    bit::BitRequest,
    contrast::{ContrastRequest, Part},
    features::{Cells, Range, Steps},
    mask::Masking,
    model::{self, Layer, ModelKind, Sequential},
    params::Penalty,
    personal::{Personal, PersonalRequest},
    recipe::Recipe,
    secrets::Secrets,
    stream::Root,
    wire::{
        link::{End, read},
        message::{
            Abort, Decline, Invitation, ModelShape, PackedInvitation, Ready, Refused, WhyRefused,
        },
    },
};

pub(crate) fn hex(value: &Value) -> Vec<u8> {
    let text = value.as_str().unwrap();
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

pub(crate) fn array<const N: usize>(value: &Value) -> [u8; N] {
    hex(value).try_into().unwrap()
}

pub(super) fn file() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/vectors/wire.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

pub(super) fn chain(file: &Value) -> ChainKey {
    ChainKey::new(Key::from_secret(array(&file["chain_key"])))
}

fn session(file: &Value) -> SessionKeys {
    let device = u32::try_from(file["device"].as_u64().unwrap()).unwrap();
    let nonce = |name: &str| array::<16>(&file[name]);
    chain(file).session(device, &nonce("device_nonce"), &nonce("coordinator_nonce"))
}

#[test]
fn keys_agree_with_an_independent_reading() {
    let file = file();
    let expected = SessionKey::from_secret(array(&file["session_key"]));
    assert_eq!(session(&file).cipher(), expected);
    let next = ChainKey::new(Key::from_secret(array(&file["next_chain_key"])));
    assert_eq!(chain(&file).next(), next);
    assert_eq!(chain(&file).pseudonym(), array(&file["pseudonym"]));
}

/// Returns each case: its name, its direction, and its bytes on the line and before COBS.
fn cases(file: &Value) -> Vec<(&str, Direction, Vec<u8>, Vec<u8>)> {
    let case = |case: &Value| {
        let direction = match case["direction"].as_u64() {
            Some(1) => Direction::ToDevice,
            _ => Direction::ToCoordinator,
        };
        let line = hex(&case["frame"]);
        let raw = frames(&line).remove(0).unwrap();
        (direction, line, raw)
    };
    let cases = file["cases"].as_array().unwrap().iter();
    cases
        .map(|value| {
            let (direction, line, raw) = case(value);
            (value["name"].as_str().unwrap(), direction, line, raw)
        })
        .collect()
}

#[test]
fn frames_agree_with_an_independent_reading() {
    let file = file();
    let key = session(&file).cipher();
    let mut kinds = Vec::new();
    for (name, direction, line, mut raw) in cases(&file) {
        let is_absent = |prefix, is_built: bool| name.starts_with(prefix) && !is_built;
        if is_absent("short", cfg!(feature = "short"))
            || is_absent("delivery", cfg!(feature = "delivery"))
        {
            continue;
        }
        let Frame::Sealed(mut frame) = Frame::parse(&mut raw).unwrap() else {
            continue;
        };
        let mut refused = |key, direction| assert!(!frame.open(key, direction), "{name}");
        refused(&key, direction.opposite());
        refused(&SessionKey::from_secret([0; 32]), direction);
        assert!(frame.open(&key, direction), "{name}");
        let (kind, ours) = match direction {
            Direction::ToDevice => again::<DeviceEnd, CoordinatorEnd>(name, &frame, &key),
            Direction::ToCoordinator => again::<CoordinatorEnd, DeviceEnd>(name, &frame, &key),
        };
        assert_eq!(ours.as_slice(), line, "{name}");
        kinds.push(kind);
    }
    kinds.dedup();
    let last = match cfg!(feature = "short") {
        _ if cfg!(feature = "delivery") => 32,
        true => 28,
        false => 26,
    };
    assert_eq!(kinds, (16..=last).collect::<Vec<u8>>());
}

/// Returns the kind of an opened frame's message, and the message sealed in a frame again.
fn again<R: End, S: End>(name: &str, frame: &Sealed<'_>, key: &SessionKey) -> (u8, Encoded) {
    let (round, message) = read::<R>(frame).unwrap();
    check(name, &message);
    let mut link = Link::<S>::new(key.clone());
    link.skip_to(frame.sequence() - 1);
    (message.kind(), link.seal(round, &message))
}

#[test]
fn greetings_agree_with_an_independent_reading() {
    let file = file();
    let (chain, session) = (chain(&file), session(&file));
    let mut count = 0;
    for (name, direction, line, mut raw) in cases(&file) {
        let frame = Frame::parse(&mut raw).unwrap();
        let Ok(message) = greeting(&frame, direction) else {
            continue;
        };
        assert_eq!(greeting(&frame, direction.opposite()), Err(Refusal::Kind));
        assert_eq!(message.encoded().as_slice(), line, "{name}");
        count += 1;
        match message {
            Greeting::Call => {}
            Greeting::Hello(hello) => {
                let expected = name_of(42, &chain, name.ends_with("hidden"));
                assert_eq!(hello.name, expected);
                assert!(hello.is_authentic(&chain.greeting()));
                assert!(!hello.is_authentic(&chain.next().greeting()));
                let nonce = array(&file["device_nonce"]);
                assert_eq!(
                    hello,
                    Hello::new(&chain.greeting(), expected, nonce, Versions::OURS)
                );
            }
            Greeting::Welcome(welcome) => {
                assert!(welcome.is_authentic(&session));
                let versions = Versions {
                    lowest: 6,
                    highest: 7,
                };
                let offer = match name {
                    "welcome" => Ok(VERSION),
                    _ => Err(versions),
                };
                let nonce = array(&file["coordinator_nonce"]);
                assert_eq!(welcome, Welcome::new(&session, nonce, offer));
            }
            #[cfg(feature = "x25519")]
            Greeting::Second(_) => panic!("{name}: tests/handshake.rs has these"),
        }
    }
    assert_eq!(count, 5);
}

fn check_ready(name: &str, ready: &Ready<'_>) {
    let nonce = array(&file()["ledger_nonce"]);
    assert_eq!(ready.ledger, ledger_fingerprint(&nonce));
    let is_network = name.ends_with("network");
    let (kind, parameters) = match is_network {
        true => (ModelKind::Sequential, 1_023),
        false => (ModelKind::Softmax, 650),
    };
    assert_eq!(ready.shape.kind, kind);
    assert_eq!(ready.shape.parameters(), parameters);
    assert_eq!(ready.needs_local_noise, !is_network);
    let recipe = Recipe::read(ready.recipe);
    let cells = Cells::new(28, 32, 4).unwrap();
    let ranges = [Range::new(-1.0, 2.5).ok(), None];
    let expected = match name {
        "ready, gradients" => Some(Recipe::Gradients { cells, planes: 3 }),
        "ready, steps" => Recipe::steps(Steps::new(8).unwrap(), &ranges),
        _ => None,
    };
    assert_eq!(recipe, expected);
    assert_eq!(ready.recipe.is_empty(), expected.is_none());
}

fn check_refused(name: &str, refused: &Refused<'_>) {
    let shape = ModelShape::read(refused.experiment);
    let recipe = Recipe::read(refused.experiment);
    let expected = match name {
        "refused, model" => (WhyRefused::Shape, Some(1_023), false),
        "refused, recipe" => (WhyRefused::RECIPE, None, true),
        _ => (WhyRefused::Ledger, None, false),
    };
    let parameters = shape.map(|shape| shape.parameters());
    assert_eq!((refused.reason, parameters, recipe.is_some()), expected);
}

/// Checks the position of each field, and not only the number of bytes.
fn check(name: &str, message: &Message<'_>) {
    match message {
        Message::Done | Message::Wait => {}
        Message::Ready(ready) => check_ready(name, ready),
        Message::Refused(refused) => check_refused(name, refused),
        Message::Invitation(packed) => {
            let invitation = packed.unpack().unwrap();
            assert_eq!(PackedInvitation::from(&invitation).bytes(), *packed);
            check_invitation(name, &invitation);
        }
        Message::WantModel { chunk, count } => assert_eq!((*chunk, *count), (2, 16)),
        #[cfg(feature = "short")]
        Message::ModelChunk {
            index,
            values: Values::Short(values),
        } => {
            let grid = ModelGrid::new(12).unwrap();
            let mut place = [-299, 0, 5, -5].map(|steps| grid.value(steps));
            let (to_value, to_steps) = (|steps| grid.value(steps), |x| grid.round(x));
            values.receive(&mut place, to_value, to_steps).unwrap();
            assert_eq!(place, [-300, 127, 0, 900].map(|steps| grid.value(steps)));
            assert_eq!((*index, values.grid), (2, grid));
            assert_eq!(values.is_difference(), name.ends_with("difference"));
        }
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
        Message::UpdateChunk(chunk) if name.ends_with("tag") => {
            let tag = core::array::from_fn(|i| i as u8);
            assert_eq!((chunk.index, chunk.packed.tag()), (8, Some(tag)));
        }
        Message::UpdateChunk(chunk) if name.ends_with("nothing") => {
            assert_eq!(
                (chunk.index, chunk.packed.unpack(21, &mut [])),
                (0, Some(()))
            );
        }
        Message::UpdateChunk(chunk) => {
            let mut values = [0; 6];
            chunk.packed.unpack(21, &mut values).unwrap();
            assert_eq!(values, [1, -1, 0, (1 << 20) - 1, -(1 << 20), 12_345]);
            assert_eq!((chunk.index, chunk.negated), (3, false));
            assert_eq!(chunk.more, name.ends_with("more"));
        }
        #[cfg(feature = "short")]
        Message::WantShort { chunk, count, base } => {
            let expected = name.ends_with("difference").then_some(6);
            assert_eq!((*chunk, *count, *base), (2, 16, expected));
        }
        Message::WantUpdate(index) => assert_eq!(*index, 4),
        Message::Decline(reason) => assert_eq!(*reason, expected_decline(name)),
        Message::Abort(reason) => assert_eq!(*reason, Abort::OutOfBound),
        #[cfg(feature = "delivery")]
        Message::Delivery(delivery) => check_delivery(delivery),
    }
}

fn expected_decline(name: &str) -> Decline {
    match name {
        "decline" => Decline::Budget,
        "decline, settings" => Decline::Settings,
        "decline, too soon" => Decline::TooSoon,
        "decline, memory" => Decline::Memory,
        "decline, helpers" => Decline::Helpers,
        _ => Decline::TooFar,
    }
}

#[cfg(feature = "delivery")]
fn check_delivery(delivery: &Delivery<'_>) {
    match delivery {
        Delivery::Installed(installed) => {
            assert_eq!((installed.version, installed.shape.parameters()), (4, 650));
            assert!(Recipe::read(installed.recipe).is_some());
        }
        Delivery::Offered(length) => assert_eq!(*length, 2_792),
        Delivery::WantFile { offset, count } => assert_eq!((*offset, *count), (384, 16)),
        Delivery::FileChunk { offset, bytes } => {
            let expected: [u8; 192] = core::array::from_fn(|i| i as u8);
            assert_eq!((*offset, *bytes), (384, &expected[..]));
        }
    }
}

fn check_invitation(name: &str, invitation: &Invitation) {
    let shape = name
        .contains("network")
        .then(|| ModelShape::of(&convolutions()));
    let is_encoder = name.contains("encoder");
    let shape = shape
        .flatten()
        .map_or((if is_encoder { 1_024 } else { 650 }, None), |shape| {
            (1_023, shape.network)
        });
    let found = invitation.shape;
    assert_eq!((found.parameters(), found.network), shape, "{name}");
    let training = invitation.training();
    if name.ends_with("local trust") {
        assert_eq!((training.epochs, training.batch_size.get()), (5, 10));
        assert_eq!(training.gradient_smoothing.unwrap().sigma(), 2.0);
        assert_eq!(invitation.grid.clip_norm().get(), 0.5);
        assert_eq!(invitation.grid.bits(), 20);
        assert_eq!(invitation.noise.unwrap().ratio(), (11 << 20, 10));
        assert_eq!(training.clipping, crate::train::Clipping::Final);
        assert_eq!(training.learning_rate.get(), 0.125);
    } else {
        assert!(invitation.noise.is_none() && training.gradient_smoothing.is_none());
        assert_eq!(training.weight_decay.get(), 0.25);
        assert_eq!(training.proximal.get(), 1.0);
        let width = if name.ends_with("masked") { 19 } else { 9 };
        assert_eq!(invitation.width(), width);
    }
    let masks = name
        .ends_with("masked")
        .then(|| Masking::new(2, 19).unwrap());
    assert_eq!(invitation.masks, masks, "{name}");
    let bit = invitation.bit.map(|bit| bit.noise.map(Sigma::ratio));
    let (expected, width) = match (name.contains("adaptive"), invitation.noise) {
        (false, _) => (None, None),
        (true, None) => (Some(None), Some(10)),
        (true, Some(_)) => (Some(Some((9 << 20, 4))), Some(26)),
    };
    assert_eq!((bit, invitation.bit_width()), (expected, width), "{name}");
    let (network, is_tuned) = (name.contains("network"), name.contains("tuned"));
    let is_personal = is_tuned || name.contains("personal");
    let personal = is_personal.then(|| PersonalRequest {
        personal: match network {
            _ if is_tuned => Personal::Tuned {
                pull: Penalty::new(0.5).unwrap(),
            },
            true => Personal::Rest,
            false => Personal::Model {
                pull: Penalty::new(0.5).unwrap(),
                from_previous: false,
            },
        },
        steps: (!network && !is_tuned).then_some(NonZeroU32::new(7).unwrap()),
        shared: match network {
            _ if is_tuned => 0,
            true => 904,
            false => 650,
        },
        last: (!is_tuned).then_some(3),
    });
    assert_eq!(invitation.personal(), personal.as_ref(), "{name}");
    check_contrast(name, invitation);
}

fn check_contrast(name: &str, invitation: &Invitation) {
    let (is_matrix, has_others) = (name.contains("matrix"), name.contains("with others"));
    let is_contrast = is_matrix || has_others || name.contains("without labels");
    let expected = is_contrast.then_some(ContrastRequest {
        part: match is_matrix {
            true => Part::Matrix,
            false => Part::Training { has_others },
        },
        pairs: 2,
        norm_bound: (!is_matrix).then_some(8.0),
        entries: if is_matrix { 137 } else { 1_024 },
        max_samples: if is_matrix { 300 } else { 0 },
    });
    assert_eq!(invitation.contrast(), expected.as_ref(), "{name}");
    if is_matrix {
        // 300 · 2^20 and 12 times 1,153,434, and the sign.
        assert_eq!(invitation.width(), 30);
    }
}

/// Returns the network that a device describes in `wire.py`.
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
        let noise = Sigma::new(number(&sigma[0]), number(&sigma[1])).ok();
        let found = pack::width(number(&case["bits"]) as u32, noise);
        assert_eq!(u64::from(found), number(&case["width"]));
    }
}

/// Returns the body of an invitation in the vectors.
fn invitation_body(name: &str) -> Vec<u8> {
    let file = file();
    let key = session(&file).cipher();
    let mut cases = cases(&file).into_iter();
    let (_, direction, _, mut raw) = cases.find(|case| case.0 == name).unwrap();
    let Frame::Sealed(mut frame) = Frame::parse(&mut raw).unwrap() else {
        panic!("a frame of a session");
    };
    assert!(frame.open(&key, direction));
    frame.opened().body.to_vec()
}

fn unpacks(body: &[u8]) -> bool {
    match Message::parse(17, body, Direction::ToDevice).unwrap() {
        Message::Invitation(packed) => packed.unpack().is_some(),
        _ => false,
    }
}

/// Masks together with the device's noise or a bit, too many, too narrow, or without entries.
#[test]
fn an_invitation_to_masks_that_do_not_fit_its_update_is_malformed() {
    let body = |name: &str, masks: [u8; 2]| {
        let mut body = invitation_body(&format!("invitation, {name}"));
        // A request may follow the masks.
        let request = body.len().saturating_sub(70).min(17);
        let place = body.len() - request - 2;
        body[place..][..2].copy_from_slice(&masks);
        body
    };
    for masks in [[0, 0], [1, 10], [1, 57], [8, 19]] {
        assert!(unpacks(&body("masked", masks)), "{masks:?}");
    }
    for masks in [[0, 19], [1, 0], [1, 9], [1, 58], [9, 19], [255, 255]] {
        assert!(!unpacks(&body("masked", masks)), "{masks:?}");
    }
    for name in [
        "local trust",
        "adaptive, central trust",
        "adaptive, local trust",
    ] {
        assert!(!unpacks(&body(name, [1, 57])), "{name}");
    }
    for (name, is_valid) in [
        ("personal, central trust", true),
        ("tuned, central trust", false),
        ("encoder without labels, central trust", false),
    ] {
        assert!(unpacks(&body(name, [0, 0])), "{name}");
        assert_eq!(unpacks(&body(name, [1, 57])), is_valid, "{name}");
    }
}

/// A bit with noise while the update has none, a bit without noise while the update has some, or
/// another flag.
#[test]
fn an_invitation_to_a_bit_that_does_not_fit_its_update_is_malformed() {
    let [local, central] = ["local", "central"].map(|trust| {
        let body = invitation_body(&format!("invitation, adaptive, {trust} trust"));
        assert!(unpacks(&body));
        body
    });
    let bit = local.len() - 19;
    let mixed = |update: &[u8], of_bit: &[u8]| [&update[..bit], &of_bit[bit..]].concat();
    assert!(!unpacks(&mixed(&local, &central)));
    assert!(!unpacks(&mixed(&central, &local)));
    for flag in [0, 2] {
        let mut body = local.clone();
        body[bit] = flag;
        assert!(!unpacks(&body), "{flag}");
    }
}

/// Zeros mean no noise. No other σ outside the range is read as no noise.
#[test]
fn an_invitation_to_noise_outside_of_its_range_is_malformed() {
    let local = invitation_body("invitation, adaptive, local trust");
    // The σ of the update is followed by the flag of the bit, the bit's σ and two bytes of masks.
    let of_bit = local.len() - 18;
    let of_update = of_bit - 17;
    let with = |places: &[usize], numerator: u64, denominator: u64| {
        let mut body = local.clone();
        for place in places {
            body[*place..][..8].copy_from_slice(&numerator.to_le_bytes());
            body[place + 8..][..8].copy_from_slice(&denominator.to_le_bytes());
        }
        body
    };
    let outside = [(0, 1), (1, 0), ((1 << 52) + 1, 1), (1, (1 << 48) + 1)];
    for places in [&[of_update][..], &[of_bit], &[of_update, of_bit]] {
        for (numerator, denominator) in [(1, 1), (1 << 52, 1 << 48), (1, 1 << 48)] {
            assert!(unpacks(&with(places, numerator, denominator)));
        }
        for (numerator, denominator) in outside {
            assert!(
                !unpacks(&with(places, numerator, denominator)),
                "{numerator}"
            );
        }
    }
    assert!(
        unpacks(&with(&[of_update, of_bit], 0, 0)),
        "neither has noise"
    );
}

#[test]
fn reasons_keep_their_number() {
    for code in 0..=255 {
        assert_eq!(Decline::from_code(code).code(), code);
        assert_eq!(Abort::from_code(code).code(), code);
        assert_eq!(WhyRefused::from_code(code).code(), code);
    }
    assert_eq!(Decline::from_code(200), Decline::Other(200));
    assert_eq!(Decline::from_code(0), Decline::Other(0));
    let names: std::collections::BTreeSet<String> = (1..=18)
        .map(|code| format!("{}", Decline::from_code(code)))
        .collect();
    assert_eq!(names.len(), 18);
    let of_builds = [
        Decline::NO_LOCAL_NOISE,
        Decline::NO_SMOOTHING,
        Decline::NO_BIT,
    ];
    assert_eq!(of_builds.map(|reason| reason.code()), [16, 17, 18]);
    assert_eq!(
        format!("{}", WhyRefused::from_code(9)),
        "a reason that this version does not know"
    );
}

#[test]
fn roots_of_streams_agree_with_an_independent_reading() {
    let file = file();
    let mut root = Root::from_secret(array(&file["root"]));
    root.bind(&array(&file["ledger_nonce"]));
    let expected: [u8; 32] = array(&file["root_of_streams"]);
    assert_eq!(*root.secret(), expected);
}

#[cfg(feature = "element")]
#[test]
fn keys_of_a_secure_element_agree_with_an_independent_reading() {
    use crate::{
        crypto::kdf::Kdf,
        element::{Element, check, tests::Rooted},
        mask::MaskRoot,
    };

    let file = file();
    let own = &file["element"];
    let chain = ChainKey::with_kdf(Key::from_secret(array(&file["chain_key"])), Kdf::HkdfSha256);
    let next = own["chain_keys"].as_array().unwrap();
    assert_eq!(*chain.next().secret(), array::<32>(&next[0]));
    assert_eq!(*chain.next().next().secret(), array::<32>(&next[1]));
    assert_eq!(chain.pseudonym(), array(&own["pseudonym"]));
    assert_eq!(chain.fingerprint(), array(&own["fingerprint"]));
    let nonces = ["device_nonce", "coordinator_nonce"].map(|name| array(&file[name]));
    let session = chain.session(42, &nonces[0], &nonces[1]).cipher();
    assert!(session == SessionKey::from_secret(array(&own["session_key"])));

    let root = Key::from_secret(array(&file["root"]));
    assert_eq!(check(&root), array(&own["check_of_root"]));
    let mut element = Element::new(Rooted(*root.secret()), &array(&own["check_of_root"])).unwrap();
    let round = own["round"].as_u64().unwrap() as u32;
    element.begin(&array(&file["ledger_nonce"]), round).unwrap();
    let expected: [u8; 32] = array(&own["root_of_round"]);
    assert_eq!(*element.current().secret(), expected);
    let masks = MaskRoot::from_derived(Key::from_secret(array(&own["root_of_masks"])));
    let [ours, theirs] = [element.masks(42).unwrap(), masks].map(|root| root.helper(0));
    assert_eq!(ours.secret(), theirs.secret());
}
