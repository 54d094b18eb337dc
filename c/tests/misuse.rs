//! What callers do wrong gives a status, and never undefined behaviour.

#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a panic fails the test"
)]

use std::ffi::{CStr, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};

use smolfed_c::{sf_status::*, *};

#[path = "device/board.rs"]
mod board;

use board::Board;

#[test]
fn a_device_opens_with_as_much_memory_as_it_needs() {
    let mut board = Board::new();
    let config = board.config();
    // SAFETY: a configuration.
    let bytes = unsafe { sf_memory_bytes(&raw const config) };
    assert!((500..2_500).contains(&bytes), "{bytes}");
    let mut memory = vec![0_u64; bytes / 8];
    let mut device = null_mut();
    for (less, expected) in [(8, SF_MEMORY), (0, SF_OK)] {
        // SAFETY: so many bytes are there.
        let status = unsafe {
            let start = memory.as_mut_ptr().cast();
            sf_open(start, bytes - less, &raw const config, &raw mut device)
        };
        assert_eq!(status, expected);
    }
    // SAFETY: it is open.
    assert_eq!(unsafe { sf_close(device) }, SF_OK);
    // SAFETY: at a multiple of 4 only.
    let odd = unsafe {
        let start = memory.as_mut_ptr().cast::<u8>().add(4);
        sf_open(start, bytes, &raw const config, &raw mut device)
    };
    assert_eq!(odd, SF_MEMORY);
}

#[test]
fn a_wrong_configuration_is_named() {
    type Change = fn(&mut sf_config);
    let cases: [(Change, sf_status); 12] = [
        (|config| config.kind = null(), SF_POINTER),
        (|config| config.record = null(), SF_POINTER),
        (|config| config.ledger.read = None, SF_POINTER),
        (|config| config.random.fill = None, SF_POINTER),
        (|config| config.features = 0, SF_CONFIG),
        (|config| config.samples = 0, SF_CONFIG),
        (|config| config.classes = 1, SF_CONFIG),
        (|config| config.places = 8, SF_CONFIG),
        (|config| config.samples = 60_000, SF_MEMORY),
        (|config| config.record_bytes = 50, SF_RECORD),
        (|config| config.ledger.pages = 1, SF_FLASH),
        (|config| config.ledger.page_bytes = 0, SF_FLASH),
    ];
    for (at, (change, expected)) in cases.into_iter().enumerate() {
        assert_eq!(Board::new().open(change).err(), Some(expected), "case {at}");
    }
    let mut board = Board::new();
    board.record[100] ^= 1;
    assert_eq!(board.open(|_| {}).err(), Some(SF_RECORD));
    // Damage of both slots.
    let mut board = Board::new();
    board.open(|_| {}).unwrap();
    board.flash.fill(0);
    assert_eq!(board.open(|_| {}).err(), Some(SF_LEDGER_DAMAGED));
}

#[test]
fn pointers_and_calls_that_do_not_fit_are_refused() {
    let mut board = Board::new();
    let device = board.open(|_| {}).unwrap();
    let (mut class, mut scores, mut counts) = (9, [0; 3], sf_sample_counts::default());
    // SAFETY: null, or values that are there.
    unsafe {
        assert_eq!(sf_timeout(null_mut()), SF_POINTER);
        assert_eq!(sf_timeout(device.byte_add(1)), SF_POINTER);
        assert_eq!(sf_receive(device, null(), 3, null_mut()), SF_POINTER);
        assert_eq!(sf_receive(device, null(), 0, null_mut()), SF_OK);
        let row = [1_i8, 2, 3, 4];
        assert_eq!(sf_add_sample_i8(device, row.as_ptr(), 4, 2), SF_OK);
        assert_eq!(sf_add_sample_i8(device, row.as_ptr(), 4, 3), SF_TARGET);
        assert_eq!(sf_add_sample_i8(device, row.as_ptr(), 3, 0), SF_LENGTH);
        assert_eq!(sf_add_sample_i8(device, null(), 4, 0), SF_POINTER);
        assert_eq!(sf_add_value_i8(device, row.as_ptr(), 4, 0.5), SF_TYPE);
        assert_eq!(sf_add_sample_f32(device, [0.5; 4].as_ptr(), 4, 0), SF_TYPE);
        assert_eq!(sf_count_samples(device, &raw mut counts), SF_OK);
        assert_eq!(counts.samples, 1);
        let model = sf_predict_i8(
            device,
            row.as_ptr(),
            4,
            scores.as_mut_ptr(),
            3,
            &raw mut class,
        );
        assert_eq!((model, class), (SF_NO_MODEL, 9));
        assert_eq!(sf_last_round(device, null_mut()), SF_NO_ROUND);
        assert_eq!(sf_train_some(device, 0, null_mut()), SF_OK, "no round");
        assert_eq!(sf_close(device), SF_OK);
        assert_eq!(sf_timeout(device), SF_NO_DEVICE);
        assert_eq!(sf_close(device), SF_NO_DEVICE);
    }
    // SAFETY: memory that never was a device.
    let zeros = unsafe { sf_timeout([0_u64; 64].as_mut_ptr().cast()) };
    assert_eq!(zeros, SF_NO_DEVICE);
}

