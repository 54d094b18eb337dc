//! The private sum of a cohort, and its public form after the noise.

use smolfed_accounting::TrustModel;
use smolfed_core::stream::Root;

use super::admission::Admitted;
use super::masked::{Attendee, HelperAnswer, HelperError};
use super::received::ReceivedUpdate;
use super::settings::ReleaseSettings;
use crate::communicator::Communicator;
use crate::masking::Masking;
use crate::masking::Ring;

/// The exact sum of a cohort's updates, one integer per parameter. It is private until the noise is
/// added: it has no getter, and its `Debug` prints only the length.
///
/// For masked updates it is the sum modulo 2^w, and uniform to anyone without the masks.
pub struct PrivateSum {
    integers: Vec<i64>,
    /// The devices whose masked updates are in it.
    attendees: Vec<Attendee>,
    /// The sum of the bits of adaptive clipping, in steps of their grid.
    bits: i64,
    /// How many times finer the integers are than the grid of the updates: 1 unless this is a
    /// combination of several sums.
    fineness: i64,
}

impl std::fmt::Debug for PrivateSum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PrivateSum of {} integers", self.integers.len())
    }
}

impl PrivateSum {
    /// Creates the sum of an empty cohort.
    #[must_use]
    pub fn zero(length: usize) -> Self {
        Self {
            integers: vec![0; length],
            attendees: Vec::new(),
            bits: 0,
            fineness: 1,
        }
    }

    /// Returns the number of entries.
    #[must_use]
    pub const fn length(&self) -> usize {
        self.integers.len()
    }

    /// Counts a device whose masked update is in the sum.
    pub(super) fn attended(&mut self, attendee: Attendee) {
        self.attendees.push(attendee);
    }

    /// Returns the devices whose masked updates are in the sum.
    pub fn attendees_mut(&mut self) -> &mut Vec<Attendee> {
        &mut self.attendees
    }

    pub(super) fn integers_mut(&mut self) -> &mut [i64] {
        &mut self.integers
    }

    /// Replaces the sum by a combination of this sum and earlier ones, still private, whose
    /// integers are `fineness` times finer.
    pub(super) fn combined(self, integers: Vec<i64>, fineness: i64) -> Self {
        Self {
            integers,
            fineness,
            ..self
        }
    }

    pub(super) fn bits_mut(&mut self) -> &mut i64 {
        &mut self.bits
    }

    /// Adds another part of the cohort. The result is exact in any order.
    pub fn absorb(&mut self, part: &Self) {
        for (sum, q) in self.integers.iter_mut().zip(&part.integers) {
            // It wraps around only if sums are modulo 2^w anyway.
            *sum = sum.wrapping_add(*q);
        }
        self.attendees.extend_from_slice(&part.attendees);
        self.bits += part.bits;
    }

    /// Adds up the sums of all ranks exactly. Rank 0 gets the sum of the whole cohort, still
    /// private, and the others get zeros. So one process adds the server's noise, once, and the
    /// releases of two ranks cannot differ: only rank 0 releases.
    ///
    /// The bits are sent as one more entry.
    pub fn reduce(&mut self, ranks: &dyn Communicator) {
        if ranks.count() == 1 {
            return;
        }
        self.integers.push(self.bits);
        ranks.sum(&mut self.integers);
        self.bits = self.integers.pop().unwrap_or(0);
        if ranks.rank() > 0 {
            self.integers.fill(0);
            self.bits = 0;
        }
    }

    /// Adds the update of a real device. With the device's own noise the values may wrap around, as
    /// they do on the device. The update of a device that may not take part is ignored.
    pub fn add_received(&mut self, device: u32, update: &ReceivedUpdate, admitted: &Admitted) {
        if !admitted.has(device) {
            return;
        }
        for (sum, q) in self.integers.iter_mut().zip(update.integers()) {
            *sum = sum.wrapping_add(*q);
        }
        self.bits = self.bits.wrapping_add(update.bit());
    }

    /// Adds the masked update of a real device. The update of a device that may not take part is
    /// ignored.
    pub fn add_masked(&mut self, attendee: Attendee, update: &ReceivedUpdate, admitted: &Admitted) {
        if admitted.has(attendee.device) {
            self.add_received(attendee.device, update, admitted);
            self.attended(attendee);
        }
    }

