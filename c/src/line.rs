//! The serial line of a device: bytes in and out (`sf_receive`, `sf_outgoing`), time-outs, refused
//! frames, and the phase of the session (`sf_phase_of`).

use smolfed_core::session::Phase;

use crate::{
    client::Client,
    device::{sf_device, with},
    pointer,
    status::sf_status,
};

/// The state of a device.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum sf_phase {
    /// Before the first message: `sf_timeout` sends it.
    SF_SILENT = 0,
    /// The device opens a session.
    SF_GREETING = 1,
    /// The session is open, and the coordinator has not answered.
    SF_READY = 2,
    /// Between two rounds.
    SF_IDLE = 3,
    /// The device receives the model.
    SF_RECEIVING = 4,
    /// The firmware calls `sf_train_some`.
    SF_TRAINING = 5,
    /// The device sends the update.
    SF_SENDING = 6,
    /// The coordinator refuses the device, which stays silent until the coordinator calls it.
    SF_REFUSED = 7,
}

/// Tells the state of the device.
///
/// Interrupts: yes. Longest time: constant.
///
/// # Safety
/// Preconditions: `device` is null or comes from `sf_open` or `sf_infer_open`. `phase` is null or
/// has room for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_phase_of(device: *mut sf_device, phase: *mut sf_phase) -> sf_status {
    let found = |client: &mut dyn Client| {
        let now = match client.phase() {
            Phase::Silent => sf_phase::SF_SILENT,
            Phase::Greeting => sf_phase::SF_GREETING,
            Phase::Ready => sf_phase::SF_READY,
            Phase::Idle => sf_phase::SF_IDLE,
            Phase::Receiving => sf_phase::SF_RECEIVING,
            Phase::Training => sf_phase::SF_TRAINING,
            Phase::Sending => sf_phase::SF_SENDING,
            Phase::Refused(_) => sf_phase::SF_REFUSED,
        };
        // SAFETY: the caller's precondition.
        unsafe { pointer::answer(phase, now) };
        Ok(())
    };
    // SAFETY: the caller's precondition.
    unsafe { with(device, found) }
}

/// Lends the bytes for the line: a whole frame, or nothing. They stay until `sf_sent`,
/// `sf_receive`, `sf_timeout`, `sf_train_some` or `sf_close`.
///
/// Interrupts: yes. Longest time: constant.
///
/// # Safety
/// Preconditions: as `sf_phase_of`. `bytes` and `count` are null or have room for the answers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_outgoing(
    device: *mut sf_device,
    bytes: *mut *const u8,
    count: *mut usize,
) -> sf_status {
    let found = |client: &mut dyn Client| {
        let outgoing = client.outgoing();
        // SAFETY: the caller's precondition.
        unsafe {
            pointer::answer(bytes, outgoing.as_ptr());
            pointer::answer(count, outgoing.len());
        }
        Ok(())
    };
    // SAFETY: the caller's precondition.
    unsafe { with(device, found) }
}

/// Tells the device that the bytes of `sf_outgoing` are on the line. More bytes may follow at once.
///
/// Interrupts: no. Longest time: composing a frame (docs/targets.md).
///
/// # Safety
/// Preconditions: as `sf_phase_of`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_sent(device: *mut sf_device) -> sf_status {
    // SAFETY: the caller's precondition.
    unsafe {
        with(device, |client| {
            client.sent();
            Ok(())
        })
    }
}

/// Takes bytes from the line, up to the end of a frame, and tells their number. Pass the rest to
/// the next call, after the outgoing bytes.
///
/// Interrupts: no. Longest time: opening a frame and composing one (docs/targets.md). A device that
/// only infers also writes to flash, and verifies a signature at the end of a file.
///
/// # Safety
/// Preconditions: as `sf_phase_of`. `bytes` has `count` bytes, and `taken` is null or has room for
/// the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_receive(
    device: *mut sf_device,
    bytes: *const u8,
    count: usize,
    taken: *mut usize,
) -> sf_status {
    let receive = |client: &mut dyn Client| {
        // SAFETY: the caller's precondition.
        let bytes = unsafe { pointer::slice(bytes, count) }?;
        let count = client.receive(bytes);
        // SAFETY: the caller's precondition.
        unsafe { pointer::answer(taken, count) };
        Ok(())
    };
    // SAFETY: the caller's precondition.
    unsafe { with(device, receive) }
}

/// Tells the device that the line was silent, for example for half a second. The device repeats a
/// message without an answer, or opens a new session. The first call opens the first session.
///
/// Interrupts: no. Longest time: composing a frame (docs/targets.md).
///
/// # Safety
/// Preconditions: as `sf_phase_of`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_timeout(device: *mut sf_device) -> sf_status {
    // SAFETY: the caller's precondition.
    unsafe {
        with(device, |client| {
            client.timeout();
            Ok(())
        })
    }
}

/// Counts the frames that the device ignored: damaged, not authentic, late or out of turn.
///
/// Interrupts: yes. Longest time: constant.
///
/// # Safety
/// Preconditions: as `sf_phase_of`. `count` is null or has room for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_refused_frames(device: *mut sf_device, count: *mut u32) -> sf_status {
    let found = |client: &mut dyn Client| {
        // SAFETY: the caller's precondition.
        unsafe { pointer::answer(count, client.refusals().total()) };
        Ok(())
    };
    // SAFETY: the caller's precondition.
    unsafe { with(device, found) }
}

/// Sets the number of chunks that the device requests or sends before it waits for an answer. The
/// default is 1. A socket is faster with more, up to 32.
///
/// Interrupts: yes. Longest time: constant.
///
/// # Safety
/// Preconditions: as `sf_phase_of`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_set_window(device: *mut sf_device, chunks: u8) -> sf_status {
    let set = |client: &mut dyn Client| {
        client.set_window(chunks);
        Ok(())
    };
    // SAFETY: the caller's precondition.
    unsafe { with(device, set) }
}
