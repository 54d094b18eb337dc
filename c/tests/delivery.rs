//! Devices that only infer: `cargo test -p smolfed-c --features delivery --test delivery`.
//! `tests/boards/c.rs` has one with a service.

#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a panic fails the test"
)]

use std::ffi::c_void;
use std::path::Path;
use std::ptr::{null, null_mut};

use ed25519_dalek::{Signer, SigningKey};
use smolfed_c::{sf_status::*, *};
use smolfed_core::crypto::Key;
use smolfed_core::delivery::{Encoding, FileDigest, Header};
use smolfed_core::features::Cells;
use smolfed_core::fixed_point::{FeatureFormat, FeatureScale};
use smolfed_core::model::{ModelKind, Softmax};
use smolfed_core::predict::CurrentModel;
use smolfed_core::provision::write_recipient;
use smolfed_core::recipe::Recipe;
use smolfed_core::session::FixedPoint;
use smolfed_core::wire::message::{ModelGrid, ModelShape};

#[allow(dead_code, reason = "other tests use more of it")]
#[path = "device/board.rs"]
mod board;

use board::{CLASSES, DEVICE, FEATURES, KEY, PLACES};

/// Parameters of a softmax model.
const PARAMETERS: usize = CLASSES as usize * (FEATURES + 1);

/// Type of the features of a kind, with its binary places.
type Integer = Option<(bool, u8)>;

const I8: Integer = Some((false, PLACES));
const I16: Integer = Some((true, 12));

