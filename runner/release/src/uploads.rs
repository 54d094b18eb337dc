//! From local training to the exact sum of the updates: each update is weighted, quantised and
//! checked, and under local trust the device adds its own noise.

use rayon::prelude::*;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smolfed_core::bit::clip_bit;
use smolfed_core::lanes;
use smolfed_core::noise::DiscreteGaussian;
use smolfed_core::personal::NoisySteps;
use smolfed_core::quantize::Grid;
use smolfed_core::stream::{Purpose, Root, StreamId};
use smolfed_core::train::{TrainError, TrainReport};
use smolfed_simd::Words;
use smolfed_simd::quantize::{add, check, quantize_into};

use super::admission::{Admitted, REASON};
use super::bit::ClipBit;
use super::contribution::Contribution;
use super::encoding::Encoding;
use super::masked::DeviceMasks;
use super::settings::{ReleaseSettings, Timing};
use super::sum::PrivateSum;
use super::weight;

/// The outcome of one device of the cohort.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Outcome {
    /// It trained. The report describes private data and exists only in simulations.
    Trained(#[serde(with = "Reported")] TrainReport),
    /// It could not train: a zero update.
    LeftOut {
        /// The reason, in a sentence.
        reason: String,
    },
    /// A real device answered. Nothing else is known of its training.
    Answered,
    /// It was drawn but did not answer: a zero update.
    Missing,
}

impl Outcome {
    /// Returns whether the device's update is in the sum.
    #[must_use]
    pub const fn is_trained(&self) -> bool {
        matches!(self, Self::Trained(_))
    }
}

/// The encoding of training reports between ranks. Floats are sent as bits, since JSON has no
/// infinity.
struct Reported;

impl Reported {
    fn serialize<S: Serializer>(report: &TrainReport, to: S) -> Result<S::Ok, S::Error> {
        let counts = [
            report.steps,
            report.clipped_steps,
            report.clipping_chances,
            report.saturated,
        ];
        let floats = [report.first_loss, report.last_loss, report.norm];
        (counts, floats.map(f32::to_bits)).serialize(to)
    }

    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<TrainReport, D::Error> {
        let (counts, bits) = <([u32; 4], [u32; 3])>::deserialize(from)?;
        let [steps, clipped_steps, clipping_chances, saturated] = counts;
        let [first_loss, last_loss, norm] = bits.map(f32::from_bits);
        Ok(TrainReport {
            steps,
            clipped_steps,
            clipping_chances,
            first_loss,
            last_loss,
            norm,
            saturated,
        })
    }
}

/// Lets devices send vectors of `length` entries on the threads of the current pool, and adds up
/// the sums that `send` returns for parts of them. Outcomes are in the order of the devices.
pub fn on_all_threads(
    length: usize,
    devices: &[u32],
    send: impl Fn(&[u32]) -> (PrivateSum, Vec<Outcome>) + Sync,
) -> (PrivateSum, Vec<Outcome>) {
    // Four pieces per thread balance devices of different size without a sum for each device.
    let pieces = 4 * rayon::current_num_threads();
    let piece = devices.len().div_ceil(pieces).max(1);
    let pieces: Vec<_> = devices.par_chunks(piece).map(&send).collect();
    let mut sum = PrivateSum::zero(length);
    let mut outcomes = Vec::with_capacity(devices.len());
    for (part, of_part) in pieces {
        sum.absorb(&part);
        outcomes.extend(of_part);
    }
    (sum, outcomes)
}

/// Devices that train sequentially on one thread, and the exact sum of their messages.
pub struct Uploads<'a> {
    release: &'a ReleaseSettings,
    root: &'a Root,
    /// The number that names the round's random streams.
    number: u32,
    update: Vec<f32>,
    integers: Vec<i32>,
    noised: Vec<i64>,
    /// The releases of the local steps of a device.
    sent: Vec<i64>,
    sum: PrivateSum,
    /// The devices whose updates may enter the sum.
    admitted: &'a Admitted,
    /// The masks of each update (distributed trust).
    masks: Option<DeviceMasks<'a>>,
}