    /// Subtracts the answers of all helpers. The result is the sum, or a combination of sums, with
    /// the helpers' noise, modulo 2^w.
    ///
    /// # Errors
    /// [`HelperError::Unfit`] for an answer of another length.
    pub fn unmask(mut self, answers: &[HelperAnswer]) -> Result<Self, HelperError> {
        for (helper, answer) in (0..).zip(answers) {
            if answer.integers.len() != self.integers.len() {
                return Err(HelperError::Unfit { helper });
            }
            for (sum, mask) in self.integers.iter_mut().zip(&answer.integers) {
                *sum = sum.wrapping_sub(*mask);
            }
        }
        Ok(self)
    }

    /// Returns the coordinator's view of masked updates, which is not secret from it: for audits.
    #[must_use]
    pub fn masked(&self, ring: Ring) -> Vec<i64> {
        let is_masked = !self.attendees.is_empty();
        let entries = self.integers.iter().filter(|_| is_masked);
        entries.map(|x| ring.reduce(*x)).collect()
    }

    /// Appends another sum to this one. Under local trust, a party that sees each upload separately
    /// sees them next to each other. Their bits are added.
    pub fn append(&mut self, upload: &Self) {
        self.integers.extend(&upload.integers);
        self.bits += upload.bits;
    }

    /// Returns the sum without noise, for a report's diagnostics. `None` unless all devices are
    /// simulated and only the server would add the noise.
    #[must_use]
    pub fn simulated(&self, release: &ReleaseSettings, at: &ReleaseAt) -> Option<SimulatedSum> {
        let is_central = release.mechanism.trust() == TrustModel::Central;
        (release.is_simulation && is_central).then(|| SimulatedSum {
            integers: self.integers.clone(),
            step: release.step(at.learning_rate),
        })
    }

    /// Adds the server's noise to the sum and makes it public. Under local trust, the devices have
    /// already added the noise. Under distributed trust the helpers have added theirs, and integers
    /// modulo 2^w become numbers. This is the only place where a sum of updates becomes public.
    #[must_use]
    pub fn release(mut self, release: &ReleaseSettings, root: &Root, at: &ReleaseAt) -> Released {
        if !release.mechanism.is_local() {
            let (fault, mechanism) = (release.fault, &release.mechanism);
            let number = fault.noise_number(at.number);
            let purpose = release.channel.server_noise();
            fault.cover(&mut self.integers, at.number, |sum| {
                mechanism.cover(sum, root, purpose, number);
            });
            if let Some(bit) = &mechanism.bit {
                bit.cover(&mut self.bits, root, number, fault);
            }
        }
        if let Some(Masking { ring, .. }) = release.masking {
            self.integers.iter_mut().for_each(|x| *x = ring.centre(*x));
        }
        Released {
            integers: self.integers,
            estimate: None,
            step: release.step(at.learning_rate) / self.fineness as f64,
            noise_std: release.noise_std_of_sum(at.learning_rate, at.cohort_size),
            cohort_size: at.cohort_size,
            unclipped_excess: release.mechanism.bit.map(|bit| bit.value(self.bits)),
        }
    }
}

/// The round of a release.
#[derive(Clone, Copy, Debug)]
pub struct ReleaseAt {
    /// The number that names the round's random streams.
    pub number: u32,
    /// The devices' learning rate.
    pub learning_rate: f32,
    /// Number of drawn devices.
    pub cohort_size: usize,
}

/// A sum after the noise, with the data to interpret it: public.
#[derive(Clone, Debug)]
pub struct Released {
    integers: Vec<i64>,
    /// The sum, in units of the parameters, if it was estimated from the integers.
    estimate: Option<Vec<f64>>,
    step: f64,
    noise_std: f64,
    cohort_size: usize,
    unclipped_excess: Option<f64>,
}

impl Released {
    /// Returns the std of the noise in the sum, in units of the parameters.
    #[must_use]
    pub const fn noise_std(&self) -> f64 {
        self.noise_std
    }

    /// Returns the number of drawn devices.
    #[must_use]
    pub const fn cohort_size(&self) -> usize {
        self.cohort_size
    }