/// Numbers on a device of floats.
#[test]
fn numbers_that_are_not_finite_are_refused() {
    let mut board = Board::new();
    let device = board.open(|config| config.kind = &raw const sf_linear_f32);
    let device = device.unwrap();
    // SAFETY: an open device, and values that are there.
    unsafe {
        let row = [0.5, f32::NAN, 0.0, 1.0];
        assert_eq!(
            sf_add_value_f32(device, row.as_ptr(), 4, 1.0),
            SF_NOT_FINITE
        );
        let row = [0.5; 4];
        let infinite = f32::INFINITY;
        assert_eq!(
            sf_add_value_f32(device, row.as_ptr(), 4, infinite),
            SF_TARGET
        );
        assert_eq!(sf_add_value_f32(device, row.as_ptr(), 4, 1.0), SF_OK);
        assert_eq!(sf_close(device), SF_OK);
    }
}

/// A call from within a call, as an interrupt makes it.
#[test]
fn a_second_call_is_refused() {
    static DEVICE: AtomicPtr<sf_device> = AtomicPtr::new(null_mut());
    static SECOND: AtomicI32 = AtomicI32::new(-1);
    /// The random generator is asked for the nonce of a session.
    unsafe extern "C" fn calls(_: *mut c_void, to: *mut u8, count: usize) {
        let device = DEVICE.load(Ordering::Relaxed);
        if !device.is_null() {
            // SAFETY: an open device.
            let status = unsafe { sf_timeout(device) };
            SECOND.store(status as i32, Ordering::Relaxed);
        }
        // SAFETY: the library gives room for the bytes.
        unsafe { to.write_bytes(1, count) };
    }
    let mut board = Board::new();
    let device = board
        .open(|config| config.random.fill = Some(calls))
        .unwrap();
    DEVICE.store(device, Ordering::Relaxed);
    // SAFETY: an open device.
    assert_eq!(unsafe { sf_timeout(device) }, SF_OK);
    assert_eq!(SECOND.load(Ordering::Relaxed), SF_BUSY as i32);
}

#[test]
fn every_status_has_words() {
    let text = |status: i32| {
        // SAFETY: a constant with a zero byte at its end.
        let text = unsafe { CStr::from_ptr(sf_strerror(status)) };
        text.to_str().unwrap().to_owned()
    };
    let unknown = text(-1);
    let mut all: Vec<String> = (0..21).map(text).collect();
    assert!(!all.contains(&unknown) && text(21) == unknown);
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 21);
}

