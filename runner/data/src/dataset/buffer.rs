//! A buffer for the samples of one device that are not rows of numbers in memory.

use std::fmt;

use smolfed_simd::Aligned;

use super::targets::Targets;
use super::view::DatasetView;

/// A buffer for the samples of one device, unpacked or generated, which is reused for the next
/// device.
#[derive(Clone, Default)]
pub struct DeviceBuffer {
    /// Features, row after row.
    pub(crate) features: Aligned,
    /// The target of each row. `None` before the first device.
    pub(crate) targets: Option<Targets>,
    /// The parameters of a generated device: its weights or its sensor.
    pub(crate) own: Vec<f64>,
    /// 0, 1, 2, ..: as many as the largest number of rows of a device so far.
    rows: Vec<u32>,
}

impl DeviceBuffer {
    /// Replaces the samples.
    pub(crate) fn fill(&mut self, targets: Targets) {
        while self.rows.len() < targets.len() {
            self.rows.push(self.rows.len() as u32);
        }
        self.targets = Some(targets);
    }

    /// Returns the samples, which have `feature_count` features.
    pub(crate) fn view(&self, feature_count: usize) -> DatasetView<'_> {
        match &self.targets {
            Some(targets) => {
                let rows = &self.rows[..targets.len()];
                DatasetView::new(&self.features, feature_count, targets, rows)
            }
            None => DatasetView::empty(feature_count),
        }
    }
}

/// Shape only: device data never reach a log.
impl fmt::Debug for DeviceBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceBuffer({} features)", self.features.len())
    }
}
