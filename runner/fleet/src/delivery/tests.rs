//! Folders of models, and deliveries over connections that break.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use proptest::prelude::*;
use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::SeedableRng;
use smolfed_core::crypto::Key;
use smolfed_core::delivery::slots::flash_bytes;
use smolfed_core::delivery::{Accepted, ModelSlots, PublisherKey, Receiver};
use smolfed_core::fixed_point::{FeatureFormat, FeatureScale};
use smolfed_core::model::ModelKind;
use smolfed_core::session::Phase;
use smolfed_core::wire::keys::ChainKey;
use smolfed_core::wire::message::{ModelGrid, ModelShape, WhyRefused};

use super::catalogue::{Catalogue, Draft, Edit, Share, file_path, signed_file};
use super::conversation::{Context, Conversation};
use super::error::CatalogueError;
use super::figures::Figures;
use super::published::Published;
use super::publisher::public_key;
use crate::device::image::Image;

const SHAPE: ModelShape = ModelShape {
    kind: ModelKind::Softmax,
    features: 64,
    outputs: 10,
    network: None,
    integer: None,
};

fn parameters(value: f32) -> Vec<f32> {
    vec![value; SHAPE.parameters()]
}

fn draft(value: f32) -> Draft {
    Draft {
        source: format!("runs/{value}"),
        shape: SHAPE,
        recipe: None,
        parameters: parameters(value),
        grid: None,
        statement: None,
        answers: None,
    }
}

fn publish(folder: &Path, value: f32, percent: Option<f64>) -> u32 {
    let edit = Edit::begin_or_create(folder).unwrap();
    edit.publish(draft(value), percent).unwrap().number
}

fn shares(folder: &Path) -> Vec<(u32, f64)> {
    let catalogue = Catalogue::read(folder).unwrap();
    let shares = catalogue.shares.iter();
    shares.map(|share| (share.version, share.percent)).collect()
}

fn split(folder: &Path, shares: &[(u32, f64)]) -> Result<Catalogue, CatalogueError> {
    let shares = shares.iter().map(|(version, percent)| Share {
        version: *version,
        percent: *percent,
    });
    Edit::begin(folder).unwrap().split(shares.collect())
}

fn roll_back(folder: &Path, to: Option<u32>) -> Result<u32, CatalogueError> {
    let version = Edit::begin(folder).unwrap().roll_back(to)?;
    Ok(version.number)
}

type Device = Receiver<Image<Vec<u8>>, ChaCha12Rng>;

fn key(device: u32) -> ChainKey {
    let mut secret = [7; 32];
    secret[..4].copy_from_slice(&device.to_le_bytes());
    ChainKey::new(Key::from_secret(secret))
}

fn device(folder: &Path, device: u32, shape: ModelShape) -> Device {
    let publisher = folder.join("publisher.pub");
    let accepted = Accepted {
        publisher: public_key(publisher.to_str().unwrap()).unwrap(),
        shape,
        recipe: None,
    };
    let flash = Image(vec![0xff; flash_bytes(shape.parameters(), 64) as usize]);
    let slots = ModelSlots::open(flash, accepted).unwrap();
    let nonces = ChaCha12Rng::seed_from_u64(device.into());
    Receiver::new(device, key(device), nonces, slots)
}

/// The value of the parameters that a device predicts with.
fn loaded(device: &mut Device) -> Option<f32> {
    let mut values = parameters(0.0);
    device.slots().load(&mut values).unwrap()?;
    assert!(
        values
            .iter()
            .all(|value| value.to_bits() == values[0].to_bits())
    );
    Some(values[0])
}

/// A service without an event loop.
struct Service {
    keys: BTreeMap<u32, ChainKey>,
    published: Published,
    figures: Figures,
}

impl Service {
    fn of(folder: &Path, devices: u32) -> Self {
        Self {
            keys: (0..devices).map(|device| (device, key(device))).collect(),
            published: Published::read(folder).unwrap(),
            figures: Figures::default(),
        }
    }