/// Every pointer to values is null in turn. A null answer is not asked for.
#[test]
fn null_is_refused_where_values_are_needed() {
    let mut board = Board::new();
    let device = board.open(|_| {}).unwrap();
    let no = null_mut::<sf_device>();
    let (bytes, floats, small, wide) = ([1_u8; 8], [0.5_f32; 4], [1_i8; 4], [1_i16; 4]);
    let (bytes, floats, small, wide) = (
        bytes.as_ptr(),
        floats.as_ptr(),
        small.as_ptr(),
        wide.as_ptr(),
    );
    let (numbers, integers) = (&mut [0.0_f32; 3], &mut [0_i32; 3]);
    let (numbers, integers) = (numbers.as_mut_ptr(), integers.as_mut_ptr());
    // SAFETY: null, or values that are there.
    let (without_a_device, without_values, without_answers) = unsafe {
        (
            [
                sf_close(no),
                sf_phase_of(no, null_mut()),
                sf_outgoing(no, null_mut(), null_mut()),
                sf_sent(no),
                sf_receive(no, bytes, 8, null_mut()),
                sf_timeout(no),
                sf_train_some(no, 1, null_mut()),
                sf_participations(no, null_mut()),
                sf_participations_left(no, null_mut()),
                sf_last_round(no, null_mut()),
                sf_add_sample_f32(no, floats, 4, 0),
                sf_add_sample_i8(no, small, 4, 0),
                sf_add_sample_i16(no, wide, 4, 0),
                sf_add_value_f32(no, floats, 4, 0.0),
                sf_add_value_i8(no, small, 4, 0.0),
                sf_add_value_i16(no, wide, 4, 0.0),
                sf_add_record(no, bytes, 8),
                sf_count_samples(no, null_mut()),
                sf_forget_samples(no),
                sf_refused_frames(no, null_mut()),
                sf_set_window(no, 1),
                sf_model_round(no, null_mut()),
                sf_model_parameters(no, null_mut(), null_mut()),
                sf_predict_f32(no, floats, 4, numbers, 3, null_mut()),
                sf_predict_i8(no, small, 4, integers, 3, null_mut()),
                sf_predict_i16(no, wide, 4, integers, 3, null_mut()),
                sf_probabilities_f32(no, numbers, 3),
                sf_probabilities_i32(no, integers, 3),
            ],
            [
                sf_receive(device, null(), 8, null_mut()),
                sf_add_sample_f32(device, null(), 4, 0),
                sf_add_sample_i8(device, null(), 4, 0),
                sf_add_sample_i16(device, null(), 4, 0),
                sf_add_value_f32(device, null(), 4, 0.0),
                sf_add_value_i8(device, null(), 4, 0.0),
                sf_add_value_i16(device, null(), 4, 0.0),
                sf_add_record(device, null(), 8),
                sf_predict_f32(device, null(), 4, numbers, 3, null_mut()),
                sf_predict_f32(device, floats, 4, null_mut(), 3, null_mut()),
                sf_predict_i8(device, null(), 4, integers, 3, null_mut()),
                sf_predict_i8(device, small, 4, null_mut(), 3, null_mut()),
                sf_predict_i16(device, null(), 4, integers, 3, null_mut()),
                sf_predict_i16(device, wide, 4, null_mut(), 3, null_mut()),
                sf_probabilities_f32(device, null_mut(), 3),
                sf_probabilities_i32(device, null_mut(), 3),
                sf_record_device(null(), 8, null_mut()),
            ],
            [
                sf_phase_of(device, null_mut()),
                sf_outgoing(device, null_mut(), null_mut()),
                sf_receive(device, bytes, 8, null_mut()),
                sf_train_some(device, 1, null_mut()),
                sf_participations(device, null_mut()),
                sf_participations_left(device, null_mut()),
                sf_count_samples(device, null_mut()),
                sf_refused_frames(device, null_mut()),
            ],
        )
    };
    assert_eq!(without_a_device, [SF_POINTER; 28]);
    assert_eq!(without_values, [SF_POINTER; 17]);
    assert_eq!(without_answers, [SF_OK; 8]);
    let config = board.config();
    let (memory, count) = (board.memory.as_mut_ptr().cast(), 8 * board.memory.len());
    let mut found = null_mut();
    // SAFETY: null, or what is there.
    unsafe {
        assert_eq!(sf_memory_bytes(null()), 0);
        let status = sf_open(null_mut(), count, &raw const config, &raw mut found);
        assert_eq!(status, SF_POINTER);
        assert_eq!(sf_open(memory, count, null(), &raw mut found), SF_POINTER);
        let nowhere = sf_open(memory, count, &raw const config, null_mut());
        assert_eq!(nowhere, SF_POINTER);
    }
}

#[test]
fn pointers_that_are_not_aligned_are_refused() {
    let mut board = Board::new();
    let device = board.open(|_| {}).unwrap();
    let mut words = [0_u64; 8];
    let odd = words.as_mut_ptr().cast::<u8>().wrapping_add(1);
    // SAFETY: values that are there, at an odd address.
    unsafe {
        for status in [
            sf_add_sample_f32(device, odd.cast(), 4, 0),
            sf_add_sample_i16(device, odd.cast(), 4, 0),
            sf_predict_f32(device, odd.cast(), 4, null_mut(), 0, null_mut()),
            sf_predict_i8(device, odd.cast(), 4, odd.cast(), 3, null_mut()),
            sf_probabilities_f32(device, odd.cast(), 3),
            sf_probabilities_i32(device, odd.cast(), 3),
        ] {
            assert_eq!(status, SF_POINTER);
        }
        // An answer goes nowhere.
        sf_participations(device, odd.cast());
        sf_receive(device, [1].as_ptr(), 1, odd.cast());
        sf_count_samples(device, odd.cast());
        assert_eq!(sf_memory_bytes(odd.cast()), 0);
        // Bytes may lie anywhere.
        assert_eq!(sf_receive(device, odd, 8, null_mut()), SF_OK);
        assert_eq!(sf_add_sample_i8(device, odd.cast(), 4, 0), SF_OK);
    }
    assert_eq!(words, [0; 8]);
}

