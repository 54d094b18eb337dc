//! Smoothing of each of several consecutive tensors, such as the parameters of a model.

use super::error::SmoothingError;

/// Passes each of several consecutive tensors in `v` to `smooth`.
#[inline(always)]
pub(super) fn each_tensor(
    v: &mut [f32],
    lengths: &[usize],
    mut smooth: impl FnMut(&mut [f32]),
) -> Result<(), SmoothingError> {
    let found = v.len();
    let expected = lengths
        .iter()
        .fold(0, |sum: usize, &length| sum.saturating_add(length));
    if expected != found {
        return Err(SmoothingError::Length { expected, found });
    }
    let mut rest = v;
    for &length in lengths {
        let Some((tensor, after)) = rest.split_at_mut_checked(length) else {
            break;
        };
        smooth(tensor);
        rest = after;
    }
    Ok(())
}