    const fn context(&self) -> Context<'_> {
        Context {
            keys: &self.keys,
            published: &self.published,
            figures: &self.figures,
        }
    }

    /// Connects a device, and carries up to this many bytes in each direction.
    fn connect(&self, device: &mut Device, bytes: usize) {
        let mut conversation = Conversation::default();
        device.reconnect();
        let (mut up, mut down) = (bytes, bytes);
        while !device.outgoing().is_empty() && up > 0 && down > 0 {
            let sent = device.outgoing().to_vec();
            device.sent();
            let sent = &sent[..sent.len().min(up)];
            up -= sent.len();
            let mut out = Vec::new();
            conversation.receive(sent, self.context(), &mut out);
            let mut rest = &out[..out.len().min(down)];
            down -= rest.len();
            while !rest.is_empty() {
                rest = &rest[device.receive(rest)..];
            }
        }
        conversation.lost(&self.figures);
    }

    /// Devices by version.
    fn counts(&self) -> Vec<(u32, u64)> {
        let snapshot = self.figures.snapshot(self.keys.len(), &self.published);
        assert_eq!(snapshot.connected, 0);
        let versions = snapshot.versions.iter();
        versions
            .map(|figures| (figures.version.number, figures.devices))
            .collect()
    }
}

#[test]
fn versions_are_published_split_and_taken_back_under_rising_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let folder = &dir.path().join("models");
    assert_eq!(publish(folder, 1.0, None), 1);
    assert!(matches!(
        roll_back(folder, None),
        Err(CatalogueError::NoEarlier)
    ));
    assert_eq!(publish(folder, 2.0, Some(10.0)), 2);
    assert_eq!(shares(folder), [(2, 10.0), (1, 90.0)]);
    split(folder, &[(1, 50.0), (2, 50.0)]).unwrap();
    assert_eq!(shares(folder), [(2, 50.0), (1, 50.0)]);
    // Of a split, the older version.
    assert_eq!(roll_back(folder, None).unwrap(), 3);
    assert_eq!(shares(folder), [(3, 100.0)]);
    let published = Published::read(folder).unwrap();
    let mut device = device(folder, 0, SHAPE);
    let (version, file) = published.offer(0, 0).unwrap();
    assert_eq!(device.slots().install(file), Ok(version));
    assert_eq!(loaded(&mut device), Some(1.0));
    // There was none before version 1.
    assert!(matches!(
        roll_back(folder, None),
        Err(CatalogueError::NoEarlier)
    ));
    assert_eq!(publish(folder, 4.0, None), 4);
    assert_eq!(roll_back(folder, Some(2)).unwrap(), 5);
    // Version 2 has replaced version 1.
    assert_eq!(roll_back(folder, None).unwrap(), 6);
    let catalogue = Catalogue::read(folder).unwrap();
    assert_eq!(catalogue.version(6).unwrap().rolls_back_to, Some(1));
}

/// The bits of a negative weight are NaN as `f32`.
#[test]
fn weights_in_integers_keep_their_bits() {
    let place = tempfile::tempdir().unwrap();
    let scale = FeatureScale::new::<i8>(6).unwrap();
    let weights = [-1_i32, 1, -(1 << 20), 0];
    let bits = weights.map(i32::cast_unsigned);
    let draft = |grid| Draft {
        shape: ModelShape {
            features: 1,
            outputs: 2,
            integer: Some(FeatureFormat::of::<i8>(scale)),
            ..SHAPE
        },
        parameters: bits.map(f32::from_bits).to_vec(),
        grid,
        ..draft(0.0)
    };
    let edit = || Edit::begin_or_create(place.path()).unwrap();
    edit().publish(draft(None), None).unwrap();
    edit().publish(draft(None), None).unwrap();
    edit().roll_back(None).unwrap();
    for version in 1..=3 {
        let (header, file) = signed_file(place.path(), version).unwrap();
        let found: Vec<f32> = header.parameters(&file);
        let found: Vec<u32> = found.iter().map(|value| value.to_bits()).collect();
        assert_eq!(found, bits, "{version}");
    }
    let refused = edit().publish(draft(ModelGrid::new(4)), None).unwrap_err();
    assert!(refused.to_string().contains("32 bits"), "{refused}");
}