#[test]
fn counts_beyond_memory_are_refused() {
    let mut board = Board::new();
    let device = board.open(|_| {}).unwrap();
    let (small, wide, mut scores) = ([1_i8; 4], [1_i16; 4], [0_i32; 3]);
    for count in [usize::MAX, usize::MAX / 2 + 1] {
        let scores = scores.as_mut_ptr();
        // SAFETY: no object has as many bytes, so that nothing is read.
        unsafe {
            for status in [
                sf_receive(device, small.as_ptr().cast(), count, null_mut()),
                sf_add_record(device, small.as_ptr().cast(), count),
                sf_add_sample_i8(device, small.as_ptr(), count, 0),
                sf_add_sample_i16(device, wide.as_ptr(), count, 0),
                sf_add_sample_i16(device, wide.as_ptr(), count / 2 + 1, 0),
                sf_predict_i8(device, small.as_ptr(), 4, scores, count, null_mut()),
                sf_probabilities_i32(device, scores, count / 2 + 1),
                sf_record_device(small.as_ptr().cast(), count, null_mut()),
            ] {
                assert_eq!(status, SF_POINTER);
            }
        }
        let too_long = Board::new().open(|config| config.record_bytes = count);
        assert_eq!(too_long.err(), Some(SF_POINTER));
    }
    let largest = Board::new().open(|config| {
        (config.features, config.classes) = (u16::MAX, u16::MAX);
        config.samples = u16::MAX;
    });
    assert_eq!(largest.err(), Some(SF_MEMORY));
    // Addresses of flash have 32 bits.
    for (page_bytes, pages) in [
        (u32::MAX - 7, 2),
        (1 << 31, u32::MAX),
        (u32::MAX - 7, u32::MAX),
    ] {
        let too_large = Board::new().open(|config| {
            (config.ledger.page_bytes, config.ledger.pages) = (page_bytes, pages);
        });
        assert_eq!(too_large.err(), Some(SF_FLASH), "{pages} of {page_bytes}");
    }
    let uneven = Board::new().open(|config| config.ledger.page_bytes = 500);
    assert_eq!(
        uneven.err(),
        Some(SF_CONFIG),
        "writes are at multiples of 8"
    );
}

/// A device without samples of its own in its record adds none of them.
#[test]
fn a_record_without_samples_adds_none() {
    for kind in [&sf_softmax_i8, &sf_linear_f32] {
        let mut board = Board::new();
        let device = board.open(|config| config.kind = kind).unwrap();
        let mut counts = sf_sample_counts::default();
        // SAFETY: an open device, and the record of the board.
        unsafe {
            let (record, count) = (board.record.as_ptr(), board.record.len());
            assert_eq!(sf_add_record(device, record, count), SF_OK);
            assert_eq!(sf_count_samples(device, &raw mut counts), SF_OK);
        }
        assert_eq!(counts.samples, 0);
    }
}

#[test]
fn a_closed_device_leaves_zeros() {
    let mut board = Board::new();
    let config = board.config();
    // SAFETY: a configuration.
    let words = unsafe { sf_memory_bytes(&raw const config) } / 8;
    let device = board.open(|_| ()).unwrap();
    // SAFETY: an open device.
    unsafe {
        assert_eq!(sf_add_sample_i8(device, [1; 4].as_ptr(), 4, 2), SF_OK);
        assert_eq!(sf_timeout(device), SF_OK);
        assert_eq!(sf_close(device), SF_OK);
    }
    let (own, others) = board.memory.split_at(words);
    assert!(own.iter().all(|word| *word == 0));
    assert!(others.iter().all(|word| *word == 0xAAAA_AAAA_AAAA_AAAA));
}

#[test]
fn a_device_that_does_not_open_leaves_zeros() {
    let mut board = Board::new();
    let config = board.config();
    // SAFETY: a configuration.
    let words = unsafe { sf_memory_bytes(&raw const config) } / 8;
    // The functions of the flash are in the memory when the ledger is opened.
    assert_eq!(
        board.open(|config| config.ledger.pages = 1).err(),
        Some(SF_FLASH)
    );
    let (own, others) = board.memory.split_at(words);
    assert!(own.iter().all(|word| *word == 0));
    assert!(others.iter().all(|word| *word == 0xAAAA_AAAA_AAAA_AAAA));
}

