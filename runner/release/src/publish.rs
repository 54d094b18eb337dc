//! From the private sum of a round to its release, by any mechanism and trust model.

use smolfed_core::stream::Root;

use super::masked::{Asked, HelperError, Helpers, MaskedRound};
use super::settings::ReleaseSettings;
use super::sum::{PrivateSum, ReleaseAt, Released};
use crate::history::History;

/// Makes the sum of a round public: combines it with earlier sums, and adds the noise of all
/// parties. If updates are masked, each helper is asked once. `asked` is the request to the
/// devices.
///
/// # Errors
/// [`HelperError`]: the round is lost, and the history must restart.
pub fn publish(
    mut sum: PrivateSum,
    asked: Option<Asked>,
    history: &mut History,
    helpers: Option<&mut (dyn Helpers + '_)>,
    release: &ReleaseSettings,
    root: &Root,
    at: &ReleaseAt,
) -> Result<Released, HelperError> {
    let Some(masking) = &release.masking else {
        return Ok(history.combine(sum).release(release, root, at));
    };
    let mut attendees = std::mem::take(sum.attendees_mut());
    attendees.sort_unstable_by_key(|attendee| attendee.device);
    masking.has_room_for(at.cohort_size.max(attendees.len()))?;
    let round = MaskedRound {
        number: at.number,
        terms: masking.terms(),
        asked: asked.unwrap_or_default(),
        entries: u32::try_from(sum.length()).unwrap_or(u32::MAX),
        attendees,
        earlier: history.earlier(at.number),
    };
    let sum = history.combine(sum);
    let answers = helpers.ok_or(HelperError::NoHelpers)?.unmask(&round)?;
    let released = sum.unmask(&answers)?.release(release, root, at);
    released.check(Some(masking))
}