impl<'a> Uploads<'a> {
    /// Creates an empty sum for updates of `length` parameters in round `number`.
    #[must_use]
    pub fn new(release: &'a ReleaseSettings, root: &'a Root, number: u32, length: usize) -> Self {
        let sends_steps = matches!(release.timing, Timing::EachStep(_));
        Self {
            release,
            root,
            number,
            update: vec![0.0; length],
            integers: vec![0; length],
            noised: Vec::new(),
            sent: vec![0; if sends_steps { length } else { 0 }],
            sum: PrivateSum::zero(length),
            admitted: &Admitted::All,
            masks: None,
        }
    }

    /// Sets the devices that may take part in the round.
    #[must_use]
    pub fn admitting(self, admitted: &'a Admitted) -> Self {
        Self { admitted, ..self }
    }

    /// Sets the masks of the updates.
    #[must_use]
    pub fn masking(self, masks: Option<DeviceMasks<'a>>) -> Self {
        Self { masks, ..self }
    }

    /// Returns the sum of the devices' messages.
    #[must_use]
    pub fn into_sum(self) -> PrivateSum {
        self.sum
    }

    /// Lets a device with `samples` samples train, and adds its message to the sum. A device that
    /// fails adds only its own noise or masks, if required.
    pub fn device(
        &mut self,
        device: u32,
        samples: usize,
        train: impl FnOnce(&mut Contribution<'_>) -> Result<TrainReport, String>,
    ) -> Outcome {
        if !self.admitted.has(device) {
            let reason = REASON.to_owned();
            return Outcome::LeftOut { reason };
        }
        let outcome = match self.send(device, samples, train) {
            Ok(report) => Outcome::Trained(report),
            Err(reason) => {
                self.add_noise_alone(device);
                Outcome::LeftOut { reason }
            }
        };
        // Training failure depends on private data, and a masked update of zeros cannot be
        // distinguished from others.
        if let Some(masks) = &self.masks {
            let attendee = masks.add(device, self.sum.integers_mut());
            self.sum.attended(attendee);
        }
        outcome
    }

    /// Returns the noise that a device must add to its message (local trust).
    fn device_noise(&self, device: u32) -> Option<&'a DiscreteGaussian> {
        let is_added = self.release.fault.has_noise_at(device, self.number);
        self.release.device_noise().filter(|_| is_added)
    }

    /// Returns the device's noise stream of the round for its update, or for its bit.
    fn noise_stream(&self, purpose: Purpose, device: u32) -> Words {
        let fault = self.release.fault;
        let id = StreamId {
            purpose,
            round: fault.noise_number(self.number),
            device: fault.noise_device(device),
        };
        Words::new(self.root, id)
    }