#[test]
fn shares_and_models_that_make_no_sense_are_refused_and_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    publish(folder, 1.0, None);
    publish(folder, 2.0, Some(25.0));
    let before = shares(folder);
    type Expected = fn(&CatalogueError) -> bool;
    let cases: [(&[(u32, f64)], Expected); 6] = [
        (&[(1, 50.0), (3, 50.0)], |x| {
            matches!(x, CatalogueError::NoVersion { version: 3, .. })
        }),
        (&[(1, 50.0), (2, 49.0)], |x| {
            matches!(x, CatalogueError::Sum(_))
        }),
        (&[(1, 150.0), (2, -50.0)], |x| {
            matches!(x, CatalogueError::Share(_))
        }),
        (&[(1, f64::NAN), (2, 50.0)], |x| {
            matches!(x, CatalogueError::Share(_))
        }),
        (&[(1, 50.0), (1, 50.0)], |x| {
            matches!(x, CatalogueError::Twice(1))
        }),
        (&[], |x| matches!(x, CatalogueError::Sum(_))),
    ];
    for (given, expected) in cases {
        let error = split(folder, given).unwrap_err();
        assert!(expected(&error), "{given:?}: {error}");
    }
    type Change = fn(&mut Draft);
    let changes: [(Change, Expected); 5] = [
        (
            |draft| draft.shape.features = 63,
            |x| matches!(x, CatalogueError::Unusable(_)),
        ),
        (
            |draft| {
                draft.shape.features = 63;
                draft.parameters.truncate(640);
            },
            |x| matches!(x, CatalogueError::OtherModel { .. }),
        ),
        (
            |draft| draft.parameters[3] = f32::NAN,
            |x| matches!(x, CatalogueError::Unusable(_)),
        ),
        (
            |draft| (draft.grid, draft.parameters[3]) = (ModelGrid::new(15), 1.5),
            |x| matches!(x, CatalogueError::Unusable(_)),
        ),
        // Two versions are current.
        (|_| {}, |x| matches!(x, CatalogueError::AlreadySplit)),
    ];
    for (change, expected) in changes {
        let mut draft = draft(3.0);
        change(&mut draft);
        let edit = Edit::begin(folder).unwrap();
        let error = edit.publish(draft, Some(5.0)).unwrap_err();
        assert!(expected(&error), "{error}");
    }
    assert_eq!(shares(folder), before);
    // Nothing was signed in their place.
    assert!(!file_path(folder, 3).exists());
    assert_eq!(publish(folder, 3.0, None), 3);
}

/// Otherwise, whoever can write to the folder could have any model signed.
#[test]
fn a_changed_file_is_not_signed_again() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    publish(folder, 1.0, None);
    publish(folder, 2.0, None);
    let path = file_path(folder, 1);
    let mut file = std::fs::read(&path).unwrap();
    file[200] ^= 1;
    std::fs::write(&path, file).unwrap();
    let error = roll_back(folder, None).unwrap_err().to_string();
    assert!(
        error.contains("its signature is not this publisher's"),
        "{error}"
    );
    assert_eq!(shares(folder), [(2, 100.0)]);
}

/// A copy without the key, as on the machine that delivers, can split and nothing else.
#[test]
fn a_folder_without_its_key_gets_no_other_one() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    publish(folder, 1.0, None);
    publish(folder, 2.0, None);
    let public = || std::fs::read_to_string(folder.join("publisher.pub")).unwrap();
    let (before, secret) = (public(), folder.join("publisher.key"));
    let kept = folder.join("kept");
    std::fs::rename(&secret, &kept).unwrap();
    split(folder, &[(1, 50.0), (2, 50.0)]).unwrap();
    assert!(matches!(
        roll_back(folder, None),
        Err(CatalogueError::NoKey(_))
    ));
    let edit = Edit::begin_or_create(folder).unwrap();
    let refused = edit.publish(draft(3.0), None);
    assert!(matches!(refused, Err(CatalogueError::NoKey(_))));
    assert!(!secret.exists() && !file_path(folder, 3).exists());
    assert_eq!(public(), before);
    // Somebody else's key.
    let elsewhere = tempfile::tempdir().unwrap();
    publish(elsewhere.path(), 1.0, None);
    std::fs::copy(elsewhere.path().join("publisher.key"), &secret).unwrap();
    let error = Edit::begin(folder).unwrap_err();
    assert!(matches!(error, CatalogueError::OtherKey(_)), "{error}");
}

/// After a crash between the file of a version and the catalogue.
#[test]
fn a_number_is_signed_once() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    publish(folder, 1.0, None);
    std::fs::copy(file_path(folder, 1), file_path(folder, 2)).unwrap();
    assert_eq!(publish(folder, 3.0, None), 3);
    assert_eq!(roll_back(folder, None).unwrap(), 4);
}

