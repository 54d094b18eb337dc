//! From the private sum of a round to what is released of it, by any mechanism and trust model.

use smolfed_core::stream::Root;

use super::masked::{Asked, HelperError, Helpers, MaskedRound};
use super::settings::ReleaseSettings;
use super::sum::{PrivateSum, ReleaseAt, Released};
use crate::history::History;

/// Makes the sum of a round public: combined with earlier ones, with the noise of all parties.
/// Where updates are masked, each helper is asked once, about devices that were `asked` this.
///
/// # Errors
/// [`HelperError`]: the round has come to nothing, and the history must begin anew.
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
