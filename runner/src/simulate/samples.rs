//! A device's part of the data as the core's models read it.

use smolfed_core::samples::Samples;

use crate::data::dataset::DatasetView;

/// Samples with classes.
pub(super) struct Classes<'a>(pub(super) DatasetView<'a>);

/// Samples with values.
pub(super) struct Values<'a>(pub(super) DatasetView<'a>);

impl Samples for Classes<'_> {
    type Target = u16;

    #[inline(always)]
    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    fn features(&self, index: usize) -> &[f32] {
        self.0.features(index)
    }

    #[inline(always)]
    fn target(&self, index: usize) -> u16 {
        self.0.label(index)
    }
}

impl Samples for Values<'_> {
    type Target = f32;

    #[inline(always)]
    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    fn features(&self, index: usize) -> &[f32] {
        self.0.features(index)
    }

    #[inline(always)]
    fn target(&self, index: usize) -> f32 {
        self.0.value(index)
    }
}
