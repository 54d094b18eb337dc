//! Records of devices, as bytes: with the device's share of the samples, or without samples.

use smolfed_core::Identity;
use smolfed_core::crypto::Key;
use smolfed_core::provision::{self, ProvisionError};
use smolfed_core::samples::{SampleSlice, Samples};
use smolfed_core::session::Policy;
use smolfed_data::Federation;
use smolfed_data::dataset::DeviceBuffer;
use smolfed_engine::on_samples;
use smolfed_engine::task::Task;

/// A record with the device's share of the data, or without samples.
pub(super) fn record(
    identity: &Identity,
    key: &Key,
    policy: &Policy,
    task: &Task,
    data: Option<&Federation>,
) -> Result<Vec<u8>, ProvisionError> {
    let Some(federation) = data else {
        return write(identity, key, policy, None::<&SampleSlice<'_, u16>>, 0);
    };
    let mut buffer = DeviceBuffer::default();
    let view = federation.device(identity.device, &mut buffer);
    on_samples!(task, view, (_model, rows) => {
        write(identity, key, policy, Some(rows), view.feature_count())
    })
}

/// A record with these samples, of so many features.
pub(super) fn write<S: Samples>(
    identity: &Identity,
    key: &Key,
    policy: &Policy,
    samples: Option<&S>,
    features: usize,
) -> Result<Vec<u8>, ProvisionError>
where
    S::Target: provision::Target,
{
    let count = samples.map_or(0, Samples::len);
    let length = provision::record_bytes(features, count).ok_or(ProvisionError::Room)?;
    let mut page = vec![0; length];
    let written = provision::write(identity, key, policy, samples, &mut page)?;
    page.truncate(written);
    Ok(page)
}