    fn send(
        &mut self,
        device: u32,
        samples: usize,
        train: impl FnOnce(&mut Contribution<'_>) -> Result<TrainReport, String>,
    ) -> Result<TrainReport, String> {
        let is_stepwise = matches!(self.release.timing, Timing::EachStep(_));
        let noise = self.device_noise(device);
        // Used once: by the steps or by the update.
        let purpose = self.release.channel.device_noise();
        let has_stream = is_stepwise || noise.is_some();
        let mut stream = has_stream.then(|| self.noise_stream(purpose, device));
        self.sent.fill(0);
        let of_steps = noise.filter(|_| self.release.fault.covers_each_step());
        if let (None, true, Some(noise), Some(stream)) = (of_steps, is_stepwise, noise, &mut stream)
        {
            noise.add_to(&mut self.sent, stream);
        }
        let mut contribution = Contribution {
            update: &mut self.update,
            steps: None,
            clip_norm: self.release.encoding.grid().map(|grid| grid.clip_norm()),
            fault: self.release.fault,
        };
        if let (true, Some(grid)) = (is_stepwise, self.release.encoding.grid()) {
            contribution.steps = stream.take().map(|stream| NoisySteps {
                grid,
                noise: of_steps,
                stream,
                sent: &mut self.sent,
                clipped: 0,
                releases: 0,
            });
        }
        let report = train(&mut contribution)?;
        if is_stepwise {
            let steps = contribution.steps.as_ref();
            let steps = steps.map_or(0, |steps| steps.releases);
            let accounted = self.release.timing.releases();
            if steps > accounted {
                return Err(format!(
                    "{steps} releases, of which {accounted} are accounted for"
                ));
            }
            // The model moves against the gradients.
            for (sum, q) in self.sum.integers_mut().iter_mut().zip(&self.sent) {
                *sum -= q;
            }
            return Ok(report);
        }
        if let Some(cap) = self.release.weight_cap {
            // No weight is above 1, so no norm grows.
            lanes::scale(&mut self.update, weight::capped(cap, samples));
        }
        // The norm is untrusted. For any norm, the bit has at most its allowed length.
        let bit = self.release.mechanism.bit.and(self.release.encoding.grid());
        let bit = bit.map_or(0, |grid| clip_bit(&grid, report.norm));
        let bit = self.release.fault.bit(bit);
        self.add(bit, noise.zip(stream))?;
        if noise.is_some() {
            self.add_bit_noise(device);
        }
        Ok(report)
    }

    /// Adds the update on the grid, and the bit, to the sum, with the device's own noise if
    /// required.
    fn add(&mut self, bit: i64, noise: Option<(&DiscreteGaussian, Words)>) -> Result<(), String> {
        match self.release.encoding {
            Encoding::Clipped(grid) => {
                self.quantize(&grid)?;
                *self.sum.bits_mut() += bit;
                self.add_integers(noise);
            }
            Encoding::Unbounded => {
                let inside = |x: &f32| x.abs() <= Encoding::UNBOUNDED_LIMIT;
                if !self.update.iter().all(inside) {
                    return Err(TrainError::Diverged.to_string());
                }
                for (sum, x) in self.sum.integers_mut().iter_mut().zip(&self.update) {
                    *sum += (f64::from(*x) / Encoding::UNBOUNDED_STEP) as i64;
                }
            }
        }
        Ok(())
    }

    fn quantize(&mut self, grid: &Grid) -> Result<(), String> {
        let bounded = self.release.fault.bounded(self.update.len());
        let (update, unbounded) = self.update.split_at(bounded);
        let (integers, others) = self.integers.split_at_mut(bounded);
        for (q, x) in others.iter_mut().zip(unbounded) {
            *q = (f64::from(*x) / grid.step()) as i32;
        }
        // The device's check, then the server's.
        quantize_into(grid, update, integers)
            .and_then(|()| check(grid, integers))
            .map_err(|error| error.to_string())
    }

    fn add_integers(&mut self, noise: Option<(&DiscreteGaussian, Words)>) {
        let sum = self.sum.integers_mut();
        match noise {
            None => add(sum, &self.integers),
            Some((noise, mut stream)) => {
                self.noised.clear();
                self.noised
                    .extend(self.integers.iter().map(|q| i64::from(*q)));
                let first = self.noised.first().copied();
                noise.add_to(&mut self.noised, &mut stream);
                self.release.fault.uncover_first(first, &mut self.noised);
                for (sum, q) in sum.iter_mut().zip(&self.noised) {
                    *sum += q;
                }
            }
        }
    }

    /// Adds the device's noise to its bit, from a separate stream.
    fn add_bit_noise(&mut self, device: u32) {
        if let Some(noise) = self.release.mechanism.bit.as_ref().and_then(ClipBit::noise) {
            let mut stream = self.noise_stream(Purpose::DeviceBitNoise, device);
            noise.add_to(std::slice::from_mut(self.sum.bits_mut()), &mut stream);
        }
    }

    /// Adds the noise of a device without an update. Training failure depends on private data, so a
    /// device with its own noise sends that noise alone, once per release that it would have made,
    /// and the failure stays hidden.
    fn add_noise_alone(&mut self, device: u32) {
        let noise = self.device_noise(device);
        if let Some(noise) = noise.filter(|_| self.release.fault.covers_absence()) {
            let mut stream = self.noise_stream(self.release.channel.device_noise(), device);
            let first = self.sum.integers_mut().first().copied();
            for _ in 0..self.release.timing.releases() {
                noise.add_to(self.sum.integers_mut(), &mut stream);
            }
            let fault = self.release.fault;
            fault.uncover_first(first, self.sum.integers_mut());
            self.add_bit_noise(device);
        }
    }
}