/// Not to a trial that few devices had.
#[test]
fn a_roll_back_reaches_the_version_that_most_devices_had() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    publish(folder, 1.0, None);
    publish(folder, 2.0, Some(25.0));
    publish(folder, 3.0, None);
    assert_eq!(roll_back(folder, None).unwrap(), 4);
    let catalogue = Catalogue::read(folder).unwrap();
    assert_eq!(catalogue.version(4).unwrap().rolls_back_to, Some(1));
}

#[test]
fn damaged_folders_are_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    assert!(matches!(
        Published::read(folder),
        Err(CatalogueError::Absent(_))
    ));
    publish(folder, 1.0, None);
    publish(folder, 2.0, None);
    // Another version's file.
    std::fs::copy(file_path(folder, 1), file_path(folder, 2)).unwrap();
    let error = Published::read(folder).unwrap_err().to_string();
    assert!(error.contains("not the file of version 2"), "{error}");
    let path = folder.join(Catalogue::FILE);
    let text = std::fs::read_to_string(&path).unwrap();
    for (from, to, expected) in [
        ("\"next\": 3", "\"next\": 2", "next number is used"),
        ("\"percent\": 100.0", "\"percent\": 99.0", "add up to 99 %"),
        ("\"shares\"", "\"share\"", "unknown field"),
    ] {
        std::fs::write(&path, text.replace(from, to)).unwrap();
        let error = Catalogue::read(folder).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// The false-alarm probability of the bound, six standard deviations, is 2·10⁻⁹. The hash has no
/// seed, so the test is deterministic.
#[test]
fn a_share_of_the_devices_gets_each_version_and_keeps_it_when_the_share_rises() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    publish(folder, 1.0, None);
    publish(folder, 2.0, Some(10.0));
    let holders = |version| {
        let catalogue = Catalogue::read(folder).unwrap();
        let devices = (0..10_000).filter(move |device| catalogue.version_of(*device) == version);
        devices.collect::<BTreeSet<u32>>()
    };
    let ten = holders(2);
    assert!(
        (ten.len() as f64 - 1_000.0).abs() < 6.0 * 30.0,
        "{}",
        ten.len()
    );
    split(folder, &[(1, 50.0), (2, 50.0)]).unwrap();
    let half = holders(2);
    assert!(
        (half.len() as f64 - 5_000.0).abs() < 6.0 * 50.0,
        "{}",
        half.len()
    );
    assert!(ten.is_subset(&half));
    // Other devices are the first to get the next version.
    publish(folder, 3.0, None);
    split(folder, &[(2, 90.0), (3, 10.0)]).unwrap();
    assert!(!holders(3).is_subset(&half));
}

#[test]
fn each_device_gets_its_version_whatever_connections_break() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    publish(folder, 1.0, None);
    let count = 200;
    let mut devices: Vec<Device> = (0..count)
        .map(|number| device(folder, number, SHAPE))
        .collect();
    publish(folder, 2.0, Some(30.0));
    let service = Service::of(folder, count);
    for (number, device) in devices.iter_mut().enumerate() {
        // A greeting has some 80 bytes, and the file has 15 frames.
        let mut bytes = 40 + 13 * number;
        let mut connections = 0;
        while device.version() == 0 {
            service.connect(device, bytes);
            bytes += 97;
            connections += 1;
            assert!(connections < 60, "device {number}");
        }
        // It names what it has.
        service.connect(device, usize::MAX);
    }
    let expected = |number| service.published.catalogue.version_of(number);
    for (number, device) in devices.iter_mut().enumerate() {
        let version = expected(number as u32);
        assert_eq!((device.version(), device.phase()), (version, Phase::Idle));
        assert_eq!(loaded(device), Some(version as f32));
    }
    let second = (0..count).filter(|number| expected(*number) == 2).count() as u64;
    assert!(second > 0 && second < u64::from(count));
    assert_eq!(
        service.counts(),
        [(2, second), (1, u64::from(count) - second)]
    );

    // Taking version 2 back reaches all of them.
    roll_back(folder, None).unwrap();
    let service = Service::of(folder, count);
    for device in &mut devices {
        service.connect(device, usize::MAX);
        assert_eq!((device.version(), loaded(device)), (3, Some(1.0)));
    }
    assert_eq!(service.counts(), [(3, u64::from(count)), (2, 0), (1, 0)]);
}

