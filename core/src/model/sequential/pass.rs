//! Arguments of the forward and the backward pass of a layer, and the conversion of images between
//! channel by channel and pixel by pixel.

/// Parameters of the forward pass of a layer.
pub(super) struct Forward<'a> {
    pub(super) parameters: &'a [f32],
    /// Values computed from the parameters.
    pub(super) prepared: &'a [f32],
    /// Input of the layer.
    pub(super) input: &'a [f32],
    pub(super) work: &'a mut [f32],
    /// Values kept by the layer, with the results as the last entries.
    pub(super) region: &'a mut [f32],
}

/// Parameters of the backward pass of a layer.
pub(super) struct Backward<'a> {
    pub(super) parameters: &'a [f32],
    /// Values computed from the parameters.
    pub(super) prepared: &'a [f32],
    /// Input of the forward pass.
    pub(super) input: &'a [f32],
    /// Values kept by the forward pass, with the results as the last entries.
    pub(super) region: &'a mut [f32],
    /// Derivatives with respect to the results. They may be overwritten.
    pub(super) derivatives: &'a mut [f32],
    pub(super) work: &'a mut [f32],
    /// Gradient with respect to the parameters, to which the layer adds, unless it adds to `sums`.
    pub(super) gradient: &'a mut [f32],
    /// The gradient in another order, for the whole batch.
    pub(super) sums: &'a mut [f32],
    /// Destination of the derivatives with respect to the input, unless it is the first layer.
    pub(super) input_derivatives: Option<&'a mut [f32]>,
}

/// Returns the last entries of a slice.
#[inline(always)]
pub(super) fn last(v: &[f32], count: usize) -> &[f32] {
    let start = v.len().saturating_sub(count);
    v.get(start..).unwrap_or_default()
}

/// Returns the last entries of a slice.
#[inline(always)]
pub(super) fn last_mut(v: &mut [f32], count: usize) -> &mut [f32] {
    let start = v.len().saturating_sub(count);
    v.get_mut(start..).unwrap_or_default()
}

/// Splits a slice before its last entries.
#[inline(always)]
pub(super) fn split_last_mut(v: &mut [f32], count: usize) -> Option<(&mut [f32], &mut [f32])> {
    let start = v.len().checked_sub(count)?;
    v.split_at_mut_checked(start)
}

/// Copies entries up to the shorter length.
#[inline(always)]
pub(super) fn copy(from: &[f32], to: &mut [f32]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = *from;
    }
}

/// Converts from channel by channel to pixel by pixel.
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

/// Converts from pixel by pixel to channel by channel.
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
