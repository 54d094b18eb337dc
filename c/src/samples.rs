//! The samples of a device: adding, counting and forgetting (`sf_add_sample_f32`,
//! `sf_forget_samples`), and the oldest one that is replaced when the memory is full.

use crate::{
    client::{Client, Feature, Target},
    device::{sf_device, with},
    pointer, secrets,
    status::sf_status,
};

/// Adds a sample.
///
/// # Safety
/// Those of its callers.
unsafe fn add<X: Feature>(
    device: *mut sf_device,
    (features, count): (*const X, usize),
    target: Target,
) -> sf_status {
    let add = |client: &mut dyn Client| {
        // SAFETY: the caller's precondition.
        let features = unsafe { pointer::slice(features, count) }?;
        client.add_sample(X::typed(features), target)
    };
    // SAFETY: the caller's precondition.
    unsafe { with(device, add) }
}

/// Adds a sample of a class. It replaces the oldest sample if the memory is full. A sample that is
/// refused changes nothing and spends no participation.
///
/// Interrupts: no. Longest time: grows with the features.
///
/// # Safety
/// Preconditions: as `sf_phase_of`. `features` has `count` values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_add_sample_f32(
    device: *mut sf_device,
    features: *const f32,
    count: usize,
    class: u16,
) -> sf_status {
    // SAFETY: the caller's preconditions.
    unsafe { add(device, (features, count), Target::Class(class)) }
}

/// Adds a sample of a class. It replaces the oldest sample if the memory is full. A sample that is
/// refused changes nothing and spends no participation.
///
/// Interrupts: no. Longest time: grows with the features.
///
/// # Safety
/// Preconditions: as `sf_phase_of`. `features` has `count` values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_add_sample_i8(
    device: *mut sf_device,
    features: *const i8,
    count: usize,
    class: u16,
) -> sf_status {
    // SAFETY: the caller's preconditions.
    unsafe { add(device, (features, count), Target::Class(class)) }
}

/// Adds a sample of a class. It replaces the oldest sample if the memory is full. A sample that is
/// refused changes nothing and spends no participation.
///
/// Interrupts: no. Longest time: grows with the features.
///
/// # Safety
/// Preconditions: as `sf_phase_of`. `features` has `count` values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_add_sample_i16(
    device: *mut sf_device,
    features: *const i16,
    count: usize,
    class: u16,
) -> sf_status {
    // SAFETY: the caller's preconditions.
    unsafe { add(device, (features, count), Target::Class(class)) }
}

/// Adds a sample of a value. It replaces the oldest sample if the memory is full. A sample that is
/// refused changes nothing and spends no participation.
///
/// Interrupts: no. Longest time: grows with the features.
///
/// # Safety
/// Preconditions: as `sf_phase_of`. `features` has `count` values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_add_value_f32(
    device: *mut sf_device,
    features: *const f32,
    count: usize,
    value: f32,
) -> sf_status {
    // SAFETY: the caller's preconditions.
    unsafe { add(device, (features, count), Target::Value(value)) }
}

/// Adds a sample of a value. It replaces the oldest sample if the memory is full. A sample that is
/// refused changes nothing and spends no participation.
///
/// Interrupts: no. Longest time: grows with the features.
///
/// # Safety
/// Preconditions: as `sf_phase_of`. `features` has `count` values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_add_value_i8(
    device: *mut sf_device,
    features: *const i8,
    count: usize,
    value: f32,
) -> sf_status {
    // SAFETY: the caller's preconditions.
    unsafe { add(device, (features, count), Target::Value(value)) }
}

/// Adds a sample of a value. It replaces the oldest sample if the memory is full. A sample that is
/// refused changes nothing and spends no participation.
///
/// Interrupts: no. Longest time: grows with the features.
///
/// # Safety
/// Preconditions: as `sf_phase_of`. `features` has `count` values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_add_value_i16(
    device: *mut sf_device,
    features: *const i16,
    count: usize,
    value: f32,
) -> sf_status {
    // SAFETY: the caller's preconditions.
    unsafe { add(device, (features, count), Target::Value(value)) }
}

/// Adds the samples of a provisioning record. The last ones stay if the memory is too small. For an
/// integer model it rounds the features. If it refuses a sample, it has added those before.
///
/// Interrupts: no. Longest time: grows with the bytes of the record.
///
/// # Safety
/// Preconditions: as `sf_phase_of`. `record` has `count` bytes. The record lies at a multiple of
/// four bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_add_record(
    device: *mut sf_device,
    record: *const u8,
    count: usize,
) -> sf_status {
    let add = |client: &mut dyn Client| {
        // SAFETY: the caller's precondition.
        let record = secrets::public(unsafe { pointer::slice(record, count) }?)?;
        client.add_stored(&record.samples)
    };
    // SAFETY: the caller's precondition.
    unsafe { with(device, add) }
}

/// The samples of a device. The counts describe private data and must not leave the device.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct sf_sample_counts {
    /// Samples.
    pub samples: usize,
    /// Features with the same value in all samples. Perhaps a sensor has stopped.
    pub constant: usize,
    /// Integers at the ends of their type, in all samples. Perhaps there are too many places.
    pub saturated: usize,
}

/// Counts the samples of the device.
///
/// Interrupts: no. Longest time: grows with the features of all samples.
///
/// # Safety
/// Preconditions: as `sf_phase_of`. `counts` is null or has room for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_count_samples(
    device: *mut sf_device,
    counts: *mut sf_sample_counts,
) -> sf_status {
    let count = |client: &mut dyn Client| {
        let [samples, constant, saturated] = client.samples();
        let found = sf_sample_counts {
            samples,
            constant,
            saturated,
        };
        // SAFETY: the caller's precondition.
        unsafe { pointer::answer(counts, found) };
        Ok(())
    };
    // SAFETY: the caller's precondition.
    unsafe { with(device, count) }
}

/// Forgets all samples and fills their memory with zeros. During training it returns `SF_PHASE`.
///
/// Interrupts: no. Longest time: constant.
///
/// # Safety
/// Preconditions: as `sf_phase_of`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_forget_samples(device: *mut sf_device) -> sf_status {
    // SAFETY: the caller's precondition.
    unsafe { with(device, |client| client.forget_samples()) }
}
