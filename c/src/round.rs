//! The rounds of a device: training in pieces (`sf_train_some`), the participations done and left,
//! and the outcome of the last round.

use smolfed_core::session::Outcome;

use crate::{
    client::Client,
    device::{sf_device, with, with_pending},
    pointer,
    status::sf_status,
};

/// The outcome of a round.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum sf_outcome {
    /// The device has trained.
    SF_UPDATED = 0,
    /// The device takes part with an update of zeros, for a reason. The participation is spent.
    SF_ZERO = 1,
    /// The device does not take part, for a reason.
    SF_DECLINED = 2,
}

/// The last round. It describes private data and must not leave the device.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sf_round {
    /// The round's number.
    pub round: u32,
    /// Whether there is an update.
    pub outcome: sf_outcome,
    /// The reason, a code of docs/protocol.md ("reason"). 0 after an update.
    pub reason: u8,
}

/// Does the next piece of a round, with at most `most` samples, and tells whether the round has
/// more pieces. The first piece writes the ledger. Without a round it does nothing.
///
/// Asynchronous flash may leave a piece unfinished. Other functions then return `SF_PENDING` until
/// a call of this function finishes the piece.
///
/// Interrupts: no. Longest time: a piece (docs/targets.md, "longest piece"), or writing the ledger.
///
/// # Safety
/// Preconditions: as `sf_phase_of`. `has_more` is null or has room for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_train_some(
    device: *mut sf_device,
    most: u32,
    has_more: *mut bool,
) -> sf_status {
    let train = |client: &mut dyn Client| {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let progress = client.train_some(most);
        let more = progress == smolfed_core::Progress::More;
        // SAFETY: the caller's precondition.
        unsafe { pointer::answer(has_more, more) };
    };
    // SAFETY: the caller's precondition.
    unsafe { with_pending(device, train) }
}

/// Counts the rounds in which the device has taken part in its life.
///
/// Interrupts: yes. Longest time: constant.
///
/// # Safety
/// Preconditions: as `sf_phase_of`. `count` is null or has room for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_participations(device: *mut sf_device, count: *mut u32) -> sf_status {
    let found = |client: &mut dyn Client| {
        // SAFETY: the caller's precondition.
        unsafe { pointer::answer(count, client.participations()) };
        Ok(())
    };
    // SAFETY: the caller's precondition.
    unsafe { with(device, found) }
}

/// Counts the rounds in which the device may still take part in its life.
///
/// Interrupts: yes. Longest time: constant.
///
/// # Safety
/// Preconditions: as `sf_phase_of`. `count` is null or has room for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_participations_left(
    device: *mut sf_device,
    count: *mut u32,
) -> sf_status {
    let found = |client: &mut dyn Client| {
        // SAFETY: the caller's precondition.
        unsafe { pointer::answer(count, client.participations_left()) };
        Ok(())
    };
    // SAFETY: the caller's precondition.
    unsafe { with(device, found) }
}

/// Tells how the last round went.
///
/// Interrupts: yes. Longest time: constant.
///
/// # Safety
/// Preconditions: as `sf_phase_of`. `round` is null or has room for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_last_round(device: *mut sf_device, round: *mut sf_round) -> sf_status {
    let found = |client: &mut dyn Client| {
        let last = client.last_round().ok_or(sf_status::SF_NO_ROUND)?;
        let (outcome, reason) = match last.outcome {
            Outcome::Updated => (sf_outcome::SF_UPDATED, 0),
            Outcome::Zero(why) => (sf_outcome::SF_ZERO, why.code()),
            Outcome::Declined(why) => (sf_outcome::SF_DECLINED, why.code()),
        };
        let last = sf_round {
            round: last.round,
            outcome,
            reason,
        };
        // SAFETY: the caller's precondition.
        unsafe { pointer::answer(round, last) };
        Ok(())
    };
    // SAFETY: the caller's precondition.
    unsafe { with(device, found) }
}