/// Opens a device of a kind, with room for three samples.
fn open_small(board: &mut Board, kind: *const sf_kind) -> *mut sf_device {
    let device = board.open(|config| (config.kind, config.samples) = (kind, 3));
    device.unwrap()
}

fn counts(device: *mut sf_device) -> [usize; 3] {
    let mut counts = sf_sample_counts::default();
    // SAFETY: an open device.
    assert_eq!(unsafe { sf_count_samples(device, &raw mut counts) }, SF_OK);
    [counts.samples, counts.constant, counts.saturated]
}

/// Adds the samples of a record to a device.
fn add_record(device: *mut sf_device, record: &[u8]) -> sf_status {
    // Words, as a page of flash is aligned.
    let mut words = vec![0_u64; record.len().div_ceil(8)];
    for (word, bytes) in words.iter_mut().zip(record.chunks(8)) {
        let mut eight = [0; 8];
        eight[..bytes.len()].copy_from_slice(bytes);
        *word = u64::from_ne_bytes(eight);
    }
    // SAFETY: an open device, and a record.
    unsafe { sf_add_record(device, words.as_ptr().cast(), record.len()) }
}

#[test]
fn samples_of_a_record_are_added_and_counted() {
    // The first feature is always 0.5, and the last is too large for eight bits with six places.
    let features: Vec<f32> = (0..5_u8)
        .flat_map(|x| [0.5, f32::from(x) / 4.0, -1.0, 9.0])
        .collect();
    let classes = board::record_with(&features, &[0_u16, 1, 2, 0, 1]);
    let mut board = Board::new();
    let device = open_small(&mut board, &raw const sf_softmax_i8);
    assert_eq!(add_record(device, &classes), SF_OK);
    // The last three stay.
    assert_eq!(counts(device), [3, 3, 3]);
    // One of another class, one of other features, and one of values: none is added.
    let refused = board::record_with(&features[..8], &[1_u16, 3]);
    assert_eq!(add_record(device, &refused), SF_TARGET);
    let wide = board::record_with(&features[..10], &[1_u16, 0]);
    assert_eq!(add_record(device, &wide), SF_LENGTH);
    let values = board::record_with(&features[..4], &[0.5_f32]);
    assert_eq!(add_record(device, &values), SF_TYPE);
    assert_eq!(counts(device)[0], 3);
    // SAFETY: an open device.
    unsafe {
        assert_eq!(sf_forget_samples(device), SF_OK);
        assert_eq!(counts(device), [0, 0, 0]);
        assert_eq!(sf_close(device), SF_OK);
    }
    let mut board = Board::new();
    let device = open_small(&mut board, &raw const sf_linear_f32);
    assert_eq!(add_record(device, &values), SF_OK);
    assert_eq!(add_record(device, &classes), SF_TYPE);
    assert_eq!(counts(device), [1, 0, 0], "numbers have no limits");
    // SAFETY: an open device.
    assert_eq!(unsafe { sf_close(device) }, SF_OK);
}

#[test]
#[cfg_attr(miri, ignore = "it reads the padding of an open device")]
fn samples_that_are_forgotten_leave_zeros() {
    let mut board = Board::new();
    let device = board.open(|_| ()).unwrap();
    let row = [0x5B_i8; 4];
    let has_row = |memory: &[u64]| {
        let bytes = memory.iter().flat_map(|word| word.to_ne_bytes());
        bytes
            .collect::<Vec<u8>>()
            .windows(4)
            .any(|four| four == [0x5B; 4])
    };
    // SAFETY: an open device.
    let added = unsafe { sf_add_sample_i8(device, row.as_ptr(), 4, 2) };
    assert_eq!(added, SF_OK);
    assert!(has_row(&board.memory));
    // SAFETY: an open device.
    assert_eq!(unsafe { sf_forget_samples(device) }, SF_OK);
    assert!(!has_row(&board.memory));
    // SAFETY: an open device.
    assert_eq!(unsafe { sf_close(device) }, SF_OK);
}

#[test]
fn a_logistic_model_has_two_classes_whatever_the_configuration_says() {
    for classes in [0, 1, 5] {
        let mut board = Board::new();
        let device = board.open(|config| {
            config.kind = &raw const sf_logistic_i8;
            config.classes = classes;
        });
        let device = device.unwrap();
        let row = [1_i8; 4];
        // SAFETY: an open device.
        unsafe {
            assert_eq!(sf_add_sample_i8(device, row.as_ptr(), 4, 1), SF_OK);
            assert_eq!(sf_add_sample_i8(device, row.as_ptr(), 4, 2), SF_TARGET);
            assert_eq!(sf_close(device), SF_OK);
        }
    }
}
