//! The second half of a round on a device: quantisation, noise and masks.

use super::{
    Round,
    own_noise::OwnNoise,
    stage::{Source, Stage},
};
use crate::{
    mask::Masking,
    release::{patterns_mut, quantise},
    secrets::Secrets,
    session::{
        device::{Device, streams_of},
        masks::DeviceMasks,
        trainable::Trainable,
    },
    stream::Purpose,
    train::Workspace,
    wire::message::Decline,
};

/// Entries to cover per sample of training time. Quantising an entry and drawing its noise takes
/// about as many instructions as a sample takes for twelve weights (`docs/targets.md`).
pub(in super::super) const ENTRIES_OF_A_SAMPLE: usize = 16;

impl<D: Copy> Round<D> {
    /// Quantises the next entries of the update, or zeros without one, and adds the device's noise
    /// to them. At the end it adds the noise of the bit, and the masks. This happens here and
    /// nowhere else. The covered integers overwrite the update completely.
    ///
    /// A call covers about as many entries as take the time of training on `most` samples.
    ///
    /// # Errors
    /// Returns [`Decline`] in a build that lacks the requested noise or masks. Nothing is sent
    /// then.
    pub(in super::super) fn cover<M: Trainable<Descent = D>, F, K, V: Secrets>(
        &mut self,
        device: &mut Device<'_, M, F, K, V>,
        most: usize,
    ) -> Result<(), Decline> {
        match &self.stage {
            Stage::Covering(covering) if covering.done < self.invitation.update_length() => {
                self.cover_entries(device, most);
                Ok(())
            }
            Stage::Covering(_) => self.cover_rest(device),
            _ => Ok(()),
        }
    }

    /// Covers the next entries.
    #[inline(never)]
    fn cover_entries<M: Trainable<Descent = D>, F, K, V: Secrets>(
        &mut self,
        device: &mut Device<'_, M, F, K, V>,
        most: usize,
    ) {
        let streams = &streams_of(&device.identity, self.number);
        let Self {
            invitation,
            stage: Stage::Covering(covering),
            negated,
            ..
        } = self
        else {
            return;
        };
        let length = invitation.update_length();
        let start = covering.done;
        let end = start.saturating_add(most.saturating_mul(ENTRIES_OF_A_SAMPLE));
        let end = end.min(length);
        // Two halves, in the memory of two parameters that training no longer needs.
        let Workspace { update, local, .. } = &mut device.memory.work;
        let (update, local) = (update.get_mut(start..end), local.get_mut(start..end));
        let mut low = patterns_mut(update.unwrap_or_default());
        let mut high = patterns_mut(local.unwrap_or_default());
        // Integers are already in place, unless there are none.
        let has_integers = M::HAS_REQUESTS && matches!(covering.source, Source::Integers);
        if !has_integers {
            let repair = match covering.source {
                Source::Update(repair) => Some(repair),
                Source::Zeros | Source::Integers => None,
            };
            let is_bare = covering.noise.is_none() && invitation.own_masks().is_none();
            *negated |= quantise(repair, &invitation.grid, is_bare, low, high);
        }
        let mut purpose = Purpose::DeviceNoise;
        if M::HAS_REQUESTS && invitation.is_matrix() {
            purpose = Purpose::CorrelationNoise;
            if end == length {
                // The last entry, after the matrix, is the number of samples, which is public.
                for half in [&mut low, &mut high] {
                    let matrix = core::mem::take(half).split_last_mut();
                    *half = matrix.map_or_else(Default::default, |(_, matrix)| matrix);
                }
            }
        }
        if let Some(noise) = &covering.noise {
            noise.draw(streams, purpose, &mut covering.words, low, high);
        }
        covering.done = end;
    }

    /// Covers the part after the entries: the noise of the bit, or the masks of the next helper.
    #[inline(never)]
    fn cover_rest<M: Trainable, F, K, V: Secrets>(
        &mut self,
        device: &mut Device<'_, M, F, K, V>,
    ) -> Result<(), Decline> {
        let Self {
            invitation,
            stage: Stage::Covering(covering),
            bit,
            ..
        } = self
        else {
            return Ok(());
        };
        match invitation.masks {
            // An invitation to masks has no bit.
            None => {
                if let Some(noise) = OwnNoise::of(invitation.bit.and_then(|bit| bit.noise))? {
                    let streams = &streams_of(&device.identity, self.number);
                    // It replaces the update's noise.
                    let noise = covering.noise.insert(noise);
                    bit.cover(noise, streams);
                }
            }
            // The device has declined already. Nothing leaves without its masks.
            Some(_) if !DeviceMasks::HAS_MASKS => return Err(Decline::Helpers),
            Some(masking) => {
                let helper = covering.helpers;
                covering.helpers += 1;
                self.mask(device, helper, masking);
                if helper + 1 < masking.helpers() {
                    return Ok(());
                }
            }
        }
        (self.first, self.chunk) = (0, 0);
        self.stage = Stage::Covered;
        Ok(())
    }

    /// Adds the masks of a helper.
    fn mask<M: Trainable, F, K, V>(
        &self,
        device: &mut Device<'_, M, F, K, V>,
        helper: u8,
        masking: Masking,
    ) {
        let length = self.invitation.update_length();
        let Workspace { update, local, .. } = &mut device.memory.work;
        let (update, local) = (update.get_mut(..length), local.get_mut(..length));
        let low = patterns_mut(update.unwrap_or_default());
        let high = patterns_mut(local.unwrap_or_default());
        (device.masks).add(self.number, helper, masking, low, high);
    }
}