fn kinds() -> [(&'static sf_infer_kind, ModelKind, Integer); 9] {
    use ModelKind::{Linear, Logistic, Softmax};
    [
        (&sf_infer_softmax_f32, Softmax, None),
        (&sf_infer_softmax_i8, Softmax, I8),
        (&sf_infer_softmax_i16, Softmax, I16),
        (&sf_infer_logistic_f32, Logistic, None),
        (&sf_infer_logistic_i8, Logistic, I8),
        (&sf_infer_logistic_i16, Logistic, I16),
        (&sf_infer_linear_f32, Linear, None),
        (&sf_infer_linear_i8, Linear, I8),
        (&sf_infer_linear_i16, Linear, I16),
    ]
}

fn scale(places: u8) -> FeatureScale {
    FeatureScale::new::<i16>(places).unwrap()
}

fn shape(kind: ModelKind, integer: Integer) -> ModelShape {
    ModelShape {
        kind,
        features: FEATURES as u16,
        outputs: if kind == ModelKind::Softmax {
            CLASSES
        } else {
            1
        },
        network: None,
        integer: integer.map(|(is_wide, places)| match is_wide {
            true => FeatureFormat::of::<i16>(scale(places)),
            false => FeatureFormat::of::<i8>(scale(places)),
        }),
    }
}

/// Parameters of a version: numbers, or the bits of weights.
fn parameters(shape: &ModelShape, version: u32) -> Vec<f32> {
    let number = |at: usize| (at * at) as u32 % 7 + version;
    let numbers = (0..shape.parameters()).map(number);
    match shape.integer {
        None => numbers.map(|number| number as f32 * 0.01).collect(),
        Some(_) => numbers.map(|number| f32::from_bits(number << 12)).collect(),
    }
}

fn publisher() -> SigningKey {
    SigningKey::from_bytes(&[1; 32])
}

fn header(shape: ModelShape, version: u32) -> Header {
    Header {
        version,
        shape,
        recipe: None,
        encoding: Encoding::Words,
    }
}

fn file_with(header: &Header, parameters: &[f32], key: &SigningKey) -> Vec<u8> {
    let mut file = header.write().to_vec();
    file.extend(parameters.iter().flat_map(|value| value.to_le_bytes()));
    let mut digest = FileDigest::default();
    digest.update(&file);
    file.extend(key.sign(&digest.signed_bytes()).to_bytes());
    file
}

fn file(shape: ModelShape, version: u32) -> Vec<u8> {
    let values = parameters(&shape, version);
    file_with(&header(shape, version), &values, &publisher())
}

/// Flash that stops in the middle of an operation when its power is used up.
struct Flash {
    bytes: Vec<u8>,
    /// Bytes until the power fails.
    power: usize,
    /// Questions until an operation is done, or `None` if it waits for itself.
    delay: Option<i32>,
    questions: i32,
}

const PAGE: u32 = 128;

impl Flash {
    fn begin(&mut self, at: u32, bytes: impl ExactSizeIterator<Item = u8>, erases: bool) -> i32 {
        for (place, byte) in self.bytes[at as usize..][..bytes.len()]
            .iter_mut()
            .zip(bytes)
        {
            if self.power == 0 {
                return 1;
            }
            self.power -= 1;
            assert!(erases || *place == 0xFF, "written twice");
            *place = byte;
        }
        self.answer()
    }

    fn answer(&mut self) -> i32 {
        self.questions = self.delay.unwrap_or(0);
        if self.delay.is_some() {
            SF_FLASH_PENDING
        } else {
            0
        }
    }
}

unsafe extern "C" fn read(context: *mut c_void, at: u32, to: *mut u8, count: usize) -> i32 {
    // SAFETY: the context is the flash of the test, and the library has room for the bytes.
    unsafe {
        let flash = &mut *context.cast::<Flash>();
        let bytes = &flash.bytes[at as usize..][..count];
        to.copy_from(bytes.as_ptr(), count);
        flash.answer()
    }
}

unsafe extern "C" fn write(context: *mut c_void, at: u32, from: *const u8, count: usize) -> i32 {
    assert!(at.is_multiple_of(8) && count.is_multiple_of(8));
    // SAFETY: as in `read`. The library has these bytes.
    unsafe {
        let bytes = std::slice::from_raw_parts(from, count);
        (*context.cast::<Flash>()).begin(at, bytes.iter().copied(), false)
    }
}

unsafe extern "C" fn erase(context: *mut c_void, at: u32, count: usize) -> i32 {
    assert!(at.is_multiple_of(PAGE) && count.is_multiple_of(PAGE as usize));
    // SAFETY: as in `read`.
    unsafe { (*context.cast::<Flash>()).begin(at, vec![0xFF; count].into_iter(), true) }
}

unsafe extern "C" fn poll(context: *mut c_void) -> i32 {
    // SAFETY: as in `read`.
    let flash = unsafe { &mut *context.cast::<Flash>() };
    flash.questions -= 1;
    if flash.questions > 0 {
        SF_FLASH_PENDING
    } else {
        0
    }
}

unsafe extern "C" fn fill(_: *mut c_void, to: *mut u8, count: usize) {
    // SAFETY: the library gives room for the bytes.
    unsafe { to.write_bytes(0x5A, count) };
}

/// A board of a device that only infers.
struct Board {
    flash: Box<Flash>,
    record: Vec<u8>,
    publisher: [u8; 32],
    memory: Vec<u64>,
}

impl Board {
    fn new() -> Self {
        let mut record = vec![0; 4096];
        write_recipient(DEVICE, &Key::from_secret(KEY), &mut record).unwrap();
        Self {
            flash: Box::new(Flash {
                bytes: vec![0xFF; 8 * PAGE as usize],
                power: usize::MAX,
                delay: None,
                questions: 0,
            }),
            record,
            publisher: publisher().verifying_key().to_bytes(),
            memory: vec![0xAAAA_AAAA_AAAA_AAAA; 1024],
        }
    }

    fn config(&mut self) -> sf_infer {
        sf_infer {
            kind: &raw const sf_infer_softmax_i8,
            features: FEATURES as u16,
            classes: CLASSES,
            places: PLACES,
            recipe: null(),
            record: self.record.as_ptr(),
            record_bytes: self.record.len(),
            publisher: self.publisher.as_ptr(),
            models: sf_flash {
                context: (&raw mut *self.flash).cast(),
                read: Some(read),
                write: Some(write),
                erase: Some(erase),
                poll: self.flash.delay.map(|_| poll as _),
                page_bytes: PAGE,
                pages: 8,
            },
            random: sf_random {
                context: null_mut(),
                fill: Some(fill),
            },
        }
    }

    fn open(&mut self, change: impl FnOnce(&mut sf_infer)) -> Result<*mut sf_device, sf_status> {
        let mut config = self.config();
        change(&mut config);
        let (memory, bytes) = (self.memory.as_mut_ptr().cast(), 8 * self.memory.len());
        let mut device = null_mut();
        // SAFETY: memory of the board, which it keeps.
        match unsafe { sf_infer_open(memory, bytes, &raw const config, &raw mut device) } {
            SF_OK => Ok(device),
            status => Err(status),
        }
    }
}

fn install(device: *mut sf_device, file: &[u8]) -> Result<u32, sf_status> {
    let mut version = 0;
    // SAFETY: an open device, and as many bytes as it is said.
    match unsafe { sf_infer_install(device, file.as_ptr(), file.len(), &raw mut version) } {
        SF_OK => Ok(version),
        status => Err(status),
    }
}

/// Returns the version with which a device predicts.
fn version(device: *mut sf_device) -> Result<u32, sf_status> {
    let mut round = 0;
    // SAFETY: an open device.
    match unsafe { sf_model_round(device, &raw mut round) } {
        SF_OK => Ok(round),
        status => Err(status),
    }
}

fn lent(device: *mut sf_device) -> Vec<u32> {
    let (mut values, mut count) = (null(), 0);
    // SAFETY: an open device, whose parameters stay until the next call.
    let values = unsafe {
        let status = sf_model_parameters(device, &raw mut values, &raw mut count);
        assert_eq!(status, SF_OK);
        std::slice::from_raw_parts(values, count)
    };
    values.iter().map(|value| value.to_bits()).collect()
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// With `SMOLFED_TRANSCRIPTS` the record, the key of the publisher and a file are written to that
/// folder, for `sanitizers.sh`.
#[test]
fn every_kind_installs_models_and_has_the_newest_after_a_restart() {
    for (at, (kind, model, integer)) in kinds().into_iter().enumerate() {
        let shape = shape(model, integer);
        let mut board = Board::new();
        let open = |board: &mut Board| {
            board
                .open(|config| {
                    config.kind = kind;
                    config.places = integer.map_or(0, |(_, places)| places);
                })
                .unwrap()
        };
        let device = open(&mut board);
        assert_eq!(version(device), Err(SF_NO_MODEL));
        for number in 1..4 {
            assert_eq!(
                install(device, &file(shape, number)),
                Ok(number),
                "kind {at}"
            );
            assert_eq!(version(device), Ok(number));
            assert_eq!(lent(device), bits(&parameters(&shape, number)));
        }
        // SAFETY: it is open.
        assert_eq!(unsafe { sf_close(device) }, SF_OK);
        let device = open(&mut board);
        assert_eq!(version(device), Ok(3));
        if let Some(folder) = std::env::var_os("SMOLFED_TRANSCRIPTS").filter(|_| at == 0) {
            let path = Path::new(&folder).join("infer");
            let file = file(shape, 4);
            for (end, bytes) in [
                ("record", &board.record[..]),
                ("publisher", &board.publisher),
                ("file", &file),
            ] {
                std::fs::write(path.with_extension(end), bytes).unwrap();
            }
        }
        assert_eq!(lent(device), bits(&parameters(&shape, 3)));
    }
}

#[test]
fn predictions_are_those_of_the_core() {
    let (row, small) = ([0.5, -1.25, 0.75, 2.0], [32_i8, -80, 48, 127]);
    let (mut class, mut floats, mut integers) = (9, [0.0; 3], [0; 3]);
    let shape_of = |integer| shape(ModelKind::Softmax, integer);

    let mut board = Board::new();
    let device = board
        .open(|config| config.kind = &raw const sf_infer_softmax_f32)
        .unwrap();
    install(device, &file(shape_of(None), 1)).unwrap();
    let model = Softmax::new(FEATURES, usize::from(CLASSES));
    let values = parameters(&shape_of(None), 1);
    let expected = CurrentModel::new(1, &model, &values).unwrap();
    let mut scores = [0.0; 3];
    let found = expected.predict(&row, &mut [], &mut scores).unwrap();
    // SAFETY: an open device, and everything has its length.
    let status = unsafe {
        let floats = floats.as_mut_ptr();
        sf_predict_f32(device, row.as_ptr(), 4, floats, 3, &raw mut class)
    };
    assert_eq!((status, class), (SF_OK, found));
    assert_eq!(bits(&floats), bits(&scores));

    let mut board = Board::new();
    let device = board.open(|_| {}).unwrap();
    install(device, &file(shape_of(I8), 1)).unwrap();
    let model = FixedPoint::<_, i8>::new(model, scale(PLACES));
    let values = parameters(&shape_of(I8), 1);
    let expected = CurrentModel::new(1, &model, &values).unwrap();
    let mut scores = [0; 3];
    let found = expected.predict(&small, &mut [], &mut scores).unwrap();
    // SAFETY: as above.
    let status = unsafe {
        let integers = integers.as_mut_ptr();
        sf_predict_i8(device, small.as_ptr(), 4, integers, 3, &raw mut class)
    };
    assert_eq!((status, class, integers), (SF_OK, found, scores));
}

#[test]
fn other_files_are_refused_by_name_and_the_model_stays() {
    let own = shape(ModelKind::Softmax, I8);
    let mut board = Board::new();
    let device = board.open(|_| {}).unwrap();
    assert_eq!(install(device, &file(own, 5)), Ok(5));
    let signed = |header: &Header| file_with(header, &parameters(&own, 9), &publisher());
    let of = |shape| file(shape, 6);
    let stranger = SigningKey::from_bytes(&[2; 32]);
    let recipe = Recipe::Pool {
        cells: Cells::new(4, 4, 4).unwrap(),
        planes: 1,
    };
    let mut damaged = file(own, 6);
    damaged[130] ^= 1;
    // Weights of integers have four bytes.
    let short = Encoding::Short(ModelGrid::new(10).unwrap());
    let short = Header {
        encoding: short,
        ..header(own, 6)
    };
    let cases = [
        (file(own, 5), SF_OLD),
        (file(own, 4), SF_OLD),
        (damaged, SF_SIGNATURE),
        (
            file_with(&header(own, 6), &parameters(&own, 6), &stranger),
            SF_SIGNATURE,
        ),
        (of(shape(ModelKind::Softmax, None)), SF_FILE),
        (of(shape(ModelKind::Logistic, I8)), SF_FILE),
        (of(ModelShape { features: 5, ..own }), SF_FILE),
        (file(own, 6)[..200].to_vec(), SF_FILE),
        (Vec::new(), SF_FILE),
        (signed(&short), SF_FILE),
        (
            signed(&Header {
                recipe: Some(recipe),
                ..header(own, 6)
            }),
            SF_RECIPE,
        ),
    ];
    for (at, (file, expected)) in cases.into_iter().enumerate() {
        assert_eq!(install(device, &file), Err(expected), "case {at}");
        assert_eq!(version(device), Ok(5));
        assert_eq!(lent(device), bits(&parameters(&own, 5)));
    }
    // Parameters that the publisher has signed, and that are no weights.
    let wrong = vec![f32::from_bits(0x7FFF_FFFF); PARAMETERS];
    let wrong = file_with(&header(own, 6), &wrong, &publisher());
    assert_eq!(install(device, &wrong), Err(SF_FILE));
    assert_eq!(version(device), Ok(5));
    assert_eq!(lent(device), bits(&parameters(&own, 5)));
    assert_eq!(install(device, &file(own, 7)), Ok(7));
    assert_eq!(version(device), Ok(7));
}

#[test]
fn a_power_cut_at_any_byte_leaves_the_last_good_model_or_the_new_one() {
    let shape = shape(ModelKind::Softmax, I8);
    let (first, second) = (file(shape, 1), file(shape, 2));
    let mut power = 0;
    loop {
        let mut board = Board::new();
        let device = board.open(|_| {}).unwrap();
        install(device, &first).unwrap();
        board.flash.power = power;
        let done = install(device, &second);
        let kept = if done.is_ok() { 2 } else { 1 };
        assert_eq!(version(device), Ok(kept), "{power}");
        // The next start.
        board.flash.power = usize::MAX;
        let device = board.open(|_| {}).unwrap();
        let kept = version(device).unwrap();
        assert_eq!(lent(device), bits(&parameters(&shape, kept)), "{power}");
        assert_eq!(install(device, &file(shape, 3)), Ok(3), "{power}");
        match done {
            Ok(_) => break,
            Err(error) => assert_eq!(error, SF_FLASH, "{power}"),
        }
        power += 1;
    }
    assert!(power > second.len(), "{power}");
}

#[test]
fn the_device_waits_for_asynchronous_flash() {
    let shape = shape(ModelKind::Softmax, I8);
    let mut board = Board::new();
    board.flash.delay = Some(3);
    let device = board.open(|_| {}).unwrap();
    assert_eq!(install(device, &file(shape, 1)), Ok(1));
    assert_eq!(lent(device), bits(&parameters(&shape, 1)));
    let device = board.open(|_| {}).unwrap();
    assert_eq!(version(device), Ok(1));
}

#[test]
fn memory_and_flash_are_as_large_as_promised() {
    let mut board = Board::new();
    let config = board.config();
    // SAFETY: a configuration.
    let (bytes, pages) = unsafe {
        let config = &raw const config;
        (sf_infer_bytes(config), sf_infer_pages(config))
    };
    // 192 bytes and 15 parameters.
    assert_eq!(pages, 4);
    assert!((500..1_500).contains(&bytes), "{bytes}");
    board.memory.truncate(bytes / 8);
    let device = board.open(|config| config.models.pages = pages).unwrap();
    // One in each slot.
    for version in 1..3 {
        let file = file(shape(ModelKind::Softmax, I8), version);
        assert_eq!(install(device, &file), Ok(version));
    }
    let small = board.open(|config| config.models.pages = 3);
    assert_eq!(small.err(), Some(SF_FLASH));
    // More pages do not move the slots.
    let device = board.open(|config| config.models.pages = 8).unwrap();
    assert_eq!(version(device), Ok(2));
    board.memory.pop();
    assert_eq!(board.open(|_| {}).err(), Some(SF_MEMORY));
}

/// A file of 276 bytes takes three pages, which are erased whole.
#[test]
fn files_that_end_within_a_page_replace_each_other() {
    let shape = ModelShape {
        features: 6,
        ..shape(ModelKind::Softmax, I8)
    };
    let mut board = Board::new();
    let device = board.open(|config| config.features = 6).unwrap();
    for number in 1..6 {
        assert_eq!(install(device, &file(shape, number)), Ok(number));
        assert_eq!(lent(device), bits(&parameters(&shape, number)));
    }
}

#[test]
fn a_wrong_configuration_is_named() {
    type Change = fn(&mut sf_infer);
    let cases: [(Change, sf_status); 12] = [
        (|config| config.kind = null(), SF_POINTER),
        (|config| config.record = null(), SF_POINTER),
        (|config| config.publisher = null(), SF_POINTER),
        (|config| config.models.erase = None, SF_POINTER),
        (|config| config.random.fill = None, SF_POINTER),
        (|config| config.features = 0, SF_CONFIG),
        (|config| config.classes = 1, SF_CONFIG),
        (|config| config.places = 8, SF_CONFIG),
        (|config| config.models.page_bytes = 0, SF_CONFIG),
        (|config| config.models.page_bytes = 96, SF_CONFIG),
        (|config| config.features = 60_000, SF_MEMORY),
        (|config| config.record_bytes = 50, SF_RECORD),
    ];
    for (at, (change, expected)) in cases.into_iter().enumerate() {
        assert_eq!(Board::new().open(change).err(), Some(expected), "case {at}");
    }
    let mut board = Board::new();
    // The neutral point, under which anybody could sign.
    board.publisher = [0; 32];
    board.publisher[0] = 1;
    assert_eq!(board.open(|_| {}).err(), Some(SF_SIGNATURE));
}

/// A record has a role, and so has a device.
#[test]
fn roles_are_not_mixed() {
    let mut trains = board::Board::new();
    let mut board = Board::new();
    let mut numbers = [0; 2];
    for (record, number) in [&trains.record, &board.record]
        .into_iter()
        .zip(&mut numbers)
    {
        // SAFETY: a record.
        let status = unsafe { sf_record_device(record.as_ptr(), record.len(), number) };
        assert_eq!(status, SF_OK);
    }
    assert_eq!(numbers, [DEVICE; 2]);
    std::mem::swap(&mut trains.record, &mut board.record);
    assert_eq!(trains.open(|_| {}).err(), Some(SF_RECORD));
    assert_eq!(board.open(|_| {}).err(), Some(SF_RECORD));
    std::mem::swap(&mut trains.record, &mut board.record);

    let (device, infers) = (trains.open(|_| {}).unwrap(), board.open(|_| {}).unwrap());
    assert_eq!(install(device, &[]), Err(SF_ROLE));
    let (mut refused, mut reason, mut has_more) = (9, SF_BUSY, true);
    // SAFETY: open devices.
    unsafe {
        assert_eq!(sf_infer_ask(device), SF_ROLE);
        let row = [1_i8, 2, 3, 4];
        assert_eq!(sf_add_sample_i8(infers, row.as_ptr(), 4, 0), SF_ROLE);
        assert_eq!(sf_forget_samples(infers), SF_ROLE);
        assert_eq!(sf_last_round(infers, null_mut()), SF_NO_ROUND);
        assert_eq!(sf_train_some(infers, 1, &raw mut has_more), SF_OK);
        assert!(!has_more);
        let status = sf_infer_refused(infers, &raw mut refused, &raw mut reason);
        assert_eq!((status, refused, reason), (SF_OK, 0, SF_OK));
        // The first message asks for a session.
        let mut phase = sf_phase::SF_IDLE;
        let (mut bytes, mut count) = (null(), 0);
        assert_eq!(sf_infer_ask(infers), SF_OK);
        assert_eq!(sf_timeout(infers), SF_OK);
        assert_eq!(sf_phase_of(infers, &raw mut phase), SF_OK);
        assert_eq!(sf_outgoing(infers, &raw mut bytes, &raw mut count), SF_OK);
        assert_eq!(phase, sf_phase::SF_GREETING);
        assert!(count > 0);
    }
}