    /// Returns half of the difference between the numbers of updates inside and outside the ball,
    /// with noise. `None` unless the clip norm is adaptive.
    #[must_use]
    pub const fn unclipped_excess(&self) -> Option<f64> {
        self.unclipped_excess
    }

    /// Returns the number of coordinates.
    #[must_use]
    pub fn length(&self) -> usize {
        let estimate = self.estimate.as_ref().map(Vec::len);
        estimate.unwrap_or(self.integers.len())
    }

    /// Returns the number of released integers.
    #[must_use]
    pub const fn integer_count(&self) -> usize {
        self.integers.len()
    }

    /// Returns the released values, in units of the parameters.
    #[must_use]
    pub fn values(&self) -> Vec<f64> {
        let value = |q: &i64| *q as f64 * self.step;
        self.integers.iter().map(value).collect()
    }

    /// Returns the view of somebody who knows a part of the noise, in steps.
    #[must_use]
    pub fn less(mut self, known: &[i64]) -> Self {
        let pairs = self.integers.iter_mut().zip(known);
        pairs.for_each(|(y, z)| *y -= z);
        self
    }

    /// Adds an estimate of the sum, whose noise has `ratio` times the std of the release.
    pub(super) fn estimated(self, estimate: Vec<f64>, ratio: f64) -> Self {
        Self {
            estimate: Some(estimate),
            noise_std: self.noise_std * ratio,
            ..self
        }
    }

    /// Checks that the release can be a sum of updates with the noise of all parties. It always
    /// passes if updates are not masked.
    ///
    /// # Errors
    /// [`HelperError::Implausible`].
    pub fn check(self, masking: Option<&Masking>) -> Result<Self, HelperError> {
        let noise_std = self.noise_std / self.step;
        match masking.is_none_or(|masking| masking.is_plausible(&self.integers, noise_std)) {
            true => Ok(self),
            false => Err(HelperError::Implausible),
        }
    }

    pub(super) fn integers(&self) -> &[i64] {
        &self.integers
    }

    pub(super) const fn step(&self) -> f64 {
        self.step
    }

    /// Returns the noisy sum over `denominator`, in units of the parameters.
    #[must_use]
    pub fn over(&self, denominator: f64) -> Vec<f32> {
        match &self.estimate {
            None => scaled(&self.integers, self.step, denominator),
            Some(estimate) => {
                let scale = |x: &f64| (*x / denominator) as f32;
                estimate.iter().map(scale).collect()
            }
        }
    }
}

/// A sum without noise, of simulated devices: it describes private data, and is used only in a
/// report's diagnostics.
pub struct SimulatedSum {
    integers: Vec<i64>,
    step: f64,
}

impl SimulatedSum {
    /// Returns the number of coordinates.
    #[must_use]
    pub fn length(&self) -> usize {
        self.integers.len()
    }

    /// Returns the sum over `denominator`, in units of the parameters.
    #[must_use]
    pub fn over(&self, denominator: f64) -> Vec<f32> {
        scaled(&self.integers, self.step, denominator)
    }
}

fn scaled(integers: &[i64], step: f64, denominator: f64) -> Vec<f32> {
    let scale = |q: &i64| (*q as f64 * step / denominator) as f32;
    integers.iter().map(scale).collect()
}

#[cfg(any(test, feature = "faults"))]
impl PrivateSum {
    /// Returns the integers, for tests of the release path.
    pub fn integers(&self) -> &[i64] {
        &self.integers
    }

    /// Returns the sum of the bits, for tests of the release path.
    pub const fn bits(&self) -> i64 {
        self.bits
    }
}

#[cfg(any(test, feature = "faults"))]
impl Released {
    /// Creates a public sum, for tests of its users.
    pub fn for_test(integers: &[i64], step: f64, cohort_size: usize) -> Self {
        Self {
            integers: integers.to_vec(),
            estimate: None,
            step,
            noise_std: 0.0,
            cohort_size,
            unclipped_excess: None,
        }
    }

    /// Sets the result of the bits of adaptive clipping.
    #[must_use]
    pub fn with_unclipped_excess(self, excess: f64) -> Self {
        Self {
            unclipped_excess: Some(excess),
            ..self
        }
    }
}
