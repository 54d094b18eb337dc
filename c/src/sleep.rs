//! Devices that sleep: rounds that a device has no time for (`sf_set_awake`), and an update in
//! flash that outlives deep sleep, in which the RAM is lost (`sf_hold`, `sf_resume`, `sf_release`).

use core::num::NonZeroU32;

use smolfed_core::{
    personal::store::{StoreError, flash::FlashStore},
    session::{Wake, held_bytes},
};

use crate::{
    callbacks::sf_flash,
    client::{Client, Sleeper},
    device::{sf_device, with},
    pages::{PAGE_BYTES, Pages},
    pointer,
    status::sf_status,
};

/// How long a device stays awake, and how fast it is. It needs a library with the feature `sleep`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sf_wake {
    /// Milliseconds from now on.
    pub awake_ms: u32,
    /// The most milliseconds from a request to its answer.
    pub round_trip_ms: u32,
    /// The least bytes per second over the line, in one direction. At least 1.
    pub bytes_per_second: u32,
    /// The least samples per second in training, with the local steps. At least 1. Leave a margin
    /// for writes to flash.
    pub samples_per_second: u32,
    /// Whether an update outlives the sleep, by `sf_hold` or in RAM that keeps its content. Then
    /// only the model must arrive before the time is over. With `sf_hold`, the device must also
    /// finish its training before it loses its RAM.
    pub resumes: bool,
}

/// Calls with the sleep of a device that trains.
///
/// # Safety
/// Those of [`with`].
unsafe fn with_sleeper(
    device: *mut sf_device,
    call: impl FnOnce(&mut dyn Sleeper) -> Result<(), sf_status>,
) -> sf_status {
    let call = |client: &mut dyn Client| call(client.sleeper().ok_or(sf_status::SF_ROLE)?);
    // SAFETY: the caller's precondition.
    unsafe { with(device, call) }
}

/// Sets how long the device stays awake from now on. Until the next call it declines rounds that
/// may take longer, and its ledger does not count them. Call it before `sf_receive`, with the time
/// left. Without a call, no round takes too long. A waiting update is sent whatever time is left.
///
/// Interrupts: no. Longest time: constant.
///
/// # Safety
/// Preconditions: as `sf_phase_of`. `wake` is null or points to the times.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_set_awake(device: *mut sf_device, wake: *const sf_wake) -> sf_status {
    let set = |sleeper: &mut dyn Sleeper| {
        // SAFETY: the caller's precondition.
        let [wake] = (unsafe { pointer::slice(wake, 1) })? else {
            return Err(sf_status::SF_POINTER);
        };
        let rates = [wake.bytes_per_second, wake.samples_per_second].map(NonZeroU32::new);
        let [Some(bytes_per_second), Some(samples_per_second)] = rates else {
            return Err(sf_status::SF_CONFIG);
        };
        sleeper.set_awake(Wake {
            awake_ms: wake.awake_ms,
            round_trip_ms: wake.round_trip_ms,
            bytes_per_second,
            samples_per_second,
            resumes: wake.resumes,
        });
        Ok(())
    };
    // SAFETY: the caller's precondition.
    unsafe { with_sleeper(device, set) }
}

/// The pages that hold an update of a device: two slots of whole pages.
fn pages_of(sleeper: &dyn Sleeper, page_bytes: u32) -> Result<u32, sf_status> {
    if page_bytes == 0 || !page_bytes.is_multiple_of(PAGE_BYTES) {
        return Err(sf_status::SF_CONFIG);
    }
    Ok(2 * (held_bytes(sleeper.entries(), 1) / 2).div_ceil(page_bytes))
}

/// Tells the pages of flash that hold an update. The bytes of a page are a multiple of 64.
///
/// Interrupts: yes. Longest time: constant.
///
/// # Safety
/// Preconditions: as `sf_phase_of`. `pages` is null or has room for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_held_pages(
    device: *mut sf_device,
    page_bytes: u32,
    pages: *mut u32,
) -> sf_status {
    let count = |sleeper: &mut dyn Sleeper| {
        let found = pages_of(sleeper, page_bytes)?;
        // SAFETY: the caller's precondition.
        unsafe { pointer::answer(pages, found) };
        Ok(())
    };
    // SAFETY: the caller's precondition.
    unsafe { with_sleeper(device, count) }
}