#[test]
fn an_open_session_is_offered_a_new_version_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    publish(folder, 1.0, None);
    let mut device = device(folder, 0, SHAPE);
    let mut conversation = Conversation::default();
    let talk = |service: &Service, conversation: &mut Conversation, device: &mut Device| {
        let mut out = Vec::new();
        conversation.poll(service.context(), &mut out);
        loop {
            let mut rest = &out[..];
            while !rest.is_empty() {
                rest = &rest[device.receive(rest)..];
            }
            let sent = device.outgoing().to_vec();
            device.sent();
            if sent.is_empty() {
                return;
            }
            out.clear();
            conversation.receive(&sent, service.context(), &mut out);
        }
    };
    let service = Service::of(folder, 1);
    device.reconnect();
    talk(&service, &mut conversation, &mut device);
    assert_eq!(device.version(), 1);
    publish(folder, 2.0, None);
    let service = Service::of(folder, 1);
    talk(&service, &mut conversation, &mut device);
    assert_eq!((device.version(), device.refusals().total()), (2, 0));
    // A revoked key ends the session.
    conversation.check(&BTreeMap::new(), &service.figures);
    assert!(!conversation.has_session());
}

/// A recorded Hello neither ends the session nor makes the service forget the device.
#[test]
fn a_replayed_hello_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    publish(folder, 1.0, None);
    let service = Service::of(folder, 1);
    let mut device = device(folder, 0, SHAPE);
    let mut conversation = Conversation::default();
    device.reconnect();
    let hello = device.outgoing().to_vec();
    let mut out = Vec::new();
    let mut exchange = |conversation: &mut Conversation, device: &mut Device, sent: &[u8]| {
        out.clear();
        conversation.receive(sent, service.context(), &mut out);
        let mut rest = &out[..];
        while !rest.is_empty() {
            rest = &rest[device.receive(rest)..];
        }
    };
    while !device.outgoing().is_empty() {
        let sent = device.outgoing().to_vec();
        device.sent();
        exchange(&mut conversation, &mut device, &sent);
    }
    assert_eq!((device.version(), conversation.device()), (1, Some(0)));
    let heard = conversation.heard();
    let mut stranger = self::device(folder, 5, SHAPE);
    exchange(&mut conversation, &mut stranger, &hello);
    assert_eq!(
        (conversation.device(), conversation.heard()),
        (Some(0), heard)
    );
    // The session goes on.
    device.ask();
    let sent = device.outgoing().to_vec();
    device.sent();
    exchange(&mut conversation, &mut device, &sent);
    assert_eq!(
        (conversation.heard(), device.phase()),
        (heard + 1, Phase::Idle)
    );
    assert_eq!(conversation.refused(), 0);
}

#[test]
fn a_lost_offer_is_repeated_and_a_withdrawn_one_can_come_again() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    publish(folder, 1.0, None);
    let mut device = device(folder, 0, SHAPE);
    let mut conversation = Conversation::default();
    let deliver = |out: &[u8], device: &mut Device| {
        let mut rest = out;
        while !rest.is_empty() {
            rest = &rest[device.receive(rest)..];
        }
    };
    let carry = |conversation: &mut Conversation, device: &mut Device, service: &Service| {
        while !device.outgoing().is_empty() {
            let (sent, mut out) = (device.outgoing().to_vec(), Vec::new());
            device.sent();
            conversation.receive(&sent, service.context(), &mut out);
            deliver(&out, device);
        }
    };
    let service = Service::of(folder, 1);
    device.reconnect();
    carry(&mut conversation, &mut device, &service);
    assert!(!conversation.is_awaited());
    publish(folder, 2.0, Some(99.0));
    let service = Service::of(folder, 1);
    assert_eq!(service.published.catalogue.version_of(0), 2);
    let poll = |conversation: &mut Conversation, service: &Service| {
        let mut out = Vec::new();
        conversation.poll(service.context(), &mut out);
        out
    };
    // Lost, and not sent twice by itself.
    assert!(!poll(&mut conversation, &service).is_empty());
    assert!(poll(&mut conversation, &service).is_empty() && conversation.is_awaited());
    // Withdrawn, and offered again.
    split(folder, &[(1, 100.0)]).unwrap();
    assert!(poll(&mut conversation, &Service::of(folder, 1)).is_empty());
    split(folder, &[(1, 1.0), (2, 99.0)]).unwrap();
    let service = Service::of(folder, 1);
    assert!(!poll(&mut conversation, &service).is_empty());
    let mut out = Vec::new();
    conversation.repeat(service.context(), &mut out);
    deliver(&out, &mut device);
    carry(&mut conversation, &mut device, &service);
    assert_eq!((device.version(), device.refusals().total()), (2, 0));
    assert!(!conversation.is_awaited());
}

