//! Provisioning records.

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
        let record = secrets::public(unsafe { pointer::slice(record, count) }?)?;
        // SAFETY: the caller's precondition.
        unsafe { pointer::answer(device, record.identity.device) };
        Ok(())
    };
    sf_status::of(read())
}
