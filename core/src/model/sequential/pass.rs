//! What goes along with a pass through the layers.

/// What a layer has for the way up.
pub(super) struct Forward<'a> {
    pub(super) parameters: &'a [f32],
    /// What was computed from the parameters.
    pub(super) prepared: &'a [f32],
    /// What it is given.
    pub(super) input: &'a [f32],
    pub(super) work: &'a mut [f32],
    /// What it keeps: its results are the last entries.
    pub(super) region: &'a mut [f32],
}

/// What a layer has for the way back.
pub(super) struct Backward<'a> {
    pub(super) parameters: &'a [f32],
    /// What was computed from the parameters.
    pub(super) prepared: &'a [f32],
    /// What it was given.
    pub(super) input: &'a [f32],
    /// What it kept: its results are the last entries.
    pub(super) region: &'a mut [f32],
    /// Derivatives by its results; they may be overwritten.
    pub(super) derivatives: &'a mut [f32],
    pub(super) work: &'a mut [f32],
    /// To which the gradient by its parameters is added, or to `sums`.
    pub(super) gradient: &'a mut [f32],
    /// The gradient in another order, for the whole batch.
    pub(super) sums: &'a mut [f32],
    /// Where the derivatives by its input go, unless it is the first layer.
    pub(super) input_derivatives: Option<&'a mut [f32]>,
}

/// The last entries of a slice.
#[inline(always)]
pub(super) fn last(v: &[f32], count: usize) -> &[f32] {
    let start = v.len().saturating_sub(count);
    v.get(start..).unwrap_or_default()
}

/// The last entries of a slice.
#[inline(always)]
pub(super) fn last_mut(v: &mut [f32], count: usize) -> &mut [f32] {
    let start = v.len().saturating_sub(count);
    v.get_mut(start..).unwrap_or_default()
}

/// What is before the last entries of a slice, and these.
#[inline(always)]
pub(super) fn split_last_mut(v: &mut [f32], count: usize) -> Option<(&mut [f32], &mut [f32])> {
    let start = v.len().checked_sub(count)?;
    v.split_at_mut_checked(start)
}

/// Copies entries, as many as both have.
#[inline(always)]
pub(super) fn copy(from: &[f32], to: &mut [f32]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = *from;
    }
}

/// Pixel by pixel what was channel by channel.
#[inline(always)]
pub(super) fn interleave(channels: usize, planar: &[f32], pixels: &mut [f32]) {
    let size = (pixels.len() / channels.max(1)).max(1);
    for (channel, plane) in planar.chunks_exact(size).enumerate() {
        let places = pixels.iter_mut().skip(channel).step_by(channels.max(1));
        for (place, x) in places.zip(plane) {
            *place = *x;
        }
    }
}

/// Channel by channel what was pixel by pixel.
#[inline(always)]
pub(super) fn separate(channels: usize, pixels: &[f32], planar: &mut [f32]) {
    let size = (pixels.len() / channels.max(1)).max(1);
    for (channel, plane) in planar.chunks_exact_mut(size).enumerate() {
        let places = pixels.iter().skip(channel).step_by(channels.max(1));
        for (x, place) in plane.iter_mut().zip(places) {
            *x = *place;
        }
    }
}