#[test]
fn a_device_with_another_model_or_publisher_is_refused_or_refuses() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    publish(folder, 1.0, None);
    let service = Service::of(folder, 2);
    let mut other = device(
        folder,
        0,
        ModelShape {
            outputs: 9,
            ..SHAPE
        },
    );
    service.connect(&mut other, usize::MAX);
    assert_eq!(other.phase(), Phase::Refused(WhyRefused::Shape));
    let snapshot = service.figures.snapshot(2, &service.published);
    assert_eq!((snapshot.refused, snapshot.seen), (1, 0));
    // A folder of somebody else.
    let elsewhere = tempfile::tempdir().unwrap();
    publish(elsewhere.path(), 1.0, None);
    let mut stranger = device(elsewhere.path(), 1, SHAPE);
    service.connect(&mut stranger, usize::MAX);
    assert_eq!((stranger.version(), stranger.phase()), (0, Phase::Idle));
    assert!(stranger.refused().is_some());
    // A device without a key here.
    let mut unknown = device(folder, 7, SHAPE);
    service.connect(&mut unknown, usize::MAX);
    assert_eq!(unknown.phase(), Phase::Greeting);
}

#[test]
fn public_keys_are_read_from_digits_and_files() {
    let dir = tempfile::tempdir().unwrap();
    publish(dir.path(), 1.0, None);
    let file = dir.path().join("publisher.pub");
    let digits = std::fs::read_to_string(&file).unwrap();
    let key: PublisherKey = public_key(file.to_str().unwrap()).unwrap();
    assert_eq!(public_key(digits.trim()).unwrap(), key);
    assert!(public_key("00").unwrap_err().contains("publisher.pub"));
    // A point of small order.
    assert!(public_key(&format!("01{}", "00".repeat(31))).is_err());
    // The secret key is for its owner only.
    use std::os::unix::fs::PermissionsExt;
    let secret = dir.path().join("publisher.key");
    let open = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(secret, open).unwrap();
    let error = Edit::begin(dir.path()).unwrap_err();
    assert!(matches!(error, CatalogueError::Open(_)), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_bytes_make_the_service_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..600), cut in 0_usize..400,
    ) {
        let dir = tempfile::tempdir().unwrap();
        publish(dir.path(), 1.0, None);
        let service = Service::of(dir.path(), 1);
        let mut device = device(dir.path(), 0, SHAPE);
        device.reconnect();
        let mut conversation = Conversation::default();
        let mut out = Vec::new();
        conversation.receive(device.outgoing(), service.context(), &mut out);
        conversation.receive(&bytes, service.context(), &mut out);
        conversation.receive(&bytes[cut.min(bytes.len())..], service.context(), &mut out);
        prop_assert!(out.len() < 1 << 17);
    }
}

#[cfg(feature = "page")]
#[test]
fn the_page_counts_devices_and_names_none() {
    use super::page::{html, text};
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    let edit = Edit::begin_or_create(folder).unwrap();
    let source = "runs/<script>".to_owned();
    edit.publish(
        Draft {
            source,
            ..draft(1.0)
        },
        None,
    )
    .unwrap();
    let service = Service::of(folder, 8);
    for number in 5..8 {
        service.connect(&mut device(folder, number, SHAPE), usize::MAX);
    }
    let snapshot = service.figures.snapshot(8, &service.published);
    let page = html(&snapshot);
    assert!(
        page.contains("3 of 8 devices have been in contact, 0 are connected"),
        "{page}"
    );
    assert!(
        page.contains("runs/&lt;script&gt;") && !page.contains("<script>"),
        "{page}"
    );
    let metrics = text(&snapshot);
    assert!(
        metrics.contains("smolfed_delivery_version_devices{version=\"1\"} 3"),
        "{metrics}"
    );
    assert!(
        metrics.contains("smolfed_delivery_file_bytes_total 8376"),
        "{metrics}"
    );
}