/// Calls with the flash that holds an update, and answers whether it has changed something.
///
/// # Safety
/// Those of [`with`]. `flash` is null or points to functions of flash, which may be called. `done`
/// is null or has room for the answer.
unsafe fn with_store(
    (device, flash, done): (*mut sf_device, *const sf_flash, *mut bool),
    call: fn(&mut dyn Sleeper, &mut FlashStore<Pages>) -> Result<bool, StoreError>,
) -> sf_status {
    let call = |sleeper: &mut dyn Sleeper| {
        // SAFETY: the caller's precondition.
        let [flash] = (unsafe { pointer::slice(flash, 1) })? else {
            return Err(sf_status::SF_POINTER);
        };
        let pages = Pages::new(*flash, pages_of(sleeper, flash.page_bytes)?)?;
        let store = FlashStore::new(pages).map_err(|_| sf_status::SF_CONFIG);
        let found = call(sleeper, &mut store?).map_err(|_| sf_status::SF_FLASH)?;
        // SAFETY: the caller's precondition.
        unsafe { pointer::answer(done, found) };
        Ok(())
    };
    // SAFETY: the caller's precondition.
    unsafe { with_sleeper(device, call) }
}

/// Writes the update that waits to be sent, unless the flash has it already. Call it as soon as the
/// phase is `SF_SENDING`, and in any phase before the RAM is lost. `held` is false if nothing was
/// written: the flash has the update, or none waits, as during training. After `SF_FLASH`, the
/// update in RAM is still sent. **Under central trust, the flash then has a private update without
/// noise** until `sf_release` erases it.
///
/// It waits for asynchronous flash. After a power cut, `sf_resume` finds the whole update or none.
///
/// Interrupts: no. Longest time: that of the flash, for erasing all its pages and writing half.
///
/// # Safety
/// Preconditions: as `sf_phase_of`. `flash` is null or points to the functions of a flash with as
/// many pages as `sf_held_pages` says or more, which has no other use. The functions are called
/// during the call only. Firmware with another model or other pages erases the flash first. `held`
/// is null or has room for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_hold(
    device: *mut sf_device,
    flash: *const sf_flash,
    held: *mut bool,
) -> sf_status {
    // SAFETY: the caller's preconditions.
    unsafe { with_store((device, flash, held), |sleeper, store| sleeper.hold(store)) }
}

/// Reads the held update, after `sf_open` and before anything is sent. The device sends the same
/// integers, in the same participation, when the coordinator invites it to that round again. It
/// skips updates of another ledger, another model or an earlier round, and damaged ones. `resumed`
/// is false if there was none.
///
/// It waits for asynchronous flash.
///
/// Interrupts: no. Longest time: that of the flash, for reading its pages.
///
/// # Safety
/// Preconditions: as `sf_hold`. `resumed` is null or has room for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_resume(
    device: *mut sf_device,
    flash: *const sf_flash,
    resumed: *mut bool,
) -> sf_status {
    // SAFETY: the caller's preconditions.
    unsafe {
        with_store((device, flash, resumed), |sleeper, store| {
            sleeper.resume(store)
        })
    }
}

/// Erases the held update once nobody waits for it: the coordinator has it or has given it up, or
/// another round has begun. It also erases parts of an update whose write or erase was interrupted.
/// Call it after messages, at each wake, and again after `SF_FLASH`. It does nothing before the
/// device has sent anything. `erased` is false if nothing was erased.
///
/// If the answer of the coordinator was lost, the update stays until another round begins. Firmware
/// that takes part in no further round erases the pages by itself.
///
/// It waits for asynchronous flash.
///
/// Interrupts: no. Longest time: that of the flash, for reading and erasing all its pages.
///
/// # Safety
/// Preconditions: as `sf_hold`. `erased` is null or has room for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_release(
    device: *mut sf_device,
    flash: *const sf_flash,
    erased: *mut bool,
) -> sf_status {
    // SAFETY: the caller's preconditions.
    unsafe {
        with_store((device, flash, erased), |sleeper, store| {
            sleeper.release(store)
        })
    }
}
