//! Provisioning records: the device number in a record (`sf_record_device`).

use smolfed_core::provision::ProvisionError;

use crate::{pointer, secrets, status::sf_status};

/// Tells the device number of a provisioning record.
///
/// Interrupts: yes. Longest time: grows with the bytes.
///
/// # Safety
/// Preconditions: `record` has `count` bytes. `device` is null or has room for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_record_device(
    record: *const u8,
    count: usize,
    device: *mut u32,
) -> sf_status {
    let read = || {
        // SAFETY: the caller's precondition.
        let number = number(unsafe { pointer::slice(record, count) }?)?;
        // SAFETY: the caller's precondition.
        unsafe { pointer::answer(device, number) };
        Ok(())
    };
    sf_status::of(read())
}

/// The number in the record of a device that trains, or only infers.
fn number(page: &[u8]) -> Result<u32, ProvisionError> {
    match secrets::public(page) {
        Ok(record) => Ok(record.identity.device),
        #[cfg(feature = "delivery")]
        Err(ProvisionError::Role) => Ok(smolfed_core::provision::Recipient::read(page)?.device),
        Err(error) => Err(error),
    }
}
