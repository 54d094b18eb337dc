//! What goes along with a pass through the layers.

/// What a layer needs on the way back.
pub(super) struct Backward<'a> {
    pub(super) parameters: &'a [f32],
    /// What it was given.
    pub(super) input: &'a [f32],
    /// What it kept: its results are the last entries.
    pub(super) region: &'a mut [f32],
    /// Derivatives by its results; they may be overwritten.
    pub(super) derivatives: &'a mut [f32],
    pub(super) work: &'a mut [f32],
    /// To which the gradient by its parameters is added.
    pub(super) gradient: &'a mut [f32],
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
