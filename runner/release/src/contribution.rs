//! The message of one device in a round, while its training writes it: the buffer of its update,
//! and the clipping of the update.

use smolfed_core::clip::clip_l2;
use smolfed_core::lanes;
use smolfed_core::params::ClipNorm;
use smolfed_core::personal::NoisySteps;
use smolfed_core::train::{TrainError, TrainReport};
use smolfed_simd::Words;

use super::fault::Fault;

/// The message of one device in a round. It exists only while the device trains.
/// [`Uploads`](super::Uploads) then processes it.
pub struct Contribution<'a> {
    pub(super) update: &'a mut [f32],
    pub(super) steps: Option<NoisySteps<'a, Words>>,
    pub(super) clip_norm: Option<ClipNorm>,
    pub(super) fault: Fault,
}

impl std::fmt::Debug for Contribution<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Contribution of {} parameters", self.update.len())
    }
}

impl<'a> Contribution<'a> {
    /// Returns the buffer for the update, one entry per shared parameter. Its entries are undefined
    /// before training writes them.
    pub fn update(&mut self) -> &mut [f32] {
        self.update
    }

    /// Returns the release of each local step's gradient if steps are released separately. The
    /// update is then not sent.
    pub fn steps(&mut self) -> Option<&mut NoisySteps<'a, Words>> {
        self.steps.as_mut()
    }

    /// Clips the update to the clip norm, if there is one, and records this in `report`. For
    /// methods whose local steps do not enforce the bound.
    ///
    /// # Errors
    /// [`TrainError::Diverged`] if the update is not finite.
    pub fn clip(&mut self, report: &mut TrainReport) -> Result<(), TrainError> {
        report.norm = lanes::norm(self.update);
        if let Some(bound) = self.clip_norm {
            let bounded = self.fault.bounded(self.update.len());
            clip_l2(&mut self.update[..bounded], bound.get()).map_err(|_| TrainError::Diverged)?;
            report.clipped_steps = u32::from(report.norm > bound.get());
            report.clipping_chances = 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_is_counted_as_clipped_if_it_is_longer_than_the_clip_norm() {
        for (length, clipped_steps) in [(0.25, 0), (0.5, 0), (0.75, 1)] {
            let mut update = [0.0, length];
            let mut contribution = Contribution {
                update: &mut update,
                steps: None,
                clip_norm: Some(ClipNorm::new(0.5).unwrap()),
                fault: Fault::None,
            };
            let mut report = TrainReport::default();
            contribution.clip(&mut report).unwrap();
            assert_eq!((report.norm, report.clipping_chances), (length, 1));
            assert_eq!(report.clipped_steps, clipped_steps, "{length}");
            assert_eq!(update, [0.0, length.min(0.5)]);
        }
    }
}
