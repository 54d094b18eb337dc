//! How long a device stays awake, and the longest duration of a round. A sleeping device declines a
//! round that does not fit, before its ledger records it.
//!
//! The bound depends only on public values: the invitation, the speeds that the application states,
//! and the largest number of samples that the memory can hold. It depends neither on the samples
//! nor on their number, so a decline reveals nothing about them.
//!
//! ```text
//! round = fetch + train + send                 fetch alone where an update outlives sleep
//! fetch = exchanges of the model · round trip + its frames / bytes per second
//! train = (epochs · (samples · views + steps of an epoch) + entries / 16) / samples per second
//! send  = exchanges of the update · round trip + its frames / bytes per second
//! ```
//!
//! An exchange is a request with its answers, up to the session's window. All frames count as long
//! as the longest one. A local step counts as a sample, and so do 16 entries of the update, which
//! are rounded and get their noise.

use core::num::NonZeroU32;

use super::round::ENTRIES_OF_A_SAMPLE;
use crate::wire::{FRAME_BYTES, message::Invitation};

/// Milliseconds per second.
const SECOND_MS: u64 = 1_000;

/// How long the device stays awake, and how fast it is. The core has no clock. The application
/// states both, with a margin for costs outside the bound, such as flash writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Wake {
    /// Milliseconds from now on.
    pub awake_ms: u32,
    /// Maximum milliseconds from a request to its answer.
    pub round_trip_ms: u32,
    /// Minimum bytes per second over the link, in one direction at a time.
    pub bytes_per_second: NonZeroU32,
    /// Minimum samples per second in training, including the local steps. Without labels these are
    /// views of samples.
    pub samples_per_second: NonZeroU32,
    /// Whether an update outlives sleep ([`Session::hold`](super::Session::hold), or retained RAM).
    /// Then only the model must come down before the device sleeps. Masked updates are not held, so
    /// the whole round must fit if there are helpers.
    pub resumes: bool,
}

/// The public part of a round's duration.
pub(super) struct Work<'a> {
    pub(super) invitation: &'a Invitation,
    /// Number of model chunks that come down.
    pub(super) chunks: usize,
    /// The largest number of samples that the device has memory for.
    pub(super) samples: usize,
    /// Number of chunks before an answer.
    pub(super) window: u8,
}

impl Wake {
    /// Whether the device is awake long enough, whatever samples it has.
    pub(super) fn suffices(&self, work: &Work<'_>) -> bool {
        self.bound_ms(work) <= self.awake_ms.into()
    }

    /// Returns the maximum duration in milliseconds before the device may sleep.
    fn bound_ms(&self, work: &Work<'_>) -> u64 {
        let invitation = work.invitation;
        let fetch = self.transfer_ms(work.chunks, work.window);
        if self.resumes && invitation.masks.is_none() {
            return fetch;
        }
        let send = self.transfer_ms(invitation.chunks_of::<true>(), work.window);
        let train = duration_ms(work.passes(), self.samples_per_second);
        fetch.saturating_add(train).saturating_add(send)
    }

    /// Returns the time for `chunks` in one direction, and requests or answers in the other.
    fn transfer_ms(&self, chunks: usize, window: u8) -> u64 {
        let exchanges = chunks.div_ceil(usize::from(window.max(1))) as u64;
        let frames = (chunks as u64).saturating_add(exchanges);
        let bytes = frames.saturating_mul(FRAME_BYTES as u64);
        let waits = exchanges.saturating_mul(self.round_trip_ms.into());
        duration_ms(bytes, self.bytes_per_second).saturating_add(waits)
    }
}

impl Work<'_> {
    /// Returns the samples of training, plus all work that counts as samples.
    fn passes(&self) -> u64 {
        let invitation = self.invitation;
        let (samples, batch) = (self.samples as u64, u64::from(invitation.batch_size.get()));
        let steps = invitation.personal().and_then(|personal| personal.steps);
        let (trained, steps) = match steps.map(|steps| u64::from(steps.get())) {
            Some(steps) => (steps.saturating_mul(batch.min(samples)), steps),
            None => {
                // An answer or a matrix takes one pass whatever the epochs are.
                let epochs = u64::from(invitation.epochs.max(1));
                let steps = epochs.saturating_mul(samples.div_ceil(batch));
                (epochs.saturating_mul(samples), steps)
            }
        };
        let views = match invitation.contrast() {
            Some(contrast) => 2 * u64::from(contrast.pairs),
            None => 1,
        };
        let covered = invitation.update_length().div_ceil(ENTRIES_OF_A_SAMPLE);
        (trained.saturating_mul(views))
            .saturating_add(steps)
            .saturating_add(covered as u64)
    }
}

/// Returns the time for `amount` at this speed, in milliseconds, rounded up.
fn duration_ms(amount: u64, per_second: NonZeroU32) -> u64 {
    let thousandths = amount.saturating_mul(SECOND_MS);
    thousandths.div_ceil(u64::from(per_second.get()))
}
