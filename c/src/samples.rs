//! The samples of a device: adding, counting and forgetting (`sf_add_sample_f32`,
//! `sf_forget_samples`), and the oldest one that is replaced when the memory is full.

use smolfed_core::{
    fixed_point::FeatureScale,
    provision::Stored,
    samples::{Samples, constant_features, saturated_features},
};

use crate::{
    client::{Client, Feature, Features, Row, Target},
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
        client.check_samples_may_change()?;
        client.add_sample(target, &mut |row, _| {
            let row = X::row(row).ok_or(sf_status::SF_TYPE)?;
            if row.len() != features.len() {
                return Err(sf_status::SF_LENGTH);
            }
            if !features.iter().all(|x| x.is_number()) {
                return Err(sf_status::SF_NOT_FINITE);
            }
            row.copy_from_slice(features);
            Ok(())
        })
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
        client.check_samples_may_change()?;
        add_stored(client, &record.samples)
    };
    // SAFETY: the caller's precondition.
    unsafe { with(device, add) }
}

/// Adds the samples of a record.
fn add_stored(client: &mut dyn Client, samples: &Stored<'_>) -> Result<(), sf_status> {
    // Raw ones, of which the firmware computes features.
    if !samples.recipe().is_empty() {
        return Err(sf_status::SF_RECIPE);
    }
    // Of no kind, if the device has its own data.
    if samples.is_empty() {
        return Ok(());
    }
    match samples.in_place::<u16>() {
        Ok(samples) => add_all(client, &samples, Target::Class),
        Err(_) => add_all(client, &samples.in_place::<f32>()?, Target::Value),
    }
}

/// Adds samples with one kind of target. For an integer model, their features are rounded.
fn add_all<S: Samples>(
    client: &mut dyn Client,
    samples: &S,
    target: fn(S::Target) -> Target,
) -> Result<(), sf_status> {
    for index in 0..samples.len() {
        let features = samples.features(index);
        client.add_sample(target(samples.target(index)), &mut |row, scale| match row {
            Row::F32(row) => round(features, scale, row),
            Row::I8(row) => round(features, scale, row),
            Row::I16(row) => round(features, scale, row),
        })?;
    }
    Ok(())
}

/// Writes features to a row, rounded if it has integers.
fn round<X: Feature>(
    features: &[f32],
    scale: FeatureScale,
    row: &mut [X],
) -> Result<(), sf_status> {
    if row.len() != features.len() {
        return Err(sf_status::SF_LENGTH);
    }
    if !features.iter().all(|x| x.is_finite()) {
        return Err(sf_status::SF_NOT_FINITE);
    }
    for (place, x) in row.iter_mut().zip(features) {
        *place = X::of_number(*x, scale);
    }
    Ok(())
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

fn counts_of<X: Feature>(kept: &[X], width: usize) -> sf_sample_counts {
    sf_sample_counts {
        samples: kept.chunks_exact(width.max(1)).len(),
        constant: constant_features(kept, width),
        saturated: saturated_features(kept),
    }
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
        let (kept, width) = client.kept();
        let found = match kept {
            Features::F32(kept) => counts_of(kept, width),
            Features::I8(kept) => counts_of(kept, width),
            Features::I16(kept) => counts_of(kept, width),
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
    unsafe {
        with(device, |client| {
            client.check_samples_may_change()?;
            client.forget_samples();
            Ok(())
        })
    }
}
