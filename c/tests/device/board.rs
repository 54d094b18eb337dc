//! A board in memory: flash, a record, a random generator and the memory of a device.

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use smolfed_c::{sf_status::*, *};
use smolfed_core::crypto::Key;
use smolfed_core::identity::Identity;
use smolfed_core::ledger::{Budget, Limits, MaxJump, Separation};
use smolfed_core::params::NoiseMultiplier;
use smolfed_core::provision;
use smolfed_core::samples::{SampleSlice, Samples};
use smolfed_core::session::Policy;
use smolfed_core::stream::Root;

/// The device's number.
pub(crate) const DEVICE: u32 = 3;
/// The device's first key.
pub(crate) const KEY: [u8; 32] = [9; 32];
/// The root of its streams.
pub(crate) const ROOT: [u8; 32] = [7; 32];
/// Participations that the device accepts.
pub(crate) const BUDGET: u32 = 5;

pub(crate) const FEATURES: usize = 4;
pub(crate) const CLASSES: u16 = 3;
pub(crate) const SAMPLES: u16 = 5;
pub(crate) const PLACES: u8 = 6;

/// Bytes of a page of flash, and pages.
const PAGE_BYTES: u32 = 512;
const PAGES: u32 = 2;

/// Where these bytes of flash are.
fn place(context: *mut c_void, at: u32, count: usize) -> *mut u8 {
    let end = (PAGE_BYTES * PAGES) as usize;
    assert!(at as usize + count <= end, "beyond the flash");
    context.cast::<u8>().wrapping_add(at as usize)
}

unsafe extern "C" fn read(context: *mut c_void, at: u32, to: *mut u8, count: usize) -> i32 {
    // SAFETY: the tests give flash, and the library room for the bytes.
    unsafe { to.copy_from(place(context, at, count), count) };
    0
}

pub(crate) unsafe extern "C" fn write(
    context: *mut c_void,
    at: u32,
    from: *const u8,
    count: usize,
) -> i32 {
    // SAFETY: as in `read`.
    unsafe { place(context, at, count).copy_from(from, count) };
    0
}

unsafe extern "C" fn erase(context: *mut c_void, at: u32, count: usize) -> i32 {
    // SAFETY: as in `read`.
    unsafe { place(context, at, count).write_bytes(0xFF, count) };
    0
}

unsafe extern "C" fn fill(_: *mut c_void, to: *mut u8, count: usize) {
    // SAFETY: the library gives room for the bytes.
    unsafe { to.write_bytes(0x5A, count) };
}

/// A record of a device without samples.
pub(crate) fn record() -> Vec<u8> {
    record_of(None::<&SampleSlice<'_, u16>>)
}

/// A record of a device with these samples.
#[allow(dead_code, reason = "not all tests store samples")]
pub(crate) fn record_with<T: provision::Target + Default>(
    features: &[f32],
    targets: &[T],
) -> Vec<u8> {
    let width = features.len() / targets.len();
    record_of(Some(&SampleSlice::new(features, targets, width).unwrap()))
}

fn record_of<S: Samples<Target: provision::Target>>(samples: Option<&S>) -> Vec<u8> {
    let identity = Identity {
        device: DEVICE,
        root: Root::from_secret(ROOT),
    };
    let policy = Policy {
        limits: Limits {
            budget: Budget(BUDGET),
            separation: Separation::NONE,
            max_jump: MaxJump(100),
        },
        min_noise_multiplier: NoiseMultiplier::NONE,
        min_matrix_noise_multiplier: NoiseMultiplier::NONE,
        max_epochs: 10,
        hides_number: false,
        helpers: 0,
    };
    let key = Key::from_secret(KEY);
    let mut page = vec![0; 4096];
    provision::write(&identity, &key, &policy, samples, &mut page).unwrap();
    page
}

/// What a device needs, and its memory.
pub(crate) struct Board {
    pub(crate) flash: Vec<u8>,
    pub(crate) record: Vec<u8>,
    pub(crate) memory: Vec<u64>,
}

impl Board {
    pub(crate) fn new() -> Self {
        Self {
            flash: vec![0xFF; (PAGE_BYTES * PAGES) as usize],
            record: record(),
            memory: vec![0xAAAA_AAAA_AAAA_AAAA; 4096],
        }
    }

    pub(crate) fn config(&mut self) -> sf_config {
        sf_config {
            kind: &raw const sf_softmax_i8,
            features: FEATURES as u16,
            classes: CLASSES,
            samples: SAMPLES,
            places: PLACES,
            recipe: null(),
            record: self.record.as_ptr(),
            record_bytes: self.record.len(),
            ledger: sf_flash {
                context: self.flash.as_mut_ptr().cast(),
                read: Some(read),
                write: Some(write),
                erase: Some(erase),
                poll: None,
                page_bytes: PAGE_BYTES,
                pages: PAGES,
            },
            random: sf_random {
                context: null_mut(),
                fill: Some(fill),
            },
            element: sf_element {
                context: null_mut(),
                expand: None,
                expand_into: None,
            },
        }
    }

    pub(crate) fn open(
        &mut self,
        change: impl FnOnce(&mut sf_config),
    ) -> Result<*mut sf_device, sf_status> {
        let mut config = self.config();
        change(&mut config);
        let mut device = null_mut();
        let (memory, bytes) = (self.memory.as_mut_ptr().cast(), 8 * self.memory.len());
        // SAFETY: memory of the board, which it keeps.
        match unsafe { sf_open(memory, bytes, &raw const config, &raw mut device) } {
            SF_OK => Ok(device),
            status => Err(status),
        }
    }
}
